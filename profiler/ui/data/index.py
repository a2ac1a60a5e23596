"""The index, opened once a server, and the version of the data by which all answers here are cached."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from profiler.bundles import open_root
from profiler.compare import NoiseModel, Pairing, pairs_digest
from profiler.evidence import MetricTable, load_metrics
from profiler.evidence.metric_table import DEFAULT_PATH
from profiler.store import Store, open_store, sync_store
from profiler.ui.errors import errors_shown

MAX_ENTRIES = 64  # finished answers of each kind kept in memory
_SYNC_EVERY_S = 30.0  # how often a page looks for bundles that arrived beside the server


class DataVersion(NamedTuple):
    """What every answer depends on: a new version is a new key of every cache."""

    of_index: str
    of_metrics: str  # path and time of metrics.txt
    of_pairs: str = ""  # which kernels are declared to be one


@st.cache_resource(show_spinner=False)
def store() -> Store:
    """The index, opened and brought up to date once a server."""
    opened = open_store()
    opened.freeze_loaded()
    return opened


@st.cache_resource(show_spinner=False, ttl=_SYNC_EVERY_S)
def _sync() -> None:
    """Take up bundles and decisions that arrived beside this server, as by `git pull`."""
    sync_store(open_root(), store())


def current_version() -> DataVersion:
    """The version of the data now."""
    with errors_shown():  # old data stays visible where new cannot be read
        _sync()
    path = DEFAULT_PATH
    changed = path.stat().st_mtime_ns if path.exists() else 0
    return DataVersion(store().data_version(), f"{path}:{changed}", pairs_digest(open_root()))


@st.cache_resource(show_spinner=False, max_entries=2)
def metric_table(data_version: DataVersion) -> MetricTable:
    """metrics.txt."""
    return load_metrics()


@st.cache_resource(show_spinner=False, max_entries=2)
def noise(data_version: DataVersion) -> NoiseModel:
    """What the index knows of noise."""
    return NoiseModel.of_store(store)


@st.cache_resource(show_spinner=False, max_entries=2)
def pairing(data_version: DataVersion) -> Pairing:
    """Which kernels are one under two names, as people declared it; other pairs are proposed and say so."""
    return Pairing.of_data()
