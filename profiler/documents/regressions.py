"""What is worse now, since when, how sure and why, as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.compare import NoiseModel, Pairing
from profiler.documents.document import Document
from profiler.evidence import Evidence, MetricTable, formatting
from profiler.gate import Acknowledgement
from profiler.regressions import (
    CauseFinder,
    Coverage,
    Regression,
    RegressionReport,
    VersionRun,
    load_regressions,
)

if TYPE_CHECKING:
    from profiler.store import Store

SCHEMA = 1


@dataclass(frozen=True, repr=False)
class RegressionsDocument(Document):
    """Regressions with their causes, those that nobody let pass first."""

    report: RegressionReport
    causes: CauseFinder

    title = "What is worse now"
    columns = (
        "family",
        "version",
        "workload",
        "gpu",
        "evidence",
        "mode",
        "kernel",
        "concept",
        "grid",
        "block",
        "found_by",
        "a",
        "b",
        "unit",
        "effect",
        "low",
        "high",
        "since",
        "due_to",
        "cause",
        "acknowledged",
    )

    @property
    def sentences(self) -> Sequence[str]:
        """A sentence a regression; at the end what was looked at."""
        regressions = [
            f"{regression.subject} {regression.what}: {regression.change or 'wrong'} "
            f"since {regression.since}; {regression.how_sure}"
            for regression in self.report.regressions
        ]
        return [*(regressions or ["nothing is worse now"]), self.report.coverage.words]

    def rows(self) -> list[tuple[object, ...]]:
        """A row a regression; levels are in base units, effect and interval (low, high) shares of the old."""
        return [self._row(regression) for regression in self.report.regressions]

    def _content(self) -> dict[str, object]:
        """Every regression with its cause; changes are shares of the old level: 0.03 is 3 % more."""
        return {
            "schema": SCHEMA,
            "regressions": [self._regression_dict(regression) for regression in self.report.regressions],
            "looked_at": _coverage_dict(self.report.coverage),
        }

    def _row(self, regression: Regression) -> tuple[object, ...]:
        cause, interval = self.causes.find(regression), regression.interval
        family, version, workload, gpu, evidence, *place = regression.series
        return (
            family,
            version,
            workload or None,
            gpu or None,
            evidence.value,
            *(text or None for text in place),
            regression.grid,
            regression.block,
            regression.kind.value,
            regression.a.number,
            regression.b.number,
            regression.b.unit,
            regression.effect,
            interval.low if interval else None,
            interval.high if interval else None,
            regression.since,
            cause.due_to,
            cause.words or None,
            regression.acknowledged is not None,
        )

    def _regression_dict(self, regression: Regression) -> dict[str, object]:
        series, cause = regression.series, self.causes.find(regression)
        acknowledged, lapsed = regression.acknowledged, regression.lapsed
        return {
            **{name: text or None for name, text in series._asdict().items()},
            "evidence": series.evidence.value,
            "grid": regression.grid,
            "block": regression.block,
            "found_by": regression.kind,
            "before": _run_dict(regression.before),
            "possible": [_run_dict(run) for run in regression.possible],
            "now": _run_dict(regression.now),
            "a": formatting.as_json(regression.a),
            "b": formatting.as_json(regression.b),
            "effect": regression.effect,
            "interval": regression.interval,
            "interval_kind": regression.interval_kind if regression.interval else None,
            "detectable": regression.detectable,
            "how_sure": regression.how_sure,
            "held_against": regression.held_against or None,
            "earlier_steps": regression.earlier_steps,
            "due_to": cause.due_to,
            "cause": cause.words or None,
            "environment": cause.environment or None,
            "acknowledged": acknowledged and _acknowledgement_dict(acknowledged),
            "acknowledgement_ended": lapsed
            and {**_acknowledgement_dict(lapsed.acknowledgement), "ended": lapsed.why},
            "command": regression.command or None,
        }


def list_regressions(
    table: MetricTable, store: Store, *, family: str | None = None, data: str | None = None
) -> RegressionsDocument:
    """What is worse now in an index, or in one family of it.

    `data` is the folder or URL of the index's bundles, PROFILER_DATA's where None. Raises UnknownName.
    """
    root, noise = location.open_root(data), NoiseModel.of_store(lambda: store, data)
    report = load_regressions(root, store, table, noise, family)
    return RegressionsDocument(report, CauseFinder(store, root, table, noise, Pairing.of_data(data)))


def _acknowledgement_dict(acknowledgement: Acknowledgement) -> dict[str, str]:
    return {
        "id": acknowledgement.id,
        "until": acknowledgement.until,
        "who": acknowledgement.who,
        "why": acknowledgement.why,
    }


def _run_dict(run: VersionRun) -> dict[str, str]:
    return {"run_id": run.run_id, "version": run.version, "created": run.created.isoformat()}


def _coverage_dict(coverage: Coverage) -> dict[str, object]:
    return {
        "families": coverage.families,
        "series": {kind.value: coverage.series[kind] for kind in Evidence},
        "pairs": coverage.pairs,
        "cannot_be_judged": [
            {"why": unclear.why, "count": count, "command": unclear.command or None}
            for unclear, count in coverage.unclear.items()
        ],
    }
