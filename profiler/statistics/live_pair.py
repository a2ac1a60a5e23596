"""Live pairs: two versions timed in alternating rounds of one run, judged by how the rounds differ.

Source: docs/calibration.md, measured by bench/verdicts.py. Samples of one run are not independent
(clock states, drift, jitter with memory), so a test on them calls equal builds different; the log-ratios of
rounds nearly are, since both sides of a round met the same state, in an order drawn at random. Rounds of one
process share its offset: where the samples say which process they are from, its mean is one value.

Assumed: processes that do not follow one another (looked at: where they do the interval is widened and no
gate fails), and enough of them for their mean to be normal; where the trimmed mean is used, tails as heavy
below as above. Rounds whose process is not known may follow one another as far as their lag 1 leaves
possible; where it is above 0.3 they decide nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from profiler.statistics import ratios as rules
from profiler.statistics.decision import (
    Decision,
    Interval,
    change_text,
    share_text,
    units_question,
    verdict_of_change,
)
from profiler.statistics.ratios import (
    MARGIN,
    MEDIAN_ERROR,
    MIN_PROCESSES,
    MIN_ROUNDS,
    POWER,
    UNKNOWN_OFFSET,
    Estimate,
    Floats,
    t_quantile,
)
from profiler.statistics.verdict import Verdict

LIVE_PAIR = "live pair"
_LOUD = 0.5  # of the margin: a larger standard error leaves much open, wherever the change lies
_OFFSET_SDS = 3.0  # sd of the offset of a process: more than it makes by itself
ENOUGH_ROUNDS = 10  # fewer are judged with a warning
ADVISED_ROUNDS = 25  # for a pair that has too few to be judged


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
    a: Timed,
    b: Timed,
    *,
    better: str = "lower",
    margin: float = MARGIN,
    warm_up: int = 0,
    process_sd: float | None = None,
) -> Decision:
    """Judge B against A by the rounds that both have, without the first `warm_up` samples of each.

    The interval comes from the means of the processes, where the samples say which process they are from.
    Where they do not, `process_sd` of the noise floor (a log-ratio) says how far a process may lie off.
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
    ratios, tick, left_out = _ratios(*([side[number] for number in shared] for side in sides))
    processes = _processes(a, b, shared)
    decision = _judge_rounds(ratios, processes, tick, better, margin, process_sd)
    if processes is None:
        warnings.append("the processes of the rounds are not recorded: the interval leaves out their offsets")
    together_a, together_b = rules.pair_ns(
        *(np.concatenate([side[number] for number in shared]) for side in sides)
    )
    together = float(together_b / together_a - 1)
    if decision.verdict.traits.moved and decision.effect is not None and together * decision.effect < 0:
        warnings.append(
            f"all samples together differ by {change_text(together)}: rounds are compared one by one"
        )
    if any(left_out):
        counts = f"{left_out[0]} of A, {left_out[1]} of B"
        warnings.append(f"samples a factor of {rules.OUTLIER:g} off are left out: {counts}")
    if len(shared) < ENOUGH_ROUNDS:
        warnings.append(f"only {len(shared)} rounds")
    warnings += _throttle_warnings(a, b, shared, ratios, processes, tick, better, margin, decision.verdict)
    warnings += _clock_warnings(a, b, shared, ratios, processes, decision.verdict)
    return replace(decision, warnings=(*warnings, *decision.warnings))


def _gate_note(estimated: Estimate, effect: float, process_sd: float | None) -> str:
    """Why no gate fails by a change that is worse, and the interval beyond the margin.

    Rounds of unknown processes show nothing of how far the few that they may be from lie off.
    """
    follows = "processes" if estimated.degrees is None else "rounds"
    if bool(estimated.correlated):
        return f"a gate does not fail on this, because {follows} are correlated {_lag_text(estimated)}"
    if bool(estimated.gate_widening > 1):
        return f"a gate does not fail on this, because {follows} may be correlated {_lag_text(estimated)}"
    known = "" if process_sd is None else f", {_OFFSET_SDS:g} sd of the noise floor"
    return (
        f"a gate does not fail on this, because {change_text(effect)} is no more than processes may differ "
        f"({share_text(_offset(process_sd))}{known}), and which process a round is from is not known"
    )


def _offset(process_sd: float | None) -> float:
    return UNKNOWN_OFFSET if process_sd is None else float(np.expm1(_OFFSET_SDS * process_sd))


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
    ratios: Floats,
    processes: NDArray[np.int64] | None,
    tick: float,
    better: str,
    margin: float,
    process_sd: float | None = None,
) -> Decision:
    """The decision by log-ratios [rounds], by process where `processes` [rounds] are known."""
    rounds = len(ratios)
    if processes is None:
        return _judge(ratios, tick, better, margin, f"in {rounds} rounds", process_sd=process_sd)
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
    means = rules.process_means(ratios, processes)
    decision = _judge(means, tick, better, margin, basis, rounds / count, fresh=True)
    spread = float(np.expm1(rules.process_sd(ratios, processes)))
    return replace(decision, rounds=rounds, processes=count, process_sd=spread)


def _words_of_far(ratios: Floats, fresh: bool) -> str:
    """Which log-ratios lie far out on one side: `3 of 25 processes are 20 % slower`; "" where none do."""
    below, above = rules.far_out(ratios)
    if not rules.is_one_sided(below, above):
        return ""
    deviations = ratios - np.median(ratios)
    count, sign = (int(above), 1.0) if above > below else (int(below), -1.0)
    farthest = np.sort(sign * deviations)[-count:]
    size = float(np.expm1(sign * np.median(farthest)))
    units = "processes" if fresh else "rounds"
    return f"{count} of {len(ratios)} {units} are {share_text(size)} {'slower' if sign > 0 else 'faster'}"


def _judge(
    ratios: Floats,
    tick: float,
    better: str,
    margin: float,
    basis: str,
    rounds_each: float = 1.0,
    *,
    fresh: bool = False,
    process_sd: float | None = None,
) -> Decision:
    """The decision by independent log-ratios, of rounds or of processes that have `rounds_each` rounds.

    `tick` is what the timer may have moved their mean by; `basis` says how much data it is. `fresh`: the
    log-ratios are of processes.
    """
    estimated = rules.estimate(ratios, tick, fresh=fresh)
    mean, wide, narrow = float(estimated.mean), float(estimated.half(0.99)), float(estimated.half(0.95))
    effect = float(np.expm1(mean))
    interval = Interval(float(np.expm1(mean - wide)), float(np.expm1(mean + wide)))
    gate_interval = Interval(float(np.expm1(mean - narrow)), float(np.expm1(mean + narrow)))
    if bool(estimated.trimmed):
        basis += " by the trimmed mean"
    change = f"{change_text(effect)} (99 %: {interval}) {basis}"
    needed, remark = None, None
    if question := units_question(mean):
        verdict, remark = Verdict.UNCLEAR, question
        reason = f"{change_text(effect)} {basis}; {remark}"
    elif bool(rules.is_changed(estimated, margin)):
        verdict, reason, remark = verdict_of_change(mean, better), change, ""
    elif bool(rules.is_same(estimated, margin)):
        verdict = Verdict.SAME
        within = f"within ±{share_text(margin)} (95 %: {gate_interval})"
        reason = f"{change_text(effect)} {basis}, {within}"
    else:
        verdict = Verdict.UNCLEAR
        needed, remark = _what_would_tell(estimated, margin, rounds_each, fresh)
        if far := _words_of_far(ratios, fresh):
            remark = f"{far} than the others; {remark}"
        reason = f"{change}; {remark}"
    offset = 0.0 if fresh else _offset(process_sd)
    fails_gate = bool(rules.is_worse_beyond_margin(estimated, better, margin, offset))
    without = estimated._replace(correlated=False, gate_widening=1.0)
    gate_note = ""
    if not fails_gate and bool(rules.is_worse_beyond_margin(without, better, margin)):
        gate_note = _gate_note(estimated, effect, process_sd)
    error = float(estimated.error * estimated.inflation)
    chance = float(t_quantile(POWER, estimated.units - 1)) * error
    # A change is found where it is outside the interval, and its median too is beyond the margin.
    detectable = max(wide + chance, np.log1p(margin) + MEDIAN_ERROR * chance)
    # Where no verdict follows whatever the change, none would have shown.
    could_show = not question and not bool(estimated.undecided)
    # A new collection says which process its rounds are from, and meets another stretch of time.
    may_tell = bool(estimated.correlated) or (not fresh and not estimated.tick > 0)
    return Decision(
        verdict,
        reason,
        LIVE_PAIR,
        effect=effect,
        interval=interval,
        gate_interval=gate_interval,
        detectable=float(np.expm1(detectable)) if could_show else None,
        rounds=estimated.units,
        rounds_needed=needed,
        rerun_tells=verdict is not Verdict.UNCLEAR or (not question and (needed is not None or may_tell)),
        p=float(rules.p_values(estimated)),
        fails_gate=fails_gate,
        gate_note=gate_note,
        warnings=(*_estimate_warnings(estimated), *([gate_note] if gate_note else [])),
        remark=remark,
    )


def _what_would_tell(
    estimated: Estimate, margin: float, rounds_each: float, fresh: bool
) -> tuple[int | None, str]:
    """How many rounds would settle what is unclear, None where no number would, and that in words."""
    if bool(estimated.undecided):
        follows = f"rounds are correlated {_lag_text(estimated)} and decide nothing"
        return None, f"{follows}: samples with their process recorded would decide"
    independent = estimated.as_independent
    decided = bool(rules.is_changed(independent, margin) | rules.is_same(independent, margin))
    if decided and fresh:
        follows = f"processes are correlated {_lag_text(estimated)}, which leaves the change open"
        return None, f"{follows}: collecting again would decide"
    without_tick = estimated._replace(tick=0.0)
    if bool(rules.is_changed(without_tick, margin) | rules.is_same(without_tick, margin)):
        tick = share_text(float(np.expm1(estimated.tick)))
        return None, f"a tick of the timer is {tick} of a sample: more calls per sample would decide"
    needed = rules.rounds_needed(estimated, margin, rounds_each)
    if decided:
        # Only the lag that may be there leaves it open: more rounds, or known processes, rule that lag out.
        more = f"{needed} rounds, or " if needed else ""
        lag = f"rounds may be correlated (lag 1 up to {float(rules.largest_lag(estimated)):.2f})"
        return needed, f"{lag}: {more}samples with their process recorded would decide"
    if needed:
        # More rounds in as few processes would tell nothing new of what processes have of their own.
        processes = f" in {-int(-needed // rounds_each)} processes" if fresh else ""
        return needed, f"{needed} rounds{processes} would decide"
    limit = float(np.log1p(margin))
    is_loud = float(estimated.error) > _LOUD * limit
    why = "the noise is large" if is_loud else f"the change is near ±{share_text(margin)}"
    return None, f"{why}: more than {rules.MAX_ROUNDS:,} rounds would be needed"


def _estimate_warnings(estimated: Estimate) -> list[str]:
    """What widened the interval beyond the rounds' own scatter."""
    warnings = []
    if estimated.tick > 0:
        tick = share_text(float(np.expm1(estimated.tick)))
        warnings.append(f"samples stick to ticks of the timer: a tick, {tick}, is added to the interval")
    wider = f"the interval is {float(estimated.times_as_wide):.1f} times as wide"
    if bool(estimated.correlated):
        follows = "processes" if estimated.degrees is None else "rounds"
        warnings.append(f"{follows} are correlated {_lag_text(estimated)}: {wider}")
    elif estimated.degrees is not None and float(estimated.times_as_wide) >= 1.05:
        largest = float(rules.largest_lag(estimated))
        warnings.append(f"{wider} as of independent rounds: their lag 1 may be up to {largest:.2f}")
    return warnings


def _lag_text(estimated: Estimate) -> str:
    return f"(lag 1: {float(estimated.correlation):.2f})"


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


def _ratios(a: Sequence[Floats], b: Sequence[Floats]) -> tuple[Floats, float, tuple[int, int]]:
    """log(B / A) of each round, whatever the number of samples; what the timer may move their mean by.

    Last, how many samples of each side are left out as too far from the others.
    """
    whole_a, whole_b = np.concatenate(a), np.concatenate(b)
    short = bool(rules.is_short(whole_a, whole_b))
    far_a, far_b = rules.left_out(whole_a, whole_b)
    of_a, of_b = (
        [
            float(rules.level_ns(ns, is_far, short))
            for ns, is_far in zip(side, np.split(far, np.cumsum([len(ns) for ns in side[:-1]])), strict=True)
        ]
        for side, far in ((a, far_a), (b, far_b))
    )
    counts = (int(far_a.sum()), int(far_b.sum())) if short else (0, 0)
    return np.log(of_b) - np.log(of_a), float(rules.tick_error(whole_a, whole_b)), counts


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


def _clock_warnings(
    a: Timed,
    b: Timed,
    shared: Sequence[int],
    ratios: Floats,
    processes: NDArray[np.int64] | None,
    verdict: Verdict,
) -> list[str]:
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
    if not verdict.traits.moved:
        return warnings
    in_cycles = ratios + clock
    if processes is not None:
        in_cycles = rules.process_means(in_cycles, processes)
    cycles = rules.estimate(in_cycles, fresh=processes is not None)
    if abs(cycles.mean) <= cycles.half(0.99):
        change = change_text(float(np.expm1(cycles.mean)))
        warnings.append(f"cycles did not move ({change}): the clock did")
    return warnings


def _count_rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _count_processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"
