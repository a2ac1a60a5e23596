"""The best correct version of each GPU and workload, its change since its parent, and its past runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.catalog.version import Version
from profiler.compare.noise_model import NoiseModel
from profiler.evidence.naming import natural_key
from profiler.history.lineage import Lineage, VersionStatus
from profiler.history.speedups import Speedup, shared_run_speedup
from profiler.history.version_latency import VersionLatency

if TYPE_CHECKING:
    from profiler.store.index import Store
    from profiler.store.rows import LatencyInfo

RUNS_SHOWN = 30  # of the best version's newest runs on one workload and GPU


@dataclass(frozen=True)
class BestVersion:
    """The fastest correct version of one GPU and workload, and the fastest kernel of others there."""

    gpu: str
    workload: str
    status: VersionStatus | None  # None: no correct version was timed here, but on another GPU
    latency: VersionLatency | None
    baseline: VersionStatus | None
    baseline_latency: VersionLatency | None
    since_parent: Speedup | None  # over its nearest correct ancestor, by a run that timed both; else None
    past: tuple[LatencyInfo, ...] = ()  # the newest runs of the version in the same mode, oldest first

    @property
    def times_bound(self) -> float | None:
        """How many times its lower bound it takes; None without one."""
        return self.latency.times_bound if self.latency else None

    @property
    def baseline_times_bound(self) -> float | None:
        """How many times the version's own lower bound the baseline takes; None without either."""
        if self.latency is None or self.baseline_latency is None or not self.latency.bound_ns:
            return None
        return self.baseline_latency.ns / self.latency.bound_ns

    @property
    def speedup(self) -> float | None:
        """How many times as fast as the best baseline it is; None where no baseline was timed here."""
        if self.latency is None or self.baseline_latency is None:
            return None
        return self.baseline_latency.ns / self.latency.ns


def load_best_versions(store: Store, lineage: Lineage, noise: NoiseModel) -> tuple[BestVersion, ...]:
    """A row for each GPU and each workload that was timed anywhere, the GPU of most versions first."""
    cells = lineage.timed_cells
    workloads = sorted({workload for _, workload in cells}, key=natural_key)
    gpus = dict.fromkeys(gpu for gpu, _ in cells)
    # Every cell is compared: too many to read bundles for each.
    quick = noise.without_same_code()
    return tuple(
        _best_version(store, lineage, gpu, workload, quick) for gpu in gpus for workload in workloads
    )


def _best_version(store: Store, lineage: Lineage, gpu: str, workload: str, noise: NoiseModel) -> BestVersion:
    best = lineage.best(workload, gpu)
    latency = best.latencies.get((workload, gpu)) if best else None
    baseline = lineage.best_baseline(workload, gpu)
    of_baseline = baseline.latencies[workload, gpu] if baseline else None
    if best is None or latency is None:
        return BestVersion(gpu, workload, None, None, baseline, of_baseline, None)
    past = _newest_timings(store, lineage, best.version, workload, gpu, latency.mode)
    parent, since_parent = best.correct_ancestor, None
    if parent is not None and parent.dtype == best.version.dtype:
        of_parent = _newest_timings(store, lineage, parent, workload, gpu, latency.mode)
        since_parent = shared_run_speedup(of_parent, past, noise)
    return BestVersion(gpu, workload, best, latency, baseline, of_baseline, since_parent, tuple(past))


def _newest_timings(
    store: Store, lineage: Lineage, version: Version, workload: str, gpu: str, mode: str
) -> Sequence[LatencyInfo]:
    """The newest timings of a version in one mode, oldest first."""
    # A lineage's workloads leave out the dtype, which most runs name.
    for label in (f"{workload} {version.dtype}", workload):
        rows = store.latencies(
            family=lineage.family,
            version=version.id,
            workload=label,
            gpu=gpu,
            mode=mode,
            latest=False,
            limit=RUNS_SHOWN,
        )
        if rows:
            return rows
    return ()
