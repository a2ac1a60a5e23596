"""Judges the durations of several launches a side, which one process made on each side.

Launches of one process follow one another: they share its clocks and where its arrays lie, so they count for
fewer than they are, and how far a process lies from the next they cannot say (docs/calibration.md,
*Several launches*).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.statistics.counters import MIN_NOISE
from profiler.statistics.decision import (
    MIN_SAMPLES,
    Decision,
    Interval,
    change_text,
    share_text,
    verdict_of_change,
)
from profiler.statistics.ratios import t_quantile
from profiler.statistics.verdict import Verdict

LAUNCH_SAMPLES = "launch samples"
_CONFIDENCE = 0.99
_TRIMMED = 0.2  # share left out at each end
_MEDIAN_ERROR = math.sqrt(math.pi / 2)  # of a median beside a mean's, for normal noise
# What as many launches may hide of their lag-1 correlation, as for rounds of one process (see live_pair).
_UNSEEN_LAG, _MOST_UNSEEN_LAG, _MOST_LAG = 7.0, 0.5, 0.9

Floats = NDArray[np.float64]


class _Level(NamedTuple):
    median: float  # of logarithms
    variance: float  # of the median
    freedom: float


def judge_samples(a: Floats, b: Floats, *, better: str, margin: float) -> Decision:
    """Judge the durations [launches] of B against A's, in the order of their launches.

    Better or worse is what the 99 % interval of the medians' ratio excludes 0 of and what exceeds `margin`, a
    share of A; same is a change and an interval within it; else unclear. A single launch is taken to vary as
    the other side's do. The interval is of these two processes alone. Raises ValueError for durations that
    are not above 0, for a side without any, and for fewer than MIN_SAMPLES on both sides.
    """
    few, many = sorted((len(a), len(b)))
    if not few or many < MIN_SAMPLES or not (np.all(a > 0) and np.all(b > 0)):
        raise ValueError(f"{len(a)} and {len(b)} durations: at least {MIN_SAMPLES} a side, all above 0")
    of_a, of_b = _level(np.log(a)), _level(np.log(b))
    if len(a) < MIN_SAMPLES:
        of_a = _few(of_a, len(a), of_b, len(b))
    elif len(b) < MIN_SAMPLES:
        of_b = _few(of_b, len(b), of_a, len(a))
    variance = of_a.variance + of_b.variance
    freedom = variance**2 / (of_a.variance**2 / of_a.freedom + of_b.variance**2 / of_b.freedom)
    half = float(t_quantile(0.5 + _CONFIDENCE / 2, freedom)) * math.sqrt(variance)
    ratio = of_b.median - of_a.median
    effect = math.expm1(ratio)
    interval = Interval(math.expm1(ratio - half), math.expm1(min(ratio + half, 700.0)))
    if abs(effect) > margin and (interval.low > 0 or interval.high < 0):
        verdict = verdict_of_change(effect, better)
    elif -margin <= interval.low and interval.high <= margin:
        verdict = Verdict.SAME
    else:
        verdict = Verdict.UNCLEAR
    counts = f"{len(a)} launches each" if len(a) == len(b) else f"{len(a)} and {len(b)} launches"
    reason = (
        f"{change_text(effect)} (99 % interval {interval}), medians of {counts}; the interval "
        f"{_place_of(interval, margin)}; noise between runs is not in it"
    )
    return Decision(
        verdict,
        reason,
        LAUNCH_SAMPLES,
        effect=effect,
        interval=interval,
        detectable=max(margin, half),
        rounds=min(len(a), len(b)),
        fails_gate=verdict.traits.fails,
    )


def _place_of(interval: Interval, margin: float) -> str:
    """How the interval lies to the threshold and to no change, which decides."""
    if -margin <= interval.low and interval.high <= margin:
        return f"is within {share_text(margin)}"
    if interval.low <= 0 <= interval.high:
        return "includes 0"
    is_beyond = interval.low > margin or interval.high < -margin
    return "excludes 0" if is_beyond else f"excludes 0, but includes {share_text(margin)}"


def _level(logs: Floats) -> _Level:
    """The median, with the error that Yuen's winsorised variance and correlated neighbours give it."""
    count = len(logs)
    if count < 2:
        return _Level(float(logs[0]), math.inf, 1.0)
    cut = int(_TRIMMED * count)
    ordered = np.sort(logs)
    winsorised = np.clip(logs, ordered[cut], ordered[count - 1 - cut])
    left = count - 2 * cut
    deviations = logs - np.median(logs)
    squares = float(np.sum(deviations**2))
    lag = float(np.sum(deviations[1:] * deviations[:-1])) / squares if squares else 0.0
    lag = min(_MOST_LAG, max(lag, min(_MOST_UNSEEN_LAG, max(lag, 0.0) + _UNSEEN_LAG / count)))
    inflation = (1 + lag) / (1 - lag)
    variance = float(np.var(winsorised, ddof=1)) * (count - 1) / (left * (left - 1)) * inflation
    noise = max(variance * _MEDIAN_ERROR**2, MIN_NOISE**2 / count)
    return _Level(float(np.median(logs)), noise, left - 1.0)


def _few(few: _Level, count: int, many: _Level, many_count: int) -> _Level:
    """The level of a launch or two, which vary as the other side's do."""
    return _Level(few.median, many.variance * many_count / count, many.freedom)
