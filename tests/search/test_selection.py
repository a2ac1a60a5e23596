"""Who is selected under noise, and by a generator that does as prompts say: parts of bench/search.py."""

from __future__ import annotations

import numpy as np
import pytest

from bench import search
from profiler.search.archive import confirmed
from profiler.statistics.verdict import Verdict


@pytest.mark.slow
def test_of_two_hundred_equal_candidates_none_takes_a_seat_and_a_raw_float_changes_them() -> None:
    selection = search.select(1, seed=3)
    assert (selection.changed, selection.by_float) == (0, 1)


@pytest.mark.slow
def test_a_planted_winner_of_three_per_cent_is_found() -> None:
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(20):
        pair = [search.measure(rng, 97_000.0, 100_000.0) for _ in range(2)]
        found += confirmed(*pair).verdict is Verdict.BETTER
    assert found >= 18


@pytest.mark.long
def test_selection_over_many_searches() -> None:
    equal, winner = search.select(40), search.select(40, planted=0.03, seed=2)
    assert equal.changed <= 2
    assert equal.by_float >= 38
    assert winner.found >= 36


@pytest.mark.slow
def test_a_generator_that_obeys_gets_further_with_insights_than_without() -> None:
    with_insights, control = (search.obey(6, 8, share) for share in (0.0, 1.0))
    assert np.median(with_insights.best_us) <= np.median(control.best_us)
    assert np.mean(with_insights.until_good) <= np.mean(control.until_good)
