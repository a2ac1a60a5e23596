"""What is worse now, since when, how sure and why, as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
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
    SharedRegression,
    VersionRun,
    count_alarms,
    find_shared_regressions,
    load_regressions,
    shared_run,
)
from profiler.statistics import LevelKind

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
        "level",
        "shared_run",
    )

    @cached_property
    def shared(self) -> tuple[SharedRegression, ...]:
        """The alarms that many series share on one run."""
        return find_shared_regressions(self.report, self.causes)

    @property
    def sentences(self) -> Sequence[str]:
        """First the alarms that series share, then a sentence a regression; at the end what was looked at."""
        regressions = [
            f"{regression.subject} {regression.what}: {_level(regression)}{regression.change or 'wrong'} "
            f"since {regression.since}; {regression.how_sure}"
            for regression in self.report.regressions
        ]
        shared = [alarm.words for alarm in self.shared]
        return [*shared, *(regressions or ["nothing is worse now"]), self.report.coverage.words]

    def rows(self) -> list[tuple[object, ...]]:
        """A row a regression; levels are in base units, effect and interval (low, high) shares of the old."""
        return [self._row(regression) for regression in self.report.regressions]

    def _content(self) -> dict[str, object]:
        """Every regression with its cause; changes are shares of the old level: 0.03 is 3 % more."""
        return {
            "schema": SCHEMA,
            "alarms": count_alarms(self.report.open, self.shared),
            "shared": [_shared_dict(alarm) for alarm in self.shared],
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
            regression.level.value,
            shared_run(self.shared, regression),
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
            "level": regression.level.value,
            "equal_level": regression.equal and _run_dict(regression.equal),
            "is_open": regression.is_open,
            "shared_run": shared_run(self.shared, regression),
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


def _level(regression: Regression) -> str:
    """What a level that is not new is, to stand before the size of the change."""
    return "" if regression.level is LevelKind.NEW else f"{regression.level}, "


def _shared_dict(alarm: SharedRegression) -> dict[str, object]:
    return {
        "run": _run_dict(alarm.run),
        "gpu": alarm.gpu or None,
        "regressions": len(alarm.regressions),
        "series": alarm.series,
        "environment": alarm.environment or None,
        "sentence": alarm.words,
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
