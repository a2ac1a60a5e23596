"""What the pages ask for, cached until the data changes: the key is the version of index and metrics.txt."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

import streamlit as st

from profiler.bundles import Run, bundle, location
from profiler.compare import NoiseModel
from profiler.errors import ProfilerError
from profiler.evidence import Launch, metric_table
from profiler.reports import LaunchDetail
from profiler.reports import read as reports_read
from profiler.store import (
    ImportSummary,
    ResultInfo,
    RunInfo,
    Store,
    import_paths,
    open_report,
    open_store,
    sync,
)
from profiler.ui import addresses, markup

_LAST_IMPORT = "runs_last_import"
_STEP_S = 30.0  # how often a page looks for bundles that arrived beside the server
KEPT = 64  # finished answers of each kind kept in memory


class Stamp(NamedTuple):
    """What every answer depends on."""

    rows: str  # of the index
    declared: str  # of metrics.txt


class Upload(Protocol):
    """A file that a browser sent."""

    name: str

    def getbuffer(self) -> memoryview: ...


@contextmanager
def errors_shown() -> Iterator[None]:
    """Show an error a user can mend where it happened; what stands above and below stays."""
    try:
        yield
    except ProfilerError as error:
        # The page has a field where the command line has a flag.
        st.html(markup.error_box(re.sub(r"^--kernel ", "kernels ", str(error))))


@st.cache_resource(show_spinner=False)
def store() -> Store:
    """The index, opened and brought up to date once a server."""
    opened = open_store()
    opened.freeze_loaded()
    return opened


@st.cache_resource(show_spinner=False, ttl=_STEP_S)
def _bring_in_step() -> None:
    """Take up bundles and decisions that arrived beside this server, as by `git pull`."""
    sync.sync_store(location.open_root(), store())


def stamp() -> Stamp:
    """The state of the data now."""
    with errors_shown():  # old data stays visible where new cannot be read
        _bring_in_step()
    path = metric_table.DEFAULT_PATH
    return Stamp(store().data_version(), f"{path}:{path.stat().st_mtime_ns if path.exists() else 0}")


@st.cache_resource(show_spinner=False, max_entries=2)
def table(now: Stamp) -> metric_table.MetricTable:
    """metrics.txt."""
    return metric_table.load_metrics()


@st.cache_resource(show_spinner=False, max_entries=2)
def runs(now: Stamp) -> list[RunInfo]:
    """Every run that is not hidden."""
    return store().runs()


def unreadable() -> dict[str, str]:
    """The bundles that are there and cannot be read: run id to reason."""
    found: dict[str, str] = json.loads(store().notes().get("refused", "{}"))
    return found


@st.cache_resource(show_spinner=False, max_entries=2)
def _cells(now: Stamp) -> list[addresses.Cell]:
    return addresses.every_cell(store().cells(), runs(now))


def cells(now: Stamp) -> list[addresses.Cell]:
    """What every version and run was measured or examined on."""
    return _cells(now)


def cells_of(now: Stamp, names: Sequence[str]) -> list[addresses.Cell]:
    """The cells, and those of each name that means a version as one run has it."""
    found = list(cells(now))
    for name in dict.fromkeys(names):
        version, run_id = addresses.parts(name)
        if run_id is not None:
            rows = store().results(run_id=run_id)
            own = [row for row in rows if f"{row.family}/{row.version}" == version and row.kind != "cell"]
            there = dict.fromkeys((row.workload or "", row.gpu or "", row.evidence) for row in own)
            found += [addresses.Cell(name, *where) for where in there]
    return found


@st.cache_resource(show_spinner=False, max_entries=KEPT)
def kept(now: Stamp, run_id: str) -> Run:
    """A run as its bundle has it."""
    return bundle.load_run(location.open_root(), run_id)


@st.cache_resource(show_spinner=False, max_entries=KEPT)
def launches(now: Stamp, run_id: str) -> list[ResultInfo]:
    """The launches of one run."""
    return store().results(run_id=run_id, kind="launch")


@st.cache_resource(show_spinner=False, max_entries=KEPT)
def facts(now: Stamp, run_id: str) -> list[ResultInfo]:
    """The static and modelled facts of one run, a row a kernel function or workload."""
    return store().results(run_id=run_id, kind="facts")


@st.cache_resource(show_spinner=False, max_entries=KEPT)
def launch(now: Stamp, result_id: int) -> Launch:
    """One launch with all its values."""
    return store().load([result_id])[0]


@st.cache_resource(show_spinner=False, max_entries=2)
def noise(now: Stamp) -> NoiseModel:
    """What the index knows of noise."""
    return NoiseModel.of_store(store)


@st.cache_resource(show_spinner=False, max_entries=KEPT)
def is_timed(now: Stamp, family: str) -> bool:
    """Whether calls of a family were timed."""
    return bool(store().results(family=family, kind="latency", limit=1))


@st.cache_resource(show_spinner=False, max_entries=KEPT)
def metric_names(now: Stamp, family: str) -> list[str]:
    """The exact ncu names that launches of a family carry."""
    return store().metric_names(family)


def report_content(run_id: str, sha256: str) -> Callable[[], bytes]:
    """The bytes of an original report, read when they are asked for."""

    def read() -> bytes:
        with open_report(run_id, sha256) as path:
            return path.read_bytes()

    return read


@st.cache_resource(show_spinner="Reading the instructions …", max_entries=8)
def detail(run_id: str, sha256: str, ordinal: int) -> LaunchDetail:
    """What one launch holds per instruction; extracted on first view and kept by the report's hash."""
    with open_report(run_id, sha256) as path:
        return reports_read.launch_detail(path, ordinal, location.open_root().cache() / "detail")


def last_import() -> ImportSummary | None:
    """What the last import of this session did."""
    return st.session_state.get(_LAST_IMPORT)


def take_in(files: Sequence[Upload], family: str, version: str | None) -> None:
    """Import what a browser sent, as `profiler import` would, and keep what came of it for the page."""
    if not files:
        raise ProfilerError("no file chosen: drop reports above, or press Upload, until they are listed")
    with tempfile.TemporaryDirectory(prefix="profiler-upload-") as folder:
        paths = []
        for number, file in enumerate(files):
            # A folder each: two uploads may have one name, and the report keeps its name.
            path = Path(folder, str(number), Path(file.name).name)
            path.parent.mkdir()
            path.write_bytes(file.getbuffer())
            paths.append(path)
        done = import_paths(paths, family=family, version=version, store=store())
    refused = tuple(
        (Path(path).name, message.replace(path, Path(path).name)) for path, message in done.refused
    )
    st.session_state[_LAST_IMPORT] = replace(done, refused=refused)
