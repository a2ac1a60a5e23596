"""The metrics of a pair as a list: each once, what changed apart from what did not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.compare import resolve_names
from profiler.compare.comparison import Comparison, compare
from profiler.compare.metric_groups import MetricGroup, group_metrics, is_changed
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.evidence.values import State, Value, pack_values
from profiler.statistics.verdict import Verdict
from tests import made

DURATION, READ = "gpu__time_duration.sum", "dram__bytes_read.sum"


def compared(a: dict[str, Value], b: dict[str, Value]) -> Comparison:
    sides = [Side(name, (launch(values),)) for name, values in (("A", a), ("B", b))]
    return compare(*sides, load_metrics())


def launch(values: dict[str, Value]) -> Launch:
    return replace(made.launch("k", 1e6), values=pack_values(values))


def group(comparison: Comparison, name: str) -> MetricGroup:
    (pair,) = comparison.pairs
    (found,) = [group for group in group_metrics(pair.metrics) if group.name == name]
    return found


@pytest.fixture(scope="module")
def ncar(made_reports: Path) -> Comparison:
    names = [str(made_reports / "ncar" / f"{name}.ncu-rep") for name in ("MW_Baseline", "MW_DivToMult")]
    return compare(*resolve_names.resolve_all(names, lambda: None), load_metrics())


def test_every_metric_of_a_pair_is_in_one_place(ncar: Comparison) -> None:
    for pair in ncar.pairs:
        listed = [
            change.concept
            for group in group_metrics(pair.metrics)
            for part in (group.changed, group.unchanged, group.repeats, group.zero, *group.absent.values())
            for change in part
        ]
        assert sorted(listed) == sorted(change.concept for change in pair.metrics)


def test_what_no_rule_calls_the_same_is_changed(ncar: Comparison) -> None:
    pair = ncar.pairs[0]
    for metrics in group_metrics(pair.metrics):
        for change in metrics.changed:
            assert change.verdict is not Verdict.SAME
        for change in metrics.unchanged:
            assert change.verdict is Verdict.SAME or change.a.number == change.b.number


def test_a_number_on_one_side_alone_is_a_change_and_none_on_either_is_absent_by_reason() -> None:
    failed = Value(None, state=State.FAILED)
    comparison = compared(
        {DURATION: Value(1e6, "ns"), READ: failed}, {DURATION: Value(1e6, "ns"), READ: Value(5.0, "byte")}
    )
    memory = group(comparison, "memory")
    assert [change.metric for change in memory.changed] == [READ]
    assert memory.changed[0].verdict is Verdict.MISSING
    assert all("not collected" in why or "not available" in why for why in memory.absent)
    both_failed = compared(
        {DURATION: Value(1e6, "ns"), READ: failed}, {DURATION: Value(1e6, "ns"), READ: failed}
    )
    (change,) = group(both_failed, "memory").absent["failed (NaN)"]
    assert change.metric == READ
    assert not is_changed(change)


def test_words_are_looked_for_in_label_ncu_name_and_group(ncar: Comparison) -> None:
    metrics = ncar.pairs[0].metrics
    assert {found.name for found in group_metrics(metrics, "dram__bytes READ")} == {"memory"}
    assert {found.name for found in group_metrics(metrics, "stalls")} == {"stalls"}
    assert group_metrics(metrics, "nothing has this") == ()
