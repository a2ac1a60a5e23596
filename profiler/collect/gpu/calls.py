"""A version as a Python call: a library's C function, a callable on tensors, or a plan of launches."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from profiler.catalog import sources
from profiler.catalog.catalog import Catalog
from profiler.catalog.problem import Problem
from profiler.collect.gpu.buffers import Buffers
from profiler.collect.gpu.messages import VersionCode
from profiler.collect.gpu.module_launch import PlannedCall

Call = Callable[[], Any]  # one launch on torch's current stream; gives the output tensor

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


class LaunchRefused(Exception):
    """A version's function returned an error instead of launching."""

    def __init__(self, code: int) -> None:
        super().__init__(f"launch refused: {CUDA_ERRORS.get(code, 'CUDA error')} ({code})")
        self.code = code


def bind(torch: Any, catalog: Catalog, problem: Problem, version: VersionCode, buffers: Buffers) -> Call:
    """A version as a call on these arrays. Raises where it cannot be loaded or does not take them."""
    if version.library:
        return _bind_library(torch, Path(version.library), problem.symbol, buffers)
    if version.plan:
        return PlannedCall(torch, Path(version.plan), buffers)
    if not version.callable:
        raise ValueError(f"version {version.id} has neither a library nor a callable nor a plan")
    function = sources.load_object(catalog, version.callable)
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
    # Converted once, because what a call costs the host is part of a short call's latency.
    arguments = [c_argument(value) for value in buffers.arguments]
    current_stream, output = torch.cuda.current_stream, buffers.output

    def call() -> Any:
        code = function(*arguments, ctypes.c_void_p(current_stream().cuda_stream))
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
