"""A run measured in processes of its own. Small programs stand in for the stages; no GPU is needed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from profiler import assembly, bundle, bundle_zip, captured, catalog, collect, isolated, ncucsv
from profiler.capture import Ncu
from profiler.collect import Collection, Machine, Settings
from profiler.errors import ProfilerError, UnknownName
from profiler.location import LocalRoot
from profiler.plan import Job
from profiler.staging import Staging, unfinished

GPU = {"name": "stand-in", "uuid": "GPU-0", "compute_capability": "9.0", "driver": "580", "cuda": "13.0"}
SMALL = {"batch": 1, "heads": 1, "len_q": 64, "len_kv": 64, "head_dim": 64, "causal": False, "dtype": "fp16"}
CATALOG = """
family = "attention"
problem = "profiler.problem:ATTENTION"
[[version]]
id = "one"
technique = "a stand-in"
callable = "profiler.baselines:sdpa"
[[version]]
id = "two"
technique = "a stand-in"
callable = "profiler.baselines:sdpa_math"
[[version]]
id = "three"
technique = "a stand-in"
callable = "profiler.baselines:sdpa_flash"
"""

# A program in the place of a stage: what it does with a version is told by a file beside the catalogue.
STAND_IN = """
import json, os, sys, time
stage, asked, answer = sys.argv[1:4]
request = json.load(open(asked))
folder = os.path.dirname(request["catalog"])
told = json.load(open(os.path.join(folder, "told.json")))
versions = request.get("versions") or [request["version"]]
with open(os.path.join(folder, "calls"), "a") as calls:
    calls.write(stage + " " + ",".join(v["id"] for v in versions) + "\\n")
time.sleep(told.get("sleep", 0))
for version in versions:
    how = told.get(f"{stage} {version['id']}")
    if how == "crash":
        os.kill(os.getpid(), 11)
    elif how == "hang":
        time.sleep(600)
    elif how == "flood":
        for _ in range(2000):
            print("x" * 10000)
    elif how == "exit":
        print("illegal address"); sys.exit(7)
def samples(v):
    rounds = [r for r in request["rounds"] for _ in range(request["samples"])]
    return [{"mode": f"events; cache {m}; clock none", "ns": [1000.0 + r for r in rounds], "rounds": rounds,
             "clocks_mhz": [], "throttled": [0]} for m in ("cold", "warm")]
if stage == "gpucheck":
    how = told.get(f"gpucheck {versions[0]['id']}")
    bad = how == "wrong"
    result = {"status": "wrong" if bad else "done", "reason": "3 wrong" if bad else None,
              "max_abs_error": 0.5 if how == "wrong" else 1e-4}
else:
    result = {"status": "done", "reason": None, "launch_ns": 2000.0, "versions": {
        v["id"]: {"status": "done", "reason": None, "samples": samples(v), "batch": {"cold": 1, "warm": 1}}
        for v in versions}, "states": {"before": None, "during": [], "after": None}}
part = answer + ".part"
json.dump(result, open(part, "w"))
os.replace(part, answer)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "catalog.toml").write_text(CATALOG)
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    tell(tmp_path)
    monkeypatch.setattr(isolated, "stage_argv", stand_in_argv(tmp_path))
    monkeypatch.setenv("PROFILER_BUILD", str(tmp_path / "build"))
    return tmp_path


def stand_in_argv(folder: Path) -> Any:
    def argv(stage: str, request: Path, result: Path) -> list[str]:
        return [sys.executable, str(folder / "stand_in.py"), stage, str(request), str(result)]

    return argv


def tell(folder: Path, **how: Any) -> None:
    content = {key.replace("__", " "): value for key, value in how.items()}
    (folder / "told.json").write_text(json.dumps(content))


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def begin(folder: Path, machine: Machine | None = None, **changed: Any) -> Collection:
    settings = Settings(
        **{"versions": ("one", "two", "three"), "workloads": (SMALL,), "rounds": 6, **changed}
    )
    lineage = catalog.load(folder)
    staging = collect.begin(LocalRoot(folder / "data"), lineage, settings)
    return Collection(staging, lineage, settings, machine or Machine(GPU, None, None, ["no ncu here"]))


def again(folder: Path, run_id: str, machine: Machine | None = None) -> Collection:
    staging, lineage, settings = collect.resume(LocalRoot(folder / "data"), run_id)
    return Collection(staging, lineage, settings, machine or Machine(GPU, None, None, ["no ncu here"]))


def finish(folder: Path, collection: Collection) -> Any:
    root = LocalRoot(folder / "data")
    return bundle.load(root, assembly.seal(root, collection))


def cells(run: Any) -> dict[str, Any]:
    return {one.version: one for one in run.results if one.workload == "1x1x64x64"}


def test_every_version_is_checked_timed_and_sealed(folder: Path) -> None:
    collection = begin(folder)
    collection.work_off()
    run = finish(folder, collection)
    assert {name: one.status for name, one in cells(run).items()} == dict.fromkeys(
        ("one", "two", "three"), "done"
    )
    one = cells(run)["one"]
    assert [block.mode for block in one.samples] == [
        "events; cache cold; clock none",
        "events; cache warm; clock none",
    ]
    assert one.samples[0].rounds == tuple(r for r in range(6) for _ in range(4))
    assert one.samples[0].throttled == (0, 8, 16), "positions count on over the three processes"
    assert run.provenance["gpu"] == "stand-in"
    assert run.provenance["floors"]["1x1x64x64"]["launch_ns"] == 2000.0
    assert unfinished(LocalRoot(folder / "data")) == []


def test_a_wrong_version_is_recorded_and_goes_no_further(folder: Path) -> None:
    tell(folder, gpucheck__two="wrong")
    collection = begin(folder)
    collection.work_off()
    two = cells(finish(folder, collection))["two"]
    assert (two.status, two.reason, two.samples) == ("wrong", "3 wrong", ())
    assert two.check["max_abs_error"] == 0.5
    assert not any(line.startswith("timing") and "two" in line for line in calls(folder))


@pytest.mark.parametrize(("how", "words"), [("crash", "SIGSEGV"), ("exit", "illegal address")])
def test_a_version_that_kills_its_group_costs_itself_alone(folder: Path, how: str, words: str) -> None:
    tell(folder, timing__two=how)
    collection = begin(folder)
    collection.work_off()
    found = cells(finish(folder, collection))
    assert {name: one.status for name, one in found.items()} == {
        "one": "done",
        "two": "failed",
        "three": "done",
    }
    assert words in found["two"].reason
    rounds = [set(found[name].samples[0].rounds) for name in ("one", "three")]
    assert rounds[0] & rounds[1] == {2, 3, 4, 5}, (
        "the two rounds that each was timed in by itself are not shared"
    )
    assert len(rounds[0]) == len(rounds[1]) == 6
    assert len(found["one"].samples[0].ns) == 24
    assert calls(folder).count("timing one,two,three") == 1, "the next processes leave it out"


def test_a_check_that_hangs_is_ended_and_the_others_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(collect._LIMIT_S, "check", 1.5)
    tell(folder, gpucheck__three="hang", gpucheck__one="flood")
    collection = begin(folder)
    collection.work_off()
    found = cells(finish(folder, collection))
    assert {name: one.status for name, one in found.items()} == {
        "one": "done",
        "two": "done",
        "three": "failed",
    }
    assert "did not end within" in found["three"].reason


def test_without_a_gpu_every_cell_says_so_and_a_later_run_would_do_it(folder: Path) -> None:
    collection = begin(folder, Machine(None, None, None, ["no GPU here: nothing can be measured"]))
    collection.work_off()
    assert collection.staging.outcomes() == {}
    run = finish(folder, collection)
    assert {one.status for one in cells(run).values()} == {"skipped"}
    assert run.provenance["degraded"] == ["no GPU here: nothing can be measured"]
    assert calls(folder) == []


def test_a_budget_names_what_it_leaves_out(folder: Path) -> None:
    collection = begin(folder)
    collection.work_off(budget=0.0)
    run = finish(folder, collection)
    assert {one.status for one in cells(run).values()} == {"skipped"}
    assert any("check one on 1x1x64x64: the time budget" in line for line in run.provenance["left_out"])


def test_a_resumed_run_does_only_what_is_missing(folder: Path) -> None:
    collection = begin(folder)
    collection.work_off()
    collection.staging.drop(Job("check", "1x1x64x64", ("two",)).key)
    collection.staging.close()
    before = len(calls(folder))
    resumed = again(folder, collection.staging.run_id)
    resumed.work_off()
    assert calls(folder)[before:] == ["gpucheck two"]


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
from profiler import assembly, collect, isolated
from profiler.collect import Collection, Machine, Settings
from profiler.location import LocalRoot
from tests import test_collect as t
folder = Path({folder!r})
isolated.stage_argv = t.stand_in_argv(folder)
ids = t.unfinished(LocalRoot(folder / "data"))
collection = t.again(folder, ids[0]) if ids else t.begin(folder)
print(collection.staging.run_id, flush=True)
collection.work_off()
print(assembly.seal(LocalRoot(folder / "data"), collection), flush=True)
"""


@pytest.mark.parametrize("moment_s", [0.4, 0.8, 1.2, 1.6, 2.0, 2.6])
def test_kill_9_at_any_moment_leaves_a_run_that_can_be_finished(folder: Path, moment_s: float) -> None:
    tell(folder, sleep=0.15)
    driver = folder / "driver.py"
    driver.write_text(DRIVER.format(root=str(Path(__file__).resolve().parent.parent), folder=str(folder)))
    process = subprocess.Popen([sys.executable, str(driver)], stdout=subprocess.PIPE, start_new_session=True)
    time.sleep(moment_s)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    root = LocalRoot(folder / "data")
    ended_before = [path.stem for path in (root.folder / "staging").glob("*/jobs/*.json")]
    sealed_before = bundle.list_runs(root)
    if not sealed_before or unfinished(root):
        done = subprocess.run([sys.executable, str(driver)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    (run_id,) = bundle.list_runs(root)
    run = bundle.load(root, run_id)
    assert {one.status for one in cells(run).values()} == {"done"}
    assert all(len(one.samples[0].ns) == 24 for one in cells(run).values())
    checks = [line for line in calls(folder) if line.startswith("gpucheck")]
    assert len(checks) <= 6 - sum(key.startswith("check-") for key in ended_before)
    assert unfinished(root) == []


def test_a_killed_run_can_be_sealed_as_it_is(folder: Path) -> None:
    collection = begin(folder)
    for job in collection.planned[:2]:
        collection._do(job)
    run = finish(folder, collection)
    told = {name: one.status for name, one in cells(run).items()}
    assert told["three"] == "skipped"
    assert any("not done" in line for line in run.provenance["left_out"])


def test_the_zip_of_a_run_can_be_unpacked_elsewhere(folder: Path, tmp_path: Path) -> None:
    collection = begin(folder)
    collection.work_off()
    run = finish(folder, collection)
    path = bundle_zip.pack(LocalRoot(folder / "data"), run.run_id, tmp_path / "run.zip")
    assert path.stat().st_size < assembly.ZIP_BYTES
    into = tmp_path / "elsewhere"
    into.mkdir()
    assert bundle_zip.unpack(path, into) == run


# ---------------------------------------------------------------- counters: a program in the place of ncu

# It writes a real report where --export says, and prints the real ncu's CSV of it for --import.
NCU = """
import shutil, sys
report, csv, said, code = {report!r}, {csv!r}, {said!r}, {code}
if "--import" in sys.argv:
    sys.stdout.write(open(csv).read())
elif "--query-metrics" in sys.argv or "--list-sections" in sys.argv:
    pass
else:
    sys.stdout.write(said)
    if report:
        shutil.copy(report, sys.argv[sys.argv.index("--export") + 1])
    sys.exit(code)
"""


def stand_in_ncu(folder: Path, report: Path | None, csv: Path | None, said: str = "", code: int = 0) -> Ncu:
    program = folder / "ncu"
    body = NCU.format(report=str(report or ""), csv=str(csv or ""), said=said, code=code)
    program.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}")
    program.chmod(0o755)
    return Ncu(program, "2025.3.1.0")


def test_without_the_permission_latency_is_kept_and_counters_are_left_out(folder: Path) -> None:
    ncu = stand_in_ncu(folder, None, None, "==ERROR== ERR_NVGPUCTRPERM - no permission\n", 1)
    collection = begin(folder, Machine(GPU, ncu))
    collection.work_off()
    run = finish(folder, collection)
    assert {one.status for one in cells(run).values()} == {"done"}
    assert any("ERR_NVGPUCTRPERM" in words for words in run.provenance["degraded"])
    assert run.reports == ()


def test_a_report_without_the_asked_range_fails_the_cells_and_says_what_is_in_it(
    folder: Path, reports: Path
) -> None:
    ncu = stand_in_ncu(
        folder, reports / "cutlass/report75.ncu-rep", reports / "oracle/cutlass__report75.ncu-rep.raw.csv"
    )
    collection = begin(folder, Machine(GPU, ncu))
    collection.work_off()
    found = cells(finish(folder, collection))
    assert {one.status for one in found.values()} == {"failed"}
    assert "no launch in the range one|1x1x64x64" in found["one"].reason


def test_the_launches_of_a_range_are_kept_with_a_clean_report(
    folder: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "range_name", lambda _version, _workload: "Fused-GEMM")
    ncu = stand_in_ncu(
        folder, reports / "cutlass/report75.ncu-rep", reports / "oracle/cutlass__report75.ncu-rep.raw.csv"
    )
    collection = begin(folder, Machine(GPU, ncu))
    collection.work_off()
    run = finish(folder, collection)
    (report,) = run.reports
    one = cells(run)["one"]
    assert one.status == "done", one.reason
    assert one.captures[0].report == report.sha256
    assert one.captures[0].mode == "ncu; clock none; cache none"
    kept = (folder / "data" / "runs" / run.run_id / report.path).read_bytes()
    assert b"974ee2de314f" not in kept


def test_a_kernel_that_is_not_in_the_report_fails_its_cell(reports: Path) -> None:
    found = ncucsv.read_csv(reports / "oracle/cutlass__report75.ncu-rep.raw.csv").launches
    there = captured.of_cell(found, "Fused-GEMM", ("Kernel",))
    assert there.reason is None
    assert len(there.ordinals) == len(there.parts) >= 1
    missing = captured.of_cell(found, "Fused-GEMM", ("attention",))
    assert missing.reason is not None
    assert "attention is not in the report" in missing.reason


def test_counters_that_are_nan_fail_the_cell(reports: Path) -> None:
    path = next((reports / "oracle").glob("esmm*5c6231e5*"))
    launches = ncucsv.read_csv(path).launches
    bad = [one for one in launches if one.values.number(captured.DURATION) is None]
    assert bad, "the report holds a launch whose duration is NaN"
    import dataclasses

    inside = [dataclasses.replace(bad[0], nvtx=("v|w",))]
    found = captured.of_cell(inside, "v|w")
    assert found.reason is not None
    assert "NaN" in found.reason


def test_the_sanitizers_silence_is_no_pass() -> None:
    assert collect.sanitizer_verdict("========= ERROR SUMMARY: 0 errors", "ended", True)["found"] == 0
    assert (
        collect.sanitizer_verdict("RACECHECK SUMMARY: 3 hazards displayed (3 errors)", "", True)["found"] == 3
    )
    assert collect.sanitizer_verdict("========= ERROR SUMMARY: 0 errors", "died", False)["found"] is None


def test_what_runs_on_a_bare_gpu_machine_needs_nothing_of_the_dashboard() -> None:
    code = """
import sys
for name in ("sqlalchemy", "fsspec", "streamlit", "pandas", "plotly", "ncu_report", "torch"):
    sys.modules[name] = None
from profiler import assembly, bundle, bundle_zip, catalog, collect, plan, scrub, staging
from profiler.cli import main
catalog.load()
main(["collect", "--help"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "--resume" in done.stdout
