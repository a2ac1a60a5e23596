"""In which order a split is told: from the old time through the causes and the residue to the new time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from profiler.explain.time_identity import WAITING, WORK, Split, Term

RESIDUE = "residue"
OTHER = f"{WAITING}: other reasons"
_SMALL = 0.005  # of the largest step: a stall under it stands among the other reasons


@dataclass(frozen=True)
class Step:
    """One row between the old time and the new: what it is called and what it adds."""

    label: str
    us: float


def steps(start_us: float, split: Split) -> tuple[Step, ...]:
    """Work, stalls that add (largest first), stalls that take away, the other stalls, the rest, the residue.

    The old time and the steps add up to the new time. Where this order would take the running sum under zero,
    what adds comes first.
    """
    stalls = [term for term in split.terms if term.cause.startswith(WAITING)]
    small = _SMALL * max((abs(term.us) for term in split.terms), default=0.0)
    large = sorted((term for term in stalls if term.us and abs(term.us) >= small), key=lambda term: -term.us)
    others = math.fsum(term.us for term in stalls if term not in large)
    work = [term for term in split.terms if term.cause == WORK]
    adding = [term for term in large if term.us > 0]
    removing = [term for term in reversed(large) if term.us < 0]
    told = [_step(term) for term in (*work, *adding, *removing)]
    if others:
        told.append(Step(OTHER, others))
    told += [_step(term) for term in split.terms if term not in (*stalls, *work)]
    told.append(Step(RESIDUE, split.residue_us))
    if min(accumulate((step.us for step in told), initial=start_us)) < 0:
        told.sort(key=lambda step: step.us < 0)
    return tuple(told)


def largest_step(told: Sequence[Step]) -> float:
    """The size of the largest step, by which the digits of all are chosen."""
    return max(abs(step.us) for step in told)


def _step(term: Term) -> Step:
    return Step(term.cause.replace(":", ": "), term.us)
