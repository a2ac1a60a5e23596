"""Which lines of a version's sources are compiled for the GPU alone: no check on the CPU sees them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiler.bundles.scratch import scratch_folder
from profiler.catalog.sources import included_files
from profiler.emulator.cpu_library import RUNTIME, preprocessor

_MARKER = re.compile(r'^# (\d+) "([^"]*)"')
_MISSING = re.compile(r"fatal error: ([^\s:]+): No such file")
_MOST_MISSING = 20  # headers of the CUDA toolkit that a source may include where the CPU does not
# Only a condition on one of these tells the two compilers apart.
_GPU_CONDITION = re.compile(
    r"^[ \t]*#[ \t]*(?:if|elif).*\b(?:CPUCUDA|__CUDA\w*|__NVCC__|CUDA_VERSION|CUDART_VERSION)\b", re.MULTILINE
)
_ARCH_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|elif).*\b__CUDA_ARCH\w*\b", re.MULTILINE)
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# As nvcc 12 defines them.
_NVCC = ("-D__NVCC__", "-D__CUDACC__", "-D__CUDACC_VER_MAJOR__=12", "-DCUDART_VERSION=12000")


@dataclass(frozen=True)
class SourceRange:
    """Lines of a source, both ends included; what lies between them is no code, or of the same range."""

    file: str
    first: int
    last: int

    @property
    def words(self) -> str:
        """`ptx.cuh:97-132`."""
        return f"{self.file}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")


def gpu_only_ranges(
    source: Path, flags: Sequence[str], folders: Sequence[Path], arches: Sequence[str]
) -> tuple[SourceRange, ...]:
    """The ranges of lines that a GPU compiler compiles, for one of the architectures, and g++ does not.

    What both leave out (another version's branch) is not among them. flags: -D and -U ones.
    """
    files = {path: _text(path) for path in included_files(source, folders)}
    if not any(_GPU_CONDITION.search(text) for text in files.values()):
        return ()
    on_cpu = _compiled_lines(source, [*flags, f"-I{RUNTIME / 'include'}"], folders)
    numbers = {int(match[0]) for arch in arches if (match := re.search(r"\d+", arch))}
    devices = sorted(numbers) if any(_ARCH_CONDITION.search(text) for text in files.values()) else [80]
    on_gpu: set[tuple[Path, int]] = set()
    with scratch_folder() as scratch:
        for header in (RUNTIME / "include").iterdir():
            (scratch / header.name).touch()
        for number in devices:
            gpu_flags = [*flags, *_NVCC, f"-D__CUDA_ARCH__={number}0", f"-I{scratch}"]
            on_gpu |= _compiled_lines(source, gpu_flags, folders, scratch)
    return tuple(
        part
        for path, text in files.items()
        for part in _ranges(path.name, text, {line for file, line in on_gpu - on_cpu if file == path})
    )


def _compiled_lines(
    source: Path, flags: Sequence[str], folders: Sequence[Path], scratch: Path | None = None
) -> set[tuple[Path, int]]:
    """The lines that the preprocessor keeps. Headers that it lacks are made, empty, in `scratch`."""
    command = [
        *preprocessor(),
        "-fdirectives-only",
        *flags,
        *(f"-I{folder}" for folder in folders),
        str(source),
    ]
    for _ in range(_MOST_MISSING):
        process = subprocess.run(command, capture_output=True, text=True, errors="replace")
        missing = _MISSING.search(process.stderr)
        if scratch is None or missing is None:
            break
        header = scratch / missing[1]
        if header.exists() or not header.resolve().is_relative_to(scratch.resolve()):
            break
        header.parent.mkdir(parents=True, exist_ok=True)
        header.touch()
    lines: set[tuple[Path, int]] = set()
    path, number = source, 0
    known: dict[str, Path] = {}
    for line in process.stdout.splitlines():
        if match := _MARKER.match(line):
            number, path = int(match[1]), known.setdefault(match[2], Path(match[2]).resolve())
            continue
        if line.strip():
            lines.add((path, number))
        number += 1
    return lines


def _ranges(file: str, text: str, numbers: Iterable[int]) -> list[SourceRange]:
    """The lines as ranges, which run over comments, blank lines and directives; these begin and end none."""
    code = _NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text).splitlines()
    wanted = set(numbers)
    ranges: list[SourceRange] = []
    is_open = False
    for number, line in enumerate(code, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if number in wanted:
            first = ranges.pop().first if is_open else number
            ranges.append(SourceRange(file, first, number))
        is_open = number in wanted
    return ranges


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
