"""Which series are prepared: older points of much-asked metrics lie in chunks, the newest in payloads."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, func, insert, select

from profiler.store import packing, schema
from profiler.store.columns import HEAD, MARK, Columns, Form
from profiler.store.gathering import from_payloads
from profiler.store.known import Known
from profiler.store.rows import ROW_LIMIT
from profiler.store.schema import key
from profiler.store.statements import slices
from profiler.store.writer import put_meta
from profiler.values import SLOT

TAIL = 8  # points that are read from payloads before a series is prepared again
_NAMES_A_BLOCK = 8  # names in one chunk: a trend of one metric reads its neighbours too
_CONFIGS_AT_ONCE = 200


def read(
    connection: Connection, known: Known, configs: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[int, Columns]]:
    """The columns of each config that has points, of the names in one or several pieces."""
    made_for = chunk_names(connection)
    place = {name: index for index, name in enumerate(made_for)}
    prepared = [name for name in names if name in place]
    loose = [name for name in names if name not in place]
    if loose:
        yield from _newest(from_payloads(connection, known, configs, loose))
    if not prepared:
        return
    chunks: dict[int, list[Columns]] = defaultdict(list)
    for block in sorted({place[name] // _NAMES_A_BLOCK for name in prepared}):
        in_block = [name for name in prepared if place[name] // _NAMES_A_BLOCK == block]
        for some in slices(configs):
            for config, columns in _load(connection, some, made_for, block, in_block):
                chunks[config].append(columns)
    tails = dict(from_payloads(connection, known, list(chunks), prepared, tails=True))
    for config, pieces in chunks.items():
        for piece in pieces:
            tail = tails.get(config)
            whole = piece if tail is None else piece.followed_by(tail.rows(piece.names))
            yield from _newest([(config, whole)])
    without = [config for config in configs if config not in chunks]
    yield from _newest(from_payloads(connection, known, without, prepared))


def refresh(connection: Connection, known: Known, names: Collection[str], tail: int) -> int:
    """Prepare what is stale, in a writing transaction; how many series were touched."""
    wanted, count, last = tuple(sorted(set(names))), 0, -1
    if wanted != chunk_names(connection):
        connection.execute(delete(schema.series_head))
        put_meta(connection, "chunk_names", packing.compact(wanted))
    while configs := stale(connection, wanted, tail, last):
        last = configs[-1]
        _prepare(connection, known, configs, wanted)
        count += len(configs)
    return count


def stale(connection: Connection, names: tuple[str, ...], tail: int, after: int = -1) -> list[int]:
    """The next series with so many points that are not prepared."""
    if not names:
        return []
    config, head, result = schema.config.c, schema.series_head.c, schema.result.c
    newer = (
        select(result.id)
        .where(result.config == config.id, result.metric_set.is_not(None))
        .where(result.created > func.coalesce(head.until, -1))
        .order_by(result.created)
        .limit(1)
        .offset(tail - 1)
        .correlate(schema.config, schema.series_head)
    )
    statement = (
        select(config.id)
        .outerjoin(schema.series_head, head.config == config.id)
        .where(config.id > after, newer.scalar_subquery().is_not(None))
        .order_by(config.id)
        .limit(_CONFIGS_AT_ONCE)
    )
    return list(connection.scalars(statement))


def chunk_names(connection: Connection) -> tuple[str, ...]:
    """The names for which series are prepared."""
    content = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == "chunk_names"))
    return tuple(json.loads(content)) if content else ()


def _prepare(connection: Connection, known: Known, configs: list[int], names: tuple[str, ...]) -> None:
    result = schema.result.c
    newest = select(result.config, func.max(result.created)).where(result.config.in_(configs))
    heads, chunks = [], []
    columns = dict(from_payloads(connection, known, configs, names))
    for config, until in connection.execute(newest.group_by(result.config)):
        held = columns.get(config, Columns.blank(names, 0))
        head = {"points": len(held.head), "until": until, "head": held.head.tobytes()}
        heads.append({"config": config, "names": key(*names), **head})
        for start in range(0, len(names), _NAMES_A_BLOCK):
            chunks.append(
                _chunk_row(config, start // _NAMES_A_BLOCK, held.rows(names[start : start + _NAMES_A_BLOCK]))
            )
    for table, rows in ((schema.series_head, heads), (schema.series_chunk, chunks)):
        connection.execute(delete(table).where(table.c.config.in_(configs)))
        connection.execute(insert(table), rows)


def _chunk_row(config: int, block: int, columns: Columns) -> dict[str, Any]:
    return {
        "config": config,
        "block": block,
        "slots": np.ascontiguousarray(columns.slots).tobytes(),
        "marks": np.ascontiguousarray(columns.marks).tobytes(),
        "forms": packing.compact(columns.forms),
    }


def _load(
    connection: Connection, configs: Sequence[int], made_for: tuple[str, ...], block: int, names: list[str]
) -> Iterator[tuple[int, Columns]]:
    """The prepared columns of some names of one block; nothing but their rows leaves the database."""
    chunk, head = schema.series_chunk.c, schema.series_head.c
    rows = [made_for.index(name) - block * _NAMES_A_BLOCK for name in names]
    first, count = min(rows), max(rows) - min(rows) + 1

    def part(column: Any, width: int) -> Any:
        return func.substr(column, first * width * head.points + 1, count * width * head.points)

    found = connection.execute(
        select(
            chunk.config,
            head.points,
            head.head,
            part(chunk.slots, SLOT.itemsize),
            part(chunk.marks, MARK.itemsize),
            chunk.forms,
        )
        .join(schema.series_head, head.config == chunk.config)
        .where(chunk.config.in_(configs), chunk.block == block, head.names == key(*made_for))
    )
    start = block * _NAMES_A_BLOCK + first
    for config, points, head_bytes, slots, marks, forms in found:
        columns = Columns(
            made_for[start : start + count],
            np.frombuffer(head_bytes, HEAD),
            np.frombuffer(slots, SLOT).reshape(count, points),
            np.frombuffer(marks, MARK).reshape(count, points),
            list(_forms(forms)),
        )
        yield config, columns.rows(names)


def _newest(columns: Any) -> Iterator[tuple[int, Columns]]:
    for config, held in columns:
        if len(held.head):
            yield config, held.points(slice(-ROW_LIMIT, None)) if len(held.head) > ROW_LIMIT else held


@lru_cache(maxsize=4096)
def _forms(content: str) -> tuple[Form, ...]:
    return tuple(Form(*form) for form in json.loads(content))
