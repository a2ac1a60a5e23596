"""Machine code as lines: each instruction's opcode, its text without addresses of code, its source line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from profiler.build.instruction_text import split_instruction
from profiler.build.opcode_counts import INSTRUCTION_BYTES
from profiler.evidence import opcodes
from profiler.reports.instances import LaunchDetail, PcColumn
from profiler.reports.source_text import source_lines

FileLine = tuple[str, int]  # a file and a line of it, from 1
CodeAddress = tuple[int, int]  # the index of a function and a byte offset in it
# ncu's names of what it samples for each instruction.
SAMPLES = "smsp__pcsamp_sample_count"
STALL = "smsp__pcsamp_warps_issue_stalled_"  # and the reason
NOT_ISSUED = "_not_issued"  # behind the reason: a part of the same samples
_DERIVED_SAMPLES = {SAMPLES: "the sum of the samples of all reasons, which the report has alone"}
MASKED_ADDRESS = "<target>"  # what masked text has for an address of code

# Instructions whose last operand may be an address of code. Source: CUDA Binary Utilities, "Instruction Set
# Reference": control instructions of Volta to Blackwell.
_BRANCHES = "BRA BRX BRXU JMP JMX JMXU CALL RET BSSY BREAK BMOV WARPSYNC LEPC"
_OLD_BRANCHES = "SSY PBK PCNT PRET CAL JCAL"
_FLOW = frozenset(f"{_BRANCHES} {_OLD_BRANCHES}".split())
_INDIRECT = frozenset(("BRX", "BRXU", "JMX", "JMXU"))
_SYMBOL = re.compile(r"`\(([^)]*)\)\s*")  # `(.L_x_12)
_LAST_HEX = re.compile(r"(0x[0-9a-f]+)(\s*)$")
_RETURN = re.compile(r"\b(U?MOV(?:32I)?|IMAD\.MOV\.U32)\b.*?,\s*(0x[0-9a-f]+)$")
CALL_SETUP = 8  # instructions before a CALL.REL that may load where it returns to


@dataclass(frozen=True)
class SassLine:
    """One instruction. Where there is no text (a report prints `???`), only its address is known."""

    function: int  # into Listing.functions
    offset: int  # bytes from where its function starts
    text: str | None  # with addresses of code written as offsets in their function
    masked: str | None  # without addresses of code: what two builds of one source have in common
    opcode: str = ""  # with modifiers
    target: CodeAddress | None = None  # where it branches to, where that is known
    source: FileLine | None = None

    @property
    def opcode_class(self) -> str:
        """One of the classes of evidence.opcodes; "" where there is no text."""
        return opcodes.opcode_class(self.opcode) if self.opcode else ""


@dataclass(frozen=True)
class FunctionCode:
    """One function as cuobjdump prints it: what a bundle stores, and a listing is made of."""

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
    # Metrics of the launch whose values cannot be shown, with the reason.
    left_out: Mapping[str, str] = field(default_factory=dict)
    derived: Mapping[str, str] = field(default_factory=dict)  # counts that the report lacks: from what

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
    addresses = detail.places()
    starts = list(detail.functions)
    if addresses and addresses[0][0] < 0:  # code before every known function is a function of its own
        starts.insert(0, int(detail.pcs[0]))
        addresses = [(i + 1, offset if i >= 0 else offset - starts[0]) for i, offset in addresses]
    names = [file.name for file in detail.files]
    sources: list[FileLine | None] = [
        (names[file], line) if file >= 0 and line > 0 else None
        for file, line in zip(detail.file_index.tolist(), detail.line.tolist(), strict=True)
    ]
    texts = [None if text is None else " ".join(text.split()) for text in detail.sass]
    lines = _lines(addresses, texts, sources, _CodeMap(addresses, starts=starts))
    functions = [
        f"{detail.function} [{number} of {len(starts)}]" if len(starts) > 1 else detail.function
        for number in range(1, len(starts) + 1)
    ]
    files = {file.name: file.text for file in detail.files if file.text is not None}
    label = label or detail.function
    counts = _with_samples(detail.per_pc)
    derived = {} if counts.keys() == detail.per_pc.keys() else _DERIVED_SAMPLES
    return Listing(label, tuple(functions), lines, counts, files, detail.left_out, derived)


def _with_samples(counts: Mapping[str, PcColumn]) -> Mapping[str, PcColumn]:
    """The counts with the number of samples, which ncu 2021.1 stores by reason alone.

    Every sample has exactly one reason, a warp that issues being one (selected).
    """
    reasons = [
        column for name, column in counts.items() if name.startswith(STALL) and not name.endswith(NOT_ISSUED)
    ]
    if SAMPLES in counts or not reasons:
        return counts
    values = np.array([column.values for column in reasons])
    has_any = ~np.isnan(values).all(axis=0)
    return {
        **counts,
        SAMPLES: PcColumn(reasons[0].unit, np.where(has_any, np.nansum(values, axis=0), np.nan)),
    }


def make_listing(
    functions: Sequence[FunctionCode], label: str, texts: Mapping[str, str] | None = None
) -> Listing:
    """The listing of functions as cuobjdump prints them, without counts. texts: of source files, by name."""
    lines: list[SassLine] = []
    for index, function in enumerate(functions):
        addresses = [(index, offset) for offset, _ in function.instructions]
        instructions: list[str | None] = [text for _, text in function.instructions]
        lines += _lines(addresses, instructions, function.sources, _CodeMap(addresses, function=index))
    return Listing(label, tuple(function.name for function in functions), tuple(lines), texts=texts or {})


def function_rows(codes: Sequence[Sequence[tuple[int, str]]]) -> list[tuple[SassLine, ...]]:
    """The lines of functions that are printed one behind the other, by absolute offset and text."""
    starts = [code[0][0] if code else 0 for code in codes]
    addresses = [
        (index, offset - start)
        for index, (start, code) in enumerate(zip(starts, codes, strict=True))
        for offset, _ in code
    ]
    texts = [text for code in codes for _, text in code]
    lines = iter(_lines(addresses, texts, [None] * len(texts), _CodeMap(addresses, starts=starts)))
    return [tuple(next(lines) for _ in code) for code in codes]


def select_functions(listing: Listing, is_selected: Callable[[str], bool]) -> Listing:
    """The functions that are selected by their names, with their lines and counts."""
    selected = [index for index, name in enumerate(listing.functions) if is_selected(name)]
    new_index = {old: new for new, old in enumerate(selected)}
    positions = [position for position, line in enumerate(listing.lines) if line.function in new_index]
    lines = []
    for position in positions:
        line = listing.lines[position]
        target = None
        if line.target and line.target[0] in new_index:
            target = (new_index[line.target[0]], line.target[1])
        lines.append(replace(line, function=new_index[line.function], target=target))
    counts = {
        name: PcColumn(column.unit, column.values[positions]) for name, column in listing.counts.items()
    }
    functions = tuple(listing.functions[index] for index in selected)
    return replace(listing, functions=functions, lines=tuple(lines), counts=counts)


class _CodeMap:
    """Which instruction an address is that stands in the text of another one.

    Reports print absolute addresses, which `starts`, the address of each function, makes relative. cuobjdump
    prints offsets in the function, so that one map serves one `function`.
    """

    def __init__(
        self, addresses: Sequence[CodeAddress], *, starts: Sequence[int] = (), function: int = 0
    ) -> None:
        self._addresses = set(addresses)
        self._starts = starts
        self._function = function

    def resolve(self, address: int) -> CodeAddress | None:
        """The function and offset of a printed address; None where no instruction of the listing is there."""
        if not self._starts:
            resolved = (self._function, address)
        else:
            below = [index for index, start in enumerate(self._starts) if start <= address]
            if not below:
                return None
            resolved = (below[-1], address - self._starts[below[-1]])
        return resolved if resolved in self._addresses else None


def _lines(
    addresses: Sequence[CodeAddress],
    texts: Sequence[str | None],
    sources: Sequence[FileLine | None],
    code_map: _CodeMap,
) -> tuple[SassLine, ...]:
    """The lines of a listing: addresses of code rebased and masked, return addresses of calls too."""
    # CALL.REL is told by its caller where to return to: one of the instructions before it loads the offset of
    # the instruction behind it. By position, the offset that an instruction may load for such a call:
    return_offsets: dict[int, int] = {}
    for position, text in enumerate(texts):
        if text and "CALL.REL" in text:
            function, offset = addresses[position]
            for before in range(max(0, position - CALL_SETUP), position):
                if addresses[before][0] == function:
                    return_offsets[before] = offset + INSTRUCTION_BYTES
    lines = []
    for position, (address, text, source) in enumerate(zip(addresses, texts, sources, strict=True)):
        rebased, masked, opcode, target = _read(text, address, code_map, return_offsets.get(position))
        lines.append(SassLine(*address, rebased, masked, opcode, target, source))
    return tuple(lines)


def _read(
    text: str | None, address: CodeAddress, code_map: _CodeMap, return_offset: int | None
) -> tuple[str | None, str | None, str, CodeAddress | None]:
    """The rebased text, the masked text, the opcode and the target of one instruction."""
    words = split_instruction(text) if text else None
    if text is None or words is None:
        return text, text, "", None
    opcode = words.opcode
    if words.base in _FLOW:
        plain = (
            _SYMBOL.sub("", text) if _LAST_HEX.search(text) else text
        )  # without a label beside the address
        if (last := _LAST_HEX.search(plain)) and _is_address(opcode, plain):
            target = code_map.resolve(int(last[1], 16))
            before = plain[: last.start()]
            return before + _target_text(target, address), before + MASKED_ADDRESS, opcode, target
        return text, _SYMBOL.sub(MASKED_ADDRESS, text), opcode, None
    loaded = _RETURN.search(text) if return_offset is not None else None
    if loaded and return_offset is not None and int(loaded[2], 16) == return_offset:
        return text, text[: loaded.start(2)] + MASKED_ADDRESS, opcode, (address[0], return_offset)
    return text, text, opcode, None


def code_address(text: str) -> int | None:
    """Which address of code an instruction names by its distance; None where it names none."""
    words = split_instruction(text)
    if words is None or words.base not in _FLOW or words.base in _INDIRECT or ".ABS" in words.opcode:
        return None
    last = _LAST_HEX.search(text)
    return int(last[1], 16) if last and _is_address(words.opcode, text) else None


def is_flow(opcode: str) -> bool:
    """Whether the last operand of an instruction may be an address of code."""
    return opcode.partition(".")[0] in _FLOW


def _is_address(opcode: str, text: str) -> bool:
    """Whether the last number of a control instruction is code: of WARPSYNC it may be a mask of lanes."""
    base, _, modifiers = opcode.partition(".")
    if base == "WARPSYNC":
        return "COLLECTIVE" in modifiers or "EXCLUSIVE" in modifiers
    return base != "BMOV" or ".PC" in text


def _target_text(target: CodeAddress | None, address: CodeAddress) -> str:
    """`0x01a0`, or `[2]0x01a0` where it is in the second function and the instruction in another."""
    if target is None:
        return MASKED_ADDRESS
    function, offset = target
    return f"{offset:#06x}" if function == address[0] else f"[{function + 1}]{offset:#06x}"
