"""Facts and counts that repeat exactly and got worse between two runs of a version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from profiler.compare.comparison import HEADLINE
from profiler.compare.metric_verdict import is_exact
from profiler.evidence import formatting
from profiler.evidence.metric_table import Metric
from profiler.evidence.values import Evidence, Value
from profiler.regressions.regression import EXACT, Regression, Search, SeriesKey, VersionRun
from profiler.regressions.setback import IsWorse, StandingStep, latest, rule

if TYPE_CHECKING:
    from profiler.store import PartArrays

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BESIDE = 4  # other facts that changed with it, and are named


def find_exact_regressions(search: Search) -> Iterator[Regression]:
    """What a gate's rule or a metric's threshold finds worse, and has not come back."""
    rules = _rules(search)
    headline = search.table.by_concept.get(HEADLINE)
    time = [one.name for one in headline.alternatives] if headline else []
    parts = search.store.arrays([*rules, *time], family=search.family)
    found: list[tuple[PartArrays, NDArray[np.intp], str, StandingStep]] = []
    for part in parts:
        search.coverage.series[part.evidence.value] += sum(name in rules for name in part.metrics)
        for at, version in enumerate(part.versions):
            own = np.flatnonzero(part.version == at)
            if version in search.rejected or len(own) < 2:
                continue
            for place, name in enumerate(part.metrics):
                if name not in rules:
                    continue
                step = latest(part.numbers[place][own], rules[name][1])
                if step is not None and not _faster(part, own, step, time):
                    found.append((part, own, name, step))
    runs = search.store.run_ids(int(key) for part, own, _, _ in found for key in part.run_keys[own])
    metrics = {name: metric for name, (metric, _) in rules.items()}
    for part, own, name, step in found:
        yield _regression(part, own, name, step, runs, metrics)


def _rules(search: Search) -> dict[str, tuple[Metric, IsWorse]]:
    """By the exact name: what is judged of facts, and of counters those that repeat exactly."""
    found: dict[str, tuple[Metric, IsWorse]] = {}
    for metric in search.table.metrics:
        exact = metric.evidence is not Evidence.MEASURED or is_exact(metric, metric.unit)
        is_worse = rule(metric) if exact else None
        if is_worse is not None:
            found |= {one.name: (metric, is_worse) for one in metric.alternatives}
    return found


def _faster(part: PartArrays, own: NDArray[np.intp], step: StandingStep, time: Sequence[str]) -> bool:
    """Whether the launch takes less time than before: then its counts are no regression."""
    if part.evidence is not Evidence.MEASURED:
        return False
    for name in time:
        if name in part.metrics:
            ns = part.numbers[part.metrics.index(name)][own]
            return bool(ns[step.now] < ns[step.before])
    return False


def _regression(
    part: PartArrays,
    own: NDArray[np.intp],
    name: str,
    step: StandingStep,
    runs: Mapping[int, str],
    metrics: Mapping[str, Metric],
) -> Regression:
    def spot(place: int) -> VersionRun:
        at = own[place]
        made = _EPOCH + timedelta(microseconds=int(part.created_us[at]))
        return VersionRun(runs[int(part.run_keys[at])], part.versions[part.version[at]], made)

    def value(of: str, place: int) -> Value:
        index = part.metrics.index(of)
        number = float(part.numbers[index][own[place]])
        return Value(int(number) if number.is_integer() else number, part.units[index] or metrics[of].unit)

    a, b = value(name, step.before), value(name, step.now)
    metric = metrics[name]
    beside = [
        f"{metrics[other].label} {formatting.quantity(x)} → {formatting.quantity(y)}"
        for other in part.metrics
        if other != name and other in metrics and _both(part, own, other, step)
        for x, y in [(value(other, step.before), value(other, step.after))]
        if x.number != y.number
    ]
    now = spot(step.now)
    where = (part.family, now.version, part.workload or "", part.gpu or "", part.evidence)
    assert a.number is not None
    assert b.number is not None
    return Regression(
        SeriesKey(*where, part.mode, part.part, metric.concept),
        metric.label,
        EXACT,
        spot(step.before),
        (spot(step.after),),
        now,
        a,
        b,
        "exact",
        float((b.number - a.number) / abs(a.number)) if a.number else None,
        earlier_steps=step.earlier,
        changed_with=tuple(beside[:_BESIDE]),
    )


def _both(part: PartArrays, own: NDArray[np.intp], name: str, step: StandingStep) -> bool:
    numbers = part.numbers[part.metrics.index(name)][own]
    return not np.isnan(numbers[[step.before, step.after]]).any()
