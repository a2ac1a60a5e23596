"""Machine code out of binaries, with source lines: what cuobjdump and nvdisasm print."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from profiler.build import find_tool, opcode_counts, require_tool
from profiler.bundles import scratch_folder
from profiler.errors import BuildFailed
from profiler.sass.listing import FileLine, FunctionCode, Listing, make_listing

_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.+?)\s*;")
_LINE_INFO = re.compile(r'//## File "(.*?)", line (\d+)')
# Sources that come with a compiler: what a reader wants of code inlined from them is the line of the call.
_LIBRARIES = re.compile(
    r"(^|/)(triton/(language|experimental)|nvidia_cutlass_dsl|cuda/tile)/"  # Triton, Gluon, CuTe DSL, cuTile
    r"|/(cuda[^/]*|cu\d+|targets/[^/]+)/include/|/crt/[^/]*$"  # the CUDA toolkit, wherever it is installed
    r"|(^|/)(cuda_(fp16|bf16|fp8|fp6|fp4)|sm_\d+_[a-z_]+|device_[a-z_]+|mma)\.hpp?$"
)
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")


def disassemble(path: Path, arch: str | None = None) -> Listing:
    """The listing of a cubin, library or program, by cuobjdump, with source lines by nvdisasm.

    arch: which one where the binary holds several. Raises CannotJudge where the tools are missing,
    BuildFailed where the file has no such code.
    """
    with scratch_folder() as folder:
        functions = cubin_functions(extract_cubin(path, arch, folder))
    return make_listing(functions, path.name)


def cubin_functions(cubin: Path) -> tuple[FunctionCode, ...]:
    """The functions of a cubin with their source lines; nothing is cached. Raises as disassemble does."""
    return parse_functions(_run_tool("cuobjdump", "--dump-sass", str(cubin)), _line_info(cubin))


def library_functions(path: Path, arch: str) -> tuple[FunctionCode, ...]:
    """The functions of a version's library with their source lines; cuobjdump's text is cached beside it.

    Raises as disassemble does.
    """
    sass = opcode_counts.dump_sass(path, arch)
    with scratch_folder() as folder:
        lines = _line_info(extract_cubin(path, arch, folder))
    return parse_functions(sass, lines)


def parse_functions(sass: str, lines: Mapping[tuple[str, int], FileLine]) -> tuple[FunctionCode, ...]:
    """The functions in cuobjdump's listing, each once, with the source line of each instruction.

    lines: by function and offset, as parse_line_info gives them.
    """
    functions: dict[str, FunctionCode] = {}
    for name, instructions in parse_sass(sass):
        sources = tuple(lines.get((name, offset)) for offset, _ in instructions)
        functions.setdefault(name, FunctionCode(name, tuple(instructions), sources))
    return tuple(functions.values())


def parse_sass(sass: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """The functions of cuobjdump's listing, with the offset and text of each instruction."""
    for part in sass.split("Function :")[1:]:
        name, _, body = part.partition("\n")
        matches = (_INSTRUCTION.match(line) for line in body.splitlines())
        yield name.strip(), [(int(match[1], 16), " ".join(match[2].split())) for match in matches if match]


def parse_line_info(text: str) -> dict[tuple[str, int], FileLine]:
    """The source line by function and offset, from nvdisasm's listing with line info."""
    lines: dict[tuple[str, int], FileLine] = {}
    function, places, is_first = "", list[FileLine](), True
    for line in text.splitlines():
        if section := _SECTION.match(line):
            function, places = section[1], []
        elif source := _LINE_INFO.search(line):
            if is_first:
                places, is_first = [], False
            # Of inlined code its own line comes first, then those of the calls that it was inlined at.
            places.append((source[1], int(source[2])))
        elif instruction := _INSTRUCTION.match(line):
            is_first = True
            if places:
                lines[function, int(instruction[1], 16)] = _line_of_the_user(places)
    return lines


def _line_of_the_user(places: Sequence[FileLine]) -> FileLine:
    """The innermost line that is not of a library; the innermost where all are."""
    return next((place for place in places if not _LIBRARIES.search(place[0])), places[0])


def _line_info(cubin: Path) -> dict[tuple[str, int], FileLine]:
    # The analysis of data flow names targets of branches, and no lines.
    options = ("--print-line-info-inline", "--print-code", "--no-dataflow")
    return parse_line_info(_run_tool("nvdisasm", *options, str(cubin)))


def extract_cubin(path: Path, arch: str | None, folder: Path) -> Path:
    """The file's code for one architecture as a cubin in the folder; the file itself where it is one.

    Raises CannotJudge where cuobjdump is missing, BuildFailed where the file has no such code.
    """
    if path.suffix == ".cubin":
        return path
    cuobjdump = require_tool("cuobjdump")
    listed = _run_tool("cuobjdump", "--list-elf", str(path)).splitlines()
    names = [line.rpartition(":")[2].strip() for line in listed if line.startswith("ELF file")]
    by_arch = {match[0]: name for name in names if (match := re.search(r"sm_\d+[a-z]?", name))}
    if arch is None and len(by_arch) == 1:
        arch = next(iter(by_arch))
    if arch not in by_arch:
        arches = ", ".join(sorted(by_arch)) or "none"
        problem = f"no {arch} machine code" if arch else "machine code of several architectures"
        raise BuildFailed(f"{problem} in {path}; there is {arches}: choose with --arch")
    # It writes the cubin into its working directory.
    command = [str(cuobjdump.path), "--extract-elf", by_arch[arch], str(path.resolve())]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=opcode_counts.TIME_LIMIT_S, check=False)
    return folder / PurePath(by_arch[arch]).name


def _run_tool(name: str, *arguments: str) -> str:
    """What one of the binary tools prints. Raises BuildFailed with the tool's own words where it fails."""
    tool, nvdisasm = require_tool(name), find_tool("nvdisasm")
    path = os.environ.get("PATH", "")  # on which cuobjdump looks for nvdisasm
    environment = {**os.environ, "PATH": f"{nvdisasm.path.parent}{os.pathsep}{path}" if nvdisasm else path}
    process = subprocess.run(
        [str(tool.path), *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        timeout=opcode_counts.TIME_LIMIT_S,
    )
    if process.returncode:
        words = (process.stderr or process.stdout).strip().splitlines()
        raise BuildFailed(
            f"{name} cannot read {arguments[-1]}: {words[-1] if words else 'it printed nothing'}"
        )
    return process.stdout
