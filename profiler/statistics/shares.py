"""Shares of counts with intervals: how sure `13 of 17` is, and how far it is from `3 of 16`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True)
class ShareDifference:
    """The share of B less that of A, with the interval that holds it."""

    difference: float
    low: float
    high: float


def wilson_interval(count: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """The interval of a share by Wilson's score; (0, 1) of nothing.

    Source: Wilson, "Probable inference" (1927), without correction of continuity.
    """
    if not 0 <= count <= of:
        raise ValueError(f"{count} of {of}")
    if not of:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = count / of
    centre = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return max(0.0, centre - half), min(1.0, centre + half)


def newcombe_difference(
    count_b: int, of_b: int, count_a: int, of_a: int, level: float = 0.95
) -> ShareDifference:
    """The difference of two independent shares, B less A, with Newcombe's interval from Wilson's two.

    Source: Newcombe, "Interval estimation for the difference between independent proportions" (1998),
    method 10. Raises ValueError where a side has nothing.
    """
    if not of_a or not of_b:
        raise ValueError("a share of nothing has no difference")
    a, b = count_a / of_a, count_b / of_b
    low_a, high_a = wilson_interval(count_a, of_a, level)
    low_b, high_b = wilson_interval(count_b, of_b, level)
    difference = b - a
    return ShareDifference(
        difference,
        difference - math.hypot(b - low_b, high_a - a),
        difference + math.hypot(high_b - b, a - low_a),
    )
