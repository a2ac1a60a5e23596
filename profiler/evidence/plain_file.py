"""Files that a user names: what a path leads to that is no file, and reading one without ever waiting."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_SPECIAL_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def special_kind(path: Path) -> str | None:
    """What a path leads to that is neither file nor folder; such a thing is not opened: that may block."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    return _SPECIAL_KINDS.get(stat.S_IFMT(mode))


def read_plain(path: Path, most_bytes: int) -> bytes:
    """The bytes of a file, or one more than `most_bytes` of a larger one.

    A pipe, device or socket is an OSError at once: reading one may wait for ever, or never end.
    """
    if (kind := special_kind(path)) is not None:
        raise OSError(errno.EINVAL, f"{kind}, not a file", str(path))
    # Without O_NONBLOCK, opening a pipe that took the file's place waits for whoever writes into it.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(most_bytes + 1)
