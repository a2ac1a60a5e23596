"""Runs a library built for the CPU: in a process of its own, under a schedule, within a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from profiler.catalog import Case, check_output
from profiler.catalog.catalog import PROJECT_KERNELS
from profiler.catalog.version import DEFAULT_SHARED_BYTES
from profiler.emulator.cpu_library import RUNTIME
from profiler.emulator.run_result import (
    Defect,
    RunResult,
    SourceLines,
    parse_defects,
    parse_launches,
    parse_traffic,
    resolve_lines,
)
from profiler.errors import CannotJudge
from profiler.evidence import ARCHITECTURES

TIME_LIMIT_S = 60.0  # of one run; the slowest of the lineage takes about 1 s
SHARED_BUDGET_BYTES = DEFAULT_SHARED_BYTES
# What the most generous architecture gives a block (227 KiB): beyond it a launch is refused.
SHARED_LIMIT_BYTES = max(architecture.block_shared_bytes for architecture in ARCHITECTURES.values())
PAGE = 4096


@dataclass(frozen=True)
class Schedule:
    """In which order threads run."""

    seed: int  # 0: in order; others at random; even ones also switch threads before accesses

    @property
    def random(self) -> bool:
        """Whether warps, lanes and blocks come in a random order, and cp.async lands early or late."""
        return self.seed > 0

    @property
    def preempt(self) -> float:
        """The chance that another thread goes on before an access."""
        return 0.002 if self.seed > 0 and self.seed % 2 == 0 else 0.0


class Emulator:
    """A process that runs libraries. It is started on first use, and again after it died.

    For one thread at a time.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._arrays = os.memfd_create("cpucuda")  # holds the arguments' arrays; both processes map it
        self._stderr = os.memfd_create("cpucuda-stderr")
        self._lines: dict[Path, SourceLines] = {}  # of code offsets, by library

    def __enter__(self) -> Emulator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._stop()
        os.close(self._arrays)
        os.close(self._stderr)

    def run(
        self,
        library: Path,
        symbol: str,
        case: Case,
        schedule: Schedule,
        *,
        source_folder: Path = PROJECT_KERNELS,
        budget_bytes: int = SHARED_BUDGET_BYTES,
        limit_bytes: int = SHARED_LIMIT_BYTES,
        time_limit_s: float = TIME_LIMIT_S,
    ) -> RunResult:
        """Call the library's function on a case; case.output is filled with what it wrote.

        A kernel that crashes or does not end gives a result with that defect. Raises CannotJudge where the
        process fails by itself, which says nothing about the kernel.
        """
        arguments, output_offset = self._write_arrays(case)
        job = {
            "library": str(library),
            "symbol": symbol,
            "arguments": [*arguments, None],  # the stream
            "seed": schedule.seed,
            "random": schedule.random,
            "preempt": schedule.preempt,
            "device_limit": limit_bytes,
            "budget": budget_bytes,
        }
        begun = time.perf_counter()
        reply = self._ask(job, time_limit_s)
        seconds = time.perf_counter() - begun
        if isinstance(reply, Defect):
            return RunResult(None, None, (reply,), (), (), seconds)
        written = os.pread(self._arrays, case.output.nbytes, output_offset)
        case.output[...] = np.frombuffer(written, case.output.dtype).reshape(case.output.shape)
        rows = {
            name: [line.split("\t") for line in reply[name].splitlines()]
            for name in ("defects", "banks", "launches")
        }
        offsets = {int(pc) for row in rows["defects"] for pc in row[1:3]}
        offsets |= {int(row[0]) for row in rows["banks"]}
        lines = self._resolve(library, offsets, source_folder)
        return RunResult(
            reply["rc"],
            check_output(case.output, case.reference, case.tolerance),
            parse_defects(rows["defects"], lines),
            parse_traffic(rows["banks"], lines),
            parse_launches(rows["launches"]),
            seconds,
        )

    def _write_arrays(self, case: Case) -> tuple[list[Any], int]:
        """Put the arrays into the shared file. The arguments for the worker, and the output's offset."""
        arguments: list[Any] = []
        offset = output_offset = 0
        for value in case.arguments:
            if isinstance(value, np.ndarray):
                os.pwrite(self._arrays, np.ascontiguousarray(value).tobytes(), offset)
                is_output = value is case.output
                arguments.append([offset, value.nbytes, is_output])
                if is_output:
                    output_offset = offset
                # A page stays free behind it, so that an access past its end meets no other array.
                offset += (value.nbytes + 2 * PAGE - 1) // PAGE * PAGE
            else:
                arguments.append(value)
        os.ftruncate(self._arrays, max(offset, PAGE))
        return arguments, output_offset

    def _ask(self, job: dict[str, Any], time_limit_s: float) -> dict[str, Any] | Defect:
        """The worker's reply to a job; the defect where it died of it or did not end."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        answer = b""
        deadline = time.monotonic() + time_limit_s
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
            while not answer.endswith(b"\n"):
                ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
                if not ready:
                    self._stop()
                    return Defect("timeout", None, 1, f"did not end within {time_limit_s:g} s")
                part = os.read(process.stdout.fileno(), 1 << 20)
                if not part:
                    break
                answer += part
        if answer.endswith(b"\n"):
            reply: dict[str, Any] = json.loads(answer)
            return reply
        code = process.wait()
        self._process = None
        if code >= 0:  # no signal: the worker or the runtime gave up
            raise CannotJudge(f"{job['library']} could not be run (exit code {code}): {self._last_words()}")
        return Defect("crash", None, 1, f"its process died: {signal.Signals(-code).name}")

    def _last_words(self) -> str:
        size = os.fstat(self._stderr).st_size
        lines = os.pread(self._stderr, 2000, max(0, size - 2000)).decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it said nothing")

    def _start(self) -> subprocess.Popen[bytes]:
        os.ftruncate(self._stderr, 0)
        os.lseek(self._stderr, 0, os.SEEK_SET)
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(RUNTIME / "worker.py"), str(self._arrays)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            pass_fds=(self._arrays,),
        )
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _resolve(self, library: Path, offsets: set[int], source_folder: Path) -> SourceLines:
        """The lines of code offsets, each looked up once for a library."""
        lines = self._lines.setdefault(library, {0: None})
        unresolved = sorted(offsets - lines.keys())
        if unresolved:
            lines.update(resolve_lines(library, unresolved, source_folder))
        return lines
