"""The noise floors of an index: how far its A/A pairs lie apart, by GPU, mode and length of call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from profiler.calls import FloorLookup
from profiler.statistics import floor
from profiler.statistics.floor import Floor
from profiler.store import WORKLOAD_CLASSES, workload_class

if TYPE_CHECKING:
    from profiler.store import NoisePair, Store

Place = tuple[str, str, str]  # GPU, mode (timer, cache and clock), class of length


@dataclass(frozen=True)
class Stored:
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
        return self.floor.pairs >= floor.FEWEST

    @property
    def lacks(self) -> int:
        """How many pairs more it needs."""
        return max(0, floor.FEWEST - self.floor.pairs)


def stored(store: Store, gpu: str | None = None) -> list[Stored]:
    """Every place that has A/A pairs: by GPU and mode, short calls first."""
    places: dict[Place, list[NoisePair]] = defaultdict(list)
    for pair in store.noise_pairs(gpu=gpu):
        if all(_usable(one.samples.ns) for one in (pair.a, pair.b)):
            places[pair.a.gpu or "", pair.a.mode, pair.workload_class].append(pair)
    return [
        _stored(place, places[place])
        for place in sorted(places, key=lambda one: (*one[:2], WORKLOAD_CLASSES.index(one[2])))
    ]


def missing(found: Sequence[Stored], gpus: Iterable[str]) -> list[Place]:
    """The classes of call without a floor that judges, in every mode that has pairs; "" where none has."""
    there = {(one.gpu, one.mode, one.workload_class) for one in found if one.judges}
    modes: dict[str, dict[str, None]] = defaultdict(dict)
    for one in found:
        modes[one.gpu][one.mode] = None
    return [
        (gpu, mode, length)
        for gpu in dict.fromkeys((*(one.gpu for one in found), *gpus))
        for mode in modes.get(gpu, {"": None})
        for length in WORKLOAD_CLASSES
        if (gpu, mode, length) not in there
    ]


def floors(store: Store) -> dict[Place, Floor]:
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
def _floors(store: Store, _data_version: str) -> dict[Place, Floor]:
    return {(one.gpu, one.mode, one.workload_class): one.floor for one in stored(store)}


def _stored(place: Place, pairs: Sequence[NoisePair]) -> Stored:
    found = floor.of_sessions((pair.a.samples.ns, pair.b.samples.ns) for pair in pairs)
    return Stored(
        *place,
        replace(found, pairs=_independent(pairs)),
        tuple(dict.fromkeys(f"{pair.a.family}/{pair.a.version}" for pair in pairs)),
        tuple(dict.fromkeys(pair.a.workload for pair in pairs if pair.a.workload)),
        tuple(dict.fromkeys(pair.a.run_id for pair in pairs)),
        max(pair.a.created for pair in pairs),
    )


def _independent(pairs: Sequence[NoisePair]) -> int:
    """The pairs of one run that count: its versions and workloads went through the same sessions."""
    counts = Counter((pair.a.run_id, pair.a.family, pair.a.version, pair.a.workload) for pair in pairs)
    most: dict[str, int] = {}
    for (run_id, *_), count in counts.items():
        most[run_id] = max(most.get(run_id, 0), count)
    return sum(most.values())


def _usable(ns: np.typing.NDArray[np.float32]) -> bool:
    return bool(len(ns)) and bool((np.isfinite(ns) & (ns > 0)).all())
