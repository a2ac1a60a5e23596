"""How the index is kept in step with the bundles and decisions, which are the truth."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import Labels, Root, Run, bundle, decisions, location
from profiler.errors import BadBundle, ProfilerError
from profiler.evidence import metric_table
from profiler.store import report_values
from profiler.store.rows import DamagedIndex, WriteConflict

if TYPE_CHECKING:
    from profiler.store.index import Store
    from profiler.store.run_rows import RunRows

Progress = Callable[[int, int, str], None]  # done, of how many, what

_AT_ONCE = 100  # runs that go into the index in one transaction
_TRIES = 20  # each but the last was overtaken by another process that brought the index further


@dataclass(frozen=True)
class SyncSummary:
    """What changed in the index."""

    added: tuple[str, ...] = ()  # run ids
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # run id, message


def open_store(data: str | None = None, db: str | None = None, *, sync: bool = True) -> Store:
    """The index of the data folder (PROFILER_DATA, PROFILER_DB), brought in step with its bundles."""
    where = location.open_root(data)
    store = unsynced_store(where, db)
    if sync:
        sync_store(where, store)
    return store


@contextlib.contextmanager
def opened_store(data: str | None, given: Store | None) -> Iterator[Store]:
    """The given index, else the data folder's own for as long as the context lasts."""
    store = given or open_store(data)
    try:
        yield store
    finally:
        if given is None:
            store.close()


def unsynced_store(where: Root, db: str | None = None) -> Store:
    """The index of a data folder as it is."""
    from profiler.store.index import Store

    return Store.open(location.index_location(where, db))


def sync_index(
    data: str | None = None, *, store: Store | None = None, progress: Progress | None = None
) -> SyncSummary:
    """Bring the index in step, and try again what was refused before."""
    where = location.open_root(data)
    return sync_store(where, store or unsynced_store(where), again=True, progress=progress)


def sync_store(
    where: Root, store: Store, *, again: bool = False, progress: Progress | None = None
) -> SyncSummary:
    """Add, change and remove what differs between the index and the bundles with the decisions about them.

    A run that cannot be read is left out and not tried again by every command, but with `again`. Raises
    ProfilerError for an index of other data: only its owner may take runs out of it.
    """
    added: list[str] = []
    for _ in range(_TRIES):
        with contextlib.suppress(WriteConflict):
            return _step(where, store, again, progress, added)
    raise ProfilerError(
        f"other processes keep changing the index of {where.url}: try again when they are done"
    )


def _step(where: Root, store: Store, again: bool, progress: Progress | None, added: list[str]) -> SyncSummary:
    """Bring the index in step as things are now. Raises WriteConflict where they are not so any more.

    What was decided about the runs that are there is applied at once with the word that it is; only then
    come those that are missing, each by the same decisions.
    """
    # In this order: what another process seals and indexes in between is listed, and not taken for gone.
    applied, remembered, listed = store.applied_labels(), store.notes(), bundle.list_runs(where)
    refused: dict[str, str] = {} if again else json.loads(remembered.get("refused", "{}"))
    before = remembered.get("decisions")
    missing = [run for run in listed if run not in applied and run not in refused]
    gone = sorted(set(applied) - set(listed))
    lost = refused.keys() - set(listed)
    if (
        not (missing or gone or lost or again)
        and decisions.decisions_digest(decisions.decision_ids(where)) == before
    ):
        return SyncSummary()
    owner = remembered.get("root", where.url)
    if gone and owner != where.url and not isinstance(store.url, Path):  # a path lies by its own data
        raise ProfilerError(
            f"the index in PROFILER_DB is of the data in {owner}, not of {where.url}: name another one, or "
            "make it of this data: profiler index --rebuild"
        )
    decided = decisions.load_labels(where)
    changed = [run for run in listed if run in applied and applied[run] != decided.labels.get(run, Labels())]
    todo = [*changed, *missing]

    def made(runs: Sequence[str], done: int) -> list[RunRows]:
        items: list[RunRows] = []
        for number, (run, found) in enumerate(read_runs(where, runs), done + 1):
            try:
                items.append(_rows(store, found, decided.labels))
            except BadBundle as error:
                refused[run] = str(error)
            if progress is not None:
                progress(number, len(todo), run)
        return items

    if changed or gone or decided.digest != before:
        items = made(changed, 0)
        gone += [run for run in changed if run in refused]  # it would go on as it was before the decision
        store.apply_decisions(decided, items, gone, before=before, remembered={"root": where.url})
    for start in range(len(changed), len(todo), _AT_ONCE):
        items = made(todo[start : start + _AT_ONCE], start)
        new = store.add_many(items, decided=decided)
        added += [rows.run["run_id"] for rows, is_new in zip(items, new, strict=True) if is_new]
    still = {run: message for run, message in refused.items() if run in listed}
    store.put_notes({"refused": json.dumps(still)})
    store.prepare_series(prepared_metrics())
    in_again = tuple(run for run in changed if run not in refused)
    return SyncSummary(tuple(added), in_again, tuple(gone), tuple(sorted(still.items())))


def rebuild_index(data: str | None = None, *, progress: Progress | None = None) -> SyncSummary:
    """Make the index again from nothing but bundles and decisions; a damaged SQLite file is thrown away."""
    where = location.open_root(data)
    try:
        with contextlib.closing(unsynced_store(where)) as store:
            return _rebuild(where, store, progress)
    except DamagedIndex as error:
        _discard(location.index_location(where), error)
    with contextlib.closing(unsynced_store(where)) as store:
        return _rebuild(where, store, progress)


def _rebuild(where: Root, store: Store, progress: Progress | None) -> SyncSummary:
    listed = bundle.list_runs(where)
    decided = decisions.load_labels(where)
    refused: dict[str, str] = {}
    readable = []
    for number, (run, found) in enumerate(
        read_runs(where, listed), 1
    ):  # fills the cache: reading takes longest
        if isinstance(found, ProfilerError):
            refused[run] = str(found)
        else:
            readable.append(run)
        if progress is not None:
            progress(number, len(listed), run)

    def items() -> Iterator[RunRows]:
        for run, found in read_runs(where, readable):
            if isinstance(found, ProfilerError):
                raise found  # it could be read a moment ago: better the old index than half a new one
            try:
                yield _rows(store, found, decided.labels)
            except BadBundle as error:
                refused[run] = str(error)

    def remembered() -> dict[str, str]:
        return {"decisions": decided.digest, "refused": json.dumps(refused), "root": where.url}

    store.rebuild(items(), remembered)
    store.prepare_series(prepared_metrics())
    added = tuple(run for run in readable if run not in refused)
    return SyncSummary(added=added, refused=tuple(sorted(refused.items())))


def read_runs(
    where: Root, run_ids: Sequence[str]
) -> Iterator[tuple[str, tuple[Run, report_values.Reports] | ProfilerError]]:
    """Sealed runs with their values, or why not, in the order of the ids, a few in memory at a time."""
    for start in range(0, len(run_ids), _AT_ONCE):
        loaded: list[Run] = []
        refused: dict[str, ProfilerError] = {}
        some = run_ids[start : start + _AT_ONCE]
        for run_id in some:
            try:
                loaded.append(bundle.load_run(where, run_id))
            except ProfilerError as error:
                refused[run_id] = error
        values = report_values.read_reports(where, loaded)
        for run_id in some:
            if run_id in refused:
                yield run_id, refused[run_id]
            else:
                run, found = next(values)
                yield run_id, found if isinstance(found, ProfilerError) else (run, found)


def prepared_metrics() -> frozenset[str]:
    """The metrics whose trends are prepared: those of metrics.txt; none where it cannot be used."""
    try:
        table = metric_table.load_metrics()
    except ProfilerError:
        return frozenset()
    names = {alternative.name for metric in table.metrics for alternative in metric.alternatives}
    return frozenset(names | set(table.captured))


def _rows(
    store: Store, found: tuple[Run, report_values.Reports] | ProfilerError, labels: Mapping[str, Labels]
) -> RunRows:
    """What a run puts into the index; BadBundle where it cannot be read, or does not fit."""
    if isinstance(found, ProfilerError):
        raise BadBundle(str(found)) from found
    run, reports = found
    return store.rows_of(run, reports, labels.get(run.run_id))


def _discard(database: str | Path, error: DamagedIndex) -> None:
    """Throw the SQLite file by the data away; one at a place that somebody named may be something else."""
    if not isinstance(database, Path):
        raise ProfilerError(f"{error}; remove that file first, for PROFILER_DB names it") from error
    for suffix in ("", "-wal", "-shm"):
        try:
            Path(f"{database}{suffix}").unlink(missing_ok=True)
        except OSError as failed:
            raise ProfilerError(f"{error}, but it cannot be replaced: {failed.strerror}") from failed
