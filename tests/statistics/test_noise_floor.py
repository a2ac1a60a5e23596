"""Stored baselines and their noise floors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from profiler.statistics.multiple_testing import judge_together
from profiler.statistics.noise_floor import (
    NoiseFloor,
    floor_of_ratios,
    floor_of_sessions,
    judge_stored_baseline,
    shorter_ns,
    typical_ns,
    typical_pair_ns,
)
from profiler.statistics.verdict import Verdict


def run(level: float, seed: int) -> np.ndarray:
    return 1e6 * level * np.exp(np.random.default_rng(seed).normal(0, 0.003, 100))


def floor_with_sd(sd: float, pairs: int = 20) -> NoiseFloor:
    return floor_of_ratios(np.random.default_rng(4).normal(0, sd, pairs))


def even_floor(pairs: int) -> NoiseFloor:
    """Pairs up to 1 % apart, in no order."""
    sizes = np.linspace(0.0001, 0.01, pairs)
    return floor_of_ratios(np.random.default_rng(5).permutation(sizes))


def test_without_a_floor_a_difference_is_unclear_never_the_same() -> None:
    for b in (run(1.0, 2), run(1.3, 2)):
        decision = judge_stored_baseline(run(1.0, 1), b, None)
        assert decision.verdict is Verdict.UNCLEAR
        assert "no noise floor" in decision.reason
        assert decision.detectable is None


def test_a_floor_of_too_few_pairs_is_none() -> None:
    decision = judge_stored_baseline(run(1.0, 1), run(1.3, 2), floor_with_sd(0.005, 19))
    assert decision.verdict is Verdict.UNCLEAR
    assert "19 A/A pairs" in decision.reason


def test_beyond_the_floor_is_worse_and_within_it_the_same_with_what_would_have_shown() -> None:
    noise = floor_with_sd(0.008)
    worse = judge_stored_baseline(run(1.0, 1), run(1.06, 2), noise)
    assert worse.verdict is Verdict.WORSE
    assert worse.fails_gate
    assert judge_stored_baseline(run(1.06, 1), run(1.0, 2), noise).verdict is Verdict.BETTER
    same = judge_stored_baseline(run(1.0, 1), run(1.01, 2), noise)
    assert same.verdict is Verdict.SAME
    assert not same.fails_gate
    assert same.detectable is not None
    assert same.detectable > 0.02
    assert same.interval is not None
    assert same.interval.low < 0 < same.interval.high


def test_a_quiet_floor_is_never_finer_than_the_margin() -> None:
    assert (
        judge_stored_baseline(run(1.0, 1), run(1.003, 1), floor_of_ratios(np.zeros(20))).verdict
        is Verdict.SAME
    )
    assert (
        judge_stored_baseline(run(1.0, 1), run(1.006, 1), floor_of_ratios(np.zeros(20))).verdict
        is Verdict.WORSE
    )


def test_no_pair_of_equal_builds_that_was_seen_is_a_change() -> None:
    """A GPU that throttles now and then: most A/A pairs are close, one is not."""
    ratios = np.full(20, 0.002)
    ratios[3] = -0.09
    noise = floor_of_ratios(ratios)
    assert noise.largest == pytest.approx(0.09)
    assert judge_stored_baseline(run(1.0, 1), run(1.08, 2), noise).verdict is Verdict.SAME


def test_far_beyond_the_largest_of_few_pairs_is_unclear_and_says_that_more_would_tell() -> None:
    few, many = (even_floor(pairs) for pairs in (20, 100))
    decision = judge_stored_baseline(run(1.0, 1), run(1.02, 1), few)
    assert decision.verdict is Verdict.UNCLEAR
    assert decision.reason.endswith("beyond all of its pairs: 50 would tell noise from a change")
    assert judge_stored_baseline(run(1.0, 1), run(1.012, 1), few).verdict is Verdict.SAME
    assert decision.p == pytest.approx(1 / 21 * (0.01 / np.log(1.02)) ** 1.5, rel=1e-3)
    assert judge_stored_baseline(run(1.0, 1), run(1.02, 1), many).verdict is Verdict.WORSE


def test_a_change_by_which_only_the_newest_pairs_doubt_is_unclear_and_says_so() -> None:
    sizes = np.random.default_rng(5).permutation(np.linspace(0.0001, 0.01, 100))
    floor = floor_of_ratios(np.concatenate((sizes, 1.3 * sizes[:20])))
    assert floor.growth > 1.3
    assert floor.pairs == 120
    barely, clearly = (judge_stored_baseline(run(1.0, 1), run(level, 1), floor) for level in (1.014, 1.05))
    assert barely.verdict is Verdict.UNCLEAR
    assert "the newest vary more, and 20 to 40 new pairs would tell" in barely.reason
    assert clearly.verdict is Verdict.WORSE
    assert barely.p is not None
    assert barely.p > 0.01, "also among other rows"


def test_a_heavy_tail_of_many_pairs_is_unclear_until_changes_are_counted() -> None:
    sizes = np.random.default_rng(5).permutation(np.geomspace(0.0001, 0.03, 60))
    decision = judge_stored_baseline(run(1.0, 1), run(1.06, 1), floor_of_ratios(sizes))
    assert decision.verdict is Verdict.UNCLEAR
    assert decision.reason.endswith("beyond all of its pairs: 100 would tell noise from a change")


@pytest.mark.parametrize("far", [0.04, 0.26])
def test_one_pair_far_out_bounds_the_limit_and_what_lies_between_is_unclear(far: float) -> None:
    close = 0.003 * np.random.default_rng(0).normal(size=19)
    floor = floor_of_ratios(np.r_[close, far])
    assert far < floor.limit < 2.9 * far
    assert floor.same_limit <= floor.limit < floor.changed_limit
    a = run(1.0, 1)
    within, between = (
        judge_stored_baseline(a, a * np.exp(size), floor) for size in (0.9 * floor.limit, 1.1 * floor.limit)
    )
    assert within.verdict is Verdict.SAME
    assert between.verdict is Verdict.UNCLEAR
    assert between.rerun_tells
    assert not between.fails_gate
    assert between.p is not None
    assert between.p > 0.01


def test_the_bound_makes_no_change_of_what_was_none() -> None:
    """Calls that mostly tie: by the bound alone 2 % of equal pairs would be changes."""
    rng = np.random.default_rng(9)

    def ratios(pairs: int) -> np.ndarray:
        kinds = rng.choice((0.05, 0.5, 5), pairs, p=(0.8, 0.15, 0.05))
        drawn: np.ndarray = rng.normal(0, 0.006, pairs) * kinds
        return drawn

    beyond, changed = [], []
    for _ in range(300):
        floor, new = floor_of_ratios(ratios(20)), np.abs(ratios(200))
        beyond.append((new > floor.limit).mean())
        changed.append((new > floor.changed_limit).mean())
    assert np.mean(changed) < 0.01 < np.mean(beyond)


def test_a_floor_is_no_finer_than_a_tick_that_all_its_pairs_stick_to() -> None:
    stuck = np.full(100, 5 * 1024.0)
    sticking = floor_of_sessions([(stuck, stuck)] * 20)
    assert sticking.tick == pytest.approx(np.log(6 / 5))
    assert sticking.limit == sticking.changed_limit == sticking.tick
    moving = floor_of_sessions([(stuck, stuck)] * 19 + [(run(1.0, 1), run(1.0, 2))])
    assert moving.tick == 0


@pytest.mark.parametrize("ticks", [4, 6])
def test_two_runs_one_tick_apart_are_unclear_and_two_ticks_are_not(ticks: int) -> None:
    floor = floor_of_ratios(np.zeros(20))
    a, b = np.full(100, 5 * 1024.0), np.full(100, ticks * 1024.0)
    decision = judge_stored_baseline(a, b, floor)
    assert decision.verdict is Verdict.UNCLEAR
    assert not decision.fails_gate
    assert judge_stored_baseline(a, a, floor).verdict is Verdict.SAME
    assert judge_stored_baseline(a, a + 2 * (b - a), floor).verdict.traits.moved
    assert judge_stored_baseline(a[:1], b[:1], floor).verdict.traits.moved, "one sample shows no tick"


def test_twenty_rows_of_floors_are_judged_together_as_live_pairs_are() -> None:
    """At 1 % each, 20 equal builds would give a false alarm in 18 % of gates."""
    noise = even_floor(100)
    quiet = [judge_stored_baseline(run(1.0, 1), run(1.0, 1), noise)] * 19
    barely, clearly = (judge_stored_baseline(run(1.0, 1), run(level, 1), noise) for level in (1.012, 1.05))
    assert barely.verdict is clearly.verdict is Verdict.WORSE
    assert judge_together([*quiet, barely])[-1].verdict is Verdict.UNCLEAR
    assert judge_together([*quiet, clearly])[-1].verdict is Verdict.WORSE


def test_a_floor_is_made_of_pairs_of_sessions() -> None:
    pairs = [(run(1.0, 2 * seed), run(1.0 + 0.001 * seed, 2 * seed + 1)) for seed in range(20)]
    noise = floor_of_sessions(pairs)
    assert noise.pairs == 20
    assert noise.largest == pytest.approx(0.019, abs=0.002)
    assert noise.limit > noise.largest
    assert noise.process_sd == pytest.approx(noise.sd / 2**0.5)


def test_no_pairs_make_a_floor_that_judges_nothing() -> None:
    noise = floor_of_sessions([])
    assert (noise.pairs, noise.sd, noise.largest, noise.judges) == (0, 0, 0, False)
    assert judge_stored_baseline(run(1.0, 1), run(1.3, 2), noise).rounds == 0


def test_a_floor_that_is_another_s_says_whose_and_judges_nothing() -> None:
    decision = judge_stored_baseline(
        run(1.0, 1), run(1.3, 1), replace(even_floor(60), differs_in="family softmax")
    )
    assert decision.verdict is Verdict.UNCLEAR
    assert "is of family softmax" in decision.reason
    assert decision.effect == pytest.approx(0.3)
    assert decision.rounds == 60


def test_a_pair_is_chosen_for_by_the_shorter_of_its_medians() -> None:
    short, long = [1e3, 2e3, 9e3], [5e3, 6e3, 7e3]
    assert shorter_ns(short, long) == shorter_ns(long, short) == 2e3


def test_short_calls_are_averaged_and_long_ones_have_a_median() -> None:
    short = np.array([40_960.0] * 6 + [41_984.0] * 4)
    assert typical_ns(short) == pytest.approx(short.mean())
    assert typical_ns(short * 1000) == pytest.approx(40_960_000.0)
    assert typical_ns(np.stack([short, short * 1000])).shape == (2,)


@pytest.mark.parametrize("bad", [[], [1e6, np.nan], [0.0, 1e6]])
def test_a_sample_that_is_no_latency_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="positive, finite"):
        typical_ns(np.array(bad))
    with pytest.raises(ValueError, match="finite"):
        floor_of_ratios(np.array([np.nan]))


def test_a_change_beyond_a_factor_of_20_asks_for_the_units() -> None:
    decision = judge_stored_baseline(run(1.0, 1), run(0.001, 2), even_floor(60))
    assert decision.verdict is Verdict.UNCLEAR
    assert "both in ns" in decision.reason
    assert not decision.fails_gate


def test_two_runs_about_100_us_are_judged_by_one_statistic() -> None:
    """4 of 100 calls take 2.2 times as long: a mean beside a median of the other run is 5 % more."""
    rng = np.random.default_rng(4)

    def run(level_ns: float) -> np.ndarray:
        ns = level_ns * np.exp(rng.normal(0, 0.002, 100))
        ns[:4] *= 2.2
        return ns

    floor = floor_of_sessions([(run(60e3), run(60e3)) for _ in range(50)])
    assert floor.limit < 0.01
    for levels in ((99.9e3, 100.1e3), (100.1e3, 99.9e3)):
        decision = judge_stored_baseline(run(levels[0]), run(levels[1]), floor)
        assert decision.verdict is Verdict.SAME, decision.reason
    a, b = typical_pair_ns(run(99.7e3), run(102.9e3))
    assert b / a == pytest.approx(102.9 / 99.7, rel=0.002)


def test_one_sample_ten_times_as_long_hides_no_change_between_two_runs() -> None:
    rng = np.random.default_rng(5)

    def run(level_ns: float, *, wild: bool) -> np.ndarray:
        ns = level_ns * np.exp(rng.normal(0, 0.004, 100))
        ns[0] *= 10 if wild else 1
        return ns

    floor = floor_of_sessions(
        [(run(40e3, wild=pair % 5 == 0), run(40e3, wild=pair % 4 == 0)) for pair in range(50)]
    )
    decision = judge_stored_baseline(run(40e3, wild=True), run(42e3, wild=False), floor)
    assert decision.verdict is Verdict.WORSE
    assert decision.effect == pytest.approx(0.05, abs=0.01)
    assert float(typical_ns(run(40e3, wild=True))) == pytest.approx(40e3, rel=0.01)


def test_versions_of_one_run_without_shared_rounds_are_not_called_two_runs() -> None:
    ns = np.full(10, 1e6)
    decision = judge_stored_baseline(ns, 1.1 * ns, None, sides="two versions that share no rounds")
    assert "between two versions that share no rounds" in decision.reason
