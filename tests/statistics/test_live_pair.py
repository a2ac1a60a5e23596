"""Live pairs: made rounds with a state that both sides of a round share, as on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from profiler.bundles.run import Samples
from profiler.statistics import ratios
from profiler.statistics.decision import Decision
from profiler.statistics.live_pair import judge_live_pair
from profiler.statistics.verdict import Verdict

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
    decision = judge_live_pair(*in_processes(0.0, ROUNDS, seed=1, change=0.03))
    assert decision.verdict is Verdict.WORSE
    assert decision.fails_gate
    assert not decision.gate_note
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


@pytest.mark.slow
def test_unclear_says_how_many_rounds_would_tell_and_that_many_tell() -> None:
    unclear = judge_live_pair(*lanes(0.011, noise=0.03, seed=11))
    assert unclear.verdict is Verdict.UNCLEAR
    assert unclear.rounds_needed is not None
    assert unclear.rounds_needed > ROUNDS
    assert unclear.remark == f"{unclear.rounds_needed} rounds would decide"
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
    assert "near ±0.5 %: more than 1,000 rounds" in decision.reason


def test_where_the_noise_is_large_it_is_not_the_margin_that_leaves_a_change_open() -> None:
    decision = judge_live_pair(*in_processes(0.1, ROUNDS, seed=4))
    assert decision.verdict is Verdict.UNCLEAR
    assert "the noise is large: more than 1,000 rounds" in decision.reason


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
    assert "more calls per sample would decide" in stuck.reason
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
    assert "rounds are correlated" in decision.reason
    assert not decision.fails_gate
    assert any("times as wide" in warning for warning in decision.warnings)
    assert not any("are correlated" in warning for warning in judge_live_pair(a, b).warnings)
    for change in (1.0, 1.2):
        far = judge_live_pair(a, replace(b, ns=b.ns * (1 + wave) * change))
        assert far.verdict is Verdict.UNCLEAR, "neither a change nor the same"
        assert "decide nothing" in far.reason
        assert far.rounds_needed is None
        assert not far.fails_gate
    assert "processes" in (far.remark or "") or "process" in (far.remark or "")
    known = (replace(side, processes=side.rounds) for side in (a, replace(b, ns=b.ns * (1 + wave) * 1.2)))
    assert judge_live_pair(*known).verdict is Verdict.WORSE, (
        "of processes a change far beyond the wave stands"
    )


@pytest.mark.parametrize("sd", [0.0055, 0.012])
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("count", [8, 16, ROUNDS, 50])
def test_rounds_of_unknown_processes_rarely_make_a_change_of_their_own(
    count: int, phi: float, sd: float
) -> None:
    """Noise as of a server GPU, where a round's log-ratio has an sd of 0.55 %, and of boost clocks, 1.2 %."""
    rng = np.random.default_rng(5)
    steps = rng.normal(0, sd, (4000, count))
    for number in range(1, count):
        steps[:, number] = phi * steps[:, number - 1] + np.sqrt(1 - phi * phi) * steps[:, number]
    estimated = ratios.estimate(steps)
    assert ratios.is_changed(estimated).mean() <= 0.012
    assert ratios.is_worse_beyond_margin(estimated).mean() <= 0.005
    assert (np.abs(estimated.mean) <= estimated.half(0.99)).mean() >= 0.98
    moved = ratios.estimate(steps + np.log1p(ratios.MARGIN))
    assert ratios.is_same(moved).mean() <= 0.025, "nor is what moved by the margin called the same"


def test_above_a_lag_1_of_0_3_nothing_is_decided_whatever_the_change() -> None:
    rounds = np.random.default_rng(5).normal(0, 0.0055, (2000, ROUNDS))
    for change in (0.0, 0.05, -0.05):
        estimated = ratios.estimate(rounds + np.log1p(change))
        decided = ratios.is_changed(estimated) | ratios.is_same(estimated)
        assert not decided[estimated.correlation > 0.3].any()
        assert not ratios.is_worse_beyond_margin(estimated)[estimated.correlation > 0.3].any()
        assert decided.any()


def test_what_only_independent_rounds_would_decide_is_unclear_and_says_what_would_tell() -> None:
    """At this seed the plain interval has no zero in it, and the one for the lag 1 that may be has."""
    a, b = lanes(0.008, noise=0.02, seed=14)
    known = judge_live_pair(*(replace(side, processes=side.rounds) for side in (a, b)))
    assert known.verdict is Verdict.WORSE
    decision = judge_live_pair(a, b)
    assert decision.verdict is Verdict.UNCLEAR
    assert "rounds may be correlated (lag 1 up to" in decision.reason
    assert decision.remark is not None
    assert "with their process recorded would decide" in decision.remark
    assert decision.rounds_needed is not None
    assert f"{decision.rounds_needed} rounds, or " in decision.remark
    assert any("times as wide as of independent rounds" in warning for warning in decision.warnings)


def test_rounds_of_known_processes_are_as_wide_as_student_has_it() -> None:
    rounds = np.random.default_rng(6).normal(0, 0.01, (500, ROUNDS))
    known = ratios.estimate(rounds, fresh=True)
    assert (known.times_as_wide[~known.correlated] == 1).all()
    assert known.freedom == ROUNDS - 1
    assert not known.undecided


def test_of_independent_rounds_few_are_taken_for_correlated() -> None:
    rounds = np.random.default_rng(6).normal(0, 0.01, (4000, ROUNDS))
    estimated = ratios.estimate(rounds)
    assert estimated.correlated.mean() <= 0.05
    assert ratios.estimate(rounds, fresh=True).correlated.mean() <= 0.015
    few = ratios.estimate(rounds[:, :9])
    assert not few.correlated.any(), "nine rounds say nothing of it"
    assert few.half(0.99).mean() > 2 * ratios.estimate(rounds[:, :9], fresh=True).half(0.99).mean()


def test_throttled_rounds_are_counted_and_the_verdict_without_them_is_said() -> None:
    a, b = in_processes(0.0, ROUNDS, seed=1)
    slow = b.ns.copy()
    throttled = np.flatnonzero(b.rounds % 5 != 2)
    slow[throttled] *= 1.04
    decision = judge_live_pair(a, replace(b, ns=slow, throttled=throttled))
    assert decision.verdict is Verdict.WORSE
    assert any(
        "throttled in 20 of 25 rounds; without them the verdict is same" in w for w in decision.warnings
    )
    all_but_four = np.flatnonzero(b.rounds >= 4)
    few = judge_live_pair(a, replace(b, throttled=all_but_four)).warnings
    assert "the GPU was throttled in 21 of 25 rounds" in few, "four rounds are too few for a verdict"
    same = judge_live_pair(a, replace(b, throttled=throttled)).warnings
    assert "the GPU was throttled in 20 of 25 rounds" in same, "the verdict is the same without them"


def test_a_clock_that_moved_is_told_apart_from_cycles() -> None:
    a, b = lanes(0.03)
    fast, slow = np.full(100, 1700.0), np.full(100, 1700.0 / 1.03)
    decision = judge_live_pair(replace(a, clocks_mhz=fast), replace(b, clocks_mhz=slow))
    assert decision.verdict is Verdict.WORSE, "it is slower, whatever the reason"
    assert any("the SM clock was −2.9 % in B" in warning for warning in decision.warnings)
    assert any("cycles did not move" in warning for warning in decision.warnings)
    steady = judge_live_pair(replace(a, clocks_mhz=fast), replace(b, clocks_mhz=fast))
    assert not any("clock" in warning for warning in steady.warnings)


def test_the_samples_of_a_run_are_taken_as_they_are() -> None:
    a, b = (
        Samples("events; cache warm; clock none", tuple(side.ns.tolist()), tuple(side.rounds.tolist()))
        for side in lanes(0.03)
    )
    assert judge_live_pair(a, b).verdict is Verdict.WORSE


def test_many_pairs_at_once_are_judged_as_one_by_one() -> None:
    pairs = [lanes(change, seed=seed) for seed, change in enumerate((0.0, 0.004, 0.01, -0.02, 0.05))]
    a, b = (np.stack([pair[side].ns.reshape(ROUNDS, EACH) for pair in pairs]) for side in (0, 1))
    estimated = ratios.estimate(ratios.log_ratios(a, b))
    alone = [judge_live_pair(*pair) for pair in pairs]
    assert np.expm1(estimated.mean) == pytest.approx([decision.effect for decision in alone])
    assert ratios.p_values(estimated) == pytest.approx([decision.p for decision in alone])
    changed = [decision.verdict in (Verdict.BETTER, Verdict.WORSE) for decision in alone]
    assert ratios.is_changed(estimated).tolist() == changed
    fails = ratios.is_worse_beyond_margin(estimated, offset=ratios.UNKNOWN_OFFSET).tolist()
    assert fails == [decision.fails_gate for decision in alone]
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
    assert coverage(known=False) < 0.93, "rounds of three processes are no 25 independent numbers"


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
    # As many lie far out below as above: what lies on one side only is not trimmed.
    below, above = ratios.far_out(rounds)
    rounds = rounds[~ratios.is_one_sided(below, above)]
    assert ratios.is_changed(ratios.estimate(rounds, fresh=True)).mean() <= 0.01
    found = ratios.is_changed(ratios.estimate(rounds + np.log(1.02), fresh=True)).mean()
    by_t = np.abs(rounds.mean(axis=1) + np.log(1.02)) > 2.797 * rounds.std(axis=1, ddof=1) / 5
    assert found >= 0.99
    assert by_t.mean() < 0.8


@pytest.mark.slow
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


@pytest.mark.slow
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


def two_lengths(share: float, rng: np.random.Generator, factor: float = 1.6) -> np.ndarray:
    """Samples [pairs, rounds, samples] of 40 µs calls, `share` of which take `factor` times as long."""
    shape = (1000, ROUNDS, EACH)
    return 40e3 * np.exp(rng.normal(0, 0.004, shape)) * np.where(rng.random(shape) < share, factor, 1.0)


def test_of_short_calls_of_two_lengths_no_length_is_left_out() -> None:
    """Half of the calls take 1.6 times as long: each side's median may be of another half."""
    rng = np.random.default_rng(7)
    equal = ratios.estimate(ratios.log_ratios(two_lengths(0.5, rng), two_lengths(0.5, rng)), fresh=True)
    assert ratios.is_changed(equal).mean() <= 0.02
    slower = ratios.estimate(ratios.log_ratios(two_lengths(0.05, rng), two_lengths(0.45, rng)), fresh=True)
    assert not ratios.is_same(slower).any(), "the mean is 23 % more"
    assert ratios.is_changed(slower).mean() >= 0.95


def test_how_many_samples_are_left_out_is_said() -> None:
    a, b = in_processes(0.0, ROUNDS, seed=1)
    a, b = (replace(side, ns=side.ns / 45) for side in (a, b))
    b.ns[[3, 40, 77]] *= 3
    decision = judge_live_pair(a, b)
    assert decision.verdict is Verdict.SAME
    assert "samples a factor of 1.5 off are left out: 0 of A, 3 of B" in decision.warnings
    b.ns[10:16] *= 3
    assert judge_live_pair(a, b).verdict is Verdict.UNCLEAR, "9 of 100 are how B is"


def test_a_side_that_is_slow_in_some_processes_only_is_not_the_same() -> None:
    a, b = in_processes(0.0, ROUNDS, seed=1)
    b.ns[np.isin(b.rounds, (3, 11, 19))] *= 1.2
    decision = judge_live_pair(a, b)
    assert decision.verdict is Verdict.UNCLEAR
    assert "3 of 25 processes are 20 % slower than the others" in decision.reason
    b.ns[np.isin(b.rounds, (3, 11))] /= 1.2
    lone = judge_live_pair(a, b)
    assert lone.verdict is Verdict.SAME
    assert "by the trimmed mean" in lone.reason


def test_the_trimmed_mean_makes_no_change_that_the_mean_contradicts() -> None:
    """A quarter of B's processes is 3 % slower, the others faster by as much in all."""
    rng = np.random.default_rng(8)
    rounds = rng.normal(0, 0.002, (4000, ROUNDS)) + 0.03 * ((rng.random((4000, ROUNDS)) < 0.25) - 0.25)
    estimated = ratios.estimate(rounds, fresh=True)
    assert ratios.is_changed(estimated).mean() <= 0.06, "it was 0.37"
    assert not estimated.trimmed[np.abs(estimated.mean) < np.log1p(ratios.MARGIN)].all()


def test_no_gate_fails_by_what_unknown_processes_may_differ() -> None:
    """Rounds of one process do not show its offset: on real calls 1 % and more."""
    decision = judge_live_pair(*lanes(0.02))
    assert decision.verdict is Verdict.WORSE
    assert not decision.fails_gate
    assert "which process a round is from is not known" in decision.gate_note
    assert "no more than processes may differ (3 %)" in decision.gate_note
    assert decision.gate_note in decision.warnings
    assert judge_live_pair(*lanes(0.05)).fails_gate
    quiet = judge_live_pair(*lanes(0.02), process_sd=0.002)
    assert quiet.fails_gate, "the noise floor knows how far processes differ"
    assert "3 sd of the noise floor" in judge_live_pair(*lanes(0.05), process_sd=0.03).gate_note


def test_processes_that_follow_one_another_fail_no_gate() -> None:
    a, b = in_processes(0.0, ROUNDS, seed=1)
    wave = np.repeat(0.02 * np.sin(np.arange(ROUNDS) / 5), EACH)
    decision = judge_live_pair(a, replace(b, ns=b.ns * (1 + wave) * 1.02))
    assert decision.verdict is Verdict.UNCLEAR
    assert "processes are correlated (lag 1:" in decision.reason
    assert not decision.fails_gate
    far = judge_live_pair(a, replace(b, ns=b.ns * (1 + wave) * 1.2))
    assert far.verdict is Verdict.WORSE
    assert not far.fails_gate
    assert far.gate_note.startswith("a gate does not fail on this, because processes are correlated")


def test_processes_that_may_follow_one_another_fail_a_gate_by_a_wider_interval() -> None:
    """A lag 1 of 0.38 is no proof: one in 70 of 25 independent processes shows it."""
    noise = np.random.default_rng(314).normal(0, 0.012, ROUNDS)
    noise -= noise.mean()
    found = ratios.estimate(noise, fresh=True)
    assert ratios.MAX_AUTOCORRELATION < found.correlation < ratios.MAX_OF_PROCESSES
    numbers = np.arange(ROUNDS)

    def judged(change: float) -> Decision:
        a = Lane(np.full(ROUNDS, MS), numbers, processes=numbers)
        return judge_live_pair(a, replace(a, ns=MS * np.exp(noise + change)))

    near, far = judged(0.011), judged(0.02)
    assert near.verdict is far.verdict is Verdict.WORSE
    assert near.gate_interval is not None
    assert near.gate_interval.low > 0.005
    assert not near.fails_gate
    assert near.gate_note == "a gate does not fail on this, because processes may be correlated (lag 1: 0.38)"
    assert far.fails_gate
    assert not far.gate_note


@pytest.mark.slow
def test_equal_calls_of_two_lengths_are_rarely_called_changed() -> None:
    rng = np.random.default_rng(7)
    a, b = (np.where(rng.random((20_000, 25, 4)) < 0.5, 64e3, 40e3) for _ in range(2))
    found = ratios.estimate(ratios.log_ratios(a, b), fresh=True)
    assert ratios.is_changed(found).mean() < 0.009


def test_what_decides_nothing_would_have_shown_no_change() -> None:
    a, b = lanes()
    wave = np.repeat(0.02 * np.sin(np.arange(ROUNDS) / 5), EACH)
    assert judge_live_pair(a, replace(b, ns=b.ns * (1 + wave))).detectable is None
    assert judge_live_pair(a, replace(b, ns=b.ns / 1000)).detectable is None


def test_where_all_samples_together_say_otherwise_that_is_said() -> None:
    """B is slower in each round, and has more samples in the rounds in which both are fast."""
    rng = np.random.default_rng(3)
    state = np.where(np.arange(ROUNDS) < 12, 1.0, 1.2)
    a, b = (np.repeat(np.arange(ROUNDS), np.where(state > 1, slow, 7 - slow)) for slow in (6, 1))
    sides = [
        Lane(
            MS * state[rounds] * factor * np.exp(rng.normal(0, 0.002, len(rounds))), rounds, processes=rounds
        )
        for rounds, factor in ((a, 1.0), (b, 1.03))
    ]
    decision = judge_live_pair(*sides)
    assert decision.verdict is Verdict.WORSE
    assert any(warning.startswith("all samples together differ by −") for warning in decision.warnings)
