"""How the index answers what calls took: their samples run by run, and the A/A pairs of noise runs."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, select

from profiler.store import schema
from profiler.store.lookup_cache import LookupCache
from profiler.store.results import samples
from profiler.store.rows import ROW_LIMIT, LatencyInfo, MedianLatency, NoisePair, Rows, SampleArrays
from profiler.store.statements import Filter, capped, conditions, joined, moment, pages, slices, where

_NONE = SampleArrays(np.zeros(0, "<f4"), np.zeros(0, "<u2"), np.zeros(0, "<f4"), np.zeros(0, "<u4"))
_OF_RESULT = ("config", "version", "created", "position", "median_ns")
_WHERE = ("workload", "gpu", "mode", "part", "base_name")  # of a config, in the order of MedianLatency


def latencies(
    connection: Connection, wanted: Filter, mode: str | None, *, latest: bool, limit: int | None
) -> Rows[LatencyInfo]:
    """See Store.latencies."""
    statement = _statement(wanted)
    if mode is not None:
        statement = statement.where(schema.config.c.mode == mode)
    if latest and wanted.run_id is None:
        statement = statement.where(schema.result.c.is_latest)
    found = _newest(connection, statement, ROW_LIMIT if limit is None else limit)
    return Rows(_loaded(connection, found), found.truncated)


def median_latencies(connection: Connection, cache: LookupCache, wanted: Filter) -> list[MedianLatency]:
    """See Store.median_latencies."""
    result, run, config = schema.result.c, schema.run.c, schema.config.c
    configs = select(config.id, *(config[name] for name in _WHERE)).where(*conditions(wanted))
    where_timed = {
        key: (size or None, gpu or None, *more)
        for key, size, gpu, *more in pages(connection, configs, config.id)
    }
    statement = (
        select(result.id, *(result[name] for name in _OF_RESULT), run.run_id)
        .join(schema.run, run.id == result.run)
        .where(schema.TIMED["latency"], run.hidden.is_(False))
    )
    rows = [
        row
        for some in slices(where_timed)
        for row in pages(connection, statement.where(result.config.in_(some)), result.id)
    ]
    versions = cache.versions.get(connection, {row.version for row in rows})
    rows.sort(key=lambda row: (row.created, row.run_id, row.position))
    return [
        MedianLatency(row.id, row.run_id, versions[row.version], moment(row.created), row.median_ns, *here)
        for row in rows
        for here in [where_timed[row.config]]
    ]


def noise_pairs(
    connection: Connection, wanted: Filter, clock_mode: str | None, workload_class: str | None
) -> Rows[NoisePair]:
    """See Store.noise_pairs."""
    found = _newest(connection, _statement(wanted), ROW_LIMIT)
    sessions: dict[tuple[str, str, int], list[LatencyInfo]] = defaultdict(list)
    for row, one in zip(found, _loaded(connection, found), strict=True):
        sessions[one.run_id, one.version, row.config].append(one)
    pairs = [
        NoisePair(a, b)
        for of_cell in sessions.values()
        for a, b in zip(of_cell[::2], of_cell[1::2], strict=False)  # an odd last one has nobody
        if len(a.samples.ns) and len(b.samples.ns)
    ]
    kept = (
        pair
        for pair in pairs
        if clock_mode in (None, pair.clock_mode) and workload_class in (None, pair.workload_class)
    )
    return Rows(kept, found.truncated)


def _statement(wanted: Filter) -> Select[Any]:
    result, run, config = schema.result.c, schema.run.c, schema.config.c
    columns = (
        *(result.id, result.config, result.created, result.position, result.median_ns, result.is_latest),
        *(result.status, result.reason, run.run_id, config.family, config.workload, config.gpu, config.mode),
    )
    statement = where(joined(*columns, schema.version.c.name.label("version")), wanted)
    return statement if wanted.run_id is not None else statement.where(run.hidden.is_(False))


def _newest(connection: Connection, statement: Select[Any], limit: int) -> Rows[Any]:
    """The newest rows, oldest of them first."""
    result, run = schema.result.c, schema.run.c
    order = (result.created.desc(), run.run_id.desc(), result.position.desc())
    found = capped(connection, statement.order_by(*order), limit)
    return Rows(reversed(found), found.truncated)


def _loaded(connection: Connection, rows: Rows[Any]) -> list[LatencyInfo]:
    held = samples(connection, [row.id for row in rows])
    return [
        LatencyInfo(
            result_id=row.id,
            run_id=row.run_id,
            family=row.family,
            version=row.version,
            workload=row.workload or None,
            gpu=row.gpu or None,
            mode=row.mode,
            created=moment(row.created),
            median_ns=row.median_ns,
            samples=held.get(row.id, _NONE),
            latest=row.is_latest,
            status=row.status,
            reason=row.reason,
        )
        for row in rows
    ]
