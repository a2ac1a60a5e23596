"""One launch under the roofs of its GPU as a chart."""

from __future__ import annotations

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.explain.roofline import Roofline, RooflinePoint
from profiler.ui import markup
from profiler.ui.charts import roofline_chart
from profiler.ui.charts.style import Figure


def chart(roofline: Roofline) -> tuple[Figure, str]:
    """The chart of a roofline with points, and what it shows in words."""
    marks = [_mark(point) for point in roofline.points]
    alt = "; ".join(
        f"{point.precision} from {point.level}: {formatting.digits(point.intensity)} operations per byte"
        for point in roofline.points
    )
    return roofline_chart.figure(*slopes_and_ceilings(roofline), marks), f"roofline: {alt}"


def slopes_and_ceilings(
    roofline: Roofline,
) -> tuple[list[roofline_chart.Slope], list[roofline_chart.Ceiling]]:
    """The roofs whose peak is known; of the precisions those that are used."""
    slopes = [
        roofline_chart.Slope(level.name, level.peak.number) for level in roofline.levels if level.peak.number
    ]
    ceilings = [
        roofline_chart.Ceiling(roof.name, roof.peak.number)
        for roof in roofline.precisions
        if roof.peak.number and roof.rate.number
    ]
    return slopes, ceilings


def _mark(point: RooflinePoint) -> roofline_chart.KernelMark:
    symbol, words = roofline_chart.SYMBOLS[point.level], hover(point, point.precision)
    return roofline_chart.KernelMark(
        point.intensity, point.reached, point.level, words, symbol, row=point.precision
    )


def hover(point: RooflinePoint, name: str) -> str:
    """A point in full, for the pointer: plain text with line breaks."""
    work = formatting.quantity(Value(point.reached, point.unit))
    share = "" if point.share is None else f"<br>{100 * point.share:.1f} % of roof, {point.bound_words}"
    where = f"{point.precision} from {point.level}"
    intensity = f"{formatting.digits(point.intensity, whole=False)} operations per byte"
    return f"<b>{markup.escaped(name)}</b><br>{where}<br>{work}, {intensity}{share}"
