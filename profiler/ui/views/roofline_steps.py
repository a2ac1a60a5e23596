"""The path of a kernel through its GPU's roofline, version by version: chart, table and notes."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.documents.blocks import Gap, Name, Number, Phrase, Table
from profiler.documents.roofline import missing_blocks
from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.explain.roofline import LEVELS
from profiler.explain.roofline_path import PathStep, RooflinePath
from profiler.history.trend import ABSENT
from profiler.ui import markup
from profiler.ui.charts import roofline_chart
from profiler.ui.charts.labels import shorten
from profiler.ui.charts.roofline_chart import SYMBOLS, Arrow, KernelMark
from profiler.ui.charts.style import Figure
from profiler.ui.markup import Html
from profiler.ui.views import answer, roofline_points

SEEN_FROM = tuple(reversed(LEVELS))  # DRAM first


def not_measured(version: str) -> tuple[str, str]:
    """What an empty page says where no version ran on a GPU, and the command that fills it."""
    return (
        "Not measured: a roofline needs a run on a GPU, collected in full:",
        f"profiler collect {version} --full {version}",
    )


def chart(path: RooflinePath, level: str) -> tuple[Figure, str] | None:
    """The roofs, a point per version, an arrow from each to the next comparable one; None without points."""
    steps, roofs = path.steps_at(level), path.roofs
    if not steps or roofs is None:
        return None
    slopes, ceilings = roofline_points.slopes_and_ceilings(roofs)
    # Only what the points can be read against: their level of memory, and the precisions they lead with.
    slopes = [slope for slope in slopes if slope.label == level]
    leading = {step.roofline.leading.name for step in steps if step.roofline and step.roofline.leading}
    ceilings = [ceiling for ceiling in ceilings if ceiling.label in leading]
    marks = [_mark(step, level, is_newest=step is steps[-1]) for step in steps]
    ends = [
        (_position(segment.start, level), _position(segment.end, level))
        for segment in path.segments(level)
        if not segment.breaks
    ]
    arrows = [Arrow(start, end) for start, end in ends if start != end]
    figure = roofline_chart.figure(slopes, ceilings, marks, arrows, f"operations per byte of {level}")
    versions = " → ".join(step.version for step in steps)
    return figure, f"roofline path of {path.trend.base_name} seen from {level}: {versions}"


def table(path: RooflinePath, level: str) -> Html:
    """One row per version: its work, intensity and share of what is attainable, or why it has no point."""
    rows: list[Sequence[Phrase]] = []
    for step in path.steps:
        if step.trend_point.gap == ABSENT:
            continue
        point = step.point(level)
        if point is None:
            rows.append((Name(step.version), _why_no_point(step, level), "", "", "", ""))
            continue
        intensity = formatting.digits(point.intensity, whole=False)
        share = "–" if point.share is None else Number(Value(100 * point.share, "%"))
        reached = Number(Value(point.reached, point.unit))
        rows.append((Name(step.version), reached, point.precision, intensity, point.bound_words, share))
    head = ("version", "reached", "leading precision", "FLOP/B", "bound", "% of roof")
    return answer.table(Table(head, rows, right=(1, 3, 5), wide=(2, 4)), "path under the roofs")


def notes(path: RooflinePath, level: str) -> list[Html]:
    """Which version's roofs are drawn, which arrows are missing and why, what the newest version lacks."""
    lines: list[Html] = []
    steps = path.steps_at(level)
    if steps:
        lines.append(markup.escaped(f"Roofs at the clocks of {steps[-1].version}; each point at its own."))
    for segment in path.segments(level):
        if segment.breaks:
            names = f"{segment.start.version} to {segment.end.version}"
            lines.append(markup.escaped(f"no arrow from {names}: {segment.breaks}"))
    notes_of_path = [markup.note(line) for line in lines]
    newest = next((step for step in reversed(path.steps) if step.roofline is not None), None)
    if newest is None or newest.roofline is None:
        return notes_of_path
    return [*notes_of_path, answer.html(missing_blocks(newest.roofline, newest.chip, (level,)))]


def _mark(step: PathStep, level: str, *, is_newest: bool) -> KernelMark:
    point = step.point(level)
    assert point is not None
    hover = roofline_points.hover(point, step.version)
    label = shorten(step.version, 18)
    return KernelMark(point.intensity, point.reached, label, hover, SYMBOLS[level], strong=is_newest)


def _position(step: PathStep, level: str) -> tuple[float, float]:
    """Where the step's point lies: operations per byte and operations a second."""
    point = step.point(level)
    assert point is not None
    return point.intensity, point.reached


def _why_no_point(step: PathStep, level: str) -> str:
    """A state, or that it is wrong."""
    if step.trend_point.wrong:
        return f"⊘ {step.gap}"
    if step.roofline is None or not step.roofline.points:
        return Gap(step.gap or "not collected")
    return Gap(f"no {level} traffic counted")
