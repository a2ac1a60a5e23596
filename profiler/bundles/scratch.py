"""Temporary folders of this program, and the removal of those whose process was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "profiler-scratch-"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder for the length of a with block. What killed processes left is removed first."""
    import shutil

    sweep()
    folder, lock = _make()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Remove the temporary folders of this user that no living process holds."""
    with contextlib.suppress(OSError):
        with os.scandir(temporary_place() or "/tmp") as entries:
            folders = [Path(entry.path) for entry in entries if entry.name.startswith(_PREFIX)]
        for folder in folders:
            _remove_if_abandoned(folder)


def temporary_place() -> str | None:
    """Where temporary folders are made; None leaves it to Python."""
    place = os.environ.get("TMPDIR") or "/tmp"
    return place if os.path.isdir(place) and os.access(place, os.W_OK) else None


def _make() -> tuple[Path, int]:
    """A new folder and the lock that says that it is in use: the system frees it when the process ends."""
    import tempfile  # here: every command imports this module, and few make a folder

    while True:
        # The place is named: to find one itself, Python writes a file into it, which a kill would leave.
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=temporary_place()))
        # Until it is locked, another process may take the folder for an abandoned one.
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_SH)
                os.stat(folder)
            except BaseException:
                os.close(lock)
                raise
            return folder, lock


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder of this user's own that nobody holds locked."""
    import shutil

    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # gone meanwhile, or no folder
        return
    try:
        if os.fstat(lock).st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: in use
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass
    finally:
        os.close(lock)
