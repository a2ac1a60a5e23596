"""What stands under the verdict of the Diff page: the drill-down, every metric, rules, sources."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from profiler.compare.pair_comparison import PairComparison
from profiler.evidence.values import Evidence
from profiler.sass import hotspots
from profiler.sass.hotspots import HotSpotChange
from profiler.sass.listing import Listing
from profiler.sass.stored_code import CodeNotStored
from profiler.ui import addresses, controls, markup
from profiler.ui.addresses import LaunchKey
from profiler.ui.data import machine_code
from profiler.ui.data.diff import OpenedDiff
from profiler.ui.data.named_code import function_label
from profiler.ui.errors import errors_shown
from profiler.ui.sections import draw
from profiler.ui.views import compiled_code, drilldown, metric_changes, rule_results, version_sources
from profiler.ui.views.drilldown import Drill


def choose_drill(opened: OpenedDiff, filters: controls.Filters) -> Drill:
    """Which view stands behind the causes of a measured pair, none at first; of waiting, for which reason."""
    if opened.pair is None:
        return drilldown.CLOSED, ""
    keys = machine_code.launch_keys_of_pair(opened.data_version, opened.comparison, opened.pair)
    head, views_box, reason_box = st.columns([2.4, 4.6, 2], vertical_alignment="center", gap="medium")
    head.html(markup.section_head("Drill-down", drilldown.code_link(keys)))
    with views_box:
        view = filters.switch("drill-down", drilldown.VIEWS, "drill")
    reasons = drilldown.reasons(opened.explanation) if view == drilldown.WAITING else {}
    if not reasons:
        return view, ""
    with reason_box:
        names = ["", *reasons]
        return view, filters.select(
            "reason", names, "reason", "", lambda name: reasons.get(name, "all reasons")
        )


def show_drilldown(opened: OpenedDiff, drill: Drill) -> None:
    """The view that was chosen."""
    view, reason = drill
    if opened.pair is None:
        return
    listings: list[Listing] = []
    changes: Sequence[HotSpotChange] = ()
    if view in drilldown.VIEWS_OF_CODE:
        with errors_shown():
            keys = machine_code.launch_keys_of_pair(opened.data_version, opened.comparison, opened.pair)
            listings = [machine_code.code(opened.data_version, key).listing for key in keys if key]
            if view == drilldown.WAITING:
                changes = hotspots.moved_first(_hot_spot_pairs(opened, opened.pair, keys))
    draw.html(*drilldown.parts(view, opened.pair, listings, changes, reason, opened.explanation))


def show_hottest(opened: OpenedDiff) -> None:
    """The three lines where most warps wait. Its first view reads the instructions of both reports."""
    if opened.pair is None:
        return
    keys = machine_code.launch_keys_of_pair(opened.data_version, opened.comparison, opened.pair)
    st.html(markup.section_head("Hottest lines", drilldown.HOTTEST_CAPTION))
    known = [key for key in keys if key]
    if len(known) < 2:
        st.html(markup.note(drilldown.code_link(keys)))
        return
    with errors_shown():
        st.html(drilldown.hottest(_hot_spot_pairs(opened, opened.pair, keys), known))


def _hot_spot_pairs(
    opened: OpenedDiff, pair: PairComparison, keys: Sequence[LaunchKey | None]
) -> Sequence[HotSpotChange]:
    """Every place of the two launches; none where a run keeps no report of one."""
    a, b = keys
    if a is None or b is None:
        return ()
    scale = hotspots.sample_scale(pair.a.values, pair.b.values) or 1.0
    return machine_code.hot_spot_pairs(opened.data_version, a, b, scale)


def show_metrics(opened: OpenedDiff, filters: controls.Filters) -> None:
    """The metrics of the chosen pair; with or beside them what there is of this evidence alone."""
    pair = opened.pair
    if pair is None:
        return
    if opened.evidence is Evidence.MEASURED:
        _show_metric_table(opened, pair, filters)
        opcodes_box, environment_box = st.columns(2, gap="medium")
        with opcodes_box:
            _show_opcodes(opened, pair)
        with environment_box:
            draw.section("Environment", "", metric_changes.environment(opened.comparison, pair))
        draw.section("NVIDIA's rules", rule_results.caption(pair), rule_results.changed(pair))
        return
    metrics_box, side_box = st.columns([7, 5], gap="medium") if _has_side(opened) else (st.container(),) * 2
    with metrics_box:
        _show_metric_table(opened, pair, filters)
    with side_box:
        if opened.evidence is Evidence.STATIC:
            _show_opcodes(opened, pair)
            if opened.sources:
                _show_compiled_code(opened)
        elif opened.sources:
            caption = f"modelled, {opened.view.workload}; wavefronts over the ideal"
            st.html(markup.section_head("Conflicts by source line", caption))
            workloads = (opened.comparison.a.workload or "", opened.comparison.b.workload or "")
            st.html(version_sources.conflicts(*opened.sources, workloads))


def _has_side(opened: OpenedDiff) -> bool:
    """Whether something stands beside the metrics of static or modelled facts."""
    return opened.evidence is Evidence.STATIC or opened.sources is not None


def _show_metric_table(opened: OpenedDiff, pair: PairComparison, filters: controls.Filters) -> None:
    """The table with its choices: which metrics, in which order, holding which words."""
    is_measured = opened.evidence is Evidence.MEASURED
    head, shown_box, order_box, words_box = st.columns(
        [3, 1.3, 1.8, 2] if is_measured else [1.5, 1.6, 2.4, 1.7], vertical_alignment="center", gap="small"
    )
    head.html(markup.section_head("Metrics", metric_changes.caption(opened.comparison)))
    with shown_box:
        shown = filters.switch("which metrics", metric_changes.SHOWN, "metrics")
    with order_box:
        order = filters.switch("order of metrics", metric_changes.ORDERS, "sort")
    with words_box:
        words = filters.text("find a metric", "metric", "find: stall, dram__ …", labelled=False)
    st.html(metric_changes.table(pair, shown, order, words, with_names=is_measured))


def _show_opcodes(opened: OpenedDiff, pair: PairComparison) -> None:
    caption = metric_changes.OPCODE_CAPTIONS[opened.evidence]
    st.html(markup.long_section("Opcode mix", caption, [metric_changes.opcodes(pair.opcodes)]))


def show_sources(opened: OpenedDiff) -> None:
    """Both sources side by side, where both are versions of a catalogue."""
    if not opened.sources:
        return
    parts = [version_sources.flags(*opened.sources), version_sources.side_by_side(*opened.sources)]
    caption = version_sources.caption(*opened.sources)
    st.html(markup.long_section("Source", caption, filter(None, parts)))


def _show_compiled_code(opened: OpenedDiff) -> None:
    """How the machine code of the two functions compares, and the way to it or to what builds it."""
    gpu_a, gpu_b = opened.comparison.a.gpu, opened.comparison.b.gpu
    st.html(markup.section_head("Machine code", f"static, {gpu_b or ''}: {compiled_code.NOTHING_RAN}"))
    if gpu_a != gpu_b:
        st.html(markup.note(f"Compiled for {gpu_a} and {gpu_b}: not shown side by side."))
        return
    with errors_shown():
        try:
            a, b = machine_code.compiled_pair(opened.data_version, opened.comparison, opened.names)
        except CodeNotStored:
            versions = [addresses.parse_version(name).without_run for name in opened.names]
            st.html(compiled_code.how_to_build(versions, gpu_b))
            return
        labels = [function_label(key.function) for key in (a, b)]
        kernel = " → ".join(dict.fromkeys(labels)) if all(labels) else ""
        address = addresses.CompiledCode(a.version, a.arch, b.version, kernel, "sass")
        aligned = machine_code.aligned(opened.data_version, a, b)
        st.html(compiled_code.summary(kernel, aligned, address))
