"""How a version is checked and timed: one process a check, one a group and block of rounds, retried apart."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from profiler.collect import sample_schedule
from profiler.collect.jobs import Alike, Json, Work, far_apart
from profiler.collect.plan import Job

SMALL_FLOPS = 1e9  # below this a call is short enough for its dispatch to matter: graph replay is timed too
CHECKS = 8  # at a time, at least: most of a check is torch's import and the reference, not the GPU
_CHECKS_MOST = 16
_CHECK_BYTES = 2 << 30  # of the GPU's memory for each: a context, torch's own and the arrays


def check_version(work: Work, job: Job) -> Json:
    """One version on one workload, against the reference."""
    (name,) = job.versions
    if why := work.unrunnable(name):
        return {"status": "skipped", "reason": why}
    request = {**work.request(job.workload), "version": work.version(name)}
    threads = str(max(1, (os.cpu_count() or 1) // checks_at_once(work.machine.gpu)))  # of the reference
    env = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    result = work.stage("correctness", request, work.folder(job), job, env)
    return {"status": result["status"], "reason": result.get("reason"), "results": {name: result}}


def checks_at_once(gpu: Mapping[str, Any] | None) -> int:
    """How many checks run side by side: one a CPU as far as the GPU's memory allows, never over 16."""
    memory = (gpu or {}).get("memory_bytes")
    wanted = min(_CHECKS_MOST, max(CHECKS, os.cpu_count() or 1))
    return max(1, min(wanted, memory // _CHECK_BYTES)) if memory else wanted


def blocks(work_rounds: int, processes: int) -> int:
    """How many fresh processes the rounds are spread over; none is left without a round."""
    return len(sample_schedule.blocks(work_rounds, processes))


def time_group(work: Work, job: Job) -> Json:
    """One block of rounds of every right version of a workload, in one process."""
    names, request = asked(work, job)
    return group(work, job, names, request) if names else work.nobody(job)


def asked(work: Work, job: Job) -> tuple[list[str], Json]:
    """The versions that a timing job is about, none that is wrong or failed before, and what it asks for."""
    before = _blocks_before(work, job)
    failed = {name for one in before for name, got in one["results"].items() if got.get("status") == "failed"}
    names = [name for name in work.right(job.versions, job.workload) if name not in failed]
    modes = ["cold", "warm"]
    if work.problem.flops(work.workloads[job.workload]) < SMALL_FLOPS:
        modes.append("graph")
    # A session of a noise run has all rounds, and decides on its batches as a run by itself would.
    numbers = (
        [] if work.settings.pairs else sample_schedule.blocks(work.settings.rounds, work.settings.processes)
    )
    return names, {
        **work.request(job.workload),
        "versions": [work.version(name) for name in names],
        "modes": modes,
        "rounds": numbers[job.block] if numbers else list(range(work.settings.rounds)),
        "samples": work.settings.samples,
        "clock": "none",  # nobody locks the clocks while latency is taken
        "max_seconds": work.own_limit_s("time"),
        "batch": {
            name: got["batch"]
            for one in (before if numbers else ())
            for name, got in one["results"].items()
            if got.get("batch")
        },
    }


def _blocks_before(work: Work, job: Job) -> list[Json]:
    ended = work.staging.outcomes()
    keys = [Job("time", job.workload, job.versions, block).key for block in range(job.block)]
    return [ended[key] for key in keys if key in ended]


def group(work: Work, job: Job, names: Sequence[str], request: Json) -> Json:
    """All in one process, alternating; where it dies, each by itself, so that one costs itself alone."""
    whole = work.stage("latency", request, work.folder(job), job)
    if "versions" in whole or len(names) == 1:
        results = whole.get("versions") or {names[0]: nothing(whole)}
        return {**stage_facts(whole), "results": results}
    results, last, alike = {}, whole, Alike()
    for place, name in enumerate(far_apart(names), start=1):
        if alike.words:  # the next block has another try at it, without those that failed
            results[name] = nothing({"status": "skipped", "reason": alike.words})
            continue
        # Rounds of equal numbers would be read as A B B A; these are none.
        own = [number + place * work.settings.rounds for number in request["rounds"]]
        most = min(request["max_seconds"], work.own_limit_s("time"))
        one = {**request, "versions": [work.version(name)], "rounds": own, "max_seconds": most}
        alone = work.stage("latency", one, work.folder(job, name), job)
        results[name] = (alone.get("versions") or {}).get(name) or nothing(alone)
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


def nothing(result: Mapping[str, Any]) -> Json:
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
