"""Many pairs at once: what is said once, what is judged as one table, and what somebody let pass."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest

from profiler.compare.counter_noise import CounterNoise
from profiler.compare.noise_model import NoiseModel
from profiler.errors import Exit
from profiler.evidence.metric_table import MetricTable
from profiler.gate.acknowledgement import Acknowledgement
from profiler.gate.finding import Outcome
from profiler.gate.judgement import judge
from profiler.statistics.counters import Wobble
from profiler.statistics.multiple_testing import judge_together
from profiler.statistics.verdict import Verdict
from tests.gate.made_sides import BARRIERS, DRAM_READ, DURATION, calls, facts, launch, lines, pair, side

NOW = datetime.now(UTC)


def acknowledged(**about: Any) -> Acknowledgement:
    """Of any regression of mine/alpha, or of what `about` says."""
    anything = Acknowledgement("id", "mine", "alpha", None, None, None, "a phase more", "ada", NOW)
    return replace(anything, **about)


def test_one_finding_of_many_places_is_said_once_with_all_of_them(table: MetricTable) -> None:
    before, after = facts(), facts(**{BARRIERS: 4})
    pairs = [
        pair(before, replace(after, workload=size, gpu=arch), workload=size, gpu=arch)
        for size in ("head dim 64", "head dim 128")
        for arch in ("sm_80", "sm_90a")
    ]
    pairs = [replace(each, a=replace(before, workload=each.workload, gpu=each.gpu)) for each in pairs]
    verdicts = judge(pairs, table)
    assert verdicts.compared == 4
    (finding,) = verdicts.of(Outcome.FAILED)
    assert (finding.workload, finding.gpu) == ("head dim 64, head dim 128", "sm_80, sm_90a")
    assert finding.line == "barriers: 3 → 4"


def test_a_slower_launch_is_a_finding_of_each_place(table: MetricTable) -> None:
    slow, fast = side(launch(1.2e6)), side(launch(1e6))
    pairs = [
        pair(replace(fast, workload=size), replace(slow, workload=size), workload=size)
        for size in ("small", "large")
    ]
    assert [finding.workload for finding in judge(pairs, table).of(Outcome.FAILED)] == ["small", "large"]


def test_what_passes_of_one_pair_says_nothing_of_another(table: MetricTable) -> None:
    same, slower = pair(side(launch(1e6)), side(launch(1e6))), pair(None, side(launch(1e6)))
    verdicts = judge([same, slower], table)
    assert (verdicts.compared, verdicts.exit_code()) == (1, Exit.UNJUDGED)


def test_nothing_compared_is_never_a_pass(table: MetricTable) -> None:
    assert judge([], table).exit_code() is Exit.UNJUDGED
    assert judge([pair(None, facts(), noted=True)], table).exit_code() is Exit.UNJUDGED


def test_many_latencies_are_judged_as_one_table(table: MetricTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one row would be called by itself does not stand among others that say nothing."""
    seen: list[int] = []
    room = sys.modules["profiler.compare.judged"]
    together = judge_together
    monkeypatch.setattr(room, "judge_together", lambda rows: seen.append(len(rows)) or together(rows))
    sides = [side(version=f"v{seed}", latencies=(calls(seed=seed),)) for seed in range(4)]
    assert judge([pair(sides[0], b) for b in sides[1:]], table).exit_code() is Exit.PASS
    assert seen == [3]


@pytest.mark.slow
@pytest.mark.parametrize("on", [(), ("dram_read",)])
def test_durations_of_many_comparisons_are_one_table_and_so_are_counters_asked_for(
    table: MetricTable, on: tuple[str, ...]
) -> None:
    """One of 20 that equal builds would reach once in 100 is no regression; one far beyond them is."""
    noise = NoiseModel(
        counter_noise=lambda _key, kernel, *_: CounterNoise(Wobble(tuple(np.linspace(0, 0.05, 100))), kernel)
    )
    name = DRAM_READ if on else DURATION

    def outcome(level: float, others: int) -> Outcome:
        counters = [{DURATION: 1e6, DRAM_READ: 1e9} for _ in range(2)]
        counters[1][name] *= level
        before, after = (
            side(launch(counter.pop(DURATION), **counter), version=version)
            for counter, version in zip(counters, ("alpha", "beta"), strict=True)
        )
        nearly = side(launch(1.002e6, **{DRAM_READ: 1.002e9}), version="gamma")
        pairs = [pair(before, after), *(pair(before, nearly) for _ in range(others))]
        (finding,) = [
            finding
            for finding in judge(pairs, table, on=on, noise=noise).findings
            if finding.effect == pytest.approx(level - 1)
        ]
        return finding.outcome

    assert outcome(1.056, others=0) is Outcome.FAILED
    assert outcome(1.056, others=19) is Outcome.UNJUDGED
    assert outcome(1.6, others=19) is Outcome.FAILED


def test_a_concept_asked_for_is_looked_for_in_every_subject(table: MetricTable) -> None:
    measured = pair(side(launch(1e6)), side(launch(1e6)), subject="mine/measured")
    compiled = pair(facts(), facts(), subject="mine/compiled")
    (finding,) = judge([measured, compiled], table, on=["duration"]).of(Outcome.UNJUDGED)
    assert (finding.subject, finding.verdict, finding.concept) == (
        "mine/compiled",
        Verdict.MISSING,
        "duration",
    )


class TestAcknowledged:
    def outcomes(self, table: MetricTable, *acknowledgements: Acknowledgement, **more: Any) -> dict[str, str]:
        """The outcome of every finding that did not pass, and what it says of an acknowledgement."""
        worse = pair(facts(), facts(**{BARRIERS: 4}), **more)
        findings = judge([worse], table, acknowledged=acknowledgements).findings
        return {
            finding.outcome: finding.acknowledged
            for finding in findings
            if finding.outcome is not Outcome.PASSED
        }

    def test_what_somebody_let_pass_is_listed_and_passes(self, table: MetricTable) -> None:
        let_pass = acknowledged(concept="static_bar", until_day=date(2999, 1, 1))
        assert self.outcomes(table, let_pass) == {"acknowledged": "ada, until 2999-01-01: a phase more"}

    def test_one_that_ended_fails_again_and_says_when(self, table: MetricTable) -> None:
        ended = acknowledged(until_day=date(2001, 1, 1), why="known")
        words = "not covered: its last day, 2001-01-01, is over (ada, until 2001-01-01: known)"
        assert self.outcomes(table, ended) == {"failed": words}

    def test_one_with_a_limit_lets_no_larger_change_pass(self, table: MetricTable) -> None:
        """Three barriers became four: a third more."""
        assert "up to 9 %" in self.outcomes(table, acknowledged(up_to=0.09))["failed"]
        assert [*self.outcomes(table, acknowledged(up_to=0.5))] == ["acknowledged"]

    def test_one_until_a_run_is_about_results_as_old_as_that_run(self, table: MetricTable) -> None:
        until = acknowledged(until_run="20260101T000000-mine", until_made=NOW)
        assert [*self.outcomes(table, until, created=NOW)] == ["acknowledged"]
        later = NOW.replace(year=NOW.year + 1)
        assert "these are newer" in self.outcomes(table, until, created=later)["failed"]

    @pytest.mark.parametrize(
        "about",
        [{"version": "beta"}, {"concept": "static_spills"}, {"workload": "head dim 128"}, {"gpu": "sm_90a"}],
    )
    def test_one_of_something_else_lets_nothing_pass(self, table: MetricTable, about: dict[str, str]) -> None:
        assert self.outcomes(table, acknowledged(**about)) == {"failed": ""}

    def test_what_is_wrong_nobody_can_let_pass(self, table: MetricTable) -> None:
        wrong = pair(facts(), facts(wrong="a race"))
        verdicts = judge([wrong], table, acknowledged=[acknowledged()])
        assert lines(verdicts, Outcome.FAILED) == ["wrong: a race"]
