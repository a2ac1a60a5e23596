"""Lines over time: versions that share runs are lines of their own, commits that follow are one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from profiler.evidence.values import Evidence, Value
from profiler.history.change_points import RUNS, History
from profiler.history.trend import Trend, TrendPoint
from profiler.ui.data import run_axis
from profiler.ui.data.run_axis import RunAxis
from profiler.ui.data.timelines import timelines
from profiler.ui.views import history_steps, trend_panels
from tests.ui.views.test_history_steps import history, series

START = datetime(2026, 1, 1, tzinfo=UTC)


def point(run: int, version: str, ns: float, breaks: str = "") -> TrendPoint:
    when = START + timedelta(days=run)
    return TrendPoint(f"run-{run}", version, when, Value(ns, "ns"), "d", None, None, run, "", breaks)


def latencies(*points: TrendPoint, mode: str = "events; cache warm; clock none") -> Trend:
    fields = ("latency", "latency", "lower", "ns", "f", None, "H100", Evidence.MEASURED, mode)
    return Trend(*fields, "total", "total", points)


def test_versions_of_one_run_are_never_joined_to_each_other() -> None:
    trend = latencies(*(point(run, name, ns) for run in range(3) for name, ns in (("a", 1e6), ("b", 2e6))))
    assert [(name, [point.value.number for point in line.points]) for name, line in timelines(trend)] == [
        ("a", [1e6] * 3),
        ("b", [2e6] * 3),
    ]
    panel = trend_panels.picture({"latency": [trend]}, RunAxis(run_axis.TIME), []).panels[0]
    assert [line.label for line in panel.lines] == ["a", "b"]
    for line in panel.lines:
        assert len({point.x for point in line.points}) == 3
        assert len({point.y for point in line.points}) == 1


def test_versions_that_follow_as_commits_do_stay_one_line() -> None:
    trend = latencies(*(point(run, f"c{run}", 1e6) for run in range(3)))
    assert timelines(trend) == [(None, trend)]


def test_a_break_that_one_version_met_breaks_the_line_of_each() -> None:
    breaks = "driver differs: 1 and 2"
    trend = latencies(point(0, "a", 1.0), point(0, "b", 2.0), point(1, "a", 1.0, breaks), point(1, "b", 2.0))
    assert [line.points[1].breaks for _, line in timelines(trend)] == [breaks, breaks]
    assert [line.points[0].breaks for _, line in timelines(trend)] == ["", ""]


def test_with_several_modes_a_line_says_version_and_mode() -> None:
    points = [point(run, name, ns) for run in range(2) for name, ns in (("a", 1e6), ("b", 2e6))]
    trends = [latencies(*points), latencies(*points, mode="events; cache cold; clock none")]
    (panel,) = trend_panels.picture({"latency": trends}, RunAxis(run_axis.TIME), []).panels
    assert [line.label for line in panel.lines] == [
        "a events; cache warm",
        "b events; cache warm",
        "a events; cache cold",
        "b events; cache cold",
    ]


def test_the_mark_of_a_version_stands_on_its_own_line() -> None:
    slow, fast = series((5e6, 6e6)).points, series((2e6, 2e6)).points
    points = [
        TrendPoint(a.run_id, name, a.created, source.value, a.metric, None, None, place)
        for place, (a, b) in enumerate(zip(fast, slow, strict=True))
        for name, source in (("fast", a), ("slow", b))
    ]
    trend = latencies(*points)
    slow_line = next(line for name, line in timelines(trend) if name == "slow")
    slow_history = history(slow_line, version="slow")
    picture = trend_panels.picture({"latency": [trend]}, RunAxis(run_axis.TIME), [])
    drawn = history_steps.mark(picture, [slow_history], RunAxis(run_axis.TIME))
    mark = drawn["data"][-1]
    number = slow_line.points[10].value.number
    assert number is not None
    assert mark["y"] == [number / 1e6]


def test_rows_and_notes_of_calls_name_the_mode() -> None:
    histories = [
        history(latencies(*series((5e6, 6e6)).points, mode=f"events; cache {how}; clock none"), version="v")
        for how in ("warm", "cold")
    ]
    output = str(history_steps.table(histories))
    assert "v events; cache warm" in output
    assert "v events; cache cold" in output
    short = History(histories[0].series, RUNS, "v", (), "3 points, a step needs 8", 3)
    assert "v events; cache warm" in history_steps.notes([short])[0]
