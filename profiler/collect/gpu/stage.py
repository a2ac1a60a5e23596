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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from profiler.catalog import Case, Catalog, Problem, Workload, catalog, sources
from profiler.catalog.problem import Array
from profiler.collect.gpu import cases
from profiler.errors import CannotJudge, ProfilerError

Json = dict[str, Any]
Call = Callable[[], Any]  # one launch on torch's current stream; gives the output tensor

GUARD_BYTES = 4096  # before and after an output: a write there is a write outside
_GUARD = 0xA5
DIE_WITH_PARENT = "PROFILER_RUNNER"  # in the environment: the pid of the runner
_PR_SET_PDEATHSIG = 1

# Source: driver_types.h, enum cudaError.
CUDA_ERRORS = {
    1: "cudaErrorInvalidValue",
    2: "cudaErrorMemoryAllocation",
    3: "cudaErrorInitializationError",
    9: "cudaErrorInvalidConfiguration",
    35: "cudaErrorInsufficientDriver",
    98: "cudaErrorInvalidDeviceFunction",
    100: "cudaErrorNoDevice",
    209: "cudaErrorNoKernelImageForDevice",
    700: "cudaErrorIllegalAddress",
    701: "cudaErrorLaunchOutOfResources",
    702: "cudaErrorLaunchTimeout",
    715: "cudaErrorIllegalInstruction",
    716: "cudaErrorMisalignedAddress",
    719: "cudaErrorLaunchFailure",
    801: "cudaErrorNotSupported",
    803: "cudaErrorSystemDriverMismatch",
    999: "cudaErrorUnknown",
}


class Skipped(Exception):
    """The stage cannot run on this machine; the message says what is missing. Says nothing of a version."""


class LaunchRefused(Exception):
    """A version's function returned an error instead of launching."""

    def __init__(self, code: int) -> None:
        super().__init__(f"launch refused: {CUDA_ERRORS.get(code, 'CUDA error')} ({code})")
        self.code = code


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
    reference = request.get("problem") or "profiler.catalog.problem:ATTENTION"
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


@dataclass(frozen=True)
class Buffers:
    """One case's arrays on the GPU; numbers and None as they were."""

    arguments: tuple[Any, ...]
    operands: tuple[Any, ...]
    output: Any  # a view of `guarded`
    guarded: Any  # bytes: GUARD_BYTES before and after the output
    poison: Any  # what the output holds before a launch

    @property
    def nbytes(self) -> int:
        """What one launch reads and writes at least once, if it uses all of its arguments."""
        return sum(one.nbytes for one in self.arguments if hasattr(one, "data_ptr"))

    def reset(self) -> None:
        """Poison the output and renew its guards."""
        self.guarded.fill_(_GUARD)
        self.output.copy_(self.poison)

    def outside(self) -> bool:
        """Whether something wrote beside the output."""
        ends = (self.guarded[:GUARD_BYTES], self.guarded[-GUARD_BYTES:])
        return any(bool((end != _GUARD).any().item()) for end in ends)


def upload(torch: Any, case: Case, shift: int = 0) -> Buffers:
    """The case on the GPU. shift rolls every input by so many elements: other data of the same kind."""
    on_gpu: dict[int, Any] = {}
    kept: list[Array] = []  # ids of arrays are theirs as long as they live

    def tensor(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in on_gpu:
            array = np.ascontiguousarray(value)
            if shift:
                array = np.roll(array.reshape(-1), shift).reshape(array.shape)
            kept.append(value)
            on_gpu[id(value)] = torch.from_numpy(array).cuda()
        return on_gpu[id(value)]

    poison = torch.from_numpy(np.ascontiguousarray(case.output)).cuda()
    guarded = torch.full((case.output.nbytes + 2 * GUARD_BYTES,), _GUARD, dtype=torch.uint8, device="cuda")
    inside = guarded[GUARD_BYTES : GUARD_BYTES + case.output.nbytes]
    output = inside.view(poison.dtype).view(poison.shape)
    output.copy_(poison)
    on_gpu[id(case.output)] = output
    kept.append(case.output)
    arguments = tuple(tensor(value) for value in case.arguments)
    return Buffers(arguments, tuple(tensor(value) for value in case.operands), output, guarded, poison)


# ---------------------------------------------------------------- versions


def bind(torch: Any, place: Catalog, problem: Problem, version: Json, buffers: Buffers) -> Call:
    """A version as a call on these arrays: a library's C function, or a Python callable on the operands."""
    if version.get("library"):
        return _bind_library(torch, Path(version["library"]), problem.symbol, buffers)
    if not version.get("callable"):
        raise ValueError(f"version {version.get('id')} has neither a library nor a callable")
    function = sources.load_object(place, version["callable"])
    operands = buffers.operands
    return lambda: function(*operands)


def _bind_library(torch: Any, path: Path, symbol: str, buffers: Buffers) -> Call:
    try:
        library = ctypes.CDLL(str(path))
        function = getattr(library, symbol)
    except OSError as error:
        raise RuntimeError(f"{path.name} cannot be loaded: {error}") from None
    except AttributeError:
        raise RuntimeError(f"{path.name} has no function {symbol}") from None
    function.restype = ctypes.c_int
    fixed = [c_argument(value) for value in buffers.arguments]
    current_stream, output = torch.cuda.current_stream, buffers.output

    def call() -> Any:
        code = function(*fixed, ctypes.c_void_p(current_stream().cuda_stream))
        if code:
            raise LaunchRefused(code)
        return output

    return call


def c_argument(value: Any) -> Any:
    """A tensor's address, a number or NULL, as the C function takes it."""
    if hasattr(value, "data_ptr"):
        return ctypes.c_void_p(value.data_ptr())
    if value is None:
        return ctypes.c_void_p(None)
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int(int(value))
