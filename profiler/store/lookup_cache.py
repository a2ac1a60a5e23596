"""Caches rows that never change, because their key is made from their content, and answers of one state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import Connection, Select, select

from profiler.evidence.cell import Cell
from profiler.evidence.values import MetricSet
from profiler.store import schema
from profiler.store.rows import Environment, Rows, VersionInfo, capabilities
from profiler.store.statements import key_batches

T = TypeVar("T")
Q = TypeVar("Q")


_MOST_NAMED = 200_000  # points: 24 bytes each, and what they share with others


class PointNames(NamedTuple):
    """What a point of a series is called: a list a field, an item a point. It is never changed."""

    run_ids: list[str]
    versions: list[str]
    created: list[datetime]


class LookupCache:
    """Metric sets, run ids, environments of runs and version names, by their keys; versions, cells.

    And what points of series are called, by a digest of their runs, versions and times.

    Threads may share it.
    """

    def __init__(self) -> None:
        metric_set, run, version = schema.metric_set.c, schema.run.c, schema.version.c
        set_columns = (metric_set.names, metric_set.units, metric_set.kinds)
        self.metric_sets = _Lookup(select(metric_set.id, *set_columns), metric_set.id, _metric_set)
        self.runs = _Lookup(select(run.id, run.run_id), run.id, str)
        environment = (run.compute_capability, run.driver, run.ncu_version, run.gpus)
        self.environments = _Lookup(select(run.id, *environment), run.id, _environment)
        self.versions = _Lookup(select(version.id, version.name), version.id, str)
        self.named_points = _NamedPoints()
        self.version_infos: _OfOneState[str | None, Rows[VersionInfo]] = _OfOneState()  # by family
        self.cell_infos: _OfOneState[str | None, Rows[Cell]] = _OfOneState()  # by family


class _NamedPoints:
    """The names of the points of series: to look up ten thousand takes as long as to read their values."""

    def __init__(self) -> None:
        self._known: dict[bytes, PointNames] = {}

    def get_all(
        self, digests: Sequence[bytes], name: Callable[[Sequence[int]], Iterable[PointNames]]
    ) -> list[PointNames]:
        """The names for each digest; `name` makes those at the places that it gets."""
        known = self._known
        found = {digest: known[digest] for digest in digests if digest in known}
        missing = {digest: place for place, digest in enumerate(digests) if digest not in found}
        found.update(zip(missing, name(tuple(missing.values())), strict=True))
        if missing:
            kept = {**known, **found}
            is_much = sum(len(names.run_ids) for names in kept.values()) > _MOST_NAMED
            self._known = {} if is_much else kept
        return [found[digest] for digest in digests]


class _OfOneState(Generic[Q, T]):
    """Answers by question, kept until the index changes."""

    def __init__(self) -> None:
        self._answers: tuple[str, dict[Q, T]] = "", {}

    def get(self, data_version: str, question: Q, ask: Callable[[], T]) -> T:
        """The answer in that state of the index; it is asked for where it is not known."""
        state, answers = self._answers
        if state != data_version:
            answers = {}
            self._answers = data_version, answers
        if question not in answers:
            answers[question] = ask()
        return answers[question]


class _Lookup(Generic[T]):
    def __init__(self, statement: Select[Any], key: Any, make: Callable[..., T]) -> None:
        self._statement, self._key, self._make = statement, key, make
        self._values: dict[int, T] = {}

    def get(self, connection: Connection, keys: Iterable[int]) -> Mapping[int, T]:
        """The rows of these keys, where they exist, and maybe others that were read before."""
        for batch in key_batches(set(keys).difference(self._values)):
            for key, *columns in connection.execute(self._statement.where(self._key.in_(batch))):
                self._values[key] = self._make(*columns)
        return self._values


def _environment(capability: str | None, driver: str | None, ncu: str | None, gpus: str) -> Environment:
    return Environment(capability, driver, ncu, capabilities(gpus))


def _metric_set(names: str, units: str, kinds: str) -> MetricSet:
    return MetricSet(tuple(json.loads(names)), tuple(json.loads(units)), kinds)
