"""What an isolated process sees and may do: none of the user's files, no network, within its limits."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from profiler.errors import CannotJudge
from profiler.judge import isolation
from profiler.judge.isolation import Isolation, Limits, why_not_isolated

pytestmark = pytest.mark.skipif(
    bool(why_not_isolated()), reason=f"nothing isolates here: {why_not_isolated()}"
)
LIMITS = Limits(5, memory_bytes=1 << 30, processes=20)


def shell(command: str, folder: Path, limits: Limits = LIMITS, factor: float = 2.0) -> isolation.Finished:
    return Isolation().run(["/bin/sh", "-c", command], folder, limits, wall_factor=factor)


def test_only_its_own_folder_is_there_and_can_be_written(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret")
    folder = tmp_path / "own"
    folder.mkdir()
    done = shell(f"cat {secret} /etc/passwd; ls /home; touch here; touch /usr/there; echo $$; id -u", folder)
    assert "a secret" not in done.stdout.decode()
    assert "Read-only file system" in done.stderr
    assert (folder / "here").exists()
    process, user = done.stdout.split()
    assert int(process) < 10  # a pid namespace of its own
    assert user == b"1000"


def test_there_is_no_network(tmp_path: Path) -> None:
    done = shell("cat /proc/net/dev | tail -n +3 | cut -d: -f1", tmp_path)
    assert set(done.stdout.decode().split()) <= {"lo"}


def test_what_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    started = time.monotonic()
    done = shell("(while true; do date > beat; sleep 0.05; done) & sleep 60", tmp_path, Limits(0.5))
    assert done.code is None
    assert time.monotonic() - started < 20
    before = (tmp_path / "beat").stat().st_mtime_ns
    time.sleep(0.3)
    assert (tmp_path / "beat").stat().st_mtime_ns == before


def test_memory_and_the_size_of_files_are_limited(tmp_path: Path) -> None:
    limits = Limits(5, memory_bytes=200 << 20, file_bytes=1 << 20)
    shell("head -c 9000000 /dev/zero > large", tmp_path, limits)
    assert 0 < (tmp_path / "large").stat().st_size <= 1 << 20
    code = "print(len(bytearray(1 << 30)))"
    done = Isolation().run([sys.executable, "-I", "-S", "-c", code], tmp_path, limits)
    assert done.last_words == "MemoryError"
    assert not done.stdout


def test_where_nothing_isolates_a_candidate_is_refused_unless_it_is_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(isolation, "why_not_isolated", lambda: "unshare: Operation not permitted")
    with pytest.raises(CannotJudge, match=r"Operation not permitted.*--trust"):
        Isolation()
    assert Isolation(trust=True).run(["/bin/echo", "ran"], tmp_path, LIMITS).stdout == b"ran\n"
