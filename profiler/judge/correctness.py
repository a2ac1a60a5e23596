"""Whether a candidate is right: on shapes and inputs that it has not seen, and on the acceptance shapes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.catalog import Case, Problem, Workload
from profiler.catalog.cases import call_problem, check_workloads, make_case
from profiler.errors import CannotJudge
from profiler.judge.call_plan import CallPlan, plan_call
from profiler.judge.candidate import Candidate
from profiler.judge.compilation import MachineCode
from profiler.judge.isolation import Isolation, Limits
from profiler.judge.judgement import StageState
from profiler.judge.machine_run import POISON, POISONS, MachineResult, run_call

UNSEEN_CALLS = 4
JOBS = min(os.cpu_count() or 1, 4)  # processes at a time
_DRAWS = 60
_WEIGHTS = {"inputs": 5, "head_dim": 3, "causal": 3}
_CALL = Limits(90)
_SAMPLED = 3  # blocks of the first acceptance shape; one of the others
_AGAIN = 4  # blocks, where the first wrote too little


@dataclass(frozen=True)
class Shown:
    """What calls showed."""

    state: StageState = StageState.UNKNOWN
    reason: str = ""
    findings: tuple[str, ...] = ()
    race_state: StageState = StageState.UNKNOWN
    race_reason: str = ""
    races: tuple[str, ...] = ()


def check_unseen(
    candidate: Candidate,
    problem: Problem,
    code: MachineCode,
    isolation: Isolation,
    rng: np.random.Generator,
    calls: int = UNSEEN_CALLS,
) -> Shown:
    """Run the machine code on shapes and inputs drawn just now, and compare with the reference.

    With scratch buffers a second call follows with other inputs, on what the first left there.
    """
    workloads = unseen_workloads(candidate, problem, rng, calls)
    seeds = [[int(seed) for seed in rng.integers(2**31, size=2)] for _ in workloads]

    def check(number: int) -> Shown:
        own = workloads[number], seeds[number], POISONS[number % len(POISONS)]
        return _check_call(candidate, problem, code, isolation, *own)

    with ThreadPoolExecutor(JOBS) as pool:
        all_shown = list(pool.map(check, range(len(workloads))))
    for state in (StageState.FAILED, StageState.UNKNOWN):
        for shown in all_shown:
            if shown.state is state:
                return shown
    races = tuple(dict.fromkeys(race for shown in all_shown for race in shown.races))
    words = f"{len(workloads)} calls: {', '.join(workload.label for workload in workloads)}"
    race_state = StageState.FAILED if races else StageState.PASSED
    return Shown(StageState.PASSED, words, (), race_state, races[0] if races else "", races)


def _check_call(
    candidate: Candidate,
    problem: Problem,
    code: MachineCode,
    isolation: Isolation,
    workload: Workload,
    seeds: Sequence[int],
    poison: int,
) -> Shown:
    races: tuple[str, ...] = ()
    kept = None
    for repeat, seed in enumerate(seeds):
        case = make_case(problem, workload, seed)
        plan = plan_call(candidate, problem, code, workload, case)
        if repeat and not plan.scratch:
            break  # nothing is left of the first call that a second could find
        result = run_call(code, plan, isolation, _CALL, poison=poison, scratch=kept)
        where = f"{workload.label}{', a second call with other inputs' if repeat else ''}"
        if result.no_model:
            return Shown(StageState.UNKNOWN, f"{where}: {result.error}", race_reason=result.error)
        if findings := [f"{where}: {text}" for text in what_is_wrong(plan, result)]:
            return Shown(StageState.FAILED, findings[0], (*findings, *result.races))
        kept = [result.arrays[number] for number in plan.scratch]
        races += result.races
    return Shown(StageState.PASSED, races=races)


def unseen_workloads(
    candidate: Candidate, problem: Problem, rng: np.random.Generator, calls: int
) -> list[Workload]:
    """Workloads that a candidate takes, drawn at random; of a problem that draws none its check workloads.

    Of many draws those are taken that differ most: every kind of inputs, masks, tails. Raises CannotJudge
    where too few of them are taken by the candidate.
    """
    dtype, sizes = candidate.compile_sizes
    if not hasattr(problem, "random_workload"):
        known = [w for w in check_workloads(problem, dtype, sizes) if candidate.accepts(w)]
        return [known[int(i)] for i in rng.permutation(len(known))[:calls]]
    drawn = [
        call_problem(problem, "random_workload", rng, dtype, sizes, of="a random workload")
        for _ in range(_DRAWS)
    ]
    drawn = [workload for workload in drawn if candidate.accepts(workload)]
    if len(drawn) < calls:
        raise CannotJudge(f"{candidate.name} takes {len(drawn)} of {_DRAWS} workloads drawn at random")
    chosen: list[Workload] = []
    seen: set[tuple[str, object]] = set()
    for _ in range(calls):
        best = max(drawn, key=lambda workload: sum(_WEIGHTS.get(f[0], 1) for f in _features(workload) - seen))
        chosen.append(best)
        drawn.remove(best)
        seen |= _features(best)
    return chosen


def _features(workload: Workload) -> set[tuple[str, object]]:
    """What sets a workload apart: its choices, and the magnitude of its sizes."""
    features: set[tuple[str, object]] = {("inputs", workload.sizes().get("inputs", ""))}
    for name, value in workload.sizes().items():
        is_size = isinstance(value, int) and not isinstance(value, bool)
        features.add((name, int(value).bit_length() if is_size else value))
    return features


def what_is_wrong(plan: CallPlan, result: MachineResult) -> list[str]:
    """What a whole call did wrong; nothing where it is right."""
    if result.error:
        return [result.error]
    findings = _side_effects(plan, result)
    output = result.arrays[plan.output].view(plan.case.output.dtype).reshape(plan.case.output.shape)
    check = plan.case.check(output)
    if check.wrong:
        error = "not finite" if check.max_abs_error is None else f"error up to {check.max_abs_error:.3g}"
        findings.append(
            f"{check.wrong} of {output.size} elements are wrong ({error}), the first at "
            f"{list(check.first_wrong or ())}"
        )
    return findings


def _side_effects(plan: CallPlan, result: MachineResult) -> list[str]:
    """What a call wrote that is not its output."""
    findings = []
    if result.written_outside:
        findings.append(f"{result.written_outside} bytes were written outside of every array")
    for number, array in enumerate(plan.arrays):
        if number == plan.output or number in plan.scratch:
            continue
        before = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if not np.array_equal(before, result.arrays[number]):
            findings.append(f"input {number} was changed")
    return findings


def check_acceptance(
    candidate: Candidate,
    problem: Problem,
    code: MachineCode,
    isolation: Isolation,
    rng: np.random.Generator,
    workloads: Sequence[Workload],
) -> Shown:
    """Run some blocks of each acceptance shape, drawn at random, and compare what they write."""
    seeds = [int(seed) for seed in rng.integers(2**31, size=len(workloads))]

    def check(number: int) -> tuple[Shown | None, str]:
        own = np.random.default_rng(seeds[number])
        count = _SAMPLED if number == 0 else 1
        return _check_sample(candidate, problem, code, isolation, own, workloads[number], count)

    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(check, range(len(workloads))))
    for state in (StageState.FAILED, StageState.UNKNOWN):
        for shown, _ in results:
            if shown is not None and shown.state is state:
                return shown
    return Shown(StageState.PASSED, "; ".join(text for _, text in results))


def _check_sample(
    candidate: Candidate,
    problem: Problem,
    code: MachineCode,
    isolation: Isolation,
    rng: np.random.Generator,
    workload: Workload,
    most_blocks: int,
) -> tuple[Shown | None, str]:
    case: Case = make_case(problem, workload, int(rng.integers(2**31)))
    plan = plan_call(candidate, problem, code, workload, case)
    if len(plan.launches) > 1 or plan.scratch:
        # What a later launch reads an earlier one has to have written, all of it.
        text = (
            f"{workload.label}: the blocks of several launches cannot be run alone, nor with scratch buffers"
        )
        return Shown(StageState.UNKNOWN, text), ""
    most = plan.launches[0].blocks
    text = ""
    for count in (most_blocks, _AGAIN):
        count = min(count, most)
        chosen = rng.choice(most, size=count, replace=False)
        failed, written = _run_sample(plan, code, isolation, chosen)
        if failed is not None:
            return failed, ""
        # A tail block writes less than the others: others are drawn before the rest is said to be missing.
        if written * most >= case.output.size * count:
            return None, f"{workload.label}: {count} of {most} blocks"
        about = round(case.output.size * count / most)
        text = f"{workload.label}: {count} of {most} blocks wrote {written} elements, and {about} are theirs"
    text += ": who writes the rest is not known"
    return Shown(StageState.UNKNOWN, text, (text,)), ""


def _run_sample(
    plan: CallPlan, code: MachineCode, isolation: Isolation, chosen: NDArray[np.int64]
) -> tuple[Shown | None, int]:
    """What is wrong with what some blocks write, None where nothing is; and how many elements they write."""
    case, label = plan.case, plan.workload.label
    x, y, _ = plan.launches[0].grid
    blocks = np.stack([chosen % x, chosen // x % y, chosen // (x * y)], axis=1)
    result = run_call(code, plan, isolation, _CALL, blocks={0: blocks})
    if result.no_model:
        return Shown(StageState.UNKNOWN, f"{label}: {result.error}"), 0
    findings = [result.error] if result.error else _side_effects(plan, result)
    if not findings:
        output = result.arrays[plan.output]
        is_written = (output.reshape(-1, case.output.dtype.itemsize) != POISON).any(axis=1)
        is_written = is_written.reshape(case.output.shape)
        values = output.view(case.output.dtype).reshape(case.output.shape)
        check = case.check(np.where(is_written, values, case.reference.astype(case.output.dtype)))
        if not check.wrong:
            return None, int(is_written.sum())
        findings = [f"{check.wrong} of {int(is_written.sum())} elements are wrong"]
    where = f"{label}: blocks {', '.join(str(tuple(block)) for block in blocks.tolist())}"
    findings = [f"{where}: {finding}" for finding in findings]
    return Shown(StageState.FAILED, findings[0], tuple(findings)), 0
