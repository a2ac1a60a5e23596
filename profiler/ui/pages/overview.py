"""The newest state of every family: what moved since the version before, and how lineages stand."""

import streamlit as st

from profiler.ui import markup
from profiler.ui.data import index, lineages, series
from profiler.ui.views import lineage_summary, newest_versions

now = index.stamp()
with index.errors_shown():
    runs = index.runs(now)
    if not runs:
        st.html(markup.page_head("Overview"))
        st.html(markup.empty_page("No run yet. Import reports on the page Runs, or:", "profiler import PATH"))
        st.stop()
    state = series.overview(now)
    st.html(markup.page_head("Overview", newest_versions.context(state, runs)))
    if state.cells:
        st.html(markup.section_head("Since the version before", newest_versions.moved()))
        st.html(newest_versions.tiles(state))
        st.html(markup.section_head("Newest versions", newest_versions.CAPTION))
        st.html(newest_versions.table(state, index.table(now)))
        for line in newest_versions.notes(state):
            st.html(line)
    for family, lineage in lineages.lineages_by_family(now).items():
        st.html(markup.section_head(f"Lineage of {family}", lineage_summary.caption(lineage)))
        st.html(lineage_summary.tiles(lineage, series.regressions(now)))
        if (timed := lineage_summary.attained(lineage)) is not None:
            caption = lineage_summary.attained_caption(lineage)
            st.html(markup.section_head("Best correct version per GPU and workload", caption))
            st.html(timed)
        wrong_box, missing_box = st.columns(2, gap="medium")
        wrong_box.html(markup.section_head("Wrong", "no speed is shown"))
        wrong_box.html(lineage_summary.wrong(lineage))
        missing_box.html(markup.section_head("Not measured", lineage_summary.measuring(lineage)))
        missing_box.html(lineage_summary.missing(lineage))
