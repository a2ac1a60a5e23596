"""Calls and ncu durations that got slower: by steps, by the newest runs, and against the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from profiler.compare import counter_noise, latency_words
from profiler.compare.comparison import HEADLINE
from profiler.compare.latency import noise_command
from profiler.compare.metric_verdict import SHORT_NS, Judgement, judge
from profiler.evidence import Evidence, Metric, Value
from profiler.history import change_points
from profiler.history.trend import (
    LATENCY,
    LATENCY_METRIC,
    Trend,
    TrendPoint,
    load_latency_trends,
    load_trends,
)
from profiler.regressions.regression import (
    BASELINE,
    RUNS,
    STEP,
    Regression,
    Search,
    SeriesKey,
    UnclearReason,
    VersionRun,
)
from profiler.statistics import MIN_POINTS, ChangePoint, Decision, Floor, Interval, Verdict, floor, pair
from profiler.statistics.ratios import MARGIN
from profiler.store import SampleArrays

_IsWorse = Callable[[TrendPoint, TrendPoint], bool]
_ACROSS = ("driver", "ncu")  # they are what a step may be due to
_SHORT = "ncu durations under 50 µs, which move by themselves"
_ROUNDS = "live pairs with too few rounds"


class _Contest(NamedTuple):
    """A newest result and what it is held against."""

    series: Trend
    before: TrendPoint
    now: TrendPoint
    held_against: str  # "" for its own past
    first: TrendPoint  # of the level that `now` has
    kind: str  # RUNS or BASELINE


def find_time_regressions(search: Search) -> Iterator[Regression]:
    """One for each series, version and place: its steps first, then its runs, then its baseline."""
    timed: set[tuple[str, str, str]] = set()
    several = load_latency_trends(search.store, family=search.family, wrong=search.wrong)
    contests: list[_Contest] = []
    for one in several:
        search.coverage.series[one.evidence.value] += 1
        timed |= {(point.version, one.workload or "", one.gpu or "") for point in one.points}
        yield from _steps(one, search, LATENCY_METRIC)
        contests += _contests(one, search, _beyond_floor(one, search))
    yield from _judged_calls(contests, search)
    metric = search.table.by_concept.get(HEADLINE)
    if metric is None:
        return
    for one in load_trends(
        search.store,
        HEADLINE,
        search.table,
        family=search.family,
        evidence=Evidence.MEASURED,
        over="time",
        across=_ACROSS,
        wrong=search.wrong,
    ):
        search.coverage.series[one.evidence.value] += 1
        found = [*_steps(one, search, metric)]
        for contest in _contests(one, search, partial(_longer, one, metric, search)):
            found += _judged_duration(contest, metric, search)
        where = (one.workload or "", one.gpu or "")
        yield from (each for each in found if (each.series.version, *where) not in timed)


def _lines(one: Trend, search: Search) -> list[Trend]:
    """What is one level over time: a version's runs; without a catalogue, versions as commits follow."""
    if search.lineage is None:
        views = change_points.series_views(one, (), None)
        chain = [told for over, version, told in views if over == change_points.RUNS and version is None]
        if chain:
            return chain
    names = dict.fromkeys(point.version for point in one.points)
    return [change_points.only_version(one, name) for name in names]


def _steps(one: Trend, search: Search, metric: Metric) -> Iterator[Regression]:
    """The last step for the worse of each line whose level still holds."""
    for line in _lines(one, search):
        found = change_points.change_points_in(line, metric)
        points = [point for point in line.points if point.on_line]
        if not found or not points or not line.points[-1].on_line:
            continue
        final = found[-1].after
        standing = [step for step in found if step.direction > 0 and _holds(step, final, metric)]
        if not standing:
            continue
        step, newest = standing[-1], points[-1]
        is_last = step is found[-1]
        yield Regression(
            _place(line, newest.version),
            line.label,
            STEP,
            _spot(line.points[step.earliest - 1]),
            tuple(_spot(point) for point in line.points[step.earliest : step.latest + 1]),
            _spot(newest),
            Value(step.before, newest.value.unit),
            Value(final, newest.value.unit),
            f"change point, t {step.t:.1f}",
            final / step.before - 1 if step.before else None,
            Interval(*sorted((step.size_low, step.size_high))) if is_last else None,
            "95 %",
            floor=_floor(line, step.before, search),
            earlier_steps=len(standing) - 1,
        )


def _holds(step: ChangePoint, final: float, metric: Metric) -> bool:
    return final > step.before * (1 + metric.threshold)


def _contests(one: Trend, search: Search, is_worse: _IsWorse) -> list[_Contest]:
    """The newest result of each line against its past, and of each version against its baseline."""
    found = []
    for line in _lines(one, search):
        points = [point for point in line.points if point.on_line]
        if len(points) > 1 and line.points[-1].on_line:
            step = _standing(points, is_worse)
            a, first, b = points[step], points[step + 1], points[-1]
            held = "" if a.version == b.version else f"the version before, {a.version}"
            found.append(_Contest(one, a, b, held, first, RUNS))
    newest = {point.version: point for point in one.points if point.on_line}
    for version, point in newest.items():
        baseline = search.baseline(version, one.workload or "", one.gpu or "", newest)
        if baseline is None:
            continue
        others = [
            other
            for other in one.points
            if other.on_line
            and baseline.version in (None, other.version)
            and baseline.run_id in (None, other.run_id)
        ]
        if len({other.version for other in others}) > 1:  # a pinned run holds several: its own counts
            others = [other for other in others if other.version == version]
        if not others or others[-1] is point:
            continue
        runs = {other.run_id: other for other in others}
        own = [each for each in one.points if each.on_line and each.version == version]
        both = next((each for each in reversed(own) if each.run_id in runs), None)
        a, b = (runs[both.run_id], both) if both else (others[-1], point)
        if a is not b:
            found.append(_Contest(one, a, b, baseline.label, b, BASELINE))
    return found


def _standing(points: Sequence[TrendPoint], is_worse: _IsWorse) -> int:
    """The last point before what got worse and stayed so, among those of which no change point tells yet.

    Else the one before the newest. An older step must also stand against the point before it: a single fast
    run, after which all is as it was, is no step.
    """
    last = len(points) - 1
    for at in range(last - 1, max(last - MIN_POINTS, -1), -1):
        older = points[max(at - 1, 0)]
        if all(is_worse(a, b) for a, b in ((points[at], points[at + 1]), (points[at], points[-1]))) and (
            at == last - 1 or is_worse(older, points[-1])
        ):
            return at
    return last - 1


def _beyond_floor(one: Trend, search: Search) -> _IsWorse:
    def is_worse(a: TrendPoint, b: TrendPoint) -> bool:
        x, y = a.value.number, b.value.number
        if x is None or y is None or x <= 0 or y <= x * (1 + MARGIN):
            return False
        here = _floor(one, x, search)
        return here is not None and floor.judge_stored_baseline([x], [y], here).verdict is Verdict.WORSE

    return is_worse


def _longer(series: Trend, metric: Metric, search: Search, a: TrendPoint, b: TrendPoint) -> bool:
    """Whether a launch takes longer, and by more than it does by itself."""
    return _told(series, metric, search, a, b).verdict is Verdict.WORSE


def _told(series: Trend, metric: Metric, search: Search, a: TrendPoint, b: TrendPoint) -> Judgement:
    """Two ncu durations of a series: by the A/A pairs of its place, else by their threshold alone."""
    short = any(point.value.number is not None and point.value.number < SHORT_NS for point in (a, b))
    place = counter_noise.CounterKey(series.family, series.workload or "", series.gpu or "", series.mode)
    learned = partial(search.wobbles, place, series.base_name) if series.gpu else None
    return judge(metric, (a.metric, b.metric), a.value, b.value, short=short, wobble=learned)


def _judged_calls(contests: Sequence[_Contest], search: Search) -> Iterator[Regression]:
    """By the rounds of one run, or by the floor of two."""
    ids = {point.result_id for one in contests for point in (one.before, one.now)}
    held = search.store.samples(sorted(each for each in ids if each is not None))
    for one in contests:
        x, y = (held.get(point.result_id or -1) for point in (one.before, one.now))
        if x is None or y is None or not len(x.ns) or not len(y.ns):
            continue
        search.coverage.pairs += 1
        decision = _decide(one, x, y, search)
        if decision.verdict is Verdict.UNCLEAR:
            search.coverage.unclear[_why(one, decision, search)] += 1
        if decision.verdict is Verdict.WORSE:
            yield Regression(
                _place(one.series, one.now.version),
                LATENCY,
                one.kind,
                _spot(one.before),
                (_spot(one.first),),
                _spot(one.now),
                Value(float(floor.typical_ns(x.ns)), "ns"),
                Value(float(floor.typical_ns(y.ns)), "ns"),
                latency_words.rests_on(decision),
                decision.effect,
                decision.interval,
                latency_words.interval_kind(decision),
                decision.detectable,
                _floor(one.series, float(floor.typical_ns(x.ns)), search),
                one.held_against,
            )


def _decide(one: _Contest, x: SampleArrays, y: SampleArrays, search: Search) -> Decision:
    if one.before.run_id == one.now.run_id and not set(x.rounds.tolist()).isdisjoint(y.rounds.tolist()):
        return pair.judge_live_pair(x, y)
    return floor.judge_stored_baseline(x.ns, y.ns, _floor(one.series, float(floor.typical_ns(x.ns)), search))


def _why(one: _Contest, decision: Decision, search: Search) -> UnclearReason:
    if decision.rule == pair.LIVE_PAIR:
        return UnclearReason(_ROUNDS, "")
    place = ", ".join(filter(None, (one.series.gpu, one.series.mode)))
    return UnclearReason(f"no A/A floor of {place}", noise_command("VERSION", None))


def _judged_duration(one: _Contest, metric: Metric, search: Search) -> Iterator[Regression]:
    search.coverage.pairs += 1
    told = _told(one.series, metric, search, one.before, one.now)
    if told.verdict is Verdict.UNCLEAR:
        search.coverage.unclear[UnclearReason(_SHORT, "profiler collect VERSION")] += 1
    if told.verdict is Verdict.WORSE:
        effect = None if told.change_pct is None else told.change_pct / 100
        yield Regression(
            _place(one.series, one.now.version),
            one.series.label,
            one.kind,
            _spot(one.before),
            (_spot(one.first),),
            _spot(one.now),
            one.before.value,
            one.now.value,
            told.reason if told.interval else "unreplicated: one launch a side",
            effect,
            told.interval,
            "A/A pairs",
            told.limit,
            held_against=one.held_against,
        )


def _floor(one: Trend, ns: float, search: Search) -> Floor | None:
    """The A/A floor of a latency; ncu durations have none."""
    return search.floors(one.gpu or "", one.mode, ns) if one.concept == LATENCY else None


def _place(one: Trend, version: str) -> SeriesKey:
    where = (one.family, version, one.workload or "", one.gpu or "", one.evidence)
    return SeriesKey(*where, one.mode, one.part, one.concept)


def _spot(point: TrendPoint) -> VersionRun:
    return VersionRun(point.run_id, point.version, point.created)
