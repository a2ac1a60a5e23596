"""How a version is run under compute-sanitizer, and what its silence is worth."""

from __future__ import annotations

import json

from profiler import isolated
from profiler.plan import Job
from profiler.work import Json, LeftOut, Work

SANITIZERS = ("racecheck", "memcheck", "initcheck")
_SUMMARY = "SUMMARY:"


def sanitize(work: Work, job: Job) -> Json:
    """Every tool on one version: wrong where one found something, failed where one gave no answer."""
    (name,) = job.versions
    if work.machine.sanitizer is None:
        raise LeftOut("no compute-sanitizer here")
    if why := work.unrunnable(name):
        return {"status": "skipped", "reason": why}
    found = {tool: _run(work, job, tool) for tool in SANITIZERS}
    bad = [tool for tool, got in found.items() if got["found"]]
    unknown = [f"{tool}: {got['summary']}" for tool, got in found.items() if got["found"] is None]
    status = "wrong" if bad else "failed" if unknown else "done"
    reason = f"no answer of {'; '.join(unknown)}" if unknown else None
    reason = f"found by {', '.join(bad)}" if bad else reason
    return {"status": status, "reason": reason, "results": {name: found}}


def _run(work: Work, job: Job, tool: str) -> Json:
    (name,) = job.versions
    folder = work.folder(job, tool)
    folder.mkdir(parents=True, exist_ok=True)
    asked, answer, log = (folder / one for one in ("request.json", "result.json", "log"))
    answer.unlink(missing_ok=True)  # of a session that was killed
    content = {
        **work.request(job.workload),
        "versions": [work.version(name)],
        "calls": 1,
        "warm_up": 0,
        "cells": [{"version": name, "workload": work.workloads[job.workload].sizes()}],
    }
    asked.write_text(json.dumps(content), encoding="utf-8")
    # A refused call is in the program's answer; torch makes calls that fail and are meant to.
    options = ["--tool", tool, "--print-limit", "10", "--report-api-errors", "no"]
    ended = work.program(
        [work.machine.sanitizer or "", *options, *isolated.stage_argv("target", asked, answer)], job, log
    )
    result = isolated.result_of(answer, ended)
    if result.get("machine"):
        raise LeftOut(str(result["reason"]))
    return verdict(log.read_text(encoding="utf-8", errors="replace"), result)


def verdict(output: str, result: Json) -> Json:
    """How much was found; None where the program did not launch all that it was asked to: that is no pass."""
    line = next((one for one in reversed(output.splitlines()) if _SUMMARY in one), "")
    number = next((int(word) for word in line.replace("(", " ").split() if word.isdigit()), None)
    if number:  # found before it died
        return {"found": number, "summary": line.strip("= ").strip()}
    ran = result.get("status") == "done"
    why = line.strip("= ").strip() if ran else str(result.get("reason") or "it did not run")
    return {"found": number if ran else None, "summary": why or "no summary"}
