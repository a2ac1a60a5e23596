"""How columns are gathered from the payloads of a series' results."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, func, select

from profiler.store import packing, schema
from profiler.store.columns import Columns, Form
from profiler.store.known import Known
from profiler.store.rows import ROW_LIMIT
from profiler.store.statements import slices
from profiler.values import SLOT, MetricSet, State


def from_payloads(
    connection: Connection, known: Known, configs: Sequence[int], names: Sequence[str], *, tails: bool = False
) -> Iterator[tuple[int, Columns]]:
    """The columns of each config that has points; with `tails` only those newer than its prepared ones.

    Hidden runs are left out. Of a very long history the newest points are kept.
    """
    result, run, head = schema.result.c, schema.run.c, schema.series_head.c
    statement = (
        select(
            result.config,
            result.id,
            result.run,
            result.version,
            result.created,
            result.grid,
            result.block,
            result.metric_set,
        )
        .join(schema.run, run.id == result.run)
        .where(result.metric_set.is_not(None), run.hidden.is_(False))
        .order_by(result.created.desc(), run.run_id.desc(), result.position.desc())
        .limit(ROW_LIMIT)
    )
    if tails:
        newer = and_(head.config == result.config, result.created > head.until)
        statement = statement.join(schema.series_head, newer)
    for some in slices(configs) if tails else _batches(connection, configs):
        rows = connection.execute(statement.where(result.config.in_(some))).all()
        payloads = dict(_payloads(connection, [row.id for row in rows]))
        sets = known.metric_sets.get(connection, {row.metric_set for row in rows})
        by_config = defaultdict(list)
        for row in reversed(rows):
            by_config[row.config].append(row)
        for config, points in by_config.items():
            yield config, _gather(points, payloads, sets, tuple(names))


def _batches(connection: Connection, configs: Sequence[int]) -> Iterator[list[int]]:
    """The configs in groups whose points together stay under the row limit."""
    result = schema.result.c
    for some in slices(configs):
        counted = select(result.config, func.count().label("points")).where(result.config.in_(some))
        counts = {row.config: row.points for row in connection.execute(counted.group_by(result.config))}
        batch: list[int] = []
        size = 0
        for config in some:
            if batch and size + counts.get(config, 0) > ROW_LIMIT:
                yield batch
                batch, size = [], 0
            batch.append(config)
            size += counts.get(config, 0)
        yield batch


def _payloads(connection: Connection, ids: Sequence[int]) -> Iterator[tuple[int, packing.Packed]]:
    table = schema.payload.c
    statement = select(table.result, table.slots, table.states, table.texts)
    for some in slices(ids):
        for result, slots, states, texts in connection.execute(statement.where(table.result.in_(some))):
            yield result, packing.Packed(slots, states, texts, None)


def _gather(
    rows: Sequence[Any],
    payloads: Mapping[int, packing.Packed],
    sets: Mapping[int, MetricSet],
    names: tuple[str, ...],
) -> Columns:
    columns = Columns.blank(names, len(rows))
    by_set = defaultdict(list)
    for point, row in enumerate(rows):
        columns.head[point] = (row.id, row.run, row.version, row.created, _size(row.grid), _size(row.block))
        by_set[row.metric_set].append(point)
    for set_key, points in by_set.items():
        _fill(columns, points, [payloads[rows[point].id] for point in points], sets[set_key])
    return columns


def _fill(columns: Columns, points: list[int], packed: list[packing.Packed], metric_set: MetricSet) -> None:
    """Set the values of the points whose launches carry this metric set."""
    carried = [(row, name) for row, name in enumerate(columns.names) if name in metric_set.position]
    if not carried:
        return
    rows = np.array([row for row, _ in carried])
    places = np.array([metric_set.position[name] for _, name in carried])
    forms = [(metric_set.units[place], metric_set.kinds[place]) for place in places]
    slots = np.frombuffer(b"".join(bytes(one.slots) for one in packed), SLOT)
    where = np.ix_(rows, np.array(points))
    columns.slots[where] = slots.reshape(-1, len(metric_set.names))[:, places].T
    present = [columns.mark(Form(State.PRESENT, *form)) for form in forms]
    columns.marks[where] = np.array(present, columns.marks.dtype)[:, None]
    for point, one in zip(points, packed, strict=True):
        if one.states:
            states = np.frombuffer(one.states, np.uint8)[places]
            for index in np.flatnonzero(states).tolist():
                columns.marks[rows[index], point] = columns.mark(Form(int(states[index]), *forms[index]))
        if one.texts:
            texts = json.loads(one.texts)
            for index, place in enumerate(places.tolist()):
                if str(place) in texts:
                    form = Form(State.PRESENT, *forms[index], texts[str(place)])
                    columns.marks[rows[index], point] = columns.mark(form)


def _size(content: str | None) -> tuple[int, ...]:
    return (0, 0, 0) if content is None else tuple(map(int, content.split(",")))
