"""How counters are taken: one ncu process a batch, then each version that is missing by itself."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profiler.collect import gpu_process, ncu_command
from profiler.collect.failure_streak import FailureStreak, interleaved
from profiler.collect.gpu.ncu_target import UNLAUNCHED, range_name
from profiler.collect.jobs import JobContext, Json, LeftOut
from profiler.collect.ncu_command import Ncu
from profiler.collect.plan import Job
from profiler.collect.subprocesses import ProcessResult
from profiler.errors import UnreadableReport
from profiler.evidence import NCU_DURATION, Launch, chip_metrics, metric_table
from profiler.reports import csv_export, file_format, redact

_TRIES = 5  # calls for one batch, each simpler than the one before


@dataclass(frozen=True)
class _Attempt:
    """How one call finds the launches, and what it asks of them."""

    metrics: tuple[str, ...]
    by_kernel: bool = True  # filter by function name as well as by range
    by_profiler: bool = False  # by cudaProfilerStart and Stop instead of NVTX ranges

    @property
    def words(self) -> str:
        """How the launches were found."""
        where = "cudaProfilerStart" if self.by_profiler else "NVTX range"
        return f"{where} and kernel name" if self.by_kernel else where


class CounterCollector:
    """The capture jobs of one session; what one of them learns of this ncu holds for those after it."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._off = None if context.machine.ncu else "no ncu here"
        self._by_kernel, self._by_profiler = True, False
        self._refused: set[str] = set()

    def collect(self, job: Job) -> Json:
        """One batch in one process; each version that it brought nothing of once more, by itself.

        What a time budget cuts off is named as `unfinished` beside what there is; going on does it.
        """
        context = self._context
        if not context.settings.counters or self._off:
            raise LeftOut(self._off or "counters were not asked for")
        before = context.staging.outcomes().get(job.key, {})
        names = context.right(before.get("unfinished") or job.versions, job.workload)
        if not names:
            return context.nobody(job)
        found: Json = {"results": dict(before.get("results", {})), "reports": list(before.get("reports", ()))}
        try:
            again, why = self._batches(job, names, found)
            alike = FailureStreak()
            for name in interleaved(again):
                if alike.words:
                    found["results"][name] = {"status": "skipped", "reason": alike.words}
                    continue
                _add(found, self._ncu(job, [name], context.folder(job, name)))
                alike.see(name, found["results"][name])
            if again:
                found["reason"] = f"captured by itself: {', '.join(again)} ({why})"
        except LeftOut as left:
            settled = [name for name in names if _settled(found["results"].get(name, {}))]
            if context.stopped or not settled:
                raise
            found["unfinished"] = [name for name in names if name not in settled]
            left_out = {"status": "skipped", "reason": str(left)}
            found["results"] |= dict.fromkeys(found["unfinished"], left_out)
        done = any(one["status"] == "done" for one in found["results"].values())
        return {"reason": None, **found, "status": "done" if done else "failed"}

    def _batches(self, job: Job, names: Sequence[str], found: Json) -> tuple[list[str], str]:
        """Together, and what no time was left for in one process together in the next; who is to be tried
        apart, and why.
        """
        if self._by_profiler and len(names) > 1:
            return list(names), "this ncu does not find NVTX ranges"
        waiting, part, reason = list(names), 0, None
        while waiting:
            got = self._ncu(job, waiting, self._context.folder(job, f"part{part}" if part else ""))
            _add(found, got)
            reason = reason or got.get("reason")
            later = [name for name in waiting if got["results"].get(name, {}).get("status") == UNLAUNCHED]
            if len(later) == len(waiting):
                break
            waiting, part = later, part + 1
        again = [name for name in names if not _settled(found["results"].get(name, {}))]
        return (again if len(names) > 1 else []), reason or "the batch brought nothing of it"

    # ------------------------------------------------------------ one process

    def _ncu(self, job: Job, names: Sequence[str], folder: Path) -> Json:
        ncu = self._context.machine.ncu
        assert ncu
        folder.mkdir(parents=True, exist_ok=True)
        ask: _Attempt | None = _Attempt(
            tuple(name for name in self._wanted(ncu, job.stage) if name not in self._refused),
            self._by_kernel,
            self._by_profiler and len(names) == 1,
        )
        for _ in range(_TRIES):
            assert ask
            ended, output, report = self._call(ncu, job, names, folder, ask)
            if report.is_file():
                break
            problem = ncu_command.find_problem(output, ended.code)
            if problem and not problem.usable:
                self._off = problem.reason
                self._context.machine.missing.append(
                    f"latency is measured, counters are not: {problem.reason}"
                )
                raise LeftOut(problem.reason)
            answer = gpu_process.result_of(folder / "target.result.json", ended)
            simpler = _simpler(ask, output, ended, answer, alone=len(names) == 1)
            if simpler is None:
                return self._nothing(names, ended, answer, problem)
            ask = simpler
        else:
            return self._nothing(names, ended, answer, problem)
        self._by_kernel, self._by_profiler = ask.by_kernel, ask.by_profiler
        self._refused |= set(self._wanted(ncu, job.stage)) - set(ask.metrics)
        answer = gpu_process.result_of(folder / "target.result.json", ended)
        told = {cell["version"]: cell for cell in answer.get("cells", ())}
        return self._keep(ncu, job, names, report, told, ask)

    @staticmethod
    def _nothing(
        names: Sequence[str], ended: ProcessResult, answer: Json, problem: ncu_command.NcuProblem | None
    ) -> Json:
        """Neither the batch nor a simpler call brought a report."""
        reason = problem.reason if problem and ended.kind == "exited" else f"ncu {ended.words}"
        told = {cell["version"]: cell for cell in answer.get("cells", ())}
        if not told and ended.ok and answer["status"] != "done":
            reason = f"{reason}; the program: {answer['reason']}"
        return _failed(names, reason, told)

    def _wanted(self, ncu: Ncu, tier: str) -> list[str]:
        chip = self._context.machine.chip or "sm_90"
        table = metric_table.load_metrics()
        settled, _ = ncu_command.resolve_metrics(
            chip_metrics.names_to_collect(table, chip, tier),
            table,
            chip,
            ncu_command.known_metrics(ncu, chip),
        )
        return list(settled)

    def _call(
        self, ncu: Ncu, job: Job, names: Sequence[str], folder: Path, ask: _Attempt
    ) -> tuple[ProcessResult, str, Path]:
        context = self._context
        report = folder / "report.ncu-rep"
        asked, answer = folder / "target.request.json", folder / "target.result.json"
        for stale in (report, answer):
            stale.unlink(missing_ok=True)
        sizes = context.workloads[job.workload].sizes()
        content = {
            **context.request(job.workload),
            "versions": [context.version(name) for name in names],
            # The newest first: what an ncu that is slower than anybody thought leaves out are the oldest.
            "cells": [{"version": name, "workload": sizes} for name in reversed(names)],
            "calls": 1,
            "warm_up": 1,
            "profiler": ask.by_profiler,
            "max_seconds": context.own_limit_s(job.stage),
        }
        asked.write_text(json.dumps(content), encoding="utf-8")
        kernels = [kernel for name in names for kernel in context.kernels.get(name, ("",))]
        stock = ncu_command.known_sections(ncu) if job.stage == "full" else None
        request = ncu_command.Request(
            report=report,
            metrics=ask.metrics,
            ranges=tuple(range_name(name, job.workload) for name in names),
            kernels=tuple(kernels) if ask.by_kernel and "" not in kernels else (),
            tier=job.stage,
            clock_control=context.settings.clock_control,
            cache_control=context.settings.cache_control,
            section_folder=ncu_command.write_section(folder / "sections", ask.metrics),
            sections=tuple(one for one in ncu_command.FULL_SECTIONS if stock is None or one in stock),
            by_profiler=ask.by_profiler,
        )
        log = folder / "ncu.log"
        line = ncu_command.command_line(ncu, request, gpu_process.stage_argv("ncu_target", asked, answer))
        ended = context.program(line, job, log)
        return ended, log.read_text(encoding="utf-8", errors="replace"), report

    def _keep(
        self,
        ncu: Ncu,
        job: Job,
        names: Sequence[str],
        report: Path,
        told: Mapping[str, Json],
        ask: _Attempt,
    ) -> Json:
        """Look whether all that was asked for is there, overwrite what is private, keep the report."""
        context = self._context
        try:
            found = read_launches(ncu, report)
            results = {name: self._cell(job, name, found, told, len(names) == 1) for name in names}
            kept_as = report if context.settings.keep_session else _cleaned(ncu, report, len(found))
        except UnreadableReport as error:
            return _failed(names, " ".join(str(error).split()), told)
        done = [name for name in names if results[name]["status"] == "done"]
        if not done:  # nothing in it belongs to anybody
            return {"status": "failed", "reason": results[names[0]]["reason"], "results": results}
        digest, size, place = context.staging.keep_report(kept_as)
        for name in done:
            results[name]["report"] = digest
        kept = {
            "sha256": digest,
            "size": size,
            "path": place.name,
            "tier": job.stage,
            "workload": job.workload,
            "versions": done,
            "metrics": len(ask.metrics),
            "found_by": ask.words,
        }
        return {
            "status": "done",
            "reason": None,
            "results": results,
            "reports": [kept],
            "passes": context.passes(job.stage),
            "refused": sorted(self._refused),
        }

    def _cell(
        self, job: Job, name: str, found: Sequence[Launch], told: Mapping[str, Json], alone: bool
    ) -> Json:
        if (told.get(name) or {}).get("status") == UNLAUNCHED:
            return {"status": UNLAUNCHED, "reason": "no time was left for it in this process"}
        kernels = self._context.kernels.get(name, ())
        roles = dict(self._context.versions[name].roles) or (
            {kernels[0]: "main"} if len(kernels) == 1 else {}
        )
        inside = range_name(name, job.workload)
        if alone and found and not any(one.nvtx for one in found):  # all there is was launched in its range
            found = [replace(one, nvtx=(inside,)) for one in found]
        cell = launches_of_cell(found, inside, kernels, roles)
        reason = (told.get(name) or {}).get("reason") or cell.reason
        return {
            "status": "failed" if reason else "done",
            "reason": reason,
            "told": bool((told.get(name) or {}).get("reason")),
            "ordinals": list(cell.ordinals),
            "parts": list(cell.parts),
        }


def _failed(names: Sequence[str], reason: str, told: Mapping[str, Json]) -> Json:
    """No version of a batch has counters: its own reason where the program told one, else the batch's."""
    each = {}
    for name in names:
        own = (told.get(name) or {}).get("reason")
        each[name] = {"status": "failed", "reason": own or reason, "told": bool(own)}
    return {"status": "failed", "reason": reason, "results": each}


def _add(found: Json, got: Json) -> None:
    """What one more process brought."""
    found["results"] |= got["results"]
    found["reports"] += got.get("reports", ())
    found |= {key: got[key] for key in ("reason", "passes", "refused") if key in got}


def _settled(result: Json) -> bool:
    """Whether another call would bring nothing else: it is there, or the program said why it is not."""
    return result.get("status") == "done" or bool(result.get("told"))


def _simpler(
    ask: _Attempt, output: str, ended: ProcessResult, answer: Json, *, alone: bool
) -> _Attempt | None:
    """What to try after a call that brought no report; None: nothing that could help."""
    if ended.kind != "exited":
        return None
    if lacking := ncu_command.refused_metrics(output, ask.metrics):
        return replace(ask, metrics=tuple(name for name in ask.metrics if name not in lacking))
    if ncu_command.NOTHING in output:
        if answer["status"] != "done":  # nothing was launched: its own reason counts
            return None
        if ask.by_kernel:
            return replace(ask, by_kernel=False)
        return replace(ask, by_profiler=True) if alone and not ask.by_profiler else None
    derived = [name for name in ask.metrics if name in ncu_command.DERIVED]
    if derived and any("ection" in line for line in output.splitlines() if line.startswith("==ERROR==")):
        return replace(ask, metrics=tuple(name for name in ask.metrics if name not in derived))
    return None


def _cleaned(ncu: Ncu, report: Path, launches: int) -> Path:
    """The report without what it tells of this machine, read again. Raises UnreadableReport."""
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
    reason: str | None  # why they cannot be used; None: they can


def read_launches(ncu: Ncu, report: Path) -> list[Launch]:
    """The launches of a report as ncu itself prints them. Raises UnreadableReport.

    The report's framing is checked first; the reading library need not be installed.
    """
    declared = file_format.check_framing(report).declared
    with tempfile.TemporaryDirectory(prefix="profiler-") as folder:
        text = Path(folder) / "raw.csv"
        with text.open("wb") as out:
            try:
                done = subprocess.run(
                    ncu_command.import_command(ncu, report),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.PIPE,
                    timeout=_READ_S,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise UnreadableReport(f"{report}: ncu cannot read it again: {error}") from error
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise UnreadableReport(f"{report}: ncu cannot read it again: {' '.join(last) or done.returncode}")
        found = list(csv_export.read_csv(text).launches)
    if len(found) != declared:
        raise UnreadableReport(f"{report}: {len(found)} of {declared} launches can be read")
    return found


def launches_of_cell(
    found: Sequence[Launch],
    range_name: str,
    kernels: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
) -> CellLaunches:
    """The launches in a cell's NVTX range; without any of the kernels that were asked for it is failed."""
    mine = [one for one in found if range_name in one.nvtx]
    if not mine:
        there = sorted({one.base_name for one in found})
        seen = f"; it holds {', '.join(there[:3])}" if there else ""
        return CellLaunches((), (), f"the report holds no launch in the range {range_name}{seen}")
    wanted = set(kernels)
    missing = wanted and not wanted & {_short(one) for one in mine}
    if missing:
        there = sorted({_short(one) for one in mine})
        return CellLaunches(
            (),
            (),
            f"the kernel {' or '.join(sorted(wanted))} is not in the report: {', '.join(there[:3])} is",
        )
    bad = next((one for one in mine if not _measured(one)), None)
    reason = f"the counters of {bad.base_name} came back as NaN or not at all" if bad else None
    return CellLaunches(tuple(one.ordinal for one in mine), tuple(_parts(mine, roles or {})), reason)


def _measured(launch: Launch) -> bool:
    duration = launch.values.number(NCU_DURATION)
    return duration is not None and math.isfinite(duration) and duration > 0


def _short(launch: Launch) -> str:
    return launch.base_name.rpartition("::")[2]


def _parts(mine: Sequence[Launch], roles: Mapping[str, str]) -> list[str]:
    """The role where the catalogue gives one; `main` where a version has a single kernel; else its name."""
    names = list(dict.fromkeys(_short(one) for one in mine))
    seen: dict[str, int] = {}
    parts = []
    for launch in mine:
        name = _short(launch)
        part = roles.get(name) or name
        if roles == {} and len(names) > 1:
            part = name
        number = seen.get(part, 0)
        seen[part] = number + 1
        parts.append(part if not number else f"{part}#{number}")
    return parts
