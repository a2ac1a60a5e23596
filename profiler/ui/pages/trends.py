"""How any metric moved over versions or time, one line per kernel; what cannot be compared is not joined."""

from functools import partial

import streamlit as st

from profiler.evidence import Evidence
from profiler.ui import controls, markup
from profiler.ui.data import index, lineages, results, trend_choice
from profiler.ui.data.cells import evidence_of_family, workloads_on_gpus
from profiler.ui.data.family_series import TrendsChoice
from profiler.ui.data.version_choice import families_newest_first
from profiler.ui.errors import errors_shown
from profiler.ui.sections import roofline, trend_lines

VIEWS = ("metrics", "roofline")
OVER = ("versions", "time")

data_version = index.current_version()
versions = lineages.versions(data_version)
if not versions:
    st.html(markup.page_head("Trends"))
    st.html(
        markup.empty_page("No history yet. Import the reports of several versions:", "profiler import PATH")
    )
    st.stop()

filters = controls.Filters("trends")
boxes = st.columns([1.2, 1, 1, 1, 1], vertical_alignment="bottom", gap="medium")
boxes[0].html(markup.page_head("Trends"))
with boxes[1]:
    family = filters.select("family", families_newest_first(versions), "family")
controls.name_tab(f"Trends of {family}")
with boxes[2]:
    kernels = filters.text("kernels", "kernels", "all, or name, *pattern*, regex:…")
with boxes[3]:
    view = filters.switch("view", VIEWS, "view")
names = [version.version for version in versions if version.family == family]
cells = results.cells(data_version)
if view == "roofline":  # of measured launches, over versions: the other filters do not apply
    with errors_shown():
        roofline.show_path(data_version, family, names, kernels, filters)
    filters.write_url()
    st.stop()
with boxes[4]:
    over = filters.switch("over", OVER, "over")
evidence, cell_boxes = filters.evidence(evidence_of_family(cells, family))
table = index.metric_table(data_version)
timed = evidence is Evidence.MEASURED and results.is_timed(data_version, family)
only_fitting = partial(trend_choice.metrics_of_evidence, table=table, evidence=evidence)
chosen = filters.multiselect(
    "metrics",
    trend_choice.metrics_to_offer(table, results.metric_names(data_version, family), evidence, timed),
    "metrics",
    trend_choice.default_metrics(evidence, timed),
    trend_choice.labeller(table),
    only_fitting,
)
pairs = workloads_on_gpus(cells, [f"{family}/{name}" for name in names], evidence)
workload, gpu = filters.workload_and_gpu(pairs, evidence, cell_boxes)
choice = TrendsChoice(family, names, kernels, over, evidence, workload, gpu)
trend_lines.show(data_version, choice, only_fitting(chosen), filters)
filters.write_url()
