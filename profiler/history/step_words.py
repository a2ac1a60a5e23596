"""Words for the steps of a history: size, levels, runs and what else changed, for every kind of output."""

from __future__ import annotations

import math
from statistics import median

from profiler.compare.same_code import SAME
from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.history.change_points import Drift, LevelStep
from profiler.history.shared_steps import SharedStep
from profiler.history.trend import TrendPoint
from profiler.statistics.changepoint import LevelKind

CODE_WORDS = {SAME: "the same"}
DUE_TO_STATE = "state of the machine"
LAST_POINT = "to judge only the last point, compare the pair"


def size_words(step: LevelStep) -> str:
    """The size with its interval: relative, or in percentage points, or absolute from a level of 0."""
    change = step.change_point
    if math.isnan(change.size):
        return f"from 0 by {_quantity(change.difference, step)}"
    if step.before.value.unit == "%":
        low, high = sorted((change.difference_low, change.difference_high))
        return f"{_signed(change.difference)} pp{_interval(low, high)}"
    low, high = sorted((change.size_low, change.size_high))
    return f"{_signed(100 * change.size)} %{_interval(100 * low, 100 * high)}"


def brief_size_words(step: LevelStep) -> str:
    """The size without its interval."""
    return size_words(step).partition(" (")[0]


def place_words(step: LevelStep, *, over_runs: bool) -> str:
    """When its likeliest run was made, or of which version it is: as `11-07`."""
    return f"{step.likeliest.created:%m-%d}" if over_runs else step.likeliest.version


def brief_circumstances(step: LevelStep) -> str:
    """What changed with it, and whether the machine code did: `driver 570 → 580; machine code the same`."""
    words = [f"{change.field} {change.before} → {change.after}" for change in step.circumstances.environment]
    code = step.circumstances.code.word
    return "; ".join([*words, f"machine code {CODE_WORDS.get(code, code)}"])


def level_words(step: LevelStep) -> str:
    """The levels before and after; a unit that is a long word is written once."""
    before, after = _quantity(step.change_point.before, step), _quantity(step.change_point.after, step)
    unit = f" {step.before.value.unit}"
    return f"{before.removesuffix(unit) if formatting.is_long_unit(unit) else before} → {after}"


def environment_words(step: LevelStep) -> str:
    """What changed in the environment, and what is unknown about it."""
    circumstances = step.circumstances
    words = [f"{change.field} {change.before} → {change.after}" for change in circumstances.environment]
    if circumstances.unknown:
        words.append(f"unknown: {', '.join(circumstances.unknown)}")
    return "; ".join(words) or "the same"


def verdict_words(step: LevelStep) -> str:
    """The verdict with its sign, or what a level that is not new is."""
    return step.verdict.label if step.equal is None else f"{step.verdict.traits.sign} {step.level}"


def level_kind_words(step: LevelStep) -> str:
    """Of a level that is not new: `back in a known state, as since v1 2026-01-01 10:00`; else ""."""
    if step.equal is None:
        return ""
    joint = "as since" if step.level is LevelKind.KNOWN else "back since"
    return f"{step.level}, {joint} {moment(step.equal)}"


def due_to_words(step: LevelStep) -> str:
    """What can have caused it; a level that comes and goes with equal code is a state of the machine."""
    return step.circumstances.cause if step.equal is None else DUE_TO_STATE


def drift_words(drift: Drift, unit: str) -> str:
    """`drifts +4.2 % from v1 … to v9 …, 1.2 ms → 1.25 ms`; no step."""
    levels = [str(formatting.quantity(Value(level, unit))) for level in (drift.before, drift.after)]
    size = "" if math.isnan(drift.size) else f" {_signed(100 * drift.size)} %"
    where = f"from {moment(drift.first)} to {moment(drift.last)}"
    return f"drifts{size} {where}, {levels[0]} → {levels[1]}: no step"


def shared_words(shared: SharedStep) -> str:
    """`one alarm, due to the environment: 9 of 10 series +5.0 % since run … (driver 570 → 580)`."""
    sizes = [step.change_point.size for _, step in shared.steps if math.isfinite(step.change_point.size)]
    size = f" {_signed(100 * median(sizes))} % in the median" if sizes else ""
    environment = "; ".join(
        f"{change.field} {change.before} → {change.after}" for change in shared.environment
    )
    count = f"{len(shared.steps)} of {shared.series} series"
    return (
        f"one alarm, due to {shared.cause}: {count} {shared.verdict.label}{size} since the run of "
        f"{shared.created:%Y-%m-%d %H:%M} ({environment or 'nothing known changed there'})"
    )


def where_words(step: LevelStep) -> str:
    """The runs with which the new level may have begun."""
    return _range([moment(point) for point in step.possible])


def code_words(step: LevelStep) -> str:
    """Whether the machine code changed, and how that is known."""
    code = step.circumstances.code
    return f"{code.word}: {code.why}"


def moment(point: TrendPoint) -> str:
    """A point's version and when its run was made."""
    return f"{point.version} {point.created:%Y-%m-%d %H:%M}"


def _range(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)} points)"


def _quantity(number: float, step: LevelStep) -> str:
    return str(formatting.quantity(Value(number, step.before.value.unit)))


def _signed(number: float) -> str:
    return f"{number:+.1f}".replace("-", formatting.MINUS)


def _interval(low: float, high: float) -> str:
    """The interval in parentheses; "" where both ends are equal, as for counts, which repeat exactly.

    NaN: there is none, since the values drift.
    """
    if math.isnan(low):
        return " (no interval: the values drift there)"
    ends = [_signed(low), _signed(high)]
    return "" if ends[0] == ends[1] else f" ({ends[0]} to {ends[1]})"
