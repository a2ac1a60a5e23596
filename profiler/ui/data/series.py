"""How a metric of a family changed over versions or time, its steps, and its path through the roofline."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from profiler.bundles import open_root
from profiler.evidence import Evidence
from profiler.explain import RooflinePath, load_roofline_path
from profiler.explain.roofline_path import LAUNCH_METRIC
from profiler.history import (
    LATENCY,
    History,
    Lineage,
    Trend,
    find_change_points,
    load_latency_trends,
    load_trends,
)
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
