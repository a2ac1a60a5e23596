"""The input of a search for regressions, and how much it has examined so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from profiler.compare.judged import Judge
from profiler.compare.kernel_pairs import NO_PAIRS, Pairing
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.compare.same_code import SameBuildLookup, SameCodeLookup
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Evidence
from profiler.history.baselines import Baseline, Baselines, LostPin, for_advice
from profiler.history.lineage import REJECTED, Lineage
from profiler.regressions.launch_pairs import LaunchPairs
from profiler.regressions.regression import Regression
from profiler.regressions.run_comparisons import RunComparisons

if TYPE_CHECKING:
    from profiler.store.index import Store


@dataclass(frozen=True)
class UnclearReason:
    """Why it is unclear whether a newest result is worse."""

    why: str
    command: str  # a command whose data would decide it; "" where there is none


@dataclass
class Coverage:
    """How much was examined, and how much of it could not be judged."""

    families: int = 0
    series: Counter[str] = field(default_factory=Counter)  # by kind of evidence
    pairs: int = 0  # newest results compared with the run before or a baseline
    unclear: Counter[UnclearReason] = field(default_factory=Counter)
    # By GPU and run: the lines of timed calls and durations that have a value there and an earlier one.
    lines: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Those of one version, by GPU, run, family and version; only while the search goes on.
    own_lines: Counter[tuple[str, str, str, str]] = field(default_factory=Counter, compare=False)

    @property
    def words(self) -> str:
        """How much was examined, as a sentence."""
        count = sum(self.series.values())
        kinds = ", ".join(f"{self.series[kind]} {kind}" for kind in Evidence if self.series[kind])
        series = f"{count} series ({kinds})" if kinds else "no series"
        words = f"Checked {series} in {self.families} famil{'ies' if self.families != 1 else 'y'}"
        if not self.pairs:
            return f"{words}."
        newest = f"{self.pairs} newest timings" if self.pairs > 1 else "newest timing"
        return f"{words}, and the {newest} against their previous run or baseline."


@dataclass(frozen=True)
class Search:
    """One family in an index, with everything that its newest results are judged by."""

    store: Store
    table: MetricTable
    baselines: Baselines  # of the family
    coverage: Coverage  # of all families searched so far; it is added to
    noise: NoiseModel = UNKNOWN_NOISE
    pairing: Pairing = NO_PAIRS
    same_code: SameCodeLookup = lambda _a, _b: None  # whether two runs of a version ran equal code
    same_build: SameBuildLookup = lambda _a, _b: False  # and are known to be of one build

    @property
    def family(self) -> str:
        """The family that is searched."""
        return self.baselines.family

    @property
    def lineage(self) -> Lineage | None:
        """The lineage of the family; None where no run has a catalogue of it."""
        return self.baselines.lineage

    @property
    def rejected(self) -> frozenset[str]:
        """The versions that the catalogue rejects: they have nothing to lose."""
        statuses = self.lineage.statuses if self.lineage else ()
        return frozenset(status.version.id for status in statuses if status.version.state == REJECTED)

    @property
    def wrong(self) -> dict[str, dict[str, str]]:
        """The versions without a speed, as the argument of `load_trends`."""
        return {self.family: self.lineage.wrong} if self.lineage else {}

    def parent(self, version: str) -> Baseline | None:
        """The nearest correct ancestor of a version as its baseline; None without one, or a catalogue."""
        status = self.lineage.by_id.get(version) if self.lineage else None
        baseline = for_advice(self.family, status)
        return baseline if isinstance(baseline, Baseline) else None

    def is_regression_against(self, baseline: Baseline, before: str, version: str) -> bool:
        """Whether a version that is slower than the version `before` of its baseline got worse.

        So it is where somebody pinned that baseline, unless the pinned version was made from this one. Slower
        than its parent, or than the version before, is an idea that did not help.
        """
        if baseline.pin is None:
            return False
        if before == version:
            return True
        if self.lineage is None or before not in self.lineage.by_id or version not in self.lineage.by_id:
            order = self.baselines.versions
            return version not in order or before not in order or order.index(before) < order.index(version)
        return version not in self.lineage.ancestry(self.lineage.by_id[before])

    @property
    def judge(self) -> Judge:
        """What two runs are judged by."""
        return Judge(self.table, self.noise, self.pairing)

    @cached_property
    def _launch_pairs(self) -> LaunchPairs:
        return LaunchPairs(RunComparisons(self.store, self.judge))

    def confirm(self, regression: Regression, *, count: bool = True) -> Regression | None:
        """The regression of a launch, if `compare` pairs its launches and calls it worse too.

        With `count`, what is no pair, or of another workload, is counted as unclear.
        """
        confirmed = self._launch_pairs.confirm(regression)
        if isinstance(confirmed, Regression):
            return confirmed
        if confirmed and count:
            self.coverage.unclear[UnclearReason(confirmed, "")] += 1
        return None

    def confirm_calls(self, regression: Regression) -> Regression | None:
        """The regression of timed calls, if `compare` compares its runs; else it is counted as unclear."""
        why = self._launch_pairs.why_not_comparable(regression)
        if not why:
            return regression
        self.coverage.unclear[UnclearReason(why, "")] += 1
        return None

    def baseline(
        self, version: str, workload: str, gpu: str, versions_present: Collection[str]
    ) -> Baseline | None:
        """The baseline of a version's newest results. One whose pin is lost is counted as unclear."""
        baseline = self.baselines.for_regressions(version, workload, gpu, versions_present)
        if isinstance(baseline, LostPin):
            why = f"the baseline of {self.family} is lost: {baseline.why}"
            self.coverage.unclear[UnclearReason(why, baseline.command)] += 1
            return None
        return baseline
