"""The query for one side of a comparison: which run is meant, its launches, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, select

from profiler.errors import UnknownName
from profiler.evidence.launch import Session
from profiler.evidence.naming import brief_list
from profiler.evidence.side import EarlierCounters, Latency, Side
from profiler.evidence.values import Evidence
from profiler.store import packing, schema
from profiler.store.lookup_cache import LookupCache
from profiler.store.results import load, samples
from profiler.store.rows import ROW_LIMIT, capabilities
from profiler.store.statements import ResultSelection, capped, moment, narrow_by, parameters, select_results

_EARLIER_RUNS = 12  # with counters, among which one of the same code is looked for
_MAX_LATENCIES = 48  # rows of samples that a side carries: a dozen runs of a few modes
# Which evidence a side consists of where none is asked for: the first that exists.

_EVIDENCE_ORDER = (Evidence.MEASURED, Evidence.MODELLED, Evidence.STATIC)


def side(
    connection: Connection,
    lookups: LookupCache,
    selection: ResultSelection,
    label: str | None,
    *,
    with_latencies: bool = True,
) -> Side:
    """See Store.side."""
    name = (
        label or selection.run_id or "/".join(part for part in (selection.family, selection.version) if part)
    )
    # Where all is named there is nothing to choose, if it has values.
    rows = _valued_rows(connection, selection, name) if _is_whole(selection) else []
    chosen = selection
    if not rows:
        chosen = _choose(connection, selection, name)
        rows = _valued_rows(connection, chosen, name)
    session, capability = _origin(connection, chosen, rows[0].report if rows else None)
    values = parameters(chosen)
    about = json.loads(connection.scalar(_select_about(tuple(values)), values) or "{}")
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
        launches=tuple(load(connection, lookups, ids)),
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


def _is_whole(selection: ResultSelection) -> bool:
    """Whether a selection names a run, and one version, workload, GPU and evidence in it."""
    named = (selection.family, selection.version, selection.workload, selection.gpu, selection.evidence)
    return selection.run_id is not None and None not in named


def _valued_rows(connection: Connection, chosen: ResultSelection, name: str) -> Sequence[Any]:
    """The launches and facts of the chosen run; UnknownName where they are too many for one side."""
    values = parameters(chosen)
    rows = capped(connection, _select_valued(tuple(values)), values=values)
    if rows.truncated:
        raise UnknownName(f"{name} has more than {ROW_LIMIT} launches: choose a run or workload with fewer")
    return rows


def _earlier_counters(
    connection: Connection, chosen: ResultSelection, build: str | None
) -> EarlierCounters | None:
    """The newest run with launches of the same build, for a run that was only timed; None without one.

    Its session is still empty.
    """
    values = parameters(replace(chosen, run_id=None))
    for row in capped(connection, _select_earlier(tuple(values)), _EARLIER_RUNS, values):
        if _build(json.loads(row.about or "{}")) == build:
            return EarlierCounters(row.run_id, moment(row.created), Session(), build is not None)
    return None


def _latencies(connection: Connection, chosen: ResultSelection, run_id: str | None) -> tuple[Latency, ...]:
    """The latency samples of the version there, newest run first; with `run_id` those of that run alone."""
    if chosen.evidence is not Evidence.MEASURED:
        return ()
    values = parameters(replace(chosen, run_id=run_id))
    # A run that is named counts also if it was forgotten.
    statement = _select_latencies(tuple(values), with_hidden=run_id is not None)
    rows = capped(connection, statement, _MAX_LATENCIES, values)
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


def _wrong(connection: Connection, chosen: ResultSelection, run_id: str | None) -> str | None:
    """Why the version's results are wrong: by its newest checks, or with `run_id` by those of that run.

    A failure on the CPU counts, since the CPU can run every workload. One on a GPU does not: that a GPU could
    not run one workload says nothing about the numbers.
    """
    # All workloads count: results that are wrong on one make the version wrong.
    version = schema.version_key(chosen.family or "", chosen.version or "")
    values = {"of_version_key": version, "own_run": run_id or chosen.run_id}
    row = connection.execute(_select_wrong(of_own_run=run_id is not None), values).first()
    return None if row is None else (row.reason or row.status)


def _choose(connection: Connection, selection: ResultSelection, name: str) -> ResultSelection:
    """Narrow a selection to one version, workload, GPU and evidence, and its newest run.

    Raises UnknownName where nothing is selected, or several versions, workloads or GPUs are.
    """
    values = parameters(selection)
    statement = _select_candidates(tuple(values), of_any_run=selection.run_id is None)
    candidates: Sequence[Any] = capped(connection, statement, values=values)
    if not candidates:
        raise UnknownName(
            f"nothing in the index is called {name}: `profiler list versions` and `profiler list runs` list "
            "what is"
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
        present = sorted({getattr(row, column) for row in candidates})
        if column == "gpu" and len(present) > 1 and _is_one_report(connection, candidates, evidence):
            continue  # each launch says its own: it is compared with launches of its GPU
        if len(present) > 1:
            listed = brief_list([value or "(nobody said)" for value in present])
            way_out = f"choose one with {option}" if option else "choose one"
            kinds = "families" if column == "family" else "GPUs" if column == "gpu" else f"{column}s"
            raise UnknownName(f"{name} has {len(present)} {kinds}: {listed}; {way_out}", option=option)
    newest = max(candidates, key=lambda row: (row.created, row.run_id))
    gpu = newest.gpu if len({row.gpu for row in candidates}) == 1 else None
    return ResultSelection(
        newest.family, newest.version, newest.workload, gpu, None, evidence, None, newest.run_id
    )


def _is_one_report(connection: Connection, candidates: Sequence[Any], evidence: Evidence) -> bool:
    """Whether candidates on several GPUs are the launches of one run, which timed nothing."""
    run_ids = {row.run_id for row in candidates}
    if evidence is not Evidence.MEASURED or len(run_ids) > 1:
        return False
    result, run = schema.result.c, schema.run.c
    others = select_results(result.id).where(run.run_id == run_ids.pop(), result.kind != "launch").limit(1)
    return connection.scalar(others) is None


def _origin(
    connection: Connection, chosen: ResultSelection, report_key: int | None
) -> tuple[Session, str | None]:
    """The ncu session of the launches' report, else one made from the run; and the compute capability."""
    row = connection.execute(_SELECT_RUN, {"run": chosen.run_id}).one()
    if report_key is not None:
        session, capability = connection.execute(_SELECT_SESSION, {"report": report_key}).one()
        of_gpu = capabilities(row.gpus).get(chosen.gpu or "")
        made, of_run = packing.parse_session(session), json.loads(row.provenance)
        # An export as CSV does not say them, but its run may.
        ncu, driver, cuda = (
            text if isinstance(text := of_run.get(name), str) else None
            for name in ("ncu_version", "driver", "cuda")
        )
        made = replace(
            made,
            ncu_version=made.ncu_version or ncu,
            driver=made.driver or driver,
            cuda=made.cuda or cuda,
        )
        return made, of_gpu or capability or row.compute_capability
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


# ---- the statements, each made once: to make one takes longer than the query

_SELECT_RUN = select(schema.run).where(schema.run.c.run_id == bindparam("run"))
_SELECT_SESSION = select(schema.report.c.session, schema.report.c.compute_capability).where(
    schema.report.c.id == bindparam("report")
)


@cache
def _select_about(names: tuple[str, ...]) -> Select[Any]:
    statement = select_results(schema.cell.c.about).join(schema.cell, _of_cell())
    return narrow_by(statement, names).limit(1)


@cache
def _select_valued(names: tuple[str, ...]) -> Select[Any]:
    result = schema.result.c
    statement = narrow_by(select_results(result.id, result.report), names).order_by(result.position)
    return statement.where(result.kind.in_(schema.VALUED))


@cache
def _select_earlier(names: tuple[str, ...]) -> Select[Any]:
    run = schema.run.c
    return (
        narrow_by(select_results(run.run_id, run.created, schema.cell.c.about), names)
        .outerjoin(schema.cell, _of_cell())
        .where(schema.result.c.kind == "launch", run.hidden.is_(False))
        .distinct()
        .order_by(run.created.desc(), run.run_id.desc())
    )


@cache
def _select_latencies(names: tuple[str, ...], *, with_hidden: bool) -> Select[Any]:
    result, run = schema.result.c, schema.run.c
    columns = (result.id, schema.config.c.mode, run.run_id, run.created, schema.cell.c.about)
    statement = select_results(*columns).outerjoin(schema.cell, _of_cell())
    statement = narrow_by(statement, names, "latency")
    if not with_hidden:
        statement = statement.where(run.hidden.is_(False))
    return statement.order_by(result.created.desc(), run.run_id.desc(), result.position)


@cache
def _select_wrong(*, of_own_run: bool) -> Select[Any]:
    result, run = schema.result.c, schema.run.c
    is_own_run = run.run_id == bindparam("own_run")
    is_modelled = schema.config.c.evidence == str(Evidence.MODELLED)
    statement = select_results(result.reason, result.status, run.run_id).where(
        schema.UNDONE,
        result.version == bindparam("of_version_key"),
        (result.status == "wrong") | ((result.status == "failed") & is_modelled),
        is_own_run if of_own_run else run.hidden.is_(False) & (result.is_latest | is_own_run),
    )
    return statement.order_by(run.created.desc(), run.run_id, result.position).limit(1)


@cache
def _select_candidates(names: tuple[str, ...], *, of_any_run: bool) -> Select[Any]:
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
    statement = narrow_by(select_results(*columns), names)
    statement = statement.where(schema.result.c.kind != "noise").distinct()
    if of_any_run:
        statement = statement.where(run.hidden.is_(False), schema.result.c.is_latest)
    return statement


def _of_cell() -> ColumnElement[bool]:
    """Joins the cell of a result."""
    result, cell = schema.result.c, schema.cell.c
    of_run = (cell.run == result.run) & (cell.version == result.version)
    return of_run & (cell.workload == schema.config.c.workload) & (cell.describes == 1)
