"""Versions as one page to send: how they stand, their table, their times over runs, and chosen diffs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from profiler.documents.comparison import ComparisonDocument, compare_names
from profiler.documents.document import Document
from profiler.documents.explanation import ExplanationDocument, explain_comparison
from profiler.documents.version_report_html import report_html
from profiler.documents.version_report_parts import ChosenDiff, TimeHistory
from profiler.documents.version_table import (
    LATENCY,
    TablePlace,
    TableRow,
    VersionTableDocument,
)
from profiler.documents.version_table_cells import compare_many, main_places, table_names, table_places
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence import Evidence, MetricTable
from profiler.statistics import Verdict

if TYPE_CHECKING:
    from profiler.compare import StoreOpener

MOST_DIFFS = 3  # that are chosen unasked: those that moved most
_MOST_POINTS = 400  # of one line: the newest


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

    def to_markdown(self) -> str:
        """The table, then each diff."""
        parts = [self.table.to_markdown()]
        parts += [diff.comparison.to_markdown() for diff in self.diffs if diff.comparison]
        return "\n".join(parts)

    def to_html(self) -> str:
        """One page that needs no other file and no network, light or dark as its reader's system is."""
        return report_html(self.table, self.histories, self.diffs, self.created)


def report_versions(
    names: Sequence[str],
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    diffs: Sequence[str] | None = None,
    data: str | None = None,
    **options: Any,
) -> VersionReportDocument:
    """Versions, runs or reports as one page: the table of `compare_many`, times over runs, and diffs.

    `diffs` names the rows whose diff with the baseline is in it; None for the MOST_DIFFS that moved most.
    `options` are those of `compare_many`; where they name no place, facts are of one place of each kind.
    Raises as it does, and UnknownName for a diff of no row.
    """
    if not any(options.get(name) for name in ("workload", "gpu", "evidence", "places")):
        every = [*names, *filter(None, [options.get("against")])]
        options["places"] = main_places(table_places(every, store_opener, data=data))
    document = compare_many(names, table, store_opener, data=data, **options)
    return report_of_table(document, table, store_opener, diffs=diffs, data=data)


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
    shared: dict[Evidence, TablePlace] = {}
    for place in document.positions_by_place:
        if _has_results(document, row, place):
            shared.setdefault(place.evidence, place)
    places: list[TablePlace | None] = [*shared.values()] or [None]
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


def _filters(document: VersionTableDocument, row: TableRow, place: TablePlace | None) -> dict[str, Any]:
    """What `compare_names` chooses a place by; report files have none."""
    if place is None:
        return {}
    workload = row.workloads.get(place) or document.baseline.workloads.get(place)
    if not workload and place.evidence is Evidence.MEASURED:
        return {"evidence": place.evidence}
    return {"evidence": place.evidence, "workload": workload or None, "gpu": place.gpu or None}


def _has_results(document: VersionTableDocument, row: TableRow, place: TablePlace) -> bool:
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
