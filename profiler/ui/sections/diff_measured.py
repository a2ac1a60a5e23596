"""The Diff page's two columns for a measured pair: the verdict with its samples, and why the time differs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from profiler.compare.latency import LatencyComparison
from profiler.explain.explanation import Explanation
from profiler.ui import controls, markup
from profiler.ui.data import advice as advice_data
from profiler.ui.data import comparisons, index, launches
from profiler.ui.data.cells import shared_workloads_on_gpus
from profiler.ui.data.diff import OpenedDiff
from profiler.ui.markup import Column
from profiler.ui.sections import draw
from profiler.ui.views import advice, drilldown, latency_verdict, launch_pairs, pair_elsewhere, time_split
from profiler.ui.views.drilldown import Drill


def show_verdict_and_causes(opened: OpenedDiff, filters: controls.Filters) -> DeltaGenerator | None:
    """Left the verdict and the samples; right why. Where no cause is drawn the right one has the rest.

    Returns the place of the waterfall, which is drawn once it is known what is open behind it.
    """
    waterfall_box = None
    verdict_box, right_box = st.columns([2, 3], gap="medium")
    with verdict_box:
        if opened.timed:
            _show_latency(opened, opened.timed, filters)
        else:
            draw.section(
                "Verdict", "ncu duration, not latency", launch_pairs.verdict(opened.comparison, opened.pair)
            )
        if opened.pair is not None:
            sections = launches.view_of_pair(opened.data_version, opened.comparison, opened.pair)
            st.html(launch_pairs.sections_link(sections))
        if not opened.timed:
            imported = comparisons.are_both_imported(opened.data_version, opened.comparison)
            st.html(latency_verdict.not_collected(imported=imported))
    with right_box:
        draw.html(*launch_pairs.earlier_run_notes(opened.comparison))
        if opened.explanation is not None:
            waterfall_box = _show_causes(opened.explanation)
    is_drawn = opened.explanation is not None and opened.explanation.split is not None
    with verdict_box if is_drawn else right_box:
        if opened.timed and len(opened.comparison.latency) > 1:
            draw.section(
                "Modes",
                "how calls were timed",
                latency_verdict.modes(opened.comparison, opened.timed, opened.view),
            )
        _show_launches(opened)
        _show_elsewhere(opened)
        if opened.pair is None:
            draw.section("Why", time_split.CAPTION, markup.note(launch_pairs.why_unpaired(opened.comparison)))
    return waterfall_box


def show_advice(opened: OpenedDiff) -> None:
    """What to try next; nothing without a pair of launches."""
    if opened.pair is None:
        return
    st.html(markup.section_head("What next", advice.CAPTION_OF_PAIR))
    table = index.metric_table(opened.data_version)
    b, launch = opened.comparison.b, opened.pair.b
    statements = advice_data.statements_of_pair(
        opened.comparison,
        opened.pair,
        table,
        open_detail=lambda: launches.detail_of_side(opened.data_version, b, launch),
    )
    st.html(advice.table(statements, advice_data.chip_of_side(opened.comparison.b)))


def _show_latency(opened: OpenedDiff, timed: LatencyComparison, filters: controls.Filters) -> None:
    """The verdict on the calls, their samples, and the other modes; then that on ncu's duration."""
    comparison = opened.comparison
    draw.section("Verdict", latency_verdict.caption(timed), latency_verdict.verdict(timed))
    noise = index.noise(opened.data_version)
    draw.html(*latency_verdict.notes(timed, comparison.b, noise))
    if latency_verdict.has_samples(timed):
        spread = filters.switch("distribution", latency_verdict.SPREADS, "spread")
        chart, alt = latency_verdict.chart(timed, spread), latency_verdict.alt(timed)
        draw.chart(chart, key="diff_samples", alt=alt)
        st.html(latency_verdict.chart_note(timed, spread))
    if comparison.a.launches or comparison.b.launches:
        draw.section(
            "Under the profiler",
            "ncu duration, not latency",
            launch_pairs.small_verdict(comparison, opened.pair),
        )


def _show_launches(opened: OpenedDiff) -> None:
    longest = opened.comparison.top(launch_pairs.PAIRS_SHOWN)
    if longest.a.launches or longest.b.launches:
        draw.section(
            "All launches of both",
            launch_pairs.table_caption(longest),
            *launch_pairs.folded_table(longest, opened.pair, opened.view),
        )
    # With timed calls the big verdict is on these, and says nothing of launches.
    draw.html(*launch_pairs.notes(longest, None if opened.timed else opened.pair))


def _show_elsewhere(opened: OpenedDiff) -> None:
    """The same two on every workload and GPU that both were measured on, where there are several."""
    shared = shared_workloads_on_gpus(opened.cells, opened.names, opened.evidence)
    if len(shared) < 2:
        return
    elsewhere = comparisons.comparisons_elsewhere(
        opened.data_version, *opened.names, shared, opened.view.kernels, opened.evidence
    )
    caption = "the latency of calls" if opened.timed else "the chosen launch, or the longest"
    columns: Sequence[Column] = launch_pairs.DURATION_COLUMNS
    row_of: pair_elsewhere.RowOf = partial(launch_pairs.row_of_launch, launch=opened.view.launch)
    if opened.timed:
        columns = latency_verdict.COLUMNS
        row_of = partial(latency_verdict.row_in_mode, mode=opened.timed.mode)
    parts = pair_elsewhere.elsewhere(elsewhere, opened.view, columns, row_of)
    draw.section("The same pair elsewhere", caption, *parts)


def _show_causes(explanation: Explanation) -> DeltaGenerator:
    """The answer in words; returns the place of the waterfall."""
    draw.section("Why", time_split.CAPTION, time_split.answer(explanation))
    chart_box = st.container()
    if missing := time_split.missing_counters(explanation):
        st.html(missing)
    return chart_box


def show_waterfall(
    opened: OpenedDiff, box: DeltaGenerator | None, drill: Drill, filters: controls.Filters
) -> None:
    """The causes as bars, each of which leads to what is behind it; the name of the open one closes it."""
    if opened.explanation is None or box is None:
        return

    def address(behind: Drill) -> str:
        view, reason = (drilldown.CLOSED, "") if behind == drill else behind
        launch, mode = opened.view.launch or "", opened.view.mode or ""
        return filters.address(launch=launch, mode=mode, drill=view, reason=reason)

    draw.html(time_split.waterfall(opened.explanation, drill, address), box=box)
