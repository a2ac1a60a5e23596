"""The verdict on one metric: from its direction and threshold, and from what one launch a side can tell."""

from __future__ import annotations

import math
from typing import NamedTuple

from profiler.metrics import Metric
from profiler.statistics.decision import UNJUDGED, Verdict
from profiler.values import Evidence, State, Value

__all__ = ["SHORT_NS", "UNJUDGED", "Judgement", "Verdict", "judge", "missing"]

SHORT_NS = 50_000  # below this one launch a side cannot tell a change from noise
DETERMINISTIC_GROUPS = ("instructions", "launch", "spills")


class Judgement(NamedTuple):
    """A verdict, why, and the change in per cent of A (None without two numbers, or from 0)."""

    verdict: Verdict
    reason: str
    change_pct: float | None = None


def judge(metric: Metric, names: tuple[str, str], a: Value, b: Value, *, short: bool) -> Judgement:
    """Judge b against a. `names` are the ncu names the two were read by; `short`: a launch under SHORT_NS."""
    if a.number is None or b.number is None:
        return Judgement(Verdict.MISSING, missing(a, b))
    if names[0] != names[1]:
        return Judgement(Verdict.NOT_COMPARABLE, f"different counters: {names[0]} and {names[1]}")
    if a.unit != b.unit:
        units = f"{a.unit or 'none'} and {b.unit or 'none'}"
        return Judgement(Verdict.NOT_COMPARABLE, f"{names[0]} has different units: {units}")
    change_pct = _percent(a.number, b.number)
    difference = b.number - a.number
    if not difference:
        return Judgement(Verdict.SAME, "equal", change_pct)
    limit, over = _relevant(metric, a.number, difference)
    if not over:
        return Judgement(Verdict.SAME, f"within {limit}", change_pct)
    if metric.better == "-":
        return Judgement(Verdict.CHANGED, f"over {limit}; neither direction is better by itself", change_pct)
    if short and not is_exact(metric, a.unit):
        reason = (
            f"over {limit}, but a launch under {SHORT_NS // 1000} µs moves as much by itself: "
            "profile several launches a side, or time many calls"
        )
        return Judgement(Verdict.UNCLEAR, reason, change_pct)
    word = Verdict.BETTER if (difference < 0) == (metric.better == "lower") else Verdict.WORSE
    sure = "unreplicated: one launch a side" if metric.evidence is Evidence.MEASURED else "exact"
    reason = f"over {limit}, {metric.better} is better; {sure}"
    return Judgement(word, reason, change_pct)


def missing(a: Value, b: Value) -> str:
    """Which side has no number and why; "" where both have one."""
    if a.number is None and b.number is None and a.state is b.state:
        return f"{_state(a)} in either"
    sides = [f"{_state(value)} in {side}" for side, value in (("A", a), ("B", b)) if value.number is None]
    return ", ".join(sides)


def _state(value: Value) -> str:
    return "a text" if value.state is State.PRESENT else value.state.words


def _percent(a: float, b: float) -> float | None:
    if a == b:
        return 0.0
    change = 100 * (b - a) / abs(a) if a else math.inf
    return change if math.isfinite(change) else None


def _relevant(metric: Metric, start: float, difference: float) -> tuple[str, bool]:
    """The threshold in words, and whether the difference is over it. From 0 every relative change is."""
    if metric.threshold_pp is not None:
        return f"{metric.threshold_pp:g} pp", abs(difference) > metric.threshold_pp
    return f"{100 * metric.threshold:g} %", not start or abs(difference) > metric.threshold * abs(start)


def is_exact(metric: Metric, unit: str) -> bool:
    """Counts that the same code on the same data repeats exactly; rates and shares in those groups do not."""
    rate = "%" in unit or "cycle" in unit or unit.endswith(("/s", "/second"))
    return metric.group in DETERMINISTIC_GROUPS and not rate
