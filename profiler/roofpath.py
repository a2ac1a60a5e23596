"""The path of a kernel through the roofline of its GPU, version by version: gaps, breaks, one point each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.metrics import MetricTable, chip_of
from profiler.roofline import LEVELS, Point, Roofline, roofline
from profiler.trend import Trend, TrendPoint
from profiler.values import Launch

if TYPE_CHECKING:
    from profiler.store import RunInfo

SERIES = "gpu__time_duration.sum"  # what every launch has: it says which launches there are


@dataclass(frozen=True)
class Step:
    """One version: its launch's roofline, or why it has none."""

    at: TrendPoint
    roofline: Roofline | None
    chip: str | None = None
    gap: str = ""  # why the version is no part of the path

    def point(self, level: str) -> Point | None:
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
class Leg:
    """From one version's point to the next one's; `breaks` says why no arrow may join them."""

    start: Step
    end: Step
    breaks: str = ""


@dataclass(frozen=True)
class Path:
    """One kernel's steps on one GPU and workload, in the order of the versions."""

    trend: Trend
    steps: tuple[Step, ...]

    def on(self, level: str) -> tuple[Step, ...]:
        """The steps with a point at this level."""
        return tuple(step for step in self.steps if step.point(level) is not None)

    def legs(self, level: str) -> tuple[Leg, ...]:
        """Each step to the next that has a point."""
        found = []
        before: Step | None = None
        reasons: list[str] = []
        for step in self.steps:
            if step.at.breaks:
                reasons.append(step.at.breaks)
            if step.point(level) is None:
                continue
            if before is not None:
                if before.counters(level) != step.counters(level):
                    reasons.append(f"{level} traffic by different counters")
                found.append(Leg(before, step, "; ".join(dict.fromkeys(reasons))))
            before, reasons = step, []
        return tuple(found)

    @property
    def roofs(self) -> Roofline | None:
        """The roofs to draw: those of the newest version with a point."""
        told = [step.roofline for step in self.steps if step.roofline is not None and step.roofline.points]
        return told[-1] if told else None


def path(
    trend: Trend,
    load: Callable[[Sequence[int]], Sequence[Launch]],
    runs: Mapping[str, RunInfo],
    table: MetricTable,
) -> Path:
    """The path of one series of any metric: it says which launches there are, and what is wrong with them."""
    ids = [point.result_id for point in trend.points if point.result_id is not None]
    launches = dict(zip(ids, load(ids), strict=True)) if ids else {}
    return Path(trend, tuple(_step(point, launches, runs, table) for point in trend.points))


def _step(
    point: TrendPoint, launches: Mapping[int, Launch], runs: Mapping[str, RunInfo], table: MetricTable
) -> Step:
    if point.result_id is None:
        return Step(point, None, gap=point.gap)
    run = runs.get(point.run_id)
    chip = chip_of(run.compute_capability) if run and run.compute_capability else None
    found = roofline(launches[point.result_id], table, chip, run.ncu_version if run else None)
    gap = point.gap if point.wrong else "" if found.points else "not collected"
    return Step(point, found, chip, gap)
