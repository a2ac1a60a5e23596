"""The commands as a user or a CI runner calls them: what they print, their JSON, their exit codes."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler import cli
from profiler.cli import dashboard
from profiler.cli.output import print_blocks
from profiler.documents.comparison_text import PAIRS_SHOWN
from profiler.evidence import metric_table
from profiler.evidence.launch import Launch
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence, Value, pack_values
from tests import lineages
from tests.compared import compare_sides
from tests.conftest import ROOT
from tests.forked import Forked

pytestmark = pytest.mark.slow  # each command is a process

HEAVY = ("sqlalchemy", "pandas", "streamlit", "plotly", "ncu_report", "fsspec")


@pytest.fixture(autouse=True)
def empty_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of its own for every test."""
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    return tmp_path / "data"


@pytest.fixture(scope="module")
def filled(made_reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that holds the esmm and ncar reports."""
    data = tmp_path_factory.mktemp("filled")
    environment = {**os.environ, "PROFILER_DATA": str(data)}
    environment.pop("PROFILER_DB", None)
    command = [
        sys.executable,
        "-m",
        "profiler",
        "import",
        str(made_reports / "esmm"),
        str(made_reports / "ncar"),
    ]
    subprocess.run(command, env=environment, check=True, capture_output=True, cwd=data)
    return data


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.main(argv)
    out, err = capsys.readouterr()
    return code, out, err


def strict(text: str) -> Any:
    """JSON without NaN and Infinity."""

    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)


def ncar(reports: Path) -> tuple[str, str]:
    return str(reports / "ncar" / "MW_Baseline.ncu-rep"), str(reports / "ncar" / "MW_DivToMult.ncu-rep")


# ---- compare


def test_compare_prints_the_verdict_on_every_kernel(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    code, out, err = run(capsys, "compare", *ncar(reports))
    assert (code, err) == (0, "")
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line[:1].isalpha()}
    assert lines["compute_tendencies_x_279_gpu"] == "6.19 ms 3.48 ms −43.8 % ✓ better"
    assert lines["semi_discrete_step_232_gpu"] == "5.62 ms 5.59 ms −0.6 % = same"
    assert lines["compute_tendencies_x_309_gpu"] == "3.63 ms 3.63 ms ±0 % = same"
    assert lines["set_halo_values_x_396_gpu"] == "11.4 µs 12.8 µs +12.4 % = same (clock)"
    assert lines["set_halo_values_x_419_gpu"] == "13.1 µs 14.0 µs +6.8 % ? unclear"
    assert "ncu duration, not latency" in out
    assert "unknown on both sides: workload, dtype, clock control" in out


def test_compare_json_has_the_documented_shape(capsys: pytest.CaptureFixture[str], reports: Path) -> None:
    code, out, _ = run(capsys, "compare", *ncar(reports), "--json")
    found = strict(out)
    assert code == 0
    assert found["comparable"] is True
    assert (found["only_in_a"], found["only_in_b"], found["ambiguous"]) == ([], [], [])
    assert {"field", "a", "b", "kind", "blocks"} == set(found["differences"][0])
    wanted = {"concept", "metric", "unit", "a", "b", "change_pct", "verdict", "reason", "unreplicated"}
    for launch in found["launches"]:
        for metric in launch["metrics"]:
            assert wanted <= set(metric)
            for side in "ab":
                assert (metric[side] is None) == (f"{side}_state" in metric)
    told = {launch["kernel"]: launch for launch in found["launches"]}
    duration = told["compute_tendencies_x_279_gpu"]["metrics"][0]
    assert (duration["concept"], duration["metric"]) == ("duration", "gpu__time_duration.sum")
    assert (duration["a"], duration["b"], duration["unit"]) == (6190944.0, 3482240.0, "ns")
    assert duration["change_pct"] == pytest.approx(-43.7527)
    assert (duration["verdict"], duration["unreplicated"]) == ("better", True)


def test_compare_json_of_failed_values_holds_no_nan(
    capsys: pytest.CaptureFixture[str], made_reports: Path
) -> None:
    names = [str(made_reports / "esmm" / f"profile@{name}.ncu-rep") for name in ("17f278cb", "5c6231e5")]
    _, out, _ = run(capsys, "compare", *names, "--json", "--kernel", "one_d_vec")
    (launch,) = strict(out)["launches"]
    duration = launch["metrics"][0]
    assert (duration["b"], duration["b_state"], duration["verdict"]) == (None, "failed", "missing")
    assert (duration["change_pct"], duration["reason"]) == (None, "failed in B")


def test_compare_markdown_is_a_table_with_the_counters_folded(
    capsys: pytest.CaptureFixture[str], made_reports: Path
) -> None:
    _, out, _ = run(capsys, "compare", *ncar(made_reports), "--markdown")
    first, *_ = out.splitlines()
    assert first.startswith("### `")
    assert first.endswith(" 1 better, 3 same, 1 unclear")
    assert "| `compute_tendencies_x_279_gpu` | 6.19 ms | 3.48 ms | −43.8 % | ✓ better |" in out
    assert out.count("<details>") == out.count("</details>") == 1
    assert len([line for line in out.split("<details>")[0].splitlines() if line]) < 20, "short"
    tables = [line for line in out.splitlines() if line.startswith("|")]
    assert len({line.count("|") - line.count("\\|") for line in tables}) == 2, "whole rows only"


def test_a_gate_exits_by_the_verdict(capsys: pytest.CaptureFixture[str], made_reports: Path) -> None:
    a, b = ncar(made_reports)
    assert run(capsys, "compare", a, b, "--fail")[0] == 0, "an unclear kernel of 13 µs outweighs no 2.7 ms"
    assert run(capsys, "compare", a, b, "--fail", "--kernel", "halo")[0] == 3, "by itself it is unclear"
    assert run(capsys, "compare", a, b, "--fail", "--kernel", "tendencies")[0] == 0
    assert run(capsys, "compare", b, a, "--fail", "--kernel", "tendencies")[0] == 1, "a planted regression"
    assert run(capsys, "compare", b, a)[0] == 0, "without --fail it only tells"
    assert run(capsys, "compare", a, a, "--fail")[0] == 3, "nothing is worse than itself"
    assert run(capsys, "compare", b, a, "--fail", "--top", "1")[0] == 1
    assert run(capsys, "compare", a, b, "--fail", "--kernel", "279", "--on", "dram_read")[0] == 3


def test_top_hides_no_regression_from_the_gate(
    capsys: pytest.CaptureFixture[str], made_reports: Path
) -> None:
    b, a = ncar(made_reports)
    code, out, _ = run(capsys, "compare", a, b, "--fail", "--top", "1", "--json")
    found = strict(out)
    assert (code, len(found["launches"]), found["hidden_launches"]) == (1, 1, 4)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["compare", "nowhere.ncu-rep", "nowhere.ncu-rep"], "nowhere.ncu-rep: no such file"),
        (["compare", "{bad}/truncated_near_end.ncu-rep", "{good}"], "truncated_near_end"),
        (["compare", "{good}", "{good}", "--kernel", "flash"], "no kernel matches 'flash'"),
        (["compare", "{good}", "{good}", "--fail", "--on", "registers"], "registers has no direction"),
        (["compare", "{good}", "{good}", "--on", "dram_read"], "add --fail, or leave --on out"),
        (["show", ""], "an empty name"),
        (
            ["list", "runs", "--family", "nosuch"],
            "no family 'nosuch' in the index; the index is empty: `profiler imp",
        ),
        (["show", "{bad}/empty.ncu-rep"], "empty.ncu-rep"),
        (["show", "{good}", "--kernel", "regex:("], "not a regular expression"),
        (["show", "never-imported"], "the index is empty: `profiler import PATH`"),
        (["trend", "durations"], "did you mean duration"),
        (["show", "\udcff"], "\\udcff is no text (UTF-8)"),
        (["list", "versions", "--family", "\udcff"], "\\udcff"),
        (["show", "a\x1b[31mb"], "a\\x1b[31mb"),
        (["list", "metrics", "--check", "/dev/zero"], "a device, not a file"),
        (["static", "--catalog", "/dev/zero"], "a device, not a file"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], made_reports: Path, argv: list[str], words: str
) -> None:
    places = {"bad": made_reports / "bad", "good": made_reports / "ncar" / "MW_Baseline.ncu-rep"}
    code, out, err = run(capsys, *(part.format(**places) for part in argv))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("profiler: ")
    assert words in err


def test_a_number_of_a_schedule_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("-1", "x", "1.5"):
        with pytest.raises(SystemExit) as stop:
            run(capsys, "check", "v1", "--seed", text)
        assert stop.value.code == 2
        assert f"argument --seed: {text} is not a whole number from 0" in capsys.readouterr().err


def test_a_device_is_no_import(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "import", "/dev/zero")
    assert code == 2
    assert err == "profiler: /dev/zero: a device, not a file\n"


def test_a_baseline_that_is_not_there_is_no_baseline_that_says_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "lineage"))
    lineages.dissected(tmp_path / "lineage")
    assert run(capsys, "insights", "mine/alpha", "--against", "mine/zero")[0] == 0
    for name, words in (("nope.ncu-rep", "no such file"), ("", "an empty name"), ("zerro", "near")):
        code, _, err = run(capsys, "insights", "mine/alpha", "--against", name)
        assert (code, err.count("\n")) == (2, 1), name
        assert words in err


def test_wrong_arguments_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in ([], ["nonsense"], ["compare", "a", "b", "--top", "0"]):
        with pytest.raises(SystemExit) as stop:
            cli.main(argv)
        assert stop.value.code == 2
    capsys.readouterr()


def test_different_gpus_are_shown_and_never_pass(
    capsys: pytest.CaptureFixture[str], made_reports: Path
) -> None:
    a, b = (
        str(made_reports / "cutlass" / "report75.ncu-rep"),
        str(made_reports / "ncar" / "MW_Baseline.ncu-rep"),
    )
    code, out, _ = run(capsys, "compare", a, b, "--fail")
    assert code == 3
    assert "Not comparable: GPU differs: NVIDIA A100 80GB PCIe and Tesla V100-SXM2-32GB" in out


def test_hundreds_of_launches_show_the_longest_and_count_the_verdicts_of_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sides = []
    for factor in (1.0, 2.0):
        launches = []
        for index in range(300):
            duration = 1e6 + 1e3 * index if index != 7 else 1e5 * factor  # the shortest of all got slower
            values = pack_values({"gpu__time_duration.sum": Value(duration, "ns")})
            name = f"kernel_{index}"
            launches.append(Launch(name, name, "", (1, 1, 1), (64, 1, 1), 7, (), index, values))
        sides.append(Side("side", tuple(launches), "GPU"))
    table = metric_table.load_metrics()
    print_blocks(compare_sides(*sides, table).blocks())
    out = capsys.readouterr().out
    shown = [line.split()[0] for line in out.splitlines() if line.startswith("kernel_")]
    assert shown == [f"kernel_{index}" for index in range(299, 299 - PAIRS_SHOWN, -1)]
    assert "and 275 shorter pairs: 1 worse, 274 same: --top N" in out
    three = compare_sides(*sides, table, top=3)
    assert three.to_markdown().splitlines()[0].endswith(" 1 worse, 299 same")
    assert three.shown()[0].top(1).hidden_pairs == 299


# ---- show


def test_show_all_json_has_every_metric_with_its_unit_or_state(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    name = "ncar/MW_Baseline.ncu-rep"
    _, out, _ = run(capsys, "show", str(reports / name), "--all", "--json")
    launches = strict(out)["launches"]
    with (reports / "oracle" / f"{name.replace('/', '__')}.raw.csv").open() as stream:
        names, units, *rows = csv.reader(stream)
    assert [launch["grid"] for launch in launches] == [[256, 1, 1]] * 2 + [[65535, 1, 1]] * 3
    checked = 0
    for launch, row in zip(launches, rows, strict=True):
        assert all(set(value) in ({"value", "unit"}, {"state"}) for value in launch["metrics"].values())
        for metric, unit, cell in zip(names, units, row, strict=True):
            told = launch["metrics"].get(metric, {})
            if metric == "gpu__time_duration.sum":
                assert told == {"value": float(cell.replace(",", "")), "unit": "ns"}
                assert unit in ("ns", "nsecond")
                checked += 1
    assert checked == 5


def test_show_json_has_every_concept_once_and_overwrites_none(
    capsys: pytest.CaptureFixture[str], reports: Path
) -> None:
    every = sorted(metric.concept for metric in metric_table.load_metrics().of(Evidence.MEASURED))
    paths = sorted(path for path in reports.glob("*/*.ncu-rep") if path.parent.name != "bad")
    assert len(paths) == 16
    for path in paths:
        _, out, _ = run(capsys, "show", str(path), "--json")
        for launch in strict(out)["launches"]:
            told = launch["metrics"].values()
            concepts = [concept for one in told for concept in one["concepts"]]
            assert sorted(concepts + launch["not_available"]) == every
            assert all(one["concept"] in one["concepts"] for one in told)
    _, out, _ = run(capsys, "show", str(reports / "cutlass" / "report75.ncu-rep"), "--json")
    launch = strict(out)["launches"][0]
    busy = launch["metrics"]["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"]
    assert busy["concepts"] == ["tensor_busy"]
    assert busy["value"] > 0
    assert "tensor_pipe_any" in launch["not_available"]


def test_show_prints_groups_and_names_what_is_missing(
    capsys: pytest.CaptureFixture[str], made_reports: Path
) -> None:
    path = str(made_reports / "esmm" / "profile@5c6231e5.ncu-rep")
    _, out, _ = run(capsys, "show", path, "--kernel", "one_d_vec")
    (failed,) = [line for line in out.splitlines() if line.strip().startswith("failed (NaN: a pass")]
    assert "duration" in failed
    assert any(line.strip().startswith("not collected: ") for line in out.splitlines())
    _, out, _ = run(capsys, "show", path, "--kernel", "basic")
    assert "10.8  ms" in out
    assert "gpu__time_duration.sum" in out


def test_show_top_takes_the_longest_and_counts_the_rest(
    capsys: pytest.CaptureFixture[str], made_reports: Path
) -> None:
    _, out, _ = run(
        capsys, "show", str(made_reports / "esmm" / "profile@a62323b2.ncu-rep"), "--top", "2", "--json"
    )
    found = strict(out)
    assert [launch["kernel"] for launch in found["launches"]] == ["basic", "gmem_coalesce"]
    assert found["hidden_launches"] == 7


# ---- what the index holds


@pytest.mark.parametrize(
    "command",
    ["list runs", "list versions", "list workloads", "data index", "gate", "regressions", "compare a b"],
)
def test_asking_where_nothing_is_leaves_nothing_behind(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "new"))
    cli.main(command.split())
    assert list(tmp_path.iterdir()) == []


def test_an_import_that_is_refused_leaves_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "new"))
    assert cli.main(["import", str(tmp_path / "nowhere")]) == 2
    assert list(tmp_path.iterdir()) == []
    damaged = tmp_path / "damaged.ncu-rep"
    damaged.write_bytes(b"NVR\0 and no more")
    assert cli.main(["import", str(damaged)]) == 2
    assert not (tmp_path / "new" / "staging").exists()
    assert not (tmp_path / "new" / "runs").exists()


def test_an_empty_index_names_the_command_that_fills_it(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("runs", "versions", "workloads"):
        code, out, _ = run(capsys, "list", command)
        assert code == 0
        assert "profiler import PATH" in out
        code, out, _ = run(capsys, "list", command, "--json")
        assert strict(out)[command] == []


def test_runs_versions_and_workloads_list_what_was_imported(
    capsys: pytest.CaptureFixture[str], filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(filled))
    runs = strict(run(capsys, "list", "runs", "--json")[1])["runs"]
    assert len(runs) == 8
    assert {(one["family"], one["gpu"]) for one in runs} == {
        ("esmm", "NVIDIA A10G"),
        ("ncar", "Tesla V100-SXM2-32GB"),
    }
    versions = strict(run(capsys, "list", "versions", "--family", "ncar", "--json")[1])["versions"]
    assert [one["version"] for one in versions] == ["MW_Baseline", "MW_DivToMult"]
    workloads = strict(run(capsys, "list", "workloads", "--json")[1])["workloads"]
    assert [(one["family"], one["versions"]) for one in workloads] == [("esmm", 6), ("ncar", 2)]
    assert "MW_DivToMult" in run(capsys, "list", "versions")[1]
    assert "ncar/MW_Baseline" in run(capsys, "list", "runs")[1]


def test_versions_compare_as_their_files_do(
    capsys: pytest.CaptureFixture[str], filled: Path, made_reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(filled))
    files = strict(run(capsys, "compare", *ncar(made_reports), "--json")[1])
    stored = strict(run(capsys, "compare", "MW_Baseline", "ncar/MW_DivToMult", "--json")[1])
    assert stored["launches"] == files["launches"]
    assert stored["differences"] == files["differences"]
    assert stored["b"]["version"] == "MW_DivToMult"


def test_a_trend_shows_gaps_states_and_every_version(
    capsys: pytest.CaptureFixture[str], filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(filled))
    _, out, _ = run(capsys, "trend", "duration", "--family", "esmm")
    assert "  only in " in out
    assert ": warptiling_two " in out
    _, out, _ = run(capsys, "trend", "duration", "--family", "esmm", "--all")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line[:1].isalpha()}
    assert rows["warptiling_two"].count("·") == 5
    assert "failed" in rows["one_d_vec"]
    assert rows["ampere_sgemm_128x64_nn#1"]
    found = strict(run(capsys, "trend", "duration", "--family", "esmm", "--json")[1])
    by_kernel = {series["part"]: series["points"] for series in found["series"]}
    states = [point["state"] for point in by_kernel["one_d_vec#0"] if "state" in point]
    assert sorted(states) == ["failed", "not in this run", "not in this run"]
    assert all(len(points) == 6 for points in by_kernel.values())


def test_a_filter_that_fits_nothing_is_a_mistake_and_not_an_empty_answer(
    capsys: pytest.CaptureFixture[str], filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(filled))
    for argv, words in (
        (["list", "runs", "--family", "nca"], "no family 'nca' in the index; there are ncar, esmm"),
        (["list", "versions", "--family", "nca"], "there are ncar, esmm"),
        (["list", "workloads", "--family", "nca", "--json"], "there are ncar, esmm"),
        (["trend", "duration", "--family", "nca"], "there are ncar, esmm"),
        (["trend", "duration", "--kernel", "nosuch"], "no kernel with duration matches 'nosuch'; there are "),
        (
            ["trend", "gpu__nosuch.sum", "--json"],
            "no launch in the index carries gpu__nosuch.sum; there are ",
        ),
        (["show", "ncar/MW_Baseline", "--workload", "w"], "ncar/MW_Baseline has no workload 'w'"),
    ):
        code, out, err = run(capsys, *argv)
        assert (code, out, err.count("\n")) == (2, "", 1), argv
        assert words in err


def test_a_trend_of_a_metric_that_no_launch_carries_cannot_judge(
    capsys: pytest.CaptureFixture[str], filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(filled))
    for argv in (["trend", "spill_insts"], ["trend", "spill_insts", "--json", "--family", "ncar"]):
        code, out, err = run(capsys, *argv)
        assert (code, out) == (3, "")
        assert err == (
            "profiler: no requested launch has spill_insts; import reports with it (`profiler import PATH`)\n"
        )


def test_a_run_that_cannot_be_read_is_mentioned_and_the_others_are_listed(
    capsys: pytest.CaptureFixture[str], empty_data: Path, made_reports: Path
) -> None:
    assert run(capsys, "import", *ncar(made_reports))[0] == 0
    first, second = sorted((empty_data / "runs").iterdir())
    (first / "run.json").write_text("{")
    run(capsys, "data", "index", "--rebuild")
    code, out, err = run(capsys, "list", "runs", "--json")
    assert (code, err) == (0, "profiler: 1 run cannot be read: `profiler data index` says why\n")
    assert [one["run_id"] for one in strict(out)["runs"]] == [second.name]
    code, _, err = run(capsys, "show", first.name)
    assert code == 2
    assert f"run {first.name} cannot be read: " in err


# ---- ending


def ended(
    *argv: str, stdout: Any = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """The command as a process of its own."""
    command = [sys.executable, "-m", "profiler", *argv]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **environment})


def test_a_verdict_outlives_the_reader_of_its_pipe(made_reports: Path) -> None:
    faster, slower = reversed(ncar(made_reports))
    gate = ("compare", faster, slower, "--fail", "--kernel", "tendencies")
    for extra in ((), ("--json",), ("--markdown",)):
        reading, writing = os.pipe()
        os.close(reading)
        done = ended(*gate, *extra, stdout=writing)
        os.close(writing)
        assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_output_that_cannot_be_written_is_one_line_and_exit_code_2(made_reports: Path) -> None:
    for argv in (("show", ncar(made_reports)[0]), ("show", ncar(made_reports)[0], "--json"), ("--help",)):
        with open("/dev/full", "wb") as full:
            done = ended(*argv, stdout=full)
        assert done.returncode == 2
        assert done.stderr == b"profiler: standard output cannot be written: No space left on device\n"


def test_a_terminal_without_unicode_gets_every_line_and_json_the_same_content(made_reports: Path) -> None:
    argv = ("compare", *ncar(made_reports), "--json")
    done = ended(*argv, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert strict(done.stdout.decode("ascii")) == strict(ended(*argv).stdout.decode("utf-8"))
    done = ended(*argv[:3], PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u221243.8 %" in done.stdout


def test_a_file_name_that_is_not_unicode_is_printed(
    made_reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = os.path.join(os.fsencode(tmp_path), b"k\xff.csv")
    try:
        Path(os.fsdecode(odd)).write_bytes(next((made_reports / "csv").glob("*.metrics.csv")).read_bytes())
    except OSError:
        pytest.skip("this file system takes only Unicode names")
    done = ended("show", os.fsdecode(odd), "--json", PYTHONIOENCODING="utf-8")
    assert (done.returncode, done.stderr) == (0, b"")
    assert strict(done.stdout.decode("utf-8"))["source"] == os.fsdecode(odd)


@pytest.mark.parametrize(
    ("raised", "code", "first_line", "traced"),
    [
        (KeyError("slot"), 2, "profiler: a defect in profiler: KeyError: 'slot'", True),
        (RecursionError("deep"), 2, "profiler: a defect in profiler: RecursionError: deep", True),
        (
            PermissionError(13, "Permission denied", "/data/x"),
            2,
            "profiler: /data/x: Permission denied",
            False,
        ),
        (OSError(28, "No space left on device"), 2, "profiler: No space left on device", False),
        (KeyboardInterrupt(), 130, "", False),
    ],
)
def test_whatever_goes_wrong_is_never_exit_code_1(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    raised: BaseException,
    code: int,
    first_line: str,
    traced: bool,
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(metric_table, "load_metrics", fail)
    found, out, err = run(capsys, "list", "metrics")
    assert (found, out) == (code, "")
    assert (err.splitlines() or [""])[0] == first_line
    assert ("Traceback" in err) == traced
    assert traced or err.count("\n") == bool(first_line)


# ---- starting


def modules_after(code: str) -> set[str]:
    """The first names of all modules that a fresh Python has after running the code."""
    script = f"import sys; sys.argv=['profiler']; {code}; print(*sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stderr.split()}


def test_help_imports_nothing_heavy() -> None:
    assert not modules_after("from profiler.cli import parser; parser().format_help()") & {*HEAVY, "rich"}


def test_a_command_that_is_not_declared_reads_no_source() -> None:
    assert "ast" not in modules_after("from profiler.cli import parser; parser(['compare'])")
    assert "ast" in modules_after("from profiler.cli import parser; parser(['trend'])")


def test_a_diff_of_two_files_imports_no_store(made_reports: Path) -> None:
    a, b = ncar(made_reports)
    found = modules_after(f"from profiler.cli import main; main(['compare', {a!r}, {b!r}])")
    assert "rich" in found
    assert not found & set(HEAVY)


def test_an_import_asks_for_its_first_report_before_it_loads_what_stores_it() -> None:
    """numpy and SQLAlchemy take a third of a second, in which the reading process reads several reports."""
    assert not modules_after("import profiler.store.begin_import") & {*HEAVY, "numpy"}


@pytest.fixture(scope="module")
def without_dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """A Python in which the libraries of the dashboard are not installed."""
    missing = ("streamlit", "pandas", "plotly", "pyarrow", "numba")
    python = Forked(ROOT, tmp_path_factory.mktemp("output"), missing)
    yield python
    python.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "compare {a} {b} --json",
        "explain {a} {b}",
        "gate {b} --baseline {a} --format junit",
        "insights {b} --against {a}",
        "show {a} --all",
        "data index",
        "trend duration",
        "regressions",
        "gate attention",
        "report {a} {b} --out {out}",
    ],
)
def test_what_is_asked_of_reports_and_runs_needs_no_library_of_the_dashboard(
    command: str, made_reports: Path, committed_data: Path, without_dashboard: Forked, tmp_path: Path
) -> None:
    a, b = ncar(made_reports)
    argv = [word.format(a=a, b=b, out=tmp_path / "out.html") for word in command.split()]
    # What makes the index has none; the others have a copy of one.
    data = ROOT / "data" if command == "data index" else shutil.copytree(committed_data, tmp_path / "lineage")
    index = tmp_path / "index" if command == "data index" else data / "index.db"
    variables = {**os.environ, "PROFILER_DATA": str(data), "PROFILER_DB": f"sqlite:///{index}"}
    done = without_dashboard.run(*argv, environment=variables)
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--help"], ["compare", "--help"]):
        with pytest.raises(SystemExit) as stop:
            cli.main(argv)
        assert stop.value.code == 0
        assert "exit codes:" in capsys.readouterr().out


def test_every_command_has_a_line_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    text = cli.parser().format_help()
    for command in ("import", "show", "trend", "list", "data", "decide"):
        assert f"\n    {command} " in text
    for command in ("compare", "dashboard"):
        assert f"\n    {command} " in text


def test_a_pipe_that_closes_early_is_no_traceback(made_reports: Path) -> None:
    command = f"{sys.executable} -m profiler show {ncar(made_reports)[0]} --all | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_the_dashboard_is_served_on_this_machine_only() -> None:
    command = dashboard.command_line(Path("app.py"), port=8600, browser=False)
    assert command[1:] == ["-m", "profiler.ui.server", "app.py", "--address", "127.0.0.1", "--port", "8600"]
    assert dashboard.command_line(Path("app.py"), port=None, browser=True)[5:] == ["127.0.0.1", "--browser"]
