"""A candidate's machine code run on the CPU, in isolation, and what became of its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.bundles.scratch import scratch_folder
from profiler.judge.call_plan import CallPlan
from profiler.judge.compilation import CUBIN, CandidateCode, run_worker, usage_json
from profiler.judge.isolation import Isolation, ProcessLimits
from profiler.judge.machine_races import GRANULE
from profiler.judge.poison import POISON, filled

_SEARCH_SHARE = 0.5  # of the time limit: for finding blocks of other launches


@dataclass(frozen=True)
class MachineResult:
    """What a run of a call's machine code showed."""

    arrays: tuple[NDArray[np.uint8], ...]  # what each holds afterwards; none where there is an error
    error: str = ""  # why it did not come to its end
    no_model: bool = False  # the error says nothing about the candidate: an instruction has no model
    written_outside: int = 0  # bytes outside of every array
    races: tuple[str, ...] = ()
    missing_bytes: int = 0  # of the output and scratch buffers, read before anything in the call wrote them


@dataclass(frozen=True)
class SampleResult(MachineResult):
    """What a run of some blocks of a call showed."""

    blocks: tuple[Any, ...] = ()  # those that were run of each launch, x, y, z
    wrote_bytes: Mapping[int, int] = field(
        default_factory=dict
    )  # of the output, by the drawn blocks of a launch
    executed: tuple[
        Mapping[str, Any], ...
    ] = ()  # of each launch, what its blocks executed: run_work.find_doubt
    writer: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    # by element of the output: the launch that wrote it last; below 0: none


def run_call(
    code: CandidateCode,
    plan: CallPlan,
    isolation: Isolation,
    limits: ProcessLimits,
    *,
    poison: int = POISON,
    scratch: Sequence[NDArray[np.uint8]] | None = None,
) -> MachineResult:
    """Run a call with values.

    poison: what every byte of the output, of the scratch buffers, of registers, shared and local memory is
    before, or PLAUSIBLE: a kernel that takes what is there for done must not pass. scratch: what these
    buffers hold instead, as an earlier call left it.
    """
    with scratch_folder() as folder:
        job = {**_write_call(code, plan, folder, poison, scratch), "kind": "call", "leftover": poison}
        return _result(run_worker(job, folder, isolation, limits, readable=[code.folder]), job, folder)


def sample_call(
    code: CandidateCode,
    plan: CallPlan,
    isolation: Isolation,
    limits: ProcessLimits,
    drawn: Mapping[int, NDArray[Any]],
    *,
    seed: int = 0,
    poison: int = POISON,
    scratch: Sequence[NDArray[np.uint8]] | None = None,
    blocks: Sequence[Any] | None = None,
) -> SampleResult:
    """Run some blocks of a call with values, and those of its other launches that these need.

    drawn: blocks by launch, [n, 3], of launches that may write the output. seed: of where the search for the
    others begins. blocks: those of all launches, as an earlier sample found them. The rest is as run_call's,
    but that registers, shared and local memory are zero before, as where the time is modelled: code that
    looks there for which of both it is must find nothing.
    """
    with scratch_folder() as folder:
        own = {
            "kind": "sample",
            "drawn": {str(number): rows.tolist() for number, rows in drawn.items()},
            "seed": seed,
            "seconds": limits.seconds * _SEARCH_SHARE,
            "writer": "writer.bin",
            "leftover": 0,
        }
        job = {**_write_call(code, plan, folder, poison, scratch), **own}
        if blocks is not None:
            job["blocks"] = list(blocks)
        answer = run_worker(job, folder, isolation, limits, readable=[code.folder])
        result = _result(answer, job, folder)
        if result.error:
            return SampleResult((), result.error, result.no_model)
        itemsize = plan.case.output.dtype.itemsize
        size = plan.case.output.nbytes // GRANULE
        writer = _read(folder / "writer.bin", size).view(np.int8).reshape(-1, max(1, itemsize // GRANULE))
        return SampleResult(
            result.arrays,
            written_outside=result.written_outside,
            races=result.races,
            missing_bytes=result.missing_bytes,
            blocks=tuple(answer["blocks"]),
            wrote_bytes={int(number): int(count) for number, count in answer["wrote_bytes"].items()},
            executed=tuple(answer["executed"]),
            writer=writer.min(axis=1).reshape(plan.case.output.shape),
        )


def _write_call(
    code: CandidateCode,
    plan: CallPlan,
    folder: Path,
    poison: int,
    scratch: Sequence[NDArray[np.uint8]] | None,
) -> dict[str, Any]:
    """A job without its kind; the arrays as files in the folder."""
    names, results, sizes = [], [], []
    for number, array in enumerate(plan.arrays):
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if number == plan.output:
            content = filled(content.size, poison)
        elif number in plan.scratch:
            kept = scratch[plan.scratch.index(number)] if scratch is not None else None
            content = filled(content.size, poison) if kept is None else kept
        name = f"in{number}.bin"
        content.tofile(folder / name)
        names.append(name)
        results.append(f"out{number}.bin")
        sizes.append(int(content.size))
    return {
        "cubin": str(code.folder.resolve() / CUBIN),
        "arch": code.arch,
        "arrays": names,
        "results": results,
        "sizes": sizes,
        "launches": [launch.as_json() for launch in plan.launches],
        "written": [plan.output, *plan.scratch],
    }


def _result(answer: Mapping[str, Any], job: Mapping[str, Any], folder: Path) -> MachineResult:
    if "error" in answer:
        return MachineResult((), str(answer["error"]), bool(answer.get("no_model")))
    arrays = tuple(
        _read(folder / name, size) for name, size in zip(job["results"], job["sizes"], strict=True)
    )
    return MachineResult(
        arrays,
        written_outside=int(answer["written_outside"]),
        races=tuple(map(str, answer.get("races", ()))),
        missing_bytes=int(answer["missing_bytes"]),
    )


def predict_call(
    code: CandidateCode,
    plan: CallPlan,
    gpu: str,
    isolation: Isolation,
    limits: ProcessLimits,
    executed: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The modelled times of a call's launches, as machine_worker.py gives them, or `error`.

    executed: what blocks of each launch did when they were run with values (SampleResult); where those from
    which the time follows do less, a launch has a `doubt`.
    """
    with scratch_folder() as folder:
        names = []
        for number, array in enumerate(plan.arrays):
            name = f"in{number}.bin"
            np.ascontiguousarray(array).reshape(-1).view(np.uint8).tofile(folder / name)
            names.append(name)
        job = {
            "kind": "time",
            "cubin": str(code.folder.resolve() / CUBIN),
            "arch": code.arch,
            "gpu": gpu,
            "arrays": names,
            "launches": [launch.as_json() for launch in plan.launches],
            "usage": usage_json(code),
            "executed": list(executed),
        }
        return run_worker(job, folder, isolation, limits, readable=[code.folder])


def _read(path: Path, size: int) -> NDArray[np.uint8]:
    """A file that the worker wrote; short ones are filled with zeros."""
    content = np.zeros(size, np.uint8)
    if path.is_file() and not path.is_symlink():
        with path.open("rb") as file:
            written = np.frombuffer(file.read(size), np.uint8)
        content[: written.size] = written
    return content
