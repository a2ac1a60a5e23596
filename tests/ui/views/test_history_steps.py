"""The marks of steps on the Trends page: where they stand, which way they point, what their rows say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from profiler.compare.environment_change import EnvironmentChange, RunChanges
from profiler.compare.same_code import CodeChange
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import Evidence, Value
from profiler.history.change_points import RUNS, History, LevelStep, change_points_in
from profiler.history.trend import Trend, TrendPoint
from profiler.statistics.verdict import Verdict
from profiler.ui.data import run_axis
from profiler.ui.data.run_axis import RunAxis
from profiler.ui.theme import light
from profiler.ui.views import history_steps, trend_panels

START = datetime(2026, 1, 1, tzinfo=UTC)
METRIC = load_metrics().by_concept["duration"]


def series(levels: tuple[float, ...], name: str = "k#0") -> Trend:
    """Ten commits at each level, one a day."""
    rng = np.random.default_rng(1)
    numbers = np.repeat(levels, 10) * np.exp(rng.normal(0, 0.003, 10 * len(levels)))
    points = tuple(
        TrendPoint(
            f"run-{day}",
            f"c{day}",
            START + timedelta(days=day),
            Value(ns, "ns"),
            "gpu__time_duration.sum",
            None,
            None,
            day,
        )
        for day, ns in enumerate(numbers.tolist())
    )
    fields = ("duration", METRIC.label, "lower", "ns", "f", None, "H100", Evidence.MEASURED, "ncu")
    return Trend(*fields, name, name.partition("#")[0], points)


def history(trend: Trend, verdict: Verdict = Verdict.WORSE, version: str | None = None) -> History:
    around = RunChanges((EnvironmentChange("driver", "1", "2", "run-10"),), (), CodeChange("same", "SASS"))
    changes = [
        LevelStep(
            step,
            verdict,
            "",
            trend.points[step.earliest - 1],
            trend.points[step.earliest : step.latest + 1],
            trend.points[step.index],
            around,
            verdict,
        )
        for step in change_points_in(trend, METRIC)
    ]
    return History(trend, RUNS, version, tuple(changes))


def marks(of_trend: History, is_over_time: bool) -> list[dict[str, object]]:
    versions = [point.version for point in of_trend.series.points]
    axis = RunAxis(run_axis.TIME) if is_over_time else RunAxis.of_versions(versions)
    picture = trend_panels.picture({"duration": [of_trend.series]}, axis, [of_trend.series])
    drawn = history_steps.mark(picture, [of_trend], axis)
    return list(drawn["data"][len(picture.figure["data"]) :])


def test_a_step_is_marked_on_its_line_by_version_and_by_time() -> None:
    stepped = history(series((5e6, 6e6)))
    for is_over_time, x in ((False, 10.0), (True, (START + timedelta(days=10)).timestamp() * 1000)):
        (mark,) = marks(stepped, is_over_time)
        assert mark["x"] == [x]
        number = stepped.series.points[10].value.number
        assert number is not None
        assert mark["y"] == [number / 1e6], "in the panel's unit"
        look = mark["marker"]
        assert isinstance(look, dict)
        assert (look["symbol"], look["color"]) == ("triangle-up", light("worse"))
        assert "due to: environment" in str(mark["hovertemplate"])


def test_a_fall_points_down_and_nobody_s_verdict_has_no_colour() -> None:
    (mark,) = marks(history(series((6e6, 5e6)), Verdict.CHANGED), True)
    look = mark["marker"]
    assert isinstance(look, dict)
    assert (look["symbol"], look["color"]) == ("triangle-down", light("muted"))


def test_a_step_between_runs_of_one_version_has_no_place_over_versions() -> None:
    stepped = history(series((5e6, 6e6)), version="c3")
    assert marks(stepped, False) == []
    assert len(marks(stepped, True)) == 1


def test_a_row_says_size_runs_code_and_cause() -> None:
    output = str(history_steps.table([history(series((5e6, 6e6)))]))
    assert output.count("c10 2026-01-11 00:00") == 2, "since when, and where it can lie"
    assert "driver 1 → 2" in output
    assert "same: SASS" in output
    assert ">environment<" in output
    assert "worse" in output


def test_a_series_without_steps_says_so_and_a_short_one_that_it_is_short() -> None:
    still = history(series((5e6, 5e6)))
    assert "No step" in " ".join(history_steps.notes([still]))
    short = History(still.series, RUNS, "v1", (), "3 points, a step needs 8", 3)
    (note,) = history_steps.notes([short])
    assert "not judged, 3 points, a step needs 8: v1 k" in note


def test_series_of_several_lengths_share_one_note() -> None:
    still = history(series((5e6, 5e6)))
    short = [
        History(still.series, RUNS, version, (), f"{count} points, a step needs 8", count)
        for version, count in (("v1", 6), ("v2", 1), ("v3", 3))
    ]
    (note,) = history_steps.notes(short)
    assert "not judged, 1 to 6 points, a step needs 8: v1 k, v2 k, v3 k" in note
