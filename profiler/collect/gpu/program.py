"""What the programs of this folder share: read a request, write a result, turn an error into a reason."""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from profiler.catalog import catalog, sources
from profiler.catalog.catalog import Catalog
from profiler.catalog.problem import Case, Problem, Workload
from profiler.collect.gpu import cases
from profiler.collect.gpu.calls import LaunchRefused
from profiler.collect.gpu.messages import ProblemSetup, Program, RequestT, ResultT
from profiler.collect.gpu.typed_json import BadJson, parse
from profiler.errors import CannotJudge, ProfilerError

DIE_WITH_PARENT = "PROFILER_RUNNER"  # in the environment: the pid of the runner, see subprocesses
_PR_SET_PDEATHSIG = 1  # Source: linux/prctl.h


class Skipped(Exception):
    """This machine cannot run the program; the message says what is missing."""


def main(
    program: Program[RequestT, ResultT],
    work: Callable[[RequestT], ResultT],
    argv: Sequence[str] | None = None,
) -> int:
    """Read REQUEST.json, do the work, write RESULT.json whole; an error is a result too, with its reason."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if len(arguments) != 2:
        print("usage: python -m profiler.STAGE REQUEST.json RESULT.json", file=sys.stderr)
        return 2
    _die_with_parent()
    result: object
    try:
        content = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        result = work(parse(program.request, content, "the request"))
    except Skipped as missing:
        result = {"status": "skipped", "reason": str(missing), "machine": True}
    except Exception as error:
        traceback.print_exc()  # into the log, whose end is printed where the job failed
        result = {"status": error_status(error), "reason": error_reason(error)}
    _write(result, Path(arguments[1]))
    return 0


def _write(result: object, path: Path) -> None:
    """Write the result whole or not at all: a program may be killed at any time."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    partial.write_text(json.dumps(jsonable(result), allow_nan=False), encoding="utf-8")
    os.replace(partial, path)


def jsonable(value: Any) -> Any:
    """The value as JSON types; NaN and the infinities, which JSON lacks, become null."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return value


def error_status(error: BaseException) -> str:
    """`skipped` where a library does not take the problem or is not installed, else `failed`."""
    return "skipped" if isinstance(error, Skipped | CannotJudge) else "failed"


def error_reason(error: BaseException) -> str:
    """An exception as a reason: one line, which names the exception's type unless the message says enough."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    if type(error).__name__ == "OutOfMemoryError":  # torch's, which is not imported for this
        return f"out of GPU memory: {first}"
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, BadJson | LaunchRefused | ProfilerError) or "CUDA" in first:
        return first
    return f"{type(error).__name__}: {first}"


def _die_with_parent() -> None:
    """End with the runner: a program whose runner was killed must not go on using the GPU.

    This is asked for only where the runner is the parent: the kernel sends the signal when the thread that
    made this process ends, and nobody knows which thread of ncu that is.
    """
    if os.environ.get(DIE_WITH_PARENT) != str(os.getppid()):
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


# ---------------------------------------------------------------- torch, problem, case


def require_gpu() -> Any:
    """torch, with its first GPU ready. Raises Skipped where there is none."""
    try:
        import torch
    except ImportError as error:
        raise Skipped(f"torch is not installed ({error}): install a CUDA build of it") from None
    if not torch.cuda.is_available():
        built = torch.version.cuda
        why = "this torch is a CPU build" if built is None else f"torch {torch.__version__} sees none"
        raise Skipped(f"no GPU: {why}")
    torch.cuda.init()
    return torch


def load_problem(setup: ProblemSetup) -> tuple[Catalog, Problem]:
    """The problem, and its catalogue, of which only the path is known here."""
    path = Path(setup.catalog or catalog.default_catalog()).resolve()
    reference = setup.problem or "profiler.catalog.attention:ATTENTION"
    place = Catalog(path, setup.family, reference, (), ())
    problem: Problem = sources.load_object(place, reference)
    return place, problem


def load_case(setup: ProblemSetup, problem: Problem, workload: Workload) -> Case:
    """The case of the setup's seed: equal seeds give equal inputs here and in the check on the CPU."""
    return cases.load_or_make(problem, workload, setup.seed, Path(setup.cases) if setup.cases else None)
