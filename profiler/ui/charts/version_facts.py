"""What is known of each version without a GPU: panels over one row of versions, gaps as labelled hatches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from profiler.ui.charts.labels import plotly_text, shorten, wrap
from profiler.ui.charts.scales import log_ticks, value_range
from profiler.ui.charts.style import (
    FONT,
    HOVER_TEXT,
    MUTED_FONT,
    TRANSPARENT,
    Figure,
    annotation,
    axis,
    hatch_pattern,
    layout,
)
from profiler.ui.theme import light

# How wide a version's column is beside the others: one that has numbers needs room for them and its name.
_SHOWN, _GAP, _PLANNED = 1.0, 0.34, 0.8
_PANEL_PX, _CLAIMS_PX, _AXIS_PX = 50, 72, 38
_LABEL_PX = 178  # left of the plot, for what each panel shows
_LABEL_LETTERS = 29  # of a line there
_MOST_REASON = 34  # letters of a reason that fit beside a hatch
_GOAL_LETTERS = 6  # of a line beside a goal, so that the next version has its own place
_NAME_PX = 6.6  # a letter of a name under its column
_PLOT_PX = 950  # the width of the plot on a small desktop, by which names are broken in two


@dataclass(frozen=True)
class VersionColumn:
    """One version: its name, and why it has no numbers."""

    name: str
    idea: str
    gap: str = ""  # why it has none: wrong, rejected; "" where it may have some
    is_planned: bool = False

    @property
    def width(self) -> float:
        """Its share of the row."""
        return _PLANNED if self.is_planned else _GAP if self.gap else _SHOWN


@dataclass(frozen=True)
class FactPoint:
    """One number, or a range, of one version."""

    value: float
    label: str
    high: float | None = None  # the end of a range
    is_goal: bool = False


@dataclass(frozen=True)
class FactPanel:
    """One fact over the versions, by their names; versions without it are left out."""

    title: str
    caption: str
    points: Mapping[str, FactPoint]
    is_claim: bool = False  # somebody's figure, not ours: drawn dashed
    extra: Mapping[str, FactPoint] = field(default_factory=dict)  # goals beside the claims


def figure(columns: Sequence[VersionColumn], panels: Sequence[FactPanel]) -> Figure:
    """The panels stacked over one row of versions; a hatch runs through all of them."""
    centres = _centres(columns)
    end = sum(column.width for column in columns)
    heights = [_CLAIMS_PX if panel.is_claim else _PANEL_PX for panel in panels]
    plot = sum(heights)
    drawn = layout(plot + _AXIS_PX)
    drawn["margin"] = {"l": _LABEL_PX, "r": 12, "t": 0, "b": _AXIS_PX, "pad": 0}
    traces: list[Figure] = [_hatches(columns, centres, len(panels) + 1)]
    notes: list[Figure] = []
    for index, panel in enumerate(panels):
        top = 1 - sum(heights[:index]) / plot
        bottom = top - heights[index] / plot
        suffix = str(index + 1) if index else ""
        drawn[f"yaxis{suffix}"] = _value_axis([bottom + 4 / plot, top - 4 / plot], *_range(panel))
        notes.append(_panel_label(panel, (top + bottom) / 2))
        traces += _traces(panel, columns, centres, f"y{suffix}")
    overlay = str(len(panels) + 1)
    drawn[f"yaxis{overlay}"] = {**axis(""), "domain": [0, 1], "range": [0, 1], "visible": False}
    notes += [_reason(column, x) for column, x in zip(columns, centres, strict=True) if column.gap]
    notes += _names(columns, centres, end)
    drawn["xaxis"] = {
        **axis(""),
        "range": [0, end],
        "anchor": f"y{len(panels)}" if len(panels) > 1 else "y",
        "showline": True,
        "showticklabels": False,
    }
    drawn["annotations"] = notes
    drawn["hovermode"] = "closest"
    return {"data": traces, "layout": drawn}


def _panel_label(panel: FactPanel, y: float) -> Figure:
    """What a panel shows and of which evidence, left of it."""
    words = f'<span style="fill:{light("muted")}">{wrap(panel.caption, _LABEL_LETTERS)}</span>'
    return annotation(
        f"<b>{plotly_text(panel.title)}</b><br>{words}",
        0.0,
        y,
        align="left",
        xanchor="left",
        yanchor="middle",
        xshift=-_LABEL_PX,
        font={**FONT, "size": 12},
    )


def _centres(columns: Sequence[VersionColumn]) -> list[float]:
    centres, left = [], 0.0
    for column in columns:
        centres.append(left + column.width / 2)
        left += column.width
    return centres


def _range(panel: FactPanel) -> tuple[float, float, bool]:
    numbers = [point.value for point in (*panel.points.values(), *panel.extra.values())]
    numbers += [point.high for point in panel.extra.values() if point.high is not None]
    low, high, log = value_range(numbers)
    # Room for the number above the highest mark, and for the lower half of what stands beside a goal.
    if log:
        return low * (low / high) ** (0.45 if panel.extra else 0.0), high * (high / low) ** 0.3, True
    return low, low + (high - low) * 1.3, False


def _value_axis(domain: list[float], low: float, high: float, log: bool) -> Figure:
    common = {**axis(""), "domain": domain, "showgrid": True, "showticklabels": False}
    if not log:
        return {**common, "range": [low - (high - low) * 0.08, high], "nticks": 3}
    return {
        **common,
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": log_ticks(low, high),
    }


def _traces(
    panel: FactPanel, columns: Sequence[VersionColumn], centres: Sequence[float], y_axis: str
) -> list[Figure]:
    """The marks with their numbers, and a dotted line between neighbours; goals as brackets."""
    ink = light("muted" if panel.is_claim else "ink")
    traces: list[Figure] = []
    shown = [(column, x) for column, x in zip(columns, centres, strict=True) if column.name in panel.points]
    for stretch in _neighbours(panel, columns, centres):
        if len(stretch) > 1:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": [x for _, x in stretch],
                    "y": [panel.points[column.name].value for column, _ in stretch],
                    "yaxis": y_axis,
                    "line": {"color": light("neutral"), "width": 1, "dash": "dot"},
                    "hoverinfo": "skip",
                }
            )
    if shown:
        points = [panel.points[column.name] for column, _ in shown]
        traces.append(
            {
                "type": "scatter",
                "name": plotly_text(panel.title),
                "mode": "markers+text",
                "x": [x for _, x in shown],
                "y": [point.value for point in points],
                "yaxis": y_axis,
                "marker": {
                    "symbol": "circle-open-dot" if panel.is_claim else "circle",
                    "size": 8 if panel.is_claim else 6,
                    "color": ink,
                },
                "text": [plotly_text(point.label) for point in points],
                "textposition": "top center",
                "textfont": {**MUTED_FONT, "color": ink},
                "cliponaxis": False,
                "hovertext": [
                    _hover(column, panel, point) for (column, _), point in zip(shown, points, strict=True)
                ],
                "hovertemplate": HOVER_TEXT,
            }
        )
    traces += [
        _bracket(panel, column, x, y_axis)
        for column, x in zip(columns, centres, strict=True)
        if column.name in panel.extra
    ]
    return traces


def _neighbours(
    panel: FactPanel, columns: Sequence[VersionColumn], centres: Sequence[float]
) -> Iterator[list[tuple[VersionColumn, float]]]:
    """The stretches of versions with a number and nothing between them: a line stops at a hatch."""
    stretch: list[tuple[VersionColumn, float]] = []
    for column, x in zip(columns, centres, strict=True):
        if column.name in panel.points and not panel.is_claim:
            stretch.append((column, x))
        else:
            yield stretch
            stretch = []
    yield stretch


def _bracket(panel: FactPanel, column: VersionColumn, x: float, y_axis: str) -> Figure:
    """A goal: a range or a single aim, dashed, without a mark."""
    point = panel.extra[column.name]
    high = point.high if point.high is not None else point.value
    return {
        "type": "scatter",
        "mode": "lines+markers+text",
        "x": [x, x],
        "y": [point.value, high],
        "yaxis": y_axis,
        "line": {"color": light("muted"), "width": 1, "dash": "dot"},
        "marker": {"symbol": "line-ew-open", "size": 9, "color": light("muted")},
        "text": ["", "<br>".join(f"  {line}" for line in wrap(point.label, _GOAL_LETTERS).split("<br>"))],
        "textposition": "middle right",
        "textfont": MUTED_FONT,
        "cliponaxis": False,
        "hovertext": [_hover(column, panel, point)] * 2,
        "hovertemplate": HOVER_TEXT,
    }


def _hover(column: VersionColumn, panel: FactPanel, point: FactPoint) -> str:
    kind = "goal" if point.is_goal else panel.title
    return (
        f"<b>{plotly_text(column.name)}</b><br>{plotly_text(column.idea)}<br>"
        f"{plotly_text(kind)}: {plotly_text(point.label)}<br>{plotly_text(panel.caption)}"
    )


def _hatches(columns: Sequence[VersionColumn], centres: Sequence[float], overlay: int) -> Figure:
    """One hatched column through all panels for each version that has no numbers."""
    gaps = [(column, x) for column, x in zip(columns, centres, strict=True) if column.gap]
    return {
        "type": "bar",
        "x": [x for _, x in gaps],
        "y": [1 for _ in gaps],
        "width": [column.width * 0.86 for column, _ in gaps],
        "yaxis": f"y{overlay}",
        "marker": {"color": TRANSPARENT, "line": {"width": 0}, "pattern": hatch_pattern()},
        "hovertext": [
            f"<b>{plotly_text(column.name)}</b><br>{plotly_text(column.idea)}<br>⊘ {plotly_text(column.gap)}"
            for column, _ in gaps
        ],
        "hovertemplate": HOVER_TEXT,
    }


def _reason(column: VersionColumn, x: float) -> Figure:
    words = f"{column.name}: {column.gap}"
    if len(words) > _MOST_REASON:
        words = f"{words[: _MOST_REASON - 1].rstrip(' ,:;')}…"
    return annotation(
        plotly_text(words),
        x,
        0.02,
        xref="x",
        font={**MUTED_FONT, "size": 11},
        textangle=-90,
        bgcolor=light("page"),
        borderpad=1,
        xanchor="center",
        yanchor="bottom",
    )


def _names(columns: Sequence[VersionColumn], centres: Sequence[float], end: float) -> list[Figure]:
    """The names under the axis, broken at an underscore where their column is narrow."""
    notes = []
    for column, x in zip(columns, centres, strict=True):
        if column.gap:
            words = "⊘"
        else:
            room = int(column.width / end * _PLOT_PX / _NAME_PX)
            words = _broken(column.name, room)
        font = MUTED_FONT if column.gap or column.is_planned else {**MUTED_FONT, "color": light("ink")}
        notes.append(annotation(words, x, 0, xref="x", font=font, xanchor="center", yanchor="top", yshift=-4))
    return notes


def _broken(name: str, room: int) -> str:
    if len(name) <= room or "_" not in name:
        return plotly_text(shorten(name, max(room, 9)))
    # At the underscore that leaves the shorter lines.
    ends = [place + 1 for place, letter in enumerate(name) if letter == "_"]
    end = min(ends, key=lambda place: max(place, len(name) - place))
    return "<br>".join(plotly_text(shorten(part, max(room, 10))) for part in (name[:end], name[end:]))
