"""Machine code out of binaries, with source lines: what cuobjdump and nvdisasm print."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from profiler.build import opcode_counts
from profiler.build.code_images import choose_images
from profiler.build.instruction_text import read_line, read_lines
from profiler.build.toolchain import find_tool, require_tool
from profiler.bundles.scratch import scratch_folder
from profiler.errors import BuildFailed, CannotJudge, UnknownName
from profiler.evidence.gpu_arch import disassembled_as
from profiler.evidence.naming import brief_list
from profiler.sass.listing import FileLine, FunctionCode, Listing, make_listing

_LINE_INFO = re.compile(r'//## File "(.*?)", line (\d+)')
# Sources that come with a compiler: what a reader wants of code inlined from them is the line of the call.
_LIBRARIES = re.compile(
    r"(^|/)(triton/(language|experimental)|nvidia_cutlass_dsl|cuda/tile)/"  # Triton, Gluon, CuTe DSL, cuTile
    r"|/(cuda[^/]*|cu\d+|targets/[^/]+)/include/|/crt/[^/]*$"  # the CUDA toolkit, wherever it is installed
    r"|(^|/)(cuda_(fp16|bf16|fp8|fp6|fp4)|sm_\d+_[a-z_]+|device_[a-z_]+|mma)\.hpp?$"
)
_SOURCES = frozenset(
    [
        ".cu",
        ".cuh",
        ".c",
        ".cc",
        ".cpp",
        ".cxx",
        ".h",
        ".hh",
        ".hpp",
        ".hxx",
        ".inl",
        ".inc",
        ".ptx",
        ".py",
        ".ttir",
        ".ttgir",
    ]
)
_MOST_SOURCE_BYTES = 10_000_000
_TARGET = re.compile(r"^\s*\.target\s+(sm_\w+)", re.MULTILINE)
# What ptxas says of PTX that is newer than itself, or for a GPU that it does not know.
TOO_NEW = re.compile(
    r"Unsupported \.(version|target)|not defined for option 'gpu-name'|specified by \.target is higher", re.I
)
_UNKNOWN_AT = re.compile(r"at address (0x[0-9a-f]+)")
# The high 64 bits of an instruction that waits for nothing and sets no barrier: some of those with other
# bits there, such as a store that sets a barrier for its result, nvdisasm does not know.
NEUTRAL_SCHEDULE = 0x000FE20000000000
_NOP = (0x7918).to_bytes(8, "little") + NEUTRAL_SCHEDULE.to_bytes(8, "little")
_MOST_TRIES = 20  # of leaving out what is no instruction
_LABEL = re.compile(r"([.$\w]\S*):\s*$")
_ELSEWHERE = re.compile(r"`\(|\d@")  # an address that the linker fills in: `32@lo(counter)`
_REFERENCE = re.compile(r"`\(([^()]+)\)")
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")


def disassemble(
    path: Path, arch: str | None = None, is_selected: Callable[[str], bool] | None = None
) -> Listing:
    """The listing of a cubin, library or program, with source lines, by nvdisasm.

    arch: which one where the binary holds several. is_selected: whether a function is asked for; images
    without such a one are left out, for each megabyte takes seconds. Raises CannotJudge where the tools are
    missing, BuildFailed where the file has no such code, UnknownName where it has no such function.
    """
    with scratch_folder() as folder:
        cubins = extract_cubins(path, arch, folder, is_selected=is_selected)
        functions = tuple(function for cubin in cubins for function in cubin_functions(cubin))
    return make_listing(functions, path.name, _source_texts(path, functions))


def _source_texts(path: Path, functions: Sequence[FunctionCode]) -> dict[str, str]:
    """The source files of the code that are on this disk, by name: of relative names those beside the file.

    A source that was changed after the code was made is left out: its lines may be others.
    """
    texts = {}
    for name in {source[0] for function in functions for source in function.sources if source}:
        source = path.parent / name
        with contextlib.suppress(OSError, ValueError):
            status = source.stat()
            is_text = source.suffix.lower() in _SOURCES and stat.S_ISREG(status.st_mode)
            if is_text and status.st_size <= _MOST_SOURCE_BYTES and status.st_mtime <= path.stat().st_mtime:
                texts[name] = source.read_text("utf-8", "replace")
    return texts


def cubin_functions(cubin: Path) -> tuple[FunctionCode, ...]:
    """The functions of a cubin with their source lines; nothing is cached. Raises as disassemble does."""
    text = _line_listing(cubin)
    lines = parse_line_info(text)
    functions = tuple(parse_labelled(text))
    if any(_ELSEWHERE.search(text) for _, code in functions for _, text in code):
        return parse_functions(_run_tool("cuobjdump", "--dump-sass", str(cubin)), lines)
    return tuple(
        FunctionCode(name, tuple(code), tuple(lines.get((name, offset)) for offset, _ in code))
        for name, code in functions
    )


def library_functions(path: Path, arch: str) -> tuple[FunctionCode, ...]:
    """The functions of a version's library with their source lines; cuobjdump's text is cached beside it.

    Raises as disassemble does.
    """
    sass = opcode_counts.dump_sass(path, arch)
    with scratch_folder() as folder:
        lines = parse_line_info(_line_listing(extract_cubin(path, arch, folder)))
    return parse_functions(sass, lines)


def disassemble_words(arch: str, words: bytes, first_address: int = 0) -> list[str | None]:
    """The text of each instruction of 128 bits, one behind the other from an address on, by nvdisasm.

    arch: sm_90a. None for what is no instruction, and for all where nvdisasm does not know the architecture:
    toolkit 13 knows nothing before Turing, as which it reads Volta. Raises CannotJudge where the tool is
    missing, BuildFailed where it does not end.
    """
    count = len(words) // opcode_counts.INSTRUCTION_BYTES
    target = disassembled_as(arch).replace("sm_", "SM")
    code, unknown = bytearray(words), set[int]()
    with scratch_folder() as folder:
        file = folder / "code.bin"
        for _ in range(_MOST_TRIES):
            file.write_bytes(code)
            try:
                text = _run_tool(
                    "nvdisasm", "--binary", target, "--base-address", hex(first_address), str(file)
                )
            except _ToolFailed as error:
                # It prints nothing at all where one word is wrong, but the address of each that is.
                places = {
                    (int(address, 16) - first_address) // opcode_counts.INSTRUCTION_BYTES
                    for address in _UNKNOWN_AT.findall(error.output)
                }
                if not places - unknown:
                    return [None] * count
                unknown |= places
                for place in places:
                    code[16 * place : 16 * place + 16] = _NOP
                continue
            found = dict(read_lines(text))
            return [
                None
                if place in unknown
                else found.get(first_address + opcode_counts.INSTRUCTION_BYTES * place)
                for place in range(count)
            ]
    return [None] * count


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
        yield name.strip(), [found for line in body.splitlines() if (found := read_line(line))]


def parse_labelled(text: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """The functions in nvdisasm's listing, with the offset and text of each instruction, as parse_sass does.

    nvdisasm names places by labels where cuobjdump writes their offsets: those of the same function are
    replaced.
    """
    functions: dict[str, list[tuple[int, str]]] = {}
    places: dict[tuple[str, str], int] = {}
    function, waiting = "", list[str]()
    for line in text.splitlines():
        if section := _SECTION.match(line):
            function, waiting = section[1], []
            functions[function] = []
        elif label := _LABEL.match(line):
            waiting.append(label[1])
        elif function and (instruction := read_line(line)):
            places.update(((function, name), instruction[0]) for name in waiting)
            waiting = []
            functions[function].append(instruction)
    for name, code in functions.items():

        def offset_of(found: re.Match[str], name: str = name) -> str:
            place = places.get((name, found[1]))
            return found[0] if place is None else f"{place:#x}"

        yield name, [(offset, _REFERENCE.sub(offset_of, text)) for offset, text in code]


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
        elif instruction := read_line(line):
            is_first = True
            if places:
                lines[function, instruction[0]] = _line_of_the_user(places)
    return lines


def _line_of_the_user(places: Sequence[FileLine]) -> FileLine:
    """The innermost line that is not of a library; the innermost where all are."""
    return next((place for place in places if not _LIBRARIES.search(place[0])), places[0])


def _line_listing(cubin: Path) -> str:
    # The analysis of data flow names targets of branches, and no lines.
    return _run_tool("nvdisasm", "--print-line-info-inline", "--print-code", "--no-dataflow", str(cubin))


def extract_cubin(path: Path, arch: str | None, folder: Path, *, function: str | None = None) -> Path:
    """The file's code for one architecture as a cubin in the folder; the file itself where it is one.

    function: of several images the one that has it. Raises BuildFailed where the file has no such code, or
    several images of it, CannotJudge where it holds PTX alone.
    """
    cubins = extract_cubins(path, arch, folder, function=function)
    if len(cubins) > 1 and function is None:
        raise BuildFailed(f"{path} holds {len(cubins)} images of machine code where one is expected")
    if not cubins:
        raise BuildFailed(f"{path} has no kernel {function}")
    return cubins[0]


def extract_cubins(
    path: Path,
    arch: str | None,
    folder: Path,
    *,
    function: str | None = None,
    is_selected: Callable[[str], bool] | None = None,
) -> tuple[Path, ...]:
    """Every image of the file for one architecture as a cubin, as extract_cubin; of PTX what ptxas makes.

    is_selected: only those with such a function. Raises UnknownName where there is none.
    """
    if path.suffix == ".ptx":
        path = assemble_ptx(path, folder, arch)
    if path.suffix == ".cubin":
        if arch is not None:
            next(choose_images(path, arch), None)  # raises where it is for another
        return (path,)
    cubins, others = [], list[str]()
    for image in choose_images(path, arch, function=function):
        names = [one.name for one in image.functions]
        if is_selected and not any(map(is_selected, names)):
            others += names
            continue
        cubins.append(folder / f"{path.stem}.{image.number}.{image.arch}.cubin")
        cubins[-1].write_bytes(image.content)
    if others and not cubins:
        raise UnknownName(f"{path} has no such function; there are {brief_list(sorted(set(others)))}")
    return tuple(cubins)


def assemble_ptx(path: Path, folder: Path, arch: str | None = None) -> Path:
    """The machine code that ptxas makes of PTX, for its own target where none is named.

    Raises CannotJudge where ptxas is missing or does not know the PTX's version or target, BuildFailed where
    the PTX is wrong.
    """
    try:
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise BuildFailed(f"{path} cannot be read: {error.strerror}") from None
    target = _TARGET.search(text)
    if target is None:
        raise BuildFailed(f"{path} is no PTX: it names no .target")
    output = folder / f"{path.stem}.cubin"
    tool = require_tool("ptxas")
    command = [str(tool.path), f"-arch={arch or target[1]}", "-lineinfo", "-o", str(output), str(path)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=opcode_counts.TIME_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise CannotJudge(f"ptxas did not end within {opcode_counts.TIME_LIMIT_S} s on {path}") from None
    if done.returncode or not output.is_file():
        words = (done.stderr or done.stdout).strip().splitlines()
        first = next((line for line in words if "error" in line or "fatal" in line), "it said nothing")
        if TOO_NEW.search(first):
            raise CannotJudge(f"ptxas {tool.version} cannot compile {path}: {first}: take a newer ptxas")
        raise BuildFailed(f"ptxas cannot compile {path}: {first}")
    return output


def _run_tool(name: str, *arguments: str) -> str:
    """What one of the binary tools prints. Raises BuildFailed with the tool's own words where it fails."""
    tool, nvdisasm = require_tool(name), find_tool("nvdisasm")
    path = os.environ.get("PATH", "")  # on which cuobjdump looks for nvdisasm
    environment = {**os.environ, "PATH": f"{nvdisasm.path.parent}{os.pathsep}{path}" if nvdisasm else path}
    try:
        process = subprocess.run(
            [str(tool.path), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=opcode_counts.TIME_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise BuildFailed(
            f"{name} did not end within {opcode_counts.TIME_LIMIT_S} s on {arguments[-1]}"
        ) from None
    if process.returncode:
        output = process.stderr or process.stdout
        words = output.strip().splitlines()
        error = _ToolFailed(
            f"{name} cannot read {arguments[-1]}: {words[-1] if words else 'it printed nothing'}"
        )
        error.output = output
        raise error
    return process.stdout


class _ToolFailed(BuildFailed):
    """A tool says that it cannot read its file."""

    output = ""  # all that it said
