"""What a result keeps of a check on the CPU: its facts, status, outcome, and its words."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiler.bundles.run import Facts
from profiler.catalog.cases import make_case
from profiler.catalog.problem import ALL_STAGES, Problem, Workload
from profiler.emulator.contract_check import ContractCheck
from profiler.emulator.cpu_check import CheckRun, VersionCheck, defect_json
from profiler.emulator.emulator import Landing
from profiler.emulator.failure import cause_rank, describe_failure, wrong_elements
from profiler.emulator.run_result import Defect, SourceLine
from profiler.evidence.values import Evidence, State, Value

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


def result_status(runs: Sequence[CheckRun], contract: ContractCheck | None = None) -> tuple[str, str | None]:
    """The status of the runs' result, and why it is not `done`; `contract` as for check_outcome."""
    failed_run = next((run for run in runs if not run.passed), None)
    if failed_run is not None:
        status = "wrong" if failed_run.result.returned == 0 else "failed"
        return status, describe_failure(failed_run.result)
    if broken := contract_defects(contract, runs):
        return "wrong", f"contract: {broken[0].text}"
    return "done", None


def contract_defects(contract: ContractCheck | None, runs: Sequence[CheckRun]) -> tuple[Defect, ...]:
    """What breaks the contract, without those calls that are wrong by themselves, as a run says too."""
    if contract is None:
        return ()
    is_told = {run.workload for run in runs if not run.passed}
    return tuple(defect for defect in contract.defects if contract.wrong_calls.get(defect) not in is_told)


def check_outcome(
    runs: Sequence[CheckRun], problem: Problem, contract: ContractCheck | None = None
) -> dict[str, Any]:
    """The outcome against the reference over all schedules of one workload, as a result stores it.

    contract: what its calls showed, where they were made on this workload.
    """
    defects: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in runs:
        for document in run.as_json()["findings"]:
            key = (document["kind"], document["file"], document["line"])
            total = defects.setdefault(key, {**document, "count": 0, "schedules": 0})
            total["count"] += document["count"]
            total["schedules"] += 1
    broken = contract_defects(contract, runs)
    for number, defect in enumerate(broken):
        defects["contract", number] = {**defect_json(defect), "schedules": 1}
    first = runs[0]
    case = make_case(problem, first.workload, first.seed)
    errors = [run.max_abs_error for run in runs]
    return {
        "evidence": str(Evidence.MODELLED),
        "passed": not broken and all(run.passed for run in runs),
        "as_expected": not broken and all(run.as_expected for run in runs),
        "state": first.state,
        "seeds": [run.seed for run in runs],
        "max_abs_error": None if None in errors else max(error for error in errors if error is not None),
        "input_error": largest_input_error(runs),
        "tolerance": {
            "absolute": case.tolerance.absolute,
            "relative": case.tolerance.relative,
            "relative_to": "reference" if case.magnitude is None else "magnitude",
        },
        "findings": sorted(defects.values(), key=lambda found: cause_rank(found["kind"]))[:_MOST_DEFECTS],
    }


@dataclass(frozen=True)
class CheckFinding:
    """Something wrong with a version, once for each kind and line, on the smallest workload that shows it."""

    kind: str  # of a defect; `numbers` where elements are out of tolerance; `contract`; `not caught`
    place: SourceLine | None  # None: no line is known
    text: str
    workload: Workload
    seed: int
    stage: str
    landing: Landing | None  # None: by the seed
    options: tuple[str, ...]  # of `profiler check`, with which it is seen again, after the version

    def as_json(self) -> dict[str, Any]:
        """The finding as `check --json` prints it, without the version and the command."""
        return {
            "kind": self.kind,
            "file": self.place.file if self.place else None,
            "line": self.place.line if self.place else None,
            "text": self.text,
            "workload": self.workload.label,
            "seed": self.seed,
            "landing": self.landing.label if self.landing is not None else None,
            "stage": self.stage,
        }


def findings(check: VersionCheck) -> list[CheckFinding]:
    """What stands against a version that is not as expected, causes before what may follow from them.

    Of equal causes that on the smallest workload comes first.
    """
    unexpected = sorted(
        (run for run in check.runs if run.as_expected is False), key=lambda run: (run.flops, run.seed)
    )
    by_place: dict[tuple[str, SourceLine | None], CheckFinding] = {}
    for run in unexpected:
        output = run.result.output_check
        kinds = [(defect.kind, defect.source, defect.text) for defect in run.defects]
        if check.state == "rejected":
            kinds = [
                ("not caught", None, f"expected is another kind or line: {describe_failure(run.result)}")
            ]
        elif run.result.returned == 0 and output and output.wrong:
            kinds.append(("numbers", None, _wrong_numbers(run)))
        elif not kinds:
            kinds.append(("numbers", None, describe_failure(run.result)))
        stage_option = () if run.stage == ALL_STAGES else ("--stage", run.stage)
        landing_option = () if run.landing is None else ("--landing", run.landing.label)
        options = (
            *("--workload", run.workload.label, "--seed", str(run.seed)),
            *(*landing_option, *stage_option),
        )
        for kind, place, text in kinds:
            finding = CheckFinding(kind, place, text, run.workload, run.seed, run.stage, run.landing, options)
            by_place.setdefault((kind, place), finding)
    ordered = sorted(by_place.values(), key=lambda finding: cause_rank(finding.kind))
    if check.contract is None:
        return ordered
    changed = check.contract.workload
    options = ("--workload", changed.label, "--contract")
    broken = [
        CheckFinding("contract", None, defect.text, changed, 0, ALL_STAGES, None, options)
        for defect in contract_defects(check.contract, check.runs)
    ]
    return [*ordered, *broken]


def replay_command(version: str, finding: CheckFinding, catalog: Path | None = None) -> str:
    """The command that makes the run of a finding again, and no other."""
    own_catalog = ("--catalog", str(catalog)) if catalog is not None else ()
    return shlex.join(("profiler", "check", version, *finding.options, *own_catalog))


def _wrong_numbers(run: CheckRun) -> str:
    output = run.result.output_check
    index = ", ".join(map(str, output.first_wrong or ())) if output else ""
    return f"{wrong_elements(run.result)}, the first at [{index}]"


def summary_line(check: VersionCheck) -> str:
    """What came of a version's check, in a line."""
    if check.error:
        return f"{check.version}: {str(check.error).splitlines()[0]}{_other_runs(check)}"
    if check.as_expected:
        words = "caught" if check.state == "rejected" else "passed"
        if not check.runs and check.contract is not None:
            return f"{check.version}: keeps the contract in all {check.contract.calls} calls"
        left = f", {len(check.not_run)} not run, since {check.not_run[0].reason}" if check.not_run else ""
        return f"{check.version}: {words} in all {len(check.runs)} runs{left}"
    left = f"; not run: {len(check.not_run)}, since {check.not_run[0].reason}" if check.not_run else ""
    if unexpected := _unexpected_runs(check):
        return f"{check.version}: {unexpected}{left}"
    if broken := contract_defects(check.contract, check.runs):
        return f"{check.version}: {len(broken)} of its calls break the contract, the first: {broken[0].text}"
    return f"{check.version}: no run{left}"


def _unexpected_runs(check: VersionCheck) -> str:
    """How many runs are not as expected, and what the smallest shows; empty where all are."""
    unexpected = [run for run in check.runs if run.as_expected is False]
    if not unexpected:
        return ""
    first = min(unexpected, key=lambda run: (run.flops, run.seed))
    return (
        f"{'not caught' if check.state == 'rejected' else 'not right'} in {len(unexpected)} of "
        f"{len(check.runs)} runs, the smallest on {first.workload.label}, {first.schedule}: "
        f"{describe_failure(first.result)}"
    )


def _other_runs(check: VersionCheck) -> str:
    """What the runs say that an error left, in words after it; empty where it left none."""
    if not check.runs:
        return ""
    words = "caught" if check.state == "rejected" else "passed"
    return f"; of the others: {_unexpected_runs(check) or f'{words} in all {len(check.runs)} runs'}"
