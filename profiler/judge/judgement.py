"""What a judgement says: stages, whether a candidate is valid, its score, how it stands to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from profiler.evidence.values import Evidence
from profiler.statistics.verdict import Verdict, over_workloads


class StageState(StrEnum):
    """How a stage ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"  # it could not be told; never a pass
    SKIPPED = "skipped"  # an earlier one failed, or it does not apply


@dataclass(frozen=True)
class StageResult:
    """One stage of a judgement."""

    name: str
    state: StageState
    seconds: float
    reason: str = ""  # why it did not pass, or what was looked at, in a line
    findings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The stage by name."""
        return {
            "name": self.name,
            "state": str(self.state),
            "seconds": round(self.seconds, 2),
            "reason": self.reason,
            "findings": list(self.findings),
        }


@dataclass(frozen=True)
class WorkloadTime:
    """How long a call takes on one workload, in nanoseconds."""

    workload: str
    evidence: Evidence
    likely_ns: float | None  # None: not known, with the reason
    low_ns: float | None = None
    high_ns: float | None = None
    floor_ns: float | None = None  # no kernel can be faster
    limiter: str = ""
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """The time by name."""
        return {
            "workload": self.workload,
            "evidence": str(self.evidence),
            "likely_ns": self.likely_ns,
            "low_ns": self.low_ns,
            "high_ns": self.high_ns,
            "floor_ns": self.floor_ns,
            "limiter": self.limiter,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Against:
    """The candidate's time over that of another one on a workload."""

    workload: str
    verdict: Verdict
    ratio: float | None  # below 1: the candidate is faster
    low: float | None
    high: float | None
    evidence: Evidence
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """The comparison by name."""
        return {
            "workload": self.workload,
            "verdict": str(self.verdict),
            "ratio": self.ratio,
            "low": self.low,
            "high": self.high,
            "evidence": str(self.evidence),
            "reason": self.reason,
        }


@dataclass(frozen=True)
class CandidateJudgement:
    """All that was found out about a candidate."""

    candidate: str  # content id: sha256 over its canonical manifest and its files
    name: str
    family: str
    gpu: str
    code_id: str | None  # sha256 over its machine code; None where nothing was compiled
    valid: bool | None  # None: unknown, with the reason
    reason: str  # why it is not valid, or not known to be
    stages: tuple[StageResult, ...]
    times: tuple[WorkloadTime, ...] = ()
    score: float | None = None  # the share of the lower bound that is reached, 0 to 1; more is better
    score_reason: str = ""  # why there is no score
    elite: str = ""  # what `against` compares with
    against: tuple[Against, ...] = ()
    baseline: str = ""  # of the catalogue, timed in the same rounds; "" where nothing was measured
    against_baseline: tuple[Against, ...] = ()
    insights: tuple[Mapping[str, Any], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    artefacts: Mapping[str, str] = field(default_factory=dict)  # paths
    seed: int = 0  # of the shapes and inputs that it had not seen
    isolated: bool = True

    @property
    def evidence(self) -> Evidence:
        """Of the times: measured where there is a measured one, else modelled."""
        measured = any(time.evidence is Evidence.MEASURED for time in self.times)
        return Evidence.MEASURED if measured else Evidence.MODELLED

    def stage(self, name: str) -> StageResult:
        """A stage by its name. Raises KeyError."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)

    @property
    def failed(self) -> StageResult | None:
        """The first stage that failed."""
        return next((stage for stage in self.stages if stage.state is StageState.FAILED), None)

    @property
    def verdict(self) -> Verdict | None:
        """Against the elite over all workloads; None without one.

        Better only where it is better on some workload and worse on none; what is not known makes it unclear.
        """
        if not self.elite:
            return None
        if self.valid is not True:
            return Verdict.MISSING
        return over_workloads(item.verdict for item in self.against)

    def as_json(self) -> dict[str, Any]:
        """The whole judgement, as `judge --json` prints it."""
        return {
            "candidate": self.candidate,
            "name": self.name,
            "family": self.family,
            "gpu": self.gpu,
            "code_id": self.code_id,
            "valid": self.valid,
            "reason": self.reason,
            "score": self.score,
            "score_reason": self.score_reason,
            "evidence": str(self.evidence),
            "stages": [stage.as_json() for stage in self.stages],
            "times": [time.as_json() for time in self.times],
            "elite": self.elite or None,
            "verdict": None if self.verdict is None else str(self.verdict),
            "against": [item.as_json() for item in self.against],
            "baseline": self.baseline or None,
            "against_baseline": [item.as_json() for item in self.against_baseline],
            "insights": [dict(item) for item in self.insights],
            "facts": dict(self.facts),
            "artefacts": dict(self.artefacts),
            "seed": self.seed,
            "isolated": self.isolated,
        }
