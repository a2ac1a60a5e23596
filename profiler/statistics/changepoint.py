"""Change points: when a series took another level, each with where it can lie and how large it can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from types import ModuleType

MIN_POINTS = 8  # a shorter series has no change points
MIN_TAIL = 2  # points of the last level; whether a single new point moved is for the pairwise rules to say
CONFIDENCE = 0.95  # of both intervals

# The interval of a size is wider than that of two means: the place is chosen, lone spikes are levelled, and a
# step too small to be found may lie beside it, which shows as points near the step that differ from their
# side's. Both factors are calibrated in bench/history.py, so that the interval holds for the steps found.
_SIZE_FACTOR, _NEAR_WEIGHT = 1.2, 1.0
_DRIFT_T = 3.0  # of the slope beside a step, from which its size has no interval

# Two-sided 97.5 % of the normal distribution, and the 95 % point of the likelihood ratio of a position:
# -2 ln(1 - sqrt(0.95)). Source: Hansen 2000, "Sample splitting and threshold estimation", Econometrica 68.
_NORMAL, _LIKELIHOOD_RATIO = 1.959964, 7.352277
_MAD_TO_SD = 1.482602  # of normal noise
_MIN_SCALE = 1e-5  # of the level: no series is taken to be quieter than this
# For a series that mostly stands still: quantiles of the sizes of its differences, each with the number of
# standard deviations that it is in normal noise.
_UPPER_QUANTILES = ((0.75, 1.150349), (0.9, 1.644854))


class Tuning(NamedTuple):
    """What the method is tuned by; chosen on the simulator of `bench/history.py`, never on real histories."""

    spike_limit: float = 5.0  # scales from the median of six neighbours
    penalty: float = 3.0  # of a step, in variances times the log of the length
    min_t: float = 7.0  # of a step between the points beside it
    max_autocorrelation: float = 0.7  # at lag 1; a larger one is not believed
    min_length: int = 5  # points of a level that another follows
    min_tail: int = MIN_TAIL
    window: int = 24  # points on each side that tell how large a step is
    tail_range: float = 4.5  # scales between which the values of a level shorter than `min_length` lie


TUNING = Tuning()


class LevelKind(StrEnum):
    """What the level after a step is. Only a new level is an alarm."""

    NEW = "new level"  # none like it was there before
    KNOWN = "back in a known state"  # an earlier level, or a state between which the series alternates
    LEFT = "did not last"  # new then; the series came back to the level before it
    DRIFT = "drifts"  # no step: the values move slowly


_KINDS = tuple(LevelKind)


@dataclass(frozen=True)
class ChangePoint:
    """One step. Indices count the values as they were given, missing ones too.

    The first value of the new level is most likely at `index`; with 95 % confidence it lies from `earliest`
    to `latest`. `size` is the relative change of the level (0.05 = +5 %) with its 95 % interval, which holds
    if no step too small to be found lies beside it; NaN where the level before is 0. Where the values drift
    beside it there is no interval: both ends are NaN. `difference` is the same
    in the unit of the values.
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
    kind: LevelKind = LevelKind.NEW
    related: int | None = None  # first value of the equal level: before (KNOWN) or after (LEFT); else None

    @property
    def direction(self) -> int:
        """1 where the level rose, -1 where it fell."""
        return 1 if self.after > self.before else -1

    @property
    def is_alarm(self) -> bool:
        """Whether it leads to a level that was never there before, and was not left for an older one."""
        return self.kind is LevelKind.NEW


def change_points(
    values: ArrayLike,
    *,
    least: float = 0.01,
    absolute: bool = False,
    tuning: Tuning = TUNING,
) -> tuple[ChangePoint, ...]:
    """The steps of a series in time order, oldest first. None where fewer than MIN_POINTS values are numbers.

    `least` is the smallest change that is relevant, as a fraction of the level, or with `absolute` in the
    unit of the values. NaN and infinity are missing. Levels are compared as logarithms; where a value is 0 or
    less, or with `absolute`, as they are.

    Method: lone spikes are levelled (Hampel), levels found by optimal partitioning with a robust scale and a
    penalty that is learned from the autocorrelation, and steps kept whose local t is over 7. Assumes that
    noise is about the same throughout, with short memory. Each step has a kind: a host with two states, or a
    slow drift, makes steps that are no alarms.
    Sources: docs/calibration.md; `profiler/statistics/segments.py` names those of its parts.
    """
    series = np.asarray(values, np.float64)
    indices = np.flatnonzero(np.isfinite(series))
    numbers = series[indices]
    if numbers.size < MIN_POINTS or numbers.min() == numbers.max():
        return ()
    linear = absolute or numbers.min() <= 0.0
    z = numbers if linear else np.log(numbers)
    # The smallest relevant step is a constant plus a share of the larger level: a relative change is a
    # difference of logarithms, or where there are none such a share.
    min_step = least if absolute else 0.0 if linear else math.log1p(least)
    min_share = least if linear and not absolute else 0.0
    if z.max() - z.min() <= min_step:  # spares the start of numba where nothing moved
        return ()
    scale = _noise_scale(z, _MIN_SCALE * (float(np.abs(numbers).max()) if linear else 1.0))
    loops = _compiled_loops()
    smoothed, starts, memory = loops.find_steps(z, scale, min_step, min_share, tuple(tuning))
    if not starts.size:
        return ()
    kinds, related = _compiled_kinds().level_kinds(
        smoothed, np.sort(smoothed), starts, scale, memory, min_step, min_share, tuning.min_t, tuning.window
    )
    edges = [0, *starts.tolist(), numbers.size]
    return tuple(
        _change_point(
            smoothed, (left, at, right), scale, memory, tuning, linear, indices, _KINDS[kind], place
        )
        for left, at, right, kind, place in zip(
            edges, edges[1:], edges[2:], kinds.tolist(), related.tolist(), strict=False
        )
    )


def _change_point(
    z: NDArray[np.float64],
    edges: tuple[int, int, int],
    scale: float,
    memory: float,
    tuning: Tuning,
    linear: bool,
    indices: NDArray[np.int64],
    kind: LevelKind,
    related: int,
) -> ChangePoint:
    """The step at the middle one of three edges of levels: where it can lie, and how large it can be.

    `memory` is how much longer the noise remembers than white noise does, which widens both intervals.
    `indices` has the place of each point of `z` among the values that were given; `related` is -1 or an index
    of `z`.
    """
    loops = _compiled_loops()
    left, right = max(edges[0], edges[1] - tuning.window), min(edges[2], edges[1] + tuning.window)
    first, likeliest, last = loops.possible_starts(
        z, left, right, tuning.min_length, tuning.min_tail, scale, _LIKELIHOOD_RATIO * memory
    )
    before, after, variance = loops.measure_step(z, left, likeliest, right, scale)
    step = after - before
    error = math.sqrt(variance * (1 / (likeliest - left) + 1 / (right - likeliest)))
    near = loops.near_difference(z, left, likeliest, True) + loops.near_difference(z, likeliest, right, False)
    half = _student_t(right - left + 2) * error * math.sqrt(memory)
    half = _SIZE_FACTOR * math.hypot(half, _NEAR_WEIGHT * near)
    # Where the values drift the mean of a side is not the level at the step, however many points it has.
    slope_t = _compiled_kinds().slope_t(z, edges[0], likeliest, edges[2], scale)
    if abs(slope_t) > _DRIFT_T * math.sqrt(memory):
        half = math.nan
    # Rounded to 12 digits, since exp(log(80)) is 79.999…
    levels = [float(f"{level if linear else math.exp(level):.12g}") for level in (before, after)]
    sizes = [_size(levels[0], difference, linear) for difference in (step, step - half, step + half)]
    return ChangePoint(
        int(indices[likeliest]),
        int(indices[first - 1]) + 1,  # a missing value may be the new level's first
        int(indices[last]),
        levels[0],
        levels[1],
        sizes[0][0],
        sizes[1][0],
        sizes[2][0],
        sizes[0][1],
        sizes[1][1],
        sizes[2][1],
        abs(step) / error,
        kind,
        None if related < 0 else int(indices[related]),
    )


def change_points_of(
    series: Sequence[ArrayLike], *, least: float = 0.01, absolute: bool = False
) -> list[tuple[ChangePoint, ...]]:
    """The steps of each of many series; see change_points."""
    return [change_points(values, least=least, absolute=absolute) for values in series]


def _noise_scale(z: NDArray[np.float64], least: float) -> float:
    """The noise's standard deviation from differences of neighbours, which a few steps do not affect.

    A series that mostly stands still (a counter, a timer that ticks) has a median difference of 0: then the
    larger differences say it, if they are more than a few steps.
    """
    differences = np.diff(z)
    sizes = np.sort(np.abs(differences - np.median(differences)))
    scale = _MAD_TO_SD * float(sizes[sizes.size // 2])
    for quantile, deviations in _UPPER_QUANTILES:
        if scale > 0.0:
            break
        scale = float(sizes[int(quantile * (sizes.size - 1))]) / deviations
    return max(scale / math.sqrt(2.0), least)


def _student_t(freedom: int) -> float:
    """The 97.5 % point of Student's t. Source: Abramowitz and Stegun 26.7.5, to the second term."""
    x = _NORMAL
    return x + (x**3 + x) / (4 * freedom) + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * freedom**2)


def _size(before: float, step: float, linear: bool) -> tuple[float, float]:
    """A step as a fraction of the level before, and in the unit of the values."""
    if not linear:
        return math.expm1(step), before * math.expm1(step)
    return (step / abs(before) if before else math.nan), step


def _compiled_loops() -> ModuleType:
    """The compiled loops. Imported here, so that numba is loaded only where there is a series to look at."""
    from profiler.statistics import segments

    return segments


def _compiled_kinds() -> ModuleType:
    """The compiled loops that tell the kinds of steps; as `_compiled_loops`."""
    from profiler.statistics import level_kinds

    return level_kinds
