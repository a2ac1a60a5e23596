"""The numeric side of an axis: its range, whether it is logarithmic, its ticks, where a number lies on it."""

from __future__ import annotations

import math
from collections.abc import Sequence


def value_range(numbers: Sequence[float], *, from_zero: bool = True) -> tuple[float, float, bool]:
    """Bottom and top of a panel, and whether it is logarithmic: where the numbers span a factor of ten.

    A linear panel begins at zero; without `from_zero` at the smallest number, for values whose differences
    are small beside them.
    """
    if not numbers:
        return 0.0, 1.0, False
    low, high = min(numbers), max(numbers)
    if low > 0 and high / low > 10:  # on a linear axis the small ones would lie on the bottom
        return low / 1.6, high * 1.9, True
    if not from_zero:
        # Room for the labels above and below the points.
        margin = (high - low) * 0.18 or abs(high) * 0.02 or 1.0
        return low - margin, high + margin, False
    low, high = min(low, 0.0), max(high, 0.0)
    margin = (high - low) * 0.18 or 1.0
    return low - (margin if low < 0 else 0.0), high + margin, False


def log_ticks(low: float, high: float) -> list[float]:
    """Plain ticks of a logarithmic axis: 1 and 3 of each decade, or 1, 2, 5 where that gives few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1.0, 3.0), (1.0, 2.0, 5.0)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            break
    return ticks[:: max(1, len(ticks) // 5)]


def axis_share(number: float, bottom: float, top: float, log: bool) -> float:
    """How far along an axis the number lies, from 0 to 1."""
    if log:
        return math.log(number / bottom) / math.log(top / bottom)
    return (number - bottom) / (top - bottom)
