"""What many series share on one run: one alarm for their regressions, due to the machine that they share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from profiler.evidence.values import Evidence
from profiler.history.shared_steps import MIN_SHARE, MIN_SHARED
from profiler.regressions.cause import CauseFinder
from profiler.regressions.regression import Regression, RegressionKind, VersionRun
from profiler.regressions.report import RegressionReport
from profiler.statistics.decision import change_text


@dataclass(frozen=True)
class SharedRegression:
    """One alarm for the regressions of several series that began with one run."""

    run: VersionRun
    gpu: str
    regressions: tuple[Regression, ...]  # in the order of the report
    series: int  # how many could have shown it: with a value in that run and an earlier one, no other code
    environment: str  # what changed with the run, in words; "" where nothing is known to

    @property
    def words(self) -> str:
        """`one alarm, due to the environment: 9 of 10 series worse +5.0 % since …: driver 570 → 580`."""
        effects = [regression.effect for regression in self.regressions if regression.effect is not None]
        size = f" {change_text(median(effects))} in the median" if effects else ""
        count = f"{len(self.regressions)} of {self.series} series"
        return (
            f"one alarm, due to the environment: {count} worse{size} since the run of "
            f"{self.run.created:%Y-%m-%d %H:%M} ({self.environment or 'nothing known changed there'})"
        )


def find_shared_regressions(report: RegressionReport, causes: CauseFinder) -> tuple[SharedRegression, ...]:
    """The alarms that at least MIN_SHARED regressions, and MIN_SHARE of the series there, share.

    What is acknowledged, known or a drift counts for none. What moved with equal code is no alarm of its own.
    What came with other machine code has a cause of its own, and what is worse than a baseline began with
    no run.
    """
    by_run: dict[tuple[str, str], list[tuple[Regression, VersionRun]]] = defaultdict(list)
    for regression in report.regressions:
        if not regression.needs_cause:
            continue
        if regression.series.evidence is not Evidence.MEASURED:
            continue
        if regression.kind in (RegressionKind.STEP, RegressionKind.RUNS):
            for run in (*regression.possible, *regression.beside):
                by_run[regression.series.gpu, run.run_id].append((regression, run))
    shared: list[SharedRegression] = []
    taken: set[int] = set()

    def rank(key: tuple[str, str]) -> tuple[int, int]:
        """The run that most share comes first; of equal ones that in which most can have begun."""
        possible = sum(run in regression.possible for regression, run in by_run[key])
        return -len(by_run[key]), -possible

    for gpu, run_id in sorted(by_run, key=rank):
        candidates = [pair for pair in by_run[gpu, run_id] if id(pair[0]) not in taken]
        series = report.coverage.lines[gpu, run_id]
        if not _are_many(candidates, series):
            continue
        of_all = len(candidates)
        candidates = [pair for pair in candidates if not causes.has_other_code(pair[0])]
        series -= of_all - len(candidates)  # what came with other code could not have shown it
        if not _are_many(candidates, series):
            continue
        regressions = tuple(regression for regression, _ in candidates)
        environment = _environment(regressions, run_id, causes)
        if not environment and len({regression.subject for regression in regressions}) == 1:
            continue  # a version alone says nothing of the machine
        taken |= {id(regression) for regression in regressions}
        shared.append(SharedRegression(candidates[0][1], gpu, regressions, series, environment))
    return tuple(shared)


def shared_run(shared: Iterable[SharedRegression], regression: Regression) -> str | None:
    """The run of the alarm that a regression belongs to; None for one of its own."""
    for alarm in shared:
        if any(regression is member for member in alarm.regressions):
            return alarm.run.run_id
    return None


def _are_many(candidates: Sequence[object], series: int) -> bool:
    return len(candidates) >= MIN_SHARED and len(candidates) >= MIN_SHARE * series


def _environment(regressions: Sequence[Regression], run_id: str, causes: CauseFinder) -> str:
    changes = dict.fromkeys(
        change
        for regression in regressions
        for change in causes.changes(regression).environment
        if change.run_id == run_id
    )
    return "; ".join(f"{change.field} {change.before} → {change.after}" for change in changes)
