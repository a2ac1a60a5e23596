"""Tells a launch that did more from one whose clock was lower: the SMs', or that of the memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from profiler.compare.wholes import DRAM_CONCEPTS
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Value
from profiler.statistics.decision import change_text
from profiler.statistics.verdict import Verdict

# The concept whose verdict is that of a pair of launches. It is the duration under ncu, not the latency of a
# call.
HEADLINE = "duration"
CYCLES = "cycles"
CLOCK = "sm_clock"
MEMORY_CLOCK, DRAM_BUSY = "memory_clock", "dram_busy"
_MEMORY_BOUND_PCT = 80.0  # DRAM that is busy for less of the time does not set the pace of a launch
# Instructions, and the traffic beyond the SMs. L2 and DRAM have clocks of their own: a memory-bound kernel
# that moves more bytes takes longer in as many cycles as before if the SM clock fell at the same time.
_WORK = ("inst_issued", "inst_executed", "l2_sectors", "dram_read", "dram_write")
# All that the verdict on a duration follows from: a smaller table needs these lines.
TIME_CONCEPTS = frozenset((HEADLINE, CYCLES, CLOCK, MEMORY_CLOCK, DRAM_BUSY, *_WORK, *DRAM_CONCEPTS))


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


class ClockVerdict(NamedTuple):
    """The verdict on two durations whose difference is a clock's, and why."""

    verdict: Verdict  # SAME: the clock was counted; UNCLEAR: it follows from two other counters alone
    reason: str
    judged_by: str = CYCLES  # the concept that decides instead of the duration


def clock_change(time: float, cycles: float) -> float:
    """The change of the SM clock that time and cycles imply, all as shares of A: cycles over time."""
    return (1 + cycles) / (1 + time) - 1


def explain_by_clock(changes: Mapping[str, JudgedChange], table: MetricTable) -> ClockVerdict | None:
    """Why two launches are no better or worse although their times differ: a clock alone moved, or may.

    `changes` are by concept; None where no clock explains it. Of a launch that waits for memory the memory's
    clock is asked first (`_explain_by_memory_clock`). Of the SM clock the cycles must be the same and the
    clock must have moved, each by its threshold; at A's clock the times would have to be within the threshold
    of the duration; and no count of work may have moved the way of the time: less work is no cause of more
    time. Time and clock are read apart from the cycles, so a counter that another replay pass saw differently
    is not taken for the clock. A count of work that is missing does not stand in the way. Where one of cycles
    and clock was not collected, or is derived from the other, the two counters that are left say what it was,
    but nothing confirms them: unclear.
    """
    time, cycles, clock = (_share(changes.get(concept)) for concept in (HEADLINE, CYCLES, CLOCK))
    if time is None or time <= -1 or changes[HEADLINE].verdict.traits.quiet:
        return None
    if any(_moved_with(time, changes[concept]) for concept in _WORK if concept in changes):
        return None
    if by_memory := _explain_by_memory_clock(time, changes, table):
        return by_memory
    times = f"the time is {change_text(time, 1)}"
    if cycles is not None and clock is not None:
        is_explained = (
            changes[CYCLES].verdict is Verdict.SAME
            and changes[CLOCK].verdict is Verdict.CHANGED
            and _is_same_time(time, clock, table)
        )
        reason = f"same in cycles ({change_text(cycles, 1)}); {times} because the SM clock was {_size(clock)}"
        return ClockVerdict(Verdict.SAME, reason) if is_explained else None
    if cycles is not None and changes[CYCLES].verdict is Verdict.SAME:
        implied = clock_change(time, cycles)
        reason = (
            f"same in cycles ({change_text(cycles, 1)}), but {times}: by time over cycles the SM clock was "
            f"{_size(implied)}, and no clock counter was collected"
        )
        return ClockVerdict(Verdict.UNCLEAR, reason)
    if clock is not None and changes[CLOCK].verdict is Verdict.CHANGED and _is_same_time(time, clock, table):
        reason = f"{times}, as the SM clock was {_size(clock)}; no cycles were collected"
        return ClockVerdict(Verdict.UNCLEAR, reason)
    return None


def _explain_by_memory_clock(
    time: float, changes: Mapping[str, JudgedChange], table: MetricTable
) -> ClockVerdict | None:
    """SAME where the clock of the memory accounts for the time of launches that waited for memory.

    DRAM must have been busy for most of the time on both sides, its clock must have moved by more than its
    threshold, and at A's clock the times would have to be within the threshold of the duration. The SM's
    cycles then follow the time, and say nothing by themselves. No traffic may be known to have moved with the
    time, which the caller has made sure of: B that moves more bytes keeps DRAM as busy, and longer.
    """
    clock, busy = _share(changes.get(MEMORY_CLOCK)), changes.get(DRAM_BUSY)
    if clock is None or busy is None or changes[MEMORY_CLOCK].verdict is not Verdict.CHANGED:
        return None
    shares = [value.number for value in (busy.a, busy.b) if value.number is not None]
    if len(shares) < 2 or min(shares) < _MEMORY_BOUND_PCT or not _is_same_time(time, clock, table):
        return None
    reason = (
        f"the time is {change_text(time, 1)} because the memory clock was {_size(clock)}, and DRAM was busy "
        f"{shares[0]:.0f} and {shares[1]:.0f} % of the time"
    )
    return ClockVerdict(Verdict.SAME, reason, MEMORY_CLOCK)


def _is_same_time(time: float, clock: float, table: MetricTable) -> bool:
    """Whether both launches would have taken equally long at A's clock."""
    return abs((1 + time) * (1 + clock) - 1) <= table.by_concept[HEADLINE].threshold


def _size(clock: float) -> str:
    return f"{change_text(abs(clock), 1).removeprefix('+')} {'lower' if clock < 0 else 'higher'}"


def _moved_with(time: float, change: JudgedChange) -> bool:
    """Whether both sides have the count, and it moved as the time did, by more than its threshold."""
    if change.verdict.traits.quiet or change.verdict is Verdict.NOT_COMPARABLE:
        return False
    return change.change_pct is None or (change.change_pct > 0) is (time > 0)


def _share(change: JudgedChange | None) -> float | None:
    """The change as a share of A; None without two comparable counters, or where A is not above zero."""
    if change is None or change.change_pct is None or change.verdict is Verdict.NOT_COMPARABLE:
        return None
    # A clock that is computed as cycles over time says nothing that the two do not say.
    if change.a.derivation is not None or change.b.derivation is not None:
        return None
    return change.change_pct / 100 if change.a.number and change.a.number > 0 else None
