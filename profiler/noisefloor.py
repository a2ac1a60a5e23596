"""The noise floors of an index: how far its A/A pairs lie apart, by GPU, mode and length of call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from profiler.calls import FloorLookup
from profiler.statistics.floor import Floor, of_sessions
from profiler.store import workload_class

if TYPE_CHECKING:
    from profiler.store import Store

_Place = tuple[str, str, str]  # GPU, mode, class of length


def floors(store: Store) -> dict[_Place, Floor]:
    """The floor of every place that has A/A pairs; one of few pairs too, which `floor.decide` refuses."""
    sessions: dict[_Place, list[tuple[Any, Any]]] = defaultdict(list)
    for pair in store.noise_pairs():
        place = (pair.a.gpu or "", pair.a.mode, pair.workload_class)
        sessions[place].append((pair.a.samples.ns, pair.b.samples.ns))
    return {place: of_sessions(pairs) for place, pairs in sessions.items()}


def lookup(opener: Callable[[], Store]) -> FloorLookup:
    """What gives a comparison its floor; the index is opened and its A/A pairs read when first asked for."""
    held: list[dict[_Place, Floor]] = []

    def asked(gpu: str, mode: str, ns: float) -> Floor | None:
        if not held:
            held.append(floors(opener()))
        return held[0].get((gpu, mode, workload_class(ns)))

    return asked
