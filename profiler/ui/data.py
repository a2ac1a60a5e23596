"""What the pages ask for, cached until the data changes: the key is the version of index and metrics.txt."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple, Protocol

import streamlit as st

from profiler import (
    acknowledgement,
    baseline,
    bundle,
    circumstances,
    decisions,
    latencies,
    location,
    metrics,
    noisefloor,
    pipeline,
    report,
    roofpath,
    speedups,
    sync,
    wobble,
)
from profiler import lineage as lineages
from profiler import overview as overviewing
from profiler import regressions as regressing
from profiler import trend as trending
from profiler.compare import Comparison, FloorLookup, compare
from profiler.detail import Detail
from profiler.errors import ProfilerError, UnknownName
from profiler.history import History, histories
from profiler.latencies import LATENCY
from profiler.regression import Regression
from profiler.regressioncause import Cause, Causes
from profiler.run import IMPORT, Run
from profiler.speedups import SpeedUp
from profiler.store import LaunchInfo, RunInfo, Store, VersionInfo
from profiler.trend import Trend
from profiler.ui import addresses, markup, source_view
from profiler.values import Evidence, Launch, Side, spread

_LAST_IMPORT = "runs_last_import"
_STEP_S = 30.0  # how often a page looks for bundles that arrived beside the server
_CELLS = 20  # workloads and GPUs of one pair compared for one page
_KEPT = 64  # finished answers of each kind kept in memory


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
        st.html(markup.error(re.sub(r"^--kernel ", "kernels ", str(error))))


@st.cache_resource(show_spinner=False)
def store() -> Store:
    """The index, opened and brought up to date once a server."""
    opened = pipeline.open_store()
    opened.settle()
    return opened


@st.cache_resource(show_spinner=False, ttl=_STEP_S)
def _bring_in_step() -> None:
    """Take up bundles and decisions that arrived beside this server, as by `git pull`."""
    sync.bring_in_step(location.root(), store())


def stamp() -> Stamp:
    """The state of the data now."""
    with errors_shown():  # old data stays visible where new cannot be read
        _bring_in_step()
    path = metrics.DEFAULT_PATH
    return Stamp(store().data_version(), f"{path}:{path.stat().st_mtime_ns if path.exists() else 0}")


@st.cache_resource(show_spinner=False, max_entries=2)
def table(now: Stamp) -> metrics.MetricTable:
    """metrics.txt."""
    return metrics.load()


@st.cache_resource(show_spinner=False, max_entries=2)
def runs(now: Stamp) -> list[RunInfo]:
    """Every run that is not hidden."""
    return store().runs()


def unreadable() -> dict[str, str]:
    """The bundles that are there and cannot be read: run id to reason."""
    found: dict[str, str] = json.loads(store().remembered().get("refused", "{}"))
    return found


@st.cache_resource(show_spinner=False, max_entries=2)
def versions(now: Stamp) -> list[VersionInfo]:
    """Every version, in order of its first run within its family."""
    return [
        version
        for family in store().families()
        for version in _in_order(store().versions(family), catalogue_order(now, family))
    ]


def _in_order(found: Sequence[VersionInfo], order: Sequence[str]) -> list[VersionInfo]:
    """The versions in the catalogue's order where there is one; the others after them, as they came."""
    places = {name: place for place, name in enumerate(order)}
    return sorted(found, key=lambda version: places.get(version.version, len(places)))


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
            rows = store().launches(run_id=run_id)
            own = [row for row in rows if f"{row.family}/{row.version}" == version and row.kind != "cell"]
            there = dict.fromkeys((row.workload or "", row.gpu or "", row.evidence) for row in own)
            found += [addresses.Cell(name, *where) for where in there]
    return found


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def attached(now: Stamp, family: str) -> lineages.Attached | None:
    """The catalogue that the family's newest run with one keeps."""
    return lineages.newest(location.root(), store(), family)


def lineages_by_family(now: Stamp) -> dict[str, lineages.Lineage]:
    """The lineage of each family that has a catalogue; one that cannot be read is named."""
    found = {}
    for family in store().families():
        with errors_shown():
            one = lineage(now, family)
            if one is not None:
                found[family] = one
    return found


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def lineage(now: Stamp, family: str) -> lineages.Lineage | None:
    """How the versions of a family stand; None where it has no catalogue."""
    found = attached(now, family)
    return None if found is None else lineages.stands(store(), found)


def is_wrong(now: Stamp, family: str, version: str) -> bool:
    """Whether the lineage says that a version's results are wrong; one that it cannot tell of is not."""
    with suppress(ProfilerError):
        found = lineage(now, family)
        return bool(found and version in found.by_id and found.by_id[version].is_wrong)
    return False


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def speed_ups(now: Stamp, family: str, workload: str, gpu: str) -> dict[str, SpeedUp]:
    """How much faster each version is than its nearest correct ancestor there."""
    found = lineage(now, family)
    return speedups.speed_ups(store(), found, workload, gpu, floors(now)) if found and gpu else {}


def catalogue_order(now: Stamp, family: str) -> tuple[str, ...]:
    """The versions in their catalogue's order; none where it cannot be told."""
    with suppress(ProfilerError):
        found = attached(now, family)
        return tuple(found.catalog.by_id) if found else ()
    return ()


def first_pair(now: Stamp) -> tuple[str, str]:
    """What a diff opens with: good versions where a catalogue tells them, else the newest two."""
    newest = addresses.newest_pair(versions(now))
    with suppress(ProfilerError):
        found = lineage(now, newest[1].rpartition("/")[0])
        return (found and addresses.good_pair(versions(now), found)) or newest
    return newest


def apart(now: Stamp, family: str) -> str:
    """How the working tree's catalogue and sources differ from those that are shown."""
    found = attached(now, family)
    return lineages.apart(found) if found else ""


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def kept(now: Stamp, run_id: str) -> Run:
    """A run as its bundle has it."""
    return bundle.load(location.root(), run_id)


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def origin(now: Stamp, family: str, run_id: str | None) -> lineages.Attached | None:
    """The catalogue and sources that belong to a side: its own run's, else the family's newest."""
    own = lineages.of_run(location.root(), kept(now, run_id), family) if run_id else None
    return own or attached(now, family)


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def source(now: Stamp, family: str, run_id: str | None, version: str) -> source_view.Kept | None:
    """A version's entry, sources and line tables as its run keeps them."""
    held = origin(now, family, run_id)
    if held is None or version not in held.catalog.by_id:
        return None
    entry, root = held.catalog.by_id[version], location.root()
    traffic = lineages.lines(root, held, version)
    named = {row[0] for rows in traffic.values() for row in rows}
    return source_view.Kept(
        entry,
        lineages.source(root, held, entry),
        traffic,
        {name: text for name, text in lineages.texts(root, held).items() if name in named},
    )


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def launches(now: Stamp, run_id: str) -> list[LaunchInfo]:
    """The launches of one run."""
    return store().launches(run_id=run_id, kind="launch")


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def facts(now: Stamp, run_id: str) -> list[LaunchInfo]:
    """The static and modelled facts of one run, a row a kernel function or workload."""
    return store().launches(run_id=run_id, kind="facts")


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def launch(now: Stamp, result_id: int) -> Launch:
    """One launch with all its values."""
    return store().load([result_id])[0]


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def side(now: Stamp, name: str, workload: str, gpu: str, evidence: Evidence) -> Side:
    """The launches of a run id or family/version; never of a path, since an address comes from outside."""
    if any(run.run_id == name for run in runs(now)):
        return store().side(run_id=name)
    known, run_id = addresses.parts(name)
    for version in versions(now):
        if known == addresses.name(version):
            wanted = _cell(now, name, workload, gpu, evidence)
            return store().side(
                run_id=run_id,
                family=version.family,
                version=version.version,
                workload=wanted[0],
                gpu=wanted[1],
                evidence=evidence,
            )
    there = [addresses.name(version) for version in versions(now)]
    near = get_close_matches(name, there, n=3, cutoff=0.4) or there
    raise UnknownName(f"{name}: no such run or version in the index; there are {spread(near)}")


def _cell(
    now: Stamp, name: str, workload: str, gpu: str, evidence: Evidence
) -> tuple[str | None, str | None]:
    """The cell asked for, or the version's only one that comes near: two GPUs can be held together."""
    own = addresses.cells(cells_of(now, (name,)), (name,), evidence)
    if (workload, gpu) in own:
        return workload, gpu
    near = [cell for cell in own if cell[0] == workload]
    near = near or [cell for cell in own if _shape(cell[0]) == _shape(workload) and cell[1] == gpu] or own
    return near[0] if len(near) == 1 else (None, None)


def _shape(workload: str) -> list[str]:
    """A workload's words without the dtype: fp8 and fp16 stand side by side, not comparable."""
    return [word for word in workload.split() if word not in ("fp8", "fp16", "bf16")]


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def comparison(
    now: Stamp, a: str, b: str, workload: str, gpu: str, kernel: str | None, evidence: Evidence
) -> Comparison:
    """B against A."""
    sides = [side(now, name, workload, gpu, evidence) for name in (a, b)]
    return compare(
        sides[0],
        sides[1],
        table(now),
        kernel=kernel or None,
        noise=floors(now),
        same_code=circumstances.same_code(),
        wobble=wobble.lookup(store),
    )


def imported(now: Stamp, found: Comparison) -> bool:
    """Whether both sides come from reports that somebody imported."""
    kinds = {run.run_id: run.kind for run in runs(now)}
    return all(kinds.get(side.run_id or "") == IMPORT for side in (found.a, found.b))


@st.cache_resource(show_spinner=False, max_entries=2)
def floors(now: Stamp) -> FloorLookup:
    """The noise floor of a GPU, mode and latency."""
    return noisefloor.lookup(store)


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def trend(
    now: Stamp, name: str, family: str, workload: str, gpu: str, over: str, evidence: Evidence
) -> list[Trend]:
    """One metric's series, of one kind of evidence."""
    found = lineage(now, family)
    if name == LATENCY:
        wrong = {family: found.wrong} if found else None
        several = latencies.latencies(store(), family=family, workload=workload, gpu=gpu, wrong=wrong)
        if over == "time":
            return several
        order = [version.version for version in versions(now) if version.family == family]
        return [latencies.newest_of_each(one, order) for one in several]
    return trending.trend(
        store(),
        name,
        table(now),
        family=family,
        workload=workload,
        gpu=gpu,
        over="time" if over == "time" else "versions",
        evidence=evidence,
        orders={family: found.order} if found else None,
        wrong={family: found.wrong} if found else None,
    )


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def history(now: Stamp, name: str, family: str, workload: str, gpu: str, evidence: Evidence) -> list[History]:
    """The steps of one metric's series, of one kind of evidence."""
    found = lineage(now, family)
    return histories(
        store(),
        location.root(),
        table(now),
        name,
        family=family,
        workload=workload,
        gpu=gpu,
        evidence=evidence,
        orders={family: found.order} if found else None,
        wrong={family: found.wrong} if found else None,
    )


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def roofline_paths(now: Stamp, family: str, workload: str, gpu: str) -> list[roofpath.Path]:
    """The path of each kernel through the roofline of its GPU, the longest kernel first."""
    series = trend(now, roofpath.SERIES, family, workload, gpu, "versions", Evidence.MEASURED)
    of_family = {run.run_id: run for run in runs(now)}
    found = lineage(now, family)
    parents = {one.version.id: one.version.parent for one in found.standings} if found else None
    return [roofpath.path(one, store().load, of_family, table(now), parents) for one in series]


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def is_timed(now: Stamp, family: str) -> bool:
    """Whether calls of a family were timed."""
    return bool(store().launches(family=family, kind="latency", limit=1))


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def metric_names(now: Stamp, family: str) -> list[str]:
    """The exact ncu names that launches of a family carry."""
    return store().metric_names(family)


@st.cache_resource(show_spinner=False, max_entries=2)
def overview(now: Stamp) -> overviewing.Overview:
    """The newest state of every family."""
    return overviewing.overview(store(), table(now), noise=floors(now), wobble=wobble.lookup(store))


def regressions(now: Stamp) -> regressing.Regressions:
    """What is worse now in every family."""
    today = datetime.now(UTC).date()  # on which an acknowledgement may end
    return _regressions(now, tuple(decisions.names(location.root())), today)


@st.cache_resource(show_spinner="Looking for what got worse …", max_entries=2)
def _regressions(now: Stamp, decided: tuple[str, ...], today: date) -> regressing.Regressions:
    records = decisions.load(location.root())
    return regressing.regressions(
        store(),
        table(now),
        lineages=lineages_by_family(now),
        floors=floors(now),
        wobbles=wobble.by_place(store),
        acknowledged=acknowledgement.standing(records),
        pins=baseline.pins(records),
    )


@st.cache_resource(show_spinner=False, max_entries=2)
def _causes(now: Stamp) -> Causes:
    return Causes(store(), location.root(), table(now), wobble.lookup(store))


@st.cache_resource(show_spinner=False, max_entries=_KEPT)
def cause(now: Stamp, one: Regression) -> Cause:
    """Why something got worse, as far as anybody can tell."""
    return _causes(now).of(one)


def sources(now: Stamp, found: Comparison) -> tuple[source_view.Kept, source_view.Kept] | None:
    """What the runs keep of both sides, where both are versions of a catalogue."""
    kept_of = [
        source(now, side.family, side.run_id, side.version) if side.family and side.version else None
        for side in (found.a, found.b)
    ]
    if kept_of[0] is None or kept_of[1] is None:
        return None
    return kept_of[0], kept_of[1]


def report_content(run_id: str, sha256: str) -> Callable[[], bytes]:
    """The bytes of an original report, read when they are asked for."""

    def read() -> bytes:
        with pipeline.report_file(run_id, sha256) as path:
            return path.read_bytes()

    return read


@st.cache_resource(show_spinner="Reading the instructions …", max_entries=8)
def detail(run_id: str, sha256: str, ordinal: int) -> Detail:
    """What one launch holds per instruction; extracted on first view and kept by the report's hash."""
    with pipeline.report_file(run_id, sha256) as path:
        return report.detail(path, ordinal, location.root().cache() / "detail")


def last_import() -> pipeline.ImportSummary | None:
    """What the last import of this session did."""
    return st.session_state.get(_LAST_IMPORT)


def elsewhere(
    now: Stamp, a: str, b: str, cells: Sequence[tuple[str, str]], kernels: str, evidence: Evidence
) -> dict[tuple[str, str], Comparison]:
    """The same pair on each workload and GPU, where both were measured there and have such a kernel."""
    found = {}
    for workload, gpu in cells[:_CELLS]:
        with suppress(UnknownName):
            found[workload, gpu] = comparison(now, a, b, workload, gpu, kernels, evidence)
    return found


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
        done = pipeline.import_paths(paths, family=family, version=version, store=store())
    refused = tuple(
        (Path(path).name, message.replace(path, Path(path).name)) for path, message in done.refused
    )
    st.session_state[_LAST_IMPORT] = replace(done, refused=refused)
