"""Collecting counters: one ncu process for a batch of versions, then each version that is missing alone."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profiler.bundles.scratch import scratch_folder
from profiler.collect import gpu_process, ncu_command
from profiler.collect.failure_streak import FailureStreak, interleaved
from profiler.collect.gpu.messages import NCU_TARGET, CellRequest, CellResult, TargetRequest, TargetResult
from profiler.collect.gpu.ncu_target import UNLAUNCHED, range_name
from profiler.collect.jobs import JobContext, LeftOut
from profiler.collect.ncu_command import Ncu, NcuProblem
from profiler.collect.outcomes import CounterOutcome, NoResults, ReportEntry, VersionCounters
from profiler.collect.plan import Job
from profiler.collect.subprocesses import ProcessResult
from profiler.errors import UnreadableReport
from profiler.evidence import chip_metrics
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import NCU_DURATION
from profiler.reports import csv_export, file_format, redact

_TRIES = 5  # calls for one batch, each simpler than the one before


@dataclass(frozen=True)
class _Attempt:
    """How one ncu call finds the launches, and which metrics it collects."""

    metrics: tuple[str, ...]
    by_kernel: bool = True  # filter by function name as well as by range
    by_profiler: bool = False  # by cudaProfilerStart and Stop instead of NVTX ranges

    @property
    def words(self) -> str:
        """How the launches were found."""
        where = "cudaProfilerStart" if self.by_profiler else "NVTX range"
        return f"{where} and kernel name" if self.by_kernel else where


@dataclass(frozen=True)
class _NcuCall:
    """One ncu process that has ended."""

    ended: ProcessResult
    output: str
    report: Path  # may not exist
    result: TargetResult  # of the profiled program

    @property
    def cells(self) -> dict[str, CellResult]:
        """The cells of the profiled program, by version."""
        return {cell["version"]: cell for cell in self.result.get("cells", ())}


@dataclass(frozen=True)
class _Capture:
    """The counters of one batch."""

    results: dict[str, VersionCounters]
    reason: str | None = None  # why there are none
    reports: list[ReportEntry] = field(default_factory=list)


class CounterCollector:
    """Runs the capture jobs of one session; what one job learns about this ncu holds for the later ones."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._why_off = None if context.machine.ncu else "no ncu here"
        self._by_kernel, self._by_profiler = True, False
        self._refused: set[str] = set()  # metrics that this ncu does not take

    def collect(self, job: Job) -> CounterOutcome | NoResults:
        """Capture a batch in one process, then each version without counters once more, alone.

        What a time budget cuts off is named as `unfinished` beside what there is; going on does it.
        """
        context = self._context
        if not context.settings.counters or self._why_off:
            raise LeftOut(self._why_off or "counters were not requested")
        before = context.staging.outcomes().captures.get(job.key)
        unfinished = before.get("unfinished") if before else None
        names = context.right_versions(unfinished or job.versions, job.workload)
        if not names:
            return context.skip(job)
        outcome: CounterOutcome = {
            "stage": job.stage,
            "workload": job.workload,
            "versions": list(job.versions),
            "block": job.block,
            "status": "failed",
            "reason": None,
            "results": dict(before["results"]) if before else {},
            "reports": list(before.get("reports", ())) if before else [],
        }
        try:
            self._collect_all(job, names, outcome)
        except LeftOut as left_out:
            settled = [name for name in names if _is_settled(outcome, name)]
            if context.stopped or not settled:
                raise
            outcome["unfinished"] = [name for name in names if name not in settled]
            for name in outcome["unfinished"]:
                outcome["results"][name] = {"status": "skipped", "reason": str(left_out)}
        if any(result["status"] == "done" for result in outcome["results"].values()):
            outcome["status"] = "done"
        return outcome

    def _collect_all(self, job: Job, names: Sequence[str], outcome: CounterOutcome) -> None:
        """Add to the outcome, first in batches, then version by version."""
        missing, why = self._collect_batches(job, names, outcome)
        streak = FailureStreak()
        for name in interleaved(missing):
            if streak.why_no_more:
                outcome["results"][name] = {"status": "skipped", "reason": streak.why_no_more}
                continue
            self._add(outcome, job, self._capture(job, [name], self._context.folder(job, name)))
            result = outcome["results"][name]
            streak.add(name, result["status"], result["reason"])
        if missing:
            outcome["reason"] = f"captured separately: {', '.join(missing)} ({why})"

    def _collect_batches(
        self, job: Job, names: Sequence[str], outcome: CounterOutcome
    ) -> tuple[list[str], str]:
        """Capture all in one process, and those that it had no time for in the next.

        Returns the versions that are to be tried apart, and why.
        """
        if self._by_profiler and len(names) > 1:
            return list(names), "this ncu does not find NVTX ranges"
        waiting, part, reason = list(names), 0, None
        while waiting:
            folder = self._context.folder(job, f"part{part}" if part else "")
            capture = self._capture(job, waiting, folder)
            self._add(outcome, job, capture)
            reason = reason or capture.reason
            unlaunched = [
                name
                for name in waiting
                if name in capture.results and capture.results[name]["status"] == UNLAUNCHED
            ]
            if len(unlaunched) == len(waiting):
                break
            waiting, part = unlaunched, part + 1
        missing = [name for name in names if not _is_settled(outcome, name)]
        return (missing if len(names) > 1 else []), reason or "the batch brought nothing of it"

    def _add(self, outcome: CounterOutcome, job: Job, capture: _Capture) -> None:
        """Add the results and reports of one more process to the outcome."""
        outcome["results"] |= capture.results
        outcome["reason"] = capture.reason
        if capture.reports:
            outcome["reports"] = [*outcome.get("reports", ()), *capture.reports]
            outcome["passes"] = self._context.machine.passes.get(job.stage)
            outcome["refused"] = sorted(self._refused)

    # ------------------------------------------------------------ one batch

    def _capture(self, job: Job, names: Sequence[str], folder: Path) -> _Capture:
        """Call ncu, in simpler ways until there is a report, and read the report."""
        ncu = self._context.machine.ncu
        assert ncu
        folder.mkdir(parents=True, exist_ok=True)
        metrics = self._metrics(ncu, job.stage)
        attempt = _Attempt(
            tuple(name for name in metrics if name not in self._refused),
            self._by_kernel,
            self._by_profiler and len(names) == 1,
        )
        for _ in range(_TRIES):
            call = self._call(ncu, job, names, folder, attempt)
            if call.report.is_file():
                self._by_kernel, self._by_profiler = attempt.by_kernel, attempt.by_profiler
                self._refused |= set(metrics) - set(attempt.metrics)
                return self._keep(ncu, job, names, call, attempt)
            problem = ncu_command.find_problem(call.output, call.ended.code)
            if problem and not problem.usable:
                self._why_off = problem.reason
                missing = f"latency is measured, counters are not: {problem.reason}"
                self._context.machine.missing.append(missing)
                raise LeftOut(problem.reason)
            simpler = _simpler(attempt, call, alone=len(names) == 1)
            if simpler is None:
                break
            attempt = simpler
        return _without_report(names, call, problem)

    def _metrics(self, ncu: Ncu, tier: str) -> list[str]:
        """The metrics of the tier as this ncu has them."""
        chip = self._context.machine.chip or "sm_90"
        table = load_metrics()
        requested = chip_metrics.names_to_collect(table, chip, tier)
        resolved, _ = ncu_command.resolve_metrics(
            requested, table, chip, ncu_command.known_metrics(ncu, chip)
        )
        return list(resolved)

    def _call(self, ncu: Ncu, job: Job, names: Sequence[str], folder: Path, attempt: _Attempt) -> _NcuCall:
        context = self._context
        report = folder / "report.ncu-rep"
        report.unlink(missing_ok=True)  # left by an earlier attempt or a killed session
        sizes = context.selection.workloads[job.workload].sizes()
        request = TargetRequest(
            versions=tuple(context.version_code(name) for name in names),
            # The newest version first: if ncu turns out slow, the oldest ones are left out.
            cells=tuple(CellRequest(name, sizes) for name in reversed(names)),
            setup=context.setup,
            profiler=attempt.by_profiler,
            max_seconds=context.limits.of_work_within(job.stage),
        )
        program = gpu_process.prepare(NCU_TARGET, request, folder)
        kernels = [kernel for name in names for kernel in context.kernels.get(name, ("",))]
        stock = ncu_command.known_sections(ncu) if job.stage == "full" else None
        ncu_request = ncu_command.NcuRequest(
            report=report,
            metrics=attempt.metrics,
            ranges=tuple(range_name(name, job.workload) for name in names),
            # A version whose kernel names are unknown would be filtered out by the names of the others.
            kernels=tuple(kernels) if attempt.by_kernel and "" not in kernels else (),
            tier=job.stage,
            clock_control=context.settings.clock_control,
            cache_control=context.settings.cache_control,
            section_folder=ncu_command.write_section(folder / "sections", attempt.metrics),
            sections=tuple(
                section for section in ncu_command.FULL_SECTIONS if stock is None or section in stock
            ),
            by_profiler=attempt.by_profiler,
        )
        log = folder / "ncu.log"
        ended = context.run_tool(ncu_command.command_line(ncu, ncu_request, program.argv), job, log)
        output = log.read_text(encoding="utf-8", errors="replace")
        return _NcuCall(ended, output, report, program.result(ended))

    def _keep(self, ncu: Ncu, job: Job, names: Sequence[str], call: _NcuCall, attempt: _Attempt) -> _Capture:
        """Find the launches of each version, redact the report, and keep it."""
        context = self._context
        try:
            launches = read_launches(ncu, call.report)
            results = {
                name: self._version_counters(job, name, launches, call, alone=len(names) == 1)
                for name in names
            }
            clean = call.report
            if not context.settings.keep_session:
                clean = _redacted(ncu, call.report, len(launches))
        except UnreadableReport as error:
            return _failed(names, " ".join(str(error).split()), call)
        done = [name for name in names if results[name]["status"] == "done"]
        if not done:  # no launch in it is of any version
            return _Capture(results, results[names[0]]["reason"])
        digest, size, path = context.staging.keep_report(clean)
        for name in done:
            results[name]["report"] = digest
        entry: ReportEntry = {
            "sha256": digest,
            "size": size,
            "path": path.name,
            "tier": job.stage,
            "workload": job.workload,
            "versions": done,
            "metrics": len(attempt.metrics),
            "found_by": attempt.words,
        }
        return _Capture(results, None, [entry])

    def _version_counters(
        self, job: Job, name: str, launches: Sequence[Launch], call: _NcuCall, *, alone: bool
    ) -> VersionCounters:
        """The version's launches in the report, or why none can be used."""
        cell = call.cells.get(name)
        if cell and cell["status"] == UNLAUNCHED:
            return {"status": UNLAUNCHED, "reason": "no time was left for it in this process"}
        kernels = self._context.kernels.get(name, ())
        roles = dict(self._context.selection.versions[name].roles)
        if not roles and len(kernels) == 1:
            roles = {kernels[0]: "main"}
        inside = range_name(name, job.workload)
        if alone and launches and not any(launch.nvtx for launch in launches):
            # Found by cudaProfilerStart and Stop: every launch in the report lies between them.
            launches = [replace(launch, nvtx=(inside,)) for launch in launches]
        matched = launches_of_cell(launches, inside, kernels, roles)
        program_reason = cell["reason"] if cell else None
        reason = program_reason or matched.reason
        return {
            "status": "failed" if reason else "done",
            "reason": reason,
            "told": bool(program_reason),
            "ordinals": list(matched.ordinals),
            "parts": list(matched.parts),
        }


def _without_report(names: Sequence[str], call: _NcuCall, problem: NcuProblem | None) -> _Capture:
    """The capture of a batch for which no call wrote a report."""
    reason = f"ncu {call.ended.description}"
    if problem and call.ended.kind == "exited":
        reason = problem.reason
    if not call.cells and call.ended.ok and call.result["status"] != "done":
        reason = f"{reason}; the program: {call.result['reason']}"
    return _failed(names, reason, call)


def _failed(names: Sequence[str], reason: str, call: _NcuCall) -> _Capture:
    """A capture without counters, each version with the reason that the program gave, else the batch's."""
    results: dict[str, VersionCounters] = {}
    for name in names:
        own_reason = call.cells[name]["reason"] if name in call.cells else None
        results[name] = {"status": "failed", "reason": own_reason or reason, "told": bool(own_reason)}
    return _Capture(results, reason)


def _is_settled(outcome: CounterOutcome, name: str) -> bool:
    """Whether another call would change nothing: there are counters, or the program said why not."""
    result = outcome["results"].get(name)
    return result is not None and (result["status"] == "done" or bool(result.get("told")))


def _simpler(attempt: _Attempt, call: _NcuCall, *, alone: bool) -> _Attempt | None:
    """The attempt after a call that wrote no report; None: nothing simpler would help."""
    if call.ended.kind != "exited":
        return None
    if refused := ncu_command.refused_metrics(call.output, attempt.metrics):
        return replace(attempt, metrics=tuple(name for name in attempt.metrics if name not in refused))
    if ncu_command.NO_KERNELS in call.output:
        if call.result["status"] != "done":  # nothing was launched, for the reason that the program gives
            return None
        if attempt.by_kernel:
            return replace(attempt, by_kernel=False)
        return replace(attempt, by_profiler=True) if alone and not attempt.by_profiler else None
    derived = [name for name in attempt.metrics if name in ncu_command.DERIVED]
    errors = [line for line in call.output.splitlines() if line.startswith("==ERROR==")]
    if derived and any("ection" in line for line in errors):
        return replace(attempt, metrics=tuple(name for name in attempt.metrics if name not in derived))
    return None


def _redacted(ncu: Ncu, report: Path, launches: int) -> Path:
    """The report without host, user and paths, checked to be readable. Raises UnreadableReport."""
    clean = report.with_name("clean.ncu-rep")
    redact.redact_report(report, clean, redact.private_words())
    if len(read_launches(ncu, clean)) != launches:
        raise UnreadableReport(f"{clean} lost launches when its session was overwritten")
    return clean


# ---------------------------------------------------------------- reading the report

_READ_S = 300


@dataclass(frozen=True)
class CellLaunches:
    """The launches of one cell in a report."""

    ordinals: tuple[int, ...]
    parts: tuple[str, ...]  # one a launch: the kernel's role, or its name, and its number within the cell
    reason: str | None  # why they cannot be used; None: they can be


def read_launches(ncu: Ncu, report: Path) -> list[Launch]:
    """The launches of a report as ncu itself prints them. Raises UnreadableReport.

    The report's framing is checked first; the reading library need not be installed.
    """
    declared = file_format.check_framing(report).declared
    with scratch_folder() as folder:
        csv = folder / "raw.csv"
        with csv.open("wb") as file:
            try:
                done = subprocess.run(
                    ncu_command.import_command(ncu, report),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.PIPE,
                    timeout=_READ_S,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise UnreadableReport(f"{report}: ncu cannot read it again: {error}") from error
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise UnreadableReport(f"{report}: ncu cannot read it again: {' '.join(last) or done.returncode}")
        launches = list(csv_export.read_csv(csv).launches)
    if len(launches) != declared:
        raise UnreadableReport(f"{report}: {len(launches)} of {declared} launches can be read")
    return launches


def launches_of_cell(
    launches: Sequence[Launch],
    range_name: str,
    kernels: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
) -> CellLaunches:
    """The launches in a cell's NVTX range; they cannot be used where one of `kernels` is not among them."""
    inside = [launch for launch in launches if range_name in launch.nvtx]
    if not inside:
        names = sorted({launch.base_name for launch in launches})
        holds = f"; it holds {', '.join(names[:3])}" if names else ""
        return CellLaunches((), (), f"the report holds no launch in the range {range_name}{holds}")
    names = sorted({_function_name(launch) for launch in inside})
    if kernels and not set(kernels) & set(names):
        missing = " or ".join(sorted(set(kernels)))
        reason = f"the kernel {missing} is not in the report: {', '.join(names[:3])} is"
        return CellLaunches((), (), reason)
    bad = next((launch for launch in inside if not _is_measured(launch)), None)
    why = f"the counters of {bad.base_name} came back as NaN or not at all" if bad else None
    ordinals = tuple(launch.ordinal for launch in inside)
    return CellLaunches(ordinals, tuple(_part_names(inside, roles or {})), why)


def _is_measured(launch: Launch) -> bool:
    duration = launch.values.number(NCU_DURATION)
    return duration is not None and math.isfinite(duration) and duration > 0


def _function_name(launch: Launch) -> str:
    """The kernel's name without its namespaces."""
    return launch.base_name.rpartition("::")[2]


def _part_names(launches: Sequence[Launch], roles: Mapping[str, str]) -> list[str]:
    """The role where the catalogue gives one, else the function's name; the second of a name is `name#1`."""
    times: dict[str, int] = {}
    parts = []
    for launch in launches:
        name = _function_name(launch)
        part = roles.get(name) or name
        number = times.get(part, 0)
        times[part] = number + 1
        parts.append(part if not number else f"{part}#{number}")
    return parts
