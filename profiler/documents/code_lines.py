"""A version line by line: live registers, excess sectors, conflicts, and the swizzle that clears them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from profiler.build.kernel_names import function_name, template_integer
from profiler.build.library import BuiltLibrary
from profiler.catalog.problem import Problem, Workload
from profiler.catalog.version import Version
from profiler.documents.code_accesses import swizzle_dict
from profiler.errors import ProfilerError
from profiler.model.shared_layout import SwizzleSearch, find_swizzle
from profiler.model.version_run import LaunchRun, run_version
from profiler.sass.disassembly import library_functions
from profiler.sass.listing import FileLine, make_listing
from profiler.sass.live_registers import LiveRegisters, count_live_registers

_SECTOR = 32  # bytes


@dataclass(frozen=True)
class LineFacts:
    """What the instructions of one source line need and ask for."""

    file: str
    line: int
    live_registers: int  # the most at any of its instructions
    sectors: int | None = None  # of global memory; None where the code was not run
    excess_sectors: int | None = None  # more than the bytes that lanes asked for fill
    wavefronts: int | None = None  # of shared memory
    conflicts: int | None = None  # wavefronts that another layout would save

    @property
    def place(self) -> str:
        """`v2d.cu:142`."""
        return f"{PurePath(self.file).name}:{self.line}"


@dataclass(frozen=True)
class FunctionLines:
    """One function of a version on one architecture, line by line."""

    version: str
    arch: str
    function: str  # mangled
    head_dim: int | None
    live: LiveRegisters
    lines: tuple[LineFacts, ...]  # by file and line
    workload: Workload | None  # that its machine code was run on
    not_run: str = ""  # why it was not, or what of it
    swizzle: SwizzleSearch | None = None

    @property
    def name(self) -> str:
        """The function without namespace and template."""
        return function_name(self.function)

    def as_json(self) -> dict[str, object]:
        """With every line, the live registers of every instruction, and the swizzle where one was sought."""
        source = self.live.highest_line
        return {
            "version": self.version,
            "arch": self.arch,
            "function": self.name,
            "head_dim": self.head_dim,
            "live_registers": self.live.highest,
            "live_registers_file": source[0] if source else None,
            "live_registers_line": source[1] if source else None,
            "live_registers_by_instruction": list(self.live.counts),
            "unknown_calls": self.live.unknown_calls,
            "workload": self.workload.label if self.workload else None,
            "evidence": "modelled" if self.workload and not self.not_run else "static",
            "not_run": self.not_run or None,
            "lines": [vars(line) for line in self.lines],
            "swizzle": swizzle_dict(self.swizzle) if self.swizzle else None,
        }


def version_lines(
    version: Version, problem: Problem, built: BuiltLibrary, arch: str, *, with_swizzle: bool = False
) -> list[FunctionLines]:
    """Each function of a version that its head dims launch, run once on the smallest workload of its check.

    A function whose machine code cannot be run has its live registers, and says why there is no more.
    """
    functions = library_functions(built.library, arch)
    live = {
        registers.function: registers
        for registers in count_live_registers(make_listing(functions, version.id))
    }
    runs: dict[str, tuple[LaunchRun, Workload]] = {}
    errors: dict[int, str] = {}
    for head_dim in version.head_dims:
        workloads = problem.check_workloads(version.dtypes[0], (head_dim,))
        if not workloads:
            errors[head_dim] = "its problem has no workload to check it on"
            continue
        try:
            run = run_version(version, problem, workloads[0], built, arch, trace_shared=with_swizzle)
        except ProfilerError as error:
            errors[head_dim] = str(error).splitlines()[0]
            continue
        for launch in run.launches:
            runs.setdefault(launch.function.name, (launch, workloads[0]))
    found = []
    for name, registers in live.items():
        instance = template_integer(name)
        if instance is not None and instance not in version.head_dims:
            continue
        launched, workload = runs.get(name, (None, None))
        why = "" if launched else errors.get(instance or version.head_dims[0], "no launch runs it")
        search = None
        if launched and launched.shared_trace:
            search = find_swizzle(launched.shared_trace.patterns(), launched.shared_bytes)
        lines = _lines(registers, launched)
        found.append(FunctionLines(version.id, arch, name, instance, registers, lines, workload, why, search))
    return found


def _lines(registers: LiveRegisters, launch: LaunchRun | None) -> tuple[LineFacts, ...]:
    counted: Mapping[FileLine, Counter[str]] = _accesses_by_line(launch) if launch else {}
    lines = []
    for source, live in sorted(registers.by_line.items()):
        asked = counted.get(source, Counter()) if launch else None
        lines.append(
            LineFacts(
                *source,
                live,
                asked["sectors"] if asked is not None else None,
                asked["excess_sectors"] if asked is not None else None,
                asked["wavefronts"] if asked is not None else None,
                asked["conflicts"] if asked is not None else None,
            )
        )
    return tuple(lines)


def _accesses_by_line(launch: LaunchRun) -> dict[FileLine, Counter[str]]:
    lines: dict[FileLine, Counter[str]] = {}
    for position, access in launch.execution.accesses.items():
        source = launch.function.sources[position]
        if source is None:
            continue
        # Lanes that ask for the same bytes need fewer sectors than they ask bytes for, but one a request.
        least = max(access.requests if access.sectors else 0, -(-access.global_bytes // _SECTOR))
        lines.setdefault(source, Counter()).update(
            sectors=access.sectors,
            excess_sectors=max(0, access.sectors - least),
            wavefronts=access.wavefronts,
            conflicts=access.conflicts,
        )
    return lines
