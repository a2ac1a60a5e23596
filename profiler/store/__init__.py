"""The index over the bundles: what it answers with, and Store, which brings SQLAlchemy in on first use."""

from typing import TYPE_CHECKING

from profiler import lazy

if TYPE_CHECKING:
    from profiler.store.index import Store as Store
    from profiler.store.rows import ROW_LIMIT as ROW_LIMIT
    from profiler.store.rows import WORKLOAD_CLASSES as WORKLOAD_CLASSES
    from profiler.store.rows import CellInfo as CellInfo
    from profiler.store.rows import DamagedIndex as DamagedIndex
    from profiler.store.rows import Environment as Environment
    from profiler.store.rows import LatencyInfo as LatencyInfo
    from profiler.store.rows import LaunchInfo as LaunchInfo
    from profiler.store.rows import NoisePair as NoisePair
    from profiler.store.rows import Overtaken as Overtaken
    from profiler.store.rows import PartArrays as PartArrays
    from profiler.store.rows import Point as Point
    from profiler.store.rows import Rows as Rows
    from profiler.store.rows import RunInfo as RunInfo
    from profiler.store.rows import SampleArrays as SampleArrays
    from profiler.store.rows import Series as Series
    from profiler.store.rows import Timing as Timing
    from profiler.store.rows import VersionInfo as VersionInfo
    from profiler.store.rows import WorkloadInfo as WorkloadInfo
    from profiler.store.rows import workload_class as workload_class

__getattr__ = lazy(
    __name__,
    index="Store",
    rows="""ROW_LIMIT WORKLOAD_CLASSES CellInfo DamagedIndex Environment LatencyInfo LaunchInfo NoisePair
    Overtaken PartArrays Point Rows RunInfo SampleArrays Series Timing VersionInfo WorkloadInfo
    workload_class""",
)
