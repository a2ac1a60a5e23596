"""The index over the bundles as one object: every query and every change is one transaction."""

from __future__ import annotations

import contextlib
import gc
import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeAlias

from sqlalchemy import Connection, inspect, select
from sqlalchemy.exc import DatabaseError

from profiler.bundles.decisions import DecidedLabels
from profiler.bundles.run import Json, Labels, Run
from profiler.errors import ProfilerError
from profiler.evidence.cell import Cell
from profiler.evidence.launch import Launch, Report
from profiler.evidence.naming import brief_list
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.store import (
    answers,
    engine,
    latencies,
    listing,
    measurement_copies,
    prepared_series,
    results,
    row_digests,
    run_rows,
    schema,
    series,
    sides,
    writer,
)
from profiler.store.folder_families import ImportFolder
from profiler.store.lookup_cache import LookupCache
from profiler.store.rows import (
    Environment,
    LatencyInfo,
    MedianLatency,
    NoisePair,
    PartArrays,
    ResultInfo,
    Rows,
    RunInfo,
    SampleArrays,
    Series,
    VersionInfo,
    WorkloadInfo,
    WriteConflict,
)
from profiler.store.statements import ResultSelection, pages

_RUNS_AT_ONCE = 100  # inserted together during a rebuild
_SERIES_BEFORE_ANALYZE = 50  # newly prepared series, which make the database's statistics out of date
_COLLECTIONS = (50_000, 20, 20)  # new objects, then collections, after which Python looks for garbage
_STORE_NOTES = ("schema", "epoch", "changes", "chunk_names")  # the store's own rows of the table meta
DECIDED = "decisions"  # a row there: the digest of the decisions that the index was made with
REFUSED = "refused"  # a row there: the runs that could not be indexed

Indexable: TypeAlias = run_rows.RunItem | run_rows.RunRows


class Store:
    """The index over the bundles of one data folder. Threads may share it; every answer has a fixed order.

    In a query, `workload=""` and `gpu=""` select the results without a workload or GPU; None selects all.
    """

    def __init__(self, url: str | Path, data: str | None = None, *, unwritable: str = "") -> None:
        self.url = url
        self.data = data  # the folder or URL of the bundles it was made from; None where nobody said
        self.behind = ""  # a sentence, where the index could not be brought in step with the bundles
        self._engine = engine.connect(url, unwritable=unwritable)
        self._cache = LookupCache()

    @staticmethod
    def open(url: str | Path, data: str | None = None) -> Store:
        """Open the index at a SQLAlchemy URL or in a SQLite file, and create its tables where it has none.

        `data` is the folder or URL of its bundles: answers that also read bundles or decisions look there.
        An index with another layout is emptied, so that a sync fills it again. Raises ProfilerError where the
        database cannot be used, or has tables of something else.
        """
        store = Store(url, data)
        if store._layout() != schema.SCHEMA:
            store._make_tables()
        return store

    @staticmethod
    def open_unchanged(path: Path, data: str | None, reason: str) -> Store:
        """Open the index in a SQLite file to read it, without writing anything, not even beside the file.

        Writing to it raises IndexNotWritable with the `reason`. Raises ProfilerError where the file cannot be
        read so, or has another layout.
        """
        store = Store(path, data, unwritable=reason)
        if store._layout() != schema.SCHEMA:
            raise ProfilerError(f"the index {path} cannot be read as it is")
        return store

    def freeze_loaded(self) -> None:
        """Exclude all objects loaded so far from garbage collection, in a process that stays and answers.

        They are a few hundred thousand and never freed, and looking through them delayed every hundredth
        answer by 15 ms. Newer ones are looked through seldom: a page of a long history makes and keeps a
        hundred thousand, and doing so as often as Python does by itself took a fifth of its time.
        """
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECTIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections to the database."""
        self._engine.dispose()

    def data_version(self) -> str:
        """A text that changes whenever rows change: a cache key for what is computed from answers."""
        with engine.reading(self._engine) as connection:
            return listing.data_version(connection)

    # ---- keeping it up to date

    def add(self, run: Run, reports: Mapping[str, Report], labels: Labels | None = None) -> bool:
        """Add one run, with its reports by sha256, in one transaction. False: it is already there."""
        return self.add_many([(run, reports, labels)])[0]

    @staticmethod
    def make_rows(run: Run, reports: Mapping[str, Report], labels: Labels | None = None) -> run_rows.RunRows:
        """The rows of a run, to be added later. Raises BadBundle for a run that cannot be indexed."""
        return run_rows.make_rows((run, reports, labels))

    def add_many(self, items: Sequence[Indexable], *, decided: DecidedLabels | None = None) -> list[bool]:
        """Add several runs in one transaction; False for each that is already there.

        Raises WriteConflict where the index no longer follows `decided`, by which the rows were made.
        """
        if not items:
            return []
        rows = [_rows(item) for item in items]
        with engine.writing(self._engine) as connection:
            if decided is not None:
                _check_unchanged(connection, decided.digest)
            return writer.insert_runs(connection, rows)

    def replace(self, items: Sequence[Indexable], gone: Iterable[str] = ()) -> None:
        """Insert runs again, and delete the runs that are gone, in one transaction."""
        rows, keys = [_rows(item) for item in items], [schema.key(run_id) for run_id in gone]
        with engine.writing(self._engine) as connection:
            writer.replace_runs(connection, rows, keys)

    def apply_decisions(
        self,
        decided: DecidedLabels,
        items: Sequence[Indexable],
        gone: Iterable[str],
        *,
        before: str | None,
        notes: Mapping[str, str],
    ) -> None:
        """Do what `replace` does and note which decisions the index follows from now on, in one transaction.

        Raises WriteConflict, and changes nothing, where the index follows other decisions than `before` or
        contains a run whose labels are not those decided: the note must be true for every run.
        """
        rows, keys = [_rows(item) for item in items], [schema.key(run_id) for run_id in gone]
        with engine.writing(self._engine) as connection:
            _check_unchanged(connection, before)
            writer.replace_runs(connection, rows, keys)
            applied = _applied_labels(connection)
            if any(labels != decided.labels.get(run_id, Labels()) for run_id, labels in applied.items()):
                raise WriteConflict
            for name, value in {**notes, DECIDED: decided.digest}.items():
                writer.put_meta(connection, name, value)

    def rebuild(
        self, items: Iterable[Indexable], notes: Callable[[], Mapping[str, str]] = dict[str, str]
    ) -> int:
        """Replace everything by these runs, in one transaction; returns how many were added.

        `notes` is called when all are in; what it returns is stored as by `put_notes`.
        """
        # One transaction: readers see the old index until all runs are in, and a kill leaves it as it was.
        count, batch = 0, []
        newest: dict[tuple[int, int], tuple[int, str]] = {}
        with engine.writing(self._engine) as connection:
            schema.metadata.create_all(connection)  # tables that somebody may have dropped
            writer.clear(connection)
            for item in items:
                batch.append(_rows(item))
                if len(batch) == _RUNS_AT_ONCE:
                    count += sum(writer.insert_runs(connection, batch, newest))
                    batch = []
            count += sum(writer.insert_runs(connection, batch, newest))
            for name, value in notes().items():
                writer.put_meta(connection, name, value)
        return count

    def prepare_series(self, names: Collection[str], tail: int = prepared_series.TAIL) -> int:
        """Prepare the series of these metrics that grew by `tail` points; returns how many it prepared.

        It stores their points together, so that `series` and `part_arrays` are faster; no answer changes.
        """
        sorted_names = tuple(sorted(set(names)))
        with engine.reading(self._engine) as connection:
            # Asked as a reader first: usually there is nothing to do, and writers wait for each other.
            prepared_for = prepared_series.chunk_names(connection)
            if prepared_for == sorted_names and not prepared_series.stale(connection, sorted_names, tail):
                return 0
        with engine.writing(self._engine) as connection:
            # Somebody else may have prepared them while this process waited to write: refresh looks again.
            before = prepared_series.prepared(connection)
            touched = prepared_series.refresh(connection, self._cache, names, tail)
            if prepared_series.prepared(connection) >= before + _SERIES_BEFORE_ANALYZE:
                engine.count_anew(connection)
            return touched

    def applied_labels(self) -> dict[str, Labels]:
        """Every run of the index with the decisions that were applied to it."""
        with engine.reading(self._engine) as connection:
            return _applied_labels(connection)

    def notes(self) -> dict[str, str]:
        """The notes of `put_notes`: which decisions the index follows, which runs it refused, whose it is."""
        with engine.reading(self._engine) as connection:
            rows = connection.execute(select(schema.meta.c.key, schema.meta.c.value))
            return {name: value for name, value in rows if name not in _STORE_NOTES}

    def put_notes(self, content: Mapping[str, str]) -> None:
        """Store notes about the index itself, by name; a rebuild does not delete them."""
        with engine.writing(self._engine) as connection:
            for name, value in content.items():
                writer.put_meta(connection, name, value)

    def refused(self) -> list[tuple[str, str]]:
        """The sealed runs that could not be indexed, each with the message that says why."""
        with engine.reading(self._engine) as connection:
            return sorted(json.loads(listing.meta(connection, REFUSED) or "{}").items())

    def row_digests(self) -> row_digests.RowDigests:
        """A digest of all rows of each run: two indexes of the same bundles have the same, in any order."""
        with engine.reading(self._engine) as connection:
            return row_digests.row_digests(connection)

    # ---- queries

    def runs_with_reports(self, sha256s: Collection[str]) -> dict[str, str]:
        """The run that holds each of these reports, by the report's sha256."""
        with engine.reading(self._engine) as connection:
            return listing.runs_with_reports(connection, sha256s)

    def run_of_measurement(self, report: Report) -> str | None:
        """The run that already holds the launches of this report, or of a copy or export of it; None if none.

        They are recognised by their content.
        """
        with engine.reading(self._engine) as connection:
            return measurement_copies.find_run(connection, self._cache, report)

    def import_folders(self) -> list[ImportFolder]:
        """The folders that imported reports came from, with the families that their runs have now."""
        with engine.reading(self._engine) as connection:
            return listing.import_folders(connection)

    def runs(
        self, family: str | None = None, hidden: bool = False, limit: int | None = None
    ) -> Rows[RunInfo]:
        """The runs, newest first; with `hidden` also the forgotten ones."""
        with engine.reading(self._engine) as connection:
            return listing.runs(connection, family=family, hidden=hidden, limit=limit)

    def listed_run_ids(self) -> list[str]:
        """The ids of the runs that `runs` lists, newest first: much less to fetch."""
        with engine.reading(self._engine) as connection:
            return listing.run_ids(connection)

    def run(self, run_id: str) -> RunInfo | None:
        """One run, also a hidden one; None where there is no such run."""
        with engine.reading(self._engine) as connection:
            return listing.run(connection, run_id)

    def provenances(self, run_ids: Iterable[str]) -> dict[str, Mapping[str, Json]]:
        """All that the bundles of these runs say about how they were made, also of hidden ones."""
        with engine.reading(self._engine) as connection:
            return listing.provenances(connection, run_ids)

    def environments(self, run_ids: Iterable[str]) -> dict[str, Environment]:
        """The environments of these runs: much less to fetch than `runs`."""
        keys = {schema.key(run_id): run_id for run_id in run_ids}
        with engine.reading(self._engine) as connection:
            environments = self._cache.environments.get(connection, keys)
        return {run_id: environments[key] for key, run_id in keys.items() if key in environments}

    def families(self) -> list[str]:
        """The families, sorted."""
        with engine.reading(self._engine) as connection:
            return listing.families(connection)

    def versions(self, family: str | None = None) -> Rows[VersionInfo]:
        """The versions, sorted by family and then by when their first run was made."""
        with engine.reading(self._engine) as connection:
            return listing.versions(connection, self._cache, family)

    def workloads(self, family: str | None = None) -> Rows[WorkloadInfo]:
        """The workloads, sorted by family and name; one without a name comes first."""
        with engine.reading(self._engine) as connection:
            return listing.workloads(connection, family)

    def cells(self, family: str | None = None) -> Rows[Cell]:
        """Which evidence there is of which version, on which workload and GPU, sorted in that order."""
        with engine.reading(self._engine) as connection:
            return listing.cells(connection, self._cache, family)

    def kernels(self) -> Rows[tuple[str, str]]:
        """Family and short name of every kernel that was profiled, sorted."""
        with engine.reading(self._engine) as connection:
            return listing.kernels(connection)

    def metric_names(self, family: str | None = None) -> list[str]:
        """The names of all metrics that launches of the family have, sorted."""
        with engine.reading(self._engine) as connection:
            return listing.metric_names(connection, self._cache, family)

    def results(
        self,
        *,
        run_id: str | None = None,
        family: str | None = None,
        version: str | None = None,
        workload: str | None = None,
        gpu: str | None = None,
        kernel: str | None = None,
        latest: bool = True,
        evidence: Evidence | None = None,
        kind: str | None = None,
        limit: int | None = None,
    ) -> Rows[ResultInfo]:
        """Result rows without values, sorted by family, time of the run and position in the run.

        `latest` selects only the newest run of each series and version; it is ignored for one run. `kernel`
        is a piece of the part's name, or a pattern with * and ? for all of it, in upper or lower case.
        Forgotten runs are found only by run_id, the sessions of noise runs only by that or kind="noise".
        There are never more than 10,000 rows: `truncated` says whether there were more.
        """
        with engine.reading(self._engine) as connection:
            return results.results(
                connection,
                ResultSelection(family, version, workload, gpu, kernel, evidence, kind, run_id),
                latest=latest,
                limit=limit,
            )

    def noise_launches(
        self, *, family: str, workload: str, gpu: str, mode: str, newest_runs: int
    ) -> list[ResultInfo]:
        """The launches among which there may be two of equal builds, oldest first.

        They are those of the newest runs, and of every report with several launches there; of a history of
        more than 10,000 launches the newest are looked at.
        """
        selection = ResultSelection(family, None, workload, gpu, None, Evidence.MEASURED, None, None)
        with engine.reading(self._engine) as connection:
            return results.noise_launches(connection, selection, mode, newest_runs=newest_runs)

    def load(self, result_ids: Sequence[int]) -> list[Launch]:
        """The launches with all values, in the order of the ids. Raises UnknownName for an unknown id."""
        with engine.reading(self._engine) as connection:
            return results.load(connection, self._cache, result_ids)

    def side(
        self,
        *,
        run_id: str | None = None,
        family: str | None = None,
        version: str | None = None,
        workload: str | None = None,
        gpu: str | None = None,
        evidence: Evidence | None = None,
        label: str | None = None,
        with_latencies: bool = True,
    ) -> Side:
        """One side of a comparison: a run's launches, or those of the newest run that has the version.

        Without `evidence`: measured launches if there are any, else modelled, else static facts. Raises
        UnknownName where nothing is selected, and where several versions, workloads or GPUs are: it lists
        them. Without `with_latencies` it has no timed calls.
        """
        selection = ResultSelection(family, version, workload, gpu, None, evidence, None, run_id)
        with engine.reading(self._engine) as connection:
            return sides.side(connection, self._cache, selection, label, with_latencies=with_latencies)

    def series(
        self,
        names: Sequence[str],
        *,
        family: str | None = None,
        workload: str | None = None,
        gpu: str | None = None,
        kernel: str | None = None,
        evidence: Evidence | None = None,
        latest: bool = False,
    ) -> list[Series]:
        """The values of these metrics over all runs not hidden, oldest first: a series a part and metric.

        A part is a launch's place in its version. Where all its launches lack a metric there is no series;
        otherwise a point for every launch, also for those without a value. `latest` selects the points from
        the newest run of each version. A history of more than 10,000 points keeps the newest.
        """
        selection = ResultSelection(family, None, workload, gpu, kernel, evidence, None, None)
        with engine.reading(self._engine) as connection:
            return series.series(connection, self._cache, names, selection, latest=latest)

    def part_arrays(
        self,
        names: Sequence[str],
        *,
        family: str | None = None,
        workload: str | None = None,
        gpu: str | None = None,
        kernel: str | None = None,
        evidence: Evidence | None = None,
    ) -> list[PartArrays]:
        """The content of `series` as arrays, one object a part: for callers that look at all of them."""
        selection = ResultSelection(family, None, workload, gpu, kernel, evidence, None, None)
        with engine.reading(self._engine) as connection:
            return series.part_arrays(connection, self._cache, names, selection)

    def run_ids(self, run_keys: Iterable[int]) -> dict[int, str]:
        """The run ids of run keys, for the keys of existing runs."""
        keys = set(run_keys)
        with engine.reading(self._engine) as connection:
            run_ids_by_key = self._cache.runs.get(connection, keys)
        return {key: run_ids_by_key[key] for key in keys if key in run_ids_by_key}

    def samples(self, result_ids: Sequence[int]) -> dict[int, SampleArrays]:
        """The latency samples of the result rows that have any, by result id."""
        with engine.reading(self._engine) as connection:
            return results.samples(connection, result_ids)

    def latencies(
        self,
        *,
        family: str | None = None,
        version: str | None = None,
        workload: str | None = None,
        gpu: str | None = None,
        mode: str | None = None,
        run_id: str | None = None,
        latest: bool = True,
        limit: int | None = None,
    ) -> Rows[LatencyInfo]:
        """The timed calls with their samples, oldest run first; never those of noise runs.

        `latest` selects the newest run of each version, workload, GPU and mode; without it this is the
        history. It is ignored for one run. Of more than `limit` or 10,000 rows the newest are taken.
        """
        selection = ResultSelection(family, version, workload, gpu, None, None, "latency", run_id)
        with engine.reading(self._engine) as connection:
            return latencies.latencies(connection, selection, mode, latest=latest, limit=limit)

    def median_latencies(
        self, *, family: str | None = None, workload: str | None = None, gpu: str | None = None
    ) -> list[MedianLatency]:
        """The medians of all timed calls of visible runs, oldest run first; never those of noise runs."""
        selection = ResultSelection(family, None, workload, gpu, None, None, None, None)
        with engine.reading(self._engine) as connection:
            return latencies.median_latencies(connection, self._cache, selection)

    def noise_pairs(
        self,
        *,
        gpu: str | None = None,
        clock_mode: str | None = None,
        workload_class: str | None = None,
        family: str | None = None,
        workload: str | None = None,
    ) -> Rows[NoisePair]:
        """The A/A pairs of all visible noise runs, oldest first: the data of a noise floor.

        A noise run says so in its provenance (profiler.bundles.run.NOISE). The sessions of one version,
        workload and mode are the blocks of samples of its result: the first two are a pair, the third and
        fourth the next, ….
        """
        selection = ResultSelection(family, None, workload, gpu, None, None, "noise", None)
        with engine.reading(self._engine) as connection:
            return latencies.noise_pairs(connection, selection, clock_mode, workload_class)

    # ---- what was computed before

    def answer(self, name: str, question: str) -> str | None:
        """What was kept as the answer to a question about this state of the index; None where nothing was.

        `question` says all that an answer depends on besides the rows of the index and the program itself.
        """
        with engine.reading(self._engine) as connection:
            return answers.answer(connection, name, question)

    def keep_answer(self, name: str, question: str, content: str, state: str) -> bool:
        """Keep an answer, computed when `data_version` was `state`, in place of the last one of its name.

        False, and nothing kept, where the index has changed since or cannot be written at once: an answer can
        always be computed again.
        """
        with contextlib.suppress(DatabaseError), engine.writing_if_free(self._engine) as connection:
            if connection is not None:
                return answers.keep_answer(connection, name, question, content, state)
        return False

    # ---- tables

    def _layout(self) -> str | None:
        """The number of the layout that the database has; None where it has no tables yet."""
        with contextlib.suppress(DatabaseError), self._engine.connect() as connection:
            return listing.meta(connection, "schema")
        return None

    def _make_tables(self) -> None:
        with engine.writing(self._engine) as connection:
            database = inspect(connection)
            # The tables are dropped below: first make sure that they are those of an index.
            if shared_names := sorted({*database.get_table_names()} & {*schema.metadata.tables}):
                columns = (
                    {column["name"] for column in database.get_columns("meta")}
                    if "meta" in shared_names
                    else set()
                )
                if not columns >= {"key", "value"} or listing.meta(connection, "epoch") is None:
                    location = self._engine.url.render_as_string(hide_password=True)
                    raise ProfilerError(
                        f"{location} is of something else, whose tables ({brief_list(shared_names)}) "
                        "an index would take: "
                        "name an empty database by PROFILER_DB"
                    )
                if listing.meta(connection, "schema") == schema.SCHEMA:
                    return  # another process was faster
                schema.metadata.drop_all(connection)
            schema.create_tables(connection)
            for name, value in (
                ("schema", schema.SCHEMA),
                ("epoch", uuid.uuid4().hex[:12]),
                ("changes", "0"),
            ):
                writer.put_meta(connection, name, value)


def _applied_labels(connection: Connection) -> dict[str, Labels]:
    """See Store.applied_labels."""
    run = schema.run.c
    rows = pages(connection, select(run.run_id, run.labels), run.run_id)
    return {run_id: Labels(*json.loads(labels)) for run_id, labels in rows}


def _check_unchanged(connection: Connection, digest: str | None) -> None:
    """Raise WriteConflict unless these are the decisions that the index follows."""
    if listing.meta(connection, DECIDED) != digest:
        raise WriteConflict


def _rows(item: Indexable) -> run_rows.RunRows:
    return item if isinstance(item, run_rows.RunRows) else run_rows.make_rows(item)
