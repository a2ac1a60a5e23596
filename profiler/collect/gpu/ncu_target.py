"""The program that ncu and compute-sanitizer run: it launches versions inside NVTX ranges.

With `profiler` in the request the counted calls lie between cudaProfilerStart and Stop as well: the way to
find them for an ncu to which the ranges tell nothing. Never otherwise, for the stop ends all profiling. With
`max_seconds` no cell is begun after it: ncu writes its report when this program ends by itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

from profiler.collect.gpu import calls, program
from profiler.collect.gpu.buffers import Buffers, upload
from profiler.collect.gpu.calls import Call
from profiler.collect.gpu.messages import NCU_TARGET, CellResult, TargetRequest, TargetResult

UNLAUNCHED = "unlaunched"  # a cell for which no time was left

# The NVTX library of its own, where torch was built without: CUDA 12 and before, then the wheels of CUDA 13.
_NVTX_LIBRARIES = ("libnvToolsExt.so.1", "libnvToolsExt.so", "libnvtx3interop.so")


def launch_cells(request: TargetRequest) -> TargetResult:
    """Launch each cell `warm_up` times, then `calls` times in its range; one that fails leaves the others."""
    until = time.monotonic() + (request.max_seconds or float("inf"))
    torch = program.require_gpu()
    catalog, problem = program.load_problem(request.setup)
    ranges = NvtxRanges(torch)
    versions = {version.id: version for version in request.versions}
    buffers: dict[str, Buffers] = {}
    results: list[CellResult] = []
    for cell in request.cells:
        workload = problem.workload(**cell.workload)
        name = range_name(cell.version, workload.label)
        result: CellResult = {
            "version": cell.version,
            "workload": workload.label,
            "range": name,
            "status": "done",
            "reason": None,
        }
        results.append(result)
        if len(results) > 1 and time.monotonic() > until:
            result["status"] = UNLAUNCHED
            continue
        if workload.label not in buffers:
            buffers.clear()  # one workload's arrays at a time: ncu saves and restores what is allocated
            buffers[workload.label] = upload(torch, program.load_case(request.setup, problem, workload))
        try:
            version = versions[cell.version]
            call = calls.bind(torch, catalog, problem, version, buffers[workload.label])
            _launch(torch, call, ranges, name, request)
        except Exception as error:
            result["status"], result["reason"] = program.error_status(error), program.error_reason(error)
            if not _usable(torch):
                return {"status": "failed", "reason": f"{name}: {result['reason']}", "cells": results}
    failed = [result for result in results if result["status"] not in ("done", UNLAUNCHED)]
    status = "done" if len(failed) < len(results) else "failed"
    return {"status": status, "reason": failed[0]["reason"] if failed else None, "cells": results}


def range_name(version: str, workload: str) -> str:
    """The NVTX range of a cell: letters, digits and `_`; other characters as their code points.

    ncu's filter and its CSV have rules for `/`, `:`, brackets and others, and those differ between versions.
    """
    return "_at_".join(re.sub(r"\W", _escape, word, flags=re.ASCII) for word in (version, workload))


def _escape(match: re.Match[str]) -> str:
    return "_" if match[0] == " " else f"_{ord(match[0]):x}_"


def _launch(torch: Any, call: Call, ranges: NvtxRanges, name: str, request: TargetRequest) -> None:
    for _ in range(request.warm_up):
        call()
    torch.cuda.synchronize()
    for _ in range(request.calls):
        if request.profiler:
            torch.cuda.profiler.start()
        with ranges.open(name):
            call()
            torch.cuda.synchronize()
        if request.profiler:
            torch.cuda.profiler.stop()


def _usable(torch: Any) -> bool:
    """Whether the context survived: after an illegal address every later call fails."""
    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda")
    except Exception:
        return False
    return True


class NvtxRanges:
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
        """One range, closed when the body ends."""
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
            _ = library.nvtxRangePop  # raises AttributeError where it is another library of that name
            return library
    return None


if __name__ == "__main__":
    sys.exit(program.main(NCU_TARGET, launch_cells))
