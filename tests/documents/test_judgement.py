"""The judgement of a candidate as blocks: its stages, what stands against it, and the answer in words."""

from __future__ import annotations

from profiler.cli.output import text_of
from profiler.documents.judgement import JudgementDocument
from profiler.judge.judgement import CandidateJudgement, StageResult, StageState


def test_the_stages_come_first_then_further_findings_then_the_answer() -> None:
    scan = StageResult("scan", StageState.FAILED, 0.25, "<a> calls printf", ("<a> calls printf", "b traps"))
    stages = (StageResult("compile", StageState.PASSED, 2.0), scan)
    judgement = CandidateJudgement("c0", "mine", "attention", "H100", None, False, "<a> calls printf", stages)
    document = JudgementDocument(judgement)
    assert text_of(document.blocks()).splitlines() == [
        "Judgement of mine",
        "stage             time",
        "compile  passed  2.0 s",
        "scan     failed  0.2 s  <a> calls printf",
        "  b traps",
        "",
        *document.sentences,
    ]
    assert "| scan | failed | 0.2 s | &lt;a> calls printf |" in document.to_markdown().splitlines()
