"""How a problem is asked for workloads, cases and calls, and its answers looked over before they are used."""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from profiler.catalog.problem import ALL_STAGES, Case, ContractCall, Problem, Tolerance, Workload
from profiler.catalog.version import Version
from profiler.catalog.weak_check import find_confused, find_trivial_output, spread
from profiler.errors import BadCatalog, ProfilerError

_INT_LIMIT = 2**31  # numbers are passed as a C int or float


class CannotFail(BadCatalog):
    """A check that nothing can fail."""


def call_problem(problem: Problem, method: str, *arguments: Any, of: str) -> Any:
    """What a method of the problem gives, `of` what in words.

    Raises BadCatalog, with FILE:LINE, where there is no such method or it fails.
    """
    try:
        return getattr(problem, method)(*arguments)
    except ProfilerError:
        raise
    # Somebody's file, which may do anything; its exit code would pass for a verdict.
    except (Exception, SystemExit) as error:
        if not callable(getattr(problem, method, None)):
            raise BadCatalog(
                f"{_place_of(problem, method)}: the problem has no {method}(): see class Problem in "
                "profiler/catalog/problem.py"
            ) from None
        words = f"{type(error).__name__}: {error}".rstrip(": ")
        raise BadCatalog(f"{_place_of(problem, method, error)}: {method}() of {of} fails: {words}") from error


def check_workloads(problem: Problem, dtype: str, sizes: Sequence[int]) -> list[Any]:
    """The problem's check workloads, each with a label and sizes. Raises BadCatalog."""
    of = f"{dtype} with {list(sizes)}"
    workloads = call_problem(problem, "check_workloads", dtype, sizes, of=of)
    if not isinstance(workloads, (list, tuple)):
        raise _no_answer(problem, "check_workloads", of, workloads, "a list of workloads")
    for workload in workloads:
        if not isinstance(getattr(workload, "label", None), str) or not hasattr(workload, "sizes"):
            raise _no_answer(problem, "check_workloads", of, workload, "workloads, with a label and sizes()")
    return list(workloads)


def version_workloads(problem: Problem, version: Version) -> list[Any]:
    """What a good version is checked on: the problem's workloads, then its own. Raises BadCatalog."""
    workloads = check_workloads(problem, version.dtype, version.head_dims)
    return list(dict.fromkeys((*workloads, *own_workloads(problem, version))))


def own_workloads(problem: Problem, version: Version) -> list[Any]:
    """The workloads of a version's own entry. Raises BadCatalog for sizes that the problem does not have."""
    workloads = []
    for sizes in version.check:
        words = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        try:
            workloads.append(problem.workload(**{"dtype": version.dtype, **sizes}))
        except (TypeError, ValueError) as error:
            raise BadCatalog(f"version {version.id}: check: {{ {words} }}: {error}") from error
    return workloads


def flops_of(problem: Problem, workload: Workload) -> int:
    """The problem's arithmetic on a workload. Raises BadCatalog."""
    flops = call_problem(problem, "flops", workload, of=workload.label)
    if not isinstance(flops, (int, float, np.integer, np.floating)) or not math.isfinite(flops):
        raise _no_answer(problem, "flops", workload.label, flops, "a finite number")
    return int(flops)


def make_contract_calls(
    problem: Any, case: Case, workload: Workload, sizes: Sequence[int]
) -> list[ContractCall]:
    """The problem's contract calls, which change arguments that the case has. Raises BadCatalog."""
    calls = call_problem(problem, "contract_calls", workload, sizes, of=workload.label)
    is_list = isinstance(calls, (list, tuple))
    if not is_list or not all(isinstance(call, ContractCall) for call in calls):
        raise _no_answer(problem, "contract_calls", workload.label, calls, "a list of ContractCall")
    where = f"{_place_of(problem, 'contract_calls')}: contract_calls() of {workload.label}"
    for call in calls:
        for position in (*call.numbers, *call.moved_bytes):
            if position not in range(len(case.arguments)):
                raise BadCatalog(f"{where}: {call.passed}: the case has no argument {position} (from 0)")
        for position in call.moved_bytes:
            if not isinstance(case.arguments[position], np.ndarray):
                raise BadCatalog(f"{where}: {call.passed}: argument {position} (from 0) is no array")
    return list(calls)


def make_case(problem: Problem, workload: Workload, seed: int, stage: str = ALL_STAGES) -> Case:
    """The problem's case. Raises BadCatalog where case() fails, or gives what no C function can take.

    Also where the check of its output could not fail: zeros, another constant or an input would pass.
    NumPy's scalars become Python's.
    """
    case = call_problem(problem, "case", workload, seed, stage, of=workload.label)
    if not isinstance(case, Case):
        raise _no_answer(problem, "case", workload.label, case, "a Case")
    where = f"{_place_of(problem, 'case')}: case() of {workload.label}"
    if not isinstance(case.arguments, (list, tuple)):
        raise BadCatalog(f"{where}: its arguments are {_article(case.arguments)}, and must be a tuple")
    if not isinstance(case.output, np.ndarray):
        raise BadCatalog(f"{where}: its output is {_article(case.output)}, and must be an array")
    arguments = tuple(
        _argument(value, f"{where}: argument {number}") for number, value in enumerate(case.arguments, 1)
    )
    if not any(value is case.output for value in arguments):
        raise BadCatalog(f"{where}: its output is none of its arguments: no kernel can write it")
    _compare_shape(
        case, case.reference, f"{where}: its output has shape {case.output.shape} and its reference"
    )
    if case.magnitude is not None:
        _compare_shape(
            case, case.magnitude, f"{where}: its output has shape {case.output.shape} and its magnitude"
        )
    if not isinstance(case.tolerance, Tolerance):
        raise BadCatalog(f"{where}: its tolerance is {_article(case.tolerance)}, and must be a Tolerance")
    case = replace(case, arguments=arguments, reference=np.asarray(case.reference, np.float64))
    _refuse_trivial_output(case, f"{where} ({problem.name})")
    return case


def refuse_weak_checks(problem: Problem, versions: Sequence[Version]) -> None:
    """Raise CannotFail where a check of these versions could not fail.

    That is where zeros, another constant or an input would pass as the output of a check workload, or the
    reference of another workload, or of other inputs. A case that cannot be made is left to the check.
    """
    sizes_of_dtype: dict[str, dict[int, None]] = {}
    for version in versions:
        for dtype in version.dtypes:
            sizes_of_dtype.setdefault(dtype, {}).update(dict.fromkeys(version.head_dims))
    for dtype, sizes in sizes_of_dtype.items():
        workloads = check_workloads(problem, dtype, list(sizes))
        if not workloads:
            continue
        made = {w.label: case for w in workloads if (case := _case_if_made(problem, w, seed=0))}
        smallest = min(workloads, key=lambda w: made[w.label].output.size if w.label in made else math.inf)
        if other := _case_if_made(problem, smallest, seed=1):
            made[f"{smallest.label} with other inputs"] = other
        names, cases = list(made), list(made.values())
        if confused := find_confused(cases):
            checked, passing = confused
            raise CannotFail(
                f"{_place_of(problem, 'case')}: the check of {problem.name} on {names[checked]} cannot fail: "
                f"the result of {names[passing]} would pass it under {_tolerance_words(cases[checked])}"
            )


def _case_if_made(problem: Problem, workload: Workload, seed: int) -> Case | None:
    try:
        return make_case(problem, workload, seed)
    except CannotFail:
        raise
    except BadCatalog:
        return None


def _refuse_trivial_output(case: Case, where: str) -> None:
    """Raise CannotFail where an output that computes nothing passes."""
    if not case.output.size:
        raise CannotFail(f"{where}: its output has no element: nothing is checked")
    if (trivial := find_trivial_output(case)) is None:
        return
    raise CannotFail(
        f"{where}: the check cannot fail: {trivial.words} would pass as the output under "
        f"{_tolerance_words(case)}; the elements of the reference lie at most {spread(case):.2g} from their "
        f"middle: use an absolute tolerance far below, such as {spread(case) / 100:.0e}"
    )


def _tolerance_words(case: Case) -> str:
    return f"tolerances of {case.tolerance.absolute:g} absolute and {case.tolerance.relative:g} relative"


def make_inputs(problem: Problem, workload: Workload, seed: int) -> Case:
    """The problem's case without its reference, which is all zeros, where the problem can do without.

    That is where it has `inputs(workload, seed)`, which gives the arguments and the output of its case.
    """
    if not callable(getattr(problem, "inputs", None)):
        return make_case(problem, workload, seed)
    arguments, output = call_problem(problem, "inputs", workload, seed, of=workload.label)
    reference = np.broadcast_to(np.float64(0), output.shape)
    return Case(tuple(arguments), (), output, reference, Tolerance(0.0, 0.0))


def _argument(value: Any, where: str) -> Any:
    """The argument as a C function can be called with it."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biufcV" or not value.dtype.isnative:
            raise BadCatalog(f"{where}: an array of dtype {value.dtype} is nothing that a kernel can read")
        if not value.flags.c_contiguous:
            raise BadCatalog(
                f"{where}: an array of shape {value.shape} is not contiguous: pass numpy.ascontiguousarray"
            )
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, float):
        return value
    if isinstance(value, int):
        if not -_INT_LIMIT <= value < _INT_LIMIT:
            raise BadCatalog(f"{where}: {value} is more than an int holds")
        return int(value)
    raise BadCatalog(f"{where}: {type(value).__name__} is neither an array, an int, a float nor None")


def _compare_shape(case: Case, values: Any, where: str) -> None:
    """Raise BadCatalog where what an output is compared with is no array of numbers of its shape."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise BadCatalog(f"{where} is {_article(values)}, and must be an array of numbers") from None
    if array.shape != case.output.shape:
        raise BadCatalog(f"{where} {array.shape}")


def _no_answer(problem: Problem, method: str, of: str, answer: Any, wanted: str) -> BadCatalog:
    place = _place_of(problem, method)
    return BadCatalog(f"{place}: {method}() of {of} gives {_article(answer)}, and must give {wanted}")


def _article(value: Any) -> str:
    """What a value is, in words: None, or the name of its type."""
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _place_of(problem: Any, method: str, error: BaseException | None = None) -> str:
    """FILE:LINE of the error, else of the method, else of the problem's class.

    Of the error: the innermost line of the problem's own files.
    """
    function = getattr(problem, method, None)
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    try:
        class_file = inspect.getfile(type(problem))
    except (TypeError, OSError):  # no class of a file
        class_file = ""
    own = {class_file, code.co_filename if code else ""}
    frames = traceback.extract_tb(error.__traceback__) if error else []
    if own_frames := [frame for frame in frames if frame.filename in own]:
        return f"{Path(own_frames[-1].filename).name}:{own_frames[-1].lineno}"
    if code:
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}"
    if not class_file:
        return str(problem.name)
    try:
        return f"{Path(class_file).name}:{inspect.getsourcelines(type(problem))[1]}"
    except (TypeError, OSError):
        return Path(class_file).name
