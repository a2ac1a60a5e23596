"""Compares two sides launch by launch and metric by metric, each with its verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from profiler.compare.clock_drift import HEADLINE, TIME_CONCEPTS, explain_by_clock
from profiler.compare.comparability import MEASUREMENT, Difference, find_differences, find_libraries_alone
from profiler.compare.counter_noise import CounterKey, CounterNoise, CounterNoiseLookup
from profiler.compare.executed_code import doubt_equal_code
from profiler.compare.kernel_pairs import NO_PAIRS, Pairing
from profiler.compare.latency import LatencyComparison, compare_latencies
from profiler.compare.match_launches import (
    AmbiguousLaunches,
    LaunchPair,
    Matching,
    PairedBy,
    kernel_filter,
    launch_differences,
    launch_labels,
    match,
)
from profiler.compare.metric_verdict import (
    DETERMINISTIC_GROUPS,
    SHORT_NS,
    Samples,
    judge,
    missing_reason,
)
from profiler.compare.neighbours import judge_by_neighbours
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.compare.pair_comparison import MetricChange, OpcodeChange, PairComparison, facts_of
from profiler.compare.split_by_gpu import split_by_gpu
from profiler.compare.wholes import Whole, find_whole
from profiler.compare.workload_change import WorkloadChange, find_workload_change
from profiler.errors import UnknownName
from profiler.evidence import formatting
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import Metric, MetricTable
from profiler.evidence.naming import brief_list
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence, Value
from profiler.statistics.facts import NO_FACTS, FactsDecision, judge_facts
from profiler.statistics.multiple_testing import discoveries
from profiler.statistics.verdict import Verdict, heaviest

_DURATION = "gpu__time_duration.sum"


@dataclass(frozen=True)
class Comparison:
    """The whole comparison of B with A. Pairs without a duration come first, then the longest."""

    a: Side
    b: Side
    comparable: bool
    differences: tuple[Difference, ...]
    same: tuple[tuple[str, str], ...]  # what is equal on both sides: name and value
    pairs: tuple[PairComparison, ...]
    only_in_a: tuple[Launch, ...]
    only_in_b: tuple[Launch, ...]
    ambiguous: tuple[AmbiguousLaunches, ...]
    hidden_pairs: int = 0  # how many `top` cut off
    hidden_verdicts: tuple[Verdict, ...] = ()  # the verdicts of their durations
    latency: tuple[LatencyComparison, ...] = ()  # one for each mode in which calls were timed
    blocking_counters: tuple[str, ...] = ()  # what makes counters not comparable, in words
    across: frozenset[str] = frozenset()  # what was allowed to differ
    # Unclear pairs that cannot change the verdict on all: what they may have lost is little beside the rest.
    outweighed: tuple[PairComparison, ...] = ()

    @property
    def timed_verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on timed calls; empty where none were timed on both sides."""
        verdicts = tuple(latency.verdict for latency in self.latency)
        return verdicts if any(verdict is not Verdict.MISSING for verdict in verdicts) else ()

    @property
    def verdict(self) -> Verdict:
        """The one verdict on B: of the timed calls, else of the durations by their weight in time.

        The heaviest: worse, not comparable, unclear, better, changed, same. Unclear launches count only where
        all of them together may have lost more than half of what the others gained, and more than the
        threshold of all durations together. Missing where no pair has a duration.
        """
        return heaviest(self.timed_verdicts or self.weighed_verdicts)

    @property
    def weighed_verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on the durations, without those that are outweighed; also of what `top` cut off."""
        weighed = [pair.verdict for pair in self.pairs if not self.is_outweighed(pair)]
        hidden = list(self.hidden_verdicts)
        for _ in range(len(self.outweighed) - sum(map(self.is_outweighed, self.pairs))):
            hidden.remove(Verdict.UNCLEAR)
        return (*weighed, *hidden)

    def is_outweighed(self, pair: PairComparison) -> bool:
        """Whether the pair is unclear and cannot change the verdict on all."""
        return any(pair is other or (pair.a is other.a and pair.b is other.b) for other in self.outweighed)

    @property
    def uncompared(self) -> tuple[tuple[str, str, float], ...]:
        """The kernel that takes most of a side's time, where none of its launches has a partner.

        Of each such side its letter, the kernel's base name and its share of the time that is known; nothing
        where there is no pair at all.
        """
        found = []
        for place, letter, alone in ((0, "A", self.only_in_a), (1, "B", self.only_in_b)):
            left = [*alone, *(x for group in self.ambiguous for x in (group.a, group.b)[place])]
            paired = [launch for pair in self.pairs for launch in pair.launches[place]]
            times: dict[str, float] = dict.fromkeys((x.base_name for x in (*left, *paired)), 0.0)
            for launch in (*left, *paired):
                times[launch.base_name] += launch.values.number(_DURATION) or 0.0
            if paired and any(times.values()):
                name, time = max(times.items(), key=lambda entry: entry[1])
                if name not in {launch.base_name for launch in paired}:
                    found.append((letter, name, time / sum(times.values())))
        return tuple(found)

    def label(self, launch: Launch) -> str:
        """The label of a launch of either side: range/kernel#n."""
        labelled = self._labels.get(id(launch))
        return labelled[1] if labelled and labelled[0] is launch else launch.base_name

    @cached_property
    def _labels(self) -> dict[int, tuple[Launch, str]]:
        sides = (zip(side.launches, launch_labels(side.launches), strict=True) for side in (self.a, self.b))
        return {id(launch): (launch, name) for side in sides for launch, name in side}

    @property
    def judged(self) -> tuple[str, ...]:
        """The concepts that are judged: a direction is better, and some pair has a number on a side."""
        judged = (change for pair in self.pairs for change in pair.metrics if change.judged)
        with_number = (change for change in judged if (change.a.number, change.b.number) != (None, None))
        return tuple(dict.fromkeys(change.concept for change in with_number))

    @property
    def one_measurement(self) -> Difference | None:
        """That both sides are one measurement, as a report and its export are; None where they are two."""
        return next((one for one in self.differences if one.field == MEASUREMENT), None)

    @property
    def blocked_by(self) -> tuple[Difference, ...]:
        """The differences that make the sides not comparable."""
        return tuple(difference for difference in self.differences if difference.blocks)

    @property
    def unknown(self) -> tuple[Difference, ...]:
        """The properties that a side does not say: worth a warning, since they may differ."""
        return tuple(difference for difference in self.differences if difference.kind == "unknown")

    def top(self, count: int | None) -> Comparison:
        """The comparison with its `count` longest pairs; the others are counted in hidden_pairs."""
        if count is None or count >= len(self.pairs):
            return self
        cut = self.pairs[count:]
        return replace(
            self,
            pairs=self.pairs[:count],
            hidden_pairs=self.hidden_pairs + len(cut),
            hidden_verdicts=(*(pair.verdict for pair in cut), *self.hidden_verdicts),
        )


def compare(
    a: Side,
    b: Side,
    table: MetricTable,
    *,
    across: Collection[str] = frozenset(),
    kernel: str | None = None,
    top: int | None = None,
    noise: NoiseModel = UNKNOWN_NOISE,
    pairing: Pairing = NO_PAIRS,
) -> Comparison:
    """Compare two sides: latencies mode by mode, counters launch by launch.

    `across` names what of ACROSS may differ. `kernel` is a pattern for `kernel_filter`, `top` how many of the
    longest pairs to keep, `pairing` which kernels may pair though their names differ. Latencies of one run
    are judged by its rounds, those of two runs by the noise floor in `noise`. Counters that do not repeat
    exactly are judged by their learned noise, else by their threshold alone. Raises UnknownName where no
    kernel matches.
    """
    differences, same = find_differences(a, b, across)
    # Who names a kernel, for the comparison or as a pair, asks for it.
    if kernel is None and not pairing.asked:
        differences = (*find_libraries_alone(a, b), *differences)
    is_chosen = kernel_filter(kernel)
    if kernel is not None and not any(map(is_chosen, (*a.launches, *b.launches))):
        kernels = sorted({launch.base_name for launch in (*a.launches, *b.launches)})
        raise UnknownName(
            f"no kernel matches {kernel!r} in {a.label} or {b.label}; there are {brief_list(kernels)}"
        )
    labels = {
        id(launch): label
        for side in (a, b)
        for launch, label in zip(side.launches, launch_labels(side.launches), strict=True)
    }
    blocking = [difference.words for difference in differences if difference.blocks]
    blocking_counters = _blocking_counters(a, b, blocking, across)
    pairs: list[PairComparison] = []
    matchings: list[Matching] = []
    for part_a, part_b in _parts(a, b, across):
        matching = match(
            part_a.launches,
            part_b.launches,
            asked=pairing.asked,
            kept=pairing.kept_for(a, b),
            propose=pairing.propose,
        )
        matchings.append(matching)
        judge_pair = _metric_judge(part_a, part_b, table, blocking_counters, across, noise).pair
        pairs += (
            judge_pair(pair, _pair_labels(pair, labels))
            for pair in matching.pairs
            if is_chosen(pair.a) or is_chosen(pair.b)
        )
    ambiguous = (group for matching in matchings for group in matching.ambiguous)
    longest = sorted(judge_counters_together(pairs), key=_longest_first)
    only_in_a = tuple(x for matching in matchings for x in matching.only_in_a if is_chosen(x))
    only_in_b = tuple(x for matching in matchings for x in matching.only_in_b if is_chosen(x))
    doubted = doubt_equal_code(longest, a, b)
    alone = ((), ()) if _is_workload_declared(a, b) else (only_in_a, only_in_b)
    judged = tuple(judge_by_neighbours(doubted, table, *alone))
    return Comparison(
        a,
        b,
        not blocking,
        differences,
        same,
        judged,
        only_in_a,
        only_in_b,
        tuple(group for group in ambiguous if any(map(is_chosen, (*group.a, *group.b)))),
        latency=compare_latencies(a, b, differences, noise),
        blocking_counters=blocking_counters,
        across=frozenset(across),
        outweighed=find_outweighed(judged, table),
    ).top(top)


def find_outweighed(pairs: Sequence[PairComparison], table: MetricTable) -> tuple[PairComparison, ...]:
    """The unclear pairs, all of them, where together they cannot change the verdict; else none.

    They cannot where what they may have lost is at most the threshold of the duration times the time of all
    pairs in A, or at most half of what the better pairs gained. A pair may have lost what the upper end of
    its interval says, and at least as much as it moved. A pair that may be of another workload is never
    outweighed, and where no pair is decided none is.
    """
    headline = table.by_concept.get(HEADLINE)
    unclear = [pair for pair in pairs if pair.verdict is Verdict.UNCLEAR and not pair.workload_change]
    if headline is None or not unclear:
        return ()
    times = {id(pair): _times(pair) for pair in pairs}
    if any(times[id(pair)] is None for pair in unclear) or not any(p.verdict.traits.decided for p in pairs):
        return ()
    of_all = sum(both[0] for both in times.values() if both)
    may_be_lost = sum(_may_be_lost(pair, both) for pair in unclear if (both := times[id(pair)]))
    gained = sum(
        both[0] - both[1] for pair in pairs if pair.verdict is Verdict.BETTER and (both := times[id(pair)])
    )
    return tuple(unclear) if may_be_lost <= max(headline.threshold * of_all, 0.5 * gained) else ()


def _may_be_lost(pair: PairComparison, times: tuple[float, float]) -> float:
    """The most that an unclear pair of these durations may have lost, in their unit."""
    before, after = times
    interval = pair.headline.interval if pair.headline else None
    return max(abs(after - before), before * interval.high if interval else 0.0)


def _times(pair: PairComparison) -> tuple[float, float] | None:
    """The durations of all launches of A and as many of B; None where a side has none."""
    change = pair.headline
    if change is None or change.a.number is None or change.b.number is None:
        return None
    launches = len(pair.launches[0])
    return launches * float(change.a.number), launches * float(change.b.number)


def judge_every_metric(
    comparison: Comparison, pair: PairComparison, table: MetricTable, noise: NoiseModel = UNKNOWN_NOISE
) -> PairComparison:
    """A pair of a comparison judged again, by every metric of another, larger table."""
    parts = _parts(comparison.a, comparison.b, comparison.across)
    a, b = next(part for part in parts if any(launch is pair.a for launch in part[0].launches))
    judge_pair = _metric_judge(a, b, table, comparison.blocking_counters, comparison.across, noise).pair
    (judged,) = judge_counters_together(
        [judge_pair(LaunchPair(pair.a, pair.b, pair.paired_by, pair.samples), pair.labels)]
    )
    return judged


def judge_counters_together(
    pairs: Sequence[PairComparison], concepts: Collection[str] | None = None
) -> list[PairComparison]:
    """The pairs again: a change that chance alone would make among so many counters is now unclear.

    The changes tested together are those with a p-value, and, in a launch that has one of these, the noisy
    counters that are equal on both sides. Durations are tested apart from the other counters, so that many
    counters do not make a real change in time unclear. With `concepts` only these are tested, and the others
    stay as they are.
    """
    rows = [
        (index, place, change)
        for index, pair in enumerate(pairs)
        if any(change.p is not None for change in pair.metrics)
        for place, change in enumerate(pair.metrics)
        if change.p is not None or _is_wobbling_and_equal(change)
        if concepts is None or change.concept in concepts
    ]
    unclear: dict[tuple[int, int], MetricChange] = {}
    for is_headline in (True, False):
        family = [row for row in rows if (row[2].concept == HEADLINE) is is_headline]
        p = np.array([1.0 if change.p is None else change.p for _, _, change in family])
        for (index, place, change), stands in zip(family, discoveries(p), strict=True):
            if not stands and (change.verdict.traits.moved or change.verdict is Verdict.CHANGED):
                reason = f"{change.reason}; not significant after correcting for {len(family)} counters"
                unclear[index, place] = replace(change, verdict=Verdict.UNCLEAR, reason=reason)
    return [
        replace(
            pair,
            metrics=tuple(unclear.get((index, place), change) for place, change in enumerate(pair.metrics)),
        )
        for index, pair in enumerate(pairs)
    ]


def judge_duration(
    a: Launch, b: Launch, table: MetricTable, key: CounterKey, noise: NoiseModel = UNKNOWN_NOISE
) -> MetricChange | None:
    """The verdict on the durations of two launches of comparable sides; None without such a concept.

    `key` is that of A, by which its noise is looked up.
    """
    metric_judge = _MetricJudge(
        table_of_time(table),
        Side("", (a,)),
        Side("", (b,)),
        "",
        key,
        noise.counter_noise,
        same_workload=False,
    )
    return metric_judge.pair(LaunchPair(a, b), (a.base_name,)).headline


def table_of_time(table: MetricTable) -> MetricTable:
    """The lines of a table that the verdict on a duration follows from."""
    return replace(table, metrics=tuple(m for m in table.metrics if m.concept in TIME_CONCEPTS))


def check_concepts(table: MetricTable, concepts: Sequence[str]) -> None:
    """Raise UnknownName for a concept that metrics.txt does not declare, or gives no better direction."""
    for concept in concepts:
        metric = table.by_concept.get(concept)
        if metric is None:
            raise UnknownName(f"no concept {concept!r} in {table.path}: `profiler list metrics` lists them")
        if metric.better == "-":
            where = f"{table.path}:{metric.line}"
            raise UnknownName(f"{concept} has no direction in {where}, so it cannot be judged")


def _blocking_counters(a: Side, b: Side, blocking: Sequence[str], across: Collection[str]) -> tuple[str, ...]:
    """What makes counters not comparable: also what differs between the earlier runs that they are of."""
    if a.earlier_counters is None and b.earlier_counters is None:
        return tuple(blocking)
    profiled_a, profiled_b = (replace(side, session=side.launch_session) for side in (a, b))
    differences, _ = find_differences(profiled_a, profiled_b, across)
    words = (difference.words for difference in differences if difference.blocks)
    return tuple(dict.fromkeys((*blocking, *words)))


def _parts(a: Side, b: Side, across: Collection[str]) -> list[tuple[Side, Side]]:
    """What is compared with what: launches of one GPU, unless the difference of GPUs is the question."""
    return [(a, b)] if "gpu" in across else split_by_gpu(a, b)


def _metric_judge(
    a: Side,
    b: Side,
    table: MetricTable,
    blocking: Sequence[str],
    across: Collection[str],
    noise: NoiseModel,
) -> _MetricJudge:
    """The judge of the launches of two sides, or of their parts of one GPU."""
    if not blocking:  # two parts of one name may differ in size
        blocking = [difference.words for difference in find_differences(a, b, across)[0] if difference.blocks]
    table = replace(table, metrics=table.of(a.evidence))  # a side has no metrics of other evidence
    # Sides that are not comparable are not judged, so the index need not be read for noise.
    counter_noise = None if blocking else noise.counter_noise
    return _MetricJudge(
        table,
        a,
        b,
        "; ".join(blocking),
        CounterKey.of_side(a),
        counter_noise,
        _is_workload_declared(a, b),
    )


def _pair_labels(pair: LaunchPair, labels: Mapping[int, str]) -> tuple[str, ...]:
    """The labels of a pair's first launches: one where both sides have one name."""
    first_a, first_b = (pair.a, pair.b) if pair.samples is None else (pair.samples[0][0], pair.samples[1][0])
    label_a, label_b = labels[id(first_a)], labels[id(first_b)]
    return (label_a,) if pair.a.base_name == pair.b.base_name else (label_a, label_b)


def _is_workload_declared(a: Side, b: Side) -> bool:
    """Whether somebody said what both sides work on, so that grid and block may differ by intention.

    Static and modelled facts are always of a declared workload, or of none.
    """
    return a.evidence is not Evidence.MEASURED or (a.workload is not None and b.workload is not None)


def _longest_first(pair: PairComparison) -> float:
    """A sort key: pairs without a duration come first, so that `top` does not hide them."""
    headline = pair.headline
    if headline is None:
        return 0.0
    numbers = [value.number for value in (headline.a, headline.b) if value.number is not None]
    return -float(max(numbers)) if len(numbers) == 2 else float("-inf")


@dataclass(frozen=True)
class _MetricJudge:
    """Judges the metrics of all pairs of one comparison."""

    table: MetricTable
    a: Side
    b: Side
    blocked: str  # why the sides are not comparable; "" where they are
    noise_key: CounterKey  # of side A
    counter_noise: CounterNoiseLookup | None  # None where nothing is judged
    same_workload: bool  # whether both sides are declared to do the same work

    def pair(self, pair: LaunchPair, labels: tuple[str, ...]) -> PairComparison:
        a, b, paired_by, samples = pair
        short = self._is_short(a, b)
        noise = partial(self.counter_noise, self.noise_key, a.base_name) if self.counter_noise else None
        # Who declares a pair says that both do the same work, whatever their sizes.
        is_declared = self.same_workload or paired_by is PairedBy.DECLARED
        other_work = None if is_declared else find_workload_change(a, b)
        metrics = tuple(self._change(metric, pair, short, noise, other_work) for metric in self.table.metrics)
        if other_work is None and not self._is_other_gpu(a, b):
            metrics = _without_what_a_clock_did(metrics, self.table)
        facts = None
        if self.a.evidence is not Evidence.MEASURED:
            # What is not comparable breaks no rule.
            facts = NO_FACTS if self.blocked else judge_facts(facts_of(a), facts_of(b))
            metrics = _by_rules_on_facts(metrics, facts)
        opcodes, differs = _opcode_changes(a, b), launch_differences(a, b)
        return PairComparison(a, b, labels, metrics, opcodes, differs, paired_by, other_work, samples, facts)

    def _is_other_gpu(self, a: Launch, b: Launch) -> bool:
        """Whether the launches are known to be of two GPUs, so that clocks and shares of peaks are too."""
        gpus, capabilities = (
            {of(launch) for of, launch in pairs} - {None}
            for pairs in (
                ((self.a.gpu_of, a), (self.b.gpu_of, b)),
                ((self.a.capability_of, a), (self.b.capability_of, b)),
            )
        )
        return len(gpus) > 1 or len(capabilities) > 1

    def _is_short(self, a: Launch, b: Launch) -> bool:
        headline = self.table.by_concept.get(HEADLINE)
        if headline is None:
            return False
        _, value_a, _, value_b = self._values(headline, a, b)
        return any(value.number is not None and value.number < SHORT_NS for value in (value_a, value_b))

    def _whole(self, metric: Metric, a: Launch, b: Launch) -> Whole | None:
        """What the metric is a part of, where its threshold names that and both launches have it."""
        if not metric.whole:
            return None
        return find_whole(
            metric.whole,
            self.table,
            partial(self._number, a, chip_of(self.a.capability_of(a))),
            partial(self._number, b, chip_of(self.b.capability_of(b))),
        )

    def _number(self, launch: Launch, chip: str | None, concept: str) -> float | None:
        metric = self.table.by_concept.get(concept)
        return None if metric is None else self.table.resolve(metric, launch.values, chip)[1].number

    def _values(self, metric: Metric, a: Launch, b: Launch) -> tuple[str, Value, str, Value]:
        """Name and value on both sides: by a name that both have where there is one, else each by its own."""
        (name_a, value_a), (name_b, value_b) = self.table.resolve_pair(
            metric,
            a.values,
            chip_of(self.a.capability_of(a)),
            b.values,
            chip_of(self.b.capability_of(b)),
        )
        return name_a, value_a, name_b, value_b

    def _change(
        self,
        metric: Metric,
        pair: LaunchPair,
        short: bool,
        noise: Callable[[str, bool], CounterNoise | None] | None,
        other_work: WorkloadChange | None,
    ) -> MetricChange:
        a, b = pair.a, pair.b
        name_a, value_a, name_b, value_b = self._values(metric, a, b)
        samples = _samples(pair, (name_a, value_a), (name_b, value_b)) if metric.concept == HEADLINE else None
        if samples:
            value_a, value_b = (
                value._replace(number=float(np.median(numbers)))
                for value, numbers in zip((value_a, value_b), samples, strict=True)
            )
        verdict, reason, change_pct, limit, p, sampled = judge(
            metric,
            (name_a, name_b),
            value_a,
            value_b,
            short=short,
            noise=noise,
            whole=self._whole(metric, a, b),
            samples=samples,
        )
        blocked = self.blocked
        if other_work and other_work.verdict is Verdict.NOT_COMPARABLE:
            blocked = "; ".join(filter(None, (blocked, other_work.reason)))
        if blocked:
            verdict = Verdict.NOT_COMPARABLE
            reason = "; ".join(filter(None, (blocked, missing_reason(value_a, value_b))))
        elif other_work and verdict.traits.moved:
            verdict, reason = Verdict.UNCLEAR, other_work.reason
        by_a = value_a.number is not None or value_b.number is None
        return MetricChange(
            metric.concept,
            formatting.label(metric.label, value_a, value_b),
            name_a if by_a else name_b,
            metric.group,
            (value_a if by_a else value_b).unit or metric.unit,
            value_a,
            value_b,
            change_pct,
            verdict,
            reason,
            verdict.traits.moved and metric.evidence is Evidence.MEASURED and p is None and sampled is None,
            metric.better != "-",
            limit,
            p,
            sampled=sampled,
        )


def _samples(pair: LaunchPair, a: tuple[str, Value], b: tuple[str, Value]) -> Samples | None:
    """The numbers of all launches of a pair, by the names and units of the two in the middle.

    None where the pair has one launch per side, or a number of one of them is derived or missing.
    """
    if pair.samples is None:
        return None
    sides = []
    for launches, (name, value) in zip(pair.samples, (a, b), strict=True):
        values = [launch.values.value(name) for launch in launches]
        if value.derivation or any(other.number is None or other.unit != value.unit for other in values):
            return None
        sides.append(np.array([other.number for other in values], np.float64))
    return sides[0], sides[1]


def _without_what_a_clock_did(
    metrics: tuple[MetricChange, ...], table: MetricTable
) -> tuple[MetricChange, ...]:
    """The changes without a better or worse duration where a clock alone made the times differ."""
    by_clock = explain_by_clock({change.concept: change for change in metrics}, table)
    if by_clock is None:
        return metrics
    return tuple(
        replace(
            change,
            verdict=by_clock.verdict,
            reason=by_clock.reason,
            unreplicated=False,
            judged_by=by_clock.judged_by,
        )
        if change.concept == HEADLINE
        else change
        for change in metrics
    )


def _by_rules_on_facts(
    metrics: tuple[MetricChange, ...], decision: FactsDecision
) -> tuple[MetricChange, ...]:
    """The changes with what fails a gate as worse, whatever metrics.txt says of its direction."""
    rules = {failure.name: failure.rule for failure in decision.failures}
    return tuple(
        replace(change, verdict=Verdict.WORSE, reason=rules[change.metric])
        if change.metric in rules
        else change
        for change in metrics
    )


def _is_wobbling_and_equal(change: MetricChange) -> bool:
    has_numbers = change.a.number is not None and change.b.number is not None
    return has_numbers and change.verdict is Verdict.SAME and change.group not in DETERMINISTIC_GROUPS


def _opcode_changes(a: Launch, b: Launch) -> tuple[OpcodeChange, ...]:
    if not a.opcodes or not b.opcodes:
        return ()
    names = dict.fromkeys((*a.opcodes, *b.opcodes))
    changes = [OpcodeChange(name, a.opcodes.get(name, 0.0), b.opcodes.get(name, 0.0)) for name in names]
    return tuple(sorted(changes, key=lambda change: -abs(change.b - change.a)))
