"""The lines of the Trends page with their steps, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import streamlit as st

from profiler.errors import ProfilerError
from profiler.evidence import NCU_DURATION, Evidence
from profiler.history import History, Lineage, Trend
from profiler.ui import controls, markup
from profiler.ui.charts import style
from profiler.ui.data import index, lineages, series, trend_choice
from profiler.ui.data.index import DataVersion
from profiler.ui.errors import errors_shown
from profiler.ui.views import history_steps, trend_numbers, trend_panels, trends_csv


@dataclass(frozen=True)
class Choice:
    """What the page was asked for, besides the metrics."""

    family: str
    versions: Sequence[str]  # of the family, in order
    kernels: str
    over: str  # versions or time
    evidence: Evidence
    workload: str
    gpu: str

    @property
    def is_over_time(self) -> bool:
        """Whether the x axis is time."""
        return self.over == "time"


class _Series(NamedTuple):
    """What was found for a choice."""

    by_metric: Mapping[str, Sequence[Trend]]  # the metrics asked for, of the kernels that fit
    ranking: Sequence[Trend]  # durations, the longest kernel first
    histories: Sequence[History]  # with the steps of each
    lineage: Lineage | None


def show(
    data_version: DataVersion, choice: Choice, metrics: Sequence[str], filters: controls.Filters
) -> None:
    """The chart, what it leaves out, the steps, then the numbers of one metric."""
    found = _load(data_version, choice, metrics)
    label = trend_choice.labeller(index.metric_table(data_version))
    noise = index.noise(data_version)
    lineage = found.lineage
    picture = trend_panels.picture(
        found.by_metric, choice.versions, choice.is_over_time, found.ranking, noise, lineage
    )
    if picture.panels:
        chart = history_steps.mark(picture, found.histories, choice.versions, choice.is_over_time)
        alt = picture.alt + history_steps.alt(found.histories)
        # The style sheet drops the numbers of a chart with this key on a phone, which has no room for many.
        many = "_many" * (len(choice.versions) > trend_numbers.COLUMNS_SHOWN)
        st.plotly_chart(chart, theme=None, config=style.CONFIG, key=f"trends_chart{many}", alt=alt)
    if lineage and choice.evidence is Evidence.STATIC and not choice.is_over_time:
        mix, alt = trend_panels.opcode_mix(
            lineage, choice.versions, choice.workload, choice.gpu, picture.gutter
        )
        st.plotly_chart(mix, theme=None, config=style.CONFIG, key="trends_mix", alt=alt)
        st.html(markup.note(trend_panels.OPCODE_MIX_NOTE))
    for line in trend_panels.notes(picture, found.by_metric, label):
        st.html(line)
    for line in trend_panels.floor_notes(found.by_metric, noise):
        st.html(line)
    if any(history.steps for history in found.histories):
        st.html(markup.section_head("Steps", history_steps.caption(found.histories)))
        st.html(history_steps.table(found.histories))
    for line in history_steps.notes(found.histories):
        st.html(line)
    _show_numbers(choice, found, filters, label)


def _load(data_version: DataVersion, choice: Choice, metrics: Sequence[str]) -> _Series:
    """The series of each metric; what cannot be had is said on the page, and the others are shown."""
    key = (choice.family, choice.workload, choice.gpu)
    by_metric: dict[str, Sequence[Trend]] = {}
    refused = {}
    for metric in metrics:
        try:
            by_metric[metric] = series.trends(data_version, metric, *key, choice.over, choice.evidence)
        except ProfilerError as error:
            refused[metric] = str(error)
    if refused:
        st.html(markup.error_box(trend_choice.refusal(refused)))
    fitting: Mapping[str, Sequence[Trend]] = {}
    ranking: Sequence[Trend] = []
    lineage = None
    with errors_shown():
        lineage = lineages.lineage(data_version, choice.family)
        ranking = series.trends(data_version, NCU_DURATION, *key, choice.over, choice.evidence)
        fitting, ranking = trend_choice.trends_of_kernels(by_metric, ranking, choice.kernels)
    histories = [
        history
        for metric, trends in fitting.items()
        for history in history_steps.of_lines(
            series.histories(data_version, metric, *key, choice.evidence), trends
        )
    ]
    return _Series(fitting, ranking, histories, lineage)


def _show_numbers(
    choice: Choice, found: _Series, filters: controls.Filters, label: trend_choice.Labeller
) -> None:
    metrics = [metric for metric, trends in found.by_metric.items() if trends]
    if not metrics:
        return
    head, metric_box = st.columns([4, 1], vertical_alignment="bottom", gap="medium")
    with metric_box:
        trends = found.by_metric[filters.select("numbers of", metrics, "numbers", format_option=label)]
    head.html(markup.section_head("Numbers", trend_numbers.caption(trends, choice.versions)))
    st.html(trend_numbers.table(trends, choice.versions, choice.family, found.ranking))
    every_trend = [trend for trends in found.by_metric.values() for trend in trends]
    content = partial(trends_csv.as_csv, every_trend)
    st.download_button("Download as CSV", content, f"{choice.family}.csv", on_click="ignore")
