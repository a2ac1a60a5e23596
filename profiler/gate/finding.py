"""What a finding of a gate is: about what and where, what it does to the gate, and the exit code of all."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from profiler.errors import Exit
from profiler.statistics import Interval, Verdict


class Check(StrEnum):
    """What a finding is about."""

    CORRECTNESS = "correctness"
    BUDGET = "budget"
    FACTS = "facts"  # what the compiler and the run on the CPU say
    REGRESSION = "regression"
    MISSING = "missing data"
    COMPARABILITY = "comparability"


class Outcome(StrEnum):
    """What a finding does to the gate."""

    PASSED = "passed"
    FAILED = "failed"
    UNJUDGED = "unjudged"
    ACKNOWLEDGED = "acknowledged"  # failed, and somebody said why that is let pass
    NOTED = "noted"  # told, and without weight


@dataclass(frozen=True)
class Finding:
    """One check of one side against its baseline."""

    check: Check
    outcome: Outcome
    verdict: Verdict
    subject: str  # what was judged: family/version, or a report's path
    baseline: str  # against what; "" where there is none
    line: str  # one sentence, which names the metric and both values
    workload: str = ""
    gpu: str = ""
    evidence: str = ""
    kernel: str = ""
    concept: str = ""  # of metrics.txt; "" where it is about none
    effect: float | None = None  # share of the baseline: 0.03 is 3 % more
    interval: Interval | None = None
    detectable: float | None = None  # the smallest change that would have been found
    cause: str = ""  # why, from the time identity
    next_command: str = ""
    acknowledged: str = ""  # who let it pass, why and until when
    shown: tuple[str, str] | None = None  # baseline and subject, by the names a dashboard takes

    @property
    def place(self) -> str:
        """Where it holds: subject, kernel, workload, GPU."""
        return " · ".join(filter(None, (self.subject, self.kernel, self.workload, self.gpu)))


@dataclass(frozen=True)
class Verdicts:
    """All findings of one gate, and what was compared at all."""

    findings: tuple[Finding, ...]
    compared: int  # sides that had a baseline and were held against it

    def of(self, *outcomes: Outcome) -> list[Finding]:
        """The findings with one of the outcomes, in order."""
        return [one for one in self.findings if one.outcome in outcomes]

    def exit_code(self, allow: Collection[str] = ()) -> Exit:
        """1 for anything failed; else 3 for anything unjudged or where nothing was compared; else 0.

        `allow` holds the verdicts that are let pass though nobody could judge; only unclear can be.
        """
        if self.of(Outcome.FAILED):
            return Exit.REGRESSION
        if not self.compared or any(one.verdict not in allow for one in self.of(Outcome.UNJUDGED)):
            return Exit.UNJUDGED
        return Exit.PASS
