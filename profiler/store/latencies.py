"""Queries for the durations of timed calls: their samples, their medians, and the A/A pairs of noise runs."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, select

from profiler.store import schema
from profiler.store.lookup_cache import LookupCache
from profiler.store.results import samples
from profiler.store.rows import ROW_LIMIT, LatencyInfo, MedianLatency, NoisePair, Rows, SampleArrays
from profiler.store.statements import (
    ResultSelection,
    capped,
    config_conditions,
    key_batches,
    moment,
    narrow,
    pages,
    select_results,
)

_NO_SAMPLES = SampleArrays(
    np.zeros(0, "<f4"), np.zeros(0, "<u2"), np.zeros(0, "<f4"), np.zeros(0, "<u4"), np.zeros(0, "<u2")
)
_RESULT_COLUMNS = ("created", "run", "position", "id", "config", "version", "median_ns")
_CONFIG_COLUMNS = ("workload", "gpu", "mode", "part", "base_name")  # in the order of MedianLatency

_new_median = partial(tuple.__new__, MedianLatency)  # from a tuple of its fields: five times as fast


def latencies(
    connection: Connection, selection: ResultSelection, mode: str | None, *, latest: bool, limit: int | None
) -> Rows[LatencyInfo]:
    """See Store.latencies."""
    statement = _select_latencies(selection)
    if mode is not None:
        statement = statement.where(schema.config.c.mode == mode)
    if latest and selection.run_id is None:
        statement = statement.where(schema.result.c.is_latest)
    rows = _newest(connection, statement, ROW_LIMIT if limit is None else limit)
    return Rows(_load_infos(connection, rows), rows.truncated)


def median_latencies(
    connection: Connection, cache: LookupCache, selection: ResultSelection
) -> list[MedianLatency]:
    """See Store.median_latencies."""
    result, run, config = schema.result.c, schema.run.c, schema.config.c
    # In three steps: each config and each run is fetched once for all of its results.
    select_configs = select(config.id, *(config[name] for name in _CONFIG_COLUMNS)).where(
        *config_conditions(selection)
    )
    configs = {
        key: (workload or None, gpu or None, *others)
        for key, workload, gpu, *others in pages(connection, select_configs, config.id)
    }
    statement = select(*(result[name] for name in _RESULT_COLUMNS)).where(schema.TIMED["latency"])
    # All rows of a batch at once: pages in an order of their own would sort the whole history for each.
    of_results: list[Any] = [
        row
        for batch in key_batches(configs)
        for row in connection.execute(statement.where(result.config.in_(batch))).all()
    ]
    select_runs = select(run.id, run.run_id, run.driver).where(run.hidden.is_(False))
    runs = {
        key: (run_id, driver)
        for batch in key_batches({row[1] for row in of_results})
        for key, run_id, driver in connection.execute(select_runs.where(run.id.in_(batch))).all()
    }
    rows = [(created, *runs[run_key], *others) for created, run_key, *others in of_results if run_key in runs]
    rows.sort(key=itemgetter(0, 1, 3))  # by time, run and position
    versions = cache.versions.get(connection, {row[6] for row in rows})
    return [
        _new_median(
            (result_id, run_id, versions[version], moment(created), median_ns, driver, *configs[config])
        )
        for created, run_id, driver, _position, result_id, config, version, median_ns in rows
    ]


def noise_pairs(
    connection: Connection, selection: ResultSelection, clock_mode: str | None, workload_class: str | None
) -> Rows[NoisePair]:
    """See Store.noise_pairs."""
    rows = _newest(connection, _select_latencies(selection), ROW_LIMIT)
    sessions: dict[tuple[str, str, int], list[LatencyInfo]] = defaultdict(list)
    for row, info in zip(rows, _load_infos(connection, rows), strict=True):
        sessions[info.run_id, info.version, row.config].append(info)
    pairs = [
        NoisePair(a, b)
        for of_cell in sessions.values()
        for a, b in zip(of_cell[::2], of_cell[1::2], strict=False)  # an odd last session has no partner
        if len(a.samples.ns) and len(b.samples.ns)
    ]
    chosen = (
        pair
        for pair in pairs
        if clock_mode in (None, pair.clock_mode) and workload_class in (None, pair.workload_class)
    )
    return Rows(chosen, rows.truncated)


def _select_latencies(selection: ResultSelection) -> Select[Any]:
    result, run, config = schema.result.c, schema.run.c, schema.config.c
    columns = (
        *(result.id, result.config, result.created, result.position, result.median_ns, result.is_latest),
        *(
            result.status,
            result.reason,
            run.run_id,
            run.driver,
            config.family,
            config.workload,
            config.gpu,
            config.mode,
        ),
    )
    statement = narrow(select_results(*columns, schema.version.c.name.label("version")), selection)
    return statement if selection.run_id is not None else statement.where(run.hidden.is_(False))


def _newest(connection: Connection, statement: Select[Any], limit: int) -> Rows[Any]:
    """The newest rows, oldest of them first."""
    # The limit has to cut off the oldest rows, so they are sorted newest first and turned round.
    result, run = schema.result.c, schema.run.c
    order = (result.created.desc(), run.run_id.desc(), result.position.desc())
    rows = capped(connection, statement.order_by(*order), limit)
    return Rows(reversed(rows), rows.truncated)


def _load_infos(connection: Connection, rows: Rows[Any]) -> list[LatencyInfo]:
    by_result = samples(connection, [row.id for row in rows])
    return [
        LatencyInfo(
            result_id=row.id,
            run_id=row.run_id,
            family=row.family,
            version=row.version,
            workload=row.workload or None,
            gpu=row.gpu or None,
            driver=row.driver,
            mode=row.mode,
            created=moment(row.created),
            median_ns=row.median_ns,
            samples=by_result.get(row.id, _NO_SAMPLES),
            latest=row.is_latest,
            status=row.status,
            reason=row.reason,
        )
        for row in rows
    ]
