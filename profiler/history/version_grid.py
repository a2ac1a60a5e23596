"""How every version changed on every workload and GPU within a range of time, and by which step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from profiler.evidence.cell import Cell
from profiler.evidence.values import Value
from profiler.history.version_latency import mode_rank
from profiler.statistics.verdict import Verdict

if TYPE_CHECKING:
    from profiler.history.change_points import History, LevelStep
    from profiler.history.trend import Trend, TrendPoint


@dataclass(frozen=True)
class GridCell:
    """What a version did there from its first to its last number in the range."""

    first: Value
    last: Value
    numbers: int  # in the range
    step: LevelStep | None  # the last one to a new level in the range; None where there is none
    not_judged: str  # why no step could be found; "" where there are enough points
    gap: str = ""  # why there is no number at all

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the step, where the change over the range goes the same way; else None."""
        if self.step is None or not self.step.is_alarm or not self.first.number or self.last.number is None:
            return None
        rises = self.last.number > self.first.number
        return self.step.verdict if rises == (self.step.change_point.direction > 0) else None

    @property
    def change(self) -> float | None:
        """The change as a share of the first number; None of one number, or from 0."""
        if self.numbers < 2 or not self.first.number or self.last.number is None:
            return None
        return float(self.last.number) / float(self.first.number) - 1


def build_grid(
    trends: Sequence[Trend], histories: Sequence[History], since: datetime | None = None
) -> dict[Cell, GridCell]:
    """The cells of one metric, of each workload and GPU by the series that is read first.

    That is the one in the timing mode that versions are compared in, of several kernels the first given.
    `histories` are those of the same series; runs before `since` count for nothing.
    """
    chosen: dict[tuple[str, str], Trend] = {}
    for trend in sorted(trends, key=lambda trend: mode_rank(trend.mode)):
        chosen.setdefault((trend.workload or "", trend.gpu or ""), trend)
    cells: dict[Cell, GridCell] = {}
    for (workload, gpu), trend in chosen.items():
        own = {
            history.version: history
            for history in histories
            if (history.series.workload or "", history.series.gpu or "") == (workload, gpu)
            and (history.series.part, history.series.mode) == (trend.part, trend.mode)
        }
        for version, points in _by_version(trend, since).items():
            cells[Cell(version=version, workload=workload, gpu=gpu)] = _cell(points, own.get(version), since)
    return cells


def _by_version(trend: Trend, since: datetime | None) -> Mapping[str, list[TrendPoint]]:
    by_version: dict[str, list[TrendPoint]] = defaultdict(list)
    for point in trend.points:
        if since is None or point.created >= since:
            by_version[point.version].append(point)
    return by_version


def _cell(points: Sequence[TrendPoint], history: History | None, since: datetime | None) -> GridCell:
    numbers = [point for point in points if point.on_line]
    if not numbers:
        last = points[-1]
        return GridCell(last.value, last.value, 0, None, "", last.gap or last.value.state.words)
    steps = [
        step
        for step in (history.steps if history else ())
        if step.equal is None and (since is None or step.likeliest.created >= since)
    ]
    not_judged = history.not_judged if history else "versions are one history here"
    return GridCell(
        numbers[0].value, numbers[-1].value, len(numbers), steps[-1] if steps else None, not_judged
    )
