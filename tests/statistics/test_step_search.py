"""A step among builds is found with noisy runs, never named wrongly, and unknown where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from profiler.statistics.step_search import MOST_END_RUNS, StepSearch


def search(
    seed: int, builds: int, place: int, step: float, *, noise: float = 0.02, most: int = 300
) -> StepSearch:
    """Runs with normal noise, of which one in twenty is 20 % off."""
    draw = np.random.default_rng(seed)
    found = StepSearch(builds)
    while found.runs < most and (build := found.next_build()) is not None:
        time = (1 + step if build >= place else 1.0) * math.exp(noise * draw.normal())
        found.add(build, time * (1 + 0.2 * draw.choice([-1, 1]) if draw.random() < 0.05 else 1.0))
    return found


@pytest.mark.parametrize("step", [0.05, -0.05])
def test_a_step_is_found_by_far_fewer_runs_than_there_are_builds(step: float) -> None:
    places = [1, 17, 50, 80, 99]
    searches = [search(seed, 100, place, step) for seed, place in enumerate(places)]
    assert [one.found for one in searches] == places
    assert all(one.runs < 100 for one in searches)
    assert all(
        abs(one.step_at(place) - math.log1p(step)) < 0.02 for one, place in zip(searches, places, strict=True)
    )


def test_where_nothing_changed_nothing_is_found() -> None:
    for seed in range(5):
        found = search(seed, 50, 50, 0.0)
        assert found.found is None
        assert found.runs <= 2 * MOST_END_RUNS or not found.ends_differ


def test_builds_of_equal_machine_code_have_no_step_between_them() -> None:
    found = StepSearch(10)
    found.note_equal(3, 7)
    draw = np.random.default_rng(0)
    while (build := found.next_build()) is not None:
        found.add(build, (1.1 if build >= 8 else 1.0) * math.exp(0.01 * draw.normal()))
    assert found.found == 8
    assert not found.probabilities[4:8].any()
    assert {4, 5, 6} & found.logs.keys() == set()


def test_a_build_that_cannot_run_is_passed_over() -> None:
    found = StepSearch(10)
    found.unusable = {5}
    draw = np.random.default_rng(0)
    while (build := found.next_build()) is not None:
        assert build != 5
        found.add(build, (1.1 if build >= 5 else 1.0) * math.exp(0.01 * draw.normal()))
    assert found.found == 6  # or 5, which nobody can run


@pytest.mark.parametrize("time", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_time_is_refused(time: float) -> None:
    with pytest.raises(ValueError, match="no time"):
        StepSearch(2).add(0, time)
