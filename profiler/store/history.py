"""How the index answers what a metric was over the runs: one series a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from profiler.store import chunks, schema
from profiler.store.columns import Columns
from profiler.store.known import Known
from profiler.store.rows import Point, Series, Size
from profiler.store.statements import Filter, capped, conditions, moment
from profiler.values import Evidence, State, Value


def series(
    connection: Connection, known: Known, names: Sequence[str], wanted: Filter, *, latest: bool
) -> list[Series]:
    """See Store.series."""
    config = schema.config.c
    has_values = select(schema.result.c.id).where(
        schema.result.c.config == config.id, schema.result.c.metric_set.is_not(None)
    )
    statement = select(schema.config).where(has_values.exists(), *conditions(wanted))
    order = (config.family, config.workload, config.gpu, config.evidence, config.mode, config.part)
    configs = {row.id: row for row in capped(connection, statement.order_by(*order))}
    columns = list(chunks.read(connection, known, list(configs), list(dict.fromkeys(names))))
    if latest:
        columns = [(key, block.points(block.latest())) for key, block in columns]
    heads = _point_heads(connection, known, [block for _, block in columns])
    made: dict[tuple[int, str], Series] = {}
    for (key, block), points in zip(columns, heads, strict=True):
        for row, name in enumerate(block.names):
            if block.carries(row):
                made[key, name] = _series(configs[key], name, points, block.values(row))
    return [made[key, name] for key in configs for name in dict.fromkeys(names) if (key, name) in made]


def _point_heads(
    connection: Connection, known: Known, blocks: Sequence[Columns]
) -> list[list[tuple[Any, ...]]]:
    """All of each point but its value."""
    runs = known.runs.get(connection, _keys(blocks, "run"))
    versions = known.versions.get(connection, _keys(blocks, "version"))
    return [
        list(
            zip(
                block.head["result"].tolist(),
                [runs[key] for key in block.head["run"].tolist()],
                [versions[key] for key in block.head["version"].tolist()],
                [moment(created) for created in block.head["created"].tolist()],
                _sizes(block.head["grid"]),
                _sizes(block.head["block"]),
                block.latest(),
                strict=True,
            )
        )
        for block in blocks
    ]


def _keys(blocks: Sequence[Columns], column: str) -> list[int]:
    return sorted({key for block in blocks for key in block.head[column].tolist()})


def _sizes(extents: NDArray[np.uint32]) -> list[Size | None]:
    return [(x, y, z) if x or y or z else None for x, y, z in extents.tolist()]


def _series(config: Any, name: str, heads: list[tuple[Any, ...]], values: list[Value]) -> Series:
    unit = next((value.unit for value in reversed(values) if value.state is State.PRESENT), "")
    return Series(
        family=config.family,
        workload=config.workload or None,
        gpu=config.gpu or None,
        evidence=Evidence(config.evidence),
        mode=config.mode,
        part=config.part,
        base_name=config.base_name,
        metric=name,
        unit=unit,
        points=tuple(
            Point(result, run, version, created, value, grid, block, latest)
            for value, (result, run, version, created, grid, block, latest) in zip(values, heads, strict=True)
        ),
    )
