"""Runs a library built for the CPU: in a process of its own, under a schedule, within a time limit."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from profiler.catalog.catalog import PROJECT_KERNELS
from profiler.catalog.problem import Case
from profiler.catalog.version import DEFAULT_SHARED_BYTES
from profiler.emulator.cpu_library import RUNTIME
from profiler.emulator.run_result import (
    AddressRange,
    Defect,
    RunResult,
    SourceLines,
    parse_defects,
    parse_launches,
    parse_traffic,
    resolve_lines,
)
from profiler.errors import CannotJudge
from profiler.evidence.gpu_arch import ARCHITECTURES

TIME_LIMIT_S = 10.0  # of one run, of the worker's time on a processor
WAIT_FACTOR = 4  # on a busy machine it may take so many times as long
SHARED_BUDGET_BYTES = DEFAULT_SHARED_BYTES
# What the most generous architecture gives a block (227 KiB): beyond it a launch is refused.
SHARED_LIMIT_BYTES = max(architecture.block_shared_bytes for architecture in ARCHITECTURES.values())
PAGE = 4096
_STDERR_BYTES = 1 << 16  # at most, of what a process said


class Landing(IntEnum):
    """When what a thread starts and does not do itself takes effect: TMA's copies, and wgmma."""

    LATE = 0  # when nothing else can run, or a wait needs it
    ROWS = 1  # at random points in between, row by row
    AT_ONCE = 2  # where it is started

    @property
    def label(self) -> str:
        """As options and documents write it: `late`, `rows` or `at-once`."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Schedule:
    """In which order threads run, and what works on its own beside them."""

    seed: int  # 0: in order; others at random; even ones also switch threads before accesses
    # When TMA and wgmma take effect; None leaves it to the seed, three of which in a row have all three.
    landing: Landing | None = None

    @property
    def random(self) -> bool:
        """Whether warps, lanes and blocks come in a random order, and cp.async lands early or late."""
        return self.seed > 0

    @property
    def preempt(self) -> float:
        """The chance that another thread goes on before an access."""
        return 0.002 if self.seed > 0 and self.seed % 2 == 0 else 0.0

    @property
    def lands(self) -> Landing:
        """When TMA and wgmma take effect in this schedule."""
        return Landing(self.seed % len(Landing)) if self.landing is None else self.landing


class Emulator:
    """A process that runs libraries. It is started on first use, and again after it died.

    For one thread at a time.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._arrays = os.memfd_create("cpucuda")  # holds the arguments' arrays; both processes map it
        self._stderr = os.memfd_create("cpucuda-stderr")  # of the running call
        fcntl.fcntl(self._stderr, fcntl.F_SETFL, os.O_APPEND)
        self._stopped_at: list[int] = []  # code offsets where the last run was that did not come back
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
        fresh: bool = False,
        only_launch: bool = False,
        moved_bytes: Mapping[int, int] | None = None,
    ) -> RunResult:
        """Call the library's function on a case; case.output is filled with what it wrote.

        `limit_bytes`: of shared memory that a block may have; with 0 every launch is refused. `fresh`: the
        library is loaded anew, with no state of earlier calls. `only_launch`: launches that a GPU would
        take are taken, and no block of them is run. `moved_bytes`: how far on the pointer to an array is
        moved, by the argument's position from 0.
        A kernel that crashes or does not end gives a result with that defect. Raises CannotJudge where the
        process fails by itself, which says nothing about the kernel.
        """
        arguments, output_offset = self._write_arrays(case)
        for position, distance in (moved_bytes or {}).items():
            arguments[position][-1] += distance
        job = {
            "fresh": fresh,
            "library": str(library),
            "symbol": symbol,
            "arguments": arguments,
            "seed": schedule.seed,
            "random": schedule.random,
            "preempt": schedule.preempt,
            "landing": int(schedule.lands),
            "device_limit": limit_bytes,
            "budget": budget_bytes,
            "run": not only_launch,
        }
        begun = time.perf_counter()
        reply = self._ask(job, time_limit_s)
        seconds = time.perf_counter() - begun
        if isinstance(reply, Defect):
            seen = [line.split("\t")[1:] for line in self._stderr_lines() if line.startswith("finding\t")]
            offsets = {*self._stopped_at, *(int(pc) for row in seen for pc in row[1:3])}
            places = self._resolve(library, offsets, source_folder)
            lines_of_source = (places[offset] for offset in self._stopped_at)
            reply = replace(reply, source=next((line for line in lines_of_source if line), None))
            return RunResult(None, None, (*parse_defects(seen, places), reply), (), (), seconds)
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
            case.check(),
            parse_defects(rows["defects"], lines),
            parse_traffic(rows["banks"], lines),
            parse_launches(rows["launches"], _argument_ranges(arguments, reply["base"])),
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
                arguments.append([offset, value.nbytes, is_output, offset])
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
        self._stopped_at = []
        os.ftruncate(self._stderr, 0)
        begun, used = time.monotonic(), _processor_seconds(process.pid)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
            while not answer.endswith(b"\n"):
                ready, _, _ = select.select([process.stdout], [], [], min(1.0, time_limit_s / 4))
                if not ready:
                    # What takes long on a busy machine has not used its time.
                    waited = time.monotonic() - begun
                    is_busy = _processor_seconds(process.pid) - used >= time_limit_s
                    if waited < time_limit_s or (waited < WAIT_FACTOR * time_limit_s and not is_busy):
                        continue
                    self._stopped_at = self._stop_and_ask_where()
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
        word, self._stopped_at = self._last_place()
        if code >= 0 and word != "exit":  # no signal: the worker or the runtime gave up
            raise CannotJudge(f"{job['library']} could not be run (exit code {code}): {self._last_words()}")
        ended = f"it called exit({code})" if code >= 0 else f"its process died: {signal.Signals(-code).name}"
        words = [line for line in self._stderr_lines() if not line.startswith(("finding\t", "at ", "exit "))]
        return Defect("crash", None, 1, ": ".join((ended, *words[-1:])))  # what an assert says, say

    def _stderr_lines(self) -> list[str]:
        """What the process said in this run, without empty lines."""
        size = os.fstat(self._stderr).st_size
        text = os.pread(self._stderr, _STDERR_BYTES, max(0, size - _STDERR_BYTES)).decode(errors="replace")
        return [line for line in text.split("\n") if line.strip()]

    def _last_words(self) -> str:
        return (self._stderr_lines() or ["it said nothing"])[-1]

    def _last_place(self) -> tuple[str, list[int]]:
        """What the runtime said last of where it was: `at` or `exit`, and code offsets, innermost first."""
        word, *offsets = self._last_words().split()
        return (word, [int(offset) for offset in offsets]) if word in ("at", "exit") else ("", [])

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(RUNTIME / "worker.py"), str(self._arrays)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            pass_fds=(self._arrays,),
        )
        return self._process

    def _stop_and_ask_where(self) -> list[int]:
        """End the process; the code offsets where it was, innermost first, as the runtime tells them."""
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        self._stop()
        return self._last_place()[1]

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


def _argument_ranges(arguments: list[Any], base: int) -> list[AddressRange]:
    """Where the arrays lay in the worker, from what `_write_arrays` says and where the file was mapped."""
    return [
        AddressRange(position, base + value[0], value[1])
        for position, value in enumerate(arguments)
        if isinstance(value, list)
    ]


def time_limit_s(flops: int, case: Case) -> float:
    """How long a run of so many operations may take: several times what the slowest good kernels take.

    These take about 0.1 s for a million operations, and less for a million bytes read once.
    """
    array_bytes = sum(value.nbytes for value in case.arguments if isinstance(value, np.ndarray))
    return max(TIME_LIMIT_S, flops / 1e6, array_bytes / 1e6)


def _processor_seconds(process: int) -> float:
    """What a process has used so far. Source: proc(5), /proc/pid/stat, utime and stime."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
