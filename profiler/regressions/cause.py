"""Finds what a regression is due to: the split of its time, the machine code, and the environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from profiler.compare.environment_change import RunChanges, run_changes
from profiler.compare.judged import Judge
from profiler.compare.kernel_pairs import NO_PAIRS, Pairing
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.compare.same_code import CHANGED, SAME, UNKNOWN, run_code_loader
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Evidence
from profiler.explain.explanation import explain
from profiler.history.trend import LATENCY
from profiler.regressions.regression import Regression
from profiler.regressions.run_comparisons import RunComparisons, is_launch, launch_names

if TYPE_CHECKING:
    from profiler.bundles.location import Root
    from profiler.store.index import Store
    from profiler.store.rows import RunInfo


_DIGITS = 32  # of a digest


@dataclass(frozen=True)
class Cause:
    """Why something is worse, as far as it can be known."""

    words: str  # one line
    due_to: str  # code, compiler, environment, code or environment, unknown
    environment: str  # what differs there in words; "" for nothing

    @property
    def is_environment(self) -> bool:
        """Whether the machine code is equal, so that something other than the kernel got worse."""
        return self.due_to == "environment"


@dataclass(frozen=True)
class CauseFinder:
    """Looks up causes; each run and bundle is read once."""

    store: Store
    root: Root
    table: MetricTable
    noise: NoiseModel = UNKNOWN_NOISE
    pairing: Pairing = NO_PAIRS
    # What the three questions below found, by the question and a digest of what it was about.
    known: dict[tuple[str, str], Any] = field(default_factory=dict)
    _runs: dict[str, RunInfo | None] = field(default_factory=dict)

    @cached_property
    def _comparisons(self) -> RunComparisons:
        return RunComparisons(self.store, Judge(self.table, self.noise, self.pairing))

    def find(self, regression: Regression) -> Cause:
        """The cause of a regression, explained by counters where both runs have them."""
        about = (regression.series, regression.kind, regression.possible, regression.changed_with)
        cause: Cause = self._once("cause", (*_runs_of(regression), *about), lambda: self._find(regression))
        return cause

    def _find(self, regression: Regression) -> Cause:
        changes = self.changes(regression)
        environment = "; ".join(
            f"{change.field} {change.before} → {change.after}" for change in changes.environment
        )
        due_to = _due_to(regression, changes)
        if regression.became_wrong:
            return Cause(changes.code.why, due_to, environment)
        parts = [self._time_split(regression)]
        if not parts[0]:
            if changes.code.word == SAME and regression.series.evidence is Evidence.MEASURED:
                moved = "the environment moved" if due_to == "environment" else "what moved it is not known"
                parts.append(f"the machine code is the same: {moved}")
            elif changes.code.word != SAME:
                parts.append(changes.code.why)
        if regression.changed_with:
            parts.append(f"with it: {', '.join(regression.changed_with)}")
        if environment:
            parts.append(environment)
        return Cause("; ".join(filter(None, parts)), due_to, environment)

    def due_to(self, regression: Regression) -> str:
        """What can have caused it, in a word or two: what `find` says without splitting the time."""
        # Cells of one run have one build and one machine: each is looked up once.
        words: str = self._once(
            "due to", _runs_of(regression), lambda: _due_to(regression, self.changes(regression))
        )
        return words

    def has_other_code(self, regression: Regression) -> bool:
        """Whether other machine code, known to be other, came with it."""
        other: bool = self._once(
            "other code", _runs_of(regression), lambda: self.changes(regression).code.word == CHANGED
        )
        return other

    def changes(self, regression: Regression) -> RunChanges:
        """What changed between the last run with the old level and the first that surely has the new one."""
        load = run_code_loader(self.root)
        before, after = regression.before, regression.possible[-1]
        run_ids = dict.fromkeys(run.run_id for run in (before, *regression.possible))
        return run_changes(
            [run for run in map(self._run, run_ids) if run is not None],
            (load(before.run_id), before.version),
            (load(after.run_id), after.version),
            regression.series.part,
            regression.series.evidence,
        )

    def _once(self, question: str, about: tuple[object, ...], ask: Callable[[], Any]) -> Any:
        key = question, sha256(repr(about).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        if key not in self.known:
            self.known[key] = ask()
        return self.known[key]

    def _run(self, run_id: str) -> RunInfo | None:
        if run_id not in self._runs:
            self._runs[run_id] = self.store.run(run_id)
        return self._runs[run_id]

    def _time_split(self, regression: Regression) -> str:
        """The sentence that splits the change of the launch's time; "" where counters are missing."""
        series = regression.series
        if series.evidence is not Evidence.MEASURED:
            return ""
        before, after = regression.before, regression.possible[-1]
        for end in (before, after):
            run = self._run(end.run_id)
            if run is None or not run.launches:
                return ""
        comparison = self._comparisons.of_series(series, before, after)
        if comparison is None:
            return ""
        names = launch_names(regression)
        for explanation in explain(comparison, self.table):
            # A latency is of the whole call: the first launch with causes speaks for it.
            is_of_series = series.concept == LATENCY or is_launch(explanation.pair, comparison, names)
            if is_of_series and explanation.causes:
                return explanation.sentence.removesuffix(".")  # others follow it
        return ""


def _runs_of(regression: Regression) -> tuple[object, ...]:
    """What decides which code and which machine came with a regression."""
    series = regression.series
    moved = regression.environment_moved
    return regression.before, regression.possible, series.evidence.value, series.part, moved


def _due_to(regression: Regression, changes: RunChanges) -> str:
    """What can have caused it. Facts depend on source and compiler alone, not on the environment."""
    if regression.series.evidence is Evidence.MEASURED:
        return "environment" if regression.environment_moved else changes.cause
    if changes.code.word == CHANGED:
        return "code"
    return "compiler" if changes.environment else UNKNOWN
