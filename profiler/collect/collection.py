"""Measuring a lineage on this machine: jobs run in processes of their own, and each outcome is recorded."""

from __future__ import annotations

import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from profiler.build.kernel_names import function_name
from profiler.build.library import FailedBuild
from profiler.build.resources import VersionResources, version_resources
from profiler.bundles.run_json import dump_result
from profiler.catalog.version import Version
from profiler.collect import bundle_files, check_and_time, cpu_results, plan, sanitizer, subprocesses
from profiler.collect.aa_sessions import AASessions
from profiler.collect.counters import CounterCollector
from profiler.collect.jobs import JobContext, LeftOut
from profiler.collect.machine import Machine
from profiler.collect.outcomes import (
    JobOutcome,
    ModelOutcome,
    NoResults,
    SessionNote,
    StaticOutcome,
    envelope,
)
from profiler.collect.plan import Job, Pace
from profiler.collect.run_inputs import UnfinishedRun, refuse_another_gpu
from profiler.emulator import cpu_check
from profiler.errors import CannotJudge, ProfilerError

BUILD = "build"  # the stage under which compile time is counted


class Listener:
    """Callbacks for the progress of a collection; override those of interest."""

    def planned(self, collection: Collection) -> None:
        """The collection is about to begin."""

    def progress(self, done: int, total: int, what: str, left_s: float | None) -> None:
        """`done` of `total` jobs have ended, and `what` runs now. left_s: seconds that the rest may take."""

    def ended(self, collection: Collection) -> None:
        """Every job has been tried; the logs of the processes are still in the staging folder."""

    def interrupted(self, collection: Collection) -> None:
        """The collection was interrupted, and can be resumed."""


class Collection:
    """A run that is being measured: its plan, what was left out, and how each job is run."""

    def __init__(self, run: UnfinishedRun, machine: Machine, listener: Listener | None = None) -> None:
        self.staging, self.catalog, self.inputs, self.machine = run.staging, run.catalog, run.inputs, machine
        self.settings = run.inputs.settings
        self.context = JobContext(run.staging, run.catalog, self.settings, machine)
        self.listener = listener or Listener()
        self.left_out: dict[str, str] = {}  # job key -> why; a resumed run would do these jobs
        self.pace = Pace()
        self.parallel = check_and_time.parallel_jobs(machine.gpu)
        self.between_jobs: Callable[[], None] = lambda: None  # called when jobs have ended and none runs
        self.planned = plan.plan_run(self.settings, self.context.selection, machine.passes)
        self._counters = CounterCollector(self.context)
        self._aa_sessions = AASessions(self.context, self.planned)
        self._started = time.monotonic()
        begun = datetime.now(UTC).isoformat().replace(":", "").replace("+", "Z")
        self._session = f"{begun}-{uuid.uuid4().hex[:8]}"

    # ------------------------------------------------------------ jobs

    def run_jobs(self, budget_s: float | None = None, spent_s: float = 0.0) -> None:
        """Run the jobs that have not ended. Ctrl-C or a kill at any point keeps what has ended.

        spent_s: seconds of the budget used before this call. Raises ProfilerError where the run was begun on
        another GPU.
        """
        refuse_another_gpu(self.staging, self.machine)
        self._started = time.monotonic() - spent_s
        self.context.start(budget_s, spent_s)
        subprocesses.kill_leftovers(self.staging.scratch)
        self.staging.forget_damaged()
        todo = self._jobs_to_do()
        self._write_session()
        try:
            with subprocesses.kill_on_exit(self.staging.scratch):
                if todo:
                    self.build()
                    self._run_batches(todo, budget_s)
        finally:
            self._write_session()
        self.listener.progress(len(self.planned), len(self.planned), "", 0.0)

    def _jobs_to_do(self) -> list[Job]:
        """The jobs that have not ended, or not for every version; those that have teach the pace."""
        outcomes = self.staging.outcomes()
        todo = []
        for job in self.planned:
            outcome = outcomes.get(job.key)
            capture = outcomes.captures.get(job.key)
            if outcome is None or (capture and capture.get("unfinished")):
                todo.append(job)
            if outcome and (seconds := outcome.get("wall_s")):
                self.pace.learn(job, float(seconds))
        return todo

    def _run_batches(self, todo: list[Job], budget_s: float | None) -> None:
        total = len(self.planned)
        while todo:
            batch = plan.next_batch(todo, self.parallel)
            todo = todo[len(batch) :]
            now = []
            for job in batch:
                if self.machine.gpu is None and job.stage != "model":
                    self.left_out[job.key] = "no GPU here"
                elif self._aa_sessions.has(job) or plan.fits(job, self.pace, self._spent_s(), budget_s):
                    now.append(job)
                else:
                    self.left_out[job.key] = self.context.limits.used_up_reason
            left_s = self.pace.left([*now, *todo], self.parallel)
            if now:
                self.listener.progress(total - len(todo) - len(batch), total, now[0].words, left_s)
            self._run_side_by_side(now)
            self._write_session()
            self.between_jobs()

    def _run_side_by_side(self, jobs: Sequence[Job]) -> None:
        with ThreadPoolExecutor(max(1, len(jobs))) as pool:
            try:
                list(pool.map(self.run_job, jobs))
            except BaseException:  # Ctrl-C: do not wait for the processes to end
                self.context.stop()
                raise

    def run_job(self, job: Job) -> None:
        """Run one job and record its outcome, or note why it was left out."""
        begun = time.monotonic()
        try:
            outcome = self._outcome(job)
        except LeftOut as why:
            self.left_out[job.key] = str(why)
            return
        except ProfilerError as error:
            outcome = self._failure(job, " ".join(str(error).split()))
        except OSError:
            raise  # a full disk is no version's fault
        except Exception as error:  # a mistake of ours costs the job that met it, not the ones after it
            traceback.print_exc()
            outcome = self._failure(job, f"an error of profiler's own: {error!r}")
        seconds = outcome.get("wall_s", time.monotonic() - begun)
        if outcome["status"] != "skipped":  # what did not run says nothing about how long it takes
            self.pace.learn(job, seconds)
        outcome["wall_s"] = round(seconds, 3)
        self.staging.record(job.key, outcome)

    def _outcome(self, job: Job) -> JobOutcome:
        if job.stage == "check":
            return check_and_time.check_version(self.context, job)
        if job.stage == "time" and self.settings.pairs:
            return self._aa_sessions.outcome(job)
        if job.stage == "time":
            return check_and_time.time_block(self.context, job)
        if job.stage == "sanitize":
            return sanitizer.sanitize(self.context, job)
        if job.stage == "model":
            return self._model(job)
        return self._counters.collect(job)

    @staticmethod
    def _failure(job: Job, reason: str) -> JobOutcome:
        return {**envelope(job), "status": "failed", "reason": reason, "results": {}}

    # ------------------------------------------------------------ the note of a session

    def session_note(self) -> SessionNote:
        """The note of this session so far."""
        return {
            "wall_s": round(self._spent_s(), 3),
            "processes_s": self.context.processes_s(),
            "machine": self.machine.facts(),
            "missing": list(dict.fromkeys(self.machine.missing)),
            "left_out": self.left_out,
        }

    def _write_session(self) -> None:
        """Write the note of this session; called after every job, so that it survives a kill."""
        self.staging.write_session(self._session, self.session_note())

    def _spent_s(self) -> float:
        return time.monotonic() - self._started

    # ------------------------------------------------------------ building

    def build(self) -> None:
        """Build for this GPU and record the static facts; a version that does not compile is not measured."""
        begun = time.monotonic()
        self.listener.progress(0, len(self.planned), "build", None)
        try:
            for arch, versions in self._by_arch().items():
                for built in version_resources(
                    self.catalog,
                    versions,
                    arch and [arch],
                    launch_configs=cpu_check.launch_configs,
                    limit_s=self.context.limits.of_build(),
                ):
                    if isinstance(built, FailedBuild):
                        self._keep_failed_build(built)
                    else:
                        self._keep_build(built)
        except CannotJudge as error:
            self.context.cannot_build = f"nothing is built: {error}"
            self.machine.missing.append(self.context.cannot_build)
        finally:
            self.context.count(BUILD, begun)

    def _by_arch(self) -> dict[str | None, list[Version]]:
        """The versions by the architecture to compile for; without a GPU None: those that each one names."""
        by_arch: dict[str | None, list[Version]] = {}
        chip = self.machine.chip
        for version in self.context.selection.versions.values():
            if not version.buildable:
                continue
            candidates = (f"{chip}a", chip) if chip else ()
            arch = next((name for name in candidates if version.supports(name)), None)
            if chip is not None and arch is None:
                needs = ", ".join(version.arches)
                self.context.not_built[version.id] = f"this GPU is {chip}; it is written for {needs}"
            else:
                by_arch.setdefault(arch, []).append(version)
        return by_arch

    def _keep_failed_build(self, failed: FailedBuild) -> None:
        self.context.not_built[failed.version] = f"it does not compile: {failed.error}"
        version = self.context.selection.versions[failed.version]
        result = cpu_results.failed_result(self.catalog, version, failed.error)
        self._record_static(failed.version, "failed", [dump_result(result)])

    def _keep_build(self, built: VersionResources) -> None:
        name = built.version.id
        self.context.libraries[name] = str(built.built.library)
        functions = {function_name(usage.function) for usage in built.built.resources}
        self.context.kernels[name] = tuple(sorted(functions))
        self.machine.missing += built.missing
        contents, problems = bundle_files.machine_code([built.built], self.catalog.folder)
        for path, content in contents.items():
            self.staging.attach(path, content)
        self.machine.missing += problems
        results = cpu_results.static_results(self.catalog, built)
        self._record_static(
            name, "done" if results else "skipped", [dump_result(result) for result in results]
        )

    def _record_static(self, name: str, status: str, results: list[dict[str, object]]) -> None:
        outcome: StaticOutcome = {"stage": "static", "status": status, "reason": None, "facts": results}
        self.staging.record(f"static-{name}", outcome)

    # ------------------------------------------------------------ the CPU model

    def _model(self, job: Job) -> ModelOutcome | NoResults:
        self.context.give_up_if_over()
        begun = time.monotonic()
        problem = self.context.selection.problem
        version = self.context.selection.versions[job.versions[0]]
        check = next(cpu_check.check_versions([version], problem), None)
        self.context.count(job.stage, begun)
        if check is None or not check.runs:
            reason = str(check.error) if check else "it has no source"
            return {**envelope(job), "status": "skipped", "reason": reason, "results": {}}
        for path, content in bundle_files.line_tables([check]).items():
            self.staging.attach(path, content)
        results = cpu_results.modelled_results(self.catalog, version, check, problem)
        if check.error:  # of one workload: the results are of the others
            results.insert(0, cpu_results.failed_result(self.catalog, version, str(check.error)))
        return {
            **envelope(job),
            "status": "done",
            "reason": None,
            "facts": [dump_result(result) for result in results],
        }
