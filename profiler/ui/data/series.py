"""How a metric of a family changed over versions or time, its steps, and its path through the roofline."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

import streamlit as st

from profiler.bundles import open_root
from profiler.errors import ProfilerError
from profiler.evidence import Evidence
from profiler.explain import RooflinePath, load_roofline_path
from profiler.explain.roofline_path import LAUNCH_METRIC
from profiler.history import (
    LATENCY,
    GridCell,
    History,
    Lineage,
    Place,
    RunSpread,
    Trend,
    build_grid,
    find_change_points,
    load_latency_trends,
    load_run_spreads,
    load_trends,
)
from profiler.history.stall_shares import STALLS
from profiler.history.trend import newest_of_each_version
from profiler.ui.data import lineages, results
from profiler.ui.data.index import MAX_ENTRIES, DataVersion, metric_table, pairing, store


@st.cache_resource(show_spinner=False, max_entries=MAX_ENTRIES)
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
        latencies = load_latency_trends(
            store(), family=family, workload=workload, gpu=gpu, wrong=_wrong(family, lineage)
        )
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


@st.cache_resource(show_spinner=False, max_entries=MAX_ENTRIES)
def histories(
    data_version: DataVersion, metric: str, family: str, workload: str, gpu: str, evidence: Evidence
) -> list[History]:
    """The steps of one metric's series, of one kind of evidence."""
    lineage = lineages.lineage(data_version, family)
    return find_change_points(
        store(),
        open_root(),
        metric_table(data_version),
        metric,
        family=family,
        workload=workload,
        gpu=gpu,
        evidence=evidence,
        orders={family: lineage.order} if lineage else None,
        wrong=_wrong(family, lineage),
        pairing=pairing(data_version),
    )


@st.cache_resource(show_spinner=False, max_entries=MAX_ENTRIES)
def version_grid(
    data_version: DataVersion, metric: str, family: str, evidence: Evidence, since: datetime | None
) -> dict[Place, GridCell]:
    """How every version changed on every workload and GPU since a moment, by one metric."""
    lineage = lineages.lineage(data_version, family)
    wrong = _wrong(family, lineage)
    found: list[Trend]
    if metric == LATENCY:
        found = load_latency_trends(store(), family=family, wrong=wrong)
    else:
        found = load_trends(
            store(),
            metric,
            metric_table(data_version),
            family=family,
            over="time",
            evidence=evidence,
            wrong=wrong,
            pairing=pairing(data_version),
        )
    steps = find_change_points(
        store(),
        open_root(),
        metric_table(data_version),
        metric,
        family=family,
        evidence=evidence,
        orders={family: lineage.order} if lineage else None,
        wrong=wrong,
        pairing=pairing(data_version),
    )
    return build_grid(found, steps, since)


@st.cache_resource(show_spinner=False, max_entries=MAX_ENTRIES)
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


@st.cache_resource(show_spinner=False, max_entries=MAX_ENTRIES)
def opcodes(data_version: DataVersion, result_ids: tuple[int, ...]) -> dict[int, Mapping[str, float]]:
    """How often each opcode was executed, by result."""
    launches = store().load(result_ids)
    return {number: launch.opcodes for number, launch in zip(result_ids, launches, strict=True)}


@st.cache_resource(show_spinner=False, max_entries=MAX_ENTRIES)
def run_spreads(data_version: DataVersion, result_ids: tuple[int, ...]) -> dict[int, RunSpread]:
    """The samples of timed calls and the intervals of their medians, by result."""
    return load_run_spreads(store(), result_ids)


@st.cache_resource(show_spinner=False, max_entries=MAX_ENTRIES)
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
