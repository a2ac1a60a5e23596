"""What a result keeps of a check on the CPU: its facts, status, outcome, and its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profiler.bundles import Facts
from profiler.catalog import Problem
from profiler.emulator.cpu_check import CheckRun, VersionCheck
from profiler.evidence import Evidence, State, Value

MODE = "CPU model"  # of modelled facts; the shape is the workload, the seeds are in the result's check
_MOST_DEFECTS = 20  # that a result names


def modelled_facts(runs: Sequence[CheckRun]) -> Facts:
    """What the runs on one workload showed: the traffic of the first schedule, the largest error of all."""
    errors = [run.max_abs_error for run in runs]
    finite = [error for error in errors if error is not None]
    failed = Value(None, state=State.FAILED)
    values = {
        "modelled__max_abs_error": Value(max(finite)) if finite and len(finite) == len(errors) else failed,
        "modelled__schedules": Value(len(runs)),
        "modelled__findings": Value(sum(bool(run.defects) for run in runs)),
    }
    input_error = largest_input_error(runs)
    if input_error is not None:
        values["modelled__input_error"] = Value(input_error)
    first = runs[0]
    came_back = first.result.returned == 0
    for name, number in (
        ("shared_requests", sum(line.requests for line in first.traffic)),
        ("shared_wavefronts", first.shared_wavefronts),
        ("shared_wavefronts_ideal", sum(line.ideal for line in first.traffic)),
        ("bank_conflicts", first.bank_conflicts),
    ):
        values[f"modelled__{name}"] = Value(number) if came_back else failed
    return Facts(Evidence.MODELLED, "total", values, mode=MODE)


def largest_input_error(runs: Sequence[CheckRun]) -> float | None:
    """What rounding the inputs to codes alone does to the result, at most; None where nothing is rounded."""
    return max((run.input_error for run in runs if run.input_error is not None), default=None)


def result_status(runs: Sequence[CheckRun]) -> tuple[str, str | None]:
    """The status of the runs' result, and why it is not `done`."""
    failed_run = next((run for run in runs if not run.passed), None)
    if failed_run is None:
        return "done", None
    return ("wrong" if failed_run.result.returned == 0 else "failed"), describe_failure(failed_run)


def describe_failure(run: CheckRun) -> str:
    """What was wrong with a run: its first defect, then how many elements are off by how much."""
    words = []
    for defect in run.defects[:1]:
        where = f" at {defect.source.file}:{defect.source.line}" if defect.source else f": {defect.text}"
        words.append(f"{defect.kind}{where}")
    output = run.result.output_check
    if output and output.wrong and run.result.returned == 0:
        error = "not finite" if run.max_abs_error is None else f"off by up to {run.max_abs_error:.3g}"
        words.append(f"{output.wrong} elements {error}")
    return "; ".join(words) or f"nothing was found, and {run.result.returned} was returned"


def check_outcome(runs: Sequence[CheckRun], problem: Problem) -> dict[str, Any]:
    """The outcome against the reference over all schedules of one workload, as a result stores it."""
    defects: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in runs:
        for document in run.as_json()["findings"]:
            key = (document["kind"], document["file"], document["line"])
            total = defects.setdefault(key, {**document, "count": 0, "schedules": 0})
            total["count"] += document["count"]
            total["schedules"] += 1
    first = runs[0]
    case = problem.case(first.workload, first.seed)
    errors = [run.max_abs_error for run in runs]
    return {
        "evidence": str(Evidence.MODELLED),
        "passed": all(run.passed for run in runs),
        "as_expected": all(run.as_expected for run in runs),
        "state": first.state,
        "seeds": [run.seed for run in runs],
        "max_abs_error": None if None in errors else max(error for error in errors if error is not None),
        "input_error": largest_input_error(runs),
        "tolerance": {"absolute": case.tolerance.absolute, "relative": case.tolerance.relative},
        "findings": list(defects.values())[:_MOST_DEFECTS],
    }


def summary_line(check: VersionCheck) -> str:
    """What came of a version's check, in a line."""
    if check.error:
        return f"{check.version}: {str(check.error).splitlines()[0]}"
    if check.as_expected:
        words = "caught" if check.state == "rejected" else "passed"
        return f"{check.version}: {words} in all {len(check.runs)} runs"
    unexpected = [run for run in check.runs if not run.as_expected]
    words = "not caught" if check.state == "rejected" else "not right"
    if not unexpected:
        return f"{check.version}: no run"
    first = unexpected[0]
    return (
        f"{check.version}: {words} in {len(unexpected)} of {len(check.runs)} runs, "
        f"first on {first.workload.label}, seed {first.seed}: {describe_failure(first)}"
    )
