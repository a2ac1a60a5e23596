"""Two versions or runs side by side: may they be compared, what is the verdict, what moved with it."""

import streamlit as st

from profiler.evidence.values import Evidence
from profiler.ui import addresses, controls
from profiler.ui.data import comparisons, index, lineages, results
from profiler.ui.data.cells import evidence_of_all, workloads_on_gpus
from profiler.ui.data.diff import open_diff
from profiler.ui.data.version_choice import versions_to_offer
from profiler.ui.errors import errors_shown
from profiler.ui.sections import diff_details, diff_facts, diff_measured, draw, side_decisions
from profiler.ui.views import comparison_head

TOO_FEW = (
    "Nothing to compare yet. Import two reports:",
    "Only one version so far: there is nothing to compare it with. Import another:",
)

data_version = index.current_version()
versions = lineages.versions(data_version)
if len(versions) < 2:
    draw.empty_page("Diff", TOO_FEW[len(versions)], "profiler import PATH")

filters = controls.Filters("diff")
title_box, a_box, b_box, kernels_box = st.columns([2.2, 1, 1, 1], vertical_alignment="bottom", gap="medium")
default_a, default_b = comparisons.default_pair(data_version, st.query_params.get("family", ""))
with a_box:
    offered = versions_to_offer(versions, st.query_params.get("a"))
    a = filters.select("A", offered, "a", default_a, addresses.version_label)
with b_box:
    offered = versions_to_offer(versions, st.query_params.get("b"))
    b = filters.select("B", offered, "b", default_b, addresses.version_label)
with kernels_box:
    kernels = filters.text("kernels", "kernels", "all, or name, *pattern*, regex:…")
cells = results.cells_with_runs_of(data_version, (a, b))
kinds = evidence_of_all(cells, (a, b))
evidence, boxes = filters.evidence(kinds)
workload, gpu = filters.workload_and_gpu(workloads_on_gpus(cells, (a, b), evidence), evidence, boxes)
view = addresses.Diff(
    a,
    b,
    workload,
    gpu,
    kernels,
    launch=st.query_params.get("launch"),
    evidence=evidence.value if len(kinds) > 1 else None,  # named only where there is a choice
    drill=st.query_params.get("drill"),
    mode=st.query_params.get("mode"),
)

opened = None
with errors_shown():
    opened = open_diff(data_version, view, cells, evidence)
controls.name_tab(comparison_head.tab_title(view))
comparison = opened.comparison if opened else None
kernel = opened.pair.kernel if opened and opened.pair else ""
title_box.html(comparison_head.page_head(view, versions, comparison, kernel))
if opened is None:
    filters.write_url()
    st.stop()

draw.html(*comparison_head.wrong_sides(opened.comparison), comparison_head.comparability(opened.comparison))
side_decisions.show(opened.comparison)
if evidence is Evidence.MEASURED:
    waterfall_box = diff_measured.show_verdict_and_causes(opened, filters)
    drill = diff_details.choose_drill(opened, filters)
    diff_measured.show_waterfall(opened, waterfall_box, drill, filters)
    filters.write_url()
    diff_details.show_drilldown(opened, drill)
    advice_box, hottest_box = st.columns(2, gap="medium")
    with advice_box:
        diff_measured.show_advice(opened)
else:
    diff_facts.show_verdict_and_entries(opened)
diff_details.show_metrics(opened, filters)
diff_details.show_sources(opened)
filters.write_url()
if evidence is Evidence.MEASURED:
    with hottest_box:  # last: the first view of a pair reads its instructions, and nothing waits for that
        diff_details.show_hottest(opened)
