"""What a collection survives: interruption, other sources, another GPU, damage on disk, tools that fail."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profiler.bundles import bundle, zip_file
from profiler.bundles.location import LocalRoot
from profiler.catalog import catalog
from profiler.catalog.attention import ATTENTION
from profiler.cli import main
from profiler.cli.collecting import TerminalListener
from profiler.collect import (
    check_and_time,
    counters,
    failure_logs,
    failure_streak,
    measurement,
    ncu_command,
    run_inputs,
    seal,
    time_limits,
)
from profiler.collect import machine as collect_machine
from profiler.collect.collection import Collection
from profiler.collect.machine import Machine
from profiler.collect.outcomes import Outcomes
from profiler.collect.plan import Job, Pace
from profiler.collect.provenance import overhead
from profiler.collect.run_inputs import resume_run
from profiler.collect.settings import workload_sizes
from profiler.collect.staging import Staging, unfinished_runs
from profiler.collect.time_limits import TimeLimits
from profiler.documents.collection import grouped_by_reason
from profiler.errors import BadBundle, ProfilerError, UnknownName
from profiler.evidence import nvperf
from tests.conftest import ROOT
from tests.standins import (
    GPU,
    SMALL,
    again,
    begin,
    calls,
    cells,
    finish,
    ncu_calls,
    prepare,
    scripted_ncu,
    stand_in_ncu,
    tell,
)

pytestmark = pytest.mark.slow  # each stage is a process

LABEL = "1x1x64x64"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return prepare(tmp_path, monkeypatch)


# ---------------------------------------------------------------- Ctrl-C and time

# In a session of its own: what it is sent meets nobody else.
INTERRUPTED = """
import json, signal, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from profiler.collect import gpu_process
from tests import standins as t
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have it ignored
gpu_process.program_argv = t.stand_in_argv
collection = t.begin(Path({folder!r}))
try:
    collection.run_jobs()
except KeyboardInterrupt:
    collection.staging.close()
    print(json.dumps({{"run": collection.staging.run_id, "left_out": collection.left_out,
                       "wall_s": collection.session_note()["wall_s"]}}))
"""


def interrupted_at(folder: Path, call: int) -> dict[str, Any]:
    """A collection that Ctrl-C ends while its call of that number runs, from 1; what it says of itself."""
    program = INTERRUPTED.format(root=str(ROOT), folder=str(folder))
    process = subprocess.Popen(
        [sys.executable, "-c", program], text=True, stdout=subprocess.PIPE, start_new_session=True
    )
    until = time.monotonic() + 60
    while len(calls(folder)) < call and time.monotonic() < until:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    begun = time.monotonic()
    said, _ = process.communicate(timeout=60)
    assert time.monotonic() - begun < 10, "what hangs is not waited for"
    note: dict[str, Any] = json.loads(said)
    return note


@pytest.mark.parametrize("stage", ["correctness", "latency"])
def test_ctrl_c_ends_what_hangs_at_once_and_calls_nothing_failed(folder: Path, stage: str) -> None:
    tell(folder, **{f"{stage}__two": "hang"})
    interrupted = interrupted_at(folder, 3 if stage == "correctness" else 4)
    tell(folder)
    resumed = again(folder, interrupted["run"])
    key = Job("check", LABEL, ("two",)).key if stage == "correctness" else resumed.planned[3].key
    assert key not in resumed.staging.outcomes(), "it was ended by us, and says nothing of the version"
    assert interrupted["left_out"][key] == "interrupted"
    resumed.run_jobs()
    assert {result.status for result in cells(finish(folder, resumed)).values()} == {"done"}


def test_a_process_that_outlasts_the_budget_is_ended_and_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "GRACE_S", 0.5)
    monkeypatch.setattr("profiler.collect.plan.START_S", dict.fromkeys(("check", "time", "lean"), 0.1))
    tell(folder, latency__two="hang")
    collection = begin(folder)
    begun = time.monotonic()
    collection.run_jobs(budget_s=2.5)
    assert time.monotonic() - begun < 7
    run = finish(folder, collection)
    assert {result.status for result in cells(run).values()} == {"skipped"}
    assert any("time 3 versions" in line and "budget of 2.5 s" in line for line in run.provenance["left_out"])


def test_a_gpu_that_is_gone_ends_no_cell(folder: Path) -> None:
    tell(folder, latency="no GPU")
    collection = begin(folder)
    collection.run_jobs()
    assert {outcome["stage"] for _, outcome in collection.staging.outcomes().items()} == {"check"}
    tell(folder)
    collection.staging.close()
    resumed = again(folder, collection.staging.run_id)
    resumed.run_jobs()
    assert {result.status for result in cells(finish(folder, resumed)).values()} == {"done"}


@pytest.mark.parametrize("pairs", [0, 1])
def test_what_was_left_out_because_nothing_was_checked_is_done_when_the_run_goes_on(
    folder: Path, pairs: int
) -> None:
    tell(folder, correctness="no GPU")
    collection = begin(folder, pairs=pairs)
    collection.run_jobs()
    assert collection.staging.outcomes() == Outcomes(), "no job has ended: nothing is known of any version"
    tell(folder)
    collection.staging.close()
    resumed = again(folder, collection.staging.run_id)
    resumed.run_jobs()
    run = finish(folder, resumed)
    assert {result.status for result in cells(run).values()} == {"done"}
    assert cells(run)["one"].samples


def test_more_processes_than_rounds_leave_none_without_a_round(folder: Path) -> None:
    collection = begin(folder, rounds=2)
    assert [job.block for job in collection.planned if job.stage == "time"] == [0, 1]
    collection.run_jobs()
    (cold, _warm) = cells(finish(folder, collection))["one"].samples
    assert cold.rounds == (0, 0, 0, 0, 1, 1, 1, 1)


def test_what_did_not_run_does_not_make_the_rest_look_fast() -> None:
    pace, job = Pace(), Job("check", "w", ("a",), 0, 6.0)
    assert pace.seconds(job) == 6.0
    pace.learn(job, 3.0)
    assert pace.seconds(job) == 3.0


def test_the_time_of_all_sessions_is_summed_and_set_against_their_processes(folder: Path) -> None:
    tell(folder, sleep__latency=0.6, sleep__correctness=0.6)
    first = interrupted_at(folder, 5)
    resumed = again(folder, first["run"])
    resumed.run_jobs()
    second_s = resumed.session_note()["wall_s"]
    checks_s = [check["wall_s"] for check in resumed.staging.outcomes().checks.values()]
    about = finish(folder, resumed).provenance
    assert about["sessions"] == 2
    assert about["wall_s"] == pytest.approx(first["wall_s"] + second_s, abs=0.3)
    assert about["processes_s"]["time"] >= 3 * 0.6
    assert 0.6 <= about["processes_s"]["check"] < sum(checks_s), "three side by side are counted once"
    of_all, of_bare = overhead(about) or (0, 0)
    assert 1.0 <= of_all < of_bare
    assert of_all < 2, f"{about['wall_s']} s for processes of {about['processes_s']}"


# ---------------------------------------------------------------- what may not change meanwhile


def changed(folder: Path) -> None:
    text = (folder / "catalog.toml").read_text()
    (folder / "catalog.toml").write_text(
        text.replace("torch_backends:sdpa_math", "torch_backends:sdpa_cudnn")
    )


def test_a_run_does_not_go_on_with_other_sources_but_can_be_sealed_as_it_was(folder: Path) -> None:
    collection = begin(folder)
    for job in collection.planned[:3]:
        collection.run_job(job)
    before = collection.inputs.source_hashes["two"]
    collection.staging.close()
    changed(folder)
    with pytest.raises(ProfilerError, match=r"two changed since run .* --seal"):
        again(folder, collection.staging.run_id)
    resumed = resume_run(LocalRoot(folder / "data"), collection.staging.run_id, sealing=True)
    assert resumed.catalog.by_id["two"].callable == "profiler.catalog.torch_backends:sdpa_math"
    run = finish(folder, Collection(resumed, Machine(None, None)))
    assert cells(run)["two"].source_sha256 == before
    kept = {file.path: file for file in run.files}["kernels/catalog.toml"]
    assert b"sdpa_math" in (folder / "data/runs" / run.run_id / kept.path).read_bytes()


def test_a_run_does_not_go_on_with_another_metrics_txt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = begin(folder)
    collection.staging.close()
    monkeypatch.setattr(run_inputs, "_metrics_sha256", lambda: "other")
    with pytest.raises(ProfilerError, match=r"metrics\.txt changed"):
        again(folder, collection.staging.run_id)
    monkeypatch.undo()


def test_one_run_is_of_one_gpu_and_says_so_wherever_it_is_sealed(folder: Path) -> None:
    collection = begin(folder)
    collection.run_jobs()
    collection.staging.forget(Job("check", LABEL, ("two",)).key)
    collection.staging.close()
    other = again(folder, collection.staging.run_id, Machine(replace(GPU, uuid="GPU-1"), None))
    with pytest.raises(ProfilerError, match="uuid GPU-0 then, GPU-1 now"):
        other.run_jobs()
    other.staging.close()
    sealing = again(folder, collection.staging.run_id, Machine(None, None))
    run = finish(folder, sealing)
    assert run.provenance["gpu"] == "stand-in"
    assert run.provenance["floors"][LABEL]["launch_ns"] == 2000.0
    assert cells(run)["one"].samples


def test_a_plan_of_another_program_is_refused_in_one_line(folder: Path) -> None:
    collection = begin(folder)
    collection.staging.close()
    plan = collection.staging.folder / "plan.json"
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "settings": {"colour": "blue"}}))
    with pytest.raises(BadBundle, match="another version"):
        again(folder, collection.staging.run_id)
    plan.write_text("{")
    with pytest.raises(BadBundle, match=r"plan\.json cannot be read"):
        again(folder, collection.staging.run_id)


# ---------------------------------------------------------------- damage on disk


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"key": 1}', '{"key": "x", "status": "done"}'])
def test_a_damaged_job_is_done_again(folder: Path, damage: str) -> None:
    collection = begin(folder)
    collection.run_jobs()
    collection.staging.close()
    key = Job("check", LABEL, ("two",)).key
    (collection.staging.folder / "jobs" / f"{key}.json").write_text(damage)
    resumed = again(folder, collection.staging.run_id)
    resumed.run_jobs()
    assert calls(folder)[-1] == "correctness two"
    assert {result.status for result in cells(finish(folder, resumed)).values()} == {"done"}


@pytest.mark.parametrize("damage", ["gone", "flipped"])
def test_a_damaged_report_is_captured_again_and_never_keeps_a_run_from_being_sealed(
    folder: Path, made_reports: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(counters, "range_name", lambda _version, _workload: "Fused-GEMM")
    ncu = stand_in_ncu(
        folder,
        made_reports / "cutlass/report75.ncu-rep",
        made_reports / "oracle/cutlass__report75.ncu-rep.raw.csv",
    )
    collection = begin(folder, Machine(GPU, ncu))
    collection.run_jobs()
    (place,) = (collection.staging.folder / "reports").iterdir()
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.unlink() if damage == "gone" else place.write_bytes(content)
    collection.staging.close()
    sealed = again(folder, collection.staging.run_id, Machine(GPU, ncu))
    run, _ = seal.make_run(sealed)
    assert run.reports == ()
    assert cells(run)["one"].status == "done"
    sealed.run_jobs()
    assert len(finish(folder, sealed).reports) == 1


def test_what_a_process_that_was_killed_while_it_removed_a_sealed_run_left_goes_with_the_next(
    folder: Path,
) -> None:
    left = folder / "data/staging/.old-0" / "reports"
    left.mkdir(parents=True)
    begin(folder)
    assert not left.parent.exists()


def test_a_run_that_another_process_just_sealed_is_said_so(folder: Path) -> None:
    collection = begin(folder)
    collection.staging.close()
    staging = Staging(collection.staging.folder)
    (staging.folder / "plan.json").unlink()
    with pytest.raises(UnknownName, match="just been sealed"):
        staging.lock()


def test_a_lock_that_a_dying_process_still_has_is_waited_for(folder: Path) -> None:
    collection = begin(folder)
    child = os.fork()  # shares the lock, as a child that has not yet begun its own program does
    if child == 0:
        time.sleep(0.3)
        os._exit(0)
    collection.staging.close()
    again(folder, collection.staging.run_id)
    os.waitpid(child, 0)


def test_a_full_disk_is_said_and_the_run_goes_on_when_there_is_room(folder: Path) -> None:
    small = folder / "data"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", small], check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        tell(folder, correctness__two="flood")
        collection = begin(folder)
        with pytest.raises(OSError, match="No space"):
            collection.run_jobs()
        collection.staging.close()
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        resumed = again(folder, collection.staging.run_id)
        resumed.run_jobs()
        assert {result.status for result in cells(finish(folder, resumed)).values()} == {"done"}
    finally:
        subprocess.run(["umount", "-l", small], check=False)


# ---------------------------------------------------------------- counters


def real(reports: Path) -> tuple[Path, Path]:
    return reports / "cutlass/report75.ncu-rep", reports / "oracle/cutlass__report75.ncu-rep.raw.csv"


@pytest.fixture
def in_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "range_name", lambda _version, _workload: "Fused-GEMM")


def failed_beside(run: Any, name: str) -> list[str]:
    return [result.reason for result in run.results if result.version == name and result.status == "failed"]


def test_a_capture_that_fails_leaves_the_latency_and_says_why_there_are_no_counters(
    folder: Path, made_reports: Path
) -> None:
    ncu = stand_in_ncu(folder, *real(made_reports))
    collection = begin(folder, Machine(GPU, ncu))
    collection.run_jobs()
    run = finish(folder, collection)
    cell, beside = [result for result in run.results if result.version == "one"]
    assert (cell.status, len(cell.samples[0].ns)) == ("done", 24)
    assert beside.status == "failed"
    assert beside.reason.startswith("lean: the report holds no launch in the range one_at_1x1x64x64")
    assert run.reports == (), "a report in which nothing belongs to a cell is not kept"


def test_a_batch_that_lost_some_is_taken_again_one_by_one(
    folder: Path, made_reports: Path, in_range: None
) -> None:
    report, csv = real(made_reports)
    # The batch of three dies with the program; alone each works, but for `two`, whose launch is refused.
    ncu = scripted_ncu(
        folder,
        f"""
        if "--import" in argv:
            sys.stdout.write(open({str(csv)!r}).read()); sys.exit(0)
        if len(after("--nvtx-include")) > 1:
            fail("==ERROR== The application returned an error code (9).")
        program()
        report({str(report)!r})
        """,
    )
    tell(folder, ncu_target__two="refused")
    collection = begin(folder, Machine(GPU, ncu))
    collection.run_jobs()
    run = finish(folder, collection)
    assert cells_done(run, "one")
    assert cells_done(run, "three")
    assert failed_beside(run, "two") == ["lean: launch refused"]


def cells_done(run: Any, name: str) -> bool:
    results = [result for result in run.results if result.version == name]
    return [result.status for result in results] == ["done"] and bool(results[0].captures)


@pytest.mark.parametrize(
    ("refuses", "says", "found_by"),
    [
        ("--kernel-name", ncu_command.NO_KERNELS, "NVTX range"),
        ("--nvtx-include", ncu_command.NO_KERNELS, "cudaProfilerStart"),
        ("--section", "==ERROR== Could not parse section file.", "NVTX range and kernel name"),
    ],
)
def test_an_ncu_that_fails_at_one_way_of_asking_is_asked_in_a_simpler_way(
    folder: Path, made_reports: Path, in_range: None, refuses: str, says: str, found_by: str
) -> None:
    report, csv = real(made_reports)
    ncu = scripted_ncu(
        folder,
        f"""
        if "--import" in argv:
            sys.stdout.write(open({str(csv)!r}).read()); sys.exit(0)
        program()
        if {refuses!r} in argv:
            fail({says!r})
        report({str(report)!r})
        """,
    )
    collection = begin(folder, Machine(GPU, ncu), versions=("one", "two"))
    collection.context.kernels = {"one": ("Kernel",), "two": ("Kernel",)}
    collection.run_jobs()
    (outcome,) = collection.staging.outcomes().captures.values()
    assert {report["found_by"] for report in outcome["reports"]} == {found_by}
    run = finish(folder, collection)
    assert cells_done(run, "one")
    assert cells_done(run, "two")
    assert refuses not in ncu_calls(folder)[-1], "what was learned holds for the captures after it"


# The target says which cells it has launched; the report is the same real one whatever they are.
SLOW = """
        if "--import" in argv:
            sys.stdout.write(open({csv!r}).read()); sys.exit(0)
        import json, os
        asked, answer = argv[-2:]
        request = json.load(open(asked))
        names = [cell["version"] for cell in request["cells"]]
        cells = [{{"version": name, "status": "done" if at < {each} else "unlaunched", "reason": None}}
                 for at, name in enumerate(names)]
        json.dump({{"status": "done", "reason": None, "cells": cells}}, open(answer, "w"))
        open({calls!r}, "a").write(f"{{names}} {{request['max_seconds']:.0f}}\\n")
        {then}
        shutil.copy({report!r}, after("--export")[0])
"""


def slow_ncu(folder: Path, reports: Path, each: int, then: str = "") -> Any:
    report, csv = (str(path) for path in real(reports))
    seen = str(folder / "seen")
    return scripted_ncu(folder, SLOW.format(report=report, csv=csv, each=each, calls=seen, then=then))


def test_what_a_slow_ncu_has_no_time_for_is_taken_in_the_next_process_together(
    folder: Path, made_reports: Path, in_range: None
) -> None:
    collection = begin(folder, Machine(GPU, slow_ncu(folder, made_reports, 1)))
    collection.run_jobs()
    run = finish(folder, collection)
    assert all(cells_done(run, name) for name in ("one", "two", "three"))
    seen = (folder / "seen").read_text().splitlines()
    assert seen == ["['three', 'two', 'one'] 240", "['two', 'one'] 240", "['one'] 240"], "the newest first"


def test_counters_that_came_before_the_budget_was_used_up_are_kept_and_the_rest_goes_on(
    folder: Path, made_reports: Path, in_range: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def now() -> float:  # the budget is used up while the second ncu runs
        seen = folder / "seen"
        over = seen.exists() and len(seen.read_text().splitlines()) > 1
        return time.monotonic() + (1000 if over else 0)

    monkeypatch.setattr(time_limits, "time", SimpleNamespace(monotonic=now))
    ncu = slow_ncu(folder, made_reports, 1, "if len(names) < 3: sys.exit(1)")
    collection = begin(folder, Machine(GPU, ncu))
    collection.run_jobs(budget_s=500.0)
    unfinished_run, _ = seal.make_run(collection)
    results = cells(unfinished_run)
    assert {name: bool(result.captures) for name, result in results.items()} == {
        "one": False,
        "two": False,
        "three": True,
    }
    assert "lean: the time budget of 500 s was used up" in results["one"].reason
    assert {result.status for result in results.values()} == {"done"}, "each has its latency"
    collection.staging.close()
    resumed = again(folder, collection.staging.run_id, Machine(GPU, slow_ncu(folder, made_reports, 9)))
    resumed.run_jobs()
    run = finish(folder, resumed)
    assert all(cells_done(run, name) for name in ("one", "two", "three"))
    assert (folder / "seen").read_text().splitlines()[-1].startswith("['two', 'one']"), "three is kept"


NAMES = tuple(f"v{number}" for number in range(8))


def eight(folder: Path, ncu: Any = None, processes: int = 1) -> Any:
    entry = '[[version]]\nid = "{}"\ntechnique = "a stand-in"\n'
    entry += 'callable = "profiler.catalog.torch_backends:sdpa"\n'
    head = 'family = "attention"\nproblem = "profiler.catalog.attention:ATTENTION"\n'
    (folder / "catalog.toml").write_text(head + "".join(entry.format(name) for name in NAMES))
    return begin(folder, Machine(GPU, ncu), versions=NAMES, processes=processes)


def test_what_fails_alike_for_all_is_not_tried_version_by_version_to_the_end(folder: Path) -> None:
    tell(folder, **{f"latency__{name}": "exit" for name in NAMES})
    collection = eight(folder)
    collection.run_jobs()
    assert sum(line.startswith("latency") for line in calls(folder)) == 1 + failure_streak.SAME_FAILURES
    results = cells(finish(folder, collection))
    assert [name for name, result in results.items() if result.status == "failed"] == ["v0", "v3", "v6"], (
        "far apart"
    )
    assert "illegal address" in results["v3"].reason
    assert (
        "not tried: the 3 before it failed alike: its process ended with exit code 7" in results["v7"].reason
    )
    assert results["v7"].status == "skipped", "nothing is known of it"


def test_neighbours_that_fail_alike_do_not_keep_a_good_version_from_being_timed(folder: Path) -> None:
    tell(folder, latency__v0="exit", latency__v3="exit", latency__v6="exit")
    collection = eight(folder, processes=2)
    collection.run_jobs()
    results = cells(finish(folder, collection))
    assert [name for name, result in results.items() if not result.samples] == ["v0", "v3", "v6"]
    assert calls(folder)[-1] == "latency v1,v2,v4,v5,v7", "the next block times those that were not tried"
    assert "not tried" in results["v7"].reason


def test_the_order_in_which_versions_are_tried_apart_is_no_order_of_neighbours() -> None:
    assert failure_streak.interleaved(NAMES) == ["v0", "v3", "v6", "v1", "v4", "v7", "v2", "v5"]
    assert [failure_streak.interleaved(NAMES[:count]) for count in (0, 1, 2)] == [[], ["v0"], ["v0", "v1"]]


def test_a_few_versions_that_fail_alike_do_not_keep_the_others_from_being_tried(folder: Path) -> None:
    tell(folder, latency__v0="exit", latency__v1="exit", latency__v3="exit", latency__v4="exit")
    collection = eight(folder)
    collection.run_jobs()
    results = cells(finish(folder, collection))
    assert [name for name, result in results.items() if result.status == "failed"] == ["v0", "v1", "v3", "v4"]


def test_captures_that_fail_alike_are_not_tried_to_the_end(folder: Path, made_reports: Path) -> None:
    report, csv = real(made_reports)
    script = f"""
        if "--import" in argv:
            sys.stdout.write(open({str(csv)!r}).read()); sys.exit(0)
        program()
        report({str(report)!r})
    """
    collection = eight(folder, scripted_ncu(folder, script))
    collection.context.kernels = dict.fromkeys(NAMES, ("attention",))
    collection.run_jobs()
    assert len(ncu_calls(folder)) == 1 + failure_streak.SAME_FAILURES, "the batch, and three by themselves"
    run = finish(folder, collection)
    assert failed_beside(run, "v6")
    assert failed_beside(run, "v7") == []
    assert "lean: not tried" in next(result for result in run.results if result.version == "v7").reason
    assert all(result.samples for result in cells_of(run)), "latency is there"


def cells_of(run: Any) -> list[Any]:
    return [result for result in run.results if result.status == "done"]


def test_a_mistake_of_our_own_costs_the_job_that_met_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = check_and_time.check_version

    def mistaken(context: Any, job: Job) -> Any:
        return {}["nothing"] if job.versions == ("two",) else real(context, job)

    monkeypatch.setattr(check_and_time, "check_version", mistaken)
    collection = begin(folder)
    collection.run_jobs()
    results = cells(finish(folder, collection))
    assert {name: result.status for name, result in results.items()} == {
        "one": "done",
        "two": "failed",
        "three": "done",
    }
    assert "an error of profiler's own: KeyError('nothing')" in results["two"].reason
    assert "Traceback" in capsys.readouterr().err


def test_a_hang_may_cost_a_part_of_the_budget_and_no_more() -> None:
    limits = TimeLimits()
    assert (limits.of_process("check"), limits.of_build()) == (180.0, 600.0)
    limits.start(480.0)
    assert limits.of_process("check") == pytest.approx(72.0)
    assert limits.of_build() == pytest.approx(96.0)
    limits.start(100.0)
    assert (limits.of_process("check"), limits.of_process("time"), limits.of_build()) == (60.0, 60.0, 60.0)
    assert limits.of_work_within("time") == pytest.approx(36.0), "it samples no longer than it is let"
    assert limits.of_work_within("lean") == pytest.approx(88.0, abs=0.5), "and no longer than there is time"
    limits.start(100.0, spent_s=90.0)
    assert limits.of_process("check") == pytest.approx(20.0, abs=0.5)
    assert limits.of_work_within("time") == 5.0


def test_what_a_failed_process_said_is_shown_before_its_log_is_gone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(folder, latency__two="exit")
    collection = begin(folder)
    collection.run_jobs()
    TerminalListener("collect", argparse.Namespace(json=False, out=None)).ended(collection)
    said = capsys.readouterr().err
    assert "failed: time-1x1x64x64-0-3-versions: its process ended with exit code 7" in said
    assert "latency.log:\n    illegal address" in said
    assert said.count("failed:") == 1, "the same reason once"


def test_the_logs_that_are_shown_are_not_those_of_a_version_whose_name_begins_alike(tmp_path: Path) -> None:
    for name in ("check-w-0-v2", "check-w-0-v2b", "check-w-0-v2-alone"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "correctness.log").write_text(name)
    shown = {path.parent.name for path in failure_logs.newest_logs(tmp_path / "check-w-0-v2")}
    assert shown == {"check-w-0-v2", "check-w-0-v2-alone"}


# ---------------------------------------------------------------- the zip


def test_the_zip_never_exceeds_its_limit_and_names_what_it_lacks(
    folder: Path, made_reports: Path, in_range: None
) -> None:
    ncu = stand_in_ncu(folder, *real(made_reports))
    collection = begin(folder, Machine(GPU, ncu), full=("one",))
    collection.run_jobs()
    whole, _ = seal.make_run(collection)
    (lean,) = whole.reports
    limit = 30_000
    assert lean.size_bytes > limit
    run_id = seal.seal(LocalRoot(folder / "data"), collection, zip_bytes=limit)
    path = zip_file.pack(LocalRoot(folder / "data"), run_id, folder / "run.zip")
    assert path.stat().st_size <= limit
    run = bundle.load_run(LocalRoot(folder / "data"), run_id)
    assert any("more than fits into the file" in line for line in run.provenance["left_out"])
    assert cells(run)["one"].samples
    assert cells(run)["one"].captures == ()


# ---------------------------------------------------------------- the command


def wait_to_be_ended(kind: signal.Signals) -> None:
    with measurement.interrupted_by_signals():
        os.kill(os.getpid(), kind)
        time.sleep(1)


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGHUP])
def test_kill_and_a_closed_terminal_end_the_command_as_ctrl_c_does(kind: signal.Signals) -> None:
    before = signal.getsignal(kind)
    with pytest.raises(KeyboardInterrupt):
        wait_to_be_ended(kind)
    assert signal.getsignal(kind) == before


def test_what_was_left_out_for_one_reason_is_one_line() -> None:
    lines = [f"check v{number} on w: no GPU here" for number in range(12)] + ["time a on w: the budget: over"]
    grouped = grouped_by_reason(lines)
    assert grouped[0].startswith("no GPU here: check v0 on w, check v1 on w")
    assert grouped[0].endswith("and 4 more (--json names them)")
    assert grouped[1] == "the budget: over: time a on w"


def test_the_command_says_how_a_run_that_was_interrupted_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(folder / "data"))
    collection = begin(folder)
    collection.staging.close()
    (run_id,) = unfinished_runs(LocalRoot(folder / "data"))
    assert main(["collect", "--resume", run_id, "--seal", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["run"] == run_id
    assert main(["collect", "--resume", run_id]) == 2
    assert f"no unfinished run {run_id}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("one", "--full", "two"), "--full two: it is not measured"),
        (("one", "--sanitize", "nobody"), "nobody"),
        (("one", "--out", "no/such/folder/x.zip"), "there is no folder"),
        (("one", "--budget", "soon"), "--budget"),
        (("--seal",), "--seal needs --resume"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    says: str,
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(folder / "data"))
    monkeypatch.chdir(folder)
    assert main(["collect", "--catalog", str(folder), *words]) == 2
    assert says in capsys.readouterr().err
    assert unfinished_runs(LocalRoot(folder / "data")) == []


def test_every_dtype_that_a_version_takes_is_measured() -> None:
    lineage = catalog.load_catalog()
    labels = [ATTENTION.workload(**sizes).label for sizes in workload_sizes(lineage, lineage.versions)]
    assert len(labels) == 10
    assert labels[0] == "1x8x512x64"
    assert "1x8x512x64 fp8" in labels


def test_two_head_dims_of_a_workload_that_a_version_lacks_are_not_asked_of_it(folder: Path) -> None:
    collection = begin(folder, workloads=(SMALL, {**SMALL, "dtype": "fp8"}))
    assert {job.workload for job in collection.planned} == {LABEL}


def test_passes_are_counted_apart_and_a_library_that_crashes_is_done_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = Machine(GPU, None)
    collect_machine.count_passes(machine, "sm_90")
    if nvperf.library_path() is not None:
        lean, full = machine.passes["lean"], machine.passes["full"]
        assert 1 < (lean or 0) < (full or 0)
    crashing = tmp_path / "profiler"
    crashing.mkdir()
    (crashing / "__init__.py").write_text("import os; os.kill(os.getpid(), 11)")
    environment = {"PYTHONPATH": str(tmp_path)}
    monkeypatch.setattr("profiler.collect.subprocesses.package_environment", lambda: environment)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nvperf, "_forgone", False)
    try:
        collect_machine.count_passes(machine, "sm_90")
        assert machine.passes == {}
        assert "SIGSEGV" in machine.missing[-1]
        assert nvperf.load() is None
    finally:
        monkeypatch.undo()
        nvperf.load.cache_clear()
