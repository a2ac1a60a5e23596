"""The folder of an unfinished run: plan, sources, sessions, ended jobs, reports; each whole or absent."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

from profiler.bundles import bundle
from profiler.bundles.bundle import hash_file
from profiler.bundles.location import LocalRoot
from profiler.collect.gpu.typed_json import parse
from profiler.collect.outcomes import ENDED, CounterOutcome, JobOutcome, Outcomes, SessionNote, StaticOutcome
from profiler.errors import BadBundle, ProfilerError, UnknownName

PLAN = "plan.json"
JOBS, REPORTS, SCRATCH, SOURCES, SESSIONS = "jobs", "reports", "work", "sources", "sessions"
LAST_RUN = "last"  # in the place of a run's id
_GONE = ".old-"  # prefix of the folders of sealed runs while they are removed
# A killed process may leave a child that it had just forked: until that child runs its own program, which on
# a busy machine takes a while, it keeps the lock.
LOCK_WAIT_S = 3.0
_Signature: TypeAlias = tuple[int, int, int]  # of a file: inode, time, size


class Staging:
    """The folder of one unfinished run. One process at a time works on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_id = folder.name
        self._lock: IO[str] | None = None
        # Outcomes are needed again and again: a file is read once, and again only when it changes.
        self._read: dict[Path, tuple[_Signature, Outcomes]] = {}

    # ------------------------------------------------------------ making and finding

    @staticmethod
    def begin(
        root: LocalRoot, run_id: str, plan: Mapping[str, Any], sources: Mapping[str, bytes] | None = None
    ) -> Staging:
        """Begin a run: the folder appears with its plan and its sources in it, or not at all."""
        folder = root.folder / bundle.STAGING_FOLDER / run_id
        making = folder.with_name(f".new-{uuid.uuid4().hex}")
        for gone in folder.parent.glob(f"{_GONE}*"):  # left by a process that was killed while it removed one
            shutil.rmtree(gone, ignore_errors=True)
        try:
            for name in (JOBS, REPORTS, SCRATCH, SOURCES, SESSIONS):
                (making / name).mkdir(parents=True)
            for path, content in (sources or {}).items():
                (making / SOURCES / path).parent.mkdir(parents=True, exist_ok=True)
                (making / SOURCES / path).write_bytes(content)
            _write_json(making / PLAN, plan)
            making.rename(folder)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
        staging = Staging(folder)
        staging.lock()
        return staging

    @staticmethod
    def resume(root: LocalRoot, run_id: str) -> Staging:
        """Open an unfinished run by its id; LAST_RUN is the one that was begun last.

        Raises UnknownName, or ProfilerError where another process is at it.
        """
        if run_id == LAST_RUN:
            run_id = next(reversed(unfinished_runs(root)), LAST_RUN)
        staging = Staging(root.folder / bundle.STAGING_FOLDER / run_id)
        if not (staging.folder / PLAN).is_file():
            run_ids = ", ".join(unfinished_runs(root)) or "none"
            raise UnknownName(
                f"no unfinished run {run_id} in {root.url}/{bundle.STAGING_FOLDER}: there is {run_ids}"
            )
        staging.lock()
        return staging

    def lock(self) -> None:
        """Keep other processes from the run until close(), or until this process ends."""
        try:
            lock = (self.folder / ".lock").open("w")
        except FileNotFoundError:
            raise UnknownName(f"run {self.run_id} has just been sealed by another process") from None
        if not _locked_within(lock, LOCK_WAIT_S):
            lock.close()
            raise ProfilerError(f"another process is collecting {self.run_id}: wait for it, or end it")
        if not (self.folder / PLAN).is_file():  # sealed before this process got the lock
            lock.close()
            raise UnknownName(f"run {self.run_id} has just been sealed by another process")
        self._lock = lock

    def close(self) -> None:
        """Release the lock: another process may resume the run."""
        if self._lock:
            self._lock.close()
            self._lock = None

    def remove(self) -> None:
        """Remove the folder of a sealed run; it is renamed first, so that nobody sees half a run."""
        gone = self.folder.with_name(f"{_GONE}{uuid.uuid4().hex}")
        with contextlib.suppress(FileNotFoundError):
            self.folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        self.close()

    # ------------------------------------------------------------ contents

    def attach(self, path: str, content: bytes) -> None:
        """Add a file to the bundle under a path, beside the sources that the run was begun with."""
        target = self.folder / SOURCES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = self.folder / f".{uuid.uuid4().hex}"
        try:
            partial.write_bytes(content)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    @property
    def plan(self) -> dict[str, Any]:
        """The content of plan.json. Raises BadBundle where it is damaged."""
        path = self.folder / PLAN
        try:
            plan: dict[str, Any] = _read_json(path)
            return plan
        except ValueError as error:
            raise BadBundle(
                f"{path} cannot be read ({error}): this run is lost, remove its folder and begin a new one"
            ) from None

    @property
    def sources(self) -> dict[str, Path]:
        """The sources of the run and the attached files, by their path inside the bundle."""
        folder = self.folder / SOURCES
        return {
            path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()
        }

    @property
    def scratch(self) -> Path:
        """The folder for requests, results and logs of the processes; nothing in it is needed again."""
        return self.folder / SCRATCH

    # ------------------------------------------------------------ jobs

    def record(self, key: str, outcome: JobOutcome | StaticOutcome) -> None:
        """Record the outcome of a job; once this is written, the job has ended."""
        if outcome["status"] not in ENDED:
            raise BadBundle(f"{key} ended as {outcome['status']!r}, which is none of {', '.join(ENDED)}")
        _write_json(self.folder / JOBS / f"{_file_name(key)}.json", {"key": key, **outcome})

    def forget(self, key: str) -> None:
        """Forget the outcome of a job, which will be done again."""
        (self.folder / JOBS / f"{_file_name(key)}.json").unlink(missing_ok=True)

    def outcomes(self) -> Outcomes:
        """The outcomes of all jobs that have ended; a job with a damaged file has not ended."""
        outcomes = Outcomes()
        for path in sorted((self.folder / JOBS).glob("*.json")):
            with contextlib.suppress(FileNotFoundError):
                outcomes.update(self._outcome_in(path))
        for key, capture in list(outcomes.captures.items()):
            if not self._has_reports(capture):
                del outcomes.captures[key]
        return outcomes

    def _outcome_in(self, path: Path) -> Outcomes:
        """The outcome in one file; none where it is damaged."""
        stat = path.stat()
        signature = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if path not in self._read or self._read[path][0] != signature:
            outcome = Outcomes()
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # BadJson too
                content = _read_json(path)
                if content["status"] in ENDED and path.stem == _file_name(content["key"]):
                    outcome.add(content["key"], content)
            self._read[path] = (signature, outcome)
        return self._read[path][1]

    def _has_reports(self, outcome: CounterOutcome) -> bool:
        for report in outcome.get("reports", ()):
            path = self.folder / REPORTS / report["path"]
            if not path.is_file() or path.stat().st_size != report["size"]:
                return False
        return True

    def forget_damaged(self) -> list[str]:
        """Forget the captures whose reports are damaged, which will be taken again. Returns their keys."""
        damaged = []
        for key, outcome in self.outcomes().captures.items():
            for report in outcome.get("reports", ()):
                path = self.folder / REPORTS / report["path"]
                if hash_file(path)[0] != report["sha256"]:
                    path.unlink(missing_ok=True)
                    self.forget(key)
                    damaged.append(key)
        return damaged

    def keep_report(self, report: Path) -> tuple[str, int, Path]:
        """Move a report into the staging folder: its sha256, size and path. Equal reports are kept once."""
        digest, size = hash_file(report)
        path = self.folder / REPORTS / f"{digest}{report.suffix}"
        with report.open("rb") as file:
            os.fsync(file.fileno())
        report.replace(path)
        return digest, size, path

    # ------------------------------------------------------------ sessions

    def write_session(self, name: str, note: SessionNote) -> None:
        """Write the note of a session so far, in place of an earlier one."""
        (self.folder / SESSIONS).mkdir(exist_ok=True)
        _write_json(self.folder / SESSIONS / f"{_file_name(name)}.json", note)

    def sessions(self) -> list[SessionNote]:
        """The notes of the sessions, in the order of their names; damaged ones are left out."""
        notes = []
        for path in sorted((self.folder / SESSIONS).glob("*.json")):
            with contextlib.suppress(ValueError):  # BadJson too
                notes.append(parse(SessionNote, _read_json(path)))
        return notes


def unfinished_runs(root: LocalRoot) -> list[str]:
    """The ids of the runs that can be resumed or sealed, oldest first."""
    return [name for name in root.folders_holding(bundle.STAGING_FOLDER, PLAN) if not name.startswith(".")]


def _file_name(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", key)


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write a file whole or not at all, also after a power cut."""
    partial = path.with_name(f".{uuid.uuid4().hex}")
    try:
        with partial.open("w", encoding="utf-8") as file:
            json.dump(content, file, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _locked_within(file: IO[str], seconds: float) -> bool:
    """Whether this process got the lock on an open file in that time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        else:
            return True
