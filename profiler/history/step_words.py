"""How a step of a history reads: size, levels, runs and circumstances in words, on every kind of output."""

from __future__ import annotations

import math

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.history.change_points import Change
from profiler.history.trend import TrendPoint

LAST_POINT = "a step of the last point alone is judged by the pair"


def size_words(change: Change) -> str:
    """The size with its interval; in the metric's unit where it is judged so, or the level was 0."""
    step = change.step
    if math.isnan(step.size):
        return f"from 0 by {_quantity(step.difference, change)}"
    if change.before.value.unit == "%":
        low, high = sorted((step.difference_low, step.difference_high))
        return f"{_signed(step.difference)} pp{_interval(low, high)}"
    low, high = sorted((step.size_low, step.size_high))
    return f"{_signed(100 * step.size)} %{_interval(100 * low, 100 * high)}"


def level_words(change: Change) -> str:
    """The levels before and after; a unit that is a word stands once."""
    before, after = _quantity(change.step.before, change), _quantity(change.step.after, change)
    unit = f" {change.before.value.unit}"
    return f"{before.removesuffix(unit) if formatting.is_long_unit(unit) else before} → {after}"


def environment_words(change: Change) -> str:
    """What differs in the environment, and what nobody says."""
    told = change.circumstances
    found = [f"{one.field} {one.before} → {one.after}" for one in told.environment]
    if told.unknown:
        found.append(f"unknown: {', '.join(told.unknown)}")
    return "; ".join(found) or "the same"


def where_words(change: Change) -> str:
    """The runs in which the new level can have begun."""
    return _range(change, [moment(point) for point in change.possible])


def short_where_words(change: Change) -> str:
    """The same with no more than tells them apart: versions, or when the runs were made."""
    versions = {point.version for point in (change.before, *change.possible)}
    names = [point.version for point in change.possible]
    if len(versions) < 1 + len(names):
        names = [f"{point.created:%Y-%m-%d %H:%M}" for point in change.possible]
    return _range(change, names)


def code_words(change: Change) -> str:
    """Whether the machine code is another, and how that is known."""
    code = change.circumstances.code
    return f"{code.word}: {code.why}"


def _range(change: Change, names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(change.possible)} points)"


def moment(point: TrendPoint) -> str:
    """A point's version and when its run was made."""
    return f"{point.version} {point.created:%Y-%m-%d %H:%M}"


def _quantity(number: float, change: Change) -> str:
    return str(formatting.quantity(Value(number, change.before.value.unit)))


def _signed(number: float) -> str:
    return f"{number:+.1f}".replace("-", formatting.MINUS)


def _interval(low: float, high: float) -> str:
    """Nothing for what repeats exactly, as counts do."""
    ends = [_signed(low), _signed(high)]
    return "" if ends[0] == ends[1] else f" ({ends[0]} to {ends[1]})"
