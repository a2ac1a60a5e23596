"""Running a program of collect/gpu: its request and result are files, and how it ended is a reason."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Generic

from profiler.collect import subprocesses
from profiler.collect.gpu.messages import Program, RequestT, ResultT
from profiler.collect.gpu.typed_json import BadJson, parse
from profiler.collect.subprocesses import ProcessResult


def run_program(
    program: Program[RequestT, ResultT],
    request: RequestT,
    folder: Path,
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
) -> ResultT:
    """Run one program in a process of its own and return its result; its files are left in `folder`."""
    prepared = prepare(program, request, folder)
    ended = subprocesses.run(
        prepared.argv,
        timeout_s=timeout_s,
        log=folder / f"{program.name}.log",
        env={**subprocesses.package_environment(), **(env or {})},
    )
    result = prepared.result(ended)
    result["seconds"] = round(ended.seconds, 3)
    return result


@dataclass(frozen=True)
class PreparedProgram(Generic[RequestT, ResultT]):
    """A program whose request is written; a profiler or a sanitizer may be put in front of its command."""

    program: Program[RequestT, ResultT]
    argv: list[str]
    result_path: Path

    def result(self, ended: ProcessResult) -> ResultT:
        """The result that the program wrote; else a failed result that says how the process ended.

        ended: how the process ended, or the tool in front of it.
        """
        try:
            content = json.loads(self.result_path.read_text(encoding="utf-8"))
            result = parse(self.program.result, content)
            if not ended.ok:
                result["ended"] = ended.kind
            return result
        except FileNotFoundError:
            problem = ended.last_line
        except BadJson as error:
            problem = f"and its result is no result: {error}"
        except (OSError, ValueError) as error:
            problem = f"and its result cannot be read: {error}"
        reason = f"its process {ended.description}" + (f": {problem}" if problem else "")
        if ended.kind == "signalled" and ended.code == signal.SIGKILL:
            reason += " (by the system when memory ran out, or by a user)"
        died = {"status": "failed", "reason": reason, "ended": ended.kind, "tail": ended.tail}
        return parse(self.program.result, died)


def prepare(
    program: Program[RequestT, ResultT], request: RequestT, folder: Path
) -> PreparedProgram[RequestT, ResultT]:
    """Write the request, and remove an old result, which must not be taken for a new one."""
    folder.mkdir(parents=True, exist_ok=True)
    request_path, result_path = (folder / f"{program.name}.{kind}.json" for kind in ("request", "result"))
    result_path.unlink(missing_ok=True)
    assert is_dataclass(request)
    assert not isinstance(request, type)
    request_path.write_text(json.dumps(asdict(request), indent=1), encoding="utf-8")
    return PreparedProgram(program, program_argv(program.name, request_path, result_path), result_path)


def program_argv(name: str, request: Path, result: Path) -> list[str]:
    """The command line of a program."""
    return [sys.executable, "-m", f"profiler.collect.gpu.{name}", str(request), str(result)]
