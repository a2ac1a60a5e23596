"""Backups: whole under their name or not there, restored run by run, and not trusted."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from profiler.bundles import backup, bundle, decisions, location, tar_stream
from profiler.bundles.location import LocalRoot, Root
from profiler.bundles.run import COLLECT, Run
from profiler.errors import BadBundle, ProfilerError
from tests.bundles.test_bundle import made


def fill(root: Root, folder: Path, count: int = 3) -> list[Run]:
    """Seal a few runs, and record a decision about the first."""
    runs = []
    for number in range(count):
        content = f"report {number} ".encode() * 1000
        run = made(content)
        report = folder / f"{number}.ncu-rep"
        report.write_bytes(content)
        bundle.seal(root, run, {run.reports[0].path: report})
        runs.append(run)
    decisions.write_decision(root, decisions.FORGET, runs[0].run_id, why="ü")
    return sorted(runs, key=lambda run: run.run_id)


@pytest.fixture
def root(tmp_path: Path) -> LocalRoot:
    return LocalRoot(tmp_path / "data")


@pytest.fixture
def packed(root: LocalRoot, tmp_path: Path) -> Path:
    fill(root, tmp_path)
    return backup.write_backup(root, tmp_path / "b.tar.gz").path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of runs and decisions by its path."""
    files = (path for name in ("runs", "decisions") for path in (folder / name).rglob("*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files if path.is_file()}


def restore_into(folder: Path, packed: Path) -> backup.RestoreSummary:
    backup.check_backup(packed)
    root = LocalRoot(folder)
    with bundle.importing(root):
        return backup.restore(root, packed)


def test_a_backup_gives_the_same_files_again_and_only_once(
    packed: Path, root: LocalRoot, tmp_path: Path
) -> None:
    target = tmp_path / "new"
    summary = restore_into(target, packed)
    assert (len(summary.restored), summary.decisions, summary.refused) == (3, 1, [])
    assert contents(target) == contents(root.folder)
    again = restore_into(target, packed)
    assert (len(again.already), again.restored, again.decisions) == (3, [], 0)
    assert not list((target / "staging").glob("import-*"))


def with_search(root: LocalRoot) -> dict[str, bytes]:
    """A search's files, and those that only its workers need."""
    top = root.folder / "searches" / "20261101T000000-attention-ab12"
    kept = {
        "search.json": b"{}",
        "records/20261101T000001.000001-c0.json": b'{"number": 0}',
        "candidates/0123456789abcdef01234567/candidate.toml": b"family = 'x'",
        "candidates/0123456789abcdef01234567/inc/a.cuh": b"// a",
    }
    left = {"claims/3": b"", "lock": b"", "worker.log": b"words", "candidates/.tmp-1/x.cu": b"half"}
    for name, content in {**kept, **left}.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
    return {f"searches/{top.name}/{name}": content for name, content in kept.items()}


def searches(folder: Path) -> dict[str, bytes]:
    files = (path for path in (folder / "searches").rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_nothing_is_written_to_find_a_temporary_folder(
    root: LocalRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python looks for one by writing a file without a name of ours, which a kill would leave for good."""
    fill(root, tmp_path)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: pytest.fail("Python looks for a folder"))
    packed = backup.write_backup(root, tmp_path / "b.tar.gz").path
    restore_into(tmp_path / "other", packed)


def test_searches_are_backed_up_and_restored_without_what_workers_need(
    root: LocalRoot, tmp_path: Path
) -> None:
    fill(root, tmp_path, 1)
    kept = with_search(root)
    packed = backup.write_backup(root, tmp_path / "b.tar.gz")
    assert packed.searches == 1
    restored = restore_into(tmp_path / "new", packed.path)
    assert (restored.searches, restored.refused) == (1, [])
    assert searches(tmp_path / "new") == kept
    again = restore_into(tmp_path / "new", packed.path)
    assert (again.searches, again.refused) == (0, [])


def test_another_search_of_that_id_is_refused_and_records_are_added_to_the_same(
    root: LocalRoot, tmp_path: Path
) -> None:
    fill(root, tmp_path, 1)
    kept = with_search(root)
    packed = backup.write_backup(root, tmp_path / "b.tar.gz").path
    new, settings = tmp_path / "new", next(name for name in kept if name.endswith("search.json"))
    (new / settings).parent.mkdir(parents=True)
    (new / settings).write_bytes(b'{"other": 1}')
    restored = restore_into(new, packed)
    assert restored.searches == 0
    assert [name for name, _ in restored.refused] == [settings.split("/")[1]]
    assert searches(new) == {settings: b'{"other": 1}'}
    (new / settings).write_bytes(kept[settings])
    own = (new / settings).with_name("records") / "20261101T000002.000001-c1.json"
    own.parent.mkdir()
    own.write_bytes(b'{"number": 1}')
    restored = restore_into(new, packed)
    assert (restored.searches, restored.refused) == (1, [])
    assert searches(new) == {**kept, own.relative_to(new).as_posix(): b'{"number": 1}'}


@pytest.mark.parametrize(
    "name",
    [
        "searches/x/lock",
        "searches/x/records/../../../a.json",
        "searches/x/candidates/0123456789abcdef01234567/.hidden",
        "searches/.x/search.json",
        "searches/y/records/a.json",
    ],
)
def test_what_is_no_file_of_a_search_is_refused(root: LocalRoot, tmp_path: Path, name: str) -> None:
    fill(root, tmp_path, 1)
    with_search(root)
    packed = backup.write_backup(root, tmp_path / "b.tar.gz").path

    def rename(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        next(
            info for info, _ in members if info.name.startswith("searches/") and "records" in info.name
        ).name = name

    with pytest.raises(BadBundle):
        backup.check_backup(repacked(packed, rename))


def test_without_searches_older_versions_read_a_backup(packed: Path) -> None:
    with tarfile.open(packed) as tar:
        head = tar.extractfile("backup.json")
        assert head is not None
        assert b'"schema": 1' in head.read()


def test_other_programs_read_a_backup_and_its_sums(packed: Path, tmp_path: Path) -> None:
    with tarfile.open(packed) as tar:
        tar.extractall(tmp_path / "x", filter="data")
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=tmp_path / "x", check=True)


def test_remote_folders_are_backed_up_and_restored(tmp_path: Path) -> None:
    source, target = (location.open_root(f"memory://{tmp_path.name}-{name}") for name in "ab")
    runs = fill(source, tmp_path)
    packed = backup.write_backup(source, tmp_path / "b.tar.gz").path
    summary = backup.restore(target, packed)
    assert summary.restored == bundle.list_runs(target) == [run.run_id for run in runs]
    assert bundle.read_content(target, runs[1].run_id, runs[1].reports[0])
    assert len(decisions.load_decisions(target)) == 1


def test_long_names_survive(root: LocalRoot, tmp_path: Path) -> None:
    long = f"20250301T120000-{'f' * 120}-{'v' * 80}-{made().reports[0].sha256[:8]}"
    run = replace(made(), run_id=long, kind=COLLECT)
    report = tmp_path / "r"
    report.write_bytes(b"NVR\0 not really a report, but bytes are bytes here " * 40)
    bundle.seal(root, run, {run.reports[0].path: report})
    packed = backup.write_backup(root, tmp_path / "b.tar.gz").path
    assert restore_into(tmp_path / "new", packed).restored == [run.run_id]


def test_what_is_damaged_is_left_out_and_named(root: LocalRoot, tmp_path: Path) -> None:
    runs = fill(root, tmp_path)
    folder = root.folder / "runs" / runs[1].run_id
    (folder / runs[1].reports[0].path).write_bytes(b"other")
    (root.folder / "decisions" / "nonsense.json").write_text("{")
    summary = backup.write_backup(root, tmp_path / "b.tar.gz")
    assert (summary.runs, summary.decisions) == (2, 1)
    assert [name for name, _ in summary.left_out] == ["nonsense", runs[1].run_id]
    assert len(restore_into(tmp_path / "new", summary.path).restored) == 2


def test_other_content_of_an_id_is_refused_by_name_and_the_rest_is_restored(
    packed: Path, root: LocalRoot, tmp_path: Path
) -> None:
    target = LocalRoot(tmp_path / "new")
    run = bundle.load_run(root, bundle.list_runs(root)[0])
    other = replace(run, created=run.created + timedelta(days=1))
    bundle.seal(target, other, {run.reports[0].path: root.folder / "runs" / run.run_id / run.reports[0].path})
    before = contents(target.folder)
    summary = restore_into(target.folder, packed)
    assert [name for name, _ in summary.refused] == [run.run_id]
    assert len(summary.restored) == 2
    assert contents(target.folder).items() >= before.items()


def test_a_run_deleted_after_the_backup_stays_away(packed: Path, root: LocalRoot) -> None:
    run_id = bundle.list_runs(root)[0]
    decisions.write_decision(root, decisions.DELETE, run_id, why="secret")
    bundle.remove_run(root, run_id)
    summary = restore_into(root.folder, packed)
    assert (summary.deleted, len(summary.already), summary.restored) == ([run_id], 2, [])


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_a_backup_that_was_cut_short_is_refused_whole(packed: Path, tmp_path: Path, kept: float) -> None:
    content = packed.read_bytes()
    packed.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(BadBundle, match=str(packed)):
        restore_into(tmp_path / "new", packed)
    assert not (tmp_path / "new").exists()


def repacked(packed: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]) -> Path:
    """The backup with other members, whose gzip is right."""
    members: list[tuple[tarfile.TarInfo, bytes]] = []
    with tarfile.open(packed) as tar:
        for info in tar:
            file = tar.extractfile(info)
            members.append((info, file.read() if file else b""))
    change(members)
    with tarfile.open(packed, "w:gz", format=tarfile.GNU_FORMAT) as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed


def renamed(name: str) -> Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]:
    def change(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        members[-2][0].name = name

    return change


def of_type(kind: bytes) -> Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]:
    def change(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        members[-2][0].type, members[-2][0].linkname = kind, "/etc/passwd"

    return change


def other_byte(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    info, content = members[-2]
    members[-2] = info, b"X" + content[1:]


def other_run(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    """The host of a run: run.json agrees with its files, and SHA256SUMS does not with it."""
    info, content = members[2]
    members[2] = info, content.replace(b'"\xc3\xbc"', b'"xx"')


ATTACKS: dict[str, Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]] = {
    "a path that leads out": renamed("runs/../../x"),
    "an absolute path": renamed("/tmp/x"),
    "a backslash": renamed("runs\\x"),
    "a line end": renamed("runs/x\ny"),
    "a file that nobody names": renamed("runs/x/y"),
    "a symbolic link": of_type(tarfile.SYMTYPE),
    "a hard link": of_type(tarfile.LNKTYPE),
    "a pipe": of_type(tarfile.FIFOTYPE),
    "a device": of_type(tarfile.CHRTYPE),
    "another byte of a report": other_byte,
    "another run.json": other_run,
    "no sums": lambda members: members.pop(),
    "a file that is missing": lambda members: members.pop(-2),
    "a run that comes twice": lambda members: members.__setitem__(slice(-1, -1), members[2:4]),
    "no head": lambda members: members.pop(0),
    "a decision that is none": lambda members: members.__setitem__(1, (members[1][0], b"{}")),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_backup_is_not_trusted(packed: Path, tmp_path: Path, attack: str) -> None:
    def change(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        ATTACKS[attack](members)

    with pytest.raises(BadBundle):
        restore_into(tmp_path / "new", repacked(packed, change))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_an_endless_name_is_refused_before_it_is_read(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("name")
    info.type, info.size = kind, 1 << 33
    path = tmp_path / "b.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 16)))
    with pytest.raises(BadBundle, match=r"a name of|no plain file"):
        backup.check_backup(path)


def test_what_is_no_backup_is_said_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(ProfilerError, match="cannot be read"):
        backup.check_backup(path)
    path.write_bytes(b"no gzip")
    with pytest.raises(BadBundle, match="damaged or cut short"):
        backup.check_backup(path)
    path.write_bytes(gzip.compress(bytes(2000)))
    with pytest.raises(BadBundle, match="no backup"):
        backup.check_backup(path)


def with_decision(packed: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """The backup with another decision, of which its sums are right."""

    def replace_decision(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        info, content = members[1]
        before = f"{sha256(content).hexdigest()}  {info.name}\n".encode()
        info.name, content = f"decisions/{name}.json", change(content)
        members[1] = info, content
        after = f"{sha256(content).hexdigest()}  {info.name}\n".encode()
        members[-1] = members[-1][0], members[-1][1].replace(before, after)

    return repacked(packed, replace_decision)


@pytest.mark.parametrize("in_name", [True, False])
def test_a_decision_of_a_time_to_come_is_left_out_of_a_restore_by_name(
    packed: Path, tmp_path: Path, in_name: bool
) -> None:
    """In the content, or in the name alone, which the next decision would come after."""

    def later(content: bytes) -> bytes:
        body = json.loads(content)
        return json.dumps(body if in_name else body | {"order": 221845391999999999}).encode()

    name = "89991231T235959999999-note-0" if in_name else "renamed"
    restored = restore_into(tmp_path / "new", with_decision(packed, name, later))
    assert (len(restored.restored), restored.decisions) == (3, 0)
    [(record, message)] = restored.refused
    assert record == name
    assert f"decisions/{name}.json is of 89991231, over 7 days ahead of this machine's clock" in message
    decisions.write_decision(LocalRoot(tmp_path / "new"), decisions.FORGET, restored.restored[0])


def test_a_decision_of_a_clock_an_hour_ahead_is_restored(packed: Path, tmp_path: Path) -> None:
    order = (datetime.now(UTC) + timedelta(hours=1)).timestamp() * 1e6
    packed = with_decision(
        packed, "x", lambda content: json.dumps(json.loads(content) | {"order": int(order)}).encode()
    )
    restored = restore_into(tmp_path / "new", packed)
    assert (restored.decisions, restored.refused) == (1, [])


@pytest.mark.slow
def test_many_decisions_of_a_bomb_are_refused_before_all_are_read(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "_FREE_BYTES", 1 << 20)
    member = tarfile.TarInfo("decisions/x.json")

    read: list[str] = []
    parse = decisions.parse_record

    def counted(folder: str, name: str, content: bytes) -> decisions.DecisionRecord:
        read.append(name)
        return parse(folder, name, content)

    monkeypatch.setattr(decisions, "parse_record", counted)

    def repeat(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        padded = members[1][1] + b" " * (1 << 18)
        members[2:2] = [(copy(member), padded) for _ in range(100)]

    with pytest.raises(BadBundle, match="refused as a bomb"):
        backup.check_backup(repacked(packed, repeat))
    assert 1 < len(read) < 50


def test_a_run_that_would_unpack_to_a_bomb_is_refused_before_it_is_read(
    root: LocalRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(root, tmp_path, 1)
    packed = backup.write_backup(root, tmp_path / "b.tar.gz").path
    monkeypatch.setattr(backup, "_FREE_BYTES", 1 << 10)
    monkeypatch.setattr(backup, "MAX_RATIO", 5)
    monkeypatch.setattr(backup, "copy_checked", lambda *_: pytest.fail("it was read"))
    with pytest.raises(BadBundle, match="refused as a bomb"):
        backup.check_backup(packed)


def killed_at(number: int, module: object, name: str, do: Callable[[], object]) -> bool:
    """Do something in a process that kills itself when it calls a function for the `number`-th time."""
    child = os.fork()
    if child == 0:  # nothing of pytest may run here
        try:
            function, calls = getattr(module, name), [0]

            def counted(*arguments: object) -> object:
                calls[0] += 1
                if calls[0] == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments)

            setattr(module, name, counted)
            do()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.slow
def test_a_killed_backup_leaves_nothing_under_its_name_and_the_next_one_cleans_up(
    root: LocalRoot, tmp_path: Path
) -> None:
    fill(root, tmp_path)
    folder = tmp_path / "backups"
    folder.mkdir()
    for number in range(1, 9):
        target = folder / f"{number}.tar.gz"
        assert killed_at(
            number, tar_stream, "add_member", lambda path=target: backup.write_backup(root, path)
        )
        assert not target.exists()
    backup.write_backup(root, folder / "b.tar.gz")
    assert os.listdir(folder) == ["b.tar.gz"]


@pytest.mark.slow
def test_a_killed_restore_is_finished_by_another_one(packed: Path, root: LocalRoot, tmp_path: Path) -> None:
    target = tmp_path / "new"
    for number in (1, 2, 3):
        for name in ("publish_import", "copy_checked"):
            # copy_checked is called by the check before, too
            calls = number + 3 * (name == "copy_checked")
            killed_at(calls, backup, name, lambda: restore_into(target, packed))
    restore_into(target, packed)
    assert contents(target) == contents(root.folder)
    assert not list((target / "staging").glob("import-*"))


def test_a_deletion_afar_can_be_finished(tmp_path: Path) -> None:
    root = location.open_root(f"memory://{tmp_path.name}-deleted")
    run = fill(root, tmp_path)[0]
    root.remove(f"runs/{run.run_id}/run.json")  # killed after that
    bundle.remove_run(root, run.run_id)
    bundle.remove_run(root, run.run_id)
    assert run.run_id not in bundle.list_runs(root)
    with pytest.raises(FileNotFoundError):
        root.read(f"runs/{run.run_id}/{run.reports[0].path}")


def test_a_killed_deletion_leaves_a_run_whole_or_gone(root: LocalRoot, tmp_path: Path) -> None:
    run = fill(root, tmp_path)[0]
    assert killed_at(1, bundle, "flush_runs", lambda: bundle.remove_run(root, run.run_id))
    assert run.run_id not in bundle.list_runs(root)
    bundle.sweep_deleted(root)
    assert os.listdir(root.folder / "staging") == [".publishing"]
