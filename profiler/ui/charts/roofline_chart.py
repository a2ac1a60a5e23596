"""A roofline as a plain Plotly dictionary: slopes, ceilings, points and arrows on two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from profiler.evidence import Value, formatting
from profiler.ui.charts import label_sides, style
from profiler.ui.charts.scales import axis_share, log_ticks, plotly_text
from profiler.ui.charts.style import FONT, MUTED_FONT, Figure, annotation
from profiler.ui.theme import light

_HEIGHT_PX, _AXIS_PX, _FLAG_PX = 430, 52, 17
_WIDTH_PX, _PLOT_PX = 700, 290  # for which labels are placed
_LABEL_SHARE = 0.045  # of the chart's height, which a line of text takes
_DECADES = 3.0  # that an axis has at least
SYMBOLS = {"DRAM": "circle", "L2": "square", "L1": "diamond"}


@dataclass(frozen=True)
class Slope:
    """A level of memory: bytes a second."""

    label: str
    bytes_per_second: float


@dataclass(frozen=True)
class Ceiling:
    """A precision's most operations a second."""

    label: str
    peak: float


@dataclass(frozen=True)
class Mark:
    """One point: operations per byte, operations a second."""

    x: float
    y: float
    label: str
    hover: str
    symbol: str = "circle"
    strong: bool = True
    row: str = ""  # what the points of one height are together; written once, at their right


@dataclass(frozen=True)
class Arrow:
    """From one point to another."""

    start: tuple[float, float]
    end: tuple[float, float]


def figure(
    slopes: Sequence[Slope],
    ceilings: Sequence[Ceiling],
    marks: Sequence[Mark],
    arrows: Sequence[Arrow] = (),
    title: str = "operations per byte",
) -> Figure:
    """The chart; every line and point has its name beside it. Marks must not be empty."""
    xs, ys = _ranges(slopes, ceilings, marks)
    layout = style.layout(_HEIGHT_PX)
    flags = len(slopes) + 1 if ceilings else 0
    layout["margin"] = {"l": 8, "r": 16, "t": 30 + _FLAG_PX * flags, "b": _AXIS_PX, "pad": 0}
    layout["hovermode"] = "closest"
    scale = formatting.scale_for("FLOP/s", ys[1] / 10)
    layout["xaxis"] = {**_axis(xs, 1.0, title), "showline": True}
    layout["yaxis"] = {**_axis(ys, scale.divisor, ""), "showgrid": True}
    layout["annotations"] = [
        annotation(f"<b>{plotly_text(scale.unit)}</b>", 0, 1, yanchor="bottom", xanchor="left", yshift=4)
    ]
    layout["shapes"] = []
    most = max((one.peak for one in ceilings), default=ys[1])
    traces = [_slope(one, xs, ys, most) for one in slopes]
    traces += [_ceiling(one, slopes, xs) for one in ceilings]
    for text, shape in _flags(slopes, ceilings, ys):
        layout["annotations"].append(text)
        layout["shapes"].append(shape)
    layout["annotations"] += _ceiling_labels(ceilings, ys)
    layout["annotations"] += [_arrow(one) for one in arrows]
    layout["annotations"] += _row_labels(marks)
    traces += _rows(marks)
    traces.append(_marks(marks, xs, ys))
    return {"data": traces, "layout": layout}


def _ranges(
    slopes: Sequence[Slope], ceilings: Sequence[Ceiling], marks: Sequence[Mark]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where everything is seen: the points, the knees of the highest ceiling, every ceiling."""
    top = max((one.peak for one in ceilings), default=0.0)
    knees = [top / one.bytes_per_second for one in slopes] if top else []
    xs = [one.x for one in marks] + knees
    ys = [one.y for one in marks] + [one.peak for one in ceilings]
    return _wide(min(xs) / 4, max(xs) * 12), _wide(min(ys) / 4, max(ys) * (1.25 if top else 8))


def _wide(low: float, high: float) -> tuple[float, float]:
    room = 10 ** max(0.0, _DECADES - math.log10(high / low))
    return low / room, high


def _axis(span: tuple[float, float], divisor: float, title: str) -> Figure:
    low, high = span
    marks = log_ticks(low / divisor, high / divisor)
    return {
        **style.axis(title),
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": [mark * divisor for mark in marks],
        "ticktext": [f"{mark:,.10g}".replace(",", formatting.THIN) for mark in marks],
        "automargin": True,
    }


def _slope(slope: Slope, xs: tuple[float, float], ys: tuple[float, float], most: float) -> Figure:
    """Up to the highest ceiling, else to the chart's edge."""
    start = max(xs[0], ys[0] / slope.bytes_per_second)
    end = min(xs[1], most / slope.bytes_per_second)
    rate = formatting.quantity(Value(slope.bytes_per_second, "byte/s"))
    return {
        **_line("solid"),
        "x": [start, end],
        "y": [start * slope.bytes_per_second, end * slope.bytes_per_second],
        "hovertemplate": f"<b>{plotly_text(slope.label)}</b><br>{plotly_text(str(rate))}<extra></extra>",
    }


def _ceiling(ceiling: Ceiling, slopes: Sequence[Slope], xs: tuple[float, float]) -> Figure:
    steepest = max((one.bytes_per_second for one in slopes), default=0.0)
    start = ceiling.peak / steepest if steepest else xs[0]
    return {
        **_line("solid"),
        "x": [max(start, xs[0]), xs[1]],
        "y": [ceiling.peak, ceiling.peak],
        "hovertemplate": f"<b>{plotly_text(ceiling.label)}</b><extra></extra>",
    }


def _line(dash: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "line": {"color": light("neutral"), "width": 1.5, "dash": dash},
    }


def _flags(
    slopes: Sequence[Slope], ceilings: Sequence[Ceiling], ys: tuple[float, float]
) -> list[tuple[Figure, Figure]]:
    """A name above each knee on a pole of its own height: the leftmost stands highest, so none crosses."""
    top = max((one.peak for one in ceilings), default=0.0)
    found = []
    order = sorted(slopes, key=lambda one: one.bytes_per_second) if top else []
    place = axis_share(top, *ys, log=True) if top else 0.0
    for index, slope in enumerate(order):
        knee, height = top / slope.bytes_per_second, _FLAG_PX * (index + 1)
        rate = formatting.quantity(Value(slope.bytes_per_second, "byte/s"))
        look = {"xanchor": "left", "yanchor": "bottom", "xshift": 2, "yshift": height - 2, "font": MUTED_FONT}
        text = annotation(
            f"{plotly_text(slope.label)} {plotly_text(str(rate))}", math.log10(knee), place, xref="x", **look
        )
        pole = {
            "type": "line",
            "xref": "x",
            "yref": "paper",  # a pole tied to the axis would end at the plot's edge
            "ysizemode": "pixel",
            "yanchor": place,
            "x0": knee,
            "x1": knee,
            "y0": 0,
            "y1": height + 12,
            "line": {"color": light("line"), "width": 1},
        }
        found.append((text, pole))
    return found


def _ceiling_labels(ceilings: Sequence[Ceiling], ys: tuple[float, float]) -> list[Figure]:
    """Names at the right end above each ceiling; those that lie too close share one line of text."""
    groups: list[list[Ceiling]] = []
    for one in sorted(ceilings, key=lambda one: -one.peak):
        apart = math.log10(groups[-1][0].peak / one.peak) if groups else math.inf
        if apart < _LABEL_SHARE * math.log10(ys[1] / ys[0]):
            groups[-1].append(one)
        else:
            groups.append([one])
    return [
        annotation(
            plotly_text(
                ", ".join(f"{one.label} {formatting.quantity(Value(one.peak, 'FLOP/s'))}" for one in group)
            ),
            1.0,
            math.log10(group[0].peak),
            yref="y",
            xanchor="right",
            yanchor="bottom",
            font=MUTED_FONT,
        )
        for group in groups
    ]


def _last(marks: Sequence[Mark]) -> list[Mark]:
    """The rightmost point of each named row."""
    last: dict[tuple[str, float], Mark] = {}
    for mark in marks:
        key = mark.row, mark.y
        if mark.row and (key not in last or mark.x > last[key].x):
            last[key] = mark
    return list(last.values())


def _row_labels(marks: Sequence[Mark]) -> list[Figure]:
    """What the points of one height are, once, right of the last of them."""
    look = {"xref": "x", "yref": "y", "xanchor": "left", "yanchor": "middle", "xshift": 8, "font": FONT}
    return [
        annotation(f"<b>{plotly_text(one.row)}</b>", math.log10(one.x), math.log10(one.y), **look)
        for one in _last(marks)
    ]


def _rows(marks: Sequence[Mark]) -> list[Figure]:
    """A thin stroke through the points that are one work seen from several levels."""
    by_work: dict[float, list[Mark]] = {}
    for mark in marks:
        by_work.setdefault(mark.y, []).append(mark)
    return [
        {
            **_line("dot"),
            "x": [min(one.x for one in row), max(one.x for one in row)],
            "y": [height, height],
            "hoverinfo": "skip",
        }
        for height, row in by_work.items()
        if len(row) > 1
    ]


def _marks(marks: Sequence[Mark], xs: tuple[float, float], ys: tuple[float, float]) -> Figure:
    inks = [light("ink" if one.strong else "muted") for one in marks]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [one.x for one in marks],
        "y": [one.y for one in marks],
        "text": [plotly_text(one.label) for one in marks],
        "textposition": _places(marks, xs, ys),
        "textfont": FONT,
        "marker": {"symbol": [one.symbol for one in marks], "size": 9, "color": inks},
        "cliponaxis": False,
        "hovertext": [one.hover for one in marks],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _places(marks: Sequence[Mark], xs: tuple[float, float], ys: tuple[float, float]) -> list[str]:
    """The side of each label, on a chart of middling width."""
    places = [
        (_WIDTH_PX * axis_share(one.x, *xs, log=True), _PLOT_PX * axis_share(one.y, *ys, log=True))
        for one in marks
    ]
    ends = {one: place for one, place in zip(marks, places, strict=True) if one in _last(marks)}
    taken = [label_sides.box_right_of(*place, one.row) for one, place in ends.items()]
    return label_sides.label_sides(places, [one.label for one in marks], taken)


def _arrow(arrow: Arrow) -> Figure:
    (x, y), (to_x, to_y) = arrow.start, arrow.end
    return {
        "x": math.log10(to_x),
        "y": math.log10(to_y),
        "ax": math.log10(x),
        "ay": math.log10(y),
        "xref": "x",
        "yref": "y",
        "axref": "x",
        "ayref": "y",
        "text": "",
        "showarrow": True,
        "arrowhead": 2,
        "arrowsize": 1.1,
        "arrowwidth": 1.3,
        "arrowcolor": light("ink"),
        "standoff": 7,
        "startstandoff": 6,
    }
