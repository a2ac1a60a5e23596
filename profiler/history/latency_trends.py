"""The medians of timed calls as series over the runs, oldest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from profiler.compare.match_launches import name_filter
from profiler.evidence.metric_table import Alternative, Metric
from profiler.evidence.values import NOT_COLLECTED, Evidence, Value
from profiler.history.trend import Trend, TrendPoint, check_filters

if TYPE_CHECKING:
    from profiler.store import Store, Timing

LATENCY = "latency"  # what it is called beside the concepts of metrics.txt, which names ncu's metrics only
_NAME = "latency, median of samples"
LATENCY_METRIC = Metric(
    LATENCY, "latency", "ns", "lower", 0.01, None, "time", "lean", (Alternative(_NAME),), 0
)


def latencies(
    store: Store,
    *,
    family: str | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    wrong: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Trend]:
    """A series for each family, workload, GPU and mode; a point for each run and version.

    `wrong` as in `trend`. Raises UnknownName for a filter that stands for nothing.
    """
    fits = name_filter(kernel)
    found = []
    for one in [family] if family is not None else store.families():
        series: dict[tuple[str | None, str | None, str, str], list[Timing]] = defaultdict(list)
        for row in store.timings(family=one, workload=workload, gpu=gpu):
            if fits(row.part) or fits(row.base_name):
                series[row.workload, row.gpu, row.mode, row.part].append(row)
        rejected = (wrong or {}).get(one, {})
        for (size, device, mode, part), several in series.items():
            points = tuple(_point(row, rejected) for row in several)
            identity = (LATENCY, "latency", "lower", "ns", one, size, device, Evidence.MEASURED, mode, part)
            found.append(Trend(*identity, several[0].base_name, points))
    if not found:
        check_filters(store, family, workload, gpu)
    return found


def newest_of_each(one: Trend, order: Sequence[str]) -> Trend:
    """The newest run of each version, in `order`; versions that it does not name stand as they came."""
    newest = {point.version: point for point in one.points}
    names = [*(name for name in order if name in newest), *(name for name in newest if name not in order)]
    return replace(one, points=tuple(newest[name] for name in names))


def _point(row: Timing, wrong: Mapping[str, str]) -> TrendPoint:
    none = row.median_ns is None
    value = NOT_COLLECTED._replace(unit="ns") if none else Value(row.median_ns, "ns")
    gap = wrong.get(row.version, value.state.words if none else "")
    where = (row.run_id, row.version, row.created, value, _NAME, None, None, row.result_id)
    return TrendPoint(*where, gap, "", row.version in wrong)
