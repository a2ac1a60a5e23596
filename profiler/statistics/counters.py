"""Counters: those that repeat exactly are compared exactly, others by how far they vary in A/A pairs.

Source: docs/verdicts.md. Instructions and launch geometry repeat exactly for one build on the same
data; hit rates, DRAM bytes and stalls do not, and how far they vary differs from GPU to GPU: it is learned
from pairs of runs of one build (A/A), never typed in.

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
MIN_NOISE = 0.001  # as a share: no counter is taken to vary less
NOISE_MADS = 5.0  # median absolute A/A changes beyond which a change is no noise
MIN_COUNTER_PAIRS = 5  # A/A pairs from which a counter's noise is learned


def counter_noise(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """How far a counter moves by itself, as a share, from A/A pairs [pairs].

    None for fewer than MIN_COUNTER_PAIRS. Pairs in which a side is 0 or not finite are left out.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    usable = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    if usable.sum() < MIN_COUNTER_PAIRS:
        return None
    changes = np.abs(b[usable] / a[usable] - 1)
    return max(MIN_NOISE, NOISE_MADS * float(np.median(changes)))


def judge_counter(
    a: float, b: float, *, better: str, exact: bool, noise: float | None = None, margin: float = 0.0
) -> Decision:
    """Judge a counter of B against A's. `noise` is counter_noise's; a change up to `margin` is not relevant.

    Raises ValueError for a number that is not finite: missing is never a number.
    """
    if not (math.isfinite(a) and math.isfinite(b)):
        raise ValueError(f"{a} and {b}: a counter is finite, or it is missing")
    difference = b - a
    if not difference:
        return Decision(Verdict.SAME, "equal", COUNTER, effect=0.0)
    effect = difference / abs(a) if a else None  # from 0 every change is beyond any share
    change = f"from 0 to {b:g}" if effect is None else change_text(effect)
    limit = margin if exact else max(margin, noise or 0.0)
    beyond = effect is None or abs(effect) > limit
    if not exact and noise is None and beyond:
        reason = f"{change}, and no A/A pairs say how far this counter moves by itself"
        return Decision(Verdict.UNCLEAR, reason, COUNTER, effect=effect)
    verdict = verdict_of_change(difference, better) if beyond else Verdict.SAME
    limit_text = f"{'over' if beyond else 'within'} {share_text(limit)}" if limit else "exact"
    if not exact and noise is not None and noise >= margin:
        limit_text += ", its wobble in A/A pairs"
    return Decision(
        verdict,
        f"{change}, {limit_text}",
        COUNTER,
        effect=effect,
        interval=None if exact or effect is None else Interval(effect - limit, effect + limit),
        detectable=limit,
        fails_gate=verdict.traits.fails,
    )
