"""Blocks of an answer as Markdown, HTML and text."""

from __future__ import annotations

from profiler.cli.output import text_of
from profiler.documents.blocks import (
    Fold,
    Gap,
    Heading,
    Hinted,
    Line,
    Name,
    Number,
    Preformatted,
    Share,
    Table,
    VerdictText,
    plain,
    to_html,
    to_markdown,
)
from profiler.evidence.values import NOT_COLLECTED, Value
from profiler.statistics.verdict import Verdict

FACTS = (Table(("", ""), [("GPU", "H100"), ("driver", "580")]), Line("That is all."))


def test_a_head_without_names_is_no_line_of_the_text_and_no_head_of_the_html() -> None:
    assert text_of(FACTS) == "GPU     H100\ndriver  580\n\nThat is all.\n"
    assert "<thead>" not in to_html(FACTS)
    assert to_markdown(FACTS).splitlines()[2:4] == ["| GPU | H100 |", "| driver | 580 |"]
    named = (Table(("what", ""), FACTS[0].rows),)
    assert text_of(named).startswith("what\nGPU")
    assert "<thead>" in to_html(named)


def test_a_page_folds_what_a_terminal_is_only_pointed_to() -> None:
    table = Table(("name", "registers"), [("kernel", "64")], right=(1,))
    whole, pointed = ([Heading("a", 1), Fold("1 more", [table], line)] for line in ("", "and 1 more: --all"))
    assert text_of(whole) == "a\nname    registers\nkernel         64\n"
    assert text_of(pointed) == "a\nand 1 more: --all\n"
    assert to_markdown(whole) == to_markdown(pointed)
    assert to_html(whole) == to_html(pointed)
    assert "| kernel | 64 |" in to_markdown(pointed)
    assert "<summary>1 more</summary><table>" in to_html(pointed)


def test_columns_of_code_stay_where_they_are_and_no_line_ends_the_block() -> None:
    code = Preformatted(["- 0x0010  MOV <R1>", "  ```  kept"])
    assert text_of([Heading("f"), code]) == "f\n- 0x0010  MOV <R1>\n  ```  kept\n"
    assert to_markdown([code]) == "```\n- 0x0010  MOV <R1>\n  '''  kept\n```\n"
    assert to_html([code]) == "<pre>- 0x0010  MOV &lt;R1&gt;\n  ```  kept</pre>"


def test_what_stands_between_two_backticks_is_code_in_html_too() -> None:
    assert to_html([Line("run `profiler show <A>` now")]) == (
        "<p>run <code>profiler show &lt;A&gt;</code> now</p>"
    )
    assert to_html([Line("one ` alone")]) == "<p>one ` alone</p>"
    head = Table(("name", "µs"), [("a", "1")], right=(1,))
    assert '<th align="left">name</th><th align="right">µs</th>' in to_html([head])


def test_cells_that_a_page_draws_are_words_in_every_other_format() -> None:
    cells = (
        VerdictText(Verdict.WORSE, "+3 %", "beyond the floor"),
        Number(Value(1234.0, "ns"), "gpu__time_duration.sum"),
        Number(NOT_COLLECTED),
        Share(0.25),
        Share(None),
        Hinted(Name("k<1>"), "file.cu"),
        Gap("not measured"),
    )
    table = Table(("",) * len(cells), [cells], wide=(1,))
    words = ["! worse +3 %", "1.23 µs", "not collected", "25.0 %", "–", "k<1>", "not measured"]
    assert [plain(cell) for cell in cells] == words
    assert text_of([table]).split("  ") == [*"  ".join(words).split("  ")[:-1], "not measured\n"]
    assert "| ! worse +3 % | 1.23 µs | not collected | 25.0 % | – |" in to_markdown([table])
    assert "beyond the floor" not in to_html([table])
