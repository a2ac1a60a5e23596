"""The interval of one run's own median, from the medians of its rounds; it says nothing about other runs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
MIN_ROUNDS = 6  # with five, even the smallest and the largest hold the median in only 94 % of runs


def median_interval(samples: NDArray[np.floating], rounds: NDArray[np.integer]) -> tuple[float, float] | None:
    """The 95 % interval of the median of the rounds' medians, widened to hold the median of all samples.

    Of order statistics (the sign test turned round), without a distribution: rounds are taken as independent,
    samples of one round are not. `samples` and `rounds` are of equal length. None with fewer than MIN_ROUNDS.
    """
    numbers = np.unique(rounds)
    if len(numbers) < MIN_ROUNDS:
        return None
    medians = np.sort([np.median(samples[rounds == number]) for number in numbers])
    rank = _rank(len(medians))
    middle = float(np.median(samples))
    return min(float(medians[rank]), middle), max(float(medians[-1 - rank]), middle)


@lru_cache(maxsize=256)
def _rank(count: int) -> int:
    """How many of the smallest and of the largest of `count` values the interval may leave out."""
    from scipy.special import bdtr

    rank = 0
    while 2 * bdtr(rank, count, 0.5) <= 1 - CONFIDENCE:
        rank += 1
    return rank - 1
