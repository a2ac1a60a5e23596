"""A report with some of its metrics alone, in memory, at a path at which another process can read it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


class SelectedFile:
    """Content that the reader opens like a file, until it is closed. The disk may be full: it takes none."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._descriptor = os.memfd_create("selected")
        left = memoryview(b"".join(pieces))
        while left:
            left = left[os.write(self._descriptor, left) :]

    @property
    def path(self) -> Path:
        """Where it is while it is open, for processes of the same user."""
        return Path(f"/proc/{os.getpid()}/fd/{self._descriptor}")

    def close(self) -> None:
        """Give the memory back; what was opened before stays readable."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
