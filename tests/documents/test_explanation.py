"""An explanation as JSON, rows, Markdown and HTML, and the answer where there is no time to explain."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from profiler.cli import main
from profiler.documents.explanation import UnmeasuredDocument, cause_rows, explain_comparison, explain_names
from profiler.errors import Exit
from profiler.evidence.metric_table import load_metrics
from profiler.explain.explanation import explain
from profiler.explain.time_identity import Term, TimeSplit
from tests.compared import compare_sides
from tests.documents.printed import assert_html_escapes, assert_same_as_printed
from tests.documents.test_comparison import facts, no_store, side

TABLE = load_metrics()


@pytest.mark.slow
def test_two_reports_are_explained_as_the_command_prints(
    ncar: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    document = explain_names(*ncar, TABLE, no_store)  # type: ignore[arg-type]
    assert_same_as_printed(document, capsys, "explain", *ncar)
    main(["explain", *ncar, "--markdown"])
    assert capsys.readouterr().out == document.to_markdown()


@pytest.mark.slow
def test_with_a_gate_its_answer_and_exit_code_are_the_documents(
    ncar: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    document = explain_names(*ncar, TABLE, no_store, with_gate=True)  # type: ignore[arg-type]
    answer = assert_same_as_printed(document, capsys, "explain", *ncar, "--fail", code=1)
    assert answer["gate"]["exit_code"] == document.exit_code == Exit.REGRESSION
    main(["explain", *ncar, "--fail", "--markdown"])
    assert capsys.readouterr().out == document.to_markdown()


def test_the_rows_of_a_pair_add_up_to_its_change(ncar: tuple[str, str]) -> None:
    frame = explain_names(*ncar, TABLE, no_store).to_frame()  # type: ignore[arg-type]
    split = frame[frame.cause.notna()]
    assert not split.empty
    for _, terms in split.groupby("kernel"):
        assert math.fsum(terms.us) == pytest.approx(terms.delta_us.iloc[0])
        assert terms.cause.tolist()[-1] == "residue"
        assert not terms.is_cause.tolist()[-1]


def test_a_cause_that_is_nothing_beside_the_longer_side_has_no_share_of_the_shorter() -> None:
    comparison = compare_sides(side(1.0), side(253.0), TABLE).comparison
    (explanation,) = explain(comparison, TABLE)
    terms = (Term("work", 251_850.0), Term("parallelism", -150.0), Term("clock", 300.0))
    split = TimeSplit(terms, 0.0, 252_000.0, "waiting undivided")
    rows = cause_rows(replace(explanation, a_us=1000.0, b_us=253_000.0, split=split))
    by_label = {label: cells for label, *cells in rows}
    assert by_label["parallelism"] == ["±0", "±0 %"]
    assert by_label["clock"] == ["±0", "±0 %"]
    assert by_label["work"][0] == "+252 ms"


def test_a_pair_that_did_not_move_is_a_row_without_a_cause() -> None:
    document = explain_comparison(compare_sides(side(1), side(1), TABLE).comparison, TABLE)
    (row,) = document.to_frame().to_dict("records")
    assert (row["kernel"], row["verdict"], row["cause"]) == ("kernel_0", "same", None)
    assert row["sentence"] in document.sentence


def test_launches_without_a_partner_leave_nothing_to_explain() -> None:
    comparison = compare_sides(side(1), side(1, name="other"), TABLE).comparison
    document = explain_comparison(comparison, TABLE)
    assert document.sentence.startswith("No counters of these launches on both sides")
    assert document.rows() == []
    assert "<table>" not in document._repr_html_()


def test_facts_have_no_time_and_the_sentence_names_the_command_that_has_an_answer() -> None:
    document = explain_comparison(compare_sides(facts(32), facts(40), TABLE).comparison, TABLE)
    assert isinstance(document, UnmeasuredDocument)
    assert document.sentence.startswith("static evidence has no duration: there is no time to split.")
    assert document.sentence.endswith("`profiler compare f/v f/v` shows what differs")
    assert document.to_markdown() == f"{document.sentence}\n"
    assert document.exit_code is Exit.PASS
    assert UnmeasuredDocument("a", "b", ("static",), is_gated=True).exit_code is Exit.UNJUDGED


def test_html_escapes_what_a_report_is_called() -> None:
    comparison = compare_sides(side(1), replace(side(1), label="<b>"), TABLE).comparison
    assert_html_escapes(
        explain_comparison(comparison, TABLE),
        "<b>",
        "Why <code>&lt;b&gt;</code> differs from <code>side</code>",
    )
