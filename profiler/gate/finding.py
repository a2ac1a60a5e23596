"""A gate's findings: what each is about, what it does to the gate, and the exit code of all together."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from profiler.compare.clock_drift import HEADLINE
from profiler.errors import Exit
from profiler.evidence.values import Evidence
from profiler.statistics.decision import Interval, share_text
from profiler.statistics.verdict import Verdict

LATENCY = "latency"  # the concept of timed calls
ALL_KERNELS = "total"  # the part of modelled facts: all kernels of a workload


class Check(StrEnum):
    """What a finding is about."""

    CORRECTNESS = "correctness"
    BUDGET = "budget"
    FACTS = "facts"  # of the compiler and of the run on the CPU
    REGRESSION = "regression"
    MISSING = "missing data"
    COMPARABILITY = "comparability"


class Outcome(StrEnum):
    """What a finding does to the gate."""

    PASSED = "passed"
    FAILED = "failed"
    UNJUDGED = "unjudged"
    ACKNOWLEDGED = "acknowledged"  # failed, but somebody lets it pass
    NOTED = "noted"  # reported without weight


# Titles of the findings of each outcome, in the order of a report; passed ones are only counted.
TITLES = {
    Outcome.FAILED: "failed",
    Outcome.UNJUDGED: "undecided",
    Outcome.ACKNOWLEDGED: "acknowledged",
    Outcome.NOTED: "informational: reported, decides nothing",
}


@dataclass(frozen=True)
class Finding:
    """One check of one side against its baseline."""

    check: Check
    outcome: Outcome
    verdict: Verdict
    subject: str  # what was judged: family/version, or a report's path
    baseline: str  # what it was judged against; "" where there is none
    line: str  # one sentence with the metric and both values
    workload: str = ""
    gpu: str = ""
    evidence: str = ""
    kernel: str = ""
    concept: str = ""  # of metrics.txt, or latency; "" where it is about none
    effect: float | None = None  # share of the baseline: 0.03 is 3 % more
    interval: Interval | None = None
    interval_name: str = "interval"  # what it is, where that is known: "95 % interval"
    detectable: float | None = None  # the smallest change that would have been detected, as a share
    cause: str = ""  # why the time changed, from the time identity
    next_command: str = ""
    acknowledged: str = ""  # who let it pass, why and until when
    diff_names: tuple[str, str] | None = None  # baseline and subject, by names for the dashboard
    is_without_baseline: bool = False  # the subject has no baseline anywhere
    is_expected: bool = False  # a rejected version, of which its line says all
    location: tuple[str, int | None] | None = None  # of machine code a file and a line: where its lock has it

    @property
    def is_time(self) -> bool:
        """Whether it is about how long calls or launches take, which decides."""
        return self.concept in (LATENCY, HEADLINE)

    @property
    def launch(self) -> str:
        """The kernel and the workload in words: "kernel gemm", of modelled facts "all kernels"."""
        is_whole = self.kernel == ALL_KERNELS and self.evidence == Evidence.MODELLED
        kernel = "all kernels" if is_whole else self.kernel and f"kernel {self.kernel}"
        # Static facts are of a build, such as for one head dimension; what runs has a workload.
        is_build = self.workload and self.evidence == Evidence.STATIC
        workload = f"build: {self.workload}" if is_build else self.workload
        return " · ".join(filter(None, (kernel, workload)))

    @property
    def place(self) -> str:
        """Where it was found: subject, kernel, workload, GPU."""
        return " · ".join(filter(None, (self.subject, self.launch, self.gpu)))

    @property
    def heading(self) -> str:
        """Where it holds, and against what."""
        kind = f" [{self.evidence}]" if self.evidence else ""
        has_other_side = self.baseline and self.baseline != self.subject
        return f"{self.place}{kind}{f', against {self.baseline}' if has_other_side else ''}"

    @property
    def label(self) -> str:
        """What its line is about: only what got worse and counts is called a regression."""
        if self.check is Check.MISSING:
            return "not compared"
        if self.check is not Check.REGRESSION:
            return self.check.value
        if self.verdict is Verdict.WORSE and self.outcome is not Outcome.NOTED:
            return self.check.value
        return "time" if self.is_time else "counter"

    @property
    def lines(self) -> list[str]:
        """What was found, then how sure it is, why it came about and what to do, a line each."""
        lines = [self.line if self.is_expected else f"{self.label}: {self.line}"]
        if self.interval:
            smallest = ""
            if self.detectable:
                smallest = f"; a change of {share_text(self.detectable)} would have been found"
            lines.append(f"{self.interval_name} {self.interval}{smallest}")
        if self.cause:
            lines.append(f"why: {self.cause}")
        if self.acknowledged:
            lines.append(f"acknowledged: {self.acknowledged}")
        if self.next_command:
            lines.append(f"next: {self.next_command}")
        return lines


@dataclass(frozen=True)
class Verdicts:
    """All findings of one gate, and how many sides were compared."""

    findings: tuple[Finding, ...]
    compared: int  # how many sides were compared with a baseline

    def of(self, *outcomes: Outcome) -> list[Finding]:
        """The findings with one of these outcomes, times first, else in order."""
        found = [finding for finding in self.findings if finding.outcome in outcomes]
        return sorted(found, key=lambda finding: not finding.is_time)

    @property
    def times(self) -> list[Finding]:
        """The findings about time, the largest increase first, those of unknown size last."""
        timed = [finding for finding in self.findings if finding.is_time]
        return sorted(timed, key=lambda finding: math.inf if finding.effect is None else -finding.effect)

    @property
    def better(self) -> list[Finding]:
        """The findings that something got better, times first."""
        found = [finding for finding in self.of(Outcome.PASSED) if finding.verdict is Verdict.BETTER]
        return sorted(found, key=lambda finding: (not finding.is_time, finding.effect or 0.0))

    def exit_code(self, allow: Collection[str] = ()) -> Exit:
        """REGRESSION if a finding failed, else UNJUDGED if one could not be judged or nothing was compared.

        `allow` has the undecided verdicts that may pass all the same; only unclear can be allowed.
        """
        if self.of(Outcome.FAILED):
            return Exit.REGRESSION
        unjudged = self.of(Outcome.UNJUDGED)
        if not self.compared or any(finding.verdict not in allow for finding in unjudged):
            return Exit.UNJUDGED
        return Exit.PASS
