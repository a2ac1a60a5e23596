"""A version's launches on a workload, run from its machine code with the arguments of a problem's case."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from profiler.build.kernel_names import function_name
from profiler.build.library import BuiltLibrary
from profiler.bundles.scratch import scratch_folder
from profiler.catalog.cases import make_case, make_inputs
from profiler.catalog.problem import Case, OutputCheck, Problem, Workload, workload_json
from profiler.catalog.sources import include_folders, without_include_flags
from profiler.catalog.version import Version
from profiler.emulator.cpu_library import build_cpu_library
from profiler.emulator.emulator import Emulator, Schedule
from profiler.emulator.run_result import LaunchShape
from profiler.evidence import opcodes
from profiler.model.block_sample import BlockSample, sample_blocks
from profiler.model.cubin import KernelImage, place_data, read_kernels
from profiler.model.instructions import NoModel
from profiler.model.interpreter import Execution, count_blocks, load_program, run_blocks
from profiler.model.machine import Array
from profiler.model.memory import GlobalMemory
from profiler.model.shared_layout import SharedTrace
from profiler.model.traffic import Traffic, estimate_traffic
from profiler.sass.disassembly import extract_cubin, library_functions
from profiler.sass.listing import FunctionCode


@dataclass(frozen=True)
class LaunchRun:
    """One launch of a version, run from its machine code."""

    launch: LaunchShape
    function: FunctionCode
    execution: Execution  # of all blocks
    sample: BlockSample = field(repr=False)  # the blocks that were run one by one
    is_whole: bool  # all blocks were run, with values
    shared_bytes: int  # of a block, static and dynamic
    shared_trace: SharedTrace | None = field(default=None, repr=False)  # where that was asked for

    @property
    def blocks(self) -> int:
        """How many blocks the launch has."""
        return math.prod(self.launch.grid)

    @property
    def blocks_run(self) -> int:
        """How many of them were run."""
        return self.blocks if self.is_whole else len(self.sample.counts.blocks)

    @property
    def is_exact(self) -> bool:
        """Whether the counts are those of all blocks: all were run, or those that were follow a line.

        Not where a branch that depends on floating-point numbers was not looked at (`assumed`).
        """
        return self.is_whole or self.sample.is_exact

    @property
    def assumed(self) -> tuple[str, ...]:
        """The branches, and accesses with guards, of which it was assumed which way they go."""
        if self.is_whole:
            return ()
        return tuple(self.execution.instructions[position].text for position in self.sample.counts.assumed)

    @property
    def block_instructions(self) -> Array:
        """Warp instructions of every block of the launch, x fastest."""
        return self.sample.block_instructions

    def traffic(self, gpu_sms: int, resident_blocks: int, l1_bytes: int, l2_bytes: int) -> Traffic:
        """What the launch asks of the memories of a GPU; l1_bytes: L1 and shared memory of an SM together."""
        return estimate_traffic(self.sample, self.shared_bytes, gpu_sms, resident_blocks, l1_bytes, l2_bytes)

    @property
    def opcode_counts(self) -> dict[str, int]:
        """How many warps executed each opcode, modifiers left out, most first."""
        counts: Counter[str] = Counter()
        for instruction, warps in zip(self.execution.instructions, self.execution.warps, strict=True):
            counts[instruction.base] += int(warps)
        return {opcode: count for opcode, count in counts.most_common() if count}

    @property
    def class_counts(self) -> dict[str, int]:
        """How many warp instructions of each class of opcodes were executed."""
        counts = dict.fromkeys(opcodes.CLASS_NAMES, 0)
        for opcode, count in self.opcode_counts.items():
            counts[opcodes.opcode_class(opcode)] += count
        return counts

    @property
    def tensor_instructions(self) -> int:
        """Matrix products that warps executed."""
        return sum(
            count for opcode, count in self.opcode_counts.items() if opcodes.is_matrix_multiply(opcode)
        )

    @property
    def active_lanes(self) -> float | None:
        """The lanes that took part in a warp's instruction, on average, of 32; None where none was run."""
        warps = int(self.execution.warps.sum())
        return float(self.execution.threads.sum()) / warps if warps else None

    def total(self, what: str, space: str | None = None, kinds: Sequence[str] = ()) -> int:
        """A count of AccessCounts over all accesses of a space and of some kinds; all without."""
        return sum(
            getattr(access, what)
            for access in self.execution.accesses.values()
            if (space is None or access.space == space) and (not kinds or access.kind in kinds)
        )

    @property
    def shared_wavefronts(self) -> int:
        """Of loads and stores, without cp.async, as the CPU check counts them."""
        return self.total("wavefronts", "shared")

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts that another layout would save, without cp.async."""
        return self.total("conflicts", "shared")

    def as_json(self) -> dict[str, Any]:
        """The counts, and each access that was made with its source line."""
        accesses = []
        for position, counts in self.execution.accesses.items():
            if counts.requests:
                instruction, source = self.execution.instructions[position], self.function.sources[position]
                accesses.append(
                    {
                        "offset": instruction.offset,
                        "instruction": instruction.text,
                        "file": source[0] if source else None,
                        "line": source[1] if source else None,
                        **asdict(counts),
                    }
                )
        return {
            "kernel": self.launch.kernel,
            "grid": self.launch.grid,
            "block": self.launch.block,
            "shared_bytes": self.launch.shared_bytes,
            "blocks": self.blocks,
            "blocks_run": self.blocks_run,
            "is_exact": self.is_exact,
            "warp_instructions": int(self.execution.warps.sum()),
            "active_lanes": self.active_lanes,
            "by_class": self.class_counts,
            "by_opcode": self.opcode_counts,
            "tensor_instructions": self.tensor_instructions,
            "global_bytes": self.total("global_bytes"),
            "sectors": self.total("sectors"),
            "shared_wavefronts": self.shared_wavefronts,
            "bank_conflicts": self.bank_conflicts,
            "accesses": accesses,
        }


@dataclass(frozen=True)
class VersionExecution:
    """All launches of one call, and what became of the output."""

    version: str
    arch: str
    workload: Workload
    launches: tuple[LaunchRun, ...]
    output_check: OutputCheck | None  # None where blocks were sampled, which compute no output

    def as_json(self) -> dict[str, Any]:
        """The run with its launches, labelled as what it is."""
        return {
            "version": self.version,
            "arch": self.arch,
            "evidence": "modelled",
            "workload": workload_json(self.workload),
            "causal": bool(self.workload.sizes().get("causal", False)),
            "max_abs_error": self.output_check.max_abs_error if self.output_check else None,
            "wrong_elements": self.output_check.wrong if self.output_check else None,
            "launches": [launch.as_json() for launch in self.launches],
        }


class LauncherTimeout(NoModel):
    """A launcher that did not end in its time: it may on a machine with less to do."""


def run_version(
    version: Version,
    problem: Problem,
    workload: Workload,
    built: BuiltLibrary,
    arch: str,
    seed: int = 0,
    *,
    check_output: bool = True,
    trace_shared: bool = False,
) -> VersionExecution:
    """Run what a call with the problem's case launches, from the machine code of one architecture.

    check_output: all blocks are run, and the output is compared with the reference. Without it some blocks of
    each launch are, without floating-point arithmetic, as many as say what all execute (sample_blocks): in
    seconds for any workload.
    trace_shared: the addresses of accesses to shared memory are kept, for find_swizzle; of all blocks, with
    check_output alone.
    The launcher itself runs on the CPU, which says the launches and what they pass to their kernels; one
    launch runs after the other, on the same memory. Raises NoModel where it passes what has no counterpart
    in the case or an instruction has no model; BuildFailed, CannotJudge where a tool fails or is missing.
    """
    case = make_case(problem, workload, seed) if check_output else make_inputs(problem, workload, seed)
    shapes = _launch_shapes(version, problem, case)
    functions = {function.name: function for function in library_functions(built.library, arch)}
    with scratch_folder() as folder:
        images = read_kernels(extract_cubin(built.library, arch, folder))
    positions = [i for i, value in enumerate(case.arguments) if isinstance(value, np.ndarray)]
    arrays = [value for value in case.arguments if isinstance(value, np.ndarray)]
    memory, images = place_data(images, arrays)
    addresses = dict(zip(positions, memory.addresses, strict=True))
    runs = []
    for shape in shapes:
        image = _choose(images, shape)
        parameters = _parameters(shape, image, addresses)
        function = functions[image.function]
        trace = SharedTrace() if trace_shared else None
        run = run_launch(image, function, shape, parameters, memory, whole=check_output, trace=trace)
        runs.append(run)
    position = next(i for i, array in enumerate(arrays) if array is case.output)
    output = memory.read_array(position, case.output)
    check = case.check(output) if check_output else None
    return VersionExecution(version.id, arch, workload, tuple(runs), check)


def run_launch(
    image: KernelImage,
    function: FunctionCode,
    shape: LaunchShape,
    parameters: Sequence[bytes],
    memory: GlobalMemory,
    *,
    whole: bool = False,
    trace: SharedTrace | None = None,
) -> LaunchRun:
    """Run one launch of a kernel from its machine code; parameters: the bytes of each.

    whole: all blocks, with values; without it as many as say what all execute, and without floating-point
    arithmetic. trace: keeps the addresses of accesses to shared memory, of a whole run alone. Raises NoModel.
    """
    program = load_program(image, function.instructions)
    grid, block, shared_bytes = shape.grid, shape.block, shape.shared_bytes
    count = partial(
        count_blocks,
        program,
        grid,
        block,
        shared_bytes,
        parameters,
        memory,
        with_values=False,
        with_trace=True,
    )
    sample = sample_blocks(grid, count)
    execution = sample.execution
    if whole:
        execution = run_blocks(program, grid, block, shared_bytes, parameters, memory, observer=trace)
    block_bytes = shared_bytes + image.static_shared_bytes
    return LaunchRun(shape, function, execution, sample, whole, block_bytes, trace)


def _launch_shapes(version: Version, problem: Problem, case: Case) -> tuple[LaunchShape, ...]:
    """The launches that the version's launcher asks for, of which the CPU runs no block."""
    assert version.source is not None
    library = build_cpu_library(
        version.source, without_include_flags(version.flags), include_folders(version)
    )
    with Emulator() as emulator:
        result = emulator.run(library, problem.symbol, case, Schedule(0), only_launch=True)
    case.output[...] = np.nan
    if any(defect.kind == "timeout" for defect in result.defects):
        raise LauncherTimeout(f"no model of {version.id}: its launcher did not end in its time on the CPU")
    if not result.launches:
        raise NoModel(f"no model of {version.id}: its launcher launched nothing")
    if any(shape.returned for shape in result.launches):
        raise NoModel(f"no model of {version.id}: a GPU refuses its launch")
    return result.launches


def _choose(images: Mapping[str, KernelImage], shape: LaunchShape) -> KernelImage:
    """The kernel of a launch: that of its name, and of several instances the one that was launched.

    g++ mangles as nvcc does, but for types of CUDA: the instance whose name agrees with it furthest is the
    one launched, since template arguments come before parameters.
    """
    name = shape.config.kernel
    named = [image for function, image in images.items() if function_name(function) == name]
    if len(named) > 1:
        agreeing = [_agreement(image.function, shape.symbol) for image in named]
        named = [image for image, length in zip(named, agreeing, strict=True) if length == max(agreeing)]
    if len(named) != 1:
        raise NoModel(f"no model of {name}: {len(named)} kernels of the binary could be the one launched")
    return named[0]


def _agreement(a: str, b: str) -> int:
    """How many characters two names begin with alike."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _parameters(shape: LaunchShape, image: KernelImage, addresses: Mapping[int, int]) -> list[bytes]:
    """The bytes of a kernel's parameters, with the model's addresses in the place of the CPU's.

    addresses: of the arrays, by the C function's argument from 0.
    """
    kernel, arguments = shape.config.kernel, shape.arguments or ()
    if shape.arguments is None and image.parameters:
        raise NoModel(f"no model of {kernel}: what is passed to it is not known, LAUNCH it to have it noted")
    if [len(a.content) if a.content is not None else -1 for a in arguments] != [
        parameter.size for parameter in image.parameters
    ]:
        raise NoModel(f"no model of {kernel}: its machine code has other parameters than its source")
    values = []
    for number, argument in enumerate(arguments, 1):
        if argument.is_foreign:
            raise NoModel(f"no model of {kernel}: argument {number} points to none of the problem's arrays")
        assert argument.content is not None
        content = bytearray(argument.content)
        for first, array, distance in argument.pointers:
            content[first : first + 8] = (addresses[array] + distance).to_bytes(8, "little")
        values.append(bytes(content))
    return values
