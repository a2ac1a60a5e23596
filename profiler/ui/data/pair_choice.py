"""What of a comparison a page opens with: one pair of launches, one mode of timed calls."""

from __future__ import annotations

from profiler.compare.comparison import Comparison
from profiler.compare.latency import LatencyComparison
from profiler.compare.pair_comparison import MetricChange, PairComparison


def choose_pair(comparison: Comparison, kernel: str | None) -> PairComparison | None:
    """The pair that the address names; else the longest with a duration on both sides; else any."""
    pairs = sorted(comparison.pairs, key=lambda pair: not has_durations(pair.headline))
    named = (pair for pair in pairs if pair.kernel == kernel)
    return next(named, pairs[0] if pairs else None)


def choose_mode(comparison: Comparison, mode: str | None) -> LatencyComparison | None:
    """The mode that the address names, else the first in which both were timed, else any."""
    timed_first = sorted(comparison.latency, key=lambda timed: timed.a is None or timed.b is None)
    named = (timed for timed in timed_first if timed.mode == mode)
    return next(named, timed_first[0] if timed_first else None)


def has_durations(change: MetricChange | None) -> bool:
    """Whether both sides have a number."""
    return change is not None and change.a.number is not None and change.b.number is not None
