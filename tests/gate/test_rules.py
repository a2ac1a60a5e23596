"""The rules of the gate on one pair: what fails it, what nobody could judge, and in which words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from profiler.compare.noise_model import NoiseModel
from profiler.errors import Exit
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.gate.finding import Check, Outcome
from profiler.gate.judgement import judge
from profiler.statistics.noise_floor import NoiseFloor
from profiler.statistics.verdict import Verdict
from tests.gate.made_sides import (
    BARRIERS,
    BUDGET,
    COLD,
    DRAM_READ,
    DURATION,
    EXECUTED,
    calls,
    facts,
    judged,
    launch,
    lines,
    pair,
    side,
)

FAILED, UNJUDGED, NOTED, PASSED = Outcome.FAILED, Outcome.UNJUDGED, Outcome.NOTED, Outcome.PASSED
OVER = "72 registers, budget 64"


class TestFacts:
    def test_equal_facts_pass_and_are_counted(self, table: MetricTable) -> None:
        verdicts = judged(facts(), facts(), table)
        assert verdicts.exit_code() is Exit.PASS
        (line,) = lines(verdicts, PASSED)
        assert line.endswith("rules: nothing worse; every fact is equal")

    @pytest.mark.parametrize(
        ("evidence", "fact", "before", "after", "line"),
        [
            (Evidence.STATIC, BARRIERS, 3, 4, "barriers: 3 → 4"),
            (Evidence.STATIC, "static__registers", 64, 84, "registers: 64 → 84"),
            (Evidence.STATIC, "static__spill_bytes", 0, 8, "spills: 0 → 8 B"),
            (Evidence.STATIC, "static__blocks_per_sm", 4, 3, "blocks per SM: 4 → 3"),
            (
                Evidence.MODELLED,
                "modelled__bank_conflicts",
                4000,
                8000,
                "modelled bank conflicts: 4000 → 8000",
            ),
        ],
    )
    def test_a_fact_that_got_worse_fails_with_the_line_that_names_it(
        self, table: MetricTable, evidence: Evidence, fact: str, before: int, after: int, line: str
    ) -> None:
        old, new = facts(evidence, **{fact: before}), facts(evidence, **{fact: after})
        verdicts = judged(old, new, table)
        assert lines(verdicts, FAILED) == [line]
        assert verdicts.exit_code() is Exit.REGRESSION
        assert judged(new, old, table).exit_code() is Exit.PASS, "the other way it got better"

    def test_what_is_over_its_budget_fails_although_the_baseline_was_too(self, table: MetricTable) -> None:
        over = facts(**{BUDGET: OVER})
        (finding,) = judged(over, over, table).of(FAILED)
        assert (finding.check, finding.line) == (
            Check.BUDGET,
            f"over its budget, as the baseline is: {OVER}",
        )

    @pytest.mark.parametrize("number", [None, "0"])
    def test_a_fact_that_the_baseline_has_as_a_number_and_the_subject_has_not_is_missing(
        self, table: MetricTable, number: str | None
    ) -> None:
        verdicts = judged(facts(), facts(static__spill_bytes=number), table)
        assert lines(verdicts, UNJUDGED) == ["spills: not known, but the baseline has a number"]
        assert verdicts.exit_code(["unclear"]) is Exit.UNJUDGED, "missing is not unclear"

    def test_a_budget_that_is_not_known_any_more_is_missing(self, table: MetricTable) -> None:
        verdicts = judged(facts(), facts(**{BUDGET: None}), table)
        assert lines(verdicts, UNJUDGED) == ["the budget: not known, but the baseline says it"]

    def test_facts_of_a_baseline_that_is_wrong_still_have_to_keep_the_budget(
        self, table: MetricTable
    ) -> None:
        """No speed is held against it; what was right and got wrong is another rule."""
        verdicts = judged(facts(wrong="a race"), facts(**{BUDGET: OVER}), table)
        assert any(
            line.startswith("correct, but the baseline is wrong (a race)") for line in lines(verdicts, PASSED)
        )
        assert {finding.check for finding in verdicts.of(FAILED)} == {Check.BUDGET}


class TestCorrectness:
    def test_a_version_that_became_wrong_fails_once_and_nothing_else_is_asked_of_it(
        self, table: MetricTable
    ) -> None:
        verdicts = judged(facts(), facts(wrong="a race", static__spill_bytes=80), table)
        assert [(finding.check, finding.line) for finding in verdicts.findings] == [
            (Check.CORRECTNESS, "wrong: a race")
        ]

    def test_what_stays_wrong_stays_a_failure(self, table: MetricTable) -> None:
        verdicts = judged(facts(wrong="a race"), facts(wrong="a race"), table)
        assert lines(verdicts, FAILED) == ["wrong, as its baseline is: a race"]

    def test_a_rejected_version_beside_a_right_one_fails_and_beside_itself_is_not_judged(
        self, table: MetricTable
    ) -> None:
        wrong = facts(wrong="a race")
        assert judged(facts(), wrong, table, rejected=True).exit_code() is Exit.REGRESSION
        verdicts = judged(wrong, wrong, table, rejected=True)
        assert lines(verdicts, UNJUDGED) == [
            "expected failure, caught (rejected in the catalogue), as in its baseline: a race"
        ]

    def test_a_rejected_version_of_a_judged_run_has_to_be_wrong(self, table: MetricTable) -> None:
        as_part = {"rejected": True, "rejected_in_run": True}
        wrong, missed = (facts(Evidence.MODELLED, wrong=why) for why in ("a race", None))
        verdicts = judged(wrong, wrong, table, **as_part)
        assert lines(verdicts, NOTED) == ["expected failure, caught (rejected in the catalogue): a race"]
        verdicts = judged(wrong, missed, table, **as_part)
        assert lines(verdicts, FAILED) == [
            "expected failure, not caught (rejected in the catalogue): the check found nothing wrong"
        ]


class TestWithoutBaseline:
    """Whether a version is right, and within its budget, takes no baseline to say."""

    def test_a_new_version_that_is_wrong_or_over_its_budget_fails(self, table: MetricTable) -> None:
        assert lines(judged(None, facts(wrong="a race"), table), FAILED) == ["wrong: a race"]
        verdicts = judged(None, facts(**{BUDGET: OVER}), table, why="no baseline", noted=True)
        assert lines(verdicts, FAILED) == [f"over its budget: {OVER}"]
        assert lines(verdicts, NOTED) == ["no baseline"]

    def test_one_that_is_right_is_missing_its_baseline_and_never_passes(self, table: MetricTable) -> None:
        verdicts = judged(
            None, facts(), table, why="no baseline", next_command="profiler decide baseline set"
        )
        (finding,) = verdicts.of(UNJUDGED)
        assert (finding.verdict, finding.next_command) == (Verdict.MISSING, "profiler decide baseline set")
        assert (verdicts.compared, verdicts.exit_code()) == (0, Exit.UNJUDGED)

    def test_what_was_tried_and_gave_no_result_fails(self, table: MetricTable) -> None:
        verdicts = judged(None, None, table, why="it does not compile", gave_no_result=True)
        assert lines(verdicts, FAILED) == ["it does not compile"]
        verdicts = judged(
            None, None, table, why="it hangs", gave_no_result=True, rejected=True, rejected_in_run=True
        )
        assert lines(verdicts, NOTED) == ["expected failure, caught (rejected in the catalogue): it hangs"]


class TestTime:
    def test_a_slower_launch_fails_and_a_faster_one_passes(self, table: MetricTable) -> None:
        slow, fast = side(launch(1.2e6)), side(launch(1e6))
        (finding,) = judged(fast, slow, table).of(FAILED)
        assert (finding.concept, finding.effect) == ("duration", pytest.approx(0.2))
        assert judged(slow, fast, table).exit_code() is Exit.PASS

    def test_a_short_launch_that_moved_is_unclear_and_may_pass(self, table: MetricTable) -> None:
        verdicts = judged(side(launch(11e3)), side(launch(12e3)), table)
        assert {finding.verdict for finding in verdicts.of(UNJUDGED)} == {Verdict.UNCLEAR}
        assert verdicts.exit_code() is Exit.UNJUDGED
        assert verdicts.exit_code(["unclear"]) is Exit.PASS

    @pytest.mark.parametrize(("before", "after"), [(1e6, None), (None, None)])
    def test_a_duration_that_failed_is_missing_and_may_not_pass(
        self, table: MetricTable, before: float | None, after: float | None
    ) -> None:
        verdicts = judged(side(launch(before)), side(launch(after)), table)
        assert [(finding.verdict, finding.concept) for finding in verdicts.of(UNJUDGED)] == [
            (Verdict.MISSING, "duration")
        ]
        assert verdicts.exit_code(["unclear"]) is Exit.UNJUDGED

    def test_without_a_duration_in_metrics_txt_nothing_decides(self, table: MetricTable) -> None:
        others = tuple(metric for metric in table.metrics if metric.concept != "duration")
        without = replace(table, metrics=others)
        (line,) = lines(judged(side(launch(1e6)), side(launch(1e6)), without), UNJUDGED)
        assert line.endswith("declares no duration, by which a gate decides")

    def test_a_launch_more_is_work_that_nothing_is_held_against(self, table: MetricTable) -> None:
        one, two = side(launch(1e6)), side(launch(1e6), launch(1e6, "reduce", 1))
        assert lines(judged(one, two, table, rerun_command="again"), UNJUDGED) == [
            "kernel reduce is new: the baseline does not have it"
        ]
        assert lines(judged(two, one, table), UNJUDGED) == [
            "kernel reduce is missing: only the baseline has it"
        ]

    def test_launches_that_are_gone_or_new_have_a_line_a_kernel(self, table: MetricTable) -> None:
        one = side(launch(1e6))
        more = side(launch(1e6), *(launch(1e6, "spmv", place) for place in (1, 2, 3)), launch(1e6, "sum", 4))
        assert lines(judged(more, one, table), UNJUDGED) == [
            "3 launches of kernel spmv are missing: only the baseline has them",
            "kernel sum is missing: only the baseline has it",
        ]
        assert lines(judged(one, more, table), UNJUDGED) == [
            "3 launches of kernel spmv are new: the baseline does not have them",
            "kernel sum is new: the baseline does not have it",
        ]

    def test_kernels_of_libraries_alone_name_the_options_that_ask_for_them(self, table: MetricTable) -> None:
        libraries = side(launch(1e6, "ampere_sgemm_128x64_nn"))
        (line,) = lines(judged(side(launch(1e6)), libraries, table), UNJUDGED)
        assert line.startswith("not comparable: no kernel of yours was captured")
        assert {"--kernel", "--pair"} <= set(line.split())

    def test_where_the_calls_were_timed_a_new_launch_is_only_noted(self, table: MetricTable) -> None:
        a = side(launch(1e6), latencies=(calls(),), version="zero")
        b = side(launch(1e6), launch(1e6, "reduce", 1), latencies=(calls(seed=2),))
        verdicts = judged(a, b, table)
        assert lines(verdicts, NOTED) == ["kernel reduce is new: the baseline does not have it"]
        assert verdicts.exit_code() is Exit.PASS


class TestCounters:
    """Exact counts weigh where the time does not decide; what wobbles weighs only where it is asked for."""

    def test_more_instructions_in_no_more_time_are_noted(self, table: MetricTable) -> None:
        before = side(launch(1e6, **{EXECUTED: 1000}))
        for ns in (8e5, 1e6, 1.01e6):
            verdicts = judged(before, side(launch(ns, **{EXECUTED: 2000})), table)
            assert verdicts.exit_code() is Exit.PASS
            assert [finding.concept for finding in verdicts.of(NOTED)] == ["inst_executed"]
        asked_for = judged(before, side(launch(1e6, **{EXECUTED: 2000})), table, on=("inst_executed",))
        assert [finding.concept for finding in asked_for.of(FAILED)] == ["inst_executed"]

    def test_more_instructions_fail_where_the_time_is_worse_unclear_or_missing(
        self, table: MetricTable
    ) -> None:
        for before_ns, after_ns in ((1e6, 1.2e6), (11e3, 12e3), (1e6, None)):
            before = side(launch(before_ns, **{EXECUTED: 1000}))
            verdicts = judged(before, side(launch(after_ns, **{EXECUTED: 2000})), table)
            assert "inst_executed" in [finding.concept for finding in verdicts.of(FAILED)]
            assert verdicts.exit_code() is Exit.REGRESSION

    def test_more_instructions_of_a_launch_without_weight_are_noted(self, table: MetricTable) -> None:
        """Two short launches beside one that gained 4 ms."""
        before, after = (
            side(launch(ns, "work"), launch(short, "setup", 1, **{EXECUTED: executed}))
            for ns, short, executed in ((36e6, 29.5e3, 8.17e6), (32e6, 28.8e3, 8.29e6))
        )
        verdicts = judged(before, after, table)
        assert "inst_executed" in [finding.concept for finding in verdicts.of(NOTED)]
        assert verdicts.exit_code() is Exit.PASS
        asked_for = judged(before, after, table, on=("inst_executed",))
        assert asked_for.exit_code() is Exit.REGRESSION

    def test_fewer_threads_an_instruction_are_noted_since_they_count_no_work(
        self, table: MetricTable
    ) -> None:
        threads = "smsp__thread_inst_executed_per_inst_executed.ratio"
        before = side(launch(3360.0, **{threads: 17.3}))
        verdicts = judged(before, side(launch(3230.0, **{threads: 16.4})), table)
        assert "threads_per_inst" in [finding.concept for finding in verdicts.of(NOTED)]
        assert verdicts.exit_code() is Exit.UNJUDGED, "the time of so short a launch is unclear"

    def test_what_wobbles_is_noted_and_asked_for_is_unclear_without_its_noise(
        self, table: MetricTable
    ) -> None:
        a, b = (side(launch(1e6, **{DRAM_READ: size})) for size in (1.21e9, 1.25e9))
        verdicts = judged(a, b, table)
        assert verdicts.exit_code() is Exit.PASS
        assert lines(verdicts, NOTED)[0].startswith("DRAM read: 1.21 GB → 1.25 GB")
        (finding,) = judged(a, b, table, on=("dram_read",)).of(UNJUDGED)
        assert "unclear: +3.3 %, and no A/A pairs say how far this counter moves by itself" in finding.line
        assert "import reports with 40 launches of it" in finding.line
        (finding,) = judged(a, b, table, on=("dram_read",), rerun_command="again").of(UNJUDGED)
        assert finding.line.endswith("collect both again")
        assert finding.next_command == "again"

    def test_judged_counters_that_are_gone_are_missing_in_one_line(self, table: MetricTable) -> None:
        a, b = side(launch(1e6, **{EXECUTED: 1000, DRAM_READ: 1e9})), side(launch(1e6))
        (finding,) = judged(a, b, table).of(UNJUDGED)
        assert finding.line.endswith("but the baseline has a number")
        assert {"inst_executed", "dram_read"} <= {*finding.line.partition(":")[0].split(", ")}
        assert finding.concept == "", "it is about several"
        (one,) = judged(side(launch(1e6, **{EXECUTED: 1000})), b, table).of(UNJUDGED)
        assert one.concept == "inst_executed"

    def test_a_concept_asked_for_that_nothing_compared_carries_never_passes(self, table: MetricTable) -> None:
        verdicts = judged(facts(), facts(), table, on=("dram_read",))
        assert lines(verdicts, UNJUDGED) == [
            "--on dram_read: no measured results were compared, so there is no dram_read to judge"
        ]
        assert judged(facts(), facts(), table, on=("static_spills",)).exit_code() is Exit.PASS


class TestComparability:
    def test_another_gpu_is_not_comparable_and_nothing_was_compared(self, table: MetricTable) -> None:
        verdicts = judged(side(launch(1e6)), side(launch(1e6), gpu="NVIDIA L4"), table)
        (line,) = lines(verdicts, UNJUDGED)
        assert line.startswith("not comparable: GPU differs")
        assert verdicts.compared == 0

    def test_what_only_one_side_says_of_its_origin_is_noted(self, table: MetricTable) -> None:
        """What nobody says cannot be a mismatch, and is no match either."""
        a, b = side(launch(1e6)), side(launch(1e6))
        silent = replace(a, session=replace(a.session, clock_control=None))
        verdicts = judged(silent, b, table)
        assert lines(verdicts, NOTED) == [
            "not known to match: clock control unknown in A (none in the other)"
        ]
        assert verdicts.exit_code() is Exit.PASS
        both_silent = replace(b, session=replace(b.session, clock_control=None))
        assert lines(judged(silent, both_silent, table), NOTED) == []

    def test_launches_that_nobody_can_tell_apart_are_unclear(self, table: MetricTable) -> None:
        several = [launch(1e6 * (1 + ordinal), "k", ordinal) for ordinal in range(3)]
        verdicts = judged(side(*several[:2]), side(*several), table)
        assert any(line.startswith("k is ambiguous: ") for line in lines(verdicts, UNJUDGED))

    @pytest.mark.parametrize("noted", [True, False])
    def test_results_held_against_themselves_are_nothing_compared(
        self, table: MetricTable, noted: bool
    ) -> None:
        why = "compared with itself: these very results"
        verdicts = judged(facts(), facts(), table, same_results=True, noted=noted, why=why)
        assert lines(verdicts, NOTED if noted else UNJUDGED) == [why]
        assert verdicts.compared == 0


class TestLatencies:
    """Timed calls: of one run by their rounds, of two runs by a floor that nobody has here."""

    def timed(self, *factors: float, run: str | None = None) -> tuple[Side, ...]:
        return tuple(
            side(version=f"v{seed}", latencies=(calls(factor, run=run or f"run {seed}", seed=seed),))
            for seed, factor in enumerate(factors)
        )

    def test_three_per_cent_slower_in_one_run_fails_with_its_interval(self, table: MetricTable) -> None:
        a, b = (
            side(version=name, latencies=(replace(timed, processes=timed.rounds),))
            for name, timed in (("zero", calls()), ("alpha", calls(1.03, seed=2)))
        )
        (finding,) = judged(a, b, table).of(FAILED)
        assert finding.concept == "latency"
        assert finding.effect is not None
        assert finding.interval is not None
        assert 0.02 < finding.interval.low < finding.effect < finding.interval.high < 0.04
        assert 0 < (finding.detectable or 0) < 0.02
        assert any(line.startswith("95 % interval ") for line in finding.lines)
        assert judged(b, a, table).exit_code() is Exit.PASS

    def test_three_per_cent_of_unknown_processes_is_not_judged_and_says_why(self, table: MetricTable) -> None:
        verdicts = judged(*self.timed(1.0, 1.02, run="together"), table)
        (finding,) = verdicts.of(UNJUDGED)
        assert finding.verdict is Verdict.WORSE
        assert "a gate does not fail on this" in finding.line
        assert verdicts.exit_code() is Exit.UNJUDGED

    def test_what_no_rerun_tells_gets_no_command_to_rerun(self, table: MetricTable) -> None:
        a, b = calls(), calls(seed=2)
        sides = [
            side(version=name, latencies=(replace(timed, ns=ns.astype(np.float32)),))
            for name, timed, ns in (("zero", a, a.ns), ("alpha", b, b.ns / 1000))
        ]
        (finding,) = judged(*sides, table).of(UNJUDGED)
        assert "both in ns" in finding.line
        assert not finding.next_command
        assert finding.detectable is None

    def test_equal_builds_of_one_run_pass(self, table: MetricTable) -> None:
        assert judged(*self.timed(1.0, 1.0, run="together"), table).exit_code() is Exit.PASS

    def test_rounds_that_follow_one_another_fail_nothing_and_pass_nothing(self, table: MetricTable) -> None:
        """10 % slower on average, but in a drift: lag 1 is above 0.3, and the calls name no process."""
        a, b = calls(), calls(seed=2)
        drift = np.repeat(np.linspace(1.08, 1.12, 25), 4)
        drifting = side(latencies=(replace(b, ns=(b.ns * drift).astype(np.float32)),))
        verdicts = judged(side(version="zero", latencies=(a,)), drifting, table)
        (finding,) = verdicts.of(UNJUDGED)
        assert "rounds are correlated (lag 1: 0." in finding.line
        assert not verdicts.of(FAILED)
        assert verdicts.exit_code() is Exit.UNJUDGED

    def test_two_runs_without_a_noise_floor_are_unclear_and_say_what_to_do(self, table: MetricTable) -> None:
        verdicts = judged(*self.timed(1.0, 1.0), table)
        (finding,) = verdicts.of(UNJUDGED)
        assert "no noise floor" in finding.line
        assert finding.next_command
        assert verdicts.exit_code(["unclear"]) is Exit.PASS

    def test_two_runs_beyond_the_noise_floor_fail_with_the_interval_of_the_floor(
        self, table: MetricTable
    ) -> None:
        a, b = self.timed(1.0, 1.2)
        floor = NoiseModel(floor=lambda *_: NoiseFloor(100, 0.002, tuple(np.linspace(0, 0.005, 100))))
        (finding,) = judge([pair(a, b)], table, noise=floor).of(FAILED)
        assert finding.interval_name == "interval by the noise floor"
        assert finding.interval is not None
        assert finding.effect is not None
        assert 0.1 < finding.interval.low < finding.effect < finding.interval.high < 0.3

    def test_a_mode_that_is_newly_timed_has_nothing_to_lose_and_one_that_is_gone_is_missing(
        self, table: MetricTable
    ) -> None:
        warm, both = (calls(),), (calls(seed=2), calls(seed=3, mode=COLD))
        a, b = side(version="zero", latencies=warm), side(latencies=both)
        assert judged(a, b, table).exit_code() is Exit.PASS
        assert {finding.check for finding in judged(b, a, table).of(UNJUDGED)} == {Check.MISSING}

    def test_where_the_calls_were_timed_a_longer_duration_is_only_noted(self, table: MetricTable) -> None:
        a = side(launch(1e6), version="zero", latencies=(calls(),))
        b = side(launch(1.5e6), latencies=(calls(seed=2),))
        verdicts = judged(a, b, table)
        assert [finding.concept for finding in verdicts.of(NOTED)] == ["duration"]
        assert verdicts.exit_code() is Exit.PASS
        assert DURATION in b.launches[0].values
        assert judged(a, b, table, on=("duration",)).exit_code() is Exit.REGRESSION, "unless it is asked for"
