"""How full an SM is: with a measured launch, or with a kernel function that was only compiled."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from profiler.documents.launch import occupancy_table
from profiler.evidence.launch import Launch
from profiler.explain.occupancy_whatif import OccupancyAnalysis, measured_occupancy, static_occupancy
from profiler.reports.instances import LaunchDetail
from profiler.store.rows import ResultInfo
from profiler.ui import controls, markup
from profiler.ui.data import results
from profiler.ui.data.index import DataVersion
from profiler.ui.errors import errors_shown
from profiler.ui.sections import draw
from profiler.ui.views import answer, occupancy_limits


def show_measured(launch: Launch, detail: LaunchDetail | None) -> None:
    """Achieved against theoretical, what limits, and the curves that the report carries."""
    _show(measured_occupancy(launch.values, detail), "runs_occupancy")


def show_static(data_version: DataVersion, facts: Sequence[ResultInfo], filters: controls.Filters) -> None:
    """The theoretical occupancy of a kernel function, asked for by its name, and how to measure the rest."""
    functions = occupancy_limits.functions_by_label(facts)
    if not functions:
        return
    head, function_box = st.columns([3, 2], vertical_alignment="center", gap="medium")
    head.html(
        markup.section_head("Occupancy", "static: from registers, threads and shared memory, without a GPU")
    )
    with function_box:
        function = functions[filters.select("kernel function", list(functions), "function")]
    with errors_shown():
        values = results.launch(data_version, function.result_id).values
        _show(static_occupancy(values, function.gpu or ""), "runs_static_occupancy")
    command = f"profiler collect {function.version} --full {function.version}"
    words = f"Roofline and achieved occupancy: not measured; `{command}` on a GPU"
    st.html(markup.note(markup.backticks_as_code(words)))


def _show(occupancy: OccupancyAnalysis, key: str) -> None:
    table_box, *curve_boxes = st.columns([1.15, 1, 1, 1], gap="medium")
    table_box.html(answer.table(occupancy_table(occupancy), "occupancy"))
    # A report has a curve for each resource, or for some of them.
    for box, curve in zip(curve_boxes, occupancy.curves, strict=False):
        chart, alt = occupancy_limits.chart(curve, occupancy.max_warps)
        draw.chart(chart, key=f"{key}_{curve.name}", alt=alt, box=box)
    draw.html(markup.note(occupancy_limits.sentence(occupancy)), *occupancy_limits.notes(occupancy))
