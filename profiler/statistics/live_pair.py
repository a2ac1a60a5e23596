"""Live pairs: two versions timed in alternating rounds of one run, judged by how the rounds differ.

Source: docs/verdicts.md, measured by bench/verdicts.py. Samples of one run are not independent
(clock states, drift, jitter with memory), so a test on them calls equal builds different; the log-ratios of
rounds A B B A nearly are independent, since both sides of a round met the same state.

Assumed: rounds enough for the mean of their log-ratios to be normal, and rounds that do not follow one
another (a warning where they do).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from profiler.statistics.decision import (
    Decision,
    Interval,
    change_text,
    share_text,
    verdict_of_change,
)
from profiler.statistics.ratios import (
    MARGIN,
    MIN_PROCESSES,
    MIN_ROUNDS,
    POWER,
    SHORT_NS,
    Floats,
    estimate,
    is_changed,
    is_same,
    is_worse_beyond_margin,
    p_values,
    process_means,
    process_sd,
    rounds_needed,
    t_quantile,
)
from profiler.statistics.verdict import Verdict

LIVE_PAIR = "live pair"
ENOUGH_ROUNDS = 10  # fewer are judged with a warning
ADVISED_ROUNDS = 25  # for a pair that has too few to be judged
TICK_NS = 1024.0  # of event timers, where the samples do not show a finer one
MEDIAN_ERROR = 1.2533  # standard error of a normal median, in those of the mean
MAX_AUTOCORRELATION = 0.3  # at lag 1: rounds with a larger one are judged with a warning


class Timed(Protocol):
    """Samples of one version and mode in time order, as runs and the index have them."""

    @property
    def ns(self) -> Any: ...
    @property
    def rounds(self) -> Any: ...
    @property
    def clocks_mhz(self) -> Any: ...  # one a sample, or none
    @property
    def throttled(self) -> Any: ...  # positions of samples
    @property
    def processes(self) -> Any: ...  # one a sample, or none: not known


def judge_live_pair(
    a: Timed, b: Timed, *, better: str = "lower", margin: float = MARGIN, warm_up: int = 0
) -> Decision:
    """Judge B against A by the rounds that both have, without the first `warm_up` samples of each.

    The interval comes from the means of the processes, where the samples say which process they are from.
    Raises ValueError for a sample that is no positive, finite number of ns, and for ragged fields.
    """
    sides = [_by_round(side, name, warm_up) for side, name in ((a, "A"), (b, "B"))]
    shared = sorted(set(sides[0]) & set(sides[1]))
    warnings = []
    if unpaired := len(set(sides[0]) ^ set(sides[1])):
        warnings.append(f"{_count_rounds(unpaired)} on one side only: left out")
    if len(shared) < MIN_ROUNDS:
        reason = f"{_count_rounds(len(shared))} that both sides have: fewer than {MIN_ROUNDS} are not judged"
        return Decision(
            Verdict.UNCLEAR,
            reason,
            LIVE_PAIR,
            rounds=len(shared),
            rounds_needed=ADVISED_ROUNDS,
            warnings=tuple(warnings),
        )
    ratios, tick = _ratios(*([side[number] for number in shared] for side in sides))
    processes = _processes(a, b, shared)
    decision = _judge_rounds(ratios, processes, tick, better, margin)
    if processes is None:
        warnings.append("which process a round is from is not known: the interval leaves out their offsets")
    if len(shared) < ENOUGH_ROUNDS:
        warnings.append(f"only {len(shared)} rounds")
    correlation = autocorrelation(ratios)
    if correlation > MAX_AUTOCORRELATION and len(shared) >= ENOUGH_ROUNDS:
        warnings.append(f"rounds follow one another (lag 1: {correlation:.2f}): the interval is too narrow")
    warnings += _throttle_warnings(a, b, shared, ratios, processes, tick, better, margin, decision.verdict)
    warnings += _clock_warnings(a, b, shared, ratios, decision.verdict)
    return replace(decision, warnings=(*warnings, *decision.warnings))


def autocorrelation(ratios: Floats) -> float:
    """Lag-1 autocorrelation of log-ratios [rounds]; 0 where they do not vary."""
    deviations = ratios - ratios.mean()
    total = float((deviations * deviations).sum())
    return float((deviations[1:] * deviations[:-1]).sum()) / total if total > 0 else 0.0


def _processes(a: Timed, b: Timed, shared: Sequence[int]) -> NDArray[np.int64] | None:
    """The process of each round that both have; None where a side does not say. Raises ValueError if ragged.

    A round whose sides are from two processes counts as from a process of its own.
    """
    by_side = []
    for side, name in ((a, "A"), (b, "B")):
        rounds, processes = np.asarray(side.rounds), np.asarray(side.processes, np.int64)
        if not len(processes):
            return None
        if processes.shape != rounds.shape:
            raise ValueError(f"{name} has {rounds.size} samples and {processes.size} process numbers")
        by_side.append([int(processes[rounds == number][0]) for number in shared])
    pairs = list(zip(*by_side, strict=True))
    places = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
    return np.array([places[pair] for pair in pairs], np.int64)


def _judge_rounds(
    ratios: Floats, processes: NDArray[np.int64] | None, tick: float, better: str, margin: float
) -> Decision:
    """The decision by log-ratios [rounds], by process where `processes` [rounds] are known."""
    rounds = len(ratios)
    if processes is None:
        return _judge(ratios, tick, better, margin, f"in {rounds} rounds")
    count = len(np.unique(processes))
    basis = f"in {rounds} rounds of {_count_processes(count)}"
    if count < MIN_PROCESSES:
        effect = float(np.expm1(ratios.mean()))
        reason = (
            f"{change_text(effect)} {basis}: fewer than {MIN_PROCESSES} do not show how far processes differ"
        )
        return Decision(
            Verdict.UNCLEAR,
            reason,
            LIVE_PAIR,
            effect=effect,
            rounds=rounds,
            rounds_needed=ADVISED_ROUNDS,
            processes=count,
        )
    decision = _judge(process_means(ratios, processes), tick, better, margin, basis, rounds / count)
    spread = float(np.expm1(process_sd(ratios, processes)))
    return replace(decision, rounds=rounds, processes=count, process_sd=spread)


def _judge(
    ratios: Floats, tick: float, better: str, margin: float, basis: str, rounds_each: float = 1.0
) -> Decision:
    """The decision by independent log-ratios, of rounds or of processes that have `rounds_each` rounds.

    `tick` is the timer's, as a share of A; `basis` says how much data it is.
    """
    estimated = estimate(ratios)
    warnings = []
    if (
        estimated.error < 1e-12
    ):  # every round says the same: the timer's tick is all that is known of the noise
        estimated = estimated._replace(error=np.asarray(tick / 2 / t_quantile(0.995, estimated.units - 1)))
        warnings.append(
            f"the rounds do not differ at all: half a tick of the timer, {share_text(tick / 2)}, stands in"
        )
    mean, wide, narrow = float(estimated.mean), float(estimated.half(0.99)), float(estimated.half(0.95))
    effect = float(np.expm1(mean))
    interval = Interval(float(np.expm1(mean - wide)), float(np.expm1(mean + wide)))
    gate_interval = Interval(float(np.expm1(mean - narrow)), float(np.expm1(mean + narrow)))
    change = f"{change_text(effect)} (99 %: {interval}) {basis}"
    needed, remark = None, None
    if bool(is_changed(estimated, margin)):
        verdict, reason, remark = verdict_of_change(mean, better), change, ""
    elif bool(is_same(estimated, margin)):
        verdict = Verdict.SAME
        within = f"within ±{share_text(margin)} (95 %: {gate_interval})"
        reason = f"{change_text(effect)} {basis}, {within}"
    else:
        verdict, needed = Verdict.UNCLEAR, rounds_needed(estimated, margin, rounds_each)
        remark = (
            f"{needed} rounds would tell"
            if needed
            else f"too near ±{share_text(margin)} for any number of rounds"
        )
        reason = f"{change}; {remark}"
    chance = float(t_quantile(POWER, estimated.units - 1) * estimated.error)
    # A change is found where it is outside the interval, and its median too is beyond the margin.
    detectable = max(wide + chance, np.log1p(margin) + MEDIAN_ERROR * chance)
    return Decision(
        verdict,
        reason,
        LIVE_PAIR,
        effect=effect,
        interval=interval,
        gate_interval=gate_interval,
        detectable=float(np.expm1(detectable)),
        rounds=estimated.units,
        rounds_needed=needed,
        p=float(p_values(estimated)),
        fails_gate=bool(is_worse_beyond_margin(estimated, better, margin)),
        warnings=tuple(warnings),
        remark=remark,
    )


def _by_round(side: Timed, name: str, warm_up: int) -> dict[int, Floats]:
    """The samples of each round without the first `warm_up`; a round of which none are left is left out."""
    ns, rounds = np.asarray(side.ns, np.float64), np.asarray(side.rounds, np.int64)
    if ns.shape != rounds.shape or ns.ndim != 1:
        raise ValueError(
            f"{name} has {ns.size} samples and {rounds.size} round numbers: one a sample is needed"
        )
    bad = np.flatnonzero(~(np.isfinite(ns) & (ns > 0)))
    if len(bad):
        raise ValueError(f"sample {bad[0]} of {name} is {ns[bad[0]]} ns: a latency is positive and finite")
    by_round = {int(number): ns[rounds == number][warm_up:] for number in np.unique(rounds)}
    return {number: samples for number, samples in by_round.items() if len(samples)}


def _ratios(a: Sequence[Floats], b: Sequence[Floats]) -> tuple[Floats, float]:
    """log(B / A) of each round, whatever the number of samples, and the timer's tick as a share of A."""
    level = float(np.median(np.concatenate(a)))
    average = np.mean if level < SHORT_NS else np.median
    steps = np.diff(np.unique(np.concatenate((*a, *b))))
    tick = min(float(steps.min()), TICK_NS) if len(steps) else TICK_NS
    ratios = [np.log(average(of_b) / average(of_a)) for of_a, of_b in zip(a, b, strict=True)]
    return np.array(ratios), tick / level


def _throttle_warnings(
    a: Timed,
    b: Timed,
    shared: Sequence[int],
    ratios: Floats,
    processes: NDArray[np.int64] | None,
    tick: float,
    better: str,
    margin: float,
    verdict: Verdict,
) -> list[str]:
    """In how many rounds the GPU throttled, and the verdict without them where it is another one."""
    throttled_rounds = set()
    for side in (a, b):
        throttled_rounds |= set(np.asarray(side.rounds)[np.asarray(side.throttled, np.int64)].tolist())
    unthrottled = np.array([number not in throttled_rounds for number in shared])
    if unthrottled.all():
        return []
    warning = f"the GPU was throttled in {int((~unthrottled).sum())} of {len(shared)} rounds"
    if unthrottled.sum() < MIN_ROUNDS:
        return [warning]
    of_rounds = None if processes is None else processes[unthrottled]
    without = _judge_rounds(ratios[unthrottled], of_rounds, tick, better, margin).verdict
    return [warning if without is verdict else f"{warning}; without them the verdict is {without}"]


def _clock_warnings(a: Timed, b: Timed, shared: Sequence[int], ratios: Floats, verdict: Verdict) -> list[str]:
    """Where the clock is known: whether it moved, and whether a change in time is one in cycles."""
    clocks_by_round = []
    for side in (a, b):
        clocks, rounds = np.asarray(side.clocks_mhz, np.float64), np.asarray(side.rounds)
        if clocks.shape != rounds.shape or not len(clocks) or not (np.isfinite(clocks) & (clocks > 0)).all():
            return []
        clocks_by_round.append(np.array([clocks[rounds == number].mean() for number in shared]))
    warnings = []
    clock = np.log(clocks_by_round[1] / clocks_by_round[0])
    if abs(clock.mean()) > np.log1p(MARGIN):
        warnings.append(f"the SM clock was {change_text(float(np.expm1(clock.mean())))} in B")
    cycles = estimate(ratios + clock)
    if verdict.traits.moved and abs(cycles.mean) <= cycles.half(0.99):
        change = change_text(float(np.expm1(cycles.mean)))
        warnings.append(f"in cycles nothing moved ({change}): the clock did")
    return warnings


def _count_rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _count_processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"
