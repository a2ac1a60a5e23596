"""An answer of the commands as HTML: its blocks with verdicts in colour, units small, gaps hatched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape

from profiler.documents.blocks import (
    Block,
    Chart,
    Findings,
    Fold,
    Gap,
    Heading,
    Hinted,
    Inline,
    Line,
    Link,
    Name,
    Notes,
    Number,
    Phrase,
    Preformatted,
    Share,
    Table,
    VerdictText,
    plain,
)
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

_LONG = 20  # letters of a cell: a column of longer ones breaks its lines


def html(blocks: Iterable[Block], name: str = "") -> Html:
    """The blocks of an answer, or a part of them; `name` is what a screen reader calls a table above which
    there is no heading."""
    return Html("".join(_parts(blocks, name)))


def table(
    block: Table, name: str, links: Mapping[str, str] | None = None, selected: str = "", css: str = ""
) -> Html:
    """A table of an answer; a first cell that `links` has is a link to there, `selected` the row chosen."""
    links = links or {}
    rows = []
    for cells in block.rows:
        key = plain(cells[0])
        first = inline(cells[0])
        linked = markup.link(links[key], first) if key in links else first
        rows.append(Row((linked, *map(inline, cells[1:])), selected=key == selected != ""))
    return markup.table(name, _columns(block), rows, css)


def inline(phrase: Phrase) -> Html:
    """A phrase: its parts one after the other."""
    parts = phrase if isinstance(phrase, tuple) else (phrase,)
    return markup.join(map(_inline, parts), "")


def _inline(part: Inline) -> Html:
    match part:
        case Link(name, address):
            return markup.link(address, markup.code(name))
        case Number(value, about):
            return markup.tag("span", markup.value(value), title=about) if about else markup.value(value)
        case Share(share) if share is not None:
            bar = f'<span class="lbar"><i style="width:{100 * min(share, 1.0):.2f}%"></i></span>'
            number = markup.tag("span", markup.quantity(*str(part).split(" ", 1)))
            return Html(f'<span class="share">{bar}{number}</span>')
        case VerdictText(verdict, change, reason):
            return markup.verdict(verdict, change, reason)
        case Hinted(text, hint):
            return markup.tag("span", _inline(text), title=hint)
        case Gap():
            return markup.state(part)
        case Name():
            return markup.code(part) if " " in part else markup.cut_name(part, part)
        case _:
            return _words(str(part))


def _words(text: str) -> Html:
    if text == "–":
        return markup.muted(text)
    # A space at an end parts the words from the next part of a phrase.
    return Html(" " * text.startswith(" ") + markup.sentence(text) + " " * text.endswith(" "))


def _parts(blocks: Iterable[Block], name: str) -> Iterator[Html]:
    for block in blocks:
        match block:
            case Heading(text):
                name = plain(text)
                yield markup.section_head(inline(text))
            case Line(text, label):
                yield markup.paragraph(
                    markup.join((markup.tag("b", f"{label}:") if label else "", inline(text)))
                )
            case Notes(lines):
                yield from (markup.note(inline(line)) for line in lines)
            case Table():
                yield table(block, name)
            case Preformatted(lines):
                yield Html(f'<pre class="k">{escape(chr(10).join(lines))}</pre>')
            case Findings(items):
                columns = (Column("what", wrap=True), Column("finding", wrap=True))
                rows = [Row((inline(i.subject), markup.join(map(inline, i.lines), "<br>"))) for i in items]
                yield markup.table(name, columns, rows)
            case Chart(title):
                yield table(block.table(), title)
            case Fold(summary, folded):
                yield markup.fold(summary, [html(folded, summary)])


def _columns(block: Table) -> list[Column]:
    columns = []
    for index, head in enumerate(block.head):
        is_long = any(len(plain(row[index])) > _LONG for row in block.rows)
        columns.append(Column(head, index in block.right, index in block.wide, wrap=is_long))
    return columns
