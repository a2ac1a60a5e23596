"""Queries for the values of metrics over the runs: one series for each part and metric."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, Select, select

from profiler.evidence.values import Evidence
from profiler.store import prepared_series, schema
from profiler.store.columns import Columns, Head, MetricColumn
from profiler.store.lookup_cache import LookupCache, PointNames
from profiler.store.rows import PartArrays, Point, Series, Size
from profiler.store.statements import ResultSelection, capped, moment, narrow_by, parameters

_GRID, _BLOCK = slice(0, 3), slice(3, 6)  # their places in a shape
_new_point = partial(tuple.__new__, Point)  # from a tuple of its fields: Point() takes five times as long


class _PointHeads(NamedTuple):
    """Everything about the points of a series except their values: a list a field of Point."""

    result_ids: list[int]
    run_ids: list[str]
    versions: list[str]
    created: list[datetime]
    grids: list[Size | None]
    blocks: list[Size | None]
    latest: list[bool]


def series(
    connection: Connection,
    lookups: LookupCache,
    names: Sequence[str],
    selection: ResultSelection,
    *,
    latest: bool,
) -> list[Series]:
    """See Store.series."""
    configs = _configs(connection, selection)
    # Metrics may come in several blocks a config: those that are prepared and those that are not.
    columns = list(prepared_series.read(connection, lookups, list(configs), list(dict.fromkeys(names))))
    if latest:
        columns = [(key, block.points(block.head.latest())) for key, block in columns]
    heads = _point_heads(connection, lookups, [block.head for _, block in columns])
    by_config_and_name: dict[tuple[int, str], Series] = {}
    for (key, block), points in zip(columns, heads, strict=True):
        for name, column in block.columns.items():
            if column.carried:
                by_config_and_name[key, name] = _series(configs[key], name, points, column)
    return [
        by_config_and_name[key, name]
        for key in configs
        for name in dict.fromkeys(names)
        if (key, name) in by_config_and_name
    ]


def part_arrays(
    connection: Connection, lookups: LookupCache, names: Sequence[str], selection: ResultSelection
) -> list[PartArrays]:
    """See Store.part_arrays."""
    configs = _configs(connection, selection)
    blocks_by_config: dict[int, list[Columns]] = defaultdict(list)
    distinct_names = list(dict.fromkeys(names))
    for key, block in prepared_series.read(connection, lookups, list(configs), distinct_names):
        blocks_by_config[key].append(block)
    versions = lookups.versions.get(
        connection, {key for blocks in blocks_by_config.values() for key in blocks[0].head.versions}
    )
    parts = (
        _part(configs[key], blocks_by_config[key], distinct_names, versions)
        for key in configs
        if key in blocks_by_config
    )
    return [part for part in parts if part.metrics]


def _part(
    config: Any, blocks: Sequence[Columns], names: Sequence[str], versions: Mapping[int, str]
) -> PartArrays:
    head = blocks[0].head  # all blocks of a config have the same points
    present = np.zeros(len(head), np.uint8)  # State.PRESENT for every point: most columns share this array
    columns = blocks[0].columns
    for block in blocks[1:]:
        columns = columns | block.columns
    arrays = {name: arrays_of_name for name in names if (arrays_of_name := columns[name].arrays(present))}
    units, numbers, states = zip(*arrays.values(), strict=True) if arrays else ((),) * 3
    return PartArrays(
        **_identity(config),
        metrics=tuple(arrays),
        units=units,
        numbers=numbers,
        states=states,
        result_ids=head.result,
        run_keys=head.run,
        created_us=head.created,
        versions=tuple(versions[key] for key in head.versions),
        version=head.version,
        latest=head.latest(),
    )


def _configs(connection: Connection, selection: ResultSelection) -> dict[int, Any]:
    """The selected configs that have values, by their keys, sorted by their columns."""
    values = parameters(selection)
    return {row.id: row for row in capped(connection, _select_configs(tuple(values)), values=values)}


@cache
def _select_configs(names: tuple[str, ...]) -> Select[Any]:
    """The configs of any selection with these parameters; made once, which takes longer than the query."""
    config, result = schema.config.c, schema.result.c
    has_values = select(result.id).where(result.config == config.id, result.kind.in_(schema.VALUED))
    order = (config.family, config.workload, config.gpu, config.evidence, config.mode, config.part)
    return narrow_by(select(schema.config), names).where(has_values.exists()).order_by(*order)


def _point_heads(connection: Connection, lookups: LookupCache, heads: Sequence[Head]) -> list[_PointHeads]:
    """Everything about the points of each series except their values."""
    names = lookups.named_points.get_all(
        [_digest(head) for head in heads], lambda missing: _names(connection, lookups, heads, missing)
    )
    point_heads = []
    # Whole columns at a time, and shapes by index: a trend has thousands of points.
    for head, names_of_points in zip(heads, names, strict=True):
        grids, blocks = ([_size(shape[part]) for shape in head.shapes] for part in (_GRID, _BLOCK))
        shapes = head.shape.tolist()
        point_heads.append(
            _PointHeads(
                head.result.tolist(),
                *names_of_points,
                list(map(grids.__getitem__, shapes)),
                list(map(blocks.__getitem__, shapes)),
                head.latest().tolist(),
            )
        )
    return point_heads


def _digest(head: Head) -> bytes:
    """Stands for the runs, versions and times of points: the kernels of one call have the same."""
    digest = sha256(repr(head.versions).encode())
    for column in (head.run, head.version, head.created):
        digest.update(np.ascontiguousarray(column).data)
    return digest.digest()


def _names(
    connection: Connection, lookups: LookupCache, heads: Sequence[Head], missing: Sequence[int]
) -> list[PointNames]:
    """The run, version and time of every point of the heads at these places."""
    run_keys = {place: heads[place].run.tolist() for place in missing}
    runs = lookups.runs.get(connection, set().union(*run_keys.values()))
    versions = lookups.versions.get(connection, {key for place in missing for key in heads[place].versions})
    named = []
    for place, keys in run_keys.items():
        head = heads[place]
        names = [versions[key] for key in head.versions]
        named.append(
            PointNames(
                list(map(runs.__getitem__, keys)),
                list(map(names.__getitem__, head.version.tolist())),
                list(map(moment, head.created.tolist())),
            )
        )
    return named


def _size(extents: tuple[int, ...]) -> Size | None:
    x, y, z = extents
    return (x, y, z) if x or y or z else None  # zeros stand for a launch of unknown shape


def _series(config: Any, name: str, heads: _PointHeads, column: MetricColumn) -> Series:
    result_ids, run_ids, versions, created, grids, blocks, latest = heads
    fields = (result_ids, run_ids, versions, created, column.values(), grids, blocks, latest)
    return Series(
        **_identity(config),
        metric=name,
        unit=column.unit,
        points=tuple(map(_new_point, zip(*fields, strict=True))),
    )


def _identity(config: Any) -> dict[str, Any]:
    """The columns that identify a config, as arguments of Series and PartArrays."""
    return {
        "family": config.family,
        "workload": config.workload or None,
        "gpu": config.gpu or None,
        "evidence": Evidence(config.evidence),
        "mode": config.mode,
        "part": config.part,
        "base_name": config.base_name,
    }
