"""Words for decisions on latencies: interval, basis, floor; empty where nothing is known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from profiler.compare import latency_words
from profiler.compare.latency import LatencyComparison
from profiler.statistics.decision import Decision, Interval
from profiler.statistics.live_pair import LIVE_PAIR
from profiler.statistics.noise_floor import STORED_BASELINE, NoiseFloor
from profiler.statistics.verdict import Verdict
from tests.compare.test_latency import timed

INTERVAL = Interval(-0.01, 0.03)
LIVE = Decision(Verdict.SAME, "why", LIVE_PAIR, effect=0.012, interval=INTERVAL, rounds=25)
STORED = replace(LIVE, rule=STORED_BASELINE, rounds=60)
NOTHING = Decision(Verdict.MISSING, "why", LIVE_PAIR)
FLOOR = NoiseFloor(100, 0.001, (0.01,))


def test_a_change_and_its_interval_say_by_which_rule() -> None:
    assert (latency_words.change(LIVE), latency_words.change(NOTHING)) == ("+1.2 %", "")
    assert latency_words.change(replace(LIVE, effect=0.0)) == "±0 %", "no change is one"
    assert latency_words.interval(LIVE) == "99 %: −1.0 % to +3.0 %"
    assert latency_words.interval(STORED) == "−1.0 % to +3.0 % by the noise floor"
    assert latency_words.interval(STORED, brief=True) == "−1.0 % to +3.0 %"
    assert latency_words.interval(NOTHING) == latency_words.interval(NOTHING, brief=True) == ""
    assert [latency_words.interval_kind(one) for one in (LIVE, STORED)] == ["99 %", "noise floor"]


def test_a_gate_names_the_interval_that_it_shows() -> None:
    assert latency_words.gate_interval_name(replace(LIVE, gate_interval=INTERVAL)) == "95 % interval"
    assert latency_words.gate_interval_name(STORED) == "interval by the noise floor"


def test_what_a_verdict_rests_on_is_rounds_of_processes_or_pairs_of_runs() -> None:
    assert latency_words.rests_on(STORED) == "two runs, 60 A/A pairs"
    told = [latency_words.rests_on(replace(LIVE, processes=number)) for number in (0, 1, 2)]
    assert told == ["live pair, 25 rounds", "live pair, 25 rounds", "live pair, 25 rounds of 2 processes"]


def test_the_basis_is_one_run_or_two_where_nothing_was_decided() -> None:
    a, b = timed(run="r1"), timed(run="r2")
    spread = replace(LIVE, processes=5, process_sd=0.003)
    for sides, decision, words in (
        ((a, None), NOTHING, "not timed on both sides"),
        ((None, b), NOTHING, "not timed on both sides"),
        ((a, a), NOTHING, "one run"),
        ((a, b), NOTHING, "two runs"),
        ((a, a), spread, "live pair, 25 rounds of 5 processes, which differ by 0.3 % (sd)"),
        ((a, b), STORED, "two runs, 60 A/A pairs"),
    ):
        assert latency_words.basis(LatencyComparison("mode", *sides, decision)) == words


def test_a_spread_or_a_detectable_change_of_0_is_one() -> None:
    assert latency_words.process_spread(replace(LIVE, process_sd=0.0)) == ", which differ by 0 % (sd)"
    assert latency_words.process_spread(LIVE) == latency_words.detectable(LIVE) == ""
    assert latency_words.detectable(replace(LIVE, detectable=0.02)) == "a change of 2 % would have shown"
    assert latency_words.detectable(replace(LIVE, detectable=0.0)) == "a change of 0 % would have shown"


@pytest.mark.parametrize("floor", [None, replace(FLOOR, pairs=3), replace(FLOOR, differs_in="driver 580")])
def test_in_narrow_places_a_floor_that_does_not_judge_is_none(floor: NoiseFloor | None) -> None:
    assert latency_words.short_floor(floor) == "no A/A floor"
    limit = math.expm1(FLOOR.limit)
    assert latency_words.short_floor(FLOOR) == f"A/A ±{100 * limit:.0f} %"
