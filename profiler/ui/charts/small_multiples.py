"""Small multiples over versions or time as plain Plotly dictionaries: lines, breaks, hatched gaps, gutter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from profiler.evidence import State, Value, formatting
from profiler.ui.charts import style
from profiler.ui.charts.labels import plotly_text, shorten, spread_apart, wrap
from profiler.ui.charts.scales import axis_share, log_ticks, value_range
from profiler.ui.charts.style import FONT, HOVER_TEXT, MUTED_FONT, TRANSPARENT, Figure, annotation
from profiler.ui.theme import light

MAX_POINTS = 2000  # SVG points a chart still draws smoothly
FAILED = formatting.state_words(Value(None, state=State.FAILED))
# Why a point was meant to have a number and has none: marked where other lines have numbers.
FAILURES = (FAILED, State.NO_DATA.words, State.INFINITE.words)
_FIRST_PX, _NEXT_PX, _TITLE_PX, _AXIS_PX = 210, 120, 34, 46
_LEADER_PX = 14  # from the plot to a label in the gutter
_MAX_GUTTER_PX, _LETTER_PX = 160, 6.3
_LABEL_PX = 15  # height of a gutter label
_LEVEL_FROM = 0.3  # share of the axis that a gap takes from which on its reason is written level
_NO_PREFIX_BELOW = 0.01  # under this Plotly's prefixes read as units: 200 µ
_MOST_TEXTS = 16  # points up to which a lone line carries its numbers as text


@dataclass(frozen=True)
class Point:
    """One version or run of a line: its number, or why there is none."""

    x: float  # index of the version, or milliseconds since 1970 on a time axis
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
    band: float = 0.0  # share of each number within which another is no change; 0: no band is drawn


@dataclass(frozen=True)
class Panel:
    """One metric: a title and its lines, in one unit."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    caption: str = ""
    from_zero: bool = True
    blank: tuple[tuple[float, str], ...] = ()  # positions at which no line has a point, each with the reason


@dataclass(frozen=True)
class Axis:
    """The x axis that all panels share: versions in order, or time."""

    labels: tuple[str, ...] = ()  # the versions
    time: bool = False
    span: tuple[float, float] = (0.0, 1.0)  # first and last position

    @property
    def column(self) -> float:
        """How wide a hatched column is, in axis units: nearly a version, or at least a minute."""
        return 0.94 if not self.time else max((self.span[1] - self.span[0]) * 0.03, 60_000.0)

    @property
    def range(self) -> list[float]:
        """First and last position with room for a column on both sides."""
        margin = 0.5 if not self.time else max((self.span[1] - self.span[0]) * 0.04, 120_000.0)
        return [self.span[0] - margin, self.span[1] + margin]


@dataclass(frozen=True)
class _Frame:
    """Where one panel lies: its y axis, its share of the figure's height, its value range."""

    y_axis: str  # as traces name it: y, y2 …
    domain: tuple[float, float]
    low: float
    high: float
    log: bool
    has_gutter: bool


def figure(panels: Sequence[Panel], axis: Axis) -> Figure:
    """The panels stacked on one x axis, titles above at the left, line labels in a gutter at the right."""
    has_gutter = _has_gutter(panels)
    heights = [
        max(_FIRST_PX if index == 0 else _NEXT_PX, _LABEL_PX * len(panel.lines) if has_gutter else 0)
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
        domain = (top - height) / total, top / total
        value_span = value_range(_band_ends(panel), from_zero=panel.from_zero)
        frame = _Frame(f"y{suffix}", domain, *value_span, has_gutter=has_gutter)
        layout[f"yaxis{suffix}"] = _value_axis(frame)
        title = _title(panel, frame.log)
        notes.append(annotation(title, 0.0, (top + 6) / total, xanchor="left", yanchor="bottom"))
        traces += _traces(panel, axis, frame)
        notes += _gap_notes(panel, axis, frame)
        if has_gutter:
            labels, strokes = _gutter(panel, frame, _LABEL_PX / total)
            notes, leaders = notes + labels, leaders + strokes
        top -= height
    layout["xaxis"] = _shared_axis(axis, f"y{len(panels)}" if len(panels) > 1 else "y")
    layout["annotations"], layout["shapes"] = notes, leaders
    layout["hovermode"] = "closest" if has_gutter else "x"
    return {"data": traces, "layout": layout}


def gutter_px(panels: Sequence[Panel]) -> int:
    """How much the panels leave at the right for the names of their lines."""
    names = [shorten(line.label) for panel in panels for line in panel.lines] if _has_gutter(panels) else []
    return min(_MAX_GUTTER_PX, _LEADER_PX + 8 + round(_LETTER_PX * max(map(len, names), default=0)))


def _has_gutter(panels: Sequence[Panel]) -> bool:
    """Whether some panel has several lines, which then need names beside them."""
    return any(len(panel.lines) > 1 for panel in panels)


def _band_ends(panel: Panel) -> list[float]:
    """Both ends of the band around each number of a panel; without a band the number twice."""
    return [
        end
        for line in panel.lines
        for point in line.points
        if point.y is not None
        for end in (point.y / (1 + line.band), point.y * (1 + line.band))
    ]


def gaps_of_all_lines(panel: Panel) -> list[tuple[float, str]]:
    """The positions at which no line has a number, with the reason (of the first line that gives one)."""
    reasons: dict[float, str] = {}
    with_number: set[float] = set()
    for line in panel.lines:
        for point in line.points:
            if point.y is not None:
                with_number.add(point.x)
            elif point.gap:
                reasons.setdefault(point.x, point.gap)
    for x, reason in panel.blank:
        reasons.setdefault(x, reason)
    return sorted((x, reason) for x, reason in reasons.items() if x not in with_number)


def thinned(points: Sequence[Point], limit: int) -> list[Point]:
    """At most about `limit` numbers for drawing. Gaps stay, and a break stays a break."""
    step = math.ceil(len(points) / max(1, limit))
    drawn: list[Point] = []
    broken = False  # since the last point that is drawn
    for index, point in enumerate(points):
        broken = broken or not point.joined
        if index % step == 0 or index == len(points) - 1 or point.y is None:
            drawn.append(replace(point, joined=not broken))
            broken = False
    return drawn


def _title(panel: Panel, log: bool) -> str:
    unit = f", {plotly_text(panel.unit)}" if panel.unit else ""
    words = ", ".join(filter(None, (panel.caption, "log scale" * log)))
    caption = f'  <span style="fill:{light("muted")}">{plotly_text(words)}</span>' if words else ""
    return f"<b>{plotly_text(panel.title)}{unit}</b>{caption}"


def _traces(panel: Panel, axis: Axis, frame: _Frame) -> list[Figure]:
    """Hatches first and strong lines last: what is drawn later lies on top."""
    gaps = gaps_of_all_lines(panel)
    hatched = {x for x, _ in gaps}
    traces = [_hatch(gaps, axis, frame)] if gaps else []
    traces += [
        _band(stretch, line.band, axis, frame)
        for line in panel.lines
        if line.band
        for stretch in _stretches(line.points)
    ]
    for line in sorted(panel.lines, key=lambda line: line.strong):
        points = thinned(line.points, MAX_POINTS // max(1, len(panel.lines)))
        if any(point.y is not None for point in points):
            traces.append(_line(line, points, frame))
        failed = [point for point in points if point.gap in FAILURES and point.x not in hatched]
        if failed:
            traces.append(_crosses(line, failed, frame))
    return traces


def _line(line: Line, points: Sequence[Point], frame: _Frame) -> Figure:
    with_texts = not frame.has_gutter and sum(point.y is not None for point in points) <= _MOST_TEXTS
    vertices: list[Point | None] = []  # None breaks the line
    for point in points:
        if point.y is None or not point.joined:
            vertices.append(None)
        if point.y is not None:
            vertices.append(point)
    ink = light("ink" if line.strong or not frame.has_gutter else "muted")
    return {
        "type": "scatter",
        "name": plotly_text(line.label),
        "x": [point.x if point else None for point in vertices],
        "y": [point.y if point else None for point in vertices],
        "yaxis": frame.y_axis,
        "mode": "lines+markers+text" if with_texts else "lines+markers",
        "line": {"color": ink, "width": 1.5},
        "marker": {"color": ink, "size": 5 if frame.has_gutter and not line.strong else 7},
        "text": [plotly_text(point.label) if point and with_texts else "" for point in vertices],
        "textposition": "top center",
        "textfont": FONT,
        "cliponaxis": False,
        "hovertext": [_hover(line, point) if point else "" for point in vertices],
        "hovertemplate": HOVER_TEXT,
    }


def _stretches(points: Sequence[Point]) -> list[list[Point]]:
    """The numbers that one line joins; of very many, as many as are drawn."""
    stretches: list[list[Point]] = [[]]
    for point in thinned(points, MAX_POINTS // 4):
        if point.y is None or not point.joined:
            stretches.append([])
        if point.y is not None:
            stretches[-1].append(point)
    return [stretch for stretch in stretches if stretch]


def _band(points: Sequence[Point], share: float, axis: Axis, frame: _Frame) -> Figure:
    """A band around joined numbers; a lone one gets a piece of it as wide as a gap's column."""
    x = [point.x for point in points]
    y = [point.y for point in points if point.y is not None]
    if len(x) == 1:
        x, y = [x[0] - axis.column / 4, x[0] + axis.column / 4], y * 2
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*x, *reversed(x)],
        "y": [*(number * (1 + share) for number in y), *(number / (1 + share) for number in reversed(y))],
        "yaxis": frame.y_axis,
        "fill": "toself",
        "fillcolor": light("neutral"),
        "opacity": 0.22,
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _hover(line: Line, point: Point) -> str:
    return f"<b>{plotly_text(line.label)}</b><br>{plotly_text(point.hover)}"


def _crosses(line: Line, points: Sequence[Point], frame: _Frame) -> Figure:
    """A cross at the foot of the panel: this line failed here, while others have a number."""
    return {
        "type": "scatter",
        "x": [point.x for point in points],
        "y": [frame.low for _ in points],
        "yaxis": frame.y_axis,
        "mode": "markers+text",
        "marker": {"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": light("muted")}},
        "text": [f"{plotly_text(shorten(line.label))} failed" for _ in points],
        "textposition": "top center",
        "textfont": MUTED_FONT,
        "cliponaxis": False,
        "hovertext": [_hover(line, point) for point in points],
        "hovertemplate": HOVER_TEXT,
    }


def _hatch(gaps: Sequence[tuple[float, str]], axis: Axis, frame: _Frame) -> Figure:
    return {
        "type": "bar",
        "x": [x for x, _ in gaps],
        "y": [frame.high - frame.low for _ in gaps],
        "base": frame.low,
        "width": axis.column,
        "yaxis": frame.y_axis,
        "marker": {"color": TRANSPARENT, "line": {"width": 0}, "pattern": style.hatch_pattern()},
        "hovertext": [plotly_text(reason) for _, reason in gaps],
        "hovertemplate": HOVER_TEXT,
    }


def _gap_notes(panel: Panel, axis: Axis, frame: _Frame) -> list[Figure]:
    """One label for each run of neighbouring hatched columns with the same reason."""
    positions = sorted(
        {point.x for line in panel.lines for point in line.points} | {x for x, _ in panel.blank}
    )
    column_of = {x: column for column, x in enumerate(positions)}
    # Gaps are neighbours where column and count grow alike: their difference stays the same.
    counted_gaps = list(enumerate(gaps_of_all_lines(panel)))
    notes = []
    for (reason, _), run in groupby(counted_gaps, key=lambda gap: (gap[1][1], column_of[gap[1][0]] - gap[0])):
        columns = [x for _, (x, _) in run]
        is_narrow = len(columns) * axis.column < _LEVEL_FROM * (axis.range[1] - axis.range[0])
        notes.append(
            annotation(
                wrap(reason, 18),
                (columns[0] + columns[-1]) / 2,
                sum(frame.domain) / 2,
                xref="x",
                font=MUTED_FONT,
                bgcolor=light("page"),
                borderpad=2,
                textangle=-90 if is_narrow else 0,
                xanchor="center",
                yanchor="middle",
            )
        )
    return notes


def _gutter(panel: Panel, frame: _Frame, gap: float) -> tuple[list[Figure], list[Figure]]:
    """The line labels at the right, none over another, and the strokes that lead there."""
    low, high = frame.domain
    ends: list[tuple[Line, float]] = []
    for line in panel.lines:
        numbers = [point.y for point in line.points if point.y is not None]
        if numbers:
            share = axis_share(numbers[-1], frame.low, frame.high, frame.log)
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
    stroke = {
        "type": "line",
        "xref": "paper",
        "yref": "paper",
        "xsizemode": "pixel",
        "xanchor": 1,
        "line": {"color": light("neutral"), "width": 1},
        "layer": "above",
    }
    leaders = [
        {**stroke, "x0": 1, "x1": _LEADER_PX, "y0": end, "y1": height}
        for (_, end), height in zip(ends, heights, strict=True)
    ]
    return labels, leaders


def _value_axis(frame: _Frame) -> Figure:
    common = {
        **style.axis(""),
        "domain": list(frame.domain),
        "showgrid": True,
        "automargin": True,
        "nticks": 5,
    }
    if not frame.log:
        exponent = {"exponentformat": "e"} if frame.high < _NO_PREFIX_BELOW else {}
        return {**common, **exponent, "range": [frame.low, frame.high]}
    ticks = log_ticks(frame.low, frame.high)
    return {
        **common,
        "type": "log",
        "range": [math.log10(frame.low), math.log10(frame.high)],
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
    }


def _shared_axis(axis: Axis, anchor: str) -> Figure:
    common = {**style.axis(""), "anchor": anchor, "range": axis.range, "showline": True, "tickfont": FONT}
    if axis.time:
        return {**common, "automargin": True, "type": "date"}
    return {**common, **style.version_ticks(axis.labels)}
