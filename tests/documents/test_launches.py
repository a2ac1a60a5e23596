"""Launches, their rooflines and insights as JSON, rows, Markdown and HTML."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.cli.output import text_of
from profiler.documents.insights import insights_of_name
from profiler.documents.launches import LaunchesDocument, launches_of_name, select_launches
from profiler.documents.roofline import rooflines_of_name
from profiler.errors import Exit, UnknownName
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import Evidence, Value, Values, pack_values
from tests.documents.printed import assert_html_escapes, assert_same_as_printed
from tests.documents.test_comparison import no_store, side
from tests.reportfiles.ncu_rep import LaunchResult, ReportFile

TABLE = load_metrics()


class TestLaunches:
    @pytest.mark.slow
    def test_they_are_what_the_command_prints(
        self, ncar: tuple[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        document = launches_of_name(ncar[0], TABLE, no_store)  # type: ignore[arg-type]
        answer = assert_same_as_printed(document, capsys, "show", ncar[0])
        assert answer["source"] == ncar[0]
        whole = launches_of_name(ncar[0], TABLE, no_store, every_metric=True)  # type: ignore[arg-type]
        answer = assert_same_as_printed(whole, capsys, "show", ncar[0], "--all")
        assert len(whole.rows()) == sum(len(launch["metrics"]) for launch in answer["launches"])

    def test_what_is_derived_says_so_in_text_json_and_rows(self) -> None:
        values = {
            "gpu__time_duration.sum": Value(1e6, "ns"),
            "gpc__cycles_elapsed.max": Value(1.5e6, "cycle"),
            "sm__cycles_elapsed.avg": Value(1.4e6, "cycle"),
        }
        of_one = replace(side(1).launches[0], values=pack_values(values))
        document = LaunchesDocument(select_launches(replace(side(1), launches=(of_one,))), TABLE)
        text = text_of(document.blocks())
        assert "derived from sm__cycles_elapsed.avg" in text
        words = "stand-in: gpc__cycles_elapsed.max / gpu__time_duration.sum * 1e9, seen up to 1.5 % off"
        assert words in text
        metrics = document.to_dict()["launches"][0]["metrics"]
        assert metrics[words] == {
            "value": pytest.approx(1.5e9),
            "unit": "hz",
            "derived_from": "gpc__cycles_elapsed.max / gpu__time_duration.sum * 1e9",
            "most_off_pct": 1.5,
            "concept": "sm_clock",
            "concepts": ["sm_clock"],
        }
        shared = metrics["derived from sm__cycles_elapsed.avg"]
        assert (shared["value"], shared["concepts"]) == (1.4e6, ["cycles_elapsed"])
        assert "derived_from" not in metrics["sm__cycles_elapsed.avg"]

    @pytest.mark.slow
    def test_a_row_is_a_metric_with_its_state(self, ncar: tuple[str, str]) -> None:
        frame = launches_of_name(ncar[0], TABLE, no_store).to_frame()  # type: ignore[arg-type]
        durations = frame[frame.concept == "duration"]
        assert set(durations.unit) == {"ns"}
        assert set(durations.state) == {"present"}
        absent = frame[frame.state == "not collected"]
        assert not absent.empty
        assert absent.value.isna().all()

    def test_the_longest_are_chosen_and_the_others_counted(self) -> None:
        selection = select_launches(side(1, 5, 3), top=2)
        assert [label for label, _ in selection.launches] == ["kernel_1", "kernel_2"]
        assert (selection.hidden, selection.longest(1).hidden) == (1, 2)
        with pytest.raises(UnknownName, match="no kernel matches 'x'"):
            select_launches(side(1), kernel="x")


class TestRooflines:
    def test_they_are_what_the_command_prints(
        self, ncar: tuple[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        document = rooflines_of_name(ncar[0], TABLE, no_store)  # type: ignore[arg-type]
        assert_same_as_printed(document, capsys, "roofline", ncar[0], code=int(document.exit_code))

    def test_a_row_is_a_roof_and_one_of_a_launch_is_the_nearest(self, ncar: tuple[str, str]) -> None:
        document = rooflines_of_name(ncar[0], TABLE, no_store)  # type: ignore[arg-type]
        frame = document.to_frame()
        assert set(frame.kind) == {"arithmetic", "memory"}
        nearest = [roofline.nearest for roofline in document.rooflines]
        assert frame.nearest.sum() == sum(roof is not None for roof in nearest)
        known = [roofline.nearest_known for roofline in document.rooflines]
        of_launches = [sentence for sentence in document.sentences if ": closest " in sentence]
        assert len(of_launches) == sum(roof is not None for roof in known)

    def test_without_a_complete_roof_the_sentence_says_so_and_nobody_can_judge(self) -> None:
        document = rooflines_of_name(side(1), TABLE, no_store)  # type: ignore[arg-type]
        reason = "no FLOPs (not collected) and no bytes (not collected)"
        assert document.sentences == [f"1 launch (kernel_0) has {reason}"]
        assert document.exit_code is Exit.UNJUDGED


class TestInsights:
    @pytest.mark.slow
    def test_they_are_what_the_command_prints(
        self, ncar: tuple[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        a, b = ncar
        document = insights_of_name(b, TABLE, no_store, against=a)  # type: ignore[arg-type]
        assert_same_as_printed(document, capsys, "insights", b, "--against", a)
        main(["insights", b, "--against", a, "--markdown"])
        assert capsys.readouterr().out == document.to_markdown()

    def test_a_row_is_a_statement(self, ncar: tuple[str, str]) -> None:
        document = insights_of_name(ncar[1], TABLE, no_store, against=ncar[0])  # type: ignore[arg-type]
        frame = document.to_frame()
        assert frame.statement.tolist() == list(document.sentences)
        assert set(frame.evidence) == {"measured"}

    def test_a_side_without_a_baseline_says_that_there_is_none(self) -> None:
        document = insights_of_name(side(1, name="k<i>"), TABLE, no_store)  # type: ignore[arg-type]
        assert document.title == "side"
        assert "No baseline was given." in document.to_markdown()
        assert_html_escapes(document, "<i>", "<h3><code>side</code></h3>")


@pytest.mark.slow
def test_what_is_shown_is_the_same_where_no_more_than_that_was_read(good_reports: list[Path]) -> None:
    """Names, numbers, units, states and GPUs, to the last bit, for every report."""
    for path in good_reports:
        whole, lean = (launches_of_name(str(path), TABLE, no_store, whole=whole) for whole in (True, False))
        assert lean.to_dict() == whole.to_dict(), path
        assert lean.rows() == whole.rows()
        assert lean.title == whole.title
        read, all_of_it = (sum(map(len, launches)) for launches in (values(lean), values(whole)))
        assert read < all_of_it


@pytest.mark.slow
def test_an_overview_counts_what_it_does_not_show_as_if_all_of_it_were_read(good_reports: list[Path]) -> None:
    concepts = frozenset({"duration", "sol_dram", "tensor_busy", "occupancy"})
    for path in good_reports:
        lean = launches_of_name(str(path), TABLE, no_store, whole=False, concepts=concepts)
        selection = launches_of_name(str(path), TABLE, no_store).selection
        whole = LaunchesDocument(selection, TABLE, concepts=concepts)
        assert lean.to_dict() == whole.to_dict(), path
        assert not lean.all_read
        of_all = launches_of_name(str(path), TABLE, no_store, whole=False)
        assert sum(map(len, values(lean))) < sum(map(len, values(of_all)))


@pytest.mark.parametrize(("number", "lacking"), [(2.0, False), (math.nan, True)])
def test_where_a_number_that_was_not_read_decides_everything_is_read(
    tmp_path: Path, number: float, lacking: bool
) -> None:
    """Every metric is there but one, which a form computes from a counter, or cannot where that failed."""
    names = [metric.names_for(None)[0] for metric in TABLE.of(Evidence.MEASURED)]
    metrics: dict[str, float | int] = dict.fromkeys(names, 1.0)
    del metrics["sm__warps_active.avg.per_cycle_active"]
    metrics |= {"smsp__warps_active.avg.per_cycle_active": number, "launch__block_size": 1024}
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(ReportFile([LaunchResult("gemm", "gemm(float*)", "_Z4gemmPf", metrics)]).to_bytes())
    concepts = frozenset({"duration"})
    document = launches_of_name(str(path), TABLE, no_store, whole=False, concepts=concepts)
    assert document.all_read
    launch = document.to_dict()["launches"][0]
    assert (launch["metrics_total"], launch["others_not_collected"]) == (len(set(names)), lacking)


def values(document: LaunchesDocument) -> list[Values]:
    """The values that were read of each launch."""
    return [launch.values for launch in document.side.launches]
