"""One metric over versions as JSON, rows and HTML."""

from __future__ import annotations

import pytest

from profiler.documents import load_trend
from profiler.errors import CannotJudge
from profiler.evidence import load_metrics
from profiler.store import Store
from tests.documents.printed import assert_html_escapes, assert_same_as_printed


def test_a_trend_over_time_has_a_row_a_run(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    document = load_trend("static_registers", load_metrics(), store, over="time")
    assert_same_as_printed(document, capsys, "trend", "static_registers", "--over", "time")
    frame = document.to_frame()
    assert frame["value"].tolist() == [40.0] * 12
    assert not any(frame["wrong"])
    assert_html_escapes(document, "<td>40", '<td align="right">40</td>')


def test_a_trend_over_versions_has_a_row_a_version(store: Store) -> None:
    document = load_trend("static_registers", load_metrics(), store)
    assert [row[6] for row in document.rows()] == ["v1"]


def test_what_no_launch_carries_cannot_be_judged(store: Store) -> None:
    with pytest.raises(CannotJudge, match="no launch asked about carries dram_read"):
        load_trend("dram_read", load_metrics(), store)
