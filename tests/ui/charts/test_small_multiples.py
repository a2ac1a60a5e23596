"""Charts as data: where lines stop, what a gap says, and that labels never lie over each other."""

import json
import math
from itertools import pairwise

import pytest

from profiler.evidence.values import State, Value
from profiler.ui.charts import small_multiples, style
from profiler.ui.charts.labels import shorten, spread_apart
from profiler.ui.charts.scales import axis_share, log_ticks, value_range
from profiler.ui.charts.small_multiples import (
    FAILED,
    MAX_POINTS,
    Axis,
    Panel,
    PanelLine,
    PanelPoint,
    gaps_of_all_lines,
    thinned,
)

AXIS = Axis(("v1", "v2", "v3", "v4"), span=(0, 3))


def points(
    *numbers: float | None, gap: str = "not collected", breaks: tuple[int, ...] = ()
) -> tuple[PanelPoint, ...]:
    return tuple(
        PanelPoint(
            index,
            number,
            label=str(number),
            gap="" if number is not None else gap,
            joined=index not in breaks,
        )
        for index, number in enumerate(numbers)
    )


def drawn(figure: dict, kind: str = "scatter") -> list[dict]:
    return [trace for trace in figure["data"] if trace["type"] == kind]


def notes(figure: dict) -> list[str]:
    return [note["text"] for note in figure["layout"]["annotations"]]


def test_a_line_stops_on_both_sides_of_a_missing_value() -> None:
    figure = small_multiples.figure(
        [Panel("duration", "ms", (PanelLine("k", points(3.0, None, 2.0, 1.0)),))], AXIS
    )
    assert drawn(figure)[0]["y"] == [3.0, None, 2.0, 1.0]
    assert 0 not in drawn(figure)[0]["y"]


def test_of_a_long_line_some_points_are_marked_and_of_one_with_a_lone_number_all() -> None:
    long = points(*(3.0 + number % 5 for number in range(100)))
    alone = points(*(3.0 if number % 3 else None for number in range(50)), 3.0, None, 4.0)
    lines = [PanelLine(f"k{number}", long) for number in range(9)]
    figure = small_multiples.figure([Panel("duration", "ms", (*lines, PanelLine("alone", alone)))], AXIS)
    by_name = {trace["name"]: trace for trace in drawn(figure)}
    assert by_name["k0"]["marker"]["maxdisplayed"] == 16
    assert len(by_name["k0"]["hovertext"]) == len(by_name["k0"]["customdata"]) == 100, "each can be read"
    assert "maxdisplayed" not in by_name["alone"]["marker"]
    short = small_multiples.figure([Panel("duration", "ms", (PanelLine("k", points(1.0, 2.0)),))], AXIS)
    assert "maxdisplayed" not in drawn(short)[0]["marker"]
    isolated = [PanelLine("k", long, isolated=True), *lines]
    figure = small_multiples.figure([Panel("duration", "ms", tuple(isolated))], AXIS)
    assert "maxdisplayed" not in next(trace for trace in drawn(figure) if trace["name"] == "k")["marker"]


def test_a_missing_value_is_a_hatched_column_that_names_its_reason() -> None:
    figure = small_multiples.figure(
        [Panel("duration", "ms", (PanelLine("k", points(3.0, None, None, 1.0)),))], AXIS
    )
    (hatch,) = drawn(figure, "bar")
    assert hatch["x"] == [1, 2]
    assert hatch["marker"]["pattern"]["shape"] == "/"
    assert notes(figure).count("not collected") == 1  # one label for the stretch


def test_a_place_that_no_line_speaks_of_is_hatched_where_the_panel_names_it() -> None:
    panel = Panel(
        "duration", "ms", (PanelLine("k", points(3.0, None, 2.0)),), blank=((0, "x"), (3, "no result"))
    )
    (hatch,) = drawn(small_multiples.figure([panel], AXIS), "bar")
    assert hatch["x"] == [1, 3], "a number wins over a blank"
    assert "no result" in notes(small_multiples.figure([panel], AXIS))


def test_a_logarithmic_panel_says_so() -> None:
    titles = [
        notes(
            small_multiples.figure([Panel("a", "ms", (PanelLine("k", points(*numbers)),), "static")], AXIS)
        )[0]
        for numbers in ((1.0, 20.0), (1.0, 2.0))
    ]
    assert ["log scale" in title for title in titles] == [True, False]


def test_ticks_of_tiny_numbers_carry_no_prefix_that_reads_as_a_unit() -> None:
    tiny = small_multiples.figure([Panel("error", "", (PanelLine("k", points(2e-4, 3e-4)),))], AXIS)
    assert tiny["layout"]["yaxis"]["exponentformat"] == "e"
    large = small_multiples.figure([Panel("cycles", "", (PanelLine("k", points(2e6, 3e6)),))], AXIS)
    assert "exponentformat" not in large["layout"]["yaxis"]


def test_points_that_cannot_be_compared_are_not_joined() -> None:
    figure = small_multiples.figure(
        [Panel("duration", "ms", (PanelLine("k", points(3.0, 2.5, 2.0, breaks=(2,))),))], AXIS
    )
    assert drawn(figure)[0]["y"] == [3.0, 2.5, None, 2.0]


def test_a_failed_launch_beside_other_kernels_is_a_cross_and_not_a_zero() -> None:
    lines = (PanelLine("good", points(3.0, 3.0, 3.0)), PanelLine("bad", points(2.0, None, 2.0, gap=FAILED)))
    figure = small_multiples.figure([Panel("duration", "ms", lines)], AXIS)
    assert not drawn(figure, "bar")
    (cross,) = [trace for trace in drawn(figure) if trace["marker"].get("symbol") == "x-thin"]
    assert cross["x"] == [1]
    assert cross["text"] == ["bad failed"]


def test_the_word_for_a_failed_value_is_the_one_the_charts_look_for() -> None:
    from profiler.evidence import formatting

    assert formatting.state_words(Value(None, state=State.FAILED)) == FAILED


def test_a_place_where_one_line_has_a_number_is_no_gap() -> None:
    panel = Panel("d", "ms", (PanelLine("a", points(1.0, None)), PanelLine("b", points(None, 2.0))))
    assert gaps_of_all_lines(panel) == []


def test_a_kernel_name_in_a_chart_is_escaped() -> None:
    lines = (PanelLine("f<b>", points(1.0)), PanelLine("g", points(2.0)))
    figure = small_multiples.figure([Panel("d", "ms", lines)], AXIS)
    assert "f&lt;b&gt;" in notes(figure)
    assert not any("f<b>" in text for text in notes(figure))


def test_a_quote_in_a_label_stands_as_it_is() -> None:
    """Plotly knows &lt; and &amp; and prints &quot; as these six letters."""
    lines = (PanelLine("a \"b\" 'c'", points(1.0)), PanelLine("g & h", points(2.0)))
    figure = small_multiples.figure([Panel('d "e"', "ms", lines)], AXIS)
    assert "a \"b\" 'c'" in notes(figure)
    assert "g &amp; h" in notes(figure)
    assert "&quot;" not in json.dumps(figure)
    assert "&#x27;" not in json.dumps(figure)


def test_a_panel_over_a_factor_of_ten_is_logarithmic_and_others_hold_zero() -> None:
    assert value_range([1.0, 11.0])[2]
    low, high, log = value_range([5.0, 9.0])
    assert (low, log) == (0.0, False)
    assert high > 9
    assert value_range([0.0, 1000.0])[2] is False  # zero has no logarithm
    assert value_range([0.0])[:2] == (0.0, 1.0)


def test_the_share_of_a_number_on_a_log_panel_is_by_factor() -> None:
    assert axis_share(10, 1, 100, True) == pytest.approx(0.5)
    assert axis_share(25, 0, 100, False) == pytest.approx(0.25)


def test_labels_keep_their_distance_and_their_order_and_stay_inside() -> None:
    placed = spread_apart([0.5, 0.51, 0.52, 0.99], 0.1, 0.0, 1.0)
    ordered = sorted(placed)
    assert all(b - a >= 0.1 - 1e-9 for a, b in pairwise(ordered))
    assert placed == ordered
    assert ordered[0] >= 0
    assert ordered[-1] <= 1


def test_log_ticks_are_plain_numbers_inside_the_range() -> None:
    marks = log_ticks(2.9, 700.0)
    assert 3 <= len(marks) <= 6
    assert all(2.9 <= mark <= 700 for mark in marks)
    assert {round(mark / 10 ** math.floor(math.log10(mark)), 6) for mark in marks} <= {1.0, 2.0, 3.0, 5.0}


def test_thinning_keeps_gaps_breaks_and_the_last_point() -> None:
    line = [PanelPoint(index, float(index), joined=index != 501) for index in range(1000)]
    line[700] = PanelPoint(700, None, gap="not collected")
    drawn = thinned(line, 100)
    assert len(drawn) <= 103
    assert drawn[-1].x == 999
    assert [point.x for point in drawn if point.y is None] == [700]
    assert [point.x for point in drawn if not point.joined] == [510]


def test_a_chart_of_many_points_stays_under_what_svg_draws_smoothly() -> None:
    many = tuple(PanelPoint(index, 1.0) for index in range(5000))
    lines = tuple(PanelLine(f"k{index}", many) for index in range(4))
    figure = small_multiples.figure([Panel("d", "ms", lines)], Axis(time=True, span=(0, 5000)))
    assert sum(len(trace["x"]) for trace in drawn(figure)) <= MAX_POINTS * 1.1


def test_panels_share_one_axis_and_do_not_overlap() -> None:
    panels = [Panel(name, "", (PanelLine("k", points(1.0, 2.0)),)) for name in ("a", "b", "c")]
    layout = small_multiples.figure(panels, AXIS)["layout"]
    domains = [layout[name]["domain"] for name in ("yaxis", "yaxis2", "yaxis3")]
    assert all(upper[0] > lower[1] for upper, lower in pairwise(domains))
    assert layout["xaxis"]["anchor"] == "y3"
    assert domains[2][0] == pytest.approx(0.0)


def test_very_many_versions_are_named_as_far_as_there_is_room() -> None:
    assert style.version_ticks(["a", "b"])["ticktext"] == ["a", "b"]
    assert style.version_ticks([])["tickvals"] == []
    assert style.version_ticks([f"v{index}" for index in range(50)])["tickvals"] == list(range(0, 50, 3))


def test_long_names_lose_their_middle() -> None:
    assert shorten("set_halo_values_x_419_gpu_and_more") == "set_halo_val…and_more"
    assert shorten("short") == "short"
