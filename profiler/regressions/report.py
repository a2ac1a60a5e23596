"""Everything that is worse now in an index: each series once, sorted by weight, with acknowledgements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from profiler.compare.clock_drift import HEADLINE
from profiler.compare.environment_change import environment_changes
from profiler.compare.kernel_pairs import NO_PAIRS, Pairing
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.compare.same_code import SameBuildLookup, SameCodeLookup, same_build_lookup, same_code_lookup
from profiler.evidence.metric_table import MetricTable
from profiler.gate.acknowledgement import Acknowledgement, LapsedAcknowledgement, find_acknowledgement
from profiler.history.baselines import Baselines, Pin
from profiler.history.lineage import Lineage
from profiler.history.shared_steps import MIN_SHARE
from profiler.history.trend import LATENCY
from profiler.regressions.correctness_regressions import find_correctness_regressions
from profiler.regressions.exact_regressions import find_exact_regressions
from profiler.regressions.regression import CORRECTNESS, Regression, RegressionKind, SeriesKey
from profiler.regressions.search import Coverage, Search
from profiler.regressions.time_regressions import find_time_regressions
from profiler.statistics.changepoint import LevelKind

if TYPE_CHECKING:
    from profiler.store.index import Store


@dataclass(frozen=True)
class RegressionReport:
    """What is worse now: open regressions first, then wrong results, latencies, and the largest effect."""

    regressions: tuple[Regression, ...]
    coverage: Coverage

    @property
    def open(self) -> tuple[Regression, ...]:
        """The regressions that nobody acknowledged; a known state, a drift and the environment are none."""
        return tuple(regression for regression in self.regressions if regression.is_open)


def find_regressions(
    store: Store,
    table: MetricTable,
    *,
    family: str | None = None,
    lineages: Mapping[str, Lineage] | None = None,
    noise: NoiseModel = UNKNOWN_NOISE,
    acknowledged: Sequence[Acknowledgement] = (),
    pins: Sequence[Pin] = (),
    pairing: Pairing = NO_PAIRS,
    same_code: SameCodeLookup | None = None,
    same_build: SameBuildLookup | None = None,
) -> RegressionReport:
    """What is worse now in every family, or in one.

    Timed calls and ncu durations are judged by the steps of their history, by the newest runs against those
    before, and by the newest runs against the baseline (`Baselines.for_regressions`); the newest results of
    one run are judged together, as by a gate. What repeats exactly (facts of the compiler and of the model,
    counts) is compared between the runs of one version. A rejected version has nothing to lose, and a wrong
    one no speed. `noise` judges values of two runs;
    kernels that `pairing` keeps as one are one series. `same_code` tells a state of the machine from other
    code with the level of an earlier run, and `same_build` what the environment did from what code did; None
    looks into PROFILER_DATA's bundles.
    """
    same_code, same_build = same_code or same_code_lookup(), same_build or same_build_lookup()
    coverage = Coverage()
    searches = []
    for name in [family] if family is not None else store.families():
        own_pins = tuple(pin for pin in pins if pin.family == name)
        baselines = Baselines(store, name, own_pins, (lineages or {}).get(name))
        searches.append(Search(store, table, baselines, coverage, noise, pairing, same_code, same_build))
        coverage.families += 1
    by_series: dict[SeriesKey, Regression] = {}
    # In this order: of two regressions of one series the first explains more.
    for regression in chain(
        *map(find_correctness_regressions, searches),
        find_time_regressions(searches),
        *map(find_exact_regressions, searches),
    ):
        first = by_series.get(regression.series)
        by_series[regression.series] = regression if first is None else _of_one_series(first, regression)
    found = _with_environment(list(by_series.values()), coverage, store)
    return with_acknowledgements(RegressionReport(tuple(found), coverage), acknowledged)


def _with_environment(
    regressions: Sequence[Regression], coverage: Coverage, store: Store
) -> Iterator[Regression]:
    """The regressions; those of one build as what the environment did, where there is a sign of that.

    That is a change of it that the runs record, or that half of the other versions' lines there, and one at
    least, got worse with the same run.
    """
    worse: Counter[tuple[str, str, str, str]] = Counter()
    for one in regressions:
        if one.kind in (RegressionKind.STEP, RegressionKind.RUNS):
            for run in (*one.possible, *one.beside):
                worse[one.series.gpu, run.run_id, one.series.family, run.version] += 1
    for one in regressions:
        moved = one.same_build and (_is_recorded(one, store) or _have_others_moved(one, worse, coverage))
        yield replace(one, environment_moved=moved)


def _is_recorded(regression: Regression, store: Store) -> bool:
    ids = dict.fromkeys(run.run_id for run in (regression.before, *regression.possible))
    runs = [run for run in map(store.run, ids) if run is not None]
    return bool(environment_changes(runs, regression.series.evidence))


def _have_others_moved(
    regression: Regression, worse: Counter[tuple[str, str, str, str]], coverage: Coverage
) -> bool:
    gpu, family = regression.series.gpu, regression.series.family
    for run in regression.possible:
        own = gpu, run.run_id, family, run.version
        of_run = [(key, count) for key, count in worse.items() if key[:2] == own[:2]]
        moved = sum(count for key, count in of_run if key != own)
        others = coverage.lines[gpu, run.run_id] - coverage.own_lines[own]
        if moved and moved >= MIN_SHARE * others:
            return True
    return False


def with_acknowledgements(
    report: RegressionReport, acknowledged: Sequence[Acknowledgement]
) -> RegressionReport:
    """The report with what people let pass now, in its order; the search need not be made again for it."""
    bare = (replace(regression, acknowledged=None, lapsed=None) for regression in report.regressions)
    regressions = [_with_acknowledgement(regression, acknowledged) for regression in bare]
    return RegressionReport(tuple(sorted(regressions, key=_weight)), report.coverage)


def _of_one_series(first: Regression, other: Regression) -> Regression:
    """The regression of a series that was found first, unless its newest runs got worse again since."""
    # A change point needs several runs, so a second, newer slowdown shows in the newest runs alone.
    is_same_run = other.kind is RegressionKind.BASELINE and other.before.run_id == other.now.run_id
    # No state of the machine explains what alternating rounds of one run show, and a drift nothing at all.
    is_explained = first.level is LevelKind.KNOWN and not is_same_run
    if first.level is not LevelKind.NEW and other.level is LevelKind.NEW and not is_explained:
        return other
    if other.slower_than_parent:
        return first
    # What the environment did neither hides what code did nor is hidden by it.
    if first.same_build != other.same_build and other.level is LevelKind.NEW:
        return other if first.same_build else first
    is_newer = other.possible[0].created > first.possible[-1].created
    if is_newer and (first.kind, other.kind) == (RegressionKind.STEP, RegressionKind.RUNS):
        return replace(other, earlier_steps=first.earlier_steps + 1)
    return first


def _with_acknowledgement(regression: Regression, acknowledged: Iterable[Acknowledgement]) -> Regression:
    """The regression with the acknowledgement that lets it pass, or did. Wrong results have none."""
    if regression.became_wrong:
        return regression
    series = regression.series
    acknowledgement = find_acknowledgement(
        acknowledged,
        family=series.family,
        version=series.version,
        workload=series.workload,
        gpu=series.gpu,
        concept=series.concept,
        created=regression.now.created,
        effect=regression.effect,
    )
    if isinstance(acknowledgement, LapsedAcknowledgement):
        return replace(regression, lapsed=acknowledgement)
    return replace(regression, acknowledged=acknowledgement)


def _weight(regression: Regression) -> tuple[object, ...]:
    """A sort key for the report: open, wrong, latency, duration, the rest; large effects first."""
    concepts = (CORRECTNESS, LATENCY, HEADLINE)
    concept = regression.series.concept
    rank = concepts.index(concept) if concept in concepts else len(concepts)
    return not regression.is_open, rank, -regression.size, regression.series
