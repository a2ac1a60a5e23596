"""Compiler facts: equality without statistics, the few changes that a gate fails on, and the same code.

Source: docs/verdicts.md.

Assumed: a compiler repeats itself. Two builds of one source by one compiler are equal bit by bit, so every
difference is real; which of them matters is a rule, and the verdict says it in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeGuard

from profiler.statistics.decision import Decision
from profiler.statistics.verdict import Verdict

Fact = float | str | None  # None: not known


class FactChange(NamedTuple):
    """One fact that is not equal on both sides; None where a side does not say it."""

    name: str
    a: Fact
    b: Fact


class WatchedFact(NamedTuple):
    """A numeric fact that a gate watches."""

    label: str
    unit: str = ""
    fewer: bool = False  # whether less is worse
    step: int = 1  # the hardware gives it out in such units: a change within one costs nothing


# By the names under which facts are stored. Occupancy moves in whole blocks per SM; registers are given out
# in units of 8 a thread.
WATCHED_FACTS: Mapping[str, WatchedFact] = {
    "static__spill_bytes": WatchedFact("spills", "B"),
    "static__stack_bytes": WatchedFact("stack", "B"),
    "static__blocks_per_sm": WatchedFact("blocks per SM", fewer=True),
    "static__registers": WatchedFact("registers", step=8),
    "static__serialized_wgmma": WatchedFact("serialized wgmma"),
    "static__opcode_BAR": WatchedFact("barriers"),
    "modelled__bank_conflicts": WatchedFact("modelled bank conflicts"),
    "modelled__findings": WatchedFact("schedules with findings"),
}
OVER_BUDGET = "static__over_budget"  # a text: what is over the version's budget
BUDGET_LABEL = "the budget"  # how it is named where it is missing
WITHIN_BUDGET = "nothing"  # its text where everything is within


class FactFailure(NamedTuple):
    """One fact that fails a gate."""

    name: str  # under which the fact is stored
    words: str  # the fact and both values
    rule: str  # which rule it breaks
    effect: float | None = None  # as a share of A's; None from 0, and for what is no number


@dataclass(frozen=True)
class FactsDecision:
    """What differs between the facts of two builds, and which differences fail a gate."""

    changes: tuple[FactChange, ...]
    failures: tuple[FactFailure, ...]
    missing: tuple[str, ...]  # labels of watched facts that A has and B lacks

    @property
    def verdict(self) -> Verdict:
        """Worse where a gate fails; else missing, changed or same."""
        if self.failures:
            return Verdict.WORSE
        if self.missing:
            return Verdict.MISSING
        return Verdict.CHANGED if self.changes else Verdict.SAME


NO_FACTS = FactsDecision((), (), ())  # of sides that nobody may hold against each other


def judge_facts(a: Mapping[str, Fact], b: Mapping[str, Fact]) -> FactsDecision:
    """Compare the facts of B with A's, both by stored name. Changes come in B's order, then A's."""
    names = dict.fromkeys((*b, *a))
    changes = tuple(
        FactChange(name, a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name)
    )
    missing = tuple(
        watched.label
        for name, watched in WATCHED_FACTS.items()
        if _is_number(a.get(name)) and not _is_number(b.get(name))
    )
    if isinstance(a.get(OVER_BUDGET), str) and not isinstance(b.get(OVER_BUDGET), str):
        missing = (*missing, BUDGET_LABEL)
    failures = [
        failure
        for name, watched in WATCHED_FACTS.items()
        if (failure := _failure(name, watched, a.get(name), b.get(name)))
    ]
    over = excess_over_budget(b.get(OVER_BUDGET))
    if over and over != a.get(OVER_BUDGET):
        failures.append(FactFailure(OVER_BUDGET, f"over its budget: {over}", "over its budget"))
    return FactsDecision(changes, tuple(failures), missing)


def excess_over_budget(fact: Fact) -> str:
    """What of its budget a version exceeds, of the fact OVER_BUDGET; "" where it has none or is within."""
    return fact if isinstance(fact, str) and fact != WITHIN_BUDGET else ""


def note_same_code(latency: Decision, same: bool | None) -> Decision:
    """The decision on a latency; where the machine code is the same (None: unknown), its reason says so."""
    if not same or not latency.verdict.traits.moved:
        return latency
    words = "the machine code is the same: the environment moved, not it"
    remark = None if latency.remark is None else "; ".join(filter(None, (latency.remark, words)))
    return replace(latency, reason=f"{latency.reason}; {words}", remark=remark)


def _is_number(fact: Fact) -> TypeGuard[float]:
    return isinstance(fact, int | float)


def _failure(name: str, watched: WatchedFact, a: Fact, b: Fact) -> FactFailure | None:
    if not (_is_number(a) and _is_number(b)):
        return None
    steps_a, steps_b = -(-a // watched.step), -(-b // watched.step)
    if (steps_b >= steps_a) if watched.fewer else (steps_b <= steps_a):
        return None
    unit = f" {watched.unit}" if watched.unit else ""
    rule = f"exact; fails a gate: {'fewer' if watched.fewer else 'more'} {watched.label}"
    return FactFailure(name, f"{watched.label}: {a:g} → {b:g}{unit}", rule, (b - a) / abs(a) if a else None)
