"""How the answer of a gate reads in a pull request: a row a version, each thing said once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import quote, urlencode

from profiler.cli.comparison import cell, code
from profiler.cli.gate_report import TITLES, GateReport, finding_lines
from profiler.gate import Finding, Outcome

SHOWN = 30  # rows of a table, and things said in one; a pull request is no log
SAID = 4
_RUN = re.compile(r"\d{8}T\d{6}-")  # how a run id begins
_WEIGHTY = (Outcome.FAILED, Outcome.UNJUDGED, Outcome.ACKNOWLEDGED)


def markdown(told: GateReport) -> str:
    """The answer for a pull request."""
    lines = [f"### {told.headline}", ""]
    found = [one for one in told.verdicts.findings if one.baseline]
    held = list(dict.fromkeys(one.baseline for one in found if one.baseline != one.subject))
    only = held[0] if len(held) == 1 else ""
    if only:
        lines += [f"Baseline: {_run(only, told) if _RUN.match(only) else code(only)}", ""]
    elif told.baseline:
        lines += [f"Baseline: {code(told.baseline)}", ""]
    for outcome in _WEIGHTY:
        if found := told.verdicts.of(outcome):
            lines += [f"**{TITLES[outcome].capitalize()}**", "", *_table(found, told, only), ""]
    if noted := told.verdicts.of(Outcome.NOTED):
        lines += [f"<details><summary>{len(noted)} noted, without weight</summary>", ""]
        lines += [*_table(noted, told, only), "", "</details>", ""]
    return "\n".join(lines)


def _table(found: Sequence[Finding], told: GateReport, only: str) -> list[str]:
    """A row for each subject and baseline; `only` is the baseline that the page names already."""
    subjects: dict[tuple[str, str], list[Finding]] = {}
    for one in found:
        subjects.setdefault((one.subject, one.baseline), []).append(one)
    rows = ["| what | finding |", "| --- | --- |"]
    for (subject, baseline), several in islice(subjects.items(), SHOWN):
        name = _linked(several, told)
        if baseline not in ("", only, subject):
            name += f"<br>against {code(baseline)}"
        rows.append(f"| {name} | {'<br>'.join(_said(several))} |")
    left = len(subjects) - SHOWN
    return [*rows, f"| and {left} more | `profiler gate` prints them all |"] if left > 0 else rows


def _said(several: Sequence[Finding]) -> Iterator[str]:
    """What is found of one subject: of what holds in many places the place where most moved."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for one in several:
        about = one.concept or one.line.partition(":")[0]
        alike.setdefault((one.check, one.evidence, about, one.acknowledged), []).append(one)
    for same in islice(alike.values(), SAID):
        worst = max(same, key=lambda one: float("inf") if one.effect is None else abs(one.effect))
        place = " · ".join(filter(None, (worst.kernel, worst.workload, worst.gpu)))
        more = f", and {len(same) - 1} more place{'s' * (len(same) > 2)}" if len(same) > 1 else ""
        first, *rest = finding_lines(worst)
        kind = f" [{worst.evidence}]" if worst.evidence else ""
        yield "<br>".join((f"{cell(first)} <sub>{cell(place)}{kind}{more}</sub>", *map(cell, rest)))
    if len(alike) > SAID:
        yield f"and {len(alike) - SAID} more"


def _linked(several: Sequence[Finding], told: GateReport) -> str:
    """The subject as code, with a link to the first place that a dashboard shows beside its baseline."""
    name = code(several[0].subject)
    one = next((one for one in several if one.shown), None)
    if not told.link or one is None or one.shown is None:
        return name
    about = {"workload": one.workload, "gpu": one.gpu, "evidence": one.evidence}
    one_cell = all("," not in content for content in about.values())  # else of several
    query = {"a": one.shown[0], "b": one.shown[1], **(about if one_cell else {})}
    words = urlencode({name: content for name, content in query.items() if content}, quote_via=quote, safe="")
    return f"[{name}]({told.link}/diff?{words})"


def _run(run_id: str, told: GateReport) -> str:
    """A run, which holds several versions: a dashboard has a page of it."""
    name = code(run_id)
    return f"[{name}]({told.link}/runs?run={quote(run_id, safe='')})" if told.link else name
