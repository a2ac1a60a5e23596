"""The same two versions on other workloads and GPUs: those of the newest runs, the others folded."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from profiler.compare.comparison import Comparison
from profiler.compare.older_workloads import split_older
from profiler.evidence import formatting
from profiler.ui import markup
from profiler.ui.data.cells import WorkloadOnGpu
from profiler.ui.markup import Html

Comparisons = Mapping[WorkloadOnGpu, Comparison]


def elsewhere(
    comparisons: Comparisons, here: WorkloadOnGpu, table: Callable[[Comparisons], Html]
) -> list[Html]:
    """The table of what the newest runs have; what only older runs have folded, unless `here` is there."""
    current, older = split_older(comparisons)
    parts = [table(current)] if current else []
    if older:
        dates = [side.session.created for pair in older.values() for side in (pair.a, pair.b)]
        last = max(filter(None, dates), default=None)
        s = "s" * (len(older) != 1)
        words = f"{len(older)} workload{s} that only older runs have"
        until = f"until {formatting.timestamp(last)}" if last else ""
        head = markup.join((words, markup.tag("small", until)) if until else (words,))
        parts.append(markup.fold(head, [table(older)], is_open=here in older))
    return parts
