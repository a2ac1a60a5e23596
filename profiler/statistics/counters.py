"""Counters: those that repeat exactly are compared exactly, others by how far they wobble in A/A pairs.

Source: `statistics.md`, rule 4. Instructions and launch geometry repeat exactly for one build on the same
data; hit rates, DRAM bytes and stalls do not, and by how much differs from GPU to GPU: it is learned, not
typed.

Assumed: the A/A pairs are of the same kernel, workload, GPU and clock control.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from profiler.statistics.decision import (
    Decision,
    Interval,
    change_text,
    share_text,
    verdict_of_change,
)
from profiler.statistics.verdict import Verdict

COUNTER = "counter"
MIN_NOISE = 0.001  # a wobble is never taken to be less
NOISE_MADS = 5.0  # MAD of the A/A changes
MIN_COUNTER_PAIRS = 5  # A/A pairs that a wobble is learned from


def counter_noise(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """How far a counter moves by itself, as a share, from A/A pairs [pairs]; None for fewer than FEWEST.

    Pairs in which a side is 0 or not finite say nothing and are left out.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    known = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    if known.sum() < MIN_COUNTER_PAIRS:
        return None
    changes = np.abs(b[known] / a[known] - 1)
    return max(MIN_NOISE, NOISE_MADS * float(np.median(changes)))


def judge_counter(
    a: float, b: float, *, better: str, exact: bool, noise: float | None = None, margin: float = 0.0
) -> Decision:
    """Judge a counter of B against A's. `noise` is learned from A/A pairs; `margin` is what is relevant.

    Raises ValueError for a number that is not finite: missing is never a number.
    """
    if not (math.isfinite(a) and math.isfinite(b)):
        raise ValueError(f"{a} and {b}: a counter is finite, or it is missing")
    difference = b - a
    effect = difference / abs(a) if a else (0.0 if not difference else None)
    if not difference:
        return Decision(Verdict.SAME, "equal", COUNTER, effect=effect)
    told = change_text(effect) if effect is not None else f"from 0 to {b:g}"
    limit = margin if exact else max(margin, noise or 0.0)
    beyond = effect is None or abs(effect) > limit
    if not exact and noise is None and beyond:
        reason = f"{told}, and no A/A pairs say how far this counter moves by itself"
        return Decision(Verdict.UNCLEAR, reason, COUNTER, effect=effect)
    word = verdict_of_change(difference, better) if beyond else Verdict.SAME
    side = "over" if beyond else "within"
    why = f"{side} {share_text(limit)}" if limit else "exact"
    if not exact and noise is not None and noise >= margin:
        why += ", its wobble in A/A pairs"
    return Decision(
        word,
        f"{told}, {why}",
        COUNTER,
        effect=effect,
        interval=None if exact or effect is None else Interval(effect - limit, effect + limit),
        detectable=limit,
        fails_gate=word is Verdict.WORSE,
    )
