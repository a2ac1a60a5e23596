"""Names and passes from NVIDIA's library, against independent lists of names and against real reports."""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profiler.cli import metrics as command
from profiler.errors import CannotJudge, Exit
from profiler.evidence import chip_metrics, metric_table, ncu_names, nvperf
from profiler.evidence.gpu_arch import ARCHITECTURES, chip_of
from profiler.evidence.values import Evidence
from tests.conftest import REPORTS

TABLE = metric_table.load_metrics()
CHIPS = [name for name, row in ARCHITECTURES.items() if row.ncu_chip]  # whose metrics somebody lists
LISTS = REPORTS.parent / "metrics"
GOOD = "duration | ncu duration | ns | lower | 2% | time | lean | gpu__time_duration.sum"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
WRONG = [
    ("sm__pipe_tensor_active.avg.pct_of_peak_sustained_active", TENSOR),
    ("shared_load_transactions", SHARED.format("ld")),
    ("shared_store_transactions", SHARED.format("st")),
    ("smsp__gmio_stall.avg.pct", STALLED.format("lg_throttle")),
    ("smsp__inst_executed_op_cp_async.sum", "smsp__inst_executed_op_ldgsts.sum"),
]

library = pytest.mark.skipif(
    not chip_metrics.is_library_available(),
    reason="libnvperf_host of the wheel ncu-report does not load here",
)


def rows(name: str) -> list[dict[str, str]]:
    """One of the lists that were made with NVIDIA's C interface, not with this package."""
    if not (LISTS / name).is_file():
        pytest.skip(f"no public list {name} at {LISTS}: it lies beside the public reports")
    with (LISTS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def checked(tmp_path: Path, *lines: str) -> list[str]:
    path = tmp_path / "metrics.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return chip_metrics.check_names(metric_table.load_metrics(path))


def run(*words: str) -> int:
    top = argparse.ArgumentParser()
    command.add(top.add_subparsers())
    arguments = top.parse_args(["metrics", *words])
    return int(arguments.handler(arguments))


# --- names


@library
def test_full_names_agree_with_the_independent_list_on_every_chip() -> None:
    wrong = []
    for row in rows("full-names.tsv"):
        name = row.pop("name")
        for chip, mark in row.items():
            expected = mark == "Y" or ncu_names.collection_cost(name) is not None
            if chip_metrics.exists(name, chip) is not expected:
                wrong.append((name, chip))
    assert wrong == []


@library
def test_base_names_agree_with_the_independent_catalogue() -> None:
    kinds = {"counter": nvperf.COUNTER, "ratio": nvperf.RATIO, "throughput": nvperf.THROUGHPUT}
    listed = rows("chip-catalog.tsv")
    loaded = nvperf.load()
    assert loaded is not None
    for chip, name in (("sm_80", "GA100"), ("sm_90", "GH100"), ("sm_120", "GB202")):
        for word, kind in kinds.items():
            expected = {row["name"] for row in listed if row["kind"] == word and row[chip] == "Y"}
            found = set(nvperf.Chip(loaded, name).base_names(kind))
            assert found <= expected
            assert len(expected - found) <= 0.01 * len(
                expected
            )  # the catalogue is of a slightly newer library


@library
def test_every_name_we_ship_exists() -> None:
    assert chip_metrics.check_names(TABLE) == []


def unlisted(name: str, chip: str) -> bool:
    """GV100 has these (ncu 2024.1 --query-metrics, V100 reports); the library of 2026 says it has not."""
    return chip == "sm_70" and "__sass_thread_inst_executed_op_" in name


@library
@pytest.mark.parametrize("chip", CHIPS)
def test_the_first_name_for_a_chip_exists_there_so_the_list_needs_no_library(chip: str) -> None:
    measured = TABLE.of(Evidence.MEASURED)
    names = [metric.names_for(chip)[0] for metric in measured if metric.names_for(chip)]
    first = [name for name in names if not unlisted(name, chip)]
    assert [name for name in first if not chip_metrics.exists(name, chip)] == []
    assert list(chip_metrics.names_to_collect(TABLE, chip)) == [*dict.fromkeys(first), *TABLE.captured]


@library
def test_a_name_without_a_chip_exists_on_all_of_them() -> None:
    for metric in TABLE.metrics:
        for one in metric.alternatives:
            if not one.chips:
                assert all(
                    chip_metrics.exists(one.name, chip) or unlisted(one.name, chip) for chip in CHIPS
                ), one.name


@library
@pytest.mark.parametrize("chip", CHIPS)
def test_a_chip_is_listed_for_every_concept_that_it_has_a_counter_of(chip: str) -> None:
    """A new architecture is complete when every line of metrics.txt that its counters can carry lists it."""
    left_out = {
        "tensor_pipe_any",  # but on sm_90 the same counter is tensor_busy
        "tensor_fp64_rate",  # chips without FP64 tensor cores have the counter, and it counts nothing
        "tensor_fp64_peak",
    }
    lacking = {
        metric.concept: alternative.name
        for metric in TABLE.of(Evidence.MEASURED)
        for alternative in metric.alternatives
        if not metric.names_for(chip)
        and ncu_names.collection_cost(alternative.name) is None  # the library knows it, so it can tell
        and chip_metrics.exists(alternative.name, chip)
    }
    assert {concept: name for concept, name in lacking.items() if concept not in left_out} == {}


@library
@pytest.mark.parametrize("chip", CHIPS)
def test_every_stall_reason_of_the_chip_is_lean_and_none_is_counted_twice(chip: str) -> None:
    loaded = nvperf.load()
    assert loaded is not None
    start, end = "smsp__average_warps_issue_stalled_", "_per_issue_active"
    known = nvperf.Chip(loaded, ARCHITECTURES[chip].library_chip).base_names(nvperf.RATIO)
    reasons = {
        name[len(start) : -len(end)] for name in known if name.startswith(start) and name.endswith(end)
    }
    whole = {reason for reason in reasons if "_pipe_" not in reason or reason == "math_pipe_throttle"}
    declared = [
        metric.concept.removeprefix("stall_")
        for metric in TABLE.metrics
        if metric.group == "stalls" and metric.tier == "lean" and metric.names_for(chip)
    ]
    assert sorted(declared) == sorted(whole)


@library
def test_every_name_that_real_reports_carry_is_known(reports: Path) -> None:
    unknown = set()
    for path in sorted((reports / "oracle").glob("*.raw.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            names, _, first, *_ = csv.reader(file)
        chip = chip_of(first[names.index("CC")])
        for name in names:
            is_metric = "__" in name and " " not in name and ":" not in name and "Triage" not in name
            # on sm_70 ncu patched SASS itself: the library knows none of those names
            own = chip == "sm_70" and "__sass_" in name
            if is_metric and not own and not chip_metrics.exists(name, chip):
                unknown.add(name)
    assert {name for name in unknown if not name.startswith("profiler__timestamp_workload_")} == set()


def test_names_that_ncu_computes_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chip_metrics, "_library_chip", lambda chip: None)
    assert chip_metrics.exists("launch__registers_per_thread", "sm_90") is True
    assert chip_metrics.exists("device__attribute_whatever_cuda_adds", "sm_90") is True
    assert chip_metrics.exists("gpu__time_duration.sum", "sm_90") is None


# --- wrong names


@library
@pytest.mark.parametrize(("wrong", "right"), WRONG)
def test_a_name_that_no_chip_has_is_refused_with_its_line_and_the_right_name(
    tmp_path: Path, wrong: str, right: str
) -> None:
    [bare] = checked(tmp_path, GOOD, wrong)
    [cell] = checked(tmp_path, GOOD.replace("gpu__time_duration.sum", wrong))
    assert bare == f"{tmp_path}/metrics.txt:2: no chip has a metric {wrong}: did you mean {right}?"
    assert cell == bare.replace(":2:", ":1:")
    assert any(chip_metrics.exists(right, chip) for chip in ARCHITECTURES)


@library
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("smsp__issue_active.avg.pct", "smsp__issue_active.avg.pct_of_peak_sustained_active"),
        ("sm__warps_active.pct", "sm__warps_active.avg.pct_of_peak_sustained_active"),
        ("gpu__time_duration", "gpu__time_duration.sum"),
        ("gpu__time_duraton.sum", "gpu__time_duration.sum"),
        ("dram__read_bytes.sum", "dram__bytes_read.sum"),
        ("sm__throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        ("SM__Cycles_Active.AVG", "sm__cycles_active.avg"),
        ("launch__registers_per_thred", "launch__registers_per_thread"),
        ("launch__registers_per_thread.sum", "launch__registers_per_thread"),
        ("derived__memory_l1_wavefronts_shared_excesive", "derived__memory_l1_wavefronts_shared_excessive"),
        (STALLED.format("no_instructions"), STALLED.format("no_instruction")),
        (STALLED.format("branch_resolve"), STALLED.format("branch_resolving")),
        (STALLED.format("barrier").removesuffix(".ratio"), STALLED.format("barrier")),
        (
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.ratio",
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        ),
    ],
)
def test_a_slip_is_answered_with_the_name_that_was_meant(wrong: str, right: str) -> None:
    assert not any(chip_metrics.exists(wrong, chip) for chip in ARCHITECTURES)
    assert chip_metrics.nearest_name(wrong) == right


@library
def test_nothing_is_proposed_where_nothing_is_near(tmp_path: Path) -> None:
    assert chip_metrics.nearest_name("foo") is None
    assert checked(tmp_path, GOOD, "foo")[0].endswith("see ncu --query-metrics")


@pytest.mark.slow
@library
def test_names_that_nobody_could_mean_and_many_wrong_ones_take_little_time(tmp_path: Path) -> None:
    began = time.process_time()
    problems = checked(tmp_path, "a" * 4000)
    many = checked(tmp_path, *(f"sm__cycles_activ{number}.avg" for number in range(3000)))
    assert time.process_time() - began < 10
    assert problems[0].endswith("a: see ncu --query-metrics")
    assert "did you mean sm__cycles_active.avg?" in many[0]
    assert len(many) == 3000
    assert sum("did you mean" in problem for problem in many) == 100


@library
def test_every_renamed_name_leads_to_one_that_exists() -> None:
    for old in ncu_names.RENAMED:
        name = chip_metrics.nearest_name(f"{old}.sum") or ""
        assert any(chip_metrics.exists(name, chip) for chip in ARCHITECTURES), old


@library
def test_a_name_limited_to_a_chip_that_lacks_it_is_refused(tmp_path: Path) -> None:
    conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"
    line = GOOD.replace("gpu__time_duration.sum", f"{conflicts}@sm_80 sm_86")
    [problem] = checked(tmp_path, line)
    assert f":1: sm_86 has no metric {conflicts}: did you mean " in problem
    near = problem.split("did you mean ")[1].rstrip("?")
    assert chip_metrics.exists(near, "sm_86")


@library
def test_odd_text_never_harms_the_process() -> None:
    for name in (
        "",
        ".",
        "..sum",
        "%s%n",
        "gpu__time_duration." * 5000,
        "é__ü.sum",
        "a\tb",
        "gpu__time_duration.sum.",
    ):
        assert chip_metrics.exists(name, "sm_90") is False
        assert chip_metrics.replay_passes([name], "sm_90") == 0


# --- passes


@library
@pytest.mark.parametrize("chip", CHIPS)
def test_the_lean_tier_costs_at_most_ten_passes(chip: str) -> None:
    lean = chip_metrics.replay_passes(chip_metrics.names_to_collect(TABLE, chip, "lean"), chip)
    full = chip_metrics.replay_passes(chip_metrics.names_to_collect(TABLE, chip), chip)
    assert lean is not None
    assert full is not None
    assert 2 <= lean <= 10 < full


@library
def test_passes_count_hardware_counters_and_nothing_else() -> None:
    assert chip_metrics.replay_passes(["gpu__time_duration.sum"], "sm_90") == 1
    assert chip_metrics.replay_passes([], "sm_90") == 0
    assert (
        chip_metrics.replay_passes(
            ["launch__grid_size", "derived__memory_l1_wavefronts_shared_excessive"], "sm_90"
        )
        == 0
    )
    assert chip_metrics.replay_passes(["gpu__time_duration.sum"], "sm_88") is None


@library
@pytest.mark.parametrize(
    ("chip", "passes"), [("sm_80", 9), ("sm_86", 7), ("sm_89", 8), ("sm_90", 9), ("sm_100", 10)]
)
def test_speed_of_light_costs_about_what_the_c_programs_counted(chip: str, passes: int) -> None:
    names = [metric.names_for(chip)[0] for metric in TABLE.metrics if metric.group == "speed of light"]
    counted = chip_metrics.replay_passes(names, chip)
    assert counted is not None
    assert passes - 4 <= counted <= passes  # their group held the memory tables too


def test_without_the_library_nothing_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvperf, "load", lambda: None)
    monkeypatch.setattr(chip_metrics, "_library_chip", lambda chip: None)
    assert not chip_metrics.is_library_available()
    assert chip_metrics.replay_passes(["gpu__time_duration.sum"], "sm_90") is None
    with pytest.raises(CannotJudge, match="cannot check names: libnvperf_host"):
        chip_metrics.check_names(TABLE)
    assert CannotJudge.exit_code == Exit.UNJUDGED
    assert next(iter(chip_metrics.names_to_collect(TABLE, "sm_90", "lean"))) == "gpu__time_duration.sum"


def test_an_absent_wheel_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvperf.importlib.util, "find_spec", lambda name: None)
    assert nvperf.library_path() is None


# --- the command


@library
def test_the_chip_list_stands_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--chip", "sm_90", "--tier", "lean") == Exit.PASS
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    names = out.strip().split(",")
    assert names[0] == "gpu__time_duration.sum"
    assert names == list(chip_metrics.names_to_collect(TABLE, "sm_90", "lean"))
    assert f"sm_90, lean: {chip_metrics.replay_passes(names, 'sm_90')} replay passes for" in err


def test_passes_that_nobody_can_count_are_unknown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chip_metrics, "_library_chip", lambda chip: None)
    assert run("--chip", "sm_90") == Exit.PASS
    assert "replay passes unknown" in capsys.readouterr().err
    assert run("--chip", "sm_90", "--json") == Exit.PASS
    assert json.loads(capsys.readouterr().out)["passes"] is None


@pytest.mark.slow
@library
def test_the_json_of_a_chip_says_what_each_name_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    run("--chip", "sm_100", "--json")
    document = json.loads(capsys.readouterr().out)
    named = {entry["concept"]: entry for entry in document["metrics"]}
    assert named["registers"] == {
        "metric": "launch__registers_per_thread",
        "concept": "registers",
        "cost": "none",
    }
    assert named["shared_excess"]["cost"] == "patched"
    assert named["duration"]["cost"] == "counted"
    assert "stall_gmma" in document["not_available"]
    assert document["passes"] == chip_metrics.replay_passes(
        [entry["metric"] for entry in document["metrics"]], "sm_100"
    )


@pytest.mark.slow
def test_the_listing_holds_every_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == Exit.PASS
    shown = capsys.readouterr().out
    assert [metric.concept for metric in TABLE.metrics if metric.concept not in shown] == []
    run("--json", "--tier", "lean")
    document = json.loads(capsys.readouterr().out)
    assert [row["concept"] for row in document["metrics"]] == [
        m.concept for m in TABLE.metrics if m.tier == "lean"
    ]
    assert document["captured"] == list(TABLE.captured)


@library
def test_the_check_answers_syntax_and_names_together_in_line_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd:name.txt"
    path.write_text(
        "\n".join([WRONG[0][0], GOOD.replace("lean", "lea"), WRONG[1][0], GOOD]), encoding="utf-8"
    )
    assert run("--check", str(path)) == Exit.UNUSABLE_INPUT
    *problems, count = capsys.readouterr().out.splitlines()
    assert [line.removeprefix(f"{path}:").split(":")[0] for line in problems] == ["1", "2", "3"]
    assert TENSOR in problems[0]
    assert "unknown tier" in problems[1]
    assert count == f"{path}: 3 problems"


def test_without_the_library_the_check_says_what_is_certain_or_that_it_cannot_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvperf, "load", lambda: None)
    with pytest.raises(CannotJudge):
        run("--check")
    path = tmp_path / "metrics.txt"
    path.write_text(GOOD.replace("lean", "lea"), encoding="utf-8")
    assert run("--check", str(path)) == Exit.UNUSABLE_INPUT
    assert f"{path}:1: unknown tier" in capsys.readouterr().out


@library
def test_the_shipped_file_passes_its_own_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--check") == Exit.PASS
    assert "every name exists" in capsys.readouterr().out
    assert run("--check", "--json") == Exit.PASS
    assert json.loads(capsys.readouterr().out) == {"file": "metrics.txt", "ok": True, "problems": []}


@pytest.mark.slow
def test_listing_loads_neither_the_library_nor_anything_heavy() -> None:
    program = (
        "import argparse, sys\n"
        "from profiler.cli import metrics\n"
        "top = argparse.ArgumentParser(); metrics.add(top.add_subparsers())\n"
        "arguments = top.parse_args(['metrics', '--json']); arguments.handler(arguments)\n"
        "from profiler.evidence import nvperf\n"
        "heavy = {'pandas', 'sqlalchemy', 'streamlit', 'plotly', 'ncu_report'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert nvperf.load.cache_info().currsize == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
