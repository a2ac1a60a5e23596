"""Finds since when a metric has its value: the steps of each series, with verdicts and what else changed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from profiler.bundles.location import Root
from profiler.bundles.run import Run
from profiler.compare.environment_change import RunChanges, run_changes
from profiler.compare.kernel_pairs import NO_PAIRS, Pairing
from profiler.compare.same_code import CHANGED, run_code_loader
from profiler.compare.workload_change import describe_sizes, is_other_grid
from profiler.errors import UnknownName
from profiler.evidence.metric_table import Metric, MetricTable
from profiler.evidence.naming import brief_list, nearest_first
from profiler.evidence.values import Evidence
from profiler.history.trend import (
    LATENCY,
    LATENCY_METRIC,
    Trend,
    TrendPoint,
    load_latency_trends,
    load_trends,
)
from profiler.statistics.changepoint import MIN_POINTS, MIN_TAIL, ChangePoint, LevelKind, change_points
from profiler.statistics.verdict import Verdict

if TYPE_CHECKING:
    from profiler.store.index import Store
    from profiler.store.rows import RunInfo

RUNS, VERSIONS = "runs", "versions"
ACROSS = ("driver", "ncu")  # may differ along a series: a step may be due to either
SAME_BUILD = "the machine code is the same"
UNDECLARED_THRESHOLD = 0.01  # relevant change of a metric that metrics.txt does not declare
_DRIFT_ENDS = 5  # points whose median is the level at either end of a drift
_FindRun = Callable[[str], "RunInfo | None"]  # in the index, by id
_LoadBundle = Callable[[str], Run | None]


@dataclass(frozen=True)
class LevelStep:
    """One step of a series from one level to another."""

    change_point: ChangePoint  # its indices are those of the history's series.points
    verdict: Verdict  # better, worse or changed; not_comparable between two problem sizes
    reason: str
    before: TrendPoint  # the last point that surely has the old level
    possible: tuple[TrendPoint, ...]  # one of these is the first with the new level; never empty
    likeliest: TrendPoint  # the most likely of them
    circumstances: RunChanges  # what else changed between `before` and the last of `possible`
    by_direction: Verdict  # its verdict without regard to what can have caused it
    level: LevelKind = LevelKind.NEW  # what its new level is
    equal: TrendPoint | None = None  # the first point of the equal level: earlier (KNOWN) or later (LEFT)

    @property
    def is_alarm(self) -> bool:
        """Whether it is a change for the better or the worse to a level that is new, and holds.

        Steps of one build are none by themselves; where many series share them they are one (`shared_steps`).
        """
        return self.level is LevelKind.NEW and self.verdict.traits.moved

    @property
    def after(self) -> TrendPoint:
        """The first point that surely has the new level."""
        return self.possible[-1]


@dataclass(frozen=True)
class Drift:
    """A stretch of a series whose values move slowly in one direction, without a step."""

    first: TrendPoint
    last: TrendPoint
    before: float  # level at its begin
    after: float  # and at its end

    @property
    def size(self) -> float:
        """The change as a share of the level before; NaN where that is 0."""
        return (self.after - self.before) / abs(self.before) if self.before else math.nan


@dataclass(frozen=True)
class History:
    """The steps of one series, oldest first. `series` has the points that were searched, in order."""

    series: Trend
    over: str  # runs, or versions: the newest run of each
    version: str | None  # the only one; None: all
    steps: tuple[LevelStep, ...]
    not_judged: str = ""  # why no step could be found; "" where there are enough points
    points: int = 0  # numbers in the longest stretch that was read by one counter in one unit
    drifts: tuple[Drift, ...] = ()  # oldest first

    @property
    def last_pair(self) -> tuple[TrendPoint, TrendPoint] | None:
        """The last two points with a number: a step of the last point alone is judged by comparing these."""
        points = self.series.points_on_line
        return (points[-2], points[-1]) if len(points) > 1 else None


class SeriesView(NamedTuple):
    """Points of a series that are searched together, as one line."""

    over: str  # runs, or versions: the newest run of each
    version: str | None  # the only one; None: all
    series: Trend


def find_change_points(
    store: Store,
    root: Root,
    table: MetricTable,
    name: str,
    *,
    family: str | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    evidence: Evidence | None = None,
    version: str | None = None,
    orders: Mapping[str, Sequence[str]] | None = None,
    wrong: Mapping[str, Mapping[str, str]] | None = None,
    pairing: Pairing = NO_PAIRS,
) -> list[History]:
    """The histories of a concept, of `latency`, or of an exact ncu name.

    A series whose versions follow one another in time, as commits do, is one history over all its runs.
    Otherwise each version is a history over its runs, and the newest runs of the versions are one more.
    `version` selects the history of that version alone. `orders`, `wrong` and `pairing` are as for
    `load_trends`; wrong results are part of no level. Raises UnknownName for a name or filter that stands for
    nothing.
    """
    metric = LATENCY_METRIC if name == LATENCY else table.by_concept.get(name)
    if name == LATENCY:
        trends = load_latency_trends(
            store, family=family, workload=workload, gpu=gpu, kernel=kernel, wrong=wrong
        )
    else:
        trends = load_trends(
            store,
            name,
            table,
            family=family,
            workload=workload,
            gpu=gpu,
            kernel=kernel,
            evidence=evidence,
            over="time",
            across=ACROSS,
            wrong=wrong,
            pairing=pairing,
        )
    if version is not None and trends:
        trends = _of_one_version(trends, version)
    return search_histories(trends, root, metric, store.run, orders=orders, version=version)


def search_histories(
    trends: Iterable[Trend],
    root: Root,
    metric: Metric | None,
    find_run: Callable[[str], RunInfo | None],
    *,
    orders: Mapping[str, Sequence[str]] | None = None,
    version: str | None = None,
) -> list[History]:
    """The histories of series over all runs that were loaded before, as `find_change_points` has them.

    `metric` is that of the series, None for one that metrics.txt does not name. `find_run` looks up a run of
    the index by its id, once for each run at a step. `version` is the only one in the series; None: several.
    """
    find_once = cache(find_run)
    load_bundle = run_code_loader(root)
    return [
        _history(view, metric, find_once, load_bundle)
        for series in trends
        for view in series_views(series, (orders or {}).get(series.family, ()), version)
    ]


def change_points_in(series: Trend, metric: Metric | None) -> list[ChangePoint]:
    """The change points of a series that exceed the metric's threshold: a pure function of its points.

    Indices are those of `series.points`. Points read by different counters or in different units are searched
    separately.
    """
    absolute = metric is not None and metric.threshold_pp is not None
    least = UNDECLARED_THRESHOLD if metric is None else metric.threshold
    if metric is not None and metric.threshold_pp is not None:
        least = metric.threshold_pp
    all_change_points: list[ChangePoint] = []
    for begin, end in _stretches(series.points):
        numbers = [
            float(point.value.number) if point.on_line and point.value.number is not None else math.nan
            for point in series.points[begin:end]
        ]
        all_change_points += [
            replace(
                change_point,
                index=change_point.index + begin,
                earliest=change_point.earliest + begin,
                latest=change_point.latest + begin,
                related=None if change_point.related is None else change_point.related + begin,
            )
            for change_point in change_points(numbers, least=least, absolute=absolute)
        ]
    return all_change_points


def series_views(series: Trend, order: Sequence[str], version: str | None) -> list[SeriesView]:
    """The lines to search in a series: all its runs where versions follow one another, else each version's.

    `order` sorts the versions; those that it lacks come last, in the order of their runs.
    """
    if version is not None:
        return [SeriesView(RUNS, version, series)]
    names = dict.fromkeys((*order, *(point.version for point in series.points)))
    rank = {name: index for index, name in enumerate(names)}
    by_time = sorted(series.points, key=lambda point: (point.created, point.run_id, rank[point.version]))
    series = replace(series, points=tuple(by_time))
    turns = [name for name, _ in groupby(point.version for point in series.points if point.on_line)]
    if len(turns) == len(set(turns)):  # no version comes back after another: they follow one another
        several_a_run = len({point.run_id for point in series.points}) < len(turns)
        return [SeriesView(VERSIONS if several_a_run else RUNS, None, series)]
    of_version: dict[str, list[TrendPoint]] = defaultdict(list)
    for point in by_time:
        of_version[point.version].append(point)
    views: list[SeriesView] = []
    newest: dict[str, TrendPoint] = {}
    for name in sorted(set(turns), key=rank.__getitem__):
        points = tuple(of_version[name])
        views.append(SeriesView(RUNS, name, replace(series, points=points)))
        newest[name] = points[-1]
    return [*views, SeriesView(VERSIONS, None, replace(series, points=tuple(newest.values())))]


def by_version(series: Trend) -> list[Trend]:
    """The points of each version, oldest first; versions without a number on the line are left out."""
    present = {point.version for point in series.points_on_line}
    of_version: dict[str, list[TrendPoint]] = defaultdict(list)
    for point in series.points:
        if point.version in present:
            of_version[point.version].append(point)
    lines = []
    for points in of_version.values():
        points.sort(key=lambda point: (point.created, point.run_id))
        lines.append(replace(series, points=tuple(points)))
    return lines


def _of_one_version(trends: Sequence[Trend], version: str) -> list[Trend]:
    """The series with the points of one version alone. Raises UnknownName where no series has any."""
    own = [
        replace(series, points=tuple(point for point in series.points if point.version == version))
        for series in trends
    ]
    with_points = [series for series in own if any(point.metric for point in series.points)]
    if not with_points:
        present = dict.fromkeys(point.version for series in trends for point in series.points)
        raise UnknownName(
            f"no version {version!r} in these series; there are {brief_list(nearest_first(version, present))}"
        )
    return with_points


def describe_too_few(fewest: int, most: int) -> str:
    """Why steps are not searched in histories with so many points."""
    count = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{count} points, a step needs {MIN_POINTS}"


def _stretches(points: Sequence[TrendPoint]) -> list[tuple[int, int]]:
    """The begin and end of each stretch of points that were read by one counter in one unit."""
    begins, previous = [0], None
    for index, point in enumerate(points):
        if point.on_line:
            counter = (point.metric, point.value.unit)
            if previous is not None and counter != previous:
                begins.append(index)
            previous = counter
    return list(zip(begins, [*begins[1:], len(points)], strict=True))


def _history(
    view: SeriesView, metric: Metric | None, find_run: _FindRun, load_bundle: _LoadBundle
) -> History:
    over, version, series = view
    # Each stretch is searched by itself, so the longest one decides whether a step could be found.
    count = max(
        sum(point.on_line for point in series.points[begin:end]) for begin, end in _stretches(series.points)
    )
    not_judged = describe_too_few(count, count) if count < MIN_POINTS else ""
    found = change_points_in(series, metric)
    steps = tuple(
        _step(series, change_point, metric, find_run, load_bundle)
        for change_point in found
        if change_point.kind is not LevelKind.DRIFT
    )
    return History(series, over, version, steps, not_judged, count, _drifts(series, found))


def _drifts(series: Trend, found: Sequence[ChangePoint]) -> tuple[Drift, ...]:
    """The drifts of a series, each over the levels beside its steps; those in one direction are one."""
    drifts = []
    begin = 0
    for (is_drift, _), steps in groupby(
        found, key=lambda step: (step.kind is LevelKind.DRIFT, step.direction)
    ):
        last = list(steps)[-1]
        if is_drift:
            end = next((step.earliest for step in found if step.index > last.index), len(series.points))
            points = [point for point in series.points[begin:end] if point.on_line]
            ends = points[:_DRIFT_ENDS], points[-_DRIFT_ENDS:]
            before, after = (median(float(point.value.number or 0) for point in few) for few in ends)
            drifts.append(Drift(points[0], points[-1], before, after))
        begin = last.index
    return tuple(drifts)


def _step(
    series: Trend,
    change_point: ChangePoint,
    metric: Metric | None,
    find_run: _FindRun,
    load_bundle: _LoadBundle,
) -> LevelStep:
    points = series.points
    possible = tuple(points[change_point.earliest : change_point.latest + 1])
    before, after = points[change_point.earliest - 1], possible[-1]
    run_ids = dict.fromkeys(point.run_id for point in (before, *possible))
    what_else_changed = run_changes(
        [run for run in map(find_run, run_ids) if run is not None],
        (load_bundle(before.run_id), before.version),
        (load_bundle(after.run_id), after.version),
        series.part,
        series.evidence,
    )
    by_direction, reason = _verdict(change_point, metric)
    verdict = by_direction
    is_same_code = what_else_changed.code.word != CHANGED
    is_same_build = what_else_changed.code.is_same_build and before.run_id != after.run_id
    if verdict.traits.moved and series.evidence is Evidence.MEASURED and is_same_build:
        moved = what_else_changed.environment
        words = f"{SAME_BUILD}: {'the environment moved' if moved else 'what moved it is not known'}"
        verdict, reason = (Verdict.CHANGED if moved else verdict), f"{words}; {reason}"
    level, equal = _level(series, change_point, is_same_code)
    if equal is not None:
        verdict = by_direction = Verdict.CHANGED
        reason = f"{level}: the level of {equal.version} {equal.created:%Y-%m-%d %H:%M}; {reason}"
    if not series.workload and is_same_code and is_other_grid(before, after):
        verdict = by_direction = Verdict.NOT_COMPARABLE
        reason = f"another workload: {describe_sizes(before, after)}"
    return LevelStep(
        change_point,
        verdict,
        reason,
        before,
        possible,
        points[change_point.index],
        what_else_changed,
        by_direction,
        level,
        equal,
    )


def _level(
    series: Trend, change_point: ChangePoint, is_same_code: bool
) -> tuple[LevelKind, TrendPoint | None]:
    """What the level after a step is, and the first point of the level that equals it.

    Only the machine has states: facts depend on the code alone, and other code is a cause of its own.
    """
    if change_point.related is None or series.evidence is not Evidence.MEASURED or not is_same_code:
        return LevelKind.NEW, None
    return change_point.kind, series.points[change_point.related]


def _verdict(change_point: ChangePoint, metric: Metric | None) -> tuple[Verdict, str]:
    """The verdict on a step, by the metric's direction, and the reason for it."""
    certainty = f"t {change_point.t:.1f} over the {MIN_TAIL} points or more of its level"
    if metric is None:
        return Verdict.CHANGED, f"{certainty}; metrics.txt does not judge it"
    if metric.better == "-":
        return Verdict.CHANGED, f"{certainty}; neither direction is better by itself"
    is_better = (change_point.direction < 0) == (metric.better == "lower")
    return Verdict.BETTER if is_better else Verdict.WORSE, f"{certainty}; {metric.better} is better"
