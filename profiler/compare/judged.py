"""The one judge of B against A: of sides or of one number, of one run or of two, alone or in a table.

The gate, the regressions, the tables and the pages all ask it. They choose which pairs are judged, and decide
what follows from a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from profiler.compare import latency_words
from profiler.compare.clock_drift import HEADLINE
from profiler.compare.comparison import (
    Comparison,
    compare,
    judge_counters_together,
    judge_duration,
    judge_every_metric,
    table_of_time,
)
from profiler.compare.counter_noise import CounterKey
from profiler.compare.kernel_pairs import NO_PAIRS, KernelPair, Pairing
from profiler.compare.metric_verdict import SHORT_NS, Judgement, judge
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.compare.pair_comparison import MetricChange, PairComparison
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Side
from profiler.evidence.values import Value
from profiler.statistics.decision import Decision, Interval
from profiler.statistics.live_pair import LIVE_PAIR, judge_live_pair
from profiler.statistics.multiple_testing import discoveries, judge_together
from profiler.statistics.noise_floor import NoiseFloor, judge_stored_baseline, typical_pair_ns
from profiler.statistics.verdict import Verdict

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener
    from profiler.store.rows import SampleArrays


@dataclass(frozen=True)
class Judge:
    """What B is judged against A by, the same for every pair that one answer asks for."""

    table: MetricTable
    noise: NoiseModel = UNKNOWN_NOISE
    pairing: Pairing = NO_PAIRS  # which kernels may pair though their names differ
    across: Collection[str] = frozenset()  # what of ACROSS may differ
    kernel: str | None = None  # a pattern for `kernel_filter`: only these launches are judged

    @classmethod
    def of_data(
        cls,
        table: MetricTable,
        store_opener: StoreOpener,
        data: str | None = None,
        *,
        pairs: Iterable[KernelPair] = (),
        guess: bool = True,
        across: Collection[str] = frozenset(),
        kernel: str | None = None,
    ) -> Judge:
        """The judge that knows what a data folder does: the noise of its index, and the pairs kept there.

        `pairs` are kernels of A and B that are one under two names; without `guess` no other pair is
        proposed. `data` is the folder or URL of the index's bundles; None means PROFILER_DATA. Nothing is
        read before a pair needs it.
        """
        noise, pairing = NoiseModel.of_store(store_opener, data), Pairing.of_data(data, pairs, propose=guess)
        return cls(table, noise, pairing, across, kernel)

    def of_time(self) -> Judge:
        """The judge of timed calls and durations alone."""
        return replace(self, table=table_of_time(self.table))

    def sides(self, a: Side, b: Side) -> Comparison:
        """B against A, launch by launch. Raises UnknownName where no kernel matches."""
        return compare(
            a,
            b,
            self.table,
            across=self.across,
            kernel=self.kernel,
            noise=self.noise,
            pairing=self.pairing,
        )

    def all_sides(self, pairs: Iterable[tuple[Side | None, Side | None]]) -> list[Comparison | None]:
        """Each pair by itself; None where a side is missing."""
        return [self.sides(a, b) if a and b else None for a, b in pairs]

    def every_metric(self, comparison: Comparison, pair: PairComparison) -> PairComparison:
        """A pair of a comparison judged again, by every metric of this judge's table."""
        return judge_every_metric(comparison, pair, self.table, self.noise)

    def duration(self, a: Launch, b: Launch, key: CounterKey) -> MetricChange | None:
        """The durations of two launches of comparable sides; None without such a concept.

        `key` is that of A, by which its noise is looked up.
        """
        return judge_duration(a, b, self.table, key, self.noise)

    def stored_duration(
        self,
        names: tuple[str, str],
        a: Value,
        b: Value,
        key: CounterKey,
        kernel: str,
        by_cycles: Callable[[], MetricChange | None],
    ) -> Judged:
        """Two durations of which only the numbers were read from the index, not the launches.

        `names` are the ncu names of A's and B's number; `key` and `kernel` are A's. `by_cycles` is called
        only where B is worse: it reads the launches, and returns the change judged again where the SM clock
        alone made it longer.
        """
        short = any(value.number is not None and value.number < SHORT_NS for value in (a, b))
        noise = partial(self.noise.counter_noise, key, kernel)
        judgement = judge(self.table.by_concept[HEADLINE], names, a, b, short=short, noise=noise)
        if judgement.verdict is Verdict.WORSE and (change := by_cycles()):
            judgement = judgement._replace(verdict=change.verdict, reason=change.reason)
        return Judged(a, b, judgement)


@dataclass(frozen=True)
class Judged:
    """One number of B judged against A's: of timed calls, or the duration of a launch."""

    a: Value
    b: Value
    by: Decision | Judgement  # a decision on timed calls, a judgement of durations
    floor: NoiseFloor | None = None  # how far timed calls of equal builds lie apart; None: not known
    by_chance: bool = False  # better or worse alone, but within chance among the rows judged with it

    @property
    def verdict(self) -> Verdict:
        """The verdict; unclear where chance does as much."""
        return Verdict.UNCLEAR if self.by_chance else self.by.verdict

    @property
    def is_live(self) -> bool:
        """Whether alternating rounds of one run decided."""
        return isinstance(self.by, Decision) and self.by.rule == LIVE_PAIR

    @property
    def basis(self) -> str:
        """What the verdict rests on, in words."""
        if isinstance(self.by, Decision):
            return latency_words.rests_on(self.by)
        return self.by.reason if self.by.interval else "unreplicated: one launch per side"

    @property
    def effect(self) -> float | None:
        """The change as a share of A; None where it has none."""
        if isinstance(self.by, Decision):
            return self.by.effect
        return None if self.by.change_pct is None else self.by.change_pct / 100

    @property
    def interval(self) -> Interval | None:
        """The change give or take noise, as shares of A; None where that is not known."""
        return self.by.interval

    @property
    def interval_kind(self) -> str:
        """What the interval is of: 99 %, noise floor, A/A pairs."""
        return latency_words.interval_kind(self.by) if isinstance(self.by, Decision) else "A/A pairs"

    @property
    def detectable(self) -> float | None:
        """The smallest change that would have been detected, as a share; None where that is not known."""
        return self.by.detectable if isinstance(self.by, Decision) else self.by.limit


def judge_calls(a: SampleArrays, b: SampleArrays, floor: NoiseFloor | None, *, in_rounds: bool) -> Judged:
    """Timed calls that have samples: by their rounds where both were timed in them, else by the floor."""
    a_ns, b_ns = (Value(float(ns), "ns") for ns in typical_pair_ns(a.ns, b.ns))
    decision = judge_live_pair(a, b) if in_rounds else judge_stored_baseline(a.ns, b.ns, floor)
    return Judged(a_ns, b_ns, decision, floor)


def judge_in_one_table(rows: Sequence[Judged]) -> list[Judged]:
    """Rows that were judged one by one, judged as one table: what chance makes among so many is unclear.

    Timed calls are judged as one table and durations as another. Of durations those count that have A/A pairs
    or are equal on both sides; the others keep their verdicts.
    """
    together = list(rows)
    calls = {place: row.by for place, row in enumerate(rows) if isinstance(row.by, Decision)}
    for place, decision in zip(calls, judge_together(list(calls.values())), strict=True):
        by_chance = rows[place].verdict.traits.moved and decision.verdict is Verdict.UNCLEAR
        by = rows[place].by if by_chance else decision
        together[place] = replace(rows[place], by=by, by_chance=by_chance)
    durations = {
        place: row.by
        for place, row in enumerate(rows)
        if isinstance(row.by, Judgement) and (row.by.p is not None or row.by.change_pct == 0)
    }
    p = np.array([1.0 if by.p is None else by.p for by in durations.values()])
    for place, stands in zip(durations, discoveries(p).tolist(), strict=True):
        by_chance = rows[place].verdict.traits.moved and not stands
        together[place] = replace(rows[place], by_chance=by_chance)
    return together


def judge_comparisons_together(
    comparisons: Sequence[Comparison | None], concepts: Collection[str]
) -> list[Comparison | None]:
    """The comparisons with their latencies judged as one table, and the counters of `concepts` as another.

    None stands for a pair of which a side is missing, and stays.
    """
    return _counters_together(_latencies_together(comparisons), concepts)


def _latencies_together(comparisons: Sequence[Comparison | None]) -> list[Comparison | None]:
    decisions = [
        latency.decision for comparison in comparisons if comparison for latency in comparison.latency
    ]
    judged = iter(judge_together(decisions))
    return [
        comparison
        and replace(
            comparison,
            latency=tuple(replace(latency, decision=next(judged)) for latency in comparison.latency),
        )
        for comparison in comparisons
    ]


def _counters_together(
    comparisons: Sequence[Comparison | None], concepts: Collection[str]
) -> list[Comparison | None]:
    """Each comparison judged its own counters together, all of them: what it left unclear stays so.

    One comparison alone needs no more.
    """
    if sum(comparison is not None for comparison in comparisons) < 2:
        return [*comparisons]
    launches = [pair for comparison in comparisons if comparison for pair in comparison.pairs]
    judged = iter(judge_counters_together(launches, concepts))
    return [
        comparison and replace(comparison, pairs=tuple(next(judged) for _ in comparison.pairs))
        for comparison in comparisons
    ]
