"""Room on a full disk for what is to free much more: the cache beside the bundles gives back its own."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from profiler.bundles.location import Root
from profiler.errors import ProfilerError
from profiler.store import report_values
from profiler.store.rows import IndexNotWritable

_FULL = (errno.ENOSPC, errno.EDQUOT)
_ROOM_BYTES = 1 << 20  # of which the index needs some to be changed
_CACHED = ("values", "detail")

T = TypeVar("T")


def with_room(root: Root, digests: Collection[str], write: Callable[[], T]) -> T:
    """Do a write; where the disk is full, again without what the cache holds: of these reports, then of all.

    Everything in the cache can be read again from the reports, so a kill in between loses nothing.
    """

    def give_back_own() -> None:
        report_values.forget_reports(root, digests)

    def give_back_all() -> None:
        for name in _CACHED:
            shutil.rmtree(root.cache() / name, ignore_errors=True)

    for give_back in (give_back_own, give_back_all):
        try:
            return write()
        except (OSError, ProfilerError) as error:
            if not _is_of_full_disk(root, error):
                raise
            give_back()
    return write()


def _is_of_full_disk(root: Root, error: BaseException) -> bool:
    if isinstance(error, IndexNotWritable):  # SQLite calls a full disk an error of input or output too
        return _is_full(root.cache())
    return any(isinstance(each, OSError) and each.errno in _FULL for each in (error, error.__cause__))


def _is_full(folder: Path) -> bool:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _ROOM_BYTES or (disk.f_files > 0 and disk.f_favail == 0)
