"""Compiler facts: equality without statistics, the few changes that a gate fails on, and the same code.

Source: `statistics.md`, rule 3.

Assumed: a compiler repeats itself. Two builds of one source by one compiler are equal bit by bit, so every
difference is real; which of them matter is a rule, and is said in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeGuard

from profiler.statistics.decision import Decision
from profiler.statistics.verdict import Verdict

Fact = float | str | None  # None: not known


class FactChange(NamedTuple):
    """One fact that is not equal on both sides; None where a side does not say."""

    name: str
    a: Fact
    b: Fact


class WatchedFact(NamedTuple):
    """A numeric fact that a gate watches, and what it is called."""

    label: str
    unit: str = ""
    fewer: bool = False  # whether less is worse
    step: int = 1  # given out in such units: what stays within one costs nothing


# By the names that facts are stored under. Blocks per SM are the steps of occupancy; registers are given out
# in units of 8 a thread.
WATCHED_FACTS: Mapping[str, WatchedFact] = {
    "static__spill_bytes": WatchedFact("spills", "B"),
    "static__stack_bytes": WatchedFact("stack", "B"),
    "static__blocks_per_sm": WatchedFact("blocks per SM", fewer=True),
    "static__registers": WatchedFact("registers", step=8),
    "static__opcode_BAR": WatchedFact("barriers"),
    "modelled__bank_conflicts": WatchedFact("modelled bank conflicts"),
    "modelled__findings": WatchedFact("schedules with findings"),
}
OVER_BUDGET = "static__over_budget"  # in words
BUDGET_LABEL = "the budget"  # what it is called where it is missing
WITHIN_BUDGET = "nothing"  # what BUDGET says where all is within


class FactFailure(NamedTuple):
    """One fact that fails a gate."""

    name: str  # it is stored under
    words: str  # names the fact and both values
    effect: float | None = None  # share of A's; None from 0, and for what is no number


@dataclass(frozen=True)
class FactsDecision:
    """What differs between the facts of two builds, and what of it fails a gate."""

    changes: tuple[FactChange, ...]
    failures: tuple[FactFailure, ...]
    missing: tuple[str, ...]  # watched facts that A has as a number and B has not; a budget as a text

    @property
    def verdict(self) -> Verdict:
        """Worse by a gate's rule; else changed, missing or same."""
        if self.failures:
            return Verdict.WORSE
        if self.missing:
            return Verdict.MISSING
        return Verdict.CHANGED if self.changes else Verdict.SAME


def judge_facts(a: Mapping[str, Fact], b: Mapping[str, Fact]) -> FactsDecision:
    """Compare the facts of B with A's, both by the names they are stored under. B's order, then A's."""
    names = dict.fromkeys((*b, *a))
    changes = tuple(
        FactChange(name, a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name)
    )
    missing = tuple(
        gate.label
        for name, gate in WATCHED_FACTS.items()
        if _is_number(a.get(name)) and not _is_number(b.get(name))
    )
    if isinstance(a.get(OVER_BUDGET), str) and not isinstance(b.get(OVER_BUDGET), str):
        missing = (*missing, BUDGET_LABEL)
    found = [
        failed
        for name, gate in WATCHED_FACTS.items()
        if (failed := _failure(name, gate, a.get(name), b.get(name)))
    ]
    over = b.get(OVER_BUDGET)
    if isinstance(over, str) and over != WITHIN_BUDGET and over != a.get(OVER_BUDGET):
        found.append(FactFailure(OVER_BUDGET, f"over its budget: {over}"))
    return FactsDecision(changes, tuple(found), missing)


def same_code(a_sha256: str | None, b_sha256: str | None) -> bool | None:
    """Whether both run the same machine code; None where a side does not say."""
    return None if a_sha256 is None or b_sha256 is None else a_sha256 == b_sha256


def note_same_code(latency: Decision, same: bool | None) -> Decision:
    """The verdict on a latency; where the machine code is the same, it says that nothing built moved it."""
    if not same or not latency.verdict.traits.moved:
        return latency
    return replace(
        latency, reason=f"{latency.reason}; the machine code is the same: the environment moved, not it"
    )


def _is_number(fact: Fact) -> TypeGuard[float]:
    return isinstance(fact, int | float)


def _failure(name: str, gate: WatchedFact, a: Fact, b: Fact) -> FactFailure | None:
    if not (_is_number(a) and _is_number(b)):
        return None
    before, after = -(-a // gate.step), -(-b // gate.step)
    if (after >= before) if gate.fewer else (after <= before):
        return None
    unit = f" {gate.unit}" if gate.unit else ""
    return FactFailure(name, f"{gate.label}: {a:g} → {b:g}{unit}", (b - a) / abs(a) if a else None)
