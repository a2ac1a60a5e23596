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
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

import profiler
from profiler.agents.roots import Roots
from profiler.errors import Exit

MOST_WORKERS = 2
_MOST_ANSWER = 4 << 20  # bytes of a line from a worker


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
            worker = self._free.pop() if self._free else await self._start()
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
            except (
                anyio.EndOfStream,
                anyio.IncompleteRead,
                anyio.DelimiterNotFound,
                anyio.BrokenResourceError,
            ):
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

    async def warm(self) -> None:
        """Start the first worker before somebody asks: what it loads takes longer than most answers."""
        async with self._slots:
            if not self._all:
                self._free.append(await self._start())

    async def close(self) -> None:
        """End all workers."""
        while self._all:
            await self._all.pop().end()
        self._free.clear()

    async def _start(self) -> _Worker:
        worker = await _Worker.start(self._roots)
        self._all.append(worker)
        return worker


class _Worker:
    """One process that answers."""

    def __init__(self, process: Process) -> None:
        assert process.stdout
        self._process = process
        self._lines = BufferedByteReceiveStream(process.stdout)

    @classmethod
    async def start(cls, roots: Roots) -> _Worker:
        """A process in the first of the folders, which records nothing."""
        package = str(Path(profiler.__file__).resolve().parent.parent)
        paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PROFILER_DATA": roots.data,
            "PROFILER_READ_ONLY": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        process = await anyio.open_process(
            [sys.executable, "-P", "-m", "profiler.agents.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            cwd=roots.folders[0],
            env=environment,
            start_new_session=True,  # so that what it starts ends with it
        )
        worker = cls(process)
        await worker._send({"folders": list(map(str, roots.folders)), "data": roots.data})
        return worker

    async def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        await self._send(request)
        line = await self._lines.receive_until(b"\n", _MOST_ANSWER)
        reply: dict[str, Any] = json.loads(line)
        return reply

    async def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin
        await self._process.stdin.send(json.dumps(message).encode() + b"\n")

    async def end(self) -> None:
        """Kill it and all it started, and take its exit status."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await self._process.aclose()
