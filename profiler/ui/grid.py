"""Long listings as markup: a grid whose rows are drawn when they come into sight, heat, pages of rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Protocol

from profiler import present
from profiler.ui import markup
from profiler.ui.markup import Html
from profiler.values import Value

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
    start = min(int(asked), max(total - 1, 0)) // size * size if asked.isdecimal() else 0
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


class Heat(Protocol):
    """Makes the cell of a count, tinted by how it compares with the others of its column."""

    def __call__(self, amount: float | None, css: str = "") -> str: ...


def heat(amounts: Iterable[float | None]) -> Heat:
    """Cells of counts, darker by the root of a count's share of the largest: small ones are seen too.

    No count is an empty cell.
    """
    largest = max((amount for amount in amounts if amount), default=0.0)

    def cell_of(amount: float | None, css: str = "") -> str:
        shown = "" if amount is None else count(amount)
        return f'<span role="cell" class="r {level(amount, largest)}{css}">{shown}</span>'

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
    """Rows of a grid, not of a table: a browser skips those out of sight, so that 5,000 open at once."""
    heads = (
        f'<span role="columnheader" class="{"w " * one.wide}{"r" * one.right}">{escape(one.head)}</span>'
        for one in columns
    )
    top = f'<div role="row" class="t">{"".join(heads)}</div>'
    every = " ".join(one.width for one in columns)
    phone = " ".join(one.width for one in columns if not one.wide)
    if BETWEEN not in columns:  # the text wraps; two sides scroll
        phone = re.sub(r"minmax\(\d+px", "minmax(0", phone)
    style = f"--cols:{every};--phone:{phone}"
    return Html(f'<div class="k code" role="table" tabindex="0" style="{style}">{top}{"".join(lines)}</div>')


def cell(text: str, css: str = "") -> str:
    """A cell of text, escaped."""
    attribute = f' class="{css}"' if css else ""
    return f'<span role="cell"{attribute}>{escape(text)}</span>'


def text(told: str | None, place: str) -> str:
    """The cell of an instruction; without text what is known of it, its source line."""
    return cell(told) if told else cell(f"??? {place}".rstrip(), "m")


@lru_cache(maxsize=50_000)
def count(amount: float) -> str:
    """A count: written out below 10 000, then with three digits and a prefix."""
    return str(present.quantity(Value(round(amount))))


def head(text: str) -> str:
    """A row that spans the grid: the head of a group, or a count of what is left out."""
    return f'<div role="row" class="g"><b role="cell">{escape(text)}</b></div>'


def sign(text: str) -> str:
    """The cell between two sides."""
    return f'<span role="cell" class="z">{text}</span>'


def row(cells: Sequence[str], different: bool = False) -> str:
    """A row of cells; one that differs is tinted."""
    changed = ' class="d"' if different else ""
    return f'<div role="row"{changed}>{"".join(cells)}</div>'
