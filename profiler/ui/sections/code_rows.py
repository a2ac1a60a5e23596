"""The rows of the Code page: instructions, or source lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from profiler.sass import Listing
from profiler.ui import addresses, controls
from profiler.ui.addresses import CompiledKey
from profiler.ui.data import machine_code
from profiler.ui.data.index import DataVersion
from profiler.ui.sections.code_choice import CodeChoice
from profiler.ui.views import aligned_code, code_grid, code_listing, compiled_code, embedded_sources


def show_instructions(
    data_version: DataVersion,
    choice: CodeChoice,
    listings: Sequence[Listing],
    address: addresses.LaunchCode | addresses.CompiledCode,
    filters: controls.Filters,
    order_box: Any,
    words_box: Any,
) -> None:
    """The instructions of one listing, or of two side by side, a page of rows at a time."""
    with order_box:
        orders = aligned_code.ROWS if len(listings) == 2 else code_listing.orders(listings[0])
        order = filters.switch("rows", orders, "rows")
    with words_box:
        words = filters.text("find", "find", "find: LDS, +0x0120, file.cu:12 …", labelled=False)
    start = st.query_params.get("from", "")
    if len(listings) == 2:
        a, b = listings
        alignment = machine_code.aligned(data_version, *choice.keys)
        st.html(aligned_code.caption(alignment))
        pairs = aligned_code.rows(alignment, a, b, order, words)
        window = code_grid.window(len(pairs), start, aligned_code.ROWS_A_PAGE)
        table = aligned_code.table(pairs, a, b, window)
    else:
        listing, spots = listings[0], machine_code.hot_spots(data_version, choice.keys[0])
        if isinstance(choice.keys[0], CompiledKey):
            st.html(compiled_code.strip(listing))
        else:
            st.html(code_listing.strip(listing, spots) + code_listing.heat_strip(spots))
        rows = code_listing.ordered(listing, spots, order, words)
        window = code_grid.window(len(rows), start, code_listing.ROWS_A_PAGE)
        table = code_listing.table(listing, rows, window, order)
    pager = code_grid.pager(window, lambda start: address.at(start, rows=order, find=words))
    is_compiled = isinstance(choice.keys[0], CompiledKey)
    lacking = "" if is_compiled else code_listing.without_counts(listings)
    for part in filter(None, (code_listing.no_text(listings), lacking, pager, table)):
        st.html(part)


def show_sources(
    listings: Sequence[Listing], view: str, filters: controls.Filters, order_box: Any, words_box: Any
) -> None:
    """One source file that the reports embed, with what its lines cost; of two sides, side by side."""
    files = embedded_sources.files(*listings)
    with order_box:
        file = filters.select_if_several("file", [pair.name for pair in files], "file")
    is_whole = len(listings) == 2
    if len(listings) == 1:
        with words_box:
            is_whole = filters.switch("lines", embedded_sources.LINES, "lines") == "all"
    st.html(embedded_sources.section(files, file, listings, whole=is_whole and view == "source"))
