"""How a metric went, where a family stands and what got worse since, cached as all data."""

from __future__ import annotations

from datetime import UTC, date, datetime

import streamlit as st

from profiler.bundles import decisions, location
from profiler.evidence import Evidence
from profiler.explain import roofline_path
from profiler.gate import acknowledgement
from profiler.history import LATENCY, History, Trend, baselines, find_change_points
from profiler.history import overview as overviewing
from profiler.history import trend as trending
from profiler.regressions import Cause, CauseFinder, Regression, RegressionReport, find_regressions
from profiler.ui.data import index, lineages


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def trend(
    now: index.Stamp, name: str, family: str, workload: str, gpu: str, over: str, evidence: Evidence
) -> list[Trend]:
    """One metric's series, of one kind of evidence."""
    found = lineages.lineage(now, family)
    if name == LATENCY:
        wrong = {family: found.wrong} if found else None
        several = trending.load_latency_trends(
            index.store(), family=family, workload=workload, gpu=gpu, wrong=wrong
        )
        if over == "time":
            return several
        order = [version.version for version in lineages.versions(now) if version.family == family]
        return [trending.newest_of_each_version(one, order) for one in several]
    return trending.load_trends(
        index.store(),
        name,
        index.table(now),
        family=family,
        workload=workload,
        gpu=gpu,
        over="time" if over == "time" else "versions",
        evidence=evidence,
        orders={family: found.order} if found else None,
        wrong={family: found.wrong} if found else None,
    )


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def history(
    now: index.Stamp, name: str, family: str, workload: str, gpu: str, evidence: Evidence
) -> list[History]:
    """The steps of one metric's series, of one kind of evidence."""
    found = lineages.lineage(now, family)
    return find_change_points(
        index.store(),
        location.open_root(),
        index.table(now),
        name,
        family=family,
        workload=workload,
        gpu=gpu,
        evidence=evidence,
        orders={family: found.order} if found else None,
        wrong={family: found.wrong} if found else None,
    )


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def roofline_paths(
    now: index.Stamp, family: str, workload: str, gpu: str
) -> list[roofline_path.RooflinePath]:
    """The path of each kernel through the roofline of its GPU, the longest kernel first."""
    series = trend(now, roofline_path.LAUNCH_METRIC, family, workload, gpu, "versions", Evidence.MEASURED)
    of_family = {run.run_id: run for run in index.runs(now)}
    found = lineages.lineage(now, family)
    parents = {one.version.id: one.version.parent for one in found.statuses} if found else None
    return [
        roofline_path.load_roofline_path(one, index.store().load, of_family, index.table(now), parents)
        for one in series
    ]


@st.cache_resource(show_spinner=False, max_entries=2)
def overview(now: index.Stamp) -> overviewing.Overview:
    """The newest state of every family."""
    return overviewing.load_overview(index.store(), index.table(now), noise=index.noise(now))


def regressions(now: index.Stamp) -> RegressionReport:
    """What is worse now in every family."""
    today = datetime.now(UTC).date()  # on which an acknowledgement may end
    return _regressions(now, tuple(decisions.decision_ids(location.open_root())), today)


@st.cache_resource(show_spinner="Looking for what got worse …", max_entries=2)
def _regressions(now: index.Stamp, decided: tuple[str, ...], today: date) -> RegressionReport:
    records = decisions.load_decisions(location.open_root())
    return find_regressions(
        index.store(),
        index.table(now),
        lineages=lineages.lineages_by_family(now),
        noise=index.noise(now),
        acknowledged=acknowledgement.list_acknowledgements(records),
        pins=baselines.list_pins(records),
    )


@st.cache_resource(show_spinner=False, max_entries=2)
def _causes(now: index.Stamp) -> CauseFinder:
    return CauseFinder(index.store(), location.open_root(), index.table(now), index.noise(now))


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def cause(now: index.Stamp, one: Regression) -> Cause:
    """Why something got worse, as far as anybody can tell."""
    return _causes(now).find(one)
