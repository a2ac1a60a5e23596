"""How names are ordered and listed in messages: numbers by size, near misses first, long lists cut short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache

# A cast before a value among template arguments: ncu writes `(int)32`, `(bool)1` and `(Kind)2`, others
# `32`, `true` and `2`, or `4u` and `32ul`.
_CAST = re.compile(r"(?<=[<,(\[{\s])\(\s*[\w:{][^()]*\)\s*(?=\(|[-+]?\d|(?:true|false|nullptr)\b|')")
_ANONYMOUS = re.compile(
    r"\(anonymous namespace\)|<unnamed>|\{anonymous\}|\(anonymous\)|`anonymous namespace'|_GLOBAL__N_\w+"
)
_WRAPPED = re.compile(r"(?<=[<,])\(([-+]?\d\w*)\)(?=[,>])")  # (32)
_INTEGER = re.compile(r"(?<![\w.])([-+]?)(0[xX][0-9a-fA-F]{1,40}|\d{1,40})[uU]?[lL]{0,2}[uU]?(?![\w.])")
_BOOLEANS = {"true": "1", "false": "0"}
_BOOLEAN = re.compile(r"(?<![\w:])(?:true|false)(?![\w:])")
_SPACES = re.compile(r"\s*([<>,*&()\[\]{}:])\s*")


def nearest_first(name: str, existing: Iterable[str]) -> list[str]:
    """The existing names for a message about a wrong one: at most three similar ones first, then the rest."""
    names = list(dict.fromkeys(existing))
    similar = get_close_matches(name, names, n=3, cutoff=0.4)
    return [*similar, *(other for other in names if other not in similar)]


def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers inside names by size: sm_80, sm_89, sm_120; head dim 64, head dim 128."""
    parts = re.split(r"(\d+)", text)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def brief_list(names: Sequence[str]) -> str:
    """A short list of names for a message: at most three, then how many more."""
    first = ", ".join(names[:3])
    return first if len(names) <= 3 else f"{first} and {len(names) - 3} more"


@lru_cache(maxsize=4096)  # a CUTLASS name has 5,000 characters, and a report hundreds of launches of it
def plain_template_arguments(text: str) -> str:
    """Template arguments without what only a demangler chose: casts, suffixes, booleans, spaces.

    `<(int)32, (bool)1, (Kind)2, 4u, true>` and `<32, 1, 2, 4, 1>` become one text. What ncu prints and what
    its Python reader prints differ in this.
    """
    text = _ANONYMOUS.sub("{unnamed}", text)
    while (without_casts := _CAST.sub("", text)) != text:
        text = without_casts
    text = _BOOLEAN.sub(lambda found: _BOOLEANS[found[0]], text)
    text = _INTEGER.sub(_plain_integer, text)
    return _WRAPPED.sub(r"\1", _SPACES.sub(r"\1", text))


def _plain_integer(found: re.Match[str]) -> str:
    sign = "-" if found[1] == "-" else ""
    return f"{sign}{int(found[2], 16 if found[2][:2] in ('0x', '0X') else 10)}"
