"""One launch in the sections of Nsight Compute, beside any baseline launch."""

import streamlit as st

from profiler.ui import controls, markup
from profiler.ui.data import index, launches
from profiler.ui.errors import errors_shown
from profiler.ui.sections import draw, launch_choice, launch_sections, notes

data_version = index.current_version()
runs = launches.runs_with_launches(data_version)
if not runs:
    draw.empty_page("Launch", "No launch yet. Import a report of one:", "profiler import PATH")

filters = controls.Filters("launch")
title_box, *boxes = st.columns([1.9, 1.6, 1.6, 1.2, 1.0], vertical_alignment="bottom", gap="small")
choice = None
with errors_shown():
    choice = launch_choice.choose(data_version, runs, filters, boxes)
if choice is None:
    title_box.html(markup.page_head("Launch"))
    filters.write_url()
    st.stop()

document = None
draw.html(*choice.lines)
with errors_shown():
    document = launches.document(data_version, choice.launch, choice.baseline)
if document is not None:
    launch_sections.show(data_version, document, choice, title_box)
    info = choice.info
    st.html(markup.section_head("Notes", "on this run and its version"))
    notes.show("launch_notes", {info.run_id: "this run", f"{info.family}/{info.version}": info.version})
filters.write_url()
