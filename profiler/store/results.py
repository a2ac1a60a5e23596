"""Queries for results: rows without values, launches with all values, latency samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, bindparam, select

from profiler.errors import UnknownName
from profiler.evidence.launch import Launch
from profiler.evidence.values import Evidence, MetricSet, State, Value
from profiler.store import packing, schema
from profiler.store.lookup_cache import LookupCache
from profiler.store.rows import ROW_LIMIT, ResultInfo, Rows, SampleArrays, Size
from profiler.store.statements import (
    ResultSelection,
    capped,
    config_conditions,
    key_batches,
    moment,
    narrow_by,
    parameters,
    select_results,
)

_NO_METRICS = MetricSet((), (), "")
_new_info = partial(tuple.__new__, ResultInfo)  # from a tuple of its fields
_STATES = {int(state): state for state in State}
_EVIDENCE = {evidence.value: evidence for evidence in Evidence}


def results(
    connection: Connection, selection: ResultSelection, *, latest: bool, limit: int | None
) -> Rows[ResultInfo]:
    """See Store.results."""
    values = parameters(selection)
    statement = _select_results_of(tuple(values), selection.kind, latest=latest)
    rows = capped(connection, statement, ROW_LIMIT if limit is None else limit, values)
    return Rows(map(_result_info, rows), rows.truncated)


def noise_launches(
    connection: Connection, selection: ResultSelection, mode: str, *, newest_runs: int
) -> list[ResultInfo]:
    """See Store.noise_launches."""
    config = schema.config.c
    configs = select(config.id).where(config.mode == mode, *config_conditions(selection))
    rows = capped(connection, _SELECT_LAUNCHES, values={"configs": list(connection.scalars(configs))})
    runs = set(list(dict.fromkeys(run_id for _, _, run_id in rows))[:newest_runs])
    launches = Counter(report for _, report, _ in rows)
    chosen = [row_id for row_id, report, run_id in rows if run_id in runs or launches[report] > 1]
    infos = [
        _result_info(row)
        for batch in key_batches(chosen)
        for row in connection.execute(_SELECT_INFOS_BY_ID, {"results": batch})
    ]
    return sorted(infos, key=lambda info: (info.created, info.run_id, info.ordinal))


def load(connection: Connection, lookups: LookupCache, result_ids: Sequence[int]) -> list[Launch]:
    """See Store.load."""
    launches: dict[int, Launch] = {}
    for batch in key_batches(dict.fromkeys(result_ids)):
        rows = connection.execute(_SELECT_VALUES, {"results": batch}).all()
        metric_sets = lookups.metric_sets.get(
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
    for batch in key_batches(dict.fromkeys(result_ids)):
        rows = connection.execute(_SELECT_SAMPLES, {"results": batch})
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
    """The columns that `_result_info` takes, in its order."""
    result, config = schema.result.c, schema.config.c
    return (
        select_results(
            result.id,
            schema.run.c.run_id,
            config.family,
            schema.version.c.name,
            config.workload,
            config.gpu,
            config.evidence,
            config.mode,
            config.part,
            config.base_name,
            schema.kernel.c.demangled,
            result.grid,
            result.block,
            result.ordinal,
            result.created,
            result.duration,
            result.duration_unit,
            result.duration_state,
            schema.report.c.sha256,
            result.kind,
            result.status,
            result.reason,
            result.median_ns,
            result.samples,
            result.is_latest,
        )
        .outerjoin(schema.kernel, schema.kernel.c.id == result.kernel)
        .outerjoin(schema.report, schema.report.c.id == result.report)
    )


@cache
def _select_results_of(names: tuple[str, ...], kind: str | None, *, latest: bool) -> Select[Any]:
    """The results of any selection with these parameters: of one run, or of all that are not hidden."""
    result, run = schema.result.c, schema.run.c
    statement = narrow_by(_SELECT_INFOS, names, kind).order_by(
        schema.config.c.family, run.created, run.run_id, result.position
    )
    if "of_run" not in names:
        statement = statement.where(run.hidden.is_(False))
        if kind is None:  # A/A sessions are no results of a version
            statement = statement.where(result.kind != "noise")
        if latest:
            statement = statement.where(result.is_latest)
    return statement


def _result_info(row: Any) -> ResultInfo:
    # By position: names, looked up in each of ten thousand rows, take as long as the query.
    result_id, run_id, family, version, workload, gpu, evidence, mode, part, base_name = row[:10]
    demangled, grid, block, ordinal, created, duration, unit, state, *others = row[10:]
    fields = (
        *(result_id, run_id, family, version, workload or None, gpu or None, _EVIDENCE[evidence]),
        *(mode, part, base_name, demangled or "", _size(grid), _size(block), ordinal, moment(created)),
        *(Value(duration, unit, None, _STATES[state]), *others),
    )
    return _new_info(fields)


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


@lru_cache(maxsize=4096)
def _size(content: str | None) -> Size | None:
    """A grid or block from the text that `size_text` wrote."""
    if content is None:
        return None
    x, y, z = content.split(",")
    return int(x), int(y), int(z)


def _of_results(column: Any) -> Any:
    return column.in_(bindparam("results", expanding=True))


# Each made once: to make a statement takes longer than most of these queries.
_SELECT_VALUES = (
    select(
        schema.result.c.id,
        schema.result.c.grid,
        schema.result.c.block,
        schema.result.c.ordinal,
        schema.result.c.metric_set,
        schema.kernel.c.function,
        schema.kernel.c.demangled,
        schema.kernel.c.mangled,
        schema.payload.c.slots,
        schema.payload.c.states,
        schema.payload.c.texts,
        schema.payload.c.extras,
    )
    .select_from(schema.result)
    .outerjoin(schema.kernel, schema.kernel.c.id == schema.result.c.kernel)
    .outerjoin(schema.payload, schema.payload.c.result == schema.result.c.id)
    .where(_of_results(schema.result.c.id))
)
_SELECT_SAMPLES = select(
    schema.payload.c.result,
    schema.payload.c.samples,
    schema.payload.c.rounds,
    schema.payload.c.clocks,
    schema.payload.c.throttled,
    schema.payload.c.processes,
).where(_of_results(schema.payload.c.result), schema.payload.c.samples.is_not(None))
_SELECT_LAUNCHES = (
    select(schema.result.c.id, schema.result.c.report, schema.run.c.run_id)
    .join(schema.run, schema.run.c.id == schema.result.c.run)
    .where(schema.result.c.kind == "launch", schema.result.c.status == "done")
    .where(schema.run.c.hidden.is_(False), schema.result.c.config.in_(bindparam("configs", expanding=True)))
    .order_by(schema.result.c.created.desc(), schema.run.c.run_id.desc(), schema.result.c.position.desc())
)
_SELECT_INFOS = _select_infos()
_SELECT_INFOS_BY_ID = _SELECT_INFOS.where(_of_results(schema.result.c.id))
