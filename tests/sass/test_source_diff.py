"""Two sources side by side: every line of both is there or counted, and flags mark what they reach."""

from __future__ import annotations

from profiler.sass import source_diff
from profiler.sass.source_diff import FlagChange, TrafficRow
from tests.lineages import SOURCE

BUG = ((), ("-DBUG=BUG_ROW",))


def test_every_line_is_shown_or_counted() -> None:
    a = "\n".join(f"line {n}" for n in range(40))
    b = a.replace("line 20", "line twenty\nanother")
    rows = source_diff.side_by_side(a, b)
    shown_a = sum(row.a_line is not None for row in rows)
    assert shown_a + sum(row.skipped for row in rows) == 40
    assert [row.kind for row in rows if row.kind not in ("same", "gap")] == ["changed", "added"]
    assert [(row.a_line, row.b_line) for row in rows if row.kind == "changed"] == [(21, 21)]
    assert rows[0].kind == rows[-1].kind == "gap"


def test_whole_sources_have_every_line_where_any_differs() -> None:
    a = "\n".join(f"line {n}" for n in range(40))
    rows = source_diff.side_by_side(a, a.replace("line 20", "line twenty"), context=None)
    assert [row.a_line for row in rows] == list(range(1, 41))
    assert [row.kind for row in source_diff.side_by_side(a, a, context=None)] == ["gap"]


def test_equal_sources_without_a_flag_are_one_gap() -> None:
    (row,) = source_diff.side_by_side("a\nb", "a\nb")
    assert (row.kind, row.skipped) == ("gap", 2)


def test_flags_are_told_apart_by_name_and_value() -> None:
    a, b = ("-DX=1", "-DONLY", "-O3"), ("-DX=2", "-O3", "--fast")
    assert source_diff.flag_changes(a, b) == (
        FlagChange("X", "1", "2"),
        FlagChange("ONLY", "1", None),
        FlagChange("--fast", None, "set"),
    )


def test_two_builds_of_one_source_show_the_lines_that_read_the_flag() -> None:
    rows = source_diff.side_by_side(SOURCE, SOURCE, (("-DTILE=32",), ("-DTILE=64",)), context=0)
    assert [row.a_line for row in rows if row.kind == "flag"] == [2, 3, 10]


def test_a_branch_that_one_side_leaves_out_is_not_compiled_there() -> None:
    rows = {row.a: row for row in source_diff.side_by_side(SOURCE, SOURCE, BUG)}
    assert (rows["share();"].a_compiled, rows["share();"].b_compiled) == (False, True)
    assert (rows["own();"].a_compiled, rows["own();"].b_compiled) == (True, False)
    assert rows["share();"].kind == rows["own();"].kind == "flag"
    assert rows["x[lane] = TILE;"].a_compiled


def test_a_condition_that_is_not_understood_keeps_both_branches() -> None:
    text = "#if defined(A) && B > 2\none\n#else\ntwo\n#endif".splitlines()
    assert source_diff.uncompiled_lines(text, {"A": "1"}) == frozenset()


def test_a_form_feed_ends_no_line() -> None:
    rows = source_diff.side_by_side("a\f\nb\nc", "a\f\nb\nd")
    assert [(row.a_line, row.a, row.b) for row in rows if row.kind == "changed"] == [(3, "c", "d")]


def test_conditions_nest() -> None:
    text = "#if A == 1\n#if B\nboth\n#endif\n#endif\nafter".splitlines()
    assert source_diff.uncompiled_lines(text, {"A": "2", "B": "1"}) == {2}
    assert source_diff.uncompiled_lines(text, {"A": "1", "B": "0"}) == {2}
    assert source_diff.uncompiled_lines(text, {"A": "1", "B": "1"}) == frozenset()


def test_traffic_of_moved_lines_belongs_together() -> None:
    a, b = "one\ntwo\nthree", "new\none\ntwo\nother"
    rows = source_diff.compare_traffic(
        [TrafficRow("a.cu", 2, "load", 4, 40, 4), TrafficRow("a.cu", 3, "store", 1, 1, 1)],
        [TrafficRow("b.cu", 3, "load", 4, 4, 4), TrafficRow("b.cu", 4, "store", 1, 9, 1)],
        ({"a.cu": a}, {"b.cu": b}),
    )
    assert [(row.a_line, row.b_line, row.text, row.conflicts) for row in rows] == [
        ("a.cu:2", "b.cu:3", "two", (36, 0)),
        (None, "b.cu:4", "other", (None, 8)),
        ("a.cu:3", None, "three", (0, None)),
    ]
