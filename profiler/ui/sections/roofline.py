"""A launch under its roofs, and a kernel's path through the roofline over the versions."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from profiler.documents.roofline import missing_blocks, point_table, roof_table, why_no_point
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch
from profiler.evidence.values import Evidence
from profiler.explain.roofline import UNUSED, roofline_of
from profiler.store.rows import RunInfo
from profiler.ui import controls, markup
from profiler.ui.data import index, lineages, results, series
from profiler.ui.data.cells import workloads_on_gpus
from profiler.ui.data.index import DataVersion
from profiler.ui.data.trend_choice import paths_by_kernel
from profiler.ui.sections import draw
from profiler.ui.views import answer, roofline_points, roofline_steps

NO_ROOF = "No roof: neither a peak nor a rate is in the report."


def show_launch(data_version: DataVersion, run: RunInfo, launch: Launch) -> None:
    """Tables, then the chart, then what is missing; no chart where there is no point."""
    chip = chip_of(launch.compute_capability or run.compute_capability)
    roofline = roofline_of(launch, index.metric_table(data_version), chip, run.ncu_version)
    roofs_box, points_box = st.columns([1, 1], gap="medium")
    roofs_box.html(markup.section_head("Roofs", "reached rates and this GPU's peaks at the launch's clocks"))
    roofs = roof_table(roofline)
    roofs_box.html(answer.table(roofs, "roofs") if roofs.rows else markup.note(NO_ROOF))
    if unused := [roof.name for roof in roofline.precisions if roof.state == UNUSED]:
        roofs_box.html(markup.note(f"not used by this launch: {', '.join(unused)}"))
    points_box.html(markup.section_head("Points", "operations for each byte that crosses a level"))
    if roofline.points:
        points_box.html(answer.table(point_table(roofline), "points under the roofs"))
        chart, alt = roofline_points.chart(roofline)
        draw.chart(chart, key="runs_roofline", alt=alt)
    else:
        points_box.html(markup.note(f"No point to draw: {why_no_point(roofline)}."))
    st.html(answer.html(missing_blocks(roofline, chip)))


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
        draw.chart(chart, key="trends_roofline", alt=alt)
    draw.section(
        "Path",
        f"each version's leading precision, seen from {level}",
        roofline_steps.table(path, level),
        *roofline_steps.notes(path, level),
    )
