"""A search for a better kernel: progress, descent, elites, what was refused, what insights brought."""

import streamlit as st

from profiler.ui import controls
from profiler.ui.data import searches
from profiler.ui.errors import errors_shown
from profiler.ui.sections import search_begin, search_progress

known = []
with errors_shown():
    known = searches.ids()
if not known:
    search_begin.show()
    st.stop()

filters = controls.Filters("search")
boxes = st.columns([4, 1.6, 1.4], vertical_alignment="bottom", gap="small")
head_box = boxes[0].empty()
with boxes[1]:
    search_id = filters.select("search", known, "search", format_option=searches.label)
with boxes[2]:
    view = filters.switch("show", ("all", "elites", "refused"), "show")
selected = filters.parameter("at")
with errors_shown():
    search_progress.show(head_box, search_id, view, selected, filters)
filters.write_url()
