"""Whether versions run right on the CPU, over workloads and schedules, and whether wrong ones are caught."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from profiler.build.resources import LaunchConfig
from profiler.catalog.cases import (
    call_problem,
    check_workloads,
    flops_of,
    make_case,
    own_workloads,
    version_workloads,
)
from profiler.catalog.problem import ALL_STAGES, Case, Problem, Workload, workload_json
from profiler.catalog.sources import include_folders, planted_bug, source_files, without_include_flags
from profiler.catalog.version import Version
from profiler.emulator.c_signature import check_arguments, find_signature
from profiler.emulator.contract_check import ContractCheck, check_contract
from profiler.emulator.cpu_library import build_cpu_library
from profiler.emulator.emulator import SHARED_BUDGET_BYTES, Emulator, Landing, Schedule, time_limit_s
from profiler.emulator.gpu_only import SourceRange, gpu_only_ranges
from profiler.emulator.run_result import Defect, LaunchShape, RunResult, SharedTraffic
from profiler.errors import BadCatalog, BuildFailed, ProfilerError

SEEDS_GOOD, SEEDS_REJECTED = 3, 10  # how many schedules a version is run under
ASYNCHRONOUS_HEADER = "hopper.cuh"  # through which sources reach what works on its own
CASES_BYTES = 64 << 20  # of cases that are kept for the versions and landings that follow
MARKER_REACH = 2  # lines between a marker and the line it means: the formatter may move a comment

Workloads = Sequence[Workload] | Mapping[str, Sequence[Workload]] | None  # of all versions, or by version

_MARKER = re.compile(r"//.*?\bcaught here:(.*)")
# What g++ says of a name that no header of the runtime declares; those of CUDA begin so.
_CUDA_NAME = re.compile(
    r"error: \W?((?:__|cuda)\w*)\W? "
    r"(?:was not declared in this scope|has not been declared|does not name a type)"
)


@dataclass(frozen=True)
class ExpectedDefect:
    """A line at which a planted bug must show."""

    file: str
    line: int
    words: tuple[str, ...]  # the first words of the kinds that count

    def matches(self, defect: Defect) -> bool:
        """Whether the defect is of such a kind and has an end near the line."""
        ends = [end for end in (defect.source, defect.other_source) if end is not None]
        is_near = any(end.file == self.file and abs(end.line - self.line) <= MARKER_REACH for end in ends)
        return is_near and defect.kind.startswith(self.words)


@dataclass(frozen=True)
class CheckRun:
    """One version on one workload under one schedule. Its evidence is `modelled`."""

    version: str
    state: str
    workload: Workload
    seed: int
    stage: str
    result: RunResult
    input_error: float | None  # what rounding the inputs to codes alone does to the result (fp8)
    # Of a good version: whether it passed. Of a rejected one: whether it was caught by a kind that its entry
    # names, at a line that its source marks for it; None for one of its stages, of which nothing is expected.
    as_expected: bool | None
    flops: int = 0  # of the workload: the smallest that fails is named
    landing: Landing | None = None  # None: by the seed

    @property
    def schedule(self) -> str:
        """Under which schedule it ran, in words."""
        return f"seed {self.seed}" + (f", landing {self.landing.label}" if self.landing is not None else "")

    @property
    def passed(self) -> bool:
        """Whether every element is within tolerance and there is no defect, whatever was expected."""
        return self.result.passed

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What the runtime saw go wrong."""
        return self.result.defects

    @property
    def launches(self) -> tuple[LaunchShape, ...]:
        """The launches it made or tried."""
        return self.result.launches

    @property
    def traffic(self) -> tuple[SharedTraffic, ...]:
        """Traffic of shared memory by source line."""
        return self.result.traffic

    @property
    def max_abs_error(self) -> float | None:
        """None where it did not come back, or an element is not finite and should be, or the reverse."""
        output = self.result.output_check
        return output.max_abs_error if output else None

    @property
    def shared_wavefronts(self) -> int:
        """Of loads and stores, without cp.async."""
        return sum(line.wavefronts for line in self.traffic)

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts that another layout would save."""
        return sum(line.conflicts for line in self.traffic)

    def as_json(self) -> dict[str, Any]:
        """The run as `check --json` prints it."""
        sizes = self.workload.sizes()
        output = self.result.output_check
        return {
            "version": self.version,
            "state": self.state,
            "evidence": "modelled",
            "workload": workload_json(self.workload),
            "causal": bool(sizes.get("causal", False)),
            "stage": self.stage,
            "seed": self.seed,
            "landing": self.landing.label if self.landing is not None else None,
            "passed": self.passed,
            "as_expected": self.as_expected,
            "returned": self.result.returned,
            "max_abs_error": self.max_abs_error,
            "input_error": self.input_error,
            "wrong_elements": output.wrong if output else None,
            "findings": [defect_json(defect) for defect in self.defects],
            "shared_wavefronts": self.shared_wavefronts,
            "bank_conflicts": self.bank_conflicts,
            "launches": [
                {
                    "kernel": launch.kernel,
                    "grid": launch.grid,
                    "block": launch.block,
                    "shared_bytes": launch.shared_bytes,
                }
                for launch in self.launches
            ],
            "lines": [
                {
                    "file": line.source.file,
                    "line": line.source.line,
                    "kind": line.kind,
                    "requests": line.requests,
                    "wavefronts": line.wavefronts,
                    "conflicts": line.conflicts,
                }
                for line in self.traffic
            ],
        }


@dataclass(frozen=True)
class NotRun:
    """One version on one workload under one schedule that was not run, since another did not end."""

    workload: Workload
    seed: int
    stage: str
    reason: str
    landing: Landing | None = None


@dataclass(frozen=True)
class VersionCheck:
    """One version with all its runs, or why there are none."""

    version: str
    state: str
    runs: tuple[CheckRun, ...]
    error: ProfilerError | None = None  # BuildFailed; BadCatalog: a call does not fit, the problem fails
    not_run: tuple[NotRun, ...] = ()
    contract: ContractCheck | None = None  # None: the problem declares none, or it was not asked for
    gpu_only: tuple[SourceRange, ...] = ()  # lines that no check on the CPU sees

    @property
    def as_expected(self) -> bool:
        """Whether a good version passed everywhere, and a rejected one was caught under every schedule.

        A good version of which something was not run has not passed everywhere.
        """
        if self.error is not None or not (self.runs or self.contract):
            return False
        if (self.contract and self.contract.defects) or (self.not_run and self.state != "rejected"):
            return False
        return all(run.as_expected is not False for run in self.runs)


def check(
    version: Version,
    problem: Problem,
    workloads: Sequence[Workload] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[CheckRun]:
    """Build one version and run it on every workload with every seed. Raises BuildFailed."""
    version_check = next(check_versions([version], problem, workloads, seeds, contract=False, jobs=1))
    if version_check.error is not None:
        raise version_check.error
    return list(version_check.runs)


def check_versions(
    versions: Sequence[Version],
    problem: Problem,
    workloads: Workloads = None,
    seeds: Sequence[int] | None = None,
    *,
    landings: Sequence[Landing | None] = (None,),
    stages: Sequence[str] = (ALL_STAGES,),
    flags: Sequence[str] = (),
    contract: bool | None = None,
    contract_on: Mapping[str, Workload] | None = None,
    jobs: int | None = None,
    progress: Callable[[str, str], None] = lambda _version, _what: None,
) -> Iterator[VersionCheck]:
    """Check versions in the order given, in `jobs` processes (default: one a CPU, at most 8).

    Without workloads and seeds a good version runs on the problem's check workloads and its own with 3 seeds,
    a rejected one on its own, or else the first of the problem's, with 10; workloads may be given by version.
    Versions with asynchronous code run with each of `landings` under each seed; None leaves it to the seed.
    `contract`: whether the calls of the problem's contract are made of good versions (default: where no
    workloads are given); `contract_on`: the workload that they change, by version, and of no other version
    (default: the smallest). Of `stages` a version is built for those it has. Versions without a source are
    left out; what is said of one that does not compile, or whose function the problem's case does not fit, is
    its error, as is what fails in the problem: the runs that are left are made. Once a run of a version did
    not end in its time, those that have not begun are not run.
    """
    sources = [
        (version, version.source) for version in versions if version.buildable and version.source is not None
    ]
    local = threading.local()
    emulators: list[Emulator] = []
    endless: dict[str, str] = {}  # by version: what did not end
    cases = _Cases(problem)

    def own_emulator() -> Emulator:
        """The emulator of this thread, which keeps its process from run to run."""
        if not hasattr(local, "emulator"):
            local.emulator = Emulator()
            emulators.append(local.emulator)
        emulator: Emulator = local.emulator
        return emulator

    def run(
        version: Version, source: Path, library: Path, workload: Workload, schedule: Schedule, stage: str
    ) -> CheckRun | NotRun:
        seed, landing = schedule.seed, schedule.landing
        if reason := endless.get(version.id):
            return NotRun(workload, seed, stage, reason, landing)
        case = cases.case(workload, seed, stage)
        flops = flops_of(problem, workload) if hasattr(problem, "flops") else 0
        limit_s = time_limit_s(flops, case)
        result = own_emulator().run(
            library,
            problem.symbol,
            case,
            schedule,
            time_limit_s=limit_s,
            **_run_options(version, source),
        )
        if any(defect.kind == "timeout" for defect in result.defects):
            endless[version.id] = f"{workload.label}, seed {seed}, did not end within {limit_s:g} s"
        as_expected = _as_expected(version, stage, result)
        return CheckRun(
            version=version.id,
            state=version.state,
            workload=workload,
            seed=seed,
            stage=stage,
            result=result,
            input_error=case.input_error,
            as_expected=as_expected,
            flops=flops,
            landing=landing,
        )

    def run_contract(
        version: Version, source: Path, library: Path, on_workloads: Sequence[Workload]
    ) -> ContractCheck | None:
        if version.id in endless:
            return None
        options = _run_options(version, source)
        changed = contract_on[version.id] if contract_on is not None else None
        return check_contract(version, problem, library, on_workloads, own_emulator(), options, changed)

    stage_flags = {stage: call_problem(problem, "stage_flags", stage, of=stage) for stage in stages}
    pool = ThreadPoolExecutor(jobs or min(os.cpu_count() or 1, 8))
    try:
        # Libraries are queued before any run, so that compiling, the longer part, begins at once.
        libraries = {
            (version.id, stage): pool.submit(
                build_cpu_library,
                source,
                (*without_include_flags(version.flags), *flags, *stage_flags[stage]),
                include_folders(version),
            )
            for version, source in sources
            for stage in _stages_of(version, stages)
        }
        unseen = {
            version.id: pool.submit(
                gpu_only_ranges,
                source,
                without_include_flags((*version.flags, *flags)),
                include_folders(version),
                version.arches,
            )
            for version, source in sources
        }
        pending: list[_Pending] = []
        for version, source in sources:
            work = _Pending(version)
            pending.append(work)
            try:
                on_workloads, with_seeds = _plan(version, problem, workloads, seeds)
                with_landings = landings if _is_asynchronous(version) else (None,)
                wants_contract = (workloads is None if contract is None else contract) and (
                    contract_on is None or version.id in contract_on
                )
                for stage in _stages_of(version, stages):
                    library = libraries[version.id, stage].result()
                    _check_signature(version, problem, on_workloads, stage)
                    work.runs += [
                        pool.submit(run, version, source, library, workload, Schedule(seed, landing), stage)
                        for workload in on_workloads
                        for seed in with_seeds
                        for landing in with_landings
                    ]
                    if wants_contract and stage == ALL_STAGES and version.state == "good":
                        all_workloads = check_workloads(problem, version.dtype, version.head_dims)
                        work.contract = pool.submit(run_contract, version, source, library, all_workloads)
            except BuildFailed as failed:
                work.error = _name_what_the_runtime_lacks(failed)
            except BadCatalog as failed:
                work.error = failed
        for work in pending:
            version_check = work.collect(unseen[work.version.id].result())
            progress(work.version.id, "as expected" if version_check.as_expected else "NOT as expected")
            yield version_check
    finally:
        pool.shutdown(cancel_futures=True)
        for emulator in emulators:
            emulator.close()


class _Cases:
    """The cases of a problem, made once for all versions: many a reference takes longer than the kernel."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._kept: dict[tuple[str, int, str], Case] = {}  # the one used last is the last
        self._bytes = 0
        self._lock = threading.Lock()

    def case(self, workload: Workload, seed: int, stage: str) -> Case:
        """The case with an output of its own, NaN everywhere; its inputs are shared with other calls.

        Raises BadCatalog as make_case() does.
        """
        key = (workload.label, seed, stage)
        with self._lock:
            case = self._kept.pop(key, None)
            if case is not None:
                self._kept[key] = case
        if case is None:
            case = make_case(self._problem, workload, seed, stage)
            with self._lock:
                self._keep(key, case)
        output = case.output.copy()
        arguments = tuple(output if value is case.output else value for value in case.arguments)
        return replace(case, arguments=arguments, output=output)

    def _keep(self, key: tuple[str, int, str], case: Case) -> None:
        if key not in self._kept:
            self._bytes += _case_bytes(case)
        self._kept[key] = case
        while self._bytes > CASES_BYTES:
            self._bytes -= _case_bytes(self._kept.pop(next(iter(self._kept))))


def _case_bytes(case: Case) -> int:
    arrays = {id(value): value for value in (*case.arguments, *case.operands, case.reference, case.magnitude)}
    return sum(value.nbytes for value in arrays.values() if isinstance(value, np.ndarray))


@dataclass
class _Pending:
    """What is under way of a version."""

    version: Version
    runs: list[Future[CheckRun | NotRun]] = field(default_factory=list)
    contract: Future[ContractCheck | None] | None = None
    error: ProfilerError | None = None

    def collect(self, gpu_only: tuple[SourceRange, ...]) -> VersionCheck:
        """Wait for all of it."""
        results = []
        for future in self.runs:
            try:
                results.append(future.result())
            except BadCatalog as failed:  # the problem fails on one workload: the others say what they say
                self.error = self.error or failed
        contract = None
        try:
            contract = self.contract.result() if self.contract else None
        except BadCatalog as failed:
            self.error = self.error or failed
        return VersionCheck(
            self.version.id,
            self.version.state,
            tuple(result for result in results if isinstance(result, CheckRun)),
            self.error,
            tuple(result for result in results if isinstance(result, NotRun)),
            contract,
            gpu_only,
        )


def _run_options(version: Version, source: Path) -> dict[str, Any]:
    return {
        "source_folder": source.resolve().parent,
        "budget_bytes": version.budget.shared_bytes or SHARED_BUDGET_BYTES,
    }


def _check_signature(version: Version, problem: Problem, workloads: Sequence[Workload], stage: str) -> None:
    """Raise UnfitCase where the version's function cannot be called with the problem's case."""
    signature = find_signature(source_files(version), problem.symbol)
    if signature is None:
        return
    for workload in workloads:
        try:
            case = make_case(problem, workload, 0, stage)
        except BadCatalog:  # which the runs on this workload say
            continue
        # A build of one stage may write another type through the same pointer.
        check_arguments(signature, case.arguments, check_elements=stage == ALL_STAGES)
        return


def _name_what_the_runtime_lacks(failed: BuildFailed) -> BuildFailed:
    """The error, with those names of CUDA in its first line that the CPU runtime does not have."""
    names = ", ".join(dict.fromkeys(_CUDA_NAME.findall(str(failed))))
    if not names:
        return failed
    first, *rest = str(failed).splitlines()
    first += f" (the CPU runtime has no {names}: where this is CUDA's, the version cannot be checked here)"
    return BuildFailed("\n".join((first, *rest)))


def launch_configs(
    version: Version, problem: Problem, workloads: Sequence[Workload]
) -> dict[Workload, tuple[LaunchConfig, ...]]:
    """The launches that the version's launcher asks for on each workload."""
    return {
        run.workload: tuple(launch.config for launch in run.launches)
        for run in check(version, problem, workloads, (0,))
    }


def expected_defects(version: Version) -> tuple[ExpectedDefect, ...]:
    """Where the sources say that the version's bug is caught: `// caught here: BUG_X race; BUG_Y misuse`."""
    bug = planted_bug(version)
    expected = []
    for path in source_files(version):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = _MARKER.search(line)
            for part in match[1].split(";") if match else ():
                name, *words = part.split() or [""]
                if name == bug:
                    expected.append(ExpectedDefect(path.name, number, tuple(words)))
    return tuple(expected)


def _plan(
    version: Version, problem: Problem, workloads: Workloads, seeds: Sequence[int] | None
) -> tuple[Sequence[Workload], Sequence[int]]:
    if isinstance(workloads, Mapping):
        workloads = workloads.get(version.id, ())
    if workloads is None:
        workloads = version_workloads(problem, version)
        if version.state == "rejected":  # a bug of the third tile does not show on one
            workloads = own_workloads(problem, version) or workloads[:1]
    if seeds is None:
        seeds = range(SEEDS_REJECTED if version.state == "rejected" else SEEDS_GOOD)
    return workloads, seeds


def _is_asynchronous(version: Version) -> bool:
    """Whether anything of it lands: all other code runs alike whatever the landing."""
    return any(path.name == ASYNCHRONOUS_HEADER for path in source_files(version))


def _stages_of(version: Version, stages: Sequence[str]) -> list[str]:
    return [stage for stage in stages if stage == ALL_STAGES or stage in version.stages]


def _as_expected(version: Version, stage: str, result: RunResult) -> bool | None:
    if version.state != "rejected":
        return result.passed
    if stage != ALL_STAGES:
        return None
    expected_of_bug = expected_defects(version)
    for word in version.caught_by:
        if word == "numbers":
            if result.output_check is not None and result.output_check.wrong > 0:
                return True
            continue
        # Where the source marks no line for this kind, it may show anywhere.
        expected = [defect for defect in expected_of_bug if word in defect.words]
        for defect in result.defects:
            is_kind = defect.kind.startswith(word)
            if is_kind and (not expected or any(mark.matches(defect) for mark in expected)):
                return True
    return False


def defect_json(defect: Defect) -> dict[str, Any]:
    """A defect as documents and results have it."""
    return {
        "kind": defect.kind,
        "file": defect.source.file if defect.source else None,
        "line": defect.source.line if defect.source else None,
        "count": defect.count,
        "text": defect.text,
    }
