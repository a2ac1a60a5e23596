"""What is worse now in every family: since when, how sure, why, and whether somebody let it pass."""

import streamlit as st

from profiler.ui import addresses, controls, markup
from profiler.ui.data import index, lineages, series
from profiler.ui.views import regression_list

now = index.stamp()
versions = lineages.versions(now)
if not versions:
    st.html(markup.page_head("Regressions"))
    st.html(markup.empty_page("No run yet that could get worse. Import reports:", "profiler import PATH"))
    st.stop()

pick = controls.View("regressions")
head_box, family_box = st.columns([4, 1], vertical_alignment="bottom", gap="medium")
head_box.html(markup.page_head("Regressions", regression_list.CAPTION))
with family_box:
    family = pick.any_of("family", [regression_list.ALL, *addresses.families(versions)], "family")
pick.write()

with index.errors_shown():
    found = series.regressions(now)
    every = regression_list.of(found, family)
    shown = every[: regression_list.ROWS_SHOWN]
    causes = [series.cause(now, one) for one in shown]
    st.html(regression_list.tiles(every, causes, found.coverage))
    if shown:
        one = regression_list.chosen(shown, st.query_params.get("at"))
        st.html(regression_list.table(shown, causes, one, family))
        if len(every) > len(shown):
            st.html(markup.note(f"{len(every) - len(shown)} more: `profiler regressions --json` has all"))
        if one:
            st.html(markup.section_head(regression_list.title(one), "the selected row"))
            st.html(regression_list.details(one, causes[shown.index(one)]))
            if one.command and not one.acknowledged:
                st.html(markup.note("Let it pass, for a reason and until some day or run:"))
                st.code(one.command, language=None)
    else:
        st.html(regression_list.nothing(found.coverage))
    for line in regression_list.notes(found.coverage):
        st.html(line)
