"""The example runs that come with the repository, and the decision that hides them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from profiler.bundles.run import EXAMPLE
from profiler.store.rows import RunInfo
from profiler.store.run_decisions import forget_run
from profiler.ui.data.decisions import author
from profiler.ui.data.index import store

WHY = "examples hidden on the page Overview"


def of_runs(runs: Iterable[RunInfo]) -> list[RunInfo]:
    """The example runs among these, oldest first."""
    return sorted((run for run in runs if EXAMPLE in run.provenance), key=lambda run: run.created)


def families(runs: Sequence[RunInfo]) -> list[str]:
    """The families of example runs."""
    return list(dict.fromkeys(run.family for run in runs if run.family))


def hide(run_ids: Iterable[str], *, undo: bool = False) -> None:
    """Record for each run that it is hidden, or with `undo` that it is shown again."""
    for run_id in run_ids:
        forget_run(run_id, undo=undo, why="" if undo else WHY, who=author().name, store=store())
