"""Where things go on a chart: ranges, ticks, labels that do not lie over each other, names cut to fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape


def value_range(numbers: Sequence[float], *, from_zero: bool = True) -> tuple[float, float, bool]:
    """Bottom and top of a panel, and whether it is logarithmic: over a factor of ten, else from zero.

    Not `from_zero`: from the smallest number, for what is told apart by less than its size.
    """
    if not numbers:
        return 0.0, 1.0, False
    low, high = min(numbers), max(numbers)
    if low > 0 and high / low > 10:
        return low / 1.6, high * 1.9, True
    if not from_zero:
        room = (high - low) * 0.18 or abs(high) * 0.02 or 1.0
        return low - room, high + room, False
    low, high = min(low, 0.0), max(high, 0.0)
    room = (high - low) * 0.18 or 1.0
    return low - (room if low < 0 else 0.0), high + room, False


def spread_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart, as near to the wanted ones as that allows, in the order given."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed = [0.0] * len(wanted)
    floor = low
    for index in order:
        placed[index] = max(wanted[index], floor)
        floor = placed[index] + gap
    ceiling = high
    for index in reversed(order):
        placed[index] = min(placed[index], ceiling)
        ceiling = placed[index] - gap
    return placed


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
    """How far up a panel the number lies, from 0 to 1."""
    if log:
        return math.log(number / bottom) / math.log(top / bottom)
    return (number - bottom) / (top - bottom)


def shorten(name: str, limit: int = 21) -> str:
    """A long name with its middle left out: both ends tell kernels apart."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9]}…{name[-8:]}"


def plotly_text(text: str) -> str:
    """The text as Plotly takes it: it reads tags and a few entities, and prints `&quot;` as that stands."""
    return escape(text, quote=False)


def wrap(words: str, limit: int) -> str:
    """The words as lines of about `limit` characters, escaped, for a chart label."""
    lines: list[str] = []
    for word in words.split():
        if lines and len(lines[-1]) + 1 + len(word) <= limit:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "<br>".join(map(plotly_text, lines))
