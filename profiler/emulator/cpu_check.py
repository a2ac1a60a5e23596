"""Whether versions run right on the CPU, over workloads and schedules, and where wrong ones are caught."""

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

SEEDS_GOOD, SEEDS_REJECTED = 3, 10
MARKER_REACH = 2  # lines between a marker and the line it speaks of: the formatter may move a comment

_MARKER = re.compile(r"//.*?\bcaught here:(.*)")


@dataclass(frozen=True)
class ExpectedDefect:
    """A line at which a planted bug must be found."""

    file: str
    line: int
    words: tuple[str, ...]  # first words of the kinds that count

    def meets(self, finding: Defect) -> bool:
        """Whether the finding is of such a kind and has an end near the line."""
        ends = (one for one in (finding.source, finding.other_source) if one is not None)
        near = any(one.file == self.file and abs(one.line - self.line) <= MARKER_REACH for one in ends)
        return near and finding.kind.startswith(self.words)


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
    # Good: passed. Rejected: caught by a kind that it names, at a line that its source marks for it; None for
    # one of its stages, of which nothing is expected.
    as_expected: bool | None

    @property
    def passed(self) -> bool:
        """Every element within tolerance and nothing found, whatever was expected."""
        return self.result.passed

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What the runtime saw."""
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
        return self.result.output_check.max_abs_error if self.result.output_check else None

    @property
    def shared_wavefronts(self) -> int:
        """Of loads and stores, cp.async left out."""
        return sum(line.wavefronts for line in self.traffic)

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts that another layout would save."""
        return sum(line.conflicts for line in self.traffic)

    def as_json(self) -> dict[str, Any]:
        """The cell as `check --json` prints it."""
        sizes = self.workload.sizes()
        numbers = self.result.output_check
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
            "wrong_elements": numbers.wrong if numbers else None,
            "findings": [_finding_json(finding) for finding in self.defects],
            "shared_wavefronts": self.shared_wavefronts,
            "bank_conflicts": self.bank_conflicts,
            "launches": [
                {"kernel": one.kernel, "grid": one.grid, "block": one.block, "shared_bytes": one.shared_bytes}
                for one in self.launches
            ],
            "lines": [
                {
                    "file": one.source.file,
                    "line": one.source.line,
                    "kind": one.kind,
                    "requests": one.requests,
                    "wavefronts": one.wavefronts,
                    "conflicts": one.conflicts,
                }
                for one in self.traffic
            ],
        }


@dataclass(frozen=True)
class VersionCheck:
    """One version with all its cells, or why there are none."""

    version: str
    state: str
    runs: tuple[CheckRun, ...]
    error: BuildFailed | None = None

    @property
    def as_expected(self) -> bool:
        """A good version passed everywhere; a rejected one was caught in every schedule."""
        return (
            self.error is None
            and bool(self.runs)
            and all(cell.as_expected is not False for cell in self.runs)
        )


def check(
    version: Version,
    problem: Problem,
    workloads: Sequence[Workload] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[CheckRun]:
    """Build one version and run it on every workload with every seed. Raises BuildFailed."""
    checked = next(check_versions([version], problem, workloads, seeds, jobs=1))
    if checked.error is not None:
        raise checked.error
    return list(checked.runs)


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

    Without workloads and seeds: a good version on the problem's check workloads with 3 seeds, a rejected one
    on the first with 10. Versions without a source are left out; one that does not compile is its error.
    Of stages a version takes those it has.
    """
    sources = [
        (version, version.source) for version in versions if version.buildable and version.source is not None
    ]
    local = threading.local()
    emulators: list[Emulator] = []

    def emulator() -> Emulator:
        if not hasattr(local, "emulator"):
            local.emulator = Emulator()
            emulators.append(local.emulator)
        mine: Emulator = local.emulator
        return mine

    def run(
        version: Version, source: Path, library: Path, workload: Workload, seed: int, stage: str
    ) -> CheckRun:
        case = problem.case(workload, seed, stage)
        folder = source.resolve().parent
        budget = version.budget.shared_bytes or SHARED_BUDGET_BYTES
        outcome = emulator().run(
            library, problem.symbol, case, Schedule(seed), source_folder=folder, budget_bytes=budget
        )
        expected = _as_expected(version, stage, outcome)
        return CheckRun(version.id, version.state, workload, seed, stage, outcome, case.input_error, expected)

    pool = ThreadPoolExecutor(jobs or min(os.cpu_count() or 1, 8))
    try:
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
        running: list[tuple[Version, list[Future[CheckRun]], BuildFailed | None]] = []
        for version, source in sources:
            on, with_seeds = _plan(version, problem, workloads, seeds)
            cells: list[Future[CheckRun]] = []
            error = None
            for stage in _stages_of(version, stages):
                try:
                    library = libraries[version.id, stage].result()
                except BuildFailed as failed:
                    error = BuildFailed(f"{version.id}: {failed}")
                    break
                cells += [
                    pool.submit(run, version, source, library, workload, seed, stage)
                    for workload in on
                    for seed in with_seeds
                ]
            running.append((version, cells, error))
        for version, cells, error in running:
            checked = VersionCheck(version.id, version.state, tuple(cell.result() for cell in cells), error)
            progress(version.id, "as expected" if checked.as_expected else "NOT as expected")
            yield checked
    finally:
        pool.shutdown(cancel_futures=True)
        for one in emulators:
            one.close()


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
    found = []
    for path in source_files(version):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = _MARKER.search(line)
            for part in match[1].split(";") if match else ():
                name, *words = part.split() or [""]
                if name == planted_bug(version):
                    found.append(ExpectedDefect(path.name, number, tuple(words)))
    return tuple(found)


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


def _as_expected(version: Version, stage: str, outcome: RunResult) -> bool | None:
    if version.state != "rejected":
        return outcome.passed
    if stage != ALL_STAGES:
        return None
    wrong = outcome.output_check is not None and outcome.output_check.wrong > 0
    marks = expected_defects(version)
    for word in version.caught_by:
        if word == "numbers":
            if wrong:
                return True
            continue
        expected = [mark for mark in marks if word in mark.words]
        for finding in outcome.defects:
            if finding.kind.startswith(word) and (
                not expected or any(mark.meets(finding) for mark in expected)
            ):
                return True
    return False


def _finding_json(finding: Defect) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "file": finding.source.file if finding.source else None,
        "line": finding.source.line if finding.source else None,
        "count": finding.count,
        "text": finding.text,
    }
