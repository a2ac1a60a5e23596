"""Shares over versions as stacked grey bars, with a legend below; hatched where there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profiler.ui.charts import style
from profiler.ui.charts.scales import plotly_text
from profiler.ui.charts.style import FONT, MUTED_FONT, TRANSPARENT, Figure, annotation
from profiler.ui.theme import HATCH, RAMP

_HEIGHT_PX, _TITLE_PX, _AXIS_PX, _LEGEND_PX = 260, 34, 46, 60


def figure(
    title: str,
    caption: str,
    labels: Sequence[str],
    found: Mapping[str, Mapping[str, float] | str],
    gutter: int = 8,
) -> Figure:
    """One bar a label, which adds up to 100 %; `found` has its shares, or why there are none.

    `gutter` is what a figure above leaves at its right, so that both have the same columns.
    """
    total = _HEIGHT_PX + _TITLE_PX
    layout = style.layout(total + _AXIS_PX + _LEGEND_PX)
    layout["barmode"] = "stack"
    layout["margin"] = {"l": 8, "r": gutter, "t": _TITLE_PX, "b": _AXIS_PX + _LEGEND_PX, "pad": 0}
    layout["hovermode"] = "closest"
    names = list(dict.fromkeys(name for one in found.values() if not isinstance(one, str) for name in one))
    traces = [_class(name, RAMP[index][0], labels, found) for index, name in enumerate(names)]
    gaps = [(at, found[label]) for at, label in enumerate(labels) if isinstance(found.get(label), str)]
    traces.append(_gaps([(at, str(words)) for at, words in gaps]))
    layout["yaxis"] = {
        **style.axis(""),
        "range": [0, 100],
        "tickvals": [0, 50, 100],
        "automargin": True,
        "showgrid": True,
    }
    layout["yaxis2"] = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
    layout["xaxis"] = {
        **style.axis(""),
        "range": [-0.5, len(labels) - 0.5],
        "tickfont": FONT,
        **style.version_ticks(labels),
    }
    head = f"<b>{plotly_text(title)}</b>  {plotly_text(caption)}"
    layout["annotations"] = [annotation(head, 0.0, 1.0, xanchor="left", yanchor="bottom", yshift=6)]
    layout["showlegend"] = True
    layout["legend"] = {
        "orientation": "h",
        "font": MUTED_FONT,
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yref": "container",
        "yanchor": "bottom",
        "itemclick": False,
        "itemdoubleclick": False,
        "itemwidth": 30,
    }
    return {"data": traces, "layout": layout}


def _class(
    name: str, colour: str, labels: Sequence[str], found: Mapping[str, Mapping[str, float] | str]
) -> Figure:
    places, numbers = [], []
    for at, label in enumerate(labels):
        one = found.get(label)
        if one is not None and not isinstance(one, str):
            places.append(at)
            numbers.append(one.get(name, 0.0))
    return {
        "type": "bar",
        "name": plotly_text(name),
        "x": places,
        "y": numbers,
        "width": 0.72,
        "marker": {"color": colour, "line": {"width": 0}},
        "hovertext": [
            f"<b>{plotly_text(labels[at])}</b><br>{plotly_text(name)}: {number:.1f} %"
            for at, number in zip(places, numbers, strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _gaps(gaps: Sequence[tuple[int, str]]) -> Figure:
    pattern = {"shape": "/", "fgcolor": HATCH[0], "bgcolor": TRANSPARENT, "size": 10, "solidity": 0.12}
    return {
        "type": "bar",
        "x": [at for at, _ in gaps],
        "y": [1.0 for _ in gaps],
        "yaxis": "y2",
        "showlegend": False,
        "width": 0.94,
        "marker": {"color": TRANSPARENT, "line": {"width": 0}, "pattern": pattern},
        "hovertext": [plotly_text(words) for _, words in gaps],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
