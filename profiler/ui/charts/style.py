"""What every chart has in common: fonts, axes, hover box, and the two ticks of a duration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profiler.ui.charts.scales import plotly_text, shorten
from profiler.ui.theme import light

Figure = dict[str, Any]
CONFIG = {"displayModeBar": False, "responsive": True}
FONT = {"family": '"Source Sans", "Source Sans 3", sans-serif', "size": 12.5, "color": light("ink")}
MUTED_FONT = {**FONT, "size": 12, "color": light("muted")}
_NAMED = 24  # versions that have room for their names side by side on a phone
TRANSPARENT = "rgba(0,0,0,0)"


def ticks(sides: Sequence[tuple[str, float, str]], title: str) -> Figure:
    """One launch a side: a tick each at its value, from zero, because nothing says how far it scatters."""
    frame = layout(150)
    frame["margin"] = {"l": 8, "r": 8, "t": 14, "b": 40, "pad": 0}
    high = max((number for _, number, _ in sides), default=0.0) or 1.0
    rows = len(sides)
    frame["xaxis"] = {**axis(title), "range": [0, high * 1.1], "showgrid": True, "rangemode": "tozero"}
    frame["yaxis"] = {
        **axis(""),
        "tickvals": list(range(rows)),
        "ticktext": [plotly_text(name) for name, _, _ in reversed(sides)],
        "range": [-0.6, rows - 0.3],
        "showgrid": True,
        "tickfont": FONT,
        "automargin": True,
    }
    traces = [
        {
            "type": "scatter",
            "x": [number],
            "y": [rows - 1 - row],
            "mode": "markers+text",
            "text": [plotly_text(text)],
            "textposition": "top center",
            "textfont": FONT,
            "cliponaxis": False,
            "marker": {"symbol": "line-ns", "size": 13, "line": {"width": 3, "color": light("ink")}},
            "hovertemplate": f"<b>{plotly_text(name)}</b> {plotly_text(text)}<extra></extra>",
        }
        for row, (name, number, text) in enumerate(sides)
    ]
    return {"data": traces, "layout": frame}


def axis(title: str) -> Figure:
    return {
        "title": {"text": plotly_text(title), "font": MUTED_FONT},
        "tickfont": MUTED_FONT,
        "showgrid": False,
        "gridcolor": light("grid"),
        "linecolor": light("line"),
        "zeroline": False,
        "ticklabelstandoff": 6,
        "fixedrange": True,
    }


def version_ticks(labels: Sequence[str]) -> Figure:
    """Version names under an axis; of very many only every second, third … as far as they have room."""
    places = list(range(0, len(labels), -(-len(labels) // _NAMED) or 1))
    names = [
        plotly_text(shorten(labels[place], 24 if len(labels) <= _NAMED // 2 else 16)) for place in places
    ]
    # Slanted names rise to their tick: others would lean over the right edge, where Plotly drops the last.
    return {"automargin": True, "tickvals": places, "ticktext": names, "autotickangles": [0, -35, -90]}


def layout(height: int) -> Figure:
    return {
        "height": height,
        "paper_bgcolor": TRANSPARENT,
        "plot_bgcolor": TRANSPARENT,
        "font": FONT,
        "showlegend": False,
        "barmode": "overlay",
        "dragmode": False,
        "hoverlabel": {
            "bgcolor": light("surface"),
            "bordercolor": light("line"),
            "font": FONT,
            "align": "left",
        },
    }


def annotation(text: str, x: float, y: float, **other: Any) -> Figure:
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "showarrow": False,
        "font": FONT,
        **other,
    }
