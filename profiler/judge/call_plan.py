"""What one call of a candidate launches on a workload: functions, sizes, and the bytes of every parameter."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.build.kernel_names import function_name
from profiler.catalog.problem import Case, Problem, Workload
from profiler.catalog.sources import include_folders, without_include_flags
from profiler.emulator.cpu_library import build_cpu_library
from profiler.emulator.emulator import Emulator, Schedule
from profiler.emulator.run_result import LaunchShape
from profiler.errors import BadCatalog, BuildFailed, CannotJudge
from profiler.evidence.gpu_arch import find_architecture
from profiler.judge.candidate import Candidate
from profiler.judge.compilation import CandidateCode, Kernel
from profiler.judge.manifest import PlannedLaunch, Triple

_MOST_SCRATCH_BYTES = 512 << 20  # of all buffers: some calls are run at a time, and this process fills them
_MOST_GRID = (2**31 - 1, 65535, 65535)
_MOST_THREADS = 1024
_REGISTERS = 65536  # of an SM
_MOST_CLUSTER = 8  # blocks, without asking the driver for more


@dataclass(frozen=True)
class ParameterBytes:
    """One parameter of a launch."""

    content: bytes
    pointers: tuple[tuple[int, int, int], ...] = ()  # first byte, number of the array, bytes into it

    def as_json(self) -> dict[str, Any]:
        """As the worker reads it."""
        return {"bytes": self.content.hex(), "pointers": [list(pointer) for pointer in self.pointers]}


@dataclass(frozen=True)
class CallLaunch:
    """One launch, ready to be run."""

    kernel: Kernel
    grid: Triple
    block: Triple
    shared_bytes: int
    cluster: Triple
    parameters: tuple[ParameterBytes, ...]

    @property
    def blocks(self) -> int:
        """How many blocks it has."""
        return math.prod(self.grid)

    def is_given(self, array: int) -> bool:
        """Whether a parameter points into an array."""
        return any(number == array for own in self.parameters for _, number, _ in own.pointers)

    def places(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The indices x, y, z of blocks by their numbers, x first: [n, 3]."""
        x, y, _ = self.grid
        return np.stack([numbers % x, numbers // x % y, numbers // (x * y)], axis=1)

    def as_json(self) -> dict[str, Any]:
        """As the worker reads it."""
        return {
            "function": self.kernel.function,
            "grid": self.grid,
            "block": self.block,
            "shared_bytes": self.shared_bytes,
            "cluster": self.cluster,
            "parameters": [parameter.as_json() for parameter in self.parameters],
        }


@dataclass(frozen=True)
class CallPlan:
    """All launches of a call, and the arrays that they are given."""

    workload: Workload
    case: Case
    arrays: tuple[NDArray[Any], ...]  # the case's, then the scratch buffers
    output: int  # which of them is the output
    launches: tuple[CallLaunch, ...]
    planned: tuple[PlannedLaunch, ...] = ()  # as a manifest says it; none of a version
    scratch: tuple[int, ...] = ()  # numbers of the arrays that are scratch buffers
    names: Mapping[str, int] = field(default_factory=dict)  # the numbers of arrays by name


def argument_names(problem: Problem) -> tuple[str, ...]:
    """The names of the C function's arguments, without the stream. Raises CannotJudge without any."""
    names = getattr(problem, "arguments", ())
    if not names:
        raise CannotJudge(
            f"the problem {problem.name} has no `arguments`, the names by which a manifest passes them: see "
            "class Problem in profiler/catalog/problem.py"
        )
    return tuple(names)


def plan_call(
    candidate: Candidate, problem: Problem, code: CandidateCode, workload: Workload, case: Case
) -> CallPlan:
    """Work out a call. Raises UnknownName, BuildFailed or BadCatalog for what does not fit the binary."""
    arrays = [value for value in case.arguments if isinstance(value, np.ndarray)]
    output = next(number for number, array in enumerate(arrays) if array is case.output)
    if candidate.manifest is None:
        launches = tuple(
            _of_version(shape, code, case) for shape in _version_shapes(candidate, problem, case)
        )
        return CallPlan(workload, case, tuple(arrays), output, launches)
    names = argument_names(problem)
    if len(names) != len(case.arguments):
        raise BadCatalog(f"{problem.name}: {len(names)} names for {len(case.arguments)} arguments")
    by_name = dict(zip(names, case.arguments, strict=True))
    numbers: dict[str, int] = {}
    for name, value in by_name.items():
        if isinstance(value, np.ndarray):
            numbers[name] = next(i for i, array in enumerate(arrays) if array is value)
    sizes = workload.sizes()
    scratch = []
    scratch_bytes = candidate.manifest.scratch_bytes(sizes)
    for name, size in scratch_bytes.items():
        if name in by_name or size <= 0 or sum(scratch_bytes.values()) > _MOST_SCRATCH_BYTES:
            raise BadCatalog(
                f"scratch {name} of {size} bytes: a name of its own, at least 1 byte, and all together "
                f"{_MOST_SCRATCH_BYTES >> 20} MiB at most"
            )
        numbers[name] = len(arrays)
        scratch.append(len(arrays))
        arrays.append(np.zeros(size, np.uint8))
    passed = {name: value for name, value in by_name.items() if name in numbers or isinstance(value, float)}
    planned = candidate.manifest.plan(sizes, passed)
    if not planned:
        raise BadCatalog(f"nothing is launched for {workload.label}: see `when` in the manifest")
    launches = tuple(_of_manifest(launch, code, numbers) for launch in planned)
    return CallPlan(workload, case, tuple(arrays), output, launches, tuple(planned), tuple(scratch), numbers)


def _of_manifest(launch: PlannedLaunch, code: CandidateCode, numbers: Mapping[str, int]) -> CallLaunch:
    kernel = code.find(launch.kernel)
    if len(launch.arguments) != len(kernel.parameters):
        raise BuildFailed(
            f"{launch.kernel} has {len(kernel.parameters)} parameters, and the manifest passes "
            f"{len(launch.arguments)}"
        )
    parameters = []
    for argument, (_, size) in zip(launch.arguments, kernel.parameters, strict=True):
        parameters.append(_parameter(launch.kernel, argument, size, numbers))
    check_limits(launch, kernel, code.arch)
    return CallLaunch(
        kernel, launch.grid, launch.block, launch.shared_bytes, launch.cluster, tuple(parameters)
    )


def _parameter(
    kernel: str, argument: str | int | float, size: int, numbers: Mapping[str, int]
) -> ParameterBytes:
    if isinstance(argument, str):
        if size != 8:
            raise BuildFailed(f"{kernel}: {argument} is a pointer, and the parameter has {size} bytes")
        return ParameterBytes(bytes(8), ((0, numbers[argument], 0),))
    if isinstance(argument, float):
        if size not in (4, 8):
            raise BuildFailed(f"{kernel}: a number is passed to a parameter of {size} bytes")
        return ParameterBytes(struct.pack("<f" if size == 4 else "<d", argument))
    try:
        return ParameterBytes(argument.to_bytes(size, "little", signed=True))
    except OverflowError:
        raise BuildFailed(f"{kernel}: {argument} does not fit a parameter of {size} bytes") from None


def check_limits(launch: PlannedLaunch, kernel: Kernel, arch: str) -> None:
    """Raises BuildFailed for a launch that a GPU refuses, with what it refuses."""
    threads, words = math.prod(launch.block), launch.kernel
    if min(*launch.grid, *launch.block) < 1 or launch.shared_bytes < 0:
        raise BuildFailed(f"{words}: grid {launch.grid} and block {launch.block} must be at least 1")
    if threads > _MOST_THREADS or launch.block[2] > 64:
        raise BuildFailed(f"{words}: {threads} threads per block; a GPU takes {_MOST_THREADS}, 64 in z")
    if any(size > most for size, most in zip(launch.grid, _MOST_GRID, strict=True)):
        raise BuildFailed(f"{words}: a grid of {launch.grid}; a GPU takes {_MOST_GRID}")
    if kernel.block_threads and threads > kernel.block_threads:
        raise BuildFailed(f"{words}: {threads} threads per block, compiled for {kernel.block_threads}")
    warps = -(-threads // 32)
    if kernel.usage.registers * warps * 32 > _REGISTERS:
        raise BuildFailed(f"{words}: {kernel.usage.registers} registers per thread for {threads} threads")
    architecture = find_architecture(arch)
    shared = launch.shared_bytes + kernel.usage.static_shared_bytes
    if architecture is not None and shared > architecture.block_shared_bytes:
        raise BuildFailed(
            f"{words}: {shared} bytes of shared memory per block, "
            f"{arch} has {architecture.block_shared_bytes}"
        )
    blocks = math.prod(launch.cluster)
    if blocks > _MOST_CLUSTER or any(g % c for g, c in zip(launch.grid, launch.cluster, strict=True)):
        raise BuildFailed(f"{words}: clusters of {launch.cluster} do not divide {launch.grid}, or exceed 8")


def _version_shapes(candidate: Candidate, problem: Problem, case: Case) -> tuple[LaunchShape, ...]:
    """What the launcher of a version asks for; the CPU runs no block. The launcher is the catalogue's own."""
    version = candidate.version
    assert version is not None
    assert version.source is not None
    library = build_cpu_library(
        version.source, without_include_flags(version.flags), include_folders(version)
    )
    with Emulator() as emulator:
        result = emulator.run(library, problem.symbol, case, Schedule(0), only_launch=True)
    case.output[...] = np.nan
    if not result.launches or any(shape.returned for shape in result.launches):
        raise BuildFailed(f"{version.id}: its launcher launches nothing, or what a GPU refuses")
    return result.launches


def _of_version(shape: LaunchShape, code: CandidateCode, case: Case) -> CallLaunch:
    positions = [i for i, value in enumerate(case.arguments) if isinstance(value, np.ndarray)]
    number_of = {position: number for number, position in enumerate(positions)}
    name = shape.config.kernel
    named = [kernel for kernel in code.kernels.values() if function_name(kernel.function) == name]
    # g++ mangles as nvcc does, but for types of CUDA: template arguments come before parameters.
    best = max((_agreement(kernel.function, shape.symbol) for kernel in named), default=0)
    named = [kernel for kernel in named if _agreement(kernel.function, shape.symbol) == best]
    arguments = shape.arguments or ()
    if len(named) != 1 or [len(a.content or b"") for a in arguments] != [s for _, s in named[0].parameters]:
        raise BuildFailed(f"what is passed to {name} is not known, or does not fit its machine code")
    parameters = []
    for argument in arguments:
        if argument.is_foreign or argument.content is None:
            raise BuildFailed(f"{name}: an argument points to none of the problem's arrays")
        pointers = tuple((first, number_of[array], distance) for first, array, distance in argument.pointers)
        parameters.append(ParameterBytes(argument.content, pointers))
    return CallLaunch(named[0], shape.grid, shape.block, shape.shared_bytes, (1, 1, 1), tuple(parameters))


def _agreement(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
