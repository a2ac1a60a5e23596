"""A backup: all runs, decisions and searches of a data folder as one tar.gz, and the way back, file by file.

The first member says what it is, the last is SHA256SUMS with a line a file, which `sha256sum -c` reads too;
between them lie the decisions, then run by run run.json and the files that it names, then search by search
its settings, records and candidates.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO

from profiler.bundles import decisions, search_files, tar_stream
from profiler.bundles.bundle import (
    MAX_FILES,
    RUNS_FOLDER,
    Readable,
    StagedRun,
    Writable,
    check_arriving,
    copy_checked,
    flush_runs,
    hash_file,
    list_runs,
    new_staging_folder,
    publish_import,
    upload,
)
from profiler.bundles.dropped import (
    DROPPED_FILE,
    MAX_DROPPED_BYTES,
    DroppedReports,
    load_dropped,
    parse_dropped,
    stored_files,
)
from profiler.bundles.hybrid_clock import order_of
from profiler.bundles.location import LocalRoot, Root, data_unusable, open_regular
from profiler.bundles.run import Attachment, ReportFile, Run
from profiler.bundles.run_json import MAX_RUN_JSON_BYTES, RUN_FILE, brief_error, parse_run
from profiler.bundles.scratch import scratch_folder, temporary_place
from profiler.bundles.zip_file import MAX_RATIO, MAX_UNPACKED_BYTES
from profiler.errors import BadBundle, ProfilerError

SCHEMA = 2
_SCHEMA_WITHOUT_SEARCHES = 1  # which older versions of this package read too
HEAD_FILE = "backup.json"
SUMS_FILE = "SHA256SUMS"
MAX_HEAD_BYTES = 64 << 10
_FREE_BYTES = 64 << 20  # up to here a backup may be of any ratio
_PARTIAL = ".backup-part"
_LEVEL = 6  # of gzip: 9 takes three times as long for two hundredths less

Progress = Callable[[int, int, str], None]  # how many are done, of how many, the name of the last
# gzip raises each of these for what is damaged.
_GZIP_ERRORS = (OSError, EOFError, zlib.error)


@dataclass(frozen=True)
class BackupSummary:
    """What a backup holds."""

    path: Path
    size_bytes: int
    runs: int
    decisions: int
    left_out: tuple[tuple[str, str], ...] = ()  # name, message: what is damaged is in no backup
    searches: int = 0


@dataclass
class RestoreSummary:
    """What a restore did, by run ids."""

    restored: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)  # left out: deleted here after the backup
    decisions: int = 0  # new here
    refused: list[tuple[str, str]] = field(default_factory=list)  # name, message: other content is there
    searches: int = 0  # of which something is new here


# ---- writing


def write_backup(root: Root, target: Path, progress: Progress | None = None) -> BackupSummary:
    """Write all runs, decisions and searches to `target`, which is there whole or not at all.

    Every file is checked on the way; what is damaged is left out and named. Raises ProfilerError where the
    backup cannot be written, or the data change meanwhile.
    """
    if target.is_dir():
        raise ProfilerError(f"{target} is a folder: name the file, such as {target / 'profiler.tar.gz'}")
    try:
        with _partial_file(target) as (partial, file):
            with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
                summary = _write_members(root, target, packed, progress)
            file.flush()
            os.fsync(file.fileno())
            size_bytes = os.fstat(file.fileno()).st_size
            partial.replace(target)
        _flush_folder(target.absolute().parent)
    except OSError as error:
        named = f" ({error.filename})" if error.filename else ""
        raise ProfilerError(f"{target} cannot be written: {error.strerror or error}{named}") from error
    return replace(summary, size_bytes=size_bytes)


def _write_members(root: Root, target: Path, tar: Writable, progress: Progress | None) -> BackupSummary:
    left_out: list[tuple[str, str]] = []
    decision_ids, run_ids = decisions.decision_ids(root), list_runs(root)
    counts = {"runs": 0, "decisions": 0}
    searches = search_files.list_searches(root)
    with tempfile.TemporaryFile(dir=temporary_place()) as sums:

        def add(name: str, source: Readable, digest: str, size_bytes: int) -> None:
            tar_stream.check_name(name)
            hashing = _HashedSource(source)
            tar_stream.add_member(tar, name, hashing, size_bytes)
            if hashing.hexdigest() != digest:
                raise BadBundle(f"{name} was changed while it was read: begin the backup again")
            sums.write(_sums_line(digest, name))

        def add_bytes(name: str, content: bytes) -> None:
            add(name, BytesIO(content), sha256(content).hexdigest(), len(content))

        schema = SCHEMA if searches else _SCHEMA_WITHOUT_SEARCHES
        head = {"schema": schema, "created": datetime.now(UTC).isoformat(timespec="seconds")}
        add_bytes(HEAD_FILE, json.dumps(head).encode())
        for name in decision_ids:
            try:
                content = decisions.read_content(root, name)
                decisions.parse_record(root.url, name, content)
                tar_stream.check_name(name)
            except BadBundle as error:
                left_out.append((name, str(error)))
                continue
            add_bytes(f"{decisions.FOLDER}/{name}.json", content)
            counts["decisions"] += 1
        for number, run_id in enumerate(run_ids, 1):
            try:
                run_json, dropped_json, files = _whole_run(root, run_id)
            except BadBundle as error:
                left_out.append((run_id, str(error)))
                continue
            folder = f"{RUNS_FOLDER}/{run_id}"
            add_bytes(f"{folder}/{RUN_FILE}", run_json)
            if dropped_json is not None:
                add_bytes(f"{folder}/{DROPPED_FILE}", dropped_json)
            for file in files:
                with root.open_local(f"{folder}/{file.path}") as local, open_regular(local) as source:
                    add(f"{folder}/{file.path}", source, file.sha256, file.size_bytes)
            counts["runs"] += 1
            if progress is not None:
                progress(number, len(run_ids), run_id)
        for search_id in searches:
            assert isinstance(root, LocalRoot)
            for path in search_files.search_files(root, search_id):
                name = f"{search_files.FOLDER}/{search_id}/{path}"
                add_bytes(name, root.read(name, search_files.MAX_FILE_BYTES + 1))
        size_bytes = sums.tell()
        sums.seek(0)
        tar_stream.add_member(tar, SUMS_FILE, sums, size_bytes)
    tar_stream.end(tar)
    own = tuple(left_out)
    return BackupSummary(target, 0, counts["runs"], counts["decisions"], own, len(searches))


def _whole_run(root: Root, run_id: str) -> tuple[bytes, bytes | None, Sequence[ReportFile | Attachment]]:
    """run.json, dropped.json and the other files of a run, all with the content they should have."""
    folder = f"{RUNS_FOLDER}/{run_id}"
    try:
        run_json = root.read(f"{folder}/{RUN_FILE}", MAX_RUN_JSON_BYTES + 1)
        run = parse_run(run_json, f"{root.url}/{folder}/{RUN_FILE}")
        dropped = load_dropped(root, run)
        dropped_json = None if dropped is None else root.read(f"{folder}/{DROPPED_FILE}")
    except OSError as error:
        raise BadBundle(f"run {run_id} cannot be read ({error.strerror or error})") from error
    if run.run_id != run_id:
        raise BadBundle(f"{root.url}/{folder}/{RUN_FILE} says that it is run {run.run_id}")
    files = stored_files(run, dropped)
    for file in files:
        if (message := damage(root, run_id, file)) is not None:
            raise BadBundle(f"run {run_id}: {message}")
    return run_json, dropped_json, files


def damage(root: Root, run_id: str, file: ReportFile | Attachment) -> str | None:
    """What is wrong with a file of a sealed run; None where it has the size and sha256 that it should."""
    try:
        with root.open_local(f"{RUNS_FOLDER}/{run_id}/{file.path}") as local:
            digest, size_bytes = hash_file(local)
    except FileNotFoundError:
        return f"{file.path} is not there"
    except OSError as error:
        return f"{file.path} cannot be read ({error.strerror or error})"
    if size_bytes != file.size_bytes:
        return f"{file.path} has {size_bytes:,} bytes, not {file.size_bytes:,}"
    return None if digest == file.sha256 else f"{file.path} has another sha256 than the run names"


@contextlib.contextmanager
def _partial_file(target: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file beside the target, locked; what killed backups left there is removed first."""
    folder = target.absolute().parent
    for left in folder.glob(f".*{_PARTIAL}"):
        with contextlib.suppress(OSError), left.open("rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody writes it any more
            left.unlink()
    partial = folder / f".{uuid.uuid4().hex}{_PARTIAL}"
    try:
        with partial.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield partial, file
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _HashedSource:
    """A source whose content is hashed as it is read."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._digest = sha256()

    def read(self, size: int = -1, /) -> bytes:
        block = self._source.read(size)
        self._digest.update(block)
        return block

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _sums_line(digest: str, name: str) -> bytes:
    return f"{digest}  {name}\n".encode()


# ---- reading


def check_backup(path: Path) -> None:
    """Read a backup to its end. Raises BadBundle where anything in it is not as it was written."""
    with _opened(path) as tar:
        for _ in _Reader(tar, path).items():
            pass


def restore(root: Root, path: Path, progress: Progress | None = None) -> RestoreSummary:
    """Put the runs, decisions and searches of a backup that check_backup found whole into a data folder.

    What is there with the same content stays; other content is refused by name, and so are decisions of a
    time to come. Runs that were deleted here after the backup stay away. A restore that was killed is
    finished by another one.
    """
    summary = RestoreSummary()
    deleted_here = {
        record.subject: record.id
        for record in decisions.load_decisions(root)
        if record.kind == decisions.DELETE
    }
    known = set(list_runs(root))
    in_backup: set[str] = set()  # decisions that delete a run
    searches = _SearchRestore(root, summary)
    with _opened(path) as tar:
        for item in _Reader(tar, path).items():
            if isinstance(item, _SearchFile):
                searches.take(item)
                continue
            if isinstance(item, _Decision):
                if item.record.kind == decisions.DELETE:
                    in_backup.add(item.record.id)
                _restore_decision(root, item, summary)
                continue
            run_id = item.run.run_id
            if deleted_here.get(run_id, "") and deleted_here[run_id] not in in_backup:
                summary.deleted.append(run_id)
            elif run_id in known:
                _compare_with_sealed(root, item, summary)
            else:
                try:
                    _restore_run(root, item, summary)
                except BadBundle as error:
                    summary.refused.append((run_id, str(error)))
            if progress is not None:
                done = len(summary.restored) + len(summary.already) + len(summary.refused)
                progress(done, 0, run_id)
    searches.end()
    if summary.restored:
        flush_runs(root)
    return summary


class _SearchRestore:
    """Puts searches back, one after the other. A search is there once its settings are: they come last."""

    def __init__(self, root: Root, summary: RestoreSummary) -> None:
        self._root, self._summary = root, summary
        self._id = ""
        self._settings: bytes | None = None  # that are still to be written
        self._is_refused = self._is_new = False

    def take(self, item: _SearchFile) -> None:
        """A file of a search, whose settings come first."""
        if item.search_id != self._id:
            self.end()
            self._id, self._is_refused, self._is_new = item.search_id, False, False
        if self._is_refused:
            return
        present = self._present(item.name)
        if present is None:
            self._is_new = True
            if item.path == search_files.SETTINGS_FILE:
                self._settings = item.content
            else:
                self._write(item.name, item.content)
        elif present != item.content:
            # Another search of that id, or a record that was changed: of the first nothing is taken.
            self._is_refused = item.path == search_files.SETTINGS_FILE
            message = f"{self._root.url}/{item.name} is already there with other content"
            self._summary.refused.append((item.search_id, message))

    def end(self) -> None:
        """Finish the search that was last taken of."""
        if self._settings is not None:
            name = f"{search_files.FOLDER}/{self._id}/{search_files.SETTINGS_FILE}"
            self._write(name, self._settings)
            self._settings = None
        self._summary.searches += self._is_new
        self._is_new = False

    def _present(self, name: str) -> bytes | None:
        try:
            return self._root.read(name, search_files.MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise data_unusable(self._root, error) from error

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._root.write(name, content)
        except OSError as error:
            raise data_unusable(self._root, error) from error


def _restore_decision(root: Root, item: _Decision, summary: RestoreSummary) -> None:
    name = f"{decisions.FOLDER}/{item.record.id}.json"
    try:
        present = root.read(name, decisions.MAX_DECISION_BYTES + 1)
    except FileNotFoundError:
        order = max(item.record.order, order_of(item.record.id) or 0)
        if (message := decisions.ahead_words(order)) is not None:
            message = f"{name} {message} and restore again; it was left out"
            summary.refused.append((item.record.id, message))
            return
        try:
            root.write(name, item.content)
        except OSError as error:
            raise data_unusable(root, error) from error
        summary.decisions += 1
        return
    except OSError as error:
        raise data_unusable(root, error) from error
    if present != item.content:
        summary.refused.append((item.record.id, f"{root.url}/{name} is already there with other content"))


def _compare_with_sealed(root: Root, item: _PackedRun, summary: RestoreSummary) -> None:
    """run.json names every file by its sha256: an equal one is of the same run, also without its reports."""
    run_id = item.run.run_id
    try:
        sealed = root.read(f"{RUNS_FOLDER}/{run_id}/{RUN_FILE}", MAX_RUN_JSON_BYTES + 1)
    except OSError as error:
        raise data_unusable(root, error) from error
    if sealed == item.run_json:
        summary.already.append(run_id)
    else:
        summary.refused.append(
            (
                run_id,
                f"run {run_id} is already in {root.url} with other content: a sealed run is never changed",
            )
        )


def _restore_run(root: Root, item: _PackedRun, summary: RestoreSummary) -> None:
    """Unpack a run into staging, checked on the way, and publish it as an import is."""
    run_id = item.run.run_id
    if isinstance(root, LocalRoot):
        folder = new_staging_folder(root)
        try:
            item.unpack(folder)
            holder = publish_import(root, StagedRun(item.run, item.run_json, folder))
        except OSError as error:
            raise data_unusable(root, error) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        (summary.restored if holder is None else summary.already).append(run_id)
        return
    with scratch_folder() as scratch:
        paths = item.unpack(scratch)
        try:
            upload(root, item.run, {path: scratch / path for path in paths}, item.run_json)
        except OSError as error:
            raise data_unusable(root, error) from error
    summary.restored.append(run_id)


@dataclass(frozen=True)
class _Decision:
    """A decision in a backup."""

    record: decisions.DecisionRecord
    content: bytes


@dataclass(frozen=True)
class _SearchFile:
    """A file of a search in a backup."""

    search_id: str
    path: str  # in the search's folder
    content: bytes

    @property
    def name(self) -> str:
        """Its path in the data folder."""
        return f"{search_files.FOLDER}/{self.search_id}/{self.path}"


@dataclass(frozen=True)
class _PackedRun:
    """A run in a backup, whose files come next in the tar."""

    run: Run
    run_json: bytes
    dropped: DroppedReports | None
    dropped_json: bytes | None
    copy_files: Callable[[Path | None], None]

    def unpack(self, folder: Path) -> list[str]:
        """Write the run into an empty folder; the paths of all its files but run.json."""
        (folder / RUN_FILE).write_bytes(self.run_json)
        paths = [file.path for file in stored_files(self.run, self.dropped)]
        if self.dropped_json is not None:
            (folder / DROPPED_FILE).write_bytes(self.dropped_json)
            paths.append(DROPPED_FILE)
        self.copy_files(folder)
        return paths


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[gzip.GzipFile]:
    try:
        file = open_regular(path)
    except OSError as error:
        raise ProfilerError(f"{path} cannot be read ({error.strerror or error})") from error
    with file, gzip.GzipFile(fileobj=file, mode="rb") as packed:
        yield packed


class _Reader:
    """Reads a backup in order and holds every file against run.json and, at the end, against SHA256SUMS."""

    def __init__(self, tar: gzip.GzipFile, path: Path) -> None:
        self._tar = tar
        self._path = path
        self._most = max(_FREE_BYTES, MAX_RATIO * path.stat().st_size)

    def items(self) -> Iterator[_Decision | _PackedRun | _SearchFile]:
        """The decisions, the runs, then searches; files that nobody unpacks are checked all the same."""
        with tempfile.TemporaryFile(dir=temporary_place()) as sums:
            try:
                yield from self._items(sums)
            except BadBundle as error:
                if str(self._path) in str(error):
                    raise
                raise BadBundle(f"{self._path}: {error}") from error
            except _GZIP_ERRORS as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise  # of the disk, not of what is in the file
                raise BadBundle(f"{self._path}: damaged or cut short ({brief_error(error)})") from error

    def _items(self, sums: IO[bytes]) -> Iterator[_Decision | _PackedRun | _SearchFile]:
        members = tar_stream.read_members(self._tar)
        head = next(members, None)
        if head is None or head.name != HEAD_FILE:
            raise BadBundle(f"no backup of `profiler data backup`: it does not begin with {HEAD_FILE}")
        self._check_head(self._content(head, MAX_HEAD_BYTES, sums))
        member = next(members, None)
        while member is not None and member.name.startswith(f"{decisions.FOLDER}/"):
            name = member.name.removeprefix(f"{decisions.FOLDER}/")
            self._check_ratio()
            content = self._content(member, decisions.MAX_DECISION_BYTES, sums)
            if "/" in name or name.startswith(".") or not name.endswith(".json"):
                raise BadBundle(f"{member.name[:80]!r} is no decision")
            record = decisions.parse_record(str(self._path), name.removesuffix(".json"), content)
            yield _Decision(record, content)
            member = next(members, None)
        previous = ""  # run id: they come sorted, so that none comes twice
        in_searches = f"{search_files.FOLDER}/"
        while member is not None and member.name != SUMS_FILE and not member.name.startswith(in_searches):
            self._check_ratio()
            folder, run_id, file_name = (*member.name.split("/", 2), "", "")[:3]
            if folder != RUNS_FOLDER or file_name != RUN_FILE:
                raise BadBundle(f"{member.name[:80]!r} is no file of a run that is named before it")
            run_json = self._content(member, MAX_RUN_JSON_BYTES, sums)
            run = parse_run(run_json, member.name)
            if run.run_id != run_id or run_id <= previous:
                raise BadBundle(f"{member.name[:80]!r} is of run {run.run_id}, or comes twice")
            previous = run_id
            check_arriving(run, member.name)
            member = next(members, None)
            dropped_json, dropped = None, None
            if member is not None and member.name == f"{RUNS_FOLDER}/{run_id}/{DROPPED_FILE}":
                dropped_json = self._content(member, MAX_DROPPED_BYTES, sums)
                dropped = parse_dropped(dropped_json, run, member.name)
                member = next(members, None)
            files = stored_files(run, dropped)
            size_bytes = sum(file.size_bytes for file in files)
            if len(files) > MAX_FILES or size_bytes > MAX_UNPACKED_BYTES:
                raise BadBundle(f"run {run_id} has more files or bytes than a bundle may")
            self._check_ratio(size_bytes)
            packed_files = _Files(files, member, members, sums, run_id)
            yield _PackedRun(run, run_json, dropped, dropped_json, packed_files.copy)
            member = packed_files.copied()
        settled = ""  # the search whose settings came; they come first
        while member is not None and member.name.startswith(in_searches):
            self._check_ratio()
            search_id, path = search_files.split_name(member.name)
            if path == search_files.SETTINGS_FILE:
                settled = search_id
            if search_id != settled:
                raise BadBundle(
                    f"{member.name[:80]!r} comes before its search's {search_files.SETTINGS_FILE}"
                )
            yield _SearchFile(search_id, path, self._content(member, search_files.MAX_FILE_BYTES, sums))
            member = next(members, None)
        self._check_sums(member, sums)
        if next(members, None) is not None:
            raise BadBundle(f"there are files after {SUMS_FILE}")
        while rest := self._tar.read(1 << 16):  # to its end, where gzip's own checksum is
            self._check_ratio()
            if any(rest):
                raise BadBundle("there is something after its end")

    def _check_head(self, content: bytes) -> None:
        try:
            schema = json.loads(content)["schema"]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise BadBundle(f"{HEAD_FILE} cannot be read ({brief_error(error)})") from error
        if type(schema) is not int or schema > SCHEMA:
            raise BadBundle(f"it has schema {schema!r}; this profiler reads up to {SCHEMA}: update it")

    def _content(self, member: tar_stream.Member, most: int, sums: IO[bytes]) -> bytes:
        """The content of a small member, noted in `sums`."""
        if member.size_bytes > most:
            raise BadBundle(f"{member.name[:80]!r} has {member.size_bytes:,} bytes, over {most:,}")
        content = member.read()
        sums.write(_sums_line(sha256(content).hexdigest(), member.name))
        return content

    def _check_ratio(self, coming_bytes: int = 0) -> None:
        if self._tar.tell() + coming_bytes > self._most:
            raise BadBundle("it unpacks to far more than it weighs: refused as a bomb")

    def _check_sums(self, member: tar_stream.Member | None, sums: IO[bytes]) -> None:
        """Raise BadBundle, with the first file's name, unless SHA256SUMS says what was read."""
        if member is None:
            raise BadBundle(f"it ends without {SUMS_FILE}: it was cut short")
        sums.seek(0)
        named = _Pieces(member)
        for line in sums:
            if named.take(len(line)) != line:
                raise BadBundle(f"{line[66:].decode().strip()[:80]} is not what {SUMS_FILE} says of it")
        if named.take(1):
            raise BadBundle(f"{SUMS_FILE} names files that are not there")


class _Pieces:
    """The content of a member in pieces of asked sizes."""

    def __init__(self, member: tar_stream.Member) -> None:
        self._member = member
        self._buffer = b""

    def take(self, size: int) -> bytes:
        """The next `size` bytes; fewer at the end."""
        while len(self._buffer) < size and (block := self._member.read(1 << 16)):
            self._buffer += block
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken


class _Nowhere:
    """Where files go that are only checked."""

    def write(self, block: bytes, /) -> int:
        return len(block)


class _Files:
    """The files of one run in a backup: copied to a folder, or only checked."""

    def __init__(
        self,
        files: Sequence[ReportFile | Attachment],
        first: tar_stream.Member | None,
        members: Iterator[tar_stream.Member],
        sums: IO[bytes],
        run_id: str,
    ) -> None:
        self._files = files
        self._member = first
        self._members = members
        self._sums = sums
        self._run_id = run_id
        self._done = False

    def copy(self, folder: Path | None) -> None:
        """Read all files, into a folder or to nowhere. Raises BadBundle for one unlike what run.json says."""
        self._done = True
        for file in self._files:
            name = f"{RUNS_FOLDER}/{self._run_id}/{file.path}"
            if self._member is None or self._member.name != name:
                raise BadBundle(f"{name[:160]} is not there")
            if self._member.size_bytes != file.size_bytes:
                raise BadBundle(f"{name[:160]} has another size than its {RUN_FILE} names")
            if folder is None:
                copy_checked(self._member, _Nowhere(), file)
            else:
                target = folder / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as copy:
                    copy_checked(self._member, copy, file)
                    copy.flush()
                    os.fsync(copy.fileno())
            self._sums.write(_sums_line(file.sha256, name))
            self._member = next(self._members, None)

    def copied(self) -> tar_stream.Member | None:
        """The member after the run's files, which are read now where they were not."""
        if not self._done:
            self.copy(None)
        return self._member
