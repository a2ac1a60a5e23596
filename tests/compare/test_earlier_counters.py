"""A version whose newest run was only timed: its counters are those of an earlier run of the same code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from profiler.bundles.run import COLLECT, Result, Run, Samples
from profiler.compare.comparison import compare
from profiler.documents.comparison_text import earlier_counters, warnings
from profiler.evidence.launch import Report, Session
from profiler.evidence.metric_table import MetricTable, load_metrics
from profiler.evidence.side import Side
from profiler.statistics.verdict import Verdict
from profiler.store.index import Store
from tests import made

GPU = "NVIDIA Test 1"
MODE = "events; cache warm; clock none"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'index.db'}") as opened:
        yield opened


@pytest.fixture(scope="module")
def table() -> MetricTable:
    return load_metrics()


def profiled(
    version: str, duration: float, minute: int, code: str | None = "same", session: Session | None = None
) -> tuple[Run, Mapping[str, Report]]:
    run, reports = made.imported(
        version, made.launch(duration=duration), workload="big", minute=minute, session=session
    )
    (result,) = run.results
    return replace(run, results=(replace(result, source_sha256=code),)), reports


def timed(
    levels: Mapping[str, float], minute: int, code: str | None = "same"
) -> tuple[Run, dict[str, Report]]:
    created = made.START + timedelta(minutes=minute)
    numbers = tuple(place // 4 for place in range(80))
    results = tuple(
        Result(
            "gemms",
            version,
            "big",
            source_sha256=code,
            samples=(Samples(MODE, tuple(ns + place % 4 for place in range(80)), numbers),),
        )
        for version, ns in levels.items()
    )
    run = Run(f"{created:%Y%m%dT%H%M%S}-gemms-timed", COLLECT, created, {"gpu": GPU}, results)
    return run, {}


def side(store: Store, version: str, **selected: str) -> Side:
    return store.side(family="gemms", version=version, workload="big", **selected)


def test_counters_are_those_of_the_newest_earlier_run_of_the_same_code(store: Store) -> None:
    for minute, duration in ((0, 1000.0), (1, 1100.0)):
        store.add(*profiled("v1", duration, minute))
    store.add(*timed({"v1": 900.0}, 2))
    got = side(store, "v1")
    assert got.run_id is not None
    assert got.run_id.endswith("timed")
    assert [launch.values[made.DURATION].number for launch in got.launches] == [1100.0]
    assert got.earlier_counters is not None
    assert got.earlier_counters.is_same_code
    assert got.launch_run_id == got.earlier_counters.run_id != got.run_id
    assert got.launch_session.ncu_version == "2025.3.1"
    assert got.session.ncu_version is None, "the newest run was not profiled"


def test_counters_of_other_code_are_not_taken(store: Store) -> None:
    store.add(*profiled("v1", 1000.0, 0, "same"))
    store.add(*profiled("v1", 1100.0, 1, "other"))
    store.add(*timed({"v1": 900.0}, 2))
    assert [launch.values[made.DURATION].number for launch in side(store, "v1").launches] == [1000.0]
    store.add(*timed({"v1": 900.0}, 3, "new"))
    got = side(store, "v1")
    assert got.launches == ()
    assert got.earlier_counters is None
    assert got.launch_run_id == got.run_id


def test_a_run_that_is_named_has_only_its_own_counters(store: Store) -> None:
    store.add(*profiled("v1", 1000.0, 0))
    run, reports = timed({"v1": 900.0}, 1)
    store.add(run, reports)
    got = side(store, "v1", run_id=run.run_id)
    assert (got.launches, got.earlier_counters) == ((), None)


def test_the_verdict_is_that_of_the_timed_run_and_words_name_the_run_of_the_counters(
    store: Store, table: MetricTable
) -> None:
    store.add(*profiled("v1", 100_000.0, 0))
    store.add(*profiled("v2", 50_000.0, 1, None))
    store.add(*timed({"v1": 900.0}, 2))
    store.add(*timed({"v1": 900.0, "v2": 1800.0}, 3))
    comparison = compare(side(store, "v1"), side(store, "v2"), table)
    assert [latency.verdict for latency in comparison.latency] == [Verdict.WORSE]
    assert comparison.pairs == (), "nobody said of which code the counters of v2 are, but of its calls"
    assert len(earlier_counters(comparison)) == 1

    store.add(*profiled("v2", 50_000.0, -1))
    comparison = compare(side(store, "v1"), side(store, "v2"), table)
    assert [latency.verdict for latency in comparison.latency] == [Verdict.WORSE]
    (pair,) = comparison.pairs
    assert pair.verdict is Verdict.BETTER
    a, b = earlier_counters(comparison)
    assert a.startswith("counters of A: run 20250301T120000-gemms-v1")
    assert "of 2025-03-01 12:00 UTC, the same code; the newest run was only timed" in a
    assert b.startswith("counters of B: run 20250301T115900-gemms-v2")
    assert {a, b} <= set(warnings(comparison))


def test_other_conditions_of_the_earlier_runs_leave_the_counters_without_a_verdict(
    store: Store, table: MetricTable
) -> None:
    for version, clock in (("v1", "base"), ("v2", "none")):
        session = Session("2025.3.1", clock_control=clock)
        store.add(*profiled(version, 1000.0, int(version[1]), session=session))
    store.add(*timed({"v1": 900.0, "v2": 1800.0}, 3))
    comparison = compare(side(store, "v1"), side(store, "v2"), table)
    assert comparison.comparable, "the calls are"
    assert [latency.verdict for latency in comparison.latency] == [Verdict.WORSE]
    (pair,) = comparison.pairs
    assert pair.verdict is Verdict.NOT_COMPARABLE
    assert pair.headline is not None
    assert pair.headline.reason == "clock control differs: base and none"


def test_of_code_that_nobody_recorded_the_words_say_so(store: Store, table: MetricTable) -> None:
    for version in ("v1", "v2"):
        store.add(*profiled(version, 1000.0, int(version[1]), None))
    store.add(*timed({"v1": 900.0, "v2": 1800.0}, 3, None))
    comparison = compare(side(store, "v1"), side(store, "v2"), table)
    assert len(comparison.pairs) == 1
    assert all("the same version, its code not recorded" in line for line in earlier_counters(comparison))
