"""`backup` and `restore`: runs, decisions and searches of a data folder as one file, and back."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import backup, bundle, location
from profiler.store import sync
from profiler.store.sync import Progress

if TYPE_CHECKING:
    from profiler.store.sync import SyncSummary


def back_up(
    target: Path, *, data: str | None = None, progress: Progress | None = None
) -> backup.BackupSummary:
    """Write all runs, decisions and searches as one tar.gz, whole or not at all. Raises ProfilerError."""
    return backup.write_backup(location.open_root(data), target, progress)


def restore_backup(
    path: Path, *, data: str | None = None, progress: Progress | None = None
) -> tuple[backup.RestoreSummary, SyncSummary]:
    """Put a backup into the data folder, and the new runs into the index.

    The whole file is checked before anything of it is taken. Raises BadBundle for one that is damaged.
    """
    backup.check_backup(path)
    root = location.open_root(data)
    with bundle.importing(root):
        restored = backup.restore(root, path, progress)
    with contextlib.closing(sync.unsynced_store(root)) as store:
        return restored, sync.sync_store(root, store)
