"""How a difference in time splits into causes: a launch's time identity, and the log-mean Divisia method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from profiler.evidence import Value

TIME_SHARE, CHANGE_SHARE = 0.03, 0.25  # a residue above either is flagged: of the longer time, of the change
RATIO = 0.2  # how far from 1 the stalls' sum over the latency may be for the stalls to stand for all of it
FULL, UNDIVIDED, CYCLES, NONE = "full", "waiting undivided", "cycles", "none"
WORK, WAITING, PARALLELISM, BALANCE, CLOCK = "work", "waiting", "parallelism", "balance", "clock"
REST = ""  # the reason of what no stall accounts for: its cause is plain "waiting"

_SCHEDULERS = 4.0  # in each SM of every GPU since Volta, for reports that do not say
_SCALED = ("duration", "sm_clock")
_LEAST, _MOST = 1e-18, 1e18  # nothing that was counted or timed lies outside; a damaged report's bits do
# What a number in the unit is divided by, to give microseconds or hertz.
_UNITS = {"ns": 1e3, "nsecond": 1e3, "us": 1.0, "usecond": 1.0, "ms": 1e-3, "msecond": 1e-3, "s": 1e-6}
_UNITS |= {"second": 1e-6, "hz": 1.0, "cycle/s": 1.0, "cycle/second": 1.0, "cycle/nsecond": 1e-9}


class _Form(NamedTuple):
    """One way to a factor of the identity: the concepts it needs and what is made of them."""

    needs: tuple[str, ...]
    of: Callable[[Mapping[str, float]], float]


def _plain(concept: str) -> _Form:
    return _Form((concept,), lambda have: have[concept])


def _per_sm(have: Mapping[str, float]) -> float:
    return have.get("schedulers_per_sm", _SCHEDULERS)


def _of_elapsed(active: str, elapsed: str) -> _Form:
    return _Form((active, elapsed), lambda have: have[active] / have[elapsed])


def _of_time(active: str) -> _Form:
    """Active cycles over the cycles that the time makes at the clock."""
    needs = (active, "sm_clock", "duration")
    return _Form(needs, lambda have: have[active] / (have["duration"] * have["sm_clock"] * 1e-6))


# Best first: the first form that both sides have is taken for both, so that no change is one of the counter.
_FORMS: dict[str, tuple[_Form, ...]] = {
    "time_us": (_plain("duration"),),
    "clock_hz": (_plain("sm_clock"),),
    "cycles": (_plain("cycles"), _plain("cycles_elapsed"), _plain("sm_cycles_elapsed")),
    "instructions": (_plain("inst_issued"),),
    "latency": (_plain("warp_latency"),),
    "warps": (
        _plain("warps_active"),
        _Form(("sm_warps_active",), lambda have: have["sm_warps_active"] / _per_sm(have)),
    ),
    "schedulers": (_Form(("sm_count",), lambda have: have["sm_count"] * _per_sm(have)),),
    "active_share": (
        _of_elapsed("cycles_active", "cycles_elapsed"),
        _of_elapsed("sm_cycles_active", "sm_cycles_elapsed"),
        _of_time("cycles_active"),
        _of_time("sm_cycles_active"),
    ),
}
_FULL = ("instructions", "latency", "warps", "schedulers", "active_share", "clock_hz")
# Every concept that a form can use; `identities` is given the values of these.
CONCEPTS = tuple(
    dict.fromkeys(
        (*(need for forms in _FORMS.values() for form in forms for need in form.needs), "schedulers_per_sm")
    )
)


@dataclass(frozen=True)
class Identity:
    """The factors of a launch's time, `T = I·L / (W·S·a·f)`; None where the report does not carry one."""

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

    @property
    def modelled_us(self) -> float | None:
        """What the identity makes of the counters; differs from time_us by the skew between replay passes."""
        factors = [getattr(self, name) for name in _FULL]
        if None in factors:
            return None
        instructions, latency, warps, schedulers, share, clock = factors
        return float(instructions * latency / (warps * schedulers * share * clock) * 1e6)


@dataclass(frozen=True)
class Term:
    """What one cause adds to the time (negative: takes away)."""

    cause: str  # work, waiting:<reason>, waiting, cycles, parallelism, balance or clock
    us: float


@dataclass(frozen=True)
class Split:
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

    def total(self, kind: str) -> float:
        """The sum of the terms of one kind: "waiting" is all of waiting."""
        return math.fsum(term.us for term in self.terms if term.cause.partition(":")[0] == kind)


def identities(
    a: Mapping[str, Value], b: Mapping[str, Value], stalls: Mapping[str, tuple[Value, Value]]
) -> tuple[Identity, Identity]:
    """The identities of two launches from their values by concept (see CONCEPTS) and by stall reason.

    Each factor is read in the same way on both sides, or on neither. A number that is not above zero, or
    absurd, is no factor and counts as missing; a stall may be zero.
    """
    have = (_usable(a), _usable(b))
    factors: tuple[dict[str, float | None], ...] = ({}, {})
    missing: list[str] = []
    for name, forms in _FORMS.items():
        both = (one for one in forms if all(need in side for side in have for need in one.needs))
        form = next(both, None)
        for factor, side in zip(factors, have, strict=True):
            factor[name] = form.of(side) if form else None
        if form is None and name != "cycles":
            missing += [need for need in forms[0].needs if any(need not in side for side in have)]
    if missing and factors[0]["cycles"] is None:
        missing.append("cycles")
    known = {
        reason: (float(x.number), float(y.number))
        for reason, (x, y) in stalls.items()
        if x.number is not None
        and y.number is not None
        and min(x.number, y.number) >= 0
        and max(x.number, y.number) < _MOST
    }
    missing += [reason for reason in stalls if reason not in known]
    one, other = (
        Identity(
            **factor,
            stalls={reason: numbers[side] for reason, numbers in known.items()},
            stalls_whole=bool(known) and len(known) == len(stalls),
            missing=tuple(dict.fromkeys(missing)),
        )
        for side, factor in enumerate(factors)
    )
    return one, other


def time_us(value: Value) -> float | None:
    """A time in microseconds; None for a value that is no time above zero."""
    return _usable({"duration": value}).get("duration")


def split(a: Identity, b: Identity) -> Split:
    """Split `b.time_us - a.time_us` as deep as both identities go; exact for every depth but "none".

    Raises ValueError where a side has no time: there is then no difference to split.
    """
    if a.time_us is None or b.time_us is None:
        raise ValueError("a launch without a time cannot be split")
    delta = b.time_us - a.time_us
    ratios = (_ratio(a), _ratio(b))
    depth, from_time = NONE, False
    terms: tuple[Term, ...] = ()
    if all(getattr(one, name) is not None for one in (a, b) for name in _FULL):
        depth, terms = _full(a, b, ratios)
    elif a.cycles is not None and b.cycles is not None:
        from_time = a.clock_hz is None or b.clock_hz is None
        depth, terms = CYCLES, _cycles(a, b, from_time)
    residue = math.fsum((delta, *(-term.us for term in terms))) + 0.0  # + 0.0: no negative zero
    longer = max(a.time_us, b.time_us)
    skew = _skew(a, b, ratios) if depth == FULL and not any(term.cause == WAITING for term in terms) else 0.0
    return Split(
        terms,
        residue,
        delta,
        depth,
        *ratios,
        stall_skew_us=skew,
        flagged=_flag(residue, delta, longer) if terms else "",
        reasons_flagged=_flag(skew, delta, longer) if skew else "",
        clock_from_time=from_time,
    )


def log_ratio(a: float, b: float) -> float:
    """ln(b / a) of two numbers above zero: exact near 1, and swapped it is exactly its negative."""
    near = (b - a) / (a + b)
    return 2 * math.atanh(near) if abs(near) < 0.5 else math.log(b) - math.log(a)


def log_mean(a: float, b: float) -> float:
    """The logarithmic mean of two numbers above zero, the weight of LMDI-I; a where both are equal.

    Source: B. W. Ang, "LMDI decomposition approach: a guide for implementation", Energy Policy 86, 2015.
    """
    return a if a == b else (b - a) / log_ratio(a, b)


def _full(a: Identity, b: Identity, ratios: Sequence[float | None]) -> tuple[str, tuple[Term, ...]]:
    """The whole identity, summed over the stalls; a stall that is zero on one side takes its whole change."""
    parts_a, parts_b = _latency_parts(a, b, ratios)
    time_a, time_b = a.modelled_us or 0.0, b.modelled_us or 0.0
    weights: list[float] = []
    waiting: dict[str, float] = {}
    for reason, share_a in parts_a.items():
        share_b = parts_b[reason]
        from_us, to_us = time_a * share_a, time_b * share_b
        if share_a and share_b:
            weights.append(log_mean(from_us, to_us))
            change = log_ratio(share_a * (a.latency or 0), share_b * (b.latency or 0))
            waiting[reason] = weights[-1] * change
        else:
            waiting[reason] = to_us - from_us
    factors = (
        (WORK, log_ratio(a.instructions or 0, b.instructions or 0)),
        (PARALLELISM, -log_ratio(_warps(a), _warps(b))),
        (BALANCE, -log_ratio(a.active_share or 0, b.active_share or 0)),
        (CLOCK, -log_ratio(a.clock_hz or 0, b.clock_hz or 0)),
    )
    total = math.fsum(weights)
    work, *others = (Term(cause, total * change + 0.0) for cause, change in factors)
    terms = tuple(
        Term(f"{WAITING}:{reason}" if reason else WAITING, us + 0.0) for reason, us in waiting.items()
    )
    return UNDIVIDED if set(parts_a) == {REST} else FULL, (work, *terms, *others)


def _latency_parts(
    a: Identity, b: Identity, ratios: Sequence[float | None]
) -> tuple[dict[str, float], dict[str, float]]:
    """The shares of each side's latency by stall reason; each side's add up to 1.

    Where all stalls are there, they are scaled to the latency. Else they keep their size, and what they leave
    of the latency is a share of its own.
    """
    reasons = [reason for reason in a.stalls if reason in b.stalls]
    near = all(ratio is not None and abs(ratio - 1) <= RATIO for ratio in ratios)
    whole = near and a.stalls_whole and b.stalls_whole
    found = []
    for one in (a, b):
        stalls = {reason: one.stalls[reason] for reason in reasons}
        total, latency = math.fsum(stalls.values()), one.latency or 0.0
        scale = total if whole else max(total, latency)
        shares = {reason: cycles / scale for reason, cycles in stalls.items()}
        found.append(shares if whole else {**shares, REST: (scale - total) / scale})
    if not whole and not found[0][REST] and not found[1][REST]:
        found = [{reason: shares[reason] for reason in reasons} for shares in found]
    return found[0], found[1]


def _cycles(a: Identity, b: Identity, from_time: bool) -> tuple[Term, ...]:
    """Time is cycles over clock; a clock that is cycles over time leaves no residue."""
    sides = []
    for one in (a, b):
        cycles, time = one.cycles or 0.0, one.time_us or 0.0
        clock = cycles / time * 1e6 if from_time else one.clock_hz or 0.0
        sides.append((cycles, clock, cycles / clock * 1e6))
    (cycles_a, clock_a, time_a), (cycles_b, clock_b, time_b) = sides
    weight = log_mean(time_a, time_b)
    return (
        Term(CYCLES, weight * log_ratio(cycles_a, cycles_b) + 0.0),
        Term(CLOCK, -weight * log_ratio(clock_a, clock_b) + 0.0),
    )


def _usable(values: Mapping[str, Value]) -> dict[str, float]:
    """The numbers above zero by concept, time in microseconds and clock in hertz."""
    found = {}
    for concept in CONCEPTS:
        value = values.get(concept)
        divisor = 1.0 if value is None or concept not in _SCALED else _UNITS.get(value.unit)
        if value is not None and value.number is not None and _LEAST < value.number < _MOST and divisor:
            found[concept] = float(value.number) / divisor
    return found


def _warps(one: Identity) -> float:
    """Active warps of the whole GPU."""
    return (one.warps or 0.0) * (one.schedulers or 0.0)


def _ratio(one: Identity) -> float | None:
    return math.fsum(one.stalls.values()) / one.latency if one.latency and one.stalls else None


def _skew(a: Identity, b: Identity, ratios: Sequence[float | None]) -> float:
    """How far the change that the stalls themselves make is from the one that the latency makes."""
    off = [(one.modelled_us or 0.0) * ((ratio or 1.0) - 1) for one, ratio in zip((a, b), ratios, strict=True)]
    return off[1] - off[0]


def _flag(residue: float, delta: float, time: float) -> str:
    """What a residue or a skew is too large a part of."""
    found = []
    if abs(residue) > TIME_SHARE * time:
        found.append(f"{abs(residue) / time:.1%} of the time")
    if abs(residue) > CHANGE_SHARE * abs(delta):
        found.append(f"{abs(residue / delta):.0%} of the change" if delta else "all of the change")
    return " and ".join(found).replace("%", " %")
