"""A candidate's machine code run on the CPU, in isolation, and what became of its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.bundles import scratch_folder
from profiler.judge.call_plan import CallPlan
from profiler.judge.compilation import CUBIN, MachineCode, run_worker, usage_json
from profiler.judge.isolation import Isolation, Limits

POISON = 0xFF  # of every byte of an output: NaN in fp16 and fp32
PLAUSIBLE = -1  # in place of a byte: random numbers about 1, as an earlier result might look
POISONS = (POISON, PLAUSIBLE, 0x7B, 0x00)


@dataclass(frozen=True)
class MachineResult:
    """What a run of a call's machine code showed."""

    arrays: tuple[NDArray[np.uint8], ...]  # what each holds afterwards; none where there is an error
    error: str = ""  # why it did not come to its end
    no_model: bool = False  # the error says nothing about the candidate: an instruction has no model
    written_outside: int = 0  # bytes outside of every array
    races: tuple[str, ...] = ()
    races_unknown: str = ""  # why races could not be looked for


def run_call(
    code: MachineCode,
    plan: CallPlan,
    isolation: Isolation,
    limits: Limits,
    *,
    poison: int = POISON,
    scratch: Sequence[NDArray[np.uint8]] | None = None,
    blocks: Mapping[int, NDArray[Any]] | None = None,
) -> MachineResult:
    """Run a call with values.

    poison: what every byte of the output and of the scratch buffers is before, or PLAUSIBLE: a kernel that
    takes what is there for done must not pass. scratch: what these hold
    instead, as an earlier call left them. blocks: those to run of a launch, by its number; all without.
    """
    with scratch_folder() as folder:
        names, results, sizes = [], [], []
        for number, array in enumerate(plan.arrays):
            content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            if number == plan.output:
                content = _filled(content.size, poison)
            elif number in plan.scratch:
                kept = scratch[plan.scratch.index(number)] if scratch is not None else None
                content = _filled(content.size, poison) if kept is None else kept
            name = f"in{number}.bin"
            content.tofile(folder / name)
            names.append(name)
            results.append(f"out{number}.bin")
            sizes.append(int(content.size))
        launches = []
        for number, launch in enumerate(plan.launches):
            row = launch.as_json()
            if blocks is not None and number in blocks:
                row["blocks"] = blocks[number].tolist()
            launches.append(row)
        job = {
            "kind": "call",
            "cubin": str(_inside(code, isolation) / CUBIN),
            "arch": code.arch,
            "arrays": names,
            "results": results,
            "sizes": sizes,
            "launches": launches,
            "written": [plan.output, *plan.scratch],
        }
        answer = run_worker(job, folder, isolation, limits, readable=[code.folder])
        if "error" in answer:
            return MachineResult((), str(answer["error"]), bool(answer.get("no_model")))
        arrays = tuple(_read(folder / name, size) for name, size in zip(results, sizes, strict=True))
        return MachineResult(
            arrays,
            written_outside=int(answer["written_outside"]),
            races=tuple(map(str, answer.get("races", ()))),
            races_unknown=str(answer.get("races_unknown", "")),
        )


def predict_call(
    code: MachineCode, plan: CallPlan, gpu: str, isolation: Isolation, limits: Limits
) -> dict[str, Any]:
    """The modelled times of a call's launches, as machine_worker.py gives them, or `error`."""
    with scratch_folder() as folder:
        names = []
        for number, array in enumerate(plan.arrays):
            name = f"in{number}.bin"
            np.ascontiguousarray(array).reshape(-1).view(np.uint8).tofile(folder / name)
            names.append(name)
        job = {
            "kind": "time",
            "cubin": str(_inside(code, isolation) / CUBIN),
            "arch": code.arch,
            "gpu": gpu,
            "arrays": names,
            "launches": [launch.as_json() for launch in plan.launches],
            "usage": usage_json(code),
        }
        return run_worker(job, folder, isolation, limits, readable=[code.folder])


def _filled(size: int, poison: int) -> NDArray[np.uint8]:
    if poison != PLAUSIBLE:
        return np.full(size, poison, np.uint8)
    numbers = np.random.default_rng().standard_normal(-(-size // 2), np.float32).astype(np.float16)
    return numbers.view(np.uint8)[:size]


def _inside(code: MachineCode, isolation: Isolation) -> Path:
    return code.folder.resolve()


def _read(path: Path, size: int) -> NDArray[np.uint8]:
    """A file that the worker wrote; short ones are filled with zeros."""
    content = np.zeros(size, np.uint8)
    if path.is_file() and not path.is_symlink():
        with path.open("rb") as file:
            written = np.frombuffer(file.read(size), np.uint8)
        content[: written.size] = written
    return content
