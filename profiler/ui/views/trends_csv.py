"""A history as CSV: every point in base units, with its state and with why it is not joined."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from profiler.history import Trend

HEADS = (
    "family",
    "workload",
    "gpu",
    "evidence",
    "mode",
    "kernel",
    "concept",
    "metric",
    "version",
    "run",
    "made",
    "value",
    "unit",
    "state",
    "not joined because",
)


def as_csv(trends: Iterable[Trend]) -> str:
    """One row per point; a missing value is an empty cell with its state beside it, never 0."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADS)
    for trend in trends:
        writer.writerows(_rows(trend))
    return text.getvalue()


def _rows(trend: Trend) -> Iterator[tuple[object, ...]]:
    series = (trend.family, trend.workload or "", trend.gpu or "", trend.evidence.value, trend.mode)
    for point in trend.points:
        is_missing = point.value.number is None
        yield (
            *series,
            trend.part,
            trend.concept,
            point.metric,
            point.version,
            point.run_id,
            point.created.isoformat(),
            "" if is_missing else point.value.number,
            point.value.unit,
            (point.gap or point.value.state.words) if is_missing else "",
            point.breaks,
        )
