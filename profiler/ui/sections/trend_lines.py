"""The lines of the Trends page with their steps, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import plotly.graph_objects
import streamlit as st

from profiler.compare.noise_model import NoiseModel
from profiler.documents.trend import TrendDocument
from profiler.evidence.cell import Cell
from profiler.evidence.values import Evidence
from profiler.history.opcode_shares import opcode_mix
from profiler.history.run_spread import RunSpread
from profiler.history.stall_shares import stall_mix
from profiler.history.trend import LATENCY, TrendPoint
from profiler.ui import addresses, controls, late_fields, markup
from profiler.ui.charts import share_areas
from profiler.ui.charts.style import Figure
from profiler.ui.data import index, series, trend_choice, trend_point, trend_view
from profiler.ui.data.cache import cached
from profiler.ui.data.family_series import FamilySeries, TrendsChoice, load_family_series
from profiler.ui.data.index import DataVersion
from profiler.ui.data.readable_names import Fit
from profiler.ui.data.run_axis import TIME, VERSIONS, RunAxis
from profiler.ui.errors import errors_shown
from profiler.ui.sections import draw
from profiler.ui.views import (
    history_steps,
    mix_areas,
    point_card,
    trend_numbers,
    trend_panels,
    version_grid,
)
from profiler.ui.views.trend_panels import ChosenLines, Look

ZOOM = ("from", "to")  # the parameters of the part of the axis that is shown
_CHART = "trends_chart"


@dataclass(frozen=True)
class LineChoice:
    """How the lines are shown."""

    scale: str  # absolute, of first, of baseline
    since: str  # a range
    zoom: tuple[datetime, datetime] | None


def show(
    data_version: DataVersion,
    choice: TrendsChoice,
    metrics: Sequence[str],
    filters: controls.Filters,
    lines_choice: LineChoice,
) -> None:
    """The chips, the chart, what it leaves out, the steps, then the numbers of one metric."""
    loaded = load_family_series(data_version, choice, metrics)
    for refusal in loaded.refusals:
        st.html(markup.error_box(refusal))
    axis = trend_view.choose_axis(data_version, choice, loaded, lines_choice.since, lines_choice.zoom)
    lines = trend_panels.choose_lines(loaded.by_metric, axis, loaded.ranking)
    isolated = _choose_line(filters, lines, loaded, axis)
    chart_place = st.container()
    with chart_place:
        _show_chart(data_version, choice, loaded, filters, _Drawing(axis, lines, isolated, lines_choice))
    _show_grid(data_version, choice, filters, metrics, loaded, _Drawing(axis, lines, isolated, lines_choice))
    if any(history.steps for history in loaded.histories):
        draw.section(
            "Steps",
            history_steps.caption(loaded.histories),
            *history_steps.shared_notes(loaded.histories),
            history_steps.table(loaded.histories),
        )
    draw.html(*history_steps.notes(loaded.histories))
    label = trend_choice.labeller(index.metric_table(data_version))
    _show_numbers(choice, loaded, filters, label)


@dataclass(frozen=True)
class _Drawing:
    """What is drawn, and how."""

    axis: RunAxis
    lines: ChosenLines
    isolated: str
    choice: LineChoice


def _choose_line(filters: controls.Filters, lines: ChosenLines, loaded: FamilySeries, axis: RunAxis) -> str:
    """The label of the line that stands out; "" where none does."""
    labels = lines.labels_with_numbers
    if len(labels) < 2:
        filters.check("line", [*labels, controls.NONE], "isolate", Fit.LAST_PART)
        return labels[0] if labels and axis.is_over_runs else ""
    default = ""
    if axis.is_over_runs:
        default = trend_view.line_with_newest_alarm(loaded.histories, lines.labels, axis)
    return filters.chips("isolate a line", labels, "isolate", default)


def _show_chart(
    data_version: DataVersion,
    choice: TrendsChoice,
    loaded: FamilySeries,
    filters: controls.Filters,
    drawing: _Drawing,
) -> None:
    axis, isolated = drawing.axis, drawing.isolated
    noise = index.noise(data_version)
    key = drawing.lines.key_of(isolated)
    version = key[2] if key is not None else None
    spreads, too_many = trend_view.spreads_of(data_version, _isolated_latency(loaded, drawing), axis)
    look = Look(
        drawing.choice.scale,
        choice.baseline,
        loaded.baseline_numbers,
        isolated,
        spreads,
        trend_view.levels_of(data_version, choice, loaded, version),
        lambda name: filters.address(isolate=name if name != isolated else controls.NONE),
    )
    asked_for = repr((choice, tuple(loaded.by_metric), drawing.choice, isolated, filters.address()))
    picture, chart = _draw(data_version, asked_for, loaded, axis, noise, look)
    if picture.panels:
        alt = picture.alt + history_steps.alt(loaded.histories)
        # The style sheet drops the numbers of a chart with this key on a phone, which has no room for many.
        many = "_many" * (len(choice.versions) > trend_numbers.COLUMNS_SHOWN)
        zoom = drawing.choice.zoom
        # Of another part of the axis it is another chart, on which nothing is selected yet.
        chart_key = f"{_CHART}{many}_{zoom[0]:%Y%m%d%H%M}_{zoom[1]:%Y%m%d%H%M}" if zoom else f"{_CHART}{many}"
        draw.chart(chart, key=chart_key, alt=alt, on_click=partial(_take_click, chart_key, isolated))
        late_fields.wait_for_chart()
        _show_point(data_version, choice, filters, drawing, dict(spreads))
        if zoom:
            whole = markup.link(filters.address(**dict.fromkeys(ZOOM, "")), "the whole range")
            words = f"{zoom[0]:%Y-%m-%d %H:%M} to {zoom[1]:%Y-%m-%d %H:%M}; "
            st.html(markup.note(markup.join((words, whole))))
        if choice.evidence is Evidence.MEASURED:
            _show_mixes(data_version, choice, loaded, drawing, picture)
    if loaded.lineage and choice.evidence is Evidence.STATIC and not axis.is_over_runs:
        mix = mix_areas.of_versions(loaded.lineage, choice.versions, choice.workload, choice.gpu, picture)
        _draw_mix(mix, "trends_mix")
        st.html(markup.note(mix_areas.CODE_NOTE))
    if too_many:
        st.html(markup.note(too_many))
    label = trend_choice.labeller(index.metric_table(data_version))
    draw.html(
        *trend_panels.notes(picture, loaded.by_metric, label),
        *trend_panels.floor_notes(loaded.by_metric, noise),
    )


@cached(16)
def _draw(
    data_version: DataVersion,
    asked_for: str,
    _loaded: FamilySeries,
    _axis: RunAxis,
    _noise: NoiseModel,
    _look: Look,
) -> tuple[trend_panels.Picture, Any]:
    """What is drawn and its chart, which follow from the data and from what was asked for.

    Thousands of points take longer than all else on the page, and most reruns leave them as they are.
    """
    picture = trend_panels.picture(_loaded.by_metric, _axis, _loaded.ranking, _noise, _loaded.lineage, _look)
    if not picture.panels:
        return picture, None
    picture = history_steps.with_callouts(picture, _loaded.histories, _axis, _look.isolated)
    chart = history_steps.mark(picture, _loaded.histories, _axis)
    return picture, plotly.graph_objects.Figure(_clickable(chart, _axis))  # checked here, once


def _show_point(
    data_version: DataVersion,
    choice: TrendsChoice,
    filters: controls.Filters,
    drawing: _Drawing,
    spreads: dict[int, RunSpread],
) -> None:
    """The card of the point that was clicked, below the chart."""
    at = filters.parameter("at")
    if not at:
        return
    trend = drawing.lines.trend_of(drawing.isolated)
    found = trend_point.find_point(data_version, trend, at, drawing.axis, spreads)

    def address(point: TrendPoint | None) -> str:
        name = addresses.version_of_run(point.version, point.run_id) if point else ""
        return filters.address(isolate=drawing.isolated, at=name)

    if found is None:
        close = markup.link(address(None), "close")
        words = f"{drawing.isolated or 'No line'} has no number at {at.replace('~', ' in run ')} here."
        st.html(markup.note(markup.join((words, close))))
    else:
        st.html(point_card.card(found, drawing.isolated, address))


def _show_mixes(
    data_version: DataVersion,
    choice: TrendsChoice,
    loaded: FamilySeries,
    drawing: _Drawing,
    picture: trend_panels.Picture,
) -> None:
    """What warps of the isolated line's kernel wait for and execute; of timed calls of the longest kernel."""
    if drawing.axis.is_over_runs and not drawing.isolated:
        return
    over = TIME if choice.is_over_runs else VERSIONS
    by_reason = series.stalls(data_version, choice.family, choice.workload, choice.gpu, over)
    part, _, version = drawing.lines.key_of(drawing.isolated) or ("", "", None)
    with_stalls = {trend.part for trends in by_reason.values() for trend in trends}
    of_stalls = part if part in with_stalls else _longest(loaded, version, with_stalls)
    if of_stalls:
        points = stall_mix(by_reason, of_stalls, version)
        title = mix_areas.STALLS.format(drawing.isolated or of_stalls)
        _draw_mix(mix_areas.chart(points, title, of_stalls, drawing.axis, picture), "trends_stalls")
    launches = {trend.part: trend for trend in loaded.ranking}
    of_opcodes = part if part in launches else _longest(loaded, version, launches)
    if of_opcodes:
        shown = _thinned(launches[of_opcodes].points, version, drawing.axis)
        ids = tuple(point.result_id for point in shown if point.result_id is not None)
        points = opcode_mix(shown, series.opcodes(data_version, ids), version)
        title = mix_areas.OPCODES.format(drawing.isolated or of_opcodes)
        _draw_mix(mix_areas.chart(points, title, of_opcodes, drawing.axis, picture), "trends_opcodes")


def _draw_mix(drawn: tuple[Figure, str] | None, key: str) -> None:
    if drawn is not None:
        figure, alt = drawn
        draw.chart(figure, key=key, alt=alt)


def _longest(loaded: FamilySeries, version: str | None, parts: Collection[str]) -> str:
    """The longest kernel of those, which that version ran; "" where it ran none of them."""
    return next(
        (
            trend.part
            for trend in loaded.ranking
            if trend.part in parts
            and any(version in (None, point.version) and point.kernel for point in trend.points)
        ),
        "",
    )


def _thinned(points: Sequence[TrendPoint], version: str | None, axis: RunAxis) -> list[TrendPoint]:
    """Of the points that are shown at most as many as a chart of areas draws: the counts of each are read."""
    shown = [point for point in points if version in (None, point.version) and axis.x_of(point) is not None]
    return shown[:: -(-len(shown) // share_areas.MOST_PLACES) or 1]


def _isolated_latency(loaded: FamilySeries, drawing: _Drawing) -> Any:
    """The timed calls of the line that stands out; None where it has none."""
    metrics = list(loaded.by_metric)
    if LATENCY not in metrics or not drawing.isolated:
        return None
    return drawing.lines.trend_of(drawing.isolated, metrics.index(LATENCY))


def _clickable(chart: Figure, axis: RunAxis) -> Figure:
    """The chart whose points can be clicked; along time dragging chooses a part of the axis."""
    layout = {**chart["layout"], "clickmode": "event+select"}
    if axis.over == TIME:
        layout |= {"dragmode": "zoom", "meta": {"zoom": list(ZOOM)}}
        layout["xaxis"] = {**layout["xaxis"], "fixedrange": False}
    return {**chart, "layout": layout}


def _take_click(chart_key: str, isolated: str) -> None:
    """Put the point that was clicked into the address with its line; a second click takes both out."""
    points = st.session_state[chart_key]["selection"]["points"]
    clicked = [point["customdata"] for point in points if point.get("customdata")]
    whole: dict[str, str | list[str]] = {name: st.query_params.get_all(name) for name in st.query_params}
    if not clicked or tuple(clicked[0]) == (isolated, st.query_params.get("at")):
        whole["isolate"] = controls.NONE
        whole.pop("at", None)
    else:
        whole["isolate"], whole["at"] = clicked[0]
    st.query_params.from_dict(whole)  # at once: each message is a step of the browser's history


def _show_grid(
    data_version: DataVersion,
    choice: TrendsChoice,
    filters: controls.Filters,
    metrics: Sequence[str],
    loaded: FamilySeries,
    drawing: _Drawing,
) -> None:
    """Versions by workloads of the first metric; none where there is one cell, which the chart shows."""
    if metrics[0] not in loaded.by_metric:
        return  # it was refused above
    with errors_shown():
        cells = series.version_grid(
            data_version, metrics[0], choice.family, choice.evidence, drawing.axis.since
        )
        columns = {(place.workload, place.gpu) for place in cells}
        if len(columns) < 2 and all(cell.numbers < 2 for cell in cells.values()):
            return  # one number a version, which the chart shows
        key = drawing.lines.key_of(drawing.isolated)
        shown = Cell(version=key[2] or "" if key else "", workload=choice.workload, gpu=choice.gpu)

        def address(place: Cell) -> str:
            over = choice.over if choice.is_over_runs else TIME
            return filters.address(
                workload=place.workload, gpu=place.gpu, isolate=place.version, over=over, at=""
            )

        label = trend_choice.labeller(index.metric_table(data_version))
        caption = version_grid.caption(cells, choice.versions)
        draw.section(
            f"Version × workload, {label(metrics[0])}",
            caption,
            version_grid.table(cells, choice.versions, shown, address),
        )


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
    every_trend = tuple(trend for trends in loaded.by_metric.values() for trend in trends)
    content = TrendDocument(", ".join(metrics), every_trend).to_csv
    st.download_button("Download as CSV", content, f"{choice.family}.csv", on_click="ignore")
