"""Whether versions run right on the CPU, over workloads and schedules, and whether wrong ones are caught."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiler.build import LaunchConfig
from profiler.catalog import Problem, Version, Workload, source_files
from profiler.catalog.problem import ALL_STAGES, workload_json
from profiler.catalog.sources import include_folders, planted_bug, without_include_flags
from profiler.emulator.cpu_library import build_cpu_library
from profiler.emulator.emulator import SHARED_BUDGET_BYTES, Emulator, Schedule
from profiler.emulator.run_result import Defect, LaunchShape, RunResult, SharedTraffic
from profiler.errors import BuildFailed

SEEDS_GOOD, SEEDS_REJECTED = 3, 10  # how many schedules a version is run under
MARKER_REACH = 2  # lines between a marker and the line it means: the formatter may move a comment

_MARKER = re.compile(r"//.*?\bcaught here:(.*)")


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
            "passed": self.passed,
            "as_expected": self.as_expected,
            "returned": self.result.returned,
            "max_abs_error": self.max_abs_error,
            "input_error": self.input_error,
            "wrong_elements": output.wrong if output else None,
            "findings": [_defect_json(defect) for defect in self.defects],
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
class VersionCheck:
    """One version with all its runs, or why there are none."""

    version: str
    state: str
    runs: tuple[CheckRun, ...]
    error: BuildFailed | None = None

    @property
    def as_expected(self) -> bool:
        """Whether a good version passed everywhere, and a rejected one was caught under every schedule."""
        if self.error is not None or not self.runs:
            return False
        return all(run.as_expected is not False for run in self.runs)


def check(
    version: Version,
    problem: Problem,
    workloads: Sequence[Workload] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[CheckRun]:
    """Build one version and run it on every workload with every seed. Raises BuildFailed."""
    version_check = next(check_versions([version], problem, workloads, seeds, jobs=1))
    if version_check.error is not None:
        raise version_check.error
    return list(version_check.runs)


def check_versions(
    versions: Sequence[Version],
    problem: Problem,
    workloads: Sequence[Workload] | None = None,
    seeds: Sequence[int] | None = None,
    *,
    stages: Sequence[str] = (ALL_STAGES,),
    flags: Sequence[str] = (),
    jobs: int | None = None,
    progress: Callable[[str, str], None] = lambda _version, _what: None,
) -> Iterator[VersionCheck]:
    """Check versions in the order given, in `jobs` processes (default: one a CPU, at most 8).

    Without workloads and seeds a good version runs on the problem's check workloads with 3 seeds, a rejected
    one on the first of them with 10. Of `stages` a version is built for those it has. Versions without a
    source are left out; what is said of one that does not compile is its error.
    """
    sources = [
        (version, version.source) for version in versions if version.buildable and version.source is not None
    ]
    local = threading.local()
    emulators: list[Emulator] = []

    def own_emulator() -> Emulator:
        """The emulator of this thread, which keeps its process from run to run."""
        if not hasattr(local, "emulator"):
            local.emulator = Emulator()
            emulators.append(local.emulator)
        emulator: Emulator = local.emulator
        return emulator

    def run(
        version: Version, source: Path, library: Path, workload: Workload, seed: int, stage: str
    ) -> CheckRun:
        case = problem.case(workload, seed, stage)
        result = own_emulator().run(
            library,
            problem.symbol,
            case,
            Schedule(seed),
            source_folder=source.resolve().parent,
            budget_bytes=version.budget.shared_bytes or SHARED_BUDGET_BYTES,
        )
        as_expected = _as_expected(version, stage, result)
        return CheckRun(
            version.id, version.state, workload, seed, stage, result, case.input_error, as_expected
        )

    pool = ThreadPoolExecutor(jobs or min(os.cpu_count() or 1, 8))
    try:
        # Libraries are queued before any run, so that compiling, the longer part, begins at once.
        libraries = {
            (version.id, stage): pool.submit(
                build_cpu_library,
                source,
                (*without_include_flags(version.flags), *flags, *problem.stage_flags(stage)),
                include_folders(version),
            )
            for version, source in sources
            for stage in _stages_of(version, stages)
        }
        pending: list[tuple[Version, list[Future[CheckRun]], BuildFailed | None]] = []
        for version, source in sources:
            on_workloads, with_seeds = _plan(version, problem, workloads, seeds)
            futures: list[Future[CheckRun]] = []
            error = None
            for stage in _stages_of(version, stages):
                try:
                    library = libraries[version.id, stage].result()
                except BuildFailed as failed:
                    error = BuildFailed(f"{version.id}: {failed}")
                    break
                futures += [
                    pool.submit(run, version, source, library, workload, seed, stage)
                    for workload in on_workloads
                    for seed in with_seeds
                ]
            pending.append((version, futures, error))
        for version, futures, error in pending:
            runs = tuple(future.result() for future in futures)
            version_check = VersionCheck(version.id, version.state, runs, error)
            progress(version.id, "as expected" if version_check.as_expected else "NOT as expected")
            yield version_check
    finally:
        pool.shutdown(cancel_futures=True)
        for emulator in emulators:
            emulator.close()


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
    version: Version, problem: Problem, workloads: Sequence[Workload] | None, seeds: Sequence[int] | None
) -> tuple[Sequence[Workload], Sequence[int]]:
    if workloads is None:
        workloads = problem.check_workloads(version.dtype, version.head_dims)
        workloads = workloads[:1] if version.state == "rejected" else workloads
    if seeds is None:
        seeds = range(SEEDS_REJECTED if version.state == "rejected" else SEEDS_GOOD)
    return workloads, seeds


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


def _defect_json(defect: Defect) -> dict[str, Any]:
    return {
        "kind": defect.kind,
        "file": defect.source.file if defect.source else None,
        "line": defect.source.line if defect.source else None,
        "count": defect.count,
        "text": defect.text,
    }
