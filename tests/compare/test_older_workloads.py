"""Workloads that only older runs have stand apart from today's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from profiler.compare.comparison import Comparison, compare
from profiler.compare.older_workloads import MEASURED_DAYS, split_older
from profiler.evidence.launch import Session
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from tests import made

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def pair(days_a: float, days_b: float, evidence: Evidence = Evidence.MODELLED) -> Comparison:
    """A comparison of sides whose runs are that many days old."""
    a, b = (
        Side(
            "v",
            (made.launch("k", 1e6),),
            evidence=evidence,
            session=Session(created=NOW - timedelta(days=days)),
        )
        for days in (days_a, days_b)
    )
    return compare(a, b, load_metrics())


def split(pairs: dict[str, Comparison]) -> tuple[list[str], list[str]]:
    current, older = split_older(pairs)
    return list(current), list(older)


def test_facts_that_the_newest_run_left_out_are_older() -> None:
    assert split({"new": pair(0, 0), "gone": pair(1, 1), "new too": pair(0, 0)}) == (
        ["new", "new too"],
        ["gone"],
    )


def test_each_side_is_held_against_its_own_newest_run() -> None:
    assert split({"x": pair(7, 0), "y": pair(7, 0)}) == (["x", "y"], [])
    assert split({"x": pair(7, 0), "y": pair(9, 0)}) == (["x"], ["y"])


def test_measured_workloads_may_be_timed_in_turns() -> None:
    pairs = {
        f"{days}": pair(days, days, Evidence.MEASURED) for days in (0, MEASURED_DAYS - 1, MEASURED_DAYS + 1)
    }
    assert split(pairs) == (["0", "29"], ["31"])


def test_a_workload_whose_run_has_no_time_is_older_and_alone_it_is_current() -> None:
    for evidence in (Evidence.MODELLED, Evidence.MEASURED):
        a, b = (Side("v", (made.launch("k", 1e6),), evidence=evidence) for _ in "AB")
        timeless = compare(a, b, load_metrics())
        assert split({"x": timeless}) == (["x"], [])
        assert split({"x": timeless, "y": pair(0, 0, evidence)}) == (["y"], ["x"])
