"""Temporary folders: gone with the block, and swept where the process that made them was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from profiler.bundles import scratch
from profiler.bundles.scratch import scratch_folder, sweep

HOLDER = """
import sys
from profiler.bundles.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_bytes(b"x" * 1000)
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # it is asked again
    return tmp_path


@contextmanager
def holder(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process with a scratch folder, which holds it until its stdin ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_a_folder_is_gone_with_its_block(tmp_path: Path) -> None:
    with scratch_folder() as folder:
        (folder / "file").touch()
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_making_a_folder_writes_nothing_else_that_a_kill_could_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python looks for a place by writing a file there, unless it is told the place."""
    monkeypatch.setattr(tempfile, "_get_default_tempdir", lambda *_: pytest.fail("Python looks for a place"))
    with scratch_folder() as folder:
        assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_what_a_killed_process_left_is_swept_and_never_what_a_living_one_holds(tmp_path: Path) -> None:
    with holder(tmp_path) as (killed, left), holder(tmp_path) as (_, held), scratch_folder() as own:
        killed.kill()
        killed.wait()
        assert (left / "deep" / "file").is_file()
        sweep()
        assert not left.exists()
        assert (held / "deep" / "file").is_file()
        assert own.is_dir()


def test_what_others_have_of_that_name_stays(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (tmp_path / f"{scratch._PREFIX}file").touch()
    (tmp_path / f"{scratch._PREFIX}link").symlink_to(elsewhere)
    (tmp_path / "profiler-x").mkdir()
    sweep()
    assert (elsewhere / "kept").is_file()
    assert len(list(tmp_path.iterdir())) == 4


def test_a_folder_that_is_swept_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = scratch.fcntl.flock
    swept: list[int] = []

    def sweep_first(descriptor: int, operation: int) -> None:
        if not swept:
            swept.append(1)
            next(tmp_path.iterdir()).rmdir()
        lock(descriptor, operation)

    monkeypatch.setattr(scratch.fcntl, "flock", sweep_first)
    with scratch_folder() as folder:
        assert folder.is_dir()
    assert swept


@pytest.mark.slow
def test_every_command_sweeps(tmp_path: Path) -> None:
    (tmp_path / f"{scratch._PREFIX}abandoned").mkdir()
    from profiler.cli import main

    assert main(["list", "metrics"]) == 0
    assert list(tmp_path.iterdir()) == []
