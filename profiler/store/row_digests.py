"""Digests of an index's rows, by which two indexes are compared without holding either in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, Select, select

from profiler.store import schema

_ROWS_AT_ONCE = 1000
_MODULUS = 1 << 128
_OF_RUNS = ((schema.report, "run"), (schema.cell, "run"), (schema.result, "run"))
# Of several runs: a row stays when the last run that needs it has gone.
_SHARED = (schema.version, schema.config, schema.kernel, schema.metric_set)


@dataclass(frozen=True)
class RowDigests:
    """What an index holds, as numbers: equal rows give equal ones, whatever their order."""

    runs: Mapping[str, int]  # by run id, over all rows of the run
    shared: Mapping[tuple[str, int], int]  # by table and key, of rows that several runs use
    orphans: int  # rows of runs that the index does not list


def row_digests(connection: Connection) -> RowDigests:
    """The digests of all rows but those that may be made again at any time."""
    sums: dict[int, int] = defaultdict(int)
    run_ids: dict[int, str] = {}
    for row in _rows(connection, select(schema.run)):
        run_ids[row.id] = row.run_id
        sums[row.id] += _digest("run", row)
    orphans = 0
    of_runs = [(table.name, select(table.c[run], table)) for table, run in _OF_RUNS]
    payloads = select(schema.result.c.run, schema.payload).join(
        schema.result, schema.result.c.id == schema.payload.c.result
    )
    for name, statement in (*of_runs, ("payload", payloads)):
        for row in _rows(connection, statement):
            orphans += row[0] not in run_ids
            sums[row[0]] = (sums[row[0]] + _digest(name, row)) % _MODULUS
    shared = {
        (table.name, row.id): _digest(table.name, row)
        for table in _SHARED
        for row in _rows(connection, select(table))
    }
    return RowDigests({run_id: sums[key] for key, run_id in run_ids.items()}, shared, orphans)


def _rows(connection: Connection, statement: Select[Any]) -> Any:
    """The rows of a statement, few of them in memory at a time."""
    return connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(statement)


def _digest(table: str, row: Any) -> int:
    return int.from_bytes(blake2b(repr((table, *row)).encode(), digest_size=16).digest(), "big")
