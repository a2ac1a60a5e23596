"""Blocks of an answer as Markdown, HTML and text."""

from __future__ import annotations

from profiler.cli.output import text_of
from profiler.documents.blocks import Fold, Heading, Line, Preformatted, Table, to_html, to_markdown

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
