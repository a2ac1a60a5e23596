"""Machine code as lines: rebased and masked text, launches of reports, reports without text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.reports import read
from profiler.sass import alignment
from profiler.sass import listing as sass_listing
from profiler.sass.listing import MASKED_ADDRESS, listing_of_launch, select_functions
from tests.reportfiles import is_made


def test_a_return_address_is_masked_and_a_constant_of_its_value_is_not() -> None:
    texts = ["UMOV UR4, 0xb0", "IADD3 R1, R1, 0x1, RZ", *["NOP"] * 6, "MOV R6, 0xb0", "CALL.REL.NOINC 0xc0"]
    texts += ["NOP", "EXIT", "RET.REL.NODEC R6 0x0"]
    addresses = [(0, 16 * n) for n in range(len(texts))]
    lines = sass_listing._lines(addresses, texts, [None] * len(texts), sass_listing._CodeMap(addresses))
    assert [line.masked for line in lines if line.masked and MASKED_ADDRESS in line.masked] == [
        f"CALL.REL.NOINC {MASKED_ADDRESS}",
        f"RET.REL.NODEC R6 {MASKED_ADDRESS}",
    ], "the call is at 0x90, so that it returns to 0xa0"
    texts[8] = "MOV R6, 0xa0"
    lines = sass_listing._lines(addresses, texts, [None] * len(texts), sass_listing._CodeMap(addresses))
    assert lines[8].masked == f"MOV R6, {MASKED_ADDRESS}"
    assert lines[0].masked == "UMOV UR4, 0xb0"


@pytest.mark.slow
def test_a_report_writes_branches_as_offsets_of_their_function(reports: Path) -> None:
    listing = listing_of_launch(read.launch_detail(reports / "mistic" / "prof1.ncu-rep", 0))
    by_offset = {line.offset: line for line in listing.lines}
    call, to, returns = (0x2120, 0x2210, 0x2110) if is_made(reports) else (0x390, 0x8F0, 0x380)
    assert by_offset[call].text == f"CALL.REL.NOINC {to:#06x}"
    assert by_offset[call].target == (0, to)
    assert re.fullmatch(rf"MOV R\d+, {MASKED_ADDRESS}", by_offset[returns].masked or "")
    branches = [line for line in listing.lines if line.opcode in ("BRA", "BSSY")]
    assert branches
    assert all(
        line.target in listing.index and line.masked and MASKED_ADDRESS in line.masked for line in branches
    )
    assert not any("0x1454" in (line.text or "") for line in listing.lines), "the load address"


def test_a_label_beside_an_address_falls_away(public_reports: Path) -> None:
    listing = listing_of_launch(
        read.launch_detail(public_reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep", 0)
    )
    assert listing.lines[-1].masked == f"BRA {MASKED_ADDRESS}"
    assert listing.lines[-1].target == (0, listing.lines[-1].offset)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ordinal"), [("mistic/prof1", 0), ("cutlass/report80", 2)])
def test_one_binary_loaded_elsewhere_differs_in_nothing(reports: Path, name: str, ordinal: int) -> None:
    """The same launch as if its code had been loaded 0x5a00 further on: every absolute address moves."""
    first = read.launch_detail(reports / f"{name}.ncu-rep", ordinal)
    shift = 0x5A00
    low, high = int(first.pcs[0]), int(first.pcs[-1])

    def rebased(text: str | None) -> str | None:
        head, _, last = (text or "").rpartition("0x")
        is_code = (
            head and low <= int(last, 16) <= high if last and set(last) <= set("0123456789abcdef") else False
        )
        return f"{head}{int(last, 16) + shift:#x}" if is_code else text

    sass = tuple(map(rebased, first.sass))
    assert sass != first.sass
    functions = tuple(start + shift for start in first.functions)
    second = replace(first, pcs=first.pcs + np.uint64(shift), functions=functions, sass=sass)
    aligned = alignment.align(listing_of_launch(first), listing_of_launch(second))
    assert not aligned.different
    assert aligned.counts[alignment.EQUAL] == len(first.pcs)


def test_a_report_without_text_keeps_its_places_functions_and_counts(reports: Path) -> None:
    detail = read.launch_detail(reports / "ncar" / "MW_Baseline.ncu-rep", 2)
    listing = listing_of_launch(detail)
    assert not listing.has_text
    assert listing.has_sources
    assert [len(lines) for lines in listing.ranges] == (
        [379, 61, 596] if is_made(reports) else [136, 88, 727]
    )
    assert listing.functions[2] == "compute_tendencies_x_279_gpu [3 of 3]"
    assert {line.opcode_class for line in listing.lines} == {""}
    assert listing.counts == detail.per_pc


def test_chosen_functions_keep_their_lines_and_counts(reports: Path) -> None:
    whole = listing_of_launch(read.launch_detail(reports / "ncar" / "MW_Baseline.ncu-rep", 2))
    selected = select_functions(whole, lambda name: name.endswith("[2 of 3]"))
    assert len(selected.functions) == 1
    lines = whole.ranges[1]
    assert len(selected.lines) == len(lines) == (61 if is_made(reports) else 88)
    executed = whole.counts["inst_executed"].values[lines.start : lines.stop]
    np.testing.assert_array_equal(selected.counts["inst_executed"].values, executed)
