"""Shares over versions as stacked grey bars labelled at the right, as a plain Plotly dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profiler.ui.charts import share_areas, style
from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.style import FONT, HOVER_TEXT, TRANSPARENT, Figure, annotation
from profiler.ui.theme import RAMP

_HEIGHT_PX, _TITLE_PX, _AXIS_PX = 260, 34, 46
Shares = Mapping[str, float]  # percent by class; they add up to 100


def figure(
    title: str,
    caption: str,
    labels: Sequence[str],
    bars: Mapping[str, Shares | str],
    gutter: int = 8,
) -> Figure:
    """One bar per label: its shares, or a hatch with the reason why it has none.

    `gutter` is what the chart above leaves at its right, so that both have the same columns; the names of the
    classes may need more.
    """
    classes = dict.fromkeys(name for bar in bars.values() if not isinstance(bar, str) for name in bar)
    layout = style.layout(_TITLE_PX + _HEIGHT_PX + _AXIS_PX)
    layout["barmode"] = "stack"
    right = max(gutter, share_areas.labels_px(list(classes), has_numbers=False))
    layout["margin"] = {"l": 8, "r": right, "t": _TITLE_PX, "b": _AXIS_PX, "pad": 0}
    layout["hovermode"] = "closest"
    layout["yaxis"] = {
        **style.axis(""),
        "range": [0, 100],
        "tickvals": [0, 50, 100],
        "automargin": True,
        "showgrid": True,
    }
    # The hatch has an axis of its own: on the stack's it would stand on top of the bars.
    layout["yaxis2"] = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
    layout["xaxis"] = {
        **style.axis(""),
        "range": [-0.5, len(labels) - 0.5],
        "tickfont": FONT,
        **style.version_ticks(labels),
    }
    head = f"<b>{plotly_text(title)}</b>  {plotly_text(caption)}"
    layout["annotations"] = [annotation(head, 0.0, 1.0, xanchor="left", yanchor="bottom", yshift=6)]
    known = [bar for label in labels if isinstance(bar := bars.get(label), Mapping)]
    shares = {name: known[-1].get(name, 0.0) for name in classes}
    layout["annotations"] += share_areas.swatch_labels(shares, has_numbers=False, height_px=_HEIGHT_PX)
    traces = [_class(name, RAMP[index % len(RAMP)][0], labels, bars) for index, name in enumerate(classes)]
    gaps = [(index, bars[label]) for index, label in enumerate(labels) if isinstance(bars.get(label), str)]
    traces.append(_gaps([(index, str(reason)) for index, reason in gaps]))
    return {"data": traces, "layout": layout}


def _class(name: str, colour: str, labels: Sequence[str], bars: Mapping[str, Shares | str]) -> Figure:
    """The share of one class in every bar."""
    positions, numbers = [], []
    for index, label in enumerate(labels):
        bar = bars.get(label)
        if bar is not None and not isinstance(bar, str):
            positions.append(index)
            numbers.append(bar.get(name, 0.0))
    return {
        "type": "bar",
        "name": plotly_text(name),
        "x": positions,
        "y": numbers,
        "width": 0.72,
        "marker": {"color": colour, "line": {"width": 0}},
        "hovertext": [
            f"<b>{plotly_text(labels[index])}</b><br>{plotly_text(name)}: {number:.1f} %"
            for index, number in zip(positions, numbers, strict=True)
        ],
        "hovertemplate": HOVER_TEXT,
    }


def _gaps(gaps: Sequence[tuple[int, str]]) -> Figure:
    """A hatched column at each index, with its reason under the pointer."""
    return {
        "type": "bar",
        "x": [index for index, _ in gaps],
        "y": [1.0 for _ in gaps],
        "yaxis": "y2",
        "width": 0.94,
        "marker": {"color": TRANSPARENT, "line": {"width": 0}, "pattern": style.hatch_pattern()},
        "hovertext": [plotly_text(reason) for _, reason in gaps],
        "hovertemplate": HOVER_TEXT,
    }
