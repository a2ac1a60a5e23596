"""How a version is checked and timed: one process a check, one a group and block of rounds, retried apart."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from profiler.collect import sample_schedule
from profiler.collect.failure_streak import FailureStreak, interleaved
from profiler.collect.jobs import JobContext, Json
from profiler.collect.plan import Job

SMALL_FLOPS = 1e9  # below this a call is short enough for its dispatch to matter: graph replay is timed too
CHECKS = 8  # at a time, at least: most of a check is torch's import and the reference, not the GPU
_CHECKS_MOST = 16
_CHECK_BYTES = 2 << 30  # of the GPU's memory for each: a context, torch's own and the arrays


def check_version(context: JobContext, job: Job) -> Json:
    """One version on one workload, against the reference."""
    (name,) = job.versions
    if why := context.unrunnable(name):
        return {"status": "skipped", "reason": why}
    request = {**context.request(job.workload), "version": context.version(name)}
    threads = str(max(1, (os.cpu_count() or 1) // parallel_checks(context.machine.gpu)))  # of the reference
    env = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    result = context.stage("correctness", request, context.folder(job), job, env)
    return {"status": result["status"], "reason": result.get("reason"), "results": {name: result}}


def parallel_checks(gpu: Mapping[str, Any] | None) -> int:
    """How many checks run side by side: one a CPU as far as the GPU's memory allows, never over 16."""
    memory = (gpu or {}).get("memory_bytes")
    wanted = min(_CHECKS_MOST, max(CHECKS, os.cpu_count() or 1))
    return max(1, min(wanted, memory // _CHECK_BYTES)) if memory else wanted


def block_count(work_rounds: int, processes: int) -> int:
    """How many fresh processes the rounds are spread over; none is left without a round."""
    return len(sample_schedule.blocks(work_rounds, processes))


def time_group(context: JobContext, job: Job) -> Json:
    """One block of rounds of every right version of a workload, in one process."""
    names, request = timing_request(context, job)
    return time_versions(context, job, names, request) if names else context.nobody(job)


def timing_request(context: JobContext, job: Job) -> tuple[list[str], Json]:
    """The versions that a timing job is about, none that is wrong or failed before, and what it asks for."""
    before = _blocks_before(context, job)
    failed = {name for one in before for name, got in one["results"].items() if got.get("status") == "failed"}
    names = [name for name in context.right(job.versions, job.workload) if name not in failed]
    modes = ["cold", "warm"]
    if context.problem.flops(context.workloads[job.workload]) < SMALL_FLOPS:
        modes.append("graph")
    # A session of a noise run has all rounds, and decides on its batches as a run by itself would.
    settings = context.settings
    numbers = [] if settings.pairs else sample_schedule.blocks(settings.rounds, settings.processes)
    return names, {
        **context.request(job.workload),
        "versions": [context.version(name) for name in names],
        "modes": modes,
        "rounds": numbers[job.block] if numbers else list(range(context.settings.rounds)),
        "samples": context.settings.samples,
        "clock": "none",  # nobody locks the clocks while latency is taken
        "max_seconds": context.own_limit_s("time"),
        "batch": {
            name: got["batch"]
            for one in (before if numbers else ())
            for name, got in one["results"].items()
            if got.get("batch")
        },
    }


def _blocks_before(context: JobContext, job: Job) -> list[Json]:
    ended = context.staging.outcomes()
    keys = [Job("time", job.workload, job.versions, block).key for block in range(job.block)]
    return [ended[key] for key in keys if key in ended]


def time_versions(context: JobContext, job: Job, names: Sequence[str], request: Json) -> Json:
    """All in one process, alternating; where it dies, each by itself, so that one costs itself alone."""
    whole = context.stage("latency", request, context.folder(job), job)
    if "versions" in whole or len(names) == 1:
        results = whole.get("versions") or {names[0]: untimed(whole)}
        return {**stage_facts(whole), "results": results}
    results, last, alike = {}, whole, FailureStreak()
    for place, name in enumerate(interleaved(names), start=1):
        if alike.words:  # the next block has another try at it, without those that failed
            results[name] = untimed({"status": "skipped", "reason": alike.words})
            continue
        # Rounds of equal numbers would be read as A B B A; these are none.
        own = [number + place * context.settings.rounds for number in request["rounds"]]
        most = min(request["max_seconds"], context.own_limit_s("time"))
        one = {**request, "versions": [context.version(name)], "rounds": own, "max_seconds": most}
        alone = context.stage("latency", one, context.folder(job, name), job)
        results[name] = (alone.get("versions") or {}).get(name) or untimed(alone)
        alike.see(name, results[name])
        last = alone if "versions" in alone else last
    done = any(one.get("status") == "done" for one in results.values())
    retried = f"the group's process died ({whole.get('reason')}); each version was timed by itself"
    return {
        **stage_facts(last),
        "status": "done" if done else "failed",
        "reason": retried,
        "results": results,
    }


def untimed(result: Mapping[str, Any]) -> Json:
    """What a version got of a stage that timed none."""
    return {"status": result.get("status", "failed"), "reason": result.get("reason"), "samples": []}


def stage_facts(result: Mapping[str, Any]) -> Json:
    """What a stage says beside its versions."""
    return {
        "status": result.get("status", "failed"),
        "reason": result.get("reason"),
        **{key: result[key] for key in ("launch_ns", "states", "device", "cold_sets") if key in result},
        "seconds": result.get("seconds"),
    }
