"""All that the Trends page shows of a family on one workload and GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from profiler.errors import ProfilerError
from profiler.evidence.values import NCU_DURATION, Evidence
from profiler.history.change_points import History
from profiler.history.lineage import Lineage
from profiler.history.trend import LATENCY, Trend
from profiler.ui.data import lineages, series, trend_choice
from profiler.ui.data.index import DataVersion
from profiler.ui.data.run_axis import VERSIONS
from profiler.ui.errors import message_on_page

_STILL = 0.02  # a share of the time by which launches move by themselves: ncu's duration has this threshold


@dataclass(frozen=True)
class TrendsChoice:
    """What the page was asked for, besides the metrics."""

    family: str
    versions: Sequence[str]  # of the family, in order: those that are shown
    kernels: str  # a filter
    over: str  # versions, commits or time
    evidence: Evidence
    workload: str
    gpu: str
    mode: str = ""  # of timed calls; "": every one
    baseline: str = ""  # the version that numbers may be compared with, shown or not

    @property
    def is_over_runs(self) -> bool:
        """Whether each run is a point."""
        return self.over != VERSIONS


@dataclass(frozen=True)
class FamilySeries:
    """What was found for a choice, and why some of it was not."""

    by_metric: Mapping[str, Sequence[Trend]]  # the metrics asked for, of the kernels that fit
    ranking: Sequence[Trend]  # durations, the kernel that moved most first, then the longest
    histories: Sequence[History]  # with the steps of each
    lineage: Lineage | None
    refusals: Sequence[str]
    baseline_numbers: Mapping[tuple[str, str, str], float]  # the baseline's newest by metric, part and mode


def load_family_series(
    data_version: DataVersion, choice: TrendsChoice, metrics: Sequence[str]
) -> FamilySeries:
    """The series of each metric; one that cannot be had stands in the way of no other."""
    key = (choice.family, choice.workload, choice.gpu)
    over = "time" if choice.is_over_runs else "versions"
    by_metric: dict[str, Sequence[Trend]] = {}
    reason_by_metric = {}
    for metric in metrics:
        try:
            by_metric[metric] = _of_mode(
                series.trends(data_version, metric, *key, over, choice.evidence), choice.mode
            )
        except ProfilerError as error:
            reason_by_metric[metric] = str(error)
    refusals = [trend_choice.refusal(reason_by_metric)] if reason_by_metric else []
    fitting: Mapping[str, Sequence[Trend]] = {}
    ranking: Sequence[Trend] = []
    lineage = None
    try:
        lineage = lineages.lineage(data_version, choice.family)
        ranking = series.trends(data_version, NCU_DURATION, *key, over, choice.evidence)
        fitting, ranking = trend_choice.trends_of_kernels(by_metric, ranking, choice.kernels)
        ranking = _moved_first(ranking)
    except ProfilerError as error:
        refusals.append(message_on_page(error))
    baseline_numbers = _numbers_of(fitting, choice.baseline)
    fitting = {metric: _of_versions(trends, choice.versions) for metric, trends in fitting.items()}
    histories = [
        history
        for metric, trends in fitting.items()
        for history in trend_choice.histories_of_lines(
            series.histories(data_version, metric, *key, choice.evidence), trends
        )
        if _is_of_versions(history, choice.versions)
    ]
    return FamilySeries(fitting, ranking, histories, lineage, refusals, baseline_numbers)


def _moved_first(ranking: Sequence[Trend]) -> list[Trend]:
    """Durations by how far they lie apart, in time: the kernel that moved most is drawn first.

    Where nothing moved by more than a launch does by itself, the longest comes first, as in `ranking`.
    """

    def moved_ns(trend: Trend) -> float:
        numbers = [float(point.value.number or 0.0) for point in trend.points if point.on_line]
        if len(numbers) < 2 or max(numbers) < (1 + _STILL) * min(numbers):
            return 0.0
        return max(numbers) - min(numbers)

    return sorted(ranking, key=lambda trend: -moved_ns(trend))  # stable: the longest of equal ones first


def _of_mode(trends: Sequence[Trend], mode: str) -> Sequence[Trend]:
    """Timed calls of one mode, where one is asked for; other series as they are."""
    return [trend for trend in trends if trend.concept != LATENCY or mode in ("", trend.mode)]


def _of_versions(trends: Sequence[Trend], versions: Sequence[str]) -> list[Trend]:
    """The series with the points of those versions alone; those that keep none are left out."""
    chosen = set(versions)
    cut = [
        trend
        if all(point.version in chosen for point in trend.points)
        else replace(trend, points=tuple(point for point in trend.points if point.version in chosen))
        for trend in trends
    ]
    return [trend for trend in cut if trend.points]


def _is_of_versions(history: History, versions: Sequence[str]) -> bool:
    """Whether a history is of those versions alone: its steps then lie on the lines that are shown."""
    if history.version is not None:
        return history.version in versions
    return {point.version for point in history.series.points} <= set(versions)


def _numbers_of(by_metric: Mapping[str, Sequence[Trend]], version: str) -> dict[tuple[str, str, str], float]:
    """The newest number of one version in every series; none for "", which is no version."""
    numbers = {}
    for metric, trends in by_metric.items():
        for trend in trends:
            for point in trend.points:  # the last one counts
                if point.version == version and point.on_line and point.value.number is not None:
                    numbers[metric, trend.part, trend.mode] = float(point.value.number)
    return numbers
