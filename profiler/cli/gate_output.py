"""How the answer of a gate reads: for people, for a pull request, for a program, for a CI server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

from profiler.cli.gate_lines import finding_lines, heading
from profiler.cli.gate_markdown import markdown
from profiler.errors import Exit, ProfilerError
from profiler.gate import Finding, GateReport, Outcome
from profiler.gate.finding import TITLES

SUFFIXES = {".txt": "text", ".json": "json", ".md": "markdown", ".xml": "junit"}
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = {
    Outcome.FAILED: "!",
    Outcome.UNJUDGED: "?",
    Outcome.ACKNOWLEDGED: "·",
    Outcome.NOTED: "Δ",
    Outcome.PASSED: "✓",
}


def destination(path: Path) -> tuple[Path, str]:
    """A file to write and its form, by its suffix; ProfilerError for one that says nothing."""
    form = SUFFIXES.get(path.suffix)
    if form is None:
        raise ProfilerError(f"--out {path}: the suffix says the form: one of {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise ProfilerError(f"--out {path}: there is no folder {path.parent}")
    return path, form


def write_and_print(report: GateReport, files: Iterable[tuple[Path, str]], form: str, link: str) -> None:
    """Write the answer to files, each in its form, and print it; ProfilerError where that cannot be done."""
    for path, file_form in files:
        content = render(report, file_form, link)
        try:  # a file name in the answer may be any bytes
            path.write_text(content, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise ProfilerError(f"--out {path}: {error.strerror}") from None
    print(render(report, form, link), end="")


def render(report: GateReport, form: str, link: str = "") -> str:
    """The answer as text, json, markdown or junit, with its last newline; `link` is for the Markdown."""
    if form == "markdown":
        return markdown(report, link)
    return {"text": text, "json": json_text, "junit": junit}[form](report)


def text(report: GateReport) -> str:
    """The answer for a terminal or a log: what failed first, what passed counted."""
    return "\n".join((report.headline, *_sections(report, TITLES, None))) + "\n"


def brief_text(report: GateReport, limit: int) -> str:
    """The answer below what was compared: what has weight, at most `limit` findings of an outcome."""
    outcomes = (Outcome.FAILED, Outcome.UNJUDGED, Outcome.ACKNOWLEDGED)
    return "\n".join((report.headline, *_sections(report, outcomes, limit))) + "\n"


def _sections(report: GateReport, outcomes: Iterable[Outcome], limit: int | None) -> Iterator[str]:
    """The findings of each outcome, those of one place below its heading."""
    for outcome in outcomes:
        findings = report.verdicts.of(outcome)
        if findings:
            yield from ("", f"{TITLES[outcome]}:")
        for place, group in groupby(findings[:limit], heading):
            yield f"  {_MARKS[outcome]} {place}"
            for finding in group:
                first, *more = finding_lines(finding)
                yield from (f"      {first}", *(f"        {line}" for line in more))
        if limit is not None and len(findings) > limit:
            yield f"  and {len(findings) - limit} more: --json"


def json_text(report: GateReport) -> str:
    """The answer as strict JSON."""
    return json.dumps(document(report), allow_nan=False, ensure_ascii=True, indent=1) + "\n"


def document(report: GateReport) -> dict[str, object]:
    """The answer for JSON: every finding with all it holds, numbers as shares."""
    findings = [
        {
            "check": finding.check,
            "outcome": finding.outcome,
            "verdict": finding.verdict,
            "subject": finding.subject,
            "baseline": finding.baseline or None,
            "kernel": finding.kernel or None,
            "workload": finding.workload or None,
            "gpu": finding.gpu or None,
            "evidence": finding.evidence or None,
            "concept": finding.concept or None,
            "line": finding.line,
            "effect": finding.effect,
            "interval": None if finding.interval is None else [finding.interval.low, finding.interval.high],
            "detectable": finding.detectable,
            "cause": finding.cause or None,
            "acknowledged": finding.acknowledged or None,
            "next": finding.next_command or None,
        }
        for finding in report.verdicts.findings
    ]
    return {
        "verdict": {Exit.PASS: "passed", Exit.REGRESSION: "failed"}.get(report.code, "unjudged"),
        "exit_code": int(report.code),
        "headline": report.headline,
        "compared": report.verdicts.compared,
        "findings": findings,
    }


def junit(report: GateReport) -> str:
    """The answer as JUnit XML: a suite a subject, a case a finding; what nobody could judge is an error.

    Source: the format that CI servers read, testsuites > testsuite > testcase > failure, error or skipped.
    """
    root = ElementTree.Element("testsuites", name="profiler gate")
    by_subject: dict[str, list[Finding]] = {}
    for finding in report.verdicts.findings:
        by_subject.setdefault(finding.subject, []).append(finding)
    if not report.verdicts.compared:  # without a case of its own, a server would show it as passed
        words = "nothing was compared"
        suite = _suite(root, "gate", 1, 0, 1, 0)
        case = ElementTree.SubElement(suite, "testcase", classname="gate", name=words)
        ElementTree.SubElement(case, "error", message=words, type="missing")
    for subject, findings in by_subject.items():
        outcomes = [finding.outcome for finding in findings]
        skipped = outcomes.count(Outcome.ACKNOWLEDGED) + outcomes.count(Outcome.NOTED)
        failed, errors = outcomes.count(Outcome.FAILED), outcomes.count(Outcome.UNJUDGED)
        suite = _suite(root, subject, len(findings), failed, errors, skipped)
        for finding in findings:
            _case(suite, finding)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _suite(
    root: ElementTree.Element, name: str, tests: int, failed: int, errors: int, skipped: int
) -> ElementTree.Element:
    counts = {"tests": tests, "failures": failed, "errors": errors, "skipped": skipped}
    attributes = {"name": _xml_text(name), **{key: str(count) for key, count in counts.items()}}
    return ElementTree.SubElement(root, "testsuite", attributes)


def _case(suite: ElementTree.Element, finding: Finding) -> None:
    where = [
        finding.check,
        finding.concept,
        finding.kernel,
        finding.workload,
        finding.gpu,
        finding.evidence,
    ]
    name = _xml_text(" · ".join(filter(None, where)))
    case = ElementTree.SubElement(suite, "testcase", classname=_xml_text(finding.subject), name=name)
    tags = {Outcome.FAILED: "failure", Outcome.UNJUDGED: "error"}
    if finding.outcome in tags:
        message, kind = _xml_text(finding.line), str(finding.verdict)
        entry = ElementTree.SubElement(case, tags[finding.outcome], message=message, type=kind)
        entry.text = _xml_text("\n".join((heading(finding), *finding_lines(finding))))
    elif finding.outcome in (Outcome.ACKNOWLEDGED, Outcome.NOTED):
        words = f"acknowledged: {finding.acknowledged}" if finding.acknowledged else finding.line
        ElementTree.SubElement(case, "skipped", message=_xml_text(words))


def _xml_text(text: str) -> str:
    """A text without the characters that XML 1.0 has no place for. Source: its production 2, Char."""
    return _NO_XML.sub("\ufffd", text)
