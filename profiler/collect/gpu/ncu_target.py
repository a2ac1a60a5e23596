"""The program that ncu and compute-sanitizer look at: versions launched inside NVTX ranges.

With `"profiler": true` in the request the counted calls lie between cudaProfilerStart and Stop as well: the
way to find them for an ncu to which the ranges tell nothing. Never otherwise: the stop ends all profiling.
With `"max_seconds"` no cell is begun after it: ncu writes its report when this program ends by itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

from profiler.collect.gpu import calls as version_calls
from profiler.collect.gpu import stage
from profiler.collect.gpu.buffers import Buffers, upload
from profiler.collect.gpu.calls import Call

UNLAUNCHED = "unlaunched"  # a cell for which no time was left: nothing is known of it

# The NVTX library of its own, where torch was built without: CUDA 12 and before, then the wheels of CUDA 13.
_NVTX_LIBRARIES = ("libnvToolsExt.so.1", "libnvToolsExt.so", "libnvtx3interop.so")


def work(request: stage.Json) -> stage.Json:
    """The stage: see stage.main. A cell is launched `warm_up` times, then `calls` times in its range."""
    until = time.monotonic() + float(request.get("max_seconds") or "inf")
    torch = stage.require_gpu()
    place, problem = stage.problem_of(request)
    ranges = Ranges(torch)
    versions = {version["id"]: version for version in request["versions"]}
    calls, warm_up = int(request.get("calls", 1)), int(request.get("warm_up", 1))
    buffers: dict[str, Buffers] = {}
    cells: list[stage.Json] = []
    for asked in request["cells"]:
        workload = problem.workload(**asked["workload"])
        name = range_name(asked["version"], workload.label)
        cell = {"version": asked["version"], "workload": workload.label, "range": name}
        if cells and time.monotonic() > until:
            cells.append({**cell, "status": UNLAUNCHED, "reason": None})
            continue
        if workload.label not in buffers:
            buffers.clear()  # one workload's arrays at a time: ncu saves and restores what is allocated
            buffers[workload.label] = upload(torch, stage.case_of(request, problem, workload))
        status, reason = "done", None
        try:
            version = versions[asked["version"]]
            call = version_calls.bind(torch, place, problem, version, buffers[workload.label])
            _launch(torch, call, ranges, name, calls, warm_up, bool(request.get("profiler")))
        except Exception as error:
            status, reason = stage.error_status(error), stage.error_reason(error)
        cells.append({**cell, "status": status, "reason": reason})
        if reason and not _usable(torch):
            return {"status": "failed", "reason": f"{name}: {reason}", "cells": cells}
    failed = [cell for cell in cells if cell["status"] not in ("done", UNLAUNCHED)]
    status = "done" if len(failed) < len(cells) else "failed"
    return {"status": status, "reason": failed[0]["reason"] if failed else None, "cells": cells}


def range_name(version: str, workload: str) -> str:
    """The NVTX range of a cell: letters, digits and `_` alone, since ncu's filter and its CSV have rules for
    `/`, `:`, brackets and others, and those differ between versions. Other characters become their numbers.
    """
    return "_at_".join(re.sub(r"\W", _code, word, flags=re.ASCII) for word in (version, workload))


def _code(match: re.Match[str]) -> str:
    return "_" if match[0] == " " else f"_{ord(match[0]):x}_"


def _launch(
    torch: Any, call: Call, ranges: Ranges, name: str, calls: int, warm_up: int, profiler: bool
) -> None:
    for _ in range(warm_up):
        call()
    torch.cuda.synchronize()
    for _ in range(calls):
        if profiler:
            torch.cuda.profiler.start()
        with ranges.open(name):
            call()
            torch.cuda.synchronize()
        if profiler:
            torch.cuda.profiler.stop()


def _usable(torch: Any) -> bool:
    """Whether the context survived: after an illegal address every later call fails."""
    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda")
    except Exception:
        return False
    return True


class Ranges:
    """NVTX push/pop ranges, through torch or through the NVTX library. Raises RuntimeError without either."""

    def __init__(self, torch: Any) -> None:
        try:
            torch.cuda.nvtx.range_push("probe")  # a build without NVTX has the functions, and they raise
            torch.cuda.nvtx.range_pop()
            self._push, self._pop = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
        except Exception as error:
            library = nvtx_library()
            if library is None:
                raise RuntimeError(f"no NVTX: torch says {error}, and there is no libnvToolsExt") from None
            self._push = lambda name: library.nvtxRangePushA(name.encode())
            self._pop = library.nvtxRangePop

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[None]:
        """One range."""
        self._push(name)
        try:
            yield
        finally:
            self._pop()


def nvtx_library() -> Any:
    """The NVTX library, or None."""
    for name in _NVTX_LIBRARIES:
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(name)
            library.nvtxRangePushA.argtypes = [ctypes.c_char_p]
            _ = library.nvtxRangePop
            return library
    return None


if __name__ == "__main__":
    sys.exit(stage.main(work))
