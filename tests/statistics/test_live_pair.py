"""Live pairs: made rounds with a state that both sides of a round share, as on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from profiler.bundles import Samples
from profiler.statistics import Verdict, judge_live_pair, ratios

ROUNDS, EACH = 25, 4
MS = 1_800_000.0


@dataclass(frozen=True)
class Lane:
    ns: np.ndarray
    rounds: np.ndarray
    clocks_mhz: np.ndarray = field(default_factory=lambda: np.array([]))
    throttled: np.ndarray = field(default_factory=lambda: np.array([], int))
    processes: np.ndarray = field(default_factory=lambda: np.array([], int))


def lanes(
    change: float = 0.0, *, seed: int = 1, rounds: int = ROUNDS, noise: float = 0.004, call_ns: float = MS
) -> tuple[Lane, Lane]:
    """Two sides; each round has a state of its own that is ten times as large as what is judged."""
    rng = np.random.default_rng(seed)
    numbers = np.repeat(np.arange(rounds), EACH)
    state = np.repeat(1 + 0.05 * rng.random(rounds), EACH)
    sides = []
    for factor in (1.0, 1.0 + change):
        sides.append(Lane(call_ns * factor * state * np.exp(rng.normal(0, noise, len(numbers))), numbers))
    return sides[0], sides[1]


@pytest.mark.slow
def test_equal_builds_are_never_called_worse() -> None:
    decisions = [judge_live_pair(*lanes(seed=seed)) for seed in range(200)]
    verdicts = [decision.verdict for decision in decisions]
    assert verdicts.count(Verdict.SAME) > 150
    assert not {Verdict.WORSE, Verdict.BETTER} & set(verdicts)
    assert not any(decision.fails_gate for decision in decisions)


def test_a_planted_slowdown_of_3_percent_is_worse_and_fails_the_gate() -> None:
    decision = judge_live_pair(*lanes(0.03))
    assert decision.verdict is Verdict.WORSE
    assert decision.fails_gate
    assert decision.effect == pytest.approx(0.03, abs=0.003)
    assert decision.interval is not None
    assert decision.gate_interval is not None
    assert decision.interval.low < 0.03 < decision.interval.high
    assert (
        decision.interval.low
        < decision.gate_interval.low
        < decision.gate_interval.high
        < decision.interval.high
    )
    assert decision.p is not None
    assert decision.p < 1e-6
    assert "25 rounds" in decision.reason
    assert decision.remark == "", "effect, interval and rounds are all of the reason"


def test_faster_is_better_and_passes_and_more_throughput_is_better() -> None:
    a, b = lanes(-0.03)
    assert judge_live_pair(a, b).verdict is Verdict.BETTER
    assert not judge_live_pair(a, b).fails_gate
    assert judge_live_pair(a, b, better="higher").verdict is Verdict.WORSE
    assert judge_live_pair(a, b, better="higher").fails_gate


def test_a_change_within_the_margin_is_the_same_however_sure() -> None:
    decision = judge_live_pair(*lanes(0.002, noise=0.0005))
    assert decision.interval is not None
    assert decision.interval.low > 0, "there is a change"
    assert decision.verdict is Verdict.SAME
    assert "within ±0.5 %" in decision.reason
    assert decision.remark is None, "the margin stands nowhere else: the whole reason is wanted"


def test_unclear_says_how_many_rounds_would_tell_and_that_many_tell() -> None:
    unclear = judge_live_pair(*lanes(0.011, noise=0.03, seed=11))
    assert unclear.verdict is Verdict.UNCLEAR
    assert unclear.rounds_needed is not None
    assert unclear.rounds_needed > ROUNDS
    assert unclear.remark == f"{unclear.rounds_needed} rounds would tell"
    assert unclear.reason.endswith(f"; {unclear.remark}")
    again = [
        judge_live_pair(*lanes(0.011, noise=0.03, seed=seed, rounds=unclear.rounds_needed))
        for seed in range(20)
    ]
    assert sum(decision.verdict is Verdict.WORSE for decision in again) >= 12


def test_at_the_margin_no_number_of_rounds_tells() -> None:
    decision = judge_live_pair(*lanes(0.005, noise=0.01, seed=8))
    assert decision.verdict is Verdict.UNCLEAR
    assert decision.rounds_needed is None
    assert "any number of rounds" in decision.reason


@pytest.mark.slow
def test_the_detectable_change_is_detected_four_times_in_five() -> None:
    detectable = [judge_live_pair(*lanes(noise=0.02, seed=seed)).detectable or 0.0 for seed in range(40)]
    hits = [
        judge_live_pair(*lanes(float(np.mean(detectable)), noise=0.02, seed=50 + seed)) for seed in range(100)
    ]
    assert 70 <= [decision.verdict for decision in hits].count(Verdict.WORSE) <= 90


def test_one_round_is_unclear_and_two_numbers_are_no_rounds() -> None:
    decision = judge_live_pair(*lanes(0.5, rounds=1))
    assert decision.verdict is Verdict.UNCLEAR
    assert decision.rounds == 1
    assert decision.rounds_needed == 25
    assert decision.effect is None
    assert "1 round" in decision.reason


def test_few_rounds_are_judged_with_a_warning() -> None:
    decision = judge_live_pair(*lanes(0.1, rounds=6))
    assert decision.verdict is Verdict.WORSE
    assert "only 6 rounds" in decision.warnings


def test_only_rounds_that_both_have_count() -> None:
    a, b = lanes(0.03)
    chosen = b.rounds != 7
    decision = judge_live_pair(a, replace(b, ns=b.ns[chosen], rounds=b.rounds[chosen]))
    assert decision.rounds == ROUNDS - 1
    assert "1 round on one side only: left out" in decision.warnings
    apart = judge_live_pair(a, replace(b, rounds=b.rounds + 100))
    assert apart.verdict is Verdict.UNCLEAR
    assert apart.rounds == 0


def test_rounds_of_unequal_size_weigh_alike() -> None:
    a, b = lanes(0.03)
    chosen = np.arange(len(b.ns)) % 4 != 1
    decision = judge_live_pair(a, replace(b, ns=b.ns[chosen], rounds=b.rounds[chosen]))
    assert decision.verdict is Verdict.WORSE
    assert decision.rounds == ROUNDS


def test_warm_up_is_left_out_where_told() -> None:
    a, b = lanes()
    cold = b.ns.copy()
    cold[::EACH] *= 1.06
    cold[1::EACH] *= 1.06
    slow = replace(b, ns=cold)
    assert judge_live_pair(a, slow).verdict is Verdict.WORSE
    assert judge_live_pair(a, slow, warm_up=2).verdict is Verdict.SAME


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0, -1.0])
def test_a_sample_that_is_no_latency_is_refused(bad: float) -> None:
    a, b = lanes()
    b.ns[3] = bad
    with pytest.raises(ValueError, match="sample 3 of B"):
        judge_live_pair(a, b)


def test_a_round_number_for_each_sample_is_needed() -> None:
    a, b = lanes()
    with pytest.raises(ValueError, match="100 samples and 99 round numbers"):
        judge_live_pair(replace(a, rounds=a.rounds[1:]), b)


def test_a_run_compared_with_itself_is_the_same() -> None:
    a, _ = lanes()
    decision = judge_live_pair(a, a)
    assert decision.verdict is Verdict.SAME
    assert decision.effect == 0
    assert decision.p == 1


def test_samples_that_never_vary_are_known_to_a_tick() -> None:
    numbers = np.repeat(np.arange(ROUNDS), EACH)
    long, short = (Lane(np.full(100, ns), numbers) for ns in (1_024_000.0, 40_960.0))
    assert judge_live_pair(long, long).verdict is Verdict.SAME
    stuck = judge_live_pair(short, short)
    assert stuck.verdict is Verdict.UNCLEAR, "1 % of 41 µs would not show in ticks of 1 µs"
    assert any("ticks of the timer" in warning for warning in stuck.warnings)
    assert "more calls a sample would tell" in stuck.reason
    assert stuck.rounds_needed is None, "more rounds would read the same"
    longer = Lane(np.full(100, 1_075_200.0), numbers)
    assert judge_live_pair(long, longer).verdict is Verdict.WORSE


def test_ticks_as_large_as_the_change_hide_none_of_it() -> None:
    """40 µs calls, a 1 µs tick, 1 %: medians stick to the ticks, means do not."""
    rng = np.random.default_rng(2)
    a, b = lanes(0.02, call_ns=40_000.0)
    ticks = [replace(side, ns=np.floor(side.ns / 1024 + rng.random(len(side.ns))) * 1024) for side in (a, b)]
    decision = judge_live_pair(ticks[0], ticks[1])
    assert decision.verdict is Verdict.WORSE
    assert decision.effect == pytest.approx(0.02, abs=0.007)


def test_rounds_that_follow_one_another_have_a_wider_interval_and_fail_no_gate_by_themselves() -> None:
    a, b = lanes()
    wave = np.repeat(0.02 * np.sin(np.arange(ROUNDS) / 5), EACH)
    decision = judge_live_pair(a, replace(b, ns=b.ns * (1 + wave) * 1.012))
    assert decision.verdict is Verdict.UNCLEAR
    assert "rounds follow one another" in decision.reason
    assert not decision.fails_gate
    assert any("times as wide" in warning for warning in decision.warnings)
    assert not any("follow one another" in warning for warning in judge_live_pair(a, b).warnings)
    far = judge_live_pair(a, replace(b, ns=b.ns * (1 + wave) * 1.2))
    assert far.verdict is Verdict.WORSE, "a change far beyond the wave stands"


@pytest.mark.parametrize("phi", [0.3, 0.5])
def test_correlated_rounds_rarely_make_a_change_of_their_own(phi: float) -> None:
    """Noise as of a server GPU: a round's log-ratio has an sd of 0.55 %."""
    rng = np.random.default_rng(5)
    steps = rng.normal(0, 0.0055, (4000, ROUNDS))
    for number in range(1, ROUNDS):
        steps[:, number] = phi * steps[:, number - 1] + np.sqrt(1 - phi * phi) * steps[:, number]
    estimated = ratios.estimate(steps)
    assert ratios.is_changed(estimated).mean() <= 0.01
    assert ratios.is_worse_beyond_margin(estimated).mean() <= 0.002


def test_of_independent_rounds_few_are_taken_for_correlated() -> None:
    rounds = np.random.default_rng(6).normal(0, 0.01, (4000, ROUNDS))
    estimated = ratios.estimate(rounds)
    assert estimated.correlated.mean() <= 0.05
    assert ratios.estimate(rounds, fresh=True).correlated.mean() <= 0.015
    assert (ratios.estimate(rounds[:, :9]).widening == 1).all(), "nine rounds say nothing of it"


def test_throttled_rounds_are_counted_and_the_verdict_without_them_is_said() -> None:
    a, b = lanes()
    slow = b.ns.copy()
    throttled = np.flatnonzero(b.rounds % 5 != 2)
    slow[throttled] *= 1.04
    decision = judge_live_pair(a, replace(b, ns=slow, throttled=throttled))
    assert decision.verdict is Verdict.WORSE
    assert any(
        "throttled in 20 of 25 rounds; without them the verdict is same" in w for w in decision.warnings
    )


def test_a_clock_that_moved_is_told_apart_from_cycles() -> None:
    a, b = lanes(0.03)
    fast, slow = np.full(100, 1700.0), np.full(100, 1700.0 / 1.03)
    decision = judge_live_pair(replace(a, clocks_mhz=fast), replace(b, clocks_mhz=slow))
    assert decision.verdict is Verdict.WORSE, "it is slower, whatever the reason"
    assert any("the SM clock was −2.9 % in B" in warning for warning in decision.warnings)
    assert any("in cycles nothing moved" in warning for warning in decision.warnings)
    steady = judge_live_pair(replace(a, clocks_mhz=fast), replace(b, clocks_mhz=fast))
    assert not any("clock" in warning for warning in steady.warnings)


def test_the_samples_of_a_run_are_taken_as_they_are() -> None:
    a, b = (
        Samples("events; cache warm; clock none", tuple(side.ns.tolist()), tuple(side.rounds.tolist()))
        for side in lanes(0.03)
    )
    assert judge_live_pair(a, b).verdict is Verdict.WORSE


def test_many_pairs_at_once_are_judged_as_one_by_one() -> None:
    pairs = [lanes(change, seed=seed) for seed, change in enumerate((0.0, 0.004, 0.01, -0.02, 0.03))]
    a, b = (np.stack([pair[side].ns.reshape(ROUNDS, EACH) for pair in pairs]) for side in (0, 1))
    estimated = ratios.estimate(ratios.log_ratios(a, b))
    alone = [judge_live_pair(*pair) for pair in pairs]
    assert np.expm1(estimated.mean) == pytest.approx([decision.effect for decision in alone])
    assert ratios.p_values(estimated) == pytest.approx([decision.p for decision in alone])
    changed = [decision.verdict in (Verdict.BETTER, Verdict.WORSE) for decision in alone]
    assert ratios.is_changed(estimated).tolist() == changed
    assert ratios.is_worse_beyond_margin(estimated).tolist() == [decision.fails_gate for decision in alone]
    assert ratios.is_same(estimated).tolist() == [decision.verdict is Verdict.SAME for decision in alone]


def in_processes(
    offset: float, processes: int, *, seed: int, change: float = 0.0, rounds: int = ROUNDS
) -> tuple[Lane, Lane]:
    """Two sides whose rounds are from so many processes, each with an offset of its own between A and B."""
    rng = np.random.default_rng(seed)
    a, b = lanes(change, seed=seed, rounds=rounds)
    numbers = a.rounds * processes // rounds
    own = np.exp(rng.normal(0, offset, processes))[numbers]
    return replace(a, processes=numbers), replace(b, ns=b.ns * own, processes=numbers)


@pytest.mark.slow
def test_the_interval_holds_although_processes_differ() -> None:
    def coverage(known: bool) -> float:
        covered = []
        for seed in range(300):
            a, b = in_processes(0.003, 3, seed=seed)
            if not known:
                a, b = (replace(side, processes=np.array([], int)) for side in (a, b))
            decision = judge_live_pair(a, b)
            assert decision.interval is not None
            covered.append(decision.interval.low <= 0 <= decision.interval.high)
        return float(np.mean(covered))

    assert coverage(known=True) >= 0.97
    assert coverage(known=False) < 0.85, "rounds of three processes are no 25 independent numbers"


def test_the_offset_between_processes_is_a_figure_without_the_noise_of_rounds() -> None:
    decision = judge_live_pair(*in_processes(0.02, 12, seed=5, rounds=36))
    assert (decision.processes, decision.rounds) == (12, 36)
    assert decision.process_sd == pytest.approx(0.02, rel=0.4)
    assert "36 rounds of 12 processes" in decision.reason
    quiet = judge_live_pair(*in_processes(0.0, 12, seed=5, rounds=36))
    assert quiet.process_sd is not None
    assert quiet.process_sd < 0.002


def test_without_process_numbers_the_rounds_are_judged_and_that_is_said() -> None:
    decision = judge_live_pair(*lanes(0.03))
    assert decision.processes == 0
    assert decision.process_sd is None
    assert any("which process" in warning for warning in decision.warnings)
    known = judge_live_pair(*in_processes(0.0, 25, seed=1, change=0.03))
    assert known.verdict is Verdict.WORSE
    assert not any("which process" in warning for warning in known.warnings)


@pytest.mark.parametrize("processes", [1, 2])
def test_one_or_two_processes_are_unclear_however_many_rounds_they_have(processes: int) -> None:
    decision = judge_live_pair(*in_processes(0.0, processes, seed=1, change=0.05))
    assert decision.verdict is Verdict.UNCLEAR
    assert "processes differ" in decision.reason
    assert decision.effect == pytest.approx(0.05, abs=0.005)
    assert not decision.fails_gate


def test_a_process_number_for_each_sample_is_needed() -> None:
    a, b = in_processes(0.0, 5, seed=1)
    with pytest.raises(ValueError, match="100 samples and 99 process numbers"):
        judge_live_pair(a, replace(b, processes=b.processes[1:]))


@pytest.mark.parametrize("level_ns", [40_000.0, 1_800_000.0])
def test_one_sample_ten_times_as_long_hides_no_change_of_5_percent(level_ns: float) -> None:
    for seed in range(20):
        a, b = lanes(0.05, call_ns=level_ns, seed=seed)
        for side in (a, b):
            side.ns[np.random.default_rng(seed).integers(len(side.ns))] *= 10
        decision = judge_live_pair(a, b)
        assert decision.verdict is Verdict.WORSE, seed
        assert decision.effect == pytest.approx(0.05, abs=0.01)


def test_rounds_with_heavy_tails_are_judged_by_the_trimmed_mean() -> None:
    rng = np.random.default_rng(9)
    rounds = rng.normal(0, 0.004, (2000, ROUNDS)) * np.where(rng.random((2000, ROUNDS)) < 0.1, 25, 1)
    assert ratios.is_changed(ratios.estimate(rounds)).mean() <= 0.01
    found = ratios.is_changed(ratios.estimate(rounds + np.log(1.02))).mean()
    by_t = np.abs(rounds.mean(axis=1) + np.log(1.02)) > 2.797 * rounds.std(axis=1, ddof=1) / 5
    assert found >= 0.99
    assert by_t.mean() < 0.8


@pytest.mark.parametrize("noise", [0.0005, 0.003, 0.01])
def test_a_coarse_tick_makes_no_change_of_its_own(noise: float) -> None:
    """5 µs calls whose readings are rounded to 512 ns: +0.2 % must not become a tick of +10 %."""
    rng = np.random.default_rng(3)
    numbers = np.repeat(np.arange(ROUNDS), EACH)
    for level_ns in np.linspace(4_700.0, 5_700.0, 60):
        sides = [
            Lane(np.round(level_ns * factor * np.exp(rng.normal(0, noise, 100)) / 512) * 512, numbers)
            for factor in (1.0, 1.002)
        ]
        decision = judge_live_pair(*sides)
        assert decision.verdict not in (Verdict.BETTER, Verdict.WORSE), (level_ns, decision.reason)
        assert not decision.fails_gate


def test_a_change_beyond_a_factor_of_20_asks_for_the_units() -> None:
    a, b = lanes()
    in_us = judge_live_pair(a, replace(b, ns=b.ns / 1000))
    assert in_us.verdict is Verdict.UNCLEAR
    assert "both in ns" in in_us.reason
    assert not judge_live_pair(replace(a, ns=a.ns / 1000), b).fails_gate
    assert judge_live_pair(a, replace(b, ns=b.ns * 15)).verdict is Verdict.WORSE


def test_rounds_asked_for_tell_in_four_of_five() -> None:
    rng = np.random.default_rng(12)
    settled = []
    for sd, effect in ((0.005, 0.003), (0.012, 0.0), (0.012, 0.01), (0.03, 0.01)):
        answers = []
        for rounds in rng.normal(effect, sd, (60, ROUNDS)):
            pair = ratios.estimate(rounds)
            needed = ratios.rounds_needed(pair)
            if needed and not ratios.is_changed(pair) and not ratios.is_same(pair):
                again = ratios.estimate(rng.normal(effect, sd, (20, needed)))
                answers.append((ratios.is_changed(again) | ratios.is_same(again)).mean())
        assert answers
        settled.append(float(np.mean(answers)))
    assert min(settled) >= 0.8, settled


def test_what_processes_would_tell_is_said_in_processes() -> None:
    decision = judge_live_pair(*in_processes(0.003, 5, seed=3, change=0.0))
    assert decision.verdict is Verdict.UNCLEAR
    assert decision.rounds_needed is not None
    assert f"{decision.rounds_needed} rounds in {decision.rounds_needed // 5} processes" in decision.reason
