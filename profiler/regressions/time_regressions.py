"""Finds timed calls and ncu durations that got slower: by steps, by the newest runs, against the baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from profiler.compare import (
    HEADLINE,
    SHORT_NS,
    CounterKey,
    Judgement,
    MetricChange,
    is_other_grid,
    judge,
    judge_duration,
    latency_words,
    noise_command,
)
from profiler.evidence import NOT_COLLECTED, Evidence, Metric, Value
from profiler.history import LATENCY, Trend, TrendPoint, change_points, load_latency_trends, load_trends
from profiler.history.trend import LATENCY_METRIC
from profiler.regressions.regression import Regression, RegressionKind, SeriesKey, VersionRun
from profiler.regressions.search import Search, UnclearReason
from profiler.statistics import (
    LIVE_PAIR,
    MIN_POINTS,
    ChangePoint,
    Decision,
    Interval,
    LevelKind,
    NoiseFloor,
    Verdict,
    judge_live_pair,
    judge_stored_baseline,
    typical_ns,
)
from profiler.statistics.ratios import MARGIN
from profiler.store import SampleArrays

_Size = tuple[int, int, int]
_LaunchSize = tuple[_Size | None, _Size | None]  # grid and block
_IsWorse = Callable[[TrendPoint, TrendPoint], bool]  # of the older and the newer
_ACROSS = ("driver", "ncu")  # may differ along a series, since a step may be due to them
_SHORT = "ncu durations under 50 µs, which move by themselves"
_FEW_ROUNDS = "live pairs with too few rounds"


class _PointPair(NamedTuple):
    """A newest result and the result that it is compared with."""

    series: Trend
    before: TrendPoint
    now: TrendPoint
    held_against: str  # the baseline's label; "" for the version's own past
    first: TrendPoint  # the first point with the level of `now`
    kind: RegressionKind  # RUNS or BASELINE
    line: Trend | None = None  # RUNS: the part of the series that the two are in


def find_time_regressions(search: Search) -> Iterator[Regression]:
    """All time regressions of each series: by its steps, then its newest runs, then its baseline."""
    timed: set[tuple[str, str, str]] = set()
    pairs: list[_PointPair] = []
    for series in load_latency_trends(search.store, family=search.family, wrong=search.wrong):
        search.coverage.series[series.evidence.value] += 1
        _count_lines(series, search)
        timed |= {(point.version, series.workload or "", series.gpu or "") for point in series.points}
        yield from _steps(series, search, LATENCY_METRIC)
        pairs += _pairs(series, search, _slower_than_floor(series, search))
    yield from _judge_latencies(pairs, search)
    metric = search.table.by_concept.get(HEADLINE)
    if metric is None:
        return
    trends = load_trends(
        search.store,
        HEADLINE,
        search.table,
        family=search.family,
        evidence=Evidence.MEASURED,
        over="time",
        across=_ACROSS,
        wrong=search.wrong,
        pairing=search.pairing,
    )
    newest_runs = _newest_runs(trends)
    for series in trends:
        search.coverage.series[series.evidence.value] += 1
        if not any(
            (point.version, series.workload or "", series.gpu or "") in timed for point in series.points
        ):
            _count_lines(series, search)
        regressions = [*_steps(series, search, metric)]
        for point_pair in _pairs(series, search, partial(_takes_longer, series, metric, search)):
            regressions += _judge_duration(point_pair, metric, search)
        # Where calls were timed, they decide: ncu's duration would report the same regression again.
        cell = (series.workload or "", series.gpu or "")
        for regression in regressions:
            is_timed = (regression.series.version, *cell) in timed
            if is_timed or not _is_now(regression, series, search, newest_runs):
                continue
            if confirmed := search.confirm(regression):
                yield confirmed
    for candidate in _of_moved_places(trends, search):
        if confirmed := search.confirm(candidate, count=False):
            yield confirmed


def _of_moved_places(trends: Sequence[Trend], search: Search) -> Iterator[Regression]:
    """Every launch of a kernel whose launches changed places or number since the run before, to be confirmed.

    A series joins the launches of one place, so that a launch that moved is in none with its own past.
    """
    if search.lineage is not None:  # the launches of a catalogue's version have fixed places
        return
    kernels: dict[tuple[object, ...], list[Trend]] = defaultdict(list)
    for series in trends:
        kernels[_kernel_of(series)].append(series)
    for several in kernels.values():
        if len(several) < 2:
            continue
        places_by_run: dict[VersionRun, dict[str, TrendPoint]] = defaultdict(dict)
        for series in several:
            for point in series.points:
                if point.on_line:
                    places_by_run[_version_run(point)][series.part] = point
        runs = sorted(places_by_run, key=lambda run: (run.created, run.run_id))
        now, earlier = runs[-1], runs[:-1]
        before = next((run for run in reversed(earlier) if run.version == now.version), None)
        before = before or (earlier[-1] if earlier else None)
        if before is None or _sizes(places_by_run[before]) == _sizes(places_by_run[now]):
            continue
        held_against = "" if before.version == now.version else f"the version before, {before.version}"
        for series in several:
            if launch := places_by_run[now].get(series.part):
                yield Regression(
                    _series_key(series, now.version),
                    series.label,
                    RegressionKind.RUNS,
                    before,
                    (now,),
                    now,
                    NOT_COLLECTED,  # which launch was its own is what has to be found
                    launch.value,
                    "",
                    held_against=held_against,
                )


def _sizes(places: Mapping[str, TrendPoint]) -> dict[str, _LaunchSize]:
    return {part: (point.grid, point.block) for part, point in places.items()}


def _is_now(
    regression: Regression, series: Trend, search: Search, newest_runs: Mapping[tuple[object, ...], datetime]
) -> bool:
    """Whether no later run has the kernel: it may have it with fewer launches, so in fewer series."""
    own_version = regression.series.version
    # Where versions follow one another, the newest of them with this kernel is how it is now.
    follows = search.lineage is None and search.baselines.pin_for(series.workload, series.gpu) is None
    is_between_versions = follows and regression.before.version != own_version
    key = *_kernel_of(series), None if is_between_versions else own_version
    return regression.now.created >= newest_runs[key]


def _kernel_of(series: Trend) -> tuple[object, ...]:
    return series.workload, series.gpu, series.mode, series.base_name


def _newest_runs(trends: Sequence[Trend]) -> dict[tuple[object, ...], datetime]:
    """By kernel and version (None: any version), when the newest run that has it was made.

    A run has a kernel where any launch of it has a number.
    """
    newest: dict[tuple[object, ...], datetime] = {}
    for series in trends:
        for point in series.points:
            for version in (point.version, None) if point.on_line else ():
                key = *_kernel_of(series), version
                newest[key] = max(point.created, newest.get(key, point.created))
    return newest


def _count_lines(series: Trend, search: Search) -> None:
    """Count the lines that have a value before that of each run, so that it could have shown as worse."""
    for line in _lines(series, search):
        runs = [point.run_id for point in line.points if point.on_line]
        for run_id in dict.fromkeys(runs[1:]):
            search.coverage.lines[series.gpu or "", run_id] += 1


def _lines(series: Trend, search: Search) -> list[Trend]:
    """The parts of a series with one level each: a version's runs, or all runs of versions like commits."""
    if search.lineage is None:
        for view in change_points.series_views(series, (), None):
            if view.over == change_points.RUNS and view.version is None:
                return [_of_one_size(view.series, search)]
    names = dict.fromkeys(point.version for point in series.points)
    return [_of_one_size(change_points.only_version(series, name), search) for name in names]


def _of_one_size(line: Trend, search: Search) -> Trend:
    """The line without points of other grids, which are other workloads where none is declared.

    The whole line where the newest launch is the only one of its size: `compare` then knows whether other
    code is why.
    """
    newest = next((point for point in reversed(line.points) if point.on_line), None)
    # Of declared pairs the sizes may differ.
    if line.workload or newest is None or search.pairing.kept(search.family):
        return line
    points = tuple(point for point in line.points if not point.on_line or not is_other_grid(point, newest))
    is_alone = sum(point.on_line for point in points) < 2
    return line if is_alone else replace(line, points=points)


def _steps(series: Trend, search: Search, metric: Metric) -> Iterator[Regression]:
    """For each line, the last step for the worse whose level still holds.

    A new level comes before a known state or a drift, which are listed where there is no other.
    """
    for line in _lines(series, search):
        steps = [_with_own_kind(step, line, search) for step in change_points.change_points_in(line, metric)]
        points = [point for point in line.points if point.on_line]
        if not steps or not points or not line.points[-1].on_line:
            continue
        level_now = steps[-1].after
        standing = [
            step
            for step in steps
            if step.direction > 0
            and step.kind is not LevelKind.LEFT
            and _still_holds(step, level_now, metric)
            and not _is_by_clock(line, step, level_now, search)
        ]
        standing = [step for step in standing if step.is_alarm] or standing
        if not standing:
            continue
        step, newest = standing[-1], points[-1]
        is_drift = step.kind is LevelKind.DRIFT
        places = line.points[step.earliest - 1], *line.points[step.latest + 1 : step.latest + 2]
        # If a later step changed the level again, this step's interval is not that of the whole change.
        is_last = step is steps[-1]
        yield Regression(
            _series_key(line, newest.version),
            line.label,
            RegressionKind.STEP,
            _version_run(line.points[step.earliest - 1]),
            tuple(_version_run(point) for point in line.points[step.earliest : step.latest + 1]),
            _version_run(newest),
            Value(step.before, newest.value.unit),
            Value(level_now, newest.value.unit),
            "the values move slowly, without a step" if is_drift else f"change point, t {step.t:.1f}",
            level_now / step.before - 1 if step.before else None,
            Interval(*sorted((step.size_low, step.size_high))) if is_last and not is_drift else None,
            "95 %",
            floor=_floor(line, step.before, search),
            earlier_steps=len(standing) - 1,
            level=step.kind,
            beside=tuple(_version_run(point) for point in places),
            equal=None if step.related is None else _version_run(line.points[step.related]),
        )


def _with_own_kind(step: ChangePoint, line: Trend, search: Search) -> ChangePoint:
    """The step, as one to a new level where other code came with it: that is no state of the machine."""
    if step.related is None:
        return step
    ends = [line.points[at] for at in (step.earliest - 1, step.latest)]
    before, after = ((point.run_id, point.version) for point in ends)
    if search.same_code(before, after) is not False:
        return step
    return replace(step, kind=LevelKind.NEW, related=None)


def _in_known_state(regression: Regression, line: Trend | None, metric: Metric, search: Search) -> Regression:
    """The regression of the newest runs, as a known state where their level is one that came and went before.

    The newest runs may be too few for a step of their own. Without a line it is returned as it is.
    """
    now = regression.b.number
    if line is None or now is None or search.same_code(regression.before[:2], regression.now[:2]) is False:
        return regression
    for step in change_points.change_points_in(line, metric):
        if step.related is None or _with_own_kind(step, line, search).is_alarm:
            continue
        for level, at in ((step.before, step.earliest - 1), (step.after, step.index)):
            if abs(now - level) <= metric.threshold * abs(level):
                equal = _version_run(line.points[at])
                return replace(regression, level=LevelKind.KNOWN, equal=equal)
    return regression


def _still_holds(step: ChangePoint, level_now: float, metric: Metric) -> bool:
    return level_now > step.before * (1 + metric.threshold)


def _is_by_clock(line: Trend, step: ChangePoint, level_now: float, search: Search) -> bool:
    """Whether the SM clock alone made a step: by the launches nearest to the levels before it and now."""
    before = [point for point in line.points[: step.earliest] if point.on_line]
    after = [point for point in line.points[step.latest :] if point.on_line]
    if line.concept == LATENCY or not before or not after:
        return False
    a = min(before, key=lambda point: abs((point.value.number or 0.0) - step.before))
    b = min(after, key=lambda point: abs((point.value.number or 0.0) - level_now))
    return _judged_by_cycles(line, search, a, b) is not None


def _pairs(series: Trend, search: Search, is_worse: _IsWorse) -> list[_PointPair]:
    """The newest result of each line beside its past, and of each version beside its baseline."""
    pairs = []
    for line in _lines(series, search):
        points = [point for point in line.points if point.on_line]
        if len(points) > 1 and line.points[-1].on_line:
            last_good = _last_before_worse(points, is_worse)
            a, first, b = points[last_good], points[last_good + 1], points[-1]
            held_against = "" if a.version == b.version else f"the version before, {a.version}"
            pairs.append(_PointPair(series, a, b, held_against, first, RegressionKind.RUNS, line))
    newest = {point.version: point for point in series.points if point.on_line}
    for version in newest:
        if point_pair := _baseline_pair(series, search, version, newest):
            pairs.append(point_pair)
    return pairs


def _baseline_pair(
    series: Trend, search: Search, version: str, newest: dict[str, TrendPoint]
) -> _PointPair | None:
    """A version's newest result beside its baseline's, of a run that timed both where there is one."""
    baseline = search.baseline(version, series.workload or "", series.gpu or "", newest)
    if baseline is None:
        return None
    of_baseline = [
        point
        for point in series.points
        if point.on_line
        and baseline.version in (None, point.version)
        and baseline.run_id in (None, point.run_id)
    ]
    # A pinned run may have several versions: then its own results of the version count.
    if len({point.version for point in of_baseline}) > 1:
        of_baseline = [point for point in of_baseline if point.version == version]
    if not of_baseline or of_baseline[-1] is newest[version]:
        return None
    by_run = {point.run_id: point for point in of_baseline}
    own = [point for point in series.points if point.on_line and point.version == version]
    timed_together = next((point for point in reversed(own) if point.run_id in by_run), None)
    if timed_together is not None:
        a, b = by_run[timed_together.run_id], timed_together
    else:
        a, b = of_baseline[-1], newest[version]
    return _PointPair(series, a, b, baseline.label, b, RegressionKind.BASELINE) if a is not b else None


def _last_before_worse(points: Sequence[TrendPoint], is_worse: _IsWorse) -> int:
    """The index of the last point before the results got worse and stayed so; else of the last but one.

    Only the newest points are searched, too few for a change point. An older step also has to hold against
    the point before it, since one fast run among slow ones is no step.
    """
    last = len(points) - 1
    for index in range(last - 1, max(last - MIN_POINTS, -1), -1):
        before, after, older = points[index], points[index + 1], points[max(index - 1, 0)]
        holds = is_worse(before, after) and is_worse(before, points[-1])
        if holds and (index == last - 1 or is_worse(older, points[-1])):
            return index
    return last - 1


def _slower_than_floor(series: Trend, search: Search) -> _IsWorse:
    """A predicate: are calls slower by more than the A/A noise floor?"""

    def is_worse(a: TrendPoint, b: TrendPoint) -> bool:
        before, after = a.value.number, b.value.number
        if before is None or after is None or before <= 0 or after <= before * (1 + MARGIN):
            return False
        aa_floor = _floor(series, before, search)
        if aa_floor is None:
            return False
        return judge_stored_baseline([before], [after], aa_floor).verdict is Verdict.WORSE

    return is_worse


def _takes_longer(series: Trend, metric: Metric, search: Search, a: TrendPoint, b: TrendPoint) -> bool:
    """Whether a launch takes longer by more than its duration varies."""
    return _compare_durations(series, metric, search, a, b).verdict is Verdict.WORSE


def _compare_durations(
    series: Trend, metric: Metric, search: Search, a: TrendPoint, b: TrendPoint
) -> Judgement:
    """The judgement of two ncu durations, by A/A pairs of their kind, else by their threshold.

    Where the SM clock alone made the newer one longer it is the same, as in a comparison of the two launches.
    """
    short = any(point.value.number is not None and point.value.number < SHORT_NS for point in (a, b))
    noise = partial(search.noise.counter_noise, _noise_key(series), series.base_name)
    judgement = judge(metric, (a.metric, b.metric), a.value, b.value, short=short, noise=noise)
    if judgement.verdict is not Verdict.WORSE:
        return judgement
    by_cycles = _judged_by_cycles(series, search, a, b)
    return judgement._replace(verdict=by_cycles.verdict, reason=by_cycles.reason) if by_cycles else judgement


def _judged_by_cycles(series: Trend, search: Search, a: TrendPoint, b: TrendPoint) -> MetricChange | None:
    """The change of the duration where the SM clock alone made it; None where it did not."""
    if a.result_id is None or b.result_id is None:
        return None
    # A series has the durations alone: the other counters are read for the few that got worse.
    before, now = search.store.load([a.result_id, b.result_id])
    change = judge_duration(before, now, search.table, _noise_key(series), search.noise)
    return change if change and change.judged_by else None


def _noise_key(series: Trend) -> CounterKey:
    return CounterKey(series.family, series.workload or "", series.gpu or "", series.mode)


def _judge_latencies(pairs: Sequence[_PointPair], search: Search) -> Iterator[Regression]:
    """The regressions among pairs of timed calls, by the rounds of one run or by the floor of two."""
    ids = {point.result_id for point_pair in pairs for point in (point_pair.before, point_pair.now)}
    samples = search.store.samples(sorted(result_id for result_id in ids if result_id is not None))
    for point_pair in pairs:
        a, b = (samples.get(point.result_id or -1) for point in (point_pair.before, point_pair.now))
        if a is None or b is None or not len(a.ns) or not len(b.ns):
            continue
        search.coverage.pairs += 1
        a_ns, b_ns = (float(typical_ns(side.ns)) for side in (a, b))
        aa_floor = _floor(point_pair.series, a_ns, search)
        if _share_rounds(point_pair, a, b):
            decision = judge_live_pair(a, b)
        else:
            decision = judge_stored_baseline(a.ns, b.ns, aa_floor)
        if decision.verdict is Verdict.UNCLEAR:
            search.coverage.unclear[_why_unclear(point_pair, decision)] += 1
        if decision.verdict is Verdict.WORSE:
            regression = Regression(
                _series_key(point_pair.series, point_pair.now.version),
                LATENCY,
                point_pair.kind,
                _version_run(point_pair.before),
                (_version_run(point_pair.first),),
                _version_run(point_pair.now),
                Value(a_ns, "ns"),
                Value(b_ns, "ns"),
                latency_words.rests_on(decision),
                decision.effect,
                decision.interval,
                latency_words.interval_kind(decision),
                decision.detectable,
                aa_floor,
                point_pair.held_against,
            )
            yield _in_known_state(regression, point_pair.line, LATENCY_METRIC, search)


def _share_rounds(point_pair: _PointPair, a: SampleArrays, b: SampleArrays) -> bool:
    """Whether the two were timed alternately, so that the state of the GPU cancels out."""
    same_run = point_pair.before.run_id == point_pair.now.run_id
    return same_run and not set(a.rounds.tolist()).isdisjoint(b.rounds.tolist())


def _why_unclear(point_pair: _PointPair, decision: Decision) -> UnclearReason:
    if decision.rule == LIVE_PAIR:
        return UnclearReason(_FEW_ROUNDS, "")
    place = ", ".join(filter(None, (point_pair.series.gpu, point_pair.series.mode)))
    return UnclearReason(f"no A/A floor of {place}", noise_command("VERSION", None))


def _judge_duration(point_pair: _PointPair, metric: Metric, search: Search) -> Iterator[Regression]:
    """The regression of a pair of ncu durations, if it is one."""
    search.coverage.pairs += 1
    series, before, now = point_pair.series, point_pair.before, point_pair.now
    judgement = _compare_durations(series, metric, search, before, now)
    if judgement.verdict is Verdict.UNCLEAR:
        search.coverage.unclear[UnclearReason(_SHORT, "profiler collect VERSION")] += 1
    if judgement.verdict is Verdict.WORSE:
        regression = Regression(
            _series_key(series, now.version),
            series.label,
            point_pair.kind,
            _version_run(before),
            (_version_run(point_pair.first),),
            _version_run(now),
            before.value,
            now.value,
            judgement.reason if judgement.interval else "unreplicated: one launch a side",
            None if judgement.change_pct is None else judgement.change_pct / 100,
            judgement.interval,
            "A/A pairs",
            judgement.limit,
            held_against=point_pair.held_against,
        )
        yield _in_known_state(regression, point_pair.line, metric, search)


def _floor(series: Trend, ns: float, search: Search) -> NoiseFloor | None:
    """The noise floor of a latency; None for ncu durations."""
    if series.concept != LATENCY:
        return None
    return search.noise.floor(series.gpu or "", series.mode, ns, series.family)


def _series_key(series: Trend, version: str) -> SeriesKey:
    return SeriesKey(
        series.family,
        version,
        series.workload or "",
        series.gpu or "",
        series.evidence,
        series.mode,
        series.part,
        series.concept,
    )


def _version_run(point: TrendPoint) -> VersionRun:
    return VersionRun(point.run_id, point.version, point.created)
