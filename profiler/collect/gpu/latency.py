"""Measuring latency on the GPU: CUDA events on one stream, the same for libraries and callables."""

from __future__ import annotations

import gc
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from profiler.catalog.catalog import Catalog
from profiler.catalog.problem import Problem
from profiler.collect import sample_schedule
from profiler.collect.gpu import calls, device, program
from profiler.collect.gpu.buffers import upload
from profiler.collect.gpu.calls import Call
from profiler.collect.gpu.correctness import check_call
from profiler.collect.gpu.event_timer import EventTimer
from profiler.collect.gpu.messages import (
    LATENCY,
    CheckResult,
    Json,
    LatencyRequest,
    LatencyResult,
    TimingRequest,
    VersionCode,
    VersionTiming,
    WorkloadTiming,
)
from profiler.collect.gpu.properties import GpuState
from profiler.collect.sample_schedule import SampleSeries

LAUNCHES = 50  # empty kernels in a row, for the launch floor
_LAUNCH_SAMPLES, _LAUNCH_WARM_UP = 20, 3  # of it
_TRIES = 3  # a sample in which the GPU waited for the host is taken again, with a longer wait
_FIRST_HOST_NS = 1e6  # the first guess of what queueing takes: better too long than too short


@dataclass
class TimedCall:
    """One version in one mode: what a sample runs, and the samples."""

    calls: list[Call]  # one for each set of arrays, or the replay of a graph alone
    batch: int  # calls of the version in a sample
    launches: int  # Python calls in a sample: 1 for a graph
    series: SampleSeries
    next: int = 0  # index into `calls`
    host_ns: float = 0.0  # what queueing one sample takes
    # A callable allocates its output: the last of each set is kept, so that their memory rotates too.
    outputs: dict[int, Any] = field(default_factory=dict)

    def queue(self) -> None:
        """Queue one sample's calls."""
        for _ in range(self.launches):
            index = self.next % len(self.calls)
            self.outputs[index] = self.calls[index]()
            self.next += 1


TimedCalls = Mapping[tuple[str, str], TimedCall]  # by version and mode


def time_workloads(request: LatencyRequest) -> LatencyResult:
    """Time one workload after the other; one that fails leaves the others.

    Several in one process share what its start costs. One that loses the GPU's context ends the process, for
    nothing after it could be timed.
    """
    torch = program.require_gpu()
    timings: dict[str, WorkloadTiming] = {}
    for label, timing in request.timings.items():
        try:
            timings[label] = time_workload(torch, request, timing)
        except Exception as error:
            torch.cuda.synchronize()  # raises where the context is lost
            traceback.print_exc()
            timings[label] = {
                "status": program.error_status(error),
                "reason": program.error_reason(error),
                "versions": {},
            }
        gc.collect()
        torch.cuda.empty_cache()  # the next workload counts the memory that is free
    done = any(timing["status"] == "done" for timing in timings.values())
    reason = None if done else next((timing["reason"] for timing in timings.values()), "no workloads")
    return {"status": "done" if done else "failed", "reason": reason, "timings": timings}


def time_workload(torch: Any, request: LatencyRequest, timing: TimingRequest) -> WorkloadTiming:
    """Sample all versions and modes in alternating rounds; a version that fails leaves the others."""
    if unknown := [mode for mode in timing.modes if mode not in sample_schedule.MODES]:
        raise ValueError(f"unknown mode {unknown[0]}: it is one of {', '.join(sample_schedule.MODES)}")
    catalog, problem = program.load_problem(request.setup)
    monitor = device.StateMonitor()
    before = monitor.read()
    sampler = LatencySampler(torch, request, timing, catalog, problem, monitor)
    timed: dict[tuple[str, str], TimedCall] = {}
    failed: dict[str, VersionTiming] = {}
    without: dict[str, dict[str, str]] = {}  # version -> mode -> why it is not timed in that mode
    for version in timing.versions:
        for mode in timing.modes:
            try:
                timed[version.id, mode] = sampler.prepare(version, mode)
            except Exception as error:
                torch.cuda.synchronize()  # raises where the context is lost: then the whole group is retried
                status, reason = program.error_status(error), program.error_reason(error)
                if mode == "graph" and len(timing.modes) > 1:  # not every call can be captured
                    without.setdefault(version.id, {})[mode] = reason
                    continue
                failed[version.id] = {"status": status, "reason": reason, "samples": []}
                break
    alive = [version.id for version in timing.versions if version.id not in failed]
    checks: dict[str, list[CheckResult]] = {}
    if timing.check_seed is not None:
        for version in timing.versions:
            if version.id in alive:
                checks[version.id] = [sampler.check(version)]
    during, rounds_done = sampler.sample(timed, alive)
    if timing.check_seed is not None:
        sampler.renew(timing.check_seed)
        for version in timing.versions:
            if version.id in alive:
                checks[version.id].append(sampler.check(version))
    versions = {
        version.id: failed.get(version.id)
        or _version_timing(version.id, timing, timed, without.get(version.id, {}))
        for version in timing.versions
    }
    for name, own in checks.items():
        versions[name]["checks"] = own
    after = monitor.read()
    gpu = device.describe()
    return {
        "status": "done" if alive else "failed",
        "reason": None if alive else next((result["reason"] for result in failed.values()), "no versions"),
        "versions": versions,
        "rounds_done": rounds_done,
        "launch_ns": sampler.launch_ns(),
        "cold_sets": len(sampler.sets),
        "states": {
            "before": before.as_json() if before else None,
            "during": during,
            "after": after.as_json() if after else None,
        },
        "device": gpu.as_json() if gpu else None,
    }


def _version_timing(
    version: str, timing: TimingRequest, timed: TimedCalls, without: dict[str, str]
) -> VersionTiming:
    by_mode = {mode: timed[version, mode] for mode in timing.modes if mode not in without}
    return {
        "status": "done",
        "reason": None,
        "samples": [call.series.as_block(timing.clock) for call in by_mode.values()],
        "batch": {mode: call.batch for mode, call in by_mode.items()},
        "host_bound": {mode: call.series.host_bound for mode, call in by_mode.items()},
        "without": without,
    }


class LatencySampler:
    """The arrays of one workload on the GPU, and how calls on them are sampled."""

    def __init__(
        self,
        torch: Any,
        request: LatencyRequest,
        timing: TimingRequest,
        catalog: Catalog,
        problem: Problem,
        monitor: device.StateMonitor,
    ) -> None:
        self._torch, self._timing, self._monitor = torch, timing, monitor
        self._catalog, self._problem = catalog, problem
        self._request = request
        self._case = case = program.load_case(request.setup, problem, problem.workload(**timing.workload))
        self.sets = [upload(torch, case)]
        self._bound: dict[str, Call] = {}  # on the first set, by version
        if "cold" in timing.modes:
            free, _ = torch.cuda.mem_get_info()
            l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", None)
            for index in range(1, sample_schedule.input_sets(self.sets[0].nbytes, l2, free)):
                self.sets.append(upload(torch, case, shift=8 * index))
        self._timer = EventTimer(torch)

    # ------------------------------------------------------------ preparing

    def prepare(self, version: VersionCode, mode: str) -> TimedCall:
        """Prepare a version for a mode: warm it up, check that it writes its output, decide on its batch."""
        torch = self._torch
        sets = self.sets if mode == "cold" else self.sets[:1]
        bound = [calls.bind(torch, self._catalog, self._problem, version, arrays) for arrays in sets]
        self._bound[version.id] = bound[0]
        self.sets[0].reset()
        output = bound[0]()
        torch.cuda.synchronize()
        if bool(torch.isnan(output.float()).any().item()):
            raise RuntimeError("it left a part of its output unwritten, or NaN")
        del output
        call = TimedCall(bound, 1, 1, SampleSeries(mode))
        call_ns = self._warm_up(call)
        # All processes of a run use the batch that the first decided on: their samples are then comparable.
        batch = (self._timing.batch or {}).get(version.id, {}).get(mode)
        if mode == "graph":
            call.batch = batch or sample_schedule.graph_size(call_ns, self._timing.batch_below_us)
            call.calls = [self._graph(bound[0], call.batch)]
        else:
            call.batch = batch or sample_schedule.batch_size(call_ns, self._timing.batch_below_us)
            call.launches = call.batch
        call.outputs.clear()
        for _ in range(2):  # the first queueing still allocates
            call.host_ns = self._timer.time(call.queue, call.host_ns or _FIRST_HOST_NS).host_ns
        return call

    def check(self, version: VersionCode) -> CheckResult:
        """Check the output of the version's call that was prepared, with what it has left anywhere."""
        return check_call(self._torch, self._bound[version.id], self.sets[0], self._case)

    def renew(self, seed: int) -> None:
        """Give all versions inputs of another seed, where the others lay."""
        setup = replace(self._request.setup, seed=seed)
        workload = self._problem.workload(**self._timing.workload)
        self._case = program.load_case(setup, self._problem, workload)
        self.sets[0].give_inputs(self._torch, self._case)

    def _warm_up(self, call: TimedCall) -> float:
        """Run until the warm-up time is over, at least three times. Returns the last call's nanoseconds."""
        until = time.perf_counter() + self._timing.warm_up_ms / 1000
        count, ns, host_ns = 0, 0.0, _FIRST_HOST_NS
        while count < 3 or time.perf_counter() < until:
            ns, _, host_ns = self._timer.time(call.queue, host_ns)
            count += 1
        return ns

    def _graph(self, call: Call, times: int) -> Call:
        """Capture so many calls as a CUDA graph. Returns its replay."""
        torch = self._torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # what a first call on another stream sets up must not be captured
            call()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = [call() for _ in range(times)]
        graph.replay()
        torch.cuda.synchronize()

        def replay() -> Any:
            graph.replay()
            return outputs  # kept alive, or the graph would write into memory that is free

        return replay

    # ------------------------------------------------------------ rounds

    def sample(self, timed: TimedCalls, alive: Sequence[str]) -> tuple[list[Json], list[int]]:
        """Take the samples. Returns the GPU's states meanwhile, and the numbers of the whole rounds.

        Only whole rounds are kept: with `max_seconds`, no round is begun that would likely end after it.
        """
        timing = self._timing
        begun = time.perf_counter()
        during: list[Json] = []
        done: list[int] = []
        state = self._monitor.read()
        gc.collect()
        gc.disable()  # garbage collection between two samples would keep the GPU waiting
        try:
            for number in timing.rounds:
                spent = time.perf_counter() - begun
                most = timing.max_seconds
                if most is not None and done and spent * (len(done) + 1) / len(done) > most:
                    break
                for turn in sample_schedule.turns(alive, [number], timing.modes, timing.seed):
                    if call := timed.get((turn.version, turn.mode)):
                        state = self._turn(call, number, state)
                if not self._monitor.fast:
                    state = self._monitor.read()
                if state is not None:
                    during.append({"round": number, **state.as_json()})
                done.append(number)
        finally:
            gc.enable()
        return during, done

    def _turn(self, call: TimedCall, number: int, before: GpuState | None) -> GpuState | None:
        """One turn: an untimed sample after other versions' calls, then the samples; the state at its end."""
        self._timer.time(call.queue, call.host_ns)
        samples: list[tuple[float, bool]] = []
        states: list[GpuState | None] = []
        for index in range(self._timing.samples):
            # The state is read while the last sample runs: clocks and throttling are those under load.
            reads_state = index == self._timing.samples - 1 and self._monitor.fast
            then = (lambda: states.append(self._monitor.read())) if reads_state else None
            for attempt in range(_TRIES):
                sample = self._timer.time(call.queue, call.host_ns * 2**attempt, then)
                if not sample.host_bound:
                    break
                call.host_ns = max(call.host_ns, sample.host_ns)
            samples.append((sample.ns / call.batch, sample.host_bound))
        after = states[-1] if states else before
        call.series.add(number, samples, before, after)
        return after

    # ------------------------------------------------------------ launch floor

    def launch_ns(self) -> dict[str, float | None]:
        """The time of an empty kernel by the same timer: alone, in a row, in a graph; None if it failed."""

        def median(queue: Callable[[], None], launches: int) -> float:
            launch_ns = [
                self._timer.time(queue, 2e6).ns / launches for _ in range(_LAUNCH_WARM_UP + _LAUNCH_SAMPLES)
            ]
            return statistics.median(launch_ns[_LAUNCH_WARM_UP:])

        def empty() -> None:
            self._torch.cuda._sleep(0)

        def row() -> None:
            for _ in range(LAUNCHES):
                empty()

        floor: dict[str, float | None] = {
            "single": median(empty, 1),
            "events": median(row, LAUNCHES),
            "graph": None,
        }
        try:
            replay = self._graph(empty, LAUNCHES)
            floor["graph"] = median(lambda: replay() and None, LAUNCHES)
        except Exception as error:
            print(f"no graph of empty kernels: {error}", file=sys.stderr)
        return floor


if __name__ == "__main__":
    sys.exit(program.main(LATENCY, time_workloads))
