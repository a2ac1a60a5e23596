"""The judge as other loops call it; with the real packages where they are installed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.catalog.catalog import load_catalog
from profiler.errors import ProfilerError
from profiler.judge.judgement import CandidateJudgement, StageResult, StageState
from profiler.search import adapters
from profiler.search.variants import space_of, write_version
from tests.search.simulated import judged, modelled

RIGHT = judged("x", "y", (modelled(50_000.0),), score=0.25)
WRONG = replace(RIGHT, valid=False, score=None, reason="unseen: wrong numbers", times=())
UNKNOWN = replace(RIGHT, valid=None, score=None, reason="races: no model", times=())


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "template"
    folder.mkdir()
    catalog = load_catalog()
    write_version(catalog, catalog.by_id["v2d_b"], space_of(catalog, "v2d_b"), folder)
    monkeypatch.setenv(adapters.TEMPLATE, str(folder))
    return folder


def answers(monkeypatch: pytest.MonkeyPatch, judgement: CandidateJudgement) -> list[str]:
    """The judge stood in for, since it takes a minute; the sources that it was given."""
    given: list[str] = []

    def judge(folder: Path, **options: Any) -> CandidateJudgement:
        given.append((folder / "v2d.cu").read_text("utf-8"))
        return judgement

    monkeypatch.setattr(adapters, "judge_candidate", judge)
    return given


@pytest.mark.parametrize(
    ("judgement", "score", "valid", "known"),
    [(RIGHT, 0.25, 1.0, 1.0), (WRONG, 0.0, 0.0, 1.0), (UNKNOWN, 0.0, 0.0, 0.0)],
)
def test_openevolve_is_given_numbers_that_say_what_is_not_known(
    template: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    judgement: CandidateJudgement,
    score: float,
    valid: float,
    known: float,
) -> None:
    given = answers(monkeypatch, judgement)
    program = tmp_path / "program.cu"
    program.write_text("// another kernel")
    found = adapters.evaluate(str(program))
    metrics = found if isinstance(found, dict) else found.metrics
    assert (metrics["combined_score"], metrics["valid"], metrics["known"]) == (score, valid, known)
    assert given == ["// another kernel"]
    assert (template / "v2d.cu").read_text() != "// another kernel"


def test_shinka_finds_its_two_files(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, results = tmp_path / "main.cu", tmp_path / "results"
    program.write_text("// a kernel")
    for judgement, correct in ((RIGHT, True), (WRONG, False)):
        answers(monkeypatch, judgement)
        adapters.shinka_main(["--program_path", str(program), "--results_dir", str(results)])
        assert json.loads((results / "correct.json").read_text())["correct"] is correct
        metrics = json.loads((results / "metrics.json").read_text())
        assert metrics["combined_score"] == (0.25 if correct else 0.0)
    assert json.loads((results / "correct.json").read_text())["error"] == "unseen: wrong numbers"


def test_shinka_itself_reads_what_was_written(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    general = pytest.importorskip("shinka.utils.general", reason="shinka-evolve is not installed")
    answers(monkeypatch, RIGHT)
    (tmp_path / "main.cu").write_text("// a kernel")
    words = ["--program_path", str(tmp_path / "main.cu"), "--results_dir", str(tmp_path / "out")]
    adapters.shinka_main(words)
    found = general.load_results(str(tmp_path / "out"))
    assert found["correct"]["correct"] is True
    assert found["metrics"]["combined_score"] == 0.25


def test_evotoolkit_is_given_its_own_result(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    types = pytest.importorskip("evotoolkit.core.types", reason="evotoolkit is not installed")
    evaluator = adapters.JudgeEvaluator(None, template)
    for judgement, score in ((RIGHT, 0.25), (WRONG, None), (UNKNOWN, None)):
        given = answers(monkeypatch, judgement)
        found = evaluator.evaluate({"v2d.cu": "// mine"})
        assert isinstance(found, types.EvaluationResult)
        assert (found.score, found.valid) == (score, judgement.valid is True)
        assert given == ["// mine"]


def test_openevolve_itself_loads_the_evaluator(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = pytest.importorskip("openevolve.evaluator", reason="openevolve is not installed")
    config = pytest.importorskip("openevolve.config").EvaluatorConfig(cascade_evaluation=False)
    answers(monkeypatch, RIGHT)
    file = tmp_path / "evaluator.py"
    file.write_text("from profiler.search.adapters import evaluate\n")
    import asyncio

    metrics = asyncio.run(module.Evaluator(config, str(file), suffix=".cu").evaluate_program("// mine"))
    assert metrics["combined_score"] == 0.25


def test_files_outside_and_a_missing_template_are_refused(
    template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProfilerError, match="outside"):
        adapters.judge_program({"../v2d.cu": "x"})
    monkeypatch.delenv(adapters.TEMPLATE)
    with pytest.raises(ProfilerError, match="has to name a folder"):
        adapters.judge_program("x")


def test_the_words_name_every_stage(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = (StageResult("compile", StageState.FAILED, 1.0, "error: expected ;"),)
    answers(monkeypatch, replace(WRONG, stages=stages, reason="compile: error: expected ;"))
    assert "compile: failed: error: expected ;" in adapters.judge_program("x").text
