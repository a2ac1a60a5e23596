"""How a call's latency is taken on the GPU: CUDA events on one stream, alike for libraries and callables."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from profiler.catalog import Catalog, Problem
from profiler.collect import sample_schedule
from profiler.collect.gpu import calls as version_calls
from profiler.collect.gpu import device, stage
from profiler.collect.gpu.buffers import upload
from profiler.collect.gpu.calls import Call
from profiler.collect.sample_schedule import SampleSeries

WARM_UP_MS = 50.0
SPIN_S = 0.08  # an idle GPU takes tens of milliseconds to reach its clock
LAUNCHES = 50  # empty kernels in a row, for the launch floor
_TRIES = 3  # a sample in which the GPU waited for the host is taken again, with a longer wait


@dataclass
class TimedCall:
    """One version in one mode: what a sample runs, and what came of it."""

    calls: list[Call]  # one a set of arrays; a graph's replay stands alone
    batch: int  # calls of the version a sample
    launches: int  # Python calls a sample: 1 for a graph
    series: SampleSeries
    next: int = 0
    host_ns: float = 0.0  # what queueing one sample takes
    kept: dict[int, Any] = field(default_factory=dict)  # a callable's outputs, so that their memory rotates

    def queue(self) -> None:
        """Queue one sample's calls."""
        for _ in range(self.launches):
            index = self.next % len(self.calls)
            self.kept[index] = self.calls[index]()
            self.next += 1


def work(request: stage.Json) -> stage.Json:
    """The stage: see stage.main. All versions and modes are sampled in alternating rounds in this process."""
    torch = stage.require_gpu()
    place, problem = stage.problem_of(request)
    modes = list(request.get("modes") or ("cold", "warm"))
    if unknown := [mode for mode in modes if mode not in sample_schedule.MODES]:
        raise ValueError(f"unknown mode {unknown[0]}: it is one of {', '.join(sample_schedule.MODES)}")
    clock = str(request.get("clock") or "none")
    monitor = device.StateMonitor()
    before = monitor.read()
    bench = LatencySampler(torch, request, place, problem, monitor)
    lanes: dict[tuple[str, str], TimedCall] = {}
    failed: dict[str, stage.Json] = {}
    without: dict[str, dict[str, str]] = {}  # version -> mode -> why it is not timed in that mode
    for version in request["versions"]:
        for mode in modes:
            try:
                lanes[version["id"], mode] = bench.lane(version, mode)
            except Exception as error:
                torch.cuda.synchronize()  # raises where the context is lost: then the whole group is retried
                if mode == "graph" and len(modes) > 1:  # not every call can be captured; the others stand
                    without.setdefault(version["id"], {})[mode] = stage.error_reason(error)
                    continue
                failed[version["id"]] = {
                    "status": stage.error_status(error),
                    "reason": stage.error_reason(error),
                    "samples": [],
                }
                break
    alive = [version["id"] for version in request["versions"] if version["id"] not in failed]
    during, done = bench.sample(lanes, alive, request, modes)
    versions = {
        version["id"]: failed.get(version["id"])
        or _version(version["id"], modes, lanes, without.get(version["id"], {}), clock)
        for version in request["versions"]
    }
    after = monitor.read()
    gpu = device.describe()
    return {
        "status": "done" if alive else "failed",
        "reason": None if alive else next((one["reason"] for one in failed.values()), "no versions"),
        "versions": versions,
        "rounds_done": done,
        "launch_ns": bench.launch_ns(),
        "cold_sets": len(bench.sets),
        "states": {
            "before": before.as_json() if before else None,
            "during": during,
            "after": after.as_json() if after else None,
        },
        "device": gpu.as_json() if gpu else None,
    }


def _version(
    version: str,
    modes: Sequence[str],
    lanes: dict[tuple[str, str], TimedCall],
    without: dict[str, str],
    clock: str,
) -> stage.Json:
    mine = {mode: lanes[version, mode] for mode in modes if mode not in without}
    return {
        "status": "done",
        "reason": None,
        "samples": [lane.series.as_json(clock) for lane in mine.values()],
        "batch": {mode: lane.batch for mode, lane in mine.items()},
        "host_bound": {mode: lane.series.host_bound for mode, lane in mine.items()},
        "without": without,
    }


class LatencySampler:
    """The arrays of one workload on the GPU, and the clock that calls on them are timed with."""

    def __init__(
        self,
        torch: Any,
        request: stage.Json,
        place: Catalog,
        problem: Problem,
        monitor: device.StateMonitor,
    ) -> None:
        self._torch, self._place, self._problem, self._monitor = torch, place, problem, monitor
        self._below_us = float(request.get("batch_below_us") or sample_schedule.BATCH_BELOW_US)
        self._warm_up_ms = float(request.get("warm_up_ms") or WARM_UP_MS)
        self._batches: dict[str, dict[str, int]] = request.get("batch") or {}
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)
        case = stage.case_of(request, problem, problem.workload(**request["workload"]))
        self.sets = [upload(torch, case)]
        if "cold" in (request.get("modes") or ("cold",)):
            free, _ = torch.cuda.mem_get_info()
            l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", None)
            for index in range(1, sample_schedule.input_sets(self.sets[0].nbytes, l2, free)):
                self.sets.append(upload(torch, case, shift=8 * index))
        self._clock_mhz = self._spin_clock_mhz()

    # ------------------------------------------------------------ one sample

    def _spin_clock_mhz(self) -> float:
        """Cycles a microsecond of torch's waiting kernel, the most that was seen while the GPU woke up.

        Taken too low, the GPU would not be kept waiting long enough; too high only costs time.
        """
        self._torch.cuda._sleep(1000)  # loads it
        until = time.perf_counter() + SPIN_S
        most = 0.0
        while most == 0.0 or time.perf_counter() < until:
            self._start.record()
            self._torch.cuda._sleep(1_000_000)
            self._end.record()
            self._end.synchronize()
            most = max(most, 1_000_000 / max(self._start.elapsed_time(self._end) * 1000, 1e-3))
        return most

    def once(
        self, queue: Callable[[], None], host_ns: float, then: Callable[[], None] | None = None
    ) -> tuple[float, bool, float]:
        """Nanoseconds between the events around what is queued, whether the GPU waited for the host, host ns.

        The GPU is kept waiting until all is queued, so that Python's dispatch is no part of the time; whether
        that held is seen from the first event, which must not have happened when the last call is queued.
        `then` runs while the GPU is still at work.
        """
        self._torch.cuda._sleep(sample_schedule.wait_cycles(host_ns, self._clock_mhz))
        self._start.record()
        begun = time.perf_counter_ns()
        queue()
        host = float(time.perf_counter_ns() - begun)
        self._end.record()
        host_bound = bool(self._start.query())
        if then is not None:
            then()
        self._end.synchronize()
        return self._start.elapsed_time(self._end) * 1e6, host_bound, host

    # ------------------------------------------------------------ lanes

    def lane(self, version: stage.Json, mode: str) -> TimedCall:
        """A version made ready for a mode: warm, its output seen to be written, its batch decided."""
        torch = self._torch
        sets = self.sets if mode == "cold" else self.sets[:1]
        calls = [version_calls.bind(torch, self._place, self._problem, version, one) for one in sets]
        self.sets[0].reset()
        output = calls[0]()
        torch.cuda.synchronize()
        if bool(torch.isnan(output.float()).any().item()):
            raise RuntimeError("it left a part of its output unwritten, or NaN")
        del output
        lane = TimedCall(calls, 1, 1, SampleSeries(mode))
        call_ns = self._warm_up(lane)
        known = self._batches.get(version["id"], {}).get(mode)
        if mode == "graph":
            lane.batch = known or sample_schedule.graph_size(call_ns, self._below_us)
            lane.calls = [self._graph(calls[0], lane.batch)]
        else:
            lane.batch = lane.launches = known or sample_schedule.batch_size(call_ns, self._below_us)
        lane.kept.clear()
        for _ in range(2):  # the first queueing still allocates
            lane.host_ns = self.once(lane.queue, lane.host_ns or 1e6)[2]
        return lane

    def _warm_up(self, lane: TimedCall) -> float:
        """Run until the time is over, at least three times; the last call's nanoseconds."""
        until = time.perf_counter() + self._warm_up_ms / 1000
        count, ns, host_ns = 0, 0.0, 1e6
        while count < 3 or time.perf_counter() < until:
            ns, _, host_ns = self.once(lane.queue, host_ns)
            count += 1
        return ns

    def _graph(self, call: Call, calls: int) -> Call:
        torch = self._torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # what a first call on another stream sets up must not be captured
            call()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = [call() for _ in range(calls)]
        graph.replay()
        torch.cuda.synchronize()

        def replay() -> Any:
            graph.replay()
            return outputs  # held, or the graph would write into memory that is free

        return replay

    # ------------------------------------------------------------ rounds

    def sample(
        self,
        lanes: dict[tuple[str, str], TimedCall],
        alive: Sequence[str],
        request: stage.Json,
        modes: Sequence[str],
    ) -> tuple[list[stage.Json], list[int]]:
        """Fill the lanes' series; the states met on the way, and the rounds that are whole.

        Only whole rounds are kept: with `max_seconds`, no round is begun that would likely end after it.
        """
        wanted = list(request.get("rounds") or range(sample_schedule.ROUNDS))
        samples = int(request.get("samples") or sample_schedule.SAMPLES)
        most = request.get("max_seconds")
        begun = time.perf_counter()
        during: list[stage.Json] = []
        done: list[int] = []
        last = self._monitor.read()
        gc.collect()
        gc.disable()
        try:
            for number in wanted:
                spent = time.perf_counter() - begun
                if most is not None and done and spent * (len(done) + 1) / len(done) > float(most):
                    break
                for turn in sample_schedule.turns(alive, [number], modes):
                    if lane := lanes.get((turn.version, turn.mode)):
                        last = self._turn(lane, number, samples, last)
                if not self._monitor.fast:
                    last = self._monitor.read()
                if last is not None:
                    during.append({"round": number, **last.as_json()})
                done.append(number)
        finally:
            gc.enable()
        return during, done

    def _turn(
        self, lane: TimedCall, number: int, samples: int, before: device.GpuState | None
    ) -> device.GpuState | None:
        """One turn: an untimed sample after the others' work, then the samples; the state at its end."""
        self.once(lane.queue, lane.host_ns)
        taken: list[tuple[float, bool]] = []
        read: list[device.GpuState | None] = []
        for index in range(samples):
            last = index == samples - 1 and self._monitor.fast
            for attempt in range(_TRIES):
                then = (lambda: read.append(self._monitor.read())) if last else None
                ns, host_bound, host_ns = self.once(lane.queue, lane.host_ns * 2**attempt, then)
                if not host_bound:
                    break
                lane.host_ns = max(lane.host_ns, host_ns)
            taken.append((ns / lane.batch, host_bound))
        after = read[-1] if read else before
        lane.series.add(number, taken, before, after)
        return after

    # ------------------------------------------------------------ launch floor

    def launch_ns(self) -> stage.Json:
        """What an empty kernel takes by the same clock: alone, in a row, in a graph; null where it failed."""

        def median(queue: Callable[[], None], calls: int) -> float:
            taken = [self.once(queue, 2e6)[0] / calls for _ in range(23)]
            return statistics.median(taken[3:])

        def empty() -> None:
            self._torch.cuda._sleep(0)

        def row() -> None:
            for _ in range(LAUNCHES):
                empty()

        found: stage.Json = {"single": median(empty, 1), "events": median(row, LAUNCHES), "graph": None}
        try:
            replay = self._graph(empty, LAUNCHES)
            found["graph"] = median(lambda: replay() and None, LAUNCHES)
        except Exception as error:
            print(f"no graph of empty kernels: {error}", file=sys.stderr)
        return found


if __name__ == "__main__":
    sys.exit(stage.main(work))
