"""A family's history as panels of a chart with its notes: one line per kernel, broken where runs differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from profiler.compare import UNKNOWN_NOISE, NoiseModel, latency_words
from profiler.evidence import brief_list, formatting, opcodes
from profiler.history import LATENCY, Lineage, Trend, TrendPoint
from profiler.history.trend import ABSENT
from profiler.statistics import NoiseFloor
from profiler.ui import markup
from profiler.ui.charts import small_multiples, stacked_shares
from profiler.ui.charts.small_multiples import Axis, Line, Panel, Point
from profiler.ui.charts.style import Figure
from profiler.ui.data.part_names import PartAndMode, line_names
from profiler.ui.data.timelines import timelines
from profiler.ui.data.trend_choice import Labeller
from profiler.ui.markup import Html

BREAKS_SHOWN = 8
LINES_SHOWN = 8  # more are no longer told apart; the filter reaches the others
OPCODE_MIX_NOTE = "Opcode mix: places in the code, not how often they run."
NO_RESULT = "no result here"  # of a version on this workload and GPU
LineKey = tuple[str, str, str | None]  # part, mode, version; None: all versions
_KeyedTrends = list[tuple[LineKey, Trend]]  # the lines of one panel


@dataclass(frozen=True)
class Picture:
    """What the page draws: panels on one axis, and what is not in them."""

    panels: tuple[Panel, ...]
    axis: Axis
    absent: tuple[str, ...]  # metrics that no launch carries
    hidden: tuple[str, ...]  # kernels cut off
    labels: Mapping[LineKey, str] = field(default_factory=dict)  # what each line is called
    undrawn: tuple[str, ...] = ()  # metrics of which only kernels that are not drawn have a number
    drawn: Mapping[PartAndMode, str] = field(default_factory=dict)  # the kernels with a line, and their names

    @property
    def figure(self) -> Figure:
        """The chart."""
        return small_multiples.figure(self.panels, self.axis)

    @property
    def gutter(self) -> int:
        """What the chart leaves at its right; one below it has the same columns with the same."""
        return small_multiples.gutter_px(self.panels)

    @property
    def alt(self) -> str:
        """What the chart shows, in words."""
        lines = list(dict.fromkeys(line.label for panel in self.panels for line in panel.lines))
        over = "time" if self.axis.time else f"{len(self.axis.labels)} versions"
        return f"{', '.join(panel.title for panel in self.panels)} over {over} of {brief_list(lines)}"


def picture(
    by_metric: Mapping[str, Sequence[Trend]],
    versions: Sequence[str],
    is_over_time: bool,
    ranking: Sequence[Trend],
    noise: NoiseModel = UNKNOWN_NOISE,
    lineage: Lineage | None = None,
) -> Picture:
    """Panels for the metrics in their order; `ranking` has the kernels by time, longest first.

    `noise` gives the band within which equal builds lie, around latencies. Over versions of a `lineage` a
    line leads to a version only from what it was made from.
    """
    every_trend = [trend for trends in by_metric.values() for trend in trends]
    names = line_names((*ranking, *every_trend))
    names_shown = list(names.values())[:LINES_SHOWN]
    lines_by_panel = [
        _lines([trend for trend in trends if names[trend.part, trend.mode] in names_shown], is_over_time)
        for trends in by_metric.values()
    ]
    labels = _labels(lines_by_panel, names)
    keys_drawn = list(labels)[: 2 * LINES_SHOWN]  # lines of versions mostly lie apart: more can be told apart
    panels = []
    for lines in lines_by_panel:
        drawn = [(key, trend) for key, trend in lines if key in keys_drawn]
        if drawn:
            panels.append(_panel(drawn, labels, versions, is_over_time, noise))
    if not is_over_time:
        panels = _over_lineage(panels, versions, lineage)
    absent = tuple(metric for metric, trends in by_metric.items() if not trends)
    undrawn = tuple(
        metric
        for (metric, trends), lines in zip(by_metric.items(), lines_by_panel, strict=True)
        if trends and not any(key in keys_drawn for key, _ in lines)
    )
    cut_off = (labels[key] for key in labels if key not in keys_drawn)
    hidden = (*list(names.values())[LINES_SHOWN:], *cut_off)
    names_drawn = {(part, mode): names[part, mode] for part, mode, _ in keys_drawn}
    axis = _axis(panels, versions, is_over_time)
    return Picture(tuple(panels), axis, absent, hidden, labels, undrawn, names_drawn)


def notes(picture: Picture, by_metric: Mapping[str, Sequence[Trend]], label: Labeller) -> list[Html]:
    """What the chart does not show: metrics not collected, kernels cut off, and why lines are broken."""
    lines = []
    if picture.absent:
        metrics = ", ".join(map(label, picture.absent))
        lines.append(markup.state(f"not collected in any of these runs: {metrics}"))
    if picture.undrawn:
        metrics = ", ".join(map(label, picture.undrawn))
        lines.append(markup.state(f"not collected of the kernels drawn, only of others: {metrics}"))
    if picture.hidden:
        words = f"{len(picture.hidden)} shorter kernels are not drawn: {brief_list(picture.hidden)}"
        lines.append(markup.escaped(f"{words}. Name some of them under kernels."))
    lines += map(markup.escaped, _breaks(picture, by_metric))
    return [markup.note(line) for line in lines]


def _breaks(picture: Picture, by_metric: Mapping[str, Sequence[Trend]]) -> list[str]:
    """Why lines are broken, each reason once with the kernels that it is of where several are drawn."""
    kernels_by_words: dict[str, dict[str, None]] = defaultdict(dict)
    for trends in by_metric.values():
        for trend in trends:
            name = picture.drawn.get((trend.part, trend.mode))
            for point in trend.points if name else ():
                if name and point.breaks:
                    kernels_by_words[f"not joined at {point.version}: {point.breaks}"][name] = None
    has_several = len(picture.drawn) > 1
    lines = [
        f"{words} ({brief_list(list(names))})" if has_several else words
        for words, names in kernels_by_words.items()
    ]
    if len(lines) > BREAKS_SHOWN:
        more = len(lines) - BREAKS_SHOWN
        lines[BREAKS_SHOWN:] = [f"and {more} more; under the pointer a point says why it is not joined"]
    return lines


def floor_notes(by_metric: Mapping[str, Sequence[Trend]], noise: NoiseModel) -> list[Html]:
    """How wide the band around each latency is, or the command that finds out; each once."""
    lines = []
    for trend in by_metric.get(LATENCY, ()):
        floor = latency_words.aa_floor(_floor(trend, noise), trend.points[-1].version, trend.workload)
        lines.append(f"{trend.mode}: {floor}{'; grey band' if _band(trend, noise) else ''}")
    return [markup.note(markup.backticks_as_code(line)) for line in dict.fromkeys(lines)]


def opcode_mix(
    lineage: Lineage, versions: Sequence[str], size: str, arch: str, gutter: int
) -> tuple[Figure, str]:
    """What each version's machine code consists of, and the same in words for who cannot see it."""
    bars: dict[str, Mapping[str, float] | str] = {}
    for version in versions:
        status = lineage.by_id.get(version)
        launch = status.static.get((arch, size)) if status else None
        if status is not None and status.is_wrong:
            bars[version] = status.state
        elif launch and launch.opcodes:
            bars[version] = opcodes.class_shares(launch.opcodes)
        else:
            bars[version] = "not collected"
    figure = stacked_shares.figure("opcode mix, %", f"static, {size}, {arch}", versions, bars, gutter)
    return figure, f"opcode mix of {brief_list(list(versions))}"


def _lines(trends: Sequence[Trend], is_over_time: bool) -> _KeyedTrends:
    """The lines of a panel: over time a version each, unless versions follow one another."""
    if not is_over_time:
        return [((trend.part, trend.mode, None), trend) for trend in trends]
    return [
        ((trend.part, trend.mode, version), line) for trend in trends for version, line in timelines(trend)
    ]


def _labels(panels: Sequence[_KeyedTrends], names: Mapping[PartAndMode, str]) -> dict[LineKey, str]:
    """What each line is called: its kernel or mode, its version, or both where either leaves a doubt."""
    keys = list(dict.fromkeys(key for lines in panels for key, _ in lines))
    has_one_name = len({names[part, mode] for part, mode, _ in keys}) == 1
    labels = {}
    for part, mode, version in keys:
        name = names[part, mode]
        if version is not None:
            name = version if has_one_name else f"{version} {name}"
        labels[part, mode, version] = name
    return labels


def _axis(panels: Sequence[Panel], versions: Sequence[str], is_over_time: bool) -> Axis:
    if not is_over_time:
        return Axis(tuple(versions), span=(0.0, float(max(len(versions) - 1, 0))))
    times = [point.x for panel in panels for line in panel.lines for point in line.points]
    return Axis(time=True, span=(min(times), max(times)) if times else (0.0, 1.0))


def _over_lineage(panels: Sequence[Panel], versions: Sequence[str], lineage: Lineage | None) -> list[Panel]:
    """The panels with a hatch where a version has no result at all, and no line between two branches."""
    with_point = {point.x for panel in panels for line in panel.lines for point in line.points}
    wrong = lineage.wrong if lineage else {}
    blank = tuple(
        (float(index), wrong.get(version, NO_RESULT))
        for index, version in enumerate(versions)
        if float(index) not in with_point
    )
    return [
        replace(
            panel,
            blank=blank,
            lines=tuple(_without_jumps(line, versions, lineage) for line in panel.lines),
        )
        for panel in panels
    ]


def _without_jumps(line: Line, versions: Sequence[str], lineage: Lineage | None) -> Line:
    """The line without the pieces that lead to a version from one that is not its ancestor."""
    if lineage is None:
        return line
    points = list(line.points[:1])
    for before, point in pairwise(line.points):
        status = lineage.by_id.get(versions[int(point.x)])
        last_version = versions[int(before.x)]
        ancestor = status.correct_ancestor.id if status and status.correct_ancestor else None
        # Of two versions that the catalogue does not know, one may well have been made from the other.
        is_known = status is not None or last_version in lineage.by_id
        if ancestor != last_version and is_known:
            origin = f" · made from {ancestor}" if ancestor else ""
            point = replace(point, joined=False, hover=f"{point.hover}{origin}")
        points.append(point)
    return replace(line, points=tuple(points))


def _panel(
    keyed_trends: _KeyedTrends,
    labels: Mapping[LineKey, str],
    versions: Sequence[str],
    is_over_time: bool,
    noise: NoiseModel,
) -> Panel:
    trends = [trend for _, trend in keyed_trends]
    numbers = [
        point.value.number
        for trend in trends
        for point in trend.points
        if point.on_line and point.value.number is not None
    ]
    unit = next((trend.unit for trend in trends if trend.unit), "")
    scale = formatting.scale_for(unit, max(map(abs, numbers), default=0.0))
    index_of = {version: index for index, version in enumerate(versions)}

    def x_of(point: TrendPoint) -> float | None:
        if is_over_time:
            return point.created.timestamp() * 1000
        return float(index_of[point.version]) if point.version in index_of else None

    lines = []
    for key, trend in keyed_trends:
        positions = [(x_of(point), point) for point in trend.points]
        points = tuple(_point(point, scale, x) for x, point in positions if x is not None)
        lines.append(Line(labels[key], points, band=_band(trend, noise)))
    caption = ", ".join(dict.fromkeys(trend.evidence.value for trend in trends))
    if len(keyed_trends) == 1:
        caption += f", {labels[keyed_trends[0][0]]}"
    # Latencies differ by less than their size.
    from_zero = trends[0].concept != LATENCY
    return Panel(trends[0].label, scale.unit, tuple(lines), caption, from_zero)


def _point(point: TrendPoint, scale: formatting.Scale, x: float) -> Point:
    if not point.on_line or point.value.number is None:
        reason = point.gap if point.gap == ABSENT or point.wrong else formatting.state_words(point.value)
        return Point(x, None, hover=f"{point.version}: {reason}", gap=reason)
    quantity = formatting.quantity(point.value, scale)
    hover = f"{point.version}: {quantity}"
    if point.grid:
        grid, block = formatting.dimensions(point.grid), formatting.dimensions(point.block)
        hover += f" · {grid} blocks of {block}"
    hover += f" · {formatting.timestamp(point.created)}"
    if point.value.derivation:
        hover += f" · {point.value.derivation.words}"
    if point.breaks:
        hover += f" · not joined: {point.breaks}"
    number = point.value.number / scale.divisor
    return Point(x, number, hover=hover, label=quantity.number, joined=not point.breaks)


def _band(trend: Trend, noise: NoiseModel) -> float:
    """The share by which equal builds lie apart there; 0 where it is not known, or this is no latency."""
    floor = _floor(trend, noise)
    return 0.0 if floor is None or not floor.judges else math.expm1(floor.limit)


def _floor(trend: Trend, noise: NoiseModel) -> NoiseFloor | None:
    newest_ns = trend.newest.number
    if trend.concept != LATENCY or newest_ns is None:
        return None
    return noise.floor(trend.gpu or "", trend.mode, float(newest_ns), trend.family)
