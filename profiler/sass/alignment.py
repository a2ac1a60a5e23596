"""Which instructions of two listings belong together, function by function, whatever their addresses are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from profiler.build.kernel_names import stable_name, template_integer
from profiler.sass import registers
from profiler.sass.listing import Listing, SassLine
from profiler.sass.registers import Renaming

EQUAL, RENAMED, CHANGED = "equal", "renamed", "changed"
ONLY_A, ONLY_B, UNREAD = "only A", "only B", "unread"
KINDS = (EQUAL, RENAMED, CHANGED, ONLY_A, ONLY_B, UNREAD)
UNCHANGED = (EQUAL, RENAMED, UNREAD)  # rows that are shown only beside what differs
KIND_WORDS = {**{kind: kind for kind in KINDS}, UNREAD: "without text"}  # as people read them
# From this share of the shorter function on, instructions that are equal are paired before all others; below
# it their order says nothing, for example where all registers have other numbers.
_MOSTLY_EQUAL = 0.5


class AlignedRow(NamedTuple):
    """One instruction of each side, as positions in the listings' lines; None where a side has none."""

    # equal; renamed: equal but for the numbers of registers; changed: the same opcode with other operands, or
    # a branch to elsewhere; only A; only B; unread: a side has no text, so that nobody knows whether they are
    # equal.
    kind: str
    a: int | None
    b: int | None


@dataclass(frozen=True)
class AlignedFunction:
    """A function of A beside its partner of B, as indices; None where it has none."""

    a: int | None
    b: int | None
    rows: tuple[AlignedRow, ...]
    by: str  # what instructions were paired by: text, source lines or offsets
    renaming: Renaming = field(default_factory=Renaming)  # of the registers of equal and renamed rows
    reassigned: int = 0  # renamed rows that do not follow it: nobody checked that they read the same values


@dataclass(frozen=True)
class Alignment:
    """Two listings beside one another."""

    functions: tuple[AlignedFunction, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many rows there are of each kind."""
        counts = dict.fromkeys(KINDS, 0)
        for function in self.functions:
            for row in function.rows:
                counts[row.kind] += 1
        return counts

    @property
    def different(self) -> bool:
        """Whether any row is known to differ, and be it in the number of a register."""
        return any(self.counts[kind] for kind in (RENAMED, CHANGED, ONLY_A, ONLY_B))

    @property
    def reassigned(self) -> int:
        """Renamed rows that do not follow the one-to-one renaming of their function."""
        return sum(function.reassigned for function in self.functions)


def align(a: Listing, b: Listing) -> Alignment:
    """Pair the functions, then their instructions. Unpaired ones stand where they are; none is dropped."""
    functions = []
    for index_a, index_b in pair_functions(a, b):
        lines_a = range(0) if index_a is None else a.ranges[index_a]
        lines_b = range(0) if index_b is None else b.ranges[index_b]
        functions.append(AlignedFunction(index_a, index_b, *_align_lines(a, lines_a, b, lines_b)))
    partner = {row.a: row.b for function in functions for row in function.rows if row.a is not None}
    compared = (
        replace(function, rows=_with_branches_compared(function.rows, a, b, partner))
        for function in functions
    )
    return Alignment(tuple(_with_renaming(function, a, b) for function in compared))


def pair_functions(a: Listing, b: Listing) -> list[tuple[int | None, int | None]]:
    """Functions of one name; then those of one template integer, where it is the only one; then what is left.

    Code regions of a report have no names: as many on both sides pair in order, else by size, largest first.
    """
    names = [[stable_name(name) for name in listing.functions] for listing in (a, b)]
    sizes = [[template_integer(name) for name in listing.functions] for listing in (a, b)]
    pairs: dict[int, int] = {}
    keys: list[list[list[Any]]] = [names, sizes]
    for keys_a, keys_b in keys:
        free_a = [i for i in range(len(keys_a)) if i not in pairs]
        free_b = [k for k in range(len(keys_b)) if k not in pairs.values()]
        for i in free_a:
            same = [k for k in free_b if keys_b[k] == keys_a[i]]
            if len(same) == 1 and [keys_a[j] for j in free_a].count(keys_a[i]) == 1:
                pairs[i] = same[0]
    free_a = [i for i in range(len(a.functions)) if i not in pairs]
    free_b = [k for k in range(len(b.functions)) if k not in pairs.values()]
    if len(free_a) == len(free_b):
        pairs |= dict(zip(free_a, free_b, strict=True))
    else:
        for i in sorted(free_a, key=lambda i: -len(a.ranges[i])):
            if free_b:
                nearest = min(free_b, key=lambda k: abs(len(b.ranges[k]) - len(a.ranges[i])))
                pairs[i] = nearest
                free_b.remove(nearest)
    of_a: list[tuple[int | None, int | None]] = [(i, pairs.get(i)) for i in range(len(a.functions))]
    return of_a + [(None, k) for k in range(len(b.functions)) if k not in pairs.values()]


def _align_lines(
    a: Listing, range_a: range, b: Listing, range_b: range
) -> tuple[tuple[AlignedRow, ...], str]:
    """The rows of two functions, given by their lines, and what the instructions were paired by."""
    lines_a = a.lines[range_a.start : range_a.stop]
    lines_b = b.lines[range_b.start : range_b.stop]
    starts = range_a.start, range_b.start
    if lines_a and lines_b and not (_readable(lines_a) and _readable(lines_b)):
        pairs, by = _pair_by_place(lines_a, lines_b)
        return _rows(pairs, len(lines_a), len(lines_b), starts, lambda *_: UNREAD), by
    texts_a, texts_b = _Texts(lines_a), _Texts(lines_b)
    pairs = _pair_by_text(texts_a, texts_b)

    def kind(x: int, y: int) -> str:
        return _kind(texts_a, x, texts_b, y)

    return _rows(pairs, len(lines_a), len(lines_b), starts, kind), "text"


class _Texts:
    """What the instructions of a function are paired by, finest first; empty where one has no text."""

    def __init__(self, lines: Sequence[SassLine]) -> None:
        self.masked = [line.masked or "" for line in lines]
        self.shapes = registers.shapes(self.masked)
        self.opcodes = [line.opcode for line in lines]


def _readable(lines: Sequence[SassLine]) -> bool:
    return any(line.text for line in lines)


def _pair_by_text(a: _Texts, b: _Texts) -> list[tuple[int, int]]:
    """Equal instructions first, unless there are few; between them those of one shape, then of one opcode.

    Functions with the same opcodes in the same order pair instruction by instruction. Swapped sides give the
    same pairs: of several subsequences of one length it is that of the same order of the two.
    """
    if a.opcodes == b.opcodes:
        return [(index, index) for index in range(len(a.opcodes))]
    if (len(b.masked), b.masked) < (len(a.masked), a.masked):
        return [(x, y) for y, x in _pair_by_text(b, a)]
    few = _MOSTLY_EQUAL * min(len(a.masked), len(b.masked))
    pairs: list[tuple[int, int]] = []
    if (Counter(a.masked) & Counter(b.masked)).total() >= few:  # as many may be equal in whatever order
        pairs = longest_common_subsequence(a.masked, b.masked)
    pairs = _with_pairs_between(pairs if len(pairs) >= few else [], a.shapes, b.shapes)
    return _with_pairs_between(pairs, a.opcodes, b.opcodes)


def _with_pairs_between(
    pairs: Sequence[tuple[int, int]], a: Sequence[Hashable], b: Sequence[Hashable]
) -> list[tuple[int, int]]:
    """Pairs of positions, and between neighbours the longest common subsequence of what lies there."""
    filled: list[tuple[int, int]] = []
    i = k = 0
    for x, y in [*pairs, (len(a), len(b))]:
        if i < x and k < y:
            filled += [(i + m, k + n) for m, n in longest_common_subsequence(a[i:x], b[k:y])]
        if x < len(a):
            filled.append((x, y))
        i, k = x + 1, y + 1
    return filled


def _pair_by_place(a: Sequence[SassLine], b: Sequence[SassLine]) -> tuple[list[tuple[int, int]], str]:
    """Without text: one by one where there are as many, else by their source lines, else by offset."""
    if len(a) != len(b) and any(line.source for line in a) and any(line.source for line in b):
        numbers_a, numbers_b = ([line.source and line.source[1] for line in lines] for lines in (a, b))
        return longest_common_subsequence(numbers_a, numbers_b), "source lines"
    return [(index, index) for index in range(min(len(a), len(b)))], "offsets"


def _rows(
    pairs: Sequence[tuple[int, int]],
    count_a: int,
    count_b: int,
    starts: tuple[int, int],
    kind: Callable[[int, int], str],
) -> tuple[AlignedRow, ...]:
    """The rows of two functions of so many lines; their lines count from `starts` in the listings."""
    start_a, start_b = starts
    rows: list[AlignedRow] = []
    i = k = 0
    for x, y in [*pairs, (count_a, count_b)]:  # behind the last pair comes the rest of both
        rows += [AlignedRow(ONLY_A, index, None) for index in range(start_a + i, start_a + x)]
        rows += [AlignedRow(ONLY_B, None, index) for index in range(start_b + k, start_b + y)]
        if x < count_a and y < count_b:
            rows.append(AlignedRow(kind(x, y), start_a + x, start_b + y))
        i, k = x + 1, y + 1
    return tuple(rows)


def _kind(a: _Texts, x: int, b: _Texts, y: int) -> str:
    """How two instructions compare, wherever they branch to; of one without text nobody knows."""
    text_a, text_b = a.masked[x], b.masked[y]
    if not text_a or not text_b:
        return UNREAD
    if text_a == text_b:
        return EQUAL
    is_renamed = a.shapes[x] == b.shapes[y] and registers.differ_in_numbers_only(text_a, text_b)
    return RENAMED if is_renamed else CHANGED


def _with_branches_compared(
    rows: Sequence[AlignedRow], a: Listing, b: Listing, partner: dict[int, int | None]
) -> tuple[AlignedRow, ...]:
    """Branches that read alike but go to instructions that are no partners are a change."""
    return tuple(
        row._replace(kind=CHANGED)
        if row.kind in (EQUAL, RENAMED) and not _same_target(row, a, b, partner)
        else row
        for row in rows
    )


def _with_renaming(function: AlignedFunction, a: Listing, b: Listing) -> AlignedFunction:
    """The function with the renaming that its rows agree on most, where any of them is renamed."""
    if not any(row.kind == RENAMED for row in function.rows):
        return function
    pairs = []  # the registers of rows that compare, and whether the row is renamed
    for row in function.rows:
        if row.kind in (EQUAL, RENAMED) and row.a is not None and row.b is not None:
            text_a, text_b = a.lines[row.a].masked or "", b.lines[row.b].masked or ""
            pairs.append((registers.names(text_a), registers.names(text_b), row.kind == RENAMED))
    renaming = registers.common_renaming((names_a, names_b) for names_a, names_b, _ in pairs)
    reassigned = sum(
        is_renamed and not renaming.covers(names_a, names_b) for names_a, names_b, is_renamed in pairs
    )
    return replace(function, renaming=renaming, reassigned=reassigned)


def _same_target(row: AlignedRow, a: Listing, b: Listing, partner: dict[int, int | None]) -> bool:
    assert row.a is not None
    assert row.b is not None
    target_a, target_b = a.lines[row.a].target, b.lines[row.b].target
    if target_a is None or target_b is None:
        return True  # outside of what is listed: nobody knows
    return partner.get(a.index[target_a], -1) == b.index[target_b]


def longest_common_subsequence(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """A longest common subsequence as pairs of positions.

    Bit-parallel over Python's integers: 5,000 by 5,000 in tens of milliseconds. Source: H. Hyyrö,
    "Bit-Parallel LCS-length Computation Revisited" (2004).
    """
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    middle = _bit_parallel_lcs(a[head : len(a) - tail], b[head : len(b) - tail])
    return [
        *((index, index) for index in range(head)),
        *((head + i, head + k) for i, k in middle),
        *((len(a) - n, len(b) - n) for n in range(tail, 0, -1)),
    ]


def _bit_parallel_lcs(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    positions_of: dict[Hashable, int] = {}  # the positions of an item in b, a bit each
    for position, item in enumerate(b):
        positions_of[item] = positions_of.get(item, 0) | 1 << position
    all_bits = (1 << len(b)) - 1
    row, rows = all_bits, []  # bit k of a row is 0 where one more of b[: k + 1] than of b[:k] is common
    for item in a:
        matched = row & positions_of.get(item, 0)
        row = ((row + matched) | (row - matched)) & all_bits
        rows.append(row)
    pairs = []
    i, k = len(a) - 1, len(b) - 1
    while i >= 0 and k >= 0:
        if rows[i] >> k & 1:
            k -= 1
        elif i and not rows[i - 1] >> k & 1:
            i -= 1
        else:
            pairs.append((i, k))
            i, k = i - 1, k - 1
    return pairs[::-1]
