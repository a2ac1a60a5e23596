"""What a gate's answer says on every kind of output: its headline, its titles, and the lines of a finding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from profiler.errors import Exit
from profiler.gate import Finding, Outcome, Verdicts
from profiler.statistics import share_text

WORDS = {
    Exit.PASS: "Gate passed",
    Exit.REGRESSION: "Gate failed",
    Exit.UNJUDGED: "Gate could not judge",
}
TITLES = {
    Outcome.FAILED: "failed",
    Outcome.UNJUDGED: "could not be judged",
    Outcome.ACKNOWLEDGED: "acknowledged",
    Outcome.NOTED: "noted, without weight",
}


@dataclass(frozen=True)
class GateReport:
    """A gate's answer with what its outputs need besides."""

    verdicts: Verdicts
    code: Exit
    baseline: str  # as it was asked for; "" for the pinned or last one
    link: str = ""  # of a dashboard, without the slash at its end

    @property
    def headline(self) -> str:
        """The answer in one line."""
        counts = [
            f"{len(found)} {words}"
            for outcome, words in TITLES.items()
            if (found := self.verdicts.of(outcome))
        ]
        passed = len(self.verdicts.of(Outcome.PASSED))
        compared = "nothing was compared" if not self.verdicts.compared else f"{passed} passed"
        return f"{WORDS[self.code]}: {', '.join((*counts, compared))}"


def heading(one: Finding) -> str:
    """Where a finding holds, and against what."""
    against = f", against {one.baseline}" if one.baseline and one.baseline != one.subject else ""
    return f"{one.place}{f' [{one.evidence}]' if one.evidence else ''}{against}"


def finding_lines(one: Finding) -> Iterator[str]:
    """The finding, then how sure it is, why it came about and what to do, a line each."""
    yield f"{one.check}: {one.line}"
    if one.interval:
        least = f"; a change of {share_text(one.detectable)} would have been found" if one.detectable else ""
        yield f"interval {one.interval}{least}"
    if one.cause:
        yield f"why: {one.cause}"
    if one.acknowledged:
        yield f"acknowledged: {one.acknowledged}"
    if one.next_command:
        yield f"next: {one.next_command}"
