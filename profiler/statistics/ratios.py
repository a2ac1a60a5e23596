"""What the log-ratios of rounds say: the rules of a live pair on arrays, for one pair or thousands at once.

Source: `statistics.md`, rules 1 and 7, measured by bench/verdicts.py.

Assumed: rounds enough for the mean of their log-ratios to be normal, and rounds that do not follow one
another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MARGIN = 0.005  # a smaller change is none
SHORT_NS = 100_000.0  # below, a tick of the timer (about 1 µs) is 1 %: medians stick to ticks, means do not
MIN_ROUNDS = 5  # rounds that are judged at all
MAX_ROUNDS = 1000  # rounds that anybody would collect
POWER = 0.8

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """What rounds say, over the last axis of log-ratios [..., rounds]."""

    mean: Floats
    median: Floats
    error: Floats  # standard error of the mean
    rounds: int

    def half(self, confidence: float) -> Floats:
        """Half the width of the t interval."""
        half: Floats = t_quantile(0.5 + confidence / 2, self.rounds - 1) * self.error
        return half


def t_quantile(probability: float, degrees: Any) -> Any:
    """Student's t quantile."""
    from scipy.special import stdtrit

    return stdtrit(degrees, probability)


def log_ratios(a_ns: Floats, b_ns: Floats) -> Floats:
    """log(B / A) of each round, from [..., rounds, samples]: means where a call is short, else medians."""
    short = (np.median(a_ns, axis=(-2, -1)) < SHORT_NS)[..., None]
    found = []
    for ns in (a_ns, b_ns):
        found.append(np.log(np.where(short, ns.mean(axis=-1), np.median(ns, axis=-1))))
    return found[1] - found[0]


def estimate(ratios: Floats) -> Estimate:
    """Mean, median and standard error of log-ratios [..., rounds]."""
    rounds = ratios.shape[-1]
    error = ratios.std(axis=-1, ddof=1) / np.sqrt(rounds)
    return Estimate(ratios.mean(axis=-1), np.median(ratios, axis=-1), error, rounds)


def is_changed(found: Estimate, margin: float = MARGIN) -> NDArray[np.bool_]:
    """CI99 excludes 0, and mean and median round are beyond the margin: no few rounds make a change alone."""
    least = np.minimum(np.abs(found.mean), np.abs(found.median))
    agree = np.sign(found.mean) == np.sign(found.median)
    answer: NDArray[np.bool_] = (np.abs(found.mean) > found.half(0.99)) & agree & (least >= np.log1p(margin))
    return answer


def is_same(found: Estimate, margin: float = MARGIN) -> NDArray[np.bool_]:
    """CI95 lies within the margin, and nothing is changed."""
    within = np.abs(found.mean) + found.half(0.95) <= np.log1p(margin)
    answer: NDArray[np.bool_] = within & ~is_changed(found, margin)
    return answer


def is_worse_beyond_margin(
    found: Estimate, better: str = "lower", margin: float = MARGIN
) -> NDArray[np.bool_]:
    """What a gate fails on: changed, and CI95 wholly beyond the margin, for the worse."""
    worse = -found.mean if better == "higher" else found.mean
    beyond: NDArray[np.bool_] = worse - found.half(0.95) > np.log1p(margin)
    return beyond & is_changed(found, margin)


def p_values(found: Estimate) -> Floats:
    """Two-sided p of the t test that the mean log-ratio is 0; 0 or 1 where the rounds do not vary."""
    from scipy.special import stdtr

    t = np.divide(
        np.abs(found.mean), found.error, out=np.full_like(found.mean, np.inf), where=found.error > 0
    )
    t = np.where(found.mean == 0, 0.0, t)
    p: Floats = 2 * stdtr(found.rounds - 1, -t)
    return p


def rounds_needed(found: Estimate, margin: float = MARGIN) -> int | None:
    """Rounds in all that settle what is unclear, four times in five if the effect is what it seems to be.

    None where more than MOST would be needed: the effect is about the margin itself.
    """
    spread = float(found.error) * np.sqrt(found.rounds)
    size, limit = abs(float(found.mean)), float(np.log1p(margin))
    counts = np.arange(max(MIN_ROUNDS, found.rounds + 1), MAX_ROUNDS + 1)
    error = spread / np.sqrt(counts)
    chance = t_quantile(POWER, counts - 1) * error
    changed = (t_quantile(0.995, counts - 1) * error + chance <= size) & (size - chance >= limit)
    same = t_quantile(0.975, counts - 1) * error + chance <= limit - size
    settled = np.flatnonzero(changed | same)
    return int(-(-counts[settled[0]] // 5) * 5) if len(settled) else None
