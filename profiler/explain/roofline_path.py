"""The path of a kernel through the roofline of its GPU, version by version, with gaps and breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.explain.roofline import LEVELS, Roofline, RooflinePoint, roofline_of
from profiler.history.trend import Trend, TrendPoint, driver_and_ncu_differences

if TYPE_CHECKING:
    from profiler.store.rows import RunInfo

LAUNCH_METRIC = "gpu__time_duration.sum"  # what every launch has: it says which launches there are


@dataclass(frozen=True)
class PathStep:
    """One version: the roofline of its launch, or why it has none."""

    trend_point: TrendPoint
    roofline: Roofline | None
    run: RunInfo | None = None
    gap: str = ""  # why the version is no part of the path
    chip: str | None = None  # that it ran on

    @property
    def version(self) -> str:
        """The name of the version."""
        return self.trend_point.version

    def point(self, level: str) -> RooflinePoint | None:
        """The point at this level of the precision with most work; None for a gap."""
        if self.roofline is None or self.gap or (leading := self.roofline.leading) is None:
            return None
        for point in self.roofline.points:
            if (point.precision, point.level) == (leading.name, level):
                return point
        return None

    def counters(self, level: str) -> tuple[str, ...]:
        """The metrics that the traffic of a level was read from."""
        if self.roofline is None:
            return ()
        return self.roofline.levels[LEVELS.index(level)].rate.names


@dataclass(frozen=True)
class PathSegment:
    """A line from one version's point to the next one's; `breaks` says why the two must not be joined."""

    start: PathStep
    end: PathStep
    breaks: str = ""


@dataclass(frozen=True)
class RooflinePath:
    """One kernel's steps on one GPU and workload, in the order of the versions."""

    trend: Trend
    steps: tuple[PathStep, ...]
    parents: Mapping[str, str | None] | None = None  # of the versions, where a catalogue says

    def steps_at(self, level: str) -> tuple[PathStep, ...]:
        """The steps with a point at this level."""
        return tuple(step for step in self.steps if step.point(level) is not None)

    def segments(self, level: str) -> tuple[PathSegment, ...]:
        """To each step with a point, from its nearest ancestor with one, or the step before."""
        segments = []
        with_point = {step.version: step for step in self.steps_at(level)}
        previous: PathStep | None = None
        for step in with_point.values():
            start = previous if self.parents is None else self._nearest_ancestor(step, with_point)
            if start is not None:
                segments.append(PathSegment(start, step, "; ".join(_differences(start, step, level))))
            previous = step
        return tuple(segments)

    def _nearest_ancestor(self, step: PathStep, with_point: Mapping[str, PathStep]) -> PathStep | None:
        parents = self.parents or {}
        name = parents.get(step.version)
        for _ in parents:  # no more often than there are versions, should the parents go round in a circle
            if name is None or name in with_point:
                break
            name = parents.get(name)
        return with_point.get(name) if name is not None else None

    @property
    def roofs(self) -> Roofline | None:
        """The roofs to draw: those of the newest version with a point."""
        rooflines = [
            step.roofline for step in self.steps if step.roofline is not None and step.roofline.points
        ]
        return rooflines[-1] if rooflines else None


def load_roofline_path(
    trend: Trend,
    load: Callable[[Sequence[int]], Sequence[Launch]],
    runs: Mapping[str, RunInfo],
    table: MetricTable,
    parents: Mapping[str, str | None] | None = None,
) -> RooflinePath:
    """The path along a series of any metric, which says what launches there are and what is wrong with them.

    `load` returns the launches of result ids, as `Store.load` does.
    """
    ids = [point.result_id for point in trend.points if point.result_id is not None]
    launches = dict(zip(ids, load(ids), strict=True)) if ids else {}
    return RooflinePath(trend, tuple(_step(point, launches, runs, table) for point in trend.points), parents)


def _step(
    point: TrendPoint, launches: Mapping[int, Launch], runs: Mapping[str, RunInfo], table: MetricTable
) -> PathStep:
    run = runs.get(point.run_id)
    if point.result_id is None:
        return PathStep(point, None, run, point.gap)
    launch = launches[point.result_id]
    chip = chip_of(launch.compute_capability or (run.compute_capability if run else None))
    roofline = roofline_of(launch, table, chip, run.ncu_version if run else None)
    gap = point.gap if point.wrong else "" if roofline.points else "not collected"
    return PathStep(point, roofline, run, gap, chip)


def _differences(start: PathStep, end: PathStep, level: str) -> Iterator[str]:
    """Why two points are not comparable although both versions have one."""
    if start.run and end.run:
        yield from driver_and_ncu_differences(start.run, end.run)
    if start.counters(level) != end.counters(level):
        yield f"{level} traffic by different counters"
