"""How the timed calls of one run scatter: its samples, and the interval of its median."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from profiler.statistics.order_statistics import median_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from profiler.store.index import Store


class RunSpread(NamedTuple):
    """The calls of one run, version, workload and mode."""

    ns: NDArray[np.float32]  # in the order in which they were timed
    interval: tuple[float, float] | None  # 95 %, of the run's own median, in ns; None: too few rounds


def load_run_spreads(store: Store, result_ids: Sequence[int]) -> dict[int, RunSpread]:
    """The samples and intervals of timed calls, by result; results without samples are left out."""
    return {
        result_id: RunSpread(samples.ns, median_interval(samples.ns, samples.rounds))
        for result_id, samples in store.samples(result_ids).items()
        if len(samples.ns)
    }
