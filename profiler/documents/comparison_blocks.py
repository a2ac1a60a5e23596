"""The blocks that a comparison and its explanation share: the sides, timed calls, durations, and notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from profiler.compare.comparison import Comparison
from profiler.documents import comparison_text as text
from profiler.documents.blocks import Block, Line, Name, Notes, Table
from profiler.evidence.naming import brief_list

TIMES_SHOWN = 40  # rows of timed benchmarks, the others on request


def side_blocks(comparison: Comparison) -> Iterator[Block]:
    """Which sides they are, and what makes them not comparable."""
    lines = []
    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        ncu = side.session.ncu_version or "version unknown"
        gpus = ", ".join(side.gpus) or "GPU unknown"
        lines.append((f"{letter}: ", Name(side.label), f" ({gpus}, ncu {ncu})"))
    yield Notes(lines)
    if not comparison.comparable:
        blocked = "; ".join(difference.words for difference in comparison.blocked_by)
        yield Line(blocked, label="Not comparable")


def time_blocks(comparison: Comparison) -> Iterator[Block]:
    """The timed calls and ncu's durations, each with the notes that its verdicts need."""
    if comparison.latency:
        yield Line("latency of calls, which decides")
        yield Table(text.LATENCY_HEAD, text.latency_rows(comparison), right=(1, 2, 3, 4))
        yield Notes(text.latency_notes(comparison))
    if comparison.pairs:
        yield Line(text.about_durations(comparison))
        rows = [(Name(kernel), *cells) for kernel, *cells in text.duration_rows(comparison)]
        head = text.duration_head(comparison)
        yield Table(head, rows, right=range(1, len(head) - 1))
    elif comparison.a.launches or comparison.b.launches or not comparison.latency:
        yield Line(text.no_partner(comparison))


def times_blocks(comparisons: Sequence[Comparison], *, everything: bool = False) -> Iterator[Block]:
    """The timed calls of several benchmarks, what got worst first; the notes that hold for them."""
    rows = [
        (latency.decision.effect, (Name(_benchmark(comparison)), *cells))
        for comparison in comparisons
        for latency, cells in zip(comparison.latency, text.latency_rows(comparison), strict=True)
    ]
    rows.sort(key=lambda row: -(row[0] if row[0] is not None else -math.inf))
    shown = rows if everything else rows[:TIMES_SHOWN]
    yield Line("latency of calls, largest increase first")
    yield Table(("benchmark", *text.LATENCY_HEAD), [row for _, row in shown], right=(2, 3, 4, 5))
    if len(shown) < len(rows):
        yield Line(f"and {len(rows) - len(shown)} more: --all")
    first = comparisons[0]
    floors = dict.fromkeys(note for comparison in comparisons for note in text.floor_notes(comparison))
    yield Notes([*floors])
    if noted := text.warnings(first):
        yield Line("check before trusting this")
        yield Notes(noted)


def _benchmark(comparison: Comparison) -> str:
    """What was timed: `softmax/triton 4096`; a version that the sides call differently is left out."""
    a, b = comparison.a, comparison.b
    version = f"/{b.version}" if b.version and a.version == b.version else ""
    return f"{b.family}{version} {b.workload or ''}".strip()


def note_blocks(comparison: Comparison) -> Iterator[Block]:
    """What is to be known of the pairs, of the launches without one, and before trusting a verdict."""
    lines = [*text.pairing_notes(comparison), *text.undecided_reasons(comparison)]
    if comparison.hidden_pairs:
        lines.append(f"{text.hidden_pairs(comparison)}: --top N")
    lines += text.unmatched(comparison)
    for group in comparison.ambiguous:
        a, b = (
            brief_list([text.describe_launch(comparison, launch) for launch in side])
            for side in (group.a, group.b)
        )
        lines.append(f"ambiguous: {group.base_name}: {group.why}; A: {a}; B: {b}")
    yield Notes([*lines, *text.pair_options(comparison)])
    if noted := text.warnings(comparison):
        yield Line("check before trusting this")
        same = ", ".join(f"{field} {value}" for field, value in comparison.same if field != "command line")
        yield Notes([*noted, *([f"identical on both sides: {same}"] if same else [])])
