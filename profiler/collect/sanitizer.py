"""Running a version under compute-sanitizer; no finding counts only if every launch was made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profiler.collect import gpu_process
from profiler.collect.gpu.messages import NCU_TARGET, CellRequest, TargetRequest, TargetResult
from profiler.collect.jobs import JobContext, LeftOut
from profiler.collect.outcomes import NoResults, SanitizerOutcome, ToolFinding, envelope
from profiler.collect.plan import Job

TOOLS = ("racecheck", "memcheck", "initcheck")
_SUMMARY = "SUMMARY:"
# It waits 10 s for a program's first sign and may then hang, while torch's import takes longer where several
# run side by side. torch's allocator hands out parts of large pieces: a write beside a part is in the piece
# still. Source: proteneer/timemachine #668; c10/cuda/CUDACachingAllocator.cpp, forceUncachedAllocator.
_CONNECT_S = 120
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def sanitize(context: JobContext, job: Job) -> SanitizerOutcome | NoResults:
    """Run every tool on one version: wrong where a tool found something, failed where one gave no answer."""
    (name,) = job.versions
    if context.machine.sanitizer is None:
        raise LeftOut("no compute-sanitizer here")
    if why := context.why_not_runnable(name):
        return {**envelope(job), "status": "skipped", "reason": why, "results": {}}
    findings: dict[str, ToolFinding] = {}
    for tool in TOOLS:
        try:
            findings[tool] = _run_tool(context, job, context.machine.sanitizer, tool)
        except LeftOut as left_out:
            if context.stopped or not any(finding["found"] for finding in findings.values()):
                raise
            findings[tool] = {"found": None, "summary": str(left_out)}  # the findings of earlier tools stand
    guilty = [tool for tool, finding in findings.items() if finding["found"]]
    silent = [
        f"{tool}: {finding['summary']}" for tool, finding in findings.items() if finding["found"] is None
    ]
    if guilty:
        status, reason = "wrong", f"found by {', '.join(guilty)}"
    elif silent:
        status, reason = "failed", f"no answer of {'; '.join(silent)}"
    else:
        status, reason = "done", None
    return {**envelope(job), "status": status, "reason": reason, "results": {name: findings}}


def _run_tool(context: JobContext, job: Job, sanitizer: Path, tool: str) -> ToolFinding:
    (name,) = job.versions
    folder = context.folder(job, tool)
    request = TargetRequest(
        versions=(context.version_code(name),),
        cells=(CellRequest(name, context.selection.workloads[job.workload].sizes()),),
        setup=context.setup,
        warm_up=0,
    )
    program = gpu_process.prepare(NCU_TARGET, request, folder)
    log = folder / "log"
    ended = context.run_tool(command_line(sanitizer, tool, program.argv), job, log, ENVIRONMENT)
    result = program.result(ended)
    if result.get("machine"):
        raise LeftOut(str(result["reason"]))
    return judge_output(log.read_text(encoding="utf-8", errors="replace"), result, ended.description)


def command_line(sanitizer: Path, tool: str, program: Sequence[str]) -> list[str]:
    """The whole call.

    Errors of the API are left out: torch makes calls that are meant to fail, and a launch that is refused is
    in the program's result.
    """
    options = ["--tool", tool, "--print-limit", "10", "--report-api-errors", "no"]
    return [str(sanitizer), *options, "--launch-timeout", str(_CONNECT_S), *program]


def judge_output(output: str, result: TargetResult, ended: str = "ended") -> ToolFinding:
    """The number of findings; None where the program did not make all its launches, which is not a pass.

    ended: how the tool ended, as the end of a sentence.
    """
    line = next((line for line in reversed(output.splitlines()) if _SUMMARY in line), "")
    summary = line.strip("= ").strip()
    number = next((int(word) for word in line.replace("(", " ").split() if word.isdigit()), None)
    if number:  # found before it died
        return {"found": number, "summary": summary}
    if result["status"] == "done":
        return {"found": number, "summary": summary or f"it {ended} without a summary"}
    why = str(result["reason"] or "it did not run")
    return {"found": None, "summary": why}
