"""When a metric changed: the steps of every history, as a document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.compare.kernel_pairs import Pairing
from profiler.documents.blocks import Block, Heading, Line, Name, Notes, Phrase, Table, VerdictText
from profiler.documents.document import Document
from profiler.errors import CannotJudge
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Evidence
from profiler.history.change_points import VERSIONS, Drift, History, LevelStep, find_change_points
from profiler.history.lineage import load_lineages
from profiler.history.shared_steps import SharedStep, find_shared_steps
from profiler.history.step_words import (
    LAST_POINT,
    code_words,
    drift_words,
    due_to_words,
    environment_words,
    level_kind_words,
    level_words,
    moment,
    shared_words,
    size_words,
    verdict_words,
    where_words,
)
from profiler.history.trend import LATENCY, TrendPoint

if TYPE_CHECKING:
    from profiler.store.index import Store

_HEAD = (
    *("kernel", "verdict", "size (95 %)", "level", "since", "between runs"),
    *("machine code", "environment", "due to"),
)
_WIDE = (3, 5, 6, 7)  # columns that a phone leaves out


@dataclass(frozen=True, repr=False)
class HistoryDocument(Document):
    """The histories of one metric, each with its steps."""

    concept: str
    histories: tuple[History, ...]

    @cached_property
    def shared(self) -> tuple[SharedStep, ...]:
        """The alarms that many of the histories share on one run."""
        return find_shared_steps(self.histories)

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
        "level",
        "shared_run",
    )

    @property
    def title(self) -> str:
        """The metric."""
        return f"Steps of {self.concept}"

    @property
    def sentences(self) -> Sequence[str]:
        """First the alarms that series share, then a sentence a step, a drift and what was not judged."""
        steps = [
            f"{_name(history)}: {verdict_words(step)} {size_words(step)} since {where_words(step)}; "
            + (f"{words}; " if (words := level_kind_words(step)) else "")
            + f"machine code {code_words(step)}; environment {environment_words(step)}"
            for history in self.histories
            for step in history.steps
        ]
        steps += [
            f"{_name(history)}: {drift_words(drift, history.series.unit)}"
            for history in self.histories
            for drift in history.drifts
        ]
        return [*map(shared_words, self.shared), *steps] + [
            f"{_name(history)}: not judged: {history.not_judged}"
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
                due_to_words(step),
                step.level.value,
                self.shared_run(step),
            )
            for history in self.histories
            for step in history.steps
        ]

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A table for each family, workload, GPU and mode: a row a step, and in a line what has none."""
        yield from map(Line, map(shared_words, self.shared))
        for heading, group in groupby(self.histories, key=_heading):
            histories = list(group)
            yield Heading(heading)
            if rows := [_step_cells(history, step) for history in histories for step in history.steps]:
                yield Table(_HEAD, rows, wide=_WIDE)
            yield Notes(_notes(histories))

    def shared_run(self, step: LevelStep) -> str | None:
        """The run of the alarm that a step belongs to; None for a step of its own."""
        return next(
            (one.run_id for one in self.shared if any(step is member for _, member in one.steps)), None
        )

    def _content(self) -> dict[str, object]:
        """The histories, numbers in base units, sizes as shares of the old level; null where that was 0."""
        series = [self._history_dict(history) for history in self.histories]
        shared = [_shared_dict(shared) for shared in self.shared]
        return {"concept": self.concept, "note": LAST_POINT, "shared": shared, "series": series}

    def _history_dict(self, history: History) -> dict[str, object]:
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
            "changes": [{**_step_dict(step), "shared_run": self.shared_run(step)} for step in history.steps],
            "drifts": [_drift_dict(drift) for drift in history.drifts],
            "last_pair": None if last_pair is None else [_point_dict(point) for point in last_pair],
        }


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
        way_out = "import reports with it (`profiler import PATH`)"
        if concept == LATENCY:
            way_out = "`profiler collect` measures it"
        elif static := table.by_concept.get(f"static_{concept}"):
            way_out = f"compiled versions may have: `profiler trend --steps {static.concept}`"
        raise CannotJudge(f"none of the requested data has {concept}; {way_out}")
    return HistoryDocument(concept, tuple(histories))


def _heading(history: History) -> str:
    series = history.series
    where = ", ".join(filter(None, (series.workload, series.gpu or "", series.evidence, series.mode)))
    over = "over versions" if history.over == VERSIONS else "over runs"
    version = f" of {history.version}" if history.version else ""
    return f"{series.family}: {series.label}{version} {over} ({where})"


def step_table(histories: Sequence[History], names: Mapping[tuple[str, str], str], most: int) -> Table:
    """The newest steps of several histories, each with its line and metric.

    `names` says what a series is called by its part and mode.
    """
    steps = [(history, step) for history in histories for step in history.steps]
    steps.sort(key=lambda pair: pair[1].likeliest.created, reverse=True)
    rows = []
    for history, step in steps[:most]:
        series = history.series
        line = " ".join(filter(None, (history.version, names[series.part, series.mode])))
        rows.append((Name(line), series.label, *_step_cells(history, step)[1:]))
    return Table(("line", "metric", *_HEAD[1:]), rows, wide=(1, *(index + 1 for index in _WIDE)))


def _step_cells(history: History, step: LevelStep) -> tuple[Phrase, ...]:
    verdict: Phrase = verdict_words(step)
    if step.equal is None:
        verdict = VerdictText(step.verdict, reason=step.reason)
    return (
        Name(_kernel(history)),
        verdict,
        size_words(step),
        level_words(step),
        moment(step.likeliest),
        where_words(step),
        code_words(step),
        environment_words(step),
        due_to_words(step),
    )


def _notes(histories: Sequence[History]) -> list[str]:
    """Drifts, what has no step, what was not judged, and how to judge the last point."""
    notes = [
        f"{_kernel(history)} {drift_words(drift, history.series.unit)}"
        for history in histories
        for drift in history.drifts
    ]
    by_reason: dict[str, list[str]] = {}
    for history in histories:
        if history.not_judged:
            by_reason.setdefault(f"not judged ({history.not_judged})", []).append(_kernel(history))
        elif not history.steps and not history.drifts:
            by_reason.setdefault("no step", []).append(_kernel(history))
    notes += [f"{reason}: {', '.join(kernels)}" for reason, kernels in by_reason.items()]
    if pair := next((history.last_pair for history in histories if history.last_pair), None):
        names = [_name_to_compare(point, pair, histories[0].series.family) for point in pair]
        notes.append(f"{LAST_POINT}: profiler compare {names[0]} {names[1]}")
    return notes


def _kernel(history: History) -> str:
    return f"{history.series.part.removesuffix('#0')}{history.series.also}"


def _name_to_compare(point: TrendPoint, pair: tuple[TrendPoint, TrendPoint], family: str) -> str:
    """Two runs of one version are named by their ids; versions by their names."""
    return point.run_id if pair[0].version == pair[1].version else f"{family}/{point.version}"


def _name(history: History) -> str:
    family, version = history.series.family, history.version
    part = f"{history.series.part}{history.series.also}"
    return f"{family}/{version} {part}" if version else f"{family} {part}"


def _step_dict(step: LevelStep) -> dict[str, object]:
    change, circumstances = step.change_point, step.circumstances
    return {
        "verdict": step.verdict.value,
        "level": step.level.value,
        "equal_level": None if step.equal is None else _point_dict(step.equal),
        "is_alarm": step.is_alarm,
        "reason": step.reason,
        "direction": "up" if change.direction > 0 else "down",
        "t": change.t,
        "before": change.before,
        "after": change.after,
        "size": _finite(change.size),
        "size_interval": [_finite(change.size_low), _finite(change.size_high)],
        "difference": change.difference,
        "difference_interval": [_finite(change.difference_low), _finite(change.difference_high)],
        "last_before": _point_dict(step.before),
        "likeliest": _point_dict(step.likeliest),
        "possible": [_point_dict(point) for point in step.possible],
        "environment": [difference._asdict() for difference in circumstances.environment],
        "environment_unknown": circumstances.unknown,
        "code": circumstances.code._asdict(),
        "cause": due_to_words(step),
    }


def _shared_dict(shared: SharedStep) -> dict[str, object]:
    """One alarm of several series, with the rows that it stands for."""
    return {
        "run_id": shared.run_id,
        "created": shared.created.isoformat(),
        "verdict": shared.verdict.value,
        "steps": len(shared.steps),
        "series": shared.series,
        "due_to": shared.cause,
        "environment": [change._asdict() for change in shared.environment],
        "sentence": shared_words(shared),
    }


def _drift_dict(drift: Drift) -> dict[str, object]:
    return {
        "before": drift.before,
        "after": drift.after,
        "size": _finite(drift.size),
        "first": _point_dict(drift.first),
        "last": _point_dict(drift.last),
    }


def _point_dict(point: TrendPoint) -> dict[str, object]:
    return {"run_id": point.run_id, "version": point.version, "created": point.created.isoformat()}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
