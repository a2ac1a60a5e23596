"""The path of a kernel through the roofline of its GPU, version by version: gaps, breaks, one point each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.evidence import Launch, MetricTable, chip_of
from profiler.explain.roofline import LEVELS, Roofline, RooflinePoint, roofline_of
from profiler.history import Trend, TrendPoint

if TYPE_CHECKING:
    from profiler.store import RunInfo

LAUNCH_METRIC = "gpu__time_duration.sum"  # what every launch has: it says which launches there are


@dataclass(frozen=True)
class PathStep:
    """One version: its launch's roofline, or why it has none."""

    at: TrendPoint
    roofline: Roofline | None
    run: RunInfo | None = None
    gap: str = ""  # why the version is no part of the path

    @property
    def chip(self) -> str | None:
        """What it ran on."""
        capability = self.run.compute_capability if self.run else None
        return chip_of(capability) if capability else None

    def point(self, level: str) -> RooflinePoint | None:
        """The precision with most work, seen from one level."""
        if self.roofline is None or self.gap or (leading := self.roofline.leading) is None:
            return None
        wanted = (one for one in self.roofline.points if (one.precision, one.level) == (leading.name, level))
        return next(wanted, None)

    def counters(self, level: str) -> tuple[str, ...]:
        """By which metrics the traffic of a level was read."""
        if self.roofline is None:
            return ()
        return self.roofline.levels[LEVELS.index(level)].rate.names


@dataclass(frozen=True)
class PathSegment:
    """From one version's point to the next one's; `breaks` says why no arrow may join them."""

    start: PathStep
    end: PathStep
    breaks: str = ""


@dataclass(frozen=True)
class RooflinePath:
    """One kernel's steps on one GPU and workload, in the order of the versions."""

    trend: Trend
    steps: tuple[PathStep, ...]
    parents: Mapping[str, str | None] | None = None  # of the versions, where a catalogue says

    def on(self, level: str) -> tuple[PathStep, ...]:
        """The steps with a point at this level."""
        return tuple(step for step in self.steps if step.point(level) is not None)

    def legs(self, level: str) -> tuple[PathSegment, ...]:
        """To each step with a point from its nearest ancestor with one, else from the one before."""
        found = []
        there = {step.at.version: step for step in self.on(level)}
        before: PathStep | None = None
        for step in there.values():
            start = before if self.parents is None else self._ancestor(step, there)
            if start is not None:
                found.append(PathSegment(start, step, "; ".join(_differences(start, step, level))))
            before = step
        return tuple(found)

    def _ancestor(self, step: PathStep, there: Mapping[str, PathStep]) -> PathStep | None:
        parents = self.parents or {}
        name = parents.get(step.at.version)
        for _ in parents:
            if name is None or name in there:
                break
            name = parents.get(name)
        return there.get(name) if name is not None else None

    @property
    def roofs(self) -> Roofline | None:
        """The roofs to draw: those of the newest version with a point."""
        told = [step.roofline for step in self.steps if step.roofline is not None and step.roofline.points]
        return told[-1] if told else None


def load_roofline_path(
    trend: Trend,
    load: Callable[[Sequence[int]], Sequence[Launch]],
    runs: Mapping[str, RunInfo],
    table: MetricTable,
    parents: Mapping[str, str | None] | None = None,
) -> RooflinePath:
    """The path of one series of any metric: it says which launches there are, and what is wrong with them."""
    ids = [point.result_id for point in trend.points if point.result_id is not None]
    launches = dict(zip(ids, load(ids), strict=True)) if ids else {}
    return RooflinePath(trend, tuple(_step(point, launches, runs, table) for point in trend.points), parents)


def _step(
    point: TrendPoint, launches: Mapping[int, Launch], runs: Mapping[str, RunInfo], table: MetricTable
) -> PathStep:
    run = runs.get(point.run_id)
    if point.result_id is None:
        return PathStep(point, None, run, point.gap)
    chip = PathStep(point, None, run).chip
    found = roofline_of(launches[point.result_id], table, chip, run.ncu_version if run else None)
    gap = point.gap if point.wrong else "" if found.points else "not collected"
    return PathStep(point, found, run, gap)


def _differences(start: PathStep, end: PathStep, level: str) -> Iterator[str]:
    """Why two points do not compare, though both are there."""
    a, b = start.run, end.run
    if a and b:
        for word, x, y in (("driver", a.driver, b.driver), ("ncu", a.ncu_version, b.ncu_version)):
            if x is not None and y is not None and x != y:
                yield f"{word} differs: {x} and {y}"
    if start.counters(level) != end.counters(level):
        yield f"{level} traffic by different counters"
