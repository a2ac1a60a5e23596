"""Blocks of an answer as Markdown, HTML and text."""

from __future__ import annotations

from profiler.cli.output import text_of
from profiler.documents.blocks import Line, Table, to_html, to_markdown

FACTS = (Table(("", ""), [("GPU", "H100"), ("driver", "580")]), Line("That is all."))


def test_a_head_without_names_is_no_line_of_the_text_and_no_head_of_the_html() -> None:
    assert text_of(FACTS) == "GPU     H100\ndriver  580\n\nThat is all.\n"
    assert "<thead>" not in to_html(FACTS)
    assert to_markdown(FACTS).splitlines()[2:4] == ["| GPU | H100 |", "| driver | 580 |"]
    named = (Table(("what", ""), FACTS[0].rows),)
    assert text_of(named).startswith("what\nGPU")
    assert "<thead>" in to_html(named)
