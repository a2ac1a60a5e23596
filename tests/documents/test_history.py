"""The steps of a history as JSON, rows and HTML."""

from __future__ import annotations

import pytest

from profiler.documents.blocks import Notes, Table
from profiler.documents.history import find_history
from profiler.errors import CannotJudge
from profiler.evidence.metric_table import load_metrics
from profiler.store.index import Store
from tests.documents.printed import assert_html_escapes, assert_same_as_printed
from tests.timed_runs import FAMILY


def test_a_step_is_printed_and_is_a_row(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    document = find_history("latency", load_metrics(), store)
    answer = assert_same_as_printed(document, capsys, "history", "latency")
    (step,) = answer["series"][0]["changes"]
    (row,) = document.to_frame().to_dict("records")
    assert (row["family"], row["version"], row["verdict"]) == (FAMILY, None, "worse")
    assert row["size"] == step["size"] == pytest.approx(0.05, abs=0.01)
    assert row["size_low"] < row["size"] < row["size_high"]
    assert row["since_run"] == step["likeliest"]["run_id"]
    (sentence,) = document.sentences
    assert sentence.startswith(f"{FAMILY} total: ! worse +5")
    assert "machine code same: SASS has the same hash" in sentence
    assert_html_escapes(document, "</script>", "<h4>flash: latency over runs (")
    _, table, notes = document.blocks()
    assert isinstance(table, Table)
    assert isinstance(notes, Notes)
    ((kernel, verdict, size, *_, due_to),) = table.rows
    assert (kernel, str(verdict), due_to) == ("total", "! worse", row["cause"])
    assert str(size).startswith("+5.")
    assert "profiler compare 20260311T120000-flash-v1 " in str(notes.lines[-1])


def test_a_history_without_a_step_has_columns_and_no_row(store: Store) -> None:
    document = find_history("static_registers", load_metrics(), store)
    assert document.rows() == []
    assert list(document.to_frame().columns) == list(document.columns)


def test_nothing_that_carries_the_metric_cannot_be_judged(store: Store) -> None:
    with pytest.raises(CannotJudge, match="none of the requested data has dram_read; import reports with it"):
        find_history("dram_read", load_metrics(), store)
