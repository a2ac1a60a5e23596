"""How a library built for the CPU is run: in a process of its own, under a schedule, within a time limit."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from profiler.catalog import ATTENTION, Case, check_output
from profiler.catalog.catalog import PROJECT_KERNELS
from profiler.catalog.problem import ALL_STAGES
from profiler.catalog.version import DEFAULT_SHARED_BYTES
from profiler.emulator.cpu_library import RUNTIME, build_cpu_library
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

TIME_LIMIT_S = 60.0  # a cell; the slowest of the lineage takes about 1 s
SHARED_BUDGET_BYTES = DEFAULT_SHARED_BYTES
# What the most generous architecture gives a block (227 KiB): beyond it a launch is refused.
SHARED_LIMIT_BYTES = max(architecture.block_shared_bytes for architecture in ARCHITECTURES.values())
PAGE = 4096


@dataclass(frozen=True)
class Schedule:
    """In which order threads run: seed 0 in order, others at random, even ones also switched at accesses."""

    seed: int

    @property
    def random(self) -> bool:
        """Whether warps, lanes and blocks come in a random order, and cp.async lands early or late."""
        return self.seed > 0

    @property
    def preempt(self) -> float:
        """Chance of a switch before an access."""
        return 0.002 if self.seed > 0 and self.seed % 2 == 0 else 0.0


# ---------------------------------------------------------------- run


class Emulator:
    """A process that runs libraries, started when first used and again after a death; for one thread only."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._arrays = os.memfd_create("cpucuda")  # the arguments' arrays, which both processes map
        self._stderr = os.memfd_create("cpucuda-stderr")
        self._places: dict[Path, SourceLines] = {}

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

        A kernel that crashes or does not end gives an outcome with that finding. Raises CannotJudge where
        the process fails of itself, which says nothing of the kernel.
        """
        arguments, place_of_output = self._lay_out(case)
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
        reply, death = self._ask(job, time_limit_s)
        seconds = time.perf_counter() - begun
        if reply is None:
            return RunResult(None, None, (death,), (), (), seconds)
        size = case.output.nbytes
        written = os.pread(self._arrays, size, place_of_output)
        case.output[...] = np.frombuffer(written, case.output.dtype).reshape(case.output.shape)
        rows = {
            name: [line.split("\t") for line in reply[name].splitlines()]
            for name in ("findings", "banks", "launches")
        }
        known = self._resolve(
            library,
            {int(pc) for row in rows["findings"] for pc in row[1:3]} | {int(row[0]) for row in rows["banks"]},
            source_folder,
        )
        return RunResult(
            reply["rc"],
            check_output(case.output, case.reference, case.tolerance),
            parse_defects(rows["findings"], known),
            parse_traffic(rows["banks"], known),
            parse_launches(rows["launches"]),
            seconds,
        )

    def _lay_out(self, case: Case) -> tuple[list[Any], int]:
        """Put the arrays into the shared file; the arguments for the worker, and where the output lies."""
        arguments: list[Any] = []
        at = output = 0
        for value in case.arguments:
            if isinstance(value, np.ndarray):
                os.pwrite(self._arrays, np.ascontiguousarray(value).tobytes(), at)
                arguments.append([at, value.nbytes, value is case.output])
                if value is case.output:
                    output = at
                at += (value.nbytes + 2 * PAGE - 1) // PAGE * PAGE
            else:
                arguments.append(value)
        os.ftruncate(self._arrays, max(at, PAGE))
        return arguments, output

    def _ask(self, job: dict[str, Any], time_limit_s: float) -> tuple[dict[str, Any] | None, Defect]:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        answer = b""
        until = time.monotonic() + time_limit_s
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
            while not answer.endswith(b"\n"):
                ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
                if not ready:
                    self._stop()
                    return None, Defect("timeout", None, 1, f"did not end within {time_limit_s:g} s")
                part = os.read(process.stdout.fileno(), 1 << 20)
                if not part:
                    break
                answer += part
        if answer.endswith(b"\n"):
            return json.loads(answer), Defect("", None, 0, "")
        code = process.wait()
        self._process = None
        if code >= 0:  # no signal: the worker or the runtime gave up
            raise CannotJudge(f"{job['library']} could not be run (exit code {code}): {self._last_words()}")
        return None, Defect("crash", None, 1, f"its process died: {signal.Signals(-code).name}")

    def _last_words(self) -> str:
        size = os.fstat(self._stderr).st_size
        lines = os.pread(self._stderr, 2000, max(0, size - 2000)).decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it said nothing")

    def _start(self) -> subprocess.Popen[bytes]:
        descriptor = self._arrays
        os.ftruncate(self._stderr, 0)
        os.lseek(self._stderr, 0, os.SEEK_SET)
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(RUNTIME / "worker.py"), str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            pass_fds=(descriptor,),
        )
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _resolve(self, library: Path, offsets: set[int], source_folder: Path) -> SourceLines:
        known = self._places.setdefault(library, {0: None})
        missing = sorted(offsets - known.keys())
        if missing:
            known.update(resolve_lines(library, missing, source_folder))
        return known


# ---------------------------------------------------------------- by hand


def main(argv: Sequence[str] | None = None) -> int:
    """python -m profiler.emulator.emulator SOURCE.cu: one source on one shape, for whoever is writing it."""
    parser = argparse.ArgumentParser(prog="python -m profiler.emulator.emulator", description=main.__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--shape", default="1,2,128,64", help="batch,heads,len,head_dim")
    parser.add_argument("--len-kv", type=int)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--dtype", default="fp16", choices=("fp16", "fp8"))
    parser.add_argument("--only", choices=ATTENTION.stages, default=ALL_STAGES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bank", action="store_true", help="wavefronts a line")
    arguments, flags = parser.parse_known_args(argv)
    if unknown := [flag for flag in flags if not flag.startswith(("-D", "-I"))]:
        parser.error(f"unknown: {' '.join(unknown)}")
    batch, heads, length, head_dim = map(int, arguments.shape.split(","))
    workload = ATTENTION.workload(
        batch=batch,
        heads=heads,
        len_q=length,
        len_kv=arguments.len_kv or length,
        head_dim=head_dim,
        causal=arguments.causal,
        dtype=arguments.dtype,
    )
    library = build_cpu_library(
        arguments.source,
        [*flags, *ATTENTION.stage_flags(arguments.only)],
        [Path(flag[2:]) for flag in flags if flag.startswith("-I")],
    )
    passed = True
    with Emulator() as emulator:
        for seed in range(arguments.seeds):
            case = ATTENTION.case(workload, seed, arguments.only)
            outcome = emulator.run(
                library,
                ATTENTION.symbol,
                case,
                Schedule(seed),
                source_folder=arguments.source.resolve().parent,
            )
            passed = passed and outcome.passed
            word = "PASS" if outcome.passed else "FAIL"
            print(f"seed {seed} {word} rc={outcome.returned} {outcome.seconds:.2f}s {outcome.output_check}")
            for one in outcome.defects[:12]:
                where = f"{one.source.file}:{one.source.line}" if one.source else ""
                print(f"    {one.kind} {where} x{one.count}: {one.text}")
            if arguments.bank and seed == 0:
                _print_banks(outcome)
    return 0 if passed else 1


def _print_banks(outcome: RunResult) -> None:
    for row in sorted(outcome.traffic, key=lambda one: -one.conflicts):
        where = f"{row.source.file}:{row.source.line} {row.kind}"
        counts = f"{row.requests:8d} requests {row.wavefronts:8d} wavefronts {row.conflicts:8d} conflicts"
        print(f"    {where:32s} {counts}")
    total = sum(row.wavefronts for row in outcome.traffic)
    print(f"    {sum(row.conflicts for row in outcome.traffic)} conflicts of {total} wavefronts")
    for launch in outcome.launches:
        print(f"    {launch}")


if __name__ == "__main__":
    sys.exit(main())
