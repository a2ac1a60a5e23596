"""Judges the verdicts of several comparisons as one table, so that a long one holds no more false alarms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from profiler.compare.comparison import Comparison, judge_counters_together
from profiler.statistics import judge_together


def judge_comparisons_together(
    comparisons: Sequence[Comparison | None], concepts: Collection[str]
) -> list[Comparison | None]:
    """The comparisons with their latencies judged as one table, and the counters of `concepts` as another.

    None stands for a pair of which a side is missing, and stays.
    """
    return _counters_together(_latencies_together(comparisons), concepts)


def _latencies_together(comparisons: Sequence[Comparison | None]) -> list[Comparison | None]:
    decisions = [
        latency.decision for comparison in comparisons if comparison for latency in comparison.latency
    ]
    judged = iter(judge_together(decisions))
    return [
        comparison
        and replace(
            comparison,
            latency=tuple(replace(latency, decision=next(judged)) for latency in comparison.latency),
        )
        for comparison in comparisons
    ]


def _counters_together(
    comparisons: Sequence[Comparison | None], concepts: Collection[str]
) -> list[Comparison | None]:
    """Each comparison judged its own counters together, all of them: what it left unclear stays so.

    One comparison alone needs no more.
    """
    if sum(comparison is not None for comparison in comparisons) < 2:
        return [*comparisons]
    launches = [pair for comparison in comparisons if comparison for pair in comparison.pairs]
    judged = iter(judge_counters_together(launches, concepts))
    return [
        comparison and replace(comparison, pairs=tuple(next(judged) for _ in comparison.pairs))
        for comparison in comparisons
    ]
