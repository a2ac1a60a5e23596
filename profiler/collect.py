"""How a lineage is measured on this machine: jobs in processes of their own, each kept once it has ended."""

from __future__ import annotations

import json
import shlex
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from profiler import (
    anatomy,
    bundle,
    capture,
    captured,
    check,
    chips,
    evidence,
    isolated,
    metrics,
    nsight,
    plan,
    scrub,
    static,
)
from profiler.build import Failed
from profiler.capture import Ncu
from profiler.catalog import Catalog, Version
from profiler.catalog import load as load_catalog
from profiler.errors import CannotJudge, ProfilerError, UnreadableReport
from profiler.location import LocalRoot
from profiler.origin import load_object, source_sha256
from profiler.plan import Job, Pace
from profiler.problem import Problem
from profiler.run import Result
from profiler.run_file import dump_result
from profiler.staging import Staging
from profiler.target import range_name

Progress = Callable[[int, int, str, float | None], None]  # jobs ended, of how many, what, seconds left
Json = dict[str, Any]

SMALL_FLOPS = 1e9  # below this a call is short enough for its dispatch to matter: graph replay is timed too
SANITIZERS = ("racecheck", "memcheck", "initcheck")
_LIMIT_S = {"check": 180.0, "time": 300.0, "lean": 400.0, "full": 400.0, "sanitize": 300.0}
_SUMMARY = "SUMMARY:"


@dataclass(frozen=True)
class Settings:
    """What a collection is asked for. Kept with the run, so that going on means the same."""

    versions: tuple[str, ...]
    workloads: tuple[Json, ...]  # sizes, the most important first
    rounds: int = 25
    samples: int = 4
    processes: int = 3  # fresh ones that the rounds are spread over
    clock_control: str = "none"
    cache_control: str = "none"
    full: tuple[str, ...] = ()
    full_on: tuple[str, ...] = ()  # workload labels; none: all
    sanitize: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    counters: bool = True
    keep_session: bool = False  # reports keep host names, users and paths
    seed: int = 0
    command_line: str = ""

    def as_json(self) -> Json:
        """For the plan of the staging folder."""
        return asdict(self)

    @staticmethod
    def parse(content: Mapping[str, Any]) -> Settings:
        """What as_json gave."""
        known: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in content.items()
        }
        return Settings(**known)


@dataclass
class Machine:
    """What this machine can do; a tool that is missing leaves out what it is for, and says so."""

    gpu: Json | None
    ncu: Ncu | None
    sanitizer: Path | None = None
    missing: list[str] = field(default_factory=list)  # why something is left out, a sentence each

    @property
    def chip(self) -> str | None:
        """sm_90."""
        capability = (self.gpu or {}).get("compute_capability")
        return metrics.chip_of(capability) if capability else None


def look(counters: bool = True) -> Machine:
    """The GPU, asked for in a process of its own so that this one holds nothing of it, and the tools."""
    code = (
        "import json; from profiler import device; gpu = device.describe(); "
        "print(); print(json.dumps(gpu and gpu.as_json()))"
    )
    with tempfile.TemporaryDirectory(prefix="profiler-") as folder:
        ended = isolated.run(
            [sys.executable, "-c", code],
            timeout_s=120,
            log=Path(folder) / "device.log",
            env=isolated.stage_environment(),
        )
    gpu = json.loads(ended.last_line) if ended.ok and ended.last_line.startswith(("{", "null")) else None
    ncu, sanitizer = nsight.find("ncu") if counters else None, nsight.find("compute-sanitizer")
    machine = Machine(gpu, Ncu(ncu.path, ncu.version) if ncu else None, sanitizer.path if sanitizer else None)
    if gpu is None:
        machine.missing.append("no GPU here: nothing can be measured; static and modelled facts alone")
    elif counters and ncu is None:
        machine.missing.append("no ncu here: latency is measured, counters are not; install Nsight Compute")
    return machine


def begin(root: LocalRoot, catalog: Catalog, settings: Settings) -> Staging:
    """A new run in the staging folder."""
    created = datetime.now(UTC).replace(microsecond=0)
    run_id = bundle.run_id(created, catalog.family, "collect", uuid.uuid4().hex)
    content = {"created": created.isoformat(), "catalog": str(catalog.path), "settings": settings.as_json()}
    return Staging.begin(root, run_id, content)


def resume(root: LocalRoot, run_id: str) -> tuple[Staging, Catalog, Settings]:
    """An unfinished run with what it was asked for. Raises UnknownName."""
    staging = Staging.resume(root, run_id)
    content = staging.plan
    return staging, load_catalog(Path(content["catalog"])), Settings.parse(content["settings"])


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
        self.problem: Problem = load_object(catalog, catalog.problem)
        self.workloads = {one.label: one for one in (self.problem.workload(**w) for w in settings.workloads)}
        self.versions = {name: catalog.by_id[name] for name in settings.versions}
        self.libraries: dict[str, str] = {}
        self.kernels: dict[str, tuple[str, ...]] = {}
        self.left_out: dict[str, str] = {}  # job key -> why, for those that a resumed run would do
        self.pace = Pace()
        self.tell = progress or (lambda _done, _all, _what, _left: None)
        self.counters_off: str | None = None if machine.ncu else "no ncu here"
        self._names: tuple[str, ...] | None = None
        self._done = 0
        self.wall_s = 0.0
        self.planned = self._plan()

    # ------------------------------------------------------------ planning

    def _plan(self) -> list[Job]:
        settings = self.settings
        takes = {
            label: [
                name
                for name, version in self.versions.items()
                if workload.sizes().get("dtype", version.dtype) in version.dtypes
                and workload.sizes().get("head_dim", version.head_dims[0]) in version.head_dims
            ]
            for label, workload in self.workloads.items()
        }
        return plan.jobs(
            list(self.versions),
            list(self.workloads),
            takes=takes,
            full=settings.full if settings.counters else (),
            full_on=settings.full_on,
            blocks=settings.processes,
            rounds=settings.rounds,
            samples=settings.samples,
            passes={tier: self.passes(tier) for tier in ("lean", "full")},
            sanitize=settings.sanitize,
            model=settings.model,
        )

    def passes(self, tier: str) -> int | None:
        """Replay passes of a tier on this GPU; None where nothing here can count them."""
        chip = self.machine.chip
        return chips.passes(self.metrics(tier), chip) if chip else None

    def metrics(self, tier: str) -> list[str]:
        """The ncu names of a tier on this GPU."""
        table = metrics.load()
        return list(chips.request(table, self.machine.chip or "sm_90", tier))

    # ------------------------------------------------------------ the work

    def work_off(self, budget: float | None = None) -> None:
        """Do what has not ended. Ctrl-C and a kill at any point leave what has ended."""
        started = time.monotonic()
        isolated.end_leftovers(self.staging.work)
        self.prepare()
        ended = self.staging.outcomes()
        todo = [job for job in self.planned if job.key not in ended]
        self._done, total = len(self.planned) - len(todo), len(self.planned)
        while todo:
            batch = self._next_batch(todo)
            todo = todo[len(batch) :]
            now = []
            for job in batch:
                if self.machine.gpu is None and job.stage != "model":
                    self.left_out[job.key] = "no GPU here"
                elif plan.fits(job, self.pace, time.monotonic() - started, budget):
                    now.append(job)
                else:
                    self.left_out[job.key] = f"the time budget of {budget:g} s was used up"
            self.tell(
                self._done, total, now[0].words if now else "", self.pace.left([*now, *todo], {"check": 8})
            )
            with ThreadPoolExecutor(max(1, len(now))) as pool:
                list(pool.map(self._do, now))
            self._done += len(batch)
        self.wall_s = round(time.monotonic() - started, 1)
        self.tell(total, total, "", 0.0)

    @staticmethod
    def _next_batch(todo: Sequence[Job]) -> list[Job]:
        """The next job; of checks, which time nothing, up to 8 on one workload side by side."""
        first = todo[0]
        if first.stage != "check":
            return [first]
        alike = []
        for job in todo[:8]:
            if (job.stage, job.workload) != (first.stage, first.workload):
                break
            alike.append(job)
        return alike

    def _do(self, job: Job) -> None:
        begun = time.monotonic()
        do = {"check": self._check, "time": self._time, "sanitize": self._sanitize, "model": self._model}
        try:
            outcome = do.get(job.stage, self._capture)(job)
        except ProfilerError as error:
            outcome = {"status": "failed", "reason": " ".join(str(error).split())}
        if why := outcome.pop("left_out", None):  # not ended: another machine, or this one later, may do it
            self.left_out[job.key] = why
            return
        seconds = time.monotonic() - begun
        self.pace.learn(job, seconds)
        self.staging.put(
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

    def prepare(self) -> None:
        """Build for this GPU and keep the static facts; what does not compile goes no further."""
        for arch, versions in self._by_arch().items():
            try:
                for found in anatomy.examine(self.catalog, versions, arch and [arch]):
                    self._keep_static(found)
            except CannotJudge as error:
                self.machine.missing.append(f"nothing is built: {error}")
                return

    def _by_arch(self) -> dict[str | None, list[Version]]:
        found: dict[str | None, list[Version]] = {}
        for version in self.versions.values():
            if version.buildable:
                chip = self.machine.chip
                arch = None if chip is None else f"{chip}a" if f"{chip}a" in version.arches else chip
                found.setdefault(arch, []).append(version)
        return found

    def _keep_static(self, found: anatomy.Anatomy | Failed) -> None:
        version = self.versions[found.version if isinstance(found, Failed) else found.version.id]
        about = Result(
            version.family,
            version.id,
            source_sha256=source_sha256(self.catalog, version),
            flags=version.flags,
        )
        if isinstance(found, Failed):
            results = [Result(about.family, about.version, status="failed", reason=found.error)]
        else:
            self.libraries[version.id] = str(found.built.library)
            names = {static.function_name(one.function) for one in found.built.resources}
            self.kernels[version.id] = tuple(sorted(names))
            by_head_dim: dict[int | None, list[anatomy.Function]] = {}
            for function in found.functions:
                by_head_dim.setdefault(function.head_dim, []).append(function)
            results = [
                Result(
                    about.family,
                    about.version,
                    workload=None if head_dim is None else f"head dim {head_dim}",
                    problem={} if head_dim is None else {"head_dim": head_dim, "dtype": version.dtype},
                    source_sha256=about.source_sha256,
                    flags=about.flags,
                    facts=tuple(evidence.static_facts(function) for function in functions),
                )
                for head_dim, functions in by_head_dim.items()
            ]
            self.machine.missing += found.missing
        self.staging.put(
            f"static-{version.id}",
            {
                "stage": "static",
                "status": results[0].status if results else "skipped",
                "reason": None,
                "facts": [dump_result(one) for one in results],
            },
        )

    # ------------------------------------------------------------ stages

    def _request(self, workload: str) -> Json:
        return {
            "catalog": str(self.catalog.path),
            "family": self.catalog.family,
            "problem": self.catalog.problem,
            "workload": self.workloads[workload].sizes(),
            "seed": self.settings.seed,
            "cases": str(self.staging.work / "cases"),
        }

    def _version(self, name: str) -> Json:
        version = self.versions[name]
        return {
            "id": name,
            "library": self.libraries.get(name),
            "callable": version.callable,
            "dtype": version.dtype,
            "flags": list(version.flags),
            "roles": dict(version.roles),
        }

    def _folder(self, job: Job, version: str = "") -> Path:
        return self.staging.work / f"{job.key}{'-' if version else ''}{version}".replace("/", "_")

    def _runnable(self, name: str) -> str | None:
        """Why a version cannot be called here; None: it can."""
        if name in self.libraries or self.versions[name].callable:
            return None
        return "planned" if self.versions[name].state == "planned" else "it does not compile"

    def _check(self, job: Job) -> Json:
        (name,) = job.versions
        if why := self._runnable(name):
            return {"status": "skipped", "reason": why}
        request = {**self._request(job.workload), "version": self._version(name)}
        result = isolated.run_stage("gpucheck", request, self._folder(job), timeout_s=_LIMIT_S["check"])
        return {"status": result["status"], "reason": result.get("reason"), "results": {name: result}}

    def right(self, names: Sequence[str], workload: str) -> list[str]:
        """Those whose check passed on the workload, and that are not kept as wrong."""
        ended = self.staging.outcomes()
        return [
            name
            for name in names
            if self.versions[name].state != "rejected"
            and ended.get(Job("check", workload, (name,)).key, {}).get("status") == "done"
        ]

    def _time(self, job: Job) -> Json:
        before = self._blocks_before(job)
        failed = {
            name for one in before for name, got in one["results"].items() if got.get("status") == "failed"
        }
        names = [name for name in self.right(job.versions, job.workload) if name not in failed]
        if not names:
            return {"status": "skipped", "reason": "no version of the group is right on this workload"}
        count, total = self.settings.processes, self.settings.rounds
        edges = [total * index // count for index in range(count + 1)]
        modes = ["cold", "warm"]
        if self.problem.flops(self.workloads[job.workload]) < SMALL_FLOPS:
            modes.append("graph")
        request = {
            **self._request(job.workload),
            "modes": modes,
            "rounds": list(range(edges[job.block], edges[job.block + 1])),
            "samples": self.settings.samples,
            "clock": "none",  # nobody locks the clocks while latency is taken
            "batch": {
                name: got["batch"]
                for one in before
                for name, got in one["results"].items()
                if got.get("batch")
            },
        }
        return self._group(job, names, request)

    def _blocks_before(self, job: Job) -> list[Json]:
        ended = self.staging.outcomes()
        keys = [Job("time", job.workload, job.versions, block).key for block in range(job.block)]
        return [ended[key] for key in keys if key in ended]

    def _group(self, job: Job, names: list[str], request: Json) -> Json:
        """All in one process, alternating; where it dies, each by itself, so that one costs itself alone."""
        limit = _LIMIT_S["time"]
        asked = {**request, "versions": [self._version(name) for name in names]}
        whole = isolated.run_stage("timing", asked, self._folder(job), timeout_s=limit)
        if "versions" in whole or len(names) == 1:
            results = whole.get("versions") or {names[0]: _short(whole)}
            return {**_stage_facts(whole), "results": results}
        results, last = {}, whole
        for place, name in enumerate(names, start=1):
            # Rounds of equal numbers would be read as A B B A; these are none.
            own = [number + place * self.settings.rounds for number in request["rounds"]]
            alone = isolated.run_stage(
                "timing",
                {**request, "versions": [self._version(name)], "rounds": own},
                self._folder(job, name),
                timeout_s=limit,
            )
            results[name] = (alone.get("versions") or {}).get(name) or _short(alone)
            last = alone if "versions" in alone else last
        done = any(one.get("status") == "done" for one in results.values())
        retried = f"the group's process died ({whole.get('reason')}); each version was timed by itself"
        return {
            **_stage_facts(last),
            "status": "done" if done else "failed",
            "reason": retried,
            "results": results,
        }

    # ------------------------------------------------------------ counters

    def _capture(self, job: Job) -> Json:
        if not self.settings.counters or self.counters_off:
            return {"left_out": self.counters_off or "counters were not asked for"}
        names = self.right(job.versions, job.workload)
        if not names:
            return {"status": "skipped", "reason": "no version of the batch is right on this workload"}
        whole = self._ncu(job, names, self._folder(job))
        if whole.get("status") != "failed" or len(names) == 1 or whole.get("report"):
            return whole
        parts = [self._ncu(job, [name], self._folder(job, name)) for name in names]
        parts = [one for one in parts if "status" in one]
        if not parts:
            return {"left_out": self.counters_off or str(whole["reason"])}
        results = {name: got for one in parts for name, got in one["results"].items()}
        reports = [report for one in parts for report in one.get("reports", ())]
        done = any(one["status"] == "done" for one in parts)
        return {
            "status": "done" if done else "failed",
            "reason": f"the batch brought nothing ({whole['reason']}); each version was captured by itself",
            "results": results,
            "reports": reports,
        }

    def _ncu(self, job: Job, names: list[str], folder: Path) -> Json:
        ncu = self.machine.ncu
        assert ncu
        folder.mkdir(parents=True, exist_ok=True)
        wanted = self._wanted(ncu, job.stage)
        ended, output, report = self._run_ncu(ncu, job, names, folder, wanted)
        if not report.is_file() and (lacking := capture.refused(output, wanted)):
            wanted = [name for name in wanted if name not in lacking]
            ended, output, report = self._run_ncu(ncu, job, names, folder, wanted)
        answer = isolated.result_of(folder / "target.result.json", ended)
        told = {cell["version"]: cell for cell in answer.get("cells", ())}
        problem = capture.complaint(output, ended.code)
        if problem and not problem.usable:
            self.counters_off = problem.reason
            self.machine.missing.append(f"latency is measured, counters are not: {problem.reason}")
            return {"left_out": problem.reason}
        if not report.is_file():
            reason = problem.reason if problem else f"ncu {ended.words}"
            if ended.kind != "exited":
                reason = f"ncu {ended.words}"
            each = {
                name: {"status": "failed", "reason": (told.get(name) or {}).get("reason") or reason}
                for name in names
            }
            return {"status": "failed", "reason": reason, "results": each}
        return self._keep(ncu, job, names, report, told, wanted)

    def _wanted(self, ncu: Ncu, tier: str) -> list[str]:
        chip = self.machine.chip or "sm_90"
        table = metrics.load()
        settled, _ = capture.settle(
            chips.request(table, chip, tier), table, chip, capture.known_metrics(ncu, chip)
        )
        return list(settled)

    def _run_ncu(
        self, ncu: Ncu, job: Job, names: list[str], folder: Path, wanted: list[str]
    ) -> tuple[isolated.Ended, str, Path]:
        report, asked, answer = (
            folder / "report.ncu-rep",
            folder / "target.request.json",
            folder / "target.result.json",
        )
        for stale in (report, answer):
            stale.unlink(missing_ok=True)
        sizes = self.workloads[job.workload].sizes()
        content = {
            **self._request(job.workload),
            "versions": [self._version(name) for name in names],
            "cells": [{"version": name, "workload": sizes} for name in names],
            "calls": 1,
            "warm_up": 1,
        }
        asked.write_text(json.dumps(content), encoding="utf-8")
        kernels = [kernel for name in names for kernel in self.kernels.get(name, ("",))]
        stock = capture.known_sections(ncu) if job.stage == "full" else None
        request = capture.Request(
            report=report,
            metrics=tuple(wanted),
            ranges=tuple(range_name(name, job.workload) for name in names),
            kernels=() if "" in kernels else tuple(kernels),
            tier=job.stage,
            clock_control=self.settings.clock_control,
            cache_control=self.settings.cache_control,
            section_folder=capture.write_section(folder / "sections", wanted),
            sections=tuple(one for one in capture.FULL_SECTIONS if stock is None or one in stock),
        )
        log = folder / "ncu.log"
        ended = isolated.run(
            capture.command_line(ncu, request, isolated.stage_argv("target", asked, answer)),
            timeout_s=_LIMIT_S[job.stage],
            log=log,
            env=isolated.stage_environment(),
        )
        return ended, log.read_text(encoding="utf-8", errors="replace"), report

    def _keep(
        self, ncu: Ncu, job: Job, names: list[str], report: Path, told: Mapping[str, Json], wanted: list[str]
    ) -> Json:
        """Look whether all that was asked for is there, overwrite what is private, keep the report."""
        found = captured.launches(ncu, report)
        results = {}
        for name in names:
            kernels = self.kernels.get(name, ())
            roles = dict(self.versions[name].roles) or ({kernels[0]: "main"} if len(kernels) == 1 else {})
            cell = captured.of_cell(found, range_name(name, job.workload), kernels, roles)
            reason = (told.get(name) or {}).get("reason") or cell.reason
            results[name] = {
                "status": "failed" if reason else "done",
                "reason": reason,
                "ordinals": list(cell.ordinals),
                "parts": list(cell.parts),
            }
        if not self.settings.keep_session:
            clean = report.with_name("clean.ncu-rep")
            try:
                scrub.scrub(report, clean, private_words())
            except UnreadableReport as error:
                return {"status": "failed", "reason": str(error), "results": results}
            if len(captured.launches(ncu, clean)) != len(found):
                return {
                    "status": "failed",
                    "reason": f"{clean} lost launches when its session was overwritten",
                    "results": results,
                }
            report = clean
        digest, size, place = self.staging.keep(report)
        kept = {
            "sha256": digest,
            "size": size,
            "path": str(place.name),
            "tier": job.stage,
            "workload": job.workload,
            "versions": names,
            "metrics": len(wanted),
        }
        done = [name for name in names if results[name]["status"] == "done"]
        for name in names:
            results[name]["report"] = digest
        return {
            "status": "done" if done else "failed",
            "reason": None if done else next(iter(results.values()))["reason"],
            "results": results,
            "reports": [kept],
            "passes": self.passes(job.stage),
        }

    # ------------------------------------------------------------ sanitizer and model

    def _sanitize(self, job: Job) -> Json:
        (name,) = job.versions
        if self.machine.sanitizer is None:
            return {"left_out": "no compute-sanitizer here"}
        if why := self._runnable(name):
            return {"status": "skipped", "reason": why}
        found: Json = {}
        for tool in SANITIZERS:
            folder = self._folder(job, tool)
            folder.mkdir(parents=True, exist_ok=True)
            asked, answer, log = (folder / one for one in ("request.json", "result.json", "log"))
            sizes = self.workloads[job.workload].sizes()
            content = {
                **self._request(job.workload),
                "versions": [self._version(name)],
                "calls": 1,
                "warm_up": 0,
                "cells": [{"version": name, "workload": sizes}],
            }
            asked.write_text(json.dumps(content), encoding="utf-8")
            command = [str(self.machine.sanitizer), "--tool", tool, "--print-limit", "10"]
            ended = isolated.run(
                [*command, *isolated.stage_argv("target", asked, answer)],
                timeout_s=_LIMIT_S["sanitize"],
                log=log,
                env=isolated.stage_environment(),
            )
            found[tool] = sanitizer_verdict(log.read_text(errors="replace"), ended.words, answer.is_file())
        bad = [tool for tool, got in found.items() if got["found"]]
        unknown = [tool for tool, got in found.items() if got["found"] is None]
        status = "wrong" if bad else "failed" if unknown else "done"
        reason = (
            f"found by {', '.join(bad)}" if bad else f"no answer of {', '.join(unknown)}" if unknown else None
        )
        return {"status": status, "reason": reason, "results": {name: found}}

    def _model(self, job: Job) -> Json:
        version = self.versions[job.versions[0]]
        checked = next(check.check_all([version], self.problem), None)
        if checked is None or not checked.cells:
            return {"status": "skipped", "reason": str(checked.error) if checked else "it has no source"}
        by_workload: dict[Any, list[check.Cell]] = {}
        for cell in checked.cells:
            by_workload.setdefault(cell.workload, []).append(cell)
        facts = []
        for workload, cells in by_workload.items():
            status, why = evidence.status(cells)
            facts.append(
                dump_result(
                    Result(
                        version.family,
                        version.id,
                        workload=workload.label,
                        problem=workload.sizes(),
                        status=status,
                        reason=why,
                        source_sha256=source_sha256(self.catalog, version),
                        flags=version.flags,
                        check=evidence.outcome(cells, self.problem),
                        facts=(evidence.modelled_facts(cells),),
                    )
                )
            )
        return {"status": "done", "reason": None, "facts": facts}


def sanitizer_verdict(output: str, words: str, ran: bool) -> Json:
    """How much compute-sanitizer found; None where the program did not run to its end: that is no pass."""
    line = next((one for one in output.splitlines() if _SUMMARY in one), "")
    number = next((int(word) for word in line.replace("(", " ").split() if word.isdigit()), None)
    return {"found": number if ran else None, "summary": line.strip("= ").strip() or words}


def private_words() -> list[str]:
    """What this machine's own reports could tell: its name, this user's home, the folders worked in."""
    words = [
        socket.gethostname(),
        str(Path.home()),
        str(Path.cwd()),
        str(Path(__file__).resolve().parent.parent),
    ]
    return [word for word in words if len(word.strip("/")) > 4]


def command_line(argv: Sequence[str]) -> str:
    """A command line as it may be published: file names without their folders."""
    return shlex.join(Path(word).name if word.startswith("/") else word for word in argv)


def _short(result: Json) -> Json:
    return {"status": result.get("status", "failed"), "reason": result.get("reason"), "samples": []}


def _stage_facts(result: Json) -> Json:
    return {
        "status": result.get("status", "failed"),
        "reason": result.get("reason"),
        **{key: result[key] for key in ("launch_ns", "states", "device", "cold_sets") if key in result},
        "seconds": result.get("seconds"),
    }
