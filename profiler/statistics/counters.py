"""Counters: those that repeat exactly are compared exactly, others by how far they vary in A/A pairs.

Source: docs/calibration.md, measured by bench/verdicts.py. Instructions and launch geometry repeat exactly
for one build on the same data; hit rates, DRAM bytes and stalls do not, and how far they vary differs from
GPU to GPU: it is learned from pairs of launches of one build (A/A), never typed in. How rare a change is
among them is counted (see exceedance), so that every change has a p-value, and all of a comparison are
judged together.

Assumed: the A/A pairs are of the same kernel, workload, GPU and clock control.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.statistics.decision import (
    Decision,
    Interval,
    change_text,
    share_text,
    verdict_of_change,
)
from profiler.statistics.exceedance import COUNTED_PAIRS, SHAPE_PAIRS, likely_tail, limits, p_values
from profiler.statistics.verdict import Verdict

COUNTER = "counter"
MIN_NOISE = 0.001  # as a share: no counter is taken to vary less
MIN_COUNTER_PAIRS = 20  # fewer A/A pairs excuse a change, and call none better or worse
CHANGED_P = 0.01  # the chance below which a change is no noise
_LARGEST = 1e9  # log-ratio: from or to 0
# As a share: what a computation in doubles loses by rounding, so that 1280 and 1280.0000000000002 are equal.
# Counts of up to 500 million million that differ by one are further apart.
ROUNDING = 8 * np.finfo(np.float64).eps

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Wobble:
    """How far a counter moves by itself: the log-ratios of A/A pairs, ascending."""

    sizes: tuple[float, ...]
    # Added to both counts of a ratio, where pairs have a zero on one side: a typical other side of these.
    offset: float = 0.0

    @property
    def pairs(self) -> int:
        """How many A/A pairs it was learned from."""
        return len(self.sizes)

    @property
    def judges(self) -> bool:
        """Whether there are enough pairs to call a change better or worse."""
        return self.pairs >= MIN_COUNTER_PAIRS

    def p(self, a: float, b: float) -> float:
        """The chance that two launches of one build differ as much."""
        size = log_ratios(np.array([a]), np.array([b]), self.offset)
        return float(p_of_sizes(size, self._seen)[0])

    @property
    def repeats(self) -> bool:
        """Whether the two launches of every pair are equal."""
        return self.sizes[-1] == 0.0

    def excuses(self, a: float, b: float) -> bool:
        """Whether two launches of one build were seen to differ about as much."""
        return self.p(a, b) > CHANGED_P and not self.repeats

    def is_beyond_all(self, a: float, b: float) -> bool:
        """Whether the change would be no noise if the tail were as the shape of the pairs hints."""
        size = log_ratios(np.array([a]), np.array([b]), self.offset)[0]
        return bool(size > limits(self._seen, CHANGED_P, tail=likely_tail(self._seen)))

    def share(self, a: float) -> float:
        """The share of `a` beyond which a change is no noise; infinite where `a` is 0."""
        share = float(np.expm1(limits(self._seen, CHANGED_P)))
        return max(MIN_NOISE, share * (abs(a) + self.offset) / abs(a)) if a else math.inf

    @property
    def largest(self) -> float:
        """The largest change of a pair, as a share of a count that is far from 0."""
        return float(np.expm1(self.sizes[-1]))

    @property
    def _seen(self) -> Floats:
        return np.array(self.sizes)


def log_ratios(a: Floats, b: Floats, offset: float | Floats = 0.0) -> Floats:
    """The sizes of log(b / a) with `offset` added to both: 0 where they are equal but for rounding, inf from
    or to 0.

    From one side of 0 to the other it is the way to 0 and the way on from there.
    """
    is_across = np.sign(a) * np.sign(b) < 0
    a, b = np.abs(a) + offset, np.abs(b) + offset
    with np.errstate(divide="ignore", invalid="ignore"):
        is_equal = np.isclose(a, b, rtol=ROUNDING, atol=0.0)
        sizes: Floats = np.where(is_equal, 0.0, np.abs(np.log(b / a)))
        across: Floats = np.log(a / offset) + np.log(b / offset)
    return np.where(is_across, across, sizes)


def are_equal(a: float, b: float) -> bool:
    """Whether two numbers are equal but for the rounding of a computation."""
    return math.isclose(a, b, rel_tol=ROUNDING)


def p_of_sizes(sizes: Floats, seen: Floats) -> Floats:
    """The chance that equal launches lie as far apart as each of `sizes` [..., n], by pairs [..., pairs]."""
    sizes, seen = np.minimum(sizes, _LARGEST), np.minimum(seen, _LARGEST)
    p = p_values(sizes, seen)
    # Where no pair has a zero on one side, or all are equal, the next may be the first that is not: how far
    # it is off says nothing.
    all_equal = seen.max(axis=-1, initial=0.0)[..., None] == 0
    is_first = (sizes == _LARGEST) | (all_equal & (sizes > 0))
    chances: Floats = np.where(is_first, np.maximum(p, 1 / (seen.shape[-1] + 1)), p)
    return chances


def zero_offset(a: Floats, b: Floats) -> Floats:
    """What to add to the counts of A/A pairs [..., pairs], so that a zero on one side has a size: [...].

    The mean of the sides beside a zero, and of those of pairs with a zero between; 0 where there are none.
    """
    one_zero = (a == 0) != (b == 0)
    is_across = np.sign(a) * np.sign(b) < 0
    count = one_zero.sum(axis=-1) + 2 * is_across.sum(axis=-1)
    other = np.where(one_zero | is_across, np.abs(a) + np.abs(b), 0.0).sum(axis=-1)
    offset: Floats = other / np.maximum(count, 1)
    return offset


def counter_noise(a: Floats, b: Floats) -> Wobble | None:
    """How far a counter moves by itself, from A/A pairs [pairs]; None without a pair of finite numbers."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if not len(a):
        return None
    offset = float(zero_offset(a, b))
    return Wobble(tuple(np.sort(log_ratios(a, b, offset)).tolist()), offset)


def judge_counter(
    a: float, b: float, *, better: str, exact: bool, noise: Wobble | None = None, margin: float = 0.0
) -> Decision:
    """Judge a counter of B against A's. `noise` is counter_noise's; a change up to `margin` is not relevant.

    Raises ValueError for a number that is not finite: missing is never a number.
    """
    if not (math.isfinite(a) and math.isfinite(b)):
        raise ValueError(f"{a} and {b}: a counter is finite, or it is missing")
    difference = b - a
    if are_equal(a, b):
        return Decision(Verdict.SAME, "equal", COUNTER, effect=0.0)
    effect = difference / abs(a) if a else None  # from 0 every change is beyond any share
    change = f"from 0 to {b:g}" if effect is None else change_text(effect)
    relevant = abs(effect) > margin if effect is not None else not math.isinf(margin)
    if not exact and relevant:
        return _judge_wobbling(a, b, change, effect, better, noise, margin)
    verdict = verdict_of_change(difference, better) if relevant else Verdict.SAME
    limit_text = f"{'over' if relevant else 'within'} {share_text(margin)}" if margin else "exact"
    return Decision(
        verdict,
        f"{change}, {limit_text}",
        COUNTER,
        effect=effect,
        detectable=margin if noise is None or not a else max(margin, noise.share(a)),
        p=None if exact or noise is None else noise.p(a, b),
        fails_gate=verdict.traits.fails,
    )


def _judge_wobbling(
    a: float, b: float, change: str, effect: float | None, better: str, noise: Wobble | None, margin: float
) -> Decision:
    """Judge a relevant change of a counter that does not repeat exactly."""
    if noise is None:
        reason = f"{change}, and no A/A pairs say how far this counter moves by itself"
        return Decision(Verdict.UNCLEAR, reason, COUNTER, effect=effect)
    p, share = noise.p(a, b), noise.share(a)
    # How far a counter moves that few pairs have only seen to repeat, nothing says.
    is_unknown = noise.repeats and noise.pairs < COUNTED_PAIRS
    if share < 1:
        wobble = f"{share_text(max(share, margin))}, its noise in A/A pairs"
    else:  # near 0 a share says little
        wobble = f"its noise in {noise.pairs} A/A pairs"
    if p <= CHANGED_P and noise.judges and (effect is None or abs(effect) > MIN_NOISE):
        verdict = verdict_of_change(b - a, better)
        over = f"where all {noise.pairs} A/A pairs are equal" if noise.repeats else f"over {wobble}"
        reason = f"{change}, {over}"
    elif noise.repeats:
        verdict = Verdict.UNCLEAR
        reason = f"{change}, and it repeated exactly in {noise.pairs} A/A pairs"
        if is_unknown:
            reason += f": {COUNTED_PAIRS + 1} would tell whether it always does"
    elif p <= CHANGED_P or noise.is_beyond_all(a, b):
        wanted = (MIN_COUNTER_PAIRS, SHAPE_PAIRS, COUNTED_PAIRS + 1)
        needed = next(pairs for pairs in wanted if noise.pairs < pairs or pairs == wanted[-1])
        verdict = Verdict.UNCLEAR
        reason = f"{change}, beyond all {noise.pairs} A/A pairs, and {needed} would tell noise from a change"
    else:
        verdict, reason = Verdict.SAME, f"{change}, within {wobble}"
    return Decision(
        verdict,
        reason,
        COUNTER,
        effect=effect,
        interval=None if effect is None or is_unknown else Interval(effect - share, effect + share),
        detectable=max(share, margin) if math.isfinite(share) and not is_unknown else None,
        rounds=noise.pairs,
        p=p,
        fails_gate=verdict.traits.fails,
    )
