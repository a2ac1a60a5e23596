"""Counters that repeat exactly, and counters that wobble."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.statistics import Verdict, counters


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


def test_a_wobble_is_learned_from_equal_builds() -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(1e6, 2e3, 40)
    learned = counters.counter_noise(a, a * (1 + rng.normal(0, 0.004, 40)))
    assert learned is not None
    assert 0.008 < learned < 0.022
    assert (
        counters.judge_counter(100, 100.7, better="lower", exact=False, noise=learned).verdict is Verdict.SAME
    )
    decision = counters.judge_counter(100, 106, better="lower", exact=False, noise=learned)
    assert decision.verdict is Verdict.WORSE
    assert "wobble" in decision.reason


def test_a_wobble_is_at_least_a_thousandth_and_needs_pairs() -> None:
    assert counters.counter_noise(np.full(8, 5.0), np.full(8, 5.0)) == counters.MIN_NOISE
    assert counters.counter_noise(np.full(4, 5.0), np.full(4, 5.0)) is None
    zeros = np.array([0.0, 0.0, 5.0, 5.0, 5.0, 5.0, np.nan])
    assert counters.counter_noise(zeros, np.full(7, 5.0)) is None, "a side of 0 says nothing"


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
