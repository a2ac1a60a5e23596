"""One metric over versions or runs, as a document."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from profiler.bundles import location
from profiler.compare import Pairing
from profiler.documents.document import Document
from profiler.errors import CannotJudge
from profiler.evidence import Evidence, MetricTable, State, formatting
from profiler.history import Trend, TrendPoint, load_lineages, load_trends
from profiler.history.trend import ABSENT

if TYPE_CHECKING:
    from profiler.store import Store


@dataclass(frozen=True, repr=False)
class TrendDocument(Document):
    """The trends of one metric: a series for each kernel, workload, GPU and mode."""

    concept: str
    trends: tuple[Trend, ...]

    columns = (
        "family",
        "workload",
        "gpu",
        "evidence",
        "mode",
        "kernel",
        "version",
        "run_id",
        "created",
        "value",
        "unit",
        "state",
        "breaks",
        "wrong",
        "derivation",
    )

    @property
    def title(self) -> str:
        """The metric, by its label."""
        return f"{self.trends[0].label} over versions"

    @property
    def sentences(self) -> Sequence[str]:
        """Why points must not be joined to those before them, each reason once."""
        return list(
            dict.fromkeys(point.breaks for trend in self.trends for point in trend.points if point.breaks)
        )

    def rows(self) -> list[tuple[object, ...]]:
        """A row a point, in base units; `state` says why there is no value."""
        return [
            (
                trend.family,
                trend.workload,
                trend.gpu,
                trend.evidence.value,
                trend.mode,
                trend.part,
                point.version,
                point.run_id,
                point.created,
                None if point.gap == ABSENT else point.value.number,
                point.value.unit,
                _state(point),
                point.breaks or None,
                point.wrong,
                point.value.derivation.words if point.value.derivation else None,
            )
            for trend in self.trends
            for point in trend.points
        ]

    def _content(self) -> dict[str, object]:
        """The series, numbers in base units."""
        return {"concept": self.concept, "series": [_trend_dict(trend) for trend in self.trends]}


def load_trend(
    concept: str,
    table: MetricTable,
    store: Store,
    *,
    family: str | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    evidence: Evidence | None = None,
    over: Literal["versions", "time"] = "versions",
    across: Collection[str] = (),
    data: str | None = None,
) -> TrendDocument:
    """A concept or exact ncu name over versions, in the order of the catalogues, or over all runs.

    `across` names what may change without a break: driver, ncu; `data` is the folder or URL of the index's
    bundles, PROFILER_DATA's where None. Raises UnknownName, and CannotJudge where no launch carries it.
    """
    lineages = load_lineages(location.open_root(data), store, family)
    trends = load_trends(
        store,
        concept,
        table,
        family=family,
        workload=workload,
        gpu=gpu,
        kernel=kernel,
        evidence=evidence,
        over=over,
        across=across,
        orders={name: lineage.order for name, lineage in lineages.items()},
        wrong={name: lineage.wrong for name, lineage in lineages.items()},
        pairing=Pairing.of_data(data),
    )
    if not trends:
        raise CannotJudge(
            f"no launch asked about carries {concept}: import reports that hold it (`profiler import PATH`)"
        )
    return TrendDocument(concept, tuple(trends))


def _trend_dict(trend: Trend) -> dict[str, object]:
    return {
        "concept": trend.concept,
        "label": trend.label,
        "family": trend.family,
        "workload": trend.workload,
        "gpu": trend.gpu,
        "evidence": trend.evidence.value,
        "mode": trend.mode,
        "part": trend.part,
        "kernel": trend.base_name,
        "other_names": trend.other_names,
        "unit": trend.unit,
        "points": [_point_dict(point) for point in trend.points],
    }


def _point_dict(point: TrendPoint) -> dict[str, object]:
    return {
        "run_id": point.run_id,
        "version": point.version,
        "created": point.created.isoformat(),
        "metric": point.metric or None,
        "kernel": point.kernel or None,
        **(formatting.as_json(point.value) if point.gap != ABSENT else {"state": ABSENT}),
        "grid": point.grid,
        "block": point.block,
        "breaks": point.breaks or None,
        "wrong": point.wrong,
    }


def _state(point: TrendPoint) -> str | None:
    if point.gap == ABSENT:
        return ABSENT
    return None if point.value.state is State.PRESENT else point.value.state.words
