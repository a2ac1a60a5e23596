"""The process apart in which reports are read: how it is started, limited, asked, waited for and ended."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from profiler.reports import reader_process

PIPE_BYTES = 1 << 20  # room for a typical answer, so that the worker reads on while its last answer waits
_F_SETPIPE_SZ = 1031  # Linux


class Answer(NamedTuple):
    """One framed answer of the worker."""

    head: dict[str, Any]
    blob: bytes


class WorkerLost(Exception):
    """The worker ended, hung or answered nonsense; the message says which, as the end of a sentence."""


def command(memory_bytes: int) -> list[str]:
    """The command line of the worker."""
    spec = importlib.util.find_spec("ncu_report")  # finds it, does not import it
    site = str(Path(spec.origin).parent.parent) if spec and spec.origin else ""
    return [sys.executable, "-I", "-S", reader_process.__file__, site, str(memory_bytes)]


class Worker:
    """A reading process. Requests queue in its pipe and are answered in order; the first one starts it."""

    def __init__(self, memory_bytes: int, argv: Sequence[str] | None = None) -> None:
        self._argv = list(argv) if argv else None
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        """The running process, started where it is not."""
        if self._process is None:
            self._argv = self._argv or command(self._memory_bytes)
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is the parent's to handle
            )
            assert self._process.stdout
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._process.stdout, _F_SETPIPE_SZ, PIPE_BYTES)
        return self._process

    def ask(self, path: Path, timeout_s: float, ordinal: int | None = None) -> None:
        """Queue one request. A worker that is gone is noticed by answer()."""
        request = {"path": str(path.absolute()), "ordinal": ordinal, "timeout_s": timeout_s}
        pipe = self.start().stdin
        assert pipe
        with contextlib.suppress(BrokenPipeError):
            pipe.write(json.dumps(request).encode() + b"\n")
            pipe.flush()

    def answer(self, timeout_s: float) -> Answer:
        """The next answer; raises WorkerLost, after which the next ask() starts a fresh process."""
        deadline = time.monotonic() + timeout_s
        try:
            magic, head_bytes, blob_bytes = reader_process.HEAD.unpack(
                self._take(reader_process.HEAD.size, deadline, timeout_s)
            )
            if magic != reader_process.MAGIC or head_bytes + blob_bytes > self._memory_bytes:
                raise WorkerLost("the reading process answered nonsense")
            head = json.loads(self._take(head_bytes, deadline, timeout_s))
            blob = self._take(blob_bytes, deadline, timeout_s)
        except WorkerLost:
            self.close()
            raise
        if head.get("retired"):
            self.close()
        return Answer(head, blob)

    @property
    def running(self) -> bool:
        """Whether queued requests are still with a process."""
        return self._process is not None

    def _take(self, count: int, deadline: float, timeout_s: float) -> bytes:
        pipe = self.start().stdout
        assert pipe
        parts: list[bytes] = []
        while count:
            wait_s = deadline - time.monotonic()
            if wait_s <= 0 or not select.select([pipe], [], [], wait_s)[0]:
                raise WorkerLost(f"reading it took longer than {timeout_s:g} s")
            part = os.read(pipe.fileno(), min(count, PIPE_BYTES))
            if not part:
                raise WorkerLost(f"the reading library {self._how_it_ended()}")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _how_it_ended(self) -> str:
        process = self.start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(timeout=5)
            if code < 0:
                return f"stopped on it ({signal.Signals(-code).name})"
            return f"stopped on it (exit code {code})"
        return "closed its answers"

    def close(self) -> None:
        """End the process; what it still had queued is lost."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()
