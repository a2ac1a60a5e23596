"""How the factors of the time identity are read: from their own counters, or from what may stand for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from profiler.evidence.values import Value

LEAST, MOST = 1e-18, 1e18  # nothing that was counted or timed lies outside; a damaged report's bits do
CLOCK_FROM_TIME = "clock = elapsed cycles / time"

_SCHEDULERS = 4.0  # in each SM of every GPU since Volta, for reports that do not say
_SCALED = ("duration", "sm_clock", "roof_sm_clock")
_EQUAL = (0.0, 0.0)  # how far off a form is in the median and at most, in per cent
# What a number in the unit is divided by, to give microseconds or hertz.
_UNITS = {"ns": 1e3, "nsecond": 1e3, "us": 1.0, "usecond": 1.0, "ms": 1e-3, "msecond": 1e-3, "s": 1e-6}
_UNITS |= {"second": 1e-6, "hz": 1.0, "cycle/s": 1.0, "cycle/second": 1.0, "cycle/nsecond": 1e-9}


@dataclass(frozen=True)
class StandIn:
    """What a factor was computed from, since a side lacks the factor's own counter."""

    factor: str  # "instructions", "latency", "active cycles"
    concepts: tuple[str, ...]  # of metrics.txt
    words: str  # "instructions issued ≈ executed"
    median_off_pct: float = (
        0.0  # how far it lay from the factor where both were measured: 0 where it is equal
    )
    most_off_pct: float = 0.0


@dataclass(frozen=True)
class Factors:
    """The factors of two launches, A's and B's: each read in the same way on both sides, or on neither."""

    a: Mapping[str, float | None]  # by letter: see _FORMS
    b: Mapping[str, float | None]
    missing: tuple[str, ...]  # concepts that would give the factors that nothing gives
    stand_ins: tuple[StandIn, ...]
    inputs: tuple[str, ...]  # the concepts that were used


class _Form(NamedTuple):
    """One way to compute a factor: the concepts and factors it needs, and a function of their numbers."""

    needs: tuple[str, ...]
    compute: Callable[[Mapping[str, float]], float]
    words: str = ""  # what stands for what; "" for the factor's own counter
    off_pct: tuple[float, float] = _EQUAL


def _plain(concept: str, words: str = "", off_pct: tuple[float, float] = _EQUAL) -> _Form:
    return _Form((concept,), lambda numbers: numbers[concept], words, off_pct)


def _issued(share: str, cycles: str, off_pct: tuple[float, float] = _EQUAL) -> _Form:
    """Instructions issued, from the share of cycles that issue: a scheduler issues at most one per cycle."""
    kind = "active" if share == "issue_active" else "elapsed"
    return _Form(
        (share, "S", cycles),
        lambda numbers: numbers[share] / 100 * numbers["S"] * numbers[cycles],
        f"instructions issued = {kind} cycles × the share of them that issue",
        off_pct,
    )


def _executed(cycles: str) -> _Form:
    """Instructions executed, from the share of issue slots that basic sets of every ncu since 2021 hold."""
    return _Form(
        ("issue_slots", "S", cycles),
        lambda numbers: numbers["issue_slots"] / 100 * numbers["S"] * numbers[cycles],
        "instructions executed = elapsed cycles × the share of issue slots used, for issued",
        (0.9, 9.7),
    )


_SCHEDULERS_PER_SM = "schedulers_per_sm"


def _schedulers_per_sm(numbers: Mapping[str, float]) -> float:
    return numbers.get(_SCHEDULERS_PER_SM, _SCHEDULERS)


# Best first: the first form that both sides have is taken for both, so that no change is one of the counter.
# The letters are those of T = I·L / (W·S·a·f), and C, E and A: cycles elapsed on the GPU, and cycles elapsed
# and active in a scheduler. A letter is computed before those that need it. How far a stand-in is off was
# measured over launches over 50 µs of public reports that hold both, 29 to 413 a form, on sm_70 to sm_120.
_FORMS: dict[str, tuple[_Form, ...]] = {
    "T": (_plain("duration"),),
    "C": (_plain("cycles"), _plain("cycles_elapsed"), _plain("sm_cycles_elapsed")),
    "f": (
        _plain("sm_clock"),
        _Form(
            ("C", "T"),
            lambda numbers: numbers["C"] / numbers["T"] * 1e6,
            CLOCK_FROM_TIME,
            (0.03, 1.4),
        ),
        _plain("roof_sm_clock", "clock of the GPCs ≈ that of the SMs", (0.002, 7.5)),
    ),
    "S": (_Form(("sm_count",), lambda numbers: numbers["sm_count"] * _schedulers_per_sm(numbers)),),
    "E": (
        _plain("cycles_elapsed"),
        _plain("sm_cycles_elapsed"),  # equal in every report that holds both
        _Form(
            ("T", "f"),
            lambda numbers: numbers["T"] * numbers["f"] * 1e-6,
            "elapsed cycles = time × clock",
            (0.15, 8.1),
        ),
    ),
    "I": (
        _plain("inst_issued"),
        _issued("issue_active", "cycles_active"),
        _issued("issue_elapsed", "cycles_elapsed"),
        _issued("issue_elapsed", "sm_cycles_elapsed"),
        _issued("issue_elapsed", "cycles", (0.14, 8.1)),
        _issued("issue_active", "sm_cycles_active", (0.5, 8.2)),
        _plain("inst_executed", "instructions issued ≈ executed", (1.2, 9.7)),
        _executed("cycles_elapsed"),
        _executed("sm_cycles_elapsed"),
        _executed("cycles"),
        _Form(
            ("cycles_active", "S", "warps_active", "warp_latency"),
            lambda numbers: (
                numbers["cycles_active"] * numbers["S"] * numbers["warps_active"] / numbers["warp_latency"]
            ),
            "instructions issued = active cycles × active warps / latency",
        ),
    ),
    "A": (
        _plain("cycles_active"),
        _plain("sm_cycles_active", "active cycles of a scheduler ≈ those of its SM", (0.5, 8.2)),
        _Form(
            ("I", "S", "issue_active"),
            lambda numbers: 100 * numbers["I"] / (numbers["S"] * numbers["issue_active"]),
            "active cycles = instructions / issue rate",
        ),
    ),
    "a": (_Form(("A", "E"), lambda numbers: numbers["A"] / numbers["E"]),),
    "W": (
        _plain("warps_active"),
        # Little's law: what is in flight is how long it stays times how much begins.
        _Form(
            ("warp_latency", "issue_active"),
            lambda numbers: numbers["warp_latency"] * numbers["issue_active"] / 100,
            "active warps = latency × issue rate",
        ),
        _Form(
            ("sm_warps_active",),
            lambda numbers: numbers["sm_warps_active"] / _schedulers_per_sm(numbers),
            "active warps per scheduler ≈ those of its SM / schedulers",
            (0.6, 9.6),
        ),
        _Form(
            ("warp_latency", "I", "S", "A"),
            lambda numbers: numbers["warp_latency"] * numbers["I"] / (numbers["S"] * numbers["A"]),
            "active warps = latency × instructions per active cycle",
            (0.3, 6.1),
        ),
    ),
    "L": (
        _plain("warp_latency"),
        _Form(
            ("W", "issue_active"),
            lambda numbers: 100 * numbers["W"] / numbers["issue_active"],
            "latency = active warps / issue rate",
        ),
        _Form(
            ("W", "S", "A", "I"),
            lambda numbers: numbers["W"] * numbers["S"] * numbers["A"] / numbers["I"],
            "latency = active warps / instructions per active cycle",
            (0.3, 6.1),
        ),
    ),
}
_NAMES = {
    "T": "time",
    "C": "cycles",
    "S": "schedulers",
    "f": "clock",
    "E": "elapsed cycles",
    "I": "instructions",
    "A": "active cycles",
    "W": "active warps",
    "L": "latency",
}
_IDENTITY = ("T", "I", "L", "W", "S", "a", "f")
_CYCLES_AND_CLOCK = ("T", "C", "f")
# Every concept that a form can use; `read_factors` is given the values of these.
_NEEDS = (need for forms in _FORMS.values() for form in forms for need in form.needs if need not in _FORMS)
CONCEPTS = tuple(dict.fromkeys((*_NEEDS, _SCHEDULERS_PER_SM)))


def read_factors(a: Mapping[str, Value], b: Mapping[str, Value]) -> Factors:
    """The factors of two launches from their values by concept (see CONCEPTS).

    Numbers that are not above zero, or too large to be true, count as missing.
    """
    sides = (usable_numbers(a), usable_numbers(b))
    chosen: dict[str, _Form] = {}
    missing: list[str] = []
    for letter, forms in _FORMS.items():
        usable = (form for form in forms if all(need in side for side in sides for need in form.needs))
        form = next(usable, None)
        if form:
            chosen[letter] = form
            for side in sides:
                side[letter] = form.compute(side)
        # The cycles alone are no factor of the identity: they only matter where a factor is missing.
        elif letter != "C":
            own = (need for need in forms[0].needs if need not in _FORMS)
            missing += [need for need in own if any(need not in side for side in sides)]
    if missing and "C" not in chosen:
        missing.append("cycles")
    used = list(_used(_IDENTITY if set(_IDENTITY) <= set(chosen) else _CYCLES_AND_CLOCK, chosen))
    letters_a, letters_b = ({letter: side.get(letter) for letter in _FORMS} for side in sides)
    return Factors(
        letters_a,
        letters_b,
        tuple(dict.fromkeys(missing)),
        tuple(stand_in for letter in used for stand_in in _stand_ins(letter, chosen, (a, b))),
        _concepts(used, chosen),
    )


def usable_numbers(values: Mapping[str, Value]) -> dict[str, float]:
    """The numbers above zero by concept, times in microseconds and clocks in hertz."""
    numbers = {}
    for concept in CONCEPTS:
        value = values.get(concept)
        divisor = 1.0 if value is None or concept not in _SCALED else _UNITS.get(value.unit)
        if value is not None and value.number is not None and LEAST < value.number < MOST and divisor:
            numbers[concept] = float(value.number) / divisor
    return numbers


def _used(letters: Iterable[str], chosen: Mapping[str, _Form]) -> Iterator[str]:
    """The letters and those that their forms need in turn, each once, in the order of _FORMS."""
    reached = set(letters) & set(chosen)
    for letter in reversed(_FORMS):  # a form needs only letters that stand before its own
        if letter in reached:
            reached |= {need for need in chosen[letter].needs if need in _FORMS}
    return (letter for letter in _FORMS if letter in reached)


def _concepts(letters: Iterable[str], chosen: Mapping[str, _Form]) -> tuple[str, ...]:
    """The concepts that the forms of these letters need, each once."""
    needs = (need for letter in letters for need in chosen[letter].needs)
    return tuple(dict.fromkeys(need for need in needs if need not in _FORMS))


def _stand_ins(
    letter: str, chosen: Mapping[str, _Form], sides: Sequence[Mapping[str, Value]]
) -> Iterator[StandIn]:
    """What a factor rests on that is not its own counter: numbers derived by metrics.txt, and its form."""
    form = chosen[letter]
    for concept in _concepts((letter,), chosen):
        derivations = (side[concept].derivation for side in sides if concept in side)
        for derivation in filter(None, dict.fromkeys(derivations)):
            most = derivation.most_off_pct or 0.0
            yield StandIn(_NAMES[letter], (concept,), f"{concept} {derivation.words}", most_off_pct=most)
    if form.words:
        concepts = _concepts(_used((letter,), chosen), chosen)
        yield StandIn(_NAMES[letter], concepts, form.words, *form.off_pct)
