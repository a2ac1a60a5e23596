"""How the answer of a gate reads: for people, for a pull request, for a program, for a CI server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

from profiler.cli.gate_markdown import markdown
from profiler.cli.gate_report import TITLES, GateReport, finding_lines, heading
from profiler.errors import Exit, ProfilerError
from profiler.gate import Finding, Outcome

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


def write(path: Path, text: str) -> None:
    """Write one output; ProfilerError where that cannot be done."""
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")  # a file name may be any bytes
    except OSError as error:
        raise ProfilerError(f"--out {path}: {error.strerror}") from None


def render(told: GateReport, form: str) -> str:
    """The answer in one of the forms, with its last newline."""
    forms = {"text": text, "json": document, "markdown": markdown, "junit": junit}
    return forms[form](told)


def text(told: GateReport) -> str:
    """The answer for a terminal or a log: what failed first, what passed counted."""
    return "\n".join((told.headline, *_sections(told, TITLES, None))) + "\n"


def weighty(told: GateReport, limit: int) -> str:
    """The answer below what was compared: what has weight, so many findings of a kind."""
    kinds = (Outcome.FAILED, Outcome.UNJUDGED, Outcome.ACKNOWLEDGED)
    return "\n".join((told.headline, *_sections(told, kinds, limit))) + "\n"


def _sections(told: GateReport, outcomes: Iterable[Outcome], limit: int | None) -> Iterator[str]:
    for outcome in outcomes:
        found = told.verdicts.of(outcome)
        if found:
            yield from ("", f"{TITLES[outcome]}:")
        for place, several in groupby(found[:limit], heading):
            yield f"  {_MARKS[outcome]} {place}"
            for one in several:
                first, *more = finding_lines(one)
                yield from (f"      {first}", *(f"        {line}" for line in more))
        if limit is not None and len(found) > limit:
            yield f"  and {len(found) - limit} more: --json"


def document(told: GateReport) -> str:
    """The answer as strict JSON."""
    return json.dumps(answer(told), allow_nan=False, ensure_ascii=True, indent=1) + "\n"


def answer(told: GateReport) -> dict[str, object]:
    """The answer for JSON: every finding with all it holds, numbers as shares."""
    findings = [
        {
            "check": one.check,
            "outcome": one.outcome,
            "verdict": one.verdict,
            "subject": one.subject,
            "baseline": one.baseline or None,
            "kernel": one.kernel or None,
            "workload": one.workload or None,
            "gpu": one.gpu or None,
            "evidence": one.evidence or None,
            "concept": one.concept or None,
            "line": one.line,
            "effect": one.effect,
            "interval": None if one.interval is None else [one.interval.low, one.interval.high],
            "detectable": one.detectable,
            "cause": one.cause or None,
            "acknowledged": one.acknowledged or None,
            "next": one.next_command or None,
        }
        for one in told.verdicts.findings
    ]
    return {
        "verdict": {Exit.PASS: "passed", Exit.REGRESSION: "failed"}.get(told.code, "unjudged"),
        "exit_code": int(told.code),
        "headline": told.headline,
        "compared": told.verdicts.compared,
        "findings": findings,
    }


def junit(told: GateReport) -> str:
    """The answer as JUnit XML: a suite a subject, a case a finding; what nobody could judge is an error.

    Source: the format that CI servers read, testsuites > testsuite > testcase > failure, error or skipped.
    """
    root = ElementTree.Element("testsuites", name="profiler gate")
    suites: dict[str, list[Finding]] = {}
    for one in told.verdicts.findings:
        suites.setdefault(one.subject, []).append(one)
    if not told.verdicts.compared:
        words = "nothing was compared"
        suite = _suite(root, "gate", 1, 0, 1, 0)
        case = ElementTree.SubElement(suite, "testcase", classname="gate", name=words)
        ElementTree.SubElement(case, "error", message=words, type="missing")
    for subject, found in suites.items():
        outcomes = [one.outcome for one in found]
        skipped = outcomes.count(Outcome.ACKNOWLEDGED) + outcomes.count(Outcome.NOTED)
        failed, errors = outcomes.count(Outcome.FAILED), outcomes.count(Outcome.UNJUDGED)
        suite = _suite(root, subject, len(found), failed, errors, skipped)
        for one in found:
            _case(suite, one)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _suite(
    root: ElementTree.Element, name: str, tests: int, failed: int, errors: int, skipped: int
) -> ElementTree.Element:
    counts = {"tests": tests, "failures": failed, "errors": errors, "skipped": skipped}
    attributes = {"name": _plain(name), **{key: str(count) for key, count in counts.items()}}
    return ElementTree.SubElement(root, "testsuite", attributes)


def _case(suite: ElementTree.Element, one: Finding) -> None:
    where = [one.check, one.concept, one.kernel, one.workload, one.gpu, one.evidence]
    case = ElementTree.SubElement(
        suite, "testcase", classname=_plain(one.subject), name=_plain(" · ".join(filter(None, where)))
    )
    body = "\n".join((heading(one), *finding_lines(one)))
    kinds = {Outcome.FAILED: "failure", Outcome.UNJUDGED: "error"}
    if one.outcome in kinds:
        entry = ElementTree.SubElement(
            case, kinds[one.outcome], message=_plain(one.line), type=str(one.verdict)
        )
        entry.text = _plain(body)
    elif one.outcome in (Outcome.ACKNOWLEDGED, Outcome.NOTED):
        words = f"acknowledged: {one.acknowledged}" if one.acknowledged else one.line
        ElementTree.SubElement(case, "skipped", message=_plain(words))


def _plain(text: str) -> str:
    """A text without the characters that XML 1.0 has no place for. Source: its production 2, Char."""
    return _NO_XML.sub("\ufffd", text)
