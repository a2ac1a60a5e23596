"""A family's history as panels of a chart with its notes: one line per kernel, broken where runs differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from profiler.compare import latency_words
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.evidence import formatting
from profiler.evidence.naming import brief_list
from profiler.history.lineage import Lineage
from profiler.history.reference_levels import ReferenceLevel
from profiler.history.run_spread import RunSpread
from profiler.history.trend import LATENCY, Trend
from profiler.statistics.decision import share_text
from profiler.statistics.noise_floor import NoiseFloor
from profiler.ui import markup
from profiler.ui.charts import small_multiples
from profiler.ui.charts.panel_overlays import Reference
from profiler.ui.charts.small_multiples import Axis, Panel, PanelLine
from profiler.ui.charts.style import Figure
from profiler.ui.data.part_names import PartAndMode, line_names
from profiler.ui.data.run_axis import RunAxis, find_holes
from profiler.ui.data.timelines import timelines
from profiler.ui.data.trend_choice import Labeller
from profiler.ui.markup import Html
from profiler.ui.views.line_reading import LineReading, relative_unit

BREAKS_SHOWN = 8
LINES_SHOWN = 8  # kernels; more are no longer told apart, and the filter reaches the others
VERSION_LINES_SHOWN = 24  # lines of versions mostly lie apart: more can be told apart
ABSOLUTE, OF_FIRST, OF_BASELINE = "absolute", "of first", "of baseline"  # what numbers are shown as
_FROM_ZERO = "from 0"  # why a number is no share of the one it is compared with
_NO_BASELINE = "the baseline has no number here"
_MAIN_PX, _OTHER_PX = 300, 100  # heights of panels over runs
NO_RESULT = "no result here"  # of a version on this workload and GPU
LineKey = tuple[str, str, str | None]  # part, mode, version; None: all versions
_KeyedTrends = list[tuple[LineKey, Trend]]  # the lines of one panel


@dataclass(frozen=True)
class Look:
    """How the lines of a picture are drawn, besides their numbers."""

    scale: str = ABSOLUTE
    baseline: str = ""  # the version that numbers are shown of
    baseline_numbers: Mapping[tuple[str, str, str], float] = field(
        default_factory=dict
    )  # by metric, part, mode
    isolated: str = ""  # the label of the line that stands out
    spreads: Mapping[int, RunSpread] = field(default_factory=dict)  # of its points, by result
    levels: Mapping[str, Sequence[ReferenceLevel]] = field(default_factory=dict)  # by metric
    href: Callable[[str], str] = lambda label: ""  # where a line's label leads

    @property
    def is_relative(self) -> bool:
        """Whether numbers are shares of another."""
        return self.scale != ABSOLUTE


@dataclass(frozen=True)
class ChosenLines:
    """The lines of all panels, with their names."""

    by_panel: tuple[_KeyedTrends, ...]
    names: Mapping[PartAndMode, str]
    labels: Mapping[LineKey, str]  # what each line is called

    @property
    def labels_with_numbers(self) -> list[str]:
        """The labels of the lines that have a number in some panel, in order."""
        with_number = {
            key
            for lines in self.by_panel
            for key, trend in lines
            if any(point.on_line for point in trend.points)
        }
        return list(dict.fromkeys(label for key, label in self.labels.items() if key in with_number))

    def key_of(self, label: str) -> LineKey | None:
        """The line of that label."""
        return next((key for key, name in self.labels.items() if name == label), None)

    def trend_of(self, label: str, metric: int = 0) -> Trend | None:
        """The series of a line in one panel; None where it has none there."""
        key = self.key_of(label)
        lines = self.by_panel[metric] if metric < len(self.by_panel) else []
        return next((trend for of_line, trend in lines if of_line == key), None)


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


def choose_lines(
    by_metric: Mapping[str, Sequence[Trend]], axis: RunAxis, ranking: Sequence[Trend]
) -> ChosenLines:
    """The lines of each metric's panel; `ranking` has the kernels by time, longest first.

    Timed calls come before all kernels: they are what the versions are compared by.
    """
    every_trend = [trend for trends in by_metric.values() for trend in trends]
    timed = [trend for trend in every_trend if trend.concept == LATENCY]
    names = line_names((*timed, *ranking, *every_trend))
    names_shown = list(names.values())[:LINES_SHOWN]
    lines_by_panel = tuple(
        _lines([trend for trend in trends if names[trend.part, trend.mode] in names_shown], axis.is_over_runs)
        for trends in by_metric.values()
    )
    return ChosenLines(lines_by_panel, names, _labels(lines_by_panel, names))


def picture(
    by_metric: Mapping[str, Sequence[Trend]],
    axis: RunAxis,
    ranking: Sequence[Trend],
    noise: NoiseModel = UNKNOWN_NOISE,
    lineage: Lineage | None = None,
    look: Look = Look(),
) -> Picture:
    """Panels for the metrics in their order; `ranking` has the kernels by time, longest first.

    `noise` gives the band within which equal builds lie, around latencies. Over versions of a `lineage` a
    line leads to a version only from what it was made from.
    """
    lines = choose_lines(by_metric, axis, ranking)
    labels = lines.labels
    limit = VERSION_LINES_SHOWN if axis.is_over_runs else 2 * LINES_SHOWN
    keys_drawn = list(labels)[:limit]
    isolated = lines.key_of(look.isolated)
    if isolated is not None and isolated not in keys_drawn:
        keys_drawn[-1] = isolated
    panels: list[Panel] = []
    for metric, keyed_trends in zip(by_metric, lines.by_panel, strict=True):
        drawn = [(key, trend) for key, trend in keyed_trends if key in keys_drawn]
        if drawn:
            panel = _panel(metric, drawn, labels, axis, noise, look)
            if axis.is_over_runs:
                panel = replace(panel, height=_OTHER_PX if panels else _MAIN_PX)
            panels.append(panel)
    if not axis.is_over_runs:
        panels = _over_lineage(panels, axis.versions, lineage)
    absent = tuple(metric for metric, trends in by_metric.items() if not trends)
    undrawn = tuple(
        metric
        for (metric, trends), keyed_trends in zip(by_metric.items(), lines.by_panel, strict=True)
        if trends and not any(key in keys_drawn for key, _ in keyed_trends)
    )
    cut_off = (labels[key] for key in labels if key not in keys_drawn)
    hidden = (*list(lines.names.values())[LINES_SHOWN:], *cut_off)
    names_drawn = {(part, mode): lines.names[part, mode] for part, mode, _ in keys_drawn}
    chart_axis = axis.chart_axis(point.x for panel in panels for line in panel.lines for point in line.points)
    if chart_axis.holes:
        panels = [
            replace(panel, lines=tuple(_without_bridges(line) for line in panel.lines)) for panel in panels
        ]
    return Picture(tuple(panels), chart_axis, absent, hidden, labels, undrawn, names_drawn)


def notes(picture: Picture, by_metric: Mapping[str, Sequence[Trend]], label: Labeller) -> list[Html]:
    """What the chart does not show: metrics not collected, kernels cut off, and why lines are broken."""
    lines = []
    if picture.absent:
        metrics = ", ".join(map(label, picture.absent))
        lines.append(markup.state(f"not collected in any of these runs: {metrics}"))
    if picture.undrawn:
        metrics = ", ".join(map(label, picture.undrawn))
        lines.append(markup.state(f"not collected for the kernels shown, only for others: {metrics}"))
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
        lines[BREAKS_SHOWN:] = [f"and {more} more; hover over a point to see why it is not joined"]
    return lines


def floor_notes(by_metric: Mapping[str, Sequence[Trend]], noise: NoiseModel) -> list[Html]:
    """How wide the band around each latency is, or the command that finds out; each once."""
    lines = []
    for trend in by_metric.get(LATENCY, ()):
        floor = latency_words.aa_floor(
            _floor(trend, noise), trend.points[-1].version, trend.workload, trend.mode
        )
        lines.append(f"{trend.mode}: {floor}{'; grey band' if _band(trend, noise) else ''}")
    return [markup.note(markup.backticks_as_code(line)) for line in dict.fromkeys(lines)]


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


def _without_bridges(line: PanelLine) -> PanelLine:
    """The line without the pieces that lead over nights in which the version was not run."""
    holes = find_holes([point.x for point in line.points])
    points = list(line.points[:1])
    for before, point in pairwise(line.points):
        is_bridge = any(before.x <= begin and end <= point.x for begin, end in holes)
        points.append(replace(point, joined=False) if is_bridge else point)
    return replace(line, points=tuple(points))


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


def _without_jumps(line: PanelLine, versions: Sequence[str], lineage: Lineage | None) -> PanelLine:
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
    metric: str,
    keyed_trends: _KeyedTrends,
    labels: Mapping[LineKey, str],
    axis: RunAxis,
    noise: NoiseModel,
    look: Look,
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
    is_judged = trends[0].concept == LATENCY
    lines = []
    references: list[Reference] = []
    for key, trend in keyed_trends:
        reading = _reading(metric, trend, axis, scale, look)
        positions = [(axis.x_of(point), point) for point in trend.points]
        is_isolated = labels[key] == look.isolated
        spreads = look.spreads if is_isolated and is_judged else {}
        points = tuple(reading.point(point, x, spreads) for x, point in positions if x is not None)
        if not points:
            continue
        lines.append(
            PanelLine(
                labels[key],
                points,
                band=0.0 if axis.is_over_runs or look.is_relative else _band(trend, noise),
                isolated=is_isolated,
                end=reading.end(points) if axis.is_over_runs or look.is_relative else "",
                href=look.href(labels[key]),
            )
        )
        if is_isolated or len(keyed_trends) == 1 or look.scale != OF_FIRST:
            references = references or [
                reading.reference(level) for level in look.levels.get(metric, ()) if reading.can_show
            ]
    caption = ", ".join(dict.fromkeys(trend.evidence.value for trend in trends))
    if len(keyed_trends) == 1:
        caption += f", {labels[keyed_trends[0][0]]}"
    if look.scale == OF_FIRST:
        caption += "; relative to the first number of each line"
    elif look.scale == OF_BASELINE:
        caption += f"; relative to {look.baseline}"
    shown = _shown_words(lines)
    limits = {_band(trend, noise) for trend in trends} - {0.0} if is_judged and look.is_relative else set()
    band = max(limits, default=0.0)
    if band:
        shown.append(f"grey field: A/A floor ±{share_text(band)}")
    return Panel(
        trends[0].label,
        relative_unit(unit) if look.is_relative else scale.unit,
        tuple(lines),
        "; ".join((caption, *shown)),
        from_zero=not is_judged and not look.is_relative,  # latencies differ by less than their size
        references=tuple(references),
        field=(-100 * band / (1 + band), 100 * band) if band else None,
        linear=look.is_relative,
    )


def _reading(metric: str, trend: Trend, axis: RunAxis, scale: formatting.Scale, look: Look) -> LineReading:
    """How the numbers of a line are shown."""
    if not look.is_relative:
        return LineReading(trend.unit, scale)
    if look.scale == OF_BASELINE:
        first = look.baseline_numbers.get((metric, trend.part, trend.mode))
    else:
        numbers = (
            point.value.number for point in trend.points if point.on_line and axis.x_of(point) is not None
        )
        first = next((float(number) for number in numbers if number is not None), None)
    if first is None:
        return LineReading(trend.unit, scale, is_relative=True, why_not=_NO_BASELINE)
    if first == 0 and trend.unit != "%":
        return LineReading(trend.unit, scale, is_relative=True, why_not=_FROM_ZERO)
    return LineReading(trend.unit, scale, is_relative=True, first=first)


def _shown_words(lines: Sequence[PanelLine]) -> list[str]:
    """What the band and the dots are, where some line has them."""
    points = [point for line in lines for point in line.points]
    words = []
    if any(point.low is not None for point in points):
        words.append("band: 95 % of each run's own median")
    if any(point.samples for point in points):
        words.append("dots: samples")
    return words


def _band(trend: Trend, noise: NoiseModel) -> float:
    """The share by which equal builds lie apart there; 0 where it is not known, or this is no latency."""
    floor = _floor(trend, noise)
    return 0.0 if floor is None or not floor.judges else math.expm1(floor.limit)


def _floor(trend: Trend, noise: NoiseModel) -> NoiseFloor | None:
    newest = trend.newest_point
    if trend.concept != LATENCY or newest.value.number is None:
        return None
    ns, driver = float(newest.value.number), newest.driver or ""
    return noise.floor(trend.gpu or "", trend.mode, ns, trend.family, driver)
