"""The newest measured state of every family: its newest version by workload and GPU, and what moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from profiler.compare import (
    HEADLINE,
    UNKNOWN_NOISE,
    Comparison,
    Difference,
    LatencyComparison,
    MetricChange,
    NoiseModel,
    PairComparison,
    compare,
    compare_latencies,
    judge_every_metric,
    launch_labels,
)
from profiler.evidence import NOT_COLLECTED, Evidence, Launch, MetricTable, Side, State, Value, chip_of
from profiler.history.baselines import newest_and_before
from profiler.statistics import Verdict

if TYPE_CHECKING:
    from profiler.store import Store

SHOWN = ("tensor_busy", "shared_conflicts", "shared_excess", "occupancy")  # beside the duration
LOOK_BACK = 12  # versions searched for the newest and the one before, on each workload and GPU
_SHOWN_KINDS = ("launch", "facts", "latency")
_CELLS = 40
_ROWS = 8


@dataclass(frozen=True)
class OverviewRow:
    """One launch of the newest version."""

    part: str  # range/kernel#n
    base_name: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    duration: Value
    shown: Mapping[str, Value]  # by concept, those of SHOWN that metrics.txt has
    change: MetricChange | None  # of the duration since the version before; None where nothing pairs
    reason: str  # of the verdict, or why there is none
    better: int  # counters whose verdict is better, the duration not among them
    worse: int
    missing: int  # judged counters without a number on a side that could have one

    @property
    def verdict(self) -> Verdict | None:
        """Of the duration; without a partner in the version before only what has no number has one."""
        if self.change:
            return self.change.verdict
        return Verdict.MISSING if self.duration.number is None else None


@dataclass(frozen=True)
class OverviewCell:
    """The newest version of a family on one workload and GPU."""

    family: str
    workload: str | None
    gpu: str | None
    evidence: Evidence
    version: str
    run_id: str | None
    created: datetime | None
    before: str | None  # the version before; None: this is the first
    comparable: bool  # with the version before; True where there is none
    differences: tuple[Difference, ...]
    rows: tuple[OverviewRow, ...]  # longest first
    hidden_rows: int
    gone: tuple[str, ...]  # launches that the version before had
    tally: Mapping[Verdict, int]  # of latencies and durations, hidden rows included
    calls: tuple[LatencyComparison, ...] = ()  # a mode each; against itself where there is none before


@dataclass(frozen=True)
class Overview:
    """Cells by family; those over the limit are counted."""

    cells: tuple[OverviewCell, ...]
    hidden_cells: int


def load_overview(
    store: Store,
    table: MetricTable,
    *,
    cells: int = _CELLS,
    rows: int = _ROWS,
    noise: NoiseModel = UNKNOWN_NOISE,
) -> Overview:
    """The newest state of each family, the one measured last first.

    At most `cells` cells with the `rows` longest launches each.
    """
    found: list[OverviewCell] = []
    # Of up to `cells` families and workloads: no bundles are read for them.
    bench = _Bench(table, noise.without_same_code(), rows)
    hidden = 0
    for family in _newest_first(store):
        for (workload, gpu, evidence), versions in _newest(store, family).items():
            if len(found) == cells:
                hidden += 1
                continue
            sides = [
                store.side(
                    family=family,
                    version=version,
                    workload=workload or "",
                    gpu=gpu or "",
                    evidence=evidence,
                    label=f"{family}/{version}",
                )
                for version in versions
            ]
            found.append(_cell(family, versions, sides, evidence, bench))
    return Overview(tuple(found), hidden)


def _newest_first(store: Store) -> list[str]:
    """The families by when their last run was made, the newest first."""
    made: dict[str, datetime] = {}
    for one in store.versions():
        made[one.family] = max(made.get(one.family, one.last_created), one.last_created)
    return sorted(made, key=lambda family: made[family], reverse=True)


def _newest(store: Store, family: str) -> dict[tuple[str | None, str | None, Evidence], list[str]]:
    """The newest version and the one before, of every workload, GPU and evidence of a family."""
    versions = [info.version for info in store.versions(family)][-LOOK_BACK:]
    present: dict[tuple[str | None, str | None, Evidence], list[str]] = {}
    for version in reversed(versions):
        rows = store.results(family=family, version=version, evidence=Evidence.MEASURED)
        for cell in dict.fromkeys(
            (row.workload, row.gpu, row.evidence) for row in rows if row.kind in _SHOWN_KINDS
        ):
            present.setdefault(cell, []).append(version)
    return {
        cell: [version for version in newest_and_before(versions, names) if version is not None]
        for cell, names in present.items()
    }


@dataclass(frozen=True)
class _Bench:
    """What every cell of one overview is judged by."""

    table: MetricTable
    noise: NoiseModel
    limit: int  # launches with a row; of the others only the time is judged

    def times(self, a: Side, b: Side) -> Comparison:
        """The comparison by the calls and the launches' durations alone."""
        headline = self.table.by_concept.get(HEADLINE)
        only = replace(self.table, metrics=(headline,) if headline else ())
        return compare(a, b, only, noise=self.noise)

    def duration(self, launch: Launch, side: Side) -> Value:
        """The time of one launch of a side under the profiler, or why there is none."""
        chip = chip_of(side.compute_capability) if side.compute_capability else None
        return _values(launch, (HEADLINE,), self.table, chip).get(HEADLINE, NOT_COLLECTED)


def _cell(
    family: str, versions: Sequence[str], sides: Sequence[Side], evidence: Evidence, bench: _Bench
) -> OverviewCell:
    newest = sides[0]
    comparison = bench.times(sides[1], newest) if len(sides) > 1 else None
    rows = _rows(newest, comparison, bench)
    changes = [pair.headline for pair in comparison.pairs] if comparison else []
    paired = {id(pair.b) for pair in comparison.pairs} if comparison else set()
    alone = (launch for launch in newest.launches if id(launch) not in paired)
    lost = [Verdict.MISSING for launch in alone if bench.duration(launch, newest).number is None]
    calls = comparison.latency if comparison else compare_latencies(newest, newest, ())
    told = calls if comparison else ()
    return OverviewCell(
        family,
        newest.workload,
        newest.gpu,
        evidence,
        versions[0],
        newest.run_id,
        newest.session.created,
        versions[1] if comparison else None,
        comparison.comparable if comparison else True,
        comparison.differences if comparison else (),
        tuple(rows),
        len(newest.launches) - len(rows),
        tuple(comparison.label(launch) for launch in comparison.only_in_a) if comparison else (),
        Counter((*(one.verdict for one in told), *(one.verdict for one in changes if one), *lost)),
        calls,
    )


def _rows(side: Side, comparison: Comparison | None, bench: _Bench) -> list[OverviewRow]:
    """The longest launches, each with the counters of its pair."""
    pairs = {id(pair.b): pair for pair in comparison.pairs} if comparison else {}
    unsettled = (
        {id(launch): group.why for group in comparison.ambiguous for launch in group.b} if comparison else {}
    )
    chip = chip_of(side.compute_capability) if side.compute_capability else None
    every = [
        (launch, part, bench.duration(launch, side))
        for launch, part in zip(side.launches, launch_labels(side.launches), strict=True)
    ]
    found = []
    for launch, part, duration in sorted(every, key=lambda one: _longest_first(one[2]))[: bench.limit]:
        why = "the first version" if comparison is None else "new in this version"
        why = f"ambiguous: {unsettled[id(launch)]}" if id(launch) in unsettled else why
        pair = pairs.get(id(launch))
        if pair and comparison:
            pair = judge_every_metric(comparison, pair, bench.table, bench.noise)
        shown = _values(launch, SHOWN, bench.table, chip)
        found.append(_row(launch, part, duration, shown, pair, why))
    return found


def _values(
    launch: Launch, concepts: Sequence[str], table: MetricTable, chip: str | None
) -> dict[str, Value]:
    """What the launch carries of those concepts that metrics.txt has."""
    known = {concept: table.by_concept[concept] for concept in concepts if concept in table.by_concept}
    return {concept: table.resolve(metric, launch.values, chip)[1] for concept, metric in known.items()}


def _row(
    launch: Launch,
    part: str,
    duration: Value,
    shown: Mapping[str, Value],
    pair: PairComparison | None,
    why: str,
) -> OverviewRow:
    change = pair.headline if pair else None
    counters = [one for one in pair.metrics if one is not change] if pair else []
    return OverviewRow(
        part,
        launch.base_name,
        launch.grid,
        launch.block,
        duration,
        shown,
        change,
        change.reason if change else why,
        sum(one.verdict is Verdict.BETTER for one in counters),
        sum(one.verdict is Verdict.WORSE for one in counters),
        sum(_is_missing(one) for one in counters if one.judged),
    )


def _is_missing(change: MetricChange) -> bool:
    states = (change.a.state, change.b.state)
    return change.verdict is Verdict.MISSING and State.NOT_AVAILABLE not in states


def _longest_first(duration: Value) -> float:
    """A launch without a duration comes first: it wants attention."""
    return float("-inf") if duration.number is None else -float(duration.number)
