"""Series prepared for fast reading: a metric's older points lie in chunks, only the newest in payloads."""

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
from profiler.store.columns import MARK, Columns, Form, Head, MetricColumn
from profiler.store.lookup_cache import LookupCache
from profiler.store.payload_columns import from_payloads
from profiler.store.rows import ROW_LIMIT
from profiler.store.schema import BAND, CHUNK, key
from profiler.store.statements import key_batches
from profiler.store.writer import put_meta

TAIL = 8  # points that are read from payloads until a series is prepared again
_CONFIGS_AT_ONCE = 200
_ROWS_AT_ONCE = 250  # 8 MB: the driver frees what it holds of one statement before the next

# Made once: to make a statement takes longer than most of these queries.
_SELECT_CHUNK_NAMES = select(schema.meta.c.value).where(schema.meta.c.key == "chunk_names")
_SELECT_HEADS = select(schema.series_head.c.config, schema.series_head.c.head).where(
    schema.series_head.c.names == bindparam("names"),
    schema.series_head.c.config.in_(bindparam("configs", expanding=True)),
)
_SELECT_CHUNKS = select(
    *(schema.series_chunk.c[name] for name in ("config", "segment", "slots", "marks", "forms"))
).where(
    schema.series_chunk.c.band.in_(bindparam("bands", expanding=True)),
    schema.series_chunk.c.config.in_(bindparam("configs", expanding=True)),
)


def read(
    connection: Connection, cache: LookupCache, configs: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[int, Columns]]:
    """The columns of each config that has points, for these metrics.

    A config may come several times, each time with other metrics: prepared ones are read separately.
    """
    prepared_for = chunk_names(connection)
    prepared_set = set(prepared_for)
    prepared_names = [name for name in names if name in prepared_set]
    other_names = [name for name in names if name not in prepared_set]
    if other_names:
        yield from _capped(from_payloads(connection, cache, configs, other_names))
    if not prepared_names:
        return
    heads = _heads(connection, configs, prepared_for)
    tails = dict(from_payloads(connection, cache, list(heads), prepared_names, tails=True))
    for config, columns in _load(connection, heads, prepared_for, prepared_names):
        yield from _capped([(config, columns.followed_by(tails[config]) if config in tails else columns)])
    unprepared = [config for config in configs if config not in heads]
    yield from _capped(from_payloads(connection, cache, unprepared, prepared_names))


def refresh(connection: Connection, cache: LookupCache, names: Collection[str], tail: int) -> int:
    """Prepare every stale series for these metrics, in a writing transaction; returns how many there were."""
    sorted_names, count, last_config = tuple(sorted(set(names))), 0, -1
    if sorted_names != chunk_names(connection):  # metrics.txt changed: bands of other names are useless
        connection.execute(delete(schema.series_head))
        put_meta(connection, "chunk_names", packing.compact_json(sorted_names))
    while configs := stale(connection, sorted_names, tail, last_config):
        last_config = configs[-1]
        _prepare(connection, cache, configs, sorted_names)
        count += len(configs)
    return count


def stale(connection: Connection, names: tuple[str, ...], tail: int, after: int = -1) -> list[int]:
    """The next configs, by their keys, with at least `tail` points that are not prepared; `after` a key."""
    if not names:
        return []
    config, head, result = schema.config.c, schema.series_head.c, schema.result.c
    # Asks for one point at an offset, since counting would read all points of every config.
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
    """How many configs have prepared series."""
    return connection.scalar(select(func.count()).select_from(schema.series_head)) or 0


def chunk_names(connection: Connection) -> tuple[str, ...]:
    """The metrics for which series are prepared, sorted."""
    content = connection.scalar(_SELECT_CHUNK_NAMES)
    return _names(content) if content else ()


def _prepare(connection: Connection, cache: LookupCache, configs: list[int], names: tuple[str, ...]) -> None:
    """Lengthen the prepared series by their newer points, and prepare the others whole."""
    result, head, chunk = schema.result.c, schema.series_head.c, schema.series_chunk.c
    newest = select(result.config, func.max(result.created)).where(result.config.in_(configs))
    heads = _heads(connection, configs, names)
    tails = dict(from_payloads(connection, cache, list(heads), names, tails=True))
    # Full segments stay as they are: only the last one, which has room, is read and written again.
    open_segments = {config: len(points) // CHUNK for config, points in heads.items()}
    lengthened = {
        config: columns.followed_by(tails[config]) if config in tails else columns
        for config, columns in _load(connection, heads, names, names, open_segments)
    }
    unprepared = [config for config in configs if config not in heads]
    whole = dict(from_payloads(connection, cache, unprepared, names))
    connection.execute(delete(schema.series_head).where(head.config.in_(configs)))
    connection.execute(
        delete(schema.series_chunk).where(chunk.config == bindparam("c"), chunk.segment >= bindparam("s")),
        [{"c": config, "s": open_segments.get(config, 0)} for config in configs],
    )
    head_rows: list[dict[str, Any]] = []
    chunk_rows: list[dict[str, Any]] = []
    for config, until in connection.execute(newest.group_by(result.config)):
        if config in lengthened:
            points = heads[config]
            if config in tails:
                points = points.followed_by(tails[config].head)
            chunk_rows += _chunk_rows(config, lengthened[config], names, open_segments[config])
        else:
            columns = whole.get(config, Columns(Head.of([]), {}))  # all its runs may be hidden
            points = columns.head
            chunk_rows += _chunk_rows(config, columns, names, 0)
        row = {"config": config, "names": key(*names), "points": len(points), "until": until}
        head_rows.append({**row, "head": points.packed()})
    for table, rows in ((schema.series_head, head_rows), (schema.series_chunk, chunk_rows)):
        if rows:
            connection.execute(insert(table), rows)


def _chunk_rows(
    config: int, columns: Columns, names: tuple[str, ...], first_segment: int
) -> Iterator[dict[str, Any]]:
    """The chunk rows of columns whose first point opens `first_segment`.

    A row has the values of one segment of points and one band of names; names that no point of the segment
    carries are left out.
    """
    numbered_columns = [
        (index, column)
        for index, name in enumerate(names)
        if (column := columns.columns.get(name)) is not None and column.carried
    ]
    for band, members in groupby(numbered_columns, key=lambda numbered_column: numbered_column[0] // BAND):
        band_columns = list(members)
        for start in range(0, len(columns.head), CHUNK):
            points = slice(start, start + CHUNK)
            segment_columns = [(index, column.points(points)) for index, column in band_columns]
            carried_pieces = [(index, piece) for index, piece in segment_columns if piece.carried]
            if carried_pieces:
                marked = any(piece.marks is not None for _, piece in carried_pieces)
                yield {
                    "config": config,
                    "band": band,
                    "segment": first_segment + start // CHUNK,
                    "slots": np.stack([piece.slots for _, piece in carried_pieces]).tobytes(),
                    "marks": np.stack([piece.every_mark() for _, piece in carried_pieces]).tobytes()
                    if marked
                    else None,
                    "forms": packing.compact_json([(index, piece.forms) for index, piece in carried_pieces]),
                }


def _heads(connection: Connection, configs: Sequence[int], prepared_for: tuple[str, ...]) -> dict[int, Head]:
    """The points of each config whose series are prepared for these names, in the order of the configs."""
    names = key(*prepared_for)
    heads = {
        config: Head.unpacked(content)
        for batch in key_batches(configs)
        for config, content in connection.execute(_SELECT_HEADS, {"configs": batch, "names": names})
    }
    return {config: heads[config] for config in configs if config in heads}


def _load(
    connection: Connection,
    heads: dict[int, Head],
    prepared_for: tuple[str, ...],
    names: Sequence[str],
    first: dict[int, int] | None = None,
) -> Iterator[tuple[int, Columns]]:
    """The prepared columns of some names: of all points, or from each config's segment in `first` on."""
    requested = set(names)
    name_at = {place: name for place, name in enumerate(prepared_for) if name in requested}
    bands = sorted({place // BAND for place in name_at})
    for batch in _batches(heads, len(bands), first):
        statement, values = _SELECT_CHUNKS, {"bands": bands, "configs": batch}
        if first is not None:
            statement = statement.where(schema.series_chunk.c.segment >= min(map(first.__getitem__, batch)))
        pieces: dict[int, dict[int, dict[str, MetricColumn]]] = {
            config: defaultdict(dict) for config in batch
        }
        for config, segment, slots, marks, forms in connection.execute(statement, values).all():
            forms_by_name = _forms(forms)
            slot_rows = np.frombuffer(slots, SLOT).reshape(len(forms_by_name), -1)
            mark_rows = None if marks is None else np.frombuffer(marks, MARK).reshape(len(forms_by_name), -1)
            columns = pieces[config][segment]
            for row, (place, forms_of_name) in enumerate(forms_by_name):
                if place in name_at:
                    mark = None if mark_rows is None or len(forms_of_name) == 1 else mark_rows[row]
                    columns[name_at[place]] = MetricColumn(slot_rows[row], mark, forms_of_name)
        for config in batch:
            first_segment, points = 0 if first is None else first[config], len(heads[config])
            # A segment without a row for these names has none of them at any point.
            head = (
                heads[config]
                if not first_segment
                else heads[config].points(slice(first_segment * CHUNK, None))
            )
            segments = [
                (pieces[config][segment], MetricColumn.absent(min(CHUNK, points - segment * CHUNK)))
                for segment in range(first_segment, -(-points // CHUNK))
            ] or [({}, MetricColumn.absent(0))]
            yield config, Columns(head, _join_segments(segments, names))


def _join_segments(
    segments: list[tuple[dict[str, MetricColumn], MetricColumn]], names: Sequence[str]
) -> dict[str, MetricColumn]:
    """The columns of all segments joined; each segment brings the column that stands for names it lacks."""
    if len(segments) == 1 and len(segments[0][0]) == len(names):
        return segments[0][0]
    return {
        name: MetricColumn.joined([columns.get(name, absent_column) for columns, absent_column in segments])
        for name in names
    }


def _batches(heads: dict[int, Head], bands: int, first: dict[int, int] | None) -> Iterator[list[int]]:
    """The configs in groups that stay under the row limit: for a moment each group is in memory twice."""
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


def _capped(by_config: Any) -> Iterator[tuple[int, Columns]]:
    """Each config's newest points, up to the row limit; configs without points are left out."""
    for config, series_columns in by_config:
        if len(series_columns.head):
            too_long = len(series_columns.head) > ROW_LIMIT
            yield config, series_columns.points(slice(-ROW_LIMIT, None)) if too_long else series_columns


@lru_cache(maxsize=64)
def _names(content: str) -> tuple[str, ...]:
    return tuple(json.loads(content))


@lru_cache(maxsize=4096)
def _forms(content: str) -> tuple[tuple[int, tuple[Form, ...]], ...]:
    """For each name in a chunk row: its place in the list of prepared names, and its forms."""
    return tuple((place, tuple(Form(*form) for form in forms)) for place, forms in json.loads(content))
