"""Many versions or runs beside each other, by workload and metric, with verdicts against one of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby

from profiler.documents.blocks import Block, Fold, Heading, Name, Notes, Table
from profiler.documents.document import Document
from profiler.evidence import formatting
from profiler.evidence.cell import Cell
from profiler.evidence.values import Evidence, Value
from profiler.history.lineage import BASELINE, PLANNED, REJECTED, WRONG
from profiler.statistics.decision import Interval, change_text
from profiler.statistics.verdict import Verdict, heaviest

FACTS_SHOWN = 3  # workloads and architectures whose facts people get unasked
LATENCY = "latency"  # the concept of timed calls, which metrics.txt has no line for
MODELLED_TIME = "modelled_time"  # of machine code that no GPU ran: no line of metrics.txt either
PRESENT = "present"
_LEAST_BAR = 0.06  # of a bar's length: the smallest number is seen too
LEAST_SPAN = 1.25  # ratio that a whole scale spans at least: numbers that hardly differ look alike
NOT_TIMED = {
    Evidence.MEASURED: "not measured",
    Evidence.STATIC: "no static facts",
    Evidence.MODELLED: "not run on the CPU",
}


@dataclass(frozen=True)
class TableColumn:
    """One metric on one workload, GPU and kind of evidence."""

    workload: (
        str  # without the dtype, so that versions of several dtypes share a column; "" where nobody said
    )
    gpu: str  # of static facts the architecture
    evidence: Evidence
    concept: str  # LATENCY, or a concept of metrics.txt
    label: str
    unit: str
    better: str  # lower, higher or -, as in metrics.txt
    is_time: bool = False  # the time of its workload: timed calls, or ncu's duration where nobody timed any
    mode: str = ""  # of timed calls
    kernel: str = ""  # of counters: the baseline's launch

    @property
    def place(self) -> Cell:
        """Evidence, GPU and workload."""
        return Cell("", "", self.workload, self.gpu, self.evidence)

    @property
    def place_words(self) -> str:
        """Workload and GPU in words."""
        return " on ".join(filter(None, (self.workload or "any workload", self.gpu)))

    @property
    def heading(self) -> str:
        """What tells the column from all others in a flat table."""
        return ", ".join(filter(None, (self.label, self.workload, self.gpu)))


@dataclass(frozen=True)
class TableCell:
    """What one version has in a column, and the verdict on it."""

    value: Value | None  # None: there is no result, for the reason that `state` says
    state: str = PRESENT  # wrong, not measured, or the words of the value's state
    baseline: Value | None = None  # what the baseline has beside it: of timed calls in the same run
    change_pct: float | None = None  # of the baseline
    verdict: Verdict | None = None  # None: not judged, as the baseline itself
    interval: Interval | None = None  # of the change, as shares of the baseline
    reason: str = ""
    run_id: str | None = None
    command: str = ""  # what would settle an unclear or missing verdict

    @property
    def number(self) -> float | None:
        """The number in base units; None where there is none."""
        return None if self.value is None or self.value.number is None else float(self.value.number)

    @property
    def is_moved(self) -> bool:
        """Whether it is better or worse than the baseline."""
        return self.verdict is not None and self.verdict.traits.moved


@dataclass(frozen=True)
class TableRow:
    """One version, as all its runs or as one run has it, or one report file."""

    name: str  # family/version, family/version~run, or a file
    cells: tuple[TableCell, ...]  # in the order of the columns
    state: str = ""  # good, wrong, rejected, planned or baseline, as in the lineage; "" without a catalogue
    reason: str = ""  # why it is wrong or planned
    command: str = ""  # what measures it, where nothing is measured
    is_baseline: bool = False
    workloads: Mapping[Cell, str] = field(default_factory=dict)  # by place, as its runs name them

    @property
    def is_wrong(self) -> bool:
        """Whether it has no speed, because its results are wrong or it was rejected."""
        return self.state in (WRONG, REJECTED)

    @property
    def is_of_others(self) -> bool:
        """Whether it is an external baseline, which is not judged."""
        return self.state == BASELINE and not self.is_baseline

    @property
    def is_planned(self) -> bool:
        """Whether nothing is known of it yet."""
        return self.state == PLANNED

    @property
    def short_name(self) -> str:
        """The name without the family; of a run the day and time stand after it."""
        version, mark, run_id = self.name.rpartition("~")
        short = (version if mark else self.name).rpartition("/")[2]
        return f"{short} {run_id.partition('-')[0]}" if mark else short


@dataclass(frozen=True)
class TableSection:
    """The text of one workload, GPU and kind of evidence, or of several that are equal."""

    evidence: Evidence
    places: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def heading(self) -> str:
        """Kind of evidence and places."""
        return f"{self.evidence}: {'; '.join(self.places)}"


@dataclass(frozen=True, repr=False)
class VersionTableDocument(Document):
    """Versions x workloads x metrics, with verdicts against a baseline that are judged as one table."""

    table_columns: tuple[TableColumn, ...]
    table_rows: tuple[TableRow, ...]  # in the order in which they were asked for
    notes: tuple[str, ...] = ()  # a sentence for what has no column, and for which launch counters are of

    columns = (
        "version",
        "state",
        "baseline",
        "workload",
        "gpu",
        "evidence",
        "concept",
        "label",
        "mode",
        "kernel",
        "unit",
        "value",
        "value_state",
        "baseline_value",
        "change_pct",
        "change_low_pct",
        "change_high_pct",
        "verdict",
        "reason",
        "run_id",
        "command",
    )

    @cached_property
    def baseline(self) -> TableRow:
        """The row that the others are judged against."""
        return next(row for row in self.table_rows if row.is_baseline)

    @property
    def title(self) -> str:
        """How many versions, against which."""
        count = len(self.table_rows) - 1
        return f"{count} version{'s' * (count != 1)} against {self.baseline.name}"

    @cached_property
    def time_columns(self) -> tuple[int, ...]:
        """The positions of the columns that hold the time of a workload."""
        return tuple(at for at, column in enumerate(self.table_columns) if column.is_time)

    @cached_property
    def positions_by_place(self) -> dict[Cell, list[int]]:
        """The positions of the columns of each place."""
        positions: dict[Cell, list[int]] = {}
        for at, column in enumerate(self.table_columns):
            positions.setdefault(column.place, []).append(at)
        return positions

    def bar_share(self, position: int, number: float) -> float:
        """How long a number's bar is, 0 to 1, on a logarithmic scale from the smallest of its column."""
        numbers = [n for row in self.table_rows if (n := row.cells[position].number) is not None and n > 0]
        low, high = min(numbers, default=0.0), max(numbers, default=0.0)
        if number <= 0 or high <= low:
            return _LEAST_BAR
        span = max(high / low, LEAST_SPAN)
        return _LEAST_BAR + (1 - _LEAST_BAR) * math.log(number / low) / math.log(span)

    @property
    def verdict(self) -> Verdict:
        """The heaviest verdict on a time; on a fact where nothing is measured."""
        return heaviest(
            cell.verdict
            for row in self.table_rows
            for cell in self._deciding(row)
            if cell.verdict is not None
        )

    def verdict_counts(self, row: TableRow) -> Mapping[Verdict, int]:
        """How many of each verdict a row has: on times; on judged facts where nobody timed any."""
        return Counter(cell.verdict for cell in self._deciding(row) if cell.verdict is not None)

    def _deciding(self, row: TableRow) -> list[TableCell]:
        positions = self.time_columns or [
            at
            for at, column in enumerate(self.table_columns)
            if column.better != "-" or any(own.cells[at].is_moved for own in self.table_rows)
        ]
        return [row.cells[at] for at in positions]

    @property
    def headline(self) -> str:
        """The version that is better most often, how often it is, and whose kernels it still lies behind."""
        judged = [row for row in self.table_rows if not (row.is_baseline or row.is_wrong or row.is_of_others)]
        judged = [row for row in judged if self.verdict_counts(row)]
        if not judged:
            return f"Nothing here can be judged against {self.baseline.short_name}."
        best = max(judged, key=self.lead)
        counts = self.verdict_counts(best)
        total = sum(counts.values())
        what = "workload" if self.time_columns else "judged fact"
        parts = [f"{count} {verdict.label}" for verdict, count in sorted(counts.items(), key=_decided_first)]
        names = f"{best.short_name} against {self.baseline.short_name}"
        words = f"{names}: of {total} {what}{'s' * (total != 1)} {', '.join(parts)}"
        modelled = self._modelled_words(best)
        behind = list(filter(None, (self._behind(best, at) for at in self.time_columns)))
        more = f" and on {len(behind) - 1} more" if len(behind) > 1 else ""
        return f"{words}{modelled}" + (f"; it lies behind {behind[0]}{more}" if behind else "")

    def _modelled_words(self, row: TableRow) -> str:
        """On how many workloads and GPUs a row's modelled time is shorter, longer or unclear; "" without."""
        counts: Counter[str] = Counter()
        for column, cell in zip(self.table_columns, row.cells, strict=True):
            if column.place.is_modelled_time and cell.verdict is not None and cell.change_pct is not None:
                moved = "faster" if cell.change_pct < 0 else "slower"
                counts["unclear" if cell.verdict is Verdict.UNCLEAR else moved] += 1
        parts = [f"{word} on {count}" for word, count in counts.most_common()]
        return f"; modelled time, not measured: {', '.join(parts)} of {counts.total()}" if parts else ""

    def lead(self, row: TableRow) -> tuple[int, float]:
        """A sort key: by how many more verdicts are better than worse, then by the mean change of times."""
        counts = self.verdict_counts(row)
        changes = [change for at in self.time_columns if (change := row.cells[at].change_pct) is not None]
        mean = sum(changes) / len(changes) if changes else 0.0
        return counts.get(Verdict.BETTER, 0) - counts.get(Verdict.WORSE, 0), -mean

    def _behind(self, row: TableRow, position: int) -> str:
        """The fastest kernel of others in a column that a row is slower than; "" where it is not."""
        own = row.cells[position].number
        others = [
            (number, other.short_name)
            for other in self.table_rows
            if other.is_of_others and (number := other.cells[position].number) is not None
        ]
        if own is None or not others or min(others)[0] >= own:
            return ""
        number, name = min(others)
        column = self.table_columns[position]
        return f"{name} at {column.workload}, {formatting.TIMES}{formatting.digits(number / own)}"

    @property
    def sentences(self) -> Sequence[str]:
        """A sentence a version: how often it is better or worse; why it is wrong; what is not known of it."""
        what = "workload" if self.time_columns else "judged fact"
        return [
            *(self._sentence(row, what) for row in self.table_rows if not row.is_baseline),
            *self.notes,
        ]

    def _sentence(self, row: TableRow, what: str) -> str:
        if row.is_wrong:
            return f"{row.name} is {row.state}: {row.reason or 'its check failed'}"
        if row.is_planned:
            return f"{row.name} is planned: {row.reason}"
        if row.is_of_others:
            return f"{row.name} is an external baseline: timed in the same run, not judged"
        if row.command and self.time_columns:
            return f"{row.name} is not measured: `{row.command}`"
        counts = self.verdict_counts(row)
        total = sum(counts.values())
        words = ", ".join(f"{count} {verdict.words}" for verdict, count in counts.items())
        of_all = f"of {total} {what}{'s' * (total != 1)} {words}" if words else "nothing to judge"
        return f"{row.name} against {self.baseline.name}: {of_all}"

    def rows(self) -> list[tuple[object, ...]]:
        """The long form: a row a version and column. Numbers are in base units, changes in per cent."""
        return [
            (
                row.name,
                row.state or None,
                self.baseline.name,
                column.workload or None,
                column.gpu or None,
                column.evidence.value,
                column.concept,
                column.label,
                column.mode or None,
                column.kernel or None,
                column.unit,
                cell.number,
                cell.state,
                None if cell.baseline is None else cell.baseline.number,
                cell.change_pct,
                *((100 * end for end in cell.interval) if cell.interval else (None, None)),
                cell.verdict.value if cell.verdict else None,
                cell.reason or None,
                cell.run_id,
                cell.command or None,
            )
            for row in self.table_rows
            for column, cell in zip(self.table_columns, row.cells, strict=True)
        ]

    def _content(self) -> dict[str, object]:
        """Columns, then versions with a cell a column; numbers in base units, null where there is none."""
        return {
            "baseline": self.baseline.name,
            "columns": [_column_dict(column) for column in self.table_columns],
            "versions": [
                {
                    "name": row.name,
                    "state": row.state or None,
                    "reason": row.reason or None,
                    "command": row.command or None,
                    "is_baseline": row.is_baseline,
                    "cells": [_cell_dict(cell) for cell in row.cells],
                }
                for row in self.table_rows
            ],
            "sentences": list(self.sentences),
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A sentence a version, then a table for each workload and kind of evidence; equal ones once.

        Facts on more than FACTS_SHOWN places are folded; a terminal has them with `everything`.
        """
        yield Heading(self.title, 1)
        yield Notes(self.sentences)
        for evidence, group in groupby(self.sections(), key=lambda section: section.evidence):
            sections = list(group)
            shown = len(sections) if evidence is Evidence.MEASURED else FACTS_SHOWN
            yield from chain.from_iterable(map(_section_blocks, sections[:shown]))
            if more := sections[shown:]:
                summary = f"{len(more)} more table{'s' * (len(more) > 1)} of {evidence} facts"
                instead = "" if everything else f"{summary}: --workload or --gpu; all with --out FILE"
                yield Fold(summary, [*chain.from_iterable(map(_section_blocks, more))], instead)

    def sections(self) -> list[TableSection]:
        """The table as text, one for each workload, GPU and kind of evidence; equal ones once.

        Modelled times are one for each GPU.
        """
        sections: dict[tuple[object, ...], TableSection] = {}
        for gpu, positions in self._modelled_times_by_gpu().items():
            header = ("version", *(self.table_columns[at].workload for at in positions))
            rows = tuple(
                (row.short_name, *(self.cell_text(row, at) for at in positions))
                for row in sorted_rows(self, positions[0])
            )
            place = f"time on {gpu}"
            sections[place,] = TableSection(Evidence.MODELLED, (place,), header, rows)
        for place_of_rows, at_place in self.positions_by_place.items():
            evidence = place_of_rows.evidence
            if place_of_rows.is_modelled_time:
                continue
            header = ("version", *(self.table_columns[at].label for at in at_place))
            rows = tuple(
                (row.short_name, *(self.cell_text(row, at) for at in at_place))
                for row in sorted_rows(self, at_place[0])
            )
            place = self.table_columns[at_place[0]].place_words
            equal = sections.get((evidence, header, rows))
            places = (*equal.places, place) if equal else (place,)
            sections[evidence, header, rows] = TableSection(evidence, places, header, rows)
        return sorted(sections.values(), key=lambda section: section.evidence is not Evidence.MEASURED)

    def _modelled_times_by_gpu(self) -> dict[str, list[int]]:
        positions: dict[str, list[int]] = {}
        for at, column in enumerate(self.table_columns):
            if column.place.is_modelled_time:
                positions.setdefault(column.gpu, []).append(at)
        return positions

    def cell_text(self, row: TableRow, position: int) -> str:
        """A cell on one line: the value, its change and the verdict, or why there is none."""
        cell = row.cells[position]
        if cell.value is None or cell.number is None:
            return cell.state
        value = formatting.without_word_unit(cell.value)
        if row.is_baseline or row.is_wrong:
            return value
        change = cell_change(cell)
        if cell.verdict is None or cell.verdict is Verdict.CHANGED:
            return f"{value} ({change})" if change else value
        if cell.verdict is Verdict.SAME and cell.value == cell.baseline:
            return f"{value} {cell.verdict.label}"
        return f"{value} {cell.verdict.label} {change}".rstrip()


def _section_blocks(section: TableSection) -> Iterator[Block]:
    yield Heading(section.heading)
    rows = [(Name(name), *cells) for name, *cells in section.rows]
    yield Table(section.header, rows, right=range(1, len(section.header)))


def _decided_first(count: tuple[Verdict, int]) -> tuple[bool, int]:
    verdict, number = count
    return not verdict.traits.moved, -number


def cell_change(cell: TableCell) -> str:
    """The change against the baseline as text; "" where there is none."""
    if cell.change_pct is not None and cell.verdict is not None and cell.interval is not None:
        return change_text(cell.change_pct / 100)
    if cell.value is None or cell.baseline is None:
        return ""
    return formatting.change(cell.baseline, cell.value)


def sorted_rows(
    table: VersionTableDocument, position: int | None, *, reverse: bool = False, by_change: bool = False
) -> list[TableRow]:
    """The rows by their number in a column, smallest first; None: in the order in which they were asked for.

    With `by_change` by the change against the baseline, which is 0 of the baseline itself. Rows without a
    number come after those with one, then kernels of others, then what is wrong; `reverse` leaves that so.
    """

    def number(row: TableRow) -> float | None:
        if position is None:
            return None
        cell = row.cells[position]
        if not by_change:
            return cell.number
        return 0.0 if row.is_baseline and cell.number is not None else cell.change_pct

    def key(row: TableRow) -> tuple[int, float]:
        at = number(row)
        if row.is_of_others:
            return 3, 0.0 if at is None else at
        if row.is_wrong:
            return 2, 0.0
        if at is None:
            return (0 if position is None else 1), 0.0
        return 0, -at if reverse else at

    return sorted(table.table_rows, key=key)


def _column_dict(column: TableColumn) -> dict[str, object]:
    return {
        "workload": column.workload or None,
        "gpu": column.gpu or None,
        "evidence": column.evidence.value,
        "concept": column.concept,
        "label": column.label,
        "unit": column.unit,
        "better": column.better,
        "is_time": column.is_time,
        "mode": column.mode or None,
        "kernel": column.kernel or None,
    }


def _cell_dict(cell: TableCell) -> dict[str, object]:
    return {
        "value": cell.number,
        "state": cell.state,
        "baseline_value": None if cell.baseline is None else cell.baseline.number,
        "change_pct": cell.change_pct,
        "interval_pct": [100 * end for end in cell.interval] if cell.interval else None,
        "verdict": cell.verdict.value if cell.verdict else None,
        "reason": cell.reason or None,
        "run_id": cell.run_id,
        "command": cell.command or None,
    }
