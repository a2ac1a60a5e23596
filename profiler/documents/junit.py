"""A gate's answer as JUnit XML, which CI servers show as tests.

Source: the format that CI servers read, testsuites > testsuite > testcase > failure, error or skipped.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from profiler.gate.finding import Finding, Outcome
from profiler.gate.report import GateReport

# Source: XML 1.0, production 2, Char.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAGS = {Outcome.FAILED: "failure", Outcome.UNJUDGED: "error"}


def junit_xml(report: GateReport) -> str:
    """A suite for each subject and a case for each finding; what nobody could judge is an error."""
    root = ElementTree.Element("testsuites", name="profiler gate")
    findings_of: dict[str, list[Finding]] = {}
    for finding in report.verdicts.findings:
        findings_of.setdefault(finding.subject, []).append(finding)
    if not report.verdicts.compared:  # without a case of its own, a server would show it as passed
        words = "nothing was compared"
        suite = _suite(root, "gate", tests=1, failures=0, errors=1, skipped=0)
        case = ElementTree.SubElement(suite, "testcase", classname="gate", name=words)
        ElementTree.SubElement(case, "error", message=words, type="missing")
    for subject, findings in findings_of.items():
        outcomes = [finding.outcome for finding in findings]
        suite = _suite(
            root,
            subject,
            tests=len(findings),
            failures=outcomes.count(Outcome.FAILED),
            errors=outcomes.count(Outcome.UNJUDGED),
            skipped=outcomes.count(Outcome.ACKNOWLEDGED) + outcomes.count(Outcome.NOTED),
        )
        for finding in findings:
            _add_case(suite, finding)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _suite(root: ElementTree.Element, name: str, **counts: int) -> ElementTree.Element:
    attributes = {"name": _xml_text(name), **{kind: str(count) for kind, count in counts.items()}}
    return ElementTree.SubElement(root, "testsuite", attributes)


def _add_case(suite: ElementTree.Element, finding: Finding) -> None:
    place = (finding.concept, finding.kernel, finding.workload, finding.gpu, finding.evidence)
    name = _xml_text(" · ".join(filter(None, (finding.check, *place))))
    case = ElementTree.SubElement(suite, "testcase", classname=_xml_text(finding.subject), name=name)
    if finding.outcome in _TAGS:
        message, kind = _xml_text(finding.line), str(finding.verdict)
        entry = ElementTree.SubElement(case, _TAGS[finding.outcome], message=message, type=kind)
        entry.text = _xml_text("\n".join((finding.heading, *finding.lines)))
    elif finding.outcome in (Outcome.ACKNOWLEDGED, Outcome.NOTED):
        words = f"acknowledged: {finding.acknowledged}" if finding.acknowledged else finding.line
        ElementTree.SubElement(case, "skipped", message=_xml_text(words))


def _xml_text(text: str) -> str:
    """A text without the characters that XML has no place for."""
    return _NOT_XML.sub("\ufffd", text)
