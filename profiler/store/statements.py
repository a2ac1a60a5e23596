"""Building blocks of queries: which results are selected, joins, the row limit, times as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, select

from profiler.evidence.values import Evidence
from profiler.store import schema
from profiler.store.rows import ROW_LIMIT, Rows

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEYS_AT_ONCE = 500  # parameters in one IN list


@dataclass(frozen=True)
class ResultSelection:
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


def narrow(statement: Select[Any], selection: ResultSelection) -> Select[Any]:
    """A statement of `select_results`, narrowed to a selection."""
    return statement.where(*_conditions(parameters(selection)), *_of_kind(selection.kind))


def narrow_by(statement: Select[Any], names: Iterable[str], kind: str | None = None) -> Select[Any]:
    """As `narrow`, to any selection that has these `parameters`: a statement that is made once.

    It is executed with them. To make a statement anew takes longer than most queries.
    """
    return statement.where(*_conditions({name: bindparam(name) for name in names}), *_of_kind(kind))


def parameters(selection: ResultSelection) -> dict[str, Any]:
    """What a selection asks for, by the names that `narrow_by` gives them; its kind is none of them."""
    by_name = _config_parameters(selection)
    if selection.version is not None and selection.family is not None:  # by key, which an index has
        by_name["of_version_key"] = schema.version_key(selection.family, selection.version)
    elif selection.version is not None:
        by_name["of_version"] = selection.version
    if selection.run_id is not None:
        by_name["of_run"] = schema.key(selection.run_id)
    return by_name


def config_conditions(selection: ResultSelection) -> list[Any]:
    """What a selection asks of a config."""
    return _conditions(_config_parameters(selection))


def capped(
    connection: Connection,
    statement: Select[Any],
    limit: int = ROW_LIMIT,
    values: Mapping[str, Any] | None = None,
) -> Rows[Any]:
    """The first rows of a statement, and whether there were more.

    `values` are those of a statement with parameters, which is made once and limited once.
    """
    limit = min(limit, ROW_LIMIT)
    # One row more, to know whether there are more.
    limited = statement.limit(limit + 1) if values is None else _limited(statement, limit + 1)
    rows = connection.execute(limited, values).all()
    return Rows(rows[:limit], truncated=len(rows) > limit)


@lru_cache(maxsize=256)
def _limited(statement: Select[Any], limit: int) -> Select[Any]:
    return statement.limit(limit)


def _config_parameters(selection: ResultSelection) -> dict[str, Any]:
    columns = {
        "of_family": selection.family,
        "of_workload": selection.workload,
        "of_gpu": selection.gpu,
        "of_evidence": None if selection.evidence is None else str(selection.evidence),
        "of_kernel": None if selection.kernel is None else _like_pattern(selection.kernel),
    }
    return {name: value for name, value in columns.items() if value is not None}


def _conditions(values: Mapping[str, Any]) -> list[Any]:
    """The conditions that `parameters` stand for, each with its value or with a parameter."""
    return [_CONDITIONS[name](value) for name, value in values.items()]


def _of_kind(kind: str | None) -> list[Any]:
    return [] if kind is None else [schema.TIMED.get(kind, schema.result.c.kind == kind)]


_CONDITIONS: dict[str, Callable[[Any], Any]] = {
    "of_family": lambda value: schema.config.c.family == value,
    "of_workload": lambda value: schema.config.c.workload == value,
    "of_gpu": lambda value: schema.config.c.gpu == value,
    "of_evidence": lambda value: schema.config.c.evidence == value,
    "of_kernel": lambda value: func.lower(schema.config.c.part).like(value, escape="\\"),
    "of_version_key": lambda value: schema.result.c.version == value,
    "of_version": lambda value: schema.version.c.name == value,
    "of_run": lambda value: schema.result.c.run == value,
}


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
