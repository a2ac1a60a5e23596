"""One metric over versions as JSON, rows and HTML."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from profiler.documents.blocks import Heading, Notes, Table
from profiler.documents.trend import TrendDocument, load_trend, trend_tables
from profiler.errors import CannotJudge
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import Evidence, State, Value
from profiler.history.trend import ABSENT, Trend, TrendPoint
from profiler.store.index import Store
from tests.documents.printed import assert_html_escapes, assert_same_as_printed


def test_a_trend_over_time_has_a_row_a_run(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    document = load_trend("static_registers", load_metrics(), store, over="time")
    assert_same_as_printed(document, capsys, "trend", "static_registers", "--over", "time")
    frame = document.to_frame()
    assert frame["value"].tolist() == [40.0] * 12
    assert not any(frame["wrong"])
    assert_html_escapes(document, "<td>40", '<td align="right">40')


def test_a_trend_over_versions_has_a_row_a_version(store: Store) -> None:
    document = load_trend("static_registers", load_metrics(), store)
    assert [row[8] for row in document.rows()] == ["v1"]
    assert [row[6] for row in document.rows()] == ["static_registers"], "the concept"


def trends(*rows: tuple[str, tuple[Value | float | None, ...]]) -> tuple[Trend, ...]:
    """A trend a kernel over versions v1, v2 …; None: the kernel did not run there."""
    return tuple(
        Trend(
            concept="duration",
            label="ncu duration",
            better="lower",
            unit="ns",
            family="f",
            workload=None,
            gpu="H100",
            evidence=Evidence.MEASURED,
            mode="ncu",
            part=part,
            base_name=part.partition("#")[0],
            points=tuple(
                TrendPoint(
                    run_id=f"r{n}",
                    version=f"v{n}",
                    created=datetime(2026, 1, n, tzinfo=UTC),
                    value=value if isinstance(value, Value) else Value(value, "ns"),
                    metric="gpu__time_duration.sum",
                    grid=None,
                    block=None,
                    result_id=None,
                    gap=ABSENT if value is None else "",
                )
                for n, value in enumerate(values, 1)
            ),
        )
        for part, values in rows
    )


NAN = Value(None, "ns", state=State.FAILED)


def test_versions_and_kernels_without_a_line_are_counted_by_their_reason() -> None:
    [table] = trend_tables(
        trends(
            ("a#0", (1.0, None, 3.0, NAN, None)),
            ("b#0", (None, None, 5.0, None, None)),
            ("b#1", (None, None, 9.0, None, None)),
            ("c#0", (2.0, None, 2.0, NAN, None)),
        ),
        last=8,
    )
    assert [trend.part for trend in table.trends] == ["a#0", "c#0"]
    assert table.columns == (0, 2)
    assert table.left_out == (
        "2 versions without a value, none of these kernels ran: v2, v5",
        "1 version without a value, failed (NaN): v4",
        "only in v3: b#1 9 ns, b 5 ns",
    )


def test_names_that_differ_only_in_a_number_come_with_the_command_that_joins_them() -> None:
    builds = (
        ("step_6374#0", (1.0, None, None)),
        ("step_6928#0", (None, 2.0, None)),
        ("step_7140#0", (None, None, 3.0)),
    )
    [table] = trend_tables(trends(*builds), last=8)
    assert table.left_out[-1] == (
        "3 of these names differ only in a number: if they are one kernel, "
        "`profiler decide pair f 'step_*=step_*'` makes them one row"
    )
    [both_ran] = trend_tables(trends(*builds[:2], ("step_1#0", (1.0, None, None))), last=8)
    assert not any("profiler decide pair" in line for line in both_ran.left_out), (
        "one version has two of them"
    )


def test_the_newest_versions_with_a_value_are_the_columns() -> None:
    rows = trends(("a#0", (1.0, 2.0, 3.0, None)), ("b#0", (7.0, None, None, None)))
    [table] = trend_tables(rows, last=2)
    assert (table.columns, table.earlier) == ((1, 2), 1)
    assert [trend.part for trend in table.trends] == ["a#0"]
    assert "1 kernel has no number in these versions" in table.left_out
    [every] = trend_tables(rows, last=2, every=True)
    assert (every.columns, len(every.trends), every.earlier, every.left_out) == ((2, 3), 2, 2, ())


def test_one_version_lists_all_its_kernels_and_failures_are_listed_where_nothing_else_is() -> None:
    [table] = trend_tables(trends(("a#0", (1.0,)), ("b#0", (2.0,))), last=8)
    assert (len(table.trends), table.left_out) == (2, ())
    [failed] = trend_tables(trends(("a#0", (NAN, NAN))), last=8)
    assert (len(failed.trends), failed.columns) == (1, (0, 1))


def test_what_no_launch_carries_cannot_be_judged(store: Store) -> None:
    with pytest.raises(CannotJudge, match="no requested launch has dram_read"):
        load_trend("dram_read", load_metrics(), store)
    static = "compiled versions have: `profiler trend static_registers`"
    with pytest.raises(CannotJudge, match=static):
        load_trend("registers", load_metrics(), store)
    with pytest.raises(CannotJudge, match="import reports with it"):
        load_trend("registers", load_metrics(), store, evidence=Evidence.MEASURED)


def test_the_newest_versions_are_columns_and_the_notes_say_what_is_not_shown() -> None:
    document = TrendDocument("duration", trends(("a#0", (1.0, 2.0, 3.0, NAN))), last=2)
    heading, table, notes = document.blocks()
    assert isinstance(heading, Heading)
    assert heading.text == "f: ncu duration (H100, measured, ncu)"
    assert isinstance(table, Table)
    assert (table.head, table.rows) == (["kernel", "v2", "v3"], [["a", "2 ns", "3 ns"]])
    assert isinstance(notes, Notes)
    assert notes.lines[0] == "1 earlier left out: --last N shows more"
    assert notes.lines[-1] == "--all shows every version and kernel"
    _, every, _ = document.blocks(everything=True)
    assert isinstance(every, Table)
    assert every.head == ["kernel", "v3", "v4"]
