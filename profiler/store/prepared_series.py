"""Which series are prepared: older points of much-asked metrics lie in chunks, the newest in payloads."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, delete, func, insert, select

from profiler.evidence.values import SLOT
from profiler.store import packing, schema
from profiler.store.columns import MARK, Column, Columns, Form, Head
from profiler.store.lookup_cache import LookupCache
from profiler.store.payload_columns import from_payloads
from profiler.store.rows import ROW_LIMIT
from profiler.store.schema import BAND, CHUNK, key
from profiler.store.statements import slices
from profiler.store.writer import put_meta

TAIL = 8  # points that are read from payloads before a series is prepared again
_CONFIGS_AT_ONCE = 200
_ROWS_AT_ONCE = 250  # 8 MB: what a driver holds of one statement is let go before the next


def read(
    connection: Connection, cache: LookupCache, configs: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[int, Columns]]:
    """The columns of each config that has points, of the names in one or several pieces."""
    made_for = chunk_names(connection)
    there = set(made_for)
    prepared = [name for name in names if name in there]
    loose = [name for name in names if name not in there]
    if loose:
        yield from _newest(from_payloads(connection, cache, configs, loose))
    if not prepared:
        return
    heads = _heads(connection, configs, made_for)
    tails = dict(from_payloads(connection, cache, list(heads), prepared, tails=True))
    for config, held in _load(connection, heads, made_for, prepared):
        yield from _newest([(config, held.followed_by(tails[config]) if config in tails else held)])
    without = [config for config in configs if config not in heads]
    yield from _newest(from_payloads(connection, cache, without, prepared))


def refresh(connection: Connection, cache: LookupCache, names: Collection[str], tail: int) -> int:
    """Prepare what is stale, in a writing transaction; how many series were touched."""
    wanted, count, last = tuple(sorted(set(names))), 0, -1
    if wanted != chunk_names(connection):
        connection.execute(delete(schema.series_head))
        put_meta(connection, "chunk_names", packing.compact_json(wanted))
    while configs := stale(connection, wanted, tail, last):
        last = configs[-1]
        _prepare(connection, cache, configs, wanted)
        count += len(configs)
    return count


def stale(connection: Connection, names: tuple[str, ...], tail: int, after: int = -1) -> list[int]:
    """The next series with so many points that are not prepared."""
    if not names:
        return []
    config, head, result = schema.config.c, schema.series_head.c, schema.result.c
    newer = (
        select(result.id)
        .where(result.config == config.id, result.kind.in_(schema.VALUED))
        .where(result.created > func.coalesce(head.until, -1))
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


def prepared(connection: Connection) -> int:
    """How many series are prepared."""
    return connection.scalar(select(func.count()).select_from(schema.series_head)) or 0


def chunk_names(connection: Connection) -> tuple[str, ...]:
    """The names for which series are prepared."""
    content = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == "chunk_names"))
    return _names(content) if content else ()


def _prepare(connection: Connection, cache: LookupCache, configs: list[int], names: tuple[str, ...]) -> None:
    """Lengthen the prepared series by their newer points, and prepare the others whole."""
    result, head, chunk = schema.result.c, schema.series_head.c, schema.series_chunk.c
    newest = select(result.config, func.max(result.created)).where(result.config.in_(configs))
    heads = _heads(connection, configs, names)
    tails = dict(from_payloads(connection, cache, list(heads), names, tails=True))
    last = {config: len(held) // CHUNK for config, held in heads.items()}  # the segment that is not full
    longer = {
        config: held.followed_by(tails[config]) if config in tails else held
        for config, held in _load(connection, heads, names, names, last)
    }
    whole = dict(from_payloads(connection, cache, [one for one in configs if one not in heads], names))
    connection.execute(delete(schema.series_head).where(head.config.in_(configs)))
    connection.execute(
        delete(schema.series_chunk).where(chunk.config == bindparam("c"), chunk.segment >= bindparam("s")),
        [{"c": config, "s": last.get(config, 0)} for config in configs],
    )
    head_rows: list[dict[str, Any]] = []
    chunk_rows: list[dict[str, Any]] = []
    for config, until in connection.execute(newest.group_by(result.config)):
        if config in longer:
            made = heads[config]
            added = tails[config].head if config in tails else None
            made = made if added is None else made.followed_by(added)
            chunk_rows += _chunk_rows(config, longer[config], names, last[config])
        else:
            held = whole.get(config, Columns(Head.of([]), {}))
            made = held.head
            chunk_rows += _chunk_rows(config, held, names, 0)
        row = {"config": config, "names": key(*names), "points": len(made), "until": until}
        head_rows.append({**row, "head": made.packed()})
    for table, rows in ((schema.series_head, head_rows), (schema.series_chunk, chunk_rows)):
        if rows:
            connection.execute(insert(table), rows)


def _chunk_rows(config: int, held: Columns, names: tuple[str, ...], first: int) -> Iterator[dict[str, Any]]:
    """The rows of all segments from the first on, without the names that no point of a segment carries."""
    carried = [
        (place, column)
        for place, name in enumerate(names)
        if (column := held.columns.get(name)) is not None and column.carried
    ]
    for band, members in groupby(carried, key=lambda one: one[0] // BAND):
        of_band = list(members)
        for start in range(0, len(held.head), CHUNK):
            points = slice(start, start + CHUNK)
            cut = [(place, column.points(points)) for place, column in of_band]
            pieces = [(place, piece) for place, piece in cut if piece.carried]
            if pieces:
                marked = any(piece.marks is not None for _, piece in pieces)
                yield {
                    "config": config,
                    "band": band,
                    "segment": first + start // CHUNK,
                    "slots": np.stack([piece.slots for _, piece in pieces]).tobytes(),
                    "marks": np.stack([piece.every_mark() for _, piece in pieces]).tobytes()
                    if marked
                    else None,
                    "forms": packing.compact_json([(place, piece.forms) for place, piece in pieces]),
                }


def _heads(connection: Connection, configs: Sequence[int], made_for: tuple[str, ...]) -> dict[int, Head]:
    """The points of each config that is prepared for these names, in the order of the configs."""
    head = schema.series_head.c
    statement = select(head.config, head.head).where(head.names == key(*made_for))
    found = {
        config: Head.unpacked(content)
        for some in slices(configs)
        for config, content in connection.execute(statement.where(head.config.in_(some)))
    }
    return {config: found[config] for config in configs if config in found}


def _load(
    connection: Connection,
    heads: dict[int, Head],
    made_for: tuple[str, ...],
    names: Sequence[str],
    first: dict[int, int] | None = None,
) -> Iterator[tuple[int, Columns]]:
    """The prepared columns of some names: of all points, or of those from a first segment on."""
    chunk = schema.series_chunk.c
    wanted = set(names)
    places = {place: name for place, name in enumerate(made_for) if name in wanted}
    bands = sorted({place // BAND for place in places})
    statement = select(chunk.config, chunk.segment, chunk.slots, chunk.marks, chunk.forms)
    statement = statement.where(chunk.band.in_(bands))
    for some in _batches(heads, len(bands), first):
        asked = statement.where(chunk.config.in_(some))
        if first is not None:  # all others are shorter than this: nothing is read in vain
            asked = asked.where(chunk.segment >= min(first[config] for config in some))
        pieces: dict[int, dict[int, dict[str, Column]]] = {config: defaultdict(dict) for config in some}
        for config, segment, slots, marks, forms in connection.execute(asked).all():
            held = _forms(forms)
            numbers = np.frombuffer(slots, SLOT).reshape(len(held), -1)
            marked = None if marks is None else np.frombuffer(marks, MARK).reshape(len(held), -1)
            columns = pieces[config][segment]
            for row, (place, kinds) in enumerate(held):
                if place in places:
                    mark = None if marked is None or len(kinds) == 1 else marked[row]
                    columns[places[place]] = Column(numbers[row], mark, kinds)
        for config in some:
            begin, points = 0 if first is None else first[config], len(heads[config])
            head = heads[config] if not begin else heads[config].points(slice(begin * CHUNK, None))
            segments = [
                (pieces[config][one], Column.absent(min(CHUNK, points - one * CHUNK)))
                for one in range(begin, -(-points // CHUNK))
            ] or [({}, Column.absent(0))]
            yield config, Columns(head, _whole(segments, names))


def _whole(segments: list[tuple[dict[str, Column], Column]], names: Sequence[str]) -> dict[str, Column]:
    """The columns of all segments joined; each segment comes with what stands for a name it lacks."""
    if len(segments) == 1 and len(segments[0][0]) == len(names):
        return segments[0][0]
    return {name: Column.joined([found.get(name, absent) for found, absent in segments]) for name in names}


def _batches(heads: dict[int, Head], bands: int, first: dict[int, int] | None) -> Iterator[list[int]]:
    """The configs in groups whose rows together are held twice for a moment."""
    batch: list[int] = []
    rows = 0
    for config, head in heads.items():
        segments = 1 if first is not None else -(-len(head) // CHUNK)
        if batch and (rows + bands * segments > _ROWS_AT_ONCE or len(batch) == _CONFIGS_AT_ONCE):
            yield batch
            batch, rows = [], 0
        batch.append(config)
        rows += bands * segments
    if batch:
        yield batch


def _newest(columns: Any) -> Iterator[tuple[int, Columns]]:
    for config, held in columns:
        if len(held.head):
            yield config, held.points(slice(-ROW_LIMIT, None)) if len(held.head) > ROW_LIMIT else held


@lru_cache(maxsize=64)
def _names(content: str) -> tuple[str, ...]:
    return tuple(json.loads(content))


@lru_cache(maxsize=4096)
def _forms(content: str) -> tuple[tuple[int, tuple[Form, ...]], ...]:
    """The names of a row by their places in the list of names, and the forms of each."""
    return tuple((place, tuple(Form(*form) for form in forms)) for place, forms in json.loads(content))
