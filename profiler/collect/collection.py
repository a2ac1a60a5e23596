"""How a lineage is measured on this machine: jobs in processes of their own, each kept once it has ended."""

from __future__ import annotations

import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from profiler.build import FailedBuild, function_name, resources, static_facts
from profiler.bundles import Result
from profiler.bundles.run_json import dump_result
from profiler.catalog import Catalog, Version, source_sha256
from profiler.collect import (
    bundle_files,
    check_and_time,
    plan,
    run_inputs,
    sanitizer,
    subprocesses,
)
from profiler.collect.aa_sessions import AASessions
from profiler.collect.counters import CounterCollector
from profiler.collect.jobs import JobContext, Json, LeftOut
from profiler.collect.machine import Machine
from profiler.collect.plan import Job, Pace
from profiler.collect.settings import Settings
from profiler.collect.staging import Staging
from profiler.emulator import cpu_check, facts
from profiler.errors import CannotJudge, ProfilerError

Progress = Callable[[int, int, str, float | None], None]  # jobs ended, of how many, what, seconds left

BUILD = "build"  # what compilers took, among the stages


class Collection:
    """One run at work: what is planned, what has ended, and how each job is done."""

    def __init__(
        self,
        staging: Staging,
        catalog: Catalog,
        settings: Settings,
        machine: Machine,
        progress: Progress | None = None,
    ) -> None:
        self.staging, self.catalog, self.settings, self.machine = staging, catalog, settings, machine
        self.context = JobContext(staging, catalog, settings, machine)
        self.left_out: dict[str, str] = {}  # job key -> why, for those that a resumed run would do
        self.pace = Pace()
        self.parallel = {
            "check": check_and_time.parallel_checks(machine.gpu)
        }  # how many of a stage side by side
        self.on_progress = progress or (lambda _done, _all, _what, _left: None)
        self.between_jobs: Callable[[], None] = lambda: None  # called when jobs have ended and none runs
        self._counters = CounterCollector(self.context)
        self._started = time.monotonic()
        begun = datetime.now(UTC).isoformat()
        self._session = f"{begun.replace(':', '').replace('+', 'Z')}-{uuid.uuid4().hex[:8]}"
        self.planned = self._plan()
        self._aa_sessions = AASessions(self.context, self.planned)

    def _plan(self) -> list[Job]:
        settings = self.settings
        takes = {
            label: [
                name
                for name, version in self.context.versions.items()
                if workload.sizes().get("dtype", version.dtype) in version.dtypes
                and workload.sizes().get("head_dim", version.head_dims[0]) in version.head_dims
            ]
            for label, workload in self.context.workloads.items()
        }
        if settings.pairs:
            return plan.plan_aa_sessions(
                list(self.context.versions),
                list(self.context.workloads),
                takes=takes,
                pairs=settings.pairs,
                rounds=settings.rounds,
                samples=settings.samples,
            )
        return plan.plan_jobs(
            list(self.context.versions),
            list(self.context.workloads),
            takes=takes,
            full=settings.full if settings.counters else (),
            full_on=settings.full_on,
            blocks=check_and_time.block_count(settings.rounds, settings.processes),
            rounds=settings.rounds,
            samples=settings.samples,
            passes={tier: self.context.passes(tier) for tier in ("lean", "full")},
            sanitize=settings.sanitize,
            model=settings.model,
            call_s={
                (name, label): self.context.problem.flops(workload) / plan.FLOPS
                for label, workload in self.context.workloads.items()
                for name in takes[label]
            },
        )

    # ------------------------------------------------------------ the work

    def run_jobs(self, budget: float | None = None, spent_s: float = 0.0) -> None:
        """Do what has not ended. Ctrl-C and a kill at any point leave what has ended.

        spent_s: of the budget, before this was called. Raises ProfilerError where the run was begun on
        another GPU.
        """
        run_inputs.refuse_another_gpu(self.staging, self.machine)
        self._started = time.monotonic() - spent_s
        self.context.start(budget, spent_s)
        subprocesses.kill_leftovers(self.staging.scratch)
        self.staging.drop_damaged()
        ended = self.staging.outcomes()
        todo = [job for job in self.planned if job.key not in ended or ended[job.key].get("unfinished")]
        for job in self.planned:
            if seconds := (ended.get(job.key) or {}).get("wall_s"):
                self.pace.learn(job, float(seconds))
        self._note()
        try:
            with subprocesses.kill_on_exit(self.staging.scratch):
                if todo:
                    self.build()
                    self._work_off(todo, budget)
        finally:
            self._note()
        self.on_progress(len(self.planned), len(self.planned), "", 0.0)

    def _work_off(self, todo: list[Job], budget: float | None) -> None:
        total = len(self.planned)
        while todo:
            batch = plan.next_batch(todo, self.parallel)
            todo = todo[len(batch) :]
            now = []
            for job in batch:
                if self.machine.gpu is None and job.stage != "model":
                    self.left_out[job.key] = "no GPU here"
                elif self._aa_sessions.has(job) or plan.fits(job, self.pace, self._spent_s(), budget):
                    now.append(job)
                else:
                    self.left_out[job.key] = self.context.over_budget
            left = self.pace.left([*now, *todo], self.parallel)
            if now:
                self.on_progress(total - len(todo) - len(batch), total, now[0].words, left)
            self._side_by_side(now)
            self._note()
            self.between_jobs()

    def _spent_s(self) -> float:
        return time.monotonic() - self._started

    def _side_by_side(self, jobs: Sequence[Job]) -> None:
        with ThreadPoolExecutor(max(1, len(jobs))) as pool:
            try:
                list(pool.map(self._do, jobs))
            except BaseException:  # Ctrl-C: nobody waits for the end of what runs
                self.context.stop()
                raise

    def _do(self, job: Job) -> None:
        begun = time.monotonic()
        try:
            outcome = self._outcome(job)
        except LeftOut as why:
            self.left_out[job.key] = str(why)
            return
        except ProfilerError as error:
            outcome = {"status": "failed", "reason": " ".join(str(error).split())}
        except OSError:
            raise  # a full disk is no version's fault
        except Exception as error:  # a mistake of ours costs the job that met it, and not those after it
            traceback.print_exc()
            outcome = {"status": "failed", "reason": f"an error of profiler's own: {error!r}"}
        seconds = float(outcome.get("wall_s", time.monotonic() - begun))
        if outcome["status"] != "skipped":  # what did not run says nothing of how long it takes
            self.pace.learn(job, seconds)
        self.staging.record(
            job.key,
            {
                "stage": job.stage,
                "workload": job.workload,
                "versions": list(job.versions),
                "block": job.block,
                "wall_s": round(seconds, 3),
                "results": {},
                **outcome,
            },
        )

    def _outcome(self, job: Job) -> Json:
        if job.stage == "check":
            return check_and_time.check_version(self.context, job)
        if job.stage == "time" and self.settings.pairs:
            return self._aa_sessions.outcome(job)
        if job.stage == "time":
            return check_and_time.time_group(self.context, job)
        if job.stage == "sanitize":
            return sanitizer.sanitize(self.context, job)
        if job.stage == "model":
            return self._model(job)
        return self._counters.collect(job)

    # ------------------------------------------------------------ what a session says

    def session_note(self) -> Json:
        """What is known of this session so far: it is written after every job, and so outlives a kill."""
        return {
            "wall_s": round(self._spent_s(), 3),
            "processes_s": self.context.processes_s(),
            "machine": self.machine.facts(),
            "missing": list(dict.fromkeys(self.machine.missing)),
            "left_out": self.left_out,
        }

    def _note(self) -> None:
        self.staging.write_session(self._session, self.session_note())

    # ------------------------------------------------------------ building

    def build(self) -> None:
        """Build for this GPU and keep the static facts; what does not compile goes no further."""
        begun = time.monotonic()
        self.on_progress(0, len(self.planned), "build", None)
        try:
            for arch, versions in self._by_arch().items():
                limit_s = self.context.build_limit_s()
                for found in resources.version_resources(
                    self.catalog,
                    versions,
                    arch and [arch],
                    launch_configs=cpu_check.launch_configs,
                    limit_s=limit_s,
                ):
                    self._keep_static(found)
        except CannotJudge as error:
            self.context.not_built[""] = f"nothing is built: {error}"
            self.machine.missing.append(self.context.not_built[""])
        finally:
            self.context.took(BUILD, begun)

    def _by_arch(self) -> dict[str | None, list[Version]]:
        """The architecture that each version is compiled for here; without a GPU its own ones (None)."""
        found: dict[str | None, list[Version]] = {}
        chip = self.machine.chip
        for version in self.context.versions.values():
            if not version.buildable:
                continue
            arch = next((one for one in (f"{chip}a", chip) if one and version.supports(one)), None)
            if chip is not None and arch is None:
                needs = ", ".join(version.arches)
                self.context.not_built[version.id] = f"this GPU is {chip}; it is written for {needs}"
            else:
                found.setdefault(arch, []).append(version)
        return found

    def _keep_static(self, found: resources.VersionResources | FailedBuild) -> None:
        version = self.context.versions[found.version if isinstance(found, FailedBuild) else found.version.id]
        about: dict[str, Any] = {
            "family": version.family,
            "version": version.id,
            "source_sha256": source_sha256(self.catalog, version),
            "flags": version.flags,
        }
        if isinstance(found, FailedBuild):
            self.context.not_built[version.id] = f"it does not compile: {found.error}"
            results = [Result(**about, status="failed", reason=found.error)]
        else:
            self.context.libraries[version.id] = str(found.built.library)
            names = {function_name(one.function) for one in found.built.resources}
            self.context.kernels[version.id] = tuple(sorted(names))
            by_head_dim: dict[int | None, list[resources.FunctionResources]] = {}
            for function in found.functions:
                by_head_dim.setdefault(function.head_dim, []).append(function)
            results = [
                Result(
                    **about,
                    workload=None if head_dim is None else f"head dim {head_dim}",
                    problem={} if head_dim is None else {"head_dim": head_dim, "dtype": version.dtype},
                    facts=tuple(static_facts(function) for function in functions),
                )
                for head_dim, functions in by_head_dim.items()
            ]
            self.machine.missing += found.missing
            code, lost = bundle_files.machine_code([found.built], self.catalog.folder)
            for path, content in code.items():
                self.staging.attach(path, content)
            self.machine.missing += lost
        self.staging.record(
            f"static-{version.id}",
            {
                "stage": "static",
                "status": results[0].status if results else "skipped",
                "reason": None,
                "facts": [dump_result(one) for one in results],
            },
        )

    # ------------------------------------------------------------ the CPU model

    def _model(self, job: Job) -> Json:
        self.context.give_up()
        begun = time.monotonic()
        version = self.context.versions[job.versions[0]]
        checked = next(cpu_check.check_versions([version], self.context.problem), None)
        self.context.took(job.stage, begun)
        if checked is None or not checked.runs:
            return {"status": "skipped", "reason": str(checked.error) if checked else "it has no source"}
        by_workload: dict[Any, list[cpu_check.CheckRun]] = {}
        for cell in checked.runs:
            by_workload.setdefault(cell.workload, []).append(cell)
        for path, content in bundle_files.line_tables([checked]).items():
            self.staging.attach(path, content)
        return {
            "status": "done",
            "reason": None,
            "facts": [dump_result(self._modelled(version, *one)) for one in by_workload.items()],
        }

    def _modelled(self, version: Version, workload: Any, cells: Sequence[cpu_check.CheckRun]) -> Result:
        status, why = facts.result_status(cells)
        return Result(
            version.family,
            version.id,
            workload=workload.label,
            problem=workload.sizes(),
            status=status,
            reason=why,
            source_sha256=source_sha256(self.catalog, version),
            flags=version.flags,
            check=facts.check_outcome(cells, self.context.problem),
            facts=(facts.modelled_facts(cells),),
        )
