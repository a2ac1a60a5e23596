"""Runs, launches and the metrics of one launch: what is found, what is cut and said to be cut."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from profiler.evidence import metric_table
from profiler.evidence.values import Evidence, State, Value
from profiler.reports import read
from profiler.reports.instances import LaunchDetail
from profiler.store.family_mix import FamilyMix
from profiler.store.import_files import AlreadyImported, Imported, ImportSummary
from profiler.store.rows import ResultInfo, Rows, RunInfo
from profiler.ui.views import instruction_columns, launch_list, run_list
from tests.reportfiles import is_made


def run(family: str, version: str, day: int, **other: object) -> RunInfo:
    nothing_known: dict[str, object] = dict.fromkeys(
        ("workload", "gpu", "compute_capability", "driver", "ncu_version", "cuda")
    )
    nothing_known |= dict.fromkeys(("host", "command_line", "clock_control", "cache_control"))
    return RunInfo(
        run_id=f"{day}-{family}-{version}",
        family=family,
        version=version,
        kind="import",
        created=datetime(2026, 1, day, tzinfo=UTC),
        launches=1,
        reports=(),
        evidence=frozenset({Evidence.MEASURED}),
        hidden=False,
        families=(family,),
        versions=(version,),
        **{**nothing_known, **other},
    )


def launch(part: str, duration: Value, ordinal: int = 0) -> ResultInfo:
    return ResultInfo(
        result_id=ordinal,
        run_id="r",
        family="f",
        version="v",
        workload=None,
        gpu="H100",
        evidence=Evidence.MEASURED,
        mode="ncu",
        part=part,
        base_name=part.rpartition("#")[0],
        demangled=f"void {part}<int>(float*)",
        grid=(4, 1, 1),
        block=(32, 1, 1),
        ordinal=ordinal,
        created=datetime(2026, 1, 1, tzinfo=UTC),
        duration_ns=duration,
        report_sha256="0" * 64,
    )


RUNS = [run("a", "v1", 1, gpu="H100"), run("a", "v2", 2, gpu="L4"), run("b", "v1", 3, gpu="L4")]


def test_runs_are_found_by_family_and_by_every_word_newest_first() -> None:
    assert [match.run_id for match in run_list.matching(RUNS, "", "")] == ["3-b-v1", "2-a-v2", "1-a-v1"]
    assert [match.run_id for match in run_list.matching(RUNS, "a", "l4")] == ["2-a-v2"]
    assert run_list.matching(RUNS, "b", "h100") == []


def test_a_run_that_the_address_names_is_shown_though_the_filter_hides_it() -> None:
    chosen = run_list.choose(RUNS, run_list.matching(RUNS, "b", ""), "1-a-v1")
    assert chosen is RUNS[0]


def test_one_run_of_one_family_is_counted_in_the_singular() -> None:
    assert run_list.count(RUNS) == "3 runs of 2 families"
    assert run_list.count(RUNS[:1]) == "1 run of 1 family"
    cut = Rows(RUNS, truncated=True)
    assert run_list.count(cut) == "the newest 3 runs of 2 families; older ones are not listed"


def test_more_runs_than_the_table_shows_are_counted() -> None:
    many = [run("a", f"v{index}", 1) for index in range(run_list.RUNS_SHOWN + 5)]
    assert "5 older runs not shown" in run_list.table(many, None)


def test_a_run_links_to_the_diff_with_the_run_before_it_in_its_family() -> None:
    assert "?a=1-a-v1&amp;b=2-a-v2" in run_list.links(RUNS, RUNS[1])
    assert "diff" not in run_list.links(RUNS, RUNS[2])


def test_what_a_report_does_not_say_is_not_left_blank() -> None:
    assert run_list.provenance(RUNS[0]).count("not in the report") == 8


def test_whatever_else_a_run_recorded_of_its_making_is_shown() -> None:
    output = run_list.provenance(run("a", "v", 1, provenance={"throttle_reasons": ["none"], "driver": "550"}))
    assert "throttle reasons" in output
    assert "[&quot;none&quot;]" in output
    assert output.count(">driver<") == 1


def test_the_outcome_of_an_import_counts_and_names_what_was_refused() -> None:
    done = ImportSummary(
        imported=(Imported("/a", "1", "f", "v1", 5), Imported("/b", "2", "f", "v2", 5)),
        already=(AlreadyImported("/c", "3"),),
        refused=(("d", "d: not a report"),),
    )
    lines = run_list.import_summary(done)
    assert "Imported 2, 1 already there, 1 refused." in lines[0]
    assert "?a=f%2Fv1&amp;b=f%2Fv2" in lines[0]
    assert "d: not a report" in lines[1]
    for run_id in "123":
        assert f'href="./runs?run={run_id}"' in lines[0], "an old report is not on top of the table"


def test_a_doubt_about_an_imported_file_is_shown() -> None:
    done = ImportSummary(
        imported=(Imported("d", "1", "f", "v", 1),), warnings=(("d", "d: imported, but lost"),)
    )
    lines = run_list.import_summary(done)
    assert "Imported 1." in lines[0]
    assert "d: imported, but lost" in lines[1]


def test_a_bundle_that_cannot_be_read_is_named_with_its_reason() -> None:
    (line,) = run_list.unreadable({"r1": "run.json: not JSON"})
    assert "r1 is left out: run.json: not JSON" in line


def test_the_longest_launch_comes_first_and_one_that_failed_before_it() -> None:
    matches = launch_list.matching(
        [
            launch("k#0", Value(1.0, "ns")),
            launch("k#1", Value(9.0, "ns")),
            launch("l#0", Value(None, "ns", state=State.FAILED)),
        ],
        "",
    )
    assert [match.part for match in matches] == ["l#0", "k#1", "k#0"]


def test_launches_over_the_limit_are_counted_and_the_filter_reaches_them() -> None:
    many = [launch(f"k{index}#0", Value(float(index), "ns"), index) for index in range(100)]
    assert launch_list.caption(launch_list.matching(many, ""), many) == "30 of 100, longest first"
    matches = launch_list.matching(many, "k7#")
    assert [match.part for match in matches] == ["k7#0"]
    assert launch_list.caption(matches, many) == "1 of 100, longest first (filtered)"


def test_a_launch_is_chosen_by_the_name_that_the_diff_gives_it() -> None:
    every = [
        launch("k#0", Value(1.0, "ns")),
        launch("l#0", Value(2.0, "ns")),
        launch("l#1", Value(2.0, "ns")),
    ]
    assert launch_list.choose(every, "k", every) is every[0]
    assert launch_list.choose(every, "l#1", every) is every[2]
    assert launch_list.choose(every, "gone", every) is every[0]
    assert launch_list.choose([], "k", every) is None


def test_a_failed_metric_has_its_state_and_no_number(reports: Path) -> None:
    failed = read.read_report(reports / "mistic" / "profileHIGGS.ncu-rep").launches[0]
    columns = launch_list.metric_columns(failed, metric_table.load_metrics(), "time_duration")
    assert columns["value"] == ["failed (NaN)"]
    assert columns["in base units"] == [None]


def test_the_metrics_of_a_launch_start_with_those_of_metrics_txt_under_their_labels(reports: Path) -> None:
    launch = read.read_report(reports / "ncar" / "MW_Baseline.ncu-rep").launches[0]
    table = metric_table.load_metrics()
    columns = launch_list.metric_columns(launch, table, "", "sm_70")
    derived = [name for name in columns["metric"] if name not in launch.values]
    assert sorted(map(str, columns["metric"])) == sorted([*launch.values, *map(str, derived)])
    assert derived
    assert all(str(name).startswith(("derived from ", "stand-in: ")) for name in derived)
    assert (columns["metric"][0], columns["label"][0]) == (
        "gpu__time_duration.sum",
        table.by_concept["duration"].label,
    )
    declared = [name for metric in table.metrics for name in metric.names_for(None) if name in launch.values]
    count = len(dict.fromkeys(declared))
    assert columns["metric"][:count] == list(dict.fromkeys(declared))
    assert all(columns["label"][:count])
    count += sum(name in launch.values for name in table.captured)
    assert columns["metric"][count : count + len(derived)] == derived
    assert all(columns["label"][count : count + len(derived)])
    count += len(derived)
    assert not any(columns["label"][count:])
    others = [str(name) for name in columns["metric"][count:]]
    assert others == sorted(others)


@pytest.fixture(scope="module")
def detail(reports: Path) -> LaunchDetail:
    return read.launch_detail(reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep", 0)


@pytest.mark.slow
def test_instructions_hold_their_samples_and_what_they_wait_for(detail: LaunchDetail, reports: Path) -> None:
    columns = instruction_columns.columns(detail, "")
    assert {len(column) for column in columns.values()} == {596 if is_made(reports) else 64}
    assert sum(number for number in columns["samples"] if number) == 3629
    assert "long_scoreboard" in columns["mostly waiting for"]
    assert ("v1.cu:81" if is_made(reports) else "adamw.cu:94") in columns["source"]


@pytest.mark.slow
def test_instructions_are_found_by_every_word(detail: LaunchDetail, reports: Path) -> None:
    columns = instruction_columns.columns(detail, "ldg v1.cu" if is_made(reports) else "ldg adamw.cu")
    assert columns["SASS"]
    assert all("LDG" in text for text in columns["SASS"])


def test_a_family_that_mixes_folders_says_which_and_how_to_mend_it() -> None:
    mix = FamilyMix("silu", (("host/a/silu", "a-silu", 2), ("host/b/silu", "b-silu", 1)), 0)
    html = run_list.mixed_family(mix)
    assert "mixes the reports of 2 folders" in html
    assert "a-silu" in html
    unknown = run_list.mixed_family(FamilyMix("ncu-reports", (), 3))
    assert "3 runs do not record" in unknown
    assert "profiler import FOLDER… --relabel" in unknown
