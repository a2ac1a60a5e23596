"""The index over the bundles: what it answers with, and Store, which brings SQLAlchemy in on first use."""

from typing import TYPE_CHECKING, Any

from profiler.store.rows import (
    ROW_LIMIT,
    WORKLOAD_CLASSES,
    CellInfo,
    DamagedIndex,
    Environment,
    LatencyInfo,
    LaunchInfo,
    NoisePair,
    Overtaken,
    PartArrays,
    Point,
    Rows,
    RunInfo,
    SampleArrays,
    Series,
    Timing,
    VersionInfo,
    WorkloadInfo,
    workload_class,
)

if TYPE_CHECKING:
    from profiler.store.index import Store

__all__ = [
    "ROW_LIMIT",
    "WORKLOAD_CLASSES",
    "CellInfo",
    "DamagedIndex",
    "Environment",
    "LatencyInfo",
    "LaunchInfo",
    "NoisePair",
    "Overtaken",
    "PartArrays",
    "Point",
    "Rows",
    "RunInfo",
    "SampleArrays",
    "Series",
    "Store",
    "Timing",
    "VersionInfo",
    "WorkloadInfo",
    "workload_class",
]


def __getattr__(name: str) -> Any:
    if name == "Store":
        from profiler.store.index import Store

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
