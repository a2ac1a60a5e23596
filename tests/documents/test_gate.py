"""The answer of a gate as JSON, rows, Markdown and HTML; JUnit is tested with the gate's command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from profiler.documents.gate import GateDocument, gate_versions
from profiler.errors import Exit
from profiler.evidence.metric_table import load_metrics
from profiler.gate.finding import Check, Finding, Outcome, Verdicts
from profiler.gate.report import ChosenBaseline, GateReport
from profiler.statistics.decision import Interval
from profiler.statistics.verdict import Verdict
from tests.documents.printed import assert_html_escapes, assert_same_as_printed

FINDING = Finding(
    Check.REGRESSION,
    Outcome.FAILED,
    Verdict.WORSE,
    "f/<b>v2</b>",
    "f/v1",
    "latency: 3 % more",
    kernel="gemm",
    effect=0.03,
    interval=Interval(0.02, 0.04),
    detectable=0.01,
)


def no_store() -> object:
    raise AssertionError("files need no index")


@pytest.fixture
def document() -> GateDocument:
    noted = replace(FINDING, outcome=Outcome.NOTED, verdict=Verdict.CHANGED, effect=None, interval=None)
    return GateDocument(GateReport(Verdicts((FINDING, noted), 1), Exit.REGRESSION, "v1"))


@pytest.mark.slow
def test_two_reports_are_judged_as_the_command_judges_them(
    made_reports: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    a, b = (str(made_reports / f"ncar/MW_{name}.ncu-rep") for name in ("DivToMult", "Baseline"))
    document = gate_versions([b], a, load_metrics(), no_store)  # type: ignore[arg-type]
    assert document.exit_code == Exit.REGRESSION
    answer = assert_same_as_printed(document, capsys, "gate", b, "--baseline", a, code=1)
    assert answer["verdict"] == "failed"
    assert len(document.rows()) == len(answer["findings"])


def test_a_row_is_a_finding_and_its_interval_two_columns(document: GateDocument) -> None:
    frame = document.to_frame()
    first, second = frame.to_dict("records")
    assert (first["outcome"], first["subject"], first["effect"]) == ("failed", "f/<b>v2</b>", 0.03)
    assert (first["low"], first["high"], first["detectable"]) == (0.02, 0.04, 0.01)
    assert frame["effect"].isna().tolist() == [False, True]
    assert second["workload"] is None


def test_the_sentences_are_the_headline_and_what_has_weight(document: GateDocument) -> None:
    assert document.title == "Gate failed: 1 check failed, 1 informational"
    assert document.sentences == ["f/<b>v2</b> · kernel gemm, against f/v1: latency: 3 % more"]
    assert_html_escapes(document, "<b>v2</b>", "<code>f/&lt;b&gt;v2&lt;/b&gt;</code>")


def test_markdown_names_the_only_baseline_once_and_folds_what_is_noted(document: GateDocument) -> None:
    lines = document.to_markdown().splitlines()
    assert lines[:3] == [f"### {document.title}", "", "**Baseline:** `f/v1`"]
    assert "<details><summary>1 informational: reported, decides nothing</summary>" in lines


def test_without_a_named_baseline_it_says_which_were_used_and_why(document: GateDocument) -> None:
    one = ChosenBaseline("f/v1", "pinned", 3)
    report = replace(document.report, baseline="", chosen=(one,))
    assert "**Baseline:** `f/v1` (pinned)" in GateDocument(report).to_markdown()
    why = "previous run; no baseline is pinned"
    runs = [ChosenBaseline(f"2026010{day}T000000-f", why, 1) for day in range(4)]
    told = GateDocument(replace(report, chosen=(one, *runs)), "http://h").to_markdown()
    assert (
        "`f/v1` (pinned; for 3 versions); [`20260100T000000-f`](http://h/runs?run=20260100T000000-f)" in told
    )
    assert "(previous run; no baseline is pinned; for 1 version); and 2 more" in told


def test_junit_has_a_failure_for_what_failed(document: GateDocument) -> None:
    suite = ElementTree.fromstring(document.to_junit())[0]
    assert suite.attrib["failures"] == suite.attrib["skipped"] == "1"
