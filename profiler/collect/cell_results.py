"""The results of a run, made of the outcomes of all jobs of a version and workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profiler.bundles.run import Capture, ReportFile, Result, Samples
from profiler.bundles.run_json import parse_result
from profiler.collect import aa_sessions
from profiler.collect.collection import Collection
from profiler.collect.outcomes import (
    CheckOutcome,
    CounterOutcome,
    Ending,
    Outcomes,
    SanitizerOutcome,
    TimeOutcome,
    version_ending,
)
from profiler.collect.plan import Job, check_key
from profiler.collect.provenance import hide_private, why_left_out

Json = dict[str, Any]
Reports = Mapping[str, tuple[ReportFile, Path]]  # the kept reports by sha256, and where their content lies
_AFTER_CHECK = ("time", "lean", "full", "sanitize")


def results_of(collection: Collection, outcomes: Outcomes, reports: Reports) -> list[Result]:
    """All results of the run: static and modelled ones as they were recorded, then the measured ones."""
    results = [parse_result(body) for outcome in outcomes.facts.values() for body in outcome.get("facts", ())]
    for job in collection.planned:
        if job.stage == "check":
            results += _cell_results(collection, outcomes, reports, job.versions[0], job.workload)
    if collection.settings.keep_session:
        return results
    return [
        replace(result, reason=hide_private(result.reason), check=hide_private(result.check))
        for result in results
    ]


@dataclass(frozen=True)
class _CellOutcomes:
    """The outcomes so far of one version on one workload."""

    jobs: tuple[Job, ...]  # all that are planned for the cell
    check: CheckOutcome | None
    timings: tuple[TimeOutcome, ...]
    captures: tuple[CounterOutcome, ...]
    sanitized: SanitizerOutcome | None


def _cell_outcomes(collection: Collection, outcomes: Outcomes, name: str, workload: str) -> _CellOutcomes:
    jobs = tuple(job for job in collection.planned if job.workload == workload and name in job.versions)
    keys = [job.key for job in jobs]
    return _CellOutcomes(
        jobs,
        check=next((outcomes.checks[key] for key in keys if key in outcomes.checks), None),
        timings=tuple(outcomes.timings[key] for key in keys if key in outcomes.timings),
        captures=tuple(outcomes.captures[key] for key in keys if key in outcomes.captures),
        sanitized=next((outcomes.sanitized[key] for key in keys if key in outcomes.sanitized), None),
    )


def _cell_results(
    collection: Collection, outcomes: Outcomes, reports: Reports, name: str, workload: str
) -> list[Result]:
    """The cell's result; where something was measured and something else failed, a second one says so.

    A latency stays one although no counter came, and the counters that did not come have their reason.
    """
    version = collection.context.selection.versions[name]
    ended = _cell_outcomes(collection, outcomes, name, workload)
    if collection.settings.pairs:
        samples = tuple(aa_sessions.paired_samples(ended.timings, name))
    else:
        samples = tuple(_merged_samples(ended.timings, name))
    captures = tuple(_captures(collection, ended.captures, reports, name))
    failed, skipped = _problems(collection, outcomes, ended.jobs, name)
    measured = bool(samples or captures)
    status, reason = _status(
        _check_ending(collection, outcomes, name, workload), ended.sanitized, measured, failed, skipped
    )
    result = Result(
        family=version.family,
        version=name,
        workload=workload,
        problem=collection.context.selection.workloads[workload].sizes(),
        status=status,
        reason=reason,
        source_sha256=collection.inputs.source_hashes.get(name),
        flags=version.flags,
        check=_check_facts(ended, name, version.state),
        samples=samples if status != "wrong" else (),
        captures=captures if status != "wrong" else (),
    )
    if status != "done" or not failed:
        return [result]
    beside = replace(result, status="failed", reason="; ".join(failed), check=None, samples=(), captures=())
    return [result, beside]


def _check_facts(ended: _CellOutcomes, name: str, state: str) -> Json | None:
    """The `check` of the result; None where the version was not checked."""
    facts: Json = {}
    if ended.check:
        result: Mapping[str, Any] = ended.check["results"].get(name, {})
        facts = {key: value for key, value in result.items() if key not in ("device", "tail", "seconds")}
        facts.update(evidence="measured", passed=ended.check["status"] == "done", state=state)
    if ended.sanitized:
        findings = ended.sanitized["results"].get(name)
        facts["sanitizer"] = findings or {"skipped": ended.sanitized["reason"]}
    return facts or None


def _check_ending(collection: Collection, outcomes: Outcomes, name: str, workload: str) -> Ending:
    """How the check came out, and why; skipped where it was left out."""
    key = check_key(name, workload)
    if key in outcomes.checks:
        return {"status": outcomes.checks[key]["status"], "reason": outcomes.checks[key]["reason"]}
    return {"status": "skipped", "reason": f"check: {why_left_out(collection, key)}"}


def _problems(
    collection: Collection, outcomes: Outcomes, jobs: Sequence[Job], name: str
) -> tuple[list[str], list[str]]:
    """Why stages after the check failed for the version, and why others were skipped or left out."""
    failed: dict[str, None] = {}
    skipped: dict[str, None] = {}
    for job in jobs:
        if job.stage not in _AFTER_CHECK:
            continue
        outcome = outcomes.get(job.key)
        if outcome is None:
            skipped[f"{job.stage}: {why_left_out(collection, job.key)}"] = None
            continue
        ending = version_ending(outcome, name)
        reason = ending["reason"] or "no reason was given"
        if ending["status"] == "failed":
            failed[f"{job.stage}: {reason}"] = None
        elif ending["status"] == "skipped":
            skipped[f"{job.stage}: {reason}"] = None
        timing = outcomes.timings[job.key]["results"].get(name) if job.key in outcomes.timings else None
        for mode, why in (timing.get("without", {}) if timing else {}).items():
            skipped[f"{job.stage}, {mode}: {why}"] = None
    return list(failed), list(skipped)


def _status(
    check: Ending,
    sanitized: SanitizerOutcome | None,
    measured: bool,
    failed: Sequence[str],
    skipped: Sequence[str],
) -> tuple[str, str | None]:
    """The status of the cell; a measured cell does not fail because a stage was left out."""
    status, reason = check["status"], check["reason"]
    if status != "done":
        return status, reason
    if sanitized and sanitized["status"] == "wrong":
        return "wrong", f"sanitize: {sanitized['reason']}"
    if measured:
        return "done", "; ".join([*([reason] if reason else []), *skipped]) or None
    if failed:
        return "failed", "; ".join(failed)
    return "skipped", "; ".join([*([reason] if reason else []), *skipped]) or "nothing was measured"


def _merged_samples(timed: Sequence[TimeOutcome], name: str) -> list[Samples]:
    """The blocks of all processes, mode by mode, in the order in which they were taken."""
    merged: dict[str, dict[str, list[Any]]] = {}
    for outcome in sorted(timed, key=lambda outcome: outcome["block"]):
        result = outcome["results"].get(name)
        for block in result["samples"] if result else ():
            into = merged.setdefault(
                block["mode"], {"ns": [], "rounds": [], "clocks_mhz": [], "throttled": [], "processes": []}
            )
            into["throttled"] += [len(into["ns"]) + position for position in block["throttled"]]
            into["ns"] += block["ns"]
            into["rounds"] += block["rounds"]
            into["processes"] += [outcome["block"]] * len(block["ns"])  # a block is a process of its own
            into["clocks_mhz"] += block["clocks_mhz"]
    return [
        Samples(
            mode=mode,
            ns=tuple(whole["ns"]),
            rounds=tuple(whole["rounds"]),
            clocks_mhz=tuple(whole["clocks_mhz"]) if len(whole["clocks_mhz"]) == len(whole["ns"]) else (),
            throttled=tuple(whole["throttled"]),
            processes=tuple(whole["processes"]),
        )
        for mode, whole in merged.items()
        if whole["ns"]
    ]


def _captures(
    collection: Collection, captured: Sequence[CounterOutcome], reports: Reports, name: str
) -> list[Capture]:
    settings = collection.settings
    mode = f"ncu; clock {settings.clock_control}; cache {settings.cache_control}"
    captures = []
    for outcome in captured:
        result = outcome["results"].get(name)
        if result and result["status"] == "done" and result.get("report") in reports:
            captures.append(
                Capture(result["report"], tuple(result["ordinals"]), tuple(result["parts"]), mode)
            )
    return captures
