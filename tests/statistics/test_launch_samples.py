"""Durations of several launches per side, judged by their medians."""

from __future__ import annotations

import math

import numpy as np
import pytest

from profiler.statistics.counters import MIN_NOISE
from profiler.statistics.decision import Decision, Interval
from profiler.statistics.launch_samples import judge_samples
from profiler.statistics.ratios import t_quantile
from profiler.statistics.verdict import Verdict

# Logarithms in steps of 0.001, in an order in which neighbours lie apart. Of five, Yuen's variance of the
# mean is 2/3 of 1e-6; neighbours may hide a correlation of a half, which triples it.
FIVE = 1e5 * np.exp(0.001 * np.array([2, 0, 4, 1, 3]))
VARIANCE_OF_FIVE = 2e-6 * math.pi / 2
FREEDOM_OF_FIVE = 2  # three are left when one is cut at each end


def judged(a: np.ndarray, b: np.ndarray, better: str = "lower", margin: float = 0.02) -> Decision:
    return judge_samples(a, b, better=better, margin=margin)


def half_width(decision: Decision) -> float:
    """Half of the interval's width, as a logarithm."""
    assert decision.interval is not None
    return 0.5 * (math.log1p(decision.interval.high) - math.log1p(decision.interval.low))


def test_noisy_launches_are_unclear_and_an_interval_holds_the_true_change() -> None:
    noise = np.random.default_rng(5)
    held = false = 0
    for _ in range(200):
        a, b = (1e5 * np.exp(noise.normal(0, 0.03, count)) for count in (12, 9))
        decision = judge_samples(a, b, better="lower", margin=0.02)
        assert decision.interval is not None
        held += decision.interval.low <= 0 <= decision.interval.high
        false += decision.verdict.traits.moved
    assert held >= 196
    assert false <= 2


def test_the_interval_is_that_of_trimmed_means_whose_neighbours_are_related() -> None:
    decision = judged(FIVE, 1.1 * FIVE)
    half = float(t_quantile(0.995, 2 * FREEDOM_OF_FIVE)) * math.sqrt(2 * VARIANCE_OF_FIVE)
    assert decision.effect == pytest.approx(0.1)
    assert decision.interval == pytest.approx(
        Interval(1.1 * math.exp(-half) - 1, 1.1 * math.exp(half) - 1), rel=1e-6
    )
    assert decision.verdict is Verdict.WORSE
    assert decision.fails_gate
    assert decision.rounds == 5
    assert decision.detectable == 0.02, "the margin, as the interval is narrower"
    assert judged(FIVE, FIVE, margin=0.001).detectable == pytest.approx(half)


@pytest.mark.parametrize("few", [1, 2])
def test_a_launch_or_two_vary_as_the_other_side_does_whichever_side_they_are(few: int) -> None:
    decision, turned = judged(1.1 * FIVE[:few], FIVE), judged(FIVE, 1.1 * FIVE[:few])
    of_few = VARIANCE_OF_FIVE * 5 / few
    variance = of_few + VARIANCE_OF_FIVE
    freedom = FREEDOM_OF_FIVE * variance**2 / (of_few**2 + VARIANCE_OF_FIVE**2)
    expected = float(t_quantile(0.995, freedom)) * math.sqrt(variance)
    assert half_width(decision) == pytest.approx(half_width(turned)) == pytest.approx(expected)
    assert decision.effect is not None
    assert turned.effect is not None
    assert (1 + decision.effect) * (1 + turned.effect) == pytest.approx(1)
    assert decision.rounds == turned.rounds == few


def test_launches_that_follow_one_another_count_for_fewer() -> None:
    """A correlation of at most 0.9, of at least what 100 launches may hide: 7 in 100."""
    values = 1e5 * np.exp(np.linspace(0, 0.01, 100))
    rising, mixed = values, np.concatenate([values[::2], values[1::2][::-1]])
    alternating = np.stack([values[:50], values[:49:-1]], axis=1).ravel()
    assert half_width(judged(rising, rising)) == half_width(judged(mixed, mixed))
    ratio = half_width(judged(rising, rising)) / half_width(judged(alternating, alternating))
    assert ratio == pytest.approx(math.sqrt(19 / (1.07 / 0.93)))


def test_equal_launches_have_the_least_noise_that_a_counter_has() -> None:
    decision = judged(np.full(3, 1e5), np.full(3, 1e5))
    assert half_width(decision) == pytest.approx(float(t_quantile(0.995, 4)) * math.sqrt(2 / 3) * MIN_NOISE)
    assert decision.verdict is Verdict.SAME
    assert decision.effect == 0


def test_a_change_is_judged_by_its_direction_margin_and_interval() -> None:
    for better, faster, slower in (
        ("lower", Verdict.BETTER, Verdict.WORSE),
        ("higher", Verdict.WORSE, Verdict.BETTER),
        ("-", Verdict.CHANGED, Verdict.CHANGED),
    ):
        assert judged(FIVE, 0.9 * FIVE, better).verdict is faster
        assert judged(FIVE, 1.1 * FIVE, better).verdict is slower
    for factor in (0.9, 1.1):
        within = judged(FIVE, factor * FIVE, margin=0.2)
        assert within.verdict is Verdict.SAME
        assert "within 20 %" in within.reason
        assert not within.fails_gate
    for factor in (0.97, 1.03):  # over the margin, and an interval that has both 0 and the margin in it
        unclear = judged(np.array([1e5, 1.1e5, 0.9e5]), factor * np.array([1e5, 1.1e5, 0.9e5]))
        assert unclear.verdict is Verdict.UNCLEAR
        assert "medians of 3 launches each; the interval includes 0; noise between" in unclear.reason
    for factor in (0.985, 1.015):  # one end of the interval lies beyond the margin
        unclear = judged(FIVE, factor * FIVE)
        assert unclear.verdict is Verdict.UNCLEAR
        assert "; the interval excludes 0, but includes 2 %; " in unclear.reason
    assert "; the interval excludes 0; " in judged(FIVE, 1.1 * FIVE).reason


def test_launches_that_lie_orders_of_magnitude_apart_have_an_interval_that_is_a_number() -> None:
    wild = np.array([1.0, 1e60, 1e120])
    interval = judged(wild, wild).interval
    assert interval is not None
    assert interval.low == -1
    assert 1e300 < interval.high < math.inf


@pytest.mark.parametrize("bad", [[0.0, 1.0, 1.0], [float("nan")] * 3, []])
def test_durations_that_are_none_are_refused(bad: list[float]) -> None:
    for a, b in ((np.array(bad), FIVE), (FIVE, np.array(bad)), (FIVE[:2], FIVE[:2])):
        with pytest.raises(ValueError, match="at least 3"):
            judged(a, b)
