"""Versions as lines over parallel axes, or as bars a metric; a line stops where a number is missing."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.ui.charts import style
from profiler.ui.charts.labels import plotly_text, shorten, spread_apart
from profiler.ui.charts.style import FONT, HOVER_TEXT, MUTED_FONT, Figure, annotation
from profiler.ui.theme import light

MOST_AXES = 12
_HEIGHT_PX, _TOP_PX, _LABEL_PX = 230, 60, 14
_LETTERS_IN_ALL = 145  # that fit side by side over the axes of a page 1,280 px wide
_BAR_PX, _BARS_SHOWN = 20, 6
_LABEL_GUTTER_PX = 132


@dataclass(frozen=True)
class MetricAxis:
    """One axis: what it shows, and whether its scale is logarithmic."""

    label: str
    caption: str
    unit: str
    is_log: bool
    least_span: float = 1.0  # ratio of the ends of a logarithmic axis, at least


@dataclass(frozen=True)
class VersionLine:
    """One line: its numbers, one an axis, None where there is none."""

    name: str
    numbers: tuple[float | None, ...]
    colours: tuple[str, ...] = ()  # of a verdict, one an axis; "" where nobody judges
    is_selected: bool = False
    is_baseline: bool = False


def lines(metrics: Sequence[MetricAxis], versions: Sequence[VersionLine]) -> Figure:
    """Parallel axes, a line a version: the selected in the accent, the baseline in ink, the others grey."""
    metrics = metrics[:MOST_AXES]
    spans = [
        _span(metric, [version.numbers[at] for version in versions]) for at, metric in enumerate(metrics)
    ]
    layout = style.layout(_TOP_PX + _HEIGHT_PX + 12)
    layout["margin"] = {"l": _LABEL_GUTTER_PX, "r": 40, "t": _TOP_PX, "b": 12, "pad": 0}
    layout["xaxis"] = {
        "visible": False,
        "range": [-0.05, max(1, len(metrics) - 1) + 0.05],
        "fixedrange": True,
    }
    layout["yaxis"] = {"visible": False, "range": [-0.04, 1.04], "fixedrange": True}
    layout["hovermode"] = "closest"
    layout["shapes"] = [
        {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "line": {"color": light("line"), "width": 1}}
        for at in range(len(metrics))
    ]
    notes = []
    for at, (metric, span) in enumerate(zip(metrics, spans, strict=True)):
        head = _head(metric, len(metrics))
        notes.append(annotation(head, at, 1.02, xref="x", yanchor="bottom", font=MUTED_FONT))
        if span is not None:
            ends = {span[0]: 0.0} if span[0] == span[1] else {span[0]: 0.0, span[1]: 1.0}
            notes += [
                annotation(
                    plotly_text(_text(end, metric)),
                    at,
                    y,
                    xref="x",
                    yref="y",
                    xanchor="left",
                    xshift=4,
                    font={**MUTED_FONT, "size": 11},
                    yanchor="bottom" if y == 0 else "top",
                )
                for end, y in ends.items()
            ]
    traces = []
    ordered = sorted(versions, key=lambda version: (version.is_selected, version.is_baseline))
    for version in ordered:
        y = [
            None if number is None or span is None else _share(metric, number, span)
            for number, metric, span in zip(version.numbers, metrics, spans, strict=False)
        ]
        traces.append(_trace(version, metrics, y))
    layout["annotations"] = [*notes, *_names(versions, metrics, spans)]
    return {"data": traces, "layout": layout}


def _trace(version: VersionLine, metrics: Sequence[MetricAxis], y: Sequence[float | None]) -> Figure:
    strong = version.is_selected or version.is_baseline
    colour = light("accent" if version.is_selected else "ink" if version.is_baseline else "neutral")
    hover = [
        f"<b>{plotly_text(version.name)}</b><br>{plotly_text(metric.label)} "
        f"{plotly_text(_text(number, metric)) if number is not None else ''}"
        for metric, number in zip(metrics, version.numbers, strict=False)
    ]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(range(len(metrics))),
        "y": list(y),
        "connectgaps": False,
        "hovertext": hover,
        "hovertemplate": HOVER_TEXT,
        "line": {"color": colour, "width": 2 if strong else 1.1},
        "marker": {"color": colour, "size": 6 if strong else 4.5},
    }


def _names(
    versions: Sequence[VersionLine],
    metrics: Sequence[MetricAxis],
    spans: Sequence[tuple[float, float] | None],
) -> list[Figure]:
    """The names at the left, each at the height of its line's first point."""
    if not metrics or spans[0] is None:
        return []
    starting = [
        (version, _share(metrics[0], version.numbers[0], spans[0]))
        for version in versions
        if version.numbers[0] is not None
    ]
    heights = spread_apart([y for _, y in starting], _LABEL_PX / _HEIGHT_PX, 0.0, 1.0)
    return [
        annotation(
            f"<b>{plotly_text(shorten(version.name, 18))}</b>"
            if version.is_selected or version.is_baseline
            else plotly_text(shorten(version.name, 18)),
            0,
            height,
            xref="x",
            yref="y",
            xanchor="right",
            xshift=-10,
            font={
                **FONT,
                "size": 11.5,
                "color": light(
                    "accent" if version.is_selected else "ink" if version.is_baseline else "muted"
                ),
            },
        )
        for (version, _), height in zip(starting, heights, strict=True)
    ]


def _head(metric: MetricAxis, count: int) -> str:
    """What stands over one of `count` axes: the label on two lines at most, and the caption."""
    letters = min(20, _LETTERS_IN_ALL // count)
    lines = textwrap.wrap(metric.label, letters)
    shown = [shorten(line, letters) for line in (lines[0], " ".join(lines[1:]))] if lines else []
    label = "<br>".join(plotly_text(line) for line in shown if line)
    return f"<b>{label}</b><br>{plotly_text(metric.caption)}"


def bars(metrics: Sequence[MetricAxis], versions: Sequence[VersionLine]) -> Figure:
    """A column of bars a metric, a row a version, in the order of the table; a gap is a hatch."""
    metrics = metrics[:_BARS_SHOWN]
    layout = style.layout(_TOP_PX + _BAR_PX * len(versions) + 12)
    layout["margin"] = {"l": _LABEL_GUTTER_PX, "r": 12, "t": _TOP_PX, "b": 12, "pad": 0}
    layout["hovermode"] = "closest"
    layout["yaxis"] = {
        **style.axis(""),
        "autorange": "reversed",
        "tickvals": list(range(len(versions))),
        "ticktext": [plotly_text(shorten(version.name, 18)) for version in versions],
    }
    traces, notes = [], []
    width = 1 / max(1, len(metrics))
    for at, metric in enumerate(metrics):
        suffix = str(at + 1) if at else ""
        span = _span(metric, [version.numbers[at] for version in versions])
        domain = [at * width, (at + 1) * width - 0.02]
        layout[f"xaxis{suffix}"] = {
            "visible": False,
            "range": [0, 1.28],
            "domain": domain,
            "fixedrange": True,
            "anchor": "y",
        }
        head = _head(metric, len(metrics))
        notes.append(
            annotation(head, domain[0], 1.0, xanchor="left", yanchor="bottom", align="left", font=MUTED_FONT)
        )
        traces.append(_bars(metric, versions, at, span, suffix))
        missing = [row for row, version in enumerate(versions) if version.numbers[at] is None]
        where = {"orientation": "h", "xaxis": f"x{suffix}", "width": 0.5}
        traces.append(style.hatch([0.25] * len(missing), missing, ["no number"] * len(missing), **where))
    layout["annotations"] = notes
    return {"data": traces, "layout": layout}


def _bars(
    metric: MetricAxis,
    versions: Sequence[VersionLine],
    at: int,
    span: tuple[float, float] | None,
    suffix: str,
) -> Figure:
    shown = [
        (row, version, number)
        for row, version in enumerate(versions)
        if (number := version.numbers[at]) is not None and span is not None
    ]
    colours = [
        light("ink" if version.is_baseline else (version.colours[at] if version.colours else "") or "neutral")
        for _, version, _ in shown
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "xaxis": f"x{suffix}",
        "y": [row for row, _, _ in shown],
        "x": [_bar_share(metric, number, span) for _, _, number in shown if span],
        "marker": {"color": colours},
        "width": 0.5,
        "text": [_text(number, metric) for _, _, number in shown],
        "textposition": "outside",
        "constraintext": "none",
        "textfont": {**FONT, "size": 11.5},
        "cliponaxis": False,
        "hovertext": [
            f"{plotly_text(version.name)}: {_text(number, metric)}" for _, version, number in shown
        ],
        "hovertemplate": HOVER_TEXT,
    }


def _span(metric: MetricAxis, numbers: Sequence[float | None]) -> tuple[float, float] | None:
    present = [number for number in numbers if number is not None and (number > 0 or not metric.is_log)]
    if not present:
        return None
    low, high = min(present), max(present)
    if not metric.is_log:
        return min(0.0, low), high
    if low < high < low * metric.least_span:  # numbers that hardly differ stand together in the middle
        margin = math.sqrt(metric.least_span * low / high)
        return low / margin, high * margin
    return low, high


def _share(metric: MetricAxis, number: float | None, span: tuple[float, float] | None) -> float:
    """Where a number lies between the ends of its axis, 0 to 1."""
    if number is None or span is None or span[0] == span[1]:
        return 0.0 if number is not None and span is not None and not span[1] else 0.5
    low, high = span
    if metric.is_log:
        return math.log(number / low) / math.log(high / low)
    return (number - low) / (high - low)


def _bar_share(metric: MetricAxis, number: float, span: tuple[float, float]) -> float:
    """How long a bar is: 0 for 0; on a logarithmic scale the smallest number is seen too."""
    if metric.is_log:
        return 0.06 + 0.94 * _share(metric, number, span)
    return number / max(abs(span[0]), abs(span[1]), 1e-300)


def _text(number: float, metric: MetricAxis) -> str:
    return formatting.without_word_unit(Value(number, metric.unit))
