"""Checking and timing: a process for each check and for each block of rounds; what died is retried alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from profiler.catalog.cases import flops_of
from profiler.collect import sample_schedule
from profiler.collect.failure_streak import FailureStreak, interleaved
from profiler.collect.gpu.messages import (
    CORRECTNESS,
    LATENCY,
    CheckRequest,
    LatencyRequest,
    TimingRequest,
    VersionTiming,
    WorkloadTiming,
)
from profiler.collect.gpu.properties import Gpu
from profiler.collect.jobs import JobContext
from profiler.collect.outcomes import CheckOutcome, NoResults, TimeOutcome, envelope
from profiler.collect.plan import Job

SMALL_FLOPS = 1e9  # below this a call is short enough for its dispatch to matter: graph replay is timed too
FEWEST_CHECKS = 8  # side by side: a check spends its time on torch's import and the reference, not the GPU
MOST_CHECKS = 16
_CHECK_BYTES = 2 << 30  # GPU memory of one check: a context, torch's own memory and the arrays

# ---------------------------------------------------------------- checks


def parallel_jobs(gpu: Gpu | None) -> dict[str, int]:
    """How many jobs of a stage run side by side: only checks, for nothing may run beside a timing."""
    return {"check": parallel_checks(gpu)}


def parallel_checks(gpu: Gpu | None) -> int:
    """How many checks run side by side: one per CPU as far as the GPU's memory allows, at most 16."""
    memory = gpu.memory_bytes if gpu else None
    checks = min(MOST_CHECKS, max(FEWEST_CHECKS, os.cpu_count() or 1))
    return max(1, min(checks, memory // _CHECK_BYTES)) if memory else checks


def check_version(context: JobContext, job: Job) -> CheckOutcome | NoResults:
    """Check one version on one workload against the reference."""
    (name,) = job.versions
    if why := context.why_not_runnable(name):
        return {**envelope(job), "status": "skipped", "reason": why, "results": {}}
    request = CheckRequest(
        version=context.version_code(name),
        workload=context.selection.workloads[job.workload].sizes(),
        setup=context.setup,
    )
    threads = str(max(1, (os.cpu_count() or 1) // parallel_checks(context.machine.gpu)))  # for the reference
    env = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    result = context.run_program(CORRECTNESS, request, context.folder(job), job, env)
    return {
        **envelope(job),
        "status": result["status"],
        "reason": result["reason"],
        "results": {name: result},
    }


# ---------------------------------------------------------------- timing


def time_block(context: JobContext, job: Job) -> TimeOutcome | NoResults:
    """Time one block of rounds of every right version of a workload in one process."""
    timing = timing_request(context, job)
    return time_versions(context, job, timing) if timing.versions else context.skip(job)


def timing_request(context: JobContext, job: Job) -> TimingRequest:
    """The request of a timing job, for the versions that are right and did not fail in an earlier block."""
    settings, workload = context.settings, context.selection.workloads[job.workload]
    before = _blocks_before(context, job)
    failed = {
        name
        for outcome in before
        for name, result in outcome["results"].items()
        if result["status"] == "failed"
    }
    names = [name for name in context.right_versions(job.versions, job.workload) if name not in failed]
    modes: tuple[str, ...] = ("cold", "warm")
    if flops_of(context.selection.problem, workload) < SMALL_FLOPS:
        modes = (*modes, "graph")
    # A session of a noise run has all rounds, and decides on its batches as a run by itself would.
    blocks = [] if settings.pairs else sample_schedule.blocks(settings.rounds, settings.processes)
    batch = {
        name: result["batch"]
        for outcome in (before if blocks else ())
        for name, result in outcome["results"].items()
        if result.get("batch")
    }
    return TimingRequest(
        workload=workload.sizes(),
        versions=tuple(context.version_code(name) for name in names),
        rounds=tuple(blocks[job.block] if blocks else range(settings.rounds)),
        seed=settings.seed,
        samples=settings.samples,
        modes=modes,
        clock="none",  # clocks are not locked while latency is measured
        max_seconds=context.limits.of_work_within("time"),
        batch=batch,
    )


def _blocks_before(context: JobContext, job: Job) -> list[TimeOutcome]:
    timings = context.staging.outcomes().timings
    keys = [Job("time", job.workload, job.versions, block).key for block in range(job.block)]
    return [timings[key] for key in keys if key in timings]


def time_versions(context: JobContext, job: Job, timing: TimingRequest) -> TimeOutcome:
    """Time all versions in one process, alternating; if it dies, each alone: a bad one costs only itself."""
    together = _time_in_process(context, job, timing)
    names = [version.id for version in timing.versions]
    if together["versions"] or len(names) == 1:
        return outcome_of(job, together, names)
    results: dict[str, VersionTiming] = {}
    last, streak = together, FailureStreak()
    by_name = {version.id: version for version in timing.versions}
    for place, name in enumerate(interleaved(names), start=1):
        if streak.why_no_more:  # the next block tries again, without those that failed
            results[name] = {"status": "skipped", "reason": streak.why_no_more, "samples": []}
            continue
        # Rounds of the same number are read as alternating, which versions timed alone are not.
        rounds = tuple(number + place * context.settings.rounds for number in timing.rounds)
        limit_s = context.limits.of_work_within("time")
        if timing.max_seconds is not None:
            limit_s = min(limit_s, timing.max_seconds)
        alone = _time_in_process(
            context,
            job,
            replace(timing, versions=(by_name[name],), rounds=rounds, max_seconds=limit_s),
            part=name,
        )
        results[name] = alone["versions"].get(name) or untimed(alone)
        streak.add(name, results[name]["status"], results[name]["reason"])
        last = alone if alone["versions"] else last
    done = any(result["status"] == "done" for result in results.values())
    outcome = outcome_of(job, last, [])
    outcome["status"] = "done" if done else "failed"
    outcome["reason"] = f"the group's process died ({together['reason']}); each version was timed separately"
    outcome["results"] = results
    return outcome


def _time_in_process(context: JobContext, job: Job, timing: TimingRequest, part: str = "") -> WorkloadTiming:
    """Time one workload in one process; there are no versions where the process died or could not begin."""
    request = LatencyRequest({job.workload: timing}, context.setup)
    result = context.run_program(LATENCY, request, context.folder(job, part), job)
    timed = result.get("timings", {}).get(job.workload)
    if timed is None:
        return {"status": result["status"], "reason": result["reason"], "versions": {}}
    return timed


def outcome_of(job: Job, timing: WorkloadTiming, names: Sequence[str]) -> TimeOutcome:
    """The outcome of a job whose workload was timed in one process. names: the versions of the job."""
    outcome: TimeOutcome = {
        "stage": job.stage,
        "workload": job.workload,
        "versions": list(job.versions),
        "block": job.block,
        "status": timing["status"],
        "reason": timing["reason"],
        "results": timing["versions"] or {name: untimed(timing) for name in names},
    }
    if "launch_ns" in timing:
        outcome["launch_ns"] = timing["launch_ns"]
    if "states" in timing:
        outcome["states"] = timing["states"]
    if "device" in timing:
        outcome["device"] = timing["device"]
    if "cold_sets" in timing:
        outcome["cold_sets"] = timing["cold_sets"]
    return outcome


def untimed(timing: WorkloadTiming) -> VersionTiming:
    """The timing of a version in a process that timed none."""
    return {"status": timing["status"], "reason": timing["reason"], "samples": []}
