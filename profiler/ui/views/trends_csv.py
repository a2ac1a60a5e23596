"""A history as CSV: every point in base units, with its state and with why it is not joined."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from profiler.history import Trend

HEADS = (
    *(
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
    ),
    *("value", "unit", "state", "not joined because"),
)


def as_csv(found: Iterable[Trend]) -> str:
    """One row a point; a value that is missing is an empty cell with its state beside it, never 0."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADS)
    for one in found:
        writer.writerows(_rows(one))
    return text.getvalue()


def _rows(one: Trend) -> Iterator[tuple[object, ...]]:
    measured = (one.family, one.workload or "", one.gpu or "", one.evidence.value, one.mode)
    for point in one.points:
        missing = point.value.number is None
        value = "" if missing else point.value.number
        state = (point.gap or point.value.state.words) if missing else ""
        where = (point.metric, point.version, point.run_id, point.created.isoformat())
        yield (*measured, one.part, one.concept, *where, value, point.value.unit, state, point.breaks)
