"""All that the Trends page shows of a family on one workload and GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profiler.errors import ProfilerError
from profiler.evidence import NCU_DURATION, Evidence
from profiler.history import History, Lineage, Trend
from profiler.ui.data import lineages, series, trend_choice
from profiler.ui.data.index import DataVersion
from profiler.ui.errors import message_on_page


@dataclass(frozen=True)
class TrendsChoice:
    """What the page was asked for, besides the metrics."""

    family: str
    versions: Sequence[str]  # of the family, in order
    kernels: str  # a filter
    over: str  # versions or time
    evidence: Evidence
    workload: str
    gpu: str

    @property
    def is_over_time(self) -> bool:
        """Whether the x axis is time."""
        return self.over == "time"


@dataclass(frozen=True)
class FamilySeries:
    """What was found for a choice, and why some of it was not."""

    by_metric: Mapping[str, Sequence[Trend]]  # the metrics asked for, of the kernels that fit
    ranking: Sequence[Trend]  # durations, the longest kernel first
    histories: Sequence[History]  # with the steps of each
    lineage: Lineage | None
    refusals: Sequence[str]


def load_family_series(
    data_version: DataVersion, choice: TrendsChoice, metrics: Sequence[str]
) -> FamilySeries:
    """The series of each metric; one that cannot be had stands in the way of no other."""
    key = (choice.family, choice.workload, choice.gpu)
    by_metric: dict[str, Sequence[Trend]] = {}
    reason_by_metric = {}
    for metric in metrics:
        try:
            by_metric[metric] = series.trends(data_version, metric, *key, choice.over, choice.evidence)
        except ProfilerError as error:
            reason_by_metric[metric] = str(error)
    refusals = [trend_choice.refusal(reason_by_metric)] if reason_by_metric else []
    fitting: Mapping[str, Sequence[Trend]] = {}
    ranking: Sequence[Trend] = []
    lineage = None
    try:
        lineage = lineages.lineage(data_version, choice.family)
        ranking = series.trends(data_version, NCU_DURATION, *key, choice.over, choice.evidence)
        fitting, ranking = trend_choice.trends_of_kernels(by_metric, ranking, choice.kernels)
    except ProfilerError as error:
        refusals.append(message_on_page(error))
    histories = [
        history
        for metric, trends in fitting.items()
        for history in trend_choice.histories_of_lines(
            series.histories(data_version, metric, *key, choice.evidence), trends
        )
    ]
    return FamilySeries(fitting, ranking, histories, lineage, refusals)
