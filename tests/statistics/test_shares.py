"""Intervals of shares, against the papers that they are from, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.statistics.shares import newcombe_difference, wilson_interval


def test_wilsons_interval_is_that_of_the_paper() -> None:
    # Newcombe (1998), "Two-sided confidence intervals for the single proportion", table I, method 3
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson_interval(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_newcombes_interval_is_that_of_the_paper() -> None:
    # Newcombe (1998), "Interval estimation for the difference", table II, method 10: 56/70 less 48/80
    found = newcombe_difference(56, 70, 48, 80)
    assert (found.difference, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


def test_what_is_no_count_is_refused() -> None:
    for count, of in ((-1, 3), (4, 3)):
        with pytest.raises(ValueError, match="of"):
            wilson_interval(count, of)
    with pytest.raises(ValueError, match="nothing"):
        newcombe_difference(0, 0, 1, 2)


def test_the_interval_holds_the_true_difference_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for b, a in rng.binomial([20, 15], [0.4, 0.2], (600, 2)):
        found = newcombe_difference(int(b), 20, int(a), 15)
        held += found.low <= 0.2 <= found.high
    assert held / 600 > 0.92
