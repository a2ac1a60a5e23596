"""What a collection that is killed with everything around it still brings: the file under --out."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles import bundle, zip_file
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import Run
from profiler.cli import main
from profiler.collect import checkpoint, gpu_process, measurement
from profiler.collect import seal as collect_seal
from profiler.collect.gpu.messages import LATENCY
from profiler.collect.measurement import CollectionLimits, measure
from profiler.collect.staging import unfinished_runs
from profiler.errors import BadBundle
from tests import stand_in_program
from tests.conftest import ROOT
from tests.standins import again, begin, calls, cells, finish, prepare, stand_in_machine, tell

# The command as it is, with the stand-ins in the place of the stages and of the look at the machine.
DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from profiler.collect import checkpoint, gpu_process, measurement
from profiler.cli import main
from tests import standins as t
folder = Path({folder!r})
gpu_process.program_argv = t.stand_in_argv
checkpoint.SHARE = 1.0
measurement.detect_machine = lambda counters=True: t.stand_in_machine()
sys.exit(main(["collect", *sys.argv[1:]]))
"""
WORDS = ("one", "two", "three", "--workloads", "1x8x512x64", "--rounds", "6")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "out").mkdir()
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(measurement, "detect_machine", lambda counters=True: stand_in_machine())
    prepared = prepare(tmp_path, monkeypatch)
    (tmp_path / "driver.py").write_text(DRIVER.format(root=str(ROOT), folder=str(tmp_path)))
    return prepared


def collect(folder: Path, *words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, str(folder / "driver.py"), *words, "--out", str(folder / "out/collected.zip")]
    return subprocess.Popen(
        argv, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def collect_here(folder: Path, *words: str) -> int:
    """The same command in this process; its exit code."""
    return main(["collect", *words, "--out", str(folder / "out/collected.zip")])


def wait_for(seen: Callable[[], bool], within_s: float = 60.0) -> bool:
    until = time.monotonic() + within_s
    while not seen():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def unpacked(folder: Path) -> Run:
    into = folder / "unpacked"
    into.mkdir()
    return zip_file.unpack(folder / "out/collected.zip", into)


def running(folder: Path) -> list[str]:
    """The stand-ins that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if stand_in_program.__file__ in words and any(word.startswith(str(folder)) for word in words):
            found.append(words[-3])
    return found


@pytest.mark.slow
def test_a_collection_whose_group_is_killed_leaves_a_bundle_and_goes_on_where_it_can(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(folder, latency__three="hang")
    process = collect(folder, "--catalog", str(folder), *WORDS)
    assert wait_for(lambda: "latency one,two,three" in calls(folder))
    ended = {path.name for path in folder.glob("data/staging/*/jobs/check-*.json")}
    assert len(ended) == 3
    assert wait_for(lambda: checks_in_file(folder) == ended)
    os.killpg(process.pid, signal.SIGKILL)  # as a limit on a command's time ends it
    assert process.wait() == -signal.SIGKILL
    assert wait_for(lambda: not running(folder), 10), "what hangs does not outlive whoever started it"
    assert [path.name for path in (folder / "out").iterdir()] == ["collected.zip"]

    run = unpacked(folder)
    assert {
        result.version: result.check["passed"] for result in run.results if result.check
    } == dict.fromkeys(("one", "two", "three"), True)
    assert checkpoint.UNFINISHED_WORDS in run.provenance["degraded"]
    assert any("time 3 versions" in line for line in run.provenance["left_out"])
    other = LocalRoot(folder / "elsewhere")
    monkeypatch.setenv("PROFILER_DATA", str(other.folder))
    assert main(["import", str(folder / "out/collected.zip")]) == 0
    assert bundle.list_runs(other) == [run.run_id]

    tell(folder)
    monkeypatch.setenv("PROFILER_DATA", str(folder / "data"))
    capsys.readouterr()
    assert collect_here(folder, "--resume", "last") == 0, capsys.readouterr().err
    whole = bundle.load_run(LocalRoot(folder / "data"), run.run_id)
    assert {result.status for result in whole.results if result.workload} == {"done"}
    assert sum(line.startswith("correctness") for line in calls(folder)) == 3, "nothing is done twice"

    monkeypatch.setenv("PROFILER_DATA", str(other.folder))
    capsys.readouterr()
    assert main(["import", str(folder / "out/collected.zip")]) == 2, "a part of it is there"
    assert f"remove {other.url}/runs/{run.run_id}" in capsys.readouterr().err
    shutil.rmtree(other.folder / "runs" / run.run_id)
    assert main(["data", "index"]) == 0
    assert main(["import", str(folder / "out/collected.zip")]) == 0
    assert bundle.load_run(other, run.run_id) == whole


def checks_in_file(folder: Path) -> set[str]:
    """The checks that the file holds."""
    path = folder / "out/collected.zip"
    if not path.exists():
        return set()
    into = folder / f"looked-{time.monotonic_ns()}"
    into.mkdir()
    checked = [result.version for result in zip_file.unpack(path, into).results if result.check]
    return {f"check-1x8x512x64-0-{name}.json" for name in checked}


@pytest.mark.slow
def test_after_an_interruption_the_file_holds_all_that_had_ended(folder: Path) -> None:
    tell(folder, latency__three="hang")
    process = collect(folder, "--catalog", str(folder), *WORDS)
    assert wait_for(lambda: "latency one,two,three" in calls(folder))
    for _ in range(2):  # as `timeout` does: the program, then its group
        process.send_signal(signal.SIGTERM)
        time.sleep(0.002)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "collected.zip has the jobs that had ended" in said
    assert sum(bool(result.check) for result in unpacked(folder).results) == 3
    assert len(unfinished_runs(LocalRoot(folder / "data"))) == 1


def test_the_file_of_a_collection_that_ends_is_the_sealed_run(folder: Path) -> None:
    assert collect_here(folder, "--catalog", str(folder), *WORDS) == 0
    run = unpacked(folder)
    assert run == bundle.load_run(LocalRoot(folder / "data"), run.run_id)
    assert checkpoint.UNFINISHED_WORDS not in run.provenance["degraded"]
    assert [path.name for path in (folder / "out").iterdir()] == ["collected.zip"]


def test_a_checkpoint_is_written_between_what_is_timed_and_not_beside_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[tuple[float, float]] = []
    wrote: list[tuple[float, float]] = []

    def noting(spans: list[tuple[float, float]], real: Callable[..., Any], only: Any = None) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            begun = time.monotonic()
            found = real(*given, **named)
            if only is None or given[0] is only:
                spans.append((begun, time.monotonic()))
            return found

        return call

    tell(folder, sleep__latency=0.1)
    collection = begin(folder)
    monkeypatch.setattr(gpu_process, "run_program", noting(timed, gpu_process.run_program, LATENCY))
    with checkpoint.Checkpoint(collection, folder / "out/collected.zip", share=1.0) as writer:
        monkeypatch.setattr(writer, "_write", noting(wrote, writer._write))
        collection.run_jobs()
    assert len(timed) == 3
    between = [span for span in wrote if timed[0][1] <= span[0] and span[1] <= timed[-1][0]]
    assert len(between) >= 2, "after each process that was timed"
    assert not [(a, b) for a in wrote for b in timed if a[0] < b[1] and b[0] < a[1]]


def test_a_checkpoint_holds_what_ended_last_and_what_ended_once_more(folder: Path) -> None:
    collection = begin(folder)
    with checkpoint.Checkpoint(collection, folder / "out/collected.zip", share=0.0) as writer:
        collection.run_jobs()
    run = unpacked(folder)
    assert all(result.samples for result in run.results if result.workload), (
        "killed while it is sealed, all is here"
    )
    key = collection.planned[0].key
    before = (folder / "out/collected.zip").stat().st_mtime_ns
    assert writer.update()
    assert (folder / "out/collected.zip").stat().st_mtime_ns == before
    collection.staging.record(key, {**collection.staging.outcomes().checks[key], "status": "failed"})
    assert writer.update()
    assert (folder / "out/collected.zip").stat().st_mtime_ns != before


@pytest.mark.slow
def test_writing_takes_its_share_of_the_time_and_no_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(folder, sleep__latency=0.2)
    collection = begin(folder, processes=6)
    wrote: list[float] = []
    with checkpoint.Checkpoint(collection, folder / "out/collected.zip", share=0.2) as writer:
        monkeypatch.setattr(writer, "_write", lambda: (wrote.append(time.monotonic()), time.sleep(0.15)))
        collection.run_jobs()
        assert 1 <= len(wrote) <= 0.2 * (time.monotonic() - writer._begun) / 0.15 + 1


def test_kill_while_the_run_is_sealed_does_not_cost_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = collect_seal.seal

    def seal(*given: Any, **named: Any) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return real(*given, **named)

    monkeypatch.setattr(collect_seal, "seal", seal)
    before = signal.getsignal(signal.SIGTERM)
    limits = CollectionLimits(time.monotonic(), out=folder / "out/collected.zip")
    sealed = measure(begin(folder), LocalRoot(folder / "data"), limits)
    assert sealed is not None
    assert unpacked(folder) == sealed.run
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.slow
def test_a_part_imported_where_the_run_is_collected_does_not_cost_the_rest(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = begin(folder)
    run_id, target = collection.staging.run_id, folder / "out/collected.zip"
    writer = checkpoint.Checkpoint(collection, target)
    for job in collection.planned[:2]:
        collection.run_job(job)
    assert writer.update()
    assert main(["import", str(target)]) == 0
    collection.run_job(collection.planned[2])
    assert writer.update()
    capsys.readouterr()
    assert main(["import", str(target)]) == 2
    assert "a part of this one: remove" in capsys.readouterr().err, "of a larger part too"
    with pytest.raises(BadBundle, match=f"a part of run {run_id} was imported here: remove"):
        finish(folder, collection)
    assert collection.staging.outcomes(), "what was measured is still there"
    collection.staging.close()
    with pytest.raises(BadBundle, match="was imported here"):
        again(folder, "last")
    shutil.rmtree(folder / "data/runs" / run_id)
    resumed = again(folder, "last")
    resumed.run_jobs()
    assert {result.status for result in cells(finish(folder, resumed)).values()} == {"done"}
    capsys.readouterr()
    assert main(["import", str(target)]) == 2
    assert "whole: this part of it adds nothing" in capsys.readouterr().err


def test_a_checkpoint_is_moved_to_another_file_system_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Path("/dev/shm")
    if not there.is_dir() or there.stat().st_dev == folder.stat().st_dev:
        pytest.skip("no second file system here")
    target = there / f"profiler-{os.getpid()}.zip"
    try:
        collection = begin(folder)
        for job in collection.planned[:2]:
            collection.run_job(job)
        assert checkpoint.Checkpoint(collection, target).update()
        assert zip_file.is_bundle_zip(target)
        partial = target.with_name(f"{target.name}.part")
        assert not partial.exists()

        def full(_made: Path, there: Path) -> None:
            there.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(shutil, "copyfile", full)
        collection.run_job(collection.planned[2])
        assert not checkpoint.Checkpoint(collection, target).update()
        assert zip_file.is_bundle_zip(target), "the one before"
        assert not partial.exists()
    finally:
        target.unlink(missing_ok=True)


@pytest.mark.slow
def test_a_file_that_cannot_be_written_ends_no_measurement_and_is_said_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = begin(folder)
    with checkpoint.Checkpoint(collection, folder / "gone" / "x.zip", share=1.0):
        collection.run_jobs()
    assert {result.status for result in cells(finish(folder, collection)).values()} == {"done"}
    assert capsys.readouterr().err.count("is not kept up to date") == 1


def test_the_last_unfinished_run_can_be_named_so(folder: Path) -> None:
    collection = begin(folder)
    collection.staging.close()
    assert again(folder, "last").staging.run_id == collection.staging.run_id
