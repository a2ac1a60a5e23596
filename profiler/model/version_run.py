"""A version's launches on a workload, run from its machine code with the arguments of a problem's case."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from profiler.build import BuiltLibrary, function_name, template_integer
from profiler.bundles import scratch_folder
from profiler.catalog import Case, OutputCheck, Problem, Version, Workload, source_files
from profiler.catalog.cases import make_case
from profiler.catalog.problem import workload_json
from profiler.catalog.sources import include_folders, without_include_flags
from profiler.emulator import Emulator, LaunchShape, Schedule
from profiler.emulator.c_signature import find_signature
from profiler.emulator.cpu_library import build_cpu_library
from profiler.evidence import opcodes
from profiler.model.cubin import KernelImage, Parameter, read_kernels
from profiler.model.instructions import NoModel
from profiler.model.interpreter import Execution, load_program, run_blocks
from profiler.model.memory import GlobalMemory
from profiler.sass import FunctionCode, extract_cubin, library_functions

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FORMATS: Mapping[tuple[type, int], str] = {
    (int, 4): "<i",
    (int, 8): "<q",
    (float, 4): "<f",
    (float, 8): "<d",
}


@dataclass(frozen=True)
class LaunchRun:
    """One launch of a version, run from its machine code."""

    launch: LaunchShape
    function: FunctionCode
    execution: Execution

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
class VersionRun:
    """All launches of one call, and what became of the output."""

    version: str
    arch: str
    workload: Workload
    launches: tuple[LaunchRun, ...]
    output_check: OutputCheck

    def as_json(self) -> dict[str, Any]:
        """The run with its launches, labelled as what it is."""
        return {
            "version": self.version,
            "arch": self.arch,
            "evidence": "modelled",
            "workload": workload_json(self.workload),
            "causal": bool(self.workload.sizes().get("causal", False)),
            "max_abs_error": self.output_check.max_abs_error,
            "wrong_elements": self.output_check.wrong,
            "launches": [launch.as_json() for launch in self.launches],
        }


def run_version(
    version: Version, problem: Problem, workload: Workload, built: BuiltLibrary, arch: str, seed: int = 0
) -> VersionRun:
    """Run what a call with the problem's case launches, from the machine code of one architecture.

    The launcher itself runs on the CPU, which says the launches. A kernel's parameters are those of the C
    function that have their names, whatever the case of the letters. Raises NoModel where the names do not
    fit or an instruction has no model; BuildFailed, CannotJudge where a tool fails or is missing.
    """
    case = make_case(problem, workload, seed)
    shapes = _launch_shapes(version, problem, case)
    names = _argument_names(version, problem.symbol)
    functions = {function.name: function for function in library_functions(built.library, arch)}
    with scratch_folder() as folder:
        images = read_kernels(extract_cubin(built.library, arch, folder))
    arrays = [value for value in case.arguments if isinstance(value, np.ndarray)]
    memory = GlobalMemory(arrays)
    addresses = {id(array): address for array, address in zip(arrays, memory.addresses, strict=True)}
    head_dim = workload.sizes().get("head_dim")
    runs = []
    for shape in shapes:
        image = _choose(images, shape, head_dim)
        parameters = _parameters(version, shape, image, names, case, addresses)
        function = functions[image.function]
        program = load_program(image, function.instructions)
        execution = run_blocks(program, shape.grid, shape.block, shape.shared_bytes, parameters, memory)
        runs.append(LaunchRun(shape, function, execution))
    position = next(i for i, array in enumerate(arrays) if array is case.output)
    output = memory.read_array(position, case.output)
    return VersionRun(version.id, arch, workload, tuple(runs), case.check(output))


def _launch_shapes(version: Version, problem: Problem, case: Case) -> tuple[LaunchShape, ...]:
    """The launches that the version's launcher asks for; a CPU that refuses all of them runs none."""
    assert version.source is not None
    library = build_cpu_library(
        version.source, without_include_flags(version.flags), include_folders(version)
    )
    with Emulator() as emulator:
        result = emulator.run(library, problem.symbol, case, Schedule(0), limit_bytes=0)
    case.output[...] = np.nan
    if not result.launches:
        raise NoModel(f"no model of {version.id}: its launcher launched nothing")
    if len(result.launches) > 1:
        raise NoModel(f"no model of {version.id}: more than one launch a call")
    return result.launches


def _choose(images: Mapping[str, KernelImage], shape: LaunchShape, head_dim: Any) -> KernelImage:
    """The kernel of a launch: that of its name, and of several the one with the head dim as integer."""
    name = shape.config.kernel
    named = [image for function, image in images.items() if function_name(function) == name]
    if len(named) > 1:
        named = [image for image in named if template_integer(image.function) == head_dim]
    if len(named) != 1:
        raise NoModel(f"no model of {name}: {len(named)} kernels of the binary could be the one launched")
    return named[0]


def _argument_names(version: Version, symbol: str) -> list[str]:
    """The names of the C function's parameters; a definition may leave out those of a declaration."""
    names: list[str] = []
    for path in source_files(version):
        signature = find_signature([path], symbol)
        if signature is not None:
            found = [parameter.name for parameter in signature.parameters]
            names = [a or b for a, b in zip(names, found, strict=True)] if names else found
    return names


def _kernel_parameter_names(version: Version, kernel: str) -> list[str]:
    """The names of a kernel's parameters in the version's sources."""
    for path in source_files(version):
        code = _COMMENT.sub(" ", path.read_text(encoding="utf-8", errors="replace"))
        pattern = rf"__global__[^;{{}}]*?\b{re.escape(kernel)}\s*\(([^()]*)\)\s*\{{"
        if match := re.search(pattern, code):
            return [re.findall(r"\w+", part)[-1] for part in match[1].split(",")]
    raise NoModel(f"no model of {kernel}: no source of {version.id} defines it")


def _parameters(
    version: Version,
    shape: LaunchShape,
    image: KernelImage,
    argument_names: Sequence[str],
    case: Case,
    addresses: Mapping[int, int],
) -> list[bytes]:
    """The bytes of a kernel's parameters: the arguments of the C function that have their names."""
    kernel = shape.config.kernel
    arguments = {
        name.lower(): value for name, value in zip(argument_names, case.arguments, strict=False) if name
    }
    names = _kernel_parameter_names(version, kernel)
    if len(names) != len(image.parameters):
        raise NoModel(f"no model of {kernel}: its source has other parameters than its machine code")
    values = []
    for name, parameter in zip(names, image.parameters, strict=True):
        if name.lower() not in arguments:
            raise NoModel(f"no model of {kernel}: its parameter {name} is none of the C function's")
        values.append(_bytes_of(arguments[name.lower()], parameter, addresses, f"{kernel}: {name}"))
    return values


def _bytes_of(value: Any, parameter: Parameter, addresses: Mapping[int, int], name: str) -> bytes:
    if isinstance(value, np.ndarray):
        value = addresses[id(value)]
    elif value is None:
        value = 0
    form = _FORMATS.get((type(value), parameter.size))
    if form is None:
        raise NoModel(f"no model of {name}: a parameter of {parameter.size} bytes for {value!r}")
    return struct.pack(form, value)
