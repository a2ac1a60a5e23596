"""Two listings side by side: what pairs, what differs, and that nothing is lost."""

from __future__ import annotations

import random
import time
from collections import Counter
from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from profiler.reports import read
from profiler.sass import Listing, SassLine, alignment, listing_of_launch
from profiler.sass import listing as sass_listing
from profiler.sass.alignment import CHANGED, EQUAL, ONLY_A, ONLY_B, UNREAD


@cache
def listing(reports: Path, name: str, ordinal: int) -> Listing:
    return listing_of_launch(read.launch_detail(reports / f"{name}.ncu-rep", ordinal))


def made(texts: list[str], name: str = "k") -> Listing:
    addresses = [(0, 16 * n) for n in range(len(texts))]
    sources = [None] * len(texts)
    lines = sass_listing._lines(addresses, texts, sources, sass_listing._CodeMap(addresses))
    return Listing("made", (name,), lines)


def kinds(a: Listing, b: Listing) -> list[str]:
    return [row.kind for function in alignment.align(a, b).functions for row in function.rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("cutlass/report75", 2), ("cutlass/report80", 2)),
        (("mistic/prof1", 0), ("mistic/prof2", 0)),
        (("ncar/MW_Baseline", 2), ("ncar/MW_DivToMult", 2)),
        (("ncar/MW_Baseline", 2), ("cutlass/report80", 0)),
    ],
)
def test_every_instruction_of_both_sides_stands_in_exactly_one_row(
    reports: Path, a: tuple[str, int], b: tuple[str, int]
) -> None:
    listing_a, listing_b = listing(reports, *a), listing(reports, *b)
    rows = [row for function in alignment.align(listing_a, listing_b).functions for row in function.rows]
    assert sorted(row.a for row in rows if row.a is not None) == list(range(len(listing_a.lines)))
    assert sorted(row.b for row in rows if row.b is not None) == list(range(len(listing_b.lines)))


@pytest.mark.slow
def test_two_launches_of_one_binary_differ_in_nothing(reports: Path) -> None:
    for name in ("cutlass/report75", "cutlass/report80", "mistic/prof1"):
        aligned = alignment.align(listing(reports, name, 0), listing(reports, name, 1))
        assert not aligned.different, name
        assert aligned.counts[EQUAL] > 200


def test_swapping_the_sides_swaps_what_only_one_has(public_reports: Path) -> None:
    """Where a longest common subsequence is the only one; of several of one length either may be found."""
    a, b = listing(public_reports, "mistic/prof1", 0), listing(public_reports, "mistic/prof2", 0)
    there, back = alignment.align(a, b).counts, alignment.align(b, a).counts
    assert there[ONLY_A] == back[ONLY_B]
    assert there[ONLY_B] == back[ONLY_A]
    assert there[EQUAL] == back[EQUAL]


@pytest.mark.slow
def test_without_text_equal_regions_pair_by_offset_and_nothing_is_called_equal(reports: Path) -> None:
    a, b = listing(reports, "ncar/MW_Baseline", 2), listing(reports, "ncar/MW_DivToMult", 2)
    aligned = alignment.align(a, b)
    assert [(function.a, function.b, function.by) for function in aligned.functions] == [
        (0, 0, "offsets"),
        (1, 1, "offsets"),
        (2, 2, "source lines"),
    ]
    assert aligned.counts[EQUAL] == aligned.counts[CHANGED] == 0
    assert aligned.counts[UNREAD] > 500
    for function in aligned.functions[:2]:
        assert all(a.lines[row.a].offset == b.lines[row.b].offset for row in function.rows)
    for row in aligned.functions[2].rows:
        if row.kind == UNREAD:
            assert a.lines[row.a].source == b.lines[row.b].source


def test_an_instruction_put_in_between_moves_no_branch_behind_it() -> None:
    texts = ["MOV R1, R2", "IADD3 R3, R3, 0x1, RZ", "@P0 BRA 0x10", "EXIT"]
    row_kinds = kinds(made(texts), made(["S2R R9, SR_TID.X", *texts[:2], "@P0 BRA 0x20", "EXIT"]))
    assert Counter(row_kinds) == {EQUAL: 4, ONLY_B: 1}


def test_a_branch_that_goes_elsewhere_is_a_change() -> None:
    texts = ["MOV R1, R2", "IADD3 R3, R3, 0x1, RZ", "@P0 BRA 0x10", "EXIT"]
    row_kinds = kinds(made(texts), made([*texts[:2], "@P0 BRA 0x0", "EXIT"]))
    assert row_kinds == [EQUAL, EQUAL, CHANGED, EQUAL]


def test_the_same_opcode_with_other_registers_is_changed_not_removed_and_added() -> None:
    a = ["FFMA R1, R2, R3, R1", "LDS R4, [R5]", "STS [R5], R4", "EXIT"]
    b = ["FFMA R1, R2, R3, R1", "LDS R7, [R8]", "STS [R8], R7", "EXIT"]
    assert kinds(made(a), made(b)) == [EQUAL, CHANGED, CHANGED, EQUAL]
    renamed = ["FFMA R9, R8, R7, R9", "LDS R7, [R8]", "STS [R8], R7", "EXIT"]
    assert kinds(made(a), made(renamed)) == [CHANGED, CHANGED, CHANGED, EQUAL]


def test_functions_pair_by_name_then_by_template_integer_then_by_size() -> None:
    def several(*functions: tuple[str, int]) -> Listing:
        lines = [
            SassLine(n, 16 * k, "NOP", "NOP", "NOP")
            for n, (_, size) in enumerate(functions)
            for k in range(size)
        ]
        return Listing("made", tuple(name for name, _ in functions), tuple(lines))

    a = several(("_Z3v2bILi64EEvv", 5), ("_Z3v2bILi128EEvv", 5), ("same", 3))
    b = several(("same", 9), ("_Z3v2cILi128EEvv", 5), ("_Z3v2cILi64EEvv", 5))
    assert alignment.pair_functions(a, b) == [(0, 2), (1, 1), (2, 0)]
    regions = several(("k [1 of 2]", 90), ("k [2 of 2]", 40))
    assert alignment.pair_functions(regions, several(("k", 41))) == [(0, 0), (1, None)]
    assert alignment.pair_functions(several(("a", 1)), several(("b", 3), ("c", 1))) == [(0, 1), (None, 0)]


def test_the_common_subsequence_is_one_and_is_as_long_as_can_be() -> None:
    draw = random.Random(7)
    for _ in range(300):
        a, b = ([draw.randrange(4) for _ in range(draw.randrange(14))] for _ in range(2))
        pairs = alignment.longest_common_subsequence(a, b)
        assert all(a[i] == b[k] for i, k in pairs)
        assert all(x[0] < y[0] and x[1] < y[1] for x, y in pairwise(pairs))
        assert len(pairs) == longest(a, b)


def longest(a: list[int], b: list[int]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        last = row[:]
        for k, y in enumerate(b, 1):
            row[k] = last[k - 1] + 1 if x == y else max(last[k], row[k - 1])
    return row[-1]


@pytest.mark.slow
def test_six_thousand_lines_align_faster_than_difflib_does(made_reports: Path) -> None:
    a, b = listing(made_reports, "cutlass/report75", 2), listing(made_reports, "cutlass/report80", 2)
    opcodes_a, opcodes_b = ([line.opcode for line in listing.lines] * 2 for listing in (a, b))
    started = time.process_time()
    alignment.longest_common_subsequence(opcodes_a, opcodes_b)
    ours = time.process_time() - started
    started = time.process_time()
    SequenceMatcher(None, opcodes_a, opcodes_b, autojunk=False).get_opcodes()
    assert ours < time.process_time() - started
