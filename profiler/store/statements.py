"""What the statements of the index share: filters, joins, the row limit, how times are kept."""

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
_SLICE = 500  # parameters in one IN list


@dataclass(frozen=True)
class Filter:
    """Which results are asked for; None asks for all, "" for those that nobody named."""

    family: str | None = None
    version: str | None = None
    workload: str | None = None
    gpu: str | None = None
    kernel: str | None = None
    evidence: Evidence | None = None
    kind: str | None = None
    run_id: str | None = None


def joined(*columns: Any) -> Select[Any]:
    """Columns of results, with their run, config and version."""
    result = schema.result.c
    return (
        select(*columns)
        .select_from(schema.result)
        .join(schema.run, schema.run.c.id == result.run)
        .join(schema.config, schema.config.c.id == result.config)
        .join(schema.version, schema.version.c.id == result.version)
    )


def where(statement: Select[Any], wanted: Filter) -> Select[Any]:
    """The statement over joined tables, narrowed to what is wanted."""
    found, result = conditions(wanted), schema.result.c
    if wanted.version is not None and wanted.family is not None:  # by key: found in an index of results
        found.append(result.version == schema.version_key(wanted.family, wanted.version))
    elif wanted.version is not None:
        found.append(schema.version.c.name == wanted.version)
    if wanted.run_id is not None:
        found.append(result.run == schema.key(wanted.run_id))
    if wanted.kind is not None:
        found.append(schema.TIMED.get(wanted.kind, result.kind == wanted.kind))
    return statement.where(*found)


def conditions(wanted: Filter) -> list[Any]:
    """What is wanted of a config."""
    config = schema.config.c
    found = [
        config[column] == value
        for column, value in (
            ("family", wanted.family),
            ("workload", wanted.workload),
            ("gpu", wanted.gpu),
            ("evidence", None if wanted.evidence is None else str(wanted.evidence)),
        )
        if value is not None
    ]
    if wanted.kernel is not None:
        found.append(func.lower(config.part).like(_pattern(wanted.kernel), escape="\\"))
    return found


def capped(connection: Connection, statement: Select[Any], limit: int = ROW_LIMIT) -> Rows[Any]:
    """The first rows of a statement, and whether there were more."""
    rows = connection.execute(statement.limit(min(limit, ROW_LIMIT) + 1)).all()
    kept = min(limit, ROW_LIMIT)
    return Rows(rows[:kept], truncated=len(rows) > kept)


def pages(connection: Connection, statement: Select[Any], by: Any) -> Iterator[Any]:
    """The rows of a statement in the order of a unique column, which comes first in it, a page at a time."""
    statement = statement.order_by(by).limit(ROW_LIMIT)
    rows = connection.execute(statement).all()
    while rows:
        yield from rows
        rows = connection.execute(statement.where(by > rows[-1][0])).all() if len(rows) == ROW_LIMIT else []


def slices(keys: Iterable[int]) -> Iterator[list[int]]:
    """The keys in lists short enough for one statement."""
    keys = sorted(keys)
    for start in range(0, len(keys), _SLICE):
        yield keys[start : start + _SLICE]


@lru_cache(maxsize=65_536)
def moment(microseconds: int) -> datetime:
    """The time that the index keeps as a number."""
    return _EPOCH + timedelta(microseconds=microseconds)


def microseconds(moment: datetime) -> int:
    """The time as the index keeps it."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _pattern(kernel: str) -> str:
    """A LIKE pattern for part of a name, or for a pattern with * and ?."""
    escaped = "".join(f"\\{character}" if character in "\\%_" else character for character in kernel.lower())
    if "*" in kernel or "?" in kernel:
        return escaped.replace("*", "%").replace("?", "_")
    return f"%{escaped}%"
