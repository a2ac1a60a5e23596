"""What the Trends page draws of a choice: axis, isolated line, its samples, the levels beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from profiler.errors import ProfilerError
from profiler.evidence.values import Evidence
from profiler.history.change_points import History
from profiler.history.lineage import Lineage
from profiler.history.reference_levels import ReferenceLevel, budget_levels, latency_levels
from profiler.history.run_spread import RunSpread
from profiler.history.trend import LATENCY, Trend
from profiler.store.rows import RunInfo
from profiler.ui.data import decisions, lineages, results, run_axis, series, trend_choice
from profiler.ui.data.family_series import FamilySeries, TrendsChoice
from profiler.ui.data.index import DataVersion
from profiler.ui.data.run_axis import RunAxis

MOST_SPREADS = 220  # runs of which samples are drawn; of more they would lie on one another


def choose_axis(
    data_version: DataVersion,
    choice: TrendsChoice,
    loaded: FamilySeries,
    since_words: str,
    zoom: tuple[datetime, datetime] | None,
) -> RunAxis:
    """The axis that was asked for; a range is counted back from the newest run that is shown."""
    if not choice.is_over_runs:
        return RunAxis.of_versions(choice.versions)
    points = [point for trends in loaded.by_metric.values() for trend in trends for point in trend.points]
    newest = max((point.created for point in points), default=None)
    since = run_axis.range_start(newest, since_words)
    if choice.over == run_axis.TIME:
        return RunAxis(run_axis.TIME, since=since, zoom=zoom)
    shown = {point.run_id for point in points}
    return run_axis.by_commit([run for run in results.runs(data_version) if run.run_id in shown], since)


def has_commits(data_version: DataVersion, family: str) -> bool:
    """Whether some run of the family says of which commit it is."""
    return any(run_axis.commit_of(run) for run in results.runs(data_version) if family in run.families)


def line_with_newest_alarm(
    histories: Sequence[History], labels: Mapping[tuple[str, str, str | None], str], axis: RunAxis
) -> str:
    """The label of the line that changed last to a new level, of equals the one that changed most; or ""."""
    alarms = []
    for history in histories:
        keys = [(history.series.part, history.series.mode, version) for version in (history.version, None)]
        label = next((labels[key] for key in keys if key in labels), None)
        for step in history.steps:
            if label is not None and step.is_alarm and axis.x_of(step.likeliest) is not None:
                alarms.append((step.likeliest.created, abs(step.change_point.t), label))
    return max(alarms, default=(None, 0.0, ""))[2]


def default_range(trends: Sequence[Trend]) -> str:
    """The range that the lines are shown over at first."""
    return run_axis.default_range([point.created for trend in trends for point in trend.points])


def spreads_of(
    data_version: DataVersion, trend: Trend | None, axis: RunAxis
) -> tuple[Mapping[int, RunSpread], str]:
    """The samples of each shown run of a line of timed calls, by result; none, and why, of too many."""
    if trend is None or trend.concept != LATENCY:
        return {}, ""
    ids = [
        point.result_id
        for point in trend.points
        if point.on_line and point.result_id is not None and axis.x_of(point) is not None
    ]
    if len(ids) > MOST_SPREADS:
        return {}, f"Samples of {len(ids)} runs are too many to draw: a shorter range shows them."
    return series.run_spreads(data_version, tuple(ids)), ""


def levels_of(
    data_version: DataVersion, choice: TrendsChoice, loaded: FamilySeries, version: str | None
) -> dict[str, list[ReferenceLevel]]:
    """The reference levels of each metric; `version` is the one that stands out, None where none does."""
    levels = {}
    for metric, trends in loaded.by_metric.items():
        if metric == LATENCY and trends:
            levels[metric] = latency_levels(
                loaded.lineage,
                version,
                choice.workload,
                choice.gpu,
                trends[0].mode,
                _newest_provenance(data_version, trends),
            )
        elif choice.evidence is Evidence.STATIC:
            levels[metric] = _shared_budget(loaded.lineage, choice, metric)
    return levels


def _newest_provenance(data_version: DataVersion, trends: Sequence[Trend]) -> Mapping[str, object]:
    newest = max((point for trend in trends for point in trend.points), key=lambda point: point.created)
    runs: Sequence[RunInfo] = results.runs(data_version)
    return next((run.provenance for run in runs if run.run_id == newest.run_id), {})


def _shared_budget(lineage: Lineage | None, choice: TrendsChoice, metric: str) -> list[ReferenceLevel]:
    """The budget that all versions shown share; where theirs differ none is drawn across all of them."""
    budgets = [budget_levels(lineage, version, metric, choice.workload) for version in choice.versions]
    present = [levels[0] for levels in budgets if levels]
    if not present or len({level.number for level in present}) > 1:
        return []
    return present[:1]


def default_baseline(
    data_version: DataVersion, family: str, workload: str, gpu: str, versions: Sequence[str]
) -> str:
    """The version that numbers are compared with unasked: the pinned one, else the best of others."""
    pinned = decisions.pinned_version(family, workload, gpu)
    if pinned in versions:
        return pinned
    lineage = lineages.lineage(data_version, family)
    best = lineage.best_baseline(workload, gpu) if lineage else None
    return best.version.id if best is not None else versions[0]


def runs_of_first_metric(
    data_version: DataVersion, family: str, workload: str, gpu: str, evidence: Evidence, timed: bool
) -> Sequence[Trend]:
    """Every run of the metric that is shown first, by which it is decided what the page opens with."""
    metric = trend_choice.default_metrics(evidence, timed)[0]
    with suppress(ProfilerError):  # the chart says why
        return series.trends(data_version, metric, family, workload, gpu, "time", evidence)
    return []
