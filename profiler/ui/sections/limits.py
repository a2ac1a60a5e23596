"""The parts of a page about limits: a launch under its roofs, an SM's occupancy with its curves."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from profiler.evidence import Evidence, Launch, chip_of
from profiler.explain import occupancy_whatif, roofline_of
from profiler.reports import LaunchDetail
from profiler.store import ResultInfo, RunInfo
from profiler.ui import addresses, controls, markup
from profiler.ui.charts import style
from profiler.ui.data import index, lineages, series
from profiler.ui.views import launch_pairs, occupancy_limits, roofline_points, roofline_steps


def show_roofline(now: index.Stamp, run: RunInfo, launch: Launch) -> None:
    """Tables, then the chart, then what is missing; no chart where there is no point."""
    chip = chip_of(run.compute_capability) if run.compute_capability else None
    found = roofline_of(launch, index.table(now), chip, run.ncu_version)
    roofs_box, points_box = st.columns([1, 1], gap="medium")
    roofs_box.html(
        markup.section_head("Roofs", "what was reached of what this GPU can do at the launch's clocks")
    )
    roofs_box.html(roofline_points.roofs(found))
    points_box.html(markup.section_head("Points", "operations for each byte that crosses a level"))
    if found.points:
        points_box.html(roofline_points.points(found))
        figure, alt = roofline_points.chart(found)
        st.plotly_chart(figure, theme=None, config=style.CONFIG, key="runs_roofline", alt=alt)
    else:
        points_box.html(markup.note(roofline_points.NO_POINT))
    for line in roofline_points.notes(found, chip):
        st.html(line)


def show_occupancy(launch: Launch, detail: LaunchDetail | None) -> None:
    """Achieved against theoretical, what limits, and the curves that the report carries."""
    _occupancy(occupancy_whatif.measured_occupancy(launch.values, detail), "runs_occupancy")


def show_static_occupancy(now: index.Stamp, facts: Sequence[ResultInfo], pick: controls.View) -> None:
    """The theoretical occupancy of a kernel function that ran on no GPU, and how to measure the rest."""
    named = occupancy_limits.functions(facts)
    if not named:
        return
    head, choice = st.columns([3, 2], vertical_alignment="center", gap="medium")
    head.html(
        markup.section_head("Occupancy", "static: from registers, threads and shared memory, with no GPU")
    )
    with choice:
        name = pick.choose("kernel function", list(named), "function")
    chosen = named[name]
    with index.errors_shown():
        values = index.launch(now, chosen.result_id).values
        _occupancy(occupancy_whatif.static_occupancy(values, chosen.gpu or ""), "runs_static_occupancy")
    command = f"profiler collect {chosen.version} --full {chosen.version}"
    st.html(
        markup.note(
            markup.backticks_as_code(f"Roofline and achieved occupancy: not measured; `{command}` on a GPU")
        )
    )


def show_roofline_path(
    now: index.Stamp, family: str, names: Sequence[str], kernels: str, pick: controls.View
) -> None:
    """One kernel's way through the roofline over the versions; UnknownName where no kernel fits."""
    measured = addresses.cells(index.cells(now), [f"{family}/{name}" for name in names], Evidence.MEASURED)
    if not measured:
        stands = lineages.lineage(now, family)
        good = [one.version.id for one in stands.correct_deepest_first[:1]] if stands else []
        st.html(markup.empty_page(*roofline_steps.not_measured(good or names)))
        return
    level_box, kernel_box, *boxes = st.columns([1.2, 2, 1, 1], vertical_alignment="bottom", gap="medium")
    workload, gpu = pick.cell(measured, launch_pairs.PLACES[Evidence.MEASURED], boxes)
    paths = roofline_steps.named(series.roofline_paths(now, family, workload, gpu), kernels)
    with level_box:
        level = pick.switch("seen from", roofline_steps.SEEN_FROM, "level")
    with kernel_box:
        found = paths[pick.choose("kernel", list(paths), "kernel")]
    if drawn := roofline_steps.chart(found, level):
        figure, alt = drawn
        st.plotly_chart(figure, theme=None, config=style.CONFIG, key="trends_roofline", alt=alt)
    st.html(markup.section_head("Path", f"each version's leading precision, seen from {level}"))
    st.html(roofline_steps.table(found, level))
    for line in roofline_steps.notes(found, level):
        st.html(line)


def _occupancy(found: occupancy_whatif.OccupancyAnalysis, key: str) -> None:
    table_box, *curve_boxes = st.columns([1.15, 1, 1, 1], gap="medium")
    table_box.html(occupancy_limits.table(found))
    for box, one in zip(curve_boxes, found.curves, strict=False):
        figure, alt = occupancy_limits.curve(one, found.max_warps)
        box.plotly_chart(figure, theme=None, config=style.CONFIG, key=f"{key}_{one.name}", alt=alt)
    st.html(markup.note(occupancy_limits.sentence(found)))
    for line in occupancy_limits.notes(found):
        st.html(line)
