"""The newest state of every family: what moved since the version before, and how lineages stand."""

import streamlit as st

from profiler.ui import markup
from profiler.ui.data import current_state, index, lineages, results
from profiler.ui.errors import errors_shown
from profiler.ui.views import lineage_summary, newest_versions

data_version = index.current_version()
with errors_shown():
    runs = results.runs(data_version)
    if not runs:
        st.html(markup.page_head("Overview"))
        st.html(markup.empty_page("No run yet. Import reports on the page Runs, or:", "profiler import PATH"))
        st.stop()
    overview = current_state.overview(data_version)
    st.html(markup.page_head("Overview", newest_versions.context(overview, runs)))
    if overview.cells:
        st.html(markup.section_head("Since the version before", newest_versions.tiles_caption()))
        st.html(newest_versions.tiles(overview))
        st.html(markup.section_head("Newest versions", newest_versions.CAPTION))
        st.html(newest_versions.table(overview, index.metric_table(data_version)))
        for line in newest_versions.notes(overview):
            st.html(line)
    for family, lineage in lineages.lineages_by_family(data_version).items():
        st.html(markup.section_head(f"Lineage of {family}", lineage_summary.caption(lineage)))
        st.html(lineage_summary.tiles(lineage, current_state.regressions(data_version)))
        if (latencies := lineage_summary.best_latencies(lineage)) is not None:
            caption = lineage_summary.best_latencies_caption(lineage)
            st.html(markup.section_head("Best correct version per GPU and workload", caption))
            st.html(latencies)
        wrong_box, unmeasured_box = st.columns(2, gap="medium")
        wrong_box.html(markup.section_head("Wrong", "no speed is shown"))
        wrong_box.html(lineage_summary.wrong(lineage))
        unmeasured_box.html(markup.section_head("Not measured", lineage_summary.measuring_command(lineage)))
        unmeasured_box.html(lineage_summary.not_measured(lineage))
