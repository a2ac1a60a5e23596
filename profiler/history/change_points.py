"""Since when a metric is what it is: the steps of each series, with runs, verdicts and circumstances."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from profiler.bundles.location import Root
from profiler.bundles.run import Run
from profiler.compare.environment_change import RunChanges, run_changes, run_code_loader
from profiler.errors import UnknownName
from profiler.evidence.metric_table import Metric, MetricTable
from profiler.evidence.naming import brief_list, nearest_first
from profiler.evidence.values import Evidence
from profiler.history.latency_trends import LATENCY, LATENCY_METRIC, latencies
from profiler.history.trend import Trend, TrendPoint, trend
from profiler.statistics.changepoint import MIN_POINTS, MIN_TAIL, ChangePoint, change_points
from profiler.statistics.decision import Verdict

if TYPE_CHECKING:
    from profiler.store import RunInfo, Store

RUNS, VERSIONS = "runs", "versions"
UNDECLARED = 0.01  # relevant change of a metric that metrics.txt does not declare
_Bundles = Callable[[str], Run | None]


@dataclass(frozen=True)
class Change:
    """One step of a series."""

    step: ChangePoint  # its indices are places in the history's points
    verdict: Verdict  # better, worse or changed
    reason: str
    before: TrendPoint  # the last that is surely of the old level
    possible: tuple[TrendPoint, ...]  # one of these is the first of the new level; never empty
    likeliest: TrendPoint
    circumstances: RunChanges

    @property
    def after(self) -> TrendPoint:
        """The first that is surely of the new level."""
        return self.possible[-1]


@dataclass(frozen=True)
class History:
    """The steps of one series, oldest first. `series` holds the points that were looked at, in order."""

    series: Trend
    over: str  # runs, or versions: the newest run of each
    version: str | None  # the only one; None: all
    changes: tuple[Change, ...]
    short: str = ""  # why no step can be told, where there are too few points

    @property
    def last_pair(self) -> tuple[TrendPoint, TrendPoint] | None:
        """The last two points with a number: a step of the last alone is the pairwise rule's business."""
        numbers = [point for point in self.series.points if point.joins]
        return (numbers[-2], numbers[-1]) if len(numbers) > 1 else None


def histories(
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
) -> list[History]:
    """The histories of a concept, of `latency`, or of an exact ncu name.

    A series whose versions follow one another in time, as commits do, is one history over all its runs.
    Where runs hold several versions, each version is a history over its runs, and the newest run of each
    version one over versions. `version` leaves that one over its runs. `orders` and `wrong` are those of
    `trend`; what is wrong is no part of any level. Raises UnknownName for a name or filter that stands for
    nothing.
    """
    metric = LATENCY_METRIC if name == LATENCY else table.by_concept.get(name)
    if name == LATENCY:
        series = latencies(store, family=family, workload=workload, gpu=gpu, kernel=kernel, wrong=wrong)
    else:
        across = ("driver", "ncu")  # they are what a step may be due to
        series = trend(
            store,
            name,
            table,
            family=family,
            workload=workload,
            gpu=gpu,
            kernel=kernel,
            evidence=evidence,
            over="time",
            across=across,
            wrong=wrong,
        )
    if version is not None and series:
        series = _only(series, version)
    runs = cache(store.run)  # few are asked for: those at the steps
    bundles = run_code_loader(root)
    found = []
    for one in series:
        for over, only, told in views(one, (orders or {}).get(one.family, ()), version):
            found.append(_history(told, over, only, metric, runs, bundles))
    return found


def steps(series: Trend, metric: Metric | None) -> list[ChangePoint]:
    """The change points of a series, by the metric's relevant change: a pure function of its points.

    Indices are places in `series.points`. Nothing is joined over another counter or unit.
    """
    absolute = metric is not None and metric.threshold_pp is not None
    least = UNDECLARED if metric is None else metric.threshold
    if metric is not None and metric.threshold_pp is not None:
        least = metric.threshold_pp
    found = []
    for begin, end in _stretches(series.points):
        numbers = [
            float(point.value.number) if point.joins and point.value.number is not None else math.nan
            for point in series.points[begin:end]
        ]
        for one in change_points(numbers, least=least, absolute=absolute):
            places = (one.index + begin, one.earliest + begin, one.latest + begin)
            found.append(replace(one, index=places[0], earliest=places[1], latest=places[2]))
    return found


def _stretches(points: Sequence[TrendPoint]) -> list[tuple[int, int]]:
    """Where the points lie that were read by one counter in one unit: begin and end of each stretch."""
    cuts, last = [0], None
    for place, point in enumerate(points):
        if point.joins:
            read_by = (point.metric, point.value.unit)
            if last is not None and read_by != last:
                cuts.append(place)
            last = read_by
    return list(zip(cuts, [*cuts[1:], len(points)], strict=True))


def _only(series: Sequence[Trend], version: str) -> list[Trend]:
    """The points of one version; UnknownName where no series has any."""
    kept = [(one, tuple(p for p in one.points if p.version == version)) for one in series]
    found = [replace(one, points=points) for one, points in kept if any(p.metric for p in points)]
    if not found:
        there = dict.fromkeys(point.version for one in series for point in one.points)
        raise UnknownName(
            f"no version {version!r} in these series; there are {brief_list(nearest_first(version, there))}"
        )
    return found


def views(one: Trend, order: Sequence[str], version: str | None) -> list[tuple[str, str | None, Trend]]:
    """What of a series is looked at: over runs or versions, of which version, and the points."""
    if version is not None:
        return [(RUNS, version, one)]
    names = dict.fromkeys((*order, *(point.version for point in one.points)))
    places = {name: place for place, name in enumerate(names)}
    by_time = sorted(one.points, key=lambda p: (p.created, p.run_id, places[p.version]))
    one = replace(one, points=tuple(by_time))
    turns = [name for name, _ in groupby(point.version for point in one.points if point.joins)]
    if len(turns) == len(set(turns)):
        several_a_run = len({point.run_id for point in one.points}) < len(turns)
        return [(VERSIONS if several_a_run else RUNS, None, one)]
    views: list[tuple[str, str | None, Trend]] = []
    newest: dict[str, TrendPoint] = {}
    for name in sorted(set(turns), key=places.__getitem__):
        points = tuple(point for point in one.points if point.version == name)
        views.append((RUNS, name, replace(one, points=points)))
        newest[name] = points[-1]
    return [*views, (VERSIONS, None, replace(one, points=tuple(newest.values())))]


def only(one: Trend, version: str) -> Trend:
    """The points of one version, oldest first."""
    own = sorted((p for p in one.points if p.version == version), key=lambda p: (p.created, p.run_id))
    return replace(one, points=tuple(own))


def _history(
    series: Trend,
    over: str,
    version: str | None,
    metric: Metric | None,
    runs: Callable[[str], RunInfo | None],
    bundles: _Bundles,
) -> History:
    numbers = max(
        sum(point.joins for point in series.points[begin:end]) for begin, end in _stretches(series.points)
    )
    short = f"{numbers} of the {MIN_POINTS} points that a step needs" if numbers < MIN_POINTS else ""
    changes = tuple(_change(series, one, metric, runs, bundles) for one in steps(series, metric))
    return History(series, over, version, changes, short)


def _change(
    series: Trend,
    step: ChangePoint,
    metric: Metric | None,
    runs: Callable[[str], RunInfo | None],
    bundles: _Bundles,
) -> Change:
    points = series.points
    possible = tuple(points[step.earliest : step.latest + 1])
    before, after = points[step.earliest - 1], possible[-1]
    met = dict.fromkeys(point.run_id for point in (before, *possible))
    told = run_changes(
        [run for run in map(runs, met) if run is not None],
        (bundles(before.run_id), before.version),
        (bundles(after.run_id), after.version),
        series.part,
        series.evidence,
    )
    verdict, reason = _verdict(step, metric)
    return Change(step, verdict, reason, before, possible, points[step.index], told)


def _verdict(step: ChangePoint, metric: Metric | None) -> tuple[Verdict, str]:
    """The word for the step, by the metric's direction."""
    sure = f"t {step.t:.1f} over the {MIN_TAIL} points or more of its level"
    if metric is None:
        return Verdict.CHANGED, f"{sure}; metrics.txt does not judge it"
    if metric.better == "-":
        return Verdict.CHANGED, f"{sure}; neither direction is better by itself"
    word = Verdict.BETTER if (step.direction < 0) == (metric.better == "lower") else Verdict.WORSE
    return word, f"{sure}; {metric.better} is better"
