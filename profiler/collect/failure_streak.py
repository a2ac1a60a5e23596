"""When versions that are tried one by one fail again and again for the same reason, no more are tried."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

# Failures in a row for one reason: it is not the versions', and the time is better spent elsewhere.
SAME_FAILURES = 3


class FailureStreak:
    """Whether what is tried one by one fails again and again for the same reason."""

    def __init__(self) -> None:
        self._reason, self._times = "", 0

    def see(self, name: str, result: Mapping[str, Any]) -> None:
        """How it ended for one version."""
        own = rf"(?<![A-Za-z0-9]){re.escape(name)}(?=_at_|\W|$)"  # by itself, or in a range's name
        reason = re.sub(own, "…", str(result.get("reason")))
        failed = result.get("status") == "failed"
        self._times = (self._times + 1 if reason == self._reason else 1) if failed else 0
        self._reason = reason

    @property
    def words(self) -> str | None:
        """Why no more are tried; None: go on."""
        if self._times < SAME_FAILURES:
            return None
        return f"not tried: the {SAME_FAILURES} before it failed alike: {self._reason}"


def interleaved(names: Sequence[str]) -> list[str]:
    """The names in an order in which ALIKE in a row come from all over the lineage: neighbours share ideas,
    and so their faults.
    """
    size = max(1, -(-len(names) // SAME_FAILURES))
    parts = [names[at : at + size] for at in range(0, len(names), size)]
    return [name for row in zip_longest(*parts) for name in row if name is not None]
