"""Shares over versions as stacked grey bars, labelled in the gutter; hatched where there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from profiler.ui import frame
from profiler.ui.frame import CLEAR, FONT, MUTED, Figure, note
from profiler.ui.scales import shorten
from profiler.ui.theme import HATCH, RAMP

GUTTER_PX = 160
_HEIGHT_PX, _TITLE_PX, _AXIS_PX = 170, 34, 46


def shares(
    title: str, caption: str, labels: Sequence[str], found: Mapping[str, Mapping[str, float] | str]
) -> Figure:
    """One bar a label, which adds up to 100 %; `found` has its shares, or why there are none."""
    total = _HEIGHT_PX + _TITLE_PX
    layout = frame.layout(total + _AXIS_PX)
    layout["barmode"] = "stack"
    layout["margin"] = {"l": 8, "r": GUTTER_PX, "t": _TITLE_PX, "b": _AXIS_PX, "pad": 0}
    layout["hovermode"] = "closest"
    names = list(dict.fromkeys(name for one in found.values() if not isinstance(one, str) for name in one))
    traces = [_class(name, RAMP[index][0], labels, found) for index, name in enumerate(names)]
    gaps = [(at, found[label]) for at, label in enumerate(labels) if isinstance(found.get(label), str)]
    traces.append(_gaps([(at, str(words)) for at, words in gaps]))
    layout["yaxis"] = {
        **frame.axis(""),
        "range": [0, 100],
        "tickvals": [0, 50, 100],
        "automargin": True,
        "showgrid": True,
    }
    layout["yaxis2"] = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
    ticks = [escape(shorten(label, 24)) for label in labels]
    layout["xaxis"] = {
        **frame.axis(""),
        "range": [-0.5, len(labels) - 0.5],
        "tickvals": list(range(len(labels))),
        "ticktext": ticks,
        "tickfont": FONT,
        "automargin": True,
    }
    head = f"<b>{escape(title)}</b>  {escape(caption)}"
    notes = [note(head, 0.0, 1.0, xanchor="left", yanchor="bottom", yshift=6)]
    for index, name in enumerate(reversed(names)):
        colour = RAMP[len(names) - 1 - index][0]
        text = f'<span style="fill:{colour}">■</span> {escape(name)}'
        height = 1 - (index + 0.5) / max(1, len(names))
        notes.append(note(text, 1.0, height, xanchor="left", yanchor="middle", xshift=10, font=MUTED))
    layout["annotations"] = notes
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
        "name": escape(name),
        "x": places,
        "y": numbers,
        "width": 0.72,
        "marker": {"color": colour, "line": {"width": 0}},
        "hovertext": [
            f"<b>{escape(labels[at])}</b><br>{escape(name)}: {number:.1f} %"
            for at, number in zip(places, numbers, strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _gaps(gaps: Sequence[tuple[int, str]]) -> Figure:
    pattern = {"shape": "/", "fgcolor": HATCH[0], "bgcolor": CLEAR, "size": 10, "solidity": 0.12}
    return {
        "type": "bar",
        "x": [at for at, _ in gaps],
        "y": [1.0 for _ in gaps],
        "yaxis": "y2",
        "width": 0.94,
        "marker": {"color": CLEAR, "line": {"width": 0}, "pattern": pattern},
        "hovertext": [escape(words) for _, words in gaps],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
