"""What every answer can be turned into: JSON, a pandas frame, CSV, Parquet, Markdown, HTML for a notebook.

To add a format: a method `to_FORMAT` here, made from `columns`, `rows()`, `sentences` and `to_dict()`, and
its flag in `print_document` of `profiler/cli/output.py`. A format of one answer (JUnit of a gate) is a
method of that document; the gate's own, with their suffixes, are the entries of `FORMATS` in
`profiler/cli/gate.py`.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from textwrap import shorten
from typing import TYPE_CHECKING, ClassVar

from profiler.documents import blocks
from profiler.documents.blocks import Block, Heading, Line, Table
from profiler.errors import DASHBOARD_HINT, Exit, ProfilerError

if TYPE_CHECKING:
    import pandas

REPR_LENGTH = 160  # of the title in `repr`
HTML_ROWS = 60  # of a table in a notebook: as many as pandas shows


class Document(ABC):
    """An answer. A subclass says what it is called, its verdicts in words, and its rows."""

    columns: ClassVar[tuple[str, ...]]  # of `rows` and of the frame
    numbers_are: ClassVar[str] = ""  # measured, modelled or static, where no item says so

    @property
    @abstractmethod
    def title(self) -> str:
        """What was asked, as a heading."""

    @property
    @abstractmethod
    def sentences(self) -> Sequence[str]:
        """The answer in words: a sentence for each verdict, most important first."""

    @property
    def exit_code(self) -> Exit:
        """What the command that gives this answer exits with."""
        return Exit.PASS

    @abstractmethod
    def rows(self) -> list[tuple[object, ...]]:
        """A tuple in the order of `columns` for each item of the answer.

        Numbers are plain and in base units, which the column's name or a column of units says; None where
        there is no number.
        """

    @abstractmethod
    def _content(self) -> dict[str, object]:
        """What `to_dict` answers, in which sequences and words may still be of other types."""

    def to_dict(self) -> dict[str, object]:
        """The whole answer for JSON, exactly what the command prints with --json."""
        return {name: _plain(value) for name, value in self._content().items()}

    def keep(self) -> None:  # noqa: B027
        """Keep what took long to find, once the answer was given; most answers have nothing to keep."""

    def __repr__(self) -> str:
        """One line: the kind of answer, what was asked, and the verdict where the answer has one."""
        verdict = getattr(self, "verdict", None)
        title = shorten(self.title, REPR_LENGTH, placeholder=" …")
        return f"<{type(self).__name__} {title}{'' if verdict is None else f': {verdict}'}>"

    def to_frame(self) -> pandas.DataFrame:
        """`rows` as a pandas frame. Raises ProfilerError where pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise ProfilerError(f"a frame needs pandas: {DASHBOARD_HINT}, or use to_csv()") from None
        return pandas.DataFrame(self.rows(), columns=list(self.columns))

    def to_csv(self) -> str:
        """`rows` as CSV with a head; an empty field where there is no number."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows())
        return text.getvalue()

    def to_parquet(self) -> bytes:
        """`rows` as a Parquet file. Raises ProfilerError where pyarrow is not installed."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise ProfilerError(f"Parquet needs pyarrow: {DASHBOARD_HINT}, or use CSV") from None
        columns = list(zip(*self.rows(), strict=True)) or [()] * len(self.columns)
        table = pyarrow.table(
            {name: list(values) for name, values in zip(self.columns, columns, strict=True)}
        )
        target = io.BytesIO()
        pyarrow.parquet.write_table(table, target)
        return target.getvalue()

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The answer for people: heading, sentences and a table of all rows; `everything` shows more."""
        yield Heading(self.title, 1)
        yield from map(Line, self.sentences)
        if rows := self.rows():
            texts = [[cell_text(value) for value in row] for row in rows]
            yield Table(self.columns, texts, right=number_columns(rows))

    def to_markdown(self) -> str:
        """The answer for a pull request."""
        return blocks.to_markdown(self.blocks())

    def _repr_html_(self) -> str:
        """What a notebook shows, with every text escaped."""
        return blocks.to_html(self.blocks(), HTML_ROWS)


def number_columns(rows: Sequence[Sequence[object]]) -> list[int]:
    """The columns that hold numbers, and nothing else but gaps."""
    columns = enumerate(zip(*rows, strict=True))
    return [
        index
        for index, values in columns
        if any(value is not None for value in values)
        and all(value is None or _is_number(value) for value in values)
    ]


def cell_text(value: object) -> str:
    """A value of a row for people: a dash where there is none, a number with six digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: object) -> object:
    """A value as `json.loads` would give it back: lists for tuples, plain words and numbers for enums."""
    if type(value) in _PLAIN:  # most values are: a check of what is a Mapping takes longer
        return value
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


_PLAIN = frozenset((str, int, float, bool, type(None)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
