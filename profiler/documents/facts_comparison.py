"""A comparison of two versions' static or modelled facts: what moved, in a table for each group of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from profiler.compare.comparison import Comparison
from profiler.compare.pair_comparison import MetricChange
from profiler.documents.blocks import Block, Heading, Line, Notes, Table
from profiler.documents.comparison_text import change_numbers
from profiler.evidence.values import Evidence
from profiler.statistics.verdict import Verdict

FACTS_HEAD = ("metric", "A", "B", "change", "verdict")
_ORIGIN = {
    Evidence.STATIC: "from compiler and machine code, exact; static instruction counts, not executed counts",
    Evidence.MODELLED: "from a run on the CPU; conflicts by the model of the banks",
}


@dataclass(frozen=True)
class FactsTable:
    """The changes of facts that several cells share."""

    cells: str  # the workloads and architectures, in words
    rows: tuple[tuple[str, ...], ...]  # under FACTS_HEAD
    same: int  # how many metrics are equal on both sides
    notes: tuple[str, ...]  # what fails without a metric, and the functions that one side alone has


def facts_sections(
    comparisons: Sequence[Comparison], *, everything: bool
) -> Iterator[tuple[str, list[FactsTable]]]:
    """A heading for each kind of evidence, and its tables; without `everything`, of what moved."""
    for evidence, group in groupby(comparisons, key=lambda comparison: comparison.a.evidence):
        yield f"{evidence}: {_ORIGIN[evidence]}", list(_tables(group, everything))


def wrong_sides(comparison: Comparison) -> list[str]:
    """A line for each side whose results are wrong."""
    return [
        f"⊘ {name} is wrong: {side.wrong}. It is not judged"
        for name, side in (("A", comparison.a), ("B", comparison.b))
        if side.wrong
    ]


def facts_blocks(comparisons: Sequence[Comparison], *, everything: bool) -> Iterator[Block]:
    """A table for each kind of evidence and each group of equal cells; without `everything`, what moved."""
    yield from map(Line, wrong_sides(comparisons[0]))
    for heading, tables in facts_sections(comparisons, everything=everything):
        yield Heading(heading)
        for table in tables:
            yield Line(table.cells)
            yield Table(FACTS_HEAD, table.rows, right=(1, 2, 3)) if table.rows else Line("nothing moved")
            same = [f"{table.same} metrics the same: compare --all"] if table.same and not everything else []
            yield Notes([*same, *table.notes])


def _tables(comparisons: Iterator[Comparison], everything: bool) -> Iterator[FactsTable]:
    """Cells in which the same metrics moved by the same amounts share a table."""
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for comparison in comparisons:
        key = (tuple(_rows(comparison, everything)), tuple(_beside_metrics(comparison)))
        groups.setdefault(key, []).append(comparison)
    for group in groups.values():
        first = group[0]
        yield FactsTable(
            _cells(group),
            tuple(_rows(first, everything)),
            sum(change.verdict is Verdict.SAME for pair in first.pairs for change in pair.metrics),
            tuple(_beside_metrics(first)),
        )


def _cells(comparisons: Sequence[Comparison]) -> str:
    """`v2b_seq512 sm_80, sm_90; any workload sm_90`."""
    gpus_by_workload: dict[str, list[str]] = {}
    for comparison in comparisons:
        workload = comparison.a.workload or "any workload"
        gpus_by_workload.setdefault(workload, []).append(comparison.a.gpu or "")
    return "; ".join(f"{workload} {', '.join(gpus)}".strip() for workload, gpus in gpus_by_workload.items())


def _rows(comparison: Comparison, everything: bool) -> Iterator[tuple[str, ...]]:
    is_several = len(comparison.pairs) > 1
    for pair in comparison.pairs:
        for change in sorted(pair.metrics, key=_importance):
            moved = not change.verdict.traits.quiet and change.a.number != change.b.number
            if everything or moved:
                name = f"{pair.kernel}: {change.label}" if is_several else change.label
                yield (name, *change_numbers(change), _verdict_label(change, comparison))


def _importance(change: MetricChange) -> tuple[bool, bool]:
    """A sort key: what got worse first, then what has a better direction."""
    return change.verdict is not Verdict.WORSE, not change.judged


def _verdict_label(change: MetricChange, comparison: Comparison) -> str:
    """The verdict; the reason for having none stands once, above."""
    if change.verdict is Verdict.NOT_COMPARABLE and (comparison.a.wrong or comparison.b.wrong):
        return "⊘ no verdict"
    return change.verdict.label


def _beside_metrics(comparison: Comparison) -> Iterator[str]:
    """What fails without a metric of its own, and the functions that one side alone has."""
    for pair in comparison.pairs:
        yield from (f"{Verdict.WORSE.label}: {of.words}" for of in pair.failures_without_metric)
    for name, launches in (("A", comparison.only_in_a), ("B", comparison.only_in_b)):
        if launches:
            yield f"only in {name}: {', '.join(launch.base_name for launch in launches)}"
