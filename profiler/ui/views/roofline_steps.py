"""The path of a kernel through its GPU's roofline, version by version, as chart, table and notes."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.compare import name_filter
from profiler.errors import UnknownName
from profiler.evidence import Value, brief_list, formatting
from profiler.explain import PathStep, RooflinePath
from profiler.explain.roofline import LEVELS
from profiler.history.trend import ABSENT
from profiler.ui import markup
from profiler.ui.charts import roofline_chart
from profiler.ui.charts.labels import shorten
from profiler.ui.charts.style import Figure
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import roofline_points, trend_lines

VIEWS = ("metrics", "roofline")
SEEN_FROM = tuple(reversed(LEVELS))  # DRAM first


def not_measured(versions: Sequence[str]) -> tuple[str, str]:
    """What an empty page says where no version ran on a GPU, and the command that fills it."""
    name = versions[-1] if versions else "VERSION"
    return (
        "Not measured: a roofline needs a run on a GPU, collected in full:",
        f"profiler collect {name} --full {name}",
    )


def named(paths: Sequence[RooflinePath], kernels: str) -> dict[str, RooflinePath]:
    """The paths by the name of their kernel, those with a point first; UnknownName where none fits."""
    fits = name_filter(kernels or None)
    names = trend_lines.line_names([one.trend for one in paths])
    kept = [one for one in paths if fits(one.trend.part) or fits(one.trend.base_name)]
    if not kept:
        there = sorted({one.trend.base_name for one in paths})
        raise UnknownName(f"no kernel matches {kernels!r}; there are {brief_list(there)}")
    kept.sort(key=lambda one: one.roofs is None)
    return {names[one.trend.part, one.trend.mode]: one for one in kept}


def chart(found: RooflinePath, level: str) -> tuple[Figure, str] | None:
    """Roofs once, a point a version, an arrow from each to the next that compares; None without a point."""
    steps, roofs = found.steps_at(level), found.roofs
    if not steps or roofs is None:
        return None
    slopes, ceilings = roofline_points.lines(roofs)
    slopes = [slope for slope in slopes if slope.label == level]
    leading = {step.roofline.leading.name for step in steps if step.roofline and step.roofline.leading}
    ceilings = [one for one in ceilings if one.label in leading]
    marks = [_mark(step, level, step is steps[-1]) for step in steps]
    arrows = [
        roofline_chart.Arrow(_place(segment.start, level), _place(segment.end, level))
        for segment in found.segments(level)
        if not segment.breaks and _place(segment.start, level) != _place(segment.end, level)
    ]
    names = " → ".join(step.version for step in steps)
    figure = roofline_chart.figure(slopes, ceilings, marks, arrows, f"operations per byte of {level}")
    return figure, f"roofline path of {found.trend.base_name} seen from {level}: {names}"


def table(found: RooflinePath, level: str) -> Html:
    """A row a version: its work, intensity and share of what is attainable; or why it has none."""
    rows = []
    for step in found.steps:
        if step.trend_point.gap == ABSENT:
            continue
        name = markup.cut_name(step.version, title=step.version)
        point = step.point(level)
        if point is None:
            rows.append(Row((name, _why(step, level), "", "", "", "")))
            continue
        rows.append(
            Row(
                (
                    name,
                    markup.value(Value(point.reached, point.unit)),
                    point.precision,
                    formatting.digits(point.intensity, whole=False),
                    point.bound or "–",
                    "–" if point.share is None else markup.value(Value(100 * point.share, "%")),
                )
            )
        )
    columns = (
        Column("version", cut=2),
        Column("reached", right=True),
        Column("leading precision", wide=True),
        Column("operations/byte", right=True),
        Column("limited by", wide=True),
        Column("of attainable", right=True),
    )
    return markup.table("path under the roofs", columns, rows)


def notes(found: RooflinePath, level: str) -> list[Html]:
    """Whose roofs are drawn, which arrows are missing and why, what the newest version lacks."""
    lines: list[Html] = []
    steps = found.steps_at(level)
    if steps:
        lines.append(markup.escaped(f"Roofs at the clocks of {steps[-1].version}; each point at its own."))
    for segment in found.segments(level):
        if segment.breaks:
            names = f"{segment.start.version} to {segment.end.version}"
            lines.append(markup.escaped(f"no arrow from {names}: {segment.breaks}"))
    told = [markup.note(line) for line in lines]
    newest = next((step for step in reversed(found.steps) if step.roofline is not None), None)
    if newest is None or newest.roofline is None:
        return told
    return told + roofline_points.notes(newest.roofline, newest.chip, (level,))


def _mark(step: PathStep, level: str, newest: bool) -> roofline_chart.Mark:
    point = step.point(level)
    assert point is not None
    name = step.version
    return roofline_chart.Mark(
        point.intensity,
        point.reached,
        shorten(name, 18),
        roofline_points.hover(point, name),
        roofline_chart.SYMBOLS[level],
        newest,
    )


def _place(step: PathStep, level: str) -> tuple[float, float]:
    point = step.point(level)
    assert point is not None
    return point.intensity, point.reached


def _why(step: PathStep, level: str) -> Html:
    if step.trend_point.wrong:
        return markup.status_tag(step.gap)
    if step.roofline is None or not step.roofline.points:
        return markup.state(step.gap or "not collected")
    return markup.state(f"no {level} traffic counted")
