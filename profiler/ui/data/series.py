"""How a metric of a family changed over versions or time, its steps, and its path through the roofline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from profiler.bundles.location import open_root
from profiler.errors import ProfilerError
from profiler.evidence.cell import Cell
from profiler.evidence.values import Evidence
from profiler.explain.roofline_path import LAUNCH_METRIC, RooflinePath, load_roofline_path
from profiler.history.change_points import ACROSS, History, search_histories
from profiler.history.lineage import Lineage
from profiler.history.run_spread import RunSpread, load_run_spreads
from profiler.history.stall_shares import STALLS
from profiler.history.trend import (
    LATENCY,
    LATENCY_METRIC,
    Trend,
    load_latency_trends,
    load_trends,
    newest_of_each_version,
)
from profiler.history.version_grid import GridCell, build_grid
from profiler.store.rows import RunInfo
from profiler.ui.data import lineages, results
from profiler.ui.data.cache import cached
from profiler.ui.data.index import DataVersion, metric_table, pairing, store


@cached()
def trends(
    data_version: DataVersion,
    metric: str,
    family: str,
    workload: str,
    gpu: str,
    over: str,
    evidence: Evidence,
) -> list[Trend]:
    """One metric's series, of one kind of evidence; `over` is "versions" or "time"."""
    lineage = lineages.lineage(data_version, family)
    if metric == LATENCY:  # of timed calls, which are stored apart from launches
        latencies = _latencies_at(data_version, family, workload, gpu)
        if over == "time":
            return latencies
        order = [version.version for version in lineages.versions(data_version) if version.family == family]
        return [newest_of_each_version(trend, order) for trend in latencies]
    return load_trends(
        store(),
        metric,
        metric_table(data_version),
        family=family,
        workload=workload,
        gpu=gpu,
        over="time" if over == "time" else "versions",
        evidence=evidence,
        orders={family: lineage.order} if lineage else None,
        wrong=_wrong(family, lineage),
        pairing=pairing(data_version),
    )


@cached()
def histories(
    data_version: DataVersion, metric: str, family: str, workload: str, gpu: str, evidence: Evidence
) -> list[History]:
    """The steps of one metric's series, of one kind of evidence."""

    def load() -> Sequence[Trend]:
        if metric == LATENCY:
            return _latencies_at(data_version, family, workload, gpu)
        return _all_runs(data_version, metric, family, evidence, workload, gpu)

    return _histories(data_version, metric, family, workload, gpu, evidence, load)


@cached()
def version_grid(
    data_version: DataVersion, metric: str, family: str, evidence: Evidence, since: datetime | None
) -> dict[Cell, GridCell]:
    """How every version changed on every workload and GPU since a moment, by one metric."""
    if metric == LATENCY:
        found = family_latencies(data_version, family)
    else:
        found = _all_runs(data_version, metric, family, evidence)
    by_place: dict[tuple[str, str], list[Trend]] = defaultdict(list)
    for trend in found:
        by_place[trend.workload or "", trend.gpu or ""].append(trend)
    steps = [
        history
        for (workload, gpu), own in by_place.items()
        for history in _histories(data_version, metric, family, workload, gpu, evidence, partial(list, own))
    ]
    return build_grid(found, steps, since)


@cached()
def _histories(
    data_version: DataVersion,
    metric: str,
    family: str,
    workload: str,
    gpu: str,
    evidence: Evidence,
    _load: Callable[[], Sequence[Trend]],
) -> list[History]:
    """The steps of one metric's series on one workload and GPU; `_load` gives these series over all runs.

    The chart and the grid of all workloads ask for the same ones, each with the series that it has.
    """
    lineage = lineages.lineage(data_version, family)
    runs = _runs_by_id(data_version)
    return search_histories(
        _load(),
        open_root(),
        LATENCY_METRIC if metric == LATENCY else metric_table(data_version).by_concept.get(metric),
        lambda run_id: runs.get(run_id) or store().run(run_id),
        orders={family: lineage.order} if lineage else None,
    )


@cached(2)
def _runs_by_id(data_version: DataVersion) -> dict[str, RunInfo]:
    """The listed runs, by id."""
    return {run.run_id: run for run in results.runs(data_version)}


@cached(4)
def family_latencies(data_version: DataVersion, family: str) -> list[Trend]:
    """The medians of all timed calls of a family, which the chart, its steps and the grid share."""
    return load_latency_trends(
        store(), family=family, wrong=_wrong(family, lineages.lineage(data_version, family))
    )


def _latencies_at(data_version: DataVersion, family: str, workload: str, gpu: str) -> list[Trend]:
    """Those on one workload and GPU. Raises UnknownName for one that the index lacks."""
    every = family_latencies(data_version, family)
    found = [trend for trend in every if (trend.workload or "", trend.gpu or "") == (workload, gpu)]
    return found or load_latency_trends(store(), family=family, workload=workload, gpu=gpu)


def _all_runs(
    data_version: DataVersion,
    metric: str,
    family: str,
    evidence: Evidence,
    workload: str | None = None,
    gpu: str | None = None,
) -> list[Trend]:
    """One metric's series over all runs, as its steps are searched in them."""
    return load_trends(
        store(),
        metric,
        metric_table(data_version),
        family=family,
        workload=workload,
        gpu=gpu,
        over="time",
        across=ACROSS,
        evidence=evidence,
        wrong=_wrong(family, lineages.lineage(data_version, family)),
        pairing=pairing(data_version),
    )


@cached()
def stalls(
    data_version: DataVersion, family: str, workload: str, gpu: str, over: str
) -> dict[str, list[Trend]]:
    """The series of every stall reason that launches carry there, by the reason's name."""
    concepts = [
        metric.concept for metric in metric_table(data_version).metrics if metric.concept.startswith(STALLS)
    ]
    by_reason = {}
    for concept in concepts:
        with suppress(ProfilerError):  # no launch carries any of them
            found = trends(data_version, concept, family, workload, gpu, over, Evidence.MEASURED)
            if any(point.on_line for trend in found for point in trend.points):
                by_reason[concept.removeprefix(STALLS)] = found
    return by_reason


@cached()
def opcodes(data_version: DataVersion, result_ids: tuple[int, ...]) -> dict[int, Mapping[str, float]]:
    """How often each opcode was executed, by result."""
    launches = store().load(result_ids)
    return {number: launch.opcodes for number, launch in zip(result_ids, launches, strict=True)}


@cached()
def run_spreads(data_version: DataVersion, result_ids: tuple[int, ...]) -> dict[int, RunSpread]:
    """The samples of timed calls and the intervals of their medians, by result."""
    return load_run_spreads(store(), result_ids)


@cached()
def roofline_paths(data_version: DataVersion, family: str, workload: str, gpu: str) -> list[RooflinePath]:
    """The path of each kernel through the roofline of its GPU, the longest kernel first."""
    runs = {run.run_id: run for run in results.runs(data_version)}
    lineage = lineages.lineage(data_version, family)
    parents = {status.version.id: status.version.parent for status in lineage.statuses} if lineage else None
    return [
        load_roofline_path(trend, store().load, runs, metric_table(data_version), parents)
        for trend in trends(data_version, LAUNCH_METRIC, family, workload, gpu, "versions", Evidence.MEASURED)
    ]


def _wrong(family: str, lineage: Lineage | None) -> dict[str, Mapping[str, str]] | None:
    """The family's versions without a speed, with the reason, as `load_trends` takes them."""
    return {family: lineage.wrong} if lineage else None
