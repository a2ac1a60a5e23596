"""Two listings side by side: what pairs, what differs, and that nothing is lost."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from profiler.reports import read
from profiler.sass import alignment
from profiler.sass import listing as sass_listing
from profiler.sass.alignment import CHANGED, EQUAL, ONLY_A, ONLY_B, RENAMED, UNREAD
from profiler.sass.listing import Listing, SassLine, listing_of_launch


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


@pytest.mark.slow
def test_swapping_the_sides_swaps_what_only_one_has(reports: Path) -> None:
    a, b = listing(reports, "mistic/prof1", 0), listing(reports, "mistic/prof2", 0)
    there, back = alignment.align(a, b), alignment.align(b, a)
    assert there.counts == {**back.counts, ONLY_A: back.counts[ONLY_B], ONLY_B: back.counts[ONLY_A]}
    assert there.different


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


def test_the_same_opcode_with_other_registers_is_renamed_and_with_other_operands_changed() -> None:
    a = ["FFMA R1, R2, R3, R1", "LDS R4, [R5]", "STS [R5], R4", "EXIT"]
    b = ["FFMA R1, R2, R3, R1", "LDS R7, [R8]", "STS [R8], R7", "EXIT"]
    assert kinds(made(a), made(b)) == [EQUAL, RENAMED, RENAMED, EQUAL]
    renamed = ["FFMA R9, R8, R7, R9", "LDS R7, [R8]", "STS [R8], R7", "EXIT"]
    assert kinds(made(a), made(renamed)) == [RENAMED, RENAMED, RENAMED, EQUAL]
    changed = ["FFMA R9, R8, R7, RZ", "LDS R7, [R8+0x10]", "STS [R8], R8", "EXIT"]
    assert kinds(made(a), made(changed)) == [CHANGED, CHANGED, CHANGED, EQUAL]


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ("@!P0 ISETP.GE.AND P1, PT, R4, R5, PT", "@!P2 ISETP.GE.AND P3, PT, R4, R5, PT", RENAMED),
        ("@!P0 BRA 0x0", "@P0 BRA 0x0", CHANGED),
        ("LDG.E R2, desc[UR4][R2.64+0x10]", "LDG.E R6, desc[UR8][R4.64+0x10]", RENAMED),
        ("LDG.E R2, desc[UR4][R2.64+0x10]", "LDG.E R2, desc[UR4][R2.64+0x20]", CHANGED),
        ("MOV R1, c[0x0][0x160]", "MOV R1, c[0x0][0x168]", CHANGED),
        ("BSSY B0, 0x0", "BSSY B1, 0x0", RENAMED),
        ("DEPBAR.LE SB0, 0x1", "DEPBAR.LE SB1, 0x1", RENAMED),
        ("DEPBAR.LE SB0, 0x1", "DEPBAR.LE SB0, 0x2", CHANGED),
        ("WARPGROUP.DEPBAR.LE gsb0, 0x0", "WARPGROUP.DEPBAR.LE gsb1, 0x0", RENAMED),
        ("BAR.SYNC.DEFER_BLOCKING 0x1", "BAR.SYNC.DEFER_BLOCKING 0x2", CHANGED),
        ("I2F.U8 R3, R4.B1", "I2F.U8 R3, R5.B1", RENAMED),
        ("I2F.U8 R3, R4.B1", "I2F.U8 R3, R4.B2", CHANGED),
        ("FADD R1, R2.reuse, R3", "FADD R1, R2, R3", RENAMED),
        ("FADD R1, R2, R3", "FADD R1, -R2, R3", CHANGED),
        ("FADD R1, R2, R2", "FADD R1, R2, R3", CHANGED),
        ("FADD R1, R2, RZ", "FADD R1, R2, R3", CHANGED),
        ("IADD3 R4, R4, 0x1, RZ", "IADD3 R6, R4, 0x1, RZ", RENAMED),
        ("SHFL.BFLY PT, R4, R4, 0x1, 0x1f", "SHFL.BFLY PT, R6, R4, 0x1, 0x1f", RENAMED),
        ("FSETP.NEU.AND P0, PT, R4, R4, PT", "FSETP.NEU.AND P0, PT, R4, R5, PT", CHANGED),
        ("S2R R0, SR_TID.X", "S2R R0, SR_TID.Y", CHANGED),
        ("P2R R30, PR, RZ, 0x78", "P2R R2, PR, RZ, 0x78", RENAMED),
    ],
)
def test_only_numbers_that_a_compiler_gives_are_renamed(a: str, b: str, kind: str) -> None:
    assert kinds(made([a, "EXIT"]), made([b, "EXIT"])) == [kind, EQUAL]
    assert kinds(made([b, "EXIT"]), made([a, "EXIT"])) == [kind, EQUAL]


def test_the_same_opcodes_align_one_by_one_where_all_registers_moved() -> None:
    draw = random.Random(3)
    opcodes = ["FADD R{}, R{}, R{}", "FMUL R{}, R{}, R{}", "LDS R{}, [R{}+0x{}0]", "IMAD R{}, R{}, R{}, RZ"]
    lines = [draw.choice(opcodes).format(*(draw.randrange(1, 30) for _ in range(3))) for _ in range(400)]
    moved = [re.sub(r"\bR(\d+)", lambda register: f"R{int(register[1]) % 29 + 1}", line) for line in lines]
    (function,) = alignment.align(made(lines), made(moved)).functions
    assert [row.kind for row in function.rows] == [RENAMED] * 400
    assert all(row.a == row.b for row in function.rows)
    assert function.reassigned == 0
    assert function.renaming.changed["R7"] == "R8"
    # Without the first instruction the rest still pairs, by the shape of what stands there.
    counts = alignment.align(made(lines[1:]), made(moved)).counts
    assert counts[ONLY_B] == 1
    assert counts[RENAMED] > 380


def test_rows_that_follow_no_one_renaming_are_counted() -> None:
    a = ["LDS R4, [R0]", "FADD R8, R4, R8", "LDS R4, [R0+0x4]", "FADD R9, R4, R9", "STS [R0], R8"]
    b = ["LDS R4, [R0]", "FADD R8, R4, R8", "LDS R5, [R0+0x4]", "FADD R9, R5, R9", "STS [R0], R8"]
    aligned = alignment.align(made(a), made(b))
    assert [row.kind for row in aligned.functions[0].rows] == [EQUAL, EQUAL, RENAMED, RENAMED, EQUAL]
    assert aligned.reassigned == 2, "R4 is R4 before, and R5 here"
    assert aligned.different


def test_a_renamed_branch_that_goes_elsewhere_is_a_change() -> None:
    texts = ["MOV R1, R2", "IADD3 R3, R3, 0x1, RZ", "@P0 BRA 0x10", "EXIT"]
    there, elsewhere = ([*texts[:2], f"@P1 BRA {target}", "EXIT"] for target in ("0x10", "0x0"))
    assert kinds(made(texts), made(there)) == [EQUAL, EQUAL, RENAMED, EQUAL]
    assert kinds(made(texts), made(elsewhere)) == [EQUAL, EQUAL, CHANGED, EQUAL]


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
