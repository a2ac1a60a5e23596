"""A roofline as a plain Plotly dictionary: slopes, ceilings, points and arrows on two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.ui.charts import style
from profiler.ui.charts.labels import box_right_of, label_sides, plotly_text
from profiler.ui.charts.scales import axis_share, log_ticks
from profiler.ui.charts.style import FONT, HOVER_TEXT, MUTED_FONT, Figure, annotation
from profiler.ui.theme import light

_HEIGHT_PX, _AXIS_PX, _FLAG_PX = 430, 52, 17
# The plot for which label positions are chosen: Plotly tells a server nothing of the window's size.
_ASSUMED_WIDTH_PX, _ASSUMED_HEIGHT_PX = 700, 290
_LABEL_SHARE = 0.045  # of the chart's height, which a line of text takes
_FEWEST_DECADES = 3.0  # of an axis
SYMBOLS = {"DRAM": "circle", "L2": "square", "L1": "diamond"}
Span = tuple[float, float]  # the ends of an axis


@dataclass(frozen=True)
class Slope:
    """The bandwidth of a level of memory, which is a slope under the ceilings."""

    label: str
    bytes_per_second: float


@dataclass(frozen=True)
class Ceiling:
    """The most operations a second of a precision."""

    label: str
    peak: float


@dataclass(frozen=True)
class KernelMark:
    """A kernel's point: operations per byte and operations a second."""

    x: float
    y: float
    label: str
    hover: str
    symbol: str = "circle"
    strong: bool = True
    row: str = ""  # what the points of one height have in common; written once, at the right of the last


@dataclass(frozen=True)
class Arrow:
    """An arrow from one point to another, each as (x, y)."""

    start: tuple[float, float]
    end: tuple[float, float]


def figure(
    slopes: Sequence[Slope],
    ceilings: Sequence[Ceiling],
    marks: Sequence[KernelMark],
    arrows: Sequence[Arrow] = (),
    title: str = "operations per byte",
) -> Figure:
    """The chart; every line and point has its name beside it. Marks must not be empty."""
    xs, ys = _spans(slopes, ceilings, marks)
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
    top = max((ceiling.peak for ceiling in ceilings), default=ys[1])
    traces = [_slope(slope, xs, ys, top) for slope in slopes]
    traces += [_ceiling(ceiling, slopes, xs) for ceiling in ceilings]
    for flag, pole in _flags(slopes, ceilings, ys):
        layout["annotations"].append(flag)
        layout["shapes"].append(pole)
    layout["annotations"] += _ceiling_labels(ceilings, ys)
    layout["annotations"] += [_arrow(arrow) for arrow in arrows]
    layout["annotations"] += _row_labels(marks)
    traces += _rows(marks)
    traces.append(_marks(marks, xs, ys))
    return {"data": traces, "layout": layout}


def _spans(
    slopes: Sequence[Slope], ceilings: Sequence[Ceiling], marks: Sequence[KernelMark]
) -> tuple[Span, Span]:
    """Where everything is seen: the points, every ceiling, and where the slopes meet the highest one."""
    top = max((ceiling.peak for ceiling in ceilings), default=0.0)
    knees = [top / slope.bytes_per_second for slope in slopes] if top else []
    xs = [mark.x for mark in marks] + knees
    ys = [mark.y for mark in marks] + [ceiling.peak for ceiling in ceilings]
    return _widened(min(xs) / 4, max(xs) * 12), _widened(min(ys) / 4, max(ys) * (1.25 if top else 8))


def _widened(low: float, high: float) -> Span:
    """The span made longer at its lower end where it has too few decades to be read as logarithmic."""
    return low / 10 ** max(0.0, _FEWEST_DECADES - math.log10(high / low)), high


def _axis(span: Span, divisor: float, title: str) -> Figure:
    low, high = span
    ticks = log_ticks(low / divisor, high / divisor)
    return {
        **style.axis(title),
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": [tick * divisor for tick in ticks],
        "ticktext": [f"{tick:,.10g}".replace(",", formatting.THIN) for tick in ticks],
        "automargin": True,
    }


def _slope(slope: Slope, xs: Span, ys: Span, top: float) -> Figure:
    """Up to the highest ceiling, else to the chart's edge."""
    start = max(xs[0], ys[0] / slope.bytes_per_second)
    end = min(xs[1], top / slope.bytes_per_second)
    return {
        **_line("solid"),
        "x": [start, end],
        "y": [start * slope.bytes_per_second, end * slope.bytes_per_second],
        "hovertemplate": f"<b>{plotly_text(slope.label)}</b><br>{plotly_text(_rate(slope))}<extra></extra>",
    }


def _rate(slope: Slope) -> str:
    return str(formatting.quantity(Value(slope.bytes_per_second, "byte/s")))


def _ceiling(ceiling: Ceiling, slopes: Sequence[Slope], xs: Span) -> Figure:
    """From the steepest slope to the right edge."""
    steepest = max((slope.bytes_per_second for slope in slopes), default=0.0)
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


def _flags(slopes: Sequence[Slope], ceilings: Sequence[Ceiling], ys: Span) -> list[tuple[Figure, Figure]]:
    """The name of each slope above its knee, on a pole of its own height.

    The leftmost stands highest, so that no name crosses another's pole.
    """
    if not ceilings:
        return []
    top = max(ceiling.peak for ceiling in ceilings)
    base = axis_share(top, *ys, log=True)
    flags = []
    for index, slope in enumerate(sorted(slopes, key=lambda slope: slope.bytes_per_second)):
        knee, height = top / slope.bytes_per_second, _FLAG_PX * (index + 1)
        text = annotation(
            f"{plotly_text(slope.label)} {plotly_text(_rate(slope))}",
            math.log10(knee),
            base,
            xref="x",
            xanchor="left",
            yanchor="bottom",
            xshift=2,
            yshift=height - 2,
            font=MUTED_FONT,
        )
        pole = {
            "type": "line",
            "xref": "x",
            "yref": "paper",  # a pole tied to the axis would end at the plot's edge
            "ysizemode": "pixel",
            "yanchor": base,
            "x0": knee,
            "x1": knee,
            "y0": 0,
            "y1": height + 12,
            "line": {"color": light("line"), "width": 1},
        }
        flags.append((text, pole))
    return flags


def _ceiling_labels(ceilings: Sequence[Ceiling], ys: Span) -> list[Figure]:
    """Names at the right end above each ceiling; those that lie too close share one line of text."""
    groups: list[list[Ceiling]] = []
    for ceiling in sorted(ceilings, key=lambda ceiling: -ceiling.peak):
        decades_below = math.log10(groups[-1][0].peak / ceiling.peak) if groups else math.inf
        if decades_below < _LABEL_SHARE * math.log10(ys[1] / ys[0]):
            groups[-1].append(ceiling)
        else:
            groups.append([ceiling])
    return [
        annotation(
            plotly_text(
                ", ".join(
                    f"{ceiling.label} {formatting.quantity(Value(ceiling.peak, 'FLOP/s'))}"
                    for ceiling in group
                )
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


def _last_of_rows(marks: Sequence[KernelMark]) -> list[KernelMark]:
    """The rightmost point of each named row."""
    last: dict[tuple[str, float], KernelMark] = {}
    for mark in marks:
        key = mark.row, mark.y
        if mark.row and (key not in last or mark.x > last[key].x):
            last[key] = mark
    return list(last.values())


def _row_labels(marks: Sequence[KernelMark]) -> list[Figure]:
    """The name of each row, right of its last point."""
    return [
        annotation(
            f"<b>{plotly_text(mark.row)}</b>",
            math.log10(mark.x),
            math.log10(mark.y),
            xref="x",
            yref="y",
            xanchor="left",
            yanchor="middle",
            xshift=8,
            font=FONT,
        )
        for mark in _last_of_rows(marks)
    ]


def _rows(marks: Sequence[KernelMark]) -> list[Figure]:
    """A thin stroke through the points that are one rate of work seen from several levels of memory."""
    by_height: dict[float, list[KernelMark]] = {}
    for mark in marks:
        by_height.setdefault(mark.y, []).append(mark)
    return [
        {
            **_line("dot"),
            "x": [min(mark.x for mark in row), max(mark.x for mark in row)],
            "y": [height, height],
            "hoverinfo": "skip",
        }
        for height, row in by_height.items()
        if len(row) > 1
    ]


def _marks(marks: Sequence[KernelMark], xs: Span, ys: Span) -> Figure:
    colours = [light("ink" if mark.strong else "muted") for mark in marks]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [mark.x for mark in marks],
        "y": [mark.y for mark in marks],
        "text": [plotly_text(mark.label) for mark in marks],
        "textposition": _sides(marks, xs, ys),
        "textfont": FONT,
        "marker": {"symbol": [mark.symbol for mark in marks], "size": 9, "color": colours},
        "cliponaxis": False,
        "hovertext": [mark.hover for mark in marks],
        "hovertemplate": HOVER_TEXT,
    }


def _sides(marks: Sequence[KernelMark], xs: Span, ys: Span) -> list[str]:
    """The side of each label, on a chart of middling width."""
    points = [
        (
            _ASSUMED_WIDTH_PX * axis_share(mark.x, *xs, log=True),
            _ASSUMED_HEIGHT_PX * axis_share(mark.y, *ys, log=True),
        )
        for mark in marks
    ]
    last = _last_of_rows(marks)
    last_points = {mark: point for mark, point in zip(marks, points, strict=True) if mark in last}
    row_labels = [box_right_of(*point, mark.row) for mark, point in last_points.items()]
    return label_sides(points, [mark.label for mark in marks], row_labels)


def _arrow(arrow: Arrow) -> Figure:
    # An arrow is an annotation without text; on a logarithmic axis an annotation's place is a log10.
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
