"""The tables of a search: elites, the way to the best, what insights brought, what was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.documents.blocks import Gap, Name, Number, Phrase, Table, VerdictText
from profiler.documents.prediction import time_words
from profiler.evidence.values import NOT_COLLECTED, Value
from profiler.search.archive import Archive, mean_time_ns, path_to
from profiler.search.effects import InsightEffect
from profiler.search.journal import Journal
from profiler.search.record import SearchRecord

_REASON_SHOWN = 110  # letters
_REASONS_SHOWN = 3  # of a stage
_STAGE_WORDS = {
    "generator": "no candidate",
    "budget": "budgets and static facts",
    "unseen": "right, shapes not shown",
    "acceptance": "right, shapes shown",
    "races": "races and waits",
    "binary": "forbidden content of the binary",
    "modelled_time": "sanity",
}
_FACTS = ("registers", "spill_bytes", "shared_bytes", "bank_conflicts", "shared_wavefronts", "limiter")


@dataclass(frozen=True)
class RefusedStage:
    """What one stage refused."""

    stage: str
    count: int
    reasons: tuple[tuple[str, int], ...]  # most frequent first
    newest: str


def stage_words(stage: str) -> str:
    """A stage as tables call it."""
    return _STAGE_WORDS.get(stage, stage or "not known")


def levers_of(journal: Journal, record: SearchRecord) -> str:
    """What a candidate did to its parent; of the seed its version."""
    macros = " ".join(f"{name}={value}" for name, value in record.macros.items())
    return ", ".join(record.levers) or macros or journal.settings.version


def elite_table(journal: Journal, archive: Archive) -> Table:
    """A row a seat: its mean time, against the seed, and its facts."""
    seed = archive.seed
    rows: list[Sequence[Phrase]] = []
    for elite in archive.elites:
        then, now = (mean_time_ns(record) if record else None for record in (seed, elite))
        verdict = elite.verdicts.get(seed.content_id) if seed is not None else None
        against: Phrase = "–" if elite.number else "the seed"
        if elite.number and then and now:
            ratio = f"× {now / then:.2f}"
            against = ratio if verdict is None else VerdictText(verdict.verdict, ratio)
        facts = [_count(elite.facts.get(name)) for name in ("registers", "bank_conflicts")]
        rows.append((Name(elite.name), time_words(now), against, *facts, levers_of(journal, elite)))
    evidence = f", {archive.elites[0].evidence}" if archive.elites else ""
    head = (
        "elite",
        f"mean{evidence}",
        f"against {journal.settings.version}",
        "registers",
        "conflicts",
        "levers",
    )
    return Table(head, rows, right=(1, 3, 4), wide=(3, 4))


def path_table(journal: Journal, archive: Archive, best: SearchRecord, workload: str) -> Table:
    """The way from the seed to the best, a row a candidate."""
    rows = [
        (Name(record.name), levers_of(journal, record), time_words(record.time_ns(workload)))
        for record in path_to(archive, best)
    ]
    return Table(("candidate", "levers", str(best.evidence)), rows, right=(2,))


def effect_table(effects: Sequence[InsightEffect]) -> Table:
    """What insights brought, each with its interval."""
    rows: list[Sequence[Phrase]] = []
    for effect in effects:
        counts = (f"{effect.better_with} of {effect.shown}", f"{effect.better_without} of {effect.withheld}")
        difference, verdict = effect.difference, effect.verdict
        if difference is None or verdict is None:
            rows.append((effect.kind, *counts, Gap("too few"), Gap("unknown")))
            continue
        points = (100 * difference.difference, 100 * difference.low, 100 * difference.high)
        shown = "{:+.0f} ({:+.0f} to {:+.0f})".format(*points)
        rows.append((effect.kind, *counts, shown, VerdictText(verdict)))
    head = ("insight shown", "better with it", "without it", "pp, CI95", "")
    return Table(head, rows, right=(1, 2, 3), wide=(3,))


def refused_table(refused: Sequence[RefusedStage]) -> Table:
    """What was refused, by the stage that caught it; the newest candidate first, by which a page links it."""
    rows = []
    for row in refused:
        reasons = [f"{count} {reason[:_REASON_SHOWN]}" for reason, count in row.reasons[:_REASONS_SHOWN]]
        more = len(row.reasons) - len(reasons)
        words = "; ".join([*reasons, *([f"{more} more reasons"] if more else [])])
        rows.append((Name(row.newest), stage_words(row.stage), str(row.count), words))
    return Table(("newest", "refused by", "candidates", "reasons"), rows, right=(2,), wide=(3,))


def facts_table(record: SearchRecord, other: SearchRecord | None, workloads: Sequence[str]) -> Table:
    """What is known of a candidate, beside another."""
    rows: list[Sequence[Phrase]] = [
        (workload, *(time_words(r.time_ns(workload)) if r else "" for r in (other, record)))
        for workload in workloads
    ]
    for name in _FACTS:
        values = [r.facts.get(name) if r else None for r in (other, record)]
        if any(value is not None for value in values):
            words = [f"{v:,.0f}" if isinstance(v, int | float) else str(v or "–") for v in values]
            rows.append((name.replace("_", " "), *words))
    return Table(("", other.name if other else "–", record.name), rows, right=(1, 2))


def _count(number: object) -> Number:
    return Number(Value(number) if isinstance(number, int | float) else NOT_COLLECTED)
