"""What is worse now in every family: since when, how sure, why; acknowledgements, baselines, notes."""

import streamlit as st

from profiler.ui import controls, markup
from profiler.ui.data import current_state, decisions, index, lineages
from profiler.ui.data.version_choice import families_of
from profiler.ui.errors import errors_shown
from profiler.ui.sections import acknowledge_form, baseline_pin, confirmation, draw
from profiler.ui.views import regression_groups, regression_list

data_version = index.current_version()
versions = lineages.versions(data_version)
if not versions:
    draw.empty_page("Regressions", "No runs yet. Import reports:", "profiler import PATH")

filters = controls.Filters("regressions")
families = families_of(versions)
head_box, family_box = st.container(), st.container()
if len(families) > 1:
    head_box, family_box = st.columns([4, 1], vertical_alignment="bottom", gap="medium")
head_box.html(markup.page_head("Regressions", regression_list.CAPTION))
with family_box:
    options = [regression_list.ALL, *families] if len(families) > 1 else families
    family = filters.select_if_several("family", options, "family")
at = filters.parameter("at")
chosen_family = None if family == regression_list.ALL else family

with errors_shown():
    report = current_state.regressions(data_version)
    worse = current_state.worse_now(data_version, chosen_family)
    st.html(regression_list.tiles(worse, report.coverage))
    confirmation.show(acknowledge_form.PLACE)
    shown = worse.groups[: regression_groups.GROUPS_SHOWN]
    selected = regression_groups.choose(worse, at)
    if at and not (selected and regression_groups.is_named(selected, at)):
        known = [regression_groups.in_words(group) for group in worse.groups]
        filters.refuse("at", "regression", known, regression_groups.in_words(selected) if selected else "")
    st.html(markup.section_head("Worse now", "one row per version and cause; a name shows its cells"))
    if shown:
        # A cause is read from bundles: only those of the rows shown are looked for.
        causes = [current_state.cause(data_version, group.lead) for group in shown]
        st.html(regression_groups.table(shown, causes, selected, chosen_family))
        if len(worse.groups) > len(shown):
            more = len(worse.groups) - len(shown)
            st.html(markup.note(f"{more} more: `profiler regressions --json` has all"))
    else:
        st.html(regression_list.nothing_worse(report.coverage))
    if selected:
        row = regression_groups.row_of(selected, at)
        rows_box, form_box = st.columns([5, 3], gap="medium")
        with rows_box:
            st.html(
                markup.section_head(regression_groups.title(selected), regression_groups.caption(selected))
            )
            cells = selected.regressions[: regression_list.ROWS_SHOWN]
            if len(cells) > 1:
                st.html(regression_list.table(cells, row, chosen_family))
            st.html(regression_list.details(row, current_state.cause(data_version, row)))
        with form_box:
            if selected.lead.is_open or selected.shared:
                acknowledge_form.show(data_version, selected, row)
                if row.command and not decisions.may_decide():
                    st.html(markup.note("Acknowledge it, with a reason and until a day or run:"))
                    st.code(row.command, language=None)
    if worse.acknowledged:
        count = len(worse.acknowledged)
        st.html(markup.section_head("Acknowledged", f"{count}, listed and not counted"))
        acknowledge_form.show_acknowledged(worse.acknowledged)
    for words, groups in (
        ("Slower than its parent (not a regression)", worse.slower_than_parent),
        ("Known states, drifts, and changes by the environment", worse.not_open),
    ):
        if groups:
            with st.expander(f"{words}: {len(groups)}"):
                st.html(regression_groups.lines(groups, chosen_family))
    pinned_family = chosen_family or families[0]
    st.html(markup.section_head(f"Baseline of {pinned_family}", "the baselines of versions"))
    with errors_shown():
        newest_first = [info.version for info in versions if info.family == pinned_family][::-1]
        baseline_pin.show(pinned_family, newest_first)
    draw.html(*regression_list.notes(report.coverage))
filters.write_url()
