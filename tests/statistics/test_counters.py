"""Counters that repeat exactly, and counters that wobble."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.statistics import counters
from profiler.statistics.decision import Decision
from profiler.statistics.verdict import Verdict


def test_one_instruction_more_is_worse_where_counts_repeat() -> None:
    decision = counters.judge_counter(1_000_000, 1_000_001, better="lower", exact=True)
    assert decision.verdict is Verdict.WORSE
    assert decision.fails_gate
    assert counters.judge_counter(1_000_000, 1_000_000, better="lower", exact=True).verdict is Verdict.SAME
    assert counters.judge_counter(64, 72, better="-", exact=True).verdict is Verdict.CHANGED


def test_what_is_relevant_bounds_an_exact_counter_too() -> None:
    decision = counters.judge_counter(1000, 1005, better="lower", exact=True, margin=0.01)
    assert decision.verdict is Verdict.SAME
    assert "within 1 %" in decision.reason


def test_what_rounding_makes_is_no_change() -> None:
    """1280 bytes per cycle by two roads of arithmetic; the smallest change of a large count is one."""
    rounded = 1280.0000000000002
    decision = counters.judge_counter(1280.0, rounded, better="-", exact=True)
    assert (decision.verdict, decision.effect) == (Verdict.SAME, 0.0)
    wobble = counters.counter_noise(np.array([1280.0]), np.array([rounded]))
    assert wobble is not None
    assert wobble.repeats
    large = 10**14
    assert counters.judge_counter(large, large + 1, better="lower", exact=True).verdict is Verdict.WORSE


def learned(sd: float, pairs: int, seed: int = 1) -> counters.Wobble:
    rng = np.random.default_rng(seed)
    a = rng.normal(1e6, 2e3, pairs)
    noise = counters.counter_noise(a, a * (1 + rng.normal(0, sd, pairs)))
    assert noise is not None
    return noise


def judged(a: float, b: float, noise: counters.Wobble, margin: float = 0.0) -> Decision:
    return counters.judge_counter(a, b, better="lower", exact=False, noise=noise, margin=margin)


def test_a_wobble_is_learned_from_equal_builds() -> None:
    noise = learned(0.004, 50)
    assert 0.008 < noise.share(100) < 0.022
    assert judged(100, 100.7, noise).verdict is Verdict.SAME
    decision = judged(100, 106, noise)
    assert decision.verdict is Verdict.WORSE
    assert decision.rule == "counter"
    assert decision.p is not None
    assert decision.p < 0.002


def test_of_fewer_than_twenty_pairs_nothing_is_worse() -> None:
    decision = judged(100, 150, learned(0.004, 19))
    assert decision.verdict is Verdict.UNCLEAR
    assert "beyond all 19 A/A pairs, and 20 would tell" in decision.reason
    assert judged(100, 150, learned(0.004, 20)).verdict is Verdict.WORSE
    assert judged(100, 100.3, learned(0.004, 19)).verdict is Verdict.SAME


def test_a_wobble_is_at_least_a_thousandth() -> None:
    still = counters.counter_noise(np.full(20, 5.0), np.full(20, 5.0))
    assert still is not None
    assert still.share(5.0) == counters.MIN_NOISE
    assert judged(1e6, 1e6 + 900, still).verdict is Verdict.UNCLEAR
    assert counters.counter_noise(np.array([np.nan]), np.array([1.0])) is None


def test_the_first_change_of_a_counter_that_repeated_takes_a_hundred_pairs() -> None:
    """A counter that is exact but for one launch in 50 repeats in most floors of 20 pairs."""
    decisions = []
    for pairs in (20, 50, 120):
        still = counters.counter_noise(np.full(pairs, 1e6), np.full(pairs, 1e6))
        assert still is not None
        decisions.append(judged(1e6, 1.3e6, still))
    few, more, enough = decisions
    assert few.verdict is more.verdict is Verdict.UNCLEAR
    assert few.p == pytest.approx(1 / 21)
    assert few.reason == (
        "+30 %, and it repeated exactly in 20 A/A pairs: 100 would tell whether it always does"
    )
    assert few.interval is few.detectable is None
    assert enough.verdict is Verdict.WORSE
    assert enough.reason == "+30 %, where all 120 A/A pairs are equal"


def test_few_pairs_that_are_all_equal_excuse_nothing() -> None:
    still = counters.counter_noise(np.full(5, 1e6), np.full(5, 1e6))
    assert still is not None
    assert not still.excuses(1e6, 1.3e6)


def test_zeros_count() -> None:
    """Between 0 and 4 by itself: 0 to 2 is no change, 0 to 3,000 is one."""
    rng = np.random.default_rng(2)
    a, b = (rng.poisson(1.0, 60).astype(float) for _ in range(2))
    noise = counters.counter_noise(a, b)
    assert noise is not None
    assert noise.pairs == 60
    assert noise.offset > 1
    assert judged(0, 2, noise).verdict is judged(2, 0, noise).verdict is Verdict.SAME
    assert judged(0, 3000, noise).verdict is Verdict.WORSE


def test_a_first_zero_says_how_many_pairs_had_none() -> None:
    none, many = (counters.counter_noise(np.zeros(pairs), np.zeros(pairs)) for pairs in (20, 120))
    assert none is not None
    assert many is not None
    decision = judged(0, 3, none)
    assert decision.verdict is Verdict.UNCLEAR
    assert decision.p == pytest.approx(1 / 21)
    assert judged(0, 3, many).verdict is Verdict.WORSE


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [20, pytest.param(50, marks=pytest.mark.long)])
def test_equal_builds_are_called_changed_in_one_of_a_hundred_at_most(pairs: int) -> None:
    """Counts of equal launches: 3 on average, zeros among them, and 1e6 give or take 0.3 %."""
    rng = np.random.default_rng(pairs)
    wrong = []
    for number in range(400):
        draw = (lambda n: rng.poisson(3.0, n)) if number % 2 else (lambda n: rng.normal(1e6, 3e3, n))
        noise = counters.counter_noise(draw(pairs), draw(pairs))
        assert noise is not None
        wrong += [judged(*pair, noise).fails_gate for pair in zip(draw(20), draw(20), strict=True)]
    assert np.mean(wrong) < 0.01


def test_without_pairs_what_wobbles_and_moved_is_unclear() -> None:
    decision = counters.judge_counter(50.0, 52.0, better="higher", exact=False, margin=0.01)
    assert decision.verdict is Verdict.UNCLEAR
    assert (
        counters.judge_counter(50.0, 50.1, better="higher", exact=False, margin=0.01).verdict is Verdict.SAME
    )


def test_from_zero_there_is_a_verdict_and_no_share() -> None:
    decision = counters.judge_counter(0, 8, better="lower", exact=True)
    assert decision.verdict is Verdict.WORSE
    assert decision.effect is None
    assert "from 0 to 8" in decision.reason


def test_missing_is_no_number() -> None:
    with pytest.raises(ValueError, match="missing"):
        counters.judge_counter(1.0, float("nan"), better="lower", exact=True)


def test_a_counter_that_changes_its_sign_is_not_the_same() -> None:
    """By size alone -1 and 1 are equal; a wobble of 2 % is no way from one to the other."""
    seen = np.linspace(100.0, 102.0, 60)
    noise = counters.counter_noise(seen, np.full(60, 101.0))
    for a, b in ((-1.0, 1.0), (1.0, -1.0), (-5.0, 4.9), (-1e-9, 1e9)):
        for exact in (True, False):
            decision = counters.judge_counter(a, b, better="lower", exact=exact, noise=noise, margin=0.01)
            moved = Verdict.WORSE if b > a else Verdict.BETTER
            # Of 60 pairs none went through 0: whether the first does is told by 100.
            assert decision.verdict is (moved if exact else Verdict.UNCLEAR), (a, b, exact)
    for a, b in ((0.0, -0.0), (-0.0, 0.0), (-1.0, -1.0)):
        assert counters.judge_counter(a, b, better="lower", exact=True, noise=noise).verdict is Verdict.SAME


def test_a_counter_that_wobbles_around_zero_is_excused_within_its_wobble() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.normal(0.0, 1.0, (2, 400))
    noise = counters.counter_noise(a, b)
    assert noise is not None
    assert counters.judge_counter(-0.8, 0.7, better="lower", exact=False, noise=noise).verdict is Verdict.SAME
    assert (
        counters.judge_counter(-1.0, 1e9, better="lower", exact=False, noise=noise).verdict is Verdict.WORSE
    )
