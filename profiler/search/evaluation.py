"""What candidates are judged by: the cheap parts first, machine code and modelled time; then all of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from profiler.bundles.scratch import scratch_folder
from profiler.catalog.cases import check_workloads, make_inputs
from profiler.catalog.catalog import load_catalog
from profiler.catalog.problem import acceptance_workloads
from profiler.catalog.sources import load_problem
from profiler.errors import CannotJudge, ProfilerError
from profiler.evidence.gpu_parts import find_part
from profiler.evidence.values import Evidence
from profiler.judge.call_plan import plan_call
from profiler.judge.candidate import load_candidate
from profiler.judge.compilation import NoAnswer, compile_candidate
from profiler.judge.isolation import Isolation, ProcessLimits
from profiler.judge.judgement import CandidateJudgement, WorkloadTime
from profiler.judge.machine_run import predict_call
from profiler.judge.measurement import why_no_gpu
from profiler.judge.pipeline import floor_ns, judge_candidate
from profiler.model.error_table import load_errors
from profiler.model.stored_predictions import FASTER, SLOWER, predicted_ratio
from profiler.search.record import PairVerdict, SearchRecord
from profiler.search.settings import SearchSettings
from profiler.statistics.verdict import Verdict, over_workloads

_PREDICTION = ProcessLimits(90)
MODELLED = str(Evidence.MODELLED)
_LEAST_DIGITS = 12  # of a content id that names a folder
_LEAST_SHARE = 0.01  # of stalls and pipes that are kept
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Screening:
    """What the cheap parts say: whether it compiles, its machine code, and its time on the first workload."""

    code_id: str = ""
    time: WorkloadTime | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    failed: str = ""  # why it does not compile


class Evaluator(Protocol):
    """Whoever says what a candidate is worth."""

    def screen(self, folder: Path) -> Screening:
        """The cheap parts."""

    def judge(self, folder: Path, rival: Path | None, progress: Progress) -> CandidateJudgement:
        """All of it; where it is measured, beside the candidate `rival`."""


class CandidateJudge:
    """`profiler judge` on the agreed workloads."""

    def __init__(self, settings: SearchSettings, *, trust: bool = False) -> None:
        self._settings = settings
        self._trust = trust
        path = Path(settings.catalog) if settings.catalog else None
        self._path = path
        self._catalog = load_catalog(path) if path else load_catalog()
        self._problem = load_problem(self._catalog)

    def screen(self, folder: Path) -> Screening:
        """Compile, and model the time on the first workload. Raises CannotJudge where nothing isolates."""
        candidate = load_candidate(folder, self._catalog)
        part = find_part(self._settings.gpu)
        isolation = Isolation(self._trust)
        dtype, sizes = candidate.compile_sizes
        try:
            check_workloads(self._problem, dtype, sizes)  # what the problem lacks is named here
        except ProfilerError as error:
            return Screening(failed=str(error).splitlines()[0])
        every = {w.label: w for w in acceptance_workloads(self._problem, [dtype], sizes)}
        # Who takes some alone would have a seat that nobody could take: there is no verdict on the others.
        for label in self._settings.workloads:
            if label not in every or not candidate.accepts(every[label]):
                return Screening(failed=f"it does not take {label}, on which all are judged")
        workload = every[self._settings.workloads[0]]
        case = make_inputs(self._problem, workload, self._settings.seed % 2**31)
        with scratch_folder() as scratch:
            arch = part.architecture.default_target or part.arch
            try:
                kernels = _kernels(candidate.manifest, self._problem, every.values())
                code = compile_candidate(candidate, self._catalog, kernels, arch, scratch, isolation)
            except NoAnswer as error:
                return Screening(failed=str(error).splitlines()[0])
            except CannotJudge:
                raise
            except ProfilerError as error:
                return Screening(failed=str(error).splitlines()[0])
            facts: dict[str, Any] = {
                "registers": max(kernel.usage.registers for kernel in code.kernels.values()),
                "spill_bytes": sum(kernel.usage.spill_bytes for kernel in code.kernels.values()),
            }
            try:
                plan = plan_call(candidate, self._problem, code, workload, case)
            except ProfilerError as error:
                return Screening(code.code_id, None, facts, str(error).splitlines()[0])
            try:
                answer = predict_call(code, plan, part.name, isolation, _PREDICTION)
            except NoAnswer as error:
                answer = {"error": str(error).splitlines()[0]}
        floor = floor_ns(self._problem, workload, part)
        if "error" in answer:
            reason = str(answer["error"])
            time = WorkloadTime(workload.label, Evidence.MODELLED, None, floor_ns=floor, reason=reason)
            return Screening(code.code_id, time, facts)
        launches = answer["launches"]
        longest = max(launches, key=lambda launch: launch["time_ns"])
        time = WorkloadTime(
            workload.label,
            Evidence.MODELLED,
            sum(launch["time_ns"] for launch in launches),
            sum(launch["low_ns"] for launch in launches),
            sum(launch["high_ns"] for launch in launches),
            floor,
            str(longest["limiter"]),
        )
        inputs = longest["inputs"]
        facts |= {
            name: sum(row[name] for row in launches) for name in ("bank_conflicts", "shared_wavefronts")
        }
        facts |= {
            name: inputs[name]
            for name in ("blocks", "threads", "registers", "shared_bytes", "resident_blocks")
        }
        facts["sms"] = part.sms
        facts["arch"] = part.arch
        facts["limiter"] = longest["limiter"]
        for name in ("utilisation", "stalls"):
            facts[name] = {key: round(v, 4) for key, v in longest[name].items() if v >= _LEAST_SHARE}
        return Screening(code.code_id, time, facts)

    def judge(self, folder: Path, rival: Path | None, progress: Progress) -> CandidateJudgement:
        """All stages on the agreed workloads. Raises CannotJudge where nothing isolates.

        Where the GPU is here it is timed in the same rounds as the rival; modelled times are compared without
        that one, which was modelled once.
        """
        is_measured = not why_no_gpu(find_part(self._settings.gpu))
        return judge_candidate(
            folder,
            rival if is_measured else None,
            catalog=self._path,
            gpu=self._settings.gpu,
            workloads=self._settings.workloads,
            trust=self._trust,
            progress=lambda stage, what: progress(f"{stage}: {what.partition(':')[0]}"),
        )


def _kernels(manifest: Any, problem: Any, workloads: Any) -> list[str]:
    """The kernels that are launched on any workload, each once."""
    names: dict[str, None] = {}
    for workload in workloads:
        if manifest is not None and manifest.accepts(workload.sizes()):
            sizes = workload.sizes()
            passed = dict.fromkeys(getattr(problem, "arguments", ()), 1.0)
            names |= {launch.kernel: None for launch in manifest.plan(sizes, {**passed})}
    return list(names)


def modelled_verdict(
    times: Mapping[str, Mapping[str, Any]],
    other: SearchRecord,
    workloads: Sequence[str],
    same_code: bool = False,
) -> PairVerdict:
    """How modelled times stand to another candidate's on workloads; under the model's error it is unclear.

    Two times of which one was measured in other rounds, or not at all, are not compared.
    """
    words: dict[str, Verdict] = {}
    product, count = 1.0, 0
    for workload in workloads:
        mine, theirs = times.get(workload, {}).get("likely_ns"), other.time_ns(workload)
        rows = (times.get(workload, {}), other.times.get(workload, {}))
        is_modelled = all(row.get("evidence", MODELLED) == MODELLED for row in rows)
        if same_code:
            words[workload] = Verdict.SAME
        elif mine is None or theirs is None or not is_modelled:
            words[workload] = Verdict.MISSING
            continue
        else:
            word = predicted_ratio(mine, theirs, other.name, load_errors()).word
            known = {FASTER: Verdict.BETTER, SLOWER: Verdict.WORSE}
            words[workload] = known.get(word, Verdict.UNCLEAR)
        if mine is not None and theirs is not None:
            product, count = product * mine / theirs, count + 1
    ratio = product ** (1 / count) if count and count == len(words) else None
    by_workload = {workload: str(word) for workload, word in words.items()}
    return PairVerdict(over_workloads(words.values()), Evidence.MODELLED, ratio, by_workload)


def measured_verdict(
    judgement: CandidateJudgement, other: SearchRecord, workloads: Sequence[str]
) -> PairVerdict | None:
    """How a candidate stands to the elite that it was measured beside; None where it was not."""
    is_other = len(judgement.elite) >= _LEAST_DIGITS and other.content_id.startswith(judgement.elite)
    if not is_other or not any(item.evidence is Evidence.MEASURED for item in judgement.against):
        return None
    rows = {item.workload: item for item in judgement.against}
    words = {name: rows[name].verdict if name in rows else Verdict.MISSING for name in workloads}
    ratios = [item.ratio for name, item in rows.items() if name in words and item.ratio]
    ratio = math.exp(sum(map(math.log, ratios)) / len(ratios)) if len(ratios) == len(words) else None
    by_workload = {workload: str(word) for workload, word in words.items()}
    return PairVerdict(over_workloads(words.values()), Evidence.MEASURED, ratio, by_workload)
