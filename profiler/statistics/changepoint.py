"""When a series took another level: its change points, each with where it can lie and how large it can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from types import ModuleType

MIN_POINTS = 8  # points below which nothing is said
MIN_TAIL = 2  # points that the last level needs; a single one is the pairwise rule's business
CONFIDENCE = 0.95  # of both intervals

# Two-sided 97.5 % of the normal distribution, and the 95 % point of the likelihood ratio of a step's place:
# -2 ln(1 - sqrt(0.95)). Source: Hansen 2000, "Sample splitting and threshold estimation", Econometrica 68.
_NORMAL, _PLACE = 1.959964, 7.352277
_MAD = 1.482602  # median absolute deviation to standard deviation, normal noise
_FINEST = 1e-5  # of the level: no series is thought quieter than this
# Quantiles of sizes that tell the scale of a series that mostly stands still, and how many standard
# deviations of normal noise each is.
_UPPER = ((0.75, 1.150349), (0.9, 1.644854))


class Tuning(NamedTuple):
    """What the method is tuned by; chosen on the simulator of `bench/history.py`, never on real histories."""

    spike_limit: float = 5.0  # scales from the median of six neighbours
    penalty: float = 3.0  # of a step, in variances times the log of the length
    min_t: float = 7.0  # of a step between the points beside it
    max_autocorrelation: float = 0.7  # at lag 1; a larger one is not believed
    min_length: int = 5  # points of a level that another follows
    min_tail: int = MIN_TAIL
    window: int = 24  # points on each side that tell how large a step is


TUNING = Tuning()


@dataclass(frozen=True)
class ChangePoint:
    """One step. Indices count the values as they were given, missing ones too.

    The first value of the new level is most likely at `index`; by 95 % it lies from `earliest` to `latest`.
    `size` is the relative change of the level (0.05 = +5 %) with its 95 % interval, which holds if no step
    too small to be told lies beside it; NaN where the level before is 0. `difference` is the same in the unit
    of the values.
    """

    index: int
    earliest: int
    latest: int
    before: float  # level
    after: float
    size: float
    size_low: float
    size_high: float
    difference: float
    difference_low: float
    difference_high: float
    t: float

    @property
    def direction(self) -> int:
        """1 where the level rose, -1 where it fell."""
        return 1 if self.after > self.before else -1


def change_points(
    values: ArrayLike,
    *,
    least: float = 0.01,
    absolute: bool = False,
    tuning: Tuning = TUNING,
) -> tuple[ChangePoint, ...]:
    """The steps of a series in time order, oldest first. None where fewer than FEWEST values are numbers.

    `least` is the smallest change that is relevant, as a fraction of the level, or with `absolute` in the
    unit of the values. NaN and infinity are missing. Levels are compared as logarithms; where a value is 0 or
    less, or with `absolute`, as they are.

    Method: lone spikes are levelled (Hampel), levels found by optimal partitioning with a robust scale and a
    price that is learned from the autocorrelation, and steps kept whose local t is over 7. Assumes that noise
    is about the same throughout, with short memory; a slow drift becomes a staircase.
    Sources: ../shared/statistics.md, rule 6; `profiler/statistics/segments.py` names those of its parts.
    """
    given = np.asarray(values, np.float64)
    places = np.flatnonzero(np.isfinite(given))
    kept = given[places]
    if kept.size < MIN_POINTS or kept.min() == kept.max():
        return ()
    linear = absolute or kept.min() <= 0.0
    z = kept if linear else np.log(kept)
    scale = _scale(z, _FINEST * (float(np.abs(kept).max()) if linear else 1.0))
    # A relative change is a difference of logarithms, or a share of the larger level.
    floor = least if absolute else 0.0 if linear else math.log1p(least)
    share = least if linear and not absolute else 0.0
    loops = _loops()
    calm, starts, longer = loops.find(z, scale, floor, share, tuple(tuning))
    edges = [0, *starts.tolist(), kept.size]
    found = []
    for left, at, right in zip(edges, edges[1:], edges[2:], strict=False):
        left, right = max(left, at - tuning.window), min(right, at + tuning.window)
        first, likeliest, last = loops.places_of(
            calm, left, right, tuning.min_length, tuning.min_tail, scale, _PLACE * longer
        )
        before, after, variance = loops.weigh(calm, left, likeliest, right, scale)
        sides = 1 / (likeliest - left) + 1 / (right - likeliest)
        step, error = after - before, math.sqrt(variance * sides)
        reach = _student(right - left + 2) * error * math.sqrt(longer)
        levels = [
            float(f"{one if linear else math.exp(one):.12g}") for one in (before, after)
        ]  # 80, not 79.999…
        sizes = [_size(levels[0], one, linear) for one in (step, step - reach, step + reach)]
        found.append(
            ChangePoint(
                int(places[likeliest]),
                int(places[first - 1]) + 1,  # a missing value may be the new level's first
                int(places[last]),
                levels[0],
                levels[1],
                sizes[0][0],
                sizes[1][0],
                sizes[2][0],
                sizes[0][1],
                sizes[1][1],
                sizes[2][1],
                abs(step) / error,
            )
        )
    return tuple(found)


def change_points_of(
    series: Sequence[ArrayLike], *, least: float = 0.01, absolute: bool = False
) -> list[tuple[ChangePoint, ...]]:
    """The steps of each of many series; see change_points."""
    return [change_points(one, least=least, absolute=absolute) for one in series]


def _scale(z: NDArray[np.float64], finest: float) -> float:
    """The noise's standard deviation from differences of neighbours, which a few steps do not reach.

    A series that mostly stands still (a counter, a timer that ticks) has a median difference of 0: then the
    larger differences tell, if they are more than a few steps.
    """
    jumps = np.diff(z)
    away = np.sort(np.abs(jumps - np.median(jumps)))
    scale = _MAD * float(away[away.size // 2])
    for quantile, deviations in _UPPER:
        if scale > 0.0:
            break
        scale = float(away[int(quantile * (away.size - 1))]) / deviations
    return max(scale / math.sqrt(2.0), finest)


def _student(freedom: int) -> float:
    """The 97.5 % point of Student's t. Source: Abramowitz and Stegun 26.7.5, to the second term."""
    x = _NORMAL
    return x + (x**3 + x) / (4 * freedom) + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * freedom**2)


def _size(before: float, step: float, linear: bool) -> tuple[float, float]:
    """A step as a fraction of the level before, and in the unit of the values."""
    if not linear:
        return math.expm1(step), before * math.expm1(step)
    return (step / abs(before) if before else math.nan), step


def _loops() -> ModuleType:
    """The compiled loops, with numba, only when there is a series to look at."""
    from profiler.statistics import segments

    return segments
