"""One regression: its series, since when, how sure it is, and who lets it pass."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from profiler.compare.judged import Judged
from profiler.evidence import formatting
from profiler.evidence.values import Evidence, Value
from profiler.gate.acknowledgement import Acknowledgement, LapsedAcknowledgement
from profiler.history.trend import LATENCY
from profiler.statistics.changepoint import LevelKind
from profiler.statistics.decision import Interval, change_text, share_text
from profiler.statistics.noise_floor import NoiseFloor
from profiler.statistics.verdict import Verdict

CORRECTNESS = "correctness"  # the concept of results that were right and are wrong
_OF_CALLS = (CORRECTNESS, LATENCY)  # concepts of whole calls
_MAIN_PARTS = ("", "main", "total")  # need no name where a version has one kernel


class RegressionKind(StrEnum):
    """How a regression was found."""

    STEP = "step"  # a change point of its history
    RUNS = "two runs"  # its newest run against the one before
    BASELINE = "baseline"  # its newest run against another version's
    EXACT = "exact"  # a number that repeats exactly
    CORRECTNESS = "correctness"  # right in an earlier run, wrong in the newest


class VersionRun(NamedTuple):
    """One run of one version."""

    run_id: str
    version: str
    created: datetime

    @property
    def words(self) -> str:
        """The version and when its run was made."""
        return f"{self.version} {self.created:%Y-%m-%d %H:%M}"


class SeriesKey(NamedTuple):
    """The series in which a version got worse; "" for what nobody named."""

    family: str
    version: str
    workload: str
    gpu: str  # for static facts the architecture
    evidence: Evidence
    mode: str
    part: str
    concept: str


@dataclass(frozen=True)
class Regression:
    """A value that is worse now than it was, or than that of the baseline."""

    series: SeriesKey
    label: str  # of the concept
    kind: RegressionKind
    before: VersionRun  # the last run with the old level, or the baseline's
    possible: tuple[VersionRun, ...]  # one of these is the first with the new level; never empty
    now: VersionRun
    a: Value  # the old level
    b: Value  # the level now
    basis: str  # what the judgement rests on, in words
    effect: float | None = None  # share of a: 0.03 is 3 % more
    interval: Interval | None = None
    interval_kind: str = ""  # 95 %, 99 %, noise floor, A/A pairs
    detectable: float | None = None  # the smallest change that would have been detected, as a share
    floor: NoiseFloor | None = None  # how far latencies of equal builds lie apart; None for other metrics
    held_against: str = ""  # the baseline: parent v2b, pinned …; "" for the version's own past
    earlier_steps: int = 0  # older steps for the worse that still hold
    changed_with: tuple[str, ...] = ()  # other facts that changed in the same run
    acknowledged: Acknowledgement | None = None
    lapsed: LapsedAcknowledgement | None = None  # the acknowledgement that let it pass and has ended
    grid: tuple[int, int, int] | None = None  # of the launch now; None for what is of no single launch
    block: tuple[int, int, int] | None = None
    level: LevelKind = LevelKind.NEW  # what the level now is: only a new one is a regression
    beside: tuple[VersionRun, ...] = ()  # the runs next to `possible`: noise may move a step's place by one
    equal: VersionRun | None = None  # the first run of the earlier level that equals it
    same_build: bool = False  # whether one build was measured before and after
    # Whether that is due to the environment: a change of it is recorded, or other versions moved too.
    environment_moved: bool = False
    slower_than_parent: bool = False  # or than another version that nobody pinned: no regression

    def judged_by(self, judged: Judged) -> Regression:
        """The regression with the two values of a judgement, and how sure that is."""
        return replace(
            self,
            a=judged.a,
            b=judged.b,
            basis=judged.basis,
            effect=judged.effect,
            interval=judged.interval,
            interval_kind=judged.interval_kind,
            detectable=judged.detectable,
            floor=judged.floor,
        )

    @property
    def is_open(self) -> bool:
        """Whether somebody has to look: it is unacknowledged, and no known state, drift or environment."""
        return self.needs_cause and not self.environment_moved

    @property
    def needs_cause(self) -> bool:
        """Whether nobody let it pass, and its level is new."""
        return self.acknowledged is None and self.level is LevelKind.NEW and not self.slower_than_parent

    @property
    def verdict_label(self) -> str:
        """Sign and words of the verdict, or what a level that is not new is."""
        if self.became_wrong:
            return "⊘ wrong"
        if self.level is not LevelKind.NEW:
            return f"{Verdict.CHANGED.traits.sign} {self.level}"
        if self.slower_than_parent:
            return f"{Verdict.CHANGED.traits.sign} slower than {self.held_against}"
        return self.verdict.label

    @property
    def verdict(self) -> Verdict:
        """Worse; changed for a level that is not new, for the environment, and for another version."""
        is_new = self.level is LevelKind.NEW and not self.environment_moved
        return Verdict.WORSE if is_new and not self.slower_than_parent else Verdict.CHANGED

    @property
    def became_wrong(self) -> bool:
        """Whether its results became wrong, which has no size and cannot be acknowledged."""
        return self.kind is RegressionKind.CORRECTNESS

    @property
    def change(self) -> str:
        """The change as text."""
        if self.became_wrong:
            return ""
        if self.interval is None or self.effect is None:
            return formatting.change(self.a, self.b)
        return change_text(self.effect)

    @property
    def size(self) -> float:
        """A sort key: the size of the effect; a rise from 0 counts as the largest."""
        if self.became_wrong:
            return math.inf
        return abs(self.effect) if self.effect is not None else 1e6

    @property
    def subject(self) -> str:
        """The name that the command line accepts for the version."""
        return f"{self.series.family}/{self.series.version}"

    @property
    def kernel(self) -> str:
        """The kernel: `gemm#1`; "" for whole calls and facts of the main kernel."""
        series = self.series
        is_of_main = series.evidence is not Evidence.MEASURED and series.part in _MAIN_PARTS
        return "" if is_of_main or series.concept in _OF_CALLS else series.part.removesuffix("#0")

    @property
    def grid_words(self) -> str:
        """The grid of that kernel's launch now: `grid 8 × 8`; "" where it is of no single launch."""
        return f"grid {formatting.dimensions(self.grid)}" if self.kernel and self.grid else ""

    @property
    def launch(self) -> str:
        """The kernel with its grid: `gemm#1, grid 8 × 8`."""
        return ", ".join(filter(None, (self.kernel, self.grid_words)))

    @property
    def what(self) -> str:
        """What is worse: `ncu duration of gemm#1, grid 8 × 8`."""
        return f"{self.label} of {self.launch}" if self.launch else self.label

    @property
    def since(self) -> str:
        """The run in which it began, or the runs in which it may have begun."""
        first, last = self.possible[0], self.possible[-1]
        if len(self.possible) == 1:
            return first.words
        return f"{first.words} … {last.words} ({len(self.possible)} runs)"

    @property
    def how_sure(self) -> str:
        """The interval and its kind, what the judgement rests on, and what would have been detected."""
        parts = []
        if self.interval is not None:
            parts.append(f"{self.interval_kind}: {self.interval}")
        if self.equal is not None:
            parts.append(f"as since {self.equal.words}")
        parts.append(self.basis)
        if self.detectable is not None:
            parts.append(f"{share_text(self.detectable)} would have shown")
        return "; ".join(filter(None, parts))

    @property
    def passed(self) -> str:
        """Until when somebody let it pass, or that nobody did, in a word or two."""
        if self.acknowledged:
            return self.acknowledged.until
        if self.level is not LevelKind.NEW or self.slower_than_parent:
            return "not needed"
        return self.lapsed.brief if self.lapsed else "no"

    @property
    def passed_words(self) -> str:
        """Who let it pass, until when and why; for a lapsed acknowledgement also how it ended."""
        acknowledgement = self.acknowledged or self.lapsed
        return acknowledgement.words if acknowledgement else "no"

    @property
    def command(self) -> str:
        """The command that acknowledges it; "" for wrong results, and where there is nothing to let pass."""
        if self.became_wrong or self.level is not LevelKind.NEW or self.slower_than_parent:
            return ""
        series = self.series
        words = ["profiler", "decide", "acknowledge", self.subject, "--concept", series.concept]
        words += ["--workload", series.workload] if series.workload else []
        words += ["--gpu", series.gpu] if series.gpu else []
        return f"{shlex.join(words)} --why TEXT"
