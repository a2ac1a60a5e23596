"""Noise floors: how far the latencies of A/A pairs lie apart, by GPU, mode and duration of the call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from profiler.bundles import NOISE, Run, Samples
from profiler.statistics import MIN_FLOOR_PAIRS, NoiseFloor, floor_of_sessions
from profiler.store import WORKLOAD_CLASSES, workload_class

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener
    from profiler.store import Store

FloorKey = tuple[str, str, str]  # GPU, mode (timer, cache and clock), workload class
FloorLookup = Callable[[str, str, float], NoiseFloor | None]  # by GPU, mode and the latency of A in ns


class AAPair(NamedTuple):
    """Two A/A sessions: latencies of one build, measured twice."""

    gpu: str
    mode: str
    run_id: str
    version: str  # family/version
    workload: str
    created: datetime
    a_ns: Any  # latencies of single calls, as an array or sequence
    b_ns: Any

    @property
    def key(self) -> FloorKey:
        """The floor that the pair belongs to; the first session decides the workload class."""
        return self.gpu, self.mode, workload_class(float(np.median(self.a_ns)))


@dataclass(frozen=True)
class StoredFloor:
    """The noise floor of one GPU, mode and workload class, and the A/A pairs behind it."""

    gpu: str
    mode: str
    workload_class: str  # short, medium or long calls
    floor: NoiseFloor
    versions: tuple[str, ...]
    workloads: tuple[str, ...]  # those with a name
    runs: tuple[str, ...]  # oldest first
    until: datetime  # when the newest of these runs was made

    @property
    def judges(self) -> bool:
        """Whether there are enough pairs to judge by."""
        return self.floor.pairs >= MIN_FLOOR_PAIRS

    @property
    def key(self) -> FloorKey:
        """GPU, mode and workload class."""
        return self.gpu, self.mode, self.workload_class


def stored_floors(store: Store, gpu: str | None = None) -> list[StoredFloor]:
    """Every floor that the index has A/A pairs of, sorted by GPU and mode, short calls first."""
    return _floors_of_pairs(
        AAPair(
            pair.a.gpu or "",
            pair.a.mode,
            pair.a.run_id,
            f"{pair.a.family}/{pair.a.version}",
            pair.a.workload or "",
            pair.a.created,
            pair.a.samples.ns,
            pair.b.samples.ns,
        )
        for pair in store.noise_pairs(gpu=gpu)
    )


def floors_of_runs(runs: Iterable[Run]) -> list[StoredFloor]:
    """As `stored_floors`, from runs instead of an index."""
    return _floors_of_pairs(
        AAPair(
            run.provenance.get("gpu") or "",
            a.mode,
            run.run_id,
            f"{result.family}/{result.version}",
            result.workload or "",
            run.created,
            a.ns,
            b.ns,
        )
        for run in runs
        if run.provenance.get("purpose") == NOISE
        for result in run.results
        for a, b in _session_pairs(result.samples)
    )


def timed_keys(store: Store) -> dict[FloorKey, tuple[str, str]]:
    """The floor keys of which the newest runs have timed calls, each with one version and workload."""
    timed: dict[FloorKey, tuple[str, str]] = {}
    for row in store.results(kind="latency"):
        if row.median_ns is not None:
            key = (row.gpu or "", row.mode, workload_class(row.median_ns))
            timed.setdefault(key, (f"{row.family}/{row.version}", row.workload or ""))
    return timed


def floors_by_key(store: Store) -> dict[FloorKey, NoiseFloor]:
    """All floors, cached until the index changes.

    Floors of too few pairs are included: `judge_stored_baseline` refuses to judge by them, and says why.
    """
    return _floors_by_key(store, store.data_version())


def floor_lookup(store_opener: StoreOpener) -> FloorLookup:
    """The lookup over an index, which is opened at the first question."""

    def lookup(gpu: str, mode: str, ns: float) -> NoiseFloor | None:
        return floors_by_key(store_opener()).get((gpu, mode, workload_class(ns)))

    return lookup


@lru_cache(maxsize=4)
def _floors_by_key(store: Store, _data_version: str) -> dict[FloorKey, NoiseFloor]:
    return {stored.key: stored.floor for stored in stored_floors(store)}


def _session_pairs(samples: Sequence[Samples]) -> Iterator[tuple[Samples, Samples]]:
    """The first and second session of each mode, the third and fourth, …: see bundles.NOISE."""
    by_mode: dict[str, list[Samples]] = defaultdict(list)
    for session in samples:
        by_mode[session.mode].append(session)
    for sessions in by_mode.values():
        yield from zip(sessions[::2], sessions[1::2], strict=False)


def _floors_of_pairs(pairs: Iterable[AAPair]) -> list[StoredFloor]:
    by_key: dict[FloorKey, list[AAPair]] = defaultdict(list)
    for pair in pairs:
        if _is_usable(pair.a_ns) and _is_usable(pair.b_ns):
            by_key[pair.key].append(pair)
    order = sorted(by_key, key=lambda key: (*key[:2], WORKLOAD_CLASSES.index(key[2])))
    return [_stored_floor(key, by_key[key]) for key in order]


def _stored_floor(key: FloorKey, pairs: Sequence[AAPair]) -> StoredFloor:
    copies = len(pairs) / _independent_pairs(pairs)
    floor = floor_of_sessions(((pair.a_ns, pair.b_ns) for pair in _in_time_order(pairs)), copies)
    return StoredFloor(
        *key,
        floor,
        tuple(dict.fromkeys(pair.version for pair in pairs)),
        tuple(dict.fromkeys(pair.workload for pair in pairs if pair.workload)),
        tuple(dict.fromkeys(pair.run_id for pair in pairs)),
        max(pair.created for pair in pairs),
    )


def _in_time_order(pairs: Sequence[AAPair]) -> list[AAPair]:
    """Oldest first; the versions and workloads of one run, which shared its sessions, in turn."""
    places: Counter[tuple[str, str, str]] = Counter()
    order = []
    for pair in pairs:
        cell = pair.run_id, pair.version, pair.workload
        order.append((pair.created, pair.run_id, places[cell]))
        places[cell] += 1
    return [pairs[index] for index in sorted(range(len(pairs)), key=order.__getitem__)]


def _independent_pairs(pairs: Sequence[AAPair]) -> int:
    """How many pairs are independent: the versions and workloads of one run shared its sessions."""
    most: dict[str, int] = {}
    counts = Counter((pair.run_id, pair.version, pair.workload) for pair in pairs)
    for (run_id, _, _), count in counts.items():
        most[run_id] = max(most.get(run_id, 0), count)
    return sum(most.values())


def _is_usable(ns: Any) -> bool:
    samples = np.asarray(ns, np.float64)
    return bool(len(samples)) and bool((np.isfinite(samples) & (samples > 0)).all())
