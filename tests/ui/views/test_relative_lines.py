"""Lines relative to a number: right shares, what cannot be a share named, levels, samples, joint labels."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from profiler.evidence.values import Evidence, Value
from profiler.history.reference_levels import ReferenceLevel
from profiler.history.run_spread import RunSpread
from profiler.history.trend import LATENCY, Trend, TrendPoint
from profiler.ui.charts import line_gutter, small_multiples
from profiler.ui.charts.line_gutter import GutterLabel
from profiler.ui.charts.panel_overlays import Reference
from profiler.ui.charts.small_multiples import Axis, Panel, PanelLine, PanelPoint
from profiler.ui.data import run_axis
from profiler.ui.data.run_axis import RunAxis
from profiler.ui.theme import light
from profiler.ui.views import trend_panels
from profiler.ui.views.trend_panels import Look

START = datetime(2026, 1, 1, tzinfo=UTC)
TIME = RunAxis(run_axis.TIME)


def calls(levels: dict[str, tuple[float | None, ...]], unit: str = "ns") -> Trend:
    """Nights on which every version was timed; None: a version whose value is missing that night."""
    points = [
        TrendPoint(
            f"night-{night}",
            version,
            START + timedelta(days=night),
            Value(level, unit),
            "m",
            None,
            None,
            100 * night + index,
            gap="" if level is not None else "failed",
        )
        for index, (version, nights) in enumerate(levels.items())
        for night, level in enumerate(nights)
    ]
    points.sort(key=lambda point: point.created)
    kind = Evidence.MEASURED
    return Trend(
        LATENCY, "latency", "lower", unit, "f", "w", "H100", kind, "warm", "total", "total", tuple(points)
    )


def heights(panel: Panel, label: str) -> list[float | None]:
    (line,) = [line for line in panel.lines if line.label == label]
    return [point.y for point in line.points]


def only_panel(trend: Trend, look: Look) -> Panel:
    (panel,) = trend_panels.picture({LATENCY: [trend]}, TIME, [], look=look).panels
    return panel


def test_each_line_is_read_against_its_own_first_number() -> None:
    panel = only_panel(calls({"a": (100.0, 107.0), "b": (10.0, 9.8)}), Look(trend_panels.OF_FIRST))
    assert heights(panel, "a") == pytest.approx([0.0, 7.0])
    assert heights(panel, "b") == pytest.approx([0.0, -2.0])
    assert panel.unit == "%"
    figure = small_multiples.figure([panel], Axis(time=True))
    low, high = figure["layout"]["yaxis"]["range"]
    assert high - low < 20, "a step of 7 % is not pressed flat"


def test_a_number_that_was_0_has_no_share_and_says_so() -> None:
    panel = only_panel(calls({"a": (0.0, 5.0), "b": (1.0, 1.0)}), Look(trend_panels.OF_FIRST))
    assert heights(panel, "a") == [None, None]
    assert {point.gap for point in panel.lines[0].points} == {"from 0"}


def test_a_line_that_the_baseline_has_no_number_for_says_so() -> None:
    look = Look(trend_panels.OF_BASELINE, "b", {(LATENCY, "total", "cold"): 5.0})
    panel = only_panel(calls({"a": (1.0, 2.0), "b": (1.0, 1.0)}), look)
    assert {point.gap for point in panel.lines[0].points} == {"the baseline has no number here"}
    here = replace(look, baseline_numbers={(LATENCY, "total", "warm"): 2.0})
    assert heights(only_panel(calls({"a": (1.0, 2.0), "b": (1.0, 1.0)}), here), "a") == [-50.0, 0.0]


def test_percentages_differ_by_points() -> None:
    panel = only_panel(calls({"a": (40.0, 50.0), "b": (1.0, 1.0)}, "%"), Look(trend_panels.OF_FIRST))
    assert (panel.unit, heights(panel, "a")) == ("pp", [0.0, 10.0])


def test_the_first_number_of_a_missing_night_is_the_first_there_is() -> None:
    panel = only_panel(calls({"a": (None, 100.0, 103.0), "b": (1.0, 1.0, 1.0)}), Look(trend_panels.OF_FIRST))
    assert heights(panel, "a") == pytest.approx([None, 0.0, 3.0])


def test_the_isolated_line_alone_has_interval_and_samples_and_the_accent() -> None:
    spread = RunSpread(np.array([99.0, 100.0, 102.0], np.float32), (99.0, 101.0))
    look = Look(trend_panels.OF_FIRST, isolated="a", spreads={0: spread, 1: spread})
    trend = calls({"a": (100.0, 107.0), "b": (10.0, 9.8)})
    panel = only_panel(trend, look)
    of_a = next(line for line in panel.lines if line.isolated)
    assert (of_a.label, of_a.points[0].low, of_a.points[0].high) == (
        "a",
        pytest.approx(-1.0),
        pytest.approx(1.0),
    )
    assert of_a.points[0].samples == pytest.approx((-1.0, 0.0, 2.0))
    assert not any(point.samples for line in panel.lines if line is not of_a for point in line.points)
    figure = small_multiples.figure([panel], Axis(time=True))
    named = {trace["name"]: trace for trace in figure["data"] if "name" in trace}
    samples = named.pop("a, samples")["y"]
    assert len(samples) > 1
    assert set(samples) <= {sample for point in of_a.points for sample in point.samples}
    colours = {name: trace["line"]["color"] for name, trace in named.items()}
    assert colours == {"a": light("accent"), "b": light("neutral")}


def test_levels_are_lines_where_they_are_near_and_named_at_the_edge_where_not() -> None:
    levels = [ReferenceLevel("goal", "goal", 95.0, ""), ReferenceLevel("floor", "floor", 30.0, "")]
    look = Look(trend_panels.OF_FIRST, isolated="a", levels={LATENCY: levels})
    panel = only_panel(calls({"a": (100.0, 107.0), "b": (9.0, 9.0)}), look)
    assert [round(reference.y, 6) for reference in panel.references] == [-5.0, -70.0]
    figure = small_multiples.figure([panel], Axis(time=True))
    lines = [shape for shape in figure["layout"]["shapes"] if shape.get("yref") == "y"]
    assert [shape["y0"] for shape in lines] == pytest.approx([-5.0])
    texts = [note["text"] for note in figure["layout"]["annotations"]]
    assert any("goal 95" in text and "below" not in text for text in texts)
    assert any("floor 30" in text and "below" in text for text in texts)


def test_labels_that_lie_on_one_another_are_one_that_names_them() -> None:
    labels = [GutterLabel(name, "", 0.5 + index / 1000) for index, name in enumerate("abcd")]
    chosen = GutterLabel("e", "", 0.5, isolated=True)
    joint, own = sorted(line_gutter.joined_labels([*labels, chosen], 300), key=lambda label: label.isolated)
    assert (joint.words, joint.others, own) == ("4 others", ("a", "b", "c", "d"), chosen)


def test_a_click_asks_for_the_line_and_the_run() -> None:
    point = PanelPoint(0.0, 1.0, at="r<1>")
    figure = small_multiples.figure(
        [Panel("t", "ms", (PanelLine("a&b", (point,)),))], Axis(("v",), span=(0, 0))
    )
    assert figure["data"][0]["customdata"] == [["a&b", "r<1>"]]


def test_many_samples_are_thinned_for_drawing() -> None:
    points = tuple(
        PanelPoint(float(x), 1.0, low=0.9, high=1.1, samples=tuple(np.linspace(0.9, 1.1, 500)))
        for x in range(300)
    )
    others = [
        PanelLine(f"v{index}", tuple(PanelPoint(float(x), 1.0) for x in range(300))) for index in range(12)
    ]
    panel = Panel("t", "%", (PanelLine("a", points, isolated=True), *others), linear=True)
    figure = small_multiples.figure([panel], Axis(time=True, span=(0, 300)))
    assert sum(len(trace["x"]) for trace in figure["data"]) < 1.3 * small_multiples.MAX_POINTS


def test_a_lone_line_keeps_its_numbers_beside_a_level() -> None:
    line = PanelLine("k", (PanelPoint(0.0, 40.0, label="40"), PanelPoint(1.0, 64.0, label="64")))
    panel = Panel("registers", "", (line,), references=(Reference("budget 72", 72.0),))
    figure = small_multiples.figure([panel], Axis(("a", "b"), span=(0, 1)))
    assert figure["data"][0]["text"] == ["40", "64"]
    texts = [note["text"] for note in figure["layout"]["annotations"]]
    assert any("budget 72" in text for text in texts)
    assert not any(text == "k" for text in texts), "its name stands nowhere twice"
