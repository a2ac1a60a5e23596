"""Long listings as markup: a grid whose rows are drawn when they come into sight, heat, pages of rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Protocol

from profiler.evidence import Value, formatting
from profiler.ui import markup
from profiler.ui.markup import Html

_DIGITS = 15  # of a row's number: an address may say anything
LONGEST = 500  # characters of a cell: more is no line that anybody reads
# Characters that turn the order of those around them: what is shown would not be what was compiled.
_TURNS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
LEVELS = 8  # of the heat, by the root of a count's share of the largest


@dataclass(frozen=True)
class Window:
    """Which rows of a long table are drawn; the others are a link away and counted."""

    start: int
    stop: int
    total: int
    size: int  # rows of a full page

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.stop - self.start == self.total


def window(total: int, asked: str, size: int) -> Window:
    """The page of rows in which row `asked` stands; the first where that is no number."""
    place = int(asked[:_DIGITS]) if asked.isdecimal() else 0
    start = min(place, max(total - 1, 0)) // size * size
    return Window(start, min(start + size, total), total, size)


def pager(shown: Window, address: Callable[[int], str]) -> Html:
    """How many rows there are beside those drawn, and the way to them; nothing where all are."""
    if shown.whole:
        return Html("")
    told: list[object] = [f"rows {count(shown.start + 1)} to {count(shown.stop)} of {count(shown.total)}"]
    if shown.start:
        told.append(markup.link(address(max(0, shown.start - shown.size)), "‹ before"))
    if shown.stop < shown.total:
        told.append(markup.link(address(shown.stop), "after ›"))
    return markup.note(markup.join(told, " · "))


Cell = tuple[str, str]  # class and text, escaped; one without text takes no room in the page


class Heat(Protocol):
    """Makes the cell of a count, tinted by how it compares with the others of its column."""

    def __call__(self, amount: float | None, css: str = "") -> Cell: ...


def heat(amounts: Iterable[float | None]) -> Heat:
    """Cells of counts, darker by the root of a count's share of the largest: small ones are seen too.

    No count is an empty cell.
    """
    largest = max((amount for amount in amounts if amount), default=0.0)

    def cell_of(amount: float | None, css: str = "") -> Cell:
        return f"r {level(amount, largest)}{css}", "" if amount is None else count(amount)

    return cell_of


def level(amount: float | None, largest: float) -> str:
    """The class that tints a count; none for no count and for 0."""
    return f"h{math.ceil(LEVELS * math.sqrt(amount / largest))}" if amount and largest else ""


@dataclass(frozen=True)
class Column:
    """A column of a grid; `wide` ones go on a phone (their cells have the class w)."""

    head: str
    width: str
    wide: bool = False
    right: bool = False  # holds numbers


BETWEEN = Column("", "22px")  # two sides


def table(columns: Sequence[Column], lines: Sequence[str]) -> Html:
    """Rows of a grid, not of a table: a browser skips those out of sight, so that 5,000 open at once.

    Cells find their column by its name (c0, c1 …), so that empty ones need not be there.
    """
    heads: list[Cell] = [("w " * one.wide + "r" * one.right, escape(one.head)) for one in columns]
    named = [(f"[c{index}] {one.width}", one.wide) for index, one in enumerate(columns)]
    every, phone = " ".join(text for text, _ in named), " ".join(text for text, wide in named if not wide)
    if BETWEEN not in columns:  # the text wraps; two sides scroll
        phone = re.sub(r"minmax\(\d+px", "minmax(0", phone)
    style = f"--cols:{every};--phone:{phone}"
    body = "".join((_line(heads, "t"), *lines))
    return Html(
        f'<div class="k code" role="region" aria-label="code" tabindex="0" style="{style}">{body}</div>'
    )


def row(cells: Sequence[Cell], different: bool = False) -> str:
    """A row of cells in the order of the columns; one that differs is tinted."""
    return _line(cells, "d" if different else "")


def head(text: str) -> str:
    """A row that spans the grid: the head of a group, or a count of what is left out."""
    return f'<div class="g"><b>{_shown(text)}</b></div>'


def _line(cells: Sequence[Cell], css: str) -> str:
    shown = "".join(
        f'<span class="c{index} {name}">{text}</span>' for index, (name, text) in enumerate(cells) if text
    )
    return f'<div class="{css}">{shown}</div>' if css else f"<div>{shown}</div>"


def cell(text: str, css: str = "") -> Cell:
    """A cell of text, the end of a very long one left out and counted."""
    return css, _shown(text)


def _shown(text: str) -> str:
    """The text escaped, with what reorders or overflows it made visible."""
    if not text.isascii():
        text = _TURNS.sub(lambda one: f"⟨U+{ord(one[0]):04X}⟩", text)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} ⋯ {count(len(text) - LONGEST)} more characters"
    return escape(text)


def text(told: str | None, place: str) -> Cell:
    """The cell of an instruction; without text what is known of it, its source line."""
    return cell(told) if told else cell(f"??? {place}".rstrip(), "m")


def sign(text: str) -> Cell:
    """The cell between two sides."""
    return "z", escape(text)


@lru_cache(maxsize=50_000)
def count(amount: float) -> str:
    """A count: written out below 10 000, then with three digits and a prefix."""
    return str(formatting.quantity(Value(round(amount))))
