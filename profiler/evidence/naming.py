"""How names are ordered and listed in messages: numbers by size, near misses first, long lists cut short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def nearest_first(name: str, there: Iterable[str]) -> list[str]:
    """The names that there are, for a message: those most like `name` first, then the others as they come."""
    names = list(dict.fromkeys(there))
    near = get_close_matches(name, names, n=3, cutoff=0.4)
    return [*near, *(one for one in names if one not in near)]


def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers inside names by size: sm_80, sm_89, sm_120; head dim 64, head dim 128."""
    parts = re.split(r"(\d+)", text)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def brief_list(names: Sequence[str]) -> str:
    """A short list of names for a message: at most three, then how many more."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
