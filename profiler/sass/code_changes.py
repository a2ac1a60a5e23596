"""What changed in the machine code of a function, by kind and by how many loops it is in."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from profiler.build.code_images import FunctionBytes
from profiler.build.kernel_names import function_name
from profiler.errors import UnknownName
from profiler.evidence.opcodes import base_opcode, is_matrix_multiply, opcode_class
from profiler.sass import alignment
from profiler.sass.binary_functions import (
    BinaryFunction,
    FunctionPair,
    pair_functions,
    read_both,
)
from profiler.sass.code_words import INSTRUCTION_BYTES, PADDING, CodeReader, FunctionCounts
from profiler.sass.listing import Listing, SassLine
from profiler.sass.loops import BlockGraph, block_graph
from profiler.sass.opcode_classes import unscheduled_words
from profiler.sass.patched_code import Form, Patch, patched_words, read_patches
from profiler.sass.value_flow import (
    HASH,
    Hashes,
    InstructionFlow,
    ValueFlow,
    first_colours,
    instruction_flow,
    value_flow,
)

_WIDTH = re.compile(r"\.(U8|S8|U16|S16|64|128|256)\b")
_WIDE_MEMORY = frozenset(
    (
        "LDG",
        "STG",
        "LD",
        "ST",
        "LDS",
        "STS",
        "LDL",
        "STL",
        "LDGSTS",
        "LDSM",
        "STSM",
        "LDC",
        "ULDC",
        "LDCU",
        "RED",
        "REDG",
    )
)
_BARRIERS = frozenset(
    (
        "BAR",
        "DEPBAR",
        "LDGDEPBAR",
        "WARPSYNC",
        "MEMBAR",
        "FENCE",
        "ERRBAR",
        "CGAERRBAR",
        "SYNCS",
        "ARRIVES",
        "UTCBAR",
        "UCGABAR_ARV",
        "UCGABAR_WAIT",
        "ACQBULK",
        "WARPGROUP",
        "WARPGROUPDEPBAR",
        "BSSY",
        "BSYNC",
    )
)
_WAITS_FOR_COPIES = frozenset(("DEPBAR", "LDGDEPBAR"))  # of cp.async into shared memory
_OF_COPIES = frozenset(("LDGSTS", "LDS", "LDSM", "STS", "STSM", "ATOMS"))
_NUMBER = re.compile(r"\+?(?<![\w.])-?(?:0x[0-9a-f]+|\d[\d.]*(?:e[-+]?\d+)?|INF|QNAN)\b")
_CONSTANT = re.compile(r"\bcx?\[[^\]]*\]\[[^\]]*\]")
_MOST_AT_ONCE = 16_000_000  # bytes of code of which instructions are counted
_MOST_PATCHED_AT_ONCE = 48_000_000  # of which the text of some instructions is read
_MOST_TEXT_AT_ONCE = 4_000_000  # of which all text is
_GROWN = 1.5  # times the work of an unrolled loop, at least
_UNROLLED = 0.12  # how far the growth of single opcodes may lie from that of all in an unrolled loop


_MATH = frozenset(
    ("FFMA", "FMUL", "FADD", "FFMA2", "HFMA2", "HADD2", "HMUL2", "DFMA", "DADD", "DMUL", "MUFU")
)
_MOVE = "HFMA2.MMA"  # how ptxas writes a constant to a register where the other pipes are busy
_MOVES = frozenset(("LDG", "LDS", "LDSM", "LDGSTS", "STG", "STS"))

_Read = TypeVar("_Read")
_Namer = Callable[[str], str]  # what an opcode is counted as; "" where it is not counted


class ChangeKind(StrEnum):
    """Kinds of change, what concerns a reader most first."""

    NOT_READ = "not read"  # nvdisasm does not know its instructions
    NEW = "new"
    GONE = "gone"
    SPILLS = "spills"
    MMA = "MMA shape"
    UNROLL = "unrolled"
    LOOPS = "loops"
    MEMORY_WIDTH = "memory width"
    BARRIERS = "barriers and waits"
    OPCODES = "opcodes"
    CONSTANTS = "constants"
    OPERANDS = "operands"
    RESOURCES = "resources"  # the code is the same, what a launch takes is not
    REORDERED = "reordered"
    REGISTERS = "registers"
    RESCHEDULED = "rescheduled"
    RENAMED = "renamed"
    SAME = "same"

    @property
    def rank(self) -> int:
        """0 for what concerns most."""
        return list(ChangeKind).index(self)


@dataclass(frozen=True)
class CountChange:
    """How many instructions of one kind there are at one depth, in A and in B."""

    kind: ChangeKind
    what: str  # STL, HMMA.16816.F32, LDG.128
    depth: int  # in so many loops
    a: int
    b: int


@dataclass(frozen=True)
class FunctionChange:
    """What changed in one function."""

    pair: FunctionPair
    kinds: tuple[ChangeKind, ...]  # what concerns most first; SAME alone where nothing did
    counts: tuple[CountChange, ...] = ()
    # In how many loops the deepest change of a kind is, of those that have no count.
    uncounted: tuple[tuple[ChangeKind, int], ...] = ()

    @property
    def kind(self) -> ChangeKind:
        """What concerns most."""
        return self.kinds[0]

    @property
    def depth(self) -> int | None:
        """In how many loops the deepest change of its kind is; None where it is in no place of the code."""
        counted = [count.depth for count in self.counts if count.kind is self.kind]
        return max((*counted, *(depth for kind, depth in self.uncounted if kind is self.kind)), default=None)


class FunctionRows:
    """One function with the text of its instructions, read as far as a question needs."""

    def __init__(self, function: BinaryFunction, rows: Sequence[SassLine]) -> None:
        self.function = function
        self.rows = rows

    @cached_property
    def graph(self) -> BlockGraph:
        """Its blocks and loops."""
        return block_graph(self.rows, self.function.indirect)

    @cached_property
    def instructions(self) -> tuple[InstructionFlow, ...]:
        """What each instruction's text says of it."""
        return tuple(instruction_flow(row.masked or row.text or "") for row in self.rows)

    @cached_property
    def flow(self) -> ValueFlow:
        """What each instruction computes from."""
        return value_flow(self.instructions, self.graph)

    @cached_property
    def first(self) -> Hashes:
        """Of each instruction a hash of what it is and of its depth."""
        return first_colours(self.flow.base, self.counted.depths)

    @cached_property
    def base(self) -> Hashes:
        """Of each instruction one of whose address the linker fills in, too."""
        symbols = [(offset // INSTRUCTION_BYTES, symbol) for offset, symbol in self.function.code.symbols]
        known = ((place, symbol) for place, symbol in symbols if place < len(self.rows))
        return self.first + _hashed(known, len(self.rows))

    @cached_property
    def symbols(self) -> dict[int, str]:
        """By position whose address the linker writes into an instruction."""
        places = ((offset // INSTRUCTION_BYTES, symbol) for offset, symbol in self.function.code.symbols)
        return {place: symbol for place, symbol in places if place < len(self.rows)}

    @cached_property
    def forms(self) -> Counter[Form]:
        """The instructions by what they are with their numbers, without where values come from, and depth."""
        return Counter(
            (self.instructions[at].form, self.symbols.get(at), self.graph.depths[at]) for at in self.live
        )

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The positions of instructions but for padding and what stands behind a guard that never holds."""
        ends = {self.graph.starts[block] for block in self.graph.ends}
        return tuple(
            position
            for position, (row, one) in enumerate(zip(self.rows, self.instructions, strict=True))
            if not (one.is_never or row.opcode in PADDING or position in ends)
        )

    @cached_property
    def counted(self) -> FunctionCounts:
        """The instructions by opcode and depth."""
        opcodes = [
            "NOP" if one.is_never else row.opcode
            for row, one in zip(self.rows, self.instructions, strict=True)
        ]
        numbers = {opcode: number for number, opcode in enumerate(dict.fromkeys(opcodes))}
        kinds = np.array([numbers[opcode] for opcode in opcodes], dtype=np.intp)
        return FunctionCounts(self.function, self.graph, tuple(numbers), kinds)

    @cached_property
    def words(self) -> list[bytes]:
        """The bits of each instruction but for its schedule and for what the linker fills in."""
        code = self.function.code
        words = unscheduled_words(code.code, [offset for offset, _ in code.relocations])
        return [word.tobytes() for word in words]


def quick_change(pair: FunctionPair) -> FunctionChange | None:
    """The change of a pair whose bytes say it; None where the instructions have to be read."""
    a, b = pair.a, pair.b
    if a is None or b is None:
        return FunctionChange(pair, (ChangeKind.NEW if a is None else ChangeKind.GONE,))
    kinds = [ChangeKind.RENAMED] if pair.is_renamed else []
    if not a.code.code and not b.code.code and a.code.constants != b.code.constants:
        return FunctionChange(pair, _in_order([*kinds, ChangeKind.CONSTANTS]))
    if a.identity != b.identity and a.unscheduled != b.unscheduled:
        return None
    if a.facts != b.facts:
        kinds.append(ChangeKind.RESOURCES)
    if a.code.code != b.code.code:
        kinds.append(ChangeKind.RESCHEDULED)
    return FunctionChange(pair, _in_order(kinds))


def count_change(pair: FunctionPair, a: FunctionCounts, b: FunctionCounts) -> FunctionChange | None:
    """The change of a pair that numbers of instructions say; None where both have the same of each opcode.

    Whoever has them, and as many loops, may do the same: only what is computed from what can tell.
    """
    if a.counts == b.counts and _loop_shape(a.graph) == _loop_shape(b.graph):
        return None
    kinds, counts = _first_kinds(pair, a, b)
    loops = _deepest_other_loop(a.graph, b.graph)
    uncounted = () if loops is None else ((ChangeKind.LOOPS, loops),)
    if a.counts == b.counts:
        return FunctionChange(pair, _in_order(kinds), tuple(counts), uncounted)
    growth = _unrolling(a, b)
    if growth or _is_unrolled_whole(a, b):
        kinds.append(ChangeKind.UNROLL)
    if _share(a, _matrix_name).keys() != _share(b, _matrix_name).keys():
        kinds.append(ChangeKind.MMA)
        counts += _differences(ChangeKind.MMA, a, b, _matrix_name)
    if _widths_differ(a, b):
        kinds.append(ChangeKind.MEMORY_WIDTH)
        counts += _differences(ChangeKind.MEMORY_WIDTH, a, b, _memory_width)
    if _barriers_differ(a, b, growth):
        kinds.append(ChangeKind.BARRIERS)
        counts += _differences(ChangeKind.BARRIERS, a, b, _barrier_name)
    if ChangeKind.UNROLL in kinds:
        counts += _differences(ChangeKind.UNROLL, a, b, _work_name)
        return FunctionChange(pair, _in_order(kinds), tuple(counts), uncounted)
    told = {change.what.partition(".")[0] for change in counts}
    for name in (base_opcode, str):  # where there are as many of each opcode, its modifiers differ
        others = _differences(ChangeKind.OPCODES, a, b, name)
        if others := [change for change in others if base_opcode(change.what) not in told]:
            counts += others
            kinds.append(ChangeKind.OPCODES)
            break
    return FunctionChange(pair, _in_order(kinds), tuple(counts), uncounted)


def _first_kinds(
    pair: FunctionPair, a: FunctionCounts, b: FunctionCounts
) -> tuple[list[ChangeKind], list[CountChange]]:
    """What is asked of every pair: name, what a launch takes, spills, loops, constant banks."""
    kinds = [ChangeKind.RENAMED] if pair.is_renamed else []
    if a.function.facts != b.function.facts:
        kinds.append(ChangeKind.RESOURCES)
    counts = _spill_changes(a, b)
    if counts:
        kinds.append(ChangeKind.SPILLS)
    if _loop_shape(a.graph) != _loop_shape(b.graph):
        kinds.append(ChangeKind.LOOPS)
    if a.function.code.constants != b.function.code.constants:
        kinds.append(ChangeKind.CONSTANTS)
    return kinds, counts


def read_change(pair: FunctionPair, a: FunctionRows, b: FunctionRows) -> FunctionChange:
    """The change of a pair that quick_change does not know, from the text of both sides."""
    if change := count_change(pair, a.counted, b.counted):
        return change
    only_a, only_b = a.forms - b.forms, b.forms - a.forms
    if only_a or only_b:
        return _form_change(pair, a.counted, b.counted, only_a, only_b)
    found: ChangeKind | None = None
    depth: int | None = None
    if _is_same_flow(a, b):
        found = _kind_of_same_flow(a, b)
    elif (depth := _deepest_other_value(a, b)) is not None:
        found = ChangeKind.OPERANDS
    elif (depth := _deepest_moved_access(a, b)) is not None:
        found = ChangeKind.BARRIERS
    else:
        found = ChangeKind.REORDERED
    return _flow_change(pair, a.counted, b.counted, found, depth)


def _patch_change(pair: FunctionPair, a: FunctionCounts, b: FunctionCounts, patch: Patch) -> FunctionChange:
    """As read_change has it, of a pair that differs in few instructions."""
    if patch.only_a or patch.only_b:
        return _form_change(pair, a, b, patch.only_a, patch.only_b)
    is_operands = patch.depth is not None or patch.is_same_text
    kind = ChangeKind.OPERANDS if is_operands else ChangeKind.REGISTERS
    return _flow_change(pair, a, b, kind, patch.depth)


def _form_change(
    pair: FunctionPair, a: FunctionCounts, b: FunctionCounts, only_a: Counter[Form], only_b: Counter[Form]
) -> FunctionChange:
    """The change of a pair of which each side has instructions with other operands."""
    kinds, counts = _first_kinds(pair, a, b)
    depth = max(depth for *_, depth in (*only_a, *only_b))
    uncounted = dict.fromkeys(_form_kinds(only_a, only_b), depth)
    counts += _count_changes(ChangeKind.CONSTANTS, _addresses(a), _addresses(b))
    return FunctionChange(pair, _in_order((*kinds, *uncounted)), tuple(counts), tuple(uncounted.items()))


def _flow_change(
    pair: FunctionPair, a: FunctionCounts, b: FunctionCounts, kind: ChangeKind, depth: int | None
) -> FunctionChange:
    """That of a pair with the same operands but for the numbers of registers. depth: of what has one."""
    kinds, counts = _first_kinds(pair, a, b)
    uncounted = () if depth is None else ((kind, depth),)
    if depth is not None or ChangeKind.CONSTANTS not in kinds:
        kinds.append(kind)
    return FunctionChange(pair, _in_order(kinds), tuple(counts), uncounted)


def _addresses(side: FunctionCounts) -> Counter[tuple[str, int]]:
    """Whose addresses the linker writes into the code, by how many loops that is in."""
    return Counter(
        (f"address of {function_name(symbol)}", int(side.depths[offset // INSTRUCTION_BYTES]))
        for offset, symbol in side.function.code.symbols
        if offset // INSTRUCTION_BYTES < len(side.depths)
    )


def _form_kinds(only_a: Counter[Form], only_b: Counter[Form]) -> list[ChangeKind]:
    """What is other in instructions with other operands: numbers, or what is read, such as `-R` for `R`."""
    kinds, bare, numbers = [], list[Counter[Hashable]](), list[Counter[Hashable]]()
    for forms in (only_a, only_b):
        bare.append(Counter())
        numbers.append(Counter())
        for ((opcode, results, sources), symbol, depth), count in forms.items():
            texts = (*results, *sources)
            bare[-1][opcode, depth, tuple(_NUMBER.sub("", text) for text in texts)] += count
            found = tuple(sorted(number for text in texts for number in _NUMBER.findall(text)))
            numbers[-1][opcode, depth, found, symbol] += count
    if numbers[0] != numbers[1]:
        kinds.append(ChangeKind.CONSTANTS)
    if bare[0] != bare[1]:
        kinds.append(ChangeKind.OPERANDS)
    return kinds or [ChangeKind.OPERANDS]


def _kind_of_same_flow(a: FunctionRows, b: FunctionRows) -> ChangeKind:
    """What differs between two that do the same. Bits that nvdisasm prints nothing of may mean something."""
    if any(a.rows[x].masked != b.rows[y].masked for x, y in zip(a.live, b.live, strict=True)):
        return ChangeKind.REGISTERS
    is_padding_alone = a.live != b.live and all(
        a.words[x] == b.words[y] or a.rows[x].target for x, y in zip(a.live, b.live, strict=True)
    )
    return ChangeKind.RESCHEDULED if is_padding_alone else ChangeKind.OPERANDS


def _deepest_other_value(a: FunctionRows, b: FunctionRows) -> int | None:
    """In how many loops the deepest instruction is that computes from others; None where all do the same."""
    live_a, live_b = np.array(a.live, dtype=np.intp), np.array(b.live, dtype=np.intp)
    depths = np.array([side.graph.depths[at] for side in (a, b) for at in side.live], dtype=np.intp)
    for one, other in zip(a.flow.colours(a.first, a.base), b.flow.colours(b.first, b.base), strict=False):
        if (depth := deepest_difference(one[live_a], other[live_b], depths)) is not None:
            return depth
    return None


def deepest_difference(a: Hashes, b: Hashes, depths: NDArray[np.intp]) -> int | None:
    """The largest depth of hashes that one side has more often; None where both have the same.

    depths: of those of A, then of those of B.
    """
    if np.array_equal(np.sort(a), np.sort(b)):
        return None
    unique, which = np.unique(np.concatenate([a, b]), return_inverse=True)
    counts = [np.bincount(some, minlength=len(unique)) for some in (which[: len(a)], which[len(a) :])]
    return int(depths[(counts[0] != counts[1])[which]].max())


def _deepest_moved_access(a: FunctionRows, b: FunctionRows) -> int | None:
    """In how many loops the deepest access of memory is that crossed a barrier; None where none did."""
    depths = list[int]()
    for one, other in zip(_accesses(a), _accesses(b), strict=False):
        depths += (depth for _, depth in (*(one - other), *(other - one)))
    return max(depths, default=None)


def _accesses(side: FunctionRows) -> list[Counter[tuple[int, int]]]:
    """Between one barrier and the next the accesses that it orders, by what they compute and depth."""
    found, copied = [Counter[tuple[int, int]]()], [Counter[tuple[int, int]]()]
    *_, colours = side.flow.colours(side.first, side.base)
    for at in side.live:
        base = base_opcode(side.rows[at].opcode)
        if base in _WAITS_FOR_COPIES:
            copied.append(Counter())
        elif base in _BARRIERS - {"BSSY", "BSYNC"}:
            found.append(Counter())
        elif "[" in _CONSTANT.sub("", side.rows[at].text or "") and ".CONSTANT" not in side.rows[at].opcode:
            key = int(colours[at]), side.graph.depths[at]
            found[-1][key] += 1
            copied[-1][key] += base in _OF_COPIES
    return [*found, *copied]


def _in_order(kinds: Iterable[ChangeKind]) -> tuple[ChangeKind, ...]:
    return tuple(sorted(dict.fromkeys(kinds), key=lambda kind: kind.rank)) or (ChangeKind.SAME,)


def _is_same_flow(a: FunctionRows, b: FunctionRows) -> bool:
    """Whether both do the same in the same order: only the numbers of registers may differ."""
    return len(a.live) == len(b.live) and np.array_equal(_in_order_hashes(a), _in_order_hashes(b))


def _in_order_hashes(side: FunctionRows) -> Hashes:
    """Of each live instruction what it is, which of them it reads from, and which it jumps to."""
    places = {at: place for place, at in enumerate(side.live)}
    origins = np.arange(len(side.rows), dtype=np.uint64)
    origins[list(side.live)] = np.arange(len(side.live), dtype=np.uint64)
    at = {row.offset: position for position, row in enumerate(side.rows)}
    targets = list[tuple[int, Hashable]]()
    for position, row in enumerate(side.rows):
        if row.target and row.target[0] == row.function and row.target[1] in at:
            start = side.graph.starts[side.graph.block_of[at[row.target[1]]]]
            targets.append((position, ("target", _next_live(side, places, start))))
    base = side.base + _hashed(targets, len(side.rows))
    return side.flow.hashes(origins, base, is_in_order=True)[list(side.live)]


def _hashed(things: Iterable[tuple[int, Hashable]], size: int) -> Hashes:
    """By place hashes of what stands there, in sum; 0 where nothing does."""
    found = [0] * size
    for place, thing in things:
        found[place] = (found[place] + hash(thing)) & HASH
    return np.array(found, dtype=np.uint64)


def _next_live(side: FunctionRows, places: Mapping[int, int], start: int) -> int:
    while start < len(side.rows) and start not in places:
        start += 1
    return places.get(start, -1)


def _loop_shape(graph: BlockGraph) -> Counter[int]:
    """How many loops there are of each depth."""
    return Counter(max(graph.depth[block] for block in loop) for loop in graph.loops)


def _deepest_other_loop(a: BlockGraph, b: BlockGraph) -> int | None:
    """How deep the deepest loop is that one side has alone."""
    shapes = _loop_shape(a), _loop_shape(b)
    return max((*(shapes[0] - shapes[1]), *(shapes[1] - shapes[0])), default=None)


def _share(side: FunctionCounts, name: _Namer) -> Counter[str]:
    found: Counter[str] = Counter()
    for (opcode, _), count in side.counts.items():
        if what := name(opcode):
            found[what] += count
    return found


def _matrix_name(opcode: str) -> str:
    return opcode if is_matrix_multiply(opcode) else ""


def _memory_width(opcode: str) -> str:
    base = base_opcode(opcode)
    if base not in _WIDE_MEMORY:
        return ""
    width = _WIDTH.search(opcode)
    if base in ("LDSM", "STSM"):
        return ".".join((base, *(part for part in opcode.split(".") if part in ("2", "4"))))
    return f"{base}.{width[1]}" if width else f"{base}.32"


def _barrier_name(opcode: str) -> str:
    base = base_opcode(opcode)
    return base if base in _BARRIERS else ""


@cache
def counted_as(opcode: str) -> str:
    """What a count calls an opcode: of matrices all of it, of memory its width, of others its class."""
    return _matrix_name(opcode) or _memory_width(opcode) or _barrier_name(opcode) or opcode_class(opcode)


def _differences(kind: ChangeKind, a: FunctionCounts, b: FunctionCounts, name: _Namer) -> list[CountChange]:
    totals: list[Counter[tuple[str, int]]] = [Counter(), Counter()]
    for total, side in zip(totals, (a, b), strict=True):
        for (opcode, depth), count in side.counts.items():
            if what := name(opcode):
                total[what, depth] += count
    return _count_changes(kind, *totals)


def _count_changes(
    kind: ChangeKind, a: Mapping[tuple[str, int], int], b: Mapping[tuple[str, int], int]
) -> list[CountChange]:
    return [
        CountChange(kind, what, depth, a.get((what, depth), 0), b.get((what, depth), 0))
        for what, depth in sorted({*a, *b}, key=lambda key: (-key[1], key[0]))
        if a.get((what, depth), 0) != b.get((what, depth), 0)
    ]


def _spill_changes(a: FunctionCounts, b: FunctionCounts) -> list[CountChange]:
    """Where one side marks its spills and the other has none to mark, the other has none."""
    spills_a, spills_b = a.spills, b.spills
    if a.has_marked_spills != b.has_marked_spills:
        if a.has_marked_spills:
            spills_b = Counter()
        else:
            spills_a = Counter()
    return _count_changes(ChangeKind.SPILLS, spills_a, spills_b)


def _widths_differ(a: FunctionCounts, b: FunctionCounts) -> bool:
    """Whether some kind of access has other widths in B: another mix, not only another number."""
    mixes = []
    for side in (a, b):
        by_base: dict[str, dict[str, int]] = {}
        for what, count in _share(side, _memory_width).items():
            if not what.startswith(("LDL", "STL")):
                by_base.setdefault(what.partition(".")[0], {})[what] = count
        mixes.append(by_base)
    for base in {*mixes[0]} & {*mixes[1]} - {"LDC", "ULDC", "LDCU"}:
        widths = {*mixes[0][base], *mixes[1][base]}
        shares = [[mix[base].get(width, 0) / sum(mix[base].values()) for width in widths] for mix in mixes]
        if any(abs(x - y) > 0.1 for x, y in zip(*shares, strict=True)):
            return True
    return False


def _barriers_differ(a: FunctionCounts, b: FunctionCounts, growth: Mapping[int, float]) -> bool:
    """Whether barriers and waits changed by more than the loop that they are in."""
    for change in _differences(ChangeKind.BARRIERS, a, b, _barrier_name):
        if change.what in ("BSSY", "BSYNC"):
            continue
        expected = change.a * growth.get(change.depth, 1.0)
        if abs(change.b - expected) > max(0.25 * expected, 0.5):
            return True
    return False


def _unrolling(a: FunctionCounts, b: FunctionCounts) -> dict[int, float]:
    """How much more work each depth has in B, where all that it computes and moves grew alike.

    What is moved counts by its bytes, as wider accesses follow from unrolling; but their number must grow too
    where nothing is computed, else each only became wider.
    """
    grown: dict[int, float] = {}
    for depth in {depth for _, depth in (*a.counts, *b.counts) if depth}:
        (math_a, moved_a, bytes_a), (math_b, moved_b, bytes_b) = (_work(side, depth) for side in (a, b))
        if math_a.keys() != math_b.keys() or bytes_a.keys() != bytes_b.keys():
            continue
        counts_a, counts_b = (math_a, math_b) if math_a else (moved_a, moved_b)
        if not counts_a:
            continue
        growth = sum(counts_b.values()) / sum(counts_a.values())
        ratios = [math_b[name] / math_a[name] for name in math_a]
        ratios += [bytes_b[name] / bytes_a[name] for name in bytes_a]
        is_moved = growth >= _GROWN or growth <= 1 / _GROWN
        if is_moved and all(abs(ratio / growth - 1) <= _UNROLLED for ratio in ratios):
            grown[depth] = growth
    return grown


def _is_unrolled_whole(a: FunctionCounts, b: FunctionCounts) -> bool:
    """Whether one side has loops fewer and computes with more instructions: a loop lies there in full."""
    fewer, more = (b, a) if len(b.graph.loops) < len(a.graph.loops) else (a, b)
    if len(fewer.graph.loops) == len(more.graph.loops):
        return False
    total = [sum(count for opcode, count in _share(side, _math_name).items()) for side in (fewer, more)]
    return total[1] > 0 and total[0] >= _GROWN * total[1]


def _math_name(opcode: str) -> str:
    base = base_opcode(opcode)
    return base if (base in _MATH and opcode != _MOVE) or is_matrix_multiply(base) else ""


def _work_name(opcode: str) -> str:
    return _math_name(opcode) or _memory_width(opcode)


def _work(side: FunctionCounts, depth: int) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Of one depth, by opcode: what it computes with, the accesses of memory, and their bytes a thread."""
    maths, moved, sizes = Counter[str](), Counter[str](), Counter[str]()
    for (opcode, at), count in side.counts.items():
        base = base_opcode(opcode)
        if at != depth:
            continue
        if _math_name(opcode):
            maths[base] += count
        elif base in _MOVES:
            moved[base] += count
            sizes[base] += count * _access_bytes(opcode)
    return maths, moved, sizes


def _access_bytes(opcode: str) -> int:
    width = _WIDTH.search(opcode)
    if opcode.startswith(("LDSM", "STSM")):
        return 4 * max((int(part) for part in opcode.split(".") if part in ("2", "4")), default=1)
    return int(width[1].lstrip("US")) // 8 if width else 4


@dataclass(frozen=True)
class CodeChanges:
    """What changed between two binaries, what concerns most first."""

    a: str  # as they were named
    b: str
    changes: tuple[FunctionChange, ...]

    @property
    def changed(self) -> tuple[FunctionChange, ...]:
        """Without what is the same."""
        return tuple(change for change in self.changes if change.kind is not ChangeKind.SAME)

    @property
    def counts(self) -> dict[ChangeKind, int]:
        """How many functions there are of each kind, by what concerns most."""
        found = Counter(change.kind for change in self.changes)
        return {kind: found[kind] for kind in ChangeKind if found[kind]}


def compare_binaries(
    a: Path, b: Path, *, arch: str | None = None, is_selected: Callable[[str], bool] | None = None
) -> CodeChanges:
    """Every function of two binaries, what became of it.

    arch: only this architecture. is_selected: only functions of which the mangled or the plain name is
    selected. Raises BuildFailed for a file that is damaged or holds no machine code, CannotJudge where it
    holds PTX alone or nvdisasm is missing and instructions have to be read, UnknownName where nothing of
    either side is selected.
    """
    both = read_both(a, b)
    for path, own in ((a, both.a), (b, both.b)):
        arches = sorted({function.arch for function in (*both.equal, *own)})
        if arch is not None and arch not in arches:
            raise UnknownName(f"{path} has no machine code for {arch}; there is {', '.join(arches)}")
    equal, only_a, only_b = (
        [
            function
            for function in some
            if (arch is None or function.arch == arch)
            and (is_selected is None or is_selected(function.name) or is_selected(function.short_name))
        ]
        for some in (both.equal, both.a, both.b)
    )
    if not (equal or only_a or only_b):
        raise UnknownName(f"neither {a} nor {b} has such a function")
    pairs = pair_functions(only_a, only_b)
    changes = [quick_change(pair) for pair in pairs]
    unread: dict[str, list[int]] = defaultdict(list)
    for place, (pair, change) in enumerate(zip(pairs, changes, strict=True)):
        if change is None:
            unread[pair.either.arch].append(place)
    for target, places in unread.items():
        found = read_changes(target, [pairs[place] for place in places])
        for place, change in zip(places, found, strict=True):
            changes[place] = change
    changes += [FunctionChange(FunctionPair(one, one), (ChangeKind.SAME,)) for one in equal]
    return CodeChanges(a.name, b.name, _ranked(change for change in changes if change is not None))


def compare_listings(a: Listing, b: Listing, arch: str) -> tuple[FunctionChange, ...]:
    """Every function of two sides of which the text of the instructions is all there is.

    What text does not hold, such as waits, stalls and resources, is not compared.
    """
    sides = [_rows_of(listing, arch) for listing in (a, b)]
    changes = list[FunctionChange | None]()
    for at_a, at_b in alignment.pair_functions(a, b):
        one = None if at_a is None else sides[0][at_a]
        other = None if at_b is None else sides[1][at_b]
        pair = FunctionPair(one.function if one else None, other.function if other else None)
        change = quick_change(pair)
        changes.append(read_change(pair, one, other) if one and other and change is None else change)
    return _ranked(change for change in changes if change is not None)


def _rows_of(listing: Listing, arch: str) -> list[FunctionRows]:
    found = []
    for name, own in zip(listing.functions, listing.ranges, strict=True):
        rows = listing.lines[own.start : own.stop]
        # Equal for equal texts, 16 bytes an instruction, as code is.
        code = b"".join(blake2b((row.text or "").encode(), digest_size=16).digest() for row in rows)
        text = FunctionBytes(code, None, 0, 0, None)
        found.append(FunctionRows(BinaryFunction("", arch, name, True, None, None, 0, None, text), rows))
    return found


def _ranked(changes: Iterable[FunctionChange]) -> tuple[FunctionChange, ...]:
    """What concerns most first."""
    order = sorted(changes, key=lambda one: (one.kind.rank, -(one.depth or 0), -one.pair.code_bytes))
    return tuple(order)


def read_changes(arch: str, pairs: Sequence[FunctionPair]) -> list[FunctionChange]:
    """The changes of pairs of functions for one architecture, from their instructions.

    Most are known from how many instructions there are of each opcode; of the others the text is read. Raises
    CannotJudge where nvdisasm is missing.
    """
    reader = CodeReader(arch)
    chunks = list(_chunks(pairs, range(len(pairs)), _MOST_AT_ONCE))
    reader.learn((_functions(pairs, places) for places in chunks), patched_words(pairs))
    changes: dict[int, FunctionChange] = {}
    counted: dict[int, tuple[FunctionCounts, FunctionCounts]] = {}
    for places in chunks:
        for place, count_a, count_b in _both_sides(pairs, places, reader.count):
            if count_a is None or count_b is None:
                changes[place] = FunctionChange(pairs[place], (ChangeKind.NOT_READ,))
            elif change := count_change(pairs[place], count_a, count_b):
                changes[place] = change
            else:
                counted[place] = count_a, count_b
        is_last = places is chunks[-1]
        if is_last or sum(pairs[place].code_bytes for place in counted) > _MOST_PATCHED_AT_ONCE:
            patches = read_patches(reader, list(counted.values()))
            for (place, counts), patch in zip(counted.items(), patches, strict=True):
                if patch is not None:
                    changes[place] = _patch_change(pairs[place], *counts, patch)
            counted = {}
    rest = [place for place in range(len(pairs)) if place not in changes]
    for places in _chunks(pairs, rest, _MOST_TEXT_AT_ONCE):
        for place, rows_a, rows_b in _both_sides(pairs, places, reader.rows):
            a, b = pairs[place].a, pairs[place].b
            if a is None or b is None or rows_a is None or rows_b is None:
                changes[place] = FunctionChange(pairs[place], (ChangeKind.NOT_READ,))
            else:
                changes[place] = read_change(pairs[place], FunctionRows(a, rows_a), FunctionRows(b, rows_b))
    return [changes[place] for place in range(len(pairs))]


def _both_sides(
    pairs: Sequence[FunctionPair],
    places: Sequence[int],
    read: Callable[[Sequence[BinaryFunction]], Sequence[_Read]],
) -> Iterator[tuple[int, _Read, _Read]]:
    """Of some pairs what is read of their functions, all at once."""
    found = iter(read(_functions(pairs, places)))
    return ((place, next(found), next(found)) for place in places)


def _functions(pairs: Sequence[FunctionPair], places: Sequence[int]) -> list[BinaryFunction]:
    return [one for place in places for one in (pairs[place].a, pairs[place].b) if one is not None]


def _chunks(pairs: Sequence[FunctionPair], places: Iterable[int], most: int) -> Iterator[list[int]]:
    """Places of pairs in groups of so many bytes of code, or of one pair."""
    group, total = list[int](), 0
    for place in places:
        size = pairs[place].code_bytes
        if group and total + size > most:
            yield group
            group, total = [], 0
        group.append(place)
        total += size
    if group:
        yield group
