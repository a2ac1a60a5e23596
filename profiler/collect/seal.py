"""How the jobs that have ended become one run: a result a cell, what was left out, and its files."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from profiler import __version__
from profiler.build import lower_bounds
from profiler.bundles import (
    COLLECT,
    NOISE,
    Attachment,
    Capture,
    LocalRoot,
    ReportFile,
    Result,
    Root,
    Run,
    Samples,
    bundle,
)
from profiler.bundles.run_json import dump_run, parse_result
from profiler.collect import aa_sessions, without_gpu
from profiler.collect import settings as collect_settings
from profiler.collect.collection import Collection
from profiler.collect.plan import Job
from profiler.collect.staging import REPORTS, Staging
from profiler.reports import redact

Json = dict[str, Any]
ZIP_BYTES = 12 << 20  # of the file that `--out` writes
_ENTRY_BYTES = 400  # that a zip takes for a file beside its content, at most
_LATER = ("time", "lean", "full", "sanitize")  # stages after the check


def seal(root: Root, collection: Collection, *, zip_bytes: int | None = None) -> str:
    """Make the run of what has ended and keep it for good; the staging folder goes. The run's id. Raises
    BadBundle where a part of it lies in its place.

    zip_bytes: reports, full ones first and of those the last, are left out until the bundle's zip fits.
    """
    staging = collection.staging
    bundle.refuse_partial_import(root, staging.run_id)
    if staging.run_id not in bundle.list_runs(root):
        run, sources = make_run(collection, zip_bytes)
        if isinstance(root, LocalRoot):
            (root.folder / bundle.STAGING_FOLDER).mkdir(parents=True, exist_ok=True)
        bundle.seal(root, run, sources)
    staging.remove()
    return staging.run_id


def make_run(collection: Collection, zip_bytes: int | None = None) -> tuple[Run, dict[str, Path]]:
    """The run and, for every file in it, where its content lies now."""
    collection.staging.drop_damaged()
    ended = collection.staging.outcomes()
    told = sorted(
        [report for outcome in ended.values() for report in outcome.get("reports", ())],
        key=lambda report: report["tier"] != "lean",
    )
    dropped: list[str] = []
    while True:
        kept = _reports(collection.staging, told)
        run, sources = _made(collection, ended, kept, dropped)
        if zip_bytes is None or not told or _packed(run, sources) <= zip_bytes:
            return run, sources
        dropped.append(_report_name(told.pop()))


def _made(
    collection: Collection,
    ended: Mapping[str, Json],
    kept: Mapping[str, tuple[ReportFile, Path]],
    dropped: Sequence[str],
) -> tuple[Run, dict[str, Path]]:
    staging = collection.staging
    sources = {report.path: place for report, place in kept.values()} | staging.sources
    files: list[Attachment] = [
        without_gpu.attachment(path, place.read_bytes()) for path, place in staging.sources.items()
    ]
    run = Run(
        run_id=staging.run_id,
        kind=COLLECT,
        created=datetime.fromisoformat(staging.plan["created"]),
        provenance=_provenance(collection, ended, dropped),
        results=tuple(_results(collection, ended, kept)),
        reports=tuple(report for report, _ in kept.values()),
        files=tuple(files),
    )
    return run, sources


def _packed(run: Run, sources: Mapping[str, Path]) -> int:
    """What the bundle's zip takes, at most."""
    packed = [len(zlib.compress(dump_run(run))), *(_packed_file(*_seen(place)) for place in sources.values())]
    return sum(size + _ENTRY_BYTES for size in packed)


def _seen(place: Path) -> tuple[Path, int, int]:
    found = place.stat()
    return place, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=1 << 12)  # asked again for every checkpoint, and for every report that is left out
def _packed_file(place: Path, _size: int, _changed_ns: int) -> int:
    return len(zlib.compress(place.read_bytes()))


# ---------------------------------------------------------------- results


def _results(
    collection: Collection, ended: Mapping[str, Json], kept: Mapping[str, tuple[ReportFile, Path]]
) -> list[Result]:
    found = [
        parse_result(body)
        for outcome in ended.values()
        if outcome["stage"] in ("static", "model")
        for body in outcome.get("facts", ())
    ]
    for job in collection.planned:
        if job.stage == "check":
            found += _cell(collection, ended, kept, job.versions[0], job.workload)
    if collection.settings.keep_session:
        return found
    return [replace(one, reason=_public(one.reason), check=_public(one.check)) for one in found]


def _cell(
    collection: Collection,
    ended: Mapping[str, Json],
    kept: Mapping[str, tuple[ReportFile, Path]],
    name: str,
    workload: str,
) -> list[Result]:
    """The cell; and, where something was measured of it and something else failed, a second result saying so:
    a latency stays one although no counter came, and the counters that did not come have their reason.
    """
    version = collection.context.versions[name]
    jobs = [job for job in collection.planned if job.workload == workload and name in job.versions]
    checked = next((ended[job.key] for job in jobs if job.stage == "check" and job.key in ended), None)
    timed = [ended[job.key] for job in jobs if job.stage == "time" and job.key in ended]
    captures = [ended[job.key] for job in jobs if job.stage in ("lean", "full") and job.key in ended]
    sanitized = next((ended[job.key] for job in jobs if job.stage == "sanitize" and job.key in ended), None)
    outcome = dict(checked["results"].get(name, {})) if checked else {}
    about = {key: value for key, value in outcome.items() if key not in ("device", "tail", "seconds")}
    if checked:
        about.update(evidence="measured", passed=checked["status"] == "done", state=version.state)
    if sanitized:
        about["sanitizer"] = sanitized["results"].get(name, {"skipped": sanitized["reason"]})
    sessions = collection.settings.pairs
    samples = tuple(aa_sessions.samples(timed, name) if sessions else _samples(timed, name))
    counted = tuple(_captures(collection, captures, kept, name))
    failed, skipped = _told(collection, jobs, ended, name)
    status, reason = _status(
        _check_told(collection, jobs, ended, workload, name),
        sanitized,
        bool(samples or counted),
        failed,
        skipped,
    )
    cell = Result(
        family=version.family,
        version=name,
        workload=workload,
        problem=collection.context.workloads[workload].sizes(),
        status=status,
        reason=reason,
        source_sha256=collection.staging.plan["sources"].get(name),
        flags=version.flags,
        check=about or None,
        samples=samples if status != "wrong" else (),
        captures=counted if status != "wrong" else (),
    )
    if status != "done" or not failed:
        return [cell]
    beside = Result(
        family=cell.family,
        version=name,
        workload=workload,
        problem=cell.problem,
        status="failed",
        reason="; ".join(failed),
        source_sha256=cell.source_sha256,
        flags=cell.flags,
    )
    return [cell, beside]


def _check_told(
    collection: Collection, jobs: Sequence[Job], ended: Mapping[str, Json], workload: str, name: str
) -> tuple[str, str | None]:
    """How the check came out, and why; skipped where it was left out."""
    key = Job("check", workload, (name,)).key
    if key in ended:
        return str(ended[key]["status"]), ended[key].get("reason")
    return "skipped", f"check: {_why_left(collection, key)}"


def _told(
    collection: Collection, jobs: Sequence[Job], ended: Mapping[str, Json], name: str
) -> tuple[list[str], list[str]]:
    """Why stages after the check failed for the version, and why others were skipped or left out."""
    failed: dict[str, None] = {}
    skipped: dict[str, None] = {}
    for job in jobs:
        if job.stage not in _LATER:
            continue
        outcome = ended.get(job.key)
        if outcome is None:
            skipped[f"{job.stage}: {_why_left(collection, job.key)}"] = None
            continue
        mine = outcome if job.stage == "sanitize" else outcome["results"].get(name, outcome)
        status, reason = mine.get("status", outcome["status"]), mine.get("reason") or "no reason was given"
        if status in ("failed", "skipped"):
            (failed if status == "failed" else skipped)[f"{job.stage}: {reason}"] = None
        for mode, why in (mine.get("without") or {}).items():
            skipped[f"{job.stage}, {mode}: {why}"] = None
    return list(failed), list(skipped)


def _status(
    check: tuple[str, str | None],
    sanitized: Json | None,
    measured: bool,
    failed: Sequence[str],
    skipped: Sequence[str],
) -> tuple[str, str | None]:
    """What the cell is; what was left out does not make a measured cell a failed one."""
    status, reason = check
    if status != "done":
        return status, reason
    if sanitized and sanitized["status"] == "wrong":
        return "wrong", f"sanitize: {sanitized['reason']}"
    if measured:
        return "done", "; ".join([*([reason] if reason else []), *skipped]) or None
    if failed:
        return "failed", "; ".join(failed)
    return "skipped", "; ".join([*([reason] if reason else []), *skipped]) or "nothing was measured"


def _why_left(collection: Collection, key: str) -> str:
    left_out: Mapping[str, str] = _session(collection)["left_out"]
    return left_out.get(key, "not done: the run was sealed before")


def _session(collection: Collection) -> Json:
    """What the last session says: of this process, or, where it only seals, of the one that measured."""
    before = collection.staging.sessions()
    if collection.left_out or not before:
        return collection.session_note()
    return before[-1]


def _samples(timed: Sequence[Json], name: str) -> list[Samples]:
    """The blocks of all processes, mode by mode, in the order in which they were taken."""
    merged: dict[str, dict[str, list[Any]]] = {}
    for outcome in sorted(timed, key=lambda one: one["block"]):
        for block in outcome["results"].get(name, {}).get("samples", ()):
            into = merged.setdefault(
                block["mode"], {"ns": [], "rounds": [], "clocks_mhz": [], "throttled": []}
            )
            into["throttled"] += [len(into["ns"]) + position for position in block["throttled"]]
            for key in ("ns", "rounds", "clocks_mhz"):
                into[key] += block[key]
    return [
        Samples(
            mode=mode,
            ns=tuple(one["ns"]),
            rounds=tuple(one["rounds"]),
            clocks_mhz=tuple(one["clocks_mhz"]) if len(one["clocks_mhz"]) == len(one["ns"]) else (),
            throttled=tuple(one["throttled"]),
        )
        for mode, one in merged.items()
        if one["ns"]
    ]


def _captures(
    collection: Collection,
    captured: Sequence[Json],
    kept: Mapping[str, tuple[ReportFile, Path]],
    name: str,
) -> list[Capture]:
    settings = collection.settings
    mode = f"ncu; clock {settings.clock_control}; cache {settings.cache_control}"
    found = []
    for outcome in captured:
        mine = outcome["results"].get(name, {})
        if mine.get("status") == "done" and mine.get("report") in kept:
            found.append(Capture(mine["report"], tuple(mine["ordinals"]), tuple(mine["parts"]), mode))
    return found


# ---------------------------------------------------------------- files and provenance


def _reports(staging: Staging, told: Sequence[Json]) -> dict[str, tuple[ReportFile, Path]]:
    """The reports to keep, by sha256."""
    return {
        report["sha256"]: (
            bundle.imported_report_file(_report_name(report), report["sha256"], report["size"]),
            staging.folder / REPORTS / report["path"],
        )
        for report in told
    }


def _report_name(report: Json) -> str:
    """The digits stand where a name that is cut keeps them."""
    who = report["versions"][0] if len(report["versions"]) == 1 else f"{len(report['versions'])}-versions"
    name = f"{report['tier']}-{report['workload']}-{report['sha256'][:8]}-{who}.ncu-rep"
    return name.replace(" ", "-")


def _provenance(collection: Collection, ended: Mapping[str, Json], dropped: Sequence[str]) -> Json:
    settings, plan = collection.settings, collection.staging.plan
    sessions, last = collection.staging.sessions() or [collection.session_note()], _session(collection)
    machine = collect_settings.measured_on(sessions) or collection.machine.facts()
    gpu = machine.get("gpu") or {}
    timed = [one for one in ended.values() if one["stage"] == "time" and one.get("states")]
    launch = _launch_ns(timed)
    took: dict[str, float] = {}
    for one in sessions:
        for stage, seconds in (one.get("processes_s") or {}).items():
            took[stage] = round(took.get(stage, 0.0) + seconds, 3)
    known: Json = {
        "created_from": "clock",
        "purpose": NOISE if settings.pairs else None,
        "command_line": settings.command_line,
        "profiler": __version__,
        "python": machine.get("python"),
        "torch": machine.get("torch"),
        "gpu": gpu.get("name"),
        "gpu_uuid": gpu.get("uuid"),
        "compute_capability": gpu.get("compute_capability"),
        "driver": gpu.get("driver"),
        "cuda": gpu.get("cuda"),
        "ncu_version": machine.get("ncu_version"),
        "nvcc": machine.get("nvcc"),
        "clock_control": settings.clock_control,
        "cache_control": settings.cache_control,
        "compile_flags": list(collection.catalog.compile_flags),
        "settings": {
            "rounds": settings.rounds,
            "samples": settings.samples,
            **({"pairs": settings.pairs} if settings.pairs else {"processes": settings.processes}),
            "seed": settings.seed,
        },
        "states": [one["states"] for one in timed],
        "device": gpu or None,
        "degraded": [*(last.get("missing") or ()), *_not_modelled(ended)],
        "left_out": sorted(
            {
                f"{job.words}: {_why_left(collection, job.key)}"
                for job in collection.planned
                if job.key not in ended
            }
            | {f"{name}: more than fits into the file" for name in dropped}
        ),
        "sessions": len(sessions),
        "wall_s": round(sum(one.get("wall_s") or 0.0 for one in sessions), 1) or None,
        "processes_s": took,
        "launch_ns": launch,
        "floors": {
            label: lower_bounds.bounds_by_timer(collection.context.problem, workload, gpu, launch)
            for label, workload in collection.context.workloads.items()
        }
        if gpu
        else None,
        **plan.get("git", {}),
    }
    kept = {name: value for name, value in known.items() if value not in (None, [], {}, "")}
    if settings.keep_session:
        return {**kept, "host": machine.get("host")}
    return {name: _public(value) for name, value in kept.items()}


def _not_modelled(ended: Mapping[str, Json]) -> list[str]:
    """Why versions have no facts of the CPU's model although it was tried, a sentence a reason."""
    names: dict[str, list[str]] = {}
    for one in ended.values():
        if one["stage"] == "model" and one["status"] in ("failed", "skipped"):
            names.setdefault(str(one.get("reason") or "no reason was given"), []).extend(one["versions"])
    return [f"no CPU model of {', '.join(of)}: {reason}" for reason, of in names.items()]


def _launch_ns(timed: Sequence[Json]) -> Json:
    """What an empty launch took by each clock, the least of all processes."""
    found: dict[str, float] = {}
    for one in timed:
        for clock, ns in (one.get("launch_ns") or {}).items():
            if ns:
                found[clock] = min(float(ns), found.get(clock, float("inf")))
    return found


def _public(value: Any) -> Any:
    """The value without what names this machine or its user, at any depth."""
    if isinstance(value, str):
        for word in sorted(redact.private_words(), key=len, reverse=True):
            value = value.replace(word, "…")
        return value
    if isinstance(value, dict):
        return {key: _public(one) for key, one in value.items()}
    return [_public(one) for one in value] if isinstance(value, list) else value
