"""Noise floors: how far the latencies of A/A pairs lie apart, by GPU, mode and duration of the call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from profiler.bundles.run import NOISE, Run, Samples
from profiler.statistics.noise_floor import NoiseFloor, floor_of_sessions, shorter_ns
from profiler.store.rows import WORKLOAD_CLASSES, workload_class

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener
    from profiler.store.index import Store


class FloorKey(NamedTuple):
    """What the pairs of one floor have in common; "" for what is not known."""

    gpu: str
    mode: str  # timer, cache and clock
    workload_class: str  # short, medium or long calls
    family: str  # of kernels
    driver: str = ""

    def differs(self, other: FloorKey) -> str:
        """In what `other` is known to be another family or driver: `family softmax`; "" where it is not."""
        named = ((name, getattr(self, name), getattr(other, name)) for name in ("family", "driver"))
        differing = (f"{name} {theirs}" for name, ours, theirs in named if ours and theirs not in ("", ours))
        return " and ".join(differing)


class FloorLookup(Protocol):
    """Finds the floor for runs of a GPU, mode, latency of A in ns, family and driver; "" where not known."""

    def __call__(
        self, gpu: str, mode: str, ns: float, family: str = "", driver: str = "", /
    ) -> NoiseFloor | None: ...


class AAPair(NamedTuple):
    """Two A/A sessions: latencies of one build, measured twice."""

    gpu: str
    mode: str
    run_id: str
    version: str  # family/version
    workload: str
    created: datetime
    driver: str
    a_ns: Any  # latencies of single calls, as an array or sequence
    b_ns: Any

    @property
    def key(self) -> FloorKey:
        """The floor that the pair belongs to; the shorter session decides the workload class."""
        length = workload_class(shorter_ns(self.a_ns, self.b_ns))
        return FloorKey(self.gpu, self.mode, length, self.version.partition("/")[0], self.driver)


@dataclass(frozen=True)
class StoredFloor:
    """The noise floor of one GPU, mode, workload class, family and driver, and the A/A pairs behind it."""

    gpu: str
    mode: str
    workload_class: str  # short, medium or long calls
    family: str
    driver: str  # "" if unknown
    floor: NoiseFloor
    versions: tuple[str, ...]
    workloads: tuple[str, ...]  # those with a name
    runs: tuple[str, ...]  # oldest first
    until: datetime  # when the newest of these runs was made

    @property
    def judges(self) -> bool:
        """Whether there are enough pairs to judge by."""
        return self.floor.judges

    @property
    def key(self) -> FloorKey:
        """What its pairs have in common."""
        return FloorKey(self.gpu, self.mode, self.workload_class, self.family, self.driver)


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
            pair.a.driver or "",
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
            run.provenance.get("driver") or "",
            a.ns,
            b.ns,
        )
        for run in runs
        if run.provenance.get("purpose") == NOISE
        for result in run.results
        for a, b in _session_pairs(result.samples)
    )


def timed_keys(store: Store) -> dict[FloorKey, tuple[str, str]]:
    """The floor keys of which the newest runs have timed calls, each with one version and workload.

    They name no driver.
    """
    timed: dict[FloorKey, tuple[str, str]] = {}
    for row in store.results(kind="latency"):
        if row.median_ns is not None:
            key = FloorKey(row.gpu or "", row.mode, workload_class(row.median_ns), row.family)
            timed.setdefault(key, (f"{row.family}/{row.version}", row.workload or ""))
    return timed


def floors_by_key(store: Store) -> dict[FloorKey, NoiseFloor]:
    """All floors, cached until the index changes.

    Floors of too few pairs are included: `judge_stored_baseline` refuses to judge by them, and says why.
    """
    return _floors_by_key(store, store.data_version())


def floor_lookup(store_opener: StoreOpener) -> FloorLookup:
    """The lookup over an index, which is opened at the first question.

    Where the family has none by that driver, another's is given, which says whose it is and judges nothing.
    """

    def lookup(gpu: str, mode: str, ns: float, family: str = "", driver: str = "", /) -> NoiseFloor | None:
        key = FloorKey(gpu, mode, workload_class(ns), family, driver)
        return find_floor(floors_by_key(store_opener()), key)

    return lookup


def find_floor(floors: Mapping[FloorKey, NoiseFloor], key: FloorKey) -> NoiseFloor | None:
    """The floor of a key, else one of its GPU, mode and class that says whose it is; the most pairs first."""
    there = [(other, floor) for other, floor in floors.items() if other[:3] == key[:3]]
    candidates = [replace(floor, differs_in=key.differs(other)) for other, floor in there]
    return max(candidates, key=lambda floor: (not floor.differs_in, floor.pairs), default=None)


@lru_cache(maxsize=4)
def _floors_by_key(store: Store, _data_version: str) -> dict[FloorKey, NoiseFloor]:
    return {stored.key: stored.floor for stored in stored_floors(store)}


def _session_pairs(samples: Sequence[Samples]) -> Iterator[tuple[Samples, Samples]]:
    """The first and second session of each mode, the third and fourth, …: see profiler.bundles.run.NOISE."""
    by_mode: dict[str, list[Samples]] = defaultdict(list)
    for session in samples:
        by_mode[session.mode].append(session)
    for sessions in by_mode.values():
        yield from zip(sessions[::2], sessions[1::2], strict=False)


def _floors_of_pairs(pairs: Iterable[AAPair]) -> list[StoredFloor]:
    by_key: dict[FloorKey, list[AAPair]] = defaultdict(list)
    seen: set[tuple[FloorKey, bytes, bytes]] = set()
    for pair in pairs:
        if _is_usable(pair.a_ns) and _is_usable(pair.b_ns):
            a, b = (np.asarray(ns, np.float32).tobytes() for ns in (pair.a_ns, pair.b_ns))
            # Samples that were copied are no second measurement, be it of the other session or of a pair.
            is_copy = a == b and len(np.unique(np.asarray(pair.a_ns))) > 2
            if not is_copy and (pair.key, a, b) not in seen:
                by_key[pair.key].append(pair)
            seen.add((pair.key, a, b))
    order = sorted(by_key, key=lambda key: (*key[:2], WORKLOAD_CLASSES.index(key.workload_class), *key[3:]))
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
