"""Whether the two launches behind a regression are a pair for `compare` too, and worse by its verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace

from profiler.compare.comparison import Comparison
from profiler.compare.judged import Judged
from profiler.compare.pair_comparison import PairComparison
from profiler.regressions.regression import Regression, RegressionKind, VersionRun
from profiler.regressions.run_comparisons import RunComparisons, is_launch, launch_names
from profiler.statistics.verdict import Verdict

_AMBIGUOUS = "launches of a kernel that cannot be told apart in the two runs"
_NO_PARTNER = "launches without a partner in the other run"
_OTHER_WORKLOAD = "launches of another grid, so of another workload"
_NOT_COMPARABLE_CALLS = "timed calls of runs that are not comparable"
_OF_CALLS = ("GPU", "compute capability", "multiprocessors", "dtype")  # that two timings have to share
_NOT_COMPARABLE = "launches of runs that are not comparable"
_PERHAPS_OTHER = "launches that may be of another problem size"


@dataclass(frozen=True)
class LaunchPairs:
    """Finds the launches behind regressions as pairs.

    A series joins launches by their place in the run. Where launches come and go, that place is of another
    launch: which are a pair, and whether they did the same work, is decided as `compare` does.
    """

    comparisons: RunComparisons

    def confirm(self, regression: Regression) -> Regression | str:
        """The regression with its launches' size and `compare`'s numbers; else why nobody can judge it.

        "" where `compare` finds nothing worse.
        """
        pair, comparison = self._pair(regression, regression.now)
        if comparison is None or isinstance(pair, str):
            return pair if isinstance(pair, str) else _NO_PARTNER
        first = regression.possible[-1]  # that surely has the new level
        found: list[tuple[PairComparison | str, Comparison | None]] = [(pair, comparison)]
        if first.run_id != regression.now.run_id:
            found.append(self._pair(regression, first))
        # Across another workload or machine there is no step, whatever the newest run compares with.
        for of_pair, sides in found:
            if sides is not None and not sides.comparable:
                return f"{_NOT_COMPARABLE}: {'; '.join(blocking.words for blocking in sides.blocked_by)}"
            change = None if isinstance(of_pair, str) else of_pair.workload_change
            if change is not None:
                return _OTHER_WORKLOAD if change.verdict is Verdict.NOT_COMPARABLE else _PERHAPS_OTHER
        return _judged_by(regression, pair, comparison.label(pair.a) in launch_names(regression))

    def why_not_comparable(self, regression: Regression) -> str:
        """Why `compare` refuses the two runs of timed calls behind a regression; "" where it does not.

        What ncu was told does not matter to them, and another driver may be what they are compared for.
        """
        runs = dict.fromkeys((regression.possible[-1], regression.now))
        for now in runs:
            comparison = self.comparisons.of_series(regression.series, regression.before, now)
            blocking = comparison.blocked_by if comparison else ()
            if words := [one.words for one in blocking if one.field in _OF_CALLS]:
                return f"{_NOT_COMPARABLE_CALLS}: {'; '.join(words)}"
        return ""

    def _pair(
        self, regression: Regression, now: VersionRun
    ) -> tuple[PairComparison | str, Comparison | None]:
        """The launch in that run beside the one with the old level, or why it is no pair; the comparison."""
        comparison = self.comparisons.of_series(regression.series, regression.before, now)
        if comparison is None:
            return _NO_PARTNER, None
        names = launch_names(regression)
        for pair in comparison.pairs:
            if is_launch(pair, comparison, names):
                return pair, comparison
        ambiguous = (launch for group in comparison.ambiguous for launch in group.b)
        is_ambiguous = any(comparison.label(launch) in names for launch in ambiguous)
        return _AMBIGUOUS if is_ambiguous else _NO_PARTNER, comparison


def _judged_by(regression: Regression, pair: PairComparison, is_same_part: bool) -> Regression | str:
    """The regression as its pair of launches has it; "" where it is none."""
    sized = replace(regression, grid=pair.b.grid, block=pair.b.block)
    if regression.kind is RegressionKind.STEP:
        return sized  # judged by its history, of which these are two points
    change = next((change for change in pair.metrics if change.concept == regression.series.concept), None)
    if change is None or change.verdict is not Verdict.WORSE:
        return ""
    if is_same_part and regression.a.number is not None:
        return sized
    return sized.judged_by(Judged(change.a, change.b, change.judgement))
