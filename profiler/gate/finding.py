"""What a gate finds: about what and where, what it does to the gate, and the exit code of all findings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from profiler.errors import Exit
from profiler.statistics import Interval, Verdict, share_text


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
    NOTED = "noted"  # reported, and without weight


# What the findings of an outcome are called, in the order of a report; those that passed are only counted.
TITLES = {
    Outcome.FAILED: "failed",
    Outcome.UNJUDGED: "could not be judged",
    Outcome.ACKNOWLEDGED: "acknowledged",
    Outcome.NOTED: "noted, without weight",
}


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
    detectable: float | None = None  # the smallest change that would have been found, as a share
    cause: str = ""  # why, from the time identity
    next_command: str = ""
    acknowledged: str = ""  # who let it pass, why and until when
    diff_names: tuple[str, str] | None = None  # baseline and subject, by the names a dashboard takes

    @property
    def place(self) -> str:
        """Where it holds: subject, kernel, workload, GPU."""
        return " · ".join(filter(None, (self.subject, self.kernel, self.workload, self.gpu)))

    @property
    def heading(self) -> str:
        """Where it holds, and against what."""
        kind = f" [{self.evidence}]" if self.evidence else ""
        has_other_side = self.baseline and self.baseline != self.subject
        return f"{self.place}{kind}{f', against {self.baseline}' if has_other_side else ''}"

    @property
    def lines(self) -> list[str]:
        """What was found, then how sure it is, why it came about and what to do, a line each."""
        lines = [f"{self.check}: {self.line}"]
        if self.interval:
            smallest = ""
            if self.detectable:
                smallest = f"; a change of {share_text(self.detectable)} would have been found"
            lines.append(f"interval {self.interval}{smallest}")
        if self.cause:
            lines.append(f"why: {self.cause}")
        if self.acknowledged:
            lines.append(f"acknowledged: {self.acknowledged}")
        if self.next_command:
            lines.append(f"next: {self.next_command}")
        return lines


@dataclass(frozen=True)
class Verdicts:
    """All findings of one gate, and how much was compared at all."""

    findings: tuple[Finding, ...]
    compared: int  # sides that had a baseline and were compared with it

    def of(self, *outcomes: Outcome) -> list[Finding]:
        """The findings with one of the outcomes, in order."""
        return [finding for finding in self.findings if finding.outcome in outcomes]

    def exit_code(self, allow: Collection[str] = ()) -> Exit:
        """1 for anything failed; else 3 for anything unjudged or where nothing was compared; else 0.

        `allow` holds the verdicts that are let pass though nobody could judge; only unclear can be.
        """
        if self.of(Outcome.FAILED):
            return Exit.REGRESSION
        unjudged = self.of(Outcome.UNJUDGED)
        if not self.compared or any(finding.verdict not in allow for finding in unjudged):
            return Exit.UNJUDGED
        return Exit.PASS
