"""Runs as the index and the bundles hold them: their launches, cells, reports and values by instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiler.bundles.bundle import load_run
from profiler.bundles.location import open_root
from profiler.bundles.run import Run
from profiler.evidence.cell import Cell
from profiler.evidence.launch import Launch
from profiler.evidence.side import Side
from profiler.reports.instances import LaunchDetail
from profiler.reports.read import launch_detail as read_launch_detail
from profiler.store.family_mix import FamilyMix, family_mixes
from profiler.store.rows import ResultInfo, Rows, RunInfo
from profiler.store.run_decisions import relabel
from profiler.store.run_files import dropped_report_words, open_report
from profiler.ui import addresses
from profiler.ui.data.cache import cached
from profiler.ui.data.cells import NamedCell, cells_of_versions_and_runs
from profiler.ui.data.index import DataVersion, store


@cached(2)
def runs(data_version: DataVersion) -> Rows[RunInfo]:
    """Every run that is not hidden; of more than the index lists at once the newest."""
    return store().runs()


@cached(2)
def run_ids(data_version: DataVersion) -> list[str]:
    """The ids of these runs, newest first: a page that lists no run needs no more of them."""
    return store().listed_run_ids()


@cached(2)
def mixed_families(data_version: DataVersion) -> list[FamilyMix]:
    """The families that mix the reports of several folders."""
    return family_mixes(runs(data_version), store().import_folders())


def part_by_folder(family: str) -> None:
    """Make each folder that reports of a family came from a family of its own, in one decision."""
    relabel(family, by_folder=True, store=store())


def unreadable_bundles() -> dict[str, str]:
    """The bundles in the data folder that cannot be read: run id to reason."""
    return dict(store().refused())


@cached()
def bundled_run(data_version: DataVersion, run_id: str) -> Run:
    """A run as its bundle has it."""
    return load_run(open_root(), run_id)


@cached(2)
def cells(data_version: DataVersion) -> list[NamedCell]:
    """What every version and run was measured or examined on."""
    return cells_of_versions_and_runs(store().cells(), runs(data_version))


def cells_with_runs_of(data_version: DataVersion, names: Sequence[str]) -> list[NamedCell]:
    """All cells, and those of each name that means a version as one run has it."""
    every_cell = list(cells(data_version))
    for name in dict.fromkeys(names):
        parsed = addresses.parse_version(name)
        if parsed.run_id is None:
            continue
        rows = store().results(run_id=parsed.run_id)
        of_version = [
            row for row in rows if f"{row.family}/{row.version}" == parsed.without_run and row.kind != "cell"
        ]
        keys = dict.fromkeys((row.workload or "", row.gpu or "", row.evidence) for row in of_version)
        every_cell += [NamedCell(name, Cell(workload=key[0], gpu=key[1], evidence=key[2])) for key in keys]
    return every_cell


@cached()
def launches(data_version: DataVersion, run_id: str) -> list[ResultInfo]:
    """The launches of one run."""
    return store().results(run_id=run_id, kind="launch")


def result_of_launch(data_version: DataVersion, side: Side, launch: Launch) -> ResultInfo | None:
    """The index's row of a side's launch; None where the side is of no run, such as two files."""
    if side.launch_run_id is None:
        return None
    by_id = {row.result_id: row for row in launches(data_version, side.launch_run_id)}
    # A side holds its launches without their places in a report: the index has those.
    pairs = zip(side.launches, side.result_ids, strict=False)
    return next((by_id.get(result_id) for own, result_id in pairs if own is launch), None)


@cached()
def facts(data_version: DataVersion, run_id: str) -> list[ResultInfo]:
    """The static and modelled facts of one run, one row per kernel function or workload."""
    return store().results(run_id=run_id, kind="facts")


@cached()
def launch(data_version: DataVersion, result_id: int) -> Launch:
    """One launch with all its values."""
    return store().load([result_id])[0]


@cached()
def is_timed(data_version: DataVersion, family: str) -> bool:
    """Whether calls of a family were timed."""
    return bool(store().results(family=family, kind="latency", limit=1))


@cached()
def metric_names(data_version: DataVersion, family: str) -> list[str]:
    """The exact ncu names that launches of a family carry."""
    return store().metric_names(family)


def dropped_words(run: RunInfo) -> str:
    """Who dropped the reports of a run and when; "" where it has them."""
    return (dropped_report_words(run.run_id) if run.reports else None) or ""


def report_reader(run_id: str, sha256: str) -> Callable[[], bytes]:
    """What gives the bytes of an original report, read when they are asked for."""

    def read() -> bytes:
        with open_report(run_id, sha256) as path:
            return path.read_bytes()

    return read


# The key is the report's hash: no new data changes what a report holds.
@cached(8, saying="Reading the instructions …")
def launch_detail(run_id: str, sha256: str, ordinal: int) -> LaunchDetail:
    """What one launch holds per instruction; extracted on first view and kept in the cache folder."""
    with open_report(run_id, sha256) as path:
        return read_launch_detail(path, ordinal, open_root().cache() / "detail")
