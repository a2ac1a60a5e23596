"""Splits a difference in time into causes, by a launch's time identity and log-mean Divisia weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from profiler.evidence.values import Value
from profiler.explain.identity_factors import CLOCK_FROM_TIME, MOST, StandIn, read_factors, usable_numbers

# A residue above either share is flagged: of the longer time, of the change.
MAX_TIME_SHARE, MAX_CHANGE_SHARE = 0.03, 0.25
# How far from 1 the stalls' sum over the latency may be for the stalls to stand for all of it.
STALL_RATIO_TOLERANCE = 0.2
FULL, WAITING_UNDIVIDED, CYCLES_ONLY, NO_SPLIT = "full", "waiting undivided", "cycles", "none"  # depths
WORK, WAITING, PARALLELISM, BALANCE, CLOCK = "work", "waiting", "parallelism", "balance", "clock"
CYCLES = "cycles"  # the cause that stands for all but the clock where the counters say no more
UNATTRIBUTED = ""  # the reason of what no stall accounts for: its cause is plain "waiting"
RESIDUE = "residue"
OTHER_REASONS = f"{WAITING}: other reasons"

_SMALL_STEP = 0.005  # of the largest term: a stall under it is one of the other reasons
_NOTHING_LEFT = 1e-9  # of the time: a residue below it is of the arithmetic, not of the passes


class TimeFactors(NamedTuple):
    """The factors of a launch's time, none of them missing: see TimeIdentity."""

    instructions: float
    latency: float
    warps: float
    schedulers: float
    active_share: float
    clock_hz: float

    @property
    def time_us(self) -> float:
        """The time that they give."""
        return self.instructions * self.latency / (self.gpu_warps * self.active_share * self.clock_hz) * 1e6

    @property
    def gpu_warps(self) -> float:
        """The active warps of the whole GPU."""
        return self.warps * self.schedulers


@dataclass(frozen=True)
class TimeIdentity:
    """The factors of a launch's time, `T = I·L / (W·S·a·f)`; None where the report lacks one."""

    time_us: float | None
    clock_hz: float | None  # f
    instructions: float | None  # I, issued, of all schedulers
    latency: float | None  # L, cycles a warp spends per issued instruction
    warps: float | None  # W, active warps of a scheduler
    schedulers: float | None  # S, of the whole GPU
    active_share: float | None  # a, of the elapsed cycles
    cycles: float | None = None  # elapsed
    stalls: Mapping[str, float] = field(default_factory=dict)  # cycles per issued instruction by reason
    stalls_whole: bool = False  # whether these are all the reasons that the chip has
    missing: tuple[str, ...] = ()  # concepts and stall reasons that the full split lacks
    stand_ins: tuple[
        StandIn, ...
    ] = ()  # what factors were computed from where their own counters are missing
    inputs: tuple[str, ...] = ()  # the concepts that the factors were read from

    @property
    def factors(self) -> TimeFactors | None:
        """All factors; None where one is missing."""
        found = [getattr(self, name) for name in TimeFactors._fields]
        return None if None in found else TimeFactors(*found)

    @property
    def modelled_us(self) -> float | None:
        """The time computed from the counters; replay passes let it differ from time_us."""
        factors = self.factors
        return None if factors is None else factors.time_us


@dataclass(frozen=True)
class Term:
    """The time that one cause adds; negative if it takes time away."""

    cause: str  # work, waiting:<reason>, waiting, cycles, parallelism, balance or clock
    us: float


@dataclass(frozen=True)
class TimeSplit:
    """A difference in time as a sum: the terms and the residue add up to delta_us."""

    terms: tuple[Term, ...]
    residue_us: float
    delta_us: float
    depth: str  # full, "waiting undivided", cycles or none
    stall_ratio_a: float | None = None  # sum of the stalls over the latency
    stall_ratio_b: float | None = None
    stall_skew_us: float = 0.0  # what scaling the stalls to the latency took out of the residue
    flagged: str = ""  # why the residue is too large to trust the terms; "" where it is not
    reasons_flagged: str = ""  # why the skew is too large to trust single reasons; waiting as a whole stands
    clock_from_time: bool = False  # the clock is cycles over time, since a side has no clock of its own
    stand_ins: tuple[
        StandIn, ...
    ] = ()  # what factors were computed from where their own counters are missing
    inputs: tuple[str, ...] = ()  # the concepts of metrics.txt that the factors were read from
    longer_us: float = 0.0  # the time of the slower side

    @property
    def residue_is_made_zero(self) -> bool:
        """Whether factors were computed from one another, so that no residue can show passes that differ."""
        return bool(self.stand_ins) and abs(self.residue_us) <= _NOTHING_LEFT * self.longer_us

    @property
    def noise_us(self) -> float:
        """What a term may be off by, since factors were computed from counters of another meaning; else 0."""
        most = max((stand_in.most_off_pct for stand_in in self.stand_ins), default=0.0)
        return most / 100 * self.longer_us

    def is_noise(self, us: float) -> bool:
        """Whether a term is smaller than what it may be off by."""
        return abs(us) < self.noise_us

    def total(self, kind: str) -> float:
        """The sum of the terms of one kind; "waiting" includes every reason."""
        return math.fsum(term.us for term in self.terms if term.cause.partition(":")[0] == kind)


@dataclass(frozen=True)
class WaterfallStep:
    """One row between the old time and the new: its label, and the time that it adds."""

    label: str
    us: float
    is_stall: bool = False  # the waiting for one stall reason, or for several

    @property
    def words(self) -> str:
        """The label as a table shows it: `stall: wait (fixed latency)`."""
        words = self.label.replace(f"{WAITING}:", "stall:") if self.is_stall else self.label
        return f"{words} (fixed latency)" if self.reason == "wait" else words

    @property
    def kind(self) -> str:
        """The kind of cause: work, waiting, parallelism …; residue."""
        return self.label.partition(":")[0]

    @property
    def reason(self) -> str:
        """The stall reason; "" where it is no stall, or several."""
        return "" if self.label == OTHER_REASONS else self.label.partition(": ")[2]


def read_identities(
    a: Mapping[str, Value], b: Mapping[str, Value], stalls: Mapping[str, tuple[Value, Value]]
) -> tuple[TimeIdentity, TimeIdentity]:
    """The identities of two launches from their values by concept (see CONCEPTS) and by stall reason.

    Each factor is read in the same way on both sides, or on neither. Numbers that are not above zero, or too
    large to be true, count as missing; a stall may be zero.
    """
    factors = read_factors(a, b)
    stall_numbers = {
        reason: (float(value_a.number), float(value_b.number))
        for reason, (value_a, value_b) in stalls.items()
        if value_a.number is not None
        and value_b.number is not None
        and min(value_a.number, value_b.number) >= 0
        and max(value_a.number, value_b.number) < MOST
    }
    missing = (*factors.missing, *(reason for reason in stalls if reason not in stall_numbers))
    identity_a, identity_b = (
        TimeIdentity(
            time_us=letters["T"],
            clock_hz=letters["f"],
            instructions=letters["I"],
            latency=letters["L"],
            warps=letters["W"],
            schedulers=letters["S"],
            active_share=letters["a"],
            cycles=letters["C"],
            stalls={reason: numbers[side] for reason, numbers in stall_numbers.items()},
            stalls_whole=bool(stall_numbers) and len(stall_numbers) == len(stalls),
            missing=tuple(dict.fromkeys(missing)),
            stand_ins=factors.stand_ins,
            inputs=factors.inputs,
        )
        for side, letters in enumerate((factors.a, factors.b))
    )
    return identity_a, identity_b


def usable_time_us(value: Value) -> float | None:
    """A time in microseconds; None for a value that is not a time above zero."""
    return usable_numbers({"duration": value}).get("duration")


def split_time(a: TimeIdentity, b: TimeIdentity) -> TimeSplit:
    """Split `b.time_us - a.time_us` as deep as both identities allow; exact at every depth but "none".

    Raises ValueError where a side has no time.
    """
    if a.time_us is None or b.time_us is None:
        raise ValueError("a launch without a time cannot be split")
    delta = b.time_us - a.time_us
    ratios = (_stall_ratio(a), _stall_ratio(b))
    depth = NO_SPLIT
    clock_from_time = any(stand_in.words == CLOCK_FROM_TIME for stand_in in a.stand_ins)
    terms: tuple[Term, ...] = ()
    factors_a, factors_b = a.factors, b.factors
    if factors_a and factors_b:
        shares = _latency_shares((a, b), (factors_a.latency, factors_b.latency), ratios)
        depth, terms = _full_terms(factors_a, factors_b, *shares)
    elif a.cycles is not None and b.cycles is not None:
        clock_from_time |= None in (a.clock_hz, b.clock_hz)
        depth, terms = CYCLES_ONLY, _cycle_terms(a, b, clock_from_time)
    residue = math.fsum((delta, *(-term.us for term in terms))) + 0.0  # + 0.0: no negative zero
    longer = max(a.time_us, b.time_us)
    stalls_scaled = depth == FULL and not any(term.cause == WAITING for term in terms)
    skew = _stall_skew_us(a, b, ratios) if stalls_scaled else 0.0
    return TimeSplit(
        terms,
        residue,
        delta,
        depth,
        *ratios,
        stall_skew_us=skew,
        flagged=_flag(residue, delta, longer) if terms else "",
        reasons_flagged=_flag(skew, delta, longer) if skew else "",
        clock_from_time=clock_from_time,
        stand_ins=a.stand_ins if depth != NO_SPLIT else (),
        inputs=a.inputs if depth != NO_SPLIT else (),
        longer_us=longer,
    )


def waterfall_steps(start_us: float, split: TimeSplit) -> tuple[WaterfallStep, ...]:
    """Work, stalls that add time, stalls that save time, small stalls, the other terms, the residue.

    The old time and the steps add up to the new time. Stalls that add are sorted largest first. Where the
    running sum would fall below zero in this order, all steps that add time come first.
    """
    stalls = [term for term in split.terms if term.cause.startswith(WAITING)]
    small = _SMALL_STEP * max((abs(term.us) for term in split.terms), default=0.0)
    large = sorted((term for term in stalls if term.us and abs(term.us) >= small), key=lambda term: -term.us)
    others = math.fsum(term.us for term in stalls if term not in large)
    work = [term for term in split.terms if term.cause == WORK]
    adding = [term for term in large if term.us > 0]
    removing = [term for term in reversed(large) if term.us < 0]
    steps = [_waterfall_step(term) for term in (*work, *adding, *removing)]
    if others:
        steps.append(WaterfallStep(OTHER_REASONS, others, is_stall=True))
    steps += [_waterfall_step(term) for term in split.terms if term not in (*stalls, *work)]
    steps.append(WaterfallStep(RESIDUE, split.residue_us))
    if min(accumulate((step.us for step in steps), initial=start_us)) < 0:
        steps.sort(key=lambda step: step.us < 0)
    return tuple(steps)


def largest_step_us(steps: Sequence[WaterfallStep]) -> float:
    """The size of the largest step, which decides the digits of all."""
    return max(abs(step.us) for step in steps)


def log_ratio(a: float, b: float) -> float:
    """ln(b / a) of two numbers above zero, exact near 1; swapping them gives exactly the negative."""
    near = (b - a) / (a + b)
    return 2 * math.atanh(near) if abs(near) < 0.5 else math.log(b) - math.log(a)


def log_mean(a: float, b: float) -> float:
    """The logarithmic mean of two numbers above zero, the weight of LMDI-I; a where both are equal.

    Source: B. W. Ang, "LMDI decomposition approach: a guide for implementation", Energy Policy 86, 2015.
    """
    return a if a == b else (b - a) / log_ratio(a, b)


def _full_terms(
    a: TimeFactors, b: TimeFactors, shares_a: Mapping[str, float], shares_b: Mapping[str, float]
) -> tuple[str, tuple[Term, ...]]:
    """Split the whole identity, summed over the stalls: the depth and the terms.

    The weights are summed over the stall terms, not computed from the total, so that the parts of the latency
    and the other factors share one decomposition without a remainder. A stall that is zero on one side has no
    logarithm: it gets its whole change.
    """
    weights: list[float] = []
    waiting: dict[str, float] = {}
    for reason, share_a in shares_a.items():
        share_b = shares_b[reason]
        from_us, to_us = a.time_us * share_a, b.time_us * share_b
        if share_a and share_b:
            weights.append(log_mean(from_us, to_us))
            waiting[reason] = weights[-1] * log_ratio(share_a * a.latency, share_b * b.latency)
        else:
            waiting[reason] = to_us - from_us
    factors = (
        (WORK, log_ratio(a.instructions, b.instructions)),
        (PARALLELISM, -log_ratio(a.gpu_warps, b.gpu_warps)),
        (BALANCE, -log_ratio(a.active_share, b.active_share)),
        (CLOCK, -log_ratio(a.clock_hz, b.clock_hz)),
    )
    total = math.fsum(weights)
    work, *others = (Term(cause, total * change + 0.0) for cause, change in factors)
    terms = tuple(
        Term(f"{WAITING}:{reason}" if reason else WAITING, us + 0.0) for reason, us in waiting.items()
    )
    depth = WAITING_UNDIVIDED if set(shares_a) == {UNATTRIBUTED} else FULL
    return depth, (work, *terms, *others)


def _latency_shares(
    identities: tuple[TimeIdentity, TimeIdentity],
    latencies: tuple[float, float],
    ratios: Sequence[float | None],
) -> tuple[dict[str, float], dict[str, float]]:
    """The shares of each side's latency by stall reason; the shares of a side add up to 1.

    If all stalls are known they are scaled to the latency. Otherwise they keep their size, and what they
    leave of the latency is a share of its own.
    """
    a, b = identities
    reasons = [reason for reason in a.stalls if reason in b.stalls]
    near = all(ratio is not None and abs(ratio - 1) <= STALL_RATIO_TOLERANCE for ratio in ratios)
    whole = near and a.stalls_whole and b.stalls_whole
    sides = []
    for identity, latency in zip(identities, latencies, strict=True):
        stalls = {reason: identity.stalls[reason] for reason in reasons}
        total = math.fsum(stalls.values())
        scale = total if whole else max(total, latency)
        shares = {reason: cycles / scale for reason, cycles in stalls.items()}
        sides.append(shares if whole else {**shares, UNATTRIBUTED: (scale - total) / scale})
    if not whole and not sides[0][UNATTRIBUTED] and not sides[1][UNATTRIBUTED]:
        sides = [{reason: shares[reason] for reason in reasons} for shares in sides]
    return sides[0], sides[1]


def _cycle_terms(a: TimeIdentity, b: TimeIdentity, clock_from_time: bool) -> tuple[Term, ...]:
    """Split time as cycles over clock. A clock computed from cycles and time leaves no residue."""
    sides = []
    for identity in (a, b):
        cycles, time = identity.cycles or 0.0, identity.time_us or 0.0
        clock = cycles / time * 1e6 if clock_from_time else identity.clock_hz or 0.0
        sides.append((cycles, clock, cycles / clock * 1e6))
    (cycles_a, clock_a, time_a), (cycles_b, clock_b, time_b) = sides
    weight = log_mean(time_a, time_b)
    return (
        Term(CYCLES, weight * log_ratio(cycles_a, cycles_b) + 0.0),
        Term(CLOCK, -weight * log_ratio(clock_a, clock_b) + 0.0),
    )


def _stall_ratio(identity: TimeIdentity) -> float | None:
    if not identity.latency or not identity.stalls:
        return None
    return math.fsum(identity.stalls.values()) / identity.latency


def _stall_skew_us(a: TimeIdentity, b: TimeIdentity, ratios: Sequence[float | None]) -> float:
    """The difference between the change that the stalls make and the one that the latency makes."""
    skew_a, skew_b = (
        (identity.modelled_us or 0.0) * ((ratio or 1.0) - 1)
        for identity, ratio in zip((a, b), ratios, strict=True)
    )
    return skew_b - skew_a


def _flag(residue: float, delta: float, time: float) -> str:
    """What a residue or a skew is too large a share of; "" where it is not."""
    words = []
    if abs(residue) > MAX_TIME_SHARE * time:
        words.append(f"{abs(residue) / time:.1%} of the time")
    if abs(residue) > MAX_CHANGE_SHARE * abs(delta):
        words.append(f"{abs(residue / delta):.0%} of the change" if delta else "all of the change")
    return " and ".join(words).replace("%", " %")


def _waterfall_step(term: Term) -> WaterfallStep:
    cause, _, reason = term.cause.partition(":")
    return WaterfallStep(f"{cause}: {reason}" if reason else cause, term.us, is_stall=bool(reason))
