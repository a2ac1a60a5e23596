"""Keeps the index in step with the bundles and the decisions about them, which are the truth."""

from __future__ import annotations

import contextlib
import json
import pickle
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import bundle, decisions, location
from profiler.bundles.location import Root
from profiler.bundles.run import Labels, Run
from profiler.bundles.scratch import scratch_folder
from profiler.errors import BadBundle, ProfilerError
from profiler.evidence import metric_table
from profiler.store import report_values
from profiler.store.report_values import ReportsBySha256
from profiler.store.rows import DamagedIndex, WriteConflict

if TYPE_CHECKING:
    from profiler.store.index import Store
    from profiler.store.run_rows import RunRows

Progress = Callable[[int, int, str], None]  # how many are done, of how many, the name of the last
RunWithReports = tuple[Run, ReportsBySha256]

_AT_ONCE = 100  # runs that go into the index in one transaction
_TRIES = 20  # a try fails where another process changed the index meanwhile


@dataclass(frozen=True)
class SyncSummary:
    """What changed in the index."""

    added: tuple[str, ...] = ()  # run ids
    changed: tuple[str, ...] = ()  # their labels, or whether they are hidden
    removed: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # run id, message


@contextlib.contextmanager
def opened_store(data: str | None, open_index: Store | None) -> Iterator[Store]:
    """The index that is open already, else the data folder's own, in step with it, to be changed.

    It is closed when the context ends. Raises IndexNotWritable where it could not be brought in step.
    """
    root = location.open_root(data)
    store = open_index or unsynced_store(root)
    try:
        if open_index is None:
            sync_store(root, store)
        yield store
    finally:
        if open_index is None:
            store.close()


def unsynced_store(root: Root, db: str | None = None) -> Store:
    """The index of a data folder, as it is.

    Where the folder has no runs, and no index yet, the index is a temporary one: asking leaves nothing.
    """
    from profiler.store.index import Store  # brings SQLAlchemy in: 0.1 s

    place = location.index_location(root, db)
    if not isinstance(place, Path) or place.exists() or bundle.may_hold_runs(root):
        return Store.open(place, root.url)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        store = Store.open(folder / place.name, root.url)
        weakref.finalize(store, stack.pop_all().close)
    return store


def sync_index(
    data: str | None = None, *, store: Store | None = None, progress: Progress | None = None
) -> SyncSummary:
    """Bring the index in step, and try again the runs that it refused before."""
    root = location.open_root(data)
    return sync_store(root, store or unsynced_store(root), again=True, progress=progress)


def sync_store(
    root: Root, store: Store, *, again: bool = False, progress: Progress | None = None
) -> SyncSummary:
    """Make the index follow the bundles and the decisions about them: add, change and remove runs.

    A run that cannot be read is left out, and tried again only with `again`, not by every command. Raises
    ProfilerError for an index that belongs to another data folder: no runs may be removed from that.
    """
    bundle.sweep_deleted(root)
    added: list[str] = []
    for _ in range(_TRIES):
        with contextlib.suppress(WriteConflict):
            return _sync_once(root, store, again, progress, added)
    raise ProfilerError(
        f"other processes keep changing the index of {root.url}: try again when they are done"
    )


def _sync_once(
    root: Root, store: Store, again: bool, progress: Progress | None, added: list[str]
) -> SyncSummary:
    """One try to bring the index in step; WriteConflict where another process changed the index meanwhile.

    Decisions about indexed runs are applied first, in one transaction with the note that says so; missing
    runs are added after that, by the same decisions. `added` collects run ids over all tries.
    """
    # In this order: a run that another process seals and indexes between the two is not taken for removed.
    applied, notes, sealed = store.applied_labels(), store.notes(), bundle.list_runs(root)
    refused: dict[str, str] = {} if again else json.loads(notes.get("refused", "{}"))
    before = notes.get("decisions")
    missing = [run_id for run_id in sealed if run_id not in applied and run_id not in refused]
    gone = sorted(set(applied) - set(sealed))
    refused_and_gone = refused.keys() - set(sealed)
    nothing_to_do = not (missing or gone or refused_and_gone or again)
    if nothing_to_do and decisions.decisions_digest(decisions.decision_ids(root)) == before:
        return SyncSummary()
    owner = notes.get("root", root.url)
    # A SQLite file lies in its own data folder; a database server's may belong to another folder.
    if gone and owner != root.url and not isinstance(store.url, Path):
        raise ProfilerError(
            f"the index in PROFILER_DB is of the data in {owner}, not of {root.url}: name another one, or "
            "make it of this data: profiler data index --rebuild"
        )
    decided = decisions.load_labels(root)
    changed = [
        run_id
        for run_id in sealed
        if run_id in applied and applied[run_id] != decided.labels.get(run_id, Labels())
    ]
    to_read = [*changed, *missing]

    def make_rows(run_ids: Sequence[str], done: int) -> list[RunRows]:
        """The rows of the runs that can be read; the others go to `refused`."""
        rows: list[RunRows] = []
        for number, (run_id, content) in enumerate(read_runs(root, run_ids), done + 1):
            try:
                rows.append(_make_rows(store, content, decided.labels))
            except BadBundle as error:
                refused[run_id] = str(error)
            if progress is not None:
                progress(number, len(to_read), run_id)
        return rows

    if changed or gone or decided.digest != before:
        rows = make_rows(changed, 0)
        gone += [run_id for run_id in changed if run_id in refused]  # else the index would keep old labels
        store.apply_decisions(decided, rows, gone, before=before, notes={"root": root.url})
    for start in range(len(changed), len(to_read), _AT_ONCE):
        rows = make_rows(to_read[start : start + _AT_ONCE], start)
        is_new = store.add_many(rows, decided=decided)
        added += [of_run.run["run_id"] for of_run, new in zip(rows, is_new, strict=True) if new]
    still_refused = {run_id: message for run_id, message in refused.items() if run_id in sealed}
    store.put_notes({"refused": json.dumps(still_refused)})
    store.prepare_series(prepared_metrics())
    changed_again = tuple(run_id for run_id in changed if run_id not in refused)
    return SyncSummary(tuple(added), changed_again, tuple(gone), tuple(sorted(still_refused.items())))


def rebuild_index(data: str | None = None, *, progress: Progress | None = None) -> SyncSummary:
    """Make the index again from bundles and decisions alone; a damaged SQLite file is deleted first."""
    root = location.open_root(data)
    try:
        with contextlib.closing(unsynced_store(root)) as store:
            return _rebuild(root, store, progress)
    except DamagedIndex as error:
        _discard(location.index_location(root), error)
    with contextlib.closing(unsynced_store(root)) as store:
        return _rebuild(root, store, progress)


def _rebuild(root: Root, store: Store, progress: Progress | None) -> SyncSummary:
    sealed = bundle.list_runs(root)
    decided = decisions.load_labels(root)
    refused: dict[str, str] = {}
    readable = []
    with contextlib.ExitStack() as stack:
        spool = stack.enter_context(_Spool())
        # Everything is read before the transaction begins: reading takes longest, and others may write then.
        for number, (run_id, content) in enumerate(read_runs(root, sealed), 1):
            if isinstance(content, ProfilerError):
                refused[run_id] = str(content)
            else:
                try:
                    spool.add(_make_rows(store, content, decided.labels))
                    readable.append(run_id)
                except BadBundle as error:
                    refused[run_id] = str(error)
            if progress is not None:
                progress(number, len(sealed), run_id)

        def rows_of_readable() -> Iterator[RunRows]:
            yield from spool.rows()
            for _run_id, content in read_runs(root, readable[spool.count :]):
                if isinstance(content, ProfilerError):
                    raise content  # it could be read a moment ago: keep the old index rather than half of one
                yield _make_rows(store, content, decided.labels)

        def notes() -> dict[str, str]:
            return {"decisions": decided.digest, "refused": json.dumps(refused), "root": root.url}

        store.rebuild(rows_of_readable(), notes)
    store.prepare_series(prepared_metrics())
    return SyncSummary(added=tuple(readable), refused=tuple(sorted(refused.items())))


class _Spool:
    """Rows of runs in a temporary file, since those of a long history may not fit into memory.

    Where the file has no room, `add` leaves out the run and all that come after it.
    """

    def __init__(self) -> None:
        self.count = 0  # of runs that are in it
        self._is_open = True

    def __enter__(self) -> _Spool:
        self._stack = contextlib.ExitStack()
        try:
            folder = self._stack.enter_context(scratch_folder())
            self._file = self._stack.enter_context((folder / "rows").open("w+b"))
        except (OSError, ProfilerError):  # no temporary folder can be made
            self._is_open = False
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # of what a full disk did not take
            self._stack.close()

    def add(self, rows: RunRows) -> None:
        """Append the rows of a run."""
        if self._is_open:
            try:
                pickle.dump(rows, self._file, pickle.HIGHEST_PROTOCOL)
                self._file.flush()
                self.count += 1
            except OSError:
                self._is_open = False

    def rows(self) -> Iterator[RunRows]:
        """The rows of every run that is in it, in their order. Nobody else can write to the file."""
        if self.count:
            self._file.seek(0)
        for _ in range(self.count):
            yield pickle.load(self._file)


def read_runs(root: Root, run_ids: Sequence[str]) -> Iterator[tuple[str, RunWithReports | ProfilerError]]:
    """Each sealed run with its reports, or the error that prevents that; few are in memory at a time."""
    for start in range(0, len(run_ids), _AT_ONCE):
        runs: list[Run] = []
        refused: dict[str, ProfilerError] = {}
        batch = run_ids[start : start + _AT_ONCE]
        for run_id in batch:
            try:
                runs.append(bundle.load_run(root, run_id))
            except ProfilerError as error:
                refused[run_id] = error
        runs_with_reports = report_values.load_reports(root, runs)
        for run_id in batch:
            if run_id in refused:
                yield run_id, refused[run_id]
            else:
                run, reports = next(runs_with_reports)
                yield run_id, reports if isinstance(reports, ProfilerError) else (run, reports)


def prepared_metrics() -> frozenset[str]:
    """The metrics whose series are prepared for reading: of metrics.txt, and what its derived forms need.

    None where that file is unusable.
    """
    try:
        table = metric_table.load_metrics()
    except ProfilerError:
        return frozenset()
    names = {alternative.name for metric in table.metrics for alternative in metric.alternatives}
    needed = {name for metric in table.metrics for form in metric.forms for name in form.names}
    return frozenset(names | needed | set(table.captured))


def _make_rows(
    store: Store, content: RunWithReports | ProfilerError, labels: Mapping[str, Labels]
) -> RunRows:
    """The index rows of a run. Raises BadBundle where it cannot be read, or cannot be indexed."""
    if isinstance(content, ProfilerError):
        raise BadBundle(str(content)) from content
    run, reports = content
    return store.make_rows(run, reports, labels.get(run.run_id))


def _discard(database: str | Path, error: DamagedIndex) -> None:
    """Delete the damaged SQLite file in the data folder; one that PROFILER_DB names is not ours to delete."""
    if not isinstance(database, Path):
        raise ProfilerError(f"{error}; remove that file first, for PROFILER_DB names it") from error
    for suffix in ("", "-wal", "-shm"):
        try:
            Path(f"{database}{suffix}").unlink(missing_ok=True)
        except OSError as unlink_error:
            raise ProfilerError(
                f"{error}, but it cannot be replaced: {unlink_error.strerror}"
            ) from unlink_error
