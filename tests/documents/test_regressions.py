"""What is worse now as JSON, rows and HTML."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.cli.output import text_of
from profiler.documents.blocks import Table
from profiler.documents.regressions import list_regressions
from profiler.evidence.metric_table import load_metrics
from profiler.store.index import Store
from tests.documents.printed import assert_html_escapes, assert_same_as_printed


@pytest.mark.slow
def test_a_regression_is_printed_and_is_a_row(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    document = list_regressions(load_metrics(), store)
    answer = assert_same_as_printed(document, capsys, "regressions")
    (row,) = document.to_frame().to_dict("records")
    (regression,) = answer["regressions"]
    assert (row["concept"], row["found_by"], row["unit"]) == ("latency", "step", "ns")
    assert row["effect"] == regression["effect"] == pytest.approx(0.05, abs=0.01)
    assert row["low"] < row["effect"] < row["high"]
    assert not row["acknowledged"]
    # One build, and no sign of what moved it: somebody has to look.
    assert (regression["verdict"], regression["same_build"]) == ("worse", True)
    assert (regression["environment_moved"], regression["is_open"]) == (False, True)
    assert regression["due_to"] == "unknown"
    assert answer["alarms"] == 1
    assert document.sentences[-1] == document.report.coverage.words
    table = next(block for block in document.blocks() if isinstance(block, Table))
    ((version, metric, _, verdict, *_, due_to, _),) = table.rows
    assert (version, metric, due_to) == (f"{row['family']}/v1", "latency", "unknown")
    assert str(verdict).startswith("! worse +5.")
    assert document.worse.groups[0].words in text_of(document.blocks())


def test_a_family_with_a_tag_in_its_name_stands_escaped_in_html(store: Store) -> None:
    document = list_regressions(load_metrics(), store)
    (regression,) = document.report.regressions
    tagged = replace(regression, series=regression.series._replace(family="<i>f"))
    report = replace(document.report, regressions=(tagged,))
    assert_html_escapes(replace(document, report=report), "<i>f", "&lt;i&gt;f/v1 latency")
