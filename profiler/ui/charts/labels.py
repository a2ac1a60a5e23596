"""Text on a chart: escaped for Plotly, cut, wrapped, and placed where it lies over little else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Box = tuple[float, float, float, float]  # left, bottom, right, top, in pixels

_LETTER_PX, _LINE_PX, _GAP_PX, _DOT_PX = 6.6, 14.0, 7.0, 5.0
# Plotly's textposition, the usual first: where the label's middle lies, in half widths and heights from the
# point. The first of equally good sides is taken, so the order decides.
_SIDES: dict[str, tuple[float, float]] = {
    "bottom center": (0, -1),
    "top center": (0, 1),
    "middle right": (1, 0),
    "middle left": (-1, 0),
    "bottom right": (1, -1),
    "top right": (1, 1),
    "bottom left": (-1, -1),
    "top left": (-1, 1),
}


def plotly_text(text: str) -> str:
    """The text escaped for Plotly, which reads tags and a few entities but prints `&quot;` as it stands."""
    return escape(text, quote=False)


def shorten(name: str, limit: int = 21) -> str:
    """A long name with its middle left out, because kernel names differ at both ends."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9]}…{name[-8:]}"


def wrap(text: str, limit: int) -> str:
    """The text as lines of about `limit` characters, escaped and joined by `<br>`."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= limit:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "<br>".join(map(plotly_text, lines))


def spread_apart(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart, as near to the given ones as that allows, in the order given."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    placed = [0.0] * len(positions)
    floor = low
    for index in order:
        placed[index] = max(positions[index], floor)
        floor = placed[index] + gap
    ceiling = high
    for index in reversed(order):
        placed[index] = min(placed[index], ceiling)
        ceiling = placed[index] - gap
    return placed


def label_sides(
    points: Sequence[tuple[float, float]], labels: Sequence[str], occupied: Sequence[Box] = ()
) -> list[str]:
    """The side of its point for each label, as Plotly's textposition; points are in pixels, y upwards.

    Greedy: one label after the other, each where it covers least of the points, of the labels placed before
    it and of the `occupied` boxes.
    """
    dots = [(x - _DOT_PX, y - _DOT_PX, x + _DOT_PX, y + _DOT_PX) for x, y in points]
    boxes_placed = list(occupied)
    sides = []
    for index, ((x, y), label) in enumerate(zip(points, labels, strict=True)):
        obstacles = [*boxes_placed, *dots[:index], *dots[index + 1 :]]
        boxes = {side: _box(x, y, label, *shift) for side, shift in _SIDES.items()}
        best = min(boxes, key=lambda side: sum(_overlap(boxes[side], obstacle) for obstacle in obstacles))
        boxes_placed.append(boxes[best])
        sides.append(best)
    return sides


def box_right_of(x: float, y: float, label: str) -> Box:
    """The box of a label that stands right of a point."""
    return _box(x, y, label, 1, 0)


def _box(x: float, y: float, label: str, right: float, up: float) -> Box:
    width, height = _LETTER_PX * len(label), _LINE_PX
    x += right * (width / 2 + _GAP_PX)
    y += up * (height / 2 + _GAP_PX)
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _overlap(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0
