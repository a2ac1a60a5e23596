"""Whether a version is right on the GPU: one workload, fresh inputs, poisoned output, float64 reference."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from profiler.catalog import Case, OutputCheck, check_output
from profiler.catalog.problem import Array
from profiler.collect.gpu import calls as version_calls
from profiler.collect.gpu import device, stage
from profiler.collect.gpu.buffers import Buffers, upload
from profiler.collect.gpu.calls import Call, LaunchRefused

REPEATS = 3  # a race may be lost only sometimes; each repeat has a poisoned output of its own


def work(request: stage.Json) -> stage.Json:
    """The stage: see stage.main. The result's status is done, wrong, failed or skipped."""
    torch = stage.require_gpu()
    place, problem = stage.problem_of(request)
    workload = problem.workload(**request["workload"])
    case = stage.case_of(request, problem, workload)
    buffers = upload(torch, case)
    found: stage.Json = {"workload": workload.label, "seed": request.get("seed", 0)}
    gpu = device.describe()
    found["device"] = gpu.as_json() if gpu else None
    found["input_error"] = case.input_error
    call = version_calls.bind(torch, place, problem, request["version"], buffers)
    try:
        outputs, outside = _outputs(torch, call, buffers, int(request.get("repeats") or REPEATS))
    except LaunchRefused as refused:
        return {**found, "status": "failed", "reason": str(refused), "returned": refused.code}
    found.update(verdict(outputs, outside, _changed_inputs(torch, case, buffers), case), returned=0)
    if request.get("save"):
        _save(outputs[0], Path(request["save"]))
    return found


def verdict(outputs: Sequence[Array], outside: bool, changed: bool, case: Case) -> stage.Json:
    """What the outputs of all repeats say together; the worst repeat speaks for all."""
    if any(output.shape != case.output.shape for output in outputs):
        shape = next(output.shape for output in outputs if output.shape != case.output.shape)
        reason = f"its output has shape {list(shape)} instead of {list(case.output.shape)}"
        return {"status": "wrong", "reason": reason, "max_abs_error": None}
    numbers = [check_output(output, case.reference, case.tolerance) for output in outputs]
    worst = max(numbers, key=_badness)
    moved = any(output.tobytes() != outputs[0].tobytes() for output in outputs[1:])
    reasons = [_words(worst, case.output.size)] if worst.wrong else []
    reasons += ["it wrote outside its output"] if outside else []
    reasons += ["it changed its inputs"] if changed else []
    wrong = bool(reasons)
    if moved:  # a race, or memory that nobody wrote, even where every output is within tolerance
        reasons.append("the same inputs gave different outputs" + ("" if wrong else ", all within tolerance"))
    return {
        "status": "wrong" if wrong else "done",
        "reason": "; ".join(reasons) or None,
        "max_abs_error": worst.max_abs_error,
        "wrong": worst.wrong,
        "not_finite": worst.not_finite,
        "first_wrong": worst.first_wrong,
        "elements": case.output.size,
        "moved": moved,
        "outside": outside,
        "changed_inputs": changed,
        "errors": [one.max_abs_error for one in numbers],
    }


def _badness(numbers: OutputCheck) -> tuple[int, float]:
    return numbers.wrong, float("inf") if numbers.max_abs_error is None else numbers.max_abs_error


def _words(numbers: OutputCheck, elements: int) -> str:
    index = "" if numbers.first_wrong is None else f", the first at {list(numbers.first_wrong)}"
    text = f"{numbers.wrong} of {elements} elements are out of tolerance{index}"
    if numbers.not_finite:
        return f"{text}; {numbers.not_finite} are not finite"
    return f"{text}; the largest error is {numbers.max_abs_error:.3g}"


def _outputs(torch: Any, call: Call, buffers: Buffers, repeats: int) -> tuple[list[Array], bool]:
    """What every repeat wrote, and whether one wrote outside; an error of a launch shows in the wait."""
    outputs, outside = [], False
    for _ in range(repeats):
        buffers.reset()
        torch.cuda.synchronize()  # what fails from here on is the version's own
        got = call()
        torch.cuda.synchronize()
        outputs.append(np.ascontiguousarray(got.detach().cpu().numpy()))
        outside = outside or buffers.outside()
    return outputs, outside


def _changed_inputs(torch: Any, case: Case, buffers: Buffers) -> bool:
    for value, tensor in zip(case.arguments, buffers.arguments, strict=True):
        if isinstance(value, np.ndarray) and value is not case.output:
            now = tensor.detach().cpu().numpy()
            if now.tobytes() != np.ascontiguousarray(value).tobytes():
                return True
    return False


def _save(output: Array, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, output, allow_pickle=False)


if __name__ == "__main__":
    sys.exit(stage.main(work))
