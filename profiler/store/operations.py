"""What is done with data as a whole: take in, relabel, forget, export, and keep the index in step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import IMPORT, Labels, Root, bundle, check_label, decisions, location, zip_file
from profiler.bundles.run_json import brief_error
from profiler.errors import BadBundle, ProfilerError, UnknownName
from profiler.evidence import brief_list
from profiler.reports import read
from profiler.store import import_files, report_values, sync
from profiler.store.import_files import Already, Imported, ImportSummary
from profiler.store.sync import Progress, SyncSummary, open_store, rebuild_index, sync_index

if TYPE_CHECKING:
    from profiler.store import Store

__all__ = [
    "Already",
    "ImportSummary",
    "Imported",
    "Progress",
    "SyncSummary",
    "export",
    "forget",
    "import_paths",
    "open_store",
    "rebuild_index",
    "relabel",
    "report_file",
    "sync_index",
]


def import_paths(
    paths: Iterable[Path | str],
    *,
    family: str | None = None,
    version: str | None = None,
    workload: str | None = None,
    data: str | None = None,
    progress: Progress | None = None,
    store: Store | None = None,
) -> ImportSummary:
    """Take in reports, CSVs, bundles (folders or zips) and whatever of these lies in folders.

    Each file is taken whole or refused, and a refused one does not stop the others. family, version and
    workload override what the paths of reports suggest; a bundle says its own.
    """
    given = {"family": family, "version": version, "workload": workload}
    labels = [check_label(kind, text) for kind, text in given.items()]
    found = import_files.find([Path(path) for path in paths])
    where = location.open_root(data)
    with bundle.importing(where):
        importer = import_files.Importer(where, labels, found, progress)
        # The first report is being read, in a process apart, while the database layer is imported here.
        reads = read.read_reports([files[0] for files in importer.new.values()])
        with contextlib.closing(report_values.Ahead(reads)) as reading, _store(data, store) as importer.store:
            importer.take_reports(reading)
            for path in found.bundles:
                importer.take_bundle(path)
            importer.flush()
            importer.store.refresh_chunks(sync.chunk_names())
    return importer.summary()


def relabel(
    run_id: str,
    *,
    family: str | None = None,
    version: str | None = None,
    workload: str | None = None,
    why: str = "",
    data: str | None = None,
    store: Store | None = None,
) -> Labels:
    """Mend the family, version or workload of an imported report; workload "" means that nobody knows it.

    Returns what is valid now. Nothing is recorded where that is so already.
    """
    where = location.open_root(data)
    given = {"family": family, "version": version, "workload": workload}
    values = {kind: check_label(kind, text) for kind, text in given.items() if text is not None}
    if not values:
        raise ProfilerError(f"nothing to change about {run_id}: name --family, --version or --workload")
    run = bundle.load_run(where, _known_run(where, run_id))
    if run.kind != IMPORT:
        raise ProfilerError(
            f"{run_id} was collected, and its catalogue names its versions: relabel is for imports"
        )
    before = decisions.effective_labels(run, decisions.current_labels(decisions.load_decisions(where)))
    if all((getattr(before, kind) or "") == text for kind, text in values.items()):
        return before
    _decide(where, decisions.RELABEL, run_id, values, why, data, store)
    return decisions.effective_labels(run, decisions.current_labels(decisions.load_decisions(where)))


def forget(
    run_id: str, *, undo: bool = False, why: str = "", data: str | None = None, store: Store | None = None
) -> bool:
    """Hide a run everywhere, or show it again; its bundle stays. False: it was so before."""
    where = location.open_root(data)
    decided = decisions.current_labels(decisions.load_decisions(where)).get(
        _known_run(where, run_id), Labels()
    )
    if decided.hidden != undo:
        return False
    _decide(where, decisions.REMEMBER if undo else decisions.FORGET, run_id, {}, why, data, store)
    return True


def export(run_id: str, target: Path, *, data: str | None = None) -> Path:
    """Write a run as one zip that `import` takes elsewhere; into a folder under the run's name."""
    where = location.open_root(data)
    return zip_file.pack(where, _known_run(where, run_id), target)


@contextlib.contextmanager
def report_file(run_id: str, sha256: str, *, data: str | None = None) -> Iterator[Path]:
    """A local path of a report that a run keeps, for download or a second look, while the context lasts."""
    where = location.open_root(data)
    for file in bundle.load_run(where, run_id).reports:
        if file.sha256 == sha256:
            with contextlib.ExitStack() as opened:
                try:
                    local = where.open_local(f"{bundle.RUNS_FOLDER}/{run_id}/{file.path}")
                    path = opened.enter_context(local)
                except OSError as error:
                    raise BadBundle(f"run {run_id} has lost {file.path} ({brief_error(error)})") from error
                yield path
            return
    raise UnknownName(f"run {run_id} keeps no report {sha256[:12]}")


@contextlib.contextmanager
def _store(data: str | None, given: Store | None) -> Iterator[Store]:
    """The given index, else the data folder's own for as long as the context lasts."""
    store = given or open_store(data)
    try:
        yield store
    finally:
        if given is None:
            store.close()


def _decide(
    where: Root,
    kind: str,
    run_id: str,
    values: Mapping[str, str | None],
    why: str,
    data: str | None,
    given: Store | None,
) -> None:
    """Record a decision and have the index follow; nothing is recorded where there is no index to do so."""
    with _store(data, given) as store:
        decisions.write_decision(where, kind, run_id, values, why=why)
        sync.bring_in_step(where, store)


def _known_run(where: Root, run_id: str) -> str:
    there = bundle.list_runs(where)
    if run_id not in there:
        near = get_close_matches(run_id, there, n=3, cutoff=0.5)
        hint = f"; near: {brief_list(near)}" if near else "; `profiler runs` lists what there is"
        raise UnknownName(f"no run {run_id} in {where.url}{hint}")
    return run_id
