"""What every chart has in common: fonts, axes, hover box, annotations, the hatch of what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profiler.ui.charts.labels import plotly_text, shorten
from profiler.ui.theme import HATCH, light

Figure = dict[str, Any]  # of Plotly: {"data": traces, "layout": …}, or a part of one
FONT = {"family": '"Source Sans", "Source Sans 3", sans-serif', "size": 12.5, "color": light("ink")}
MUTED_FONT = {**FONT, "size": 12, "color": light("muted")}
TRANSPARENT = "rgba(0,0,0,0)"
# What a trace shows under the pointer: its own text, without the box that names the trace.
HOVER_TEXT = "%{hovertext}<extra></extra>"
_MOST_TICK_LABELS = 24  # version names that have room side by side on a phone


def layout(height: int) -> Figure:
    """The layout of a chart of that height in pixels, without axes and margins."""
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


def axis(title: str) -> Figure:
    """An axis without grid and zero line, which a reader cannot drag or zoom."""
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


def version_ticks(names: Sequence[str]) -> Figure:
    """Version names under an axis; of very many only every second, third … so that they have room."""
    step = -(-len(names) // _MOST_TICK_LABELS) or 1
    positions = list(range(0, len(names), step))
    limit = 24 if len(names) <= _MOST_TICK_LABELS // 2 else 16
    return {
        "automargin": True,
        "tickvals": positions,
        "ticktext": [plotly_text(shorten(names[position], limit)) for position in positions],
        # Negative angles: a name that slants the other way would lean over the right edge, where Plotly
        # drops the last one.
        "autotickangles": [0, -35, -90],
    }


def annotation(text: str, x: float, y: float, **properties: Any) -> Figure:
    """A text at shares of the plot's width and height, unless `xref` or `yref` says otherwise."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "showarrow": False,
        "font": FONT,
        **properties,
    }


def hatch_pattern(*, size: int = 10, solidity: float = 0.12) -> Figure:
    """The hatch of a bar that stands for no number (`marker.pattern`; shapes have no pattern)."""
    return {"shape": "/", "fgcolor": HATCH[0], "bgcolor": TRANSPARENT, "size": size, "solidity": solidity}


def hatch(x: Sequence[Any], y: Sequence[Any], reasons: Sequence[str], **properties: Any) -> Figure:
    """Hatched bars in the place of numbers that are not there, each with its reason under the pointer."""
    return {
        "type": "bar",
        "x": list(x),
        "y": list(y),
        "marker": {"color": TRANSPARENT, "line": {"width": 0}, "pattern": hatch_pattern()},
        "hovertext": list(map(plotly_text, reasons)),
        "hovertemplate": HOVER_TEXT,
        **properties,
    }
