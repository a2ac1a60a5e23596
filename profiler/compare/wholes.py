"""How large the whole is that a counter is a part of, so that a change of next to nothing is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from profiler.evidence import formatting
from profiler.evidence.metric_table import COMPUTED_WHOLES, MetricTable
from profiler.evidence.values import Value

_NS_PER_SECOND = 1e9

# What the bytes that DRAM could move follow from.
DRAM_CONCEPTS = ("roof_dram_peak", "memory_clock", "duration", "dram_read", "dram_write", "dram_busy")

# The number of a concept in a launch; None where it has none.
NumberOf = Callable[[str], float | None]


class Whole(NamedTuple):
    """What a counter is a part of, on the side where it is smaller."""

    name: str  # as the threshold of metrics.txt names it
    number: float
    unit: str
    label: str  # what is counted, in words

    @property
    def words(self) -> str:
        """The size with what is counted: `223 M wavefronts`, `109 M L2 sectors`."""
        unit = "" if self.unit and self.unit in self.label else self.unit
        size = formatting.quantity(Value(self.number, unit))
        return f"{size} {self.label}"


def find_whole(name: str, table: MetricTable, a: NumberOf, b: NumberOf) -> Whole | None:
    """The whole of that name on the side where it is smaller; None where a side does not have it.

    By the smaller side a change is more often relevant: what is little of a large whole may be much of what
    is left of it.
    """
    if name in COMPUTED_WHOLES:
        return _dram_whole(name, a, b)
    metric = table.by_concept.get(name)
    numbers = (a(name), b(name))
    if metric is None or numbers[0] is None or numbers[1] is None:
        return None
    return Whole(name, min(numbers[0], numbers[1]), metric.unit, metric.label)


def _dram_whole(name: str, a: NumberOf, b: NumberOf) -> Whole | None:
    """What DRAM could move in the launch's time, or in a second of it, by the first way that both allow."""
    seconds_a, seconds_b = ((number("duration") or 0) / _NS_PER_SECOND for number in (a, b))
    for size_a, size_b in zip(_dram_sizes(a), _dram_sizes(b), strict=True):
        if size_a is not None and size_b is not None:
            if name == "dram_capacity":
                number, label = min(size_a, size_b)
                return Whole(name, number, "byte", label)
            if seconds_a and seconds_b:
                rate = min(size_a[0] / seconds_a, size_b[0] / seconds_b)
                return Whole(name, rate, "byte/s", size_a[1].removesuffix(" in the time"))
    return None


def _dram_sizes(number: NumberOf) -> Iterator[tuple[float, str] | None]:
    """The capacity by each way, best first: bytes and what they are; None where a way lacks a counter."""
    peak, clock, ns = number("roof_dram_peak"), number("memory_clock"), number("duration")
    could_move = "that DRAM could move in the time"
    if peak is not None and clock is not None and ns is not None:
        yield peak * clock * ns / _NS_PER_SECOND, could_move
    else:
        yield None
    read, written, busy_pct = number("dram_read"), number("dram_write"), number("dram_busy")
    moved = None if read is None or written is None else read + written
    # Bytes over the share of time that DRAM was busy: never above the peak, so never too large a whole.
    yield None if moved is None or not busy_pct else (moved / (busy_pct / 100), could_move)
    # What it did move is the least that it could.
    yield None if moved is None else (moved, "that DRAM moved in all")
