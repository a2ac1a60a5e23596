"""One launch a side as a tick at its duration, as a plain Plotly dictionary."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.ui.charts import style
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.style import FONT, Figure
from profiler.ui.theme import light

_HEIGHT_PX = 150


def figure(sides: Sequence[tuple[str, float, str]], title: str) -> Figure:
    """One row per side: its name, number and the number as text.

    The axis begins at zero, because a single launch does not tell how far durations scatter.
    """
    highest = max((number for _, number, _ in sides), default=0.0) or 1.0
    last_row = len(sides) - 1
    layout = style.layout(_HEIGHT_PX)
    layout["margin"] = {"l": 8, "r": 8, "t": 14, "b": 40, "pad": 0}
    layout["xaxis"] = {
        **style.axis(title),
        "range": [0, highest * 1.1],
        "showgrid": True,
        "rangemode": "tozero",
    }
    layout["yaxis"] = {
        **style.axis(""),
        "tickvals": list(range(len(sides))),
        "ticktext": [plotly_text(name) for name, _, _ in reversed(sides)],
        "range": [-0.6, len(sides) - 0.3],
        "showgrid": True,
        "tickfont": FONT,
        "automargin": True,
    }
    traces = [
        {
            "type": "scatter",
            "x": [number],
            "y": [last_row - index],
            "mode": "markers+text",
            "text": [plotly_text(text)],
            "textposition": "top center",
            "textfont": FONT,
            "cliponaxis": False,
            "marker": {"symbol": "line-ns", "size": 13, "line": {"width": 3, "color": light("ink")}},
            "hovertemplate": f"<b>{plotly_text(name)}</b> {plotly_text(text)}<extra></extra>",
        }
        for index, (name, number, text) in enumerate(sides)
    ]
    return {"data": traces, "layout": layout}
