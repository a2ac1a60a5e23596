"""One launch under the roofs of its GPU: tables, chart and the names of what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.evidence import Rate, Value, formatting
from profiler.explain import Roof, Roofline, RooflinePoint
from profiler.explain.roofline import LEVELS, UNKNOWN, UNUSED, collect_command
from profiler.ui import markup
from profiler.ui.charts import roofline_chart
from profiler.ui.charts.style import Figure
from profiler.ui.markup import Column, Html, Row

NO_POINT = "No point to draw: no operations and bytes of this launch were counted together."


def roofs(roofline: Roofline) -> Html:
    """One row per roof: what was reached of its peak, with its metrics under the pointer."""
    rows = []
    for roof in (*roofline.precisions, *roofline.levels):
        # A precision that the launch does not use is no roof of it: those are named in one line below.
        if roof.state == UNUSED or (roof.rate.number is None and roof.peak.number is None):
            continue
        words = roofline.rank_words(roof)
        name = markup.join((roof.name, markup.tag("b", words) if words else ""))
        share = roof.share
        names = ", ".join((*roof.rate.names, *roof.peak.names))
        rows.append(
            Row(
                (
                    markup.tag("span", name, title=names),
                    _reading(roof.rate, roof.unit),
                    _reading(roof.peak, roof.unit),
                    markup.change_bar(share),
                    "–" if share is None else markup.value(Value(100 * share, "%")),
                )
            )
        )
    if not rows:
        return markup.note("No roof: neither a peak nor a rate is in the report.")
    unused = [roof.name for roof in roofline.precisions if roof.state == UNUSED]
    if unused:
        rows.append(markup.closing_row(markup.muted(f"not used by this launch: {', '.join(unused)}")))
    columns = (
        Column("roof"),
        Column("reached", right=True),
        Column("peak at its clocks", right=True),
        Column("", wide=True),
        Column("of it", right=True),
    )
    return markup.table("roofs", columns, rows)


def points(roofline: Roofline) -> Html:
    """One row per precision and level: intensity, where the two roofs meet, which of them limits."""
    rows = []
    last = ""
    for point in roofline.points:
        rows.append(
            Row(
                (
                    point.precision if point.precision != last else "",  # once for its levels
                    point.level,
                    formatting.digits(point.intensity, whole=False),
                    _knee(point),
                    point.bound or "–",
                    "–" if point.share is None else markup.value(Value(100 * point.share, "%")),
                )
            )
        )
        last = point.precision
    columns = (
        Column("precision"),
        Column("seen from"),
        Column("operations/byte", right=True),
        Column("roofs meet at", right=True, wide=True),
        Column("limited by"),
        Column("of attainable", right=True),
    )
    return markup.table("points under the roofs", columns, rows)


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


def notes(roofline: Roofline, chip: str | None, levels: Sequence[str] = LEVELS) -> list[Html]:
    """Which metrics are missing, by roof and state, with the command that collects them, and remarks."""
    roofs = (*roofline.precisions, *(level for level in roofline.levels if level.name in levels))
    remarks = dict.fromkeys(roof.note for roof in roofs if roof.note)
    lines = [line for roof in roofs for line in _missing_metrics(roof)]
    if lines:
        lines.append(markup.note(markup.backticks_as_code(f"All of them at once: `{collect_command(chip)}`")))
    return [*lines, *(markup.note(markup.backticks_as_code(remark)) for remark in remarks)]


def _missing_metrics(roof: Roof) -> list[Html]:
    """A line for each state: the metrics of the roof that are in it."""
    words = roof.name
    if roof.opcodes and roof.name != f"tensor ({roof.opcodes})":
        words += f", which this launch used ({roof.opcodes})"
    elif not roof.opcodes and roof.state == UNKNOWN:
        words += ", if this launch used it"
    metrics_by_state: dict[str, list[str]] = {}
    for metric, state in roof.missing:
        metrics_by_state.setdefault(state, []).append(metric)
    return [
        markup.note(
            markup.join(
                (markup.state(state), markup.tag("b", words), markup.join(map(markup.code, metrics), ", "))
            )
        )
        for state, metrics in metrics_by_state.items()
    ]


def _mark(point: RooflinePoint) -> roofline_chart.KernelMark:
    symbol, words = roofline_chart.SYMBOLS[point.level], hover(point, point.precision)
    return roofline_chart.KernelMark(
        point.intensity, point.reached, point.level, words, symbol, row=point.precision
    )


def hover(point: RooflinePoint, name: str) -> str:
    """A point in full, for the pointer: plain text with line breaks."""
    work = formatting.quantity(Value(point.reached, point.unit))
    share = (
        ""
        if point.share is None
        else f"<br>{100 * point.share:.1f} % of attainable, limited by {point.bound}"
    )
    where = f"{point.precision} from {point.level}"
    intensity = f"{formatting.digits(point.intensity, whole=False)} operations per byte"
    return f"<b>{markup.escaped(name)}</b><br>{where}<br>{work}, {intensity}{share}"


def _knee(point: RooflinePoint) -> Html:
    if point.knee is None:
        return markup.state("peak missing")
    return markup.escaped(formatting.digits(point.knee, whole=False))


def _reading(reading: Rate, unit: str) -> Html:
    if reading.number is not None:
        return markup.value(Value(reading.number, unit))
    return markup.state(reading.missing[0][1] if reading.missing else "not collected")
