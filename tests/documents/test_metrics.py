"""What metrics.txt declares, what it costs on a chip and whether its names exist, as JSON, rows and HTML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.documents.metrics import MetricCheckDocument, MetricsDocument, check_metrics, metrics_for_chip
from profiler.errors import Exit
from profiler.evidence.metric_table import load_metrics
from tests.documents.printed import assert_html_escapes, assert_same_as_printed


def test_a_row_is_a_metric_with_all_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    document = MetricsDocument(load_metrics())
    answer = assert_same_as_printed(document, capsys, "metrics")
    by_concept = document.to_frame().set_index("concept")
    assert by_concept.loc["duration", "ncu_names"].split(", ")[0] == "gpu__time_duration.sum"
    assert len(by_concept) == len(answer["metrics"])
    assert tuple(by_concept.loc["shared_conflicts", ["whole", "whole_share"]]) == ("shared_wavefronts", 0.01)
    declared = {metric["concept"]: (metric["whole"], metric["whole_share"]) for metric in answer["metrics"]}
    assert declared["shared_excess"] == ("shared_wavefronts_source", 0.01)
    assert declared["shared_wavefronts"] == (None, None)
    lean = MetricsDocument(load_metrics(), "lean")
    assert {row[7] for row in lean.rows()} == {"lean"}


def test_what_ncu_is_to_collect_has_a_row_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    document = metrics_for_chip(load_metrics(), "sm_90", "lean")
    answer = assert_same_as_printed(document, capsys, "metrics", "--chip", "sm_90", "--tier", "lean")
    assert document.to_frame()["metric"].tolist() == [row["metric"] for row in answer["metrics"]]
    assert document.sentences[0] == document.cost
    unknown = replace(document, passes=None, not_available=())
    (sentence,) = unknown.sentences
    assert sentence.startswith(f"sm_90, lean: {len(document.names)} metrics, replay passes unknown: ")


def test_a_name_that_cannot_be_read_is_a_row_and_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "metrics.txt"
    path.write_text("nonsense\n", encoding="utf-8")
    document = check_metrics(path)
    assert document.exit_code == Exit.UNUSABLE_INPUT
    assert_same_as_printed(document, capsys, "metrics", "--check", str(path), code=2)
    ((problem,),) = document.rows()
    assert str(problem).startswith(f"{path}:1: ")


def test_a_problem_with_a_tag_stands_escaped_in_html() -> None:
    document = MetricCheckDocument(load_metrics(), ("metrics.txt:1: <b>",))
    assert_html_escapes(document, "<b>", "metrics.txt:1: &lt;b&gt;")
    assert "every name exists" in replace(document, problems=()).sentences[0]
