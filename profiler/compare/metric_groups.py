"""The metrics of a pair as a list to read: by group what changed, what did not, and what has no number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from profiler.compare.pair_comparison import MetricChange
from profiler.compare.repeated_numbers import split_repeats
from profiler.evidence import formatting
from profiler.statistics.verdict import Verdict


@dataclass(frozen=True)
class MetricGroup:
    """One group of metrics.txt on both sides of a pair, each of its metrics in exactly one of the fields."""

    name: str
    changed: tuple[MetricChange, ...]  # and what only one side has; largest change first
    unchanged: tuple[MetricChange, ...]
    repeats: tuple[MetricChange, ...]  # derived numbers that another row says already
    zero: tuple[MetricChange, ...]  # 0 on both sides
    absent: Mapping[str, tuple[MetricChange, ...]]  # without a number on either side, by the words for why


def group_metrics(changes: Iterable[MetricChange], words: str = "") -> tuple[MetricGroup, ...]:
    """The groups in the order of metrics.txt; of what labels, groups or ncu names hold every word.

    Groups in which nothing fits the words are left out.
    """
    parts = words.lower().split()
    by_group: dict[str, list[MetricChange]] = defaultdict(list)
    for change in changes:
        if all(part in f"{change.label} {change.metric} {change.group}".lower() for part in parts):
            by_group[change.group].append(change)
    return tuple(_group(name, members) for name, members in by_group.items())


def is_changed(change: MetricChange) -> bool:
    """Whether B has another number than A and no rule calls it the same, or only one side has a number."""
    a, b = change.a.number, change.b.number
    if a is None or b is None:
        return a is not b
    return a != b and change.verdict is not Verdict.SAME


def largest_first(change: MetricChange) -> float:
    """A sort key: percentages by their points, others by their share of A; from 0 first, missing last."""
    if change.a.number is None or change.b.number is None:
        return 0.0
    if change.unit == "%":
        return -abs(change.b.number - change.a.number)
    return -abs(change.change_pct) if change.change_pct is not None else float("-inf")


def _group(name: str, members: list[MetricChange]) -> MetricGroup:
    with_row, repeats = split_repeats(change for change in members if _has_a_row(change))
    with_row.sort(key=largest_first)
    absent: dict[str, list[MetricChange]] = defaultdict(list)
    zero = []
    for change in members:
        if _has_a_row(change):
            continue
        if change.a.number == 0:
            zero.append(change)
        else:
            a, b = (formatting.state_words(value) for value in (change.a, change.b))
            absent[a if a == b else f"{a} in A, {b} in B"].append(change)
    return MetricGroup(
        name,
        tuple(change for change in with_row if is_changed(change)),
        tuple(change for change in with_row if not is_changed(change)),
        tuple(repeats),
        tuple(zero),
        {why: tuple(without_number) for why, without_number in absent.items()},
    )


def _has_a_row(change: MetricChange) -> bool:
    return (change.a.number, change.b.number) not in ((None, None), (0, 0))
