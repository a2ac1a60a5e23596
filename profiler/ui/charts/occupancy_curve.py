"""Active warps per SM over one resource, as a plain Plotly dictionary."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.ui.charts import style
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.style import FONT, Figure, annotation
from profiler.ui.theme import light

_HEIGHT_PX = 210


def figure(
    title: str,
    amounts: Sequence[float],
    warps: Sequence[float | None],
    max_warps: float | None,
    own: tuple[float, float, str] | None,
) -> Figure:
    """The curve as steps; `own` marks the launch's own amount and warps, with a label."""
    highest = max((number for number in warps if number is not None), default=0.0)
    layout = style.layout(_HEIGHT_PX)
    layout["margin"] = {"l": 8, "r": 12, "t": 26, "b": 40, "pad": 0}
    layout["hovermode"] = "x"
    layout["xaxis"] = {
        **style.axis(title),
        "range": [0, max(amounts, default=1.0)],
        "nticks": 7,
        "showline": True,
    }
    layout["yaxis"] = {
        **style.axis(""),
        "range": [0, 1.18 * max(max_warps or 0.0, highest, 1.0)],
        "showgrid": True,
        "automargin": True,
        "nticks": 5,
    }
    layout["annotations"] = [
        annotation("<b>warps per SM</b>", 0, 1, xanchor="left", yanchor="bottom", yshift=4)
    ]
    curve = {
        "type": "scatter",
        "mode": "lines",
        "x": list(amounts),
        "y": list(warps),
        # As many warps as at the next amount up: that one is what a launch in between is rounded to.
        "line": {"color": light("neutral"), "width": 1.5, "shape": "vh"},
        "connectgaps": False,
        "hovertemplate": "%{x:,}: %{y} warps<extra></extra>",
    }
    return {"data": [curve, *([_own_mark(*own, max(amounts))] if own else [])], "layout": layout}


def _own_mark(x: float, y: float, label: str, right_end: float) -> Figure:
    side = "top right" if x < 0.35 * right_end else "top left" if x > 0.65 * right_end else "top center"
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [x],
        "y": [y],
        "text": [plotly_text(label)],
        "textposition": side,
        "textfont": FONT,
        "marker": {"size": 9, "color": light("ink")},
        "cliponaxis": False,
        "hoverinfo": "skip",
    }
