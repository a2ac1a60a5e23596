"""The rows of the Code page: instructions, or source lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from profiler.sass.hottest_places import INSTRUCTIONS, KINDS, hot_places, present_amounts, static_lines
from profiler.sass.listing import Listing
from profiler.ui import addresses, controls
from profiler.ui.addresses import CompiledKey
from profiler.ui.data import lineages, machine_code, predictions
from profiler.ui.data.index import DataVersion
from profiler.ui.sections import draw
from profiler.ui.sections.code_choice import ChosenCode
from profiler.ui.views import (
    aligned_code,
    code_grid,
    code_listing,
    compiled_code,
    embedded_sources,
    hot_table,
)

_MAX_DIGITS = 9  # of a line's number: an address may say anything


def show_instructions(
    data_version: DataVersion,
    choice: ChosenCode,
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
    start, mark = st.query_params.get("from", ""), st.query_params.get("mark", "")
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
        marked = (at for at, row in enumerate(rows) if code_listing.is_marked(listing, row, mark))
        start = start or str(next(marked, ""))
        window = code_grid.window(len(rows), start, code_listing.ROWS_A_PAGE)
        table = code_listing.table(listing, rows, window, order, mark)
    pager = code_grid.pager(window, lambda start: address.at(start, rows=order, find=words))
    is_compiled = isinstance(choice.keys[0], CompiledKey)
    lacking = "" if is_compiled else code_listing.without_counts(listings)
    draw.html(*filter(None, (code_listing.no_text(listings), lacking, pager, table)))


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
    asked = st.query_params.get("mark", "")
    mark = int(asked) if asked.isdecimal() and len(asked) < _MAX_DIGITS else 0
    st.html(embedded_sources.section(files, file, listings, whole=is_whole and view == "source", mark=mark))


def show_hottest(
    data_version: DataVersion,
    choice: ChosenCode,
    listing: Listing,
    address: addresses.LaunchCode | addresses.CompiledCode,
    filters: controls.Filters,
    boxes: Sequence[Any],
) -> None:
    """The hottest lines and instructions over all files of a launch; `boxes` for kind, order and words."""
    kind_box, order_box, words_box = boxes
    spots = machine_code.hot_spots(data_version, choice.keys[0])
    st.html(code_listing.strip(listing, spots) + code_listing.heat_strip(spots))
    kind = INSTRUCTIONS
    if listing.has_sources:
        with kind_box:
            kind = filters.switch("places", KINDS, "places")
    orders = present_amounts(spots)
    with order_box:
        order = filters.select_if_several("most", orders, "most")
    with words_box:
        words = filters.text("find", "find", "find: LDS, file.cu:12, long_scoreboard …", labelled=False)
    lacking = code_listing.without_counts([listing])
    draw.html(*filter(None, (code_listing.no_text([listing]), lacking, hot_table.without_excess(listing))))
    places = hot_places(listing, kind, order, words, spots) if order else ()
    window = _show_pager(len(places), address, places=kind, most=order, find=words)
    st.html(hot_table.measured(listing, places, window, _links(choice, listing)))


def show_known_lines(
    data_version: DataVersion,
    choice: ChosenCode,
    listing: Listing,
    address: addresses.LaunchCode | addresses.CompiledCode,
    filters: controls.Filters,
    boxes: Sequence[Any],
) -> None:
    """What is known by line of code that nobody ran: modelled conflicts, and instructions."""
    key = choice.keys[0]
    assert isinstance(key, CompiledKey)
    workload_box, order_box, words_box = boxes
    st.html(compiled_code.strip(listing))
    traffic = machine_code.modelled_traffic(data_version, key)
    with workload_box:
        likely = lineages.modelled_workload(data_version, key.version)
        default = likely if likely in traffic else next(iter(traffic), None)
        workload = filters.select_if_several(
            "modelled on", list(traffic), "workload", default, noun="workload"
        )
    with words_box:
        words = filters.text("find", "find", "find: ldmatrix, file.cu:12 …", labelled=False)
    draw.html(*hot_table.static_notes(key.version, workload, has_traffic=bool(traffic)))
    stored = predictions.of_code(data_version, key)
    if stored is not None:
        st.html(hot_table.time_note(*stored))
    times = stored[0].lines if stored is not None else None
    order = hot_table.BY_TIME
    if times and traffic:
        with order_box:
            order = filters.switch("order", hot_table.ORDERS, "most")
    by_time = order == hot_table.BY_TIME
    known = static_lines(listing, traffic.get(workload, ()), words, times, by_time=by_time)
    window = _show_pager(len(known), address, workload=workload, find=words, most=order)
    st.html(hot_table.static(listing, known, window, _links(choice, listing)))


def _show_pager(
    count: int, address: addresses.LaunchCode | addresses.CompiledCode, **choices: str
) -> code_grid.Window:
    """The links to other pages of so many places, where there are any; the places of this page."""
    window = code_grid.window(count, st.query_params.get("from", ""), hot_table.ROWS_A_PAGE)
    if pager := code_grid.pager(window, lambda start: address.at(start, **choices)):
        st.html(pager)
    return window


def _links(choice: ChosenCode, listing: Listing) -> hot_table.CodeLinks:
    """The ways from a place to its source and machine code."""
    files = {pair.a: pair.name for pair in embedded_sources.files(listing) if pair.a}
    return hot_table.CodeLinks(choice.address, files)
