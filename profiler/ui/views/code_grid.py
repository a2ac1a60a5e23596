"""Long listings: a grid whose rows are drawn when they come into sight, heat, pages of rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Protocol

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.sass.alignment import KIND_WORDS, Alignment
from profiler.ui import markup
from profiler.ui.markup import Html

LONGEST = 500  # characters of a cell: more is no line that anybody reads
LEVELS = 8  # of the heat
_ABOVE_A_MARK = 6  # rows that stand before a marked one
_WORTH_A_FOLD = 10  # rows
_MAX_DIGITS = 15  # of a row's number: an address may say anything
# Characters that turn the order of those around them: what is shown would not be what was compiled.
_TURNS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Window:
    """Which rows of a long table are drawn; the others are a link away and counted."""

    start: int
    stop: int
    total: int
    size: int  # rows of a full page

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return self.stop - self.start == self.total


def window(total: int, row_in_address: str, size: int) -> Window:
    """The page of rows in which that row stands; the first where the address names no row."""
    row = int(row_in_address[:_MAX_DIGITS]) if row_in_address.isdecimal() else 0
    start = min(row, max(total - 1, 0)) // size * size
    return Window(start, min(start + size, total), total, size)


def pager(window: Window, address: Callable[[int], str]) -> Html:
    """How many rows there are beside those drawn, and the way to them; nothing where all are."""
    if window.is_whole:
        return Html("")
    parts: list[object] = [f"rows {count(window.start + 1)} to {count(window.stop)} of {count(window.total)}"]
    if window.start:
        parts.append(markup.link(address(max(0, window.start - window.size)), "‹ before"))
    if window.stop < window.total:
        parts.append(markup.link(address(window.stop), "after ›"))
    return markup.note(markup.join(parts, " · "))


Cell = tuple[str, str]  # class and text, escaped; one without text takes no room in the page


class Heat(Protocol):
    """Makes the cell of a count, tinted by how it compares with the others of its column."""

    def __call__(self, amount: float | None, css: str = "") -> Cell: ...


def heat(amounts: Iterable[float | None]) -> Heat:
    """What makes the cells of a column of counts; no count is an empty cell."""
    largest = max((amount for amount in amounts if amount), default=0.0)

    def cell_of(amount: float | None, css: str = "") -> Cell:
        return f"r {level(amount, largest)}{css}", "" if amount is None else count(amount)

    return cell_of


def level(amount: float | None, largest: float) -> str:
    """The class that tints a count, by the root of its share of the largest, so that small ones are seen too.

    None for no count and for 0.
    """
    return f"h{math.ceil(LEVELS * math.sqrt(amount / largest))}" if amount and largest else ""


@dataclass(frozen=True)
class GridColumn:
    """A column of a grid; `wide` ones go on a phone (their cells have the class w)."""

    head: str
    px: int
    wide: bool = False
    right: bool = False  # holds numbers
    grows: bool = False  # takes the room that is left; `px` is the least it has
    below: bool = False  # on a phone a line of its own (its cells have the class below)

    def width(self, *, can_shrink: bool = False) -> str:
        """The column's track in CSS."""
        if not self.grows:
            return f"{self.px}px"
        return f"minmax({0 if can_shrink else f'{self.px}px'},1fr)"


BETWEEN = GridColumn("", 22)  # two sides


def table(columns: Sequence[GridColumn], lines: Sequence[str], above: int = 0) -> Html:
    """Rows of a grid, not of a table: a browser skips those out of sight, so that 5,000 open at once.

    Cells find their column by its name (c0, c1 …), so that empty ones need not be there. The first `above`
    rows are folded: the grid begins where an address points to.
    """
    has_two_sides = BETWEEN in columns  # they scroll on a phone, where the text of one side wraps
    named = [(f"c{index}", column) for index, column in enumerate(columns)]
    all_tracks = " ".join(f"[{name}] {column.width()}" for name, column in named)
    phone_tracks = " ".join(
        f"[{name}] {column.width(can_shrink=not has_two_sides)}"
        for name, column in named
        if not column.wide and not column.below
    )
    style = f"--cols:{all_tracks};--phone:{phone_tracks}"
    heads: list[Cell] = [
        ("w " * column.wide + "below " * column.below + "r" * column.right, escape(column.head))
        for column in columns
    ]
    body = "".join((_line(heads, "t"), _folded(lines[:above]), *lines[above:]))
    return Html(
        f'<div class="k code" role="region" aria-label="code" tabindex="0" style="{style}">{body}</div>'
    )


def rows_above(is_marked: Sequence[bool]) -> int:
    """How many rows to fold, so that the first marked one stands near the top of its grid; 0 without one."""
    first = next((index for index, marked in enumerate(is_marked) if marked), 0)
    above = first - _ABOVE_A_MARK
    return above if above >= _WORTH_A_FOLD else 0


def row(cells: Sequence[Cell], different: bool = False, marked: bool = False) -> str:
    """A row of cells in the order of the columns; one that differs, or that an address means, is tinted."""
    return _line(cells, "sel" if marked else "d" if different else "")


def head(text: str, marked: bool = False) -> str:
    """A row that spans the grid: the head of a group, or a count of what is left out."""
    return f'<div class="g{" sel" * marked}"><b>{_visible(text)}</b></div>'


def cell(text: str, css: str = "") -> Cell:
    """A cell of text, the end of a very long one left out and counted."""
    return css, _visible(text)


def instruction(text: str | None, source: str) -> Cell:
    """The cell of an instruction; without text what is known of it, its source line."""
    return cell(text) if text else cell(f"??? {source}".rstrip(), "m")


def sign(text: str) -> Cell:
    """The cell between two sides."""
    return "z", escape(text)


@lru_cache(maxsize=50_000)
def count(amount: float) -> str:
    """A count: written out below 10 000, then with three digits and a prefix."""
    return str(formatting.quantity(Value(round(amount))))


def row_counts(alignment: Alignment) -> str:
    """How many rows of two listings are equal, changed and so on, in words."""
    counts = {kind: number for kind, number in alignment.counts.items() if number}
    return ", ".join(f"{count(number)} {KIND_WORDS[kind]}" for kind, number in counts.items())


def _folded(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    words = f"⋯ {count(len(lines))} rows above"
    return f"<details><summary>{words}</summary>{''.join(lines)}</details>"


def _line(cells: Sequence[Cell], css: str) -> str:
    spans = "".join(
        f'<span class="c{index} {name}">{text}</span>' for index, (name, text) in enumerate(cells) if text
    )
    return f'<div class="{css}">{spans}</div>' if css else f"<div>{spans}</div>"


def _visible(text: str) -> str:
    """The text escaped, with what reorders or overflows it made visible."""
    if not text.isascii():
        text = _TURNS.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} ⋯ {count(len(text) - LONGEST)} more characters"
    return escape(text)
