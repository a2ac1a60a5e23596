"""Finds timed calls and ncu durations that got slower: by steps, by the newest runs, against the baseline."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from profiler.compare.clock_drift import HEADLINE
from profiler.compare.counter_noise import CounterKey
from profiler.compare.judged import Judged, judge_calls, judge_in_one_table
from profiler.compare.latency import noise_command
from profiler.compare.pair_comparison import MetricChange
from profiler.compare.workload_change import is_other_grid
from profiler.evidence.cell import Cell
from profiler.evidence.metric_table import Metric
from profiler.evidence.values import NOT_COLLECTED, Evidence, Value
from profiler.history import change_points
from profiler.history.baselines import Baseline
from profiler.history.trend import (
    LATENCY,
    LATENCY_METRIC,
    Trend,
    TrendPoint,
    load_latency_trends,
    load_trends,
)
from profiler.regressions.regression import Regression, RegressionKind, SeriesKey, VersionRun
from profiler.regressions.search import Search, UnclearReason
from profiler.statistics.changepoint import MIN_POINTS, ChangePoint, LevelKind
from profiler.statistics.decision import Interval
from profiler.statistics.noise_floor import NoiseFloor, judge_stored_baseline, shorter_ns
from profiler.statistics.ratios import MARGIN
from profiler.statistics.verdict import Verdict
from profiler.store.rows import SampleArrays

_Size = tuple[int, int, int]
_LaunchSize = tuple[_Size | None, _Size | None]  # grid and block
_IsWorse = Callable[[TrendPoint, TrendPoint], bool]  # of the older and the newer
_SHORT = UnclearReason("ncu durations under 50 µs, which vary without a change", "profiler collect VERSION")
_BY_CLOCK = UnclearReason(
    "ncu durations that moved in equal cycles, without a counter of the SM clock", "profiler collect VERSION"
)
_FEW_ROUNDS = "live pairs with too few rounds"
_BY_CHANCE = UnclearReason(
    "slower, but within chance among all newest timings of its run", "profiler collect VERSION"
)


class _PointPair(NamedTuple):
    """A newest result and the result that it is compared with."""

    series: Trend
    before: TrendPoint
    now: TrendPoint
    held_against: str  # the baseline's label; "" for the version's own past
    first: TrendPoint  # the first point with the level of `now`
    kind: RegressionKind  # RUNS or BASELINE
    line: Trend | None = None  # RUNS: the part of the series that the two are in
    slower_than_parent: bool = False  # BASELINE: whether being slower than that is no regression


class _Check(NamedTuple):
    """A newest result judged against another."""

    search: Search
    point_pair: _PointPair
    judged: Judged


class _Durations(NamedTuple):
    """A series of ncu durations: its steps, and the checks of its newest results."""

    series: Trend
    steps: list[Regression]
    checks: list[_Check]


def find_time_regressions(searches: Sequence[Search]) -> Iterator[Regression]:
    """All time regressions of each series: by its steps, then its newest runs, then its baseline.

    The newest results of all families are judged together, as a gate judges those of a run.
    """
    timed: set[Cell] = set()
    latencies: list[_Check] = []
    for search in searches:
        pairs: list[_PointPair] = []
        for series in load_latency_trends(search.store, family=search.family, wrong=search.wrong):
            search.coverage.series[series.evidence.value] += 1
            lines = _lines(series, search)
            _count_lines(lines, search)
            timed |= {_cell(series, version) for version in _versions(series)}
            yield from filter(None, map(search.confirm_calls, _steps(lines, search, LATENCY_METRIC)))
            pairs += _pairs(series, lines, search, _slower_than_floor(series, search))
        latencies += _check_latencies(pairs, search)
    for search, regression in _standing(_together(latencies)):
        if confirmed := search.confirm_calls(regression):
            yield confirmed
    families = [(search, *_check_durations(search, timed)) for search in searches]
    checks = [check for _, _, of_family in families for durations in of_family for check in durations.checks]
    judged = iter(_together(checks))
    for search, trends, of_family in families:
        newest_runs = _newest_runs(trends)
        for durations in of_family:
            own_checks = [next(judged) for _ in durations.checks]
            longer = (regression for _, regression in _standing(own_checks))
            regressions = [*durations.steps, *longer]
            # Where calls were timed, they decide: ncu's duration would report the same regression again.
            for regression in regressions:
                is_timed = _cell(durations.series, regression.series.version) in timed
                if is_timed or not _is_now(regression, durations.series, search, newest_runs):
                    continue
                if confirmed := search.confirm(regression):
                    yield confirmed
        for candidate in _of_moved_places(trends, search):
            if confirmed := search.confirm(candidate, count=False):
                yield confirmed


def _versions(series: Trend) -> dict[str, None]:
    """The versions of a series, by their first points."""
    return dict.fromkeys(point.version for point in series.points)


def _cell(series: Trend, version: str) -> Cell:
    return Cell(series.family, version, series.workload or "", series.gpu or "", series.evidence)


def _check_durations(search: Search, timed: Collection[Cell]) -> tuple[list[Trend], list[_Durations]]:
    """The ncu durations of a family, and what each series shows by itself."""
    metric = search.table.by_concept.get(HEADLINE)
    if metric is None:
        return [], []
    trends = load_trends(
        search.store,
        HEADLINE,
        search.table,
        family=search.family,
        evidence=Evidence.MEASURED,
        over="time",
        across=change_points.ACROSS,
        wrong=search.wrong,
        pairing=search.pairing,
    )
    durations = []
    for series in trends:
        search.coverage.series[series.evidence.value] += 1
        lines = _lines(series, search)
        if not any(_cell(series, version) in timed for version in _versions(series)):
            _count_lines(lines, search)
        checks = [
            _Check(search, pair, _judge_durations(series, search, pair.before, pair.now))
            for pair in _pairs(series, lines, search, partial(_takes_longer, series, search))
        ]
        # Where calls were timed, they decide: nobody asks for the steps of what ncu timed there.
        untimed = [line for line in lines if _cell(line, line.newest_point.version) not in timed]
        durations.append(_Durations(series, [*_steps(untimed, search, metric)], checks))
    return trends, durations


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
            for point in series.points_on_line:
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
        of_versions: dict[str | None, datetime] = {}
        for point in series.points_on_line:
            if point.created >= of_versions.get(point.version, point.created):
                of_versions[point.version] = point.created
        if of_versions:
            of_versions[None] = max(of_versions.values())
        for version, created in of_versions.items():
            key = *_kernel_of(series), version
            newest[key] = max(created, newest.get(key, created))
    return newest


def _count_lines(lines: Sequence[Trend], search: Search) -> None:
    """Count the lines that have a value before that of each run, so that it could have shown as worse."""
    for line in lines:
        versions = {point.run_id: point.version for point in line.points_on_line[1:]}
        for run_id, version in versions.items():
            search.coverage.lines[line.gpu or "", run_id] += 1
            search.coverage.own_lines[line.gpu or "", run_id, line.family, version] += 1


def _lines(series: Trend, search: Search) -> list[Trend]:
    """The parts of a series with one level each: a version's runs, or all runs of versions like commits.

    A version that has no number there is left out.
    """
    if search.lineage is None:
        for view in change_points.series_views(series, (), None):
            if view.over == change_points.RUNS and view.version is None:
                return [_of_one_size(view.series, search)]
    return [_of_one_size(line, search) for line in change_points.by_version(series)]


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


def _steps(lines: Sequence[Trend], search: Search, metric: Metric) -> Iterator[Regression]:
    """For each line, the last step for the worse whose level still holds.

    A new level comes before a known state or a drift, which are listed where there is no other.
    """
    for line in lines:
        steps = [_with_own_kind(step, line, search) for step in change_points.change_points_in(line, metric)]
        points = line.points_on_line
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
        alarms = [step for step in standing if step.is_alarm]
        of_code = [step for step in alarms if not _is_of_one_build(_ends(line, step), search)]
        standing = of_code or alarms or standing
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
            _interval(step) if is_last and not is_drift else None,
            "95 %",
            floor=_floor(line, step.before, newest, search),
            earlier_steps=len(standing) - 1,
            level=step.kind,
            beside=tuple(_version_run(point) for point in places),
            equal=None if step.related is None else _version_run(line.points[step.related]),
            same_build=step.is_alarm and not of_code,
        )


def _interval(step: ChangePoint) -> Interval | None:
    """The interval of a step's size; None where the values drift beside it."""
    low, high = sorted((step.size_low, step.size_high))
    return None if math.isnan(low) else Interval(low, high)


def _ends(line: Trend, step: ChangePoint) -> list[VersionRun]:
    """The last run that surely has the level before a step, and those with which the new one may begin."""
    return [_version_run(point) for point in line.points[step.earliest - 1 : step.latest + 1]]


def _is_of_one_build(runs: Sequence[VersionRun], search: Search) -> bool:
    """Whether all of these runs are known to be of the build that the first of them measured."""
    first, *others = dict.fromkeys((run.run_id, run.version) for run in runs)
    # Two versions of one run have one environment, whatever is known of their code.
    return all(first[0] != other[0] and search.same_build(first, other) for other in others)


def _of_environment(regression: Regression, search: Search) -> Regression:
    """The regression of the newest runs; where they are of one build, as what the environment did."""
    runs = (regression.before, *regression.possible, regression.now)
    is_between_runs = regression.before.run_id != regression.now.run_id
    return replace(regression, same_build=is_between_runs and _is_of_one_build(runs, search))


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
    change = _judged_by_cycles(line, search, a, b)
    if change is not None and change.verdict is Verdict.UNCLEAR:
        search.coverage.unclear[_BY_CLOCK] += 1
    return change is not None


def _pairs(series: Trend, lines: Sequence[Trend], search: Search, is_worse: _IsWorse) -> list[_PointPair]:
    """The newest result of each line beside its past, and of each version beside its baseline."""
    pairs = []
    for line in lines:
        points = line.points_on_line
        if len(points) > 1 and line.points[-1].on_line:
            last_good = _last_before_worse(points, is_worse)
            a, first, b = points[last_good], points[last_good + 1], points[-1]
            held_against = "" if a.version == b.version else f"the version before, {a.version}"
            pairs.append(_PointPair(series, a, b, held_against, first, RegressionKind.RUNS, line))
    points_of: dict[str, list[TrendPoint]] = defaultdict(list)
    for point in series.points_on_line:
        points_of[point.version].append(point)
    for version in points_of:
        if point_pair := _baseline_pair(series, search, version, points_of):
            pairs.append(point_pair)
    return pairs


def _baseline_pair(
    series: Trend, search: Search, version: str, points_of: Mapping[str, Sequence[TrendPoint]]
) -> _PointPair | None:
    """A version's newest result beside its baseline's, of a run that timed both where there is one.

    `points_of` has the points on the line of each version.
    """
    baseline = search.baseline(version, series.workload or "", series.gpu or "", points_of)
    pair = None if baseline is None else _pair_with(series, search, version, points_of, baseline)
    is_of_ancestor = pair is not None and pair.slower_than_parent and search.lineage is not None
    if baseline is None or baseline.pin is None or not is_of_ancestor:
        return pair
    # That the pinned version, which was made from this one, is faster says nothing of it: its parent does.
    parent = search.parent(version)
    return None if parent is None else _pair_with(series, search, version, points_of, parent)


def _pair_with(
    series: Trend,
    search: Search,
    version: str,
    points_of: Mapping[str, Sequence[TrendPoint]],
    baseline: Baseline,
) -> _PointPair | None:
    """A version's newest result beside that of a baseline; None where there is none to pair it with."""
    candidates = series.points_on_line if baseline.version is None else points_of.get(baseline.version, ())
    of_baseline = [point for point in candidates if baseline.run_id in (None, point.run_id)]
    own = points_of[version]
    # A pinned run may have several versions: then its own results of the version count.
    if len({point.version for point in of_baseline}) > 1:
        of_baseline = [point for point in of_baseline if point.version == version]
    if not of_baseline or of_baseline[-1] is own[-1]:
        return None
    by_run = {point.run_id: point for point in of_baseline}
    timed_together = next((point for point in reversed(own) if point.run_id in by_run), None)
    if timed_together is not None:
        a, b = by_run[timed_together.run_id], timed_together
    else:
        a, b = of_baseline[-1], own[-1]
    if a is b:
        return None
    is_worse = search.is_regression_against(baseline, a.version, version)
    return _PointPair(
        series, a, b, baseline.label, b, RegressionKind.BASELINE, slower_than_parent=not is_worse
    )


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
        aa_floor = _floor(series, before, b, search)
        if aa_floor is None:
            return False
        return judge_stored_baseline([before], [after], aa_floor).verdict is Verdict.WORSE

    return is_worse


def _takes_longer(series: Trend, search: Search, a: TrendPoint, b: TrendPoint) -> bool:
    """Whether a launch takes longer by more than its duration varies."""
    return _judge_durations(series, search, a, b).verdict is Verdict.WORSE


def _judge_durations(series: Trend, search: Search, a: TrendPoint, b: TrendPoint) -> Judged:
    """Two ncu durations judged by A/A pairs of their kind, else by their threshold.

    Where the SM clock alone made the newer one longer it is the same, as in a comparison of the two launches.
    """
    by_cycles = partial(_judged_by_cycles, series, search, a, b)
    names = a.metric, b.metric
    return search.judge.stored_duration(
        names, a.value, b.value, _noise_key(series), series.base_name, by_cycles
    )


def _judged_by_cycles(series: Trend, search: Search, a: TrendPoint, b: TrendPoint) -> MetricChange | None:
    """The change of the duration where the SM clock alone made it; None where it did not."""
    if a.result_id is None or b.result_id is None:
        return None
    # A series has the durations alone: the other counters are read for the few that got worse.
    before, now = search.store.load([a.result_id, b.result_id])
    change = search.judge.duration(before, now, _noise_key(series))
    return change if change and change.judged_by else None


def _noise_key(series: Trend) -> CounterKey:
    return CounterKey(series.family, series.workload or "", series.gpu or "", series.mode)


def _check_latencies(pairs: Sequence[_PointPair], search: Search) -> Iterator[_Check]:
    """The pairs of timed calls that have samples, each judged by its rounds or by a floor."""
    ids = {point.result_id for point_pair in pairs for point in (point_pair.before, point_pair.now)}
    samples = search.store.samples(sorted(result_id for result_id in ids if result_id is not None))
    for point_pair in pairs:
        a, b = (samples.get(point.result_id or -1) for point in (point_pair.before, point_pair.now))
        if a is None or b is None or not len(a.ns) or not len(b.ns):
            continue
        floor = _floor(point_pair.series, shorter_ns(a.ns, b.ns), point_pair.now, search)
        in_rounds = _share_rounds(point_pair, a, b)
        yield _Check(search, point_pair, judge_calls(a, b, floor, in_rounds=in_rounds))


def _tables(pairs: Iterable[_PointPair]) -> list[list[int]]:
    """The places of the pairs that are judged together: of one newest run, beside what is of one kind."""
    tables: dict[tuple[str, RegressionKind], list[int]] = defaultdict(list)
    for place, point_pair in enumerate(pairs):
        tables[point_pair.now.run_id, point_pair.kind].append(place)
    return list(tables.values())


def _together(checks: Sequence[_Check]) -> list[_Check]:
    """The checks, with what is worse no more than chance makes among all of its run and kind."""
    together = list(checks)
    for table in _tables(check.point_pair for check in checks):
        judged = judge_in_one_table([checks[place].judged for place in table])
        for place, row in zip(table, judged, strict=True):
            together[place] = checks[place]._replace(judged=row)
    return together


def _standing(checks: Iterable[_Check]) -> Iterator[tuple[Search, Regression]]:
    """The regressions among what was judged together; what is unclear is counted."""
    for check in checks:
        coverage, judged = check.search.coverage, check.judged
        coverage.pairs += 1
        if judged.by_chance:
            if judged.by.verdict is Verdict.WORSE:
                coverage.unclear[_BY_CHANCE] += 1
        elif judged.verdict is Verdict.UNCLEAR:
            coverage.unclear[_why_unclear(check)] += 1
        elif judged.verdict is Verdict.WORSE:
            yield check.search, _regression(check)


def _regression(check: _Check) -> Regression:
    search, point_pair = check.search, check.point_pair
    series, before, now = point_pair.series, point_pair.before, point_pair.now
    regression = Regression(
        _series_key(series, now.version),
        series.label,
        point_pair.kind,
        _version_run(before),
        (_version_run(point_pair.first),),
        _version_run(now),
        before.value,
        now.value,
        "",
        held_against=point_pair.held_against,
        slower_than_parent=point_pair.slower_than_parent,
    )
    regression = _of_environment(regression.judged_by(check.judged), search)
    is_of_calls = series.concept == LATENCY
    metric = LATENCY_METRIC if is_of_calls else search.table.by_concept[HEADLINE]
    return _in_known_state(regression, point_pair.line, metric, search)


def _share_rounds(point_pair: _PointPair, a: SampleArrays, b: SampleArrays) -> bool:
    """Whether the two were timed alternately, so that the state of the GPU cancels out."""
    same_run = point_pair.before.run_id == point_pair.now.run_id
    return same_run and not set(a.rounds.tolist()).isdisjoint(b.rounds.tolist())


def _why_unclear(check: _Check) -> UnclearReason:
    search, point_pair, floor = check.search, check.point_pair, check.judged.floor
    series = point_pair.series
    if series.concept != LATENCY:
        change = _judged_by_cycles(series, search, point_pair.before, point_pair.now)
        return _BY_CLOCK if change else _SHORT
    if check.judged.is_live:
        return UnclearReason(_FEW_ROUNDS, "")
    driver = point_pair.now.driver
    place = ", ".join(filter(None, (series.gpu, series.mode, driver and f"driver {driver}")))
    lack = "too few pairs in the" if floor is not None and floor.judges else "no"
    return UnclearReason(f"{lack} A/A floor of {place}", noise_command("VERSION", None, series.mode))


def _floor(series: Trend, ns: float, now: TrendPoint, search: Search) -> NoiseFloor | None:
    """The noise floor of a latency, by the driver of the newer point; None for ncu durations."""
    if series.concept != LATENCY:
        return None
    return search.noise.floor(series.gpu or "", series.mode, ns, series.family, now.driver or "")


def _series_key(series: Trend, version: str) -> SeriesKey:
    return SeriesKey(*_cell(series, version), series.mode, series.part, series.concept)


def _version_run(point: TrendPoint) -> VersionRun:
    return VersionRun(point.run_id, point.version, point.created)
