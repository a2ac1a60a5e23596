"""What a step leads to: a new level, one that was there before, or none where values drift; compiled.

Numbers are taken one by one: an operation on whole arrays takes numba seconds to compile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from profiler.statistics.segments import compiled, mean_and_squares, measure_step, residual_noise

_Floats = NDArray[np.float64]
_Indices = NDArray[np.int64]
_Flags = NDArray[np.bool_]

NEW, KNOWN, LEFT, DRIFT = 0, 1, 2, 3  # the members of changepoint.LevelKind in their order

_GAP = 4.0  # deviations within two states that lie between them, where values alternate between states
_CHANGES = 4  # of the state that such a series has at least
_INNER = 0.3  # of the gap: a value further than that from both states belongs to that of the value before
_OTHER_LEVEL = 0.25  # of the gap: a level further than that from both states is neither
_OTHER_ERRORS, _ONE_LEVEL = 2.5, 1.15  # deviations: of its mean, and within it if it is no mix of both
_FEW = 2  # values in a state before a step that make the state known
_EQUAL_DEVIATIONS = 1.5  # scales how far apart two means of one level may lie; tuned in bench/history.py
_EQUAL_SHARE, _DIFFERENT_SHARE = 0.15, 0.35  # of a step: nearer levels are equal, further ones are not
_OLDER_LEVELS = 10.0  # how much less likely any older level is than the one before the last step
_JUMP_SHARE = 0.65  # of a step that remains between the lines on its two sides, else it may be drift
_JUMP_SHARE_BESIDE_DRIFT = 0.85  # the same, next to a drift in a series that mostly drifts
_LINE_VARIANCES = 8.0  # by which the lines may fit worse than the levels, a step


@compiled
def two_states(ordered: _Floats) -> tuple[float, float, float]:
    """The two means that leave the least squares, low and high, and the deviation of the values from them.

    The values are sorted.
    """
    n = ordered.size
    total, squares = 0.0, 0.0
    for value in ordered:
        total += value
        squares += value * value
    best, cut, cut_sum, below = -np.inf, 1, 0.0, 0.0
    for count in range(1, n):
        below += ordered[count - 1]
        between = below * below / count + (total - below) * (total - below) / (n - count)
        if between > best:
            best, cut, cut_sum = between, count, below
    return cut_sum / cut, (total - cut_sum) / (n - cut), np.sqrt(max(squares - best, 0.0) / n)


@compiled
def state_changes(z: _Floats, low: float, high: float) -> int:
    """How often values change from one state to the other; one that is near neither changes nothing."""
    margin = _INNER * (high - low)
    changes, before = 0, -1
    for value in z:
        state = 1 if value > high - margin else 0 if value < low + margin else before
        if before >= 0 and state != before:
            changes += 1
        before = state
    return changes


@compiled
def has_other_level(
    z: _Floats, edges: _Indices, low: float, high: float, within: float, memory: float
) -> bool:
    """Whether a level lies at neither of two states, and is no mix of values of both."""
    for k in range(edges.size - 1):
        points = edges[k + 1] - edges[k]
        mean, squares = mean_and_squares(z, edges[k], edges[k + 1])
        distance = min(abs(mean - low), abs(mean - high))
        error = _OTHER_ERRORS * within * np.sqrt(memory / points)
        is_level = squares <= points * (_ONE_LEVEL * within) ** 2
        if is_level and distance > max(_OTHER_LEVEL * (high - low), error):
            return True
    return False


@compiled
def line_fit(z: _Floats, begin: int, end: int) -> tuple[float, float, float]:
    """The mean, the slope a point, and the squares about the line; slope 0 where there are under 5 points."""
    mean, squares = mean_and_squares(z, begin, end)
    if end - begin < 5:
        return mean, 0.0, squares
    centre = 0.5 * (begin + end - 1)
    products, spread = 0.0, 0.0
    for i in range(begin, end):
        products += (i - centre) * (z[i] - mean)
        spread += (i - centre) * (i - centre)
    return mean, products / spread, squares - products * products / spread


@compiled
def slope_t(z: _Floats, left: int, at: int, right: int, scale: float) -> float:
    """By how many of its errors the slope that the two sides of a step share differs from 0."""
    slopes, spread, squares = 0.0, 0.0, 0.0
    for begin, end in ((left, at), (at, right)):
        points = end - begin
        _, slope, left_over = line_fit(z, begin, end)
        squares += left_over
        if points >= 5:
            own_spread = (points * points * points - points) / 12.0
            slopes += slope * own_spread
            spread += own_spread
    if spread == 0.0:
        return 0.0
    variance = max(squares / max(1, right - left - 4), scale * scale)
    return float(slopes / np.sqrt(spread * variance))


@compiled
def is_drift(
    z: _Floats,
    edges: _Indices,
    means: _Floats,
    sharp: _Flags,
    k: int,
    scale: float,
    window: int,
    jump_share: float,
) -> bool:
    """Whether the values about the step at `edges[k]` lie on two lines that leave less than a share of it.

    The lines go over the steps of the same direction beside it, since a drift becomes a staircase, but over
    none that is `sharp`.
    """
    at, rises = edges[k], means[k] > means[k - 1]
    first, last = k - 1, k
    while first > 0 and (means[first] > means[first - 1]) == rises and not sharp[first]:
        if at - edges[first] >= window:
            break
        first -= 1
    while last + 2 < edges.size and (means[last + 1] > means[last]) == rises and not sharp[last + 1]:
        if edges[last + 1] - at >= window:
            break
        last += 1
    left, right = max(edges[first], at - window), min(edges[last + 1], at + window)
    before, slope_before, squares_before = line_fit(z, left, at)
    after, slope_after, squares_after = line_fit(z, at, right)
    jump = after - 0.5 * slope_after * (right - at) - before - 0.5 * slope_before * (at - left)
    if jump / (means[k] - means[k - 1]) >= jump_share:
        return False
    squares = 0.0
    for j in range(first, last + 1):
        squares += mean_and_squares(z, max(left, edges[j]), min(right, edges[j + 1]))[1]
    limit = squares + _LINE_VARIANCES * scale * scale * (last - first)
    return bool(squares_before + squares_after <= limit)


@compiled
def drifting_steps(z: _Floats, edges: _Indices, means: _Floats, scale: float, window: int) -> _Flags:
    """Which steps, counted from 1 as the edges are, belong to a drift."""
    # Again and again: a step on a drift ends the lines of its neighbours, once it is known to be sharp.
    sharp = np.zeros(edges.size, np.bool_)
    drifts = np.zeros(edges.size, np.bool_)
    for _ in range(3):
        for k in range(1, edges.size - 1):
            drifts[k] = drifts[k] or is_drift(z, edges, means, sharp, k, scale, window, _JUMP_SHARE)
            # Where half of the steps drift, so may one beside them that is no larger than they are and that
            # two lines do not fit as well: the drift bends there, and nearer to the step less.
            beside = drifts[k - 1] or drifts[k + 1]
            if not drifts[k] and beside:
                largest, count = 0.0, 0
                for j in range(1, edges.size - 1):
                    if drifts[j]:
                        largest = max(largest, abs(means[j] - means[j - 1]))
                        count += 1
                if 2 * count < edges.size - 2 or abs(means[k] - means[k - 1]) > largest:
                    continue
                for near in (window, window // 2):
                    if not drifts[k]:
                        drifts[k] = is_drift(z, edges, means, sharp, k, scale, near, _JUMP_SHARE_BESIDE_DRIFT)
        for k in range(edges.size):
            sharp[k] = not drifts[k]
    return drifts


@compiled
def level_kinds(
    z: _Floats,
    ordered: _Floats,
    starts: _Indices,
    scale: float,
    memory: float,
    least: float,
    share: float,
    min_t: float,
    window: int,
) -> tuple[_Indices, _Indices]:
    """For each step NEW, KNOWN, LEFT or DRIFT, and the index of the value that says so; -1 for the others.

    KNOWN: the first value of the same level before. LEFT: the first value after it of a level from before it.
    Whether a level is known depends on the values before it and those of its own alone, except where the
    whole series alternates between two states. `ordered` has the values sorted.
    """
    n, m = z.size, starts.size
    kinds, related = np.zeros(m, np.int64), np.full(m, -1, np.int64)
    if m == 0:
        return kinds, related
    edges = np.empty(m + 2, np.int64)
    edges[0], edges[m + 1] = 0, n
    for k in range(m):
        edges[k + 1] = starts[k]
    means = np.empty(m + 1)
    for k in range(m + 1):
        means[k] = mean_and_squares(z, edges[k], edges[k + 1])[0]
    deviation = np.sqrt(max(residual_noise(z, starts)[0], scale * scale))
    low, high, within = two_states(ordered)
    # Noise about a level between the two would pass for changes of the state.
    alternates = high - low > _GAP * within and state_changes(z, low, high) >= _CHANGES
    alternates = alternates and not has_other_level(z, edges, low, high, within, memory)
    # What is left where both states are moved to one level: a step there is not the states' own.
    joined = z.copy()
    if alternates:
        for i in range(n):
            if z[i] > 0.5 * (low + high):
                joined[i] -= high - low
    drifts = drifting_steps(z, edges, means, scale, window)
    returns, news = 0, 0
    for k in range(1, m + 1):
        at = edges[k]
        if alternates:
            left, right = max(edges[k - 1], at - window), min(edges[k + 1], at + window)
            before, after, variance = measure_step(joined, left, at, right, scale)
            size = abs(after - before)
            error = np.sqrt(variance * (1.0 / (at - left) + 1.0 / (right - at)))
            if size < min_t * error or size < least + share * max(abs(before), abs(after)):
                is_high = means[k] > means[k - 1]
                earlier, first = 0, -1
                for i in range(at):
                    if (z[i] > 0.5 * (low + high)) == is_high:
                        first = i if first < 0 else first
                        earlier += 1
                later = at
                while later < n and (z[later] > 0.5 * (low + high)) == is_high:
                    later += 1
                if earlier >= _FEW:
                    kinds[k - 1], related[k - 1] = KNOWN, first
                elif later < n:
                    kinds[k - 1], related[k - 1] = LEFT, later
                continue
        if drifts[k]:
            kinds[k - 1] = DRIFT
            continue
        step = abs(means[k] - means[k - 1])
        # Its first points alone, so that the answer stays as it is when the level grows.
        until = min(edges[k + 1], at + window)
        mean = mean_and_squares(z, at, until)[0]
        nearest, same = np.inf, -1
        for j in range(k - 1):
            points = 1.0 / (until - at) + 1.0 / (edges[j + 1] - edges[j])
            error = deviation * np.sqrt(memory * points)
            # Equal where an old level is likelier than a new one, which may lie anywhere about as far as
            # the step; the more levels came back before, the likelier that this one did.
            odds = (1.0 + returns) / max(1.0, news) / (1.0 if j == k - 2 else _OLDER_LEVELS)
            likelier = max(1.0, 0.8 * step / error * odds) if error > 0.0 else 1e9
            limit = _EQUAL_DEVIATIONS * error * np.sqrt(2.0 * np.log(likelier))
            if j == k - 2:
                limit = max(limit, _EQUAL_SHARE * step)
            distance = abs(mean - means[j])
            if distance <= min(limit, _DIFFERENT_SHARE * step) and distance < nearest:
                nearest, same = distance, j
        if same >= 0:
            kinds[k - 1], related[k - 1] = KNOWN, edges[same]
            returns += 1
            # The level that was left for an older one did not last.
            if kinds[k - 2] == NEW and same == k - 2:
                kinds[k - 2], related[k - 2] = LEFT, at
        else:
            news += 1
    return kinds, related
