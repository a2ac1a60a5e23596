"""The newest state of every family: what moved since the version before, and how lineages stand."""

import streamlit as st

from profiler.ui import course_data, data, lineage_data, lineage_summary, markup, overview_view

now = data.stamp()
with data.errors_shown():
    runs = data.runs(now)
    if not runs:
        st.html(markup.head("Overview"))
        st.html(markup.empty("No run yet. Import reports on the page Runs, or:", "profiler import PATH"))
        st.stop()
    state = course_data.overview(now)
    st.html(markup.head("Overview", overview_view.context(state, runs)))
    if state.cells:
        st.html(markup.section("Since the version before", overview_view.moved()))
        st.html(overview_view.tiles(state))
        st.html(markup.section("Newest versions", overview_view.CAPTION))
        st.html(overview_view.table(state, data.table(now)))
        for line in overview_view.notes(state):
            st.html(line)
    for family, lineage in lineage_data.lineages_by_family(now).items():
        st.html(markup.section(f"Lineage of {family}", lineage_summary.caption(lineage)))
        st.html(lineage_summary.tiles(lineage, course_data.regressions(now)))
        if (timed := lineage_summary.attained(lineage)) is not None:
            caption = lineage_summary.attained_caption(lineage)
            st.html(markup.section("Best correct version per GPU and workload", caption))
            st.html(timed)
        wrong_box, missing_box = st.columns(2, gap="medium")
        wrong_box.html(markup.section("Wrong", "no speed is shown"))
        wrong_box.html(lineage_summary.wrong(lineage))
        missing_box.html(markup.section("Not measured", lineage_summary.measuring(lineage)))
        missing_box.html(lineage_summary.missing(lineage))
