"""A cell of ncu's CSV as a value: scaled units, states in words, instances, and how locales write numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from profiler.evidence.values import State, Value

# Numbers by their decimal mark. The other marks group thousands; in India also hundreds.
_NUMBER = {
    ".": re.compile(
        r"-?(?:[0-9]{1,3}(?P<mark>[,'\u2019])(?:[0-9]{2,3}(?P=mark))*[0-9]{3}|[0-9]+)"
        r"(?:\.(?P<decimals>[0-9]+))?(?:[eE][-+]?[0-9]+)?"
    ),
    ",": re.compile(
        r"-?(?:[0-9]{1,3}(?P<mark>[. \u00a0\u202f])(?:[0-9]{3}(?P=mark))*[0-9]{3}|[0-9]+)"
        r"(?:,(?P<decimals>[0-9]+))?(?:[eE][-+]?[0-9]+)?"
    ),
}
_SIX_DECIMALS = re.compile(r"-?[0-9]+\.[0-9]{6}")  # which ncu 2024.2 prints with a point in every locale
_PLAIN = {".": str.maketrans("", "", ",'\u2019"), ",": str.maketrans(",", ".", ". \u00a0\u202f")}
_ALMOST_A_NUMBER = re.compile(r"[-+]?[0-9][0-9.,' \u00a0\u2019\u202f]*([eE][-+]?[0-9]+)?")
_THREE_DIGITS = re.compile(r"-?[1-9][0-9]{0,2}[.,][0-9]{3}")  # after a mark that may group or part
_NOT_FINITE = re.compile(r"[-+]?(nan|inf|infinity)(\([a-z]*\))?", re.IGNORECASE)
# `--print-metric-instances`: a total, then the instances, each with its ID or without.
_INSTANCES = re.compile(r"([^(]*?) ?\((.+)\)", re.DOTALL)
_INSTANCE_ID = re.compile(r"[^;]*?: ")
_DOUBTED = "(!)"  # ncu's mark before a word that stands in place of a number
_NO_DATA = frozenset({"no data", "error"})
_NOT_COLLECTED = frozenset({"n/a"})  # ncu does not say whether the GPU lacks it or the launch failed

_TIME_NS = {
    "nsecond": 1.0,
    "usecond": 1e3,
    "msecond": 1e6,
    "second": 1e9,
    "ns": 1.0,
    "us": 1e3,
    "ms": 1e6,
    "s": 1e9,
}
_PREFIX = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class Unusable(ValueError):
    """What is wrong with a file, and the way out, without the file's name."""


class CommaDecimals(Exception):
    """A number of the file shows that its decimal mark is the comma."""


@dataclass
class NumberForm:
    """How the numbers of one file are written, as far as the cells that were read show it.

    ncu groups thousands and marks decimals as the locale does (LC_ALL) under which it prints: 11.360 is
    11,360 in Germany. It prints no, two or six decimals, never three (ncu 2020 to 2024, 18 exports), and six
    always after a point.
    """

    decimal: str = "."
    is_shown: bool = False  # whether a number can only be read with this decimal mark
    doubted: str = ""  # the first that another locale would have printed for a number 1,000 times as large

    def parse(self, text: str, unit: str) -> Value | None:
        """The value of one cell; None where ncu printed nothing.

        Raises Unusable for a doubtful number, and CommaDecimals for the first that shows commas as decimals.
        """
        text = text.strip()
        base, factor = base_unit(unit)
        if not text:
            return None
        if text.isdecimal() and factor == 1.0 and len(text) <= 20 and text.isascii():
            return Value(int(text), base)
        if match := _NUMBER[self.decimal].fullmatch(text):
            return self._number(text, match["decimals"], base, factor)
        if _SIX_DECIMALS.fullmatch(text):
            return Value(float(text) * factor, base)
        if _ALMOST_A_NUMBER.fullmatch(text):
            if self.decimal == "." and _NUMBER[","].fullmatch(text):
                raise CommaDecimals
            raise Unusable(
                f"{cut(text)!r} is no number in ncu's form (1,234.5); export it again under LC_ALL=C"
            )
        word = text.lower().removeprefix(_DOUBTED).lstrip()
        if word in _NO_DATA:
            return Value(None, base, state=State.NO_DATA)
        if _NOT_FINITE.fullmatch(word):
            return Value(None, base, state=State.INFINITE if "inf" in word else State.FAILED)
        if word in _NOT_COLLECTED:
            return Value(None, base, state=State.NOT_COLLECTED)
        if text.endswith(")") and (instances := _INSTANCES.fullmatch(text)):
            return self._total(instances[1], instances[2], text, unit)
        return Value(None, base, text=text)

    def refuse_doubt(self) -> None:
        """Raise Unusable where a number may be 1,000 times as large and no other shows the form."""
        if self.doubted and not self.is_shown:
            raise Unusable(
                f"{self.doubted!r} is 1,000 times as much in some locales, and no number shows which is "
                "meant; export it again under LC_ALL=C"
            )

    def _number(self, text: str, decimals: str | None, base: str, factor: float) -> Value:
        plain = text.translate(_PLAIN[self.decimal])
        if _THREE_DIGITS.fullmatch(text):
            if decimals and self.decimal == ",":
                raise Unusable(
                    f"{cut(text)!r} stands among numbers with other decimals; export it again under LC_ALL=C"
                )
            self.doubted = self.doubted or (text if decimals else "")
        elif decimals and len(decimals) != 6:
            self.is_shown = True
        if factor == 1.0 and plain.isdigit() and len(plain) <= 20:
            return Value(int(plain), base)
        number = float(plain) * factor
        if not math.isfinite(number):
            raise Unusable(f"a number of {len(text)} characters is larger than any counter; export it again")
        return Value(number, base)

    def _total(self, total: str, items: str, text: str, unit: str) -> Value:
        """What stands before the instances; a text that only ends in parentheses as it is."""
        base = base_unit(unit)[0]
        if not total:
            return Value(None, base, state=State.INSTANCES_ONLY)
        if _ALMOST_A_NUMBER.fullmatch(total) or _NOT_FINITE.fullmatch(total):
            value = self.parse(total, unit)
            assert value is not None  # the total is not empty
            return value
        values = {_INSTANCE_ID.sub("", item, count=1) for item in items.split("; ")}
        return Value(None, base, text=total if values == {total} else text)


@lru_cache(maxsize=1024)
def base_unit(unit: str) -> tuple[str, float]:
    """The base unit of ncu's newer versions, and the factor to it: `Gbyte/second` gives (`byte/s`, 1e9)."""
    top, slash, bottom = unit.partition("/")
    if top in _TIME_NS:
        top, factor = "ns", _TIME_NS[top]
    elif top[:1] in _PREFIX and top[1:].lower() in ("byte", "hz", "bit"):
        top, factor = top[1:], _PREFIX[top[0]]
    else:
        factor = 1.0
    top = "hz" if top.lower() == "hz" else top
    if bottom in _TIME_NS:
        bottom, factor = "s", factor * 1e9 / _TIME_NS[bottom]
    return ("hz" if (top, bottom) == ("cycle", "s") else top + slash + bottom), factor


def is_scaled(unit: str) -> bool:
    """Whether a number in this unit was scaled to be printed: `Mbyte`, `us`, but not `ns`."""
    return base_unit(unit)[1] != 1.0


def cut(text: str, most: int = 40) -> str:
    """A text of the file as a message quotes it."""
    return text if len(text) <= most else f"{text[:most]}…"
