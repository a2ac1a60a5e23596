"""What the processes of failed jobs said, since their logs go with the staging folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profiler.collect.collection import Collection

JOBS, LINES = 6, 12  # at most, so that a terminal still shows the table after them
_LOGS = ("*.log", "log")


def show(collection: Collection) -> None:
    """The end of the logs of jobs that failed, one of each reason; rejected versions are meant to fail."""
    told: set[str] = set()
    for key, outcome in collection.staging.outcomes().items():
        reason = _reason(collection, outcome)
        if reason is None or reason in told or len(told) >= JOBS:
            continue
        told.add(reason)
        print(f"\nfailed: {key}: {reason}", file=sys.stderr)
        for path in logs(collection.staging.scratch / key):
            last = path.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:]
            if last:
                print(
                    "\n".join([f"  {path.parent.name}/{path.name}:", *(f"    {one}" for one in last)]),
                    file=sys.stderr,
                )


def logs(folder: Path) -> Iterator[Path]:
    """The logs of a job's processes, the last written first, two at most; those tried apart lie beside it."""
    names = (folder.name, f"{folder.name}-*")  # not those of a version whose name begins alike
    found = [path for name in names for log in _LOGS for path in folder.parent.glob(f"{name}/{log}")]
    yield from sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)[:2]


def _reason(collection: Collection, outcome: dict[str, Any]) -> str | None:
    """Why the job failed for a version that should not; None: it did not."""
    versions = collection.context.versions
    for name in outcome.get("versions", ()):
        mine = outcome if outcome["stage"] == "sanitize" else outcome.get("results", {}).get(name, outcome)
        if mine.get("status") == "failed" and versions[name].state not in ("rejected", "baseline"):
            return str(mine.get("reason") or outcome.get("reason") or "no reason was given")
    return None
