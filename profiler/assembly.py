"""How the jobs that have ended become one run: a result a cell, what was left out, and its files."""

from __future__ import annotations

import platform
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from profiler import __version__, bundle, dissect, floors, toolkit
from profiler.catalog import Catalog
from profiler.collect import Collection
from profiler.location import LocalRoot, Root
from profiler.origin import source_sha256
from profiler.run import COLLECT, Attachment, Capture, ReportFile, Result, Run, Samples
from profiler.run_file import parse_result
from profiler.staging import REPORTS, Staging

Json = dict[str, Any]
ZIP_BYTES = 12 << 20  # of the file that `--out` writes
_RUN_JSON_SHARE = 1 << 20  # kept free for run.json


def seal(root: Root, collection: Collection, *, zip_bytes: int | None = None) -> str:
    """Make the run of what has ended and keep it for good; the staging folder goes. The run's id.

    zip_bytes: full reports, the last first, are left out until the rest fits.
    """
    staging = collection.staging
    if staging.run_id not in bundle.list_runs(root):
        run, sources = assemble(collection, zip_bytes)
        if isinstance(root, LocalRoot):
            (root.folder / bundle.STAGING).mkdir(parents=True, exist_ok=True)
        bundle.seal(root, run, sources)
    staging.remove()
    return staging.run_id


def assemble(collection: Collection, zip_bytes: int | None = None) -> tuple[Run, dict[str, Path]]:
    """The run and, for every file in it, where its content lies now."""
    staging, catalog = collection.staging, collection.catalog
    content, ended = staging.plan, staging.outcomes()
    kept, dropped = _reports(staging, ended, zip_bytes)
    contents = dissect.sources(catalog, [one for one in collection.versions.values() if one.buildable])
    sources = {report.path: place for report, place in kept.values()}
    files: list[Attachment] = []
    for path, text in contents.items():
        place = staging.work / f"source-{sha256(path.encode()).hexdigest()[:16]}"
        place.write_bytes(text)
        sources[path] = place
        files.append(dissect.attachment(path, text))
    run = Run(
        run_id=staging.run_id,
        kind=COLLECT,
        created=datetime.fromisoformat(content["created"]),
        provenance=_provenance(collection, ended, dropped),
        results=tuple(_results(collection, ended, kept)),
        reports=tuple(report for report, _ in kept.values()),
        files=tuple(files),
    )
    return run, sources


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
    planned = [job for job in collection.planned if job.stage == "check"]
    for job in planned:
        found.append(_cell(collection, ended, kept, job.versions[0], job.workload))
    return found


def _cell(
    collection: Collection,
    ended: Mapping[str, Json],
    kept: Mapping[str, tuple[ReportFile, Path]],
    name: str,
    workload: str,
) -> Result:
    version = collection.versions[name]
    jobs = [job for job in collection.planned if job.workload == workload and name in job.versions]
    checked = next((ended[job.key] for job in jobs if job.stage == "check" and job.key in ended), None)
    timed = [ended[job.key] for job in jobs if job.stage == "time" and job.key in ended]
    captures = [ended[job.key] for job in jobs if job.stage in ("lean", "full") and job.key in ended]
    sanitized = next((ended[job.key] for job in jobs if job.stage == "sanitize" and job.key in ended), None)
    status, reason = _status(collection, jobs, ended, name)
    outcome = dict(checked["results"].get(name, {})) if checked else {}
    about = {key: value for key, value in outcome.items() if key not in ("device", "tail", "seconds")}
    if checked:
        about.update(evidence="measured", passed=checked["status"] == "done", state=version.state)
    if sanitized:
        about["sanitizer"] = sanitized["results"].get(name, {"skipped": sanitized["reason"]})
    return Result(
        family=version.family,
        version=name,
        workload=workload,
        problem=collection.workloads[workload].sizes(),
        status=status,
        reason=reason,
        source_sha256=source_sha256(collection.catalog, version),
        flags=version.flags,
        check=about or None,
        samples=tuple(_samples(timed, name)) if status != "wrong" else (),
        captures=tuple(_captures(collection, captures, kept, name)),
    )


def _status(
    collection: Collection, jobs: Sequence[Any], ended: Mapping[str, Json], name: str
) -> tuple[str, str | None]:
    """The worst that happened to the cell; what was left out does not make a measured cell a failed one."""
    told: list[tuple[str, str | None]] = []
    for job in jobs:
        outcome = ended.get(job.key)
        if outcome is None:
            left = collection.left_out.get(job.key, "not done: the run was sealed before")
            told.append(("skipped", f"{job.stage}: {left}"))
            continue
        mine = outcome if job.stage in ("check", "sanitize") else outcome["results"].get(name, outcome)
        status, reason = mine.get("status", outcome["status"]), mine.get("reason")
        told.append(
            (str(status), reason if job.stage == "check" else f"{job.stage}: {reason}" if reason else None)
        )
    for worst in ("wrong", "failed"):
        for status, reason in told:
            if status == worst:
                return status, reason
    if any(status == "done" for status, _ in told[1:]) or (told and all(one == "done" for one, _ in told)):
        return "done", "; ".join(dict.fromkeys(r for s, r in told if s == "skipped" and r)) or None
    skipped = [reason for status, reason in told if status == "skipped" and reason]
    return "skipped", skipped[0] if skipped else "nothing was measured"


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


def _reports(
    staging: Staging, ended: Mapping[str, Json], zip_bytes: int | None
) -> tuple[dict[str, tuple[ReportFile, Path]], list[str]]:
    """The reports to keep by sha256: every lean one, and of the full ones as many as fit; who is left out."""
    kept: dict[str, tuple[ReportFile, Path]] = {}
    dropped: list[str] = []
    free = None if zip_bytes is None else zip_bytes - _RUN_JSON_SHARE
    told = [report for outcome in ended.values() for report in outcome.get("reports", ())]
    for report in sorted(told, key=lambda one: one["tier"] != "lean"):
        place = staging.folder / REPORTS / report["path"]
        who = report["versions"][0] if len(report["versions"]) == 1 else f"{len(report['versions'])}-versions"
        name = f"{report['tier']}-{report['workload']}-{who}-{report['sha256'][:8]}.ncu-rep".replace(" ", "-")
        if free is not None:
            packed = len(zlib.compress(place.read_bytes(), 6))
            if report["tier"] == "full" and packed > free:
                dropped.append(name)
                continue
            free -= packed
        entry = bundle.report_entry(name, report["sha256"], report["size"])
        kept.setdefault(report["sha256"], (entry, place))
    return kept, dropped


def _provenance(collection: Collection, ended: Mapping[str, Json], dropped: Sequence[str]) -> Json:
    settings, machine, catalog = collection.settings, collection.machine, collection.catalog
    gpu = machine.gpu or {}
    timed = [one for one in ended.values() if one["stage"] == "time" and one.get("states")]
    launch = [one["launch_ns"] for one in timed if one.get("launch_ns")]
    launch_ns = min(launch) if launch else None
    known: Json = {
        "created_from": "clock",
        "command_line": settings.command_line,
        "profiler": __version__,
        "python": platform.python_version(),
        "torch": _torch(),
        "gpu": gpu.get("name"),
        "gpu_uuid": gpu.get("uuid"),
        "compute_capability": gpu.get("compute_capability"),
        "driver": gpu.get("driver"),
        "cuda": gpu.get("cuda"),
        "ncu_version": machine.ncu.version if machine.ncu else None,
        "nvcc": _nvcc(),
        "clock_control": settings.clock_control,
        "cache_control": settings.cache_control,
        "compile_flags": list(catalog.compile_flags),
        "settings": {
            "rounds": settings.rounds,
            "samples": settings.samples,
            "processes": settings.processes,
            "seed": settings.seed,
        },
        "states": [one["states"] for one in timed],
        "device": gpu or None,
        "degraded": list(dict.fromkeys(machine.missing)),
        "left_out": sorted(
            {
                f"{job.words}: {collection.left_out.get(job.key, 'not done')}"
                for job in collection.planned
                if job.key not in ended
            }
            | {f"{name}: more than fits into the file" for name in dropped}
        ),
        "wall_s": collection.wall_s or None,
        "jobs_s": round(sum(one.get("wall_s") or 0 for one in ended.values()), 1),
        "floors": {
            label: floors.floors(collection.problem, workload, gpu, launch_ns).as_json()
            for label, workload in collection.workloads.items()
        }
        if gpu
        else None,
        **_git(catalog),
    }
    if settings.keep_session:
        known["host"] = platform.node()
    return {name: value for name, value in known.items() if value not in (None, [], {}, "")}


def _git(catalog: Catalog) -> Json:
    commit = dissect.said("git", "-C", str(catalog.folder), "rev-parse", "HEAD")
    if not commit:
        return {}
    diff = dissect.said("git", "-C", str(catalog.folder), "diff", "HEAD", "--", ".")
    return {"git_commit": commit, "git_diff_sha256": sha256(diff.encode()).hexdigest() if diff else None}


def _nvcc() -> str | None:
    tool = toolkit.find("nvcc")
    return tool.version if tool else None


def _torch() -> str | None:
    """The version of torch, without importing it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("torch")
    except PackageNotFoundError:
        return None
