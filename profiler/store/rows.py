"""The rows that the index answers with: runs, versions, workloads, launches, series, latencies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from profiler.bundles.run import Json, ReportFile
from profiler.errors import ProfilerError
from profiler.evidence.values import Evidence, Value

ROW_LIMIT = 10_000  # rows that one query may bring into Python

Size = tuple[int, int, int]
T = TypeVar("T")


class IndexNotWritable(ProfilerError):
    """The index cannot be changed: a full disk, a read-only one, no right to. Reading may well work."""


class DamagedIndex(ProfilerError):
    """The database file is damaged or no index: it has to be made again from the bundles."""


class WriteConflict(Exception):
    """Another process changed the index meanwhile: the rows to be written have to be made again."""


class Rows(list[T]):
    """A list that knows whether a row limit cut it short."""

    def __init__(self, rows: Iterable[T] = (), truncated: bool = False) -> None:
        super().__init__(rows)
        self.truncated = truncated


@lru_cache(maxsize=256)
def capabilities(gpus: str) -> Mapping[str, str | None]:
    """The compute capability of each GPU of a run, from the column `gpus`."""
    return MappingProxyType(json.loads(gpus))


class RunInfo(NamedTuple):
    """One run, under its present labels. What a report does not say is None."""

    run_id: str
    family: str | None  # None: several, see families
    version: str | None  # None: several, see versions
    workload: str | None  # None: several, or unknown
    kind: str  # import or collect
    created: datetime  # when the report or run was made, UTC
    gpu: str | None  # None: unknown, or several, see gpus
    compute_capability: str | None
    driver: str | None
    ncu_version: str | None
    cuda: str | None
    host: str | None
    command_line: str | None
    clock_control: str | None
    cache_control: str | None
    launches: int
    reports: tuple[ReportFile, ...]  # (name, sha256, size_bytes, path inside the bundle)
    evidence: frozenset[Evidence]
    hidden: bool
    families: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()  # those that have a name
    provenance: Mapping[str, Json] = {}  # all the bundle says about how it was made
    family_decided: bool = False  # by a relabel
    gpus: Mapping[str, str | None] = {}  # the compute capability of each GPU by its name; None: unknown

    @property
    def gpu_names(self) -> tuple[str, ...]:
        """The GPUs that it ran on: those of its launches, else the one that it was made on."""
        return tuple(self.gpus) or ((self.gpu,) if self.gpu else ())

    def capability_on(self, gpu: str | None) -> str | None:
        """The compute capability of one of its GPUs."""
        return self.gpus.get(gpu or "") or self.compute_capability


@dataclass(frozen=True)
class VersionInfo:
    """One version of a family, over all runs that are not hidden."""

    family: str
    version: str
    first_created: datetime
    last_created: datetime
    runs: int
    gpus: tuple[str, ...]
    workloads: tuple[str, ...]  # those that have a name


@dataclass(frozen=True)
class WorkloadInfo:
    """One workload of a family."""

    family: str
    workload: str | None  # None: nobody named it
    versions: int  # how many have results of it
    gpus: tuple[str, ...]


class Environment(NamedTuple):
    """The GPU architecture and software of a run, as far as it is known."""

    compute_capability: str | None  # None: unknown, or several
    driver: str | None
    ncu_version: str | None
    gpus: Mapping[str, str | None] = {}  # as for RunInfo

    def capability_on(self, gpu: str | None) -> str | None:
        """The compute capability of one of its GPUs."""
        return self.gpus.get(gpu or "") or self.compute_capability


class ResultInfo(NamedTuple):  # tens of thousands of a long history: a dataclass takes five times as long
    """One result row without its values: a launch, facts of a part, or the latencies of a call."""

    result_id: int
    run_id: str
    family: str
    version: str
    workload: str | None
    gpu: str | None
    evidence: Evidence
    mode: str
    part: str
    base_name: str
    demangled: str
    grid: Size | None
    block: Size | None
    ordinal: int  # of the launch in its report; of other rows, the position in the run
    created: datetime
    duration_ns: Value  # gpu__time_duration.sum
    report_sha256: str | None
    kind: str = "launch"  # launch, facts, latency, noise, or cell, which has a status and no values
    status: str = "done"
    reason: str | None = None
    median_ns: float | None = None  # of the latency samples
    samples: int = 0
    latest: bool = True  # from the newest run of its series and version


class Point(NamedTuple):
    """One value of a series."""

    result_id: int
    run_id: str
    version: str
    created: datetime
    value: Value
    grid: Size | None
    block: Size | None
    latest: bool = True  # from the newest run of its version


@dataclass(frozen=True)
class Series:
    """One metric of one part over the runs, oldest first; a launch without the metric has a point too."""

    family: str
    workload: str | None
    gpu: str | None
    evidence: Evidence
    mode: str
    part: str
    base_name: str
    metric: str  # the exact name
    unit: str  # of the newest point that has a number; every value has its own
    points: tuple[Point, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class PartArrays:
    """All series of one part as read-only arrays, oldest point first, for callers that read thousands.

    All arrays have one element a launch; a launch without a metric has an element in its arrays too.
    """

    family: str
    workload: str | None
    gpu: str | None
    evidence: Evidence
    mode: str
    part: str
    base_name: str
    metrics: tuple[str, ...]  # the exact names of the metrics that any point carries
    units: tuple[str, ...]  # one a metric: that of its newest value
    numbers: tuple[NDArray[np.float64], ...]  # one array a metric; NaN: no number
    states: tuple[NDArray[np.uint8], ...]  # one array a metric, of State
    result_ids: NDArray[np.int64]
    run_keys: NDArray[np.int64]  # Store.run_ids turns them into run ids
    created_us: NDArray[np.int64]  # microseconds since 1970, UTC
    versions: tuple[str, ...]
    version: NDArray[np.uint32]  # index into versions
    latest: NDArray[np.bool_]  # from the newest run of its version


@dataclass(frozen=True)
class SampleArrays:
    """Latencies of single calls, in the order in which they were timed."""

    ns: NDArray[np.float32]
    rounds: NDArray[np.uint16]  # the round of measurement that each sample is from
    clocks_mhz: NDArray[np.float32]  # one a sample, or an empty array
    throttled: NDArray[np.uint32]  # indices of samples taken while the GPU throttled
    processes: NDArray[np.uint16]  # the process that each sample is from, or an empty array


@dataclass(frozen=True)
class LatencyInfo:
    """The timed calls of one run, version, workload and mode."""

    result_id: int
    run_id: str
    family: str
    version: str
    workload: str | None
    gpu: str | None
    driver: str | None
    mode: str  # "events; cache warm; clock none"
    created: datetime  # of the run
    median_ns: float | None
    samples: SampleArrays
    latest: bool = True  # from the newest run of its series and version
    status: str = "done"
    reason: str | None = None


class MedianLatency(NamedTuple):
    """The median of the timed calls of one run, version, workload and mode, without its samples."""

    result_id: int
    run_id: str
    version: str
    created: datetime  # of the run
    median_ns: float | None
    driver: str | None
    workload: str | None
    gpu: str | None
    mode: str
    part: str
    base_name: str


SHORT_NS, LONG_NS = 100e3, 1e6  # the bounds between short, medium and long calls
WORKLOAD_CLASSES = ("short", "medium", "long")


def workload_class(ns: float) -> str:
    """The class of a call by its duration: noise floors differ, since a CUDA event timer ticks every 1 µs."""
    return WORKLOAD_CLASSES[(ns >= SHORT_NS) + (ns >= LONG_NS)]


@dataclass(frozen=True)
class NoisePair:
    """Two A/A sessions, of one build right after each other: how far equal builds lie apart."""

    a: LatencyInfo
    b: LatencyInfo

    @property
    def clock_mode(self) -> str | None:
        """The clock control that the mode names: base, none, locked…; None where it names none."""
        clock_parts = [part for part in self.a.mode.split("; ") if part.startswith("clock ")]
        return clock_parts[0].removeprefix("clock ") if clock_parts else None

    @property
    def workload_class(self) -> str:
        """The class of the first session's median."""
        return workload_class(float(np.median(self.a.samples.ns)))
