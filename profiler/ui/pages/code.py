"""Where the time goes in the code: instructions and source lines of one launch or version, or of two."""

import streamlit as st

from profiler.evidence.values import Evidence
from profiler.ui import controls, markup
from profiler.ui.data import index, machine_code
from profiler.ui.data.named_code import NamedCode
from profiler.ui.errors import errors_shown
from profiler.ui.sections import code_choice, code_rows, draw
from profiler.ui.views import aligned_code, code_listing

data_version = index.current_version()
reports, versions = machine_code.reports(data_version), machine_code.compiled_versions(data_version)
if not reports and not versions:
    draw.empty_page("Code", "No report yet; counts by instruction need one:", "profiler import PATH")

for side in ("a", "b"):  # an address may name a report by its run or version
    if digits := machine_code.report_of_name(data_version, st.query_params.get(side, "")):
        st.query_params[side] = digits
filters = controls.Filters("code")
title_box, *boxes = st.columns([1.4, 1.6, 1.6, 1.8, 1.6], vertical_alignment="bottom", gap="small")
kinds = [Evidence.MEASURED] * bool(reports) + [Evidence.STATIC] * bool(versions)
if "/" in st.query_params.get("a", ""):
    kinds.reverse()  # the address is of a version, where a report has a hash
evidence, _ = filters.evidence(kinds)
is_compiled = evidence is Evidence.STATIC
choice = None
code: list[NamedCode] = []
with errors_shown():
    choose = code_choice.choose_compiled if is_compiled else code_choice.choose_launches
    choice = choose(data_version, filters, boxes)
    code = [machine_code.code(data_version, key) for key in choice.keys]
if code:
    controls.name_tab(code_listing.tab_title(code))
title_box.html(code_listing.page_head(code, choice.context if choice else ()))
lines = list(choice.lines) if choice else []
if is_compiled and not reports:  # an address of a launch, opened where no report is
    asked = [name for side in ("a", "b") if code_listing.is_of_report(name := st.query_params.get(side, ""))]
    lines = [*code_listing.unknown_reports(asked, reports), *lines]
lines += code_listing.without_code(code)
with errors_shown():
    versions = machine_code.versions_to_measure(data_version, choice.keys if choice else ())
    lines += code_listing.how_to_measure(versions)
draw.html(*lines)
if not choice or not code or len(code) < len(choice.keys) or not all(side.listing.lines for side in code):
    filters.write_url()
    st.stop()

view_box, order_box, words_box, link_box = st.columns([1.5, 2, 1.6, 2.2], vertical_alignment="center")
with view_box:
    views: tuple[str, ...] = aligned_code.VIEWS
    if len(code) == 1:
        views = code_listing.views(code[0].listing, is_compiled=is_compiled)
    view = filters.switch("view", views, "view")
address = choice.address(view)
if len(code) == 2:
    link_box.html(markup.note(markup.link(address.swapped.href, "⇄ swap", key="s")))
listings = [side.listing for side in code]
if view in (code_listing.HOTTEST, code_listing.KNOWN_LINES):
    show = code_rows.show_known_lines if is_compiled else code_rows.show_hottest
    show(data_version, choice, listings[0], address, filters, (order_box, words_box, link_box))
elif view == "sass":
    code_rows.show_instructions(data_version, choice, listings, address, filters, order_box, words_box)
else:
    code_rows.show_sources(listings, view, filters, order_box, words_box)
filters.write_url()
