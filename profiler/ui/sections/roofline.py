"""A launch under its roofs, and a kernel's path through the roofline over the versions."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from profiler.evidence import Evidence, Launch, chip_of
from profiler.explain import roofline_of
from profiler.store import RunInfo
from profiler.ui import controls, markup
from profiler.ui.charts import style
from profiler.ui.data import index, lineages, results, series
from profiler.ui.data.cells import workloads_on_gpus
from profiler.ui.data.index import DataVersion
from profiler.ui.data.trend_choice import paths_by_kernel
from profiler.ui.views import roofline_points, roofline_steps


def show_launch(data_version: DataVersion, run: RunInfo, launch: Launch) -> None:
    """Tables, then the chart, then what is missing; no chart where there is no point."""
    chip = chip_of(launch.compute_capability or run.compute_capability)
    roofline = roofline_of(launch, index.metric_table(data_version), chip, run.ncu_version)
    roofs_box, points_box = st.columns([1, 1], gap="medium")
    roofs_box.html(markup.section_head("Roofs", "reached rates and this GPU's peaks at the launch's clocks"))
    roofs_box.html(roofline_points.roofs(roofline))
    points_box.html(markup.section_head("Points", "operations for each byte that crosses a level"))
    if roofline.points:
        points_box.html(roofline_points.points(roofline))
        chart, alt = roofline_points.chart(roofline)
        st.plotly_chart(chart, theme=None, config=style.CONFIG, key="runs_roofline", alt=alt)
    else:
        points_box.html(markup.note(roofline_points.NO_POINT))
    for line in roofline_points.notes(roofline, chip):
        st.html(line)


def show_path(
    data_version: DataVersion,
    family: str,
    versions: Sequence[str],
    kernels: str,
    filters: controls.Filters,
) -> None:
    """One kernel's way through the roofline over the versions; UnknownName where no kernel fits."""
    names = [f"{family}/{version}" for version in versions]
    measured = workloads_on_gpus(results.cells(data_version), names, Evidence.MEASURED)
    if not measured:
        best = lineages.best_version(data_version, family) or versions[-1]
        st.html(markup.empty_page(*roofline_steps.not_measured(best)))
        return
    level_box, kernel_box, *boxes = st.columns([1.2, 2, 1, 1], vertical_alignment="bottom", gap="medium")
    workload, gpu = filters.workload_and_gpu(measured, Evidence.MEASURED, boxes)
    paths = paths_by_kernel(series.roofline_paths(data_version, family, workload, gpu), kernels)
    with level_box:
        level = filters.switch("seen from", roofline_steps.SEEN_FROM, "level")
    with kernel_box:
        path = paths[filters.select("kernel", list(paths), "kernel")]
    if drawn := roofline_steps.chart(path, level):
        chart, alt = drawn
        st.plotly_chart(chart, theme=None, config=style.CONFIG, key="trends_roofline", alt=alt)
    st.html(markup.section_head("Path", f"each version's leading precision, seen from {level}"))
    st.html(roofline_steps.table(path, level))
    for line in roofline_steps.notes(path, level):
        st.html(line)
