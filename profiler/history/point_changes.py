"""What changed between two points of one series, besides the metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler.compare.environment_change import RunChanges, run_changes
from profiler.compare.same_code import run_code_loader

if TYPE_CHECKING:
    from profiler.bundles.location import Root
    from profiler.history.trend import Trend, TrendPoint
    from profiler.store.index import Store


def changes_between(
    store: Store, root: Root, series: Trend, before: TrendPoint, after: TrendPoint
) -> RunChanges:
    """What else changed from one point of the series to a later one: the machine, the tools, the code."""
    load_bundle = run_code_loader(root)
    run_ids = dict.fromkeys((before.run_id, after.run_id))
    return run_changes(
        [run for run in map(store.run, run_ids) if run is not None],
        (load_bundle(before.run_id), before.version),
        (load_bundle(after.run_id), after.version),
        series.part,
        series.evidence,
    )
