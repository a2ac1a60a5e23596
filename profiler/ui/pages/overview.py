"""How the lineage stands: what is best, worse, wrong and not measured; then every other family in a line."""

import streamlit as st

from profiler.history.family_order import example_families
from profiler.ui import controls, markup
from profiler.ui.data import current_state, index, lineages, results
from profiler.ui.errors import errors_shown
from profiler.ui.sections import draw, example_runs, lineage_state
from profiler.ui.views import family_lines, lineage_summary, newest_versions, worse_now

data_version = index.current_version()
filters = controls.Filters("start")
with errors_shown():
    runs = results.runs(data_version)
    if not runs:
        draw.empty_page(
            "Overview", "No run yet. Import reports on the page Runs, or:", "profiler import PATH"
        )
    by_family = lineages.lineages_by_family(data_version)
    of_examples = example_families(runs)
    others = [name for name in lineages.families(data_version) if name not in of_examples]
    if by_family:
        family = next(iter(by_family))
        title_box = st.container()
        if len(by_family) > 1:
            title_box, family_box = st.columns([5, 1], vertical_alignment="bottom", gap="medium")
            with family_box:
                family = filters.select("family", list(by_family), "family")
        lineage = by_family[family]
        others.remove(family)
        title_box.html(markup.page_head(family, lineage_summary.context(lineage, runs)))
        lineage_state.show(data_version, lineage)
    overview = current_state.overview(data_version, tuple(others))
    if not by_family:
        st.html(markup.page_head("Overview", newest_versions.context(overview, runs)))
        if not others:
            st.html(markup.empty_page("No run of your own yet. Import reports:", "profiler import PATH"))
        if overview.cells:
            st.html(markup.section_head("Since the version before", newest_versions.tiles_caption()))
            worse = current_state.worse_now(data_version)
            st.html(newest_versions.tiles(overview, worse))
            if worse.count:
                draw.section("Worse now", worse_now.caption(worse), worse_now.table(worse))
    families = family_lines.table(overview, others, by_family)
    if families is not None:
        title = "Other families" if by_family else "Families"
        draw.section(title, family_lines.CAPTION, families)
    if not by_family and others:
        draw.section(
            "Newest versions",
            newest_versions.CAPTION,
            newest_versions.table(overview, index.metric_table(data_version)),
        )
    draw.html(*newest_versions.notes(overview))
    example_runs.show(data_version)
filters.write_url()
