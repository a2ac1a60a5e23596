"""Modelled times over versions, each with its range, as a plain Plotly dictionary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from profiler.ui.charts import style
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.scales import log_ticks
from profiler.ui.charts.style import HOVER_TEXT, MUTED_FONT, Figure, annotation
from profiler.ui.theme import light

_HEIGHT_PX = 250
_ROOM = 1.5  # above and below the ranges, as a factor


@dataclass(frozen=True)
class ModelledTime:
    """One version's modelled time with its range, and the words that stand beside it; in one unit."""

    label: str
    hover: str
    likely: float
    low: float
    high: float


def figure(names: Sequence[str], times: Sequence[ModelledTime | None], unit: str, title: str) -> Figure:
    """A mark a version on a logarithmic axis, with a line through its range; none where there is no model."""
    layout = style.layout(_HEIGHT_PX)
    layout["margin"] = {"l": 8, "r": 12, "t": 26, "b": 40, "pad": 0}
    layout["hovermode"] = "closest"
    shown = [(at, time) for at, time in enumerate(times) if time is not None]
    low = min((time.low for _, time in shown), default=1.0) / _ROOM
    high = max((time.high for _, time in shown), default=10.0) * _ROOM
    layout["xaxis"] = {
        **style.axis(""),
        **style.version_ticks(names),
        "range": [-0.5, len(names) - 0.5],
        "showline": True,
    }
    layout["yaxis"] = {
        **style.axis(""),
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": log_ticks(low, high),
        "showgrid": True,
        "automargin": True,
    }
    words = f"<b>{plotly_text(title)}</b>, {plotly_text(unit)}, log"
    layout["annotations"] = [annotation(words, 0, 1, xanchor="left", yanchor="bottom", yshift=4)]
    marks = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [at for at, _ in shown],
        "y": [time.likely for _, time in shown],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [time.high - time.likely for _, time in shown],
            "arrayminus": [time.likely - time.low for _, time in shown],
            "color": light("neutral"),
            "thickness": 1.2,
            "width": 4,
        },
        "marker": {"size": 7, "color": light("ink")},
        "text": [plotly_text(time.label) for _, time in shown],
        "textposition": "middle right",
        "textfont": MUTED_FONT,
        "cliponaxis": False,
        "hovertext": [time.hover for _, time in shown],
        "hovertemplate": HOVER_TEXT,
    }
    return {"data": [marks], "layout": layout}
