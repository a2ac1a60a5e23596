"""The same two versions on other workloads and GPUs: those of the newest runs, the others folded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from profiler.compare.comparison import Comparison
from profiler.compare.older_workloads import split_older
from profiler.evidence import formatting
from profiler.ui import addresses, markup
from profiler.ui.data.cells import WorkloadOnGpu
from profiler.ui.markup import Column, Html, Row

# The launch that a row leads to, "" for the one that its page opens with, and its cells; None for no row.
RowOf = Callable[[Comparison], tuple[str, Sequence[object]] | None]


def elsewhere(
    comparisons: Mapping[WorkloadOnGpu, Comparison],
    view: addresses.Diff,
    columns: Sequence[Column],
    row_of: RowOf,
) -> list[Html]:
    """A row a workload and GPU that the newest runs have; what only older runs have is folded.

    `row_of` gives what stands under `columns`. The fold is open where `view` is in it.
    """
    has_several_gpus = len({gpu for _, gpu in comparisons}) > 1

    def table(shown: Mapping[WorkloadOnGpu, Comparison]) -> Html:
        rows = []
        for (workload, gpu), comparison in shown.items():
            if (found := row_of(comparison)) is not None:
                launch, own = found
                label = workload or "no workload named"
                label += f" · {gpu or 'unknown GPU'}" if has_several_gpus else ""
                address = replace(view, workload=workload, gpu=gpu, launch=launch or None).href
                link = markup.link(address, label, title=launch)
                rows.append(Row((link, *own), selected=(workload, gpu) == here))
        return markup.table("the same pair elsewhere", (Column("workload", wrap=True), *columns), rows)

    here = (view.workload or "", view.gpu or "")
    current, older = split_older(comparisons)
    parts = [table(current)] if current else []
    if older:
        dates = [side.session.created for pair in older.values() for side in (pair.a, pair.b)]
        last = max(filter(None, dates), default=None)
        words = f"{len(older)} workload{'s' * (len(older) != 1)} that only older runs have"
        until = markup.tag("small", f"until {formatting.timestamp(last)}") if last else ""
        parts.append(markup.fold(markup.join((words, until)), [table(older)], is_open=here in older))
    return parts
