"""What a report on versions holds beside their table: times over runs, and diffs with the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from profiler.documents.comparison import ComparisonDocument
from profiler.documents.explanation import ExplanationDocument
from profiler.documents.version_table import TableColumn


@dataclass(frozen=True)
class TimeHistory:
    """The medians of one version's timed calls over its runs, oldest first."""

    column: TableColumn
    name: str  # of the row
    points: tuple[tuple[datetime, str, float], ...]  # when, in which run, ns


@dataclass(frozen=True)
class ChosenDiff:
    """One version held against the baseline: what differs, and why where a GPU measured both."""

    name: str
    comparison: ComparisonDocument | None
    explanation: ExplanationDocument | None = None
    refusal: str = ""  # why there is no comparison
