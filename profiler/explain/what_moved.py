"""What else moved in a pair of launches: the counters furthest beyond their thresholds, and the opcodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from profiler.compare.pair_comparison import MetricChange, OpcodeChange, PairComparison
from profiler.evidence import formatting
from profiler.evidence.metric_table import Metric, MetricTable
from profiler.evidence.values import Value
from profiler.statistics.verdict import Verdict

MOST_NAMED = 3  # counters, and opcodes
STALLS = "stalls"  # the group of metrics.txt
# Groups of metrics.txt that no reason is looked for in: time and clock are what is to be explained, the
# others are settings, peaks and what no GPU measured.
_NO_REASONS = ("time", "clock", "launch", "roofline", "static", "modelled")
# These groups count per cycle or second, so they move where the time does; and so do the names below.
_PER_TIME = ("speed of light", "scheduler")
_PER_TIME_NAMES = ("per_second", "pct_of_peak_sustained")
_ALIKE = 0.1  # of the larger move: counters of one group that lie closer say one thing
_LEAST_OPCODE_SHARE = 0.01  # of all instructions of the side with more: fewer explain no change


@dataclass(frozen=True)
class CounterMove:
    """A counter of a pair that moved beyond its threshold, and how far."""

    change: MetricChange
    thresholds: float | None  # how many thresholds it moved, as ratios multiply; None where a side is 0
    is_rate: bool  # per cycle or second, so that it moves with the time

    @property
    def words(self) -> str:
        """`stall barrier 8.45 → 0.12 (−98.6 %)`."""
        change = self.change
        label = change.label.partition(":")[0]
        if change.group == STALLS:
            label = f"stall {label}"
        elif change.concept.startswith("inst_"):
            label = f"instructions {label}"
        moved = formatting.change(change.a, change.b) if change.a.number and change.b.number else ""
        return f"{label} {formatting.from_to(change.a, change.b)}{f' ({moved})' if moved else ''}"


@dataclass(frozen=True)
class WhatMoved:
    """What moved most in a pair beside its time: at most three counters and three opcodes, furthest first."""

    counters: tuple[CounterMove, ...]
    opcodes: tuple[OpcodeChange, ...]  # largest change first; empty without an opcode mix on both sides

    @property
    def words(self) -> str:
        """The counters, and then the opcodes, each from A's number to B's."""
        parts = [move.words for move in self.counters]  # labels hold commas
        if self.opcodes:
            opcodes = (
                f"{opcode.opcode} {formatting.from_to(Value(opcode.a), Value(opcode.b))}"
                for opcode in self.opcodes
            )
            parts.append(f"by opcode {', '.join(opcodes)}")
        return "; ".join(parts)


def what_moved(pair: PairComparison, table: MetricTable) -> WhatMoved:
    """The counters of a pair that moved most relative to their thresholds, and the opcodes.

    Only changes whose verdict says that they moved count, so nothing that is too small or not comparable.
    What was counted comes before what is a rate: a rate moves with the time, whatever the reason. Of counters
    of one group that moved alike, such as instructions issued and executed, the first is named.
    """
    moves = sorted(_moves(pair, table.by_concept), key=lambda move: (move.is_rate, -_size(move)))
    named: list[CounterMove] = []
    for move in moves:
        if len(named) < MOST_NAMED and not any(_are_alike(move.change, other.change) for other in named):
            named.append(move)
    return WhatMoved(tuple(named), tuple(_opcodes(pair)))


def _moves(pair: PairComparison, metrics: Mapping[str, Metric]) -> Iterator[CounterMove]:
    latency = max(_sum_of_stalls(pair))
    for change in pair.metrics:
        metric = metrics.get(change.concept)
        has_moved = change.verdict.traits.moved or change.verdict is Verdict.CHANGED
        if metric and has_moved and metric.group not in _NO_REASONS:
            threshold = metric.threshold if metric.threshold_pp is None else metric.threshold_pp
            if threshold:  # none: a setting, such as a block limit
                yield CounterMove(change, _thresholds(change, metric, latency), _is_rate(metric))


def _sum_of_stalls(pair: PairComparison) -> tuple[float, float]:
    """The cycles of latency that the stalls of A and of B make."""
    stalls = [change for change in pair.metrics if change.group == STALLS]
    return (
        math.fsum(change.a.number or 0.0 for change in stalls),
        math.fsum(change.b.number or 0.0 for change in stalls),
    )


def _thresholds(change: MetricChange, metric: Metric, latency: float) -> float | None:
    """How many thresholds a counter moved.

    A ratio counts by its logarithm, so that half is as far as double. A stall counts as a share of the
    latency, since a small one that doubles costs nothing. None where a side is 0 and the other is not.
    """
    a, b = change.a.number, change.b.number
    if a is None or b is None:
        return 0.0
    if metric.threshold_pp is not None:
        return abs(b - a) / metric.threshold_pp
    if change.group == STALLS:
        return abs(b - a) / (metric.threshold * latency) if latency else 0.0
    if a * b <= 0:
        return None
    return abs(math.log(abs(b)) - math.log(abs(a))) / math.log1p(metric.threshold)


def _size(move: CounterMove) -> float:
    return math.inf if move.thresholds is None else move.thresholds


def _is_rate(metric: Metric) -> bool:
    if metric.group == "occupancy":  # of peak, but a number of warps
        return False
    name = metric.alternatives[0].name
    return metric.group in _PER_TIME or any(part in name for part in _PER_TIME_NAMES)


def _are_alike(change: MetricChange, other: MetricChange) -> bool:
    """Whether two counters of one group moved by one ratio, or by one amount of one unit."""
    if change.group != other.group or change.group == STALLS:
        return False
    ratios = (_log_ratio(change), _log_ratio(other))
    if None in ratios:  # a side is 0
        return ratios == (None, None) and bool(change.a.number) == bool(other.a.number)
    if _are_near(ratios[0] or 0.0, ratios[1] or 0.0):
        return True
    return change.unit == other.unit == "%" and _are_near(_amount(change), _amount(other))


def _log_ratio(change: MetricChange) -> float | None:
    a, b = change.a.number, change.b.number
    return math.log(b / a) if a and b and a * b > 0 else None


def _amount(change: MetricChange) -> float:
    return abs((change.b.number or 0.0) - (change.a.number or 0.0))


def _are_near(a: float, b: float) -> bool:
    return abs(a - b) <= _ALIKE * max(abs(a), abs(b))


def _opcodes(pair: PairComparison) -> Iterator[OpcodeChange]:
    """The opcodes whose count changed most, where the change is a share of all instructions that matters."""
    totals = (math.fsum(change.a for change in pair.opcodes), math.fsum(change.b for change in pair.opcodes))
    least = _LEAST_OPCODE_SHARE * max(totals)
    for change in pair.opcodes[:MOST_NAMED]:
        if abs(change.b - change.a) >= least > 0:
            yield change
