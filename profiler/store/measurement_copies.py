"""Finds the run that holds a measurement already: the same launches, from a report, its copy or an export."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from profiler.evidence.launch import Report
from profiler.evidence.one_measurement import is_one_measurement, key_launch, shared_digits
from profiler.store import packing, schema
from profiler.store.lookup_cache import LookupCache
from profiler.store.results import load
from profiler.store.statements import capped

_ROUNDED = 0.006  # share of a duration that the fewest printed digits may have rounded away


def find_run(connection: Connection, lookups: LookupCache, report: Report) -> str | None:
    """The run that holds the launches of a report already; None where there is none.

    Reports that say when they were made, at different times, are two measurements.
    """
    key = key_launch(report)
    if key is None:
        return None
    for row in _candidates(connection, *key):
        if shared_digits(key[1], row.duration) is None:
            continue
        created = packing.parse_session(row.session).created
        if None not in (created, report.session.created) and created != report.session.created:
            continue
        result = schema.result.c
        ids = select(result.id).where(result.report == row.report).order_by(result.ordinal, result.position)
        held = load(connection, lookups, tuple(connection.scalars(ids)))
        if is_one_measurement(report.launches, tuple(held)):
            return str(row.run_id)
    return None


def _candidates(connection: Connection, base_name: str, ns: float) -> list[Any]:
    """The reports with a launch of a kernel that took as long, to the fewest digits, and their runs."""
    result, config, run, report = schema.result.c, schema.config.c, schema.run.c, schema.report.c
    configs = select(config.id).where(config.base_name == base_name)
    statement = (
        select(result.report, result.duration, run.run_id, report.session)
        .join(schema.run, run.id == result.run)
        .join(schema.report, report.id == result.report)
        .where(
            result.config.in_(configs),
            result.kind == "launch",
            result.duration.between(ns * (1 - _ROUNDED), ns * (1 + _ROUNDED)),
        )
        .order_by(result.created, run.run_id)
    )
    return list(capped(connection, statement))
