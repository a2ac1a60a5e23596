"""Rule results: their rank, and what became of each between two launches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.compare.match_launches import match
from profiler.evidence.launch import Launch, RuleResult
from profiler.reports import read, rule_changes

SLOW = RuleResult(
    "CPIStall", "Warp Stall", "WarpStateStats", "optimization", "Long", "waits 12.5 cycles", 8.0, "global"
)


def launches(path: Path) -> tuple[Launch, ...]:
    return read.read_report(path).launches


def states(a: list[RuleResult], b: list[RuleResult]) -> list[str]:
    return [change.state for change in rule_changes.compare_rules(a, b)]


def test_references_in_a_message_read_as_words() -> None:
    message = "Look at @section:LaunchStats:Launch Statistics@ and @url:the guide:https://docs.nvidia.com/x@."
    assert rule_changes.plain_message(message) == "Look at Launch Statistics and the guide."


@pytest.mark.slow
def test_no_message_of_a_real_report_keeps_a_reference(reports: Path) -> None:
    for name in ("llm.c/adamw_coalsecing_shared.ncu-rep", "ncar/MW_Baseline.ncu-rep", "mistic/prof1.ncu-rep"):
        for one in launches(reports / name):
            assert not [rule for rule in one.rules if "@" in rule_changes.plain_message(rule.message)]


def test_a_global_estimate_stands_before_a_larger_local_one(reports: Path) -> None:
    rules = rule_changes.rank_rules(launches(reports / "llm.c/adamw_coalsecing_shared.ncu-rep")[0].rules)
    told = [(rule.speedup_scope, rule.speedup_pct) for rule in rules]
    assert [scope for scope, _ in told] == ["global"] * 3 + ["local"] * 2 + [None] * 3
    numbers = [number for _, number in told if number is not None]
    assert numbers[3] > 90 > 10 > numbers[0]
    assert numbers[:3] == sorted(numbers[:3], reverse=True)


def test_without_estimates_what_asks_for_something_stands_before_what_is_well(reports: Path) -> None:
    rules = rule_changes.rank_rules(launches(reports / "ncar/MW_Baseline.ncu-rep")[2].rules)
    kinds = [rule.kind for rule in rules]
    assert kinds == sorted(kinds, key=["warning", "ok"].index)
    assert set(kinds) == {"warning", "ok"}


@pytest.mark.slow
def test_a_launch_against_itself_changes_nothing_though_identifiers_repeat(reports: Path) -> None:
    for name in ("llm.c/adamw_coalsecing_shared.ncu-rep", "mistic/prof1.ncu-rep", "ncar/MW_Baseline.ncu-rep"):
        for one in launches(reports / name):
            assert states(list(one.rules), list(one.rules)) == [rule_changes.SAME] * len(one.rules)
            assert states(list(one.rules), list(reversed(one.rules))) == [rule_changes.SAME] * len(one.rules)


@pytest.mark.slow
def test_two_untouched_kernels_keep_their_rules_and_the_edited_one_gains_a_stall(reports: Path) -> None:
    sides = [launches(reports / "ncar" / name) for name in ("MW_Baseline.ncu-rep", "MW_DivToMult.ncu-rep")]
    pairs = match(*sides).pairs
    found = {pair.a.base_name: rule_changes.compare_rules(pair.a.rules, pair.b.rules) for pair in pairs}
    edited = found.pop("compute_tendencies_x_279_gpu")
    assert {change.state for changes in found.values() for change in changes} == {rule_changes.SAME}
    new = [change.rule for change in edited if change.state == rule_changes.NEW]
    assert [rule.title for rule in new] == ["long_scoreboard", ""]
    changed = {
        change.rule.identifier: change.why for change in edited if change.state == rule_changes.CHANGED
    }
    assert changed == {
        "HighPipeUtilization": "High Utilization → Balanced",
        "SOLBottleneck": "warning → ok, High Compute Throughput → High Throughput",
    }


def test_addresses_and_numbers_in_a_message_are_no_change(reports: Path) -> None:
    a, b = (launches(reports / "mistic" / f"prof{number}.ncu-rep")[0] for number in (1, 2))
    assert states(list(a.rules), list(b.rules)) == [rule_changes.SAME] * len(a.rules)


def test_an_estimate_that_moved_is_a_change_and_one_that_trembles_is_not() -> None:
    assert states([SLOW], [replace(SLOW, speedup_pct=8.9, message="waits 13 cycles")]) == [rule_changes.SAME]
    (change,) = rule_changes.compare_rules([SLOW], [replace(SLOW, speedup_pct=9.1)])
    assert (change.state, change.why) == (rule_changes.CHANGED, "estimate 8.0 → 9.1 %")
    (change,) = rule_changes.compare_rules([SLOW], [replace(SLOW, speedup_pct=None, speedup_scope=None)])
    assert (change.state, change.why) == (rule_changes.CHANGED, "an estimate on one side only")


def test_swapping_the_sides_swaps_new_and_gone() -> None:
    other = replace(SLOW, identifier="Occupancy", message="limited by registers", speedup_pct=20.0)
    assert states([SLOW], [SLOW, other]) == [rule_changes.NEW, rule_changes.SAME]
    assert states([SLOW, other], [SLOW]) == [rule_changes.GONE, rule_changes.SAME]


def test_of_several_results_of_one_rule_none_is_paired_by_guess() -> None:
    a = [replace(SLOW, title=f"A{n}", message=f"about {word}") for n, word in enumerate(("loads", "stores"))]
    b = [replace(SLOW, title=f"B{n}", message=f"on {word}") for n, word in enumerate(("atomics", "copies"))]
    assert states(a, b) == [rule_changes.NEW] * 2 + [rule_changes.GONE] * 2
