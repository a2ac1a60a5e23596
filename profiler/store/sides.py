"""The query for one side of a comparison: which run is meant, its launches, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from profiler.errors import UnknownName
from profiler.evidence import EarlierCounters, Evidence, Latency, Session, Side, brief_list
from profiler.store import packing, schema
from profiler.store.lookup_cache import LookupCache
from profiler.store.results import load, samples
from profiler.store.rows import ROW_LIMIT
from profiler.store.statements import Selection, capped, moment, narrow, select_results

_EARLIER_RUNS = 12  # with counters, among which one of the same code is looked for
_MAX_LATENCIES = 48  # rows of samples that a side carries: a dozen runs of a few modes
# Which evidence a side consists of where none is asked for: the first that exists.
_EVIDENCE_ORDER = (Evidence.MEASURED, Evidence.MODELLED, Evidence.STATIC)


def side(
    connection: Connection,
    cache: LookupCache,
    selection: Selection,
    label: str | None,
    *,
    with_latencies: bool = True,
) -> Side:
    """See Store.side."""
    name = (
        label or selection.run_id or "/".join(part for part in (selection.family, selection.version) if part)
    )
    result = schema.result.c
    # Where all is named there is nothing to choose, if it has values.
    rows = _valued_rows(connection, selection, name) if _is_whole(selection) else []
    chosen = selection
    if not rows:
        chosen = _choose(connection, selection, name)
        rows = _valued_rows(connection, chosen, name)
    session, capability = _origin(connection, chosen, rows[0].report if rows else None)
    about = json.loads(
        connection.scalar(
            narrow(
                select_results(schema.cell.c.about).join(
                    schema.cell,
                    (schema.cell.c.run == result.run)
                    & (schema.cell.c.version == result.version)
                    & (schema.cell.c.workload == schema.config.c.workload),
                ),
                chosen,
            ).limit(1)
        )
        or "{}"
    )
    earlier = None
    if not rows and selection.run_id is None and chosen.evidence is Evidence.MEASURED:
        earlier = _earlier_counters(connection, chosen, _build(about))
    if earlier is not None:
        counters_selection = replace(chosen, run_id=earlier.run_id)
        rows = _valued_rows(connection, counters_selection, name)
        counters_session, capability = _origin(connection, counters_selection, rows[0].report)
        earlier = replace(earlier, session=counters_session)
    ids = tuple(row.id for row in rows)
    return Side(
        label=name,
        launches=tuple(load(connection, cache, ids)),
        gpu=chosen.gpu or None,
        compute_capability=capability,
        workload=chosen.workload or None,
        dtype=about.get("problem", {}).get("dtype"),
        evidence=chosen.evidence or Evidence.MEASURED,
        session=session,
        family=chosen.family,
        version=chosen.version,
        run_id=chosen.run_id,
        result_ids=ids,
        wrong=_wrong(connection, chosen, selection.run_id),
        latencies=_latencies(connection, chosen, selection.run_id) if with_latencies else (),
        earlier_counters=earlier,
    )


def _is_whole(selection: Selection) -> bool:
    """Whether a selection names a run, and one version, workload, GPU and evidence in it."""
    named = (selection.family, selection.version, selection.workload, selection.gpu, selection.evidence)
    return selection.run_id is not None and None not in named


def _valued_rows(connection: Connection, chosen: Selection, name: str) -> Sequence[Any]:
    """The launches and facts of the chosen run; UnknownName where they are too many for one side."""
    result = schema.result.c
    statement = narrow(select_results(result.id, result.report), chosen).order_by(result.position)
    rows = capped(connection, statement.where(result.kind.in_(schema.VALUED)))
    if rows.truncated:
        raise UnknownName(f"{name} has more than {ROW_LIMIT} launches: choose a run or workload with fewer")
    return rows


def _earlier_counters(connection: Connection, chosen: Selection, build: str | None) -> EarlierCounters | None:
    """The newest run with launches of the same build, for a run that was only timed; None without one.

    Its session is still empty.
    """
    result, run, cell = schema.result.c, schema.run.c, schema.cell.c
    any_run = replace(chosen, run_id=None)
    of_cell = (cell.run == result.run) & (cell.version == result.version)
    statement = (
        narrow(select_results(run.run_id, run.created, cell.about), any_run)
        .outerjoin(schema.cell, of_cell & (cell.workload == schema.config.c.workload))
        .where(result.kind == "launch", run.hidden.is_(False))
        .distinct()
        .order_by(run.created.desc(), run.run_id.desc())
    )
    for row in capped(connection, statement, _EARLIER_RUNS):
        if _build(json.loads(row.about or "{}")) == build:
            return EarlierCounters(row.run_id, moment(row.created), Session(), build is not None)
    return None


def _latencies(connection: Connection, chosen: Selection, run_id: str | None) -> tuple[Latency, ...]:
    """The latency samples of the version there, newest run first; with `run_id` those of that run alone."""
    if chosen.evidence is not Evidence.MEASURED:
        return ()
    result, run, cell = schema.result.c, schema.run.c, schema.cell.c
    latency_selection = Selection(
        chosen.family,
        chosen.version,
        chosen.workload,
        chosen.gpu,
        evidence=Evidence.MEASURED,
        kind="latency",
        run_id=run_id,
    )
    columns = (result.id, schema.config.c.mode, run.run_id, run.created, cell.about)
    of_cell = (cell.run == result.run) & (cell.version == result.version)
    statement = narrow(
        select_results(*columns).outerjoin(
            schema.cell, of_cell & (cell.workload == schema.config.c.workload)
        ),
        latency_selection,
    )
    if run_id is None:  # a run that is named counts also if it was forgotten
        statement = statement.where(run.hidden.is_(False))
    statement = statement.order_by(result.created.desc(), run.run_id.desc(), result.position)
    rows = capped(connection, statement, _MAX_LATENCIES)
    samples_by_result = samples(connection, [row.id for row in rows])
    return tuple(
        Latency(
            row.run_id,
            row.mode,
            arrays.ns,
            arrays.rounds,
            arrays.clocks_mhz,
            arrays.throttled,
            moment(row.created),
            _build(json.loads(row.about or "{}")),
            arrays.processes,
        )
        for row in rows
        if (arrays := samples_by_result.get(row.id)) is not None and len(arrays.ns)
    )


def _build(about: dict[str, Any]) -> str | None:
    source = about.get("source_sha256")
    return None if source is None else " ".join((str(source), *about.get("flags", ())))


def _wrong(connection: Connection, chosen: Selection, run_id: str | None) -> str | None:
    """Why the version's results are wrong: by its newest checks, or with `run_id` by those of that run.

    A failure on the CPU counts, since the CPU can run every workload. One on a GPU does not: that a GPU could
    not run one workload says nothing about the numbers.
    """
    result, config, run = schema.result.c, schema.config.c, schema.run.c
    # All workloads count: results that are wrong on one make the version wrong.
    version = schema.version_key(chosen.family or "", chosen.version or "")
    is_own_run = run.run_id == (run_id or chosen.run_id)
    statement = select_results(result.reason, result.status, run.run_id).where(
        schema.UNDONE,
        result.version == version,
        (result.status == "wrong")
        | ((result.status == "failed") & (config.evidence == str(Evidence.MODELLED))),
        is_own_run if run_id else run.hidden.is_(False) & (result.is_latest | is_own_run),
    )
    newest_first = (run.created.desc(), run.run_id, result.position)
    row = connection.execute(statement.order_by(*newest_first).limit(1)).first()
    return None if row is None else (row.reason or row.status)


def _choose(connection: Connection, selection: Selection, name: str) -> Selection:
    """Narrow a selection to one version, workload, GPU and evidence, and its newest run.

    Raises UnknownName where nothing is selected, or several versions, workloads or GPUs are.
    """
    config, run = schema.config.c, schema.run.c
    columns = (
        config.family,
        schema.version.c.name.label("version"),
        config.workload,
        config.gpu,
        config.evidence,
        run.created,
        run.run_id,
    )
    statement = narrow(select_results(*columns), selection).where(schema.result.c.kind != "noise").distinct()
    if selection.run_id is None:
        statement = statement.where(run.hidden.is_(False), schema.result.c.is_latest)
    candidates: Sequence[Any] = capped(connection, statement)
    if not candidates:
        raise UnknownName(
            f"nothing in the index is called {name}: `profiler versions` and `profiler runs` list what is"
        )
    if selection.run_id is not None:
        # Checked before a kind of evidence is chosen, which would hide the versions that lack it.
        versions = sorted({(row.family, row.version) for row in candidates})
        if len(versions) > 1:
            first = "/".join(versions[0])
            listed = brief_list([version for _, version in versions])
            way_out = f"choose one, as in {first}~{selection.run_id}"
            raise UnknownName(f"{name} has several versions: {listed}; {way_out}")
    # Of several kinds of evidence the best is taken, but of workloads and GPUs none is better than another.
    evidence = next(kind for kind in _EVIDENCE_ORDER if any(row.evidence == kind for row in candidates))
    candidates = [row for row in candidates if row.evidence == evidence]
    for column, option in (("family", ""), ("version", ""), ("workload", "--workload"), ("gpu", "--gpu")):
        values = sorted({getattr(row, column) for row in candidates})
        if len(values) > 1:
            listed = brief_list([value or "(nobody said)" for value in values])
            way_out = f"choose one with {option}" if option else "choose one"
            raise UnknownName(f"{name} has several of {column}: {listed}; {way_out}", option=option)
    newest = max(candidates, key=lambda row: (row.created, row.run_id))
    return Selection(
        newest.family, newest.version, newest.workload, newest.gpu, None, evidence, None, newest.run_id
    )


def _origin(connection: Connection, chosen: Selection, report_key: int | None) -> tuple[Session, str | None]:
    """The ncu session of the launches' report, else one made from the run; and the compute capability."""
    run = schema.run.c
    row = connection.execute(select(schema.run).where(run.run_id == chosen.run_id)).one()
    if report_key is not None:
        report = schema.report.c
        session, capability = connection.execute(
            select(report.session, report.compute_capability).where(report.id == report_key)
        ).one()
        return packing.parse_session(session), capability or row.compute_capability
    session = Session(
        ncu_version=row.ncu_version,
        driver=row.driver,
        cuda=row.cuda,
        created=moment(row.created),
        command_line=row.command_line,
        clock_control=row.clock_control,
        cache_control=row.cache_control,
    )
    return session, row.compute_capability
