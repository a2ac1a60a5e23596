"""How a metric went, where a family stands and what got worse since, cached as all data."""

from __future__ import annotations

from datetime import UTC, date, datetime

import streamlit as st

from profiler import acknowledgement, baseline, decisions, latencies, location, roofpath, wobble
from profiler import overview as overviewing
from profiler import regressions as regressing
from profiler import trend as trending
from profiler.history import History, histories
from profiler.latencies import LATENCY
from profiler.regression import Regression
from profiler.regressioncause import Cause, Causes
from profiler.trend import Trend
from profiler.ui import data, lineage_data
from profiler.values import Evidence


@st.cache_resource(show_spinner=False, max_entries=data.KEPT)
def trend(
    now: data.Stamp, name: str, family: str, workload: str, gpu: str, over: str, evidence: Evidence
) -> list[Trend]:
    """One metric's series, of one kind of evidence."""
    found = lineage_data.lineage(now, family)
    if name == LATENCY:
        wrong = {family: found.wrong} if found else None
        several = latencies.latencies(data.store(), family=family, workload=workload, gpu=gpu, wrong=wrong)
        if over == "time":
            return several
        order = [version.version for version in lineage_data.versions(now) if version.family == family]
        return [latencies.newest_of_each(one, order) for one in several]
    return trending.trend(
        data.store(),
        name,
        data.table(now),
        family=family,
        workload=workload,
        gpu=gpu,
        over="time" if over == "time" else "versions",
        evidence=evidence,
        orders={family: found.order} if found else None,
        wrong={family: found.wrong} if found else None,
    )


@st.cache_resource(show_spinner=False, max_entries=data.KEPT)
def history(
    now: data.Stamp, name: str, family: str, workload: str, gpu: str, evidence: Evidence
) -> list[History]:
    """The steps of one metric's series, of one kind of evidence."""
    found = lineage_data.lineage(now, family)
    return histories(
        data.store(),
        location.root(),
        data.table(now),
        name,
        family=family,
        workload=workload,
        gpu=gpu,
        evidence=evidence,
        orders={family: found.order} if found else None,
        wrong={family: found.wrong} if found else None,
    )


@st.cache_resource(show_spinner=False, max_entries=data.KEPT)
def roofline_paths(now: data.Stamp, family: str, workload: str, gpu: str) -> list[roofpath.Path]:
    """The path of each kernel through the roofline of its GPU, the longest kernel first."""
    series = trend(now, roofpath.SERIES, family, workload, gpu, "versions", Evidence.MEASURED)
    of_family = {run.run_id: run for run in data.runs(now)}
    found = lineage_data.lineage(now, family)
    parents = {one.version.id: one.version.parent for one in found.standings} if found else None
    return [roofpath.path(one, data.store().load, of_family, data.table(now), parents) for one in series]


@st.cache_resource(show_spinner=False, max_entries=2)
def overview(now: data.Stamp) -> overviewing.Overview:
    """The newest state of every family."""
    return overviewing.overview(
        data.store(), data.table(now), noise=data.floors(now), wobble=wobble.lookup(data.store)
    )


def regressions(now: data.Stamp) -> regressing.Regressions:
    """What is worse now in every family."""
    today = datetime.now(UTC).date()  # on which an acknowledgement may end
    return _regressions(now, tuple(decisions.names(location.root())), today)


@st.cache_resource(show_spinner="Looking for what got worse …", max_entries=2)
def _regressions(now: data.Stamp, decided: tuple[str, ...], today: date) -> regressing.Regressions:
    records = decisions.load(location.root())
    return regressing.regressions(
        data.store(),
        data.table(now),
        lineages=lineage_data.lineages_by_family(now),
        floors=data.floors(now),
        wobbles=wobble.by_place(data.store),
        acknowledged=acknowledgement.standing(records),
        pins=baseline.pins(records),
    )


@st.cache_resource(show_spinner=False, max_entries=2)
def _causes(now: data.Stamp) -> Causes:
    return Causes(data.store(), location.root(), data.table(now), wobble.lookup(data.store))


@st.cache_resource(show_spinner=False, max_entries=data.KEPT)
def cause(now: data.Stamp, one: Regression) -> Cause:
    """Why something got worse, as far as anybody can tell."""
    return _causes(now).of(one)
