"""The end of the logs of failed jobs, to be shown before the staging folder is removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profiler.collect.collection import Collection
from profiler.collect.outcomes import Outcome, version_ending

MOST_JOBS, MOST_LINES = 6, 12  # few enough for a terminal to show the table after them
_LOG_NAMES = ("*.log", "log")


@dataclass(frozen=True)
class FailedJob:
    """A job that failed, and the end of its logs."""

    key: str
    reason: str
    logs: tuple[tuple[str, tuple[str, ...]], ...]  # FOLDER/FILE, its last lines


def failed_jobs(collection: Collection) -> Iterator[FailedJob]:
    """The jobs that failed, one for each reason; not those of rejected versions, which should fail."""
    reasons: set[str] = set()
    for key, outcome in collection.staging.outcomes().items():
        reason = _failure(collection, outcome)
        if reason is None or reason in reasons or len(reasons) >= MOST_JOBS:
            continue
        reasons.add(reason)
        logs = []
        for path in newest_logs(collection.staging.scratch / key):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-MOST_LINES:]
            if lines:
                logs.append((f"{path.parent.name}/{path.name}", tuple(lines)))
        yield FailedJob(key, reason, tuple(logs))


def newest_logs(folder: Path) -> list[Path]:
    """The newest two logs of a job's processes, also of versions retried alone, the last written first."""
    folders = (folder.name, f"{folder.name}-*")  # not those of a version whose name merely begins alike
    logs = [path for name in folders for log in _LOG_NAMES for path in folder.parent.glob(f"{name}/{log}")]
    return sorted(logs, key=lambda path: path.stat().st_mtime, reverse=True)[:2]


def _failure(collection: Collection, outcome: Outcome) -> str | None:
    """Why the job failed for a version that should not fail; None: it did not."""
    for name in outcome.get("versions", ()):
        ending = version_ending(outcome, name)
        state = collection.context.selection.versions[name].state
        if ending["status"] == "failed" and state not in ("rejected", "baseline"):
            return str(ending["reason"] or outcome["reason"] or "no reason was given")
    return None
