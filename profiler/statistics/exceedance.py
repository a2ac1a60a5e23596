"""How rare a change is among those of equal builds: counted among A/A pairs, beyond them by a power law.

Source: docs/verdicts.md, measured by bench/verdicts.py. Of n pairs and a new one of equal builds each is as
likely to be the largest, whatever the noise, so a change that k of n pairs reach has p = (k + 1) / (n + 1).
That alone never says less than 1 in n + 1: beyond the largest pair p falls with a power of the size. It is
HEAVY_TAIL (Student's t with 2 degrees of freedom has 2; real series have sets with a heavier tail), or up to
LIGHT_TAIL where the pairs are known to lie close together, which takes SHAPE_PAIRS of them.

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
LEAST_SIZE = 1e-6  # of the largest pair: noise of exactly 0 would make any change impossible
MAX_WINDOW = 1000  # newest pairs that are looked at
WINDOWS = (20, 40, 80, 160, 320, 640)  # numbers of newest pairs that may differ from those before them
OTHER_NOISE = 3.0  # standard deviations of a rank sum beyond which they do: 1 window in 400 by chance

Floats = NDArray[np.float64]


def likely_tail(seen: Floats) -> Floats:
    """The tail [...] that the shape of sizes [..., sizes] hints at, however few they are."""
    sizes = np.maximum(np.abs(np.asarray(seen, np.float64)), LEAST_SIZE)
    shape = np.log(sizes.max(axis=-1) / np.median(sizes, axis=-1))
    lightness = (np.log(HEAVY_SHAPE) - shape) / (np.log(HEAVY_SHAPE) - np.log(LIGHT_SHAPE))
    tail: Floats = HEAVY_TAIL + (LIGHT_TAIL - HEAVY_TAIL) * np.clip(lightness, 0.0, 1.0)
    return tail


def known_tail(seen: Floats, pairs: int | None = None) -> Floats:
    """The tail [...] to judge by: HEAVY_TAIL of fewer than SHAPE_PAIRS."""
    tail = likely_tail(seen)
    enough = (seen.shape[-1] if pairs is None else pairs) >= SHAPE_PAIRS
    return tail if enough else np.full_like(tail, HEAVY_TAIL)


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
        scores = {}
        for window in WINDOWS:
            newest = round(window * copies)
            older = len(sizes) - newest
            if older < WINDOWS[0] * copies:
                break
            before = np.sort(sizes[:older])
            # Of each newest size how many older ones are smaller, ties by half: half of them by chance.
            newer = sizes[older:]
            smaller = (np.searchsorted(before, newer, "left") + np.searchsorted(before, newer, "right")) / 2
            spread = np.sqrt(newest * older * (len(sizes) + 1) / 12 * copies)
            score = abs(float(smaller.sum()) - newest * older / 2) / spread
            if score > OTHER_NOISE:
                scores[newest] = score
        if not scores:
            return len(sizes)
        sizes = sizes[-max(scores, key=scores.__getitem__) :]
