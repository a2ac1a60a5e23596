"""The noise floors of an index: how far its A/A pairs lie apart, by GPU, mode and length of call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from profiler.bundles import NOISE, Run, Samples
from profiler.compare.latency import FloorLookup
from profiler.statistics import Floor, floor
from profiler.store import WORKLOAD_CLASSES, workload_class

if TYPE_CHECKING:
    from profiler.store import Store

FloorKey = tuple[str, str, str]  # GPU, mode (timer, cache and clock), class of length


class AAPair(NamedTuple):
    """Two sessions of one build."""

    gpu: str
    mode: str
    run_id: str
    version: str  # family/version
    workload: str
    created: datetime
    a_ns: Any
    b_ns: Any

    @property
    def place(self) -> FloorKey:
        """Which floor it belongs to; the first session says how long a call takes."""
        return self.gpu, self.mode, workload_class(float(np.median(self.a_ns)))


@dataclass(frozen=True)
class StoredFloor:
    """The floor of a place and the A/A pairs behind it."""

    gpu: str
    mode: str
    workload_class: str  # short, medium or long calls
    floor: Floor
    versions: tuple[str, ...]
    workloads: tuple[str, ...]  # the known ones
    runs: tuple[str, ...]  # oldest first
    until: datetime  # when the newest of them was made

    @property
    def judges(self) -> bool:
        """Whether there are pairs enough to go by."""
        return self.floor.pairs >= floor.MIN_FLOOR_PAIRS

    @property
    def place(self) -> FloorKey:
        """GPU, mode and class."""
        return self.gpu, self.mode, self.workload_class


def stored_floors(store: Store, gpu: str | None = None) -> list[StoredFloor]:
    """Every place that has A/A pairs in the index: by GPU and mode, short calls first."""
    return _by_place(
        AAPair(
            one.a.gpu or "",
            one.a.mode,
            one.a.run_id,
            f"{one.a.family}/{one.a.version}",
            one.a.workload or "",
            one.a.created,
            one.a.samples.ns,
            one.b.samples.ns,
        )
        for one in store.noise_pairs(gpu=gpu)
    )


def floors_of_runs(runs: Iterable[Run]) -> list[StoredFloor]:
    """As stored(), out of the runs themselves: where there is no index."""
    return _by_place(
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
        for a, b in _pairs(result.samples)
    )


def timed_keys(store: Store) -> dict[FloorKey, tuple[str, str]]:
    """Where calls were timed, in their newest runs: of each place a version and workload."""
    found: dict[FloorKey, tuple[str, str]] = {}
    for row in store.results(kind="latency"):
        if row.median_ns is not None:
            place = (row.gpu or "", row.mode, workload_class(row.median_ns))
            found.setdefault(place, (f"{row.family}/{row.version}", row.workload or ""))
    return found


def floors(store: Store) -> dict[FloorKey, Floor]:
    """The floor of every place that has A/A pairs; one of few pairs too, which `floor.decide` refuses.

    They are read anew when the index has changed.
    """
    return _floors(store, store.data_version())


def lookup(opener: Callable[[], Store]) -> FloorLookup:
    """What gives a comparison its floor; the index is opened when first asked for."""
    held: list[Store] = []

    def asked(gpu: str, mode: str, ns: float) -> Floor | None:
        if not held:
            held.append(opener())
        return floors(held[0]).get((gpu, mode, workload_class(ns)))

    return asked


@lru_cache(maxsize=4)
def _floors(store: Store, _data_version: str) -> dict[FloorKey, Floor]:
    return {one.place: one.floor for one in stored_floors(store)}


def _pairs(blocks: Sequence[Samples]) -> Iterator[tuple[Samples, Samples]]:
    """The first and second session of a mode, the third and fourth, …: run.NOISE."""
    by_mode: dict[str, list[Samples]] = defaultdict(list)
    for one in blocks:
        by_mode[one.mode].append(one)
    for sessions in by_mode.values():
        yield from zip(sessions[::2], sessions[1::2], strict=False)


def _by_place(pairs: Iterable[AAPair]) -> list[StoredFloor]:
    places: dict[FloorKey, list[AAPair]] = defaultdict(list)
    for pair in pairs:
        if _usable(pair.a_ns) and _usable(pair.b_ns):
            places[pair.place].append(pair)
    order = sorted(places, key=lambda place: (*place[:2], WORKLOAD_CLASSES.index(place[2])))
    return [_stored(place, places[place]) for place in order]


def _stored(place: FloorKey, pairs: Sequence[AAPair]) -> StoredFloor:
    found = floor.floor_of_sessions((pair.a_ns, pair.b_ns) for pair in pairs)
    return StoredFloor(
        *place,
        replace(found, pairs=_independent(pairs)),
        tuple(dict.fromkeys(pair.version for pair in pairs)),
        tuple(dict.fromkeys(pair.workload for pair in pairs if pair.workload)),
        tuple(dict.fromkeys(pair.run_id for pair in pairs)),
        max(pair.created for pair in pairs),
    )


def _independent(pairs: Sequence[AAPair]) -> int:
    """The pairs that count: the versions and workloads of one run went through the same sessions."""
    most: dict[str, int] = {}
    counts = Counter((pair.run_id, pair.version, pair.workload) for pair in pairs)
    for (run_id, _, _), count in counts.items():
        most[run_id] = max(most.get(run_id, 0), count)
    return sum(most.values())


def _usable(ns: Any) -> bool:
    samples = np.asarray(ns, np.float64)
    return bool(len(samples)) and bool((np.isfinite(samples) & (samples > 0)).all())
