"""The request and the result of each program of this folder: the JSON between two processes.

A request is a frozen dataclass, for it has defaults and only this package makes one. A result is a TypedDict:
it is kept in the staging folder, and in part in the run, as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NotRequired, TypedDict, TypeVar

from profiler.collect.sample_schedule import BATCH_BELOW_US, ROUNDS, SAMPLES, SampleBlock

Json = dict[str, Any]
Sizes = Mapping[str, Any]  # a workload's sizes by name, as Problem.workload takes them

# ---------------------------------------------------------------- requests


@dataclass(frozen=True)
class VersionCode:
    """The code of a version: a library's C function, a Python callable, or kernels launched by a plan."""

    id: str
    library: str | None = None  # path of the shared library
    callable: str | None = None  # MODULE:NAME or FILE.py:NAME, beside the catalogue
    plan: str | None = None  # path of a plan of launches: see module_launch


@dataclass(frozen=True)
class ProblemSetup:
    """The problem that versions solve, and which of its inputs they are given."""

    catalog: str | None = None  # its path, beside which files are looked for; None: our own
    family: str = ""
    problem: str | None = None  # MODULE:NAME or FILE.py:NAME; None: attention
    seed: int = 0
    cases: str | None = None  # a folder where inputs and references are kept; None: they are not


@dataclass(frozen=True)
class CheckRequest:
    """A check of one version on one workload against the reference."""

    version: VersionCode
    workload: Sizes
    setup: ProblemSetup = ProblemSetup()
    repeats: int = 3  # calls with a poisoned output of their own: a race may be lost only sometimes
    save: str | None = None  # a .npy file for the first output


@dataclass(frozen=True)
class TimingRequest:
    """Versions to be timed on one workload, in rounds that alternate between them."""

    workload: Sizes
    versions: tuple[VersionCode, ...]
    rounds: tuple[int, ...] = tuple(range(ROUNDS))  # their numbers and the seed decide the order in each
    seed: int = 0
    samples: int = SAMPLES  # a round, version and mode
    modes: tuple[str, ...] = ("cold", "warm")
    clock: str = "none"  # how clocks are controlled, which is only named
    max_seconds: float | None = None  # no round is begun that would likely end after it
    batch: Mapping[str, Mapping[str, int]] | None = None  # calls a sample by version and mode, decided before
    batch_below_us: float = BATCH_BELOW_US  # a call shorter than this is timed in batches
    warm_up_ms: float = 50.0
    check_seed: int | None = None  # outputs are checked before the rounds, and after on inputs of this seed


@dataclass(frozen=True)
class LatencyRequest:
    """One workload or several, by label, timed one after the other in one process."""

    timings: Mapping[str, TimingRequest]
    setup: ProblemSetup = ProblemSetup()


@dataclass(frozen=True)
class CellRequest:
    """One version on one workload, to be launched in a range of its own."""

    version: str
    workload: Sizes


@dataclass(frozen=True)
class TargetRequest:
    """Cells to be launched while ncu or compute-sanitizer looks on."""

    versions: tuple[VersionCode, ...]
    cells: tuple[CellRequest, ...]
    setup: ProblemSetup = ProblemSetup()
    calls: int = 1  # in the range, of each cell
    warm_up: int = 1  # calls before it
    profiler: bool = False  # between cudaProfilerStart and Stop as well
    max_seconds: float | None = None  # no cell is begun after it


@dataclass(frozen=True)
class ProbeRequest:
    """The request of the torch probe, which takes no arguments."""


# ---------------------------------------------------------------- results


class ProgramResult(TypedDict):
    """The result of every program, also made up for one that died."""

    status: str  # done, wrong, failed or skipped
    reason: str | None
    machine: NotRequired[bool]  # true: this machine cannot run it, which says nothing about the versions
    ended: NotRequired[str]  # how its process ended, unless with exit code 0
    tail: NotRequired[str]  # the end of the output of a program that died
    seconds: NotRequired[float]  # its process ran


class CheckResult(ProgramResult):
    """Whether a version is right. Most of it becomes the `check` of a run's result."""

    workload: NotRequired[str]
    seed: NotRequired[int]
    device: NotRequired[Json | None]
    input_error: NotRequired[float | None]  # what rounding the inputs to codes alone does
    returned: NotRequired[int]  # the C function's
    max_abs_error: NotRequired[float | None]  # null: an element that should be finite is not
    wrong: NotRequired[int]  # elements
    not_finite: NotRequired[int]
    first_wrong: NotRequired[list[int] | None]
    elements: NotRequired[int]
    moved: NotRequired[bool]  # equal inputs gave different outputs
    outside: NotRequired[bool]  # it wrote beside its output
    changed_inputs: NotRequired[bool]
    errors: NotRequired[list[float | None]]  # the largest of each repeat


class VersionTiming(TypedDict):
    """The timing of one version on one workload."""

    status: str
    reason: str | None
    samples: list[SampleBlock]
    batch: NotRequired[dict[str, int]]  # calls a sample, by mode
    host_bound: NotRequired[dict[str, list[int]]]  # positions of samples in which the GPU waited for the host
    without: NotRequired[dict[str, str]]  # modes in which it cannot be timed, and why
    checks: NotRequired[list[CheckResult]]  # of its output, before the rounds and after them


class GpuStates(TypedDict):
    """The GPU's state around the samples, as GpuState.as_json gives it."""

    before: Json | None
    during: list[Json]
    after: Json | None


class WorkloadTiming(TypedDict):
    """The timing of one workload; without versions where it could not begin."""

    status: str
    reason: str | None
    versions: dict[str, VersionTiming]
    rounds_done: NotRequired[list[int]]
    launch_ns: NotRequired[dict[str, float | None]]  # of an empty kernel, by clock
    cold_sets: NotRequired[int]  # sets of arrays that cold samples rotate through
    states: NotRequired[GpuStates]
    device: NotRequired[Json | None]


class LatencyResult(ProgramResult):
    """Timings by workload label; none where the process died."""

    timings: NotRequired[dict[str, WorkloadTiming]]


class CellResult(TypedDict):
    """Whether a cell was launched."""

    version: str
    workload: NotRequired[str]
    range: NotRequired[str]  # the NVTX range
    status: str  # done, failed, skipped, or unlaunched: no time was left for it
    reason: str | None


class TargetResult(ProgramResult):
    """The cells in the order in which they were launched; none where the process died."""

    cells: NotRequired[list[CellResult]]


class TorchProbeResult(ProgramResult):
    """What torch can do here."""

    torch: NotRequired[str]
    cuda: NotRequired[str | None]
    gpu: NotRequired[str]
    compute_capability: NotRequired[str]
    gpus: NotRequired[int]
    backends: NotRequired[dict[str, str | None]]  # null where it works, else why not


# ---------------------------------------------------------------- programs

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT", bound=ProgramResult)


@dataclass(frozen=True)
class Program(Generic[RequestT, ResultT]):
    """One program of this folder, which is a module that Python runs, with what it takes and gives."""

    name: str
    request: type[RequestT]
    result: type[ResultT]


CORRECTNESS = Program("correctness", CheckRequest, CheckResult)
LATENCY = Program("latency", LatencyRequest, LatencyResult)
NCU_TARGET = Program("ncu_target", TargetRequest, TargetResult)
TORCH_PROBE = Program("torch_probe", ProbeRequest, TorchProbeResult)
