"""An answer's blocks on a page: verdicts in colour, gaps hatched, links, and nothing that breaks the page."""

from __future__ import annotations

from profiler.documents.blocks import (
    Findings,
    Fold,
    Gap,
    Heading,
    Hinted,
    Item,
    Line,
    Link,
    Name,
    Notes,
    Number,
    Preformatted,
    Share,
    Table,
    VerdictText,
)
from profiler.evidence.values import NOT_COLLECTED, Value
from profiler.statistics.verdict import Verdict
from profiler.ui.views import answer


def test_a_cell_is_drawn_by_what_it_is() -> None:
    assert 'class="v worse" title="sure"' in answer.inline(VerdictText(Verdict.WORSE, "+3 %", "sure"))
    assert answer.inline(Number(Value(1234.0, "ns"))).startswith(
        '<span data-value="1234.0" data-unit="ns">1.23'
    )
    assert "hatch" in answer.inline(Number(NOT_COLLECTED))
    assert "hatch" in answer.inline(Gap("not measured"))
    assert "width:25.00%" in answer.inline(Share(0.25))
    assert answer.inline(Share(None)) == answer.inline("–")
    assert (
        answer.inline(Hinted(Name("k"), "a.cu"))
        == '<span title="a.cu"><span class="c" title="k">k</span></span>'
    )
    assert answer.inline(("of ", Link("v1", "./diff?a=v1"))).startswith('of <a href="./diff?a=v1"')


def test_a_table_has_the_name_of_its_heading_its_links_and_what_was_chosen() -> None:
    table = Table(("version", "time", ""), [(Name("v1"), "1", "x" * 60), (Name("v2"), "2", "")], (1,), (2,))
    shown = answer.html([Heading("Versions"), table])
    assert 'aria-label="Versions"' in shown
    assert '<th class="r">time</th><th class="wide wrap"></th>' in shown
    linked = answer.table(table, "versions", {"v2": "./trends?x=1&y=2"}, "v2")
    assert '<tr class="sel"><td><a href="./trends?x=1&amp;y=2"' in linked
    assert linked.count("<a ") == 1


def test_every_kind_of_block_is_shown_and_escaped() -> None:
    bad = "<script>alert(1)</script>"
    blocks = [
        Heading(bad),
        Line(bad, "label"),
        Notes([bad, Name(f"{bad} {bad}")]),
        Table((bad,), [[bad], [Name(bad)], [Hinted(bad, bad)], [Gap(bad)]]),
        Preformatted([bad, "  MOV R1, R2"]),
        Findings([Item(bad, [bad])]),
        Fold(bad, [Line(bad)]),
    ]
    shown = answer.html(blocks)
    assert "<script" not in shown
    assert "<b>label:</b>" in shown
    assert "\n  MOV R1, R2</pre>" in shown
    assert "<details" in shown
