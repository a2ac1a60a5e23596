"""How one metric changed over versions or runs, with gaps and breaks where values cannot be joined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from profiler.compare.kernel_pairs import NO_PAIRS, Pairing
from profiler.compare.match_launches import name_filter
from profiler.compare.workload_change import describe_sizes, is_other_grid
from profiler.errors import UnknownName
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.metric_table import Alternative, Metric, MetricTable
from profiler.evidence.naming import brief_list, natural_key, nearest_first
from profiler.evidence.values import NOT_COLLECTED, Evidence, State, Value
from profiler.history.joined_parts import joined_parts, parts_of_series

if TYPE_CHECKING:
    from profiler.store.index import Store
    from profiler.store.rows import Environment, MedianLatency, Point, RunInfo, Series

ABSENT = "not in this run"  # said of a kernel that a run lacks, not of a metric
LATENCY = "latency"  # the concept of timed calls' medians: those of metrics.txt are all ncu's
_LATENCY_NAME = "latency, median of samples"
LATENCY_METRIC = Metric(
    LATENCY, "latency", "ns", "lower", 0.01, None, "time", "lean", (Alternative(_LATENCY_NAME),), 0
)

_Cell = tuple[str | None, str | None, Evidence, str]  # workload, GPU, evidence, mode
_Moment = tuple[str, str]  # version and, where each run is a point of its own, the run
_RunVersion = tuple[str, str]  # run and version
_Part = tuple[str, str]  # part and short name of the kernel


class TrendPoint(NamedTuple):  # thousands of a long history: a dataclass takes five times as long to make
    """The value of one run.

    A version with wrong results keeps its value, but is no part of the line: `gap` says why.
    """

    run_id: str
    version: str
    created: datetime
    value: Value
    metric: str  # the ncu name or derivation it was read by; "" where the kernel did not run
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    result_id: int | None
    gap: str = ""  # why there is no number on the line; "" where there is
    breaks: str = ""  # why the line must not join it to the point before; "" where it may
    wrong: bool = False  # whether the version's results are wrong
    kernel: str = ""  # the name that the kernel has in that run; "" where it did not run
    driver: str | None = None  # of the run; None where it is not known

    @property
    def on_line(self) -> bool:
        """Whether it is a point of the line: a number of a version whose results are right."""
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
    other_names: tuple[str, ...] = ()  # of the kernel in older runs, by declared pairs

    @property
    def also(self) -> str:
        """` (also gemm_v6)`: the kernel's other names, to follow that of the part; "" where it has none."""
        return f" (also {', '.join(self.other_names)})" if self.other_names else ""

    @property
    def newest(self) -> Value:
        """The value of the newest point on the line; where there is none, that of the newest point."""
        return self.newest_point.value

    @property
    def newest_point(self) -> TrendPoint:
        """The newest point on the line; where there is none, the newest point."""
        return (self.points_on_line or self.points)[-1]

    @cached_property
    def points_on_line(self) -> tuple[TrendPoint, ...]:
        """The points on the line: numbers of versions whose results are right, in order."""
        # As TrendPoint.on_line, which would be called hundreds of thousands of times.
        return tuple(point for point in self.points if point.value.number is not None and not point.wrong)


def load_trends(
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
    pairing: Pairing = NO_PAIRS,
) -> list[Trend]:
    """The series of a concept or exact ncu name, largest value first.

    Over versions: the newest run of each, in the order of `orders` (by family, from a catalogue), else in the
    order in which the versions first appeared. Over time: every run, at its time. `across` names what may
    change without a break: driver, ncu. `wrong` has, by family, the versions without a speed, each with its
    state. Kernels that `pairing` keeps as one are one series, under the newest name. There is no series where
    no launch has the concept. Raises UnknownName for a name or filter that stands for nothing.
    """
    metric = _find_metric(table, name)
    ncu_names = [alternative.name for alternative in metric.alternatives] if metric else [name]
    # What a form is computed from is read beside them: values in the index are those of the reports.
    needed = dict.fromkeys(
        needed for form in (metric.forms if metric else ()) for needed in (*form.names, *form.size_names)
    )
    matches = name_filter(kernel)
    trends: list[Trend] = []
    kernels: set[str] = set()
    for family_name in [family] if family is not None else store.families():
        order = _version_order(store, family_name, orders) if over == "versions" else {}
        series = store.series(
            [*ncu_names, *(other for other in needed if other not in ncu_names)],
            family=family_name,
            workload=workload,
            gpu=gpu,
            evidence=evidence,
            latest=over == "versions",  # no point is shown of a version's older runs
        )
        runs = store.environments({point.run_id for member in series for point in member.points})
        if metric and metric.forms:
            carried = [member for member in series if member.metric in ncu_names]
            series = [*carried, *_derived_series(metric, series, _with_number(metric, carried, runs))]
        wrong_versions = (wrong or {}).get(family_name, {})
        kept = pairing.kept(family_name)
        for cell, members in _by_cell(series).items():
            joined = joined_parts(parts_of_series(members), kept) if kept else {}
            builder = _TrendBuilder(
                cell, runs, order, name, metric, frozenset(across), wrong_versions, joined
            )
            trends += builder.trends(members, matches)
            kernels.update(member.base_name for member in members)
    if not trends:
        _check_filters(store, family, workload, gpu)
        if metric is None:
            _check_ncu_name(store, name, table)
        if kernels:
            raise UnknownName(
                f"no kernel with {name} matches {kernel!r}; there are "
                + brief_list(nearest_first(str(kernel), sorted(kernels)))
            )
    return sorted(
        trends,
        key=lambda trend: (
            trend.family,
            trend.workload or "",
            trend.gpu or "",
            trend.mode,
            -float(trend.newest.number or 0),
        ),
    )


def load_latency_trends(
    store: Store,
    *,
    family: str | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    wrong: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Trend]:
    """The medians of timed calls, oldest first: a series for each family, workload, GPU and mode.

    There is a point for each run and version. `wrong` is as for `load_trends`. Raises UnknownName for a
    filter that stands for nothing.
    """
    matches = name_filter(kernel)
    trends = []
    for family_name in [family] if family is not None else store.families():
        timings: dict[tuple[str | None, str | None, str, str], list[MedianLatency]] = defaultdict(list)
        for timing in store.median_latencies(family=family_name, workload=workload, gpu=gpu):
            if matches(timing.part) or matches(timing.base_name):
                timings[timing.workload, timing.gpu, timing.mode, timing.part].append(timing)
        wrong_versions = (wrong or {}).get(family_name, {})
        for (of_workload, of_gpu, mode, part), members in timings.items():
            trends.append(
                Trend(
                    LATENCY_METRIC.concept,
                    LATENCY_METRIC.label,
                    LATENCY_METRIC.better,
                    LATENCY_METRIC.unit,
                    family_name,
                    of_workload,
                    of_gpu,
                    Evidence.MEASURED,
                    mode,
                    part,
                    members[0].base_name,
                    tuple(_latency_point(timing, wrong_versions) for timing in members),
                )
            )
    if not trends:
        _check_filters(store, family, workload, gpu)
    return trends


def newest_of_each_version(trend: Trend, order: Sequence[str]) -> Trend:
    """The newest run of each version, sorted by `order`; versions that it lacks come last."""
    newest = {point.version: point for point in trend.points}
    names = [*(name for name in order if name in newest), *(name for name in newest if name not in order)]
    return replace(trend, points=tuple(newest[name] for name in names))


def driver_and_ncu_differences(
    a: Environment | RunInfo, b: Environment | RunInfo, across: Collection[str] = ()
) -> Iterator[str]:
    """Why two runs' counters are not comparable; `across` names what may differ: driver, ncu."""
    for word, of_a, of_b in (("driver", a.driver, b.driver), ("ncu", a.ncu_version, b.ncu_version)):
        if of_a is not None and of_b is not None and of_a != of_b and word not in across:
            yield f"{word} differs: {of_a} and {of_b}"


def _find_metric(table: MetricTable, name: str) -> Metric | None:
    """The metric of a concept; None for an ncu name."""
    if name in table.by_concept:
        return table.by_concept[name]
    if "__" in name or any(name == alt.name for metric in table.metrics for alt in metric.alternatives):
        return None
    near = get_close_matches(name, table.by_concept, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "`profiler list metrics` lists them"
    raise UnknownName(f"no concept {name!r} in {table.path}: {hint}")


def _version_order(store: Store, family: str, orders: Mapping[str, Sequence[str]] | None) -> dict[str, int]:
    """The position of each version: those of the catalogue first, then the others as they appeared."""
    present = [info.version for info in store.versions(family)]
    ordered = [version for version in (orders or {}).get(family, ()) if version in present]
    ordered += [version for version in present if version not in ordered]
    return {version: index for index, version in enumerate(ordered)}


def _check_filters(store: Store, family: str | None, workload: str | None, gpu: str | None) -> None:
    """Raise UnknownName for a family, workload or GPU that the index lacks; "" means an unnamed one."""
    families = store.families()
    if family is not None and family not in families:
        raise UnknownName(_not_in_index("family", family, families))
    cells = store.cells(family)
    workloads = sorted({cell.workload for cell in cells} - {""}, key=natural_key)
    if workload and workload not in workloads:
        raise UnknownName(_not_in_index("workload", workload, workloads))
    gpus = sorted({cell.gpu for cell in cells} - {""}, key=natural_key)
    if gpu and gpu not in gpus:
        raise UnknownName(_not_in_index("GPU", gpu, gpus))


def _check_ncu_name(store: Store, name: str, table: MetricTable) -> None:
    """Raise UnknownName for an ncu name that neither metrics.txt nor any launch has."""
    declared = {alternative.name for metric in table.metrics for alternative in metric.alternatives}
    carried = store.metric_names()
    if carried and name not in declared.union(table.captured, carried):
        present = brief_list(nearest_first(name, carried))
        raise UnknownName(f"no launch in the index carries {name}; there are {present}")


def _not_in_index(kind: str, name: str, present: Sequence[str]) -> str:
    listed = f"there are {brief_list(nearest_first(name, present))}" if present else "there is none"
    return f"no {kind} {name!r} in the index; {listed}"


def _by_cell(series: Iterable[Series]) -> dict[_Cell, list[Series]]:
    cells: dict[_Cell, list[Series]] = defaultdict(list)
    for member in series:
        cells[member.workload, member.gpu, member.evidence, member.mode].append(member)
    return cells


def _with_number(
    metric: Metric, carried: Iterable[Series], runs: Mapping[str, Environment]
) -> frozenset[int]:
    """The results whose launches carry a number of the metric, so that no form of it is read of them."""
    by_chip: dict[str | None, frozenset[str]] = {}

    def own_names(run_id: str, gpu: str | None) -> frozenset[str]:
        chip = _chip(runs.get(run_id), gpu)
        if chip not in by_chip:
            by_chip[chip] = frozenset(metric.names_for(chip))
        return by_chip[chip]

    return frozenset(
        point.result_id
        for member in carried
        for point in member.points
        if point.value.number is not None and member.metric in own_names(point.run_id, member.gpu)
    )


def _derived_series(
    metric: Metric, series: Iterable[Series], with_number: Collection[int]
) -> Iterator[Series]:
    """A series for each derived form of which a launch has the numbers, under the name of the form.

    It is not computed for the results `with_number`, whose own number comes first.
    """
    # All series of a part have the same points, so that values of one launch are found by its result.
    by_part: dict[tuple[object, ...], dict[str, Series]] = defaultdict(dict)
    for member in series:
        place = (member.family, member.workload, member.gpu, member.evidence, member.mode, member.part)
        by_part[place][member.metric] = member
    for members in by_part.values():
        for form in metric.forms:
            if not all(name in members for name in form.names):
                continue
            first = members[form.names[0]]
            if all(point.result_id in with_number for point in first.points):
                continue
            values: dict[int, dict[str, Value]] = defaultdict(dict)
            for name in (*form.names, *(name for name in form.size_names if name in members)):
                for point in members[name].points:
                    values[point.result_id][name] = point.value
            points = tuple(
                point._replace(
                    value=NOT_COLLECTED
                    if point.result_id in with_number
                    else form.read(values[point.result_id], metric.unit) or NOT_COLLECTED
                )
                for point in first.points
            )
            if any(point.value.number is not None for point in points):
                yield replace(first, metric=form.name, unit=metric.unit, points=points)


def _latency_point(timing: MedianLatency, wrong: Mapping[str, str]) -> TrendPoint:
    is_missing = timing.median_ns is None
    value = NOT_COLLECTED._replace(unit="ns") if is_missing else Value(timing.median_ns, "ns")
    return TrendPoint(
        timing.run_id,
        timing.version,
        timing.created,
        value,
        _LATENCY_NAME,
        None,
        None,
        timing.result_id,
        gap=wrong.get(timing.version, value.state.words if is_missing else ""),
        wrong=timing.version in wrong,
        driver=timing.driver,
    )


def _chip(run: Environment | None, gpu: str | None) -> str | None:
    return chip_of(run.capability_on(gpu) if run else None)


def _age(point: Point) -> tuple[datetime, str]:
    """A sort key for runs, the same as in the index."""
    return point.created, point.run_id


@dataclass(frozen=True)
class _TrendBuilder:
    """Builds the series of one workload, GPU, evidence and mode."""

    cell: _Cell
    runs: Mapping[str, Environment]
    order: dict[str, int]  # of versions; empty: by time, and every run
    name: str
    metric: Metric | None
    across: frozenset[str]
    wrong: Mapping[str, str]
    joined: Mapping[str, str]  # the newest name of each part that has an older one
    _names_by_chip: dict[str | None, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)

    def trends(self, members: Sequence[Series], matches: Callable[[str], bool]) -> list[Trend]:
        by_part: dict[str, list[Series]] = defaultdict(list)
        newest: dict[_Moment, Point] = {}  # at each moment a point of its newest run, of any kernel
        seen: set[_Part] = set()  # series of one part have the points of the same launches
        for series in members:
            by_part[self.joined.get(series.part, series.part)].append(series)
            if (series.part, series.base_name) in seen:
                continue
            seen.add((series.part, series.base_name))
            for point in series.points:
                moment = self._moment(point)
                other = newest.setdefault(moment, point)
                if other is not point and _age(point) > _age(other):
                    newest[moment] = point
        timeline = sorted(newest.values(), key=self._sort_key)
        # One point for all parts that a moment lacks: in a long history most runs lack most parts.
        absent = [
            TrendPoint(
                moment.run_id, moment.version, moment.created, NOT_COLLECTED, "", None, None, None, ABSENT
            )
            for moment in timeline
        ]
        places = {(moment.run_id, moment.version): place for place, moment in enumerate(timeline)}
        return [
            self._trend(part, several, absent, places)
            for part, several in by_part.items()
            if any(matches(series.part) or matches(series.base_name) for series in several)
        ]

    def _moment(self, point: Point) -> _Moment:
        """The position of a point on the axis: over versions, all runs of a version share one."""
        return point.version, "" if self.order else point.run_id

    def _sort_key(self, point: Point) -> tuple[int, datetime, str]:
        return self.order.get(point.version, len(self.order)), point.created, point.run_id

    def _trend(
        self,
        part: str,
        several: Sequence[Series],  # of one part: one for each ncu name, and name of the kernel
        absent: Sequence[TrendPoint],  # what stands at each moment where its run lacks the part
        places: Mapping[_RunVersion, int],  # of each moment's own run
    ) -> Trend:
        readings: dict[_RunVersion, dict[str, Point]] = defaultdict(dict)  # by ncu name
        kernels: dict[_RunVersion, str] = {}  # by what name a run has the kernel
        for series in several:
            for point in series.points:
                readings[point.run_id, point.version][series.metric] = point
                kernels[point.run_id, point.version] = series.base_name
        points = list(absent)
        previous: TrendPoint | None = None  # the last point with a number
        # Only of the moment's own run: an older one of the version must not fill in for what it left out.
        for place, own in sorted((places[own], own) for own in readings if own in places):
            trend_point = points[place] = self._point(readings[own], kernels[own], previous)
            if trend_point.on_line:
                previous = trend_point
        first = next(series for series in several if series.part == part)
        other_names = dict.fromkeys(series.base_name for series in several if series.part != part)
        workload, gpu, evidence, mode = self.cell
        return Trend(
            self.metric.concept if self.metric else "",
            self.metric.label if self.metric else first.metric,
            self.metric.better if self.metric else "-",
            previous.value.unit if previous else (self.metric.unit if self.metric else first.unit),
            first.family,
            workload,
            gpu,
            evidence,
            mode,
            part,
            first.base_name,
            tuple(points),
            tuple(other_names),
        )

    def _point(self, readings: dict[str, Point], kernel: str, previous: TrendPoint | None) -> TrendPoint:
        name, point = self._choose(readings)
        value = point.value
        if value.state is State.NOT_COLLECTED and not self._ncu_names(point.run_id):
            value = Value(None, value.unit, state=State.NOT_AVAILABLE)
        gap = "" if value.number is not None else value.state.words
        gap = self.wrong.get(point.version, gap)
        breaks = self._breaks(previous, point, kernel, name) if previous and not gap else ""
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
            kernel,
            self.runs[point.run_id].driver if point.run_id in self.runs else None,
        )

    def _choose(self, readings: dict[str, Point]) -> tuple[str, Point]:
        """The reading that MetricTable.resolve would choose of the launch."""
        derived = self._derived
        if len(readings) == 1:  # as nearly always
            ((name, only),) = readings.items()
            if only.value.number is not None and name not in derived:
                return name, only
        run_id = next(iter(readings.values())).run_id
        forms = [name for name in self._form_names(run_id) if name in readings]
        carried = [name for name in readings if name not in derived]
        names = [name for name in self._ncu_names(run_id) if name in readings] or carried
        for name in names:
            if readings[name].value.number is not None:
                return name, readings[name]
        for name in names:
            if readings[name].value.state is not State.NOT_COLLECTED:
                return name, readings[name]
        for name in forms:
            if readings[name].value.number is not None:
                return name, readings[name]
        name = next(iter(names), next(iter(readings)))
        return name, readings[name]._replace(value=NOT_COLLECTED) if name in derived else readings[name]

    @cached_property
    def _derived(self) -> frozenset[str]:
        """The names of the metric's derived forms on any chip."""
        return frozenset(form.name for form in self.metric.forms) if self.metric else frozenset()

    def _ncu_names(self, run_id: str) -> tuple[str, ...]:
        """The metric's names on the chip of the run; an ncu name that is no concept is its own name."""
        return (self.name,) if self.metric is None else self._names_on(self._chip(run_id))[0]

    def _form_names(self, run_id: str) -> tuple[str, ...]:
        """The names of the metric's derived forms on the chip of the run."""
        return self._names_on(self._chip(run_id))[1] if self.metric else ()

    def _names_on(self, chip: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the metric on a chip, and of its derived forms there."""
        if chip not in self._names_by_chip and self.metric:
            forms = tuple(form.name for form in self.metric.forms_for(chip))
            self._names_by_chip[chip] = self.metric.names_for(chip), forms
        return self._names_by_chip[chip]

    def _chip(self, run_id: str) -> str | None:
        return _chip(self.runs.get(run_id), self.cell[1])

    def _breaks(self, previous: TrendPoint, point: Point, kernel: str, name: str) -> str:
        """Why the value must not be joined to the number before it; "" where it may."""
        differences, value = [], point.value
        # Another grid is tuning where a workload is declared, or that two kernels do the same.
        is_declared = bool(self.cell[0]) or previous.kernel != kernel
        if not is_declared and is_other_grid(previous, point):
            differences.append(describe_sizes(previous, point))
        if previous.metric != name:
            differences.append(f"different counters: {previous.metric} and {name}")
        if previous.value.unit != value.unit:
            differences.append(f"different units: {previous.value.unit or 'none'} and {value.unit or 'none'}")
        a, b = self.runs.get(previous.run_id), self.runs.get(point.run_id)
        if a and b and a != b:
            differences += driver_and_ncu_differences(a, b, self.across)
        return "; ".join(differences)
