"""How any metric moved over versions, commits or time; what cannot be compared is not joined."""

from functools import partial

import streamlit as st

from profiler.evidence.values import Evidence
from profiler.ui import addresses, controls, late_fields, markup
from profiler.ui.data import index, lineages, results, trend_choice, trend_view
from profiler.ui.data.cells import evidence_of_family, workloads_on_gpus
from profiler.ui.data.family_series import TrendsChoice
from profiler.ui.data.readable_names import Fit
from profiler.ui.data.run_axis import ALL, COMMITS, RANGES, TIME, VERSIONS, parse_zoom
from profiler.ui.data.version_choice import families_of
from profiler.ui.errors import errors_shown
from profiler.ui.sections import draw, modelled_times, roofline, trend_lines
from profiler.ui.views import trend_panels

VIEWS = ("metrics", "roofline")
SCALES = (trend_panels.ABSOLUTE, trend_panels.OF_FIRST, trend_panels.OF_BASELINE)

data_version = index.current_version()
versions = lineages.versions(data_version)
if not versions:
    draw.empty_page(
        "Trends", "No history yet. Import the reports of several versions:", "profiler import PATH"
    )

late_fields.wait()
filters = controls.Filters("trends")
boxes = st.columns([1, 1, 1.2, 1.2], vertical_alignment="bottom", gap="medium")
head = boxes[0].empty()
head.html(markup.page_head("Trends"))
with boxes[1]:
    family = filters.select("family", families_of(versions), "family")
controls.name_tab(f"Trends of {family}")
names = [version.version for version in versions if version.family == family]
cells = results.cells(data_version)
table = index.metric_table(data_version)
row = st.container(horizontal=True, vertical_alignment="center", gap="small")
with row:
    view = filters.switch("view", VIEWS, "view")
if view == "roofline":  # of measured launches, over versions: the other filters do not apply
    with boxes[2]:
        kernels = filters.text("kernels", "kernels", "all, or name, *pattern*, regex:…")
    with errors_shown():
        roofline.show_path(data_version, family, names, kernels, filters)
    late_fields.wait_for_chart()
    late_fields.draw()
    filters.write_url()
    st.stop()
with row:
    kinds = evidence_of_family(cells, family)
    usual_kind = None
    if Evidence.MEASURED not in kinds and modelled_times.are_stored(data_version, family):
        usual_kind = Evidence.MODELLED  # times say more of versions than what the compiler counted
    if asked_metrics := st.query_params.get("metrics"):
        usual_kind = trend_choice.evidence_of_metrics(asked_metrics, table, kinds, usual_kind)
    evidence = filters.kind_of_evidence(kinds, usual_kind)
pairs = workloads_on_gpus(cells, [f"{family}/{name}" for name in names], evidence)
workload, gpu = filters.workload_and_gpu(pairs, evidence, boxes[2:4])
timed = evidence is Evidence.MEASURED and results.is_timed(data_version, family)
runs = trend_view.runs_of_first_metric(data_version, family, workload, gpu, evidence, timed)
# What a compiler or a model says moves with the code alone, so it is read by version.
has_history = evidence is Evidence.MEASURED and trend_choice.has_history(runs)
only_fitting = partial(trend_choice.metrics_of_evidence, table=table, evidence=evidence)
mode, baseline = "", ""
with row:
    usual = trend_panels.OF_FIRST if has_history else trend_panels.ABSOLUTE
    scale = filters.switch("numbers", SCALES, "scale", usual)
    axes = [VERSIONS, *([COMMITS] if trend_view.has_commits(data_version, family) else []), TIME]
    over = filters.switch("over", axes, "over", TIME if has_history else VERSIONS)
    since = ALL
    if over != VERSIONS:
        # What an address leads to may be older than what the page opens with.
        has_place = any(map(filters.parameter, ("at", *trend_lines.ZOOM)))
        opened = ALL if has_place else trend_view.default_range(runs)
        since = filters.switch("range", (*RANGES, ALL), "range", opened)
    else:
        filters.check("range", (*RANGES, ALL), "range", Fit.LAST_PART)
    with late_fields.popover("versions, metrics, kernels"):
        shown = filters.multiselect("versions", names, "show", [], takes_others=False)
        kernels = filters.text("kernels", "kernels", "all, or name, *pattern*, regex:…")
        chosen = filters.multiselect(
            "metrics",
            trend_choice.metrics_to_offer(table, results.metric_names(data_version, family), evidence, timed),
            "metrics",
            trend_choice.default_metrics(evidence, timed, over_runs=over != VERSIONS),
            trend_choice.labeller(table),
            only_fitting,
        )
        if over != VERSIONS:
            mode = filters.select_if_several("mode of calls", trend_choice.timing_modes(runs), "mode")
        if scale == trend_panels.OF_BASELINE:
            default = trend_view.default_baseline(data_version, family, workload, gpu, names)
            baseline = filters.select("baseline", names, "base", default)
        else:
            filters.check("baseline", names, "base")
compared = [f"{family}/{name}" for name in names if name in shown]
beside = markup.link(addresses.compare(compared, gpu=gpu), "compare them") if len(compared) > 1 else ""
head.html(markup.page_head("Trends", beside))
zoom = parse_zoom(*map(filters.parameter, trend_lines.ZOOM)) if over == TIME else None
choice = TrendsChoice(
    family,
    [name for name in names if name in shown] or names,
    kernels,
    over,
    evidence,
    workload,
    gpu,
    mode,
    baseline,
)
if evidence is Evidence.MODELLED and over == VERSIONS:
    with errors_shown():
        modelled_times.show(data_version, family, choice.versions, workload, filters)
else:
    modelled_times.check_address(data_version, family, filters)
trend_lines.show(
    data_version, choice, only_fitting(chosen), filters, trend_lines.LineChoice(scale, since, zoom)
)
filters.write_url()
late_fields.draw()
