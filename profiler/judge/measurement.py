"""A candidate's time on a GPU, in alternating rounds with its elite and a baseline, a process each."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profiler.catalog.catalog import Catalog
from profiler.catalog.problem import Workload
from profiler.collect import gpu_process
from profiler.collect.gpu.cuda_driver import read_gpu
from profiler.collect.gpu.messages import (
    LATENCY,
    LatencyRequest,
    LatencyResult,
    ProblemSetup,
    TimingRequest,
    VersionCode,
    VersionTiming,
)
from profiler.collect.subprocesses import ProcessResult, package_environment
from profiler.evidence.gpu_parts import GpuPart, part_of_device
from profiler.judge.call_plan import CallPlan
from profiler.judge.compilation import CandidateCode
from profiler.judge.isolation import Isolation, ProcessLimits
from profiler.statistics.decision import Decision
from profiler.statistics.live_pair import judge_live_pair
from profiler.statistics.multiple_testing import judge_together
from profiler.statistics.noise_floor import typical_ns

SESSIONS = 10  # of a process each for every side: what a process adds to its times is then seen
_ROUNDS = 3  # in a session; their samples follow one another, and count as one process
_SAMPLES = 4  # a round
_MODE = "cold"  # nothing of a call's arrays is in L2 from the call before
_SECONDS_A_WORKLOAD, _SECONDS_TO_START = 30.0, 120.0
# The driver reserves address space as large as all memories together: only what is used can be limited.
_GPU_MEMORY = 1 << 47
Runner = Callable[[LatencyRequest, Path], LatencyResult]  # in a folder that it may write


@dataclass(frozen=True)
class MeasuredSide:
    """Code that is timed: how it is called on each workload, by label."""

    name: str
    code: Mapping[str, VersionCode]
    is_checked: bool = False  # its output, before and after the rounds


@dataclass
class SideSamples:
    """The samples of a side on one workload; live pairs are judged by them."""

    ns: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    clocks_mhz: list[float] = field(default_factory=list)
    throttled: list[int] = field(default_factory=list)  # positions
    processes: list[int] = field(default_factory=list)
    failed: str = ""  # why it has no more

    def add(self, timing: VersionTiming, session: int) -> None:
        """Those of one process."""
        for block in timing["samples"]:
            self.throttled += [len(self.ns) + position for position in block["throttled"]]
            self.ns += block["ns"]
            self.rounds += block["rounds"]
            self.clocks_mhz += block["clocks_mhz"]
            self.processes += [session] * len(block["ns"])

    def paired(self) -> SideSamples:
        """As the rules take them: clocks of every sample, or none."""
        return self if len(self.clocks_mhz) == len(self.ns) else replace(self, clocks_mhz=[])

    @property
    def typical_ns(self) -> float | None:
        """The median of the samples, or their mean where they are short; None without any."""
        return float(typical_ns(self.ns)) if self.ns else None


@dataclass(frozen=True)
class Measurement:
    """What was timed, by side and workload."""

    samples: Mapping[str, Mapping[str, SideSamples]]
    wrong: tuple[str, ...] = ()  # what was wrong with the output of a side that is checked
    reason: str = ""  # why there are no samples

    def decisions(self, a: str, b: str) -> dict[str, Decision]:
        """B against A on each workload of which both have samples, judged together."""
        both = [
            label
            for label, own in self.samples[b].items()
            if own.ns and label in self.samples[a] and self.samples[a][label].ns
        ]
        alone = [
            judge_live_pair(self.samples[a][label].paired(), self.samples[b][label].paired())
            for label in both
        ]
        return dict(zip(both, judge_together(alone), strict=True))


def why_no_gpu(part: GpuPart) -> str:
    """Why nothing can be measured here for a GPU; "" where it is in this machine."""
    gpu = read_gpu()
    if gpu is None:
        return "no GPU is here: times are modelled"
    here = part_of_device(gpu.name or "")
    if here is None or here.name != part.name:
        return f"the GPU here is {gpu.name}, not {part.name}: give --gpu, or times are modelled"
    return ""


def planned_code(name: str, code: CandidateCode, plans: Mapping[str, CallPlan], folder: Path) -> MeasuredSide:
    """Machine code with its launches on each workload, written below a folder."""
    own = folder / name
    own.mkdir(parents=True)
    shutil.copyfile(code.cubin, own / "kernel.cubin")
    codes = {}
    for number, (label, plan) in enumerate(plans.items()):
        table = {
            "cubin": "kernel.cubin",
            "scratch": [plan.arrays[index].nbytes for index in plan.scratch],
            "launches": [launch.as_json() for launch in plan.launches],
        }
        (own / f"plan{number}.json").write_text(json.dumps(table), encoding="utf-8")
        codes[label] = VersionCode(name, plan=f"{name}/plan{number}.json")
    return MeasuredSide(name, codes, is_checked=True)


def baseline_code(catalog: Catalog, workloads: Sequence[Workload]) -> MeasuredSide | None:
    """The catalogue's first baseline that is a Python callable; None without one."""
    for version in catalog.versions:
        if version.state == "baseline" and version.callable:
            code = VersionCode(version.id, callable=version.callable)
            return MeasuredSide(version.id, {workload.label: code for workload in workloads})
    return None


def isolated_runner(isolation: Isolation, catalog: Catalog) -> Runner:
    """Runs the program `latency` isolated, with the GPU's devices and nothing else of this machine."""

    def run(request: LatencyRequest, folder: Path) -> LatencyResult:
        prepared = gpu_process.prepare(LATENCY, request, folder)
        limits = ProcessLimits(
            _SECONDS_TO_START + _SECONDS_A_WORKLOAD * len(request.timings), memory_bytes=_GPU_MEMORY
        )
        names = [f"{LATENCY.name}.{kind}.json" for kind in ("request", "result")]
        done = isolation.run(
            [sys.executable, "-m", f"profiler.collect.gpu.{LATENCY.name}", *names],
            folder,
            limits,
            environment={**package_environment(), **_driver_environment()},
            readable=[catalog.path.parent],
            devices=True,
        )
        words = "did not end in time" if done.code is None else f"ended with exit code {done.code}"
        kind = "timed_out" if done.code is None else "exited"
        tail = done.stderr[-4000:]
        return prepared.result(ProcessResult(kind, done.code, done.seconds, tail, words))

    return run


def _driver_environment() -> dict[str, str]:
    """What says which GPU is meant, and where its driver lies."""
    names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
    return {name: os.environ[name] for name in names if name in os.environ}


def measure(
    sides: Sequence[MeasuredSide],
    catalog: Catalog,
    workloads: Sequence[Workload],
    folder: Path,
    run: Runner,
    seed: int,
    sessions: int = SESSIONS,
) -> Measurement:
    """Time sides in sessions; in each all of them, a process each, in an order drawn at random.

    Inputs are drawn anew in each session, the same for all its sides, and once more for the check after the
    rounds. A side whose output is wrong ends the measurement.
    """
    rng = random.Random(seed)
    samples = {side.name: {label: SideSamples() for label in side.code} for side in sides}
    batches: dict[str, dict[str, dict[str, dict[str, int]]]] = {side.name: {} for side in sides}
    for session in range(sessions):
        inputs, later, order = rng.getrandbits(31), rng.getrandbits(31), list(sides)
        rng.shuffle(order)
        for side in order:
            timings = {
                workload.label: TimingRequest(
                    workload.sizes(),
                    (side.code[workload.label],),
                    rounds=tuple(range(session * _ROUNDS, (session + 1) * _ROUNDS)),
                    seed=seed,
                    samples=_SAMPLES,
                    modes=(_MODE,),
                    max_seconds=_SECONDS_A_WORKLOAD / 2,
                    batch=batches[side.name].get(workload.label),
                    check_seed=later if side.is_checked else None,
                )
                for workload in workloads
                if workload.label in side.code and not samples[side.name][workload.label].failed
            }
            if not timings:
                continue
            setup = ProblemSetup(str(catalog.path), catalog.family, catalog.problem, inputs, "cases")
            result = run(LatencyRequest(timings, setup), folder)
            if not (own := result.get("timings", {})):
                return Measurement(samples, reason=f"{side.name}: {result['reason']}")
            for label, timing in own.items():
                version = timing["versions"].get(side.name)
                kept = samples[side.name][label]
                if timing["status"] != "done" or version is None or version["status"] != "done":
                    kept.failed = str((version or timing)["reason"])
                    continue
                wrong = [
                    f"{label}: {check['reason']} ({'after' if number else 'before'} the rounds)"
                    for number, check in enumerate(version.get("checks", ()))
                    if check["status"] != "done" or check.get("moved")
                ]
                if wrong:
                    return Measurement(samples, tuple(wrong))
                kept.add(version, session)
                batches[side.name].setdefault(label, {})[side.name] = dict(version.get("batch", {}))
    return Measurement(samples)
