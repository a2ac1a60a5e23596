"""How rare a change is among A/A pairs, and how many of them are of the noise there is now."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.statistics.exceedance import (
    HEAVY_TAIL,
    LEAST_TAIL,
    LIGHT_TAIL,
    known_tail,
    likely_tail,
    limits,
    newest_alike,
    noise_growth,
    p_values,
)
from profiler.statistics.multiple_testing import discoveries
from profiler.statistics.noise_floor import floor_of_ratios


def test_within_the_pairs_p_counts_those_that_lie_as_far_apart() -> None:
    seen = np.arange(1.0, 100.0) / 100
    assert p_values(np.array([0.005, 0.5, -0.985]), seen) == pytest.approx([1.0, 0.51, 0.02])


def test_beyond_the_largest_pair_p_falls_as_a_power() -> None:
    seen = np.linspace(0.001, 0.01, 20)
    once, twice = p_values(np.array([0.010001, 0.020002]), seen)
    assert once == pytest.approx(1 / 21, rel=1e-3)
    assert twice == pytest.approx(once / 2**HEAVY_TAIL)


def test_a_tail_is_light_where_enough_pairs_lie_close_together() -> None:
    close = np.linspace(0.003, 0.006, 60)
    wide = np.array([*close[:-1], 0.1])
    assert likely_tail(close) == LIGHT_TAIL
    assert likely_tail(wide) == HEAVY_TAIL
    assert known_tail(close) == LIGHT_TAIL
    assert known_tail(wide) == HEAVY_TAIL, "one far out is no tail"
    assert known_tail(close[::2]) == HEAVY_TAIL, "of few pairs nobody knows"
    assert known_tail(close, 40) == HEAVY_TAIL, "60 sizes, but of 40 pairs of sessions"


def test_a_tail_is_heavier_where_the_largest_pairs_lie_far_apart() -> None:
    """Short calls that mostly tie, and at times lie 100 times as far apart."""
    ties = np.array([0.0] * 5 + [0.0002] * 9 + [0.0005, 0.001, 0.002, 0.005, 0.012, 0.03])
    assert known_tail(ties) == LEAST_TAIL
    assert limits(ties, 0.01) > 0.03 * 20
    assert known_tail(np.array([0.0] * 15 + [0.001] * 5)) == HEAVY_TAIL, "by one tick or none"
    assert known_tail(np.full(20, 0.001)) == HEAVY_TAIL
    rng = np.random.default_rng(8)
    assert (known_tail(rng.normal(size=(1000, 20))) < HEAVY_TAIL).mean() < 0.15
    assert (known_tail(rng.standard_t(1, (1000, 20))) == LEAST_TAIL).mean() > 0.5


def test_of_few_pairs_one_far_out_is_a_tail_until_more_tell() -> None:
    """Close pairs and one 100 times as far apart: 20 leave open whether one in 20 lies there, 50 do not."""
    close = np.linspace(0.0002, 0.0006, 19)
    few, many = np.array([*close, 0.04]), np.array([*close, *close, *close, 0.04])
    assert known_tail(few) == LEAST_TAIL
    assert known_tail(many) == HEAVY_TAIL
    floor = floor_of_ratios(few)
    assert floor.same_limit < 0.2 < floor.changed_limit, "between them it is unclear"
    assert floor.limit == pytest.approx(0.04 * (1 / 21 / 0.01) ** (1 / HEAVY_TAIL))
    assert known_tail(np.array([*close, 0.0024])) == HEAVY_TAIL, (
        "six medians are within what normal noise does"
    )


def test_gates_by_20_pairs_that_mostly_tie_rarely_fail_by_equal_builds() -> None:
    rng = np.random.default_rng(13)

    def sizes(count: int) -> np.ndarray:
        kinds = rng.choice((0.05, 0.5, 5), (4000, count), p=(0.8, 0.15, 0.05))
        drawn: np.ndarray = np.abs(rng.normal(0, 0.006, (4000, count))) * kinds
        return drawn

    p = p_values(sizes(20), sizes(20))
    assert (p <= 0.01).mean() < 0.009
    assert (discoveries(p) & (p <= 0.01)).any(axis=-1).mean() < 0.05


def test_p_at_the_limit_is_the_one_asked_for_by_few_pairs_and_by_many() -> None:
    rng = np.random.default_rng(1)
    for pairs in (20, 50, 150, 1000):
        seen = np.abs(rng.standard_t(3, (7, pairs)))
        for p in (0.0025, 0.01, 0.05):
            limit = limits(seen, p)
            assert (p_values(limit[:, None] * 1.0001, seen)[:, 0] <= p).all()
            assert (p_values(limit[:, None] * 0.9999, seen)[:, 0] > 0.99 * p).all()


def test_sizes_of_one_session_count_once() -> None:
    seen = np.repeat(np.linspace(0.001, 0.01, 20), 3)
    change = np.array([0.0096, 0.03])
    assert p_values(change, seen, 20) == pytest.approx(p_values(change, seen[::3]))
    assert limits(seen, 0.01, 20) == limits(seen[::3], 0.01)


@pytest.mark.parametrize("degrees", [2, 3, 1000])
@pytest.mark.parametrize("pairs", [20, 50, 200])
def test_equal_builds_are_called_changed_in_one_of_a_hundred_at_most(degrees: int, pairs: int) -> None:
    rng = np.random.default_rng(pairs + degrees)
    limit = limits(rng.standard_t(degrees, (2000, pairs)), 0.01)
    assert (np.abs(rng.standard_t(degrees, (2000, 100))) > limit[:, None]).mean() < 0.011


def test_noise_that_doubled_is_followed_and_one_wild_pair_of_a_thousand_sets_no_limit() -> None:
    rng = np.random.default_rng(3)
    quiet = rng.normal(0, 0.004, 1000)
    doubled = floor_of_ratios(np.concatenate((quiet, rng.normal(0, 0.008, 50))))
    assert doubled.pairs <= 80
    assert doubled.limit > 1.5 * floor_of_ratios(quiet).limit
    quiet[700] = 0.3
    assert floor_of_ratios(quiet).limit < 0.013
    assert floor_of_ratios(quiet).largest == 0.3


@pytest.mark.slow
def test_noise_that_may_have_grown_widens_the_limit_until_more_pairs_tell() -> None:
    rng = np.random.default_rng(6)
    growth, wrong = [], []
    for _ in range(200):
        sizes = np.concatenate((rng.normal(0, 0.006, 400), rng.normal(0, 0.012, 20)))
        floor = floor_of_ratios(sizes)
        growth.append(floor.growth)
        wrong.append((np.abs(rng.normal(0, 0.012, 200)) > floor.changed_limit).mean())
    assert np.mean(np.array(growth) > 1.3) > 0.3, "where it is not clear that the older pairs do not count"
    assert np.mean(wrong) < 0.011
    steady = [noise_growth(rng.normal(0, 0.006, 400)) for _ in range(200)]
    assert np.mean(np.array(steady) > 1) < 0.25
    assert all(noise_growth(rng.normal(0, 0.006, 39)) == 1 for _ in range(50)), "too few to compare"
    shrunk = np.concatenate((rng.normal(0, 0.006, 400), rng.normal(0, 0.004, 20)))
    assert noise_growth(shrunk) == 1


def test_steady_noise_keeps_its_pairs_up_to_a_thousand() -> None:
    rng = np.random.default_rng(4)
    kept = [newest_alike(rng.standard_t(3, pairs)) for pairs in (15, 60, 400, 1500) for _ in range(20)]
    full = [min(pairs, 1000) for pairs in (15, 60, 400, 1500) for _ in range(20)]
    assert np.mean(np.equal(kept, full)) > 0.95


def test_a_timer_that_never_differs_gives_a_limit() -> None:
    floor = floor_of_ratios(np.zeros(20))
    assert 0 < floor.limit < 1e-4
    assert floor.p(0.0) == 1.0
