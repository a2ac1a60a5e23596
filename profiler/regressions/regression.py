"""What one regression is: of what, since when, how sure, and who let it pass."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from profiler.compare.counter_noise import KeyedNoiseLookup
from profiler.compare.latency import FloorLookup
from profiler.evidence import Evidence, MetricTable, Value, formatting
from profiler.gate.acknowledgement import Acknowledgement, LapsedAcknowledgement
from profiler.history.baselines import Baseline, Baselines, LostPin
from profiler.history.lineage import REJECTED, Lineage
from profiler.statistics import Floor, Interval, change_text, share_text

if TYPE_CHECKING:
    from profiler.store import Store

STEP = "step"  # a change point of its history
RUNS = "two runs"  # its newest run against the one before
BASELINE = "baseline"  # its newest run against another version's
EXACT = "exact"  # a number that repeats exactly
CORRECTNESS = "correctness"


class VersionRun(NamedTuple):
    """One run of one version."""

    run_id: str
    version: str
    created: datetime


class SeriesKey(NamedTuple):
    """Of what something is worse; "" for what nobody named."""

    family: str
    version: str
    workload: str
    gpu: str  # of static facts the architecture
    evidence: Evidence
    mode: str
    part: str
    concept: str


@dataclass(frozen=True)
class Regression:
    """Something that is worse now than it was, or than what it is held against."""

    series: SeriesKey
    label: str  # of the concept
    kind: str  # STEP, RUNS, BASELINE, EXACT or CORRECTNESS
    before: VersionRun  # the last of the old level, or the baseline's
    possible: tuple[VersionRun, ...]  # one of these is the first of the new level; never empty
    now: VersionRun
    a: Value  # the old level
    b: Value  # the level now
    basis: str  # what the judgement rests on, in words
    effect: float | None = None  # share of a: 0.03 is 3 % more
    interval: Interval | None = None
    interval_kind: str = ""  # 95 %, 99 %, noise floor, A/A pairs
    detectable: float | None = None
    floor: Floor | None = None  # how far equal builds lie apart there; of latencies only
    held_against: str = ""  # what a baseline is: parent v2b, pinned …; "" for its own past
    earlier_steps: int = 0  # older steps for the worse that still hold
    changed_with: tuple[str, ...] = ()  # other facts that changed in the same run
    acknowledged: Acknowledgement | None = None
    lapsed: LapsedAcknowledgement | None = None  # the acknowledgement that let it pass and has ended

    @property
    def change(self) -> str:
        """The change as it is shown."""
        if self.series.concept == CORRECTNESS:
            return ""
        if self.interval is None or self.effect is None:
            return formatting.change(self.a, self.b)
        return change_text(self.effect)

    @property
    def size(self) -> float:
        """What regressions are ordered by: the effect's size; from 0 it is the largest."""
        if self.series.concept == CORRECTNESS:
            return math.inf
        return abs(self.effect) if self.effect is not None else 1e6

    @property
    def subject(self) -> str:
        """What the command line takes for the version."""
        return f"{self.series.family}/{self.series.version}"

    @property
    def since(self) -> str:
        """The run in which it began, or those in which it can have begun."""
        first, last = self.possible[0], self.possible[-1]
        if len(self.possible) == 1:
            return moment(first)
        return f"{moment(first)} … {moment(last)} ({len(self.possible)} runs)"

    @property
    def how_sure(self) -> str:
        """The interval and its kind, what would have shown, and the rest in words."""
        parts = []
        if self.interval is not None:
            parts.append(f"{self.interval_kind}: {self.interval}")
        parts.append(self.basis)
        if self.detectable is not None:
            parts.append(f"{share_text(self.detectable)} would have shown")
        return "; ".join(filter(None, parts))

    @property
    def passed(self) -> str:
        """Until when somebody let it pass, or that nobody does, in a word or two."""
        if self.acknowledged:
            return self.acknowledged.until
        return self.lapsed.brief if self.lapsed else "no"

    @property
    def passed_words(self) -> str:
        """Who let it pass, until when and why; of what ended also how."""
        told = self.acknowledged or self.lapsed
        return told.words if told else "no"

    @property
    def command(self) -> str:
        """What lets it pass; "" for what is wrong, which nobody can let pass."""
        place = self.series
        if place.concept == CORRECTNESS:
            return ""
        words = ["profiler", "acknowledge", self.subject, "--concept", place.concept]
        words += ["--workload", place.workload] if place.workload else []
        words += ["--gpu", place.gpu] if place.gpu else []
        return f"{shlex.join(words)} --why TEXT"


def moment(spot: VersionRun) -> str:
    """A version and when its run was made."""
    return f"{spot.version} {spot.created:%Y-%m-%d %H:%M}"


@dataclass(frozen=True)
class UnclearReason:
    """Newest results of which nobody can say whether they are worse."""

    why: str
    command: str  # what would tell; "" where nothing would


@dataclass
class Coverage:
    """What was looked at, and what of it could not be told."""

    families: int = 0
    series: Counter[str] = field(default_factory=Counter)  # by kind of evidence
    pairs: int = 0  # newest results held against the run before or a baseline
    unclear: Counter[UnclearReason] = field(default_factory=Counter)

    @property
    def words(self) -> str:
        """What was looked at."""
        kinds = ", ".join(f"{self.series[kind]} {kind}" for kind in Evidence if self.series[kind])
        families = f"{self.families} famil{'ies' if self.families != 1 else 'y'}"
        series = f"the series of {families} ({kinds})" if kinds else f"{families}, no series"
        told = f"looked at: {series}, each run of a version against those before it"
        timings = f"{self.pairs} newest timings against the run before or a baseline"
        return f"{told}, and {timings}" if self.pairs else told


@dataclass(frozen=True)
class Search:
    """One family in an index, and what its newest results are judged by."""

    store: Store
    table: MetricTable
    baselines: Baselines  # of the family
    floors: FloorLookup
    coverage: Coverage
    wobbles: KeyedNoiseLookup = lambda *_: None  # how far ncu's counters move by themselves

    @property
    def family(self) -> str:
        """What is searched."""
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
        """The versions without a speed, as `trend` takes them."""
        return {self.family: self.lineage.wrong} if self.lineage else {}

    def baseline(
        self, version: str, workload: str, gpu: str, versions_present: Collection[str]
    ) -> Baseline | None:
        """What a version's newest results are held against; a pin that is lost is counted as unclear."""
        baseline = self.baselines.for_regressions(version, workload, gpu, versions_present)
        if isinstance(baseline, LostPin):
            why = f"the baseline of {self.family} is lost: {baseline.why}"
            self.coverage.unclear[UnclearReason(why, baseline.command)] += 1
            return None
        return baseline
