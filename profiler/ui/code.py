"""Where the time goes in the code: instructions and source lines of one launch, or of two side by side."""

import streamlit as st

from profiler.disassembly import Listing
from profiler.ui import (
    addresses,
    aligned_view,
    code_data,
    code_view,
    controls,
    data,
    embedded_view,
    grid,
    markup,
)

now = data.stamp()
reports = code_data.reports(now)
if not reports:
    st.html(markup.head("Code"))
    st.html(markup.empty("No report yet, and counts by instruction come with one:", "profiler import PATH"))
    for line in code_view.without_reports(*code_data.catalogued(now)):
        st.html(line)
    st.stop()

pick = controls.View("code")
title_box, *boxes = st.columns([2.2, 1.5, 1.3, 1.5, 1.3], vertical_alignment="bottom", gap="small")
asked = [st.query_params.get(name, "") for name in ("report", "b")]
wanted = [st.query_params.get(name, "") for name in ("launch", "b_launch")]
lost = []
chosen: list[tuple[str, str]] = []
for side, name in enumerate(("report", "b")):
    titles = code_view.report_titles(reports, optional=side == 1)
    with boxes[2 * side]:
        opened = None if side else code_data.first(now)
        report = pick.choose(f"report {'AB'[side]}", list(titles), name, opened, titles.__getitem__)
    if not report:
        break
    launches = code_data.launches(now, report)
    if not launches:
        lost.append(code_view.no_launch(titles[report]))
        break
    labels = code_view.launch_labels(launches)
    like = code_data.launches(now, chosen[0][0])[chosen[0][1]] if side else None
    with boxes[2 * side + 1]:
        first = code_view.first_launch(launches, like)
        launch = pick.choose("launch", list(labels), ("launch", "b_launch")[side], first, labels.__getitem__)
    chosen.append((report, launch))
    if asked[side] in ("", report):
        lost.append(code_view.unknown_launch(wanted[side], launch, launches, "AB"[side]))
for line in filter(None, (*code_view.unknown(asked, reports), *lost)):
    st.html(line)

code: list[Listing] = []
with data.errors_shown():
    code = [code_data.listing(now, *one) for one in chosen]
title_box.html(code_view.head(code, [reports[report].gpu for report, _ in chosen]))
for line in code_view.without_code(code):
    st.html(line)
if not code or len(code) < len(chosen) or not all(one.lines for one in code):
    pick.write()
    st.stop()

view_box, order_box, words_box, link_box = st.columns([1.5, 1.8, 2, 2.4], vertical_alignment="center")
two = len(code) == 2
with view_box:
    view = pick.switch("view", aligned_view.VIEWS if two else code_view.VIEWS, "view")
address = addresses.Code(*chosen[0], *(chosen[1] if two else ("", "")), view=view)
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
        found = code_data.aligned(now, *chosen)
        st.html(aligned_view.caption(found))
        rows = aligned_view.rows(found, code[0], code[1], order, words)
        shown = grid.window(len(rows), start, aligned_view.PAGE)
        listed = aligned_view.table(rows, code[0], code[1], shown)
    else:
        places = code_data.places(now, *chosen[0])
        st.html(code_view.strip(code[0], places) + code_view.map_strip(places))
        lines = code_view.ordered(code[0], places, order, words)
        shown = grid.window(len(lines), start, code_view.PAGE)
        listed = code_view.table(code[0], lines, shown, order)
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
