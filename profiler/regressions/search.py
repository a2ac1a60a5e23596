"""What is worse now in an index: the standing regressions of every version, and what could not be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from profiler.compare.comparison import HEADLINE
from profiler.compare.counter_noise import KeyedNoiseLookup
from profiler.compare.latency import FloorLookup
from profiler.evidence import Evidence, MetricTable, Value
from profiler.gate.acknowledgement import Acknowledgement, LapsedAcknowledgement, find_acknowledgement
from profiler.history.baselines import Baselines, Pin
from profiler.history.lineage import Lineage
from profiler.history.trend import LATENCY
from profiler.regressions.exact_regressions import find_exact_regressions
from profiler.regressions.regression import (
    CORRECTNESS,
    RUNS,
    STEP,
    Coverage,
    Regression,
    Search,
    SeriesKey,
    VersionRun,
)
from profiler.regressions.time_regressions import find_time_regressions

if TYPE_CHECKING:
    from profiler.store import ResultInfo, Store


@dataclass(frozen=True)
class RegressionReport:
    """What is worse now: what nobody let pass first, then wrong results, latency, the largest effect."""

    regressions: tuple[Regression, ...]
    coverage: Coverage

    @property
    def open(self) -> tuple[Regression, ...]:
        """Those that nobody let pass."""
        return tuple(one for one in self.regressions if one.acknowledged is None)


def find_regressions(
    store: Store,
    table: MetricTable,
    *,
    family: str | None = None,
    lineages: Mapping[str, Lineage] | None = None,
    floors: FloorLookup = lambda *_: None,
    wobbles: KeyedNoiseLookup = lambda *_: None,
    acknowledged: Sequence[Acknowledgement] = (),
    pins: Sequence[Pin] = (),
) -> RegressionReport:
    """What is worse now in every family, or in one.

    Calls and ncu durations: by the steps of their history, by the newest runs against those before, and by
    the newest against the baseline, which is what is pinned, else the parent, else the version before. What
    repeats exactly (compiler facts, the model, counts): between the runs of one version. A rejected version
    has nothing to lose, and a wrong one no speed. `floors` judge the calls of two runs, `wobbles` their ncu
    durations.
    """
    looked = Coverage()
    kept: dict[SeriesKey, Regression] = {}
    for name in [family] if family is not None else store.families():
        own_pins = tuple(pin for pin in pins if pin.family == name)
        baselines = Baselines(store, name, own_pins, (lineages or {}).get(name))
        search = Search(store, table, baselines, floors, looked, wobbles)
        looked.families += 1
        for one in (*_correctness(search), *find_time_regressions(search), *find_exact_regressions(search)):
            kept[one.series] = _told(kept[one.series], one) if one.series in kept else one
    told = [_passed(one, acknowledged) for one in kept.values()]
    return RegressionReport(tuple(sorted(told, key=_first)), looked)


def _told(held: Regression, other: Regression) -> Regression:
    """The first that was found, unless its own newest runs got worse again since."""
    newer = other.possible[0].created > held.possible[-1].created
    return (
        replace(other, earlier_steps=held.earlier_steps + 1)
        if newer and (held.kind, other.kind) == (STEP, RUNS)
        else held
    )


def _passed(one: Regression, acknowledged: Iterable[Acknowledgement]) -> Regression:
    """With what lets it pass, or did; what is wrong nobody can let pass."""
    place = one.series
    if place.concept == CORRECTNESS:
        return one
    found = find_acknowledgement(
        acknowledged,
        family=place.family,
        version=place.version,
        workload=place.workload,
        gpu=place.gpu,
        concept=place.concept,
        made=one.now.created,
        effect=one.effect,
    )
    if isinstance(found, LapsedAcknowledgement):
        return replace(one, lapsed=found)
    return replace(one, acknowledged=found)


def _first(one: Regression) -> tuple[object, ...]:
    order = (CORRECTNESS, LATENCY, HEADLINE)
    concept = one.series.concept
    rank = order.index(concept) if concept in order else len(order)
    return one.acknowledged is not None, rank, -one.size, one.series


def _correctness(search: Search) -> Iterator[Regression]:
    """What was right and is wrong now, once for each version, workload, GPU and kind of evidence."""
    rows = search.store.results(family=search.family)
    wrong = [row for row in rows if _is_wrong(row) and row.version not in search.rejected]
    cells = dict.fromkeys((row.version, row.workload or "", row.gpu or "", row.evidence) for row in wrong)
    for version, workload, gpu, evidence in cells:
        history = search.store.results(
            family=search.family,
            version=version,
            workload=workload,
            gpu=gpu,
            evidence=evidence,
            latest=False,
        )
        by_run: dict[VersionRun, list[ResultInfo]] = {}
        for row in sorted(history, key=lambda row: (row.created, row.run_id)):
            by_run.setdefault(VersionRun(row.run_id, version, row.created), []).append(row)
        state = {spot: next((row for row in own if _is_wrong(row)), None) for spot, own in by_run.items()}
        spots = list(state)
        right = [place for place, spot in enumerate(spots) if state[spot] is None]
        if not right or right[-1] == len(spots) - 1:
            continue
        now = state[spots[-1]]
        assert now is not None
        where = (search.family, version, workload, gpu, evidence)
        reason = now.reason or now.status
        yield Regression(
            SeriesKey(*where, "", "", CORRECTNESS),
            CORRECTNESS,
            CORRECTNESS,
            spots[right[-1]],
            (spots[right[-1] + 1],),
            spots[-1],
            Value(None, text="right"),
            Value(None, text="wrong"),
            reason,
        )


def _is_wrong(row: ResultInfo) -> bool:
    """Whether a check found it so; the CPU can run every version, so what failed there is wrong."""
    return row.status == "wrong" or (row.status == "failed" and row.evidence is Evidence.MODELLED)
