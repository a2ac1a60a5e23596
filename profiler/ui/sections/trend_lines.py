"""The lines of the Trends page with their steps, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from profiler.evidence import Evidence
from profiler.ui import controls, markup
from profiler.ui.charts import style
from profiler.ui.data import index, trend_choice
from profiler.ui.data.family_series import FamilySeries, TrendsChoice, load_family_series
from profiler.ui.data.index import DataVersion
from profiler.ui.views import history_steps, trend_numbers, trend_panels, trends_csv


def show(
    data_version: DataVersion, choice: TrendsChoice, metrics: Sequence[str], filters: controls.Filters
) -> None:
    """The chart, what it leaves out, the steps, then the numbers of one metric."""
    loaded = load_family_series(data_version, choice, metrics)
    for refusal in loaded.refusals:
        st.html(markup.error_box(refusal))
    label = trend_choice.labeller(index.metric_table(data_version))
    noise = index.noise(data_version)
    lineage = loaded.lineage
    picture = trend_panels.picture(
        loaded.by_metric, choice.versions, choice.is_over_time, loaded.ranking, noise, lineage
    )
    if picture.panels:
        chart = history_steps.mark(picture, loaded.histories, choice.versions, choice.is_over_time)
        alt = picture.alt + history_steps.alt(loaded.histories)
        # The style sheet drops the numbers of a chart with this key on a phone, which has no room for many.
        many = "_many" * (len(choice.versions) > trend_numbers.COLUMNS_SHOWN)
        st.plotly_chart(chart, theme=None, config=style.CONFIG, key=f"trends_chart{many}", alt=alt)
    if lineage and choice.evidence is Evidence.STATIC and not choice.is_over_time:
        mix, alt = trend_panels.opcode_mix(
            lineage, choice.versions, choice.workload, choice.gpu, picture.gutter
        )
        st.plotly_chart(mix, theme=None, config=style.CONFIG, key="trends_mix", alt=alt)
        st.html(markup.note(trend_panels.OPCODE_MIX_NOTE))
    for line in trend_panels.notes(picture, loaded.by_metric, label):
        st.html(line)
    for line in trend_panels.floor_notes(loaded.by_metric, noise):
        st.html(line)
    if any(history.steps for history in loaded.histories):
        st.html(markup.section_head("Steps", history_steps.caption(loaded.histories)))
        for line in history_steps.shared_notes(loaded.histories):
            st.html(line)
        st.html(history_steps.table(loaded.histories))
    for line in history_steps.notes(loaded.histories):
        st.html(line)
    _show_numbers(choice, loaded, filters, label)


def _show_numbers(
    choice: TrendsChoice, loaded: FamilySeries, filters: controls.Filters, label: trend_choice.Labeller
) -> None:
    metrics = [metric for metric, trends in loaded.by_metric.items() if trends]
    if not metrics:
        return
    head, metric_box = st.columns([4, 1], vertical_alignment="bottom", gap="medium")
    with metric_box:
        trends = loaded.by_metric[filters.select("numbers of", metrics, "numbers", format_option=label)]
    head.html(markup.section_head("Numbers", trend_numbers.caption(trends, choice.versions)))
    st.html(trend_numbers.table(trends, choice.versions, choice.family, loaded.ranking))
    every_trend = [trend for trends in loaded.by_metric.values() for trend in trends]
    content = partial(trends_csv.as_csv, every_trend)
    st.download_button("Download as CSV", content, f"{choice.family}.csv", on_click="ignore")
