"""Where the levels of a series lie: the loops of the change points, compiled by numba, on bare arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

try:
    import numba
except ImportError:  # installed without the extra `dashboard`
    numba = None

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Floats = NDArray[np.float64]
_Indices = NDArray[np.int64]

_NEVER = 1 << 60
_REFINEMENTS = 2  # times that the penalty is learned from the residuals of the last partition
_TAIL_SHARE = 0.15  # of a step by which the few points of a last level may differ whatever the noise
_PRIOR_POINTS = 4.0  # weight of the whole series' scale, in points, beside those around one step


def compiled(function: _Function) -> _Function:
    """The function as machine code, cached on disk where there is a folder for it; without numba as it is.

    Uncompiled, a series of 400 points takes 0.06 s of processor time instead of 0.001, and the same steps are
    found.

    numba writes beside this file, else into the user's cache folder (or where NUMBA_CACHE_DIR says). Where it
    may write to neither, as in a read-only install without a home, each process compiles for itself.
    """
    if numba is None:
        return function
    try:
        return cast(_Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(_Function, numba.njit(nogil=True)(function))


@compiled
def despike(z: _Floats, half: int, limit: float) -> _Floats:
    """Lone points further than `limit` from the median of the `half` on each side take that median.

    A point with a neighbour near it is not lone: it may be the first of a new level. Source: Hampel 1974, as
    the moving-window filter; the rule on neighbours is our own.
    """
    n = z.size
    out = z.copy()
    near = np.empty(2 * half)
    for i in range(n):
        count = 0
        for j in range(max(0, i - half), min(n, i + half + 1)):
            if j != i:
                at = count  # insertion sort: six numbers
                while at > 0 and near[at - 1] > z[j]:
                    near[at] = near[at - 1]
                    at -= 1
                near[at] = z[j]
                count += 1
        median = 0.5 * (near[(count - 1) // 2] + near[count // 2])
        distance = abs(z[i] - median)
        if distance > limit:
            near_before = i > 0 and abs(z[i - 1] - z[i]) < 0.5 * distance
            near_after = i + 1 < n and abs(z[i + 1] - z[i]) < 0.5 * distance
            if not near_before and not near_after:
                out[i] = median
    return out


@compiled
def partition(z: _Floats, penalty: float, shortest: int, tail: int) -> _Indices:
    """Where the levels begin (without 0) that leave the least squares plus `penalty` a step.

    No level is shorter than `shortest`, but the last may have `tail` points. Exact: optimal partitioning with
    the pruning of PELT. Source: Jackson et al. 2005; Killick, Fearnhead and Eckley 2012, theorem 3.1; here a
    candidate that is beaten stays until the one that beats it may itself begin a level.
    """
    n = z.size
    # Prefix sums give the squares about the mean of any level: sum of squares - (sum)² / length.
    sums, squares = np.zeros(n + 1), np.zeros(n + 1)
    inverse = np.zeros(n + 1)  # 1 / length
    for i in range(n):
        sums[i + 1] = sums[i] + z[i]
        squares[i + 1] = squares[i] + z[i] * z[i]
        inverse[i + 1] = 1.0 / (i + 1)
    best = np.full(n + 1, np.inf)  # least cost of the points before each index
    best[0] = -penalty  # the first level is no step
    previous = np.zeros(n + 1, np.int64)  # where the last level of that cost begins
    # Candidates for the begin of the last level, each with the index up to which it has to stay one.
    candidates, until = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    cost = np.empty(n + 1)
    count = 0
    for end in range(1, n + 1):
        newest = end - tail if end == n else end - shortest
        oldest = end - shortest
        for start in range(max(0, oldest), newest + 1):  # a single one, except at the end of the series
            if best[start] < np.inf:
                candidates[count], until[count] = start, _NEVER
                count += 1
        least, least_start = np.inf, 0
        for k in range(count):
            start = candidates[k]
            total = sums[end] - sums[start]
            cost[k] = best[start] + squares[end] - squares[start] - total * total * inverse[end - start]
            if cost[k] < least:
                least, least_start = cost[k], start
        best[end], previous[end] = least + penalty, least_start
        remaining = 0
        for k in range(count):
            if cost[k] > best[end] and until[k] == _NEVER:
                until[k] = end + shortest
            if until[k] > end + 1:
                candidates[remaining], until[remaining] = candidates[k], until[k]
                remaining += 1
        count = remaining
    # Walk back from the end: once to count the steps, once to write them down.
    steps = 0
    at = previous[n]
    while at > 0:
        steps += 1
        at = previous[at]
    starts = np.empty(steps, np.int64)
    at = previous[n]
    while at > 0:
        steps -= 1
        starts[steps] = at
        at = previous[at]
    return starts


@compiled
def residual_noise(z: _Floats, starts: _Indices) -> tuple[float, float]:
    """Variance and lag-1 autocorrelation of the residuals from the levels."""
    n = z.size
    residuals = np.empty(n)
    begin = 0
    for k in range(starts.size + 1):
        end = starts[k] if k < starts.size else n
        mean = 0.0
        for i in range(begin, end):
            mean += z[i]
        mean /= end - begin
        for i in range(begin, end):
            residuals[i] = z[i] - mean
        begin = end
    squares, products = residuals[0] * residuals[0], 0.0
    for i in range(1, n):
        squares += residuals[i] * residuals[i]
        products += residuals[i] * residuals[i - 1]
    autocorrelation = products / squares if squares > 0.0 else 0.0
    return squares / max(1, n - starts.size - 1), autocorrelation


@compiled
def mean_and_squares(z: _Floats, begin: int, end: int) -> tuple[float, float]:
    """The mean of the points from `begin` to `end`, and their sum of squares about it."""
    mean, squares = 0.0, 0.0
    for i in range(begin, end):
        mean += z[i]
    mean /= end - begin
    for i in range(begin, end):
        squares += (z[i] - mean) * (z[i] - mean)
    return mean, squares


@compiled
def measure_step(z: _Floats, left: int, at: int, right: int, scale: float) -> tuple[float, float, float]:
    """A step at `at` between the points from `left` to `right`: level before, after, and the variance there.

    The variance counts the whole series' scale as _PRIOR_POINTS more points: two points alone have none.
    """
    before, squares_before = mean_and_squares(z, left, at)
    after, squares_after = mean_and_squares(z, at, right)
    freedom = right - left - 2 + _PRIOR_POINTS
    return before, after, (squares_before + squares_after + _PRIOR_POINTS * scale * scale) / freedom


@compiled
def near_difference(z: _Floats, begin: int, end: int, from_end: bool) -> float:
    """How far the points nearest to a step lie from the mean of their side, where that is split in two.

    The step is at `begin`, or with `from_end` at `end`. The split is the likeliest with at least 3 points on
    each side of it; 0 where there are under 6 points.
    """
    n = end - begin
    if n < 6:
        return 0.0
    mean = mean_and_squares(z, begin, end)[0]
    most, at, deviations, sum_there = -1.0, 3, 0.0, 0.0  # deviations from the mean, added up
    for count in range(1, n - 2):
        deviations += z[begin + count - 1] - mean
        between = deviations * deviations / (count * (n - count))
        if count >= 3 and between > most:
            most, at, sum_there = between, count, deviations
    return abs(sum_there) / (n - at if from_end else at)


@compiled
def without_scattered_tail(
    z: _Floats, starts: _Indices, scale: float, shortest: int, tail_range: float
) -> _Indices:
    """The starts without that of a last level of few points which differ: two outliers are no level.

    They differ where they lie further apart than `tail_range` scales and than _TAIL_SHARE of the step.
    """
    if starts.size == 0 or z.size - starts[-1] >= shortest:
        return starts
    begin, at = starts[-2] if starts.size > 1 else 0, starts[-1]
    step = abs(mean_and_squares(z, at, z.size)[0] - mean_and_squares(z, begin, at)[0])
    lowest, highest = z[at], z[at]
    for i in range(at + 1, z.size):
        lowest, highest = min(lowest, z[i]), max(highest, z[i])
    is_scattered = highest - lowest > max(tail_range * scale, _TAIL_SHARE * step)
    return starts[:-1] if is_scattered else starts


@compiled
def significant_steps(
    z: _Floats, starts: _Indices, scale: float, least: float, share: float, min_t: float, window: int
) -> _Indices:
    """The steps that remain when the weakest is dropped until each is significant and large enough.

    Significant: its t between at most `window` points on each side is over `min_t`. Large: the levels differ
    by `least` plus `share` of the larger one. Source of the test: Mozilla's Perfherder, "t > 7".
    """
    n, m = z.size, starts.size
    edges = np.empty(m + 2, np.int64)
    edges[0] = 0
    for k in range(m):
        edges[k + 1] = starts[k]
    edges[m + 1] = n
    while m > 0:
        weakest, which = np.inf, 0
        for k in range(1, m + 1):
            left, right = max(edges[k - 1], edges[k] - window), min(edges[k + 1], edges[k] + window)
            before, after, variance = measure_step(z, left, edges[k], right, scale)
            size = abs(after - before)
            sides = 1.0 / (edges[k] - left) + 1.0 / (right - edges[k])
            strength = size / np.sqrt(variance * sides) / min_t
            relevant = least + share * max(abs(before), abs(after))
            if relevant > 0.0:
                strength = min(strength, size / relevant)
            if strength < weakest:
                weakest, which = strength, k
        if weakest > 1.0:
            break
        for k in range(which, m + 1):
            edges[k] = edges[k + 1]
        m -= 1
    return edges[1 : m + 1].copy()


@compiled
def possible_starts(
    z: _Floats, left: int, right: int, shortest: int, tail: int, scale: float, spread: float
) -> tuple[int, int, int]:
    """The earliest possible first point of the new level between two others, the likeliest, and the latest.

    Possible are all whose sum of squares is within `spread` variances of the least.
    """
    cost = np.full(right - left, np.inf)
    likeliest = left + shortest
    for at in range(left + min(shortest, tail), right - tail + 1):
        squares = mean_and_squares(z, left, at)[1] + mean_and_squares(z, at, right)[1]
        cost[at - left] = squares
        if squares < cost[likeliest - left]:
            likeliest = at
    variance = measure_step(z, left, likeliest, right, scale)[2]
    limit = cost[likeliest - left] + spread * variance
    earliest, latest = likeliest, likeliest
    for at in range(left, right):
        if cost[at - left] <= limit:
            earliest, latest = min(earliest, at), max(latest, at)
    return earliest, likeliest, latest


@compiled
def find_steps(
    z: _Floats,
    scale: float,
    least: float,
    share: float,
    tuning: tuple[float, float, float, float, int, int, int, float],  # changepoint.Tuning
) -> tuple[_Floats, _Indices, float]:
    """The series without spikes, its steps, and how much longer its noise remembers than white noise does."""
    spike_limit, penalty, min_t, max_autocorrelation, min_length, min_tail, window, tail_range = tuning
    n = z.size
    smooth = despike(z, 3, spike_limit * scale)
    unit = scale * scale * penalty * np.log(n)
    starts = partition(smooth, unit, min_length, min_tail)
    # How much longer the noise remembers, and the factor on the penalty that the last partition was given.
    memory, factor = 1.0, 1.0
    for _ in range(_REFINEMENTS):
        variance, autocorrelation = residual_noise(smooth, starts)
        autocorrelation = min(max(autocorrelation, 0.0), max_autocorrelation)
        memory = (1.0 + autocorrelation) / (1.0 - autocorrelation)
        learned = memory * max(1.0, variance / (scale * scale))
        # Where there is no step, a larger penalty finds none either.
        if starts.size == 0 or abs(learned - factor) < 0.02 * factor:
            break
        starts = partition(smooth, unit * learned, min_length, min_tail)
        factor = learned
    starts = without_scattered_tail(smooth, starts, scale, min_length, tail_range)
    return smooth, significant_steps(smooth, starts, scale, least, share, min_t, window), memory
