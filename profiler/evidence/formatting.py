"""How values, changes and verdicts read: digits, units, signs and states, on every kind of output."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from profiler.evidence.values import State, Value

THIN = "\u2009"  # between the thousands
MINUS = "\u2212"
TIMES = "\u00d7"

_SECONDS = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1.0}
_SECONDS["second"] = 1.0
_WORK = ("FLOP/s", "op/s")
_HERTZ = ("hz", "cycle/s", "cycle/second")
_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SI_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PREFIXES = tuple(name for _, name in _SI_STEPS)
_WHOLE_BELOW = 10_000  # a count is written out up to here and scaled from here on
# Units that are words: the label says already what is counted.
_WORD_UNITS = ("inst", "warp", "block", "sector", "sectors", "cycle", "thread", "register/thread")
_COUNTED_BELOW = 1_000  # whole numbers below this change by count, not by per cent
_TIMES_FROM = 100  # from this factor on a change reads as one: ×166, not +16 500 %
_FROM_NOTHING = 100_000  # from this factor on the first value is none to compare with


class Quantity(NamedTuple):
    """A number as it is shown, and its unit apart, so that a page can set it small. A state has no unit."""

    number: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.number} {self.unit}" if self.unit else self.number


@dataclass(frozen=True)
class Scale:
    """One unit for a whole chart or column: what a number in base units is divided by, and the unit then."""

    divisor: float
    unit: str


def scale_for(unit: str, largest: float) -> Scale:
    """The scale in which the largest magnitude has one to three digits before the point."""
    magnitude = abs(_three_digits(largest))
    if unit in _SECONDS:
        seconds = magnitude * _SECONDS[unit]
        step, name = next((s for s in _TIME_STEPS if seconds >= s[0] * (1 - 1e-9)), _TIME_STEPS[-1])
        return Scale(step / _SECONDS[unit], name)
    if unit == "%":
        return Scale(1, "%")
    scaled = unit in _HERTZ or unit.startswith("byte") or unit in _WORK
    written = "Hz" if unit in _HERTZ else unit.replace("byte", "B", 1).replace("/second", "/s")
    if magnitude >= (1_000 if scaled else _WHOLE_BELOW):
        step, prefix = next(s for s in _SI_STEPS if magnitude >= s[0])
        return Scale(step, prefix + written if scaled else f"{prefix} {written}".strip())
    return Scale(1, written)


def is_long_unit(unit: str) -> bool:
    """Whether a unit is too long to stand after each number of a table: it belongs into its head."""
    return "/" in unit and not unit.startswith("byte") and unit not in (*_HERTZ, *_WORK)


def quantity(value: Value, scale: Scale | None = None) -> Quantity:
    """The value with three significant digits in the unit that suits it or the given scale; or its state."""
    if value.state is not State.PRESENT:
        return Quantity(state_words(value))
    if value.number is None:
        return Quantity(value.text or "", value.unit)
    scale = scale or scale_for(value.unit, value.number)
    number = value.number / scale.divisor
    if not number and scale.unit in _PREFIXES:  # a bare count: 0, not 0 k
        return Quantity("0")
    if value.unit == "%":
        return Quantity(_signed(f"{number:.1f}"), scale.unit)
    return Quantity(digits(number, whole=scale.divisor == 1), scale.unit)


def digits(number: float, *, whole: bool = True) -> str:
    """Three significant digits, thin spaces, a true minus; a whole number without a point if `whole`."""
    if not number or (whole and number == int(number)) or abs(number) >= 999.5:
        return _signed(f"{number:,.0f}".replace(",", THIN))
    exponent = int(f"{abs(number):.2e}"[5:])  # after 1.23e
    if exponent < -3:
        mantissa, power = f"{number:.2e}".split("e")
        return _signed(f"{mantissa}e{int(power)}")
    return _signed(f"{number:.{max(0, 2 - exponent)}f}")


def change(a: Value, b: Value) -> str:
    """How b differs from a, as text: see `change_quantity`."""
    return str(change_quantity(a, b))


def change_quantity(a: Value, b: Value) -> Quantity:
    """How b differs from a: pp for percentages, a count for small whole numbers, % else; × from 100-fold.

    Empty where a side has no number or the units differ; "from 0" where a is zero and b is not, "from ~0"
    where a is next to nothing beside b.
    """
    if a.number is None or b.number is None or a.unit != b.unit:
        return Quantity("")
    difference = b.number - a.number
    if a.unit == "%":
        return _signed_quantity(difference, "pp")
    if not a.number and b.number:
        return Quantity("from 0")
    if _is_counted(a) and _is_counted(b):
        return Quantity(
            "±0" if not difference else f"{'+' if difference > 0 else MINUS}{abs(difference):.0f}"
        )
    if not a.number:
        return Quantity("±0", "%")
    if b.number / a.number >= _FROM_NOTHING:
        return Quantity("from ~0")
    if b.number / a.number >= _TIMES_FROM:
        times = quantity(Value(b.number / a.number))
        return Quantity(TIMES + times.number, times.unit)
    return _signed_quantity(100 * difference / abs(a.number), "%")


def from_to(a: Value, b: Value) -> str:
    """Two values as `A → B` with the unit once; units that are words are left out, as the label says them.

    A bare `k` is no unit that a reader looks for at the end, so it stands with both numbers.
    """
    if a.unit != b.unit:
        return f"{quantity(a)} → {quantity(b)}"
    if not a.number or not b.number:
        return f"{without_word_unit(a)} → {without_word_unit(b)}"
    scale = scale_for(a.unit, max(abs(a.number), abs(b.number)))
    first, second = (quantity(value, scale) for value in (a, b))
    unit = _short_unit(second.unit, b)
    before = f"{first.number} {unit}" if unit in _PREFIXES else first.number
    return f"{before} → {second.number} {unit}".rstrip()


def without_word_unit(value: Value) -> str:
    """The value where its label says already what is counted: `1.42 M`, not `1.42 M inst`; or its state."""
    if value.state is not State.PRESENT:
        return state_words(value)
    number, unit = quantity(value)
    return f"{number} {_short_unit(unit, value)}".rstrip()


def percent_change(change_pct: float | None) -> str:
    """A relative change in per cent, signed; empty for None."""
    return "" if change_pct is None else str(_signed_quantity(change_pct, "%"))


def state_words(value: Value, *, explained: bool = False) -> str:
    """Why there is no number, as it is shown; explained: with what ncu did, where the words do not say it."""
    state = value.state
    details = ["NaN"] if state is State.FAILED else []
    if explained and state.meaning:
        details.append(state.meaning)
    return f"{state.words} ({': '.join(details)})" if details else state.words


@lru_cache(maxsize=4096)  # launches of a long history have few sizes
def dimensions(size: tuple[int, int, int] | None) -> str:
    """A grid or block: `65 535`, `24 × 4`; trailing ones fall away. A dash where the report does not say."""
    if size is None:
        return "–"
    extents = list(size)
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return f" {TIMES} ".join(digits(extent) for extent in extents)


@lru_cache(maxsize=65_536)  # all points of a run share one time
def timestamp(when: datetime | None) -> str:
    """A time in UTC to the minute, or a dash."""
    return "–" if when is None else when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def as_json(value: Value) -> dict[str, object]:
    """The value for JSON, in base units: {"value", "unit"}, or {"state"} where there is no number.

    What the report does not carry as it is has `derived_from`, and a stand-in `most_off_pct` beside it.
    """
    if value.state is not State.PRESENT:
        return {"state": value.state.words}
    if value.number is None:
        return {"value": value.text, "unit": value.unit}
    return {"value": value.number, "unit": value.unit, **derivation_json(value)}


def derivation_json(value: Value) -> dict[str, object]:
    """What JSON says of a number that the report does not carry as it is: its formula, and how far off."""
    if value.derivation is None:
        return {}
    off = value.derivation.most_off_pct
    return {"derived_from": value.derivation.formula} | ({} if off is None else {"most_off_pct": off})


def label(name: str, *values: Value) -> str:
    """A metric's label, marked where one of the numbers beside it is derived or a stand-in."""
    derivations = [value.derivation for value in values if value.derivation is not None]
    if not derivations:
        return name
    stands_in = any(derivation.is_stand_in for derivation in derivations)
    return f"{name} ({'stand-in' if stands_in else 'derived'})"


def _three_digits(number: float) -> float:
    """Rounded as it will be shown, so that 999.9 ns becomes 1.00 µs and not 1000 ns."""
    return float(f"{number:.2e}") if math.isfinite(number) else 0.0


def _is_counted(value: Value) -> bool:
    number = value.number
    if number is None or value.unit in _SECONDS or value.unit in _HERTZ or value.unit.startswith("byte"):
        return False
    return number == int(number) and abs(number) < _COUNTED_BELOW


def _short_unit(short: str, value: Value) -> str:
    """The unit as it is shown, without its word: `k` of `k inst`, `kB` of `kB/block`."""
    if value.unit in _WORD_UNITS:
        return short.removesuffix(value.unit).strip()
    return short if value.unit.startswith("byte/s") else short.partition("/")[0]


def _signed_quantity(number: float, unit: str) -> Quantity:
    text = f"{abs(number):.1f}" if abs(number) < 999.95 else digits(abs(_three_digits(number)))
    return Quantity("±0" if text == "0.0" else f"{'+' if number > 0 else MINUS}{text}", unit)


def _signed(text: str) -> str:
    if text.startswith("-") and not text.strip("-0."):  # rounds to zero
        text = text[1:]
    return text.replace("-", MINUS)
