"""What the jobs of one version and workload say together: the results of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from profiler.bundles import Capture, ReportFile, Result, Samples
from profiler.bundles.run_json import parse_result
from profiler.collect import aa_sessions
from profiler.collect.collection import Collection
from profiler.collect.plan import Job
from profiler.collect.provenance import hide_private, reason_left_out

Json = dict[str, Any]
_LATER = ("time", "lean", "full", "sanitize")  # stages after the check


def results_of(
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
    return [replace(one, reason=hide_private(one.reason), check=hide_private(one.check)) for one in found]


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
    return "skipped", f"check: {reason_left_out(collection, key)}"


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
            skipped[f"{job.stage}: {reason_left_out(collection, job.key)}"] = None
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
