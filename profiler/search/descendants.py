"""Ends whatever a program started, also what left its process group: `setsid`, daemons."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_SET_CHILD_SUBREAPER = 36  # Source: linux/prctl.h
_ROUNDS = 100  # what is killed leaves its own children behind, which are found in the next


@contextlib.contextmanager
def ended_descendants() -> Iterator[None]:
    """Kill what was started within it and is still there, with all that came of it.

    On Linux orphans become children of this process meanwhile; elsewhere nothing is done.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    has_them = hasattr(libc, "prctl") and libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    before = _children()
    try:
        yield
    finally:
        for _ in range(_ROUNDS if has_them else 0):
            left = _children() - before
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            if not left:
                break
        if has_them:
            libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _children() -> set[int]:
    """The processes of which this one is the parent."""
    own, found = os.getpid(), set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of the program, in parentheses, may hold anything.
            if int(stat.read_text("utf-8", "replace").rpartition(")")[2].split()[1]) == own:
                found.add(int(stat.parent.name))
    return found
