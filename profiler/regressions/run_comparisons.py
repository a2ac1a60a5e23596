"""Compares two runs of a series as `compare` does, by counters alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from profiler.compare.comparison import Comparison
from profiler.compare.judged import Judge
from profiler.compare.match_launches import PairedBy
from profiler.compare.pair_comparison import PairComparison
from profiler.errors import UnknownName
from profiler.evidence.side import Side
from profiler.regressions.regression import Regression, SeriesKey, VersionRun

if TYPE_CHECKING:
    from profiler.store.index import Store

# What may differ along a history whose workload was declared, as a step may be due to it. Reports of which no
# workload is known may be of another machine altogether, so they follow the rule of `compare`.
ACROSS_OF_HISTORY = ("driver", "ncu")

_Ends = tuple[SeriesKey, VersionRun, VersionRun]


@dataclass(frozen=True)
class RunComparisons:
    """The comparisons of runs behind regressions; each two runs are compared once."""

    store: Store
    judge: Judge  # of a comparison between these runs; along a history more may differ
    _comparisons: dict[_Ends, Comparison | None] = field(default_factory=dict)
    _sides: dict[tuple[str, ...], Side] = field(default_factory=dict)

    def of_series(self, series: SeriesKey, before: VersionRun, now: VersionRun) -> Comparison | None:
        """The launches of two runs of a series; None where one of the runs cannot be told from others.

        Timed calls are left out: whether they got slower is known by now.
        """
        key = series._replace(version="", part="", concept=""), before, now
        if key not in self._comparisons:
            try:
                a, b = (self._side(series, run) for run in (before, now))
            except UnknownName:
                self._comparisons[key] = None
            else:
                across = ACROSS_OF_HISTORY if series.workload else ()
                judge = replace(self.judge, across=across, noise=self.judge.noise.only_counters())
                self._comparisons[key] = judge.sides(a, b)
        return self._comparisons[key]

    def _side(self, series: SeriesKey, run: VersionRun) -> Side:
        """What a run has of a series; several regressions begin with one run, or end with it."""
        key = series.family, run.version, series.workload, series.gpu, series.evidence, run.run_id
        if key not in self._sides:
            self._sides[key] = self.store.side(
                run_id=run.run_id,
                family=series.family,
                version=run.version,
                workload=series.workload,
                gpu=series.gpu,
                evidence=series.evidence,
                with_latencies=False,
            )
        return self._sides[key]


def launch_names(regression: Regression) -> frozenset[str]:
    """What a comparison may call the launch of a regression: alone in its range it has no number."""
    part = regression.series.part
    return frozenset((part, part.removesuffix("#0")))


def is_launch(pair: PairComparison, comparison: Comparison, names: frozenset[str]) -> bool:
    """Whether a pair has the launch of these names: as the newer run has it, whose place may be another."""
    # A series of two declared names has the newest, which may be A's.
    labels = [comparison.label(launch) for launch in pair.launches[1]]
    if pair.paired_by is PairedBy.DECLARED:
        labels += [comparison.label(launch) for launch in pair.launches[0]]
    return not names.isdisjoint(labels)
