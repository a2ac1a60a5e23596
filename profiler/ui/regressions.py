"""What is worse now in every family: since when, how sure, why, and whether somebody let it pass."""

import streamlit as st

from profiler.ui import addresses, controls, course_data, data, lineage_data, markup, regressions_view

now = data.stamp()
versions = lineage_data.versions(now)
if not versions:
    st.html(markup.head("Regressions"))
    st.html(markup.empty("No run yet that could get worse. Import reports:", "profiler import PATH"))
    st.stop()

pick = controls.View("regressions")
head_box, family_box = st.columns([4, 1], vertical_alignment="bottom", gap="medium")
head_box.html(markup.head("Regressions", regressions_view.CAPTION))
with family_box:
    family = pick.any_of("family", [regressions_view.ALL, *addresses.families(versions)], "family")
pick.write()

with data.errors_shown():
    found = course_data.regressions(now)
    every = regressions_view.of(found, family)
    shown = every[: regressions_view.ROWS_SHOWN]
    causes = [course_data.cause(now, one) for one in shown]
    st.html(regressions_view.tiles(every, causes, found.coverage))
    if shown:
        one = regressions_view.chosen(shown, st.query_params.get("at"))
        st.html(regressions_view.table(shown, causes, one, family))
        if len(every) > len(shown):
            st.html(markup.note(f"{len(every) - len(shown)} more: `profiler regressions --json` has all"))
        if one:
            st.html(markup.section(regressions_view.title(one), "the selected row"))
            st.html(regressions_view.details(one, causes[shown.index(one)]))
            if one.command and not one.acknowledged:
                st.html(markup.note("Let it pass, for a reason and until some day or run:"))
                st.code(one.command, language=None)
    else:
        st.html(regressions_view.nothing(found.coverage))
    for line in regressions_view.notes(found.coverage):
        st.html(line)
