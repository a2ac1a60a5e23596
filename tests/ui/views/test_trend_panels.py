"""A history as panels: gaps with their reason, breaks where nothing may be joined, kernels cut but named."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from profiler.bundles import location
from profiler.compare.noise_model import NoiseModel
from profiler.documents.trend import TrendDocument
from profiler.evidence import metric_table
from profiler.evidence.values import NOT_COLLECTED, Evidence, State, Value
from profiler.history.lineage import load_lineages
from profiler.history.trend import ABSENT, LATENCY, Trend, TrendPoint
from profiler.statistics.noise_floor import NoiseFloor, floor_of_ratios
from profiler.store.readable_index import open_store
from profiler.ui.charts.small_multiples import FAILED, gaps_of_all_lines
from profiler.ui.data import run_axis, trend_choice
from profiler.ui.data.run_axis import RunAxis
from profiler.ui.views import trend_numbers, trend_panels
from tests import lineages

NAN = Value(None, "ns", state=State.FAILED)
WORDS = trend_choice.labeller(metric_table.load_metrics())
VERSIONS = ["v1", "v2", "v3"]


def point(version: str, value: Value, gap: str = "", breaks: str = "") -> TrendPoint:
    day = int(version[1:])
    created = datetime(2026, 1, day, tzinfo=UTC)
    return TrendPoint(
        f"run-{version}",
        version,
        created,
        value,
        "gpu__time_duration.sum",
        (4, 1, 1),
        (32, 1, 1),
        day,
        gap,
        breaks,
    )


def kernel(name: str, *points: TrendPoint, unit: str = "ns", mode: str = "ncu") -> Trend:
    return Trend(
        "duration",
        "ncu duration",
        "lower",
        unit,
        "f",
        None,
        "H100",
        Evidence.MEASURED,
        mode,
        name,
        name,
        points,
    )


def timed(*drivers: str | None) -> Trend:
    """Calls of 2 ms, each point by another driver."""
    points = (
        point(f"v{place}", ns(2e6))._replace(driver=driver) for place, driver in enumerate(drivers, start=1)
    )
    return replace(kernel("calls", *points, mode="events"), concept=LATENCY)


def ns(number: float) -> Value:
    return Value(number, "ns")


def test_the_floor_of_a_latency_is_that_of_the_newest_driver() -> None:
    floor = floor_of_ratios(np.random.default_rng(5).permutation(np.linspace(0.001, 0.01, 100)))

    def lookup(*place: object) -> NoiseFloor:
        assert place[:4] == ("H100", "events", 2e6, "f")
        return floor if place[4] == "580" else replace(floor, differs_in="driver 580")

    for drivers, words in (
        (("570", "580"), "events: A/A floor here ±1 % (100 pairs); grey band"),
        (("580", "570"), "events: no A/A floor here but of driver 580: "),
        (("580", None), "events: no A/A floor here but of driver 580: "),
    ):
        (note,) = trend_panels.floor_notes({LATENCY: [timed(*drivers)]}, NoiseModel(floor=lookup))
        assert words in str(note)


def test_a_failed_run_is_a_gap_that_says_so_and_not_a_zero() -> None:
    trend = kernel("k", point("v1", ns(5e6)), point("v2", NAN, "failed"), point("v3", ns(4e6)))
    picture = trend_panels.picture({"duration": [trend]}, RunAxis.of_versions(VERSIONS), [trend])
    points = picture.panels[0].lines[0].points
    assert [p.y for p in points] == [5.0, None, 4.0]
    assert points[1].gap == FAILED


def test_a_kernel_that_did_not_run_is_a_gap_of_its_own_kind() -> None:
    trend = kernel("k", point("v1", ns(5e6)), point("v2", NOT_COLLECTED, ABSENT))
    picture = trend_panels.picture({"duration": [trend]}, RunAxis.of_versions(VERSIONS), [trend])
    assert picture.panels[0].lines[0].points[1].gap == ABSENT


def test_a_break_is_not_joined_and_its_reason_is_written_once() -> None:
    broken = point("v2", ns(5e6), breaks="driver differs: 1 and 2")
    by_metric = {
        "duration": [kernel("k", point("v1", ns(5e6)), broken), kernel("l", point("v1", ns(1e6)), broken)]
    }
    picture = trend_panels.picture(by_metric, RunAxis.of_versions(VERSIONS), by_metric["duration"])
    assert [p.joined for p in picture.panels[0].lines[0].points] == [True, False]
    written = [line for line in trend_panels.notes(picture, by_metric, WORDS) if "driver differs" in line]
    assert len(written) == 1
    assert "not joined at v2: driver differs: 1 and 2 (k, l)" in written[0]


def test_breaks_are_of_the_kernels_drawn_and_many_are_counted() -> None:
    several = [
        kernel(f"k{index}", point("v1", ns(1e6 - index)), point("v2", ns(1e6), breaks=f"grid {index} → 9"))
        for index in range(2 * trend_panels.LINES_SHOWN)
    ]
    by_metric = {"duration": several, "cycles": [kernel("k0", point("v3", ns(1e6), breaks="driver differs"))]}
    notes = trend_panels.notes(
        trend_panels.picture(by_metric, RunAxis.of_versions(VERSIONS), several), by_metric, WORDS
    )
    breaks = [note for note in notes if "not joined" in note]
    assert len(breaks) == trend_panels.BREAKS_SHOWN + 1
    assert "not joined at v2: grid 0 → 9 (k0)" in breaks[0]
    assert f"grid {trend_panels.LINES_SHOWN} →" not in "".join(breaks), "it is not drawn"
    assert "and 1 more; hover over" in breaks[-1]


def test_a_metric_that_only_kernels_not_drawn_have_is_named() -> None:
    many = [kernel(f"k{index}", point("v1", ns(1e6 - index))) for index in range(12)]
    by_metric = {"duration": many, "tensor_busy": many[-1:]}
    picture = trend_panels.picture(by_metric, RunAxis.of_versions(VERSIONS), many)
    assert [panel.title for panel in picture.panels] == ["ncu duration"]
    notes = "".join(trend_panels.notes(picture, by_metric, WORDS))
    assert "not collected for the kernels shown, only for others: tensor busy" in notes


def test_a_kernel_of_no_version_shown_has_no_row_and_is_counted() -> None:
    gone = kernel("gone", point("v1", NOT_COLLECTED, ABSENT), point("v2", NOT_COLLECTED, ABSENT))
    output = trend_numbers.table([kernel("k", point("v1", ns(5e6))), gone], VERSIONS, "f", [])
    assert ">gone<" not in output
    assert "1 kernel is not in the newest runs of these versions" in output


def test_one_unit_holds_for_all_lines_of_a_panel() -> None:
    by_metric = {"duration": [kernel("long", point("v1", ns(5e6))), kernel("short", point("v1", ns(5e3)))]}
    (panel,) = trend_panels.picture(by_metric, RunAxis.of_versions(VERSIONS), by_metric["duration"]).panels
    assert panel.unit == "ms"
    assert [line.points[0].y for line in panel.lines] == [5.0, 0.005]


def test_more_kernels_than_can_be_told_apart_are_cut_by_time_and_named() -> None:
    many = [kernel(f"k{index}", point("v1", ns(1e6 - index))) for index in range(12)]
    by_metric = {"duration": many, "occupancy": list(reversed(many))}
    picture = trend_panels.picture(by_metric, RunAxis.of_versions(VERSIONS), many)
    for panel in picture.panels:
        assert {line.label for line in panel.lines} == {
            f"k{index}" for index in range(trend_panels.LINES_SHOWN)
        }
    (note,) = trend_panels.notes(picture, by_metric, WORDS)
    assert "4 shorter kernels are not drawn: k8, k9, k10 and 1 more" in note


def test_modes_of_one_kernel_are_lines_of_their_own() -> None:
    several = [kernel("k", point("v1", ns(1e6)), mode="cold"), kernel("k", point("v1", ns(9e5)), mode="warm")]
    (panel,) = trend_panels.picture({"duration": several}, RunAxis.of_versions(VERSIONS), several).panels
    assert [line.label for line in panel.lines] == ["k (cold)", "k (warm)"]


def test_over_time_the_axis_holds_moments() -> None:
    trend = kernel("k", point("v1", ns(5e6)), point("v3", ns(4e6)))
    picture = trend_panels.picture({"duration": [trend]}, RunAxis(run_axis.TIME), [trend])
    assert picture.axis.time
    assert picture.axis.span[1] - picture.axis.span[0] == 2 * 86_400_000
    assert picture.figure["layout"]["xaxis"]["type"] == "date"


def test_a_metric_that_no_run_has_is_named_by_its_label() -> None:
    trend = kernel("k", point("v1", ns(5e6)))
    by_metric = {"duration": [trend], "tensor_busy": [], "my__metric.sum": []}
    picture = trend_panels.picture(by_metric, RunAxis.of_versions(VERSIONS), [trend])
    (note,) = trend_panels.notes(picture, by_metric, WORDS)
    assert "not collected in any of these runs: tensor busy, my__metric.sum" in note


def test_the_table_links_each_version_to_the_diff_with_the_one_before() -> None:
    output = trend_numbers.table(
        [kernel("k", point("v1", ns(5e6)), point("v3", NAN, "failed"))], VERSIONS, "f", []
    )
    assert "?a=f%2Fv1&amp;b=f%2Fv2" in output
    assert "?a=f%2Fv2&amp;b=f%2Fv3" in output
    assert "failed (NaN)" in output


def test_the_csv_holds_every_point_in_base_units_and_no_number_for_a_failure() -> None:
    trend = kernel("k", point("v1", ns(5e6)), point("v2", NAN, "failed", ""))
    head, first, second = TrendDocument("duration", (trend,)).to_csv().splitlines()
    cells = dict(zip(head.split(","), first.split(","), strict=True))
    assert (cells["value"], cells["unit"], cells["state"]) == ("5000000.0", "ns", "")
    cells = dict(zip(head.split(","), second.split(","), strict=True))
    assert (cells["value"], cells["unit"], cells["state"]) == ("", "ns", "failed")


def test_a_version_without_any_result_is_a_gap_and_no_blank_that_reads_as_nothing_there() -> None:
    trend = kernel("k", point("v1", ns(5e6)), point("v3", ns(4e6)))
    (panel,) = trend_panels.picture({"duration": [trend]}, RunAxis.of_versions(VERSIONS), [trend]).panels
    assert gaps_of_all_lines(panel) == [(1.0, trend_panels.NO_RESULT)]
    filtered = trend_panels.picture({"duration": [trend]}, RunAxis(run_axis.TIME), [trend])
    assert not gaps_of_all_lines(filtered.panels[0]), "over time there are runs and no versions to miss"


def test_a_line_leads_to_a_version_only_from_what_it_was_made_from(tmp_path: Path) -> None:
    lineages.dissected(tmp_path)
    lineage = load_lineages(location.open_root(str(tmp_path)), open_store(str(tmp_path)))[lineages.FAMILY]
    names = [status.version.id for status in lineage.statuses]
    child = next(
        status for status in lineage.statuses if status.correct_ancestor is not None and not status.is_wrong
    )
    parent = child.correct_ancestor.id if child.correct_ancestor else ""
    other = next(name for name in names if name not in (child.version.id, parent))

    def joined(before: str, after: str = child.version.id) -> bool:
        points = (point("v1", ns(5e6))._replace(version=before), point("v2", ns(4e6)))
        trend = kernel("k", points[0], points[1]._replace(version=after))
        versions = [before, after]
        (panel,) = trend_panels.picture(
            {"duration": [trend]}, RunAxis.of_versions(versions), [trend], lineage=lineage
        ).panels
        return panel.lines[0].points[1].joined

    assert joined(parent)
    assert not joined(other)
    assert not joined(parent, "imported"), "nobody knows what it was made from"
    assert joined("before", "after"), "reports of no catalogue, in the order of their first runs"


def test_no_line_leads_over_nights_without_a_run() -> None:
    days = [day for day in range(1, 21) if day not in (8, 9, 10)]
    trend = kernel("a", *(point(f"v{day}", Value(1000.0, "ns")) for day in days))
    same = replace(trend, points=tuple(at._replace(version="v1") for at in trend.points))
    picture = trend_panels.picture({"duration": [same]}, RunAxis(run_axis.TIME), [same])
    (line,) = picture.panels[0].lines
    assert [at.joined for at in line.points].count(False) == 1
    assert line.points[7].joined is False
    words = [note["text"] for note in picture.figure["layout"]["annotations"]]
    assert "no run" in words


def test_timed_calls_are_drawn_before_the_kernels_of_launches() -> None:
    calls = replace(
        kernel("", point("v1", Value(5.0, "ns")), mode="events"), concept=LATENCY, label="latency"
    )
    kernels = [kernel(f"k{n}", point("v1", Value(1000.0 - n, "ns"))) for n in range(12)]
    picture = trend_panels.picture(
        {LATENCY: [calls], "duration": kernels}, RunAxis.of_versions(["v1"]), kernels
    )
    assert [panel.title for panel in picture.panels] == ["latency", "ncu duration"]
