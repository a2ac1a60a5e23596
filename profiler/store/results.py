"""Queries for results: rows without values, launches with all values, latency samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, select

from profiler.errors import UnknownName
from profiler.evidence import Evidence, Launch, MetricSet, State, Value
from profiler.store import packing, schema
from profiler.store.lookup_cache import LookupCache
from profiler.store.rows import ROW_LIMIT, ResultInfo, Rows, SampleArrays, Size
from profiler.store.statements import Selection, capped, key_batches, moment, narrow, select_results

_NO_METRICS = MetricSet((), (), "")


def results(
    connection: Connection, selection: Selection, *, latest: bool, limit: int | None
) -> Rows[ResultInfo]:
    """See Store.results."""
    result, run = schema.result.c, schema.run.c
    statement = narrow(_select_infos(), selection).order_by(
        schema.config.c.family, run.created, run.run_id, result.position
    )
    if selection.run_id is None:
        statement = statement.where(run.hidden.is_(False))
        if selection.kind is None:  # A/A sessions are no results of a version
            statement = statement.where(result.kind != "noise")
        if latest:
            statement = statement.where(result.is_latest)
    rows = capped(connection, statement, ROW_LIMIT if limit is None else limit)
    return Rows((_result_info(row) for row in rows), rows.truncated)


def load(connection: Connection, cache: LookupCache, result_ids: Sequence[int]) -> list[Launch]:
    """See Store.load."""
    launches: dict[int, Launch] = {}
    result, payload, kernel = schema.result.c, schema.payload.c, schema.kernel.c
    statement = (
        select(
            result.id,
            result.grid,
            result.block,
            result.ordinal,
            result.metric_set,
            kernel.function,
            kernel.demangled,
            kernel.mangled,
            payload.slots,
            payload.states,
            payload.texts,
            payload.extras,
        )
        .select_from(schema.result)
        .outerjoin(schema.kernel, kernel.id == result.kernel)
        .outerjoin(schema.payload, payload.result == result.id)
    )
    for batch in key_batches(dict.fromkeys(result_ids)):
        rows = connection.execute(statement.where(result.id.in_(batch))).all()
        metric_sets = cache.metric_sets.get(
            connection, {row.metric_set for row in rows if row.metric_set is not None}
        )
        for row in rows:
            launches[row.id] = _launch(row, metric_sets.get(row.metric_set, _NO_METRICS))
    # The ids come from links, which may be older than the index.
    for result_id in result_ids:
        if result_id not in launches:
            raise UnknownName(
                f"no result {result_id} in the index: the link is from other data, or its run is gone"
            )
    return [launches[result_id] for result_id in result_ids]


def samples(connection: Connection, result_ids: Sequence[int]) -> dict[int, SampleArrays]:
    """See Store.samples."""
    by_result: dict[int, SampleArrays] = {}
    payload = schema.payload.c
    for batch in key_batches(dict.fromkeys(result_ids)):
        rows = connection.execute(
            select(
                payload.result,
                payload.samples,
                payload.rounds,
                payload.clocks,
                payload.throttled,
                payload.processes,
            ).where(payload.result.in_(batch), payload.samples.is_not(None))
        )
        for result, ns, rounds, clocks, throttled, processes in rows:
            by_result[result] = SampleArrays(
                np.frombuffer(ns, "<f4"),  # the types that run_rows wrote
                np.frombuffer(rounds or b"", "<u2"),
                np.frombuffer(clocks or b"", "<f4"),
                np.frombuffer(throttled or b"", "<u4"),
                np.frombuffer(processes or b"", "<u2"),
            )
    return by_result


def _select_infos() -> Select[Any]:
    result, config = schema.result.c, schema.config.c
    return (
        select_results(
            schema.result,
            schema.run.c.run_id,
            config.family,
            config.workload,
            config.gpu,
            config.evidence,
            config.mode,
            config.part,
            config.base_name,
            schema.version.c.name.label("version_name"),
            schema.kernel.c.demangled,
            schema.report.c.sha256,
        )
        .outerjoin(schema.kernel, schema.kernel.c.id == result.kernel)
        .outerjoin(schema.report, schema.report.c.id == result.report)
    )


def _result_info(row: Any) -> ResultInfo:
    return ResultInfo(
        result_id=row.id,
        run_id=row.run_id,
        family=row.family,
        version=row.version_name,
        workload=row.workload or None,
        gpu=row.gpu or None,
        evidence=Evidence(row.evidence),
        mode=row.mode,
        part=row.part,
        base_name=row.base_name,
        demangled=row.demangled or "",
        grid=_size(row.grid),
        block=_size(row.block),
        ordinal=row.ordinal,
        created=moment(row.created),
        duration_ns=Value(row.duration, row.duration_unit, state=State(row.duration_state)),
        report_sha256=row.sha256,
        kind=row.kind,
        status=row.status,
        reason=row.reason,
        median_ns=row.median_ns,
        samples=row.samples,
        latest=row.is_latest,
    )


def _launch(row: Any, metric_set: MetricSet) -> Launch:
    packed = packing.Packed(row.slots or b"", row.states or b"", row.texts, row.extras)
    return Launch(
        function=row.function or "",
        demangled=row.demangled or "",
        mangled=row.mangled or "",
        grid=_size(row.grid),
        block=_size(row.block),
        ordinal=row.ordinal,
        values=packing.unpack_values(metric_set, packed),
        **packing.unpack_extras(packed),
    )


def _size(content: str | None) -> Size | None:
    """A grid or block from the text that `size_text` wrote."""
    if content is None:
        return None
    x, y, z = content.split(",")
    return int(x), int(y), int(z)
