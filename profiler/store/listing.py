"""Queries for what the index contains: runs, families, versions, workloads, cells and metric names."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, func, select

from profiler.bundles.run import FAMILY_GIVEN, FOLDER, IMPORT, Json, ReportFile
from profiler.evidence.cell import Cell
from profiler.evidence.values import Evidence
from profiler.store import schema
from profiler.store.folder_families import ImportFolder
from profiler.store.lookup_cache import LookupCache
from profiler.store.rows import ROW_LIMIT, Rows, RunInfo, VersionInfo, WorkloadInfo, capabilities
from profiler.store.statements import capped, key_batches, moment

_new_info = partial(tuple.__new__, RunInfo)  # from a tuple of its fields: five times as fast
_DIGESTS_AT_ONCE = 500  # parameters in one IN list

_SELECT_STATE = select(schema.meta.c.key, schema.meta.c.value).where(
    (schema.meta.c.key == "epoch") | (schema.meta.c.key == "changes")
)
_SELECT_RUN = select(schema.run).where(schema.run.c.run_id == bindparam("run"))


def meta(connection: Connection, name: str) -> str | None:
    """A note about the index itself, by its name; None where there is none."""
    content = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == name))
    return None if content is None else str(content)


def data_version(connection: Connection) -> str:
    """See Store.data_version."""
    # In one query: it is asked before nearly every answer that is kept.
    notes = {row.key: row.value for row in connection.execute(_SELECT_STATE)}
    return f"{notes.get('epoch')}-{notes.get('changes')}"


def runs_with_reports(connection: Connection, sha256s: Collection[str]) -> dict[str, str]:
    """See Store.runs_with_reports."""
    run_ids: dict[str, str] = {}
    report = schema.report.c
    digests = sorted(sha256s)
    for start in range(0, len(digests), _DIGESTS_AT_ONCE):
        rows = connection.execute(
            select(report.sha256, schema.run.c.run_id)
            .join(schema.run, schema.run.c.id == report.run)
            .where(report.sha256.in_(digests[start : start + _DIGESTS_AT_ONCE]))
            .order_by(schema.run.c.run_id.desc())  # the first run that holds it stays
        )
        run_ids.update((sha256, run_id) for sha256, run_id in rows)
    return run_ids


def import_folders(connection: Connection) -> list[ImportFolder]:
    """See Store.import_folders."""
    run, cell, version = schema.run.c, schema.cell.c, schema.version.c
    # The provenance of an import is short, and the same for all reports of a folder: grouped as text.
    statement = (
        select(run.provenance, version.family, func.count(run.id.distinct()))
        .join_from(schema.run, schema.cell, cell.run == run.id)
        .join(schema.version, version.id == cell.version)
        .where(run.kind == IMPORT)
        .group_by(run.provenance, version.family)
        .order_by(run.provenance, version.family)
    )
    entries = []
    for text, family, runs in connection.execute(statement):
        provenance = json.loads(text)
        folder, given = provenance.get(FOLDER), provenance.get(FAMILY_GIVEN)
        entries.append(ImportFolder(folder if isinstance(folder, str) else "", family, given is True, runs))
    return entries


def families(connection: Connection) -> list[str]:
    """The families of runs that are not hidden."""
    statement = _select_cells(schema.version.c.family).distinct().order_by(schema.version.c.family)
    return list(connection.scalars(statement))


def versions(connection: Connection, cache: LookupCache, family: str | None) -> Rows[VersionInfo]:
    """See Store.versions. A page asks for them many times, and counting 50,000 cells takes 20 ms."""
    # The state is read before the rows: newer rows under an older state are never asked for again.
    infos = cache.version_infos.get(data_version(connection), family, lambda: _versions(connection, family))
    return Rows(infos, infos.truncated)


def _versions(connection: Connection, family: str | None) -> Rows[VersionInfo]:
    combinations = _combinations(connection, family)
    by_version = defaultdict(list)
    for row in combinations:
        by_version[row.version].append(row)
    infos = [
        VersionInfo(
            family=rows[0].family,
            version=rows[0].name,
            first_created=moment(min(row.first for row in rows)),
            last_created=moment(max(row.last for row in rows)),
            runs=sum(row.runs for row in rows),
            gpus=_distinct_names(row.gpu for row in rows),
            workloads=_distinct_names(row.workload for row in rows),
        )
        for rows in by_version.values()
    ]
    infos.sort(key=lambda info: (info.family, info.first_created, info.version))
    return Rows(infos, combinations.truncated)


def workloads(connection: Connection, family: str | None) -> Rows[WorkloadInfo]:
    """See Store.workloads."""
    combinations = _combinations(connection, family)
    by_workload = defaultdict(list)
    for row in combinations:
        by_workload[row.family, row.workload].append(row)
    infos = [
        WorkloadInfo(
            of_family,
            name or None,
            len({row.version for row in rows}),
            _distinct_names(row.gpu for row in rows),
        )
        for (of_family, name), rows in sorted(by_workload.items())
    ]
    return Rows(infos, combinations.truncated)


def cells(connection: Connection, cache: LookupCache, family: str | None) -> Rows[Cell]:
    """See Store.cells. A page asks for them with nearly every series."""
    infos = cache.cell_infos.get(data_version(connection), family, lambda: _cells(connection, family))
    return Rows(infos, infos.truncated)


def _cells(connection: Connection, family: str | None) -> Rows[Cell]:
    result, config, version = schema.result.c, schema.config.c, schema.version.c
    # In two steps, lest a database take the family first and then all results that its configs ever had.
    kinds = (*schema.VALUED, "latency")
    newest = select(result.version, result.config).where(result.is_latest, result.kind.in_(kinds)).distinct()
    pair = newest.subquery()
    columns = (config.family, version.name, config.workload, config.gpu, config.evidence)
    statement = (
        select(*columns)
        .join_from(pair, schema.config, config.id == pair.c.config)
        .join(schema.version, version.id == pair.c.version)
    )
    if family is not None:
        statement = statement.where(config.family == family)
    rows = capped(connection, statement.distinct().order_by(*columns))
    infos = (Cell(row[0], row[1], row[2], row[3], Evidence(row[4])) for row in rows)
    return Rows(infos, rows.truncated)


def kernels(connection: Connection) -> Rows[tuple[str, str]]:
    """See Store.kernels."""
    result, config = schema.result.c, schema.config.c
    # In two steps, as in `cells`.
    newest = select(result.config).where(result.is_latest, result.kind == "launch").distinct().subquery()
    columns = (config.family, config.base_name)
    statement = select(*columns).join_from(newest, schema.config, config.id == newest.c.config)
    rows = capped(connection, statement.distinct().order_by(*columns))
    return Rows(((row[0], row[1]) for row in rows), rows.truncated)


def runs(
    connection: Connection,
    *,
    family: str | None = None,
    hidden: bool = False,
    limit: int | None = None,
) -> Rows[RunInfo]:
    """See Store.runs."""
    run = schema.run.c
    statement = select(schema.run).order_by(run.created.desc(), run.run_id.desc())
    if not hidden:
        statement = statement.where(run.hidden.is_(False))
    if family is not None:
        cells = select(schema.cell.c.run).join(schema.version, schema.version.c.id == schema.cell.c.version)
        statement = statement.where(run.id.in_(cells.where(schema.version.c.family == family)))
    rows = capped(connection, statement, ROW_LIMIT if limit is None else limit)
    return Rows(_run_infos(connection, rows), rows.truncated)


def run(connection: Connection, run_id: str) -> RunInfo | None:
    """See Store.run. Names of versions are asked for as well, which are no run: that takes one query."""
    rows = connection.execute(_SELECT_RUN, {"run": run_id}).all()
    return next(iter(_run_infos(connection, rows)), None)


def _run_infos(connection: Connection, rows: Sequence[Any]) -> list[RunInfo]:
    """The runs of these rows; what they hold is fetched for all together, in two more queries."""
    if not rows:
        return []
    keys = [row.id for row in rows]
    reports, labels = _reports(connection, keys), _labels(connection, keys)
    return [_run_info(row, reports[row.id], labels[row.id]) for row in rows]


def run_ids(connection: Connection) -> list[str]:
    """See Store.listed_run_ids."""
    run = schema.run.c
    statement = select(run.run_id).where(run.hidden.is_(False))
    return [
        row.run_id for row in capped(connection, statement.order_by(run.created.desc(), run.run_id.desc()))
    ]


def provenances(connection: Connection, run_ids: Iterable[str]) -> dict[str, Mapping[str, Json]]:
    """See Store.provenances."""
    run = schema.run.c
    return {
        run_id: json.loads(text)
        for keys in key_batches({schema.key(run_id) for run_id in run_ids})
        for run_id, text in connection.execute(select(run.run_id, run.provenance).where(run.id.in_(keys)))
    }


def metric_names(connection: Connection, cache: LookupCache, family: str | None) -> list[str]:
    """See Store.metric_names."""
    result = schema.result.c
    statement = (
        select(result.metric_set)
        .join(schema.run, and_(schema.run.c.id == result.run, schema.run.c.hidden.is_(False)))
        .where(result.metric_set.is_not(None))
        .distinct()
    )
    if family is not None:
        statement = statement.join(schema.config, schema.config.c.id == result.config)
        statement = statement.where(schema.config.c.family == family)
    keys = [row.metric_set for row in capped(connection, statement)]
    metric_sets = cache.metric_sets.get(connection, keys)
    return sorted({name for key in keys for name in metric_sets[key].names})


def _select_cells(*columns: Any) -> Select[Any]:
    """A query for columns of cells and their versions, without hidden runs."""
    cell, version = schema.cell.c, schema.version.c
    statement = select(*columns).join_from(schema.cell, schema.version, version.id == cell.version)
    return statement.where(cell.hidden.is_(False))


def _combinations(connection: Connection, family: str | None) -> Rows[Any]:
    """Each version, workload and GPU: when its runs were made, and how many count here (each counts once)."""
    cell, version = schema.cell.c, schema.version.c
    group_by = (cell.version, cell.workload, cell.gpu)
    counted = (func.min(cell.created).label("first"), func.max(cell.created).label("last"))
    runs = func.sum(cell.counts).label("runs")
    grouped = select(*group_by, *counted, runs).where(cell.hidden.is_(False)).group_by(*group_by)
    if family is not None:
        of_family = select(version.id).where(version.family == family)
        grouped = grouped.where(cell.version.in_(of_family))
    # Grouped by keys first, and named afterwards: there are hundreds of groups in ten thousands of cells.
    groups = grouped.subquery()
    statement = select(version.family, version.name, *groups.c).join_from(
        groups, schema.version, version.id == groups.c.version
    )
    return capped(connection, statement.order_by(groups.c.version, groups.c.workload, groups.c.gpu))


def _distinct_names(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))


def _reports(connection: Connection, run_keys: Sequence[int]) -> dict[int, list[ReportFile]]:
    """The reports of each run, in the run's order."""
    report, by_run = schema.report.c, defaultdict(list)
    for keys in key_batches(run_keys):
        rows = connection.execute(
            select(report.run, report.name, report.sha256, report.size_bytes, report.path)
            .where(report.run.in_(keys))
            .order_by(report.run, report.position)
            .limit(ROW_LIMIT)
        )
        for run, *columns in rows:
            by_run[run].append(ReportFile(*columns))
    return by_run


def _labels(connection: Connection, run_keys: Sequence[int]) -> dict[int, list[tuple[str, str, str]]]:
    """Family, version and workload of each cell of the runs."""
    cell, version, by_run = schema.cell.c, schema.version.c, defaultdict(list)
    for keys in key_batches(run_keys):
        rows = connection.execute(
            select(cell.run, version.family, version.name, cell.workload)
            .join(schema.version, version.id == cell.version)
            .where(cell.run.in_(keys))
            .order_by(cell.run, version.family, version.name, cell.workload)
            .limit(ROW_LIMIT)
        )
        for run, *names in rows:
            by_run[run].append(tuple(names))
    return by_run


def _run_info(row: Any, reports: Sequence[ReportFile], labels: Sequence[tuple[str, str, str]]) -> RunInfo:
    # By position, as in `results`.
    _, run_id, kind, created, hidden, decided, *texts, launches, evidence, provenance, gpus = row
    families, versions, workloads = (
        (tuple(dict.fromkeys(names)) for names in zip(*labels, strict=True)) if labels else ((), (), ())
    )
    named_workloads = tuple(filter(None, workloads))
    fields = (
        run_id,
        families[0] if len(families) == 1 else None,
        versions[0] if len(versions) == 1 else None,
        named_workloads[0] if len(workloads) == 1 and named_workloads else None,
        kind,
        moment(created),
        *texts,
        launches,
        tuple(reports),
        _kinds_of_evidence(evidence),
        hidden,
        families,
        versions,
        named_workloads,
        json.loads(provenance),
        json.loads(decided)[0] is not None,
        capabilities(gpus),
    )
    return _new_info(fields)


@lru_cache(maxsize=64)
def _kinds_of_evidence(names: str) -> frozenset[Evidence]:
    return frozenset(Evidence(name) for name in names.split(",") if name)
