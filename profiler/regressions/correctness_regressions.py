"""Versions that were right in an earlier run and are wrong in their newest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from profiler.evidence.cell import Cell
from profiler.evidence.values import Value
from profiler.gate.inventory import is_wrong
from profiler.regressions.regression import CORRECTNESS, Regression, RegressionKind, SeriesKey, VersionRun
from profiler.regressions.search import Search

if TYPE_CHECKING:
    from profiler.store.rows import ResultInfo


def find_correctness_regressions(search: Search) -> Iterator[Regression]:
    """What was right and is wrong now: one regression for each version, workload, GPU and evidence."""
    rows = search.store.results(family=search.family)
    wrong = [row for row in rows if is_wrong(row) and row.version not in search.rejected]
    cells = dict.fromkeys(
        Cell(search.family, row.version, row.workload or "", row.gpu or "", row.evidence) for row in wrong
    )
    for cell in cells:
        history = search.store.results(
            **cell._asdict(),
            latest=False,
        )
        rows_by_run: dict[VersionRun, list[ResultInfo]] = {}
        for row in sorted(history, key=lambda row: (row.created, row.run_id)):
            rows_by_run.setdefault(VersionRun(row.run_id, cell.version, row.created), []).append(row)
        runs = list(rows_by_run)
        wrong_rows = [next((row for row in rows_by_run[run] if is_wrong(row)), None) for run in runs]
        right = [index for index, row in enumerate(wrong_rows) if row is None]
        if not right or right[-1] == len(runs) - 1:
            continue  # never right, or right again
        newest = wrong_rows[-1]
        assert newest is not None
        yield Regression(
            SeriesKey(*cell, "", "", CORRECTNESS),
            CORRECTNESS,
            RegressionKind.CORRECTNESS,
            runs[right[-1]],
            (runs[right[-1] + 1],),
            runs[-1],
            Value(None, text="right"),
            Value(None, text="wrong"),
            newest.reason or newest.status,
        )
