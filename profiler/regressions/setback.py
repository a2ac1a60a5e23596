"""Where a number that repeats exactly got worse and has not come back: a pure function of its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.evidence.metric_table import Metric
from profiler.statistics.facts import WATCHED_FACTS, WatchedFact

Floats = NDArray[np.float64]
IsWorse = Callable[[Floats, Floats], NDArray[np.bool_]]


class StandingStep(NamedTuple):
    """Places in the values: the last of the old level, the first of the new one, the last with a number."""

    before: int
    after: int
    now: int
    earlier: int  # older steps for the worse that still hold


def rule(metric: Metric) -> IsWorse | None:
    """What of a metric is worse: by a gate's rule, else beyond its threshold; None where nobody judges it."""
    gate = next((WATCHED_FACTS[one.name] for one in metric.alternatives if one.name in WATCHED_FACTS), None)
    if gate is not None:
        return lambda a, b: _lost(gate, a, b)
    if metric.better == "-":
        return None
    sign = 1.0 if metric.better == "lower" else -1.0

    def beyond(a: Floats, b: Floats) -> NDArray[np.bool_]:
        over = sign * (b - a)
        if metric.threshold_pp is not None:
            return over > metric.threshold_pp
        return over > metric.threshold * np.abs(a)

    return beyond


def latest(values: Floats, is_worse: IsWorse) -> StandingStep | None:
    """The last step for the worse that still holds; None where there is none. NaN is no number."""
    places = np.flatnonzero(~np.isnan(values))
    if len(places) < 2 or places[-1] != len(values) - 1:
        return None  # now there is no number: that is missing, not worse
    numbers = values[places]
    steps = np.flatnonzero(is_worse(numbers[:-1], numbers[1:]) & is_worse(numbers[:-1], numbers[-1:]))
    if not len(steps):
        return None
    last = int(steps[-1])
    return StandingStep(int(places[last]), int(places[last + 1]), int(places[-1]), len(steps) - 1)


def _lost(gate: WatchedFact, a: Floats, b: Floats) -> NDArray[np.bool_]:
    before, after = np.ceil(a / gate.step), np.ceil(b / gate.step)
    return after < before if gate.fewer else after > before
