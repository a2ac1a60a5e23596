"""Many versions or runs beside each other: times, counters and facts, each with its verdict against one."""

from functools import partial

import streamlit as st

from profiler.documents.version_table import LATENCY
from profiler.ui import addresses, controls, markup
from profiler.ui.data import index, lineages, trend_choice, version_tables
from profiler.ui.errors import errors_shown
from profiler.ui.sections import draw, notes, version_table_choice
from profiler.ui.views import version_table

CHARTS = ("lines", "bars")

data_version = index.current_version()
versions = lineages.versions(data_version)
if len(versions) < 2:
    draw.empty_page(
        "Compare", "Nothing to compare yet. Import the reports of several versions:", "profiler import PATH"
    )

if "v" in st.query_params and "versions" not in st.query_params:  # as people shorten it
    st.query_params["versions"] = ",".join(st.query_params.get_all("v"))
    del st.query_params["v"]
filters = controls.Filters("compare")
top = st.container()
with st.container():
    asked = filters.multiselect(
        "versions and runs",
        [addresses.version_name(version) for version in versions],
        "versions",
        version_tables.default_versions(data_version, versions, st.query_params.get("family", "")),
        version_tables.short_label,
    )
names, refusals = version_tables.known_names(data_version, asked)
for refusal in refusals:
    st.html(markup.error_box(refusal))
if len(names) < 2:
    top.html(markup.page_head("Compare"))
    st.html(markup.note("Choose two or more versions, here or on Lineage and Runs."))
    filters.write_url()
    st.stop()
places = version_tables.places(data_version, tuple(names))
with top:
    head, files_box = st.columns([3, 2], vertical_alignment="bottom", gap="medium")
row = st.container(horizontal=True, vertical_alignment="center", gap="small")
with row:
    against = filters.select(
        "baseline",
        names,
        "against",
        version_tables.default_baseline(data_version, names),
        version_tables.short_label,
    )
table_of_metrics = index.metric_table(data_version)
with row:
    choice = version_table_choice.choose(places, filters)
with row, st.popover("columns"):
    offered = [metric.concept for metric in table_of_metrics.metrics]
    metrics = filters.multiselect("metrics", offered, "metrics", (), trend_choice.labeller(table_of_metrics))
    choice = version_table_choice.choose_facts(places, choice, filters)
    kernels = filters.text("kernels", "kernels", "the longest, or name, *pattern*, regex:…")
    sort_box = st.container()
table = None
with errors_shown():
    table = version_tables.table(
        data_version, tuple(names), against, tuple(metrics), tuple(choice.places), kernels
    )
if table is None:
    head.html(markup.page_head("Compare"))
    filters.write_url()
    st.stop()
options = version_table.sort_options(table)
with sort_box:
    default = next(
        (key for key in options if key.startswith(LATENCY)), options[1] if table.time_columns else ""
    )
    sorting = filters.select("sort by", options, "sort", default, version_table.sort_label, noun="sorting")
with row:
    chart = filters.switch("chart", CHARTS, "chart")
head.html(markup.page_head("Compare", version_table.context(table)))
controls.name_tab(f"Compare {len(table.table_rows)} versions")
view = version_table.View(
    table,
    version_table.Sorting(sorting),
    st.query_params.get("row", ""),
    partial(version_table_choice.address, names, against),
)
with files_box:
    report = partial(version_tables.report, data_version, table)
    version_table_choice.show_downloads(table, report)
draw.html(
    version_table.headline(table),
    version_table.table(view),
    version_table.caption(view),
    *version_table.notes(table),
)
with st.container(key="compare_picture"):
    st.html(markup.section_head(f"The same as {chart}", version_table.chart_caption(view, chart)))
    figure, alt = version_table.chart(view, chart)
    if figure["data"]:  # none where a filter leaves nothing
        draw.chart(figure, key="compare_figure", alt=alt)
st.html(markup.section_head("Notes", "on what is compared"))
notes.show("compare_notes", {name: version_tables.short_label(name) for name in names})
filters.write_url()
