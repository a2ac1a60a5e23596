"""Which metrics and kernels the Trends page offers and shows, and what they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from profiler.compare.match_launches import name_filter
from profiler.errors import UnknownName
from profiler.evidence.metric_table import MetricTable, evidence_of_name
from profiler.evidence.naming import brief_list
from profiler.evidence.values import Evidence
from profiler.explain.roofline_path import RooflinePath
from profiler.history.change_points import History
from profiler.history.trend import LATENCY, Trend
from profiler.history.version_latency import mode_rank
from profiler.ui.data.part_names import line_names
from profiler.ui.data.readable_names import meant_options

DEFAULT_METRICS = {
    Evidence.MEASURED: ("duration", "tensor_busy", "shared_conflicts", "shared_excess", "occupancy"),
    Evidence.STATIC: (
        *("static_registers", "static_spills", "static_occupancy", "static_shared"),
        *("static_instructions", "static_hmma"),
    ),
    Evidence.MODELLED: ("modelled_conflicts", "modelled_wavefronts", "modelled_error"),
}
SEVERAL = 3  # numbers of a line from which on it is read against its first
Labeller = Callable[[str], str]


def labeller(table: MetricTable) -> Labeller:
    """What gives the name of a metric on screen: its label, or the exact ncu name."""
    labels = {metric.concept: metric.label for metric in table.metrics}
    return lambda name: labels.get(name, name)


def default_metrics(evidence: Evidence, timed: bool = False, over_runs: bool = False) -> tuple[str, ...]:
    """What is shown unasked; the latency of calls first where they were timed, over runs alone."""
    if not timed:
        return DEFAULT_METRICS[evidence]
    return (LATENCY,) if over_runs else (LATENCY, *DEFAULT_METRICS[evidence])


def metrics_to_offer(
    table: MetricTable, names: Sequence[str], evidence: Evidence, timed: bool = False
) -> list[str]:
    """The concepts and exact names that results of this evidence can carry."""
    concepts = [metric.concept for metric in table.of(evidence)]
    exact_names = [name for name in names if evidence_of_name(name) is evidence]
    return [*([LATENCY] if timed else []), *concepts, *exact_names]


def metrics_of_evidence(chosen: Sequence[str], table: MetricTable, evidence: Evidence) -> list[str]:
    """Those of the chosen metrics that this evidence can carry, else the ones it is shown by."""
    declared = {metric.concept: metric.evidence for metric in table.metrics}
    fitting = [name for name in chosen if declared.get(name, evidence_of_name(name)) is evidence]
    return fitting or [name for name in DEFAULT_METRICS[evidence] if name in declared]


def evidence_of_metrics(
    text: str, table: MetricTable, kinds: Sequence[Evidence], usual: Evidence | None
) -> Evidence | None:
    """The kind of evidence that has a metric which an address asks for: the usual one where it may be."""
    for kind in sorted(kinds, key=lambda kind: kind is not usual):
        meant = meant_options(text, [metric.concept for metric in table.of(kind)], labeller(table))
        if any(option is not None or _is_exact_name(said, kind) for said, option in meant):
            return kind
    return usual


def _is_exact_name(name: str, kind: Evidence) -> bool:
    """Whether it is written as ncu's and the compiler's metrics are, and is of that kind."""
    return "__" in name and evidence_of_name(name) is kind


def has_history(trends: Sequence[Trend]) -> bool:
    """Whether some version has several numbers over time; versions with one run each are read by version."""
    counts: Counter[tuple[str, str, str]] = Counter(
        (trend.part, trend.mode, point.version) for trend in trends for point in trend.points if point.on_line
    )
    return any(count >= SEVERAL for count in counts.values())


def timing_modes(trends: Sequence[Trend]) -> list[str]:
    """The modes in which calls were timed, the one that versions are compared in first."""
    return sorted({trend.mode for trend in trends if trend.concept == LATENCY}, key=mode_rank)


def trends_of_kernels(
    by_metric: Mapping[str, Sequence[Trend]], ranking: Sequence[Trend], kernels: str
) -> tuple[dict[str, list[Trend]], list[Trend]]:
    """The series whose kernel fits the filter, and their ranking; UnknownName where none does."""
    fits = name_filter(kernels or None)

    def fitting(trends: Sequence[Trend]) -> list[Trend]:
        return [trend for trend in trends if fits(trend.part) or fits(trend.base_name)]

    fitting_by_metric = {metric: fitting(trends) for metric, trends in by_metric.items()}
    every_trend = [trend for trends in by_metric.values() for trend in trends]
    if every_trend and not any(fitting_by_metric.values()):
        raise _no_kernel(kernels, every_trend)
    return fitting_by_metric, fitting(ranking)


def histories_of_lines(histories: Sequence[History], trends: Sequence[Trend]) -> list[History]:
    """The histories of those kernels and modes."""
    lines = {(trend.part, trend.mode) for trend in trends}
    return [history for history in histories if (history.series.part, history.series.mode) in lines]


def paths_by_kernel(paths: Sequence[RooflinePath], kernels: str) -> dict[str, RooflinePath]:
    """The paths by the name of their kernel, those with a point first; UnknownName where none fits."""
    fits = name_filter(kernels or None)
    fitting = [path for path in paths if fits(path.trend.part) or fits(path.trend.base_name)]
    every_trend = [path.trend for path in paths]
    if not fitting:
        raise _no_kernel(kernels, every_trend)
    names = line_names(every_trend)
    fitting.sort(key=lambda path: path.roofs is None)
    return {names[path.trend.part, path.trend.mode]: path for path in fitting}


def _no_kernel(kernels: str, trends: Sequence[Trend]) -> UnknownName:
    names = sorted({trend.base_name for trend in trends})
    return UnknownName(f"no kernel matches {kernels!r}; there are {brief_list(names)}")


def refusal(reason_by_metric: Mapping[str, str]) -> str:
    """Why metrics are not shown, in one text however many they are."""
    reasons = list(dict.fromkeys(reason_by_metric.values()))
    if len(reasons) < 2:
        return "".join(reasons)
    others = list(reason_by_metric)[1:]
    return f"{reasons[0]}. {len(others)} more are not shown: {brief_list(others)}"
