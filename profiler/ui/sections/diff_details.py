"""What stands under the verdict of the Diff page: the drill-down, every metric, rules, sources."""

from __future__ import annotations

import streamlit as st

from profiler.evidence import Evidence
from profiler.sass import CodeNotStored, Listing
from profiler.ui import addresses, controls, markup
from profiler.ui.data import machine_code
from profiler.ui.data.diff import OpenedDiff
from profiler.ui.data.named_code import function_label
from profiler.ui.errors import errors_shown
from profiler.ui.views import compiled_code, drilldown, metric_changes, rule_results, version_sources


def show_drilldown(opened: OpenedDiff, filters: controls.Filters) -> None:
    """What stands behind the causes of a measured pair: nothing at first, then the view chosen."""
    if opened.pair is None:
        return
    keys = machine_code.launch_keys_of_pair(opened.data_version, opened.comparison, opened.pair)
    head, views_box = st.columns([3, 4], vertical_alignment="center", gap="medium")
    head.html(markup.section_head("Drill-down", drilldown.code_link(keys)))
    with views_box:
        view = filters.switch("drill-down", drilldown.VIEWS, "drill")
    listings: list[Listing] = []
    if view in drilldown.VIEWS_OF_CODE:
        with errors_shown():
            listings = [machine_code.code(opened.data_version, key).listing for key in keys if key]
    for part in drilldown.parts(view, opened.pair, listings):
        st.html(part)
    filters.write_url()


def show_metrics(opened: OpenedDiff) -> None:
    """Every metric of the chosen pair, and beside them what there is of this evidence alone."""
    pair, comparison = opened.pair, opened.comparison
    if pair is None:
        return
    metrics_box, side_box = st.columns([7, 5], gap="medium")
    with metrics_box:
        st.html(markup.section_head("Metrics", metric_changes.caption(comparison)))
        st.html(metric_changes.table(pair))
    with side_box:
        if opened.evidence is not Evidence.MODELLED:
            st.html(markup.section_head("Opcode mix", metric_changes.OPCODE_CAPTIONS[opened.evidence]))
            st.html(metric_changes.opcodes(pair.opcodes))
        if opened.evidence is Evidence.STATIC and opened.sources:
            _show_compiled_code(opened)
        if opened.evidence is Evidence.MEASURED:
            st.html(markup.section_head("Environment"))
            st.html(metric_changes.environment(comparison, pair))
        if opened.evidence is Evidence.MODELLED and opened.sources:
            caption = f"modelled, {opened.view.workload}; wavefronts over the ideal"
            st.html(markup.section_head("Conflicts by source line", caption))
            workloads = (comparison.a.workload or "", comparison.b.workload or "")
            st.html(version_sources.conflicts(*opened.sources, workloads))
    if opened.evidence is Evidence.MEASURED:
        st.html(markup.section_head("NVIDIA's rules", rule_results.caption(pair)))
        st.html(rule_results.changed(pair))


def show_sources(opened: OpenedDiff) -> None:
    """Both sources side by side, where both are versions of a catalogue."""
    if not opened.sources:
        return
    st.html(markup.section_head("Source", version_sources.caption(*opened.sources)))
    if flags := version_sources.flags(*opened.sources):
        st.html(flags)
    st.html(version_sources.side_by_side(*opened.sources))


def _show_compiled_code(opened: OpenedDiff) -> None:
    """How the machine code of the two functions compares, and the way to it or to what builds it."""
    gpu_a, gpu_b = opened.comparison.a.gpu, opened.comparison.b.gpu
    st.html(markup.section_head("Machine code", f"static, {gpu_b or ''}: {compiled_code.NOTHING_RAN}"))
    if gpu_a != gpu_b:
        st.html(markup.note(f"Compiled for {gpu_a} and {gpu_b}: not held beside each other."))
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
