"""A sparkline: the newest runs of one latency on a scale of its own, with a mark where it got worse."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from profiler.ui.markup import Html

WIDTH, HEIGHT = 92, 20  # pixels
_SPAN = 0.08  # the least that half the height stands for, as a share of the median
_MARGIN = 3.0  # pixels above and below, and beside the last point


def picture(numbers: Sequence[float], marked: int | None = None) -> Html:
    """An inline SVG of numbers above 0, oldest first; `marked` is the index from which they are worse."""
    middle = median(numbers)
    span = max(_SPAN, max(abs(number / middle - 1) for number in numbers))
    step = (WIDTH - 2 * _MARGIN) / max(1, len(numbers) - 1)
    points = [
        (_MARGIN + index * step, HEIGHT / 2 - (number / middle - 1) / span * (HEIGHT / 2 - _MARGIN))
        for index, number in enumerate(numbers)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    mark = ""
    if marked is not None:
        x = points[marked][0] - step / 2
        mark = f'<path class="worse" d="M{x:.1f} 1V{HEIGHT - 1}"/>'
    x, y = points[-1]
    label = f"{len(numbers)} runs, ±{span * 100:.0f} % from bottom to top"
    return Html(
        f'<svg class="spark" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{label}">'
        f"<title>{label}</title>{mark}"
        f'<polyline points="{path}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="2.2"/></svg>'
    )
