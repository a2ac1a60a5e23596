"""Whether two lists of launches are one measurement: a report and its exports, by what they say.

The same launches, measured again, differ in time and cycles in the third or fourth digit. So what agrees in
all numbers, to the digits that were printed, and in many of them, was measured once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from profiler.evidence.launch import Launch, Report
from profiler.evidence.values import NCU_DURATION

# What no two runs repeat: times, cycles, and what is computed from them. Of counts and of what was configured
# equal numbers say nothing.
_VARYING = re.compile(r"cycles_(active|elapsed)|per_second|pct_of_peak|per_cycle|hit_rate|warps_active")
_REPEATED_DIGITS = 2  # that two runs of one kernel have in common
_ENOUGH_DIGITS = 4.0  # beyond these, over all launches
_MOST_DIGITS = 1.0  # of any number but time and cycles: many are computed from one another
_MOST_OTHERS = 4  # of these that a launch counts
_CYCLES = ("gpc__cycles_elapsed.max", "sm__cycles_active.avg")
_PRECISION = 12  # significant digits that arithmetic of units keeps
_ROUNDING = 0.55  # of a unit in the last place: half of it, and what arithmetic adds


def is_one_measurement(a: Sequence[Launch], b: Sequence[Launch]) -> bool:
    """Whether the launches are the same, in their order, or the fewer among the others, as after a filter.

    False where they hold too few digits to tell: together, and after a filter each launch by itself.
    """
    few, many = sorted((a, b), key=len)
    digits, rest = 0.0, iter(many)
    for launch in few:
        for other in rest:
            agreed = agreeing_digits(launch, other)
            if agreed is not None and (len(few) == len(many) or agreed >= _ENOUGH_DIGITS):
                digits += agreed
                break
            if len(few) == len(many):
                return False
        else:
            return False
    return digits >= _ENOUGH_DIGITS


def agreeing_digits(a: Launch, b: Launch) -> float | None:
    """How many digits two launches share beyond those of two runs of one kernel; None where a number differs.

    A number may be printed with fewer digits on either side. Names of kernels count without arguments, which
    every form writes in its own way.
    """
    if a.base_name != b.base_name or _differ(a.grid, b.grid) or _differ(a.block, b.block):
        return None
    # Time and cycles first: of two measurements they differ.
    names = [NCU_DURATION, *_CYCLES, *a.values]
    digits, others = 0.0, 0
    for name in dict.fromkeys(names):
        value_a, value_b = a.values.value(name), b.values.value(name)
        if value_a.number is None or value_b.number is None or value_a.unit != value_b.unit:
            continue
        shared = shared_digits(float(value_a.number), float(value_b.number))
        if shared is None:
            return None
        beyond = max(0.0, shared - _REPEATED_DIGITS)
        if name == NCU_DURATION or name in _CYCLES:
            digits += beyond
        elif _VARYING.search(name) and beyond >= _MOST_DIGITS and others < _MOST_OTHERS:
            digits, others = digits + _MOST_DIGITS, others + 1
    return digits


def _differ(a: tuple[int, int, int] | None, b: tuple[int, int, int] | None) -> bool:
    return a is not None and b is not None and a != b


def shared_digits(a: float, b: float) -> float | None:
    """How many significant digits two numbers share, which may be rounded; None where they are not equal."""
    unit = max(_last_place(a), _last_place(b))
    if not abs(a - b) <= _ROUNDING * unit:
        return None
    size = max(abs(a), abs(b))
    return math.log10(size / unit) if size > unit else 0.0


def _last_place(number: float) -> float:
    """The value of a one in the last digit that is not 0; of 0 itself that of two decimals."""
    if not number:
        return 0.01
    mantissa, _, exponent = f"{number:.{_PRECISION - 1}e}".partition("e")
    decimals = len(mantissa.rstrip("0").partition(".")[2])
    return float(10.0 ** (int(exponent) - decimals))


def key_launch(report: Report) -> tuple[str, float] | None:
    """Kernel and ns of the launch by which copies are looked for: the longest; None where none has a time."""
    timed = [
        (launch.base_name, number)
        for launch in report.launches
        if (number := launch.values.number(NCU_DURATION)) is not None
    ]
    return max(timed, key=lambda launch: launch[1], default=None)
