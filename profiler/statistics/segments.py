"""Where the levels of a series lie: the compiled loops of the change points, on bare arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Floats = NDArray[np.float64]
_Places = NDArray[np.int64]

_NEVER = 1 << 60
_ROUNDS = 2  # times that the penalty is learned from what the last partition left over
_PRIOR = 4.0  # points that the whole series' scale is worth beside those around one step


def _compiled(function: _Function) -> _Function:
    """The function as machine code, kept on disk where there is a place to keep it.

    numba looks beside this file, then in the user's cache folder (or where NUMBA_CACHE_DIR says). Where it
    may write to neither, as in a read-only install without a home, each process compiles for itself.
    """
    try:
        return cast(_Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(_Function, numba.njit(nogil=True)(function))


@_compiled
def despike(z: _Floats, half: int, limit: float) -> _Floats:
    """Lone points further than `limit` from the median of the `half` on each side take that median.

    A point that a neighbour stands by is none: it may be the first of a new level. Source: Hampel 1974, as
    the moving-window filter; the neighbour's say is our own.
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
        middle = 0.5 * (near[(count - 1) // 2] + near[count // 2])
        away = abs(z[i] - middle)
        if away > limit:
            before = i > 0 and abs(z[i - 1] - z[i]) < 0.5 * away
            after = i + 1 < n and abs(z[i + 1] - z[i]) < 0.5 * away
            if not before and not after:
                out[i] = middle
    return out


@_compiled
def partition(z: _Floats, penalty: float, shortest: int, tail: int) -> _Places:
    """Where the levels begin (without 0) that leave the least squares plus `penalty` a step.

    No level is shorter than `shortest`, but the last may have `tail` points. Exact: optimal partitioning with
    the pruning of PELT. Source: Jackson et al. 2005; Killick, Fearnhead and Eckley 2012, theorem 3.1; a place
    that is beaten stays until the one that beats it may itself begin a level.
    """
    n = z.size
    sums, squares = np.zeros(n + 1), np.zeros(n + 1)
    share = np.zeros(n + 1)  # 1 / length
    for i in range(n):
        sums[i + 1] = sums[i] + z[i]
        squares[i + 1] = squares[i] + z[i] * z[i]
        share[i + 1] = 1.0 / (i + 1)
    best = np.full(n + 1, np.inf)
    best[0] = -penalty
    origin = np.zeros(n + 1, np.int64)
    places, until = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    total = np.empty(n + 1)
    count = 0
    for end in range(1, n + 1):
        newest = end - tail if end == n else end - shortest
        oldest = end - shortest
        for place in range(max(0, oldest), newest + 1):  # one, but for the tail
            if best[place] < np.inf:
                places[count], until[count] = place, _NEVER
                count += 1
        least, found = np.inf, 0
        for k in range(count):
            place = places[k]
            rise = sums[end] - sums[place]
            total[k] = best[place] + squares[end] - squares[place] - rise * rise * share[end - place]
            if total[k] < least:
                least, found = total[k], place
        best[end], origin[end] = least + penalty, found
        kept = 0
        for k in range(count):
            if total[k] > best[end] and until[k] == _NEVER:
                until[k] = end + shortest
            if until[k] > end + 1:
                places[kept], until[kept] = places[k], until[k]
                kept += 1
        count = kept
    steps = 0
    at = origin[n]
    while at > 0:
        steps += 1
        at = origin[at]
    out = np.empty(steps, np.int64)
    at = origin[n]
    while at > 0:
        steps -= 1
        out[steps] = at
        at = origin[at]
    return out


@_compiled
def leftover(z: _Floats, starts: _Places) -> tuple[float, float]:
    """Variance and lag-1 autocorrelation of what the levels leave over."""
    n = z.size
    rest = np.empty(n)
    begin = 0
    for k in range(starts.size + 1):
        end = starts[k] if k < starts.size else n
        mean = 0.0
        for i in range(begin, end):
            mean += z[i]
        mean /= end - begin
        for i in range(begin, end):
            rest[i] = z[i] - mean
        begin = end
    power, product = rest[0] * rest[0], 0.0
    for i in range(1, n):
        power += rest[i] * rest[i]
        product += rest[i] * rest[i - 1]
    correlation = product / power if power > 0.0 else 0.0
    return power / max(1, n - starts.size - 1), correlation


@_compiled
def near_side(z: _Floats, begin: int, end: int) -> tuple[float, float]:
    """Mean and sum of squares about it of one side of a step."""
    mean, power = 0.0, 0.0
    for i in range(begin, end):
        mean += z[i]
    mean /= end - begin
    for i in range(begin, end):
        power += (z[i] - mean) * (z[i] - mean)
    return mean, power


@_compiled
def weigh(z: _Floats, left: int, at: int, right: int, scale: float) -> tuple[float, float, float]:
    """A step at `at` between the points from `left` to `right`: level before, after, and the variance there.

    The variance leans on the whole series' scale as if that were _PRIOR points more: two points have none.
    """
    before, power_before = near_side(z, left, at)
    after, power_after = near_side(z, at, right)
    freedom = right - left - 2 + _PRIOR
    return before, after, (power_before + power_after + _PRIOR * scale * scale) / freedom


@_compiled
def surest(
    z: _Floats, starts: _Places, scale: float, least: float, share: float, surely: float, window: int
) -> _Places:
    """The steps that remain when the weakest is dropped until each is sure and large enough.

    Sure: its t between at most `window` points a side is over `surely`. Large: the levels differ by `least`
    plus `share` of the larger one. Source of the test: Mozilla's Perfherder, "t > 7".
    """
    n, m = z.size, starts.size
    edges = np.empty(m + 2, np.int64)
    edges[0] = 0
    for k in range(m):
        edges[k + 1] = starts[k]
    edges[m + 1] = n
    while m > 0:
        worst, which = np.inf, 0
        for k in range(1, m + 1):
            left, right = max(edges[k - 1], edges[k] - window), min(edges[k + 1], edges[k] + window)
            before, after, variance = weigh(z, left, edges[k], right, scale)
            size = abs(after - before)
            sides = 1.0 / (edges[k] - left) + 1.0 / (right - edges[k])
            quality = size / np.sqrt(variance * sides) / surely
            wanted = least + share * max(abs(before), abs(after))
            if wanted > 0.0:
                quality = min(quality, size / wanted)
            if quality < worst:
                worst, which = quality, k
        if worst > 1.0:
            break
        for k in range(which, m + 1):
            edges[k] = edges[k + 1]
        m -= 1
    return edges[1 : m + 1].copy()


@_compiled
def places_of(
    z: _Floats, left: int, right: int, shortest: int, tail: int, scale: float, spread: float
) -> tuple[int, int, int]:
    """The likeliest first point of the new level between two others, and the earliest and latest possible.

    Possible are all whose sum of squares is within `spread` variances of the least.
    """
    cost = np.full(right - left, np.inf)
    likeliest = left + shortest
    for at in range(left + min(shortest, tail), right - tail + 1):
        power = near_side(z, left, at)[1] + near_side(z, at, right)[1]
        cost[at - left] = power
        if power < cost[likeliest - left]:
            likeliest = at
    variance = weigh(z, left, likeliest, right, scale)[2]
    limit = cost[likeliest - left] + spread * variance
    earliest, latest = likeliest, likeliest
    for at in range(left, right):
        if cost[at - left] <= limit:
            earliest, latest = min(earliest, at), max(latest, at)
    return earliest, likeliest, latest


@_compiled
def find(
    z: _Floats,
    scale: float,
    least: float,
    share: float,
    tuning: tuple[float, float, float, float, int, int, int],
) -> tuple[_Floats, _Places, float]:
    """The despiked series, the steps in it, and how much longer its noise remembers than white noise does."""
    spike, price, surely, memory, shortest, tail, window = tuning
    n = z.size
    calm = despike(z, 3, spike * scale)
    unit = scale * scale * price * np.log(n)
    starts = partition(calm, unit, shortest, tail)
    longer, paid = 1.0, 1.0
    for _ in range(_ROUNDS):
        variance, correlation = leftover(calm, starts)
        correlation = min(max(correlation, 0.0), memory)
        longer = (1.0 + correlation) / (1.0 - correlation)
        due = longer * max(1.0, variance / (scale * scale))
        if starts.size == 0 or abs(due - paid) < 0.02 * paid:  # a dearer step finds none where there was none
            break
        starts = partition(calm, unit * due, shortest, tail)
        paid = due
    return calm, surest(calm, starts, scale, least, share, surely, window), longer
