"""What a rule answers: a verdict with the numbers and reasons that a reader needs to doubt it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from profiler.statistics.verdict import Verdict

MIN_SAMPLES = 3  # launches a side; of fewer nothing says how far they lie apart
UNITS_FACTOR = 20.0  # a larger change is more likely a mix of ns and µs than a change


class Interval(NamedTuple):
    """From and to, as shares of A: (-0.01, 0.02) is from 1 % less to 2 % more."""

    low: float
    high: float

    def __str__(self) -> str:
        low, high = change_text(self.low), change_text(self.high)
        if low == high and self.low != self.high:
            low, high = change_text(self.low, 2), change_text(self.high, 2)
        return f"{low} to {high}"


@dataclass(frozen=True)
class Decision:
    """A verdict on B against A. Changes are shares of A: 0.03 is 3 % more than A."""

    verdict: Verdict
    reason: str
    rule: str  # live pair, stored baseline, counter
    effect: float | None = None
    interval: Interval | None = None  # of the effect: 99 % for a live pair, the noise floor for a baseline
    gate_interval: Interval | None = None  # 95 %, by which a gate decides; live pairs only
    detectable: float | None = None  # the smallest change that would have been found four times in five
    rounds: int = 0  # rounds of a live pair, A/A pairs behind a floor
    # In all, to settle what is unclear; None where nothing is, or where no number of rounds would.
    rounds_needed: int | None = None
    p: float | None = None  # of a change this large by chance; None where no pairs or rounds say
    fails_gate: bool = False
    rerun_tells: bool = (
        True  # whether timing again, with more rounds or processes, may settle what is unclear
    )
    gate_note: str = ""  # why what is worse fails no gate; "" where it does, or where the interval says so
    warnings: tuple[str, ...] = ()
    processes: int = 0  # from which the rounds of a live pair are; 0: not known
    # sd of the offset that a process has of its own; with one round a process that round's noise is in it.
    process_sd: float | None = None
    # What the reason says beyond effect, interval and rounds, for where these stand already; None: all of it.
    remark: str | None = None


def verdict_of_change(change: float, better: str) -> Verdict:
    """The verdict on a change that is no noise. `better` is lower, higher or -, as in metrics.txt."""
    if better == "-":
        return Verdict.CHANGED
    return Verdict.BETTER if (change < 0) == (better == "lower") else Verdict.WORSE


def units_question(log_ratio: float) -> str:
    """What to ask before a change that large is judged; "" up to a factor of UNITS_FACTOR."""
    if abs(log_ratio) <= math.log(UNITS_FACTOR):
        return ""
    times = f"{math.exp(abs(log_ratio)):,.0f}"
    size = f"{times} times" if log_ratio > 0 else f"1/{times} of"
    return f"B is {size} A: are both in ns? No change that large is judged"


def share_text(size: float) -> str:
    """A share in per cent as it would be written by hand: `0.5 %`, `3 %`, `12 %`."""
    number = 100 * abs(size)
    return f"{number:.0f} %" if number >= 10 else f"{float(f'{number:.1e}'):g} %"


def change_text(size: float, digits: int | None = None) -> str:
    """A signed change in per cent: `+12 %`, `−3.0 %`, `+0.24 %`, `±0 %`; `digits` after the point."""
    number = 100 * abs(size)
    if digits is None:
        digits = 0 if number >= 9.95 else 1 if number >= 0.995 else 2
    text = f"{number:.{digits}f}"
    return "±0 %" if not text.strip("0.") else f"{'+' if size > 0 else '−'}{text} %"
