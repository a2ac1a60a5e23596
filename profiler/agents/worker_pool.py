"""The processes that answer calls, as the server sees them: started when needed, ended with their call."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

import profiler
from profiler.agents.roots import Roots
from profiler.errors import Exit

MOST_WORKERS = 2
_MOST_ANSWER = 4 << 20  # bytes of a line from a worker
_PIECE = 1 << 16  # bytes that are read of it at a time: what a pipe holds


class _Ended(Exception):
    """A process ended in the middle of its answer, or answered without end."""


class WorkerPool:
    """At most MOST_WORKERS processes; a call that is cancelled, or takes too long, ends its own."""

    def __init__(self, roots: Roots, time_limit_s: float) -> None:
        self._roots = roots
        self._time_limit_s = time_limit_s
        self._free: list[_Worker] = []
        self._all: list[_Worker] = []
        self._slots = anyio.Semaphore(MOST_WORKERS)

    async def ask(self, tool: str, arguments: Mapping[str, Any], budget: int) -> dict[str, Any]:
        """The answer of a worker, or an error in its form: a call never fails for another call's sake."""
        async with self._slots:
            worker = self._free.pop() if self._free else self._start()
            is_sound = False
            try:
                with anyio.fail_after(self._time_limit_s):
                    reply = await worker.ask({"tool": tool, "arguments": arguments, "budget": budget})
                is_sound = True
                return reply
            except TimeoutError:
                message = (
                    f"no answer within {self._time_limit_s:g} s, and the call was ended: ask for less with "
                    "kernel or workload, or start `profiler mcp --time-limit SECONDS`"
                )
                return {"error": message, "exit_code": int(Exit.UNJUDGED)}
            except (_Ended, BrokenPipeError):
                message = (
                    "the process that answers ended in the middle, perhaps for want of memory: ask for less"
                )
                return {"error": message, "exit_code": int(Exit.UNUSABLE_INPUT)}
            finally:
                if is_sound:
                    self._free.append(worker)
                else:
                    self._all.remove(worker)
                    await worker.end()

    def warm(self) -> None:
        """Start the first worker before somebody asks: what it loads takes longer than most answers."""
        if not self._all:
            self._free.append(self._start())

    async def close(self) -> None:
        """End all workers."""
        while self._all:
            await self._all.pop().end()
        self._free.clear()

    def _start(self) -> _Worker:
        worker = _Worker(self._roots)
        self._all.append(worker)
        return worker


class _Worker:
    """One process that answers, in the first of the folders; it records nothing.

    Not a process of anyio's, which needs a running event loop: the first one starts while the SDK is loaded.
    """

    def __init__(self, roots: Roots) -> None:
        package = str(Path(profiler.__file__).resolve().parent.parent)
        paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PROFILER_DATA": roots.data,
            "PROFILER_READ_ONLY": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "profiler.agents.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=roots.folders[0],
            env=environment,
            bufsize=0,
            start_new_session=True,  # so that what it starts ends with it
        )
        assert self._process.stdin
        assert self._process.stdout
        self._requests, self._answers = self._process.stdin, self._process.stdout
        os.set_blocking(self._requests.fileno(), False)
        os.set_blocking(self._answers.fileno(), False)
        self._unsent = memoryview(_line({"folders": list(map(str, roots.folders)), "data": roots.data}))
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # who asks first sends it, and is told
            self._send()

    async def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer. Raises _Ended or BrokenPipeError where there is none."""
        self._unsent = memoryview(bytes(self._unsent) + _line(request))
        while self._unsent:
            try:
                self._send()
            except BlockingIOError:
                await anyio.wait_writable(self._requests)
        answer = bytearray()
        while not answer.endswith(b"\n"):
            await anyio.wait_readable(self._answers)
            piece = os.read(self._answers.fileno(), _PIECE)
            if not piece or len(answer) > _MOST_ANSWER:
                raise _Ended
            answer += piece
        reply: dict[str, Any] = json.loads(answer)
        return reply

    def _send(self) -> None:
        """Send what the pipe takes of what is not sent."""
        self._unsent = self._unsent[os.write(self._requests.fileno(), self._unsent) :]

    async def end(self) -> None:
        """Kill it and all it started, and take its exit status."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._process.wait)
        self._requests.close()
        self._answers.close()


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
