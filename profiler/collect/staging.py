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
from typing import IO, Any

from profiler.bundles import LocalRoot, bundle
from profiler.errors import BadBundle, ProfilerError, UnknownName

PLAN = "plan.json"
JOBS, REPORTS, WORK, SOURCES, SESSIONS = "jobs", "reports", "work", "sources", "sessions"
LAST_RUN = "last"  # in the place of a run's id
_GONE = ".old-"  # sealed runs' folders on their way out
ENDED = ("done", "wrong", "failed", "skipped")


class Staging:
    """The folder of one unfinished run. One process at a time works on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_id = folder.name
        self._lock: IO[str] | None = None

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
            for name in (JOBS, REPORTS, WORK, SOURCES, SESSIONS):
                (making / name).mkdir(parents=True)
            for path, content in (sources or {}).items():
                (making / SOURCES / path).parent.mkdir(parents=True, exist_ok=True)
                (making / SOURCES / path).write_bytes(content)
            _write(making / PLAN, plan)
            making.rename(folder)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
        staging = Staging(folder)
        staging.lock()
        return staging

    @staticmethod
    def resume(root: LocalRoot, run_id: str) -> Staging:
        """An unfinished run, or the LAST_RUN one begun. Raises UnknownName, or ProfilerError where another
        process is at it.
        """
        if run_id == LAST_RUN:
            run_id = next(reversed(unfinished_runs(root)), LAST_RUN)
        staging = Staging(root.folder / bundle.STAGING_FOLDER / run_id)
        if not (staging.folder / PLAN).is_file():
            there = ", ".join(unfinished_runs(root)) or "none"
            raise UnknownName(
                f"no unfinished run {run_id} in {root.url}/{bundle.STAGING_FOLDER}: there is {there}"
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
            return _read(path)
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
        """Requests, answers and logs of the processes; nothing there is needed again."""
        return self.folder / WORK

    def record(self, key: str, outcome: Mapping[str, Any]) -> None:
        """A job has ended: this write is its commit."""
        if outcome.get("status") not in ENDED:
            raise BadBundle(f"{key} ended as {outcome.get('status')!r}, which is none of {', '.join(ENDED)}")
        _write(self.folder / JOBS / f"{_plain(key)}.json", {"key": key, **outcome})

    def forget(self, key: str) -> None:
        """A job is to be done again."""
        (self.folder / JOBS / f"{_plain(key)}.json").unlink(missing_ok=True)

    def outcomes(self) -> dict[str, dict[str, Any]]:
        """What every job that has ended brought, by its key; a damaged file is as if it had not ended."""
        found = {}
        for path in sorted((self.folder / JOBS).glob("*.json")):
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                content = _read(path)
                whole = content["status"] in ENDED and path.stem == _plain(content["key"])
                if whole and content["stage"] and self._has_reports(content):
                    found[content["key"]] = content
        return found

    def _has_reports(self, outcome: Mapping[str, Any]) -> bool:
        places = ((self.folder / REPORTS / one["path"], one["size"]) for one in outcome.get("reports", ()))
        return all(place.is_file() and place.stat().st_size == size for place, size in places)

    def drop_damaged(self) -> list[str]:
        """Forget the jobs whose reports are no longer what they were: their keys. They are done again."""
        damaged = []
        for key, outcome in self.outcomes().items():
            for one in outcome.get("reports", ()):
                if bundle.hash_file(self.folder / REPORTS / one["path"])[0] != one["sha256"]:
                    (self.folder / REPORTS / one["path"]).unlink(missing_ok=True)
                    self.forget(key)
                    damaged.append(key)
        return damaged

    def write_session(self, name: str, session: Mapping[str, Any]) -> None:
        """What one session has found out so far: written again and again, the last is what stays."""
        (self.folder / SESSIONS).mkdir(exist_ok=True)
        _write(self.folder / SESSIONS / f"{_plain(name)}.json", session)

    def sessions(self) -> list[dict[str, Any]]:
        """The sessions that worked on the run, in the order of their names; damaged ones are left out."""
        found = []
        for path in sorted((self.folder / SESSIONS).glob("*.json")):
            with contextlib.suppress(ValueError):
                content = _read(path)
                if isinstance(content, dict):
                    found.append(content)
        return found

    def keep_report(self, report: Path) -> tuple[str, int, Path]:
        """Move a report to where it stays: its sha256, size and place. Equal reports are one."""
        digest, size = bundle.hash_file(report)
        place = self.folder / REPORTS / f"{digest}{report.suffix}"
        with report.open("rb") as file:
            os.fsync(file.fileno())
        report.replace(place)
        return digest, size, place


def unfinished_runs(root: LocalRoot) -> list[str]:
    """The runs that can be resumed or sealed as they are, oldest first."""
    return [name for name in root.folders_holding(bundle.STAGING_FOLDER, PLAN) if not name.startswith(".")]


def _plain(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", key)


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _write(path: Path, content: Mapping[str, Any]) -> None:
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
