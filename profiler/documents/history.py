"""Since when a metric is what it is: the steps of every history, as a document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.compare import Pairing
from profiler.documents.document import Document
from profiler.errors import CannotJudge
from profiler.evidence import Evidence, MetricTable
from profiler.history import LATENCY, History, Step, TrendPoint, find_change_points, load_lineages
from profiler.history.step_words import LAST_POINT, code_words, environment_words, size_words, where_words

if TYPE_CHECKING:
    from profiler.store import Store


@dataclass(frozen=True, repr=False)
class HistoryDocument(Document):
    """The histories of one metric, each with its steps."""

    concept: str
    histories: tuple[History, ...]

    columns = (
        "family",
        "workload",
        "gpu",
        "evidence",
        "mode",
        "kernel",
        "over",
        "version",
        "unit",
        "verdict",
        "before",
        "after",
        "size",
        "size_low",
        "size_high",
        "since_version",
        "since_run",
        "cause",
    )

    @property
    def title(self) -> str:
        """The metric."""
        return f"Since when {self.concept} is what it is"

    @property
    def sentences(self) -> Sequence[str]:
        """A sentence for each step, then for each history that nobody could judge."""
        steps = [
            f"{_name(history)}: {step.verdict.label} {size_words(step)} since {where_words(step)}; "
            f"machine code {code_words(step)}; environment {environment_words(step)}"
            for history in self.histories
            for step in history.steps
        ]
        return steps + [
            f"{_name(history)}: not judged, {history.not_judged}"
            for history in self.histories
            if history.not_judged
        ]

    def rows(self) -> list[tuple[object, ...]]:
        """A row a step; levels are in base units, sizes are shares of the old level."""
        return [
            (
                history.series.family,
                history.series.workload,
                history.series.gpu,
                history.series.evidence.value,
                history.series.mode,
                history.series.part,
                history.over,
                history.version,
                history.series.unit,
                step.verdict.value,
                step.change_point.before,
                step.change_point.after,
                _finite(step.change_point.size),
                _finite(step.change_point.size_low),
                _finite(step.change_point.size_high),
                step.likeliest.version,
                step.likeliest.run_id,
                step.circumstances.cause,
            )
            for history in self.histories
            for step in history.steps
        ]

    def _content(self) -> dict[str, object]:
        """The histories, numbers in base units, sizes as shares of the old level; null where that was 0."""
        series = [_history_dict(history) for history in self.histories]
        return {"concept": self.concept, "note": LAST_POINT, "series": series}


def find_history(
    concept: str,
    table: MetricTable,
    store: Store,
    *,
    family: str | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    evidence: Evidence | None = None,
    version: str | None = None,
    data: str | None = None,
) -> HistoryDocument:
    """The steps of a concept, of latency or of an exact ncu name, in the versions' order of the catalogues.

    `version` leaves that one over its runs; `data` is the folder or URL of the index's bundles,
    PROFILER_DATA's where None. Raises UnknownName, and CannotJudge where nothing carries the metric.
    """
    root = location.open_root(data)
    lineages = load_lineages(root, store, family)
    histories = find_change_points(
        store,
        root,
        table,
        concept,
        family=family,
        workload=workload,
        gpu=gpu,
        kernel=kernel,
        evidence=evidence,
        version=version,
        orders={name: lineage.order for name, lineage in lineages.items()},
        wrong={name: lineage.wrong for name, lineage in lineages.items()},
        pairing=Pairing.of_data(data),
    )
    if not histories:
        way_out = "`profiler import PATH` takes reports"
        if concept == LATENCY:
            way_out = "`profiler collect` measures it"
        raise CannotJudge(f"nothing asked about carries {concept}: {way_out}")
    return HistoryDocument(concept, tuple(histories))


def _name(history: History) -> str:
    family, version = history.series.family, history.version
    part = f"{history.series.part}{history.series.also}"
    return f"{family}/{version} {part}" if version else f"{family} {part}"


def _history_dict(history: History) -> dict[str, object]:
    series, last_pair = history.series, history.last_pair
    return {
        "family": series.family,
        "workload": series.workload,
        "gpu": series.gpu,
        "evidence": series.evidence.value,
        "mode": series.mode,
        "part": series.part,
        "kernel": series.base_name,
        "other_names": series.other_names,
        "unit": series.unit,
        "over": history.over,
        "version": history.version,
        "points": sum(point.on_line for point in series.points),
        "not_judged": history.not_judged or None,
        "changes": [_step_dict(step) for step in history.steps],
        "last_pair": None if last_pair is None else [_point_dict(point) for point in last_pair],
    }


def _step_dict(step: Step) -> dict[str, object]:
    change, circumstances = step.change_point, step.circumstances
    return {
        "verdict": step.verdict.value,
        "reason": step.reason,
        "direction": "up" if change.direction > 0 else "down",
        "t": change.t,
        "before": change.before,
        "after": change.after,
        "size": _finite(change.size),
        "size_interval": [_finite(change.size_low), _finite(change.size_high)],
        "difference": change.difference,
        "difference_interval": [change.difference_low, change.difference_high],
        "last_before": _point_dict(step.before),
        "likeliest": _point_dict(step.likeliest),
        "possible": [_point_dict(point) for point in step.possible],
        "environment": [difference._asdict() for difference in circumstances.environment],
        "environment_unknown": circumstances.unknown,
        "code": circumstances.code._asdict(),
        "cause": circumstances.cause,
    }


def _point_dict(point: TrendPoint) -> dict[str, object]:
    return {"run_id": point.run_id, "version": point.version, "created": point.created.isoformat()}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
