"""A waterfall as a plain Plotly dictionary: the old value, what was added and removed, the new value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.ui.charts import style
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.style import FONT, HOVER_TEXT, TRANSPARENT, Figure, annotation
from profiler.ui.theme import HATCH, light

_ROW_PX, _AXIS_PX, _VALUES_PX = 23, 34, 78
_THICKNESS = 0.66  # of a row


@dataclass(frozen=True)
class Bar:
    """One row: where it begins, how far it goes (negative: back), and its value as text."""

    label: str
    start: float
    length: float
    text: str
    role: str  # of the palette; "" for a hatch
    strong: bool = False  # the old and the new value
    opens: tuple[str, ...] = ()  # what a click on it opens; none: nothing
    selected: bool = False  # whether that is open


def figure(bars: Sequence[Bar]) -> Figure:
    """The bars from top to bottom, their values in a column at the right."""
    farthest = max(max(bar.start, bar.start + bar.length) for bar in bars)
    layout = style.layout(_ROW_PX * len(bars) + _AXIS_PX)
    layout["margin"] = {"l": 8, "r": _VALUES_PX, "t": 4, "b": _AXIS_PX, "pad": 0}
    layout["xaxis"] = {**style.axis(""), "showgrid": True, "range": [0, 1.02 * farthest], "nticks": 6}
    layout["yaxis"] = {
        **style.axis(""),
        "range": [len(bars) - 0.4, -0.6],
        "tickvals": list(range(len(bars))),
        "ticktext": [_label(bar) for bar in bars],
        "tickfont": FONT,
        "automargin": True,
    }
    layout["annotations"] = [_value(row, bar) for row, bar in enumerate(bars)]
    return {"data": [_trace(row, bar) for row, bar in enumerate(bars)], "layout": layout}


def _label(bar: Bar) -> str:
    text = plotly_text(bar.label)
    return f'<span style="color:{light("accent")}"><b>{text}</b></span>' if bar.selected else text


def _value(row: int, bar: Bar) -> Figure:
    text = plotly_text(bar.text)
    role = "ink" if bar.strong else bar.role if bar.role in ("better", "worse") else "muted"
    return annotation(
        f"<b>{text}</b>" if bar.strong else text,
        1.0,
        row,
        yref="y",
        xanchor="right",
        xshift=_VALUES_PX - 4,
        font={**FONT, "color": light(role)},
    )


def _trace(row: int, bar: Bar) -> Figure:
    if bar.role:
        marker: Figure = {"color": light(bar.role), "line": {"width": 1, "color": light(bar.role)}}
    else:
        pattern = style.hatch_pattern(size=6, solidity=0.3)
        marker = {"color": TRANSPARENT, "line": {"width": 1, "color": HATCH[0]}, "pattern": pattern}
    return {
        "type": "bar",
        "orientation": "h",
        "y": [row],
        "x": [bar.length],
        "base": [bar.start],
        "width": _THICKNESS,
        "marker": marker,
        # A click selects a bar, and Plotly would fade all others.
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
        "customdata": [list(bar.opens)],
        "hovertext": [f"<b>{plotly_text(bar.label)}</b><br>{plotly_text(bar.text)}"],
        "hovertemplate": HOVER_TEXT,
    }
