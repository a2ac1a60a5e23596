"""Reading where nothing can be written: a full disk, a read-only one, no inodes, no permission."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler import cli
from profiler.bundles import bundle, decisions
from profiler.bundles.location import LocalRoot
from profiler.errors import ProfilerError
from profiler.store import cache_room, engine
from profiler.store.begin_import import import_paths
from profiler.store.readable_index import open_store
from profiler.store.rows import IndexNotWritable
from profiler.store.sync import sync_index
from profiler.store.verify import verify_data

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "data" / "runs").glob("*-example-*"))


def add_runs(folder: Path, *, first: int, last: int) -> None:
    for path in EXAMPLES[first:last]:
        shutil.copytree(path, folder / "runs" / path.name)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with two runs in its index, and two that are not."""
    folder = tmp_path / "data"
    monkeypatch.setenv("PROFILER_DATA", str(folder))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    add_runs(folder, first=0, last=2)
    open_store().close()
    add_runs(folder, first=2, last=4)
    return folder


def listed(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """How many runs `profiler list runs` lists, and what it says on stderr. It never fails."""
    assert cli.main(["list", "runs"]) == 0
    printed = capsys.readouterr()
    return sum("example-" in line for line in printed.out.splitlines()), printed.err


# ---- SQLite fails as it does on such a disk, everywhere


@pytest.fixture
def on_connect(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make each connection that is opened from now on begin with a statement."""

    def begin_with(statement: str) -> None:
        prepare = engine._prepare_sqlite

        def prepared(connection: Any, record: Any) -> None:
            prepare(connection, record)
            connection.execute(statement)

        monkeypatch.setattr(engine, "_prepare_sqlite", prepared)

    return begin_with


FAILURES = {
    "database or disk is full": "PRAGMA max_page_count=1",  # SQLite takes it for the pages that there are
    "readonly database": "PRAGMA query_only=1",
}


@pytest.mark.parametrize("message", FAILURES)
def test_commands_read_what_the_index_has_and_say_what_it_lacks(
    data: Path, on_connect: Callable[[str], None], capsys: pytest.CaptureFixture[str], message: str
) -> None:
    on_connect(FAILURES[message])
    number, said = listed(capsys)
    assert number == 2
    assert said.startswith("profiler: answers are without 2 sealed runs: ")
    assert message in said
    assert said.count("\n") == 1
    with pytest.raises(IndexNotWritable):  # what is to change the index fails
        sync_index()


def test_nothing_is_said_where_the_index_lacks_nothing(
    data: Path, on_connect: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    sync_index()
    on_connect("PRAGMA query_only=1")
    assert listed(capsys) == (4, "")


def test_a_failed_import_says_that_its_run_is_sealed(data: Path, on_connect: Callable[[str], None]) -> None:
    shutil.rmtree(data / "runs" / EXAMPLES[3].name)
    sync_index()
    on_connect("PRAGMA max_page_count=1")
    with pytest.raises(IndexNotWritable, match=f"run {EXAMPLES[3].name} is sealed"):
        import_paths([EXAMPLES[3]])
    assert EXAMPLES[3].name in bundle.list_runs(LocalRoot(data))


@pytest.mark.parametrize("refused", ["index.db", "index.db and the temporary folder"])
def test_without_an_index_one_is_made_for_the_command(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """No permission: SQLite says the same of a file that it may not open."""
    connect = sqlite3.dbapi2.connect

    def without_permission(database: str, *arguments: Any, **named: Any) -> Any:
        if str(data) in str(database) or ("temporary" in refused and "profiler-scratch" in str(database)):
            raise sqlite3.OperationalError("unable to open database file")
        return connect(database, *arguments, **named)

    monkeypatch.setattr(sqlite3.dbapi2, "connect", without_permission)
    monkeypatch.setattr(sqlite3, "connect", without_permission)
    number, said = listed(capsys)
    assert number == 4
    assert "answers are from a temporary index made for this command: " in said
    with pytest.raises(ProfilerError):
        sync_index()


# ---- a real disk, where this user may mount one


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An own small disk with a data folder as `data` has it."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m,nr_inodes=400", "tmpfs", str(mount)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a disk of its own cannot be mounted here")
    try:
        monkeypatch.setenv("PROFILER_DATA", str(mount / "data"))
        monkeypatch.delenv("PROFILER_DB", raising=False)
        add_runs(mount / "data", first=0, last=2)
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


def fill_space(disk: Path) -> None:
    with contextlib.suppress(OSError), (disk / "fill").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))


def fill_inodes(disk: Path) -> None:
    with contextlib.suppress(OSError):
        for number in range(1000):
            (disk / str(number)).touch()


def make_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("make_unwritable", [fill_space, fill_inodes, make_read_only])
def test_a_disk_that_takes_nothing_is_read(
    disk: Path, capsys: pytest.CaptureFixture[str], make_unwritable: Callable[[Path], None]
) -> None:
    open_store().close()
    add_runs(disk / "data", first=2, last=4)
    make_unwritable(disk)
    number, said = listed(capsys)
    assert number == 2
    assert said.startswith("profiler: answers are without 2 sealed runs: ")
    for command in (["compare", "before", "after"], ["list", "versions"]):
        assert cli.main(command) == 0
    if os.statvfs(disk).f_flag & os.ST_RDONLY == 0:
        assert (
            cli.main(["decide", "note", EXAMPLES[0].name, "text"]) == 2
        )  # and not a word of a decision stays
        assert not list(disk.glob("data/decisions/*"))


@pytest.mark.parametrize("make_unwritable", [fill_space, make_read_only])
def test_a_disk_that_takes_no_index_is_read(
    disk: Path, capsys: pytest.CaptureFixture[str], make_unwritable: Callable[[Path], None]
) -> None:
    make_unwritable(disk)
    number, said = listed(capsys)
    assert number == 2
    assert "answers are from a temporary index made for this command: " in said


@pytest.mark.slow
@pytest.mark.parametrize("fill", [fill_space, fill_inodes])
def test_on_a_full_disk_runs_can_be_deleted(
    disk: Path, capsys: pytest.CaptureFixture[str], fill: Callable[[Path], None], made_reports: Path
) -> None:
    (imported,) = import_paths([made_reports / "mistic" / "prof1.ncu-rep"]).imported
    fill(disk)
    gone = imported.run_id
    assert cli.main(["data", "delete", gone, "--why", "the disk is full", "--yes"]) == 0
    assert bundle.list_runs(LocalRoot(disk / "data")) == [path.name for path in EXAMPLES[:2]]
    (record,) = decisions.load_decisions(LocalRoot(disk / "data"))
    assert (record.kind, record.subject, record.why) == ("delete", gone, "the disk is full")
    capsys.readouterr()
    assert listed(capsys) == (2, "")
    assert verify_data().findings == ()


def test_a_run_is_deleted_where_the_index_cannot_follow_yet(
    data: Path, on_connect: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    sync_index()
    on_connect("PRAGMA query_only=1")
    assert cli.main(["data", "delete", EXAMPLES[0].name, "--why", "w", "--yes"]) == 0
    assert EXAMPLES[0].name not in bundle.list_runs(LocalRoot(data))
    capsys.readouterr()
    assert "with 1 run that is gone" in listed(capsys)[1]


@pytest.mark.slow
def test_on_a_full_disk_reports_can_be_dropped(
    disk: Path, capsys: pytest.CaptureFixture[str], made_reports: Path
) -> None:
    import_paths([made_reports / "mistic" / "prof1.ncu-rep"])
    fill_space(disk)
    assert cli.main(["data", "prune", "--older", "1", "--family", "mistic"]) == 0
    assert cli.main(["data", "prune", "--older", "1", "--family", "mistic", "--yes"]) == 0
    assert "reports of 1 run" in capsys.readouterr().out
    assert not list((disk / "data" / "runs").glob("*mistic*/reports/*.ncu-rep"))
    assert list((disk / "data" / "runs").glob("*mistic*/dropped.json"))
    assert verify_data().findings == ()


def test_the_cache_is_kept_where_a_write_fails_for_another_reason(data: Path) -> None:
    open_store().close()
    cached = sorted((data / "cache").rglob("*.bin"))
    assert cached

    def refuse() -> None:
        raise PermissionError(errno.EACCES, "not for you")

    with pytest.raises(PermissionError):
        cache_room.with_room(LocalRoot(data), (), refuse)
    assert sorted((data / "cache").rglob("*.bin")) == cached


# ---- a folder of somebody else's


def without_privileges(words: list[str]) -> subprocess.CompletedProcess[str]:
    """A command that is subject to permissions, which root is not."""
    limited: list[str] = []
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root may do everything, and setpriv of util-linux is not here")
        limited = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    command = [*limited, sys.executable, "-m", "profiler", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def permit(data: Path) -> Iterator[Callable[[int], None]]:
    """Gives the data folder and all in it a mode, and its own back at the end."""

    def set_mode(mode: int) -> None:
        paths = [data, *data.rglob("*")]
        for path in reversed(paths) if mode < 0o500 else paths:
            path.chmod(mode if path.is_dir() else mode & 0o666)

    yield set_mode
    data.chmod(0o755)
    set_mode(0o755)


@pytest.mark.slow
@pytest.mark.parametrize(("has_index", "number"), [(True, 2), (False, 4)])
def test_a_folder_without_permission_to_write_is_read(
    data: Path, permit: Callable[[int], None], *, has_index: bool, number: int
) -> None:
    if not has_index:
        for path in data.glob("index.db*"):
            path.unlink()
    permit(0o555)
    before = sorted(path.name for path in data.rglob("*"))
    done = without_privileges(["list", "runs"])
    assert done.returncode == 0, done.stderr
    assert sum("example-" in line for line in done.stdout.splitlines()) == number
    words = (
        "answers are without 2 sealed runs: " if has_index else "a temporary index made for this command: "
    )
    assert words in done.stderr
    done = without_privileges(["decide", "note", EXAMPLES[0].name, "text"])
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in data.rglob("*")) == before


@pytest.mark.slow
def test_a_folder_that_may_not_be_read_is_said_in_a_line(data: Path, permit: Callable[[int], None]) -> None:
    permit(0o000)
    done = without_privileges(["list", "runs"])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("profiler: ")
    assert done.stderr.count("\n") == 1, done.stderr
