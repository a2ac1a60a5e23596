"""What changed in the machine code of a function, by kind and by how many loops it is in."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path

from profiler.errors import UnknownName
from profiler.evidence.opcodes import base_opcode, is_matrix_multiply, opcode_class
from profiler.sass.binary_functions import (
    BinaryFunction,
    FunctionPair,
    pair_functions,
    read_functions_of,
)
from profiler.sass.disassembly import disassemble_codes
from profiler.sass.listing import SassLine
from profiler.sass.loops import BlockGraph, block_graph
from profiler.sass.value_flow import RowFlow, colours, value_flow

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
_NOTHING = frozenset(("NOP",))
_MOST_AT_ONCE = 2_000_000  # bytes of code, of which nvdisasm takes seconds
_GROWN = 1.5  # times the work of an unrolled loop, at least
_UNROLLED = 0.12  # how far the growth of single opcodes may lie from that of all in an unrolled loop


_MATH = frozenset(
    ("FFMA", "FMUL", "FADD", "FFMA2", "HFMA2", "HADD2", "HMUL2", "DFMA", "DADD", "DMUL", "MUFU")
)
_MOVE = "HFMA2.MMA"  # how ptxas writes a constant to a register where the other pipes are busy
_MOVES = frozenset(("LDG", "LDS", "LDSM", "LDGSTS", "STG", "STS"))

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

    @property
    def kind(self) -> ChangeKind:
        """What concerns most."""
        return self.kinds[0]

    @property
    def depth(self) -> int | None:
        """The deepest loop in which counts of its kind changed; None where none did."""
        return max((count.depth for count in self.counts if count.kind is self.kind), default=None)


class FunctionRows:
    """One function with the text of its instructions, read as far as a question needs."""

    def __init__(self, function: BinaryFunction, rows: Sequence[SassLine]) -> None:
        self.function = function
        self.rows = rows

    @cached_property
    def graph(self) -> BlockGraph:
        """Its blocks and loops."""
        return block_graph(self.rows)

    @cached_property
    def flows(self) -> tuple[RowFlow, ...]:
        """What each instruction computes from."""
        return value_flow(self.rows, self.graph)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The positions of instructions that can run: neither padding nor behind a guard that never holds."""
        return tuple(
            position
            for position, flow in enumerate(self.flows)
            if base_opcode(flow.opcode) not in _NOTHING and not self._is_end(position)
        )

    def _is_end(self, position: int) -> bool:
        block = self.graph.block_of[position]
        return (
            self.flows[position].opcode == "BRA"
            and self.flows[position].target == block
            and not (self.graph.successors[block])
        )

    @cached_property
    def counts(self) -> Counter[tuple[str, int]]:
        """Instructions by opcode and depth."""
        return Counter((self.flows[at].opcode, self.graph.depths[at]) for at in self.live)

    @cached_property
    def spills(self) -> Counter[tuple[str, int]]:
        """Spills by opcode and depth: those that ptxas marks, else all accesses of local memory."""
        marked = self.function.code.spills
        at = {row.offset: place for place, row in enumerate(self.rows)}
        places: Iterable[int]
        if marked is not None:
            places = [at[offset] for offset in marked if offset in at]
        else:
            places = [place for place in self.live if base_opcode(self.flows[place].opcode) in ("LDL", "STL")]
        return Counter((base_opcode(self.flows[place].opcode), self.graph.depths[place]) for place in places)

    @property
    def has_marked_spills(self) -> bool:
        """Whether ptxas says which instructions are spills."""
        return self.function.code.spills is not None


def quick_change(pair: FunctionPair) -> FunctionChange | None:
    """The change of a pair whose bytes say it; None where the instructions have to be read."""
    a, b = pair.a, pair.b
    if a is None or b is None:
        return FunctionChange(pair, (ChangeKind.NEW if a is None else ChangeKind.GONE,))
    kinds = [ChangeKind.RENAMED] if pair.is_renamed else []
    if not a.code.code and not b.code.code and a.code.constants != b.code.constants:
        return FunctionChange(pair, _in_order([*kinds, ChangeKind.CONSTANTS]))
    if a.unscheduled != b.unscheduled:
        return None
    if a.facts != b.facts:
        kinds.append(ChangeKind.RESOURCES)
    if a.code.code != b.code.code:
        kinds.append(ChangeKind.RESCHEDULED)
    return FunctionChange(pair, _in_order(kinds))


def read_change(pair: FunctionPair, a: FunctionRows, b: FunctionRows) -> FunctionChange:
    """The change of a pair that quick_change does not know, from the instructions of both sides."""
    kinds = [ChangeKind.RENAMED] if pair.is_renamed else []
    if a.function.facts != b.function.facts:
        kinds.append(ChangeKind.RESOURCES)
    same_numbers = a.function.code.constants == b.function.code.constants
    if same_numbers and _is_same_flow(a, b):
        return FunctionChange(pair, _in_order([*kinds, ChangeKind.REGISTERS]))
    same_loops = _loop_shape(a.graph) == _loop_shape(b.graph)
    colours_a, colours_b = (
        Counter(found[at] for at in side.live)
        for side in (a, b)
        for found in [colours(side.flows, side.graph.depths)]
    )
    if same_numbers and same_loops and colours_a == colours_b:
        return FunctionChange(pair, _in_order([*kinds, ChangeKind.REORDERED]))
    counts = list(_spill_changes(a, b))
    if counts:
        kinds.append(ChangeKind.SPILLS)
    if not same_loops:
        kinds.append(ChangeKind.LOOPS)
    growth = _unrolling(a, b)
    if growth or _is_unrolled_whole(a, b):
        kinds.append(ChangeKind.UNROLL)
    if not same_numbers:
        kinds.append(ChangeKind.CONSTANTS)
    if a.counts == b.counts:
        kinds.append(ChangeKind.CONSTANTS if _forms(a) != _forms(b) else ChangeKind.OPERANDS)
        return FunctionChange(pair, _in_order(kinds), tuple(counts))
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
        return FunctionChange(pair, _in_order(kinds), tuple(counts))
    told = {change.what.partition(".")[0] for change in counts}
    others = _differences(ChangeKind.OPCODES, a, b, base_opcode)
    counts += (change for change in others if change.what not in told)
    if not kinds or any(change.kind is ChangeKind.OPCODES for change in counts):
        kinds.append(ChangeKind.OPCODES)
    return FunctionChange(pair, _in_order(kinds), tuple(counts))


def _in_order(kinds: Iterable[ChangeKind]) -> tuple[ChangeKind, ...]:
    return tuple(sorted(dict.fromkeys(kinds), key=lambda kind: kind.rank)) or (ChangeKind.SAME,)


def _is_same_flow(a: FunctionRows, b: FunctionRows) -> bool:
    """Whether both do the same in the same order: only the numbers of registers may differ."""
    if len(a.live) != len(b.live):
        return False
    place_a, place_b = ({at: n for n, at in enumerate(side.live)} for side in (a, b))
    for at_a, at_b in zip(a.live, b.live, strict=True):
        one, other = a.flows[at_a], b.flows[at_b]
        if (one.opcode, one.results, one.target is None) != (
            other.opcode,
            other.results,
            other.target is None,
        ):
            return False
        if len(one.sources) != len(other.sources):
            return False
        if one.target is not None and other.target is not None:
            starts = a.graph.starts[one.target], b.graph.starts[other.target]
            if _next_live(a, place_a, starts[0]) != _next_live(b, place_b, starts[1]):
                return False
        for source, against in zip(one.sources, other.sources, strict=True):
            if source.form != against.form:
                return False
            if _renumbered(source.origins, place_a) != _renumbered(against.origins, place_b):
                return False
    return True


def _next_live(side: FunctionRows, places: Mapping[int, int], start: int) -> int:
    while start < len(side.rows) and start not in places:
        start += 1
    return places.get(start, -1)


def _renumbered(
    origins: Sequence[frozenset[tuple[int, int]]], places: Mapping[int, int]
) -> list[frozenset[tuple[int, int]]]:
    return [frozenset((places.get(row, row), number) for row, number in some) for some in origins]


def _loop_shape(graph: BlockGraph) -> list[int]:
    """How deep each loop is, sorted."""
    return sorted(max(graph.depth[block] for block in loop) for loop in graph.loops)


def _forms(side: FunctionRows) -> Counter[tuple[object, ...]]:
    """The instructions by what they are with their numbers, and without where values come from."""
    return Counter(
        (
            side.flows[at].opcode,
            tuple(source.form for source in side.flows[at].sources),
            side.graph.depths[at],
        )
        for at in side.live
    )


def _share(side: FunctionRows, name: _Namer) -> Counter[str]:
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


def _differences(kind: ChangeKind, a: FunctionRows, b: FunctionRows, name: _Namer) -> list[CountChange]:
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


def _spill_changes(a: FunctionRows, b: FunctionRows) -> list[CountChange]:
    """Where one side marks its spills and the other has none to mark, the other has none."""
    spills_a, spills_b = a.spills, b.spills
    if a.has_marked_spills != b.has_marked_spills:
        if a.has_marked_spills:
            spills_b = Counter()
        else:
            spills_a = Counter()
    return _count_changes(ChangeKind.SPILLS, spills_a, spills_b)


def _widths_differ(a: FunctionRows, b: FunctionRows) -> bool:
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


def _barriers_differ(a: FunctionRows, b: FunctionRows, growth: Mapping[int, float]) -> bool:
    """Whether barriers and waits changed by more than the loop that they are in."""
    for change in _differences(ChangeKind.BARRIERS, a, b, _barrier_name):
        if change.what in ("BSSY", "BSYNC"):
            continue
        expected = change.a * growth.get(change.depth, 1.0)
        if abs(change.b - expected) > max(0.25 * expected, 0.5):
            return True
    return False


def _unrolling(a: FunctionRows, b: FunctionRows) -> dict[int, float]:
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


def _is_unrolled_whole(a: FunctionRows, b: FunctionRows) -> bool:
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


def _work(side: FunctionRows, depth: int) -> tuple[Counter[str], Counter[str], Counter[str]]:
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
    sides = []
    for path in (a, b):
        functions = read_functions_of(path)
        arches = sorted({function.arch for function in functions})
        sides.append(
            [
                function
                for function in functions
                if (arch is None or function.arch == arch)
                and (is_selected is None or is_selected(function.name) or is_selected(function.short_name))
            ]
        )
        if arch is not None and arch not in arches:
            raise UnknownName(f"{path} has no machine code for {arch}; there is {', '.join(arches)}")
    if not any(sides):
        raise UnknownName(f"neither {a} nor {b} has such a function")
    pairs = pair_functions(*sides)
    changes = [quick_change(pair) for pair in pairs]
    unread: dict[str, list[int]] = defaultdict(list)
    for place, (pair, change) in enumerate(zip(pairs, changes, strict=True)):
        if change is None:
            unread[pair.either.arch].append(place)
    for target, places in unread.items():
        for some in _chunks(places, lambda place: pairs[place].code_bytes):
            for place, change in zip(
                some, _read_changes(target, [pairs[place] for place in some]), strict=True
            ):
                changes[place] = change
    known = [change for change in changes if change is not None]
    known.sort(key=lambda change: (change.kind.rank, -(change.depth or 0), -change.pair.code_bytes))
    return CodeChanges(a.name, b.name, tuple(known))


def _chunks(places: Sequence[int], size: Callable[[int], int]) -> Iterator[list[int]]:
    """Places in groups of about as much code as one call of nvdisasm reads."""
    group, total = list[int](), 0
    for place in places:
        if group and total + size(place) > _MOST_AT_ONCE:
            yield group
            group, total = [], 0
        group.append(place)
        total += size(place)
    if group:
        yield group


def _read_changes(arch: str, pairs: Sequence[FunctionPair]) -> list[FunctionChange]:
    functions = [function for pair in pairs for function in (pair.a, pair.b) if function]
    rows = disassemble_codes(arch, [function.code.code for function in functions])
    read = iter(zip(functions, rows, strict=True))
    found = []
    for pair in pairs:
        (a, rows_a), (b, rows_b) = next(read), next(read)
        if rows_a is None or rows_b is None:
            found.append(FunctionChange(pair, (ChangeKind.NOT_READ,)))
        else:
            found.append(read_change(pair, FunctionRows(a, rows_a), FunctionRows(b, rows_b)))
    return found
