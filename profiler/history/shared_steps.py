"""Steps that many series share on one run: one alarm, due to what they share, which is the machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from profiler.compare.environment_change import EnvironmentChange
from profiler.compare.same_code import CHANGED, SAME
from profiler.evidence.values import Evidence
from profiler.history.change_points import RUNS, History, LevelStep
from profiler.history.trend import TrendPoint
from profiler.statistics.changepoint import MIN_POINTS, LevelKind
from profiler.statistics.verdict import Verdict

MIN_SHARED = 3  # series that step on one run; two may do so by chance
MIN_SHARE = 0.5  # of the series that have points on both sides of the run


@dataclass(frozen=True)
class SharedStep:
    """One alarm for the steps of several series in one direction on one run, none of which has other code."""

    run_id: str
    created: datetime
    verdict: Verdict  # that of most of its steps
    steps: tuple[tuple[History, LevelStep], ...]  # in the order of the histories
    series: int  # how many could have shown it: those with points on both sides, and no step by other code
    environment: tuple[EnvironmentChange, ...]  # what changed with the run, as far as it is known

    @property
    def cause(self) -> str:
        """What it is due to, in words: named where it is known."""
        fields = ", ".join(dict.fromkeys(change.field for change in self.environment))
        if fields:
            return f"the environment: {fields}"
        if any(step.circumstances.code.word == SAME for _, step in self.steps):
            return "the environment"
        return "what they share: the environment, or code common to them"


def find_shared_steps(histories: Sequence[History]) -> tuple[SharedStep, ...]:
    """The alarms that at least MIN_SHARED series, and half of those on that GPU, share; oldest first.

    A step whose machine code changed with it has a cause of its own. One belongs to the run that most others
    share of those in which it may lie and the run on either side.
    """
    over_runs = [history for history in histories if history.over == RUNS]
    by_run: dict[tuple[str | None, str, int], list[tuple[History, LevelStep]]] = defaultdict(list)
    by_code: dict[tuple[str | None, str, int], set[int]] = defaultdict(set)  # histories, by identity
    created: dict[str, datetime] = {}
    for history in over_runs:
        if history.series.evidence is not Evidence.MEASURED:
            continue
        for step in history.steps:
            # What moved with equal code is no alarm of its own: it is one where many series share it.
            is_candidate = step.level is LevelKind.NEW and step.by_direction.traits.moved
            if not is_candidate:
                continue
            for point in _runs_near(history, step):
                key = (history.series.gpu, point.run_id, step.change_point.direction)
                if step.circumstances.code.word == CHANGED:
                    by_code[key].add(id(history))
                    continue
                created[point.run_id] = point.created
                by_run[key].append((history, step))
    spans = list(_spans(over_runs)) if by_run else []
    shared: list[SharedStep] = []
    taken: set[int] = set()

    def rank(key: tuple[str | None, str, int]) -> tuple[object, ...]:
        """The run that most series share comes first; of equal ones that with most likeliest places."""
        likeliest = sum(step.likeliest.run_id == key[1] for _, step in by_run[key])
        return -len(by_run[key]), -likeliest, created[key[1]], key[1]

    for gpu, run_id, direction in sorted(by_run, key=rank):
        steps = [pair for pair in by_run[gpu, run_id, direction] if id(pair[1]) not in taken]
        could_show = [
            history
            for history, of_gpu, first, last in spans
            if of_gpu == gpu
            and first < created[run_id] <= last
            and id(history) not in by_code[gpu, run_id, direction]
        ]
        if len(steps) < MIN_SHARED or len(steps) < MIN_SHARE * len(could_show):
            continue
        taken |= {id(step) for _, step in steps}
        verdicts = [step.by_direction for _, step in steps]
        changes = dict.fromkeys(
            change
            for _, step in steps
            for change in step.circumstances.environment
            if change.run_id == run_id
        )
        shared.append(
            SharedStep(
                run_id,
                created[run_id],
                max(verdicts, key=verdicts.count),
                tuple(steps),
                len(could_show),
                tuple(changes),
            )
        )
    return tuple(sorted(shared, key=lambda step: (step.created, step.run_id)))


def _runs_near(history: History, step: LevelStep) -> Sequence[TrendPoint]:
    """The points with which a step may have begun, and one on each side: noise may move its place by one."""
    place = step.change_point
    return history.series.points[max(0, place.earliest - 1) : place.latest + 2]


def _spans(histories: Sequence[History]) -> Iterator[tuple[History, str | None, datetime, datetime]]:
    """The histories with enough points for a step: GPU, and the first and last moment with a point."""
    for history in histories:
        series = history.series
        if series.evidence is Evidence.MEASURED and history.points >= MIN_POINTS:
            moments = [point.created for point in series.points_on_line]
            yield history, series.gpu, min(moments), max(moments)
