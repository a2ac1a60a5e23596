"""What is worse now in every family: since when, how sure, why, and whether it is acknowledged."""

import streamlit as st

from profiler.ui import controls, markup
from profiler.ui.data import current_state, index, lineages
from profiler.ui.data.version_choice import families_newest_first
from profiler.ui.errors import errors_shown
from profiler.ui.views import regression_list

data_version = index.current_version()
versions = lineages.versions(data_version)
if not versions:
    st.html(markup.page_head("Regressions"))
    st.html(markup.empty_page("No run yet that could get worse. Import reports:", "profiler import PATH"))
    st.stop()

filters = controls.Filters("regressions")
head_box, family_box = st.columns([4, 1], vertical_alignment="bottom", gap="medium")
head_box.html(markup.page_head("Regressions", regression_list.CAPTION))
with family_box:
    options = [regression_list.ALL, *families_newest_first(versions)]
    family = filters.select_if_several("family", options, "family")
filters.write_url()

with errors_shown():
    report = current_state.regressions(data_version)
    regressions = regression_list.of_family(report, family)
    listed = regressions[: regression_list.ROWS_SHOWN]
    # A cause is read from bundles: only those of the rows shown are looked for.
    causes = [current_state.cause(data_version, regression) for regression in listed]
    shared = current_state.shared_regressions(data_version)
    st.html(regression_list.tiles(regressions, causes, report.coverage, shared))
    for line in regression_list.shared_notes(shared, regressions):
        st.html(line)
    if listed:
        selected = regression_list.choose(listed, st.query_params.get("at"))
        st.html(regression_list.table(listed, causes, selected, family))
        if len(regressions) > len(listed):
            more = len(regressions) - len(listed)
            st.html(markup.note(f"{more} more: `profiler regressions --json` has all"))
        if selected:
            st.html(markup.section_head(regression_list.title(selected), "the selected row"))
            st.html(regression_list.details(selected, causes[listed.index(selected)]))
            if selected.command and selected.is_open:
                st.html(markup.note("Let it pass, for a reason and until some day or run:"))
                st.code(selected.command, language=None)
    else:
        st.html(regression_list.nothing_worse(report.coverage))
    for line in regression_list.notes(report.coverage):
        st.html(line)
