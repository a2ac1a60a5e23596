"""What a search for regressions goes by, and what it has looked at so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profiler.compare import UNKNOWN_NOISE, NoiseModel
from profiler.evidence import Evidence, MetricTable
from profiler.history import Baseline, Baselines, Lineage, LostPin
from profiler.history.lineage import REJECTED

if TYPE_CHECKING:
    from profiler.store import Store


@dataclass(frozen=True)
class UnclearReason:
    """Why nobody can say whether a newest result is worse."""

    why: str
    command: str  # what would tell; "" where nothing would


@dataclass
class Coverage:
    """What was looked at, and what of it nobody could judge."""

    families: int = 0
    series: Counter[str] = field(default_factory=Counter)  # by kind of evidence
    pairs: int = 0  # newest results compared with the run before or a baseline
    unclear: Counter[UnclearReason] = field(default_factory=Counter)

    @property
    def words(self) -> str:
        """What was looked at."""
        kinds = ", ".join(f"{self.series[kind]} {kind}" for kind in Evidence if self.series[kind])
        families = f"{self.families} famil{'ies' if self.families != 1 else 'y'}"
        series = f"the series of {families} ({kinds})" if kinds else f"{families}, no series"
        histories = f"looked at: {series}, each run of a version against those before it"
        timings = f"{self.pairs} newest timings against the run before or a baseline"
        return f"{histories}, and {timings}" if self.pairs else histories


@dataclass(frozen=True)
class Search:
    """One family in an index, and what its newest results are judged by."""

    store: Store
    table: MetricTable
    baselines: Baselines  # of the family
    coverage: Coverage  # of all families searched; it grows
    noise: NoiseModel = UNKNOWN_NOISE

    @property
    def family(self) -> str:
        """The family that is searched."""
        return self.baselines.family

    @property
    def lineage(self) -> Lineage | None:
        """How the versions of the family descend; None where no run keeps a catalogue of it."""
        return self.baselines.lineage

    @property
    def rejected(self) -> frozenset[str]:
        """The versions that are wrong on purpose, and have nothing to lose."""
        statuses = self.lineage.statuses if self.lineage else ()
        return frozenset(status.version.id for status in statuses if status.version.state == REJECTED)

    @property
    def wrong(self) -> dict[str, dict[str, str]]:
        """The versions without a speed, as `load_trends` takes them."""
        return {self.family: self.lineage.wrong} if self.lineage else {}

    def baseline(
        self, version: str, workload: str, gpu: str, versions_present: Collection[str]
    ) -> Baseline | None:
        """What a version's newest results are compared with; a pin that is lost is counted as unclear."""
        baseline = self.baselines.for_regressions(version, workload, gpu, versions_present)
        if isinstance(baseline, LostPin):
            why = f"the baseline of {self.family} is lost: {baseline.why}"
            self.coverage.unclear[UnclearReason(why, baseline.command)] += 1
            return None
        return baseline
