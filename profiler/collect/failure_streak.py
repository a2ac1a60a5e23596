"""When to stop trying versions one by one: several in a row failed for the same reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

# So many failures in a row for one reason are not the versions' fault; the time is better spent elsewhere.
SAME_FAILURES = 3


class FailureStreak:
    """Counts how many versions in a row failed for the same reason."""

    def __init__(self) -> None:
        self._reason, self._times = "", 0

    def add(self, name: str, status: str, reason: str | None) -> None:
        """Count one version's ending; reasons that differ only in the version's name are the same."""
        own_name = rf"(?<![A-Za-z0-9]){re.escape(name)}(?=_at_|\W|$)"  # as a word, or in the name of a range
        nameless = re.sub(own_name, "…", str(reason))
        if status != "failed":
            self._times = 0
        else:
            self._times = self._times + 1 if nameless == self._reason else 1
        self._reason = nameless

    @property
    def why_no_more(self) -> str | None:
        """Why no more versions should be tried; None: go on."""
        if self._times < SAME_FAILURES:
            return None
        return f"not tried: the {SAME_FAILURES} before it failed alike: {self._reason}"


def interleaved(names: Sequence[str]) -> list[str]:
    """The names in an order in which SAME_FAILURES in a row come from all over the lineage.

    Neighbours share ideas, and so their faults: three of them that fail say little of the others.
    """
    size = max(1, -(-len(names) // SAME_FAILURES))
    parts = [names[at : at + size] for at in range(0, len(names), size)]
    return [name for row in zip_longest(*parts) for name in row if name is not None]
