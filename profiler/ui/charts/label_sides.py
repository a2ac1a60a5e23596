"""On which side of its point each label of a chart stands, so that few lie over points or other labels."""

from __future__ import annotations

from collections.abc import Sequence

Box = tuple[float, float, float, float]  # left, bottom, right, top, in pixels

_LETTER_PX, _LINE_PX, _GAP_PX, _DOT_PX = 6.6, 14.0, 7.0, 5.0
# The usual first: each with where the label's middle lies, in half widths and heights from the point.
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


def label_sides(
    points: Sequence[tuple[float, float]], labels: Sequence[str], taken: Sequence[Box] = ()
) -> list[str]:
    """The side for each label, in the words of Plotly's textposition; the points are in pixels, y upwards.

    One after the other, each where it covers least of the points and of what stands already.
    """
    dots = [(x - _DOT_PX, y - _DOT_PX, x + _DOT_PX, y + _DOT_PX) for x, y in points]
    placed = list(taken)
    found = []
    for index, ((x, y), label) in enumerate(zip(points, labels, strict=True)):
        others = [*placed, *dots[:index], *dots[index + 1 :]]
        boxes = {side: _box(x, y, label, *shift) for side, shift in _SIDES.items()}
        best = min(boxes, key=lambda side: sum(_overlap(boxes[side], other) for other in others))
        placed.append(boxes[best])
        found.append(best)
    return found


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
