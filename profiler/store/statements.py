"""Building blocks of queries: which results are selected, joins, the row limit, times as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Select, func, select

from profiler.evidence import Evidence
from profiler.store import schema
from profiler.store.rows import ROW_LIMIT, Rows

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEYS_AT_ONCE = 500  # parameters in one IN list


@dataclass(frozen=True)
class Selection:
    """Which results a query asks for. None selects all of them, "" those where nobody named one."""

    family: str | None = None
    version: str | None = None
    workload: str | None = None
    gpu: str | None = None
    kernel: str | None = None
    evidence: Evidence | None = None
    kind: str | None = None
    run_id: str | None = None


def select_results(*columns: Any) -> Select[Any]:
    """Columns of results, with their run, config and version."""
    result = schema.result.c
    return (
        select(*columns)
        .select_from(schema.result)
        .join(schema.run, schema.run.c.id == result.run)
        .join(schema.config, schema.config.c.id == result.config)
        .join(schema.version, schema.version.c.id == result.version)
    )


def narrow(statement: Select[Any], selection: Selection) -> Select[Any]:
    """A statement of `select_results`, narrowed to a selection."""
    conditions, result = config_conditions(selection), schema.result.c
    if selection.version is not None and selection.family is not None:  # by key, which an index has
        conditions.append(result.version == schema.version_key(selection.family, selection.version))
    elif selection.version is not None:
        conditions.append(schema.version.c.name == selection.version)
    if selection.run_id is not None:
        conditions.append(result.run == schema.key(selection.run_id))
    if selection.kind is not None:
        conditions.append(schema.TIMED.get(selection.kind, result.kind == selection.kind))
    return statement.where(*conditions)


def config_conditions(selection: Selection) -> list[Any]:
    """What a selection asks of a config."""
    config = schema.config.c
    conditions = [
        config[column] == value
        for column, value in (
            ("family", selection.family),
            ("workload", selection.workload),
            ("gpu", selection.gpu),
            ("evidence", None if selection.evidence is None else str(selection.evidence)),
        )
        if value is not None
    ]
    if selection.kernel is not None:
        conditions.append(func.lower(config.part).like(_like_pattern(selection.kernel), escape="\\"))
    return conditions


def capped(connection: Connection, statement: Select[Any], limit: int = ROW_LIMIT) -> Rows[Any]:
    """The first rows of a statement, and whether there were more."""
    limit = min(limit, ROW_LIMIT)
    rows = connection.execute(statement.limit(limit + 1)).all()  # one more, to know whether there are more
    return Rows(rows[:limit], truncated=len(rows) > limit)


def pages(connection: Connection, statement: Select[Any], by: Any) -> Iterator[Any]:
    """All rows of a statement, fetched in pages, sorted by a unique column, which has to be its first."""
    # Each page begins after the last key of the one before: OFFSET would read all earlier rows again.
    statement = statement.order_by(by).limit(ROW_LIMIT)
    rows = connection.execute(statement).all()
    while rows:
        yield from rows
        rows = connection.execute(statement.where(by > rows[-1][0])).all() if len(rows) == ROW_LIMIT else []


def key_batches(keys: Iterable[int]) -> Iterator[list[int]]:
    """The keys in lists short enough for one statement."""
    keys = sorted(keys)
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        yield keys[start : start + _KEYS_AT_ONCE]


@lru_cache(maxsize=65_536)  # all points of a run share one time
def moment(microseconds: int) -> datetime:
    """The time that the index stores as microseconds since 1970, UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def microseconds(moment: datetime) -> int:
    """A time as the index stores it: microseconds since 1970, UTC."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _like_pattern(kernel: str) -> str:
    """A LIKE pattern for part of a name, or for a pattern with * and ?."""
    escaped = "".join(f"\\{character}" if character in "\\%_" else character for character in kernel.lower())
    if "*" in kernel or "?" in kernel:
        return escaped.replace("*", "%").replace("?", "_")
    return f"%{escaped}%"
