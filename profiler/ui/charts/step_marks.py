"""The mark of a step on a line as plain Plotly dictionaries: a triangle, and a bar over where it can lie."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.style import Figure
from profiler.ui.theme import light


def traces(
    x: float, y: float, possible: Sequence[float], axis: str, *, rises: bool, role: str, hover: Sequence[str]
) -> list[Figure]:
    """The triangle at the likeliest position, and under it the bar from the first to the last possible one.

    `role` is the colour's in the palette, `hover` the lines under the pointer.
    """
    common = {
        "type": "scatter",
        "yaxis": axis,
        "cliponaxis": False,
        "hovertemplate": f"{'<br>'.join(map(plotly_text, hover))}<extra></extra>",
    }
    colour = light(role)
    triangle = {
        **common,
        "name": "step",
        "mode": "markers",
        "marker": {"symbol": "triangle-up" if rises else "triangle-down", "size": 13, "color": colour},
        "x": [x],
        "y": [y],
    }
    if len(set(possible)) < 2:  # a bar without length
        return [triangle]
    bar = {
        **common,
        "name": "step, can lie in",
        "mode": "lines",
        "line": {"color": colour, "width": 6},
        "opacity": 0.35,
        "x": [min(possible), max(possible)],
        "y": [y, y],
    }
    return [bar, triangle]
