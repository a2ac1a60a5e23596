"""The interval of a run's median: by its rounds, as wide as order statistics say, and honest about few."""

import numpy as np
import pytest

from profiler.statistics.order_statistics import MIN_ROUNDS, median_interval


def test_few_rounds_have_no_interval() -> None:
    rounds = np.repeat(np.arange(MIN_ROUNDS - 1), 100)
    assert median_interval(np.arange(rounds.size, dtype=float), rounds) is None


def test_six_rounds_span_from_the_smallest_to_the_largest() -> None:
    samples = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert median_interval(samples, np.arange(6)) == (1.0, 6.0)


def test_samples_of_one_round_count_once() -> None:
    levels = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert median_interval(np.repeat(levels, 50), np.repeat(np.arange(7), 50)) == (1.0, 7.0)


@pytest.mark.slow
def test_it_holds_the_true_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    rounds = np.arange(25)
    held = 0
    for _ in range(1000):
        interval = median_interval(rng.lognormal(0, 0.3, 25), rounds)
        assert interval is not None
        held += interval[0] <= 1.0 <= interval[1]
    assert held / 1000 == pytest.approx(0.957, abs=0.02), "the sign test of 25 leaves out 7 on either side"
