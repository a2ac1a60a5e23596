"""What the jobs of a collection share: versions, folders, time limits, and the processes they start."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from profiler.catalog.catalog import Catalog
from profiler.collect import gpu_process, subprocesses
from profiler.collect.gpu.messages import ProblemSetup, Program, RequestT, ResultT, VersionCode
from profiler.collect.machine import Machine
from profiler.collect.outcomes import NoResults, envelope
from profiler.collect.plan import Job, check_key
from profiler.collect.settings import Selection, Settings
from profiler.collect.staging import Staging
from profiler.collect.subprocesses import ProcessResult
from profiler.collect.time_limits import TimeLimits


class LeftOut(Exception):
    """A job was not done, but another session may do it. The message says why."""


class JobContext:
    """What the jobs of one run share, and how they start processes."""

    def __init__(self, staging: Staging, catalog: Catalog, settings: Settings, machine: Machine) -> None:
        self.staging, self.catalog, self.settings, self.machine = staging, catalog, settings, machine
        self.selection: Selection = settings.select(catalog)
        self.limits = TimeLimits()
        self.libraries: dict[str, str] = {}  # path of the shared library of each version that was built
        self.kernels: dict[str, tuple[str, ...]] = {}  # and the names of its kernel functions
        self.not_built: dict[str, str] = {}  # version -> why
        self.cannot_build: str | None = None  # why nothing can be built here
        self._stopped = threading.Event()
        self._spans: dict[str, list[tuple[float, float]]] = defaultdict(list)  # stage -> begin and end

    # ------------------------------------------------------------ versions

    def version_code(self, name: str) -> VersionCode:
        """The code of a version: its library or its callable."""
        return VersionCode(name, self.libraries.get(name), self.selection.versions[name].callable)

    @property
    def setup(self) -> ProblemSetup:
        """The problem and its inputs, the same for all versions."""
        return ProblemSetup(
            catalog=str(self.catalog.path),
            family=self.catalog.family,
            problem=self.catalog.problem,
            seed=self.settings.seed,
            cases=str(self.staging.scratch / "cases"),
        )

    def folder(self, job: Job, part: str = "") -> Path:
        """The folder for the files of a job's processes."""
        return self.staging.scratch / f"{job.key}{'-' if part else ''}{part}".replace("/", "_")

    def why_not_runnable(self, name: str) -> str | None:
        """Why a version cannot be called here; None: it can be. Raises LeftOut where nothing can be built."""
        version = self.selection.versions[name]
        if name in self.libraries or version.callable:
            return None
        if version.state == "planned":
            return "planned"
        if self.cannot_build:
            raise LeftOut(self.cannot_build)
        return self.not_built.get(name, "it does not compile")

    def right_versions(self, names: Sequence[str], workload: str) -> list[str]:
        """The versions that passed their check on the workload and that the catalogue does not reject."""
        checks = self.staging.outcomes().checks
        return [
            name
            for name in names
            if self.selection.versions[name].state != "rejected"
            and (check := checks.get(check_key(name, workload)))
            and check["status"] == "done"
        ]

    def skip(self, job: Job) -> NoResults:
        """The outcome of a job that has no right version.

        Raises LeftOut where some are not checked yet: a resumed run checks them, and may then do the job.
        """
        checks = self.staging.outcomes().checks
        if any(check_key(name, job.workload) not in checks for name in job.versions):
            raise LeftOut("no version of it is known to be right: checks were left out")
        reason = "no version of it is right on this workload"
        return {**envelope(job), "status": "skipped", "reason": reason, "results": {}}

    # ------------------------------------------------------------ processes

    def start(self, budget_s: float | None, spent_s: float = 0.0) -> None:
        """Allow processes to run from now on, until the budget is used up."""
        self._stopped.clear()
        self.limits.start(budget_s, spent_s)

    def stop(self) -> None:
        """End every process that runs, and start no more."""
        self._stopped.set()
        subprocesses.kill_leftovers(self.staging.scratch)

    @property
    def stopped(self) -> bool:
        """Whether the collection was interrupted."""
        return self._stopped.is_set()

    def give_up_if_over(self) -> None:
        """Raise LeftOut once interrupted or out of budget: nothing may begin then, and no failure counts."""
        if self._stopped.is_set():
            raise LeftOut("interrupted")
        if self.limits.used_up:
            raise LeftOut(self.limits.used_up_reason)

    def run_program(
        self,
        program: Program[RequestT, ResultT],
        request: RequestT,
        folder: Path,
        job: Job,
        env: Mapping[str, str] | None = None,
    ) -> ResultT:
        """Run a program of collect/gpu to its end. Raises LeftOut where it cannot work on this machine."""
        self.give_up_if_over()
        begun = time.monotonic()
        try:
            limit_s = self.limits.of_process(job.stage)
            result = gpu_process.run_program(program, request, folder, timeout_s=limit_s, env=env)
        finally:
            self.count(job.stage, begun)
        if result["status"] == "failed":
            self.give_up_if_over()  # if we ended it, the failure says nothing about the version
        if result.get("machine"):
            raise LeftOut(str(result["reason"]))
        return result

    def run_tool(
        self, argv: Sequence[str | Path], job: Job, log: Path, env: Mapping[str, str] | None = None
    ) -> ProcessResult:
        """Run ncu or compute-sanitizer to its end."""
        self.give_up_if_over()
        begun = time.monotonic()
        try:
            environment = {**subprocesses.package_environment(), **(env or {})}
            limit_s = self.limits.of_process(job.stage)
            ended = subprocesses.run(argv, timeout_s=limit_s, log=log, env=environment)
        finally:
            self.count(job.stage, begun)
        if not ended.ok:
            self.give_up_if_over()
        return ended

    # ------------------------------------------------------------ time

    def count(self, stage: str, begun: float) -> None:
        """Note that a process of the stage ran from `begun` (monotonic) until now."""
        self._spans[stage].append((begun, time.monotonic()))

    def processes_s(self) -> dict[str, float]:
        """Seconds in which processes of each stage ran in this session; those side by side count once."""
        return {stage: round(_covered(spans), 3) for stage, spans in list(self._spans.items())}


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds that at least one of the spans covers."""
    covered, last = 0.0, float("-inf")
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, last))
        last = max(last, end)
    return covered
