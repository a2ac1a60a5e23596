"""How names are ordered and listed in messages: numbers by size, near misses first, long lists cut short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches


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
