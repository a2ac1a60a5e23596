"""Versions as one page to send: how they stand, their table, their times over runs, and chosen diffs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from profiler.documents.blocks import Block, Chart, Heading, Line, Name, Phrase, Table, to_page
from profiler.documents.comparison import ComparisonDocument, compare_names
from profiler.documents.document import Document
from profiler.documents.explanation import (
    ExplanationDocument,
    cause_blocks,
    explain_comparison,
    explained,
)
from profiler.documents.line_chart import TimeLine
from profiler.documents.version_table import (
    LATENCY,
    TableColumn,
    TableRow,
    VersionTableDocument,
    cell_change,
)
from profiler.documents.version_table_cells import compare_many, main_places, table_names, table_places
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence import formatting
from profiler.evidence.cell import Cell
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Evidence
from profiler.package import VERSION
from profiler.statistics.verdict import Verdict

if TYPE_CHECKING:
    from profiler.compare.kernel_pairs import KernelPair
    from profiler.compare.resolve_names import StoreOpener

MOST_DIFFS = 3  # that are chosen unasked: those that moved most
_MOST_POINTS = 400  # of one line: the newest


@dataclass(frozen=True)
class TimeHistory:
    """The medians of one version's timed calls over its runs, oldest first."""

    column: TableColumn
    name: str  # of the row
    points: tuple[tuple[datetime, str, float], ...]  # when, in which run, ns


@dataclass(frozen=True)
class ChosenDiff:
    """One version compared with the baseline: what differs, and why where a GPU measured both."""

    name: str
    comparison: ComparisonDocument | None
    explanation: ExplanationDocument | None = None
    refusal: str = ""  # why there is no comparison


@dataclass(frozen=True, repr=False)
class VersionReportDocument(Document):
    """A table of versions with their histories and chosen diffs, which becomes one HTML file."""

    table: VersionTableDocument
    histories: tuple[TimeHistory, ...]
    diffs: tuple[ChosenDiff, ...]
    created: datetime

    columns = VersionTableDocument.columns

    @property
    def title(self) -> str:
        """How many versions, against which."""
        return self.table.title

    @property
    def verdict(self) -> Verdict:
        """That of the table."""
        return self.table.verdict

    @property
    def sentences(self) -> Sequence[str]:
        """The answer in one sentence, then a sentence a version."""
        return (self.table.headline, *self.table.sentences)

    def rows(self) -> list[tuple[object, ...]]:
        """Those of the table."""
        return self.table.rows()

    def _content(self) -> dict[str, object]:
        """The table, the medians over runs in ns, and each chosen diff as `compare` answers it."""
        return {
            "created": self.created.isoformat(),
            "headline": self.table.headline,
            "table": self.table.to_dict(),
            "histories": [
                {
                    "version": history.name,
                    "workload": history.column.workload or None,
                    "gpu": history.column.gpu or None,
                    "mode": history.column.mode,
                    "points": [
                        {"created": created.isoformat(), "run_id": run_id, "ns": ns}
                        for created, run_id, ns in history.points
                    ],
                }
                for history in self.histories
            ],
            "diffs": [
                {
                    "version": diff.name,
                    "comparison": diff.comparison.to_dict() if diff.comparison else None,
                    "refusal": diff.refusal or None,
                }
                for diff in self.diffs
            ],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """How the versions stand, the best on each workload, their table, times over the runs, the diffs."""
        yield Heading(self.title, 1)
        made = f"{formatting.timestamp(self.created)} · profiler {VERSION}"
        yield Line(f"{made} · numbers of static, modelled and measured evidence are never mixed")
        yield Line(self.table.headline, label="In one sentence")
        yield Table(("versions", "", "which"), _standings(self.table), right=(1,))
        yield from _best_blocks(self.table)
        yield Heading("Compared", 1)
        yield Line("All verdicts are judged as one table.")
        _title, *compared = self.table.blocks(everything=everything)
        yield from compared
        yield from self._history_blocks()
        for diff in self.diffs:
            yield from _diff_blocks(diff, self.table.baseline.name, everything)

    def _history_blocks(self) -> Iterator[Block]:
        """Latency over the runs on each workload; versions whose times lie far apart have their own chart."""
        yield Heading("Over the runs", 1)
        several = [history for history in self.histories if len(history.points) > 1]
        if not several:
            yield Line(
                "Each version was timed once." if self.histories else "Not measured: no calls were timed."
            )
            return
        yield Line("Median latency of each run; a chart draws the baseline in bold.")
        short = {row.name: row.short_name for row in self.table.table_rows}
        for column, group in groupby(several, key=lambda history: history.column):
            yield Heading(column.place_words)
            for some in _by_size(list(group)):
                lines = [
                    TimeLine(
                        short[history.name],
                        tuple((created, ns) for created, _, ns in history.points),
                        history.name == self.table.baseline.name,
                    )
                    for history in some
                ]
                yield Chart(f"latency on {column.place_words}", column.unit, lines)

    def to_html(self) -> str:
        """One page that needs no other file and no network, light or dark as its reader's system is."""
        return to_page(self.title, self.blocks())


def report_versions(
    names: Sequence[str],
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    diffs: Sequence[str] | None = None,
    against: str | None = None,
    metrics: Sequence[str] = (),
    workload: str | None = None,
    gpu: str | None = None,
    evidence: Collection[Evidence] = (),
    kernel: str | None = None,
    pairs: Sequence[KernelPair] = (),
    guess: bool = True,
    data: str | None = None,
) -> VersionReportDocument:
    """Versions, runs or reports as one page: the table of `compare_many`, times over runs, and diffs.

    `diffs` names the rows whose diff with the baseline is in it; None for the MOST_DIFFS that moved most. The
    other arguments are those of `compare_many`; where they name no place, facts are of one place of each
    kind. Raises as it does, and UnknownName for a diff of no row.
    """
    places = None
    if not (workload or gpu or evidence):
        places = main_places(table_places([*names, *filter(None, [against])], store_opener, data=data))
    document = compare_many(
        names,
        table,
        store_opener,
        against=against,
        metrics=metrics,
        workload=workload,
        gpu=gpu,
        evidence=evidence,
        kernel=kernel,
        pairs=pairs,
        guess=guess,
        places=places,
        data=data,
    )
    if places is not None:
        document = replace(document, notes=(*document.notes, *_places_note(document)))
    return report_of_table(document, table, store_opener, diffs=diffs, data=data)


def _places_note(document: VersionTableDocument) -> list[str]:
    """On which places facts are judged, where nobody chose any: a gate judges every place."""
    facts = [place for place in document.positions_by_place if place.evidence is not Evidence.MEASURED]
    words = [
        " on ".join(filter(None, (place.workload, place.gpu)))
        for place in facts
        if not place.is_modelled_time
    ]
    if not words:
        return []
    return [f"Facts are judged on {' and '.join(words)} alone here: `profiler compare` has every place"]


def report_of_table(
    document: VersionTableDocument,
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    diffs: Sequence[str] | None = None,
    data: str | None = None,
) -> VersionReportDocument:
    """The page of a table that is there already; arguments as for `report_versions`."""
    rows = _rows_with_diff(document, store_opener, diffs, data)
    chosen = tuple(_diff(document, row, table, store_opener, data) for row in rows)
    histories = _histories(document, store_opener)
    return VersionReportDocument(document, histories, chosen, datetime.now(UTC))


def _rows_with_diff(
    document: VersionTableDocument, store_opener: StoreOpener, diffs: Sequence[str] | None, data: str | None
) -> list[TableRow]:
    by_name = {row.name: row for row in document.table_rows}
    if diffs is None:
        judged = [
            row
            for row in document.table_rows
            if not (row.is_baseline or row.is_wrong or row.is_of_others) and document.verdict_counts(row)
        ]
        moved = [
            row for row in judged if any(verdict.traits.moved for verdict in document.verdict_counts(row))
        ]
        return sorted(moved, key=lambda row: (_moved(document, row), document.lead(row)), reverse=True)[
            :MOST_DIFFS
        ]
    rows = []
    for name in diffs:
        for whole in [name] if name in by_name else table_names([name], store_opener, data=data):
            if whole not in by_name or by_name[whole].is_baseline:
                raise UnknownName(f"--diff {name}: it is no version of this report", option="--diff")
            rows.append(by_name[whole])
    return rows


def _moved(document: VersionTableDocument, row: TableRow) -> float:
    """How many of the verdicts on a row are better or worse."""
    counts = document.verdict_counts(row)
    return sum(count for verdict, count in counts.items() if verdict.traits.moved)


def _diff(
    document: VersionTableDocument,
    row: TableRow,
    table: MetricTable,
    store_opener: StoreOpener,
    data: str | None,
) -> ChosenDiff:
    """The diff on the first measured place that both have, else on the first of each kind of facts."""
    shared: dict[Evidence, Cell] = {}
    for place in document.positions_by_place:
        if not place.is_modelled_time and _has_results(
            document, row, place
        ):  # a time has no facts to compare
            shared.setdefault(place.evidence, place)
    places: list[Cell | None] = [*shared.values()] or [None]
    if Evidence.MEASURED in shared:
        places = [shared[Evidence.MEASURED]]
    try:
        compared = [
            compare_names(
                document.baseline.name,
                row.name,
                table,
                store_opener,
                data=data,
                **_filters(document, row, place),
            )
            for place in places
        ]
    except ProfilerError as error:
        return ChosenDiff(row.name, None, refusal=str(error))
    comparisons = (comparison for answer in compared for comparison in answer.comparisons)
    comparison = ComparisonDocument(tuple(comparisons))
    explanation = explain_comparison(comparison.comparison, table)
    if isinstance(explanation, ExplanationDocument) and explanation.explanations:
        return ChosenDiff(row.name, comparison, explanation)
    return ChosenDiff(row.name, comparison)


def _filters(document: VersionTableDocument, row: TableRow, place: Cell | None) -> dict[str, Any]:
    """What `compare_names` chooses a place by; report files have none."""
    if place is None:
        return {}
    workload = row.workloads.get(place) or document.baseline.workloads.get(place)
    if not workload and place.evidence is Evidence.MEASURED:
        return {"evidence": place.evidence}
    return {"evidence": place.evidence, "workload": workload or None, "gpu": place.gpu or None}


def _has_results(document: VersionTableDocument, row: TableRow, place: Cell) -> bool:
    positions = document.positions_by_place[place]
    return all(any(of.cells[at].number is not None for at in positions) for of in (row, document.baseline))


def _histories(document: VersionTableDocument, store_opener: StoreOpener) -> tuple[TimeHistory, ...]:
    """The medians of each version on each workload, in the mode that the table compares."""
    histories: list[TimeHistory] = []
    for at in document.time_columns:
        column = document.table_columns[at]
        if column.concept != LATENCY:
            continue
        for row in document.table_rows:
            family, _, version = row.name.partition("~")[0].rpartition("/")
            workload = row.workloads.get(column.place)
            if row.is_wrong or not family or workload is None:
                continue
            medians = store_opener().median_latencies(family=family, workload=workload, gpu=column.gpu)
            points = [
                (median.created, median.run_id, median.median_ns)
                for median in medians
                if median.version == version and median.mode == column.mode and median.median_ns is not None
            ]
            if points:
                histories.append(TimeHistory(column, row.name, tuple(points[-_MOST_POINTS:])))
    return tuple(histories)


def _standings(table: VersionTableDocument) -> list[tuple[str, str, str]]:
    """Better, worse, wrong and not measured: how many versions of each, and which."""
    judged = [(row, table.verdict_counts(row)) for row in table.table_rows if not row.is_baseline]
    what = "somewhere" if table.time_columns else "in a fact"
    groups = {
        f"better {what}, worse nowhere": [
            row for row, counts in judged if counts.get(Verdict.BETTER) and not counts.get(Verdict.WORSE)
        ],
        f"worse {what}": [row for row, counts in judged if counts.get(Verdict.WORSE)],
        "wrong or rejected": [row for row, _ in judged if row.is_wrong],
        "not measured": [row for row in table.table_rows if row.command and not row.is_wrong],
    }
    return [
        (label, str(len(rows)), ", ".join(row.short_name for row in rows)) for label, rows in groups.items()
    ]


def _best_blocks(table: VersionTableDocument) -> Iterator[Block]:
    """The best correct version on each workload, beside the baseline and the fastest external baseline."""
    if not table.time_columns:
        yield Heading("Nothing is measured", 1)
        yield Line("What follows is static and modelled: from the compiler, and from a run on the CPU.")
        if command := next((row.command for row in table.table_rows if row.command), ""):
            yield Line(Name(command), label="On a GPU")
        return
    yield Heading("Best correct version", 1)
    own = [row for row in table.table_rows if not (row.is_of_others or row.is_wrong)]
    others = [row for row in table.table_rows if row.is_of_others]
    rows = []
    for at in table.time_columns:
        best, other = _fastest(own, at), _fastest(others, at)
        place = table.table_columns[at].place_words
        rows.append((place, *_named_time(best, at), _against(best, at), *_named_time(other, at)))
    against = f"against {table.baseline.short_name}"
    yield Table(("workload", "version", "time", against, "fastest external", "time"), rows, right=(2, 5))


def _fastest(rows: Sequence[TableRow], position: int) -> TableRow | None:
    timed = [row for row in rows if row.cells[position].number is not None]
    return min(timed, key=lambda row: row.cells[position].number or math.inf, default=None)


def _named_time(row: TableRow | None, position: int) -> tuple[Phrase, str]:
    value = row.cells[position].value if row else None
    if row is None or value is None:
        return "not measured", ""
    return Name(row.short_name), str(formatting.quantity(value))


def _against(row: TableRow | None, position: int) -> str:
    if row is None or row.is_baseline:
        return "the baseline" if row else ""
    cell = row.cells[position]
    verdict = cell.verdict.label if cell.verdict else ""
    return f"{verdict} {cell_change(cell)}".strip()


def _by_size(histories: Sequence[TimeHistory]) -> list[list[TimeHistory]]:
    """Groups whose last numbers lie within a factor of three, so that a step of a few per cent is seen."""
    groups: list[list[TimeHistory]] = []
    for history in sorted(histories, key=lambda history: history.points[-1][2]):
        if groups and history.points[-1][2] <= 3 * groups[-1][0].points[-1][2]:
            groups[-1].append(history)
        else:
            groups.append([history])
    return groups


def _diff_blocks(diff: ChosenDiff, baseline: str, everything: bool) -> Iterator[Block]:
    """What a comparison says, then why each pair that moved differs."""
    if diff.comparison is None:
        yield Heading((Name(baseline), " → ", Name(diff.name)), 1)
        yield Line(diff.refusal)
        return
    yield from diff.comparison.blocks(everything=everything)
    if diff.explanation is not None:
        yield from cause_blocks(explained(diff.explanation.explanations, everything=everything))
