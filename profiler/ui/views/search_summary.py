"""What the page Search says of a search beside its tables: tiles, marks of the chart, the tree."""

from __future__ import annotations

import time
from collections.abc import Mapping

from profiler.documents.prediction import time_words
from profiler.documents.search import SearchDocument
from profiler.documents.search_blocks import levers_of, stage_words
from profiler.search.archive import best_so_far, path_to
from profiler.search.effects import ENOUGH
from profiler.search.record import SearchRecord, Status, candidate_name
from profiler.ui import markup
from profiler.ui.charts.search_progress import CandidateMark, Level, RecordStep
from profiler.ui.charts.search_tree import CandidateNode
from profiler.ui.markup import Html, Tile

REFUSED = (Status.REFUSED, Status.UNKNOWN, Status.NO_CANDIDATE)
SAME = (Status.SAME_CODE, Status.SAME_SOURCE)
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
    lines = [levers_of(document.journal, record)]
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
        found.append(Level("lower bound", float(floor) / 1e3, "solid"))
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


INSIGHT_NOTE = f"Advice is shown or withheld at random (control group); {ENOUGH} of each are needed."


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
