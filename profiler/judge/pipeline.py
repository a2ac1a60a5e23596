"""The stages of a judgement in order, and what follows from how each ended."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from profiler.build.lower_bounds import PeakRates, bounds_at_rates
from profiler.bundles.scratch import scratch_folder
from profiler.catalog.cases import check_workloads, make_inputs, refuse_weak_checks
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.catalog.problem import Problem, Workload, acceptance_workloads
from profiler.catalog.sources import load_problem
from profiler.catalog.trust import require_trust
from profiler.errors import BadCatalog, CannotJudge, ProfilerError
from profiler.evidence import opcodes
from profiler.evidence.gpu_parts import DEFAULT_PART, GpuPart, find_part
from profiler.evidence.values import Evidence
from profiler.judge.artefacts import keep_artefacts
from profiler.judge.binary_scan import binary_doubts, scan_binary
from profiler.judge.call_plan import CallPlan, argument_names, plan_call
from profiler.judge.candidate import Candidate, load_candidate
from profiler.judge.compilation import CandidateCode, compile_candidate
from profiler.judge.correctness import JOBS, Shown, check_acceptance, check_blocks, check_unseen
from profiler.judge.insights import insights_of_launch
from profiler.judge.isolation import Isolation, ProcessLimits
from profiler.judge.judgement import Against, CandidateJudgement, StageResult, StageState, WorkloadTime
from profiler.judge.machine_run import predict_call
from profiler.judge.measurement import (
    Measurement,
    SideSamples,
    baseline_code,
    isolated_runner,
    measure,
    planned_code,
    why_no_gpu,
)
from profiler.model.error_table import load_errors
from profiler.model.stored_predictions import FASTER, SLOWER, predicted_ratio
from profiler.statistics.decision import Decision
from profiler.statistics.verdict import Verdict

MANIFEST, COMPILE, BINARY, BUDGET = "manifest", "compile", "binary", "budget"
UNSEEN, ACCEPTANCE, RACES = "unseen", "acceptance", "races"
TIME, MEASURED = "modelled_time", "measured"
CANDIDATE, ELITE = "candidate", "elite"  # names of what is timed
STAGES = (MANIFEST, COMPILE, BINARY, BUDGET, UNSEEN, ACCEPTANCE, RACES, TIME, MEASURED)
# Without these nothing is valid; the others may be unknown.
NEEDED = (MANIFEST, COMPILE, BINARY, BUDGET, UNSEEN, ACCEPTANCE, RACES)
_PREDICTION = ProcessLimits(90)
Progress = Callable[[str, str], None]  # stage, what happened


@dataclass
class _Stages:
    """What the stages so far said."""

    progress: Progress
    results: list[StageResult] = field(default_factory=list)

    @property
    def has_failed(self) -> bool:
        return any(result.state is StageState.FAILED for result in self.results)

    def add(
        self,
        name: str,
        state: StageState,
        started: float,
        reason: str = "",
        findings: Sequence[str] = (),
    ) -> None:
        seconds = time.perf_counter() - started
        self.results.append(StageResult(name, state, seconds, reason, tuple(findings)))
        self.progress(name, f"{state}{f': {reason}' if reason else ''}")

    @contextmanager
    def stage(self, name: str) -> Iterator[float]:
        """A stage in which what a user can mend is a failure, and what cannot be judged is unknown."""
        started = time.perf_counter()
        try:
            yield started
        except CannotJudge as error:
            self.add(name, StageState.UNKNOWN, started, str(error).splitlines()[0])
        except ProfilerError as error:
            text = str(error)
            self.add(name, StageState.FAILED, started, text.splitlines()[0], text.splitlines()[1:6])

    def skip_rest(self) -> None:
        """Say of every stage that was not reached why."""
        done = {result.name for result in self.results}
        failed = next((r.name for r in self.results if r.state is StageState.FAILED), "")
        for name in STAGES:
            if name not in done:
                reason = f"{failed} failed" if failed else "not reached"
                self.results.append(StageResult(name, StageState.SKIPPED, 0.0, reason))


def judge_candidate(
    name: str | Path,
    against: str | Path | None = None,
    *,
    catalog: Path | None = None,
    gpu: str = DEFAULT_PART,
    workloads: Sequence[str] = (),
    seed: int | None = None,
    trust: bool = False,
    measured: bool = True,
    keep: Path | None = None,
    progress: Progress = lambda _stage, _what: None,
) -> CandidateJudgement:
    """Judge a candidate: is it right, what does it cost, how long would it take, is it better than another.

    name: a folder with candidate.toml, or a version. against: another of these. workloads: labels of those it
    is judged on; the family's acceptance workloads unless given. seed: of the shapes and inputs it has not
    seen, drawn anew unless given. trust: run it where nothing isolates. measured: time it where the GPU is
    here. keep: a folder for its machine code and what is known of that. Raises UnknownName for a name that is
    nothing, CannotJudge where there is neither isolation nor trust, and NotTrusted for a catalogue of others.
    """
    seed = secrets.randbits(32) if seed is None else seed
    part = find_part(gpu)
    isolation = Isolation(trust)
    loaded_catalog = load_catalog(catalog) if catalog else load_catalog()
    if not trust:
        require_trust(loaded_catalog)  # its problem is Python that runs here
    problem = load_problem(loaded_catalog)
    refuse_weak_checks(problem, loaded_catalog.versions)
    stages = _Stages(progress)
    judgement = CandidateJudgement(
        "", Path(name).name or str(name), "", part.name, None, None, "", (), seed=seed, isolated=not trust
    )
    candidate: Candidate | None = None
    on: list[Workload] = []
    with stages.stage(MANIFEST) as started:
        candidate, on = _read(name, loaded_catalog, problem, workloads)
        taken = f"{len(on)} workloads"
        stages.add(MANIFEST, StageState.PASSED, started, taken)
    if candidate is None or stages.has_failed:
        stages.skip_rest()
        return _concluded(judgement, stages)
    judgement = replace(judgement, candidate=candidate.id, name=candidate.name, family=candidate.family)
    with scratch_folder() as folder:
        run = _Run(candidate, loaded_catalog, problem, part, isolation, seed, on, folder, stages)
        elite = None if against is None else _elite(run, against)
        judgement = _concluded(run.judge(judgement, elite, measured), stages)
        if elite is not None:
            judgement = _compare(judgement, run, elite)
        judgement = _beside_baseline(judgement, run)
        if keep is not None and run.code is not None:
            judgement = replace(judgement, artefacts=keep_artefacts(run.code, run.predictions, keep))
    return judgement


def _read(
    name: str | Path, catalog: Catalog, problem: Problem, labels: Sequence[str]
) -> tuple[Candidate, list[Workload]]:
    """The candidate and the workloads that it is judged on."""
    candidate = load_candidate(name, catalog)
    if candidate.family != catalog.family:
        raise CannotJudge(
            f"{candidate.name} is of family {candidate.family}, and {catalog.path} of {catalog.family}: give "
            "--catalog"
        )
    if candidate.manifest is not None:
        allowed = getattr(problem, "may_restrict", ("head_dim",))
        if stray := sorted(candidate.manifest.takes.keys() - set(allowed)):
            raise BadCatalog(
                f"{candidate.name}: takes {stray[0]!r}: only {', '.join(allowed)} may be restricted, since a "
                "candidate for few lengths could know them by heart"
            )
    dtype, sizes = candidate.compile_sizes
    checked = check_workloads(problem, dtype, sizes)  # first of all: what the problem lacks it names
    everything = acceptance_workloads(problem, [dtype], sizes)
    if labels:
        by_label = {w.label: w for w in (*checked, *everything)}
        if unknown := [label for label in labels if label not in by_label]:
            raise CannotJudge(f"no workload {unknown[0]!r}: there are {', '.join(by_label)}")
        everything = [by_label[label] for label in labels]
    taken = [workload for workload in everything if candidate.accepts(workload)]
    if not taken:
        raise CannotJudge(f"{candidate.name} takes none of the workloads: see `takes` in its manifest")
    if candidate.manifest is not None:
        names = argument_names(problem)
        for workload in taken:
            # Every expression is worked out here, so that one that cannot be is the manifest's failure.
            passed = dict(zip(names, make_inputs(problem, workload, 0).arguments, strict=False))
            candidate.manifest.plan(workload.sizes(), passed)
            candidate.manifest.scratch_bytes(workload.sizes())
    return candidate, taken


@dataclass
class _Run:
    """One candidate on its way through the stages."""

    candidate: Candidate
    catalog: Catalog
    problem: Problem
    gpu: GpuPart
    isolation: Isolation
    seed: int
    workloads: Sequence[Workload]
    folder: Path
    stages: _Stages
    code: CandidateCode | None = None
    predictions: dict[str, dict[str, Any]] = field(default_factory=dict)
    measurement: Measurement | None = None
    baseline: str = ""
    executed: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)  # see Shown

    def judge(self, judgement: CandidateJudgement, elite: _Run | None, measured: bool) -> CandidateJudgement:
        """Every stage that the one before lets come. measured: time it beside the elite, where a GPU is."""
        self.compile()
        if self.code is not None:
            judgement = replace(judgement, code_id=self.code.code_id)
        for stage in (self.binary, self.budget, self.correctness):
            if self.stages.has_failed or self.code is None:
                break
            stage()
        times: tuple[WorkloadTime, ...] = ()
        if not self.stages.has_failed and self.code is not None:
            times = self.time()
        if not self.stages.has_failed and self.code is not None:
            times = self.measure(times, elite, measured)
        self.stages.skip_rest()
        return replace(judgement, times=times, facts=self.facts(), insights=self.insights())

    def measure(
        self, times: tuple[WorkloadTime, ...], elite: _Run | None, measured: bool
    ) -> tuple[WorkloadTime, ...]:
        """The measured times in the place of modelled ones, where the GPU is here."""
        assert self.code is not None
        with self.stages.stage(MEASURED) as started:
            reason = why_no_gpu(self.gpu) if measured else "not requested: times are modelled"
            if reason:
                self.stages.add(MEASURED, StageState.UNKNOWN, started, reason)
                return times
            folder = self.folder / "measured"
            folder.mkdir()
            sides = [planned_code(CANDIDATE, self.code, self._plans(self.workloads), folder)]
            if elite is not None:
                elite.compile_once()
            if elite is not None and elite.code is not None:
                taken = [workload for workload in self.workloads if elite.candidate.accepts(workload)]
                sides.append(planned_code(ELITE, elite.code, elite._plans(taken), folder))
            if baseline := baseline_code(self.catalog, self.workloads):
                self.baseline = baseline.name
                sides.append(baseline)
            run = isolated_runner(self.isolation, self.catalog)
            done = measure(sides, self.catalog, self.workloads, folder, run, self.seed)
            self.measurement = done
            own = done.samples[CANDIDATE]
            times = tuple(_measured_time(item, own[item.workload]) for item in times)
            failed = [f"{label}: {samples.failed}" for label, samples in own.items() if samples.failed]
            findings = [*done.wrong, *failed, *below_the_floor(times, Evidence.MEASURED)]
            state = (
                StageState.FAILED if findings else StageState.UNKNOWN if done.reason else StageState.PASSED
            )
            reason = findings[0] if findings else done.reason
            self.stages.add(MEASURED, state, started, reason, findings)
        return times

    def _plans(self, workloads: Sequence[Workload]) -> dict[str, CallPlan]:
        return {workload.label: self.plan(workload) for workload in workloads}

    def decisions(self, other: str) -> dict[str, Decision]:
        """The candidate against a side that was measured beside it, by workload."""
        done = self.measurement
        return done.decisions(other, CANDIDATE) if done is not None and other in done.samples else {}

    def compile_once(self) -> None:
        """Compile, unless that was done."""
        if self.code is None and not self.stages.results:
            self.compile()

    def compile(self) -> None:
        arch = self.gpu.architecture.default_target or self.gpu.arch
        with self.stages.stage(COMPILE) as started:
            code_folder = self.folder / "code"
            code_folder.mkdir()
            self.code = compile_candidate(
                self.candidate, self.catalog, self._kernels(), arch, code_folder, self.isolation
            )
            self.stages.add(COMPILE, StageState.PASSED, started, f"{len(self.code.kernels)} kernels, {arch}")

    def _kernels(self) -> list[str]:
        """The kernels that are launched on any workload, each once."""
        manifest = self.candidate.manifest
        if manifest is None:
            return []
        names: dict[str, None] = {}
        dtype, sizes = self.candidate.compile_sizes
        for workload in (*self.workloads, *check_workloads(self.problem, dtype, sizes)):
            if manifest.accepts(workload.sizes()):
                case = make_inputs(self.problem, workload, 0)
                arguments = getattr(self.problem, "arguments", ())
                passed = dict(zip(arguments, case.arguments, strict=False))
                names |= {launch.kernel: None for launch in manifest.plan(workload.sizes(), passed)}
        return list(names)

    def binary(self) -> None:
        assert self.code is not None
        with self.stages.stage(BINARY) as started:
            findings = list(dict.fromkeys(scan_binary(self.code)))
            state = StageState.FAILED if findings else StageState.PASSED
            if not findings and (findings := list(binary_doubts(self.code))):
                state = StageState.UNKNOWN
            self.stages.add(BINARY, state, started, findings[0] if findings else "", findings)

    def budget(self) -> None:
        """Launches that no GPU takes, and what exceeds the candidate's own budget."""
        assert self.code is not None
        with self.stages.stage(BUDGET) as started:
            findings = []
            most_shared = 0
            for workload in self.workloads:
                plan = self.plan(workload)
                for launch in plan.launches:
                    static = launch.kernel.usage.static_shared_bytes
                    most_shared = max(most_shared, launch.shared_bytes + static)
            manifest = self.candidate.manifest
            limits = dict(manifest.budget) if manifest else {}
            for kernel in self.code.kernels.values():
                facts = {
                    "registers": kernel.usage.registers,
                    "spill_bytes": kernel.usage.spill_bytes,
                    "stack_bytes": kernel.usage.stack_bytes,
                    "shared_bytes": most_shared,
                }
                for name, limit in limits.items():
                    if facts[name] > limit:
                        findings.append(
                            f"{kernel.function}: {name.replace('_', ' ')} {facts[name]} over {limit}"
                        )
            state = StageState.FAILED if findings else StageState.PASSED
            self.stages.add(BUDGET, state, started, findings[0] if findings else "", findings)

    def plan(self, workload: Workload) -> CallPlan:
        """The call of an acceptance workload, without its reference."""
        assert self.code is not None
        case = make_inputs(self.problem, workload, self.seed % 2**31)
        return plan_call(self.candidate, self.problem, self.code, workload, case)

    def launch_key(self, workload: Workload) -> object:
        """What a call launches, to tell apart launches of the same machine code."""
        return [launch.as_json() for launch in self.plan(workload).launches]

    def correctness(self) -> None:
        assert self.code is not None
        rng = np.random.default_rng(self.seed)
        shown = accepted = Shown()
        with self.stages.stage(UNSEEN) as started:
            shown = check_unseen(self.candidate, self.problem, self.code, self.isolation, rng)
            self.stages.add(UNSEEN, shown.state, started, shown.reason, shown.findings)
        if self.stages.has_failed:
            return
        with self.stages.stage(ACCEPTANCE) as started:
            accepted = check_acceptance(
                self.candidate, self.problem, self.code, self.isolation, rng, self.workloads
            )
            self.stages.add(ACCEPTANCE, accepted.state, started, accepted.reason, accepted.findings)
        if self.stages.has_failed:
            return
        self.executed = accepted.executed
        with self.stages.stage(RACES) as started:
            races = tuple(dict.fromkeys((*shown.races, *accepted.races)))
            state = StageState.FAILED if races else shown.race_state
            self.stages.add(RACES, state, started, races[0] if races else shown.race_reason, races)

    def time(self) -> tuple[WorkloadTime, ...]:
        """The modelled time on every workload."""
        times = []
        with self.stages.stage(TIME) as started:
            with ThreadPoolExecutor(JOBS) as pool:
                times = list(pool.map(self._time, self.workloads))
            missing = [item for item in times if item.likely_ns is None]
            findings = [*below_the_floor(times, Evidence.MODELLED), *self._wrong_where_counted()]
            state = StageState.PASSED
            if findings:
                state = StageState.FAILED
            elif missing:
                state = StageState.UNKNOWN
            reason = findings[0] if findings else missing[0].reason if missing else ""
            self.stages.add(TIME, state, started, reason, findings)
        return tuple(times)

    def _time(self, workload: Workload) -> WorkloadTime:
        assert self.code is not None
        floor = floor_ns(self.problem, workload, self.gpu)
        executed = self.executed.get(workload.label, ())
        plan = self.plan(workload)
        answer = predict_call(self.code, plan, self.gpu.name, self.isolation, _PREDICTION, executed)
        self.predictions[workload.label] = answer
        doubts = [row["doubt"]["words"] for row in answer.get("launches", ()) if row["doubt"]]
        if "error" in answer or doubts:
            reason = str(answer["error"]) if "error" in answer else doubts[0]
            return WorkloadTime(workload.label, Evidence.MODELLED, None, floor_ns=floor, reason=reason)
        launches = answer["launches"]
        longest = max(launches, key=lambda launch: launch["time_ns"])
        return WorkloadTime(
            workload.label,
            Evidence.MODELLED,
            sum(launch["time_ns"] for launch in launches),
            sum(launch["low_ns"] for launch in launches),
            sum(launch["high_ns"] for launch in launches),
            floor,
            str(longest["limiter"]),
        )

    def _wrong_where_counted(self) -> list[str]:
        """What is wrong with blocks from which a time follows that others do not bear out."""
        assert self.code is not None
        own = np.random.default_rng(self.seed)
        findings: list[str] = []
        for workload in self.workloads:
            launches = self.predictions.get(workload.label, {}).get("launches", ())
            drawn = {n: np.array(row["doubt"]["blocks"]) for n, row in enumerate(launches) if row["doubt"]}
            if drawn:
                inputs = self.candidate, self.problem, self.code, self.isolation, own, workload
                findings += check_blocks(*inputs, drawn).findings
        return findings

    def insights(self) -> tuple[dict[str, Any], ...]:
        """What the numbers on the first workload that has a model suggest."""
        for workload in self.workloads:
            counted = self.predictions.get(workload.label, {})
            if "launches" in counted and self.code is not None:
                longest = max(counted["launches"], key=lambda launch: launch["time_ns"])
                kernel = self.code.kernels[longest["kernel"]]
                return insights_of_launch(longest, kernel, self.code.arch, workload.label)
        return ()

    def facts(self) -> dict[str, Any]:
        """What the compiler and the model counted, of all kernels together and by kernel."""
        if self.code is None:
            return {}
        kernels = list(self.code.kernels.values())
        facts: dict[str, Any] = {
            "arch": self.code.arch,
            "sms": self.gpu.sms,
            "registers": max(kernel.usage.registers for kernel in kernels),
            "spill_bytes": sum(kernel.usage.spill_bytes for kernel in kernels),
            "stack_bytes": max(kernel.usage.stack_bytes for kernel in kernels),
            "static_shared_bytes": max(kernel.usage.static_shared_bytes for kernel in kernels),
            "tensor_opcodes": sum(
                count
                for kernel in kernels
                for opcode, count in kernel.opcodes.items()
                if opcodes.is_matrix_multiply(opcode)
            ),
            "kernels": {
                kernel.function: {
                    "registers": kernel.usage.registers,
                    "spill_bytes": kernel.usage.spill_bytes,
                    "stack_bytes": kernel.usage.stack_bytes,
                    "static_shared_bytes": kernel.usage.static_shared_bytes,
                    "instructions": sum(kernel.opcodes.values()),
                }
                for kernel in kernels
            },
        }
        counted = next((p for p in self.predictions.values() if "launches" in p), None)
        if counted is not None:
            launches = counted["launches"]
            facts["shared_bytes"] = max(launch["inputs"]["shared_bytes"] for launch in launches)
            for name in ("bank_conflicts", "shared_wavefronts", "sectors", "tensor_instructions"):
                facts[name] = sum(launch[name] for launch in launches)
            longest = max(launches, key=lambda launch: launch["time_ns"])
            facts |= {name: longest["inputs"][name] for name in ("threads", "blocks")}
            facts |= {name: longest[name] for name in ("utilisation", "stalls")}
        return facts


def below_the_floor(times: Sequence[WorkloadTime], evidence: Evidence) -> list[str]:
    """Times of that evidence that nothing can have: what was computed is less than what was asked for."""
    return [
        f"{item.workload}: {item.likely_ns / 1e3:.2f} µs {evidence}, below the lower bound of "
        f"{item.floor_ns / 1e3:.2f} µs: nothing can be so fast"
        for item in times
        if item.evidence is evidence
        and item.likely_ns is not None
        and item.floor_ns
        and item.likely_ns < item.floor_ns
    ]


def _measured_time(modelled: WorkloadTime, samples: SideSamples) -> WorkloadTime:
    """The typical measured time with the range of nine of ten samples; the modelled one without samples."""
    if samples.typical_ns is None:
        return modelled
    low, high = np.percentile(samples.ns, (5, 95))
    return replace(
        modelled,
        evidence=Evidence.MEASURED,
        likely_ns=samples.typical_ns,
        low_ns=float(low),
        high_ns=float(high),
        reason="",
    )


def floor_ns(problem: Problem, workload: Workload, gpu: GpuPart) -> float | None:
    """What no kernel can be faster than: the arithmetic on all tensor cores, and bytes that no L2 holds."""
    tensor = gpu.architecture.tensor_flops
    rates = PeakRates(
        flops_per_s=tensor * gpu.sms * gpu.clock_hz if tensor else None,
        bytes_per_s=gpu.dram_bytes_per_s,
    )
    bounds = bounds_at_rates(problem, workload, rates)
    fits_l2 = gpu.l2_bytes is not None and problem.minimal_bytes(workload) <= gpu.l2_bytes
    known = [bounds.arithmetic_ns, None if fits_l2 else bounds.memory_ns]
    return max((ns for ns in known if ns is not None), default=None)


def _concluded(judgement: CandidateJudgement, stages: _Stages) -> CandidateJudgement:
    """What follows from the stages: valid or not, and the score."""
    results = tuple(sorted(stages.results, key=lambda result: STAGES.index(result.name)))
    failed = next((r for r in results if r.state is StageState.FAILED), None)
    unknown = next((r for r in results if r.name in NEEDED and r.state is not StageState.PASSED), None)
    valid: bool | None = True
    reason = ""
    if failed is not None:
        valid, reason = False, f"{failed.name}: {failed.reason}"
    elif unknown is not None:
        valid, reason = None, f"{unknown.name}: {unknown.reason}"
    score, why = _score(judgement.times) if valid else (None, "not valid" if valid is False else reason)
    return replace(judgement, valid=valid, reason=reason, stages=results, score=score, score_reason=why)


def _score(times: Sequence[WorkloadTime]) -> tuple[float | None, str]:
    """The share of the lower bound that is reached, by the geometric mean over the workloads."""
    shares = []
    for item in times:
        if item.likely_ns is None or not item.floor_ns:
            return None, f"{item.workload}: {item.reason or 'no lower bound is known'}"
        shares.append(item.floor_ns / item.likely_ns)
    if not shares:
        return None, "no time is known"
    return math.exp(sum(map(math.log, shares)) / len(shares)), ""


def _elite(run: _Run, against: str | Path) -> _Run:
    """The other candidate, not compiled yet. Raises as load_candidate does."""
    other = load_candidate(against, run.catalog)
    folder = run.folder / "elite"
    folder.mkdir()
    stages = _Stages(lambda _stage, _what: None)
    return _Run(
        other, run.catalog, run.problem, run.gpu, run.isolation, run.seed, run.workloads, folder, stages
    )


def _compare(judgement: CandidateJudgement, run: _Run, elite: _Run) -> CandidateJudgement:
    """The times beside those of another candidate on the same workloads."""
    judgement = replace(judgement, elite=elite.candidate.name)
    if judgement.valid is False or run.code is None:
        return judgement
    elite.compile_once()
    measured = run.decisions(ELITE)
    rows = []
    for item in judgement.times:
        workload = next(w for w in run.workloads if w.label == item.workload)
        decision = measured.get(item.workload)
        rows.append(
            _against(item, elite, workload, run.code, run.launch_key(workload), elite.candidate.name)
            if decision is None
            else _decided(item.workload, decision)
        )
    return replace(judgement, against=tuple(rows))


def _beside_baseline(judgement: CandidateJudgement, run: _Run) -> CandidateJudgement:
    """The measured times beside those of the catalogue's baseline."""
    rows = [_decided(label, decision) for label, decision in run.decisions(run.baseline).items()]
    return replace(judgement, baseline=run.baseline if rows else "", against_baseline=tuple(rows))


def _decided(workload: str, decision: Decision) -> Against:
    """A live pair's decision: ratios of times, 99 % intervals."""
    low, high = decision.interval if decision.interval else (None, None)
    effect = decision.effect
    return Against(
        workload,
        decision.verdict,
        None if effect is None else 1 + effect,
        None if low is None else 1 + low,
        None if high is None else 1 + high,
        Evidence.MEASURED,
        "" if decision.verdict.traits.moved else decision.reason,
    )


def _against(
    item: WorkloadTime, other: _Run, workload: Workload, code: CandidateCode, key: object, name: str
) -> Against:
    evidence = item.evidence
    if other.code is None:
        reason = f"{name} does not compile: {other.stages.results[-1].reason}"
        return Against(item.workload, Verdict.MISSING, None, None, None, evidence, reason)
    if not other.candidate.accepts(workload):
        reason = f"{name} does not take it"
        return Against(item.workload, Verdict.NOT_COMPARABLE, None, None, None, evidence, reason)
    if other.code.code_id == code.code_id and other.launch_key(workload) == key:
        return Against(item.workload, Verdict.SAME, 1.0, 1.0, 1.0, evidence, "the same machine code")
    if item.evidence is Evidence.MEASURED:
        reason = f"{name} has no measured time beside it"
        return Against(item.workload, Verdict.MISSING, None, None, None, evidence, reason)
    theirs = other._time(workload)
    if item.likely_ns is None or theirs.likely_ns is None:
        reason = item.reason or theirs.reason
        return Against(item.workload, Verdict.MISSING, None, None, None, evidence, reason)
    ratio = predicted_ratio(item.likely_ns, theirs.likely_ns, name, load_errors())
    words: Mapping[str, Verdict] = {FASTER: Verdict.BETTER, SLOWER: Verdict.WORSE}
    verdict = words.get(ratio.word, Verdict.UNCLEAR)
    reason = "" if verdict is not Verdict.UNCLEAR else "the difference is under the model's error"
    return Against(item.workload, verdict, ratio.ratio, ratio.low, ratio.high, evidence, reason)
