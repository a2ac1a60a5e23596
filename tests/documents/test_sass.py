"""Machine code and its differences as JSON, rows and HTML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.compare.resolve_code import CodeChoice
from profiler.documents.sass import compare_code, show_code
from profiler.store.index import Store
from tests.documents.printed import assert_html_escapes, assert_same_as_printed


def no_store() -> Store:
    raise AssertionError("files need no index")


@pytest.fixture
def reports_of_two(made_reports: Path) -> tuple[str, str]:
    """Two reports of one kernel with machine code and counts at its places."""
    a, b = (str(made_reports / f"ncar/MW_{name}.ncu-rep") for name in ("Baseline", "DivToMult"))
    return a, b


@pytest.mark.slow
def test_a_listing_is_printed_and_has_a_row_a_place(
    reports_of_two: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = reports_of_two[0]
    document = show_code(name, CodeChoice(), no_store)
    answer = assert_same_as_printed(document, capsys, "sass", name)
    frame = document.to_frame()
    assert len(frame) == answer["instructions"] == len(answer["places"])
    assert frame["place"].tolist() == [place["place"] for place in answer["places"]]
    hottest = show_code(name, CodeChoice(), no_store, limit=2)
    assert (len(hottest.rows()), hottest.hidden) == (2, len(frame) - 2)
    assert_same_as_printed(hottest, capsys, "sass", name, "--hot", "2")
    listing = replace(document.listing, label="<a>")
    assert_html_escapes(replace(document, code=replace(document.code, listing=listing)), "<a>", "&lt;a&gt;")


@pytest.mark.slow
def test_two_listings_are_aligned_and_have_a_row_a_pair(
    reports_of_two: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    document = compare_code(*reports_of_two, CodeChoice(), no_store)
    answer = assert_same_as_printed(document, capsys, "sass", *reports_of_two)
    frame = document.to_frame()
    assert frame["kind"].tolist() == [row["kind"] for pair in answer["functions"] for row in pair["rows"]]
    assert document.sentences[0] == document.summary
    listing = replace(document.a.listing, label="<a>")
    tagged = replace(document, a=replace(document.a, listing=listing))
    assert_html_escapes(tagged, "<a>", "<h3><code>&lt;a&gt;</code> → ")


@pytest.mark.slow
def test_a_comparison_with_itself_says_no_difference(reports_of_two: tuple[str, str]) -> None:
    name = reports_of_two[0]
    document = compare_code(name, name, CodeChoice(), no_store)
    assert document.summary.endswith(": no difference") or not document.has_text
    assert document.moved == ()
