"""What a file of times holds, whatever tool wrote it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9}  # of a unit, in ns
# Of a rate: the work that it counts, and how many of it a second is a rate of one.
RATES = {
    "GB/s": ("GB", 1.0),
    "TB/s": ("GB", 1e3),
    "GFLOPS": ("GFLOP", 1.0),
    "GFLOP/s": ("GFLOP", 1.0),
    "TFLOPS": ("GFLOP", 1e3),
    "TFLOP/s": ("GFLOP", 1e3),
}
_LONGEST_NS = 3.0e17  # ten years: a larger number is damaged, or in another unit


class NotTimes(Exception):
    """What is wrong with a file of times, in words that follow its name."""


@dataclass(frozen=True)
class Timing:
    """The timed calls of one benchmark at one problem size on one GPU."""

    benchmark: str  # the problem, or the suite that it is part of
    implementation: str | None  # which of several that solve it; None where the tool knows no such thing
    parameters: str  # the problem size, as the tool writes it; "" for none
    mode: str  # the tool, what it timed, and which number of several calls a value is
    ns: tuple[float, ...]  # in the order of the file; empty where it failed
    gpu: str | None = None  # its display name; None where the file does not say
    clocks_mhz: tuple[float, ...] = ()  # the SM clock of each call, or none at all
    failure: str | None = None  # why there are no times


@dataclass(frozen=True)
class TimingsFile:
    """A file of times, read whole."""

    form: str  # which tool wrote it: "nvbench", "tritonbench", …
    timings: tuple[Timing, ...]
    created: datetime | None = None  # always UTC; None where it does not say
    commit: str | None = None  # of the code that was timed
    # host, driver, cuda, compute_capability, command_line and more, as far as the file says them
    provenance: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def in_ns(number: object, unit: str, what: str) -> float:
    """A time of the file in ns; of a rate the time for one GB or GFLOP of its work.

    Raises NotTimes for what is no positive, finite time of under ten years.
    """
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise NotTimes(f"the time of {brief(what)} is {brief(number)}, which is no number")
    try:
        ns = float(number) * NS[unit] if unit in NS else _ns_of_rate(float(number), unit)
    except OverflowError:  # a whole number of hundreds of digits
        ns = math.inf
    if not math.isfinite(ns) or not 0 < ns < _LONGEST_NS:
        raise NotTimes(f"the time of {brief(what)} is {brief(number)} {unit}: not a time above 0")
    return ns


def all_in_ns(numbers: Sequence[Any], unit: str, what: str) -> tuple[float, ...]:
    """The calls of a measurement in ns, for a unit of time. Raises NotTimes as in_ns does, for the first."""
    if {float}.issuperset(map(type, numbers)):  # without a call for each
        ns = tuple(number * NS[unit] for number in numbers)
        if all(0 < time < _LONGEST_NS for time in ns):
            return ns
    return tuple(in_ns(number, unit, what) for number in numbers)


def _ns_of_rate(rate: float, unit: str) -> float:
    return 1e9 / (rate * RATES[unit][1]) if rate > 0 else math.nan


def brief(value: object) -> str:
    """A value of the file in a message: one line of 60 characters at most."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(character if character.isprintable() else "?" for character in text)
    return text if len(text) <= 60 else f"{text[:57]}…"
