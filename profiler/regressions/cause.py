"""What a regression is due to: the split of its time, the machine code, and what else differed there."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profiler.compare.comparison import Comparison, compare
from profiler.compare.environment_change import (
    CHANGED,
    SAME,
    UNKNOWN,
    RunChanges,
    run_changes,
    run_code_loader,
)
from profiler.compare.metric_verdict import CounterNoiseLookup
from profiler.errors import UnknownName
from profiler.evidence import Evidence, MetricTable
from profiler.explain.explanation import explain
from profiler.history.trend import LATENCY
from profiler.regressions.regression import CORRECTNESS, Regression, VersionRun

if TYPE_CHECKING:
    from profiler.bundles import Root
    from profiler.store import RunInfo, Store


@dataclass(frozen=True)
class Cause:
    """Why something is worse, as far as anybody can tell."""

    words: str  # one line
    due_to: str  # code, compiler, environment, code or environment, unknown
    environment: str  # what differs there in words; "" for nothing

    @property
    def is_environment(self) -> bool:
        """Whether the machine code is the same, so that the kernel cannot be what got worse."""
        return self.due_to == "environment"


@dataclass(frozen=True)
class CauseFinder:
    """Looks up causes; runs and bundles are read once."""

    store: Store
    root: Root
    table: MetricTable
    wobble: CounterNoiseLookup | None = None  # by which counters that do not repeat exactly are judged
    _runs: dict[str, RunInfo | None] = field(default_factory=dict)

    def find(self, one: Regression) -> Cause:
        """The cause of a regression: by its counters where both runs have some."""
        told = self._circumstances(one)
        environment = "; ".join(f"{each.field} {each.before} → {each.after}" for each in told.environment)
        if one.series.concept == CORRECTNESS:
            return Cause(told.code.why, _due_to(one, told), environment)
        parts = [self._split(one)]
        if not parts[0]:
            if told.code.word == SAME and one.series.evidence is Evidence.MEASURED:
                parts.append("the machine code is the same: the environment moved")
            elif told.code.word != SAME:
                parts.append(told.code.why)
        if one.changed_with:
            parts.append(f"with it: {', '.join(one.changed_with)}")
        if environment:
            parts.append(environment)
        return Cause("; ".join(filter(None, parts)), _due_to(one, told), environment)

    def _circumstances(self, one: Regression) -> RunChanges:
        load = run_code_loader(self.root)
        after = one.possible[-1]
        met = dict.fromkeys(spot.run_id for spot in (one.before, *one.possible))
        return run_changes(
            [run for run in map(self._run, met) if run is not None],
            (load(one.before.run_id), one.before.version),
            (load(after.run_id), after.version),
            one.series.part,
            one.series.evidence,
        )

    def _run(self, run_id: str) -> RunInfo | None:
        if run_id not in self._runs:
            self._runs[run_id] = self.store.run(run_id)
        return self._runs[run_id]

    def _split(self, one: Regression) -> str:
        """The sentence that splits the change of the launch's time; "" where no counters tell."""
        if one.series.evidence is not Evidence.MEASURED:
            return ""
        ends = (one.before, one.possible[-1])
        if not all((run := self._run(spot.run_id)) is not None and run.launches for spot in ends):
            return ""
        with suppress(UnknownName):  # a side that cannot be told from others has no split
            for told in explain(self._compared(one, *ends), self.table):
                fits = one.series.concept == LATENCY or told.kernel == one.series.part.removesuffix("#0")
                if (fits or told.kernel == one.series.part) and told.causes:
                    return told.sentence
        return ""

    def _compared(self, one: Regression, *ends: VersionRun) -> Comparison:
        place = one.series
        a, b = (
            self.store.side(
                run_id=spot.run_id,
                family=place.family,
                version=spot.version,
                workload=place.workload,
                gpu=place.gpu,
                evidence=place.evidence,
            )
            for spot in ends
        )
        return compare(a, b, self.table, across=("driver", "ncu"), wobble=self.wobble)


def _due_to(one: Regression, told: RunChanges) -> str:
    """What it can be due to. Facts depend on source and compiler alone, so no environment moves them."""
    if one.series.evidence is Evidence.MEASURED:
        return told.cause
    if told.code.word == CHANGED:
        return "code"
    return "compiler" if told.environment else UNKNOWN
