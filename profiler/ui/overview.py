"""The newest state of every family, and what moved since the version before."""

import streamlit as st

from profiler.ui import data, markup, overview_view

now = data.stamp()
with data.errors_shown():
    runs = data.runs(now)
    if not runs:
        st.html(markup.head("Overview"))
        st.html(markup.empty("No run yet. Import reports on the page Runs, or:", "profiler import PATH"))
        st.stop()
    state = data.overview(now)
    st.html(markup.head("Overview", overview_view.context(state, len(runs))))
    st.html(overview_view.tiles(state))
    st.html(markup.section("Newest versions", overview_view.CAPTION))
    st.html(overview_view.table(state, data.table(now)))
    for line in overview_view.notes(state):
        st.html(line)
