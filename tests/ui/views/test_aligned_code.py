"""Two listings side by side as the Code page shows them."""

from __future__ import annotations

import re
from html import unescape

from profiler.sass.alignment import align
from profiler.sass.listing import FunctionCode, Listing, make_listing
from profiler.ui.views import aligned_code, code_grid, code_listing

BODY = ["LDS R4, [R0]", "FADD R8, R4, R8", "FMUL R9, R8, R8", "IADD3 R0, R0, 0x4, RZ", "STS [R0], R9"]


def made(texts: list[str]) -> Listing:
    instructions = tuple((16 * index, text) for index, text in enumerate(texts))
    return make_listing([FunctionCode("k", instructions, (None,) * len(texts))], "made")


def plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_renamed_rows_stand_with_their_sign_and_are_no_difference_to_look_for() -> None:
    a = made([*BODY * 4, "MOV R1, 0x1", "EXIT"])
    b = made([*[re.sub(r"R(\d)", r"R1\1", text) for text in BODY] * 4, "MOV R11, 0x2", "EXIT"])
    aligned = align(a, b)
    assert "20 renamed, 1 changed" in plain(aligned_code.caption(aligned))
    assert "one to one" in plain(aligned_code.caption(aligned))
    shown = aligned_code.rows(aligned, a, b, "differences", "")
    assert shown[0] == "⋯ 16 rows renamed"
    every = aligned_code.rows(aligned, a, b, "all", "")
    table = plain(aligned_code.table(every, a, b, code_grid.window(len(every), "", 100)))
    assert (table.count("≈"), table.count("≠")) == (20, 1)


def test_a_caption_says_what_of_a_renaming_was_not_checked() -> None:
    a = made(["LDS R4, [R0]", "FADD R8, R4, R8", "LDS R4, [R0+0x4]", "FADD R9, R4, R9"])
    b = made(["LDS R4, [R0]", "FADD R8, R4, R8", "LDS R5, [R0+0x4]", "FADD R9, R5, R9"])
    words = plain(aligned_code.caption(align(a, b)))
    assert "2 do not fit one consistent register mapping: they may read other values" in words


def test_a_launch_of_which_nothing_was_counted_says_so_and_what_was_left_out() -> None:
    listing = Listing("k", ("k",), made(BODY).lines, left_out={"a__b": "text"}, derived={"c__d": "a sum"})
    words = plain(code_listing.without_counts([listing]))
    assert "counts nothing per instruction" in words
    assert "Left out: a__b: text" in words
    assert "Derived: c__d: a sum" in words
