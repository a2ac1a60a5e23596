"""Whether a version's function keeps what its family's contract says of calls, apart from their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from profiler.catalog.cases import flops_of, make_case, make_contract_calls
from profiler.catalog.problem import Case, ContractCall, Problem, Workload
from profiler.catalog.version import Version
from profiler.emulator.emulator import Emulator, Schedule, time_limit_s
from profiler.emulator.failure import describe_failure
from profiler.emulator.run_result import Defect, RunResult

LAUNCH_FAILURE = 719  # cudaErrorLaunchFailure: a launch was made and its kernel ended by an error

_NO_LAUNCH = 0  # bytes of shared memory that a device has to give: every launch is refused

Run = Callable[..., tuple[Case, RunResult]]


@dataclass(frozen=True)
class ContractCheck:
    """What the calls of the contract showed of one version."""

    workload: Workload  # of the call that the others change
    calls: int  # that were made
    defects: tuple[Defect, ...]  # their kind is `contract`, and none has a line
    # Of the defects, those that say that a call which nothing was changed in is wrong by itself.
    wrong_calls: Mapping[Defect, Workload] = field(default_factory=dict)


def check_contract(
    version: Version,
    problem: Problem,
    library: Path,
    workloads: Sequence[Workload],
    emulator: Emulator,
    options: dict[str, Any],
    changed: Workload | None = None,
) -> ContractCheck | None:
    """Make the problem's contract calls in order, on one loading of the library; None where it has none.

    The calls change that of one workload, the smallest or `changed`, which must be right. First an equal call
    is made twice, with one of another workload between: what a call leaves behind, in a variable of the
    device or a static one of the host, must not change the next. Then a launch is refused, which the function
    must return. options: of Emulator.run. Raises BadCatalog where the problem fails.
    """
    if not hasattr(problem, "contract_calls") or not workloads:
        return None
    by_size = sorted(workloads, key=lambda workload: flops_of(problem, workload))
    base = changed or by_size[0]
    others = [workload for workload in by_size if workload != base]
    other = max(others, key=lambda workload: _differences(base, workload), default=None)
    made = 0

    def run(
        workload: Workload, call: ContractCall | None = None, fresh: bool = False, **more: Any
    ) -> tuple[Case, RunResult]:
        nonlocal made
        case = make_case(problem, workload, seed=0)
        moved_bytes: dict[int, int] = {}
        if call is not None:
            numbers = [call.numbers.get(position, value) for position, value in enumerate(case.arguments)]
            case = replace(case, arguments=tuple(numbers))
            moved_bytes = dict(call.moved_bytes)
        limit_s = time_limit_s(flops_of(problem, workload), case)
        result = emulator.run(
            library,
            problem.symbol,
            case,
            Schedule(0),
            fresh=fresh,
            moved_bytes=moved_bytes,
            time_limit_s=limit_s,
            **options,
            **more,
        )
        made += 1
        return case, result

    words: list[str] = []
    wrong_calls: dict[Defect, Workload] = {}
    first, first_result = run(base, fresh=True)
    if not first_result.passed:
        text = f"the call that the others change is not right: {describe_failure(first_result)}"
        wrong_calls[_broken(text)] = base
    if first_result.returned == 0:  # else nothing tells what the other calls change
        if other is not None:
            text, is_by_itself = _state_of_other_sizes(base, other, run)
            if is_by_itself:
                wrong_calls[_broken(text)] = other
            elif text:
                words.append(text)
        again, again_result = run(base)
        words += _state_of_a_call(first, again, again_result, other)
        words += _lost_refusal(run(base, limit_bytes=_NO_LAUNCH)[1])
        for call in make_contract_calls(problem, first, base, version.head_dims):
            case, result = run(base, call)
            if came_back := _refusal(call, case, result):
                words.append(came_back)
            if any(defect.kind == "timeout" for defect in result.defects):
                break
    return ContractCheck(base, made, (*wrong_calls, *map(_broken, words)), wrong_calls)


def _broken(text: str) -> Defect:
    return Defect("contract", None, 1, text)


def _differences(workload: Workload, other: Workload) -> int:
    """In how many sizes they differ."""
    sizes = other.sizes()
    return sum(sizes.get(name) != size for name, size in workload.sizes().items())


def _state_of_other_sizes(base: Workload, other: Workload, run: Run) -> tuple[str, bool]:
    """What is wrong with a call after one of other sizes, and whether it is so by itself; "": nothing."""
    _, result = run(other)
    if result.passed:
        return "", False
    _, alone = run(other, fresh=True)
    run(base)
    if alone.passed:
        return f"a call of {other.label} after one of {base.label} is wrong, and right on its own", False
    return f"the call of {other.label} between is wrong on its own: {describe_failure(alone)}", True


def _state_of_a_call(first: Case, again: Case, result: RunResult, other: Workload | None) -> list[str]:
    between = f", with one of {other.label} between," if other is not None else ""
    if result.returned != 0:
        return [f"an equal second call{between} {_came_back(result)}, after a first that returned 0"]
    different = _bits(first.output) != _bits(again.output)
    if not different.any():
        return []
    count = f"{int(different.sum())} of {different.size} elements"
    return [f"an equal second call{between} gives other bits in {count}"]


def _lost_refusal(result: RunResult) -> list[str]:
    """Whether the function does not say that its launch was refused; a launch that fits is not."""
    if result.returned != 0 or all(launch.returned == 0 for launch in result.launches):
        return []
    return ["a launch that was refused, as of more shared memory than there is: returned 0"]


def _refusal(call: ContractCall, case: Case, result: RunResult) -> str | None:
    """What is wrong with how a call was refused; None where it was."""
    if result.returned != call.returned:
        # What a call that should not have been made returned says less than that it was made.
        launched = [launch.kernel for launch in result.launches if launch.returned in (0, LAUNCH_FAILURE)]
        came_back = f"launched {launched[0]}" if launched else _came_back(result)
        return f"{call.passed}: {came_back}, and must return {call.returned}"
    is_passed = any(value is case.output for value in case.arguments)
    if is_passed and case.output.dtype.kind == "f" and not np.isnan(case.output).all():
        return f"{call.passed}: returned {call.returned}, and wrote the output all the same"
    return None


def _came_back(result: RunResult) -> str:
    return f"returned {result.returned}" if result.returned is not None else result.defects[0].text


def _bits(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements as integers, by which every NaN equals itself."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
