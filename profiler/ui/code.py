"""Where the time goes in the code: instructions and source lines of one launch or version, or of two."""

import streamlit as st

from profiler.evidence.values import Evidence
from profiler.sass.listing import Listing
from profiler.ui import (
    aligned_view,
    code_choice,
    code_data,
    code_view,
    compiled_view,
    controls,
    data,
    embedded_view,
    grid,
    markup,
)

now = data.stamp()
reports, versions = code_data.reports(now), code_data.compiled_versions(now)
if not reports and not versions:
    st.html(markup.head("Code"))
    st.html(markup.empty("No report yet, and counts by instruction come with one:", "profiler import PATH"))
    st.stop()

pick = controls.View("code")
title_box, *boxes = st.columns([2.2, 1.5, 1.3, 1.5, 1.3], vertical_alignment="bottom", gap="small")
kinds = [Evidence.MEASURED] * bool(reports) + [Evidence.STATIC] * bool(versions)
if "version" in st.query_params and "report" not in st.query_params:
    kinds.reverse()  # the address is of a version
evidence, _ = pick.evidence(kinds)
static = evidence is Evidence.STATIC
code: list[Listing] = []
choice = None
with data.errors_shown():
    choice = (code_choice.compiled if static else code_choice.launches)(now, pick, boxes)
    code = [code_data.code(now, one) for one in choice.places]
if code:
    controls.name_tab(code_view.tab(code))
title_box.html(code_view.head(code, choice.context if choice else ()))
asked = [st.query_params.get(name, "") for name in ("report", "b") if static and not reports]
lines = [*code_view.unknown(asked, reports), *(choice.lines if choice else ()), *code_view.without_code(code)]
with data.errors_shown():
    lines += code_view.without_counts(code_data.measurable(now, choice.places if choice else ()))
for line in lines:
    st.html(line)
if not choice or not code or len(code) < len(choice.places) or not all(one.lines for one in code):
    pick.write()
    st.stop()

view_box, order_box, words_box, link_box = st.columns([1.5, 1.8, 2, 2.4], vertical_alignment="center")
two = len(code) == 2
with view_box:
    view = pick.switch("view", aligned_view.VIEWS if two else code_view.VIEWS, "view")
address = choice.address(view)
if two:
    link_box.html(markup.note(markup.link(address.swapped.href, "⇄ swap")))
if view == "sass":
    orders = aligned_view.ROWS if two else code_view.orders(code[0])
    with order_box:
        order = pick.switch("rows", orders, "rows")
    with words_box:
        words = pick.words("find", "find", "find: LDS, +0x0120, file.cu:12 …", labelled=False)
    start = st.query_params.get("from", "")
    if two:
        found = code_data.aligned(now, *choice.places)
        st.html(aligned_view.caption(found))
        pairs = aligned_view.rows(found, code[0], code[1], order, words)
        shown = grid.window(len(pairs), start, aligned_view.PAGE)
        listed = aligned_view.table(pairs, code[0], code[1], shown)
    else:
        places = code_data.places(now, choice.places[0])
        counted = code_view.strip(code[0], places) + code_view.map_strip(places)
        st.html(compiled_view.strip(code[0]) if static else counted)
        rows = code_view.ordered(code[0], places, order, words)
        shown = grid.window(len(rows), start, code_view.PAGE)
        listed = code_view.table(code[0], rows, shown, order)
    pages = grid.pager(shown, lambda start: address.at(start, rows=order, find=words))
    for part in filter(None, (code_view.unread(code), pages, listed)):
        st.html(part)
else:
    files = embedded_view.files(*code)
    with order_box:
        file = pick.any_of("file", [one.name for one in files], "file")
    with words_box:
        whole = two or pick.switch("lines", embedded_view.LINES, "lines") == "all"
    st.html(embedded_view.section(files, file, code, whole=whole and view == "source"))
pick.write()
