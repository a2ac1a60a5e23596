"""`profiler sass` from the command line: what it prints, what it refuses, its exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from profiler.cli import main
from profiler.documents.sass import NO_COUNTS, NO_TEXT
from tests.conftest import ROOT
from tests.reportfiles import is_made, machine_code
from tests.reportfiles.ncu_rep import LaunchResult, Metric, ReportFile, Scalar
from tests.toolchain import needs_sass

Caught = pytest.CaptureFixture[str]


def read_from_reports(reports: Path) -> tuple[int, str, int]:
    """Of llm.c's Adam kernel: its instructions, its hottest source line, and how many more there are."""
    return (596, "v1.cu:81", 37) if is_made(reports) else (64, "adamw.cu:95", 17)


def told(capsys: Caught, *arguments: object) -> tuple[int, str]:
    code = main(["sass", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out or captured.err


def document(capsys: Caught, *arguments: object) -> dict[str, Any]:
    code, text = told(capsys, *arguments, "--json")
    assert code == 0, text
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)


@pytest.mark.slow
def test_the_hottest_source_lines_of_a_launch(reports: Path, capsys: Caught) -> None:
    path = reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep"
    found = document(capsys, path, "--launch", 0, "--source", "--hot", 3)
    instructions, place, more = read_from_reports(reports)
    assert found["instructions"] == instructions
    assert found["places"][0]["place"] == place
    assert found["places"][0]["waiting"]["long_scoreboard"] > 500
    code, text = told(capsys, path, "--launch", 0, "--source", "--hot", 3)
    assert code == 0
    assert place in text
    assert f"and {more} more places" in text


@pytest.mark.slow
def test_a_kernel_of_a_report_is_found_by_its_name_and_paired_with_the_same(
    reports: Path, capsys: Caught
) -> None:
    a, b = (reports / "ncar" / f"MW_{name}.ncu-rep" for name in ("Baseline", "DivToMult"))
    found = document(capsys, a, b, "--kernel", "279")
    assert found["a"].endswith("compute_tendencies_x_279_gpu")
    assert found["b"].endswith("compute_tendencies_x_279_gpu")
    longest = document(capsys, a, b)
    assert longest["b"].endswith("compute_tendencies_x_279_gpu"), (
        "B's longest is another: A's kernel is meant"
    )
    assert found["has_text"] == {"a": False, "b": False}
    place = "v1.cu:81" if is_made(reports) else "miniWeather_mpi_openacc.F90:288"
    assert found["moved"][0]["place_a"] == place
    code, text = told(capsys, a, b)
    assert code == 0
    assert NO_TEXT in text


@pytest.mark.slow
def test_two_launches_of_one_report_show_no_difference(reports: Path, capsys: Caught) -> None:
    path = reports / "cutlass" / "report75.ncu-rep"
    code, text = told(capsys, path, path, "--launch", 0, "--b-launch", 1)
    assert code == 0
    assert f"{596 if is_made(reports) else 974} equal: no difference" in text
    assert not document(capsys, path, path, "--launch", 0, "--b-launch", 1)["different"]


def test_a_report_without_instructions_cannot_be_judged(reports: Path, capsys: Caught) -> None:
    code, text = told(capsys, reports / "mistic" / "profileHIGGS.ncu-rep")
    assert code == 3
    assert "the report holds no instructions of" in text
    assert "--set full" in text
    assert len(text.splitlines()) == 1


def test_code_of_which_nothing_was_counted_is_shown_and_says_so(tmp_path: Path, capsys: Caught) -> None:
    code = machine_code.load("v1", 0x7F3A10000000)
    function = code.functions[machine_code.BY_HEAD_DIM[64]]
    starts = Metric(1.0, [(0, function.address)])
    metrics: dict[str, Metric | Scalar] = {"gpu__time_duration.sum": 5.0, "launch__function_pcs": starts}
    path = tmp_path / "basic.ncu-rep"
    path.write_bytes(ReportFile([LaunchResult("v1", "v1(int)", "_Z2v1i", metrics, code=code)]).to_bytes())
    exit_code, text = told(capsys, path, "--hot", 2)
    assert exit_code == 0
    assert NO_COUNTS in text
    found = document(capsys, path, path)
    assert found["counts"]["equal"] == document(capsys, path)["instructions"] > 100
    assert not found["different"]


def test_a_metric_that_cannot_be_shown_is_named_beside_the_rest(tmp_path: Path, capsys: Caught) -> None:
    code = machine_code.load("v1", 0x7F3A10000000)
    function = code.functions[machine_code.BY_HEAD_DIM[64]]
    metrics: dict[str, Metric | Scalar] = {
        "gpu__time_duration.sum": 5.0,
        "inst_executed": Metric(3, [(pc, 1) for pc in function.pcs[:3]]),
        "smsp__kind": Metric(None, [(pc, "warp") for pc in function.pcs[:3]]),
    }
    path = tmp_path / "text.ncu-rep"
    path.write_bytes(ReportFile([LaunchResult("v1", "v1(int)", "_Z2v1i", metrics, code=code)]).to_bytes())
    exit_code, text = told(capsys, path)
    assert exit_code == 0
    why = "its values at instructions are no numbers but text: 'warp'"
    assert f"left out: smsp__kind: {why}" in text
    found = document(capsys, path)
    assert found["left_out"] == {"smsp__kind": why}
    assert found["places"][0]["executed"] == 1
    assert document(capsys, path, path)["left_out"]["b"] == {"smsp__kind": why}


@pytest.mark.slow
def test_the_hottest_rows_of_two_sides_are_printed_with_what_lies_around_them(
    made_reports: Path, capsys: Caught
) -> None:
    a, b = (made_reports / "mistic" / f"prof{number}.ncu-rep" for number in (1, 2))
    exit_code, text = told(capsys, a, b, "--hot", 3)
    assert exit_code == 0
    for number in (1, 2, 3):
        assert f"← hot {number}: " in text
    assert "← hot 4" not in text
    diff = text.partition("waiting samples that moved")[0]
    assert len(diff.splitlines()) < 3 * 2 * 7 + 15
    assert "rows that differ elsewhere: drop --hot to see all" in diff
    _, whole = told(capsys, a, b)
    assert "left out" not in whole
    assert len(whole.splitlines()) > 2 * len(text.splitlines())
    found = document(capsys, a, b, "--hot", 3)
    samples = [sum(filter(None, row["samples"].values())) for row in found["hot"]]
    assert samples == sorted(samples, reverse=True)
    assert len(samples) == 3
    plain = document(capsys, a, b)
    assert plain["hot"] is None
    assert plain["functions"] == found["functions"], "all rows are there either way"
    assert sum(plain["counts"].values()) == sum(len(pair["rows"]) for pair in plain["functions"])


@pytest.mark.slow
def test_renamed_instructions_are_counted_and_stand_beside_what_differs(
    made_reports: Path, capsys: Caught
) -> None:
    a, b = (made_reports / "mistic" / f"prof{number}.ncu-rep" for number in (1, 2))
    found = document(capsys, a, b)
    _, text = told(capsys, a, b)
    assert f"{found['counts']['renamed']} renamed" in text
    assert "renamed: only register numbers differ" in text
    otherwise = sum(pair["renaming"]["rows_otherwise"] for pair in found["functions"])
    assert f"{otherwise} of {found['counts']['renamed']} do not fit one consistent register mapping" in text
    renamed = [row for pair in found["functions"] for row in pair["rows"] if row["kind"] == "renamed"]
    assert len(renamed) == found["counts"]["renamed"] > 10
    assert all(row["a"]["text"] != row["b"]["text"] for row in renamed)
    _, everything = told(capsys, a, b, "--all")
    assert sum(line.startswith("≈ ") for line in everything.splitlines()) == len(renamed)


def test_a_launch_or_name_that_is_not_there_names_what_is(reports: Path, capsys: Caught) -> None:
    code, text = told(capsys, reports / "mistic" / "prof1.ncu-rep", "--launch", 9)
    assert code == 2
    assert "has no launch 9; there are 0 distanceCalculationsKernel#0" in text
    code, text = told(capsys, "no_such_version")
    assert code == 2
    assert "neither a file nor a run or version" in text


def test_a_version_that_has_no_code_yet_says_what_it_waits_for(capsys: Caught) -> None:
    code, text = told(capsys, "v2h")
    assert code == 3
    assert "v2h is planned: needs a Hopper GPU" in text
    code, text = told(capsys, "attention/sdpa_math")
    assert code == 3
    assert "is Python (" in text


def test_a_csv_has_no_machine_code(reports: Path, capsys: Caught) -> None:
    code, text = told(capsys, reports / "csv" / "kernel_0009.details.csv")
    assert code == 3
    assert "a text holds no machine code" in text


@pytest.mark.slow
def test_a_place_without_text_is_printed_with_its_source_line(reports: Path, capsys: Caught) -> None:
    a, b = (reports / "ncar" / f"MW_{name}.ncu-rep" for name in ("Baseline", "DivToMult"))
    _, text = told(capsys, a, b)
    assert ("??? v1.cu:81" if is_made(reports) else "??? miniWeather_mpi_openacc.F90:288") in text


@needs_sass
def test_a_version_of_another_catalogue_is_built_from_there(tmp_path: Path, capsys: Caught) -> None:
    shutil.copytree(ROOT / "kernels", tmp_path / "own")
    entry = (tmp_path / "own" / "catalog.toml").read_text("utf-8").replace('"v1"', '"mine"')
    (tmp_path / "own" / "catalog.toml").write_text(entry, "utf-8")
    own = ("--catalog", tmp_path / "own", "--arch", "sm_80")
    assert document(capsys, "mine", *own, "--hot", 1)["label"] == "mine"
    assert told(capsys, "v1", *own)[0] == 2
    assert told(capsys, "mine", "--catalog", tmp_path / "nowhere")[0] == 2


@needs_sass
def test_a_listing_names_its_functions(capsys: Caught) -> None:
    _, text = told(capsys, "v1", "--arch", "sm_90a", "--hot", 1)
    assert "Li128" in text.partition("[2]")[0]
    assert "Li64" in text.partition("[2]")[2]


@needs_sass
def test_two_versions_of_the_catalogue_are_built_and_aligned(capsys: Caught) -> None:
    found = document(capsys, "v2d_a", "attention/v2d_b", "--kernel", "Li64", "--arch", "sm_90a")
    assert found["different"]
    assert len(found["functions"]) == 1
    assert found["moved"] == [], "nothing was measured"
    same = document(capsys, "v2d_a", "v2d_a", "--arch", "sm_90a")
    assert not same["different"]
    code, text = told(capsys, "v2d_a", "--kernel", "no_such_function", "--arch", "sm_90a")
    assert code == 2
    assert "has no function like 'no_such_function'" in text


@pytest.mark.slow
def test_a_version_that_was_imported_is_read_from_its_bundle(
    reports: Path, capsys: Caught, tmp_path: Path
) -> None:
    from profiler.store.begin_import import import_paths

    import_paths([reports / "llm.c"], data=str(tmp_path / "data"))
    found = document(capsys, "adamw_coalsecing_shared", "--launch", 1)
    assert found["instructions"] == read_from_reports(reports)[0]
    assert found["has_sources"]
