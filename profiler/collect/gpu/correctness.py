"""Checking a version on the GPU: one workload, fresh inputs, poisoned output, float64 reference."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from profiler.catalog.problem import Array, Case, OutputCheck
from profiler.collect.gpu import calls, device, program
from profiler.collect.gpu.buffers import Buffers, upload
from profiler.collect.gpu.calls import Call, LaunchRefused
from profiler.collect.gpu.messages import CORRECTNESS, CheckRequest, CheckResult
from profiler.collect.gpu.module_launch import PlannedCall


def check(request: CheckRequest) -> CheckResult:
    """Call the version and judge its outputs. The status is done, wrong, failed or skipped."""
    torch = program.require_gpu()
    catalog, problem = program.load_problem(request.setup)
    workload = problem.workload(**request.workload)
    case = program.load_case(request.setup, problem, workload)
    buffers = upload(torch, case)
    gpu = device.describe()
    result: CheckResult = {
        "status": "done",
        "reason": None,
        "workload": workload.label,
        "seed": request.setup.seed,
        "device": gpu.as_json() if gpu else None,
        "input_error": case.input_error,
    }
    call = calls.bind(torch, catalog, problem, request.version, buffers)
    try:
        outputs, outside = _outputs(torch, call, buffers, request.repeats)
    except LaunchRefused as refused:
        return {**result, "status": "failed", "reason": str(refused), "returned": refused.code}
    verdict = judge_outputs(outputs, case, outside=outside, changed=_changed_inputs(case, buffers))
    if request.save:
        _save(outputs[0], Path(request.save))
    return {**result, **verdict, "returned": 0}


def judge_outputs(outputs: Sequence[Array], case: Case, *, outside: bool, changed: bool) -> CheckResult:
    """Judge the outputs of all repeats; the worst of them decides.

    outside: it wrote beside its output. changed: it changed its inputs.
    """
    if any(output.shape != case.output.shape for output in outputs):
        shape = next(output.shape for output in outputs if output.shape != case.output.shape)
        reason = f"its output has shape {list(shape)} instead of {list(case.output.shape)}"
        return {"status": "wrong", "reason": reason, "max_abs_error": None}
    numbers = [case.check(output) for output in outputs]
    worst = max(numbers, key=_badness)
    moved = any(output.tobytes() != outputs[0].tobytes() for output in outputs[1:])
    reasons = [_in_words(worst, case.output.size)] if worst.wrong else []
    reasons += ["it wrote outside its output"] if outside else []
    reasons += ["it changed its inputs"] if changed else []
    wrong = bool(reasons)
    if moved:  # a race or unwritten memory, even where every output is within tolerance
        reasons.append("the same inputs gave different outputs" + ("" if wrong else ", all within tolerance"))
    return {
        "status": "wrong" if wrong else "done",
        "reason": "; ".join(reasons) or None,
        "max_abs_error": worst.max_abs_error,
        "wrong": worst.wrong,
        "not_finite": worst.not_finite,
        "first_wrong": None if worst.first_wrong is None else list(worst.first_wrong),
        "elements": case.output.size,
        "moved": moved,
        "outside": outside,
        "changed_inputs": changed,
        "errors": [repeat.max_abs_error for repeat in numbers],
    }


def _badness(numbers: OutputCheck) -> tuple[int, float]:
    return numbers.wrong, float("inf") if numbers.max_abs_error is None else numbers.max_abs_error


def _in_words(numbers: OutputCheck, elements: int) -> str:
    index = "" if numbers.first_wrong is None else f", the first at {list(numbers.first_wrong)}"
    text = f"{numbers.wrong} of {elements} elements are out of tolerance{index}"
    if numbers.not_finite:
        return f"{text}; {numbers.not_finite} are not finite"
    return f"{text}; the largest error is {numbers.max_abs_error:.3g}"


def check_call(torch: Any, call: Call, buffers: Buffers, case: Case, repeats: int = 1) -> CheckResult:
    """Call so many times with a poisoned output of its own, and judge what came of it."""
    outputs, outside = _outputs(torch, call, buffers, repeats)
    return judge_outputs(outputs, case, outside=outside, changed=_changed_inputs(case, buffers))


def _outputs(torch: Any, call: Call, buffers: Buffers, repeats: int) -> tuple[list[Array], bool]:
    """The output of every repeat, and whether one wrote outside it; a launch error shows when we wait."""
    outputs, outside = [], False
    for _ in range(repeats):
        buffers.reset()
        torch.cuda.synchronize()  # what fails after this is the version's fault
        output = call()
        torch.cuda.synchronize()
        outputs.append(np.ascontiguousarray(output.detach().cpu().numpy()))
        outside = outside or buffers.written_outside()
        outside = outside or (isinstance(call, PlannedCall) and call.wrote_outside())
    return outputs, outside


def _changed_inputs(case: Case, buffers: Buffers) -> bool:
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
    sys.exit(program.main(CORRECTNESS, check))
