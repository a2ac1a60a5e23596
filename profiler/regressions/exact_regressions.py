"""Facts and counts that repeat exactly and got worse between two runs of a version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.compare.clock_drift import HEADLINE
from profiler.compare.metric_verdict import is_exact
from profiler.evidence import formatting
from profiler.evidence.cell import Cell
from profiler.evidence.metric_table import Metric
from profiler.evidence.values import Evidence, Value
from profiler.history.joined_parts import joined_arrays
from profiler.regressions.regression import Regression, RegressionKind, SeriesKey, VersionRun
from profiler.regressions.search import Search
from profiler.statistics.facts import WATCHED_FACTS, WatchedFact

if TYPE_CHECKING:
    from profiler.store.rows import PartArrays

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIZES = ("launch__grid_size", "launch__block_size")  # blocks, and threads of a block
_ALSO_CHANGED = 4  # how many other facts that changed in the same run are named

Floats = NDArray[np.float64]
IsWorse = Callable[[Floats, Floats], NDArray[np.bool_]]  # of old and new values, element by element


class StandingStep(NamedTuple):
    """The last step for the worse whose level still holds, as indices into the values of a series."""

    before: int  # the last value with the old level
    after: int  # the first with the new level
    latest: int  # the newest value
    earlier_steps: int  # older steps for the worse that still hold


def worse_rule(metric: Metric) -> IsWorse | None:
    """A rule that tells which values of a metric are worse; None where nobody judges the metric.

    The gate's rule for a fact comes first, else direction and threshold of metrics.txt.
    """
    fact = next(
        (WATCHED_FACTS[name.name] for name in metric.alternatives if name.name in WATCHED_FACTS), None
    )
    if fact is not None:
        return lambda a, b: _breaks(fact, a, b)
    if metric.better == "-":
        return None
    sign = 1.0 if metric.better == "lower" else -1.0

    def is_worse(a: Floats, b: Floats) -> NDArray[np.bool_]:
        increase = sign * (b - a)
        if metric.threshold_pp is not None:
            return increase > metric.threshold_pp
        return increase > metric.threshold * np.abs(a)

    return is_worse


def _breaks(fact: WatchedFact, a: Floats, b: Floats) -> NDArray[np.bool_]:
    """Whether b is worse; registers, for one, count by the units that they are allocated in."""
    # A change within one unit of allocation changes nothing on the GPU.
    before, after = np.ceil(a / fact.step), np.ceil(b / fact.step)
    return after < before if fact.fewer else after > before


def find_standing_step(values: Floats, is_worse: IsWorse) -> StandingStep | None:
    """The last step for the worse that still holds; None where there is none.

    NaN is a run without a number. A step holds while the newest value is worse than the one before the step:
    a value that returned to its old level is no regression.
    """
    positions = np.flatnonzero(~np.isnan(values))
    if len(positions) < 2 or positions[-1] != len(values) - 1:
        return None  # the newest run has no number: the value is missing, not worse
    numbers = values[positions]
    steps = np.flatnonzero(is_worse(numbers[:-1], numbers[1:]) & is_worse(numbers[:-1], numbers[-1:]))
    if not len(steps):
        return None
    last = int(steps[-1])
    return StandingStep(int(positions[last]), int(positions[last + 1]), int(positions[-1]), len(steps) - 1)


@dataclass(frozen=True)
class _VersionPart:
    """The values of one version in the arrays of one part, sorted by the time of the run."""

    part: PartArrays
    rows: NDArray[np.intp]  # indices of the version's elements in the arrays

    def numbers(self, name: str) -> Floats:
        """The values of a metric; NaN where a run has none."""
        return self.part.numbers[self.part.metrics.index(name)][self.rows]

    def value(self, name: str, position: int, unit: str) -> Value:
        """One value for display; `unit` is used where the store has none."""
        number = float(self.numbers(name)[position])
        exact = int(number) if number.is_integer() else number
        return Value(exact, self.part.units[self.part.metrics.index(name)] or unit)

    def run(self, position: int, run_ids: Mapping[int, str]) -> VersionRun:
        """The run of one value."""
        row = self.rows[position]
        created = _EPOCH + timedelta(microseconds=int(self.part.created_us[row]))
        return VersionRun(
            run_ids[int(self.part.run_keys[row])], self.part.versions[self.part.version[row]], created
        )


def find_exact_regressions(search: Search) -> Iterator[Regression]:
    """What got worse by a rule of the gate or a threshold of metrics.txt, and has not recovered."""
    rules = _rules(search)
    headline = search.table.by_concept.get(HEADLINE)
    durations = [name.name for name in headline.alternatives] if headline else []
    steps: list[tuple[_VersionPart, str, StandingStep]] = []
    arrays = search.store.part_arrays([*rules, *durations, *_SIZES], family=search.family)
    parts = joined_arrays(arrays, search.pairing.kept(search.family))
    newest_by_kernel = _newest_by_kernel(parts)
    for part in parts:
        search.coverage.series[part.evidence.value] += sum(name in rules for name in part.metrics)
        for version, rows in zip(part.versions, _rows_by_version(part), strict=True):
            # One run has no past; a rejected version has nothing to lose.
            if version in search.rejected or len(rows) < 2:
                continue
            # A later run has the kernel, if not as many launches of it: that one is how it is now.
            if part.created_us[rows[-1]] < newest_by_kernel[(*_kernel_of(part), version)]:
                continue
            if not search.pairing.kept(search.family):  # declared pairs may differ in size
                rows = _of_one_size(part, rows)
            values = _VersionPart(part, rows)
            for name in part.metrics:
                if name not in rules:
                    continue
                step = find_standing_step(values.numbers(name), rules[name][1])
                if step is not None and not _takes_no_longer(values, step, headline):
                    steps.append((values, name, step))
    # The ids of runs are text: they are looked up once, of the few series that got worse.
    run_ids = search.store.run_ids(
        int(key) for values, _, _ in steps for key in values.part.run_keys[values.rows]
    )
    metrics = {name: metric for name, (metric, _) in rules.items()}
    for values, name, step in steps:
        regression: Regression | None = _regression(values, name, step, run_ids, metrics)
        if regression and values.part.evidence is Evidence.MEASURED:
            regression = search.confirm(regression)
        if regression:
            yield regression


def _kernel_of(part: PartArrays) -> tuple[object, ...]:
    return part.workload, part.gpu, part.evidence, part.mode, part.base_name


def _newest_by_kernel(parts: Sequence[PartArrays]) -> dict[tuple[object, ...], int]:
    """By kernel and version, when the newest run that has it was made, in microseconds since 1970."""
    newest: dict[tuple[object, ...], int] = {}
    for part in parts:
        kernel = _kernel_of(part)
        for version, rows in zip(part.versions, _rows_by_version(part), strict=True):
            if len(rows):
                key = (*kernel, version)
                newest[key] = max(int(part.created_us[rows].max()), newest.get(key, 0))
    return newest


def _rows_by_version(part: PartArrays) -> list[NDArray[np.intp]]:
    """The indices of each version's elements in the arrays, in their order."""
    order = np.argsort(part.version, kind="stable")
    return np.split(order, np.searchsorted(part.version[order], np.arange(1, len(part.versions))))


def _of_one_size(part: PartArrays, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows whose launches have as many threads as the newest: others are other workloads.

    All rows where a workload is declared, a size is not known, or the newest is the only one of its size:
    `compare` then knows whether other code is why.
    """
    if part.workload or not set(_SIZES) <= set(part.metrics):
        return rows
    blocks, threads = (part.numbers[part.metrics.index(name)][rows] for name in _SIZES)
    # As in compare.is_other_grid: threads come in whole blocks.
    same = np.abs(blocks * threads - blocks[-1] * threads[-1]) < np.maximum(threads, threads[-1])
    of_one_size = rows[same | np.isnan(blocks * threads)]
    return of_one_size if len(of_one_size) > 1 else rows


def _rules(search: Search) -> dict[str, tuple[Metric, IsWorse]]:
    """By exact metric name, the rules for facts and for counters that repeat exactly."""
    rules: dict[str, tuple[Metric, IsWorse]] = {}
    for metric in search.table.metrics:
        exact = metric.evidence is not Evidence.MEASURED or is_exact(metric, metric.unit)
        is_worse = worse_rule(metric) if exact else None
        if is_worse is not None:
            rules |= {name.name: (metric, is_worse) for name in metric.alternatives}
    return rules


def _takes_no_longer(values: _VersionPart, step: StandingStep, headline: Metric | None) -> bool:
    """Whether the launch takes as long as before, by the threshold of the duration, or less.

    Its counts are no regression then, as for a gate.
    """
    if values.part.evidence is not Evidence.MEASURED or headline is None:
        return False
    for name in (alternative.name for alternative in headline.alternatives):
        if name in values.part.metrics:
            ns = values.numbers(name)
            return bool(ns[step.latest] <= ns[step.before] * (1 + headline.threshold))
    return False


def _regression(
    values: _VersionPart,
    name: str,
    step: StandingStep,
    run_ids: Mapping[int, str],
    metrics: Mapping[str, Metric],
) -> Regression:
    metric, part, now = metrics[name], values.part, values.run(step.latest, run_ids)
    a, b = (values.value(name, position, metric.unit) for position in (step.before, step.latest))
    assert a.number is not None
    assert b.number is not None
    cell = Cell(part.family, now.version, part.workload or "", part.gpu or "", part.evidence)
    return Regression(
        SeriesKey(*cell, part.mode, part.part, metric.concept),
        metric.label,
        RegressionKind.EXACT,
        values.run(step.before, run_ids),
        (values.run(step.after, run_ids),),
        now,
        a,
        b,
        "exact",
        float((b.number - a.number) / abs(a.number)) if a.number else None,
        earlier_steps=step.earlier_steps,
        changed_with=tuple(_changes_beside(values, name, step, metrics))[:_ALSO_CHANGED],
    )


def _changes_beside(
    values: _VersionPart, name: str, step: StandingStep, metrics: Mapping[str, Metric]
) -> Iterator[str]:
    """What else changed in the run of the step, in words: more spills, say, because of fewer registers."""
    for other in values.part.metrics:
        if other == name or other not in metrics:
            continue
        if np.isnan(values.numbers(other)[[step.before, step.after]]).any():
            continue
        metric = metrics[other]
        a, b = (values.value(other, position, metric.unit) for position in (step.before, step.after))
        if a.number != b.number:
            yield f"{metric.label} {formatting.quantity(a)} → {formatting.quantity(b)}"
