"""The latency of each version in the timing mode that all are compared in, beside its run's lower bound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profiler.store.rows import ResultInfo

# How timing modes begin, the one that says most of real use first. All other modes come after them.
_PREFERRED_MODES = ("events; cache warm", "events; cache cold", "graph replay", "events")


@dataclass(frozen=True)
class VersionLatency:
    """The median latency of one version on one workload and GPU."""

    ns: float
    mode: str  # events; cache warm; clock none
    run_id: str
    bound_ns: float | None = None  # None: its run computed none, as an imported one
    binding: str | None = None  # which lower bound that is: launch, arithmetic, exponential, memory, wave

    @property
    def times_bound(self) -> float | None:
        """How many times the lower bound it takes; None without one."""
        return self.ns / self.bound_ns if self.bound_ns else None


def newest_latencies(
    rows: Iterable[ResultInfo], provenance: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, str, str], VersionLatency]:
    """The newest latencies by version, workload and GPU; `provenance` is that of the runs, by run id.

    All versions on one workload and GPU are taken in one mode, so that a cold call is never compared with a
    warm one.
    """
    timed = [row for row in rows if row.kind == "latency" and row.median_ns is not None]
    modes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in timed:
        modes[row.workload or "", row.gpu or ""].add(row.mode)
    shared_mode = {cell: min(present, key=mode_rank) for cell, present in modes.items()}
    latencies: dict[tuple[str, str, str], VersionLatency] = {}
    for row in sorted(timed, key=lambda row: row.created):
        workload, gpu = row.workload or "", row.gpu or ""
        if row.mode == shared_mode[workload, gpu] and row.median_ns is not None:
            bound = lower_bound_of(provenance.get(row.run_id, {}), workload, row.mode)
            latencies[row.version, workload, gpu] = VersionLatency(
                row.median_ns, row.mode, row.run_id, *bound
            )
    return latencies


def lower_bound_of(
    provenance: Mapping[str, Any], workload: str, mode: str
) -> tuple[float | None, str | None]:
    """A workload's lower bound in ns for calls in this timing mode, and its kind; None where unknown."""
    bounds = (provenance.get("floors") or {}).get(workload) or {}
    # Timers differ in their launch overhead, so a run may have recorded one bound for each timer.
    bounds_of_timer = (bounds.get("by_timer") or {}).get(mode.partition(";")[0]) or bounds
    return bounds_of_timer.get("floor_ns"), bounds_of_timer.get("binding")


def mode_rank(mode: str) -> tuple[int, str]:
    """A sort key of timing modes: the preferred ones in their order, then the others by name."""
    for rank, prefix in enumerate(_PREFERRED_MODES):
        if mode.startswith(prefix):
            return rank, mode
    return len(_PREFERRED_MODES), mode
