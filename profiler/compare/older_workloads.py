"""Which comparisons of one pair are of today's workloads, and which rest on older runs alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from profiler.compare.comparison import Comparison
from profiler.evidence.values import Evidence

# Calls are timed in turns, a few workloads a night: that much older is still today's.
MEASURED_DAYS = 30

Key = TypeVar("Key")


def split_older(
    comparisons: Mapping[Key, Comparison],
) -> tuple[dict[Key, Comparison], dict[Key, Comparison]]:
    """The comparisons whose sides are of the newest runs, and those that only older runs have.

    Static and modelled facts come from runs that examine a whole lineage: what the newest left out is older.
    Measured workloads are older where a side's last run there is MEASURED_DAYS before its last anywhere.
    """
    newest = [
        max((_created(comparison)[side] for comparison in comparisons.values()), default=None)
        for side in (0, 1)
    ]
    current: dict[Key, Comparison] = {}
    older: dict[Key, Comparison] = {}
    for key, comparison in comparisons.items():
        leeway = timedelta(days=MEASURED_DAYS if comparison.a.evidence is Evidence.MEASURED else 0)
        is_current = all(
            last is None or created + leeway >= last  # a sum: nothing is before the beginning of time
            for created, last in zip(_created(comparison), newest, strict=True)
        )
        (current if is_current else older)[key] = comparison
    return current, older


def _created(comparison: Comparison) -> tuple[datetime, datetime]:
    """When the runs of A and of B were made; the beginning of time where nobody knows."""
    sides = (comparison.a, comparison.b)
    a, b = (side.session.created or datetime.min.replace(tzinfo=UTC) for side in sides)
    return a, b
