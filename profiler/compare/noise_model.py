"""What is known about noise, as one object for everything that judges a change.

To add a noise rule: the rule in `profiler/statistics/`, a pure function of numbers whose docstring has its
source and assumptions (`noise_floor` judges two runs, `live_pair` versions of one run, `counters`
counters); what it needs from the index as one more field of `NoiseModel`, which every caller passes on
whole; then the callers, all that the rule concerns: `latency` and `metric_verdict` for what is compared
live, `judged` for stored numbers and for what is judged as one table, `rules` of the gate.
"""

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
    """A lookup that knows nothing."""


@dataclass(frozen=True)
class NoiseModel:
    """How far measurements vary without a change of the code. Each lookup returns None where that is unknown.

    With `NoiseModel()`, which knows nothing, latencies of two runs are unclear and counters are judged by
    their thresholds.
    """

    floor: FloorLookup = _unknown  # how far latencies of equal builds lie apart
    counter_noise: CounterNoiseLookup = _unknown  # how far a counter varies between launches of equal builds
    same_code: SameCodeLookup = _unknown  # whether two results ran the same machine code

    @classmethod
    def of_store(cls, store_opener: StoreOpener, data: str | None = None) -> NoiseModel:
        """The model of an index, which is opened once, by the first lookup that needs it.

        `data` is the folder or URL of its bundles; None means PROFILER_DATA.
        """
        open_once = lru_cache(maxsize=1)(store_opener)
        return cls(
            noise_floor.floor_lookup(open_once),
            counter_noise.counter_noise_lookup(open_once, data),
            same_code_lookup(data),
        )

    def without_same_code(self) -> NoiseModel:
        """The model for long lists, without lookups of machine code, each of which reads two bundles.

        Verdicts stay the same: equal code only adds words to the reason.
        """
        return replace(self, same_code=_unknown)

    def only_counters(self) -> NoiseModel:
        """The model for callers that compare launches and no timed calls."""
        return NoiseModel(counter_noise=self.counter_noise)


UNKNOWN_NOISE: NoiseModel = NoiseModel()
