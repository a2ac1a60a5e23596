"""What an answer is shown as: blocks of plain data, and how Markdown and a notebook's HTML write them.

A terminal has its own writer (`profiler.cli.output.print_blocks`), since it folds tables to its width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias

from profiler.documents import markdown
from profiler.documents.line_chart import TimeLine, draw, summary
from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.statistics.verdict import Verdict


class Name(str):
    """A name that a user chose, such as a kernel or a version: code in Markdown and HTML."""

    __slots__ = ()


class Gap(str):
    """Words for why there is no number, such as `not collected`."""

    __slots__ = ()


@dataclass(frozen=True)
class Link:
    """A name with the address of its page."""

    name: str
    address: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Number:
    """A value with its unit, or the state in its place; a page says on hover what `about` says."""

    value: Value
    about: str = ""

    def __str__(self) -> str:
        return str(formatting.quantity(self.value))


@dataclass(frozen=True)
class Share:
    """A part of a whole, from 0 to 1, which a page draws as a bar too; a dash where it is None."""

    part: float | None

    def __str__(self) -> str:
        return "–" if self.part is None else str(formatting.quantity(Value(100 * self.part, "%")))


@dataclass(frozen=True)
class VerdictText:
    """A verdict and the size of the change; a page colours it and says the reason on hover."""

    verdict: Verdict
    change: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.verdict.label} {self.change}".rstrip()


@dataclass(frozen=True)
class Hinted:
    """Words of which a page says more on hover."""

    text: str
    hint: str

    def __str__(self) -> str:
        return self.text


Inline: TypeAlias = "str | Link | Number | Share | VerdictText | Hinted"
Phrase: TypeAlias = "Inline | tuple[Inline, ...]"  # several are written one after the other


@dataclass(frozen=True)
class Heading:
    """What follows is about this; level 1 is the answer's title."""

    text: Phrase
    level: int = 2


@dataclass(frozen=True)
class Line:
    """A sentence of its own; `label` stands before it in bold, followed by a colon."""

    text: Phrase
    label: str = ""


@dataclass(frozen=True)
class Notes:
    """Sentences that belong to what stands above."""

    lines: Sequence[Phrase]


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head; the columns in `right` hold numbers, those in `wide` a phone leaves out.

    A head of empty names is not shown: the first cell of each row says what the row is.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Phrase]]
    right: Collection[int] = ()
    wide: Collection[int] = ()


@dataclass(frozen=True)
class Preformatted:
    """Lines of machine code or of a diff, whose columns must stay where they are."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Item:
    """One subject and what was found of it."""

    subject: Phrase
    lines: Sequence[Phrase]


@dataclass(frozen=True)
class Findings:
    """Subjects with what was found of each; `mark` is the sign of their outcome."""

    items: Sequence[Item]
    mark: str = ""


@dataclass(frozen=True)
class Chart:
    """Numbers over time, a line a name; where nothing is drawn, how each line began, ended and ranged."""

    title: str
    unit: str
    lines: Sequence[TimeLine]

    def table(self) -> Table:
        """What Markdown and a terminal show in its place."""
        return Table(*summary(self.lines, self.unit), right=(1, 2, 3, 4, 5))


@dataclass(frozen=True)
class Fold:
    """Blocks that a reader of a page unfolds by clicking on the summary; a terminal prints them."""

    summary: str
    blocks: Sequence[Block]
    instead: str = ""  # what a terminal prints in place of the blocks: how to get them there
    is_section: bool = False  # whether a terminal prints the summary too, as a heading


Block: TypeAlias = "Heading | Line | Notes | Table | Preformatted | Findings | Chart | Fold"


def plain(phrase: Phrase) -> str:
    """The phrase as plain text."""
    return "".join(map(str, phrase)) if isinstance(phrase, tuple) else str(phrase)


def to_markdown(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown that GitHub reads, with a line end at the end."""
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := _markdown_lines(block))) + "\n"


def to_html(blocks: Iterable[Block], most_rows: int | None = None) -> str:
    """The blocks as HTML without script or style, every text escaped; of a table at most so many rows."""
    return "".join(_html_parts(blocks, most_rows))


def to_page(title: str, blocks: Iterable[Block]) -> str:
    """The blocks as one HTML file that needs no other file and no network, light or dark as its reader is."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style>"
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{to_html(blocks)}\n</body></html>\n'


def verdict_colour(cell: str) -> str:
    """The colour of the verdict that a cell says, by its sign and words: better, worse, or "" for none."""
    colours = {v.traits.colour for v in Verdict if f" {v.label} " in f" {cell} "}
    return colours.pop() if len(colours) == 1 else ""


def _markdown_lines(block: Block) -> list[str]:
    match block:
        case Heading(text, level):
            words = _in_markdown(text)
            return [f"### {words}" if level == 1 else f"**{words}**"]
        case Line(text, label):
            return [f"**{markdown.cell(label)}:** {_in_markdown(text)}" if label else _in_markdown(text)]
        case Notes(lines):
            return [f"- {_in_markdown(line)}" for line in lines]
        case Table(head, rows, right):
            return markdown.table(head, ([_in_markdown(cell) for cell in row] for row in rows), right=right)
        case Preformatted(lines):
            return markdown.fenced(lines)
        case Findings(items):
            found = ((_in_markdown(i.subject), "<br>".join(map(_in_markdown, i.lines))) for i in items)
            return markdown.table(("what", "finding"), found)
        case Chart():
            return _markdown_lines(block.table())
        case Fold(summary, blocks):
            return markdown.folded(summary, to_markdown(blocks).rstrip("\n").split("\n"))


def _html_parts(blocks: Iterable[Block], most_rows: int | None) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading(text, level):
                tag = "h3" if level == 1 else "h4"
                yield f"<{tag}>{_in_html(text)}</{tag}>"
            case Line(text, label):
                yield f"<p>{f'<b>{escape(label)}:</b> ' if label else ''}{_in_html(text)}</p>"
            case Notes(lines):
                items = "".join(f"<li>{_in_html(line)}</li>" for line in lines)
                yield f"<ul>{items}</ul>" if items else ""
            case Table(head, rows, right):
                yield _html_table(head, rows[:most_rows], right)
                if most_rows is not None and len(rows) > most_rows:
                    yield f"<p>and {len(rows) - most_rows} more rows: to_frame()</p>"
            case Preformatted(lines):
                yield f"<pre>{escape(chr(10).join(lines))}</pre>"
            case Findings(items):
                rows_of_lines = [(item.subject, item.lines) for item in items]
                body = "".join(
                    f"<tr><td>{_in_html(subject)}</td><td>{'<br>'.join(map(_in_html, lines))}</td></tr>"
                    for subject, lines in rows_of_lines
                )
                yield f"<table><tbody>{body}</tbody></table>"
            case Chart(title, unit, lines):
                yield draw(lines, unit, title)
            case Fold(summary, folded):
                inner = to_html(folded, most_rows)
                yield f"<details><summary>{escape(summary)}</summary>{inner}</details>"


def _html_table(head: Sequence[str], rows: Iterable[Sequence[Phrase]], right: Collection[int]) -> str:
    names = "".join(f"<th{_align(index, right)}>{escape(name)}</th>" for index, name in enumerate(head))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{_align(index, right)}{_class(cell)}>{_in_html(cell)}</td>" for index, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    thead = f"<thead><tr>{names}</tr></thead>" if any(head) else ""
    return f"<table>{thead}<tbody>{body}</tbody></table>"


def _align(index: int, right: Collection[int]) -> str:
    return f' align="{"right" if index in right else "left"}"'


def _class(cell: Phrase) -> str:
    colour = verdict_colour(plain(cell))
    return f' class="{colour}"' if colour else ""


def _written(phrase: Phrase, text: Callable[[str], str], name: Callable[[str], str], link: str) -> str:
    """A phrase with each part written by its kind; `link` is a pattern of name and address."""
    parts = phrase if isinstance(phrase, tuple) else (phrase,)
    return "".join(
        link.format(name=name(part.name), address=part.address)
        if isinstance(part, Link)
        else (name if isinstance(part, Name) else text)(str(part))
        for part in parts
    )


def _in_markdown(phrase: Phrase) -> str:
    return _written(phrase, markdown.cell, markdown.code, "[{name}]({address})")


def _in_html(phrase: Phrase) -> str:
    if isinstance(phrase, Link):
        phrase = Link(phrase.name, escape(phrase.address))
    return _written(
        phrase, _text_in_html, lambda name: f"<code>{escape(name)}</code>", '<a href="{address}">{name}</a>'
    )


def _text_in_html(text: str) -> str:
    """A text, in which what stands between two backticks is code, as in Markdown."""
    *pairs, last = escape(text).split("`")
    if len(pairs) % 2:  # a backtick without its partner is a backtick
        return escape(text)
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate([*pairs, last]))
