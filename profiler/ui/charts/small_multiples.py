"""Small multiples over versions or time as plain Plotly dictionaries: lines, breaks, hatched gaps, gutter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from profiler.ui.charts import style
from profiler.ui.charts.scales import (
    axis_share,
    log_ticks,
    plotly_text,
    shorten,
    spread_apart,
    value_range,
    wrap,
)
from profiler.ui.charts.style import FONT, MUTED_FONT, TRANSPARENT, Figure, annotation
from profiler.ui.theme import HATCH, light

MAX_POINTS = 2000  # SVG points a chart still draws smoothly
FAILED = "failed (NaN)"  # the gap that gets a mark of its own where other lines have numbers
_FIRST_PX, _NEXT_PX, _TITLE_PX, _AXIS_PX = 210, 120, 34, 46
_LEADER_PX = 14  # from the plot to its label
_LABEL_PX = 15  # height of a gutter label
_WIDE_GAP = 0.3  # share of the axis from which on the reason stands level
_TINY = 0.01  # up to here ticks would get a prefix that reads as a unit
_LABELLED = 16  # up to so many points a lone line carries its numbers as text


@dataclass(frozen=True)
class Point:
    """One place on a line: a number, or no number and the words for why."""

    at: float  # index of the version, or milliseconds since 1970 on a time axis
    y: float | None
    hover: str = ""  # plain text
    label: str = ""  # the number as text, for charts with room for it
    gap: str = ""  # why there is no number
    joined: bool = True  # False: not comparable with the point before it, so no line leads here


@dataclass(frozen=True)
class Line:
    """One series of a panel; `strong` is drawn in ink, the others in grey."""

    label: str
    points: tuple[Point, ...]
    strong: bool = False
    band: float = 0.0  # share of each number within which another one is no change; 0: none is drawn


@dataclass(frozen=True)
class Panel:
    """One metric: a title and its lines, in one unit."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    caption: str = ""
    from_zero: bool = True
    blank: tuple[tuple[float, str], ...] = ()  # places that no line speaks of, with the words for why


@dataclass(frozen=True)
class Axis:
    """What all panels share: version names in order, or time."""

    labels: tuple[str, ...] = ()
    time: bool = False
    span: tuple[float, float] = (0.0, 1.0)  # first and last position

    @property
    def column(self) -> float:
        """How wide a hatched column is, in axis units."""
        return 0.94 if not self.time else max((self.span[1] - self.span[0]) * 0.03, 60_000.0)

    @property
    def range(self) -> list[float]:
        """First and last position with room on both sides."""
        pad = 0.5 if not self.time else max((self.span[1] - self.span[0]) * 0.04, 120_000.0)
        return [self.span[0] - pad, self.span[1] + pad]


@dataclass(frozen=True)
class _Place:
    """Where one panel lies: its axis name, its share of the figure's height, its value range."""

    y: str
    domain: tuple[float, float]
    low: float
    high: float
    log: bool
    crowded: bool


def figure(panels: Sequence[Panel], axis: Axis) -> Figure:
    """The panels stacked on one x axis, titles above at the left, line labels in a gutter at the right."""
    crowded = _crowded(panels)
    heights = [
        max(_FIRST_PX if index == 0 else _NEXT_PX, _LABEL_PX * len(panel.lines) if crowded else 0)
        for index, panel in enumerate(panels)
    ]
    total = sum(heights) + _TITLE_PX * len(panels)
    traces: list[Figure] = []
    notes: list[Figure] = []
    leaders: list[Figure] = []
    layout = style.layout(total + _AXIS_PX)
    layout["margin"] = {"l": 8, "r": gutter_px(panels), "t": 0, "b": _AXIS_PX, "pad": 0}
    top = total
    for index, (panel, height) in enumerate(zip(panels, heights, strict=True)):
        top -= _TITLE_PX
        suffix = str(index + 1) if index else ""
        numbers = [
            end
            for line in panel.lines
            for point in line.points
            if point.y is not None
            for end in (point.y / (1 + line.band), point.y * (1 + line.band))
        ]
        ends = value_range(numbers, from_zero=panel.from_zero)
        place = _Place(f"y{suffix}", ((top - height) / total, top / total), *ends, crowded=crowded)
        layout[f"yaxis{suffix}"] = _value_axis(place)
        notes.append(
            annotation(_title(panel, place.log), 0.0, (top + 6) / total, xanchor="left", yanchor="bottom")
        )
        traces += _traces(panel, axis, place)
        notes += _gap_notes(panel, axis, place)
        if crowded:
            labels, lines = _gutter(panel, place, _LABEL_PX / total)
            notes, leaders = notes + labels, leaders + lines
        top -= height
    layout["xaxis"] = _shared_axis(axis, f"y{len(panels)}" if len(panels) > 1 else "y")
    layout["annotations"], layout["shapes"] = notes, leaders
    layout["hovermode"] = "closest" if crowded else "x"
    return {"data": traces, "layout": layout}


def gutter_px(panels: Sequence[Panel]) -> int:
    """How much the panels leave at the right for the names of their lines."""
    names = [shorten(line.label) for panel in panels for line in panel.lines] if _crowded(panels) else []
    return min(160, _LEADER_PX + 8 + round(6.3 * max(map(len, names), default=0)))


def _crowded(panels: Sequence[Panel]) -> bool:
    """Whether some panel has several lines, which then need names beside them."""
    return any(len(panel.lines) > 1 for panel in panels)


def gaps_of_all_lines(panel: Panel) -> list[tuple[float, str]]:
    """The places where no line has a number, with the words for why (of the first line that says)."""
    words: dict[float, str] = {}
    numbers: set[float] = set()
    for line in panel.lines:
        for point in line.points:
            if point.y is not None:
                numbers.add(point.at)
            elif point.gap:
                words.setdefault(point.at, point.gap)
    for at, word in panel.blank:
        words.setdefault(at, word)
    return sorted((at, word) for at, word in words.items() if at not in numbers)


def thinned(points: Sequence[Point], limit: int) -> list[Point]:
    """At most about `limit` numbers for drawing. Gaps stay, and a break stays a break."""
    step = math.ceil(len(points) / max(1, limit))
    kept: list[Point] = []
    broken = False
    for index, point in enumerate(points):
        broken = broken or not point.joined
        if index % step == 0 or index == len(points) - 1 or point.y is None:
            kept.append(replace(point, joined=not broken))
            broken = False
    return kept


def _title(panel: Panel, log: bool) -> str:
    unit = f", {plotly_text(panel.unit)}" if panel.unit else ""
    words = ", ".join(filter(None, (panel.caption, "log scale" * log)))
    quiet = f'  <span style="fill:{light("muted")}">{plotly_text(words)}</span>' if words else ""
    return f"<b>{plotly_text(panel.title)}{unit}</b>{quiet}"


def _traces(panel: Panel, axis: Axis, place: _Place) -> list[Figure]:
    gaps = gaps_of_all_lines(panel)
    hatched = {at for at, _ in gaps}
    traces = [_hatch(gaps, axis, place)] if gaps else []
    traces += [
        _band(stretch, line.band, axis, place)
        for line in panel.lines
        if line.band
        for stretch in _stretches(line.points)
    ]
    for line in sorted(panel.lines, key=lambda line: line.strong):
        points = thinned(line.points, MAX_POINTS // max(1, len(panel.lines)))
        if any(point.y is not None for point in points):
            traces.append(_line(line, points, place))
        lost = [point for point in points if point.gap == FAILED and point.at not in hatched]
        if lost:
            traces.append(_lost(line, lost, place))
    return traces


def _line(line: Line, points: Sequence[Point], place: _Place) -> Figure:
    labelled = not place.crowded and sum(point.y is not None for point in points) <= _LABELLED
    shown: list[Point | None] = []  # None breaks the line
    for point in points:
        if point.y is None or not point.joined:
            shown.append(None)
        if point.y is not None:
            shown.append(point)
    ink = light("ink" if line.strong or not place.crowded else "muted")
    return {
        "type": "scatter",
        "name": plotly_text(line.label),
        "x": [point.at if point else None for point in shown],
        "y": [point.y if point else None for point in shown],
        "yaxis": place.y,
        "mode": "lines+markers+text" if labelled else "lines+markers",
        "line": {"color": ink, "width": 1.5},
        "marker": {"color": ink, "size": 5 if place.crowded and not line.strong else 7},
        "text": [plotly_text(point.label) if point and labelled else "" for point in shown],
        "textposition": "top center",
        "textfont": FONT,
        "cliponaxis": False,
        "hovertext": [_hover(line, point) if point else "" for point in shown],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _stretches(points: Sequence[Point]) -> list[list[Point]]:
    """The numbers that one line joins; of very many, as many as are drawn."""
    found: list[list[Point]] = [[]]
    for point in thinned(points, MAX_POINTS // 4):
        if point.y is None or not point.joined:
            found.append([])
        if point.y is not None:
            found[-1].append(point)
    return [stretch for stretch in found if stretch]


def _band(points: Sequence[Point], share: float, axis: Axis, place: _Place) -> Figure:
    """A band around joined numbers; a lone one gets a piece of it as wide as a gap's column."""
    x = [point.at for point in points]
    y = [point.y for point in points if point.y is not None]
    if len(x) == 1:
        x, y = [x[0] - axis.column / 4, x[0] + axis.column / 4], y * 2
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*x, *reversed(x)],
        "y": [*(number * (1 + share) for number in y), *(number / (1 + share) for number in reversed(y))],
        "yaxis": place.y,
        "fill": "toself",
        "fillcolor": light("neutral"),
        "opacity": 0.22,
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _hover(line: Line, point: Point) -> str:
    return f"<b>{plotly_text(line.label)}</b><br>{plotly_text(point.hover)}"


def _lost(line: Line, points: Sequence[Point], place: _Place) -> Figure:
    """A cross at the foot of the panel: this line failed here, while others have a number."""
    return {
        "type": "scatter",
        "x": [point.at for point in points],
        "y": [place.low for _ in points],
        "yaxis": place.y,
        "mode": "markers+text",
        "marker": {"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": light("muted")}},
        "text": [f"{plotly_text(shorten(line.label))} failed" for _ in points],
        "textposition": "top center",
        "textfont": MUTED_FONT,
        "cliponaxis": False,
        "hovertext": [_hover(line, point) for point in points],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _hatch(gaps: Sequence[tuple[float, str]], axis: Axis, place: _Place) -> Figure:
    pattern = {"shape": "/", "fgcolor": HATCH[0], "bgcolor": TRANSPARENT, "size": 10, "solidity": 0.12}
    return {
        "type": "bar",
        "x": [at for at, _ in gaps],
        "y": [place.high - place.low for _ in gaps],
        "base": place.low,
        "width": axis.column,
        "yaxis": place.y,
        "marker": {"color": TRANSPARENT, "line": {"width": 0}, "pattern": pattern},
        "hovertext": [plotly_text(words) for _, words in gaps],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _gap_notes(panel: Panel, axis: Axis, place: _Place) -> list[Figure]:
    """One label for each stretch of neighbouring hatched columns with the same reason."""
    order = sorted(
        {point.at for line in panel.lines for point in line.points} | {at for at, _ in panel.blank}
    )
    index = {at: position for position, at in enumerate(order)}
    gaps = list(enumerate(gaps_of_all_lines(panel)))
    notes = []
    for (words, _), stretch in groupby(gaps, key=lambda item: (item[1][1], index[item[1][0]] - item[0])):
        places = [at for _, (at, _) in stretch]
        middle, height = (places[0] + places[-1]) / 2, sum(place.domain) / 2
        upright = len(places) * axis.column < _WIDE_GAP * (axis.range[1] - axis.range[0])
        look = {
            "font": MUTED_FONT,
            "bgcolor": light("page"),
            "borderpad": 2,
            "textangle": -90 if upright else 0,
        }
        look |= {"xanchor": "center", "yanchor": "middle"}
        notes.append(annotation(wrap(words, 18), middle, height, xref="x", **look))
    return notes


def _gutter(panel: Panel, place: _Place, gap: float) -> tuple[list[Figure], list[Figure]]:
    """The line labels at the right, none over another, and the strokes that lead there."""
    low, high = place.domain
    ends: list[tuple[Line, float]] = []
    for line in panel.lines:
        numbers = [point.y for point in line.points if point.y is not None]
        if numbers:
            share = axis_share(numbers[-1], place.low, place.high, place.log)
            ends.append((line, low + share * (high - low)))
    heights = spread_apart([height for _, height in ends], gap, low, high)
    labels = [
        annotation(
            plotly_text(shorten(line.label)),
            1.0,
            height,
            xanchor="left",
            yanchor="middle",
            xshift=_LEADER_PX + 2,
            hovertext=plotly_text(line.label),
            font=FONT if line.strong else MUTED_FONT,
        )
        for (line, _), height in zip(ends, heights, strict=True)
    ]
    stroke = {"type": "line", "xref": "paper", "yref": "paper", "xsizemode": "pixel", "xanchor": 1}
    look = {"line": {"color": light("neutral"), "width": 1}, "layer": "above"}
    lines = [
        {**stroke, **look, "x0": 1, "x1": _LEADER_PX, "y0": end, "y1": height}
        for (_, end), height in zip(ends, heights, strict=True)
    ]
    return labels, lines


def _value_axis(place: _Place) -> Figure:
    common = {
        **style.axis(""),
        "domain": list(place.domain),
        "showgrid": True,
        "automargin": True,
        "nticks": 5,
    }
    if not place.log:
        tiny = {"exponentformat": "e"} if place.high < _TINY else {}  # 2e−4 as its labels, and not 200 µ
        return {**common, **tiny, "range": [place.low, place.high]}
    marks = log_ticks(place.low, place.high)
    return {
        **common,
        "type": "log",
        "range": [math.log10(place.low), math.log10(place.high)],
        "tickvals": marks,
        "ticktext": [f"{mark:g}" for mark in marks],
    }


def _shared_axis(axis: Axis, anchor: str) -> Figure:
    common = {**style.axis(""), "anchor": anchor, "range": axis.range, "showline": True, "tickfont": FONT}
    if axis.time:
        return {**common, "automargin": True, "type": "date"}
    return {**common, **style.version_ticks(axis.labels)}
