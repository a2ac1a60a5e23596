"""Puts rows into the index and takes them out, and keeps the newest of each series and version marked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from profiler.store import schema
from profiler.store.rows import ROW_LIMIT
from profiler.store.run_rows import Row, RunRows
from profiler.store.statements import key_batches

_Newest = dict[tuple[int, int], tuple[int, str]]  # by config and version: when a run was made, and its id


def insert_runs(connection: Connection, runs: Sequence[RunRows], newest: _Newest | None = None) -> list[bool]:
    """Insert the runs that are not in the index yet, in a writing transaction; False for each that is.

    `newest` has the newest run of each series and version in the index, and is brought up to date: a rebuild,
    which began with none, spares looking for them.
    """
    existing_keys = set(
        _column(connection, schema.run.c.id, schema.run.c.id, [rows.run["id"] for rows in runs])
    )
    new: list[RunRows] = []
    is_new = []
    for rows in runs:
        is_new.append(rows.run["id"] not in existing_keys)
        if is_new[-1]:  # also False for the second of two equal runs in one call
            existing_keys.add(rows.run["id"])
            new.append(rows)
    if not new:
        return is_new
    _mark_latest(connection, new, newest)
    for table, merged in (
        (schema.version, _merge(rows.versions for rows in new)),
        (schema.config, _merge(rows.configs for rows in new)),
        (schema.kernel, _merge(rows.kernels for rows in new)),
        (schema.metric_set, _merge(rows.metric_sets for rows in new)),
    ):
        _insert_missing(connection, table, list(merged.values()))
    _insert(connection, schema.run, [rows.run for rows in new])
    _insert(connection, schema.report, [row for rows in new for row in rows.reports])
    _insert(connection, schema.cell, [row for rows in new for row in rows.cells.values()])
    _insert(connection, schema.result, [row for rows in new for row in rows.results])
    _insert(connection, schema.payload, [row for rows in new for row in rows.payloads])
    _drop_prepared(connection, new)  # results that are not the newest fall into prepared series
    touch(connection)
    return is_new


def delete_runs(connection: Connection, run_keys: Sequence[int]) -> None:
    """Delete runs, by their keys; the newest of the remaining ones is marked as such."""
    result = schema.result.c
    for batch in key_batches(run_keys):
        touched = _pairs(connection, batch)
        ids = select(result.id).where(result.run.in_(batch))
        connection.execute(delete(schema.payload).where(schema.payload.c.result.in_(ids)))
        connection.execute(delete(schema.result).where(result.run.in_(batch)))
        for table in (schema.report, schema.cell):
            connection.execute(delete(table).where(table.c.run.in_(batch)))
        connection.execute(delete(schema.run).where(schema.run.c.id.in_(batch)))
        # Rows that were hidden behind the deleted ones may be the newest now.
        for config, version in touched:
            _find_latest(connection, config, version)
        for configs in key_batches({config for config, _ in touched}):
            connection.execute(delete(schema.series_head).where(schema.series_head.c.config.in_(configs)))
    touch(connection)


def replace_runs(connection: Connection, runs: Sequence[RunRows], gone: Sequence[int]) -> None:
    """Insert runs again and delete those that are gone, by their keys, in a writing transaction."""
    if runs or gone:
        delete_runs(connection, [*(rows.run["id"] for rows in runs), *gone])
        insert_runs(connection, runs)


def clear(connection: Connection) -> None:
    """Delete everything but the notes about the index itself."""
    for table in reversed(schema.metadata.sorted_tables):
        if table is not schema.meta:
            connection.execute(delete(table))
    touch(connection)


def touch(connection: Connection) -> None:
    """Count a change of rows, so that `Store.data_version` is another one."""
    value = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == "changes"))
    put_meta(connection, "changes", str(int(value or 0) + 1))


def put_meta(connection: Connection, name: str, value: str) -> None:
    """Store a note about the index itself."""
    changed = connection.execute(update(schema.meta).where(schema.meta.c.key == name).values(value=value))
    if not changed.rowcount:
        connection.execute(insert(schema.meta).values(key=name, value=value))


def _mark_latest(connection: Connection, runs: Sequence[RunRows], newest: _Newest | None) -> None:
    """Set is_latest on rows of the newest run of each series and version, and unset it on older ones."""
    # Runs arrive in any order: an import may bring a run that is older than those in the index.
    visible = [rows for rows in runs if not rows.run["hidden"]]
    pairs = {(row["config"], row["version"]) for rows in visible for row in rows.results}
    newest = _stored_latest(connection, pairs) if newest is None else newest
    in_index, stored = newest.keys() & pairs, set()
    for rows in visible:
        order = (rows.run["created"], rows.run["run_id"])
        for pair in {(row["config"], row["version"]) for row in rows.results}:
            if pair not in newest or order > newest[pair]:
                newest[pair] = order
                if pair in in_index:
                    stored.add(pair)
    for rows in visible:
        order = (rows.run["created"], rows.run["run_id"])
        for row in rows.results:
            row["is_latest"] = newest[row["config"], row["version"]] == order
    if stored:  # for these pairs the index has rows that are no longer the newest
        result = schema.result.c
        connection.execute(
            update(schema.result)
            .where(result.is_latest, result.config == bindparam("c"), result.version == bindparam("v"))
            .values(is_latest=False),
            [{"c": config, "v": version} for config, version in sorted(stored)],
        )


def _stored_latest(connection: Connection, pairs: set[tuple[int, int]]) -> _Newest:
    """For each pair of config and version in the index: when its newest run was made, and its id."""
    result, newest = schema.result.c, {}
    by_version = defaultdict(list)
    for config, version in pairs:
        by_version[version].append(config)
    for version, configs in by_version.items():
        for keys in key_batches(configs):
            rows = connection.execute(
                select(result.config, result.created, schema.run.c.run_id)
                .join(schema.run, schema.run.c.id == result.run)
                .where(result.is_latest, result.version == version, result.config.in_(keys))
            )
            newest.update({(config, version): (created, run_id) for config, created, run_id in rows})
    return newest


def _pairs(connection: Connection, run_keys: Sequence[int]) -> list[tuple[int, int]]:
    """The distinct (config, version) of the runs' results, fetched page by page."""
    result = schema.result.c
    config_versions: list[tuple[int, int]] = []
    pairs = select(result.config, result.version).where(result.run.in_(run_keys)).distinct()
    pairs = pairs.order_by(result.config, result.version).limit(ROW_LIMIT)
    while rows := connection.execute(pairs.offset(len(config_versions))).all():
        config_versions += [(config, version) for config, version in rows]
    return config_versions


def _find_latest(connection: Connection, config: int, version: int) -> None:
    """Mark the results of the newest visible run of a config and version, after runs were deleted."""
    result, run = schema.result.c, schema.run.c
    same = (result.config == config, result.version == version)
    newest = connection.scalar(
        select(result.run)
        .join(schema.run, run.id == result.run)
        .where(*same, run.hidden.is_(False))
        .order_by(run.created.desc(), run.run_id.desc())
        .limit(1)
    )
    # No run has the key -1: where all are hidden, no row is the newest.
    connection.execute(update(schema.result).where(*same).values(is_latest=result.run == (newest or -1)))


def _drop_prepared(connection: Connection, runs: Sequence[RunRows]) -> None:
    """Delete the prepared series that have points newer than the new runs; the others can be lengthened."""
    oldest: dict[int, int] = {}
    for rows in runs:
        for config in rows.configs:
            oldest[config] = min(oldest.get(config, rows.run["created"]), rows.run["created"])
    if not oldest:
        return
    head = schema.series_head.c
    connection.execute(
        delete(schema.series_head).where(head.config == bindparam("c"), head.until >= bindparam("since")),
        [{"c": config, "since": since} for config, since in sorted(oldest.items())],
    )


def _insert(connection: Connection, table: Table, rows: list[Row]) -> None:
    """Insert rows, which all have the same columns."""
    if not rows:
        return
    statement = insert(table)
    compiled: Any = statement.compile(dialect=connection.dialect, column_keys=list(rows[0]))
    if compiled.positiontup is None or len(compiled.positiontup) < 2:
        connection.execute(statement, rows)
        return
    # SQLite takes Python's values as they are: what SQLAlchemy does for each of them takes longer than it.
    values = itemgetter(*compiled.positiontup)
    connection.exec_driver_sql(str(compiled), list(map(values, rows)))


def _insert_missing(connection: Connection, table: Table, rows: list[Row]) -> None:
    if not rows:
        return
    # Keys are made from content, so a row with the same id is the same row.
    statement: Any
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql  # imported here, since each dialect takes 25 ms

        statement = postgresql.insert(table)
    else:
        from sqlalchemy.dialects import sqlite

        statement = sqlite.insert(table)
    connection.execute(statement.on_conflict_do_nothing(index_elements=["id"]), rows)


def _merge(parts: Iterable[Mapping[int, Row]]) -> dict[int, Row]:
    merged: dict[int, Row] = {}
    for part in parts:
        merged.update(part)
    return merged


def _column(connection: Connection, column: Any, by: Any, keys: Sequence[int]) -> list[Any]:
    statement = select(column)
    return [
        row[0] for batch in key_batches(keys) for row in connection.execute(statement.where(by.in_(batch)))
    ]
