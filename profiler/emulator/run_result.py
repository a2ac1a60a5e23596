"""What a run on the CPU showed: defects, shared-memory traffic and launches, by line of the source."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from profiler.build.resources import LaunchConfig
from profiler.catalog.problem import OutputCheck
from profiler.errors import CannotJudge

Row = Sequence[str]  # the fields of one line of the runtime's answer
SourceLines = dict[int, "SourceLine | None"]  # by code offset in the library; None: no source line is known
_FRAME = re.compile(r"(.+):(\d+)(?: \(discriminator \d+\))?$")  # as addr2line prints it


@dataclass(frozen=True)
class SourceLine:
    """A line of a source."""

    file: str  # its name, or its path below the folder of the version's source
    line: int


@dataclass(frozen=True)
class Defect:
    """Something wrong that the runtime saw; what happens again at the same line is the same defect."""

    kind: str  # race, uninitialised, …: the first words are those of catalog.version.CAUGHT_BY
    source: SourceLine | None  # None for what has no line: a crash, a contract
    count: int
    text: str  # of the first time
    other_source: SourceLine | None = None  # the other end of a race


@dataclass(frozen=True)
class SharedTraffic:
    """What a source line asks of the banks of shared memory, by the model of the banks."""

    source: SourceLine
    kind: str  # load or store
    requests: int
    wavefronts: int
    ideal: int  # wavefronts without any conflict, for accesses of the same widths by the same lanes

    @property
    def conflicts(self) -> int:
        """Wavefronts that another layout would save."""
        return self.wavefronts - self.ideal


@dataclass(frozen=True)
class AddressRange:
    """Where an array lay while the function ran."""

    argument: int  # of the C function, counted from 0
    start: int
    size: int  # bytes


@dataclass(frozen=True)
class KernelArgument:
    """What a launch passed for one parameter of its kernel."""

    content: bytes | None  # as the parameter has it on the CPU; None for a class whose bytes say nothing
    # Where in it a pointer into an array lies: the first byte, the C function's argument from 0, and how many
    # bytes into that array it points.
    pointers: tuple[tuple[int, int, int], ...]
    is_foreign: bool = False  # a pointer to what is none of the function's arrays


@dataclass(frozen=True)
class LaunchShape:
    """One launch as the launcher asked for it, refused ones too."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int  # dynamic, a block
    returned: int  # cudaError_t
    symbol: str = field(default="", compare=False)  # of the kernel as g++ mangles it; "" where it has none
    # By parameter; None where the runtime was not handed the kernel itself (LAUNCH hands it over).
    arguments: tuple[KernelArgument, ...] | None = field(default=None, compare=False, repr=False)

    @property
    def threads(self) -> int:
        """Threads a block."""
        return math.prod(self.block)

    @property
    def config(self) -> LaunchConfig:
        """What occupancy depends on, under the kernel's plain name: no namespace, no template arguments."""
        name = self.kernel.partition("<")[0].split("::")[-1]
        return LaunchConfig(name, self.threads, self.shared_bytes)


@dataclass(frozen=True)
class RunResult:
    """What one run of a library showed."""

    returned: int | None  # the function's cudaError_t; None where it did not come back
    output_check: OutputCheck | None  # None where it did not come back
    defects: tuple[Defect, ...]
    traffic: tuple[SharedTraffic, ...]
    launches: tuple[LaunchShape, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether it came back with 0, every element is within tolerance, and there is no defect."""
        is_right = self.output_check is not None and self.output_check.wrong == 0
        return self.returned == 0 and is_right and not self.defects


def resolve_lines(library: Path, offsets: Iterable[int], source_folder: Path) -> SourceLines:
    """The line of each code offset: of its inlined frames the innermost in a .cu file, else in a .cuh.

    Raises CannotJudge where there is no addr2line.
    """
    command = ["addr2line", "-a", "-i", "-e", str(library), *map(hex, offsets)]
    try:
        text = subprocess.run(command, capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise CannotJudge(
            "there is no addr2line, which names the lines of findings: install binutils"
        ) from None
    frames: dict[int, list[SourceLine]] = {}  # of each offset, the innermost first
    for line in text.splitlines():
        if line.startswith("0x"):
            frames_here = frames.setdefault(int(line, 16), [])
        elif match := _FRAME.match(line):
            frames_here.append(SourceLine(_file_name(match[1], source_folder), int(match[2])))
    return {offset: _kernel_line(inlined) for offset, inlined in frames.items()}


def _kernel_line(frames: Sequence[SourceLine]) -> SourceLine | None:
    """The innermost frame in a .cu, else in a .cuh: the headers of the runtime are none of the kernel's."""
    for suffix in (".cu", ".cuh"):
        for frame in frames:
            if frame.file.endswith(suffix):
                return frame
    return None


def _file_name(path: str, source_folder: Path) -> str:
    resolved = Path(path).resolve()
    if resolved.is_relative_to(source_folder):
        return str(resolved.relative_to(source_folder))
    return resolved.name


# ---- what the runtime answers, line by line


def parse_defects(rows: Sequence[Row], lines: SourceLines) -> tuple[Defect, ...]:
    """One for each kind and line, in the order they were first seen.

    A row: kind, pc, other pc, file, line, count, text. File and line stand in where the pc has none.
    """
    defects: dict[tuple[str, SourceLine | None], Defect] = {}
    for kind, pc, other_pc, file, line, count, text in rows:
        source = lines[int(pc)] or (SourceLine(Path(file).name, int(line)) if int(line) else None)
        other = lines[int(other_pc)]
        if kind == "barrier-divergence" and source and source == other:
            continue  # two copies of one call, which the compiler made
        words = text if other is None else f"{text} (the other end: {other.file}:{other.line})"
        first = defects.get((kind, source)) or Defect(kind, source, 0, words, other)
        defects[kind, source] = Defect(
            kind, source, first.count + int(count), first.text, first.other_source or other
        )
    return tuple(defects.values())


def parse_traffic(rows: Sequence[Row], lines: SourceLines) -> tuple[SharedTraffic, ...]:
    """One for each line and kind, in the order of the source.

    A row: pc, whether it is a store, requests, wavefronts, ideal wavefronts.
    """
    sums: dict[tuple[SourceLine, str], list[int]] = {}
    for row in rows:
        pc, is_store, *counts = map(int, row)
        key = (lines[pc] or SourceLine("?", 0), "store" if is_store else "load")
        sums[key] = [total + count for total, count in zip(sums.get(key, [0, 0, 0]), counts, strict=True)]
    ordered = sorted(sums.items(), key=lambda item: (item[0][0].file, item[0][0].line, item[0][1]))
    return tuple(SharedTraffic(source, kind, *counts) for (source, kind), counts in ordered)


def parse_launches(rows: Sequence[Row], arrays: Sequence[AddressRange] = ()) -> tuple[LaunchShape, ...]:
    """In the order they were made; `arrays`: those that the function was called with.

    A row: kernel, what the launch returned, grid, block, shared bytes, symbol, then of each argument its
    kind and its bytes as hexadecimal digits.
    """
    shapes = []
    for kernel, *fields in rows:
        returned, gx, gy, gz, bx, by, bz, shared = map(int, fields[:8])
        arguments = tuple(_parse_argument(text, arrays) for text in fields[9:]) or None
        shapes.append(LaunchShape(kernel, (gx, gy, gz), (bx, by, bz), shared, returned, fields[8], arguments))
    return tuple(shapes)


def _parse_argument(text: str, arrays: Sequence[AddressRange]) -> KernelArgument:
    """A pointer is what has a pointer's type, or in a structure 8 aligned bytes that point into an array."""
    kind, content = text[0], bytes.fromhex(text[1:])
    if kind == "u":
        return KernelArgument(None, ())
    pointers = []
    for first in range(0, len(content) - 7, 8):
        address = int.from_bytes(content[first : first + 8], sys.byteorder)
        # An end of an array is a pointer into it: between two arrays there is room.
        array = next((a for a in arrays if a.start <= address <= a.start + a.size), None)
        if array is not None:
            pointers.append((first, array.argument, address - array.start))
    is_foreign = kind == "p" and not pointers and any(content)
    return KernelArgument(content, tuple(pointers), is_foreign)
