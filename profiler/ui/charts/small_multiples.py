"""Small multiples over versions or time as plain Plotly dictionaries: lines, breaks, hatched gaps, gutter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from profiler.evidence import formatting
from profiler.evidence.values import State, Value
from profiler.ui.charts import line_gutter, panel_overlays, style
from profiler.ui.charts.labels import plotly_text, shorten, wrap
from profiler.ui.charts.line_gutter import LABEL_PX, GutterLabel
from profiler.ui.charts.panel_overlays import Callout, Reference
from profiler.ui.charts.scales import axis_share, log_ticks, value_range
from profiler.ui.charts.style import FONT, HOVER_TEXT, MUTED_FONT, Figure, annotation
from profiler.ui.theme import light

MAX_POINTS = 2000  # SVG points a chart still draws smoothly
FAILED = formatting.state_words(Value(None, state=State.FAILED))
# Why a point was meant to have a number and has none: marked where other lines have numbers.
FAILURES = (FAILED, State.NO_DATA.words, State.INFINITE.words)
_FIRST_PX, _NEXT_PX, _TITLE_PX, _AXIS_PX = 210, 120, 34, 46
LEFT_PX = 46  # left of the plot, for its numbers: charts below each other then begin at one x
_LEAST_REACH = 0.05  # share of the numbers by which a level may widen a panel whose numbers are all alike
_LEVEL_FROM = 0.3  # share of the axis that a gap takes from which on its reason is written level
_LEVEL_FROM_HOLE = 0.07  # likewise of two short words
NO_RUN = "no run"
# `meta` of what lies where there is room, not at a number: toolbar/exports.js then writes none into the CSV.
_NO_NUMBER = "no number"
_UNNUMBERED = {"name": _NO_NUMBER, "meta": _NO_NUMBER}
_NO_PREFIX_BELOW = 0.01  # under this Plotly's prefixes read as units: 200 µ
_MOST_MARKS = 160  # of the lines of a panel together: each is an element of the page, and drawn last of all
_MOST_TEXTS = 16  # points up to which a lone line carries its numbers as text


@dataclass(frozen=True)
class PanelPoint:
    """One version or run of a line: its number, or why there is none."""

    x: float  # index of the version, or milliseconds since 1970 on a time axis
    y: float | None
    hover: str = ""  # plain text
    label: str = ""  # the number as text, for charts with room for it
    gap: str = ""  # why there is no number
    joined: bool = True  # False: not comparable with the point before it, so no line leads here
    at: str = ""  # what a click on the point asks for
    low: float | None = None  # the ends of the interval of `y`; None where there is none
    high: float | None = None
    samples: tuple[float, ...] = ()  # the single values that `y` is the median of


@dataclass(frozen=True)
class PanelLine:
    """One series of a panel; `strong` is drawn in ink, an isolated one in the accent, the others in grey."""

    label: str
    points: tuple[PanelPoint, ...]
    strong: bool = False
    band: float = 0.0  # share of each number within which another is no change; 0: no band is drawn
    isolated: bool = False
    end: str = ""  # what follows the label in the gutter: its last number
    href: str = ""  # where the label leads


@dataclass(frozen=True)
class Panel:
    """One metric: a title and its lines, in one unit."""

    title: str
    unit: str
    lines: tuple[PanelLine, ...]
    caption: str = ""
    from_zero: bool = True
    blank: tuple[tuple[float, str], ...] = ()  # positions at which no line has a point, each with the reason
    height: int = 0  # in pixels; 0: by its place in the chart
    references: tuple[Reference, ...] = ()
    field: tuple[float, float] | None = None  # values between which equal builds lie
    callouts: tuple[Callout, ...] = ()
    linear: bool = False  # whether no logarithmic axis is drawn, however far the numbers span


@dataclass(frozen=True)
class Axis:
    """The x axis that all panels share: versions or commits in order, or time."""

    labels: tuple[str, ...] = ()  # the versions or commits
    time: bool = False
    span: tuple[float, float] = (0.0, 1.0)  # first and last position
    zoom: tuple[float, float] | None = None  # the part of it that is shown; None: all
    holes: tuple[tuple[float, float], ...] = ()  # from where to where there is no run at all

    @property
    def column(self) -> float:
        """How wide a hatched column is, in axis units: nearly a version, or at least a minute."""
        return 0.94 if not self.time else max((self.span[1] - self.span[0]) * 0.03, 60_000.0)

    @property
    def range(self) -> list[float]:
        """First and last position with room for a column on both sides, or the part that was zoomed to."""
        if self.zoom is not None:
            return list(self.zoom)
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
    clips: bool = False  # whether lines lead out of the plot, as where a part of the axis is shown


def figure(panels: Sequence[Panel], axis: Axis) -> Figure:
    """The panels stacked on one x axis, titles above at the left, line labels in a gutter at the right."""
    has_gutter = _has_gutter(panels)
    gutters = [_gutter_labels(panel, has_gutter) for panel in panels]
    heights = [
        panel.height or max(_FIRST_PX if index == 0 else _NEXT_PX, LABEL_PX * len(labels))
        for index, (panel, labels) in enumerate(zip(panels, gutters, strict=True))
    ]
    total = sum(heights) + _TITLE_PX * len(panels)
    traces: list[Figure] = []
    notes: list[Figure] = []
    shapes: list[Figure] = []
    layout = style.layout(total + _AXIS_PX)
    layout["margin"] = {"l": LEFT_PX, "r": gutter_px(panels), "t": 0, "b": _AXIS_PX, "pad": 0}
    top = total
    limit = MAX_POINTS // max(1, len(panels))
    for index, (panel, height, labels) in enumerate(zip(panels, heights, gutters, strict=True)):
        top -= _TITLE_PX
        suffix = str(index + 1) if index else ""
        domain = (top - height) / total, top / total
        frame = _Frame(
            f"y{suffix}", domain, *_value_span(panel), has_gutter=has_gutter, clips=axis.zoom is not None
        )
        layout[f"yaxis{suffix}"] = _value_axis(frame, signed=panel.linear)
        title = _title(panel, frame.log)
        notes.append(annotation(title, 0.0, (top + 6) / total, xanchor="left", yanchor="bottom"))
        traces += _traces(panel, axis, frame, limit)
        notes += _gap_notes(panel, axis, frame)
        if axis.holes:
            traces.append(hole_hatch(axis, frame.low, frame.high, frame.y_axis))
            notes += hole_notes(axis, sum(domain) / 2)
        if panel.field is not None:
            shapes.append(panel_overlays.noise_field(*panel.field, frame.y_axis))
        levels = [reference for reference in panel.references if frame.low <= reference.y <= frame.high]
        shapes += [panel_overlays.reference_line(reference, frame.y_axis) for reference in levels]
        marks, words = panel_overlays.callouts(panel.callouts, domain, total, axis.range)
        shapes, notes = shapes + marks, notes + words
        if labels:
            placed = [replace(label, share=_share(label.share, frame)) for label in labels]
            if panel.linear:  # relative lines lie on one another where nothing moved
                placed = line_gutter.joined_labels(placed, height)
            words, strokes = line_gutter.draw(placed, domain, total)
            notes, shapes = notes + words, shapes + strokes
        top -= height
    layout["xaxis"] = shared_axis(axis, f"y{len(panels)}" if len(panels) > 1 else "y")
    layout["annotations"], layout["shapes"] = notes, shapes
    layout["hovermode"] = "closest" if has_gutter else "x"
    return {"data": traces, "layout": layout}


def gutter_px(panels: Sequence[Panel]) -> int:
    """How much the panels leave at the right for the names of their lines and levels."""
    has_names = _has_gutter(panels)
    return line_gutter.width_px(
        [label.words for panel in panels for label in _gutter_labels(panel, has_names)]
    )


def _has_gutter(panels: Sequence[Panel]) -> bool:
    """Whether some panel has several lines, which then need names beside them."""
    return any(len(panel.lines) > 1 for panel in panels)


def _gutter_labels(panel: Panel, has_names: bool) -> list[GutterLabel]:
    """What stands right of a panel: its levels, and its lines' names; the share of each is its number."""
    labels = []
    for line in panel.lines if has_names else ():
        numbers = [point.y for point in line.points if point.y is not None]
        if numbers:
            labels.append(
                GutterLabel(line.label, line.end, numbers[-1], line.href, line.strong, line.isolated)
            )
    return labels + [
        GutterLabel(reference.label, "", reference.y, is_level=True) for reference in panel.references
    ]


def _share(number: float, frame: _Frame) -> float:
    """How high a number lies in the panel, from 0 to 1; −1 and 2 stand for below and above it."""
    if number < frame.low:
        return -1.0
    return 2.0 if number > frame.high else axis_share(number, frame.low, frame.high, frame.log)


def _value_span(panel: Panel) -> tuple[float, float, bool]:
    """Bottom, top and scale of a panel: of its numbers, and of the levels that do not press them flat."""
    numbers = _band_ends(panel)
    if not numbers:
        return value_range(numbers, from_zero=panel.from_zero)
    low, high = min(numbers), max(numbers)
    reach = max(high - low, _LEAST_REACH * max(abs(low), abs(high)))
    levels = [reference.y for reference in panel.references]
    near = [level for level in levels if low - reach <= level <= high + reach]
    if panel.linear:
        ends = [*numbers, *near, *(panel.field or ())]
        margin = (max(ends) - min(ends)) * 0.12 or 1.0
        above = sum(callout.above for callout in panel.callouts)  # each label has room of its own
        below = len(panel.callouts) - above
        return min(ends) - margin * (1 + below), max(ends) + margin * (1 + above), False
    return value_range([*numbers, *near], from_zero=panel.from_zero)


def _band_ends(panel: Panel) -> list[float]:
    """Both ends of the band or interval around each number of a panel; without one the number twice."""
    return [
        end
        for line in panel.lines
        for point in line.points
        if point.y is not None
        for end in (
            point.y / (1 + line.band) if point.low is None else point.low,
            point.y * (1 + line.band) if point.high is None else point.high,
        )
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


def thinned(points: Sequence[PanelPoint], limit: int) -> list[PanelPoint]:
    """At most about `limit` numbers for drawing. Gaps stay, and a break stays a break."""
    step = math.ceil(len(points) / max(1, limit))
    drawn: list[PanelPoint] = []
    broken = False  # since the last point that is drawn
    for index, point in enumerate(points):
        broken = broken or not point.joined
        if index % step == 0 or index == len(points) - 1 or point.y is None:
            drawn.append(point if point.joined is not broken else replace(point, joined=not broken))
            broken = False
    return drawn


def _title(panel: Panel, log: bool) -> str:
    unit = f", {plotly_text(panel.unit)}" if panel.unit else ""
    words = ", ".join(filter(None, (panel.caption, "log scale" * log)))
    caption = f'  <span style="fill:{light("muted")}">{plotly_text(words)}</span>' if words else ""
    return f"<b>{plotly_text(panel.title)}{unit}</b>{caption}"


def _traces(panel: Panel, axis: Axis, frame: _Frame, limit: int) -> list[Figure]:
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
    # Samples and intervals share the room with the lines where there are any.
    has_spread = any(point.samples for line in panel.lines for point in line.points)
    room = limit // 3 if has_spread else limit
    for line in sorted(panel.lines, key=lambda line: (line.isolated, line.strong)):
        points = thinned(line.points, room // max(1, len(panel.lines)))
        if line.isolated:
            points = thinned(line.points, room // 3)
            traces += _spread(line.label, points, frame, limit // 3)
        if any(point.y is not None for point in points):
            is_faint = not line.isolated and any(other.isolated for other in panel.lines)
            marks = 0 if line.isolated else _MOST_MARKS // len(panel.lines)
            traces.append(_line(line, points, frame, is_faint, marks))
        failed = [point for point in points if point.gap in FAILURES and point.x not in hatched]
        if failed:
            traces.append(_crosses(line, failed, frame))
    return traces


def _spread(label: str, points: Sequence[PanelPoint], frame: _Frame, limit: int) -> list[Figure]:
    """The intervals of a line as bands, and its samples as dots: of many samples some of each point."""
    with_samples = [point for point in points if point.y is not None and point.samples]
    each = max(1, limit // max(1, len(with_samples)))
    dots = [
        (point.x, sample)
        for point in with_samples
        for sample in point.samples[:: -(-len(point.samples) // each)]
    ]
    dots = [(x, y) for x, y in dots if frame.low <= y <= frame.high]
    x, y = [x for x, _ in dots], [y for _, y in dots]
    drawn = [panel_overlays.sample_dots(f"{label}, samples", x, y, frame.y_axis)]
    for stretch in _stretches(points):
        ends = [
            (point.x, point.low, point.high)
            for point in stretch
            if point.low is not None and point.high is not None
        ]
        if len(ends) > 1:
            at, low, high = (list(values) for values in zip(*ends, strict=True))
            drawn.append(panel_overlays.interval_band(at, low, high, frame.y_axis))
    return drawn if dots else drawn[1:]


def _line(line: PanelLine, points: Sequence[PanelPoint], frame: _Frame, is_faint: bool, marks: int) -> Figure:
    """A line with about as many of its points marked, all where 0; each can be read and clicked all the same.

    Where a number stands alone all are marked: nothing else would show it.
    """
    with_texts = not frame.has_gutter and sum(point.y is not None for point in points) <= _MOST_TEXTS
    vertices: list[PanelPoint | None] = []  # None breaks the line
    for point in points:
        if point.y is None or not point.joined:
            vertices.append(None)
        if point.y is not None:
            vertices.append(point)
    role = "ink" if line.strong or not frame.has_gutter else "neutral" if is_faint else "muted"
    colour = light("accent" if line.isolated else role)
    size = 6 if line.isolated else 3 if is_faint else 5 if frame.has_gutter and not line.strong else 7
    look: Figure = {"marker": {"opacity": 1}}
    marker: Figure = {"color": colour, "size": size}
    has_ranges = not line.isolated and any(point and point.low is not None for point in vertices)
    ends = [None, *vertices, None]
    stands_alone = any(ends[place - 1] is ends[place + 1] is None for place in range(1, len(ends) - 1))
    if 0 < 2 * marks < len(vertices) and not stands_alone:
        marker["maxdisplayed"] = marks
    return {
        "type": "scatter",
        "name": plotly_text(line.label),
        "x": [point.x if point else None for point in vertices],
        "y": [point.y if point else None for point in vertices],
        "yaxis": frame.y_axis,
        "mode": "lines+markers+text" if with_texts else "lines+markers",
        "line": {"color": colour, "width": 2 if line.isolated else 1.1 if is_faint else 1.5},
        "marker": marker,
        "text": [plotly_text(point.label) if point and with_texts else "" for point in vertices],
        "textposition": "top center",
        "textfont": FONT,
        "cliponaxis": frame.clips,
        "hovertext": [_hover(line, point) if point else "" for point in vertices],
        "hovertemplate": HOVER_TEXT,
        # What a click on a point asks for, and that a click dims nothing.
        "customdata": [[line.label, point.at] if point else ["", ""] for point in vertices],
        "selected": look,
        "unselected": look,
        **({"error_y": _ranges(vertices)} if has_ranges else {}),
    }


def _ranges(points: Sequence[PanelPoint | None]) -> Figure:
    """Between what each number lies, as strokes; an isolated line has a band in their place."""
    ends = [(point.low, point.y, point.high) if point else (None, None, None) for point in points]
    return {
        "type": "data",
        "symmetric": False,
        "array": [None if high is None or y is None else high - y for _, y, high in ends],
        "arrayminus": [None if low is None or y is None else y - low for low, y, _ in ends],
        "color": light("neutral"),
        "thickness": 1.2,
        "width": 4,
    }


def _stretches(points: Sequence[PanelPoint]) -> list[list[PanelPoint]]:
    """The numbers that one line joins; of very many, as many as are drawn."""
    stretches: list[list[PanelPoint]] = [[]]
    for point in thinned(points, MAX_POINTS // 4):
        if point.y is None or not point.joined:
            stretches.append([])
        if point.y is not None:
            stretches[-1].append(point)
    return [stretch for stretch in stretches if stretch]


def _band(points: Sequence[PanelPoint], share: float, axis: Axis, frame: _Frame) -> Figure:
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


def _hover(line: PanelLine, point: PanelPoint) -> str:
    return f"<b>{plotly_text(line.label)}</b><br>{plotly_text(point.hover)}"


def _crosses(line: PanelLine, points: Sequence[PanelPoint], frame: _Frame) -> Figure:
    """A cross at the foot of the panel: this line failed here, while others have a number."""
    return {
        "type": "scatter",
        "name": plotly_text(line.label),
        "meta": _NO_NUMBER,
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
    heights = [frame.high - frame.low] * len(gaps)
    where = {"base": frame.low, "width": axis.column, "yaxis": frame.y_axis}
    return style.hatch([x for x, _ in gaps], heights, [why for _, why in gaps], **_UNNUMBERED, **where)


def hole_hatch(axis: Axis, low: float, high: float, y_axis: str = "y") -> Figure:
    """The hatch over the stretches without a run, from `low` to `high`."""
    middles = [(begin + end) / 2 for begin, end in axis.holes]
    where = {"base": low, "width": [end - begin for begin, end in axis.holes], "yaxis": y_axis}
    number = len(axis.holes)
    return style.hatch(middles, [high - low] * number, [NO_RUN] * number, **_UNNUMBERED, **where)


def hole_notes(axis: Axis, middle: float) -> list[Figure]:
    """What the hatch over each stretch without a run says; `middle` is its height in the figure, 0 to 1."""
    width = axis.range[1] - axis.range[0]
    return [
        annotation(
            NO_RUN,
            (begin + end) / 2,
            middle,
            xref="x",
            font=MUTED_FONT,
            bgcolor=light("page"),
            borderpad=2,
            textangle=0 if end - begin > _LEVEL_FROM_HOLE * width else -90,
            xanchor="center",
            yanchor="middle",
        )
        for begin, end in axis.holes
    ]


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


def _value_axis(frame: _Frame, *, signed: bool) -> Figure:
    common = {
        **style.axis(""),
        "domain": list(frame.domain),
        "showgrid": True,
        "automargin": True,
        "nticks": 5,
    }
    if not frame.log:
        exponent = {"exponentformat": "e"} if frame.high < _NO_PREFIX_BELOW else {}
        signs = {"tickformat": "+", "zeroline": True, "zerolinecolor": light("line")} if signed else {}
        return {**common, **exponent, **signs, "range": [frame.low, frame.high]}
    ticks = log_ticks(frame.low, frame.high)
    return {
        **common,
        "type": "log",
        "range": [math.log10(frame.low), math.log10(frame.high)],
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
    }


def shared_axis(axis: Axis, anchor: str) -> Figure:
    """The x axis below the panel whose y axis is `anchor`."""
    common = {**style.axis(""), "anchor": anchor, "range": axis.range, "showline": True, "tickfont": FONT}
    if axis.time:
        # Labels that stand level fit the margin: to measure them, Plotly would draw everything a second time.
        return {**common, "tickangle": 0, "type": "date"}
    return {**common, **style.version_ticks(axis.labels)}
