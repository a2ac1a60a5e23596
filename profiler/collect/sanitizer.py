"""How a version is run under compute-sanitizer, and what its silence is worth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from profiler.collect import gpu_process
from profiler.collect.jobs import JobContext, Json, LeftOut
from profiler.collect.plan import Job

SANITIZERS = ("racecheck", "memcheck", "initcheck")
_SUMMARY = "SUMMARY:"
# It waits 10 s for a program's first sign and may then hang, while torch's import takes longer where several
# run side by side. torch's allocator hands out parts of large pieces: a write beside a part is in the piece
# still. Source: proteneer/timemachine #668; c10/cuda/CUDACachingAllocator.cpp, forceUncachedAllocator.
_CONNECT_S = 120
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def sanitize(context: JobContext, job: Job) -> Json:
    """Every tool on one version: wrong where one found something, failed where one gave no answer."""
    (name,) = job.versions
    if context.machine.sanitizer is None:
        raise LeftOut("no compute-sanitizer here")
    if why := context.unrunnable(name):
        return {"status": "skipped", "reason": why}
    found: Json = {}
    for tool in SANITIZERS:
        try:
            found[tool] = _run(context, job, tool)
        except LeftOut as left:
            if context.stopped or not any(got["found"] for got in found.values()):
                raise
            found[tool] = {"found": None, "summary": str(left)}  # what was found before stands
    bad = [tool for tool, got in found.items() if got["found"]]
    unknown = [f"{tool}: {got['summary']}" for tool, got in found.items() if got["found"] is None]
    status = "wrong" if bad else "failed" if unknown else "done"
    reason = f"no answer of {'; '.join(unknown)}" if unknown else None
    reason = f"found by {', '.join(bad)}" if bad else reason
    return {"status": status, "reason": reason, "results": {name: found}}


def _run(context: JobContext, job: Job, tool: str) -> Json:
    (name,) = job.versions
    folder = context.folder(job, tool)
    folder.mkdir(parents=True, exist_ok=True)
    asked, answer, log = (folder / one for one in ("request.json", "result.json", "log"))
    answer.unlink(missing_ok=True)  # of a session that was killed
    content = {
        **context.request(job.workload),
        "versions": [context.version(name)],
        "calls": 1,
        "warm_up": 0,
        "cells": [{"version": name, "workload": context.workloads[job.workload].sizes()}],
    }
    asked.write_text(json.dumps(content), encoding="utf-8")
    program = gpu_process.stage_argv("ncu_target", asked, answer)
    assert context.machine.sanitizer
    ended = context.program(command_line(context.machine.sanitizer, tool, program), job, log, ENVIRONMENT)
    result = gpu_process.result_of(answer, ended)
    if result.get("machine"):
        raise LeftOut(str(result["reason"]))
    return verdict(log.read_text(encoding="utf-8", errors="replace"), result, ended.words)


def command_line(sanitizer: Path, tool: str, program: Sequence[str]) -> list[str]:
    """The whole call. Errors of the API are left out: torch makes calls that are meant to fail, and a launch
    that is refused is in the program's answer.
    """
    options = ["--tool", tool, "--print-limit", "10", "--report-api-errors", "no"]
    return [str(sanitizer), *options, "--launch-timeout", str(_CONNECT_S), *program]


def verdict(output: str, result: Json, ended: str = "ended") -> Json:
    """How much was found; None where the program did not launch all that it was asked to: that is no pass.

    ended: how the tool ended, as the end of a sentence.
    """
    line = next((one for one in reversed(output.splitlines()) if _SUMMARY in one), "")
    number = next((int(word) for word in line.replace("(", " ").split() if word.isdigit()), None)
    if number:  # found before it died
        return {"found": number, "summary": line.strip("= ").strip()}
    ran = result.get("status") == "done"
    why = line.strip("= ").strip() if ran else str(result.get("reason") or "it did not run")
    return {"found": number if ran else None, "summary": why or f"it {ended} without a summary"}
