"""The state of one lineage on the overview: measured where anything was, else what is known without a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from profiler.history.best_versions import BestVersion
from profiler.history.lineage import Lineage
from profiler.history.trend import LATENCY
from profiler.model.stored_predictions import StoredPredictions
from profiler.regressions.groups import WorseNow
from profiler.ui import markup
from profiler.ui.data import current_state, lineages, predictions
from profiler.ui.data.index import DataVersion
from profiler.ui.sections import draw
from profiler.ui.views import best_versions, lineage_summary, lineage_versions, worse_now
from profiler.ui.views.lineage_table import FactChoice


def show(data_version: DataVersion, lineage: Lineage) -> None:
    """Tiles, the best versions or what is known, how to measure the rest, the newest versions."""
    choice = FactChoice.of_most(lineage)
    best = lineages.best_versions(data_version, lineage.family)
    predicted = None if best else predictions.predictions(data_version, lineage.family)
    tiles_box = st.empty()
    if best:
        caption = best_versions.caption(lineage, best)
        st.html(markup.section_head("Best correct version per GPU and workload", caption))
    best_box = st.empty()
    # What is worse takes seconds where nobody asked before: all else is drawn first, in places that stay.
    is_known = current_state.is_worse_known(data_version)
    worse = current_state.worse_now(data_version, lineage.family) if is_known else None
    _show_tiles_and_best(lineage, best, worse, tiles_box, best_box, predicted)
    worse_box, newest_box = st.columns([3, 5], gap="medium") if best else (st.empty(), st.container())
    if best and worse is not None:
        _show_worse(worse, worse_box)
    speedups = lineages.speedups(data_version, lineage.family, choice.workload, choice.gpu)
    draw.section(
        "Newest versions" if best else "Known without a GPU",
        lineage_versions.caption(lineage, choice, predicted),
        lineage_versions.table(lineage, choice, speedups, predicted),
        box=newest_box,
    )
    _show_measuring(lineage)
    if any(status.is_wrong for status in lineage.statuses):
        st.html(lineage_summary.wrong_folded(lineage))
    if worse is None:
        worse = current_state.worse_now(data_version, lineage.family)
        _show_tiles_and_best(lineage, best, worse, tiles_box, best_box, predicted)
        if best:
            _show_worse(worse, worse_box)


def _show_worse(worse: WorseNow, box: DeltaGenerator) -> None:
    draw.section("Worse now", worse_now.caption(worse), worse_now.table(worse), box=box)


def _show_tiles_and_best(
    lineage: Lineage,
    best: Sequence[BestVersion],
    worse: WorseNow | None,
    tiles_box: DeltaGenerator,
    best_box: DeltaGenerator,
    predicted: StoredPredictions | None,
) -> None:
    """The tiles, and the best versions with the marks where they got worse; `worse` None: not known yet."""
    tiles_box.html(lineage_summary.tiles(lineage, best, worse, predicted))
    if best:
        table = best_versions.table(lineage, best, _worse_since(worse) if worse else {})
        best_box.markdown(table, unsafe_allow_html=True)  # the sparklines are SVG, which nothing else keeps


def _show_measuring(lineage: Lineage) -> None:
    """The command that measures what no GPU has run, which its reader can copy."""
    command = lineage_summary.measuring_command(lineage)
    if command:
        with st.container(key="overview_measure"):
            words_box, command_box = st.columns([3, 2], vertical_alignment="center", gap="medium")
            words_box.html(lineage_summary.measuring_words(lineage))
            command_box.code(command, language=None, wrap_lines=True)


def _worse_since(worse: WorseNow) -> best_versions.WorseSince:
    """When each version got worse on a workload and GPU."""
    return {
        (row.series.version, row.series.workload, row.series.gpu): row.possible[-1].created
        for row in worse.rows
        if row.series.concept == LATENCY
    }
