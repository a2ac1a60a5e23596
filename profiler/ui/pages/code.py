"""Where the time goes in the code: instructions and source lines of one launch or version, or of two."""

import streamlit as st

from profiler.evidence import Evidence
from profiler.sass import Listing
from profiler.ui import controls, markup
from profiler.ui.data import code_listings, index
from profiler.ui.sections import code_choice
from profiler.ui.views import aligned_code, code_grid, code_listing, compiled_code, embedded_sources

now = index.stamp()
reports, versions = code_listings.reports(now), code_listings.compiled_versions(now)
if not reports and not versions:
    st.html(markup.page_head("Code"))
    st.html(
        markup.empty_page("No report yet, and counts by instruction come with one:", "profiler import PATH")
    )
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
with index.errors_shown():
    choice = (code_choice.compiled if static else code_choice.launches)(now, pick, boxes)
    code = [code_listings.code(now, one) for one in choice.places]
if code:
    controls.name_tab(code_listing.tab(code))
title_box.html(code_listing.head(code, choice.context if choice else ()))
asked = [st.query_params.get(name, "") for name in ("report", "b") if static and not reports]
lines = [
    *code_listing.unknown(asked, reports),
    *(choice.lines if choice else ()),
    *code_listing.without_code(code),
]
with index.errors_shown():
    lines += code_listing.without_counts(code_listings.measurable(now, choice.places if choice else ()))
for line in lines:
    st.html(line)
if not choice or not code or len(code) < len(choice.places) or not all(one.lines for one in code):
    pick.write()
    st.stop()

view_box, order_box, words_box, link_box = st.columns([1.5, 1.8, 2, 2.4], vertical_alignment="center")
two = len(code) == 2
with view_box:
    view = pick.switch("view", aligned_code.VIEWS if two else code_listing.VIEWS, "view")
address = choice.address(view)
if two:
    link_box.html(markup.note(markup.link(address.swapped.href, "⇄ swap")))
if view == "sass":
    orders = aligned_code.ROWS if two else code_listing.orders(code[0])
    with order_box:
        order = pick.switch("rows", orders, "rows")
    with words_box:
        words = pick.words("find", "find", "find: LDS, +0x0120, file.cu:12 …", labelled=False)
    start = st.query_params.get("from", "")
    if two:
        found = code_listings.aligned(now, *choice.places)
        st.html(aligned_code.caption(found))
        pairs = aligned_code.rows(found, code[0], code[1], order, words)
        shown = code_grid.window(len(pairs), start, aligned_code.PAGE)
        listed = aligned_code.table(pairs, code[0], code[1], shown)
    else:
        places = code_listings.places(now, choice.places[0])
        counted = code_listing.strip(code[0], places) + code_listing.map_strip(places)
        st.html(compiled_code.strip(code[0]) if static else counted)
        rows = code_listing.ordered(code[0], places, order, words)
        shown = code_grid.window(len(rows), start, code_listing.PAGE)
        listed = code_listing.table(code[0], rows, shown, order)
    pages = code_grid.pager(shown, lambda start: address.at(start, rows=order, find=words))
    for part in filter(None, (code_listing.unread(code), pages, listed)):
        st.html(part)
else:
    files = embedded_sources.files(*code)
    with order_box:
        file = pick.any_of("file", [one.name for one in files], "file")
    with words_box:
        whole = two or pick.switch("lines", embedded_sources.LINES, "lines") == "all"
    st.html(embedded_sources.section(files, file, code, whole=whole and view == "source"))
pick.write()
