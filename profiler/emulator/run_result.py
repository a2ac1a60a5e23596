"""What a run on the CPU saw: findings, traffic of shared memory, launches, and the source lines of each."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.build import LaunchConfig
from profiler.catalog import OutputCheck
from profiler.errors import CannotJudge

Row = Sequence[str]  # fields of one line of what the runtime answers
SourceLines = dict[int, "SourceLine | None"]  # by code offset in the library


@dataclass(frozen=True)
class SourceLine:
    """A line of a source."""

    file: str  # its name, or its path below the folder of the version's source
    line: int


@dataclass(frozen=True)
class Defect:
    """Something wrong that the runtime saw; the same thing at the same line is one finding."""

    kind: str
    source: SourceLine | None  # None for what has no line: a refused launch, a crash
    count: int
    text: str  # of the first occurrence
    other_source: SourceLine | None = None  # the other end of a race


@dataclass(frozen=True)
class SharedTraffic:
    """What a line does to the banks of shared memory, by the model."""

    source: SourceLine
    kind: str  # load or store
    requests: int
    wavefronts: int
    ideal: int  # wavefronts with no conflict, for accesses of the same widths by the same lanes

    @property
    def conflicts(self) -> int:
        """Wavefronts that another layout would save."""
        return self.wavefronts - self.ideal


@dataclass(frozen=True)
class LaunchShape:
    """One launch as the launcher asked for it, refused ones too."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int  # dynamic, a block
    returned: int  # cudaError_t

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
    """One run of a library."""

    returned: int | None  # the function's cudaError_t; None where it did not come back
    output_check: OutputCheck | None  # None where it did not come back
    defects: tuple[Defect, ...]
    traffic: tuple[SharedTraffic, ...]
    launches: tuple[LaunchShape, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """It came back with 0, every element is within tolerance, and nothing was found."""
        right = self.output_check is not None and self.output_check.wrong == 0
        return self.returned == 0 and right and not self.defects


_FRAME = re.compile(r"(.+):(\d+)(?: \(discriminator \d+\))?$")


def resolve_lines(library: Path, offsets: Iterable[int], source_folder: Path) -> SourceLines:
    """The line of each code offset: of its inlined frames the innermost in a .cu, else in a .cuh.

    Raises CannotJudge where there is no addr2line.
    """
    command = ["addr2line", "-a", "-i", "-e", str(library), *map(hex, offsets)]
    try:
        text = subprocess.run(command, capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise CannotJudge(
            "there is no addr2line, which names the lines of findings: install binutils"
        ) from None
    frames: dict[int, list[SourceLine]] = {}
    for line in text.splitlines():
        if line.startswith("0x"):
            inner = frames.setdefault(int(line, 16), [])
        elif match := _FRAME.match(line):
            inner.append(SourceLine(_file_name(match[1], source_folder), int(match[2])))
    return {
        offset: next((one for suffix in (".cu", ".cuh") for one in found if one.file.endswith(suffix)), None)
        for offset, found in frames.items()
    }


def _file_name(path: str, source_folder: Path) -> str:
    resolved = Path(path).resolve()
    return (
        str(resolved.relative_to(source_folder)) if resolved.is_relative_to(source_folder) else resolved.name
    )


def parse_defects(rows: Sequence[Row], known: SourceLines) -> tuple[Defect, ...]:
    """One a kind and line, the first seen first. A row: kind, pc, other pc, file, line, count, text."""
    found: dict[tuple[str, SourceLine | None], Defect] = {}
    for kind, pc, other_pc, file, line, count, text in rows:
        place = known[int(pc)] or (SourceLine(Path(file).name, int(line)) if int(line) else None)
        other = known[int(other_pc)]
        words = text if other is None else f"{text} (the other end: {other.file}:{other.line})"
        first = found.get((kind, place)) or Defect(kind, place, 0, words, other)
        found[kind, place] = Defect(
            kind, place, first.count + int(count), first.text, first.other_source or other
        )
    return tuple(found.values())


def parse_traffic(rows: Sequence[Row], known: SourceLines) -> tuple[SharedTraffic, ...]:
    """One a line and kind, in the order of the source. A row: pc, is a store, requests, wavefronts, ideal."""
    sums: dict[tuple[SourceLine, str], list[int]] = {}
    for row in rows:
        pc, store, *counts = map(int, row)
        key = (known[pc] or SourceLine("?", 0), "store" if store else "load")
        sums[key] = [before + more for before, more in zip(sums.get(key, [0, 0, 0]), counts, strict=True)]
    ordered = sorted(sums.items(), key=lambda one: (one[0][0].file, one[0][0].line, one[0][1]))
    return tuple(SharedTraffic(place, kind, *counts) for (place, kind), counts in ordered)


def parse_launches(rows: Sequence[Row]) -> tuple[LaunchShape, ...]:
    """In the order they were made. A row: kernel, what it returned, grid, block, shared bytes."""
    shapes = []
    for kernel, *numbers in rows:
        returned, gx, gy, gz, bx, by, bz, shared = map(int, numbers)
        shapes.append(LaunchShape(kernel, (gx, gy, gz), (bx, by, bz), shared, returned))
    return tuple(shapes)
