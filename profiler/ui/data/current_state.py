"""Where every family stands now: its newest versions, and what is worse than before or than the baseline."""

from __future__ import annotations

from datetime import UTC, date, datetime

import streamlit as st

from profiler.bundles import load_decisions, open_root
from profiler.bundles.decisions import decision_ids
from profiler.gate import list_acknowledgements
from profiler.history import Overview, load_overview
from profiler.history.baselines import list_pins
from profiler.regressions import (
    Cause,
    CauseFinder,
    Regression,
    RegressionReport,
    SharedRegression,
    find_regressions,
    find_shared_regressions,
)
from profiler.ui.data import lineages
from profiler.ui.data.index import MAX_ENTRIES, DataVersion, metric_table, noise, pairing, store


@st.cache_resource(show_spinner=False, max_entries=2)
def overview(data_version: DataVersion) -> Overview:
    """The newest state of every family."""
    return load_overview(
        store(), metric_table(data_version), noise=noise(data_version), pairing=pairing(data_version)
    )


def regressions(data_version: DataVersion) -> RegressionReport:
    """What is worse now in every family."""
    today = datetime.now(UTC).date()  # on which an acknowledgement may end
    return _regressions(data_version, tuple(decision_ids(open_root())), today)


@st.cache_resource(show_spinner="Looking for what got worse …", max_entries=2)
def _regressions(data_version: DataVersion, decisions: tuple[str, ...], today: date) -> RegressionReport:
    """The report; decisions and the day are keys of the cache only."""
    records = load_decisions(open_root())
    return find_regressions(
        store(),
        metric_table(data_version),
        lineages=lineages.lineages_by_family(data_version),
        noise=noise(data_version),
        acknowledged=list_acknowledgements(records),
        pins=list_pins(records),
        pairing=pairing(data_version),
    )


@st.cache_resource(show_spinner=False, max_entries=2)
def _cause_finder(data_version: DataVersion) -> CauseFinder:
    table = metric_table(data_version)
    return CauseFinder(store(), open_root(), table, noise(data_version), pairing(data_version))


def shared_regressions(data_version: DataVersion) -> tuple[SharedRegression, ...]:
    """The alarms that many series share on one run."""
    return find_shared_regressions(regressions(data_version), _cause_finder(data_version))


@st.cache_resource(show_spinner=False, max_entries=MAX_ENTRIES)
def cause(data_version: DataVersion, regression: Regression) -> Cause:
    """Why something got worse, as far as it can be told."""
    return _cause_finder(data_version).find(regression)
