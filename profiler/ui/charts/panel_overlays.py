"""What lies over or under the lines of a panel: reference levels, noise field, samples, callouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.ui.charts.labels import plotly_text
from profiler.ui.charts.style import FONT, MUTED_FONT, TRANSPARENT, Figure, annotation
from profiler.ui.theme import light

_BAND_OPACITY, _FIELD_OPACITY, _SAMPLE_OPACITY = 0.13, 0.7, 0.35
_SAMPLE_PX = 3
_CALLOUT_LINE_PX = 15
CALLOUT = "callout"  # by this name toolbar/panels.js finds the labels of change points


@dataclass(frozen=True)
class Reference:
    """A level that lines are read against: a floor, a baseline, a goal, a budget."""

    label: str  # with its number, for the gutter
    y: float
    dash: str = "solid"  # as Plotly names them: solid, dash, dot


@dataclass(frozen=True)
class Callout:
    """A change point with its words: a vertical line from its place on the line to the label."""

    x: float
    y: float
    title: str  # sign, word, size, line and date
    detail: str  # what changed with it and what did not
    role: str  # of the colour in the palette
    above: bool  # whether the label stands above the lines


def reference_line(reference: Reference, y_axis: str) -> Figure:
    """The level across the whole panel, as a shape."""
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": y_axis,
        "y0": reference.y,
        "y1": reference.y,
        "layer": "below",
        "line": {"color": light("muted"), "width": 1, "dash": reference.dash},
    }


def noise_field(low: float, high: float, y_axis: str) -> Figure:
    """The stretch of values inside which equal builds lie, as a shape across the whole panel."""
    return {
        "type": "rect",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": y_axis,
        "y0": low,
        "y1": high,
        "layer": "below",
        "line": {"width": 0, "color": TRANSPARENT},
        "fillcolor": light("surface"),
        "opacity": _FIELD_OPACITY,
    }


def interval_band(x: Sequence[float], low: Sequence[float], high: Sequence[float], y_axis: str) -> Figure:
    """The band between two ends of joined points."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*x, *reversed(x)],
        "y": [*high, *reversed(low)],
        "yaxis": y_axis,
        "fill": "toself",
        "fillcolor": light("accent"),
        "opacity": _BAND_OPACITY,
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def sample_dots(name: str, x: Sequence[float], y: Sequence[float], y_axis: str) -> Figure:
    """Single samples, small and pale."""
    return {
        "type": "scatter",
        "name": plotly_text(name),
        "mode": "markers",
        "x": list(x),
        "y": list(y),
        "yaxis": y_axis,
        "marker": {"color": light("accent"), "size": _SAMPLE_PX, "opacity": _SAMPLE_OPACITY},
        "hoverinfo": "skip",
    }


def callouts(
    marks: Sequence[Callout], domain: tuple[float, float], px: float, x_range: Sequence[float]
) -> tuple[list[Figure], list[Figure]]:
    """The lines of change points as shapes, and their labels, none over another.

    `domain` is the panel's share of the figure's height, `px` the height of the figure in pixels.
    """
    shapes, labels = [], []
    levels = {True: 0, False: 0}  # labels that stand above and below already
    bottom, top = domain
    for mark in sorted(marks, key=lambda mark: mark.x):
        shift = (2 * _CALLOUT_LINE_PX + 4) * levels[mark.above] / px
        levels[mark.above] += 1
        height = top - shift if mark.above else bottom + shift
        colour = light(mark.role)
        is_right = mark.x > (x_range[0] + x_range[1]) / 2
        shapes.append(
            {
                "type": "line",
                "xref": "x",
                "x0": mark.x,
                "x1": mark.x,
                "yref": "paper",
                "y0": height,
                "y1": bottom if mark.above else top,
                "layer": "below",
                "line": {"color": colour, "width": 1},
            }
        )
        words = f'<b><span style="fill:{colour}">{plotly_text(mark.title)}</span></b>'
        if mark.detail:
            words += f'<br><span style="fill:{light("muted")}">{plotly_text(mark.detail)}</span>'
        labels.append(
            annotation(
                words,
                mark.x,
                height,
                name=CALLOUT,
                xref="x",
                xanchor="right" if is_right else "left",
                yanchor="top" if mark.above else "bottom",
                xshift=-6 if is_right else 6,
                align="right" if is_right else "left",
                font={**FONT, "size": 12},
            )
        )
    return shapes, labels


def gutter_text(words: str, height: float, *, strong: bool, accent: bool, shift: float, href: str) -> Figure:
    """A label right of the plot; with an address it is a link."""
    text = plotly_text(words)
    if href:
        text = f'<a href="{_unescaped(href)}" target="_self">{text}</a>'
    font = FONT if strong else MUTED_FONT
    return annotation(
        f"<b>{text}</b>" if accent else text,
        1.0,
        height,
        xanchor="left",
        yanchor="middle",
        align="left",
        xshift=shift,
        font={**font, "color": light("accent")} if accent else font,
    )


def _unescaped(href: str) -> str:
    """The address with those of its characters bare that Plotly would escape once more: `%2F` to `%252F`."""
    for character in "/:,;@$?":
        href = href.replace(f"%{ord(character):02X}", character)
    return href
