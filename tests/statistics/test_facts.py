"""Compiler facts: what differs, what fails a gate, what the same machine code means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.statistics import facts
from profiler.statistics.decision import Decision
from profiler.statistics.verdict import Verdict

BEFORE: dict[str, facts.Fact] = {
    "static__registers": 64,
    "static__spill_bytes": 0,
    "static__blocks_per_sm": 4,
    "static__opcode_BAR": 3,
    "static__opcode_HMMA": 128,
    "static__over_budget": "nothing",
    "modelled__bank_conflicts": 512,
}


def after(**changes: facts.Fact) -> facts.FactsDecision:
    return facts.judge_facts(BEFORE, {**BEFORE, **changes})


def test_equal_facts_are_the_same() -> None:
    decision = after()
    assert decision.verdict is Verdict.SAME
    assert decision.changes == ()


def test_every_difference_is_a_change_and_most_fail_nothing() -> None:
    decision = after(static__opcode_HMMA=64, static__registers=60)
    assert decision.verdict is Verdict.CHANGED
    assert set(decision.changes) == {("static__opcode_HMMA", 128, 64), ("static__registers", 64, 60)}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"static__spill_bytes": 8}, "spills: 0 → 8 B"),
        ({"static__blocks_per_sm": 3}, "blocks per SM: 4 → 3"),
        ({"static__registers": 65}, "registers: 64 → 65"),
        ({"static__opcode_BAR": 4}, "barriers: 3 → 4"),
        ({"modelled__bank_conflicts": 1024}, "modelled bank conflicts: 512 → 1024"),
        ({"static__over_budget": "72 registers, budget 64"}, "over its budget: 72 registers, budget 64"),
    ],
)
def test_what_a_gate_fails_on_is_named(changes: dict[str, facts.Fact], line: str) -> None:
    decision = after(**changes)
    assert decision.verdict is Verdict.WORSE
    assert [failure.words for failure in decision.failures] == [line]


def test_registers_within_a_unit_of_eight_cost_nothing() -> None:
    assert facts.judge_facts({"static__registers": 57}, {"static__registers": 64}).failures == ()
    more = facts.judge_facts({"static__registers": 57}, {"static__registers": 77})
    assert [failure.words for failure in more.failures] == ["registers: 57 → 77"]


def test_for_the_better_nothing_fails() -> None:
    decision = after(static__blocks_per_sm=5, static__registers=40, static__opcode_BAR=2)
    assert decision.verdict is Verdict.CHANGED
    assert decision.failures == ()


def test_a_watched_fact_that_is_gone_is_missing_never_zero() -> None:
    decision = after(static__spill_bytes=None)
    assert decision.verdict is Verdict.MISSING
    assert decision.missing == ("spills",)


def test_the_same_machine_code_that_got_slower_blames_the_environment() -> None:
    slower = Decision(Verdict.WORSE, "+3 %", "live pair", effect=0.03, fails_gate=True)
    noted = facts.note_same_code(slower, True)
    assert "the environment moved" in noted.reason
    assert noted.remark is None
    noted_again = facts.note_same_code(replace(slower, remark="12 rounds would decide"), True)
    assert noted_again.remark is not None
    assert noted_again.remark.startswith("12 rounds would decide; the machine code is the same")
    assert noted.verdict is Verdict.WORSE
    assert facts.note_same_code(slower, False) is slower
    assert facts.note_same_code(slower, None) is slower
