"""Where the kept JSON lies, and how it is written."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from tests.golden.commands import DATA, DIGESTS


def shipped_data(folder: Path) -> Path:
    """A copy of the runs and decisions that a clone ships."""
    target = folder / "data"
    for part in ("runs", "decisions"):
        if (DATA / part).is_dir():
            shutil.copytree(DATA / part, target / part)
    return target


def digest(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def kept_digests() -> dict[str, str]:
    """The digest kept for each command on public reports."""
    lines = DIGESTS.read_text(encoding="utf-8").splitlines()
    return {name: value for value, name in (line.split("  ", 1) for line in lines)}
