"""Whether a candidate is right: on shapes and inputs that it has not seen, and on the acceptance shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.catalog.cases import call_problem, check_workloads, make_case
from profiler.catalog.problem import Case, Problem, Workload
from profiler.errors import CannotJudge
from profiler.judge.call_plan import CallPlan, plan_call
from profiler.judge.candidate import Candidate
from profiler.judge.compilation import CandidateCode
from profiler.judge.isolation import Isolation, ProcessLimits
from profiler.judge.judgement import StageState
from profiler.judge.machine_run import MachineResult, SampleResult, run_call, sample_call
from profiler.judge.poison import PLAUSIBLE, POISONS

UNSEEN_CALLS = 4
JOBS = min(os.cpu_count() or 1, 4)  # processes at a time
_DRAWS = 60
_WEIGHTS = {"inputs": 5, "head_dim": 3, "causal": 3}
_CALL = ProcessLimits(90)
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
    # By workload, of each launch: what the blocks executed that were run. See run_work.find_doubt.
    executed: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


def check_unseen(
    candidate: Candidate,
    problem: Problem,
    code: CandidateCode,
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
    code: CandidateCode,
    isolation: Isolation,
    workload: Workload,
    seeds: Sequence[int],
    poison: int,
) -> Shown:
    races: tuple[str, ...] = ()
    stale = 0
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
        stale = max(stale, result.missing_bytes)
    if stale:
        text = (
            f"{workload.label}: {stale} bytes of the output or of scratch buffers are read that this call "
            "has not written: what an earlier one left there could decide"
        )
        return Shown(StageState.UNKNOWN, text, (text,), race_reason=text)
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
    code: CandidateCode,
    isolation: Isolation,
    rng: np.random.Generator,
    workloads: Sequence[Workload],
) -> Shown:
    """Run some blocks of each acceptance shape, drawn at random, and compare what they write.

    Of several launches those blocks are run too whose results these read.
    """
    seeds = [int(seed) for seed in rng.integers(2**31, size=len(workloads))]

    def check(number: int) -> Shown:
        own = np.random.default_rng(seeds[number])
        sample = _Sample(candidate, problem, code, isolation, own, workloads[number])
        return sample.check(_SAMPLED if number == 0 else 1)

    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(check, range(len(workloads))))
    for state in (StageState.FAILED, StageState.UNKNOWN):
        for shown in results:
            if shown.state is state:
                return shown
    races = tuple(dict.fromkeys(race for shown in results for race in shown.races))
    executed = {label: rows for shown in results for label, rows in shown.executed.items()}
    words = "; ".join(shown.reason for shown in results)
    return Shown(StageState.PASSED, words, races=races, executed=executed)


def check_blocks(
    candidate: Candidate,
    problem: Problem,
    code: CandidateCode,
    isolation: Isolation,
    rng: np.random.Generator,
    workload: Workload,
    drawn: Mapping[int, NDArray[np.int64]],
) -> Shown:
    """Run blocks, [n, 3] by launch, and what they need of an acceptance shape: are they right?"""
    return _Sample(candidate, problem, code, isolation, rng, workload).check_drawn(drawn)


class _Sample:
    """Some blocks of a call on an acceptance shape."""

    def __init__(
        self,
        candidate: Candidate,
        problem: Problem,
        code: CandidateCode,
        isolation: Isolation,
        rng: np.random.Generator,
        workload: Workload,
    ) -> None:
        self._candidate, self._problem, self._code = candidate, problem, code
        self._isolation, self._rng, self._workload = isolation, rng, workload

    def _plan(self) -> CallPlan:
        """The call with inputs drawn anew."""
        case: Case = make_case(self._problem, self._workload, int(self._rng.integers(2**31)))
        return plan_call(self._candidate, self._problem, self._code, self._workload, case)

    def check(self, most_blocks: int) -> Shown:
        """Run so many blocks of every launch that may write the output; more where these write too little."""
        plan = self._plan()
        label = self._workload.label
        writers = [number for number, launch in enumerate(plan.launches) if launch.is_given(plan.output)]
        if not writers:
            return _failed(label, ["no launch is given the output"])
        text = ""
        for count in (most_blocks, _AGAIN):
            counts = {number: min(count, plan.launches[number].blocks) for number in writers}
            drawn = {
                number: plan.launches[number].places(
                    self._rng.choice(plan.launches[number].blocks, size=chosen, replace=False)
                )
                for number, chosen in counts.items()
            }
            own = int(self._rng.integers(2**31))
            result = sample_call(self._code, plan, self._isolation, _CALL, drawn, seed=own)
            if shown := self._judge(plan, result):
                return shown
            # A tail block writes less than the others: others are drawn before anything is missing.
            parts = [
                result.wrote_bytes[number] * plan.launches[number].blocks / counts[number]
                for number in writers
            ]
            most = ", ".join(f"{counts[n]} of {plan.launches[n].blocks} blocks" for n in writers)
            if sum(parts) >= plan.case.output.nbytes:
                needed = sum(map(len, result.blocks)) - sum(counts.values())
                words = f"{label}: {most}{f' and {needed} that they need' if needed > 0 else ''}"
                return self._again(plan, result, drawn) or Shown(
                    StageState.PASSED, words, races=result.races, executed={label: result.executed}
                )
            text = f"{label}: {most} wrote {sum(result.wrote_bytes.values())} bytes, which makes "
            text += f"{sum(parts) / plan.case.output.nbytes:.0%} of the output"
        text += ": who writes the rest is not known"
        return Shown(StageState.UNKNOWN, text, (text,))

    def check_drawn(self, drawn: Mapping[int, NDArray[np.int64]]) -> Shown:
        """Run these blocks; of launches that are not given the output none is."""
        plan = self._plan()
        own = {n: blocks for n, blocks in drawn.items() if plan.launches[n].is_given(plan.output)}
        if not own:
            return Shown()
        seed = int(self._rng.integers(2**31))
        result = sample_call(self._code, plan, self._isolation, _CALL, own, seed=seed)
        return self._judge(plan, result) or Shown(StageState.PASSED)

    def _again(
        self, plan: CallPlan, first: SampleResult, drawn: Mapping[int, NDArray[np.int64]]
    ) -> Shown | None:
        """A second call with other inputs, on what the first left in the scratch buffers."""
        if not plan.scratch:
            return None
        other = self._plan()
        kept = [first.arrays[number] for number in plan.scratch]
        result = sample_call(
            self._code,
            other,
            self._isolation,
            _CALL,
            drawn,
            poison=PLAUSIBLE,
            scratch=kept,
            blocks=first.blocks,
        )
        return self._judge(other, result, ", a second call with other inputs")

    def _judge(self, plan: CallPlan, result: SampleResult, words: str = "") -> Shown | None:
        """What is wrong with what the blocks wrote, or is not known of it; None where nothing is."""
        case, label = plan.case, f"{self._workload.label}{words}"
        if result.no_model:
            return Shown(StageState.UNKNOWN, f"{label}: {result.error}")
        unwritten = ""
        if result.missing_bytes:
            unwritten = (
                f"{label}: {result.missing_bytes} bytes are read of the output or of scratch buffers, and "
                "nothing is known to write them before"
            )
        findings = [result.error] if result.error else _side_effects(plan, result)
        is_sure = not result.error or not unwritten
        if not findings:
            is_written = result.writer >= 0
            values = result.arrays[plan.output].view(case.output.dtype).reshape(case.output.shape)
            check = case.check(np.where(is_written, values, case.reference.astype(case.output.dtype)))
            if check.wrong:
                findings = [f"{check.wrong} of {int(is_written.sum())} elements are wrong"]
                # What an earlier launch wrote a later one may have to complete.
                first = check.first_wrong
                is_last = first is None or result.writer[first] == result.writer.max()
                is_sure = is_last and not unwritten
        if findings and is_sure:
            where = f"{label}: of {', '.join(str(len(rows)) for rows in result.blocks)} blocks"
            return _failed(where, findings)
        if findings or unwritten:
            text = (
                unwritten or f"{label}: {findings[0]}, and whether a later launch completes them is not known"
            )
            return Shown(StageState.UNKNOWN, text, (text,))
        return None


def _failed(where: str, findings: Sequence[str]) -> Shown:
    findings = [f"{where}: {finding}" for finding in findings]
    return Shown(StageState.FAILED, findings[0], tuple(findings))
