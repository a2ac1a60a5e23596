"""Timing one sample: CUDA events around calls that the host queues while the GPU is kept waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from profiler.collect import sample_schedule

SPIN_S = 0.08  # an idle GPU takes tens of milliseconds to reach its full clock
_SPIN_CYCLES = 1_000_000


class TimedSample(NamedTuple):
    """One sample as it was measured."""

    ns: float  # between the events, of all calls together
    host_bound: bool  # the GPU waited for the host, whose dispatch is then a part of the time
    host_ns: float  # what queueing the calls took the host


class EventTimer:
    """Two CUDA events and torch's waiting kernel."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)
        self._clock_mhz = self._spin_clock_mhz()

    def _spin_clock_mhz(self) -> float:
        """Cycles per microsecond of torch's waiting kernel: the most that is seen while the GPU wakes up.

        Taken too low, the GPU would not be kept waiting long enough; too high only costs time.
        """
        self._torch.cuda._sleep(1000)  # loads it
        until = time.perf_counter() + SPIN_S
        highest = 0.0
        while highest == 0.0 or time.perf_counter() < until:
            self._start.record()
            self._torch.cuda._sleep(_SPIN_CYCLES)
            self._end.record()
            self._end.synchronize()
            elapsed_us = max(self._start.elapsed_time(self._end) * 1000, 1e-3)
            highest = max(highest, _SPIN_CYCLES / elapsed_us)
        return highest

    def time(
        self, queue: Callable[[], None], host_ns: float, then: Callable[[], None] | None = None
    ) -> TimedSample:
        """Time what `queue` puts on the stream. host_ns: an estimate of what queueing takes the host.

        The GPU is kept waiting until all is queued, so that Python's dispatch is no part of the time. Whether
        that held is seen from the first event, which must not have happened when the last call is queued.
        `then` runs while the GPU is still busy.
        """
        self._torch.cuda._sleep(sample_schedule.wait_cycles(host_ns, self._clock_mhz))
        self._start.record()
        begun = time.perf_counter_ns()
        queue()
        queued_ns = float(time.perf_counter_ns() - begun)
        self._end.record()
        host_bound = bool(self._start.query())
        if then is not None:
            then()
        self._end.synchronize()
        return TimedSample(self._start.elapsed_time(self._end) * 1e6, host_bound, queued_ns)
