"""Caches rows that never change, because their key is made from their content, and answers of one state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Select, select

from profiler.evidence import MetricSet
from profiler.store import schema
from profiler.store.rows import CellInfo, Environment, Rows, VersionInfo
from profiler.store.statements import key_batches

T = TypeVar("T")
Q = TypeVar("Q")


class LookupCache:
    """Metric sets, run ids, environments of runs and version names, by their keys; versions, cells.

    Threads may share it.
    """

    def __init__(self) -> None:
        metric_set, run, version = schema.metric_set.c, schema.run.c, schema.version.c
        set_columns = (metric_set.names, metric_set.units, metric_set.kinds)
        self.metric_sets = _Lookup(select(metric_set.id, *set_columns), metric_set.id, _metric_set)
        self.runs = _Lookup(select(run.id, run.run_id), run.id, str)
        environment = (run.compute_capability, run.driver, run.ncu_version)
        self.environments = _Lookup(select(run.id, *environment), run.id, Environment)
        self.versions = _Lookup(select(version.id, version.name), version.id, str)
        self.version_infos: _OfOneState[str | None, Rows[VersionInfo]] = _OfOneState()  # by family
        self.cell_infos: _OfOneState[str | None, Rows[CellInfo]] = _OfOneState()  # by family


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


def _metric_set(names: str, units: str, kinds: str) -> MetricSet:
    return MetricSet(tuple(json.loads(names)), tuple(json.loads(units)), kinds)
