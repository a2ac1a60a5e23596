"""What the jobs of a collection share: versions, folders, and how their processes are started and ended."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from profiler.catalog import Catalog
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
    """A job has not ended: another machine, or this one later, may do it. The message says why."""


class JobContext:
    """One run's contents while jobs work on it."""

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
        """What is called of a version."""
        return VersionCode(name, self.libraries.get(name), self.selection.versions[name].callable)

    @property
    def setup(self) -> ProblemSetup:
        """The problem and its inputs, which all versions share."""
        return ProblemSetup(
            catalog=str(self.catalog.path),
            family=self.catalog.family,
            problem=self.catalog.problem,
            seed=self.settings.seed,
            cases=str(self.staging.scratch / "cases"),
        )

    def folder(self, job: Job, part: str = "") -> Path:
        """Where the files of a job's processes lie."""
        return self.staging.scratch / f"{job.key}{'-' if part else ''}{part}".replace("/", "_")

    def why_not_runnable(self, name: str) -> str | None:
        """Why a version cannot be called here; None: it can. Raises LeftOut where nothing can be built."""
        version = self.selection.versions[name]
        if name in self.libraries or version.callable:
            return None
        if version.state == "planned":
            return "planned"
        if self.cannot_build:
            raise LeftOut(self.cannot_build)
        return self.not_built.get(name, "it does not compile")

    def right_versions(self, names: Sequence[str], workload: str) -> list[str]:
        """Those whose check passed on the workload, and that the catalogue does not reject."""
        checks = self.staging.outcomes().checks
        return [
            name
            for name in names
            if self.selection.versions[name].state != "rejected"
            and (check := checks.get(check_key(name, workload)))
            and check["status"] == "done"
        ]

    def skip(self, job: Job) -> NoResults:
        """The outcome of a job no version of which is right.

        Raises LeftOut where that is not known of all: a run that goes on may check them, and do the job then.
        """
        checks = self.staging.outcomes().checks
        if any(check_key(name, job.workload) not in checks for name in job.versions):
            raise LeftOut("no version of it is known to be right: checks were left out")
        reason = "no version of it is right on this workload"
        return {**envelope(job), "status": "skipped", "reason": reason, "results": {}}

    # ------------------------------------------------------------ processes

    def start(self, budget_s: float | None, spent_s: float = 0.0) -> None:
        """Processes may run from now on, and until the budget is used up."""
        self._stopped.clear()
        self.limits.start(budget_s, spent_s)

    def stop(self) -> None:
        """End every process that runs; none is started any more."""
        self._stopped.set()
        subprocesses.kill_leftovers(self.staging.scratch)

    @property
    def stopped(self) -> bool:
        """Whether processes were ended from outside: Ctrl-C."""
        return self._stopped.is_set()

    def give_up_if_over(self) -> None:
        """Raises LeftOut where nothing more may be begun, or be believed that was ended on the way."""
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
        """Run a program of collect/gpu to its end. Raises LeftOut where it says that this machine cannot."""
        self.give_up_if_over()
        begun = time.monotonic()
        try:
            limit_s = self.limits.of_process(job.stage)
            result = gpu_process.run_program(program, request, folder, timeout_s=limit_s, env=env)
        finally:
            self.count(job.stage, begun)
        if result["status"] == "failed":
            self.give_up_if_over()  # it was ended by us: nothing is known of the version
        if result.get("machine"):
            raise LeftOut(str(result["reason"]))
        return result

    def run_tool(
        self, argv: Sequence[str | Path], job: Job, log: Path, env: Mapping[str, str] | None = None
    ) -> ProcessResult:
        """Run a profiler or a sanitizer to its end."""
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
        """Something of a stage ran from then (monotonic) until now."""
        self._spans[stage].append((begun, time.monotonic()))

    def processes_s(self) -> dict[str, float]:
        """How long processes of each stage ran in this session; those side by side are counted once."""
        return {stage: round(_covered(spans), 3) for stage, spans in list(self._spans.items())}


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds that at least one of the spans covers."""
    covered, last = 0.0, float("-inf")
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, last))
        last = max(last, end)
    return covered
