"""How the answer of a gate reads in a pull request: a row a version, each thing said once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import quote, urlencode

from profiler.cli.comparison import cell, code
from profiler.cli.gate_lines import finding_lines
from profiler.gate import Finding, GateReport, Outcome
from profiler.gate.finding import TITLES

ROWS_SHOWN = 30  # of a table: a pull request is no log
LINES_SHOWN = 4  # of one version
_RUN_ID = re.compile(r"\d{8}T\d{6}-")  # how a run id begins
_WITH_WEIGHT = (Outcome.FAILED, Outcome.UNJUDGED, Outcome.ACKNOWLEDGED)


def markdown(report: GateReport, link: str = "") -> str:
    """The answer for a pull request; `link` is the address of a dashboard, without the slash at its end."""
    lines = [f"### {report.headline}", ""]
    only = _only_baseline(report.verdicts.findings)
    if only:
        lines += [f"Baseline: {_run_link(only, link) if _RUN_ID.match(only) else code(only)}", ""]
    elif report.baseline:
        lines += [f"Baseline: {code(report.baseline)}", ""]
    for outcome in _WITH_WEIGHT:
        if findings := report.verdicts.of(outcome):
            lines += [f"**{TITLES[outcome].capitalize()}**", "", *_table(findings, link, only), ""]
    if noted := report.verdicts.of(Outcome.NOTED):
        lines += [f"<details><summary>{len(noted)} noted, without weight</summary>", ""]
        lines += [*_table(noted, link, only), "", "</details>", ""]
    return "\n".join(lines)


def _only_baseline(findings: Sequence[Finding]) -> str:
    """The one baseline of all findings, which the heading names then; "" where there are several or none."""
    baselines = {
        finding.baseline for finding in findings if finding.baseline and finding.baseline != finding.subject
    }
    return baselines.pop() if len(baselines) == 1 else ""


def _table(findings: Sequence[Finding], link: str, only: str) -> list[str]:
    """A row for each subject and baseline; `only` is the baseline that the heading names already."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.subject, finding.baseline), []).append(finding)
    rows = ["| what | finding |", "| --- | --- |"]
    for (subject, baseline), group in islice(groups.items(), ROWS_SHOWN):
        name = _subject_link(group, link)
        if baseline not in ("", only, subject):
            name += f"<br>against {code(baseline)}"
        rows.append(f"| {name} | {'<br>'.join(_lines(group))} |")
    left = len(groups) - ROWS_SHOWN
    return [*rows, f"| and {left} more | `profiler gate` prints them all |"] if left > 0 else rows


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    """What is found of one subject: of what holds in many places the place where most moved."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        about = finding.concept or finding.line.partition(":")[0]
        key = (finding.check, finding.evidence, about, finding.acknowledged)
        alike.setdefault(key, []).append(finding)
    for group in islice(alike.values(), LINES_SHOWN):
        worst = max(
            group, key=lambda finding: float("inf") if finding.effect is None else abs(finding.effect)
        )
        place = " · ".join(filter(None, (worst.kernel, worst.workload, worst.gpu)))
        more = f", and {len(group) - 1} more place{'s' * (len(group) > 2)}" if len(group) > 1 else ""
        first, *rest = finding_lines(worst)
        kind = f" [{worst.evidence}]" if worst.evidence else ""
        yield "<br>".join((f"{cell(first)} <sub>{cell(place)}{kind}{more}</sub>", *map(cell, rest)))
    if len(alike) > LINES_SHOWN:
        yield f"and {len(alike) - LINES_SHOWN} more"


def _subject_link(findings: Sequence[Finding], link: str) -> str:
    """The subject as code, with a link to the first place that a dashboard shows beside its baseline."""
    name = code(findings[0].subject)
    finding = next((finding for finding in findings if finding.diff_names), None)
    if not link or finding is None or finding.diff_names is None:
        return name
    a, b = finding.diff_names
    place = {"workload": finding.workload, "gpu": finding.gpu, "evidence": finding.evidence}
    one_cell = all("," not in text for text in place.values())  # else it stands for several
    query = {"a": a, "b": b, **(place if one_cell else {})}
    words = urlencode({key: text for key, text in query.items() if text}, quote_via=quote, safe="")
    return f"[{name}]({link}/diff?{words})"


def _run_link(run_id: str, link: str) -> str:
    """A run, which holds several versions: a dashboard has a page of it."""
    name = code(run_id)
    return f"[{name}]({link}/runs?run={quote(run_id, safe='')})" if link else name
