"""The Diff page's two columns for static or modelled facts: the verdict, and the same two elsewhere."""

from __future__ import annotations

import streamlit as st

from profiler.evidence.values import Evidence
from profiler.ui import addresses, markup
from profiler.ui.data import advice as advice_data
from profiler.ui.data import comparisons, index, predictions
from profiler.ui.data.cells import evidence_of_all, shared_workloads_on_gpus
from profiler.ui.data.diff import OpenedDiff
from profiler.ui.sections import draw
from profiler.ui.views import advice, fact_verdicts, modelled_pair, version_sources


def show_verdict_and_entries(opened: OpenedDiff) -> None:
    """Left the verdict and the catalogue's entries; right every workload and GPU, and what next."""
    verdict_box, elsewhere_box = st.columns([2, 3], gap="medium")
    with verdict_box:
        draw.section(
            "Verdict",
            fact_verdicts.CAPTIONS[opened.evidence],
            fact_verdicts.verdict(opened.comparison, opened.pair),
        )
        _show_modelled_times(opened)
    with elsewhere_box:
        st.html(markup.section_head("The same pair elsewhere", fact_verdicts.ELSEWHERE_CAPTION))
        shared = shared_workloads_on_gpus(opened.cells, opened.names, opened.evidence)
        if shared:
            elsewhere = comparisons.comparisons_elsewhere(
                opened.data_version, *opened.names, shared, opened.view.kernels, opened.evidence
            )
            draw.html(*fact_verdicts.elsewhere(elsewhere, opened.view))
        else:
            st.html(markup.note("No workload on which both were examined."))
        _show_advice(opened)
        if opened.sources:
            entries = version_sources.entries(*opened.sources)
            st.html(markup.long_section("Catalogue", "what the two entries say", [entries]))


def _show_modelled_times(opened: OpenedDiff) -> None:
    """How long the model says both take, where a run keeps that of both."""
    a, b = map(addresses.parse_version, opened.names)
    stored = predictions.predictions(opened.data_version, b.family)
    if stored is None or a.family != b.family:
        return
    if shown := modelled_pair.pairs(stored, a.version, b.version):
        draw.section(
            "Modelled time",
            modelled_pair.CAPTION,
            modelled_pair.table(shown),
            markup.note(stored.note),
            modelled_pair.causes(*shown[0]),
        )


def _show_advice(opened: OpenedDiff) -> None:
    comparison, pair = opened.comparison, opened.pair
    if pair is None:
        return
    table = index.metric_table(opened.data_version)
    traffic = opened.sources[1].traffic if opened.sources else {}
    # What is missing of these facts may be known from a GPU: no advice then to measure it.
    is_measured_too = Evidence.MEASURED in evidence_of_all(opened.cells, (opened.view.b,))
    st.html(markup.section_head("What next", advice.CAPTION_OF_PAIR))
    statements = advice_data.statements_of_pair(comparison, pair, table, traffic)
    chip = advice_data.chip_of_side(comparison.b)
    st.html(advice.table(statements, chip, is_measured_elsewhere=is_measured_too))
