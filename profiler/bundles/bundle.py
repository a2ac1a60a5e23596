"""What a sealed bundle is on disk: a folder named by its run, with run.json, written last, and its files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import unicodedata
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from profiler.bundles.location import LocalRoot, Root, check_writable, data_unusable, open_regular
from profiler.bundles.run import IMPORT, Attachment, ReportFile, Run
from profiler.bundles.run_json import MAX_RUN_JSON_BYTES, RUN_FILE, dump_run, parse_outline, parse_run
from profiler.errors import BadBundle

RUNS_FOLDER = "runs"
UNFINISHED = "unfinished"  # in the provenance of what was written while the collection ran
STAGING_FOLDER = "staging"
MAX_FILES = 10_000  # of a bundle from elsewhere
_IMPORTING = "import-"  # what an import stages; a collection stages under its run id
_DELETED = "deleted-"  # what a deletion moved away to remove it
DIGITS = 8  # of the report's sha256 end an imported run's id, so that it is found without reading it


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; none at the end."""


class Writable(Protocol):
    """What bytes are written to."""

    def write(self, block: bytes, /) -> object:
        """Write all of them."""


def imported_run_id(created: datetime, family: str, version: str, sha256_hex: str) -> str:
    """The id of an imported report's run: when it was made, its labels at the import, its first digits."""
    stamp = created.astimezone(UTC).strftime("%Y%m%dT%H%M%S")
    return f"{stamp}-{_plain(family)}-{_plain(version)}-{sha256_hex[:DIGITS]}"


def imported_report_file(name: str, digest: str, size_bytes: int) -> ReportFile:
    """A report of an imported run, kept under its own name as far as all file systems take it."""
    name = os.fsencode(name).decode(errors="replace")  # a file's name may be bytes that are no text
    suffix = Path(name).suffix
    return ReportFile(
        name, digest, size_bytes, f"reports/{_plain(name.removesuffix(suffix))}{_plain(suffix, '.')}"
    )


def hash_file(path: Path) -> tuple[str, int]:
    """sha256 and size of a file."""
    with open_regular(path) as file:
        digest, size = sha256(), 0
        while block := file.read(1 << 20):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


def list_runs(root: Root) -> list[str]:
    """The ids of all sealed runs, sorted; a folder without run.json is none."""
    return [name for name in root.folders_holding(RUNS_FOLDER, RUN_FILE) if not name.startswith(".")]


def load_run(root: Root, run_id: str) -> Run:
    """A sealed run. Raises BadBundle where there is none, or one that this version cannot read."""
    return _load(root, run_id, parse_run)


def load_outline(root: Root, run_id: str, values: Collection[str] = ()) -> Run:
    """A sealed and indexed run without most of its content, in a tenth of the time: see `parse_outline`.

    Raises BadBundle as `load_run` does.
    """
    return _load(root, run_id, partial(parse_outline, values=values))


def _load(root: Root, run_id: str, parse: Callable[[bytes, str], Run]) -> Run:
    where = f"{root.url}/{RUNS_FOLDER}/{run_id}/{RUN_FILE}"
    try:
        run = parse(root.read(f"{RUNS_FOLDER}/{run_id}/{RUN_FILE}", MAX_RUN_JSON_BYTES + 1), where)
    except FileNotFoundError as error:
        raise BadBundle(f"no run {run_id} in {root.url}: `profiler list runs` lists all") from error
    except OSError as error:
        raise BadBundle(f"{where} cannot be read ({error.strerror or error})") from error
    if run.run_id != run_id:
        raise BadBundle(f"{where} says that it is run {run.run_id}: a bundle's folder keeps the run's id")
    return run


def load_run_folder(folder: Path) -> Run:
    """The run in a bundle's folder that may lie anywhere, such as one copied from a GPU machine."""
    path = folder / RUN_FILE
    try:
        with open_regular(path, folder) as file:
            content = file.read(MAX_RUN_JSON_BYTES + 1)
    except OSError as error:
        raise BadBundle(f"{path} cannot be read ({error.strerror or error})") from error
    return parse_run(content, str(path))


def check_arriving(run: Run, where: str) -> None:
    """Raise BadBundle for a run from elsewhere that would not be the same run on every machine.

    Two files that differ only in case, or in how an accent is written, are one on macOS and Windows. An
    imported run's id follows from its time, its labels and its report, and finds the report again. No launch
    may be there twice.
    """
    _refuse_repeated_launches(run, where)
    if len(run.reports) + len(run.files) > MAX_FILES:
        raise BadBundle(f"{where} names over {MAX_FILES:,} files")
    paths: dict[str, str] = {_file_key(RUN_FILE): RUN_FILE, _file_key("dropped.json"): "dropped.json"}
    for file in run.contents:
        # A folder may come again, but spelled the same; a file may be no folder of another.
        for path in (*(f"{folder}/" for folder in PurePosixPath(file.path).parents), file.path):
            other = paths.setdefault(_file_key(path).rstrip("/"), path)
            if other != path:
                raise BadBundle(f"{where} names {path} and {other}, which are one on some systems")
    if run.kind == IMPORT and run.reports:
        digests = {report.sha256[:DIGITS] for report in run.reports}
        if run.run_id[-DIGITS:] not in digests:
            raise BadBundle(f"{where}: the id {run.run_id} is of another report than it holds")
        labels = dict.fromkeys((result.family, result.version) for result in run.results)
        digest = run.run_id[-DIGITS:]
        if all(run.run_id != imported_run_id(run.created, *names, digest) for names in labels):
            own_id = imported_run_id(run.created, *next(iter(labels)), digest)
            raise BadBundle(
                f"{where}: the id {run.run_id} contradicts its time and labels, which make {own_id}"
            )


def _refuse_repeated_launches(run: Run, where: str) -> None:
    """Raise BadBundle for a launch that several captures name, or one names twice.

    A launch lies in the range of one cell, so that no ncu gives that. A short run.json could name the
    launches of a report again and again, and each of them takes memory and rows.
    """
    whole: set[str] = set()  # reports all of whose launches are named
    named: dict[str, set[int]] = {}
    for capture in (capture for result in run.results for capture in result.captures):
        report = capture.report
        ordinals = named.setdefault(report, set())
        if capture.ordinals is None and (report in whole or ordinals):
            what = f"launch {min(ordinals)}" if ordinals else "every launch"
            raise BadBundle(f"{where} names {what} of the report {report[:12]} twice")
        if capture.ordinals is None:
            whole.add(report)
        for ordinal in capture.ordinals or ():
            if report in whole or ordinal in ordinals:
                raise BadBundle(f"{where} names launch {ordinal} of the report {report[:12]} twice")
            ordinals.add(ordinal)


def refuse_special_files(folder: Path, run: Run) -> None:
    """Raise BadBundle where what a run names in a bundle's folder is no file, or a link out of the folder."""
    for file in run.contents:
        try:
            open_regular(folder / file.path, folder).close()
        except OSError as error:
            raise BadBundle(
                f"{folder / file.path} cannot be taken into a bundle ({error.strerror or error})"
            ) from error


def read_content(root: Root, run_id: str, file: ReportFile | Attachment) -> bytes:
    """The content of a file of a sealed run. Raises BadBundle where it is gone, or not what the run names."""
    try:
        content = root.read(f"{RUNS_FOLDER}/{run_id}/{file.path}", file.size_bytes + 1)
    except OSError as error:
        raise BadBundle(f"run {run_id} cannot read its {file.path} ({error.strerror or error})") from error
    if (sha256(content).hexdigest(), len(content)) != (file.sha256, file.size_bytes):
        raise BadBundle(f"run {run_id}: {_changed(file)}")
    return content


@dataclass(frozen=True)
class StagedRun:
    """A whole bundle in the staging folder, which only has to be renamed to be sealed."""

    run: Run
    run_json: bytes
    folder: Path


def stage(root: LocalRoot, run: Run, sources: Mapping[str, Path]) -> StagedRun:
    """Write the whole bundle into staging. `sources` has the local file of each path inside the bundle.

    Raises BadBundle where a file's content is not what the run says.
    """
    staged = StagedRun(run, dump_run(run), new_staging_folder(root))
    try:
        for file in run.contents:
            target = staged.folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            with open_regular(sources[file.path]) as source, target.open("wb") as copy:
                copy_checked(source, copy, file)
                _flush(copy)
        with (staged.folder / RUN_FILE).open("wb") as copy:
            copy.write(staged.run_json)
            _flush(copy)
    except BaseException:
        shutil.rmtree(staged.folder, ignore_errors=True)
        raise
    return staged


def new_staging_folder(root: LocalRoot) -> Path:
    """A new folder for a bundle in the making; the next import removes what a kill leaves of it."""
    folder = root.folder / STAGING_FOLDER / f"{_IMPORTING}{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    return folder


def publish(root: LocalRoot, staged: StagedRun) -> bool:
    """Rename the staged bundle to its place, which is the commit: nobody ever sees half of it.

    False if the run is there already; then nothing staged is left. BadBundle if another content has its id.
    Only flush_runs makes sure that the new run outlives a power cut.
    """
    folder = root.folder / RUNS_FOLDER / staged.run.run_id
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        staged.folder.rename(folder)
    except OSError:  # a folder that is not empty is never replaced
        shutil.rmtree(staged.folder, ignore_errors=True)
        if not (folder / RUN_FILE).is_file():
            raise
        _refuse_other_content(root, staged.run, staged.run_json)
        return False
    return True


def flush_runs(root: Root) -> None:
    """Make sure that the runs published so far outlive a power cut."""
    flush_folder(root, RUNS_FOLDER)


def flush_folder(root: Root, folder: str) -> None:
    """Make sure that what was made or renamed in a folder outlives a power cut."""
    if isinstance(root, LocalRoot):
        descriptor = os.open(root.folder / folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def upload(root: Root, run: Run, sources: Mapping[str, Path], run_json: bytes | None = None) -> bool:
    """Seal a bundle where nothing can be renamed: every file first, run.json last.

    False if the run is there already; BadBundle if another content has its id.
    """
    run_json = run_json or dump_run(run)
    if run.run_id in list_runs(root):
        _refuse_other_content(root, run, run_json)
        return False
    for file in run.contents:
        if hash_file(sources[file.path]) != (file.sha256, file.size_bytes):
            raise BadBundle(_changed(file))
        root.put(sources[file.path], f"{RUNS_FOLDER}/{run.run_id}/{file.path}")
    root.write(f"{RUNS_FOLDER}/{run.run_id}/{RUN_FILE}", run_json)
    return True


def seal(root: Root, run: Run, sources: Mapping[str, Path]) -> bool:
    """Keep a run for good. False if it is there already; BadBundle if another content has its id."""
    if isinstance(root, LocalRoot):
        staged = stage(root, run, sources)
        with _publishing(root):
            published = publish(root, staged)
        flush_runs(root)
        return published
    return upload(root, run, sources)


def seal_import(root: Root, run: Run, sources: Mapping[str, Path]) -> str | None:
    """Keep an imported run; None, or the id of the run that holds its report already.

    Two imports of one report at the same time leave one run, whatever they call it; on a remote root they
    have to call it the same.
    """
    if not isinstance(root, LocalRoot):
        return None if upload(root, run, sources) else run.run_id
    staged = stage(root, run, sources)
    try:
        return publish_import(root, staged)
    finally:
        shutil.rmtree(staged.folder, ignore_errors=True)


def publish_import(root: LocalRoot, staged: StagedRun) -> str | None:
    """Publish a staged run unless an imported run holds its report already: the id of that, else None."""
    with _publishing(root):
        if staged.run.kind == IMPORT:
            run_ids = imports_by_digest(os.listdir(root.folder / RUNS_FOLDER))
            for report in staged.run.reports:
                run_id = find_import(root, run_ids, report.sha256)
                if run_id not in (None, staged.run.run_id):
                    return run_id
        return None if publish(root, staged) else staged.run.run_id


def remove_run(root: Root, run_id: str) -> None:
    """Remove the bundle of a run for good; a kill leaves it either whole or no run any more."""
    folder = f"{RUNS_FOLDER}/{run_id}"
    if not isinstance(root, LocalRoot):
        root.remove(f"{folder}/{RUN_FILE}")  # without it the rest is no run
        root.remove(folder)
        return
    away = root.folder / STAGING_FOLDER / f"{_DELETED}{uuid.uuid4().hex}"
    away.parent.mkdir(exist_ok=True)
    with _publishing(root), contextlib.suppress(FileNotFoundError):
        (root.folder / folder).rename(away)
    flush_runs(root)
    shutil.rmtree(away, ignore_errors=True)


def sweep_deleted(root: Root) -> None:
    """Remove what a killed deletion left in staging; it is no run any more."""
    if isinstance(root, LocalRoot):
        with contextlib.suppress(OSError):
            for name in os.listdir(root.folder / STAGING_FOLDER):
                if name.startswith(_DELETED):
                    shutil.rmtree(root.folder / STAGING_FOLDER / name, ignore_errors=True)


def imports_by_digest(run_ids: Iterable[str]) -> dict[str, list[str]]:
    """Run ids by their last digits, which in an imported run's id are the first of its report's sha256."""
    by_digest: dict[str, list[str]] = {}
    for run_id in sorted(run_ids):
        by_digest.setdefault(run_id[-DIGITS:], []).append(run_id)
    return by_digest


def find_import(root: Root, run_ids: Mapping[str, Sequence[str]], digest: str) -> str | None:
    """The imported run that holds the report with this sha256; `run_ids` as imports_by_digest gives them."""
    for run_id in run_ids.get(digest[:DIGITS], ()):
        try:
            run = load_run(root, run_id)
        except BadBundle:
            continue  # whoever lists the runs says that this one cannot be read
        if run.kind == IMPORT and any(report.sha256 == digest for report in run.reports):
            return run_id
    return None


def may_hold_runs(root: Root) -> bool:
    """Whether a place can have runs: a folder on this machine without a subfolder for them has none.

    A folder that cannot be made counts as one: who opens it is to hear of that.
    """
    if not isinstance(root, LocalRoot) or os.path.isdir(root.folder / RUNS_FOLDER):
        return True
    return not os.path.isdir(next(filter(os.path.exists, (root.folder, *root.folder.parents))))


@contextlib.contextmanager
def importing(root: Root) -> Iterator[None]:
    """Hold the staging folder during an import. What a killed import left there is removed first.

    Where nothing could be imported, and no runs were there before, the folders go again.
    """
    check_writable(root)
    if not isinstance(root, LocalRoot):
        yield
        return
    folder = root.folder / STAGING_FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (root.folder / RUNS_FOLDER).mkdir(exist_ok=True)
        opened = (folder / ".importing").open("w")
    except OSError as error:
        raise data_unusable(root, error) from error
    with opened as lock:
        with contextlib.suppress(BlockingIOError):  # another import is at work: it may be its
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for abandoned in folder.glob(f"{_IMPORTING}*"):
                shutil.rmtree(abandoned, ignore_errors=True)
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            yield
        finally:
            _remove_empty_folders(root, lock)


def _remove_empty_folders(root: LocalRoot, lock: IO[str]) -> None:
    """Remove runs/ and staging/ where no run was sealed; not while another import is at work."""
    with contextlib.suppress(OSError):  # another one holds the lock, or there are runs
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (root.folder / RUNS_FOLDER).rmdir()
        for name in (".importing", ".publishing"):
            (root.folder / STAGING_FOLDER / name).unlink(missing_ok=True)
        (root.folder / STAGING_FOLDER).rmdir()


@contextlib.contextmanager
def _publishing(root: LocalRoot) -> Iterator[None]:
    """Let one process at a time look which runs there are and add its own: no report comes in twice."""
    with (root.folder / STAGING_FOLDER / ".publishing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _refuse_other_content(root: Root, run: Run, run_json: bytes) -> None:
    """Raise BadBundle where the sealed run of this id is not the run: sealing an equal one again is fine."""
    sealed = root.read(f"{RUNS_FOLDER}/{run.run_id}/{RUN_FILE}")
    if sealed == run_json:
        return
    what = f"run {run.run_id} is already in {root.url} with other content"
    if parse_run(sealed, RUN_FILE).provenance.get(UNFINISHED):
        place = f"{root.url}/{RUNS_FOLDER}/{run.run_id}"
        raise BadBundle(f"{what}, a part of this one: remove {place}, `profiler data index`, import again")
    if run.provenance.get(UNFINISHED):
        raise BadBundle(f"run {run.run_id} is in {root.url}, whole: this part of it adds nothing")
    raise BadBundle(f"{what}: a sealed run is never changed")


def refuse_partial_import(root: Root, run_id: str) -> None:
    """Raises BadBundle where a part of a run was imported where it is collected: the whole has no place."""
    if run_id in list_runs(root) and load_run(root, run_id).provenance.get(UNFINISHED):
        raise BadBundle(
            f"a part of run {run_id} was imported here: remove {root.url}/{RUNS_FOLDER}/{run_id}, "
            "`profiler data index`, then go on"
        )


def copy_checked(source: Readable, copy: Writable, file: ReportFile | Attachment) -> None:
    """Copy at most the declared size and check the content on the way."""
    digest, left = sha256(), file.size_bytes
    while block := source.read(min(1 << 20, left + 1)):
        left -= len(block)
        if left < 0:
            raise BadBundle(_changed(file))
        digest.update(block)
        copy.write(block)
    if left or digest.hexdigest() != file.sha256:
        raise BadBundle(_changed(file))


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _file_key(path: str) -> str:
    """What the path is to a file system that does not tell upper from lower case."""
    return unicodedata.normalize("NFC", path).casefold()


def _changed(file: ReportFile | Attachment) -> str:
    return f"{file.path} is not the file whose size and sha256 the run names: damaged, or changed meanwhile"


def _plain(text: str, start: str = "") -> str:
    """The text as a name for any file system, never a hidden one; `start`: the point of a suffix."""
    name = re.sub(r"[^A-Za-z0-9@+=_.-]+", "_", text).strip("._-")[:60]
    return start + name if name else "" if start else "unnamed"
