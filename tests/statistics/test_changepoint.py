"""Change points on small series whose steps are known."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from profiler.statistics import segments
from profiler.statistics.changepoint import (
    MIN_POINTS,
    ChangePoint,
    LevelKind,
    change_points,
    change_points_of,
)
from tests.conftest import ROOT


def noisy(seed: int, levels: Sequence[float], points: int, sigma: float = 0.01) -> NDArray[np.float64]:
    """Levels of so many points each, with noise of sigma times the level."""
    rng = np.random.default_rng(seed)
    level = np.repeat(np.array(levels, float), points)
    return level * np.exp(rng.normal(0, sigma, level.size))


def only_step(values: object, **options: object) -> ChangePoint:
    (step,) = change_points(values, **options)  # type: ignore[arg-type]
    return step


@pytest.mark.slow
def test_a_step_is_found_where_it_is_with_its_size() -> None:
    step = only_step(noisy(1, (100.0, 106.0), 30))
    assert step.index == pytest.approx(30, abs=1)
    assert step.earliest <= 30 <= step.latest
    assert step.size_low < 0.06 < step.size_high
    assert step.size_high - step.size_low < 0.04
    assert step.difference == pytest.approx(step.after - step.before)
    assert step.direction == 1
    assert step.t > 7


def test_a_fall_is_a_fall() -> None:
    step = only_step(noisy(2, (100.0, 94.0), 30))
    assert step.direction == -1
    assert step.size_high < 0


@pytest.mark.parametrize("seed", range(40))
def test_a_quiet_series_raises_no_alarm(seed: int) -> None:
    assert change_points(noisy(seed, (100.0,), 150)) == ()


def test_several_steps_come_oldest_first() -> None:
    steps = change_points(noisy(3, (100, 110, 104, 120), 40))
    assert [point.direction for point in steps] == [1, -1, 1]
    assert [point.index for point in steps] == pytest.approx([40, 80, 120], abs=1)


def test_a_lone_spike_is_no_step_and_does_not_hide_one() -> None:
    values = noisy(4, (100.0, 106.0), 30)
    values[[7, 45]] *= 1.5
    assert only_step(values).index == pytest.approx(30, abs=1)
    assert change_points(values[:30]) == ()


def test_a_single_last_point_is_left_to_the_pairwise_rule() -> None:
    values = noisy(5, (100.0,), 40)
    values[-1] *= 1.5
    assert change_points(values) == ()
    twice = np.append(values, values[-1] * 1.005)
    assert only_step(twice).index == 39


def test_missing_points_keep_their_places() -> None:
    values = noisy(6, (100.0, 110.0), 20)
    values[[3, 4, 18, 19, 20, 30]] = math.nan
    values[31] = math.inf
    step = only_step(values)
    assert step.index == 21
    assert (step.earliest, step.latest) == (18, 21), "any of the missing points may have been the first"


def test_too_few_points_say_nothing() -> None:
    values = [1.0] * 4 + [2.0] * 3
    assert len(values) < MIN_POINTS
    assert change_points(values) == ()
    assert change_points([]) == ()
    assert change_points([math.nan] * 50) == ()


def test_a_constant_has_no_step() -> None:
    assert change_points([7.0] * 50) == ()
    assert change_points([0.0] * 50) == ()


def test_a_counter_that_stands_still_and_then_moves() -> None:
    step = only_step([1000.0] * 12 + [1013.0] * 12)
    assert (step.index, step.earliest, step.latest) == (12, 12, 12)
    assert step.size == pytest.approx(0.013)
    assert change_points([1000.0] * 12 + [1009.0] * 12) == (), "under the 1 % that is relevant"
    assert len(change_points([1000.0] * 12 + [1009.0] * 12, least=0.0)) == 1


def test_a_ticking_timer_is_not_taken_for_steps() -> None:
    rng = np.random.default_rng(7)
    values = np.where(rng.random(300) < 0.3, 41.0, 40.0)
    assert change_points(values) == ()


def test_spills_from_zero_are_judged_as_they_are() -> None:
    step = only_step([0.0] * 10 + [64.0] * 10, least=0.0)
    assert step.index == 10
    assert math.isnan(step.size)
    assert step.difference == 64
    down = only_step([64.0] * 10 + [0.0] * 10)
    assert down.size == pytest.approx(-1)


def test_negative_values_are_judged_as_they_are() -> None:
    rng = np.random.default_rng(8)
    values = np.repeat([-5.0, 5.0], 20) + rng.normal(0, 0.5, 40)
    step = only_step(values)
    assert step.index == 20
    assert step.size == pytest.approx(2, abs=0.3), "of the level's size, whatever its sign"


def test_percentages_are_judged_by_points() -> None:
    rng = np.random.default_rng(9)
    values = np.repeat([10.0, 10.6], 30) + rng.normal(0, 0.05, 60)
    assert change_points(values, least=1.0, absolute=True) == ()
    assert only_step(values, least=0.5, absolute=True).difference == pytest.approx(0.6, abs=0.1)


def test_scaling_the_values_changes_nothing() -> None:
    values = noisy(10, (100.0, 108.0), 25)
    a, b = only_step(values), only_step(values * 1e9)
    assert (a.index, a.earliest, a.latest) == (b.index, b.earliest, b.latest)
    assert a.size == pytest.approx(b.size)


def test_a_faint_step_has_a_wider_place_than_a_plain_one() -> None:
    widths = {}
    for level in (105.0, 130.0):
        steps = [change_points(noisy(seed, (100.0, level), 40, 0.02)) for seed in range(20)]
        widths[level] = np.mean([point.latest - point.earliest for points in steps for point in points])
    assert widths[105.0] > widths[130.0] + 1


def test_most_steps_of_five_sigma_show_after_five_points() -> None:
    hits = 0
    for seed in range(60):
        values = np.concatenate((noisy(seed, (100.0,), 40), noisy(seed + 500, (105.0,), 5)))
        hits += any(abs(point.index - 40) <= 2 for point in change_points(values))
    assert hits >= 55


def test_noise_that_remembers_raises_hardly_an_alarm() -> None:
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        noise = np.zeros(200)
        for i in range(1, 200):
            noise[i] = 0.5 * noise[i - 1] + rng.normal(0, 0.01)
        alarms += bool(change_points(np.exp(noise)))
    assert alarms <= 1


@pytest.mark.slow
def test_the_partition_is_the_best_there_is() -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        z = np.repeat(rng.normal(0, 2, 4), rng.integers(2, 6, 4)) + rng.normal(0, 0.7, 1)
        z = z + rng.normal(0, 0.7, z.size)
        for penalty in (0.5, 3.0):
            starts = segments.partition(z, penalty, 3, 2)
            assert _cost(z, starts.tolist(), penalty) == pytest.approx(_least(z, penalty, 3, 2))


def _cost(z: NDArray[np.float64], starts: list[int], penalty: float) -> float:
    edges = [0, *starts, z.size]
    parts = [z[a:b] for a, b in pairwise(edges)]
    return sum(float(((part - part.mean()) ** 2).sum()) for part in parts) + penalty * len(starts)


def _least(z: NDArray[np.float64], penalty: float, shortest: int, tail: int) -> float:
    """The least cost over every legal partition, one by one."""

    def every(begin: int) -> list[list[int]]:
        rest = [[]] if z.size - begin >= (tail if begin else shortest) else []
        for at in range(begin + shortest, z.size):
            rest += [[at, *more] for more in every(at)]
        return rest

    return min(_cost(z, starts, penalty) for starts in every(0))


def test_many_series_are_each_by_itself() -> None:
    series = [noisy(seed, (100.0, 107.0), 20) for seed in range(3)]
    assert change_points_of(series) == [change_points(values) for values in series]


@pytest.mark.slow
def test_numba_is_not_loaded_before_a_series_is_asked_about() -> None:
    code = (
        "import sys; from profiler.statistics.changepoint import change_points; change_points([1.0] * 3);"
        "assert 'numba' not in sys.modules;"
        "change_points([1.0] * 9 + [2.0] * 9); assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_without_numba_the_same_steps_are_found() -> None:
    series = [list(noisy(seed, (100.0, 104.0, 99.0), 15)) for seed in range(4)]
    code = (
        "import json, sys; sys.modules['numba'] = None\n"
        "from profiler.statistics.changepoint import change_points\n"
        "from tests.statistics.test_changepoint import as_json\n"
        "for values in json.load(sys.stdin): print(as_json(change_points(values)))"
    )
    given, command = json.dumps(series), [sys.executable, "-c", code]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines() == [as_json(change_points(values)) for values in series]
    assert any(map(change_points, series))


def as_json(points: Sequence[ChangePoint]) -> str:
    return json.dumps([asdict(point) for point in points])


@pytest.mark.slow
def test_without_a_place_to_keep_machine_code_it_is_made_for_this_process() -> None:
    names: dict[str, object] = {}
    exec("def twice(x):\n    return 2 * x", names)  # numba finds no file to keep its code beside
    twice = names["twice"]
    assert callable(twice)
    assert segments.compiled(twice)(21) == 42


def kinds(values: object) -> list[LevelKind]:
    return [point.kind for point in change_points(values)]  # type: ignore[arg-type]


def test_a_level_that_was_there_before_is_known_and_the_one_between_did_not_last() -> None:
    steps = change_points(noisy(20, (100.0, 108.0, 100.0), 25))
    assert [point.kind for point in steps] == [LevelKind.LEFT, LevelKind.KNOWN]
    assert [point.related for point in steps] == [steps[1].index, 0]
    assert not any(point.is_alarm for point in steps)


def test_a_step_that_holds_is_an_alarm_beside_levels_that_came_back() -> None:
    steps = change_points(noisy(21, (100.0, 108.0, 100.0, 108.0, 121.0), 20))
    assert [point.kind for point in steps][-2:] == [LevelKind.KNOWN, LevelKind.NEW]
    assert [point.is_alarm for point in steps] == [False, False, False, True]


def test_a_step_of_another_size_is_no_way_back() -> None:
    assert kinds(noisy(22, (100.0, 108.0, 103.0), 25)) == [LevelKind.NEW, LevelKind.NEW]


def test_a_gain_that_is_half_lost_is_no_return_in_noise_that_reaches_both_levels() -> None:
    """The noise about the level between the other two is no change from one state to another and back."""
    lost = []
    for seed in range(40):
        values = np.repeat((100.0, 91.0, 95.5), (70, 95, 35))
        values *= np.exp(np.random.default_rng(seed).normal(0, 0.014, 200))
        lost += [point.kind for point in change_points(values) if abs(point.index - 165) <= 3]
    assert len(lost) > 35
    assert set(lost) == {LevelKind.NEW}


@pytest.mark.parametrize("dwell", [2, 4, 10, 25])
def test_a_host_with_two_states_raises_hardly_an_alarm(dwell: int) -> None:
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        state = np.cumsum(rng.random(300) < 1 / dwell) % 2
        steps = change_points(np.exp(0.06 * state + rng.normal(0, 0.005, 300)))
        alarms += any(point.is_alarm for point in steps)
    assert alarms <= 2


@pytest.mark.parametrize("size", [-0.2, 0.1, 0.3])
def test_a_slow_drift_is_no_alarm(size: float) -> None:
    rng = np.random.default_rng(23)
    steps = change_points(np.exp(size * np.linspace(0, 1, 200) + rng.normal(0, 0.004, 200)))
    assert {point.kind for point in steps} <= {LevelKind.DRIFT}


def test_a_step_on_a_drifting_series_is_an_alarm() -> None:
    rng = np.random.default_rng(24)
    values = np.exp(0.1 * np.linspace(0, 1, 200) + rng.normal(0, 0.004, 200))
    values[120:] *= 1.06
    (step,) = [point for point in change_points(values) if point.is_alarm]
    assert step.index == pytest.approx(120, abs=1)


def test_the_size_of_a_step_in_a_drift_has_no_interval() -> None:
    values = np.exp(np.random.default_rng(24).normal(0, 0.004, 200))
    values[120:] *= 1.06
    (steady,) = change_points(values)
    assert steady.size_low < 0.06 < steady.size_high
    (step,) = [
        point
        for point in change_points(values * np.exp(0.05 * np.linspace(0, 1, 200)))
        if abs(point.index - 120) <= 1
    ]
    assert np.isnan([step.size_low, step.size_high, step.difference_low, step.difference_high]).all()
    assert step.size > 0.05


def test_two_outliers_at_the_end_are_no_level() -> None:
    values = noisy(25, (100.0,), 40)
    values[-2:] *= (1.3, 1.12)
    assert change_points(values) == ()


@pytest.mark.slow
def test_the_interval_of_a_size_holds_beside_a_step_too_small_to_be_found() -> None:
    holds = []
    for seed in range(150):
        values = noisy(seed, (100.0, 106.0), 40, 0.01)
        values[52:] *= 1.012
        near = [point for point in change_points(values) if abs(point.index - 40) <= 2]
        # A larger slope beside it leaves no interval.
        judged = [point for point in near if not np.isnan(point.size_low)]
        holds += [point.size_low <= 0.06 <= point.size_high for point in judged]
    assert len(holds) > 100
    assert np.mean(holds) > 0.93


@pytest.mark.slow
def test_a_wave_raises_few_alarms() -> None:
    alarms = 0
    for seed in range(60):
        path = 0.05 * np.sin(np.linspace(0, 2 * np.pi, 200))
        alarms += any(
            point.is_alarm for point in change_points(noisy(seed, (100.0,), 200, 0.005) * np.exp(path))
        )
    assert alarms <= 12


def test_a_step_on_a_drift_is_an_alarm() -> None:
    values = noisy(3, (100.0,), 160, 0.004) * np.exp(np.linspace(0, 0.15, 160))
    values[80:] *= 1.08
    assert [point.index for point in change_points(values) if point.is_alarm] == [80]


@pytest.mark.slow
def test_the_interval_of_a_size_holds_in_noise_that_hides_a_step_of_its_direction() -> None:
    holds = []
    for seed in range(200):
        values = noisy(seed, (100.0, 110.0), 40, 0.02)
        values[46:] *= 1.03  # near the step, where halves of the side differ by half of it
        steps = [point for point in change_points(values) if abs(point.index - 40) <= 2]
        judged = [step for step in steps if not np.isnan(step.size_low)]
        holds += [step.size_low <= 0.10 <= step.size_high for step in judged]
    assert len(holds) > 100
    assert np.mean(holds) > 0.93
