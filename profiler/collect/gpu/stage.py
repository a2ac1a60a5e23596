"""What programs that run kernels do alike: request in, result out, versions loaded, arrays on the GPU."""

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

from profiler.catalog import Case, Catalog, Problem, Workload, catalog, sources
from profiler.collect.gpu import cases
from profiler.collect.gpu.calls import LaunchRefused
from profiler.errors import CannotJudge, ProfilerError

Json = dict[str, Any]

DIE_WITH_PARENT = "PROFILER_RUNNER"  # in the environment: the pid of the runner
_PR_SET_PDEATHSIG = 1


class Skipped(Exception):
    """The stage cannot run on this machine; the message says what is missing. Says nothing of a version."""


# ---------------------------------------------------------------- the protocol


def main(work: Callable[[Json], Json], argv: Sequence[str] | None = None) -> int:
    """Read REQUEST.json, do the work, write RESULT.json whole; an error is a result too, with its reason."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if len(arguments) != 2:
        print("usage: python -m profiler.STAGE REQUEST.json RESULT.json", file=sys.stderr)
        return 2
    _die_with_parent()
    try:
        result = work(json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    except Skipped as missing:
        result = {"status": "skipped", "reason": str(missing), "machine": True}
    except Exception as error:
        traceback.print_exc()
        result = {"status": error_status(error), "reason": error_reason(error)}
    write(result, Path(arguments[1]))
    return 0


def write(result: Json, path: Path) -> None:
    """Whole or not at all. What is no number is null: JSON has no NaN."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(jsonable(result), allow_nan=False), encoding="utf-8")
    os.replace(part, path)


def jsonable(value: Any) -> Any:
    """The value with nothing that JSON lacks."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(one) for one in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return value


def error_status(error: BaseException) -> str:
    """skipped for what somebody else's kernel does not take or is not there for, else failed."""
    return "skipped" if isinstance(error, Skipped | CannotJudge) else "failed"


def error_reason(error: BaseException) -> str:
    """An exception as a reason: one line, and what kind it is where its message does not say."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    if type(error).__name__ == "OutOfMemoryError":
        return f"out of GPU memory: {first}"
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, KeyError):
        return f"the request has no {first}"
    if isinstance(error, LaunchRefused | ProfilerError) or "CUDA" in first:
        return first
    return f"{type(error).__name__}: {first}"


def _die_with_parent() -> None:
    """A stage whose runner was killed must not go on using the GPU.

    Only where the runner is the parent: the signal is sent when the thread ends that made this process, and
    nobody knows which thread of ncu that is.
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


def problem_of(request: Json) -> tuple[Catalog, Problem]:
    """The catalogue's place, without its versions, and the problem that it solves."""
    path = Path(request.get("catalog") or catalog.default_catalog()).resolve()
    reference = request.get("problem") or "profiler.catalog.attention:ATTENTION"
    place = Catalog(path, request.get("family", ""), reference, (), ())
    problem: Problem = sources.load_object(place, reference)
    return place, problem


def case_of(request: Json, problem: Problem, workload: Workload) -> Case:
    """The request's case: equal seeds give equal inputs here and in the check on the CPU."""
    folder = request.get("cases")
    return cases.load_or_make(
        problem, workload, int(request.get("seed", 0)), Path(folder) if folder else None
    )


# ---------------------------------------------------------------- arrays on the GPU


# ---------------------------------------------------------------- versions
