"""A search on disk: settings, one immutable file a record, candidates by content, and who works on what.

    data/searches/<id>/search.json
    data/searches/<id>/records/<order as a time>-c<number>.json
    data/searches/<id>/candidates/<content id>/…
    data/searches/<id>/claims/<number>     locked by the worker that has it, gone with its record

The system frees a lock when its process ends, however it ends: what a killed worker had is free again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from profiler.bundles.hybrid_clock import next_order, order_of, stamp
from profiler.bundles.location import LocalRoot, Root
from profiler.bundles.search_files import FOLDER, SETTINGS_FILE
from profiler.errors import ProfilerError, UnknownName
from profiler.judge.candidate import Candidate
from profiler.judge.manifest import FILE
from profiler.search.archive import Archive, replay
from profiler.search.record import SEED, SearchRecord, parse_record, record_content
from profiler.search.settings import SearchSettings, parse_settings

STOP_FILE, LOCK_FILE = "stop", "lock"
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,100}")
_DIGITS = 24  # of a content id in a folder's name


@dataclass(frozen=True)
class Working:
    """A candidate that a worker has in hand."""

    number: int
    since: float  # seconds since 1970
    pid: int
    doing: str = ""
    content_id: str = ""


class NumberClaim:
    """A number that this process alone works on."""

    def __init__(self, number: int, path: Path, lock: int) -> None:
        self.number = number
        self.path = path
        self._lock = lock
        self._started = time.time()
        self.say("")

    def say(self, doing: str, content_id: str = "") -> None:
        """Write down what is being done, for whoever asks, and which content no other worker need propose."""
        body = {"since": self._started, "pid": os.getpid(), "doing": doing, "content_id": content_id}
        content = json.dumps(body).encode()
        os.pwrite(self._lock, content.ljust(400), 0)  # in one piece, and never shorter than before

    def release(self) -> None:
        """Let it go, once: the file is removed by whoever still has its lock."""
        lock, self._lock = self._lock, -1
        if lock < 0:
            return
        with contextlib.suppress(OSError):
            self.path.unlink()
        os.close(lock)


class Journal:
    """One search. Any number of processes may read and write it at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = parse_settings((folder / SETTINGS_FILE).read_bytes(), str(folder / SETTINGS_FILE))
        self._root = LocalRoot(folder)
        self._read: dict[str, SearchRecord] = {}  # by file name: a record never changes

    # ---- records

    def records(self) -> list[SearchRecord]:
        """All records, in their order. Raises BadBundle for a file that is none."""
        for name in self._root.list_files("records", ".json"):
            if name not in self._read and not name.startswith("."):
                path = f"records/{name}"
                self._read[name] = parse_record(self._root.read(path), str(self.folder / path))
        return sorted(self._read.values(), key=lambda record: (record.order, record.number))

    def archive(self) -> Archive:
        """What the records amount to."""
        return replay(self.records(), self.settings.seats)

    def append(self, record: SearchRecord) -> SearchRecord:
        """Write a record after all that are there. The caller has the lock."""
        names = self._root.list_files("records", ".json")
        if any(name.endswith(f"-c{record.number}.json") for name in names):
            raise ProfilerError(f"{self.folder}: candidate c{record.number} is there already")
        last = max((order_of(name) or -1 for name in names), default=-1)
        order = next_order(datetime.now(UTC), last)
        created = record.created or datetime.now(UTC).isoformat(timespec="seconds")
        record = replace(record, order=order, created=created)
        self._root.write(f"records/{stamp(order)}-c{record.number}.json", record_content(record))
        return record

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Nobody else claims or writes within it."""
        descriptor = os.open(self.folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    # ---- who works on what

    def claim(self) -> NumberClaim | None:
        """The lowest number that has no record and that nobody works on; None while the seed is judged."""
        with self.lock():
            done = {record.number for record in self.records()}
            number = SEED
            while True:
                if number not in done:
                    claim = self._try_claim(number)
                    if claim is not None or number == SEED:
                        return claim
                number += 1

    def _try_claim(self, number: int) -> NumberClaim | None:
        path = self.folder / "claims" / str(number)
        path.parent.mkdir(exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return NumberClaim(number, path, lock)

    def working(self) -> list[Working]:
        """What workers have in hand now, by number."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for path in sorted((self.folder / "claims").iterdir(), key=lambda path: path.name):
                if path.name.isdecimal() and (row := _read_claim(path)) is not None:
                    found.append(
                        Working(
                            int(path.name),
                            float(row.get("since", 0)),
                            int(row.get("pid", 0)),
                            str(row.get("doing", "")),
                            str(row.get("content_id", "")),
                        )
                    )
        return sorted(found, key=lambda working: working.number)

    # ---- candidates

    def candidate_folder(self, content_id: str) -> Path:
        """Where a candidate's files are kept."""
        return self.folder / "candidates" / content_id[:_DIGITS]

    def keep_candidate(self, folder: Path, candidate: Candidate) -> Path:
        """Write a candidate's files there, in one step; what is there already is the same.

        Of what a generator left beside them nothing is kept: it may be links, or without an end.
        """
        target = self.candidate_folder(candidate.id)
        if not target.exists():
            partial = target.parent / f".tmp-{uuid.uuid4().hex}"
            partial.mkdir()
            try:
                for name, content in {FILE: (folder / FILE).read_bytes(), **candidate.files}.items():
                    (partial / name).parent.mkdir(parents=True, exist_ok=True)
                    (partial / name).write_bytes(content)
                partial.rename(target)
            except OSError:
                shutil.rmtree(partial, ignore_errors=True)
                if not target.exists():  # else another worker was first
                    raise
        return target

    # ---- stopping

    def request_stop(self) -> None:
        """Ask all workers to end after the candidate that they have in hand."""
        self._root.write(STOP_FILE, b"")

    def allow_work(self) -> None:
        """Take that back."""
        (self.folder / STOP_FILE).unlink(missing_ok=True)

    @property
    def is_stopping(self) -> bool:
        """Whether workers are asked to end."""
        return (self.folder / STOP_FILE).exists()


def _read_claim(path: Path) -> dict[str, Any] | None:
    """What a claim says; None where nobody has it locked."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        try:
            row = json.loads(os.pread(descriptor, 400, 0) or b"{}")
        except ValueError:
            row = {}
        return row if isinstance(row, dict) else {}
    finally:
        os.close(descriptor)


def local_folder(root: Root) -> Path:
    """Where searches lie. Raises ProfilerError for data that is elsewhere: locks need a file system."""
    if not isinstance(root, LocalRoot):
        raise ProfilerError(f"a search needs a folder of this machine: PROFILER_DATA is {root.url}")
    return root.folder / FOLDER


def create_journal(root: Root, settings: SearchSettings) -> Journal:
    """A new search, empty. Raises ProfilerError where nothing can be written."""
    folder = local_folder(root) / settings.id
    try:
        (folder / "candidates").mkdir(parents=True)
        (folder / "records").mkdir()
        LocalRoot(folder).write(SETTINGS_FILE, settings.to_json())
    except FileExistsError:
        raise ProfilerError(f"{folder} is there already") from None
    except OSError as error:
        raise ProfilerError(f"{folder}: {error.strerror or error}") from None
    return Journal(folder)


def list_journals(root: Root, family: str | None = None) -> list[Journal]:
    """All searches, or those of a family, oldest first."""
    if not isinstance(root, LocalRoot):
        return []
    names = root.folders_holding(FOLDER, SETTINGS_FILE)
    journals = [Journal(root.folder / FOLDER / name) for name in names if _ID.fullmatch(name)]
    return [journal for journal in journals if family is None or journal.settings.family == family]


def find_journal(root: Root, family: str, search_id: str | None = None) -> Journal:
    """A search by its id, or the newest of a family. Raises UnknownName with the command that starts one."""
    journals = list_journals(root, family)
    if search_id is not None:
        journals = [journal for journal in journals if journal.settings.id == search_id]
    if not journals:
        what = f"search {search_id}" if search_id else "search"
        raise UnknownName(
            f"there is no {what} of {family}: `profiler search start {family} --generator flags` starts one"
        )
    return journals[-1]
