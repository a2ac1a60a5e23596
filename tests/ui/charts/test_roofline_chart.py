"""The roofline chart: every line and point named beside it, plain ticks, nothing drawn that is not known."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pytest

from profiler.documents.roofline import missing_blocks, point_table, roof_table
from profiler.evidence import metric_table
from profiler.explain.roofline import roofline_of
from profiler.ui.charts import labels, roofline_chart
from profiler.ui.views import answer, roofline_points
from tests.explain.test_roofline import PEAK, launch, whole

TABLE = metric_table.load_metrics()
SLOPES = [
    roofline_chart.Slope("L1", 13e12),
    roofline_chart.Slope("L2", 2.5e12),
    roofline_chart.Slope("DRAM", 0.9e12),
]
CEILINGS = [roofline_chart.Ceiling("fp64", 6.6e12), roofline_chart.Ceiling("fp32", 13.2e12)]


def mark(x: float, y: float = 3e12, label: str = "DRAM", row: str = "fp64") -> roofline_chart.KernelMark:
    return roofline_chart.KernelMark(x, y, label, "hover", row=row)


def words(figure: dict[str, Any]) -> list[str]:
    return [note["text"] for note in figure["layout"]["annotations"]]


def test_every_roof_and_every_row_of_points_is_named_on_the_chart() -> None:
    figure = roofline_chart.figure(SLOPES, CEILINGS, [mark(3.4, label="L1"), mark(8.6)])
    all_words = " ".join(words(figure))
    for name in ("L1 13.0 TB/s", "L2 2.50 TB/s", "DRAM 900 GB/s", "fp64 6.60 TFLOP/s", "fp32 13.2 TFLOP/s"):
        assert name in all_words
    assert words(figure).count("<b>fp64</b>") == 1, "once a row, not once a point"
    assert figure["layout"]["showlegend"] is False


def test_both_axes_are_logarithmic_with_plain_ticks_and_hold_everything() -> None:
    figure = roofline_chart.figure(SLOPES, CEILINGS, [mark(8.6), mark(0.02, 1e9)])
    for name, numbers in (("xaxis", (8.6, 0.02, 13.2 / 0.9)), ("yaxis", (3e12, 1e9, 13.2e12))):
        axis = figure["layout"][name]
        assert axis["type"] == "log"
        assert all("e" not in text for text in axis["ticktext"])
        low, high = axis["range"]
        assert all(low < math.log10(number) < high for number in numbers)


def test_a_slope_ends_at_the_highest_ceiling_and_a_ceiling_begins_at_the_steepest_slope() -> None:
    figure = roofline_chart.figure(SLOPES, CEILINGS, [mark(8.6)])
    lines = [trace for trace in figure["data"] if trace["mode"] == "lines"]
    dram = next(trace for trace in lines if "DRAM" in trace["hovertemplate"])
    assert dram["y"][1] == pytest.approx(13.2e12)
    fp64 = next(trace for trace in lines if trace["hovertemplate"].startswith("<b>fp64"))
    assert fp64["x"][0] == pytest.approx(6.6 / 13)


def test_points_alone_are_a_chart_where_no_peak_is_known() -> None:
    figure = roofline_chart.figure([], [], [mark(8.6)])
    assert [trace["mode"] for trace in figure["data"]] == ["markers+text"]
    assert not figure["layout"]["shapes"]


def test_equal_roofs_share_one_line_of_text() -> None:
    same = [roofline_chart.Ceiling("tensor fp16", 9e14), roofline_chart.Ceiling("tensor bf16", 9e14)]
    figure = roofline_chart.figure(SLOPES, same, [mark(8.6)])
    assert sum("tensor" in text for text in words(figure)) == 1


def test_labels_of_close_neighbours_do_not_lie_on_one_side() -> None:
    figure = roofline_chart.figure(
        SLOPES, CEILINGS, [mark(8.0, label="L2"), mark(8.6), mark(0.1, label="L1")]
    )
    sides = figure["data"][-1]["textposition"]
    assert sides[0] != sides[1]
    assert sides[2] == "bottom center", "it stands alone"


def test_a_cluster_of_labels_covers_neither_points_nor_each_other() -> None:
    points = [(100.0 + 9 * index, 100.0 + 14 * index) for index in range(6)]
    names = [f"version{index}" for index in range(6)]
    sides = labels.label_sides(points, names)
    boxes = [
        labels._box(*point, name, *labels._SIDES[side])
        for point, name, side in zip(points, names, sides, strict=True)
    ]
    assert all(labels._overlap(a, b) == 0 for a, b in combinations(boxes, 2))


def test_a_roof_that_is_not_known_is_not_drawn_and_its_metric_is_named() -> None:
    roofline = roofline_of(launch(whole(**{PEAK.format("ffma"): None})), TABLE, "sm_80")
    slopes, ceilings = roofline_points.slopes_and_ceilings(roofline)
    assert [slope.label for slope in slopes] == ["DRAM"]
    assert ceilings == []
    words_of_notes = answer.html(missing_blocks(roofline, "sm_80"))
    assert PEAK.format("ffma") in words_of_notes
    assert "failed (NaN)" in words_of_notes
    assert "profiler list metrics --chip sm_80" in words_of_notes
    (cells,) = point_table(roofline).rows
    assert cells[3] == "–", "where the roofs meet"


def test_a_launch_with_nothing_has_no_table_of_zeros() -> None:
    roofline = roofline_of(launch({}), TABLE, "sm_80")
    assert not roof_table(roofline).rows
    assert not point_table(roofline).rows
