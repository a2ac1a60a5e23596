"""What a line of machine code is: its opcode, its text without addresses of code, where it belongs."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePath

from profiler.build import find_tool, opcode_counts, require_tool
from profiler.errors import BuildFailed
from profiler.evidence import opcodes
from profiler.reports import LaunchDetail, source_lines
from profiler.reports.instances import PcColumn

FileLine = tuple[str, int]  # file, line from 1
CodeAddress = tuple[int, int]  # index of a function, byte offset in it
MASKED_ADDRESS = "<target>"  # stands in masked text for an address of code

# What may name an address of code, as its last operand. Source: CUDA Binary Utilities, "Instruction Set
# Reference": control instructions of Volta to Blackwell.
_BRANCHES = "BRA BRX BRXU JMP JMX JMXU CALL RET BSSY BREAK BMOV WARPSYNC LEPC"
_OLD_BRANCHES = "SSY PBK PCNT PRET CAL JCAL"
_FLOW = frozenset(f"{_BRANCHES} {_OLD_BRANCHES}".split())
_WORDS = re.compile(r"(?:@(!?U?P\w+)\s+)?([A-Z][A-Z0-9_.]*)\s*(.*)", re.S)
_SYMBOL = re.compile(r"`\(([^)]*)\)\s*")
_LAST_HEX = re.compile(r"(0x[0-9a-f]+)(\s*)$")
_RETURN = re.compile(r"\b(U?MOV(?:32I)?|IMAD\.MOV\.U32)\b.*?,\s*(0x[0-9a-f]+)$")
_CUOBJDUMP = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.+?)\s*;")
_NVDISASM_FILE = re.compile(r'//## File "(.*)", line (\d+)')
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_CALL_SETUP = 8  # instructions before a CALL.REL that may load where it returns to


@dataclass(frozen=True)
class SassLine:
    """One instruction. Without text (a report prints `???`) only its place is known."""

    function: int  # into Listing.functions
    offset: int  # bytes from where its function starts
    text: str | None  # addresses of code written as offsets in their function
    masked: str | None  # addresses of code left out: what two builds of one source have in common
    opcode: str = ""  # with modifiers
    target: CodeAddress | None = None  # where it branches to, if that is known
    source: FileLine | None = None

    @property
    def opcode_class(self) -> str:
        """One of opcodemix.NAMES; "" where there is no text."""
        return opcodes.opcode_class(self.opcode) if self.opcode else ""


@dataclass(frozen=True)
class FunctionCode:
    """One function as cuobjdump prints it: what can be written down and made a listing of again."""

    name: str  # mangled
    instructions: tuple[tuple[int, str], ...]  # offset in bytes and text
    sources: tuple[FileLine | None, ...]  # one an instruction


@dataclass(frozen=True)
class Listing:
    """The machine code of one launch or one binary, function by function, with its counts."""

    label: str
    functions: tuple[str, ...]
    lines: tuple[SassLine, ...]  # functions in order, offsets ascending
    counts: Mapping[str, PcColumn] = field(default_factory=dict)  # in the order of lines, NaN for no value
    texts: Mapping[str, str] = field(default_factory=dict)  # of the source files that a report embeds

    @property
    def has_text(self) -> bool:
        """Whether any instruction can be read."""
        return any(line.text for line in self.lines)

    @property
    def has_sources(self) -> bool:
        """Whether any instruction says which source line it comes from."""
        return any(line.source for line in self.lines)

    @cached_property
    def ranges(self) -> tuple[range, ...]:
        """The lines of each function."""
        starts = [0] * (len(self.functions) + 1)
        for line in self.lines:
            starts[line.function + 1] += 1
        for index in range(1, len(starts)):
            starts[index] += starts[index - 1]
        return tuple(range(a, b) for a, b in pairwise(starts))

    @cached_property
    def index(self) -> dict[CodeAddress, int]:
        """The line at each place."""
        return {(line.function, line.offset): at for at, line in enumerate(self.lines)}

    def source_text(self, source: FileLine) -> str | None:
        """The text of a source line, None where the report does not hold it."""
        lines = self._split.get(source[0], ())
        return lines[source[1] - 1] if 0 < source[1] <= len(lines) else None

    @cached_property
    def _split(self) -> dict[str, list[str]]:
        return {name: source_lines(text) for name, text in self.texts.items()}


def listing_of_launch(detail: LaunchDetail, label: str = "") -> Listing:
    """The listing of a launch, from its report. A report names no function but the kernel."""
    places = detail.places()
    starts = list(detail.functions)
    if places and places[0][0] < 0:  # before every known function
        starts.insert(0, int(detail.pcs[0]))
        places = [(i + 1, offset if i >= 0 else offset - starts[0]) for i, offset in places]
    names = [file.name for file in detail.files]
    sources: list[FileLine | None] = [
        (names[file], line) if file >= 0 and line > 0 else None
        for file, line in zip(detail.file_index.tolist(), detail.line.tolist(), strict=True)
    ]
    resolved = _Addresses(starts, places)
    lines = _lines(places, [_one_space(text) for text in detail.sass], sources, resolved)
    several = len(starts) > 1
    functions = [
        f"{detail.function} [{n} of {len(starts)}]" if several else detail.function
        for n in range(1, len(starts) + 1)
    ]
    texts = {file.name: file.text for file in detail.files if file.text is not None}
    return Listing(label or detail.function, tuple(functions), lines, detail.per_pc, texts)


def disassemble(path: Path, arch: str | None = None, *, line_info: bool = True) -> Listing:
    """The listing of a cubin, library or program, by cuobjdump, with source lines by nvdisasm.

    arch: which one where the binary holds several. Raises CannotJudge where the tools are missing,
    BuildFailed where the file has no such code.
    """
    with tempfile.TemporaryDirectory(prefix="profiler-sass-") as folder:
        cubin = _cubin(path, arch, Path(folder))
        sass = _tool("cuobjdump", "--dump-sass", str(cubin))
        where = _line_info(cubin) if line_info else {}
    return make_listing(parse_functions(sass, where), path.name)


def library_functions(path: Path, arch: str) -> tuple[FunctionCode, ...]:
    """The functions of a version's library with their source lines; its listing is made once and kept beside.

    Raises as of_binary does.
    """
    sass = opcode_counts.dump_sass(path, arch)
    with tempfile.TemporaryDirectory(prefix="profiler-sass-") as folder:
        where = _line_info(_cubin(path, arch, Path(folder)))
    return parse_functions(sass, where)


def parse_functions(sass: str, where: Mapping[tuple[str, int], FileLine]) -> tuple[FunctionCode, ...]:
    """The functions in cuobjdump's listing, each once, with the source line of each instruction."""
    found: dict[str, FunctionCode] = {}
    for name, instructions in parse_sass(sass):
        sources = tuple(where.get((name, offset)) for offset, _ in instructions)
        found.setdefault(name, FunctionCode(name, tuple(instructions), sources))
    return tuple(found.values())


def make_listing(
    functions: Sequence[FunctionCode], label: str, texts: Mapping[str, str] | None = None
) -> Listing:
    """The listing of functions as cuobjdump prints them: nothing is counted in it."""
    lines: list[SassLine] = []
    for index, one in enumerate(functions):
        places = [(index, offset) for offset, _ in one.instructions]
        instructions: list[str | None] = [text for _, text in one.instructions]
        lines += _lines(places, instructions, one.sources, _Addresses([], places, index))
    return Listing(label, tuple(one.name for one in functions), tuple(lines), texts=texts or {})


def select_functions(listing: Listing, wanted: Callable[[str], bool]) -> Listing:
    """The functions whose names are wanted, with their lines and counts."""
    kept = [index for index, name in enumerate(listing.functions) if wanted(name)]
    new = {old: index for index, old in enumerate(kept)}
    positions = [at for at, line in enumerate(listing.lines) if line.function in new]
    lines = []
    for at in positions:
        line = listing.lines[at]
        target = (line.target and line.target[0] in new and (new[line.target[0]], line.target[1])) or None
        lines.append(replace(line, function=new[line.function], target=target))
    counts = {name: PcColumn(one.unit, one.values[positions]) for name, one in listing.counts.items()}
    functions = tuple(listing.functions[index] for index in kept)
    return Listing(listing.label, functions, tuple(lines), counts, listing.texts)


def parse_sass(sass: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Functions of cuobjdump's listing with their instructions as offset and text."""
    for part in sass.split("Function :")[1:]:
        name, _, body = part.partition("\n")
        found = (_CUOBJDUMP.match(line) for line in body.splitlines())
        yield name.strip(), [(int(one[1], 16), " ".join(one[2].split())) for one in found if one]


def parse_line_info(text: str) -> dict[tuple[str, int], FileLine]:
    """Source line by function and offset, from nvdisasm's listing with line info.

    Of code that was inlined it prints the line of the call after it; the first one is the instruction's own.
    """
    found: dict[tuple[str, int], FileLine] = {}
    function, now, fresh = "", None, True
    for line in text.splitlines():
        if section := _SECTION.match(line):
            function, now = section[1], None
        elif told := _NVDISASM_FILE.search(line):
            if fresh:
                now, fresh = (told[1], int(told[2])), False
        elif instruction := _CUOBJDUMP.match(line):
            fresh = True
            if now:
                found[function, int(instruction[1], 16)] = now
    return found


class _Addresses:
    """Which instruction an address of code belongs to."""

    def __init__(self, starts: Sequence[int], places: Sequence[CodeAddress], function: int = 0) -> None:
        self._starts = starts
        self._known = set(places)
        self._function = function

    def target(self, address: int) -> CodeAddress | None:
        """The place of an absolute address (starts given) or of an offset in the one function."""
        if not self._starts:
            place = (self._function, address)
        else:
            below = [index for index, start in enumerate(self._starts) if start <= address]
            if not below:
                return None
            place = (below[-1], address - self._starts[below[-1]])
        return place if place in self._known else None


def _lines(
    places: Sequence[CodeAddress],
    texts: Sequence[str | None],
    sources: Sequence[FileLine | None],
    addresses: _Addresses,
) -> tuple[SassLine, ...]:
    """The lines of a listing: addresses rebased and masked, return addresses of calls too."""
    returns: dict[int, int] = {}  # line to the offset that it may hold for the call behind it
    for index, text in enumerate(texts):
        if text and "CALL.REL" in text:
            function, offset = places[index]
            before = range(max(0, index - _CALL_SETUP), index)
            returns |= {
                at: offset + opcode_counts.INSTRUCTION_BYTES for at in before if places[at][0] == function
            }
    found = []
    for index, (place, text, source) in enumerate(zip(places, texts, sources, strict=True)):
        shown, masked, opcode, target = _read(text, place, addresses, returns.get(index))
        found.append(SassLine(*place, shown, masked, opcode, target, source))
    return tuple(found)


def _read(
    text: str | None, place: CodeAddress, addresses: _Addresses, returns: int | None
) -> tuple[str | None, str | None, str, CodeAddress | None]:
    """Rebased text, masked text, opcode and target of one instruction."""
    words = _WORDS.match(text) if text else None
    if text is None or words is None:
        return text, text, "", None
    opcode = words[2]
    if opcode.partition(".")[0] in _FLOW:
        plain = _SYMBOL.sub("", text) if _LAST_HEX.search(text) else text  # a label beside the address
        if (last := _LAST_HEX.search(plain)) and _is_address(opcode, plain):
            target = addresses.target(int(last[1], 16))
            kept = plain[: last.start()]
            return kept + _shown(target, place), kept + MASKED_ADDRESS, opcode, target
        return text, _SYMBOL.sub(MASKED_ADDRESS, text), opcode, None
    if returns is not None and (loaded := _RETURN.search(text)) and int(loaded[2], 16) == returns:
        # CALL.REL is told by its caller where to go on: the offset of the instruction after the call.
        return text, text[: loaded.start(2)] + MASKED_ADDRESS, opcode, (place[0], returns)
    return text, text, opcode, None


def _is_address(opcode: str, text: str) -> bool:
    """Whether the last number of a control instruction is code: of WARPSYNC it may be a mask of lanes."""
    base, _, modifiers = opcode.partition(".")
    if base == "WARPSYNC":
        return "COLLECTIVE" in modifiers or "EXCLUSIVE" in modifiers
    return base != "BMOV" or ".PC" in text


def _shown(target: CodeAddress | None, place: CodeAddress) -> str:
    if target is None:
        return MASKED_ADDRESS
    return f"{target[1]:#06x}" if target[0] == place[0] else f"[{target[0] + 1}]{target[1]:#06x}"


def _one_space(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())


def _line_info(cubin: Path) -> dict[tuple[str, int], FileLine]:
    return parse_line_info(_tool("nvdisasm", "--print-line-info", "--print-code", str(cubin)))


def _cubin(path: Path, arch: str | None, folder: Path) -> Path:
    """The file's code for one architecture as a cubin; itself where it is one."""
    if path.suffix == ".cubin":
        return path
    cuobjdump = require_tool("cuobjdump")
    named = _tool("cuobjdump", "--list-elf", str(path)).splitlines()
    found = [line.rpartition(":")[2].strip() for line in named if line.startswith("ELF file")]
    arches = {match[0]: name for name in found if (match := re.search(r"sm_\d+[a-z]?", name))}
    if arch is None and len(arches) == 1:
        arch = next(iter(arches))
    if arch not in arches:
        there = ", ".join(sorted(arches)) or "none"
        asked = f"no {arch} machine code" if arch else "machine code of several architectures"
        raise BuildFailed(f"{asked} in {path}; there is {there}: choose with --arch")
    command = [str(cuobjdump.path), "--extract-elf", arches[arch], str(path.resolve())]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=opcode_counts.TIME_LIMIT_S, check=False)
    return folder / PurePath(arches[arch]).name


def _tool(name: str, *arguments: str) -> str:
    """What one of the binary tools prints; raises BuildFailed with its own words where it fails."""
    tool, nvdisasm = require_tool(name), find_tool("nvdisasm")
    path = os.environ.get("PATH", "")
    environment = {**os.environ, "PATH": f"{nvdisasm.path.parent}{os.pathsep}{path}" if nvdisasm else path}
    command = [str(tool.path), *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        timeout=opcode_counts.TIME_LIMIT_S,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BuildFailed(f"{name} cannot read {arguments[-1]}: {said[-1] if said else 'it printed nothing'}")
    return done.stdout
