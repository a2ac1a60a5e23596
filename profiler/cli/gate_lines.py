"""The lines of a finding on every kind of output."""

from __future__ import annotations

from collections.abc import Iterator

from profiler.gate import Finding
from profiler.statistics import share_text


def heading(finding: Finding) -> str:
    """Where a finding holds, and against what."""
    baseline = finding.baseline
    against = f", against {baseline}" if baseline and baseline != finding.subject else ""
    return f"{finding.place}{f' [{finding.evidence}]' if finding.evidence else ''}{against}"


def finding_lines(finding: Finding) -> Iterator[str]:
    """The finding, then how sure it is, why it came about and what to do, a line each."""
    yield f"{finding.check}: {finding.line}"
    if finding.interval:
        least = ""
        if finding.detectable:
            least = f"; a change of {share_text(finding.detectable)} would have been found"
        yield f"interval {finding.interval}{least}"
    if finding.cause:
        yield f"why: {finding.cause}"
    if finding.acknowledged:
        yield f"acknowledged: {finding.acknowledged}"
    if finding.next_command:
        yield f"next: {finding.next_command}"
