"""The commit of the sources, for a run's provenance."""

from __future__ import annotations

import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any


def git_state(folder: Path) -> dict[str, Any]:
    """The commit of a folder's repository, and a hash of what differs from it; empty where there is none."""
    commit = command_output("git", "-C", str(folder), "rev-parse", "HEAD")
    if not commit:
        return {}
    diff = command_output("git", "-C", str(folder), "diff", "HEAD", "--", ".")
    return {"git_commit": commit, "git_diff_sha256": sha256(diff.encode()).hexdigest() if diff else None}


def command_output(*command: str) -> str:
    """The output of a command; empty where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
