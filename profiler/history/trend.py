"""How one metric moved over versions or runs: gaps where there is no number, breaks where none joins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

from profiler.compare.match_launches import name_filter
from profiler.errors import UnknownName
from profiler.evidence.metric_table import Metric, MetricTable, chip_of
from profiler.evidence.naming import brief_list, natural_key, nearest_first
from profiler.evidence.values import NOT_COLLECTED, Evidence, State, Value

if TYPE_CHECKING:
    from profiler.store import Environment, Point, Series, Store

ABSENT = "not in this run"  # the kernel, not the metric

_Cell = tuple[str | None, str | None, Evidence, str]  # workload, GPU, evidence, mode
_Moment = tuple[str, str]  # version, and the run where runs are told apart
_Own = tuple[str, str]  # run and version


@dataclass(frozen=True)
class TrendPoint:
    """One run's value. `gap` says why there is no number, `breaks` why nothing joins it to the one before.

    A version that is wrong keeps its value, with the word for it as gap: it is no part of any line.
    """

    run_id: str
    version: str
    created: datetime
    value: Value
    metric: str  # the ncu name it was read by; "" where the kernel did not run
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    result_id: int | None
    gap: str = ""
    breaks: str = ""
    wrong: bool = False

    @property
    def joins(self) -> bool:
        """Whether it is a point of the line."""
        return self.value.number is not None and not self.wrong


@dataclass(frozen=True)
class Trend:
    """One series: one metric of one kernel part on one GPU and workload in one mode, oldest first."""

    concept: str  # "" for a metric that metrics.txt does not name
    label: str
    better: str
    unit: str  # of the newest number
    family: str
    workload: str | None
    gpu: str | None
    evidence: Evidence
    mode: str
    part: str
    base_name: str
    points: tuple[TrendPoint, ...]

    @property
    def newest(self) -> Value:
        """The newest value that is a number, or what the newest point says."""
        numbers = [point.value for point in self.points if point.joins]
        return numbers[-1] if numbers else self.points[-1].value


def trend(
    store: Store,
    name: str,
    table: MetricTable,
    *,
    family: str | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    evidence: Evidence | None = None,
    over: Literal["versions", "time"] = "versions",
    across: Collection[str] = frozenset(),
    orders: Mapping[str, Sequence[str]] | None = None,
    wrong: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Trend]:
    """The series of a concept or exact ncu name.

    Over versions: the newest run of each, in the order of `orders` (by family, from a catalogue), else in the
    order in which the versions first appeared. Over time: every run when it was made. `across` names what may
    change without a break: driver, ncu. `wrong` has, by family, the versions without a speed, each with the
    word for it. Largest value first. No series where no launch
    carries the concept; UnknownName for a name or filter that stands for nothing.
    """
    metric = _metric(table, name)
    names = [one.name for one in metric.alternatives] if metric else [name]
    fits = name_filter(kernel)
    found: list[Trend] = []
    kernels: set[str] = set()
    for one in [family] if family is not None else store.families():
        versions = [version.version for version in store.versions(one)] if over == "versions" else []
        listed = [name for name in (orders or {}).get(one, ()) if name in versions]
        listed += [name for name in versions if name not in listed]
        order = {version: index for index, version in enumerate(listed)}
        latest = over == "versions"  # of the older runs of a version no point is shown
        place = {"family": one, "workload": workload, "gpu": gpu}
        series = store.series(names, **place, evidence=evidence, latest=latest)
        runs = store.environments({point.run_id for held in series for point in held.points})
        for cell, members in _cells(series).items():
            rejected = (wrong or {}).get(one, {})
            builder = _Builder(cell, runs, order, name, metric, frozenset(across), rejected)
            found += builder.trends(members, fits)
            kernels.update(one.base_name for one in members)
    if not found:
        check_filters(store, family, workload, gpu)
        if metric is None:
            _check_ncu_name(store, name, table)
        if kernels:
            raise UnknownName(
                f"no kernel with {name} matches {kernel!r}; there are "
                + brief_list(nearest_first(str(kernel), sorted(kernels)))
            )
    return sorted(
        found, key=lambda one: (one.family, one.workload or "", one.gpu or "", one.mode, -_size(one))
    )


def _metric(table: MetricTable, name: str) -> Metric | None:
    """The concept of that name, or None for an ncu name."""
    if name in table.by_concept:
        return table.by_concept[name]
    by_name = [metric for metric in table.metrics for one in metric.alternatives if one.name == name]
    if by_name or "__" in name:
        return None
    near = get_close_matches(name, table.by_concept, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "`profiler metrics` lists them"
    raise UnknownName(f"no concept {name!r} in {table.path}: {hint}")


def check_filters(store: Store, family: str | None, workload: str | None, gpu: str | None) -> None:
    """Refuse a family, workload or GPU that the index does not have; "" asks for what nobody named."""
    families = store.families()
    if family is not None and family not in families:
        raise UnknownName(_not_there("family", family, families))
    held = store.cells(family)
    if workload and workload not in (names := sorted({one.workload for one in held} - {""}, key=natural_key)):
        raise UnknownName(_not_there("workload", workload, names))
    if gpu and gpu not in (names := sorted({one.gpu for one in held} - {""}, key=natural_key)):
        raise UnknownName(_not_there("GPU", gpu, names))


def _check_ncu_name(store: Store, name: str, table: MetricTable) -> None:
    """Refuse an ncu name that neither metrics.txt nor any launch has."""
    declared = {one.name for metric in table.metrics for one in metric.alternatives}
    carried = store.metric_names()
    if carried and name not in declared.union(table.captured, carried):
        there = brief_list(nearest_first(name, carried))
        raise UnknownName(f"no launch in the index carries {name}; there are {there}")


def _not_there(kind: str, name: str, there: Sequence[str]) -> str:
    listed = f"there are {brief_list(nearest_first(name, there))}" if there else "there is none"
    return f"no {kind} {name!r} in the index; {listed}"


def _cells(series: Iterable[Series]) -> dict[_Cell, list[Series]]:
    cells: dict[_Cell, list[Series]] = defaultdict(list)
    for one in series:
        cells[one.workload, one.gpu, one.evidence, one.mode].append(one)
    return cells


def _size(one: Trend) -> float:
    return float(one.newest.number or 0)


def _age(point: Point) -> tuple[datetime, str]:
    """What orders runs, here and in the index."""
    return point.created, point.run_id


@dataclass(frozen=True)
class _Builder:
    """What the series of one workload, GPU and mode share."""

    cell: _Cell
    runs: Mapping[str, Environment]
    order: dict[str, int]  # of versions; empty: by time, and every run
    name: str
    metric: Metric | None
    across: frozenset[str]
    wrong: Mapping[str, str]

    def trends(self, members: Sequence[Series], fits: Callable[[str], bool]) -> list[Trend]:
        by_part: dict[str, list[Series]] = defaultdict(list)
        seen: dict[_Moment, Point] = {}  # of any kernel at each moment, one point of its newest run
        for one in members:
            by_part[one.part].append(one)
            for point in one.points:
                moment = self._moment(point)
                if moment not in seen or _age(point) > _age(seen[moment]):
                    seen[moment] = point
        timeline = sorted(seen.values(), key=self._when)
        absent: dict[_Own, TrendPoint] = {}  # the same for each part that a moment lacks
        return [
            self._trend(part, several, timeline, absent)
            for part, several in by_part.items()
            if fits(part) or fits(several[0].base_name)
        ]

    def _moment(self, point: Point) -> _Moment:
        """Where a point stands: over versions all runs of a version are one place."""
        return point.version, "" if self.order else point.run_id

    def _when(self, point: Point) -> tuple[int, datetime, str]:
        return self.order.get(point.version, len(self.order)), point.created, point.run_id

    def _trend(
        self,
        part: str,
        several: Sequence[Series],
        timeline: Sequence[Point],
        absent: dict[_Own, TrendPoint],
    ) -> Trend:
        readings: dict[_Own, dict[str, Point]] = defaultdict(dict)  # by run; then by ncu name
        for one in several:
            for point in one.points:
                readings[point.run_id, point.version][one.metric] = point
        points: list[TrendPoint] = []
        joined: TrendPoint | None = None  # the last point with a number
        for moment in timeline:
            # Only of the moment's own run: an older one of the version must not fill in for what it left out.
            own = moment.run_id, moment.version
            if own not in readings:
                if own not in absent:
                    absent[own] = TrendPoint(
                        *own, moment.created, NOT_COLLECTED, "", None, None, None, ABSENT
                    )
                points.append(absent[own])
                continue
            told = self._point(readings[own], joined)
            points.append(told)
            if told.joins:
                joined = told
        first = several[0]
        workload, gpu, evidence, mode = self.cell
        return Trend(
            self.metric.concept if self.metric else "",
            self.metric.label if self.metric else first.metric,
            self.metric.better if self.metric else "-",
            joined.value.unit if joined else (self.metric.unit if self.metric else first.unit),
            first.family,
            workload,
            gpu,
            evidence,
            mode,
            part,
            first.base_name,
            tuple(points),
        )

    def _point(self, readings: dict[str, Point], before: TrendPoint | None) -> TrendPoint:
        name, point = self._choose(readings)
        value = point.value
        if value.state is State.NOT_COLLECTED and not self._names(point.run_id):
            value = Value(None, value.unit, state=State.NOT_AVAILABLE)
        gap = "" if value.number is not None else value.state.words
        gap = self.wrong.get(point.version, gap)
        breaks = self._breaks(before, point.run_id, name, value) if before and not gap else ""
        return TrendPoint(
            point.run_id,
            point.version,
            point.created,
            value,
            name,
            point.grid,
            point.block,
            point.result_id,
            gap,
            breaks,
            point.version in self.wrong,
        )

    def _choose(self, readings: dict[str, Point]) -> tuple[str, Point]:
        """The first name with a number, else the first that the launch carries in any state, else any."""
        run_id = next(iter(readings.values())).run_id
        names = [name for name in self._names(run_id) if name in readings] or list(readings)
        for name in names:
            if readings[name].value.number is not None:
                return name, readings[name]
        for name in names:
            if readings[name].value.state is not State.NOT_COLLECTED:
                return name, readings[name]
        return names[0], readings[names[0]]

    def _names(self, run_id: str) -> tuple[str, ...]:
        """The metric's names on the chip of the run; an ncu name that is no concept stands for itself."""
        if self.metric is None:
            return (self.name,)
        run = self.runs.get(run_id)
        capability = run.compute_capability if run else None
        return self.metric.names_for(chip_of(capability) if capability else None)

    def _breaks(self, before: TrendPoint, run_id: str, name: str, value: Value) -> str:
        """Why the value may not be joined to the number before it: what differs, or ""."""
        found = []
        if before.metric != name:
            found.append(f"different counters: {before.metric} and {name}")
        if before.value.unit != value.unit:
            found.append(f"different units: {before.value.unit or 'none'} and {value.unit or 'none'}")
        a, b = self.runs.get(before.run_id), self.runs.get(run_id)
        if a and b:
            for word, x, y in (("driver", a.driver, b.driver), ("ncu", a.ncu_version, b.ncu_version)):
                if x is not None and y is not None and x != y and word not in self.across:
                    found.append(f"{word} differs: {x} and {y}")
        return "; ".join(found)
