"""What the jobs of a collection share: versions, folders, and how their processes are started and ended."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from profiler.catalog import Catalog, Problem, load_object
from profiler.collect import gpu_process, subprocesses
from profiler.collect.machine import Machine
from profiler.collect.plan import Job
from profiler.collect.settings import Settings
from profiler.collect.staging import Staging
from profiler.collect.subprocesses import ProcessResult

Json = dict[str, Any]

BUILD_LIMIT_S = 600.0
LIMIT_S = {"check": 180.0, "time": 300.0, "lean": 400.0, "full": 400.0, "sanitize": 300.0}
# Of a budget that one process may take at most, never less than LEAST_S: a hang costs no more than that.
SHARE = {"check": 0.15, "time": 0.3, "sanitize": 0.25, "build": 0.2}
LEAST_S = 60.0
SAMPLING_SHARE = 0.6  # of a process's time limit: whole rounds then outlive a slow group
START_S = 12.0  # before it samples or launches: torch, arrays, warm-up
GRACE_S = 10.0  # that a process may take beyond a time budget before it is ended


class LeftOut(Exception):
    """A job has not ended: another machine, or this one later, may do it. The message says why."""


class JobContext:
    """One run's contents while jobs work on it."""

    def __init__(self, staging: Staging, catalog: Catalog, settings: Settings, machine: Machine) -> None:
        self.staging, self.catalog, self.settings, self.machine = staging, catalog, settings, machine
        self.problem: Problem = load_object(catalog, catalog.problem)
        self.workloads = {one.label: one for one in (self.problem.workload(**w) for w in settings.workloads)}
        self.versions = {name: catalog.by_id[name] for name in settings.versions}
        self.libraries: dict[str, str] = {}
        self.kernels: dict[str, tuple[str, ...]] = {}  # function names of each version that was built
        self.not_built: dict[str, str] = {}  # version -> why; "": all of them
        self.budget: float | None = None  # seconds of this session
        self._until: float | None = None
        self._stopped = threading.Event()
        self._spans: dict[str, list[tuple[float, float]]] = defaultdict(list)  # stage -> begin and end

    # ------------------------------------------------------------ versions

    def request(self, workload: str) -> Json:
        """What every stage is told of a workload."""
        return {
            "catalog": str(self.catalog.path),
            "family": self.catalog.family,
            "problem": self.catalog.problem,
            "workload": self.workloads[workload].sizes(),
            "seed": self.settings.seed,
            "cases": str(self.staging.scratch / "cases"),
        }

    def version(self, name: str) -> Json:
        """What every stage is told of a version."""
        version = self.versions[name]
        return {
            "id": name,
            "library": self.libraries.get(name),
            "callable": version.callable,
            "dtype": version.dtype,
            "flags": list(version.flags),
            "roles": dict(version.roles),
        }

    def folder(self, job: Job, part: str = "") -> Path:
        """Where the files of a job's processes lie."""
        return self.staging.scratch / f"{job.key}{'-' if part else ''}{part}".replace("/", "_")

    def unrunnable(self, name: str) -> str | None:
        """Why a version cannot be called here; None: it can. Raises LeftOut where nothing can be built."""
        if name in self.libraries or self.versions[name].callable:
            return None
        if self.versions[name].state == "planned":
            return "planned"
        if "" in self.not_built:
            raise LeftOut(self.not_built[""])
        return self.not_built.get(name, "it does not compile")

    def right(self, names: Sequence[str], workload: str) -> list[str]:
        """Those whose check passed on the workload, and that are not kept as wrong."""
        ended = self.staging.outcomes()
        return [
            name
            for name in names
            if self.versions[name].state != "rejected"
            and ended.get(Job("check", workload, (name,)).key, {}).get("status") == "done"
        ]

    def nobody(self, job: Job) -> Json:
        """The outcome of a job no version of which is right. Raises LeftOut where that is not known of all: a
        run that goes on may check them, and do the job then.
        """
        ended = self.staging.outcomes()
        checks = [Job("check", job.workload, (name,)).key for name in job.versions]
        if any(key not in ended for key in checks):
            raise LeftOut("no version of it is known to be right: checks were left out")
        return {"status": "skipped", "reason": "no version of it is right on this workload"}

    def passes(self, tier: str) -> int | None:
        """Replay passes of a tier on this GPU; None where nothing here can count them."""
        return self.machine.passes.get(tier)

    # ------------------------------------------------------------ processes

    def start(self, budget: float | None, spent_s: float = 0.0) -> None:
        """Processes may run from now on, and until the budget is used up."""
        self._stopped.clear()
        self.budget = budget
        self._until = None if budget is None else time.monotonic() - spent_s + budget

    def stop(self) -> None:
        """End every process that runs; none is started any more."""
        self._stopped.set()
        subprocesses.kill_leftovers(self.staging.scratch)

    @property
    def stopped(self) -> bool:
        """Whether processes were ended from outside: Ctrl-C."""
        return self._stopped.is_set()

    def give_up(self) -> None:
        """Raises LeftOut where nothing more may be begun, or be believed that was ended on the way."""
        if self._stopped.is_set():
            raise LeftOut("interrupted")
        if self._until is not None and time.monotonic() > self._until:
            raise LeftOut(self.over_budget)

    @property
    def over_budget(self) -> str:
        """Why a job was left out for want of time."""
        return f"the time budget of {self.budget or 0:g} s was used up"

    def _limit(self, stage: str) -> float:
        limit = self._share(stage, LIMIT_S[stage])
        return limit if self._until is None else min(limit, self._left_s() + GRACE_S)

    def _share(self, what: str, most: float) -> float:
        """What a hang may cost."""
        if self.budget is None or what not in SHARE:
            return most
        return min(most, max(LEAST_S, SHARE[what] * self.budget))

    def _left_s(self) -> float:
        return float("inf") if self._until is None else max(0.0, self._until - time.monotonic())

    def own_limit_s(self, stage: str) -> float:
        """What a process of the stage should bring its work to an end in, with what it has by then: one that
        is ended from outside brings nothing.
        """
        limit = self._share(stage, LIMIT_S[stage])
        return max(5.0, min(SAMPLING_SHARE * limit, self._left_s() - START_S))

    def build_limit_s(self) -> float:
        """What a compiler may take for one version."""
        return self._share("build", BUILD_LIMIT_S)

    def stage(
        self,
        stage: str,
        request: Mapping[str, Any],
        folder: Path,
        job: Job,
        env: Mapping[str, str] | None = None,
    ) -> Json:
        """Run a stage to its end. Raises LeftOut where it says that this machine cannot."""
        self.give_up()
        begun = time.monotonic()
        try:
            result = gpu_process.run_stage(stage, request, folder, timeout_s=self._limit(job.stage), env=env)
        finally:
            self._spans[job.stage].append((begun, time.monotonic()))
        self._believe(result.get("status") == "failed")
        if result.get("machine"):
            raise LeftOut(str(result.get("reason")))
        return result

    def program(
        self, argv: Sequence[str | Path], job: Job, log: Path, env: Mapping[str, str] | None = None
    ) -> ProcessResult:
        """Run a tool to its end."""
        self.give_up()
        begun = time.monotonic()
        try:
            environment = {**subprocesses.package_environment(), **(env or {})}
            ended = subprocesses.run(argv, timeout_s=self._limit(job.stage), log=log, env=environment)
        finally:
            self._spans[job.stage].append((begun, time.monotonic()))
        self._believe(not ended.ok)
        return ended

    def _believe(self, failed: bool) -> None:
        """What failed after Ctrl-C or past the budget was ended by us: nothing is known of the version."""
        if failed:
            self.give_up()

    def took(self, stage: str, begun: float) -> None:
        """Count what was not run by stage() or program(): compilers, the CPU model."""
        self._spans[stage].append((begun, time.monotonic()))

    def processes_s(self) -> dict[str, float]:
        """How long processes of each stage ran in this session; those side by side are counted once."""
        return {stage: round(_covered(spans), 3) for stage, spans in list(self._spans.items())}


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    covered, last = 0.0, float("-inf")
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, last))
        last = max(last, end)
    return covered
