"""How rare a change is among those of equal builds: counted among A/A pairs, beyond them by a power law.

Source: docs/calibration.md, measured by bench/verdicts.py. Of n pairs and a new one of equal builds each is
as likely to be the largest, whatever the noise, so a change that k of n pairs reach has p = (k + 1) / (n +
1). That alone never says less than 1 in n + 1: beyond the largest pair p falls with a power of the size. It
is HEAVY_TAIL (Student's t with 2 degrees of freedom has 2), up to LIGHT_TAIL where the pairs are known to
lie close together, which takes SHAPE_PAIRS of them, and down to LEAST_TAIL where the largest of them lie so
far apart that their tail is heavier: calls that mostly tie, and at times lie 100 times as far apart. How
far is Hill's estimate (1975) of the power, and of fewer than SHAPE_PAIRS also the largest of them, in
medians.

Assumed: the pair that is judged is from the same distribution as those that were seen, and its tail is no
heavier than that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# The powers of its size with which a change beyond all pairs gets rarer.
HEAVY_TAIL, LIGHT_TAIL = 1.5, 3.0
# The largest pair in medians: up to the first the tail is light, from the second on it is heavy. Of 50 pairs
# of normal noise it is 4, of Student's t with 2 degrees of freedom 11.
LIGHT_SHAPE, HEAVY_SHAPE = 3.0, 6.0
SHAPE_PAIRS = 50  # the shape of fewer pairs says too little of the tail
COUNTED_PAIRS = 99  # from so many a change of p = .01 is counted, and the tail does not matter
LARGEST_SHARE = 0.4  # of the sizes are those that Hill's estimate is made of
# By Hill's estimate from HEAVY_HILL down the tail is heavier than HEAVY_TAIL. Of 8 sizes it errs by a third,
# so that what it lacks counts HILL_SLOPE times.
HEAVY_HILL, HILL_SLOPE, LEAST_TAIL = 1.4, 3.0, 0.5
# Fewer than SHAPE_PAIRS may hide a heavy tail from it. A largest pair beyond HEAVY_SHAPE medians shows one
# too: 20 pairs of normal noise have it in 3 %, of calls that mostly tie and at times do not in 95 %.
SHAPE_SLOPE = 2.0  # by how much the power is less for each factor of e beyond that
LEAST_SIZE = 1e-6  # of the largest pair: noise of exactly 0 would make any change impossible
MAX_WINDOW = 1000  # newest pairs that are looked at
WINDOWS = (20, 40, 80, 160, 320, 640)  # numbers of newest pairs that may differ from those before them
OTHER_NOISE = 3.0  # standard deviations of a rank sum beyond which they do: 1 window in 400 by chance
# Newest pairs that vary more, but not by enough for that: noise that doubled 20 pairs ago is known in half
# of all cases only. Until more pairs tell, what they vary more by is counted, and by how much that may err.
GROWTH_WINDOWS, GROWN_NOISE, GROWTH_ERROR = (20, 40), 1.25, 1.2

Floats = NDArray[np.float64]


def likely_tail(seen: Floats) -> Floats:
    """The tail [...] that the shape of sizes [..., sizes] hints at, however few they are."""
    sizes = np.maximum(np.abs(np.asarray(seen, np.float64)), LEAST_SIZE)
    shape = np.log(sizes.max(axis=-1) / np.median(sizes, axis=-1))
    lightness = (np.log(HEAVY_SHAPE) - shape) / (np.log(HEAVY_SHAPE) - np.log(LIGHT_SHAPE))
    tail: Floats = HEAVY_TAIL + (LIGHT_TAIL - HEAVY_TAIL) * np.clip(lightness, 0.0, 1.0)
    return tail


def known_tail(seen: Floats, pairs: int | None = None) -> Floats:
    """The tail [...] to judge by: at most HEAVY_TAIL of fewer than SHAPE_PAIRS, less where it is heavier."""
    tail = likely_tail(seen)
    at_most = HEAVY_TAIL - HILL_SLOPE * (HEAVY_HILL - _hill_estimate(seen))
    if (seen.shape[-1] if pairs is None else pairs) < SHAPE_PAIRS:
        tail = np.full_like(tail, HEAVY_TAIL)
        at_most = np.minimum(at_most, HEAVY_TAIL - SHAPE_SLOPE * _excess_shape(seen))
    known: Floats = np.minimum(tail, np.maximum(at_most, LEAST_TAIL))
    return known


def _excess_shape(seen: Floats) -> Floats:
    """By what the largest of sizes [..., sizes] exceeds HEAVY_SHAPE medians, as a logarithm."""
    sizes = _without_zeros(seen)
    excess: Floats = np.log(sizes.max(axis=-1) / np.median(sizes, axis=-1) / HEAVY_SHAPE)
    return excess


def _hill_estimate(seen: Floats) -> Floats:
    """Hill's estimate [...] of the power of a tail, from sizes [..., sizes]; inf where the largest tie."""
    sizes = np.log(np.sort(_without_zeros(seen), axis=-1))
    largest = round(LARGEST_SHARE * sizes.shape[-1])
    if not largest:
        return np.full(sizes.shape[:-1], np.inf)
    over = (sizes[..., -largest:] - sizes[..., -largest - 1, None]).mean(axis=-1)
    with np.errstate(divide="ignore"):
        estimate: Floats = 1 / over
    return estimate


def _without_zeros(seen: Floats) -> Floats:
    """The sizes [..., sizes] with the smallest other one for 0: readings that tie differ by less."""
    sizes = np.abs(np.asarray(seen, np.float64))
    smallest = np.where(sizes > 0, sizes, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    others: Floats = np.maximum(sizes, np.where(np.isfinite(smallest), smallest, LEAST_SIZE))
    return others


def p_values(changes: Floats, seen: Floats, pairs: int | None = None, tail: Floats | None = None) -> Floats:
    """The chance that equal builds lie as far apart as each of `changes` [..., n], from sizes [..., sizes].

    `pairs` is how many of the sizes are independent; None: all. `tail` [...] is known_tail's where None.
    """
    sizes = np.abs(np.asarray(changes, np.float64))
    seen = np.abs(np.asarray(seen, np.float64))
    count = seen.shape[-1]
    pairs = count if pairs is None else pairs
    reached = (seen[..., None, :] >= sizes[..., :, None]).sum(axis=-1) * (pairs / max(count, 1))
    largest = np.maximum(seen.max(axis=-1, initial=LEAST_SIZE), LEAST_SIZE)[..., None]
    power = known_tail(seen, pairs) if tail is None else tail
    beyond = np.maximum(sizes / largest, 1.0) ** -np.asarray(power)[..., None]
    p: Floats = np.minimum((reached + 1) / (pairs + 1), 1.0) * beyond
    return p


def limits(seen: Floats, p: float, pairs: int | None = None, tail: Floats | None = None) -> Floats:
    """The size [...] beyond which a change is rarer than p among sizes [..., sizes], at least one.

    `pairs` and `tail` are those of p_values.
    """
    seen = np.sort(np.abs(np.asarray(seen, np.float64)), axis=-1)
    count = seen.shape[-1]
    pairs = count if pairs is None else pairs
    # How many of the independent pairs may reach a change as rare as p; below 0 it is beyond all of them.
    may_reach = p * (pairs + 1) - 1
    if may_reach < 0:
        largest = np.maximum(seen[..., -1], LEAST_SIZE)
        power = known_tail(seen, pairs) if tail is None else tail
        beyond: Floats = largest * ((1 / (pairs + 1)) / p) ** (1 / power)
        return beyond
    place = count - 1 - int(np.floor(may_reach * count / pairs + 1e-9))
    limit: Floats = np.maximum(seen[..., max(place, 0)], LEAST_SIZE)
    return limit


def newest_alike(seen: Floats, copies: float = 1.0) -> int:
    """How many of the newest sizes [sizes], in time order, are of the noise there is now.

    Noise that grew or shrank is followed after about 20 to 40 pairs: of the windows that differ from the
    sizes before them the one that differs most counts. `copies` is how many sizes one independent pair gave.
    """
    sizes = np.abs(np.asarray(seen, np.float64))[-MAX_WINDOW:]
    while True:
        scores = {
            newest: abs(score)
            for newest, score in _rank_scores(sizes, WINDOWS, copies).items()
            if abs(score) > OTHER_NOISE
        }
        if not scores:
            return len(sizes)
        sizes = sizes[-max(scores, key=scores.__getitem__) :]


def noise_growth(seen: Floats, copies: float = 1.0) -> float:
    """By what factor the newest sizes may be larger than those before them; 1.0 where they are not larger.

    `seen` [sizes] and `copies` are those of newest_alike, which would have left out what is clearly older.
    """
    sizes = np.abs(np.asarray(seen, np.float64))
    scores = _rank_scores(sizes, GROWTH_WINDOWS, copies)
    newest = max(scores, key=scores.__getitem__, default=0)
    if not newest or scores[newest] < GROWN_NOISE:
        return 1.0
    logs = np.log(_without_zeros(sizes))
    # Hodges and Lehmann's shift: the median of all differences, newer less older.
    shift = np.median(logs[-newest:, None] - logs[None, :-newest])
    return max(1.0, GROWTH_ERROR * float(np.exp(shift)))


def _rank_scores(sizes: Floats, windows: tuple[int, ...], copies: float) -> dict[int, float]:
    """By number of newest sizes: how much larger they are than those before, in sd of their rank sum."""
    scores = {}
    for window in windows:
        newest = round(window * copies)
        older = len(sizes) - newest
        if older < WINDOWS[0] * copies:
            break
        before = np.sort(sizes[:older])
        # Of each newest size how many older ones are smaller, ties by half: half of them by chance.
        newer = sizes[older:]
        smaller = (np.searchsorted(before, newer, "left") + np.searchsorted(before, newer, "right")) / 2
        spread = np.sqrt(newest * older * (len(sizes) + 1) / 12 * copies)
        scores[newest] = (float(smaller.sum()) - newest * older / 2) / float(spread)
    return scores
