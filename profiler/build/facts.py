"""Under which names and units static and modelled facts are kept, and how a checked cell reads in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profiler.build.opcode_counts import OPCODE_CLASSES
from profiler.build.resources import FunctionResources
from profiler.bundles import Facts
from profiler.catalog import Problem
from profiler.emulator import CheckRun, VersionCheck
from profiler.evidence import Evidence, State, Value

MODE = "CPU model"  # of modelled facts; the shape is the workload, the seeds are in the result's check
_FINDINGS = 20  # that a result names


def static_facts(function: FunctionResources) -> Facts:
    """What the compiler and the machine code say of one kernel function."""
    resources, code, fits = function.usage, function.code, function.occupancy
    unknown = Value(None, state=State.NOT_COLLECTED)
    values = {
        "static__registers": Value(resources.registers, "register/thread"),
        "static__spill_bytes": Value(resources.spill_bytes, "byte"),
        "static__stack_bytes": Value(resources.stack_bytes, "byte"),
        "static__shared_bytes": _number(function.most_shared_bytes, "byte/block"),
        "static__shared_static_bytes": Value(resources.static_shared_bytes, "byte/block"),
        "static__threads": _number(function.threads, "thread"),
        "static__barriers": Value(resources.barriers),
        "static__occupancy_pct": Value(fits.pct, "%") if fits else unknown._replace(unit="%"),
        "static__blocks_per_sm": Value(fits.blocks, "block") if fits else unknown._replace(unit="block"),
        "static__limiter": Value(None, text=", ".join(fits.limiters)) if fits else unknown,
        "static__code_bytes": _number(code.code_bytes if code else None, "byte"),
        "static__instructions": _number(code.instructions if code else None, "inst"),
        "static__sass_sha256": Value(None, text=code.sha256) if code else unknown,
        "static__ptxas": Value(None, text=resources.line),
        "static__over_budget": Value(None, text="; ".join(function.over_budget) or "nothing"),
    }
    for name in OPCODE_CLASSES:
        values[f"static__opcode_{name}"] = _number(code.classes[name] if code else None, "inst")
    return Facts(
        Evidence.STATIC,
        function.role,
        values,
        target=function.arch,
        mode="",
        opcodes=dict(code.opcodes) if code else {},
    )


def modelled_facts(cells: Sequence[CheckRun]) -> Facts:
    """What the CPU saw on one workload: the traffic of the first schedule, and the largest error of all."""
    errors = [cell.max_abs_error for cell in cells]
    known = [error for error in errors if error is not None]
    values = {
        "modelled__max_abs_error": Value(max(known))
        if known and len(known) == len(errors)
        else Value(None, state=State.FAILED),
        "modelled__schedules": Value(len(cells)),
        "modelled__findings": Value(sum(bool(cell.defects) for cell in cells)),
    }
    codes = input_error(cells)
    if codes is not None:
        values["modelled__input_error"] = Value(codes)
    lines, ran = cells[0].traffic, cells[0].result.returned == 0
    for name, number in (
        ("shared_requests", sum(line.requests for line in lines)),
        ("shared_wavefronts", cells[0].shared_wavefronts),
        ("shared_wavefronts_ideal", sum(line.ideal for line in lines)),
        ("bank_conflicts", cells[0].bank_conflicts),
    ):
        values[f"modelled__{name}"] = Value(number) if ran else Value(None, state=State.FAILED)
    return Facts(Evidence.MODELLED, "total", values, mode=MODE)


def _number(number: int | None, unit: str) -> Value:
    return Value(None, unit, state=State.NOT_COLLECTED) if number is None else Value(number, unit)


def input_error(cells: Sequence[CheckRun]) -> float | None:
    """What rounding the inputs to codes alone does to the result, at most; None where nothing is rounded."""
    return max((cell.input_error for cell in cells if cell.input_error is not None), default=None)


def status(cells: Sequence[CheckRun]) -> tuple[str, str | None]:
    """The result's status, and why it is not done."""
    wrong = next((cell for cell in cells if not cell.passed), None)
    if wrong is None:
        return "done", None
    return ("wrong" if wrong.result.returned == 0 else "failed"), what(wrong)


def what(cell: CheckRun) -> str:
    """What was wrong with a cell, findings first."""
    told = []
    for finding in cell.defects[:1]:
        where = f" at {finding.source.file}:{finding.source.line}" if finding.source else f": {finding.text}"
        told.append(f"{finding.kind}{where}")
    numbers = cell.result.output_check
    if numbers and numbers.wrong and cell.result.returned == 0:
        error = "not finite" if cell.max_abs_error is None else f"off by up to {cell.max_abs_error:.3g}"
        told.append(f"{numbers.wrong} elements {error}")
    return "; ".join(told) or f"nothing was found, and {cell.result.returned} was returned"


def outcome(cells: Sequence[CheckRun], problem: Problem) -> dict[str, Any]:
    """The outcome against the reference, over all schedules."""
    findings: dict[tuple[Any, ...], dict[str, Any]] = {}
    for cell in cells:
        for one in cell.as_json()["findings"]:
            key = (one["kind"], one["file"], one["line"])
            kept = findings.setdefault(key, {**one, "count": 0, "schedules": 0})
            kept["count"] += one["count"]
            kept["schedules"] += 1
    first = cells[0]
    case = problem.case(first.workload, first.seed)
    errors = [cell.max_abs_error for cell in cells]
    return {
        "evidence": str(Evidence.MODELLED),
        "passed": all(cell.passed for cell in cells),
        "as_expected": all(cell.as_expected for cell in cells),
        "state": first.state,
        "seeds": [cell.seed for cell in cells],
        "max_abs_error": None if None in errors else max(error for error in errors if error is not None),
        "input_error": input_error(cells),
        "tolerance": {"absolute": case.tolerance.absolute, "relative": case.tolerance.relative},
        "findings": list(findings.values())[:_FINDINGS],
    }


def check_line(checked: VersionCheck) -> str:
    """What came of a version's check, in a line."""
    if checked.error:
        return f"{checked.version}: {str(checked.error).splitlines()[0]}"
    wanted = [cell for cell in checked.runs if not cell.as_expected]
    if checked.as_expected:
        words = "caught" if checked.state == "rejected" else "passed"
        return f"{checked.version}: {words} in all {len(checked.runs)} runs"
    words = "not caught" if checked.state == "rejected" else "not right"
    first = wanted[0] if wanted else None
    where = f"{words} in {len(wanted)} of {len(checked.runs)} runs" if first else "no run"
    about = f", first on {first.workload.label}, seed {first.seed}: {what(first)}" if first else ""
    return f"{checked.version}: {where}{about}"
