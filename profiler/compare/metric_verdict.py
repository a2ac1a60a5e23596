"""Judges one metric of two launches: by its direction and threshold, or by learned noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.compare.counter_noise import CounterNoise
from profiler.compare.wholes import Whole
from profiler.evidence import formatting
from profiler.evidence.metric_table import Metric
from profiler.evidence.values import Evidence, State, Value
from profiler.statistics.counters import Wobble, are_equal, judge_counter
from profiler.statistics.decision import MIN_SAMPLES, Decision, Interval, share_text
from profiler.statistics.launch_samples import judge_samples
from profiler.statistics.verdict import Verdict

SHORT_NS = 50_000  # of shorter launches, one per side cannot tell a change from noise
# Equal launches of one report were seen up to 14 % apart at 2 µs; those of a sort, by their data, 69 %.
_NOISE_OF_SHORT_PCT = 50.0
DETERMINISTIC_GROUPS = ("instructions", "launch", "spills")
# Launches of one report share clocks and session, so their noise says nothing about two runs.
SESSION_GROUPS = ("time", "clock")

# The numbers of several launches per side: of A's and of B's, in their order.
Samples = tuple[NDArray[np.float64], NDArray[np.float64]]


class Judgement(NamedTuple):
    """The verdict on one metric, and why."""

    verdict: Verdict
    reason: str
    change_pct: float | None = None  # of A; None without two numbers, or where A is 0 and B is not
    limit: float | None = None  # share of A that learned noise allows; None: not used, or A is 0
    p: float | None = None  # the chance that equal builds differ as much; None: noise was not used
    sampled: Interval | None = None  # of several launches per side; None where they did not judge

    @property
    def interval(self) -> Interval | None:
        """The change give or take noise, learned or of the launches, as shares of A; None without either."""
        return self.sampled or noise_interval(self.change_pct, self.limit)


def judge(
    metric: Metric,
    names: tuple[str, str],
    a: Value,
    b: Value,
    *,
    short: bool,
    noise: Callable[[str, bool], CounterNoise | None] | None = None,
    whole: Whole | None = None,
    samples: Samples | None = None,
) -> Judgement:
    """Judge b against a. `names` are the ncu names that the two were read by; `short`: shorter than SHORT_NS.

    `whole` is what the metric is a part of, by its threshold; None where that is not known: the threshold
    then holds alone. `noise` looks up the learned noise of a metric, from its ncu name and whether only pairs
    of two runs count. It is called only for metrics that do not repeat exactly. Without enough of it the
    `samples` of several launches per side judge, whose medians a and b then are.
    """
    if a.number is None or b.number is None:
        return Judgement(Verdict.MISSING, missing_reason(a, b))
    if names[0] != names[1]:
        return Judgement(Verdict.NOT_COMPARABLE, f"different counters: {names[0]} and {names[1]}")
    if a.unit != b.unit:
        units = f"{a.unit or 'none'} and {b.unit or 'none'}"
        return Judgement(Verdict.NOT_COMPARABLE, f"{names[0]} has different units: {units}")
    # Two computations of one number may round apart.
    number = a.number if are_equal(a.number, b.number) else b.number
    change_pct = _percent(a.number, number)
    difference = number - a.number
    same_samples = samples is not None and np.array_equal(np.sort(samples[0]), np.sort(samples[1]))
    if not difference and (same_samples or samples is None):
        return Judgement(Verdict.SAME, "equal", change_pct)
    # What is next to nothing of its whole matters to nobody, however large a share of itself it gained.
    if whole and abs(difference) <= metric.whole_share * whole.number:
        sizes = " → ".join(str(formatting.quantity(value)) for value in (a, b))
        reason = f"{sizes} of {whole.words}: a change under {share_text(metric.whole_share)} of {whole.name}"
        return Judgement(Verdict.SAME, reason, change_pct)
    threshold, exceeds = _threshold(metric, a.number, difference)
    # What is computed from several counters, of several replay passes, does not repeat as a count does.
    exact = is_exact(metric, a.unit) and a.derivation is None
    if noise and metric.evidence is Evidence.MEASURED and not exact:
        between_runs = metric.group in SESSION_GROUPS or "/s" in a.unit or a.unit == "hz"
        learned = noise(names[0], between_runs)
        # Short launches vary so differently that only pairs of the same kernel count.
        if learned and (learned.kernel or not short):
            decision = decide_inexact(metric, a.number, b.number, learned.wobble)
            if learned.judges or (exceeds and learned.wobble.excuses(a.number, b.number)):
                reason = f"{decision.reason}; {learned.words}"
                p = decision.p if learned.judges else None
                return Judgement(decision.verdict, reason, change_pct, decision.detectable, p)
    if samples and _are_enough(samples):
        decision = judge_samples(*samples, better=metric.better, margin=metric.threshold)
        return Judgement(decision.verdict, decision.reason, change_pct, sampled=decision.interval)
    counts = " and ".join(str(len(side)) for side in samples) if samples else ""
    if not exceeds and samples and _lie_on_both_sides(metric, *samples):
        reason = f"within {threshold}, but {counts} launches are over it in both directions"
        return Judgement(Verdict.UNCLEAR, reason, change_pct)
    if not exceeds:
        return Judgement(Verdict.SAME, f"within {threshold}", change_pct)
    off = a.derivation.most_off_pct if a.derivation else None
    if off is not None and change_pct is not None and abs(change_pct) <= off:
        reason = f"over {threshold}, but by a stand-in that may be {off:g} % off"
        return Judgement(Verdict.UNCLEAR, reason, change_pct)
    if metric.better == "-":
        reason = f"over {threshold}; neither direction is better by itself"
        return Judgement(Verdict.CHANGED, reason, change_pct)
    if short and not exact:
        is_far = change_pct is None or abs(change_pct) >= _NOISE_OF_SHORT_PCT
        why = "is judged by several a side, not by one" if is_far else "moves as much by itself"
        reason = (
            f"over {threshold}, but a launch under {SHORT_NS // 1000} µs {why}: "
            "profile several launches per side, or time many calls"
        )
        return Judgement(Verdict.UNCLEAR, reason, change_pct)
    if samples and _overlap(*samples):
        return Judgement(Verdict.UNCLEAR, f"over {threshold}, but {counts} launches overlap", change_pct)
    verdict = Verdict.BETTER if (difference < 0) == (metric.better == "lower") else Verdict.WORSE
    few = f"{counts} launches" if samples else "one launch per side"
    certainty = f"unreplicated: {few}" if metric.evidence is Evidence.MEASURED else "exact"
    return Judgement(verdict, f"over {threshold}, {metric.better} is better; {certainty}", change_pct)


def _are_enough(samples: Samples | None) -> bool:
    """Whether there are launches enough to judge by, each with a number above 0."""
    return bool(
        samples
        and max(map(len, samples)) >= MIN_SAMPLES
        and all(np.isfinite(side).all() and (side > 0).all() for side in samples)
    )


def _overlap(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    return bool(a.max() >= b.min() and b.max() >= a.min())


def _lie_on_both_sides(metric: Metric, a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    """Whether one side has launches that are better and launches that are worse than the other's median."""
    inner, outer = sorted((a, b), key=np.ptp)
    middle = float(np.median(inner))
    ends = [float(end) - middle for end in (outer.min(), outer.max())]
    return ends[0] < 0 < ends[1] and all(_threshold(metric, middle, end)[1] for end in ends)


def decide_inexact(metric: Metric, a: float, b: float, noise: Wobble | None) -> Decision:
    """Judge a counter that does not repeat exactly: without known noise a larger change is unclear."""
    points = metric.threshold_pp
    if points is None:
        margin = metric.threshold
    else:
        margin = points / abs(a) if a else math.inf if abs(b) <= points else 0.0
    return judge_counter(a, b, better=metric.better, exact=False, noise=noise, margin=margin)


def noise_interval(change_pct: float | None, noise_share: float | None) -> Interval | None:
    """A change give or take noise, as shares of A; None where either is unknown."""
    if change_pct is None or noise_share is None:
        return None
    return Interval(change_pct / 100 - noise_share, change_pct / 100 + noise_share)


def missing_reason(a: Value, b: Value) -> str:
    """Which side has no number, and why; "" where both have one."""
    if a.number is None and b.number is None and a.state is b.state:
        words = _state(a)
        return f"{words} in {'either' if words.startswith(('not ', 'no ')) else 'both'}"
    sides = [f"{_state(value)} in {side}" for side, value in (("A", a), ("B", b)) if value.number is None]
    return ", ".join(sides)


def is_exact(metric: Metric, unit: str) -> bool:
    """Whether equal code on equal data repeats the value exactly: counts do, rates and shares do not."""
    rate = "%" in unit or "cycle" in unit or unit.endswith(("/s", "/second"))
    return metric.group in DETERMINISTIC_GROUPS and not rate


def _state(value: Value) -> str:
    return "a text" if value.state is State.PRESENT else value.state.words


def _percent(a: float, b: float) -> float | None:
    """The change in per cent of A; None where A alone is 0, and where the result overflows."""
    if a == b:
        return 0.0
    change = 100 * (b - a) / abs(a) if a else math.inf
    return change if math.isfinite(change) else None


def _threshold(metric: Metric, start: float, difference: float) -> tuple[str, bool]:
    """The threshold in words, and whether the difference exceeds it; a change from 0 exceeds any share."""
    if metric.threshold_pp is not None:
        return f"{metric.threshold_pp:g} pp", abs(difference) > metric.threshold_pp
    return f"{100 * metric.threshold:g} %", not start or abs(difference) > metric.threshold * abs(start)
