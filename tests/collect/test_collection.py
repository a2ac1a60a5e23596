"""A run measured in processes of its own. Small programs stand in for the stages; no GPU is needed."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles import bundle, zip_file
from profiler.bundles.location import LocalRoot
from profiler.catalog import catalog
from profiler.cli import main
from profiler.cli.collecting import TerminalListener
from profiler.collect import check_and_time, counters, sanitizer, seal, subprocesses
from profiler.collect.collection import Collection
from profiler.collect.gpu.properties import Gpu
from profiler.collect.machine import Machine
from profiler.collect.outcomes import Outcomes
from profiler.collect.plan import Job
from profiler.collect.run_inputs import begin_run
from profiler.collect.settings import Settings
from profiler.collect.staging import Staging, unfinished_runs
from profiler.collect.subprocesses import ProcessResult
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence.values import NCU_DURATION
from profiler.reports import csv_export
from tests.conftest import ROOT
from tests.standins import GPU, SMALL, again, begin, calls, cells, finish, prepare, stand_in_ncu, tell
from tests.toolchain import needs_gxx


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return prepare(tmp_path, monkeypatch)


def end_soon(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """Programs with a word in their command line, which hang, are ended soon; others may take their time."""
    run = subprocesses.run

    def run_briefly(argv: Sequence[str | Path], *, timeout_s: float, **how: Any) -> ProcessResult:
        hangs = any(word in str(argument) for argument in argv)
        return run(argv, timeout_s=0.7 if hangs else timeout_s, **how)

    monkeypatch.setattr(subprocesses, "run", run_briefly)


@pytest.mark.slow
def test_every_version_is_checked_timed_and_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = prepare(tmp_path, monkeypatch, apart=True)
    collection = begin(folder)
    collection.run_jobs()
    run = finish(folder, collection)
    assert {name: result.status for name, result in cells(run).items()} == dict.fromkeys(
        ("one", "two", "three"), "done"
    )
    result = cells(run)["one"]
    assert [block.mode for block in result.samples] == [
        "events; cache cold; clock none",
        "events; cache warm; clock none",
    ]
    assert result.samples[0].rounds == tuple(r for r in range(6) for _ in range(4))
    assert result.samples[0].throttled == (0, 8, 16), "positions count on over the three processes"
    assert result.samples[0].processes == tuple(r // 2 for r in range(6) for _ in range(4))
    assert run.provenance["gpu"] == "stand-in"
    assert run.provenance["floors"]["1x1x64x64"]["launch_ns"] == 2000.0
    assert unfinished_runs(LocalRoot(folder / "data")) == []


def test_a_wrong_version_is_recorded_and_goes_no_further(folder: Path) -> None:
    tell(folder, correctness__two="wrong")
    collection = begin(folder)
    collection.run_jobs()
    two = cells(finish(folder, collection))["two"]
    assert (two.status, two.reason, two.samples) == ("wrong", "3 wrong", ())
    assert two.check["max_abs_error"] == 0.5
    assert not any(line.startswith("latency") and "two" in line for line in calls(folder))


@pytest.mark.parametrize(("how", "words"), [("crash", "SIGSEGV"), ("exit", "illegal address")])
def test_a_version_that_kills_its_group_costs_itself_alone(folder: Path, how: str, words: str) -> None:
    tell(folder, latency__two=how)
    collection = begin(folder)
    collection.run_jobs()
    results = cells(finish(folder, collection))
    assert {name: result.status for name, result in results.items()} == {
        "one": "done",
        "two": "failed",
        "three": "done",
    }
    assert words in results["two"].reason
    rounds = [set(results[name].samples[0].rounds) for name in ("one", "three")]
    assert rounds[0] & rounds[1] == {2, 3, 4, 5}, (
        "the two rounds that each was timed in by itself are not shared"
    )
    assert len(rounds[0]) == len(rounds[1]) == 6
    assert len(results["one"].samples[0].ns) == 24
    assert calls(folder).count("latency one,two,three") == 1, "the next processes leave it out"


@pytest.mark.slow
def test_a_check_that_hangs_is_ended_and_the_others_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_soon(monkeypatch, "check-1x1x64x64-0-three")
    tell(folder, correctness__three="hang", correctness__one="flood")
    collection = begin(folder)
    collection.run_jobs()
    results = cells(finish(folder, collection))
    assert {name: result.status for name, result in results.items()} == {
        "one": "done",
        "two": "done",
        "three": "failed",
    }
    assert "did not end within" in results["three"].reason


def test_without_a_gpu_every_cell_says_so_and_a_later_run_would_do_it(folder: Path) -> None:
    collection = begin(folder, Machine(None, None, None, ["no GPU here: nothing can be measured"]))
    collection.run_jobs()
    assert collection.staging.outcomes() == Outcomes()
    run = finish(folder, collection)
    assert {result.status for result in cells(run).values()} == {"skipped"}
    assert run.provenance["degraded"] == ["no GPU here: nothing can be measured"]
    assert calls(folder) == []


def test_a_budget_names_what_it_leaves_out(folder: Path) -> None:
    collection = begin(folder)
    collection.run_jobs(budget_s=0.0)
    run = finish(folder, collection)
    assert {result.status for result in cells(run).values()} == {"skipped"}
    assert any("check one on 1x1x64x64: the time budget" in line for line in run.provenance["left_out"])


def test_a_resumed_run_does_only_what_is_missing(folder: Path) -> None:
    collection = begin(folder)
    collection.run_jobs()
    collection.staging.forget(Job("check", "1x1x64x64", ("two",)).key)
    collection.staging.close()
    before = len(calls(folder))
    resumed = again(folder, collection.staging.run_id)
    resumed.run_jobs()
    assert calls(folder)[before:] == ["correctness two"]


def test_two_processes_do_not_work_on_one_run(folder: Path) -> None:
    collection = begin(folder)
    with pytest.raises(ProfilerError, match="another process"):
        again(folder, collection.staging.run_id)


def test_a_run_that_is_not_there_is_named_with_those_that_are(folder: Path) -> None:
    collection = begin(folder)
    with pytest.raises(UnknownName, match=collection.staging.run_id):
        Staging.resume(LocalRoot(folder / "data"), "nothing")


DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from profiler.bundles.location import LocalRoot
from profiler.collect import gpu_process, seal
from tests import standins as t
folder = Path({folder!r})
gpu_process.program_argv = t.stand_in_argv
collection = t.begin(folder)
collection.run_jobs()
seal.seal(LocalRoot(folder / "data"), collection)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("staging/*/plan.json", 1),
        ("staging/*/jobs/check-*", 1),
        pytest.param("staging/*/jobs/check-*", 3, marks=pytest.mark.long),
        pytest.param("staging/*/jobs/time-*", 1, marks=pytest.mark.long),
        ("staging/*/jobs/time-*", 3),
        ("runs/*/run.json", 1),
    ],
)
def test_kill_9_at_any_moment_leaves_a_run_that_can_be_finished(
    folder: Path, pattern: str, count: int
) -> None:
    tell(folder, sleep=0.05)
    driver = folder / "driver.py"
    driver.write_text(DRIVER.format(root=str(ROOT), folder=str(folder)))
    process = subprocess.Popen([sys.executable, str(driver)], start_new_session=True)
    data = folder / "data"
    while process.poll() is None and len(list(data.glob(pattern))) < count:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    root = LocalRoot(data)
    ended_before = [path.stem for path in data.glob("staging/*/jobs/*.json")]
    tell(folder)
    if unfinished := unfinished_runs(root):
        resumed = again(folder, unfinished[0])
    else:
        resumed = None if bundle.list_runs(root) else begin(folder)  # it was sealed, or not yet begun
    if resumed:
        resumed.run_jobs()
        seal.seal(root, resumed)
    (run_id,) = bundle.list_runs(root)
    run = bundle.load_run(root, run_id)
    assert {result.status for result in cells(run).values()} == {"done"}
    assert all(len(result.samples[0].ns) == 24 for result in cells(run).values())
    checks = [line for line in calls(folder) if line.startswith("correctness")]
    assert len(checks) <= 6 - sum(key.startswith("check-") for key in ended_before)
    assert unfinished_runs(root) == []


def test_a_killed_run_can_be_sealed_as_it_is(folder: Path) -> None:
    collection = begin(folder)
    for job in collection.planned[:2]:
        collection.run_job(job)
    run = finish(folder, collection)
    statuses = {name: result.status for name, result in cells(run).items()}
    assert statuses["three"] == "skipped"
    assert any("not done" in line for line in run.provenance["left_out"])


def test_a_model_that_failed_is_said_and_no_silence(folder: Path) -> None:
    collection = begin(folder)
    job = {"stage": "model", "status": "failed", "reason": "there is no addr2line"}
    for name in ("one", "two"):
        collection.staging.record(f"model-CPU-0-{name}", {**job, "versions": [name], "results": {}})
    run = finish(folder, collection)
    assert "no CPU model of one, two: there is no addr2line" in run.provenance["degraded"]


@needs_gxx
def test_the_model_keeps_the_line_tables_too(tmp_path: Path) -> None:
    lineage, root = catalog.load_catalog(), LocalRoot(tmp_path / "data")
    settings = Settings(versions=("v2d_b",), workloads=(SMALL,), model=("v2d_b",), counters=False)
    collection = Collection(begin_run(root, lineage, settings), Machine(None, None))
    (job,) = (job for job in collection.planned if job.stage == "model")
    collection.run_job(job)
    run = bundle.load_run(root, seal.seal(root, collection))
    (lines,) = (file for file in run.files if file.kind == "lines")
    assert (lines.path, lines.name) == ("lines/v2d_b.json", "v2d_b.json")
    table = json.loads(root.read(f"runs/{run.run_id}/{lines.path}"))
    assert table["workloads"]["1x2x128x64"][0][0] == "v2d.cu"


def test_whoever_copied_the_tree_can_say_its_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILER_COMMIT", "0123456789abcdef0123456789abcdef01234567")
    assert finish(folder, begin(folder)).provenance["git_commit"].startswith("0123456789")
    monkeypatch.setenv("PROFILER_COMMIT", "not a commit")
    assert "git_commit" not in finish(folder, begin(folder)).provenance


def test_more_checks_run_side_by_side_where_there_are_cpus_and_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    many = Gpu(memory_bytes=80 << 30)
    assert [check_and_time.parallel_checks(gpu) for gpu in (many, Gpu(memory_bytes=8 << 30), None)] == [
        16,
        4,
        16,
    ]
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert check_and_time.parallel_checks(many) == 8


@pytest.mark.slow
def test_a_dry_run_names_the_jobs_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    options = ["v2d_b", "sdpa", "--budget", "60s", "--dry-run"]
    assert main(["collect", *options]) == 0
    shown = capsys.readouterr().out
    assert "lean   1x8x512x64" in shown
    assert "jobs are left out by --budget 60 s" in shown
    assert main(["collect", *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["jobs"][0]["versions"] == ["v2d_b"]
    assert document["jobs"][-1] == {**document["jobs"][-1], "stage": "model", "ended_s": None}
    assert main(["collect", *options, "--resume", "x"]) == 2
    assert not (tmp_path / "data").exists()


def test_the_zip_of_a_run_can_be_unpacked_elsewhere(folder: Path, tmp_path: Path) -> None:
    collection = begin(folder)
    collection.run_jobs()
    run = finish(folder, collection)
    path = zip_file.pack(LocalRoot(folder / "data"), run.run_id, tmp_path / "run.zip")
    assert path.stat().st_size < seal.ZIP_BYTES
    into = tmp_path / "elsewhere"
    into.mkdir()
    assert zip_file.unpack(path, into) == run


# ---------------------------------------------------------------- counters: a program in the place of ncu


def test_without_the_permission_latency_is_kept_and_counters_are_left_out(folder: Path) -> None:
    ncu = stand_in_ncu(folder, None, None, "==ERROR== ERR_NVGPUCTRPERM - no permission\n", 1)
    collection = begin(folder, Machine(GPU, ncu))
    collection.run_jobs()
    run = finish(folder, collection)
    assert {result.status for result in cells(run).values()} == {"done"}
    assert any("ERR_NVGPUCTRPERM" in words for words in run.provenance["degraded"])
    assert run.reports == ()


@pytest.mark.slow
def test_a_report_without_the_asked_range_fails_the_cells_and_says_what_is_in_it(
    folder: Path, reports: Path
) -> None:
    ncu = stand_in_ncu(
        folder, reports / "cutlass/report75.ncu-rep", reports / "oracle/cutlass__report75.ncu-rep.raw.csv"
    )
    collection = begin(folder, Machine(GPU, ncu))
    collection.run_jobs()
    results = cells(finish(folder, collection))
    assert {result.status for result in results.values()} == {"failed"}
    assert "no launch in the range one_at_1x1x64x64" in results["one"].reason


@pytest.mark.slow
def test_the_launches_of_a_range_are_kept_with_a_clean_report(
    folder: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "range_name", lambda _version, _workload: "Fused-GEMM")
    ncu = stand_in_ncu(
        folder, reports / "cutlass/report75.ncu-rep", reports / "oracle/cutlass__report75.ncu-rep.raw.csv"
    )
    collection = begin(folder, Machine(GPU, ncu))
    collection.run_jobs()
    run = finish(folder, collection)
    (report,) = run.reports
    result = cells(run)["one"]
    assert result.status == "done", result.reason
    assert result.captures[0].report == report.sha256
    assert result.captures[0].mode == "ncu; clock none; cache none"
    kept = (folder / "data" / "runs" / run.run_id / report.path).read_bytes()
    assert b"974ee2de314f" not in kept


def test_a_kernel_that_is_not_in_the_report_fails_its_cell(reports: Path) -> None:
    launches = csv_export.read_csv(reports / "oracle/cutlass__report75.ncu-rep.raw.csv").launches
    there = counters.launches_of_cell(launches, "Fused-GEMM", ("Kernel",))
    assert there.reason is None
    assert len(there.ordinals) == len(there.parts) >= 1
    missing = counters.launches_of_cell(launches, "Fused-GEMM", ("attention",))
    assert missing.reason is not None
    assert "attention is not in the report" in missing.reason


def test_counters_that_are_nan_fail_the_cell(reports: Path) -> None:
    path = next((reports / "oracle").glob("esmm*5c6231e5*"))
    launches = csv_export.read_csv(path).launches
    bad = [launch for launch in launches if launch.values.number(NCU_DURATION) is None]
    assert bad, "the report holds a launch whose duration is NaN"
    import dataclasses

    inside = [dataclasses.replace(bad[0], nvtx=("v|w",))]
    cell = counters.launches_of_cell(inside, "v|w")
    assert cell.reason is not None
    assert "NaN" in cell.reason


def test_the_sanitizers_silence_is_no_pass() -> None:
    clean, hazards = "========= ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 3 hazards displayed (3 errors)"
    assert sanitizer.judge_output(clean, {"status": "done", "reason": None})["found"] == 0
    assert sanitizer.judge_output(hazards, {"status": "done", "reason": None})["found"] == 3
    assert sanitizer.judge_output(hazards, {"status": "failed", "reason": "died"})["found"] == 3
    refused = sanitizer.judge_output(clean, {"status": "failed", "reason": "launch refused"})
    assert refused == {"found": None, "summary": "launch refused"}, "nothing was launched"


SANITIZER = """#!{python}
import os, subprocess, sys, time
argv = sys.argv[1:]
tool = argv[argv.index("--tool") + 1]
at = argv.index("--launch-timeout")
subprocess.run(argv[at + 2:])
with open({seen!r}, "a") as seen:
    print(tool, argv[at + 1], os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"), file=seen)
if tool == {hangs!r}:
    time.sleep(600)
print("========= " + {said!r}.get(tool, "ERROR SUMMARY: 0 errors"))
"""


def stand_in_sanitizer(folder: Path, hangs: str = "", **said: str) -> Path:
    program = folder / "compute-sanitizer"
    program.write_text(
        SANITIZER.format(python=sys.executable, seen=str(folder / "seen"), hangs=hangs, said=said)
    )
    program.chmod(0o755)
    return program


def sanitized(folder: Path, **how: str) -> Collection:
    """A collection of one version, which stand-ins compile, check, time and look at."""
    collection = begin(folder, Machine(GPU, None, stand_in_sanitizer(folder, **how)), sanitize=("one",))
    collection.run_jobs()
    return collection


@pytest.mark.slow
def test_the_sanitizer_is_given_time_to_connect_and_memory_that_it_can_judge(folder: Path) -> None:
    run = finish(folder, sanitized(folder))
    assert (folder / "seen").read_text().split("\n")[:-1] == [
        f"{tool} 120 1" for tool in ("racecheck", "memcheck", "initcheck")
    ]
    assert {name: got["found"] for name, got in cells(run)["one"].check["sanitizer"].items()} == {
        "racecheck": 0,
        "memcheck": 0,
        "initcheck": 0,
    }


@pytest.mark.slow
def test_what_a_sanitizer_that_gave_no_answer_said_is_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    end_soon(monkeypatch, "racecheck")
    TerminalListener("collect", argparse.Namespace(json=False, out=None)).ended(
        sanitized(folder, hangs="racecheck")
    )
    said = capsys.readouterr().err
    assert "failed: sanitize-1x1x64x64-0-one: no answer of racecheck" in said


@pytest.mark.slow
def test_what_one_sanitizer_found_stands_where_another_hangs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_soon(monkeypatch, "memcheck")
    races = "RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)"
    result = cells(finish(folder, sanitized(folder, hangs="memcheck", racecheck=races)))["one"]
    assert (result.status, result.reason) == ("wrong", "sanitize: found by racecheck")
    assert "did not end within 0.7 s" in result.check["sanitizer"]["memcheck"]["summary"]


@pytest.mark.slow
def test_a_sanitizer_that_hangs_says_nothing_of_the_version(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_soon(monkeypatch, "racecheck")
    run = finish(folder, sanitized(folder, hangs="racecheck"))
    cell, beside = [result for result in run.results if result.version == "one"]
    assert cell.status == "done", "it was checked and timed"
    # On a busy machine the stand-in may be ended before the program in it has written a result.
    words = r"sanitize: no answer of racecheck: (it|its process) did not end within 0\.7 s"
    assert re.match(words, beside.reason)


@pytest.mark.slow
def test_a_bare_gpu_machine_needs_nothing_but_numpy_and_torch(tmp_path: Path) -> None:
    # Every module but Python's own, numpy and torch is not there; a whole run is begun, sealed and packed.
    code = """
import os, sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
class Bare:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        there = first in sys.stdlib_module_names or first in ("numpy", "torch", "profiler")
        return PathFinder.find_spec(name, path, target) if there else None
sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Bare()]
from profiler.build import resources
from profiler.collect import doctor
from profiler.collect.gpu import correctness, latency, launch_probe, ncu_target, torch_probe
from profiler.cli import main
code = main(["collect", "sdpa", "--no-model", "--out", "run.zip"])
assert code == 3, code
assert os.path.getsize("run.zip") > 500
sys.exit(main(["doctor", "--json"]))
"""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PROFILER_DATA": str(tmp_path / "data"),
    }
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=200, env=environment, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    examined = json.loads(done.stdout[done.stdout.index("\n{") :])  # after what `collect` says
    assert (examined["gpu"], examined["can_measure"]) == (None, False)
    assert examined["torch"]["status"] == "skipped"
    assert examined["torch"]["reason"]
