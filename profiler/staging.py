"""How an unfinished run lies on disk: its plan, a file a finished job, its reports; each whole or absent."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from profiler import bundle
from profiler.errors import BadBundle, ProfilerError, UnknownName
from profiler.location import LocalRoot

PLAN = "plan.json"
JOBS, REPORTS, WORK = "jobs", "reports", "work"
ENDED = ("done", "wrong", "failed", "skipped")


class Staging:
    """The folder of one unfinished run. One process at a time works on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_id = folder.name
        self._lock: IO[str] | None = None

    # ------------------------------------------------------------ making and finding

    @staticmethod
    def begin(root: LocalRoot, run_id: str, plan: Mapping[str, Any]) -> Staging:
        """A new run: the folder appears with its plan in it, or not at all."""
        folder = root.folder / bundle.STAGING / run_id
        making = folder.with_name(f".new-{uuid.uuid4().hex}")
        for name in (JOBS, REPORTS, WORK):
            (making / name).mkdir(parents=True)
        _write(making / PLAN, plan)
        making.rename(folder)
        staging = Staging(folder)
        staging.lock()
        return staging

    @staticmethod
    def resume(root: LocalRoot, run_id: str) -> Staging:
        """An unfinished run. Raises UnknownName, or ProfilerError where another process is at it."""
        staging = Staging(root.folder / bundle.STAGING / run_id)
        if not (staging.folder / PLAN).is_file():
            there = ", ".join(unfinished(root)) or "none"
            raise UnknownName(f"no unfinished run {run_id} in {root.url}/{bundle.STAGING}: there is {there}")
        staging.lock()
        return staging

    def lock(self) -> None:
        """Hold the run until close(), or until this process is gone."""
        lock = (self.folder / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ProfilerError(
                f"another process is collecting {self.run_id}: wait for it, or end it"
            ) from None
        self._lock = lock

    def close(self) -> None:
        """Let another process go on."""
        if self._lock:
            self._lock.close()
            self._lock = None

    def remove(self) -> None:
        """The run is sealed, and its folder may go. It vanishes as a run first, then file by file."""
        gone = self.folder.with_name(f".old-{uuid.uuid4().hex}")
        with contextlib.suppress(FileNotFoundError):
            self.folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        self.close()

    # ------------------------------------------------------------ contents

    @property
    def plan(self) -> dict[str, Any]:
        """What was asked for when the run began."""
        return _read(self.folder / PLAN)

    @property
    def work(self) -> Path:
        """Requests, answers and logs of the processes; nothing there is needed again."""
        return self.folder / WORK

    def put(self, key: str, outcome: Mapping[str, Any]) -> None:
        """A job has ended: this write is its commit."""
        if outcome.get("status") not in ENDED:
            raise BadBundle(f"{key} ended as {outcome.get('status')!r}, which is none of {', '.join(ENDED)}")
        _write(self.folder / JOBS / f"{_plain(key)}.json", {"key": key, **outcome})

    def drop(self, key: str) -> None:
        """A job is to be done again."""
        (self.folder / JOBS / f"{_plain(key)}.json").unlink(missing_ok=True)

    def outcomes(self) -> dict[str, dict[str, Any]]:
        """What every job that has ended brought, by its key."""
        found = {}
        for path in sorted((self.folder / JOBS).glob("*.json")):
            with contextlib.suppress(ValueError, KeyError):
                content = _read(path)
                found[content["key"]] = content
        return found

    def keep(self, report: Path) -> tuple[str, int, Path]:
        """Move a report to where it stays: its sha256, size and place. Equal reports are one."""
        digest, size = bundle.hash_file(report)
        place = self.folder / REPORTS / f"{digest}{report.suffix}"
        with report.open("rb") as file:
            os.fsync(file.fileno())
        report.replace(place)
        return digest, size, place


def unfinished(root: LocalRoot) -> list[str]:
    """The runs that can be resumed or sealed as they are, oldest first."""
    return [name for name in root.holding(bundle.STAGING, PLAN) if not name.startswith(".")]


@contextlib.contextmanager
def held(staging: Staging) -> Iterator[Staging]:
    """The staging, let go of at the end."""
    try:
        yield staging
    finally:
        staging.close()


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
