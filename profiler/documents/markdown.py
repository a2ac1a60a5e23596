"""Markdown as GitHub reads it: cells that keep their table whole, and tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def cell(text: str) -> str:
    """A text as a cell of a table: no pipe that would end it, no tag, one line."""
    return _one_line(text).replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    """A text as code, in a cell too."""
    return "`" + _one_line(text).replace("`", "'").replace("|", "\\|") + "`"


def _one_line(text: str) -> str:
    """A text without the line endings of Markdown, of which a carriage return alone is one."""
    return text.replace("\r\n", " ").replace("\r", " ").replace("\n", " ")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """The lines of a table; its cells are Markdown already, the columns in `right` hold numbers."""
    rules = (" ---: " if index in right else " --- " for index in range(len(header)))
    return [
        "| " + " | ".join(header) + " |",
        "|" + "|".join(rules) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def fenced(lines: Iterable[str]) -> list[str]:
    """Plain lines as a block of code, which none of them ends."""
    texts = [_one_line(line).replace("```", "'''") for line in lines]
    return ["```", *texts, "```"]


def folded(summary: str, lines: Iterable[str]) -> list[str]:
    """Lines that a reader unfolds by clicking on the summary."""
    return [f"<details><summary>{summary}</summary>", "", *lines, "", "</details>"]
