"""The Diff page's two columns for a measured pair: the verdict with its samples, and why the time differs."""

from __future__ import annotations

import streamlit as st

from profiler.compare import LatencyComparison
from profiler.ui import controls, markup
from profiler.ui.charts import style
from profiler.ui.data import advice as advice_data
from profiler.ui.data import comparisons, index
from profiler.ui.data.cells import shared_workloads_on_gpus
from profiler.ui.data.diff import OpenedDiff
from profiler.ui.views import advice, latency_verdict, launch_pairs, time_split


def show_verdict_and_causes(opened: OpenedDiff, filters: controls.Filters) -> None:
    """Left the verdict, the samples and the same two elsewhere; right why, and what next."""
    verdict_box, why_box = st.columns([2, 3], gap="medium")
    with verdict_box:
        if opened.timed:
            _show_latency(opened, opened.timed, filters)
        else:
            st.html(markup.section_head("Verdict", "ncu duration, not latency"))
            st.html(launch_pairs.verdict(opened.pair))
        if chart := launch_pairs.duration_chart(opened.pair):
            alt = launch_pairs.duration_alt(opened.pair)
            st.plotly_chart(chart, theme=None, config=style.CONFIG, key="diff_ticks", alt=alt)
        if not opened.timed:
            imported = comparisons.are_both_imported(opened.data_version, opened.comparison)
            st.html(latency_verdict.not_collected(imported=imported))
        _show_launches(opened)
        _show_elsewhere(opened)
    with why_box:
        _show_causes(opened)


def _show_latency(opened: OpenedDiff, timed: LatencyComparison, filters: controls.Filters) -> None:
    """The verdict on the calls, their samples, and the other modes; then that on ncu's duration."""
    comparison = opened.comparison
    st.html(markup.section_head("Verdict", latency_verdict.caption(timed)))
    st.html(latency_verdict.verdict(timed))
    noise = index.noise(opened.data_version)
    for line in latency_verdict.notes(timed, comparison.b, noise):
        st.html(line)
    if latency_verdict.has_samples(timed):
        spread = filters.switch("distribution", latency_verdict.SPREADS, "spread")
        chart, alt = latency_verdict.chart(timed, spread), latency_verdict.alt(timed)
        st.plotly_chart(chart, theme=None, config=style.CONFIG, key="diff_samples", alt=alt)
        st.html(latency_verdict.chart_note(timed, spread))
    if len(comparison.latency) > 1:
        st.html(latency_verdict.modes(comparison, timed, opened.view))
    if comparison.a.launches or comparison.b.launches:
        st.html(markup.section_head("Under the profiler", "ncu duration, not latency"))
        st.html(launch_pairs.small_verdict(comparison, opened.pair))


def _show_launches(opened: OpenedDiff) -> None:
    longest = opened.comparison.top(launch_pairs.PAIRS_SHOWN)
    if longest.a.launches or longest.b.launches:
        st.html(markup.section_head("All launches of both", launch_pairs.table_caption(longest)))
        st.html(launch_pairs.table(longest, opened.pair, opened.view))
    # With timed calls the big verdict is on these, and says nothing of launches.
    for line in launch_pairs.notes(longest, None if opened.timed else opened.pair):
        st.html(line)


def _show_elsewhere(opened: OpenedDiff) -> None:
    """The same two on every workload and GPU that both were measured on, where there are several."""
    shared = shared_workloads_on_gpus(opened.cells, opened.names, opened.evidence)
    if len(shared) < 2:
        return
    elsewhere = comparisons.comparisons_elsewhere(
        opened.data_version, *opened.names, shared, opened.view.kernels, opened.evidence
    )
    caption = "the latency of calls" if opened.timed else "the chosen launch, or the longest"
    st.html(markup.section_head("The same pair elsewhere", caption))
    if opened.timed:
        st.html(latency_verdict.elsewhere(elsewhere, opened.timed, opened.view))
    else:
        st.html(launch_pairs.elsewhere(elsewhere, opened.view))


def _show_causes(opened: OpenedDiff) -> None:
    comparison, pair = opened.comparison, opened.pair
    st.html(markup.section_head("Why", time_split.CAPTION))
    if pair is None:
        st.html(markup.note(launch_pairs.why_unpaired(comparison)))
        return
    table = index.metric_table(opened.data_version)
    explanation = comparisons.explain_pair(comparison, pair, table)
    st.html(time_split.answer(explanation))
    if chart := time_split.waterfall(explanation):
        alt = explanation.sentence
        st.plotly_chart(chart, theme=None, config=style.CONFIG, key="diff_why", alt=alt)
    if missing := time_split.missing_counters(explanation):
        st.html(missing)
    st.html(markup.section_head("What next", advice.CAPTION_OF_PAIR))
    statements = advice_data.statements_of_pair(comparison, pair, table)
    st.html(advice.table(statements, advice_data.chip_of_side(comparison.b)))
