"""What the part of a series is called on screen: without its `#0` where its kernel ran once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


def short_names(parts: Iterable[str]) -> dict[str, str]:
    """Every part (`range/kernel#0`) with the name it goes by among these; the same that `compare` prints."""
    stems: dict[str, set[str]] = defaultdict(set)
    for part in parts:
        stems[part.rpartition("#")[0]].add(part)
    return {
        part: stem if stem and len(several) == 1 else part
        for stem, several in stems.items()
        for part in several
    }
