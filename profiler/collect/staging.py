"""How an unfinished run lies on disk: plan, sources, sessions, ended jobs, reports; each whole or absent."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

from profiler.bundles import LocalRoot, bundle, hash_file
from profiler.collect.gpu.typed_json import parse
from profiler.collect.outcomes import ENDED, CounterOutcome, JobOutcome, Outcomes, SessionNote, StaticOutcome
from profiler.errors import BadBundle, ProfilerError, UnknownName

PLAN = "plan.json"
JOBS, REPORTS, SCRATCH, SOURCES, SESSIONS = "jobs", "reports", "work", "sources", "sessions"
LAST_RUN = "last"  # in the place of a run's id
_GONE = ".old-"  # sealed runs' folders on their way out
_Signature: TypeAlias = tuple[int, int, int]  # of a file: inode, time, size


class Staging:
    """The folder of one unfinished run. One process at a time works on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_id = folder.name
        self._lock: IO[str] | None = None
        # Outcomes are asked for again and again: each file is read once, until it is another.
        self._read: dict[Path, tuple[_Signature, Outcomes]] = {}

    # ------------------------------------------------------------ making and finding

    @staticmethod
    def begin(
        root: LocalRoot, run_id: str, plan: Mapping[str, Any], sources: Mapping[str, bytes] | None = None
    ) -> Staging:
        """A new run: the folder appears with its plan and its sources in it, or not at all."""
        folder = root.folder / bundle.STAGING_FOLDER / run_id
        making = folder.with_name(f".new-{uuid.uuid4().hex}")
        for gone in folder.parent.glob(f"{_GONE}*"):  # of a process that was killed while it removed one
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
        """An unfinished run, or the LAST_RUN begun.

        Raises UnknownName, or ProfilerError where another process is at it.
        """
        if run_id == LAST_RUN:
            run_id = next(reversed(unfinished_runs(root)), LAST_RUN)
        staging = Staging(root.folder / bundle.STAGING_FOLDER / run_id)
        if not (staging.folder / PLAN).is_file():
            known = ", ".join(unfinished_runs(root)) or "none"
            raise UnknownName(
                f"no unfinished run {run_id} in {root.url}/{bundle.STAGING_FOLDER}: there is {known}"
            )
        staging.lock()
        return staging

    def lock(self) -> None:
        """Hold the run until close(), or until this process is gone."""
        try:
            lock = (self.folder / ".lock").open("w")
        except FileNotFoundError:
            raise UnknownName(f"run {self.run_id} has just been sealed by another process") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ProfilerError(
                f"another process is collecting {self.run_id}: wait for it, or end it"
            ) from None
        if not (self.folder / PLAN).is_file():  # sealed between the look and the lock
            lock.close()
            raise UnknownName(f"run {self.run_id} has just been sealed by another process")
        self._lock = lock

    def close(self) -> None:
        """Let another process go on."""
        if self._lock:
            self._lock.close()
            self._lock = None

    def remove(self) -> None:
        """The run is sealed, and its folder may go. It vanishes as a run first, then file by file."""
        gone = self.folder.with_name(f"{_GONE}{uuid.uuid4().hex}")
        with contextlib.suppress(FileNotFoundError):
            self.folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        self.close()

    # ------------------------------------------------------------ contents

    def attach(self, path: str, content: bytes) -> None:
        """Another file of the bundle, by its path there, beside the sources that the run was begun with."""
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
        """What was asked for when the run began. Raises BadBundle where it is damaged."""
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
        """The files that the run was begun with and those attached, by their path inside the bundle."""
        folder = self.folder / SOURCES
        return {
            path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()
        }

    @property
    def scratch(self) -> Path:
        """Requests, results and logs of the processes; nothing there is needed again."""
        return self.folder / SCRATCH

    # ------------------------------------------------------------ jobs

    def record(self, key: str, outcome: JobOutcome | StaticOutcome) -> None:
        """A job has ended: this write is its commit."""
        if outcome["status"] not in ENDED:
            raise BadBundle(f"{key} ended as {outcome['status']!r}, which is none of {', '.join(ENDED)}")
        _write_json(self.folder / JOBS / f"{_file_name(key)}.json", {"key": key, **outcome})

    def forget(self, key: str) -> None:
        """A job is to be done again."""
        (self.folder / JOBS / f"{_file_name(key)}.json").unlink(missing_ok=True)

    def outcomes(self) -> Outcomes:
        """What every job that has ended brought; a damaged file is as if its job had not ended."""
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
        """Forget captures whose reports are no longer what they were, to be taken again; their keys."""
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
        """Move a report to where it stays: its sha256, size and path. Equal reports are one."""
        digest, size = hash_file(report)
        path = self.folder / REPORTS / f"{digest}{report.suffix}"
        with report.open("rb") as file:
            os.fsync(file.fileno())
        report.replace(path)
        return digest, size, path

    # ------------------------------------------------------------ sessions

    def write_session(self, name: str, note: SessionNote) -> None:
        """What one session has found out so far: written again and again, the last is what stays."""
        (self.folder / SESSIONS).mkdir(exist_ok=True)
        _write_json(self.folder / SESSIONS / f"{_file_name(name)}.json", note)

    def sessions(self) -> list[SessionNote]:
        """The sessions that worked on the run, in the order of their names; damaged ones are left out."""
        notes = []
        for path in sorted((self.folder / SESSIONS).glob("*.json")):
            with contextlib.suppress(ValueError):  # BadJson too
                notes.append(parse(SessionNote, _read_json(path)))
        return notes


def unfinished_runs(root: LocalRoot) -> list[str]:
    """The runs that can be resumed or sealed as they are, oldest first."""
    return [name for name in root.folders_holding(bundle.STAGING_FOLDER, PLAN) if not name.startswith(".")]


def _file_name(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", key)


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    """Whole or not at all, also after a power cut."""
    partial = path.with_name(f".{uuid.uuid4().hex}")
    try:
        with partial.open("w", encoding="utf-8") as file:
            json.dump(content, file, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
