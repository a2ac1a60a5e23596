"""How noise floors are printed, and how they read as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence

from profiler.cli.output import print_table
from profiler.compare import StoredFloor
from profiler.statistics import MIN_FLOOR_PAIRS, share_text

HEAD = ("GPU", "mode", "calls", "A/A pairs", "floor", "detectable", "of")


def print_floors(floors: Sequence[StoredFloor]) -> None:
    """A row a floor; one of few pairs says how many it needs."""
    print_table(HEAD, [_row(floor) for floor in floors], right=(3, 4, 5))


def _row(stored: StoredFloor) -> tuple[str, ...]:
    pairs = str(stored.floor.pairs) if stored.judges else f"{stored.floor.pairs} of {MIN_FLOOR_PAIRS}"
    sizes = ("–", "–")
    if stored.judges:
        sizes = (f"±{share_text(math.expm1(stored.floor.limit))}", share_text(stored.floor.detectable()))
    of = f"{', '.join(stored.versions)} on {', '.join(stored.workloads) or 'no workload named'}"
    return (stored.gpu or "unknown GPU", stored.mode, stored.workload_class, pairs, *sizes, of)


def to_dict(stored: StoredFloor) -> dict[str, object]:
    """A floor as JSON; limit and detectable are shares of a latency, null where there are too few pairs."""
    return {
        "gpu": stored.gpu or None,
        "mode": stored.mode,
        "class": stored.workload_class,
        "pairs": stored.floor.pairs,
        "needed": MIN_FLOOR_PAIRS,
        "limit": math.expm1(stored.floor.limit) if stored.judges else None,
        "detectable": stored.floor.detectable() if stored.judges else None,
        "versions": stored.versions,
        "workloads": stored.workloads,
        "runs": stored.runs,
        "until": stored.until.isoformat(),
    }
