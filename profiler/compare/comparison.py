"""What moved between two sides: launch by launch and metric by metric, each with its verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from profiler.compare.comparability import Difference, find_differences
from profiler.compare.counter_noise import CounterKey, CounterNoise, CounterNoiseLookup
from profiler.compare.latency import LatencyComparison, compare_latencies
from profiler.compare.match_launches import (
    AmbiguousLaunches,
    kernel_filter,
    launch_differences,
    launch_labels,
    match,
)
from profiler.compare.metric_verdict import SHORT_NS, judge, missing_reason, noise_interval
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.errors import UnknownName
from profiler.evidence import Evidence, Launch, Metric, MetricTable, Side, State, Value, brief_list, chip_of
from profiler.statistics import Interval, Verdict

HEADLINE = "duration"  # the concept whose verdict is the pair's: ncu's duration, which is not latency


@dataclass(frozen=True)
class MetricChange:
    """One metric on both sides of a pair, with its verdict."""

    concept: str
    label: str
    metric: str  # the exact ncu name both sides were compared by; A's where they carry different ones
    group: str
    unit: str
    a: Value
    b: Value
    change_pct: float | None  # of a; None where a side has no number, or a is 0 and b is not
    verdict: Verdict
    reason: str
    unreplicated: bool  # better or worse from one launch a side
    judged: bool = True  # whether one direction is better
    noise_share: float | None = None  # of a, that a change must exceed, by A/A pairs; None: not learned

    @property
    def interval(self) -> Interval | None:
        """The change as far as noise lets it be known; None where none was learned."""
        return noise_interval(self.change_pct, self.noise_share)


@dataclass(frozen=True)
class OpcodeChange:
    """Warp instructions of one opcode; 0 is a real 0, since a list of opcodes names all that ran."""

    opcode: str
    a: float
    b: float


@dataclass(frozen=True)
class PairComparison:
    """Two launches that belong together."""

    a: Launch
    b: Launch
    kernel: str  # A's label: range/kernel#n
    metrics: tuple[MetricChange, ...]  # in the order of metrics.txt
    opcodes: tuple[OpcodeChange, ...]  # largest change first; empty where a side has no opcode mix
    differs: tuple[str, ...]  # template, grid, block, NVTX range

    @property
    def headline(self) -> MetricChange | None:
        """The change of ncu's duration; None where metrics.txt has no such concept."""
        return next((change for change in self.metrics if change.concept == HEADLINE), None)

    @property
    def verdict(self) -> Verdict:
        """The verdict of the duration."""
        return self.headline.verdict if self.headline else Verdict.MISSING


@dataclass(frozen=True)
class Comparison:
    """Everything that can be said of A against B. Pairs come longest first."""

    a: Side
    b: Side
    comparable: bool
    differences: tuple[Difference, ...]
    same: tuple[tuple[str, str], ...]
    pairs: tuple[PairComparison, ...]
    only_in_a: tuple[Launch, ...]
    only_in_b: tuple[Launch, ...]
    ambiguous: tuple[AmbiguousLaunches, ...]
    hidden_pairs: int = 0  # cut off by `top`
    hidden_verdicts: tuple[Verdict, ...] = ()  # of their durations
    latency: tuple[LatencyComparison, ...] = ()  # of the calls, a mode each; empty where nobody timed them

    def label(self, launch: Launch) -> str:
        """What a launch of either side is called: range/kernel#n."""
        labelled = self._labels.get(id(launch))
        return labelled[1] if labelled and labelled[0] is launch else launch.base_name

    @cached_property
    def _labels(self) -> dict[int, tuple[Launch, str]]:
        sides = (zip(side.launches, launch_labels(side.launches), strict=True) for side in (self.a, self.b))
        return {id(launch): (launch, name) for side in sides for launch, name in side}

    @property
    def judged(self) -> tuple[str, ...]:
        """The concepts of any pair that have a better direction and a number on a side."""
        judged = (change for pair in self.pairs for change in pair.metrics if change.judged)
        with_number = (change for change in judged if (change.a.number, change.b.number) != (None, None))
        return tuple(dict.fromkeys(change.concept for change in with_number))

    @property
    def blocked_by(self) -> tuple[Difference, ...]:
        """What makes the sides not comparable."""
        return tuple(difference for difference in self.differences if difference.blocks)

    @property
    def unknown(self) -> tuple[Difference, ...]:
        """What a side does not say: a warning, not a match."""
        return tuple(difference for difference in self.differences if difference.kind == "unknown")

    def top(self, count: int | None) -> Comparison:
        """The `count` pairs that take longest; the others are counted in hidden_pairs."""
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
) -> Comparison:
    """Compare two sides: latencies mode by mode, counters launch by launch.

    `across` names what of ACROSS may differ. Latencies of one run are judged by its rounds, those of two runs
    by the floor that `noise` knows; counters that do not repeat exactly by what it learned of them, else by
    their threshold alone.
    """
    found, same = find_differences(a, b, across)
    matching = match(a.launches, b.launches)
    is_chosen = kernel_filter(kernel)
    if kernel is not None and not any(map(is_chosen, (*a.launches, *b.launches))):
        kernels = sorted({launch.base_name for launch in (*a.launches, *b.launches)})
        raise UnknownName(
            f"no kernel matches {kernel!r} in {a.label} or {b.label}; there are {brief_list(kernels)}"
        )
    names = {id(launch): name for launch, name in zip(a.launches, launch_labels(a.launches), strict=True)}
    blocking = [difference.words for difference in found if difference.blocks]
    judge_pair = _metric_judge(a, b, table, blocking, noise).pair
    pairs = [judge_pair(x, y, names[id(x)]) for x, y in matching.pairs if is_chosen(x) or is_chosen(y)]
    return Comparison(
        a,
        b,
        not blocking,
        found,
        same,
        tuple(sorted(pairs, key=_longest_first)),
        tuple(filter(is_chosen, matching.only_in_a)),
        tuple(filter(is_chosen, matching.only_in_b)),
        tuple(group for group in matching.ambiguous if any(map(is_chosen, (*group.a, *group.b)))),
        latency=compare_latencies(a, b, found, noise),
    ).top(top)


def judge_every_metric(
    comparison: Comparison, pair: PairComparison, table: MetricTable, noise: NoiseModel = UNKNOWN_NOISE
) -> PairComparison:
    """A pair of a comparison that was made by a few metrics, by every metric of a table."""
    blocking = [difference.words for difference in comparison.blocked_by]
    return _metric_judge(comparison.a, comparison.b, table, blocking, noise).pair(pair.a, pair.b, pair.kernel)


def check_concepts(table: MetricTable, concepts: Sequence[str]) -> None:
    """Refuse a concept that metrics.txt does not declare, or that it does not judge."""
    for concept in concepts:
        metric = table.by_concept.get(concept)
        if metric is None:
            raise UnknownName(f"no concept {concept!r} in {table.path}: `profiler metrics` lists them")
        if metric.better == "-":
            raise UnknownName(f"nobody judges {concept}: {table.path}:{metric.line} gives it no direction")


def _chip(side: Side) -> str | None:
    return chip_of(side.compute_capability) if side.compute_capability else None


def _metric_judge(
    a: Side, b: Side, table: MetricTable, blocking: Sequence[str], noise: NoiseModel
) -> _MetricJudge:
    table = replace(table, metrics=table.of(a.evidence))  # the others cannot be there
    # What is not comparable is not judged: no index is opened for it.
    counter_noise = None if blocking else noise.counter_noise
    return _MetricJudge(table, _chip(a), _chip(b), "; ".join(blocking), CounterKey.of_side(a), counter_noise)


def _longest_first(pair: PairComparison) -> float:
    """Missing durations come first: they want attention, and a cut by time must not hide them."""
    headline = pair.headline
    if headline is None:
        return 0.0
    numbers = [value.number for value in (headline.a, headline.b) if value.number is not None]
    return -float(max(numbers)) if len(numbers) == 2 else float("-inf")


@dataclass(frozen=True)
class _MetricJudge:
    """What every pair of one comparison is judged by."""

    table: MetricTable
    chip_a: str | None
    chip_b: str | None
    blocked: str  # why nothing is comparable; "" where it is
    noise_key: CounterKey  # of side A
    counter_noise: CounterNoiseLookup | None  # None where nothing is judged

    def pair(self, a: Launch, b: Launch, name: str) -> PairComparison:
        short = self._is_short(a, b)
        noise = partial(self.counter_noise, self.noise_key, a.base_name) if self.counter_noise else None
        metrics = tuple(self._change(metric, a, b, short, noise) for metric in self.table.metrics)
        return PairComparison(a, b, name, metrics, _opcode_changes(a, b), launch_differences(a, b))

    def _is_short(self, a: Launch, b: Launch) -> bool:
        headline = self.table.by_concept.get(HEADLINE)
        if headline is None:
            return False
        _, value_a, _, value_b = self._values(headline, a, b)
        return any(v.number is not None and v.number < SHORT_NS for v in (value_a, value_b))

    def _values(self, metric: Metric, a: Launch, b: Launch) -> tuple[str, Value, str, Value]:
        """Both sides by the same ncu name where both carry one as a number, else each by its own."""
        name_a, value_a = self.table.resolve(metric, a.values, self.chip_a)
        name_b, value_b = self.table.resolve(metric, b.values, self.chip_b)
        if name_a != name_b:
            allowed_b = metric.names_for(self.chip_b)
            for name in metric.names_for(self.chip_a):
                x, y = a.values.value(name), b.values.value(name)
                if name in allowed_b and x.state is State.PRESENT and y.state is State.PRESENT:
                    return name, x, name, y
        return name_a, value_a, name_b, value_b

    def _change(
        self,
        metric: Metric,
        a: Launch,
        b: Launch,
        short: bool,
        noise: Callable[[str, bool], CounterNoise | None] | None,
    ) -> MetricChange:
        name_a, value_a, name_b, value_b = self._values(metric, a, b)
        verdict, reason, change_pct, limit = judge(
            metric, (name_a, name_b), value_a, value_b, short=short, noise=noise
        )
        if self.blocked:
            verdict = Verdict.NOT_COMPARABLE
            reason = "; ".join(filter(None, (self.blocked, missing_reason(value_a, value_b))))
        by_a = value_a.number is not None or value_b.number is None
        return MetricChange(
            metric.concept,
            metric.label,
            name_a if by_a else name_b,
            metric.group,
            (value_a if by_a else value_b).unit or metric.unit,
            value_a,
            value_b,
            change_pct,
            verdict,
            reason,
            verdict.traits.moved and metric.evidence is Evidence.MEASURED and limit is None,
            metric.better != "-",
            limit,
        )


def _opcode_changes(a: Launch, b: Launch) -> tuple[OpcodeChange, ...]:
    if not a.opcodes or not b.opcodes:
        return ()
    names = dict.fromkeys((*a.opcodes, *b.opcodes))
    changes = [OpcodeChange(name, a.opcodes.get(name, 0.0), b.opcodes.get(name, 0.0)) for name in names]
    return tuple(sorted(changes, key=lambda change: -abs(change.b - change.a)))
