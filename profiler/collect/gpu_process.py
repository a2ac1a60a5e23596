"""How a program of collect/gpu is run: a request in a file, a result in another, an ending as a reason."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiler.collect import subprocesses
from profiler.collect.subprocesses import ProcessResult


def stage_argv(stage: str, request: Path, result: Path) -> list[str]:
    """The command line of a stage; a profiler or a sanitizer may be put in front of it."""
    return [sys.executable, "-m", f"profiler.collect.gpu.{stage}", str(request), str(result)]


def run_stage(
    stage: str,
    request: Mapping[str, Any],
    folder: Path,
    *,
    timeout_s: float,
    memory_bytes: int | None = None,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Run one stage in a process of its own and give its result; its files are left in `folder`.

    A stage that died without a result is failed, with how it ended as the reason, its `ended` and the `tail`
    of its output.
    """
    folder.mkdir(parents=True, exist_ok=True)
    asked, answered = folder / f"{stage}.request.json", folder / f"{stage}.result.json"
    answered.unlink(missing_ok=True)
    asked.write_text(json.dumps(request, indent=1), encoding="utf-8")
    ended = subprocesses.run(
        stage_argv(stage, asked, answered),
        timeout_s=timeout_s,
        log=folder / f"{stage}.log",
        memory_bytes=memory_bytes,
        env={**subprocesses.package_environment(), **(env or {})},
    )
    return {**result_of(answered, ended), "seconds": round(ended.seconds, 3)}


def result_of(path: Path, ended: ProcessResult) -> dict[str, Any]:
    """What a stage wrote, or why it wrote nothing."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(result, dict) and "status" in result:
            return result if ended.ok else {**result, "ended": ended.kind}
        problem = "and its result is no result"
    except FileNotFoundError:
        problem = ended.last_line
    except (OSError, ValueError) as error:
        problem = f"and its result cannot be read: {error}"
    reason = f"its process {ended.words}" + (f": {problem}" if problem else "")
    if ended.kind == "signalled" and ended.code == signal.SIGKILL:
        reason += " (by the system where memory ran out, or by somebody)"
    return {"status": "failed", "reason": reason, "ended": ended.kind, "tail": ended.tail}
