"""What the page Search says of a search: tiles, marks of the chart, the tree, elites, insights, refused."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from profiler.documents import SearchDocument
from profiler.documents.prediction import time_words
from profiler.search import SearchRecord, Status, best_so_far, candidate_name, mean_time_ns, path_to
from profiler.search.effects import ENOUGH, InsightEffect
from profiler.statistics import Verdict
from profiler.ui import markup
from profiler.ui.charts.search_progress import CandidateMark, Level, RecordStep
from profiler.ui.charts.search_tree import CandidateNode
from profiler.ui.markup import Column, Html, Row, Tile

REFUSED = (Status.REFUSED, Status.UNKNOWN, Status.NO_CANDIDATE)
SAME = (Status.SAME_CODE, Status.SAME_SOURCE)
_STAGE_WORDS = {
    "generator": "no candidate",
    "budget": "budgets and static facts",
    "unseen": "right, shapes not shown",
    "acceptance": "right, shapes shown",
    "races": "races and waits",
    "binary": "forbidden content of the binary",
    "modelled_time": "sanity",
}
_MOST_NODES = 60  # of the tree


def head(document: SearchDocument) -> Html:
    """What is searched, by what, and what is in hand now."""
    settings = document.journal.settings
    parts: list[object] = [
        markup.code(settings.family),
        "from",
        markup.code(settings.version),
        "· generator",
        markup.code(settings.generator),
    ]
    if document.working:
        parts.append("· ending after the current candidate" if document.is_stopping else "· running")
    else:
        parts.append("· no worker running")
    return markup.join(parts)


def in_hand(document: SearchDocument) -> str:
    """What workers do now: `c12 since 14 s`."""
    now = time.time()
    return ", ".join(
        f"{candidate_name(working.number)} since {max(0, now - working.since):.0f} s"
        for working in document.working
    )


def tiles(document: SearchDocument) -> Html:
    """Best so far, targets, candidates, cost."""
    best, seed = document.best, document.archive.seed
    if best is None or seed is None:
        first = Tile("Best so far", "–", "", markup.state("the seed is judged"))
    else:
        span = best.times[document.workload]
        low, high = time_words(span.get("low_ns")), time_words(span.get("high_ns"))
        unit = f"{time_words(best.time_ns(document.workload))}, range {low} to {high}"
        label = markup.join(("Best so far", markup.evidence_badge(str(best.evidence))))
        first = Tile(label, markup.code(best.name), unit, _against_seed(document, best, seed))
    reached = sum(target.reached is True for target in document.targets)
    words = markup.join(
        [
            markup.join(
                (markup.tag("b", target.name) if target.reached else target.name, _reached(target.reached))
            )
            for target in document.targets
        ],
        " · ",
    )
    minutes = sum(document.seconds.values()) / 60
    count = len(document.children)
    each = sum(document.seconds.values()) / len(document.archive.records) if document.archive.records else 0
    same = document.counted(*SAME)
    found = [f"{document.counted(Status.SLOWER)} slower, not judged", f"{same} the same code"]
    if document.working:
        found.insert(0, in_hand(document))
    return markup.tiles(
        [
            first,
            Tile("Targets", reached, f"of {len(document.targets)} reached", words),
            Tile(
                "Candidates",
                count,
                f"{document.counted(*REFUSED)} refused",
                " · ".join(found),
            ),
            Tile("Cost", f"{minutes:.0f}", "min of workers", f"{each:.0f} s per candidate · no GPU used"),
        ]
    )


def _reached(reached: bool | None) -> str:
    return {True: "", False: "(not yet)", None: "(not known)"}[reached]


def _against_seed(document: SearchDocument, best: SearchRecord, seed: SearchRecord) -> Html:
    now, then = best.time_ns(document.workload), seed.time_ns(document.workload)
    version = markup.code(document.journal.settings.version)
    if best is seed or not now or not then:
        return markup.join(("it is", version))
    is_elite = any(elite.number == best.number for elite in document.archive.elites)
    ratio = f"× {now / then:.2f} of"
    said: list[object] = [ratio, version]
    if not is_elite:
        said.append("· no elite: within the model's error of one")
    return markup.join(said)


def marks(document: SearchDocument) -> list[CandidateMark]:
    """Every candidate for the chart."""
    elites = {elite.number for elite in document.archive.elites}
    found = []
    for record in document.archive.records:
        row = record.times.get(document.workload, {})
        time_ns = record.time_ns(document.workload)
        if record.status in REFUSED:
            look = "refused"
        elif record.status in SAME or time_ns is None:
            continue
        else:
            look = "elite" if record.number in elites else "candidate"
        found.append(
            CandidateMark(
                record.number,
                record.name,
                None if time_ns is None else time_ns / 1e3,
                look,
                _hover(document, record, record.number in elites),
                _us(row.get("low_ns")),
                _us(row.get("high_ns")),
            )
        )
    return found


def _us(ns: object) -> float | None:
    return float(ns) / 1e3 if isinstance(ns, (int, float)) else None


def _hover(document: SearchDocument, record: SearchRecord, is_elite: bool) -> list[str]:
    lines = [", ".join(record.levers) or document.journal.settings.version]
    time_ns = record.time_ns(document.workload)
    if time_ns is not None:
        lines.append(f"{time_words(time_ns)}, {record.evidence}")
    if record.status in REFUSED:
        lines.append(f"⊘ {stage_words(record.stage)}: {record.reason[:160]}")
    elif record.status is Status.SLOWER:
        lines.append("not judged: slower than every elite")
    elif not is_elite and record.number:
        lines.append("no elite: not better by more than the model's error")
    conflicts = record.facts.get("bank_conflicts")
    if conflicts is not None:
        lines.append(f"{conflicts:,.0f} bank conflicts, {record.facts.get('registers', '?')} registers")
    return lines


def steps(document: SearchDocument) -> list[RecordStep]:
    """Where the best time falls, with the levers that did it."""
    found = []
    for number, ns in best_so_far(document.archive.records, document.workload):
        record = document.archive.by_number[number]
        found.append(RecordStep(number, ns / 1e3, ", ".join(record.levers)))
    return found


def levels(document: SearchDocument, versions: Mapping[str, float]) -> list[Level]:
    """The lower bound, the target, and versions of the lineage with their modelled times in ns."""
    found = [Level(name, ns / 1e3, "dash") for name, ns in versions.items()]
    settings, seed = document.journal.settings, document.archive.seed
    if settings.target_ns is not None:
        found.append(Level("target", settings.target_ns / 1e3, "dot"))
    floor = seed.times.get(document.workload, {}).get("floor_ns") if seed else None
    if floor:
        found.append(Level("floor", float(floor) / 1e3, "solid"))
    return found


def tree(document: SearchDocument, selected: str, href: Mapping[str, str]) -> tuple[list[CandidateNode], int]:
    """The nodes of the tree, and how many candidates without children are folded.

    All stay while there are few; else those on a way to an elite, with children, chosen, or newest.
    """
    archive = document.archive
    best = document.best
    on_path = {record.number for record in path_to(archive, best)} if best else set()
    elites = {elite.number for elite in archive.elites}
    needed = {number for elite in archive.elites for number in (r.number for r in path_to(archive, elite))}
    needed |= on_path
    chosen = next((record for record in archive.records if record.name == selected), None)
    if chosen is not None:
        needed |= {record.number for record in path_to(archive, chosen)}
    kept: set[int] = set(needed)
    has_children = {record.parent for record in archive.records if record.parent is not None}
    for record in [*(r for r in archive.records if r.number in has_children), *reversed(archive.records)]:
        if len(kept) >= _MOST_NODES // 2 and record.number not in has_children:
            break
        if len(kept) < _MOST_NODES:
            kept |= {ancestor.number for ancestor in path_to(archive, record)}
    nodes = [
        CandidateNode(
            record.name,
            None if record.parent is None else candidate_name(record.parent),
            ", ".join(record.levers) or "no lever named",
            _below(document, record),
            "refused"
            if record.status in REFUSED
            else "same"
            if record.status in SAME
            else "elite"
            if record.number in elites
            else "plain",
            record.number in on_path,
            href.get(record.name, ""),
            record.name == selected,
            "; ".join(_hover(document, record, record.number in elites)),
        )
        for record in archive.records
        if record.number in kept
    ]
    return nodes, len(archive.records) - len(kept)


def _below(document: SearchDocument, record: SearchRecord) -> str:
    if record.status in REFUSED:
        return f"⊘ {record.stage or record.status}"
    if record.same_as is not None:
        what = "code" if record.status is Status.SAME_CODE else "source"
        return f"= {candidate_name(record.same_as)}'s {what}"
    return time_words(record.time_ns(document.workload))


def path_list(document: SearchDocument) -> Html:
    """The way to the best as a list of levers with times: what stands for the tree on a phone."""
    best = document.best
    if best is None:
        return Html("")
    rows = [
        Row(
            (
                markup.code(record.name),
                ", ".join(record.levers) or document.journal.settings.version,
                time_words(record.time_ns(document.workload)),
            )
        )
        for record in path_to(document.archive, best)
    ]
    columns = (Column("candidate"), Column("levers", wrap=True), Column("modelled", right=True))
    return markup.table("the way to the best", columns, rows, "k-path")


def elites(document: SearchDocument, href: Mapping[str, str], selected: str) -> Html:
    """The seats."""
    seed = document.archive.seed
    rows = []
    for elite in document.archive.elites:
        verdict = elite.verdicts.get(seed.content_id) if seed is not None else None
        against: object = markup.muted("the seed") if elite.number == 0 else markup.muted("–")
        then, now = (mean_time_ns(r) if r else None for r in (seed, elite))
        if elite.number and then and now:
            against = f"× {now / then:.2f}"
            if verdict is not None:
                against = markup.verdict(verdict.verdict, f"× {now / then:.2f}")
        rows.append(
            Row(
                (
                    markup.link(href.get(elite.name, ""), markup.code(elite.name)),
                    time_words(now),
                    against,
                    _count(elite.facts.get("registers")),
                    _count(elite.facts.get("bank_conflicts")),
                    ", ".join(elite.levers) or document.journal.settings.version,
                ),
                selected=elite.name == selected,
            )
        )
    columns = (
        Column("elite"),
        Column(f"mean, {document.best.evidence}" if document.best else "mean", right=True),
        Column(f"against {document.journal.settings.version}"),
        Column("registers", right=True, wide=True),
        Column("conflicts", right=True, wide=True),
        Column("levers", wrap=True),
    )
    return markup.table("elites", columns, rows)


def _count(value: object) -> object:
    return f"{value:,.0f}" if isinstance(value, (int, float)) else markup.state("not known")


def insights(effects: Sequence[InsightEffect]) -> Html:
    """What insights brought, each with its interval."""
    rows = []
    for effect in effects:
        difference = effect.difference
        if difference is None:
            shown: object = markup.state("too few")
            word: object = markup.state("unknown")
        else:
            points = (100 * difference.difference, 100 * difference.low, 100 * difference.high)
            shown = "{:+.0f} ({:+.0f} to {:+.0f})".format(*points)
            word = markup.verdict({str(v): v for v in Verdict}[effect.word])
        rows.append(
            Row(
                (
                    effect.kind,
                    f"{effect.better_with} of {effect.shown}",
                    f"{effect.better_without} of {effect.withheld}",
                    shown,
                    word,
                )
            )
        )
    columns = (
        Column("insight shown", wrap=True),
        Column("with", right=True),
        Column("without", right=True),
        Column("better than parent, pp, CI95", right=True, wide=True),
        Column(""),
    )
    return markup.table("what insights brought", columns, rows)


INSIGHT_NOTE = f"Shown or withheld at random: the control arm. {ENOUGH} of each are needed."


def stage_words(stage: str) -> str:
    """A stage as the table of what was refused calls it."""
    return _STAGE_WORDS.get(stage, stage or "not known")


def refused(document: SearchDocument, href: Mapping[str, str]) -> Html:
    """What was refused, by the stage that caught it."""
    rows = []
    for row in document.refused:
        reasons = [f"{count} {reason[:110]}" for reason, count in row.reasons[:3]]
        if len(row.reasons) > len(reasons):
            reasons.append(f"{len(row.reasons) - len(reasons)} more reasons")
        rows.append(
            Row(
                (
                    stage_words(row.stage),
                    row.count,
                    "; ".join(reasons),
                    markup.link(href.get(row.newest, ""), markup.code(row.newest)),
                )
            )
        )
    columns = (
        Column("stage"),
        Column("refused", right=True),
        Column("reasons", wrap=True, wide=True),
        Column("newest"),
    )
    return markup.table("refused", columns, rows)


def facts(document: SearchDocument, record: SearchRecord, other: SearchRecord | None) -> Html:
    """What is known of a candidate, beside another."""
    rows: list[tuple[object, ...]] = []
    for workload in document.journal.settings.workloads:
        rows.append((workload, *(time_words(r.time_ns(workload)) if r else "" for r in (other, record))))
    for name in (
        "registers",
        "spill_bytes",
        "shared_bytes",
        "bank_conflicts",
        "shared_wavefronts",
        "limiter",
    ):
        values = [r.facts.get(name) if r else None for r in (other, record)]
        if any(value is not None for value in values):
            words = [f"{v:,.0f}" if isinstance(v, (int, float)) else str(v or "–") for v in values]
            rows.append((name.replace("_", " "), *words))
    heads = (other.name if other else "–", record.name)
    columns = (Column(""), Column(heads[0], right=True), Column(heads[1], right=True))
    return markup.table("facts", columns, [Row(row) for row in rows])


def candidate_words(document: SearchDocument, record: SearchRecord) -> str:
    """What became of a candidate, in a sentence."""
    parts = [f"{record.status}"]
    if record.reason:
        parts.append(f"{stage_words(record.stage)}: {record.reason}" if record.stage else record.reason)
    verdict = document.against_parent(record)
    if verdict is not None:
        parts.append(f"{verdict.words} against its parent, {record.evidence}")
    if record.why:
        parts.append(f"why: {' / '.join(record.why.splitlines())}")
    if record.shown:
        parts.append(f"insights shown: {', '.join(record.shown)}")
    elif record.arm == "control":
        parts.append("control arm: no insights shown")
    return "; ".join(parts)
