"""What an index knows of noise, as one thing that is passed to whatever judges a change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from profiler.compare import counter_noise, noise_floor
from profiler.compare.counter_noise import CounterNoiseLookup
from profiler.compare.noise_floor import FloorLookup
from profiler.compare.same_code import SameCodeLookup, same_code_lookup

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener


def _unknown(*_: object) -> None:
    """The lookup that never knows anything."""


@dataclass(frozen=True)
class NoiseModel:
    """How far measurements move by themselves. Each lookup answers None where nobody knows.

    `NoiseModel()` knows nothing: two runs are then unclear, and counters are judged by their thresholds.
    """

    floor: FloorLookup = _unknown  # how far latencies of equal builds lie apart
    counter_noise: CounterNoiseLookup = _unknown  # how far a counter moves between launches of one build
    same_code: SameCodeLookup = _unknown  # whether two results ran the same machine code

    @classmethod
    def of_store(cls, store_opener: StoreOpener, data: str | None = None) -> NoiseModel:
        """The model of an index, which is opened once, by the first lookup that needs it.

        `data` is the folder or URL of its bundles, PROFILER_DATA's where None.
        """
        open_once = lru_cache(maxsize=1)(store_opener)
        return cls(
            noise_floor.floor_lookup(open_once),
            counter_noise.counter_noise_lookup(open_once, data),
            same_code_lookup(data),
        )

    def without_same_code(self) -> NoiseModel:
        """The model for long lists: every lookup of the machine code reads two bundles.

        It changes no verdict: that the code is the same is a word more in the reason.
        """
        return replace(self, same_code=_unknown)

    def only_counters(self) -> NoiseModel:
        """The model for callers that look at launches alone, and at no timed call."""
        return NoiseModel(counter_noise=self.counter_noise)


UNKNOWN_NOISE = NoiseModel()
