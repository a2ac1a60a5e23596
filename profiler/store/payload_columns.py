"""Gathers columns of series from the payloads of their results."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, and_, bindparam, func, select, true

from profiler.evidence.values import SLOT, MetricSet, State
from profiler.store import packing, schema
from profiler.store.columns import ABSENT, MARK, Columns, Form, Head, MetricColumn
from profiler.store.lookup_cache import LookupCache
from profiler.store.rows import ROW_LIMIT
from profiler.store.statements import key_batches

# Of table result: all that a point needs besides its payload, which is fetched separately.
_COLUMNS = ("config", "id", "run", "version", "created", "grid", "block", "metric_set")


def from_payloads(
    connection: Connection,
    lookups: LookupCache,
    configs: Sequence[int],
    names: Sequence[str],
    *,
    tails: bool = False,
) -> Iterator[tuple[int, Columns]]:
    """The columns of each config that has points; with `tails` only points newer than its prepared ones.

    Hidden runs are left out. Of a history longer than ROW_LIMIT the newest points are taken.
    """
    statement = _select_tails(connection.dialect.name) if tails else _select_points()
    for batch in key_batches(configs) if tails else _batches(connection, configs):
        yield from _read_configs(connection, lookups, batch, tuple(names), statement)


def _read_configs(
    connection: Connection,
    lookups: LookupCache,
    batch: list[int],
    names: tuple[str, ...],
    statement: Select[Any],
) -> Iterator[tuple[int, Columns]]:
    """The columns of some configs; where they exceed the row limit together they are read in halves."""
    rows = connection.execute(statement, {"configs": batch}).all()
    if len(rows) >= ROW_LIMIT and len(batch) > 1:
        for half in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
            yield from _read_configs(connection, lookups, half, names, statement)
        return
    payloads = dict(_payloads(connection, [row.id for row in rows]))
    metric_sets = lookups.metric_sets.get(connection, {row.metric_set for row in rows})
    by_config = defaultdict(list)
    for row in reversed(rows):  # rows come newest first, points go oldest first
        by_config[row.config].append(row)
    for config, points in by_config.items():
        yield config, _gather(points, payloads, metric_sets, names)


@cache  # to make a statement takes longer than the query
def _select_points() -> Select[Any]:
    """The query for points with values of visible runs of some configs, newest first."""
    result, run = schema.result.c, schema.run.c
    return (
        select(*(result[name] for name in _COLUMNS))
        .join(schema.run, run.id == result.run)
        .where(result.kind.in_(schema.VALUED), run.hidden.is_(False), _of_configs(result.config))
        .order_by(result.created.desc(), run.run_id.desc(), result.position.desc())
        .limit(ROW_LIMIT)
    )


@cache
def _select_tails(dialect: str) -> Select[Any]:
    """As `_select_points`, for points newer than their prepared series alone.

    For the plain query PostgreSQL reads the whole history of every config to find its few new points. The
    lateral join makes it go config by config.
    """
    result, run, head = schema.result.c, schema.run.c, schema.series_head.c
    newer = and_(head.config == result.config, result.created > head.until)
    if dialect != "postgresql":
        return _select_points().join(schema.series_head, newer)
    columns = [result[name] for name in (*_COLUMNS, "position")]
    newest_points = (
        select(*columns).where(newer, result.kind.in_(schema.VALUED)).correlate(schema.series_head)
    )
    of_config = newest_points.order_by(result.created.desc()).limit(ROW_LIMIT).lateral("point")
    point = of_config.c
    return (
        select(*(point[name] for name in _COLUMNS))
        .select_from(schema.series_head)
        .join(of_config, true())
        .join(schema.run, run.id == point.run)
        .where(run.hidden.is_(False), _of_configs(head.config))
        .order_by(point.created.desc(), run.run_id.desc(), point.position.desc())
        .limit(ROW_LIMIT)
    )


def _of_configs(column: Any) -> Any:
    return column.in_(bindparam("configs", expanding=True))


def _batches(connection: Connection, configs: Sequence[int]) -> Iterator[list[int]]:
    """The configs in groups whose points stay under the row limit together."""
    result = schema.result.c
    for keys in key_batches(configs):
        # Counting reads an index alone, which is much cheaper than payloads fetched in vain.
        counted = select(result.config, func.count().label("points"))
        counted = counted.where(result.config.in_(keys), result.kind.in_(schema.VALUED))
        counts = {row.config: row.points for row in connection.execute(counted.group_by(result.config))}
        batch: list[int] = []
        size = 0
        for config in keys:
            if batch and size + counts.get(config, 0) > ROW_LIMIT:
                yield batch
                batch, size = [], 0
            batch.append(config)
            size += counts.get(config, 0)
        yield batch


def _payloads(connection: Connection, ids: Sequence[int]) -> Iterator[tuple[int, packing.Packed]]:
    table = schema.payload.c
    statement = select(table.result, table.slots, table.states, table.texts)
    for batch in key_batches(ids):
        for result, slots, states, texts in connection.execute(statement.where(table.result.in_(batch))):
            yield result, packing.Packed(slots, states, texts, None)


def _gather(
    rows: Sequence[Any],
    payloads: Mapping[int, packing.Packed],
    metric_sets: Mapping[int, MetricSet],
    names: tuple[str, ...],
) -> Columns:
    head = Head.of(
        [(row.id, row.run, row.version, row.created, _size(row.grid) + _size(row.block)) for row in rows]
    )
    # Launches with one metric set have each metric at the same position, so they are unpacked together.
    table = _Table(names, len(rows))
    by_set = defaultdict(list)
    for point, row in enumerate(rows):
        by_set[row.metric_set].append(point)
    for set_key, points in by_set.items():
        table.fill(points, [payloads[rows[point].id] for point in points], metric_sets[set_key])
    return Columns(head, table.columns())


class _Table:
    """The values of some metrics while they are gathered: one row a metric, one column a point."""

    def __init__(self, names: tuple[str, ...], points: int) -> None:
        self.names = names
        self.slots = np.zeros((len(names), points), SLOT)
        self.marks = np.zeros((len(names), points), MARK)
        self.forms = {ABSENT: 0}  # the mark of each form; what is never filled keeps mark 0

    def columns(self) -> dict[str, MetricColumn]:
        forms = list(self.forms)
        return {
            name: MetricColumn.of(self.slots[row], self.marks[row], forms)
            for row, name in enumerate(self.names)
        }

    def fill(self, points: list[int], packed: list[packing.Packed], metric_set: MetricSet) -> None:
        """Set the values of some points, whose launches all have this metric set."""
        rows_and_names = [(row, name) for row, name in enumerate(self.names) if name in metric_set.position]
        if not rows_and_names:
            return
        rows = np.array([row for row, _ in rows_and_names])
        positions = np.array([metric_set.position[name] for _, name in rows_and_names])
        forms = [(metric_set.units[position], metric_set.kinds[position]) for position in positions]
        # One array of all payloads, points by metrics, of which the columns asked for are cut out.
        slots = np.frombuffer(b"".join(bytes(payload.slots) for payload in packed), SLOT)
        cells = np.ix_(rows, np.array(points))
        self.slots[cells] = slots.reshape(-1, len(metric_set.names))[:, positions].T
        present = [self._mark(Form(State.PRESENT, *form)) for form in forms]
        self.marks[cells] = np.array(present, MARK)[:, None]
        for point, payload in zip(points, packed, strict=True):
            # Nearly all values are present numbers: only the exceptions are marked one by one.
            if payload.states:
                states = np.frombuffer(payload.states, np.uint8)[positions]
                for index in np.flatnonzero(states).tolist():
                    self.marks[rows[index], point] = self._mark(Form(int(states[index]), *forms[index]))
            if payload.texts:
                texts = json.loads(payload.texts)
                for index, position in enumerate(positions.tolist()):
                    if str(position) in texts:
                        form = Form(State.PRESENT, *forms[index], texts[str(position)])
                        self.marks[rows[index], point] = self._mark(form)

    def _mark(self, form: Form) -> int:
        return self.forms.setdefault(form, len(self.forms))


def _size(content: str | None) -> tuple[int, ...]:
    return (0, 0, 0) if content is None else tuple(map(int, content.split(",")))
