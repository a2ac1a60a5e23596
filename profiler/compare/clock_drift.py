"""Tells a launch that did more from one whose clock was lower: equal in cycles, and the time alone moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from profiler.compare.wholes import DRAM_CONCEPTS
from profiler.evidence import MetricTable, Value
from profiler.statistics import Verdict, change_text

# The concept whose verdict is that of a pair of launches. It is the duration under ncu, not the latency of a
# call.
HEADLINE = "duration"
CYCLES = "cycles"
CLOCK = "sm_clock"
# Instructions, and the traffic beyond the SMs. L2 and DRAM have clocks of their own: a memory-bound kernel
# that moves more bytes takes longer in as many cycles as before if the SM clock fell at the same time.
_WORK = ("inst_issued", "inst_executed", "l2_sectors", "dram_read", "dram_write")
# All that the verdict on a duration follows from: a smaller table needs these lines.
TIME_CONCEPTS = frozenset((HEADLINE, CYCLES, CLOCK, *_WORK, *DRAM_CONCEPTS))


class JudgedChange(Protocol):
    """What is asked of a metric of two launches: a MetricChange, which the comparison makes."""

    @property
    def a(self) -> Value:
        """The value of A."""

    @property
    def b(self) -> Value:
        """The value of B."""

    @property
    def change_pct(self) -> float | None:
        """The change in per cent of A; None where that cannot be computed."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on this metric by itself."""


def explain_by_clock(changes: Mapping[str, JudgedChange], table: MetricTable) -> str:
    """Why two launches are equal although their times differ: the SM clock alone moved; "" where it did not.

    `changes` are by concept. The cycles must be the same and the clock must have moved, each by its
    threshold; at A's clock the times would have to be within the threshold of the duration; and no count of
    work may have moved. Time and clock are read apart from the cycles, so a counter that another replay pass
    saw differently is not taken for the clock. Counters that are missing change nothing: without cycles or
    clock, or where one is derived from the other, it is ""; a count of work that is missing does not stand in
    the way.
    """
    time, cycles, clock = (_share(changes.get(concept)) for concept in (HEADLINE, CYCLES, CLOCK))
    if time is None or cycles is None or clock is None:
        return ""
    time_at_one_clock = (1 + time) * (1 + clock) - 1
    only_clock_moved = (
        not changes[HEADLINE].verdict.traits.quiet
        and changes[CYCLES].verdict is Verdict.SAME
        and changes[CLOCK].verdict is Verdict.CHANGED
        and abs(time_at_one_clock) <= table.by_concept[HEADLINE].threshold
        and not any(_moved(changes[concept]) for concept in _WORK if concept in changes)
    )
    if not only_clock_moved:
        return ""
    size = change_text(abs(clock), 1).removeprefix("+")
    return (
        f"same in cycles ({change_text(cycles, 1)}); the time is {change_text(time, 1)} "
        f"because the SM clock was {size} {'lower' if clock < 0 else 'higher'}"
    )


def _moved(change: JudgedChange) -> bool:
    """Whether both sides have the count and it differs by more than its threshold."""
    return not change.verdict.traits.quiet and change.verdict is not Verdict.NOT_COMPARABLE


def _share(change: JudgedChange | None) -> float | None:
    """The change as a share of A; None without two comparable counters, or where A is not above zero."""
    if change is None or change.change_pct is None or change.verdict is Verdict.NOT_COMPARABLE:
        return None
    # A clock that is computed as cycles over time says nothing that the two do not say.
    if change.a.derivation is not None or change.b.derivation is not None:
        return None
    return change.change_pct / 100 if change.a.number and change.a.number > 0 else None
