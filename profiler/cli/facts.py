"""How a comparison of two versions' static or modelled facts reads: what moved, a row a metric and place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from profiler.cli.comparison import change_numbers, markdown_table
from profiler.cli.output import print_table, say
from profiler.compare import Comparison, MetricChange
from profiler.evidence import Evidence
from profiler.statistics import Verdict

_HEADS = ("metric", "A", "B", "change", "verdict")
_WHERE = {
    Evidence.STATIC: "from compiler and machine code, exact; opcodes are counted in the code, not as run",
    Evidence.MODELLED: "from a run on the CPU; conflicts by the model of the banks",
}


def print_facts(comparisons: Sequence[Comparison], *, everything: bool, markdown: bool) -> None:
    """Print a table for each kind of evidence and place; without `everything`, what moved."""
    first = comparisons[0]
    title = f"{first.a.label} → {first.b.label}"
    say(f"### {title}" if markdown else f"A  {first.a.label}\nB  {first.b.label}")
    for line in _standing(first):
        say(f"**{line}**" if markdown else line)
    for evidence, several in groupby(comparisons, key=lambda one: one.a.evidence):
        say(f"\n{evidence}: {_WHERE[evidence]}")
        for group in _alike(list(several), everything):
            _print_group(group, everything, markdown)


def _standing(comparison: Comparison) -> Iterator[str]:
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        if side.wrong:
            yield f"⊘ {name} is wrong: {side.wrong}. It has no speed and no verdict"


def _alike(several: list[Comparison], everything: bool) -> Iterator[list[Comparison]]:
    """Places in which the same metrics moved by the same amounts share a table."""
    found: dict[tuple[tuple[str, ...], ...], list[Comparison]] = {}
    for one in several:
        key = tuple(_rows(one, everything)) + tuple((change,) for change in _alone(one))
        found.setdefault(key, []).append(one)
    yield from found.values()


def _print_group(group: Sequence[Comparison], everything: bool, markdown: bool) -> None:
    first = group[0]
    by_workload: dict[str, list[str]] = {}
    for one in group:
        by_workload.setdefault(one.a.workload or "any workload", []).append(one.a.gpu or "")
    places = "; ".join(f"{workload} {', '.join(gpus)}".strip() for workload, gpus in by_workload.items())
    say(f"\n**{places}**\n" if markdown else f"\n{places}")
    rows = list(_rows(first, everything))
    if rows and markdown:
        say("\n".join(markdown_table(_HEADS, rows, first_is_code=False)))
    elif rows:
        print_table(_HEADS, rows, right=(1, 2, 3))
    else:
        say("nothing moved")
    equal = sum(change.verdict is Verdict.SAME for pair in first.pairs for change in pair.metrics)
    if equal and not everything:
        say(f"{equal} metrics the same: --all" if not markdown else f"\n{equal} metrics the same.")
    for line in _alone(first):
        say(line)


def _rows(comparison: Comparison, everything: bool) -> Iterator[tuple[str, ...]]:
    several = len(comparison.pairs) > 1
    for pair in comparison.pairs:
        for change in sorted(pair.metrics, key=lambda change: not change.judged):
            moved = not change.verdict.traits.quiet and change.a.number != change.b.number
            if everything or moved:
                name = f"{pair.kernel}: {change.label}" if several else change.label
                yield (name, *change_numbers(change), _word(change, comparison))


def _word(change: MetricChange, comparison: Comparison) -> str:
    """The verdict; the reason for having none stands once, above."""
    if change.verdict is Verdict.NOT_COMPARABLE and (comparison.a.wrong or comparison.b.wrong):
        return "⊘ no verdict"
    return change.verdict.label


def _alone(comparison: Comparison) -> list[str]:
    return [
        f"only in {name}: {', '.join(launch.base_name for launch in launches)}"
        for name, launches in (("A", comparison.only_in_a), ("B", comparison.only_in_b))
        if launches
    ]
