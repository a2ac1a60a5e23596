"""A family's history as panels, table and notes: one line a kernel, none joined that may not be."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from profiler.compare import UNKNOWN_NOISE, NoiseModel, latency_words, name_filter
from profiler.errors import UnknownName
from profiler.evidence import Evidence, MetricTable, brief_list, formatting, opcodes
from profiler.history import LATENCY, Lineage, Trend, TrendPoint
from profiler.history.trend import ABSENT
from profiler.statistics import MIN_FLOOR_PAIRS, NoiseFloor
from profiler.ui import addresses, markup
from profiler.ui.charts import small_multiples, stacked_shares
from profiler.ui.charts.labels import shorten
from profiler.ui.charts.style import Figure
from profiler.ui.data.timelines import timelines
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views.part_names import short_names

LINES_SHOWN = 8  # more are no longer told apart; the filter reaches the others
ROWS_SHOWN = 30
MIX = "Opcode mix: places in the code, not how often they run."
COLUMNS_SHOWN = 12  # newest versions in the table
DEFAULT_METRICS = ("duration", "tensor_busy", "shared_conflicts", "shared_excess", "occupancy")
DEFAULTS = {
    Evidence.MEASURED: DEFAULT_METRICS,
    Evidence.STATIC: (
        *("static_registers", "static_spills", "static_occupancy", "static_shared"),
        *("static_instructions", "static_hmma"),
    ),
    Evidence.MODELLED: ("modelled_conflicts", "modelled_wavefronts", "modelled_error"),
}
NO_RESULT = "no result here"  # of a version on this workload and GPU
RANKED_BY = "gpu__time_duration.sum"
OVER = ("versions", "time")
LineKey = tuple[str, str, str | None]  # part, mode, version; None: all versions
_Lines = list[tuple[LineKey, Trend]]


@dataclass(frozen=True)
class Picture:
    """What the page draws: panels on one axis, and what is not in them."""

    panels: tuple[small_multiples.Panel, ...]
    axis: small_multiples.Axis
    absent: tuple[str, ...]  # metrics that no launch carries
    hidden: tuple[str, ...]  # kernels cut off
    labels: Mapping[LineKey, str] = field(default_factory=dict)  # what each line is called

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
    found: Mapping[str, Sequence[Trend]],
    versions: Sequence[str],
    over: str,
    ranking: Sequence[Trend],
    noise: NoiseModel = UNKNOWN_NOISE,
    lineage: Lineage | None = None,
) -> Picture:
    """Panels for the metrics in the order asked for; `ranking` has the kernels by time, longest first.

    `noise` gives the band within which equal builds lie, around latencies. Over versions of a `lineage` a
    line leads to a version only from what it was made from.
    """
    names = line_names((*ranking, *(one for several in found.values() for one in several)))
    shown = list(names.values())[:LINES_SHOWN]
    kept = [[one for one in several if names[one.part, one.mode] in shown] for several in found.values()]
    several_lines = [_lines(several, over) for several in kept]
    labels = _labels(several_lines, names)
    drawn = list(labels)[: 2 * LINES_SHOWN]  # lines of versions mostly lie apart
    panels = []
    for lines in several_lines:
        fitting = [(key, one) for key, one in lines if key in drawn]
        if fitting:
            panels.append(_panel(fitting, labels, versions, over, noise))
    if over != "time":
        panels = _over_lineage(panels, versions, lineage)
    at = [point.x for panel in panels for line in panel.lines for point in line.points]
    if over == "time":
        axis = small_multiples.Axis(time=True, span=(min(at), max(at)) if at else (0.0, 1.0))
    else:
        axis = small_multiples.Axis(tuple(versions), span=(0.0, float(max(len(versions) - 1, 0))))
    absent = tuple(name for name, several in found.items() if not several)
    hidden = (*list(names.values())[LINES_SHOWN:], *(labels[key] for key in labels if key not in drawn))
    return Picture(tuple(panels), axis, absent, hidden, labels)


def _over_lineage(
    panels: Sequence[small_multiples.Panel], versions: Sequence[str], lineage: Lineage | None
) -> list[small_multiples.Panel]:
    """The panels with a hatch where a version has no result at all, and no line between two branches."""
    told = {point.x for panel in panels for line in panel.lines for point in line.points}
    states = lineage.wrong if lineage else {}
    blank = tuple(
        (float(place), states.get(version, NO_RESULT))
        for place, version in enumerate(versions)
        if float(place) not in told
    )
    return [
        replace(panel, blank=blank, lines=tuple(_branched(line, versions, lineage) for line in panel.lines))
        for panel in panels
    ]


def _branched(
    line: small_multiples.Line, versions: Sequence[str], lineage: Lineage | None
) -> small_multiples.Line:
    """The line without the piece that leads to a version from one that is not its ancestor."""
    if lineage is None:
        return line
    points = list(line.points[:1])
    for before, point in pairwise(line.points):
        one, last = lineage.by_id.get(versions[int(point.x)]), versions[int(before.x)]
        origin = one.correct_ancestor.id if one and one.correct_ancestor else None
        if origin != last and (one is not None or last in lineage.by_id):
            made = f" · made from {origin}" if origin else ""
            point = replace(point, joined=False, hover=f"{point.hover}{made}")
        points.append(point)
    return replace(line, points=tuple(points))


def _lines(several: Sequence[Trend], over: str) -> _Lines:
    """The lines of a panel: over time a version each, unless versions follow one another."""
    if over != "time":
        return [((one.part, one.mode, None), one) for one in several]
    return [((one.part, one.mode, version), told) for one in several for version, told in timelines(one)]


def _labels(panels: Sequence[_Lines], names: Mapping[tuple[str, str], str]) -> dict[LineKey, str]:
    """What each line is called: its kernel or mode, its version, or both where either leaves a doubt."""
    keys = list(dict.fromkeys(key for lines in panels for key, _ in lines))
    one_kind = len({names[part, mode] for part, mode, _ in keys}) == 1
    found = {}
    for part, mode, version in keys:
        name = names[part, mode]
        found[part, mode, version] = name if version is None else version if one_kind else f"{version} {name}"
    return found


def line_names(several: Sequence[Trend]) -> dict[tuple[str, str], str]:
    """What each part and mode is called: its kernel, with the mode where there are several; calls by mode."""
    short = short_names(one.part for one in several if one.concept != LATENCY)
    modes: dict[str, set[str]] = defaultdict(set)
    for one in several:
        modes[one.part].add(one.mode)
    names = {}
    for one in several:
        if one.concept == LATENCY:  # its part is the whole call
            names[one.part, one.mode] = mode_name(one.mode)
        elif len(modes[one.part]) > 1:
            names[one.part, one.mode] = f"{short[one.part]} ({one.mode})"
        else:
            names[one.part, one.mode] = short[one.part]
    return names


def mode_name(mode: str) -> str:
    """How calls were timed, without the clock that all of one GPU share: `events; cache warm`."""
    return mode.rpartition("; clock ")[0] or mode


def numbers(several: Sequence[Trend], versions: Sequence[str], family: str, ranking: Sequence[Trend]) -> Html:
    """One metric: a row a kernel, a column a version, which links to the diff with the one before."""
    kept = list(versions)[-COLUMNS_SHOWN:]
    heads = []
    for version in kept:
        place = list(versions).index(version)
        shown = markup.code(shorten(version, 18), title=version)
        if place:
            view = addresses.Diff(f"{family}/{versions[place - 1]}", f"{family}/{version}")
            shown = markup.link(view.href, shown, title=f"diff with {versions[place - 1]}")
        heads.append(Column(shown, right=True))
    names = line_names((*ranking, *several))
    order = list(names)
    rows = []
    for one in sorted(several, key=lambda one: order.index((one.part, one.mode)))[:ROWS_SHOWN]:
        by_version = {point.version: point for point in one.points}
        cells = [_cell(by_version.get(version)) for version in kept]
        rows.append(Row((markup.code(names[one.part, one.mode]), *cells)))
    return markup.table("numbers", (Column("kernel"), *heads), rows)


def notes(shown: Picture, found: Mapping[str, Sequence[Trend]], words: Callable[[str], str]) -> list[Html]:
    """What the chart does not show: metrics nobody collected, kernels cut off, and why lines are broken."""
    lines = []
    if shown.absent:
        lines.append(
            markup.state(f"not collected in any of these runs: {', '.join(map(words, shown.absent))}")
        )
    if shown.hidden:
        cut = f"{len(shown.hidden)} shorter kernels are not drawn: {brief_list(shown.hidden)}"
        lines.append(markup.escaped(f"{cut}. Name some of them under kernels."))
    reasons = [
        f"not joined at {point.version}: {point.breaks}"
        for several in found.values()
        for one in several
        for point in one.points
        if point.breaks
    ]
    return [markup.note(line) for line in (*lines, *dict.fromkeys(reasons))]


def refusal(refused: Mapping[str, str]) -> str:
    """Why metrics are not shown, in one text however many they are."""
    reasons = list(dict.fromkeys(refused.values()))
    if len(reasons) < 2:
        return "".join(reasons)
    return f"{reasons[0]}. {len(refused) - 1} more are not shown: {brief_list(list(refused)[1:])}"


def metric_words(table: MetricTable) -> Callable[[str], str]:
    """How a metric is called on screen: its label, or the exact ncu name."""
    labels = {metric.concept: metric.label for metric in table.metrics}
    return lambda name: labels.get(name, name)


def opcode_mix(
    lineage: Lineage, versions: Sequence[str], size: str, arch: str, gutter: int
) -> tuple[Figure, str]:
    """What each version's machine code consists of, and the same in words for who cannot see it."""
    found: dict[str, Mapping[str, float] | str] = {}
    for version in versions:
        one = lineage.by_id.get(version)
        launch = one.static.get((arch, size)) if one else None
        if one is not None and one.is_wrong:
            found[version] = one.state
        else:
            found[version] = (
                opcodes.class_shares(launch.opcodes) if launch and launch.opcodes else "not collected"
            )
    caption = f"static, {size}, {arch}"
    mix = stacked_shares.figure("opcode mix, %", caption, versions, found, gutter)
    return mix, f"opcode mix of {brief_list(list(versions))}"


def defaults(evidence: Evidence, timed: bool = False) -> tuple[str, ...]:
    """What is shown unasked; the latency of calls first where they were timed."""
    return (LATENCY, *DEFAULTS[evidence]) if timed else DEFAULTS[evidence]


def offered(table: MetricTable, names: Sequence[str], evidence: Evidence, timed: bool = False) -> list[str]:
    """The concepts and exact names that results of this evidence can carry."""
    own = [*([LATENCY] if timed else []), *(metric.concept for metric in table.of(evidence))]
    return [*own, *(name for name in names if _kind(name) is evidence)]


def of_evidence(asked: Sequence[str], table: MetricTable, evidence: Evidence) -> list[str]:
    """Those of the chosen metrics that this evidence can carry, else the ones it is shown by."""
    known = {metric.concept: metric.evidence for metric in table.metrics}
    kept = [name for name in asked if known.get(name, _kind(name)) is evidence]
    return kept or [name for name in DEFAULTS[evidence] if name in known]


def _kind(name: str) -> Evidence:
    kind = name.partition("__")[0]
    return Evidence(kind) if kind in (Evidence.STATIC, Evidence.MODELLED) else Evidence.MEASURED


def table_caption(several: Sequence[Trend], versions: Sequence[str]) -> str:
    """What the table holds, and what it leaves out."""
    unit = several[0].unit if several else ""
    parts = [unit] if formatting.is_long_unit(unit) else []
    parts += ["a version's name leads to the diff with the one before"]
    if len(several) > ROWS_SHOWN:
        parts.insert(0, f"the {ROWS_SHOWN} longest of {len(several)} kernels")
    if len(versions) > COLUMNS_SHOWN:
        parts.insert(0, f"the newest {COLUMNS_SHOWN} of {len(versions)} versions")
    return "; ".join(parts)


def fitting(
    every: Mapping[str, Sequence[Trend]], ranking: Sequence[Trend], kernels: str
) -> tuple[dict[str, list[Trend]], list[Trend]]:
    """The series whose kernel fits the filter, and their ranking; UnknownName where none does."""
    fits = name_filter(kernels or None)

    def kept(several: Sequence[Trend]) -> list[Trend]:
        return [one for one in several if fits(one.part) or fits(one.base_name)]

    found = {name: kept(several) for name, several in every.items()}
    there = sorted({one.base_name for several in every.values() for one in several})
    if there and not any(found.values()):
        raise UnknownName(f"no kernel matches {kernels!r}; there are {brief_list(there)}")
    return found, kept(ranking)


def floor_notes(found: Mapping[str, Sequence[Trend]], noise: NoiseModel) -> list[Html]:
    """How wide the band around each latency is, or the command that finds out; each once."""
    lines = []
    for one in found.get(LATENCY, ()):
        words = latency_words.aa_floor(_floor(one, noise), one.points[-1].version, one.workload)
        lines.append(f"{one.mode}: {words}{'; grey band' if band(one, noise) else ''}")
    return [markup.note(markup.backticks_as_code(line)) for line in dict.fromkeys(lines)]


def band(one: Trend, noise: NoiseModel) -> float:
    """The share by which equal builds lie apart there; 0 where nobody knows, or it is no latency."""
    here = _floor(one, noise)
    return 0.0 if here is None or here.pairs < MIN_FLOOR_PAIRS else math.expm1(here.limit)


def _floor(one: Trend, noise: NoiseModel) -> NoiseFloor | None:
    number = one.newest.number
    if one.concept != LATENCY or number is None:
        return None
    return noise.floor(one.gpu or "", one.mode, float(number))


def _panel(
    keyed: _Lines,
    labels: Mapping[LineKey, str],
    versions: Sequence[str],
    over: str,
    noise: NoiseModel,
) -> small_multiples.Panel:
    several = [one for _, one in keyed]
    values = [
        p.value.number for one in several for p in one.points if p.on_line and p.value.number is not None
    ]
    unit = next((one.unit for one in several if one.unit), "")
    scale = formatting.scale_for(unit, max(map(abs, values), default=0.0))
    order = {version: index for index, version in enumerate(versions)}
    lines = []
    for key, one in keyed:
        shown = [point for point in one.points if over == "time" or point.version in order]
        points = tuple(_point(point, scale, _place(point, order, over)) for point in shown)
        lines.append(small_multiples.Line(labels[key], points, band=band(one, noise)))
    caption = ", ".join(dict.fromkeys(one.evidence.value for one in several))
    if len(several) == 1:
        caption += f", {labels[keyed[0][0]]}"
    from_zero = several[0].concept != LATENCY
    return small_multiples.Panel(several[0].label, scale.unit, tuple(lines), caption, from_zero)


def _place(point: TrendPoint, order: Mapping[str, int], over: str) -> float:
    return point.created.timestamp() * 1000 if over == "time" else float(order[point.version])


def _point(point: TrendPoint, scale: formatting.Scale, at: float) -> small_multiples.Point:
    if not point.on_line or point.value.number is None:
        words = point.gap if point.gap == ABSENT or point.wrong else formatting.state_words(point.value)
        return small_multiples.Point(at, None, hover=f"{point.version}: {words}", gap=words)
    size = (
        f" · {formatting.dimensions(point.grid)} blocks of {formatting.dimensions(point.block)}"
        if point.grid
        else ""
    )
    amount = formatting.quantity(point.value, scale)
    hover = f"{point.version}: {amount}{size} · {formatting.timestamp(point.created)}"
    if point.breaks:
        hover += f" · not joined: {point.breaks}"
    label = formatting.quantity(point.value, scale).number
    number = point.value.number / scale.divisor
    return small_multiples.Point(at, number, hover=hover, label=label, joined=not point.breaks)


def _cell(point: TrendPoint | None) -> Html:
    if point is None or point.gap == ABSENT:
        return markup.muted("–")
    value = point.value
    if formatting.is_long_unit(value.unit):  # it stands in the caption
        value = value._replace(unit="")
    if point.wrong:
        return markup.tag("span", markup.muted(f"⊘ {formatting.quantity(value)}"), title=point.gap)
    return markup.value(value)
