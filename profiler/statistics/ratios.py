"""The rules of a live pair on arrays of log-ratios: for one pair, or for thousands at once.

Source: docs/verdicts.md, measured by bench/verdicts.py.

Assumed: rounds enough for the mean of their log-ratios to be normal, and rounds that do not follow one
another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MARGIN = 0.005  # a smaller change counts as none
# Below it a tick of the timer (about 1 µs) is over 1 %: medians stick to ticks, means do not.
SHORT_NS = 100_000.0
MIN_ROUNDS = 5  # fewer are not judged
MIN_PROCESSES = 3  # nor are fewer of these: two say next to nothing of how far processes differ
MAX_ROUNDS = 1000  # nobody would collect more
POWER = 0.8  # the chance with which a detectable change is found

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """Statistics over the last axis of log-ratios [..., rounds or processes]."""

    mean: Floats
    median: Floats
    error: Floats  # standard error of the mean
    units: int  # rounds or processes: what is independent of each other

    def half(self, confidence: float) -> Floats:
        """Half the width of the t interval of the mean."""
        half: Floats = t_quantile(0.5 + confidence / 2, self.units - 1) * self.error
        return half


def t_quantile(probability: float, degrees: Any) -> Any:
    """Student's t quantile."""
    from scipy.special import stdtrit

    return stdtrit(degrees, probability)


def log_ratios(a_ns: Floats, b_ns: Floats) -> Floats:
    """log(B / A) of each round, from [..., rounds, samples]: means where a call is short, else medians."""
    short = (np.median(a_ns, axis=(-2, -1)) < SHORT_NS)[..., None]
    log_a, log_b = (np.log(np.where(short, ns.mean(axis=-1), np.median(ns, axis=-1))) for ns in (a_ns, b_ns))
    difference: Floats = log_b - log_a
    return difference


def process_means(ratios: Floats, processes: NDArray[np.int64]) -> Floats:
    """The mean log-ratio of each process [..., processes], from [..., rounds] and each round's process.

    Rounds of one process share its offset (where its arrays lie, which clock it met): only processes are
    independent, and an interval from their means holds however large that offset is.
    """
    numbers, places = np.unique(processes, return_inverse=True)
    belongs = (places[:, None] == np.arange(len(numbers))).astype(np.float64)  # [rounds, processes]
    means: Floats = ratios @ (belongs / belongs.sum(axis=0))
    return means


def process_sd(ratios: Floats, processes: NDArray[np.int64]) -> Floats:
    """The sd of the offsets that processes have of their own, from log-ratios [..., rounds].

    The noise of rounds is taken out where processes have several; with a round each it is in it.
    """
    means = process_means(ratios, processes)
    numbers, places, counts = np.unique(processes, return_inverse=True, return_counts=True)
    variance: Floats = means.var(axis=-1, ddof=1)
    if len(processes) > len(numbers):
        within = ((ratios - means[..., places]) ** 2).sum(axis=-1) / (len(processes) - len(numbers))
        variance = np.maximum(variance - within * (1 / counts).mean(), 0.0)
    return np.sqrt(variance)


def estimate(ratios: Floats) -> Estimate:
    """Mean, median and standard error of log-ratios [..., rounds or processes]."""
    units = ratios.shape[-1]
    error = ratios.std(axis=-1, ddof=1) / np.sqrt(units)
    return Estimate(ratios.mean(axis=-1), np.median(ratios, axis=-1), error, units)


def is_changed(estimated: Estimate, margin: float = MARGIN) -> NDArray[np.bool_]:
    """The 99 % interval excludes 0, and mean and median are beyond the margin.

    The median is asked too, so that no few rounds make a change alone.
    """
    mean, median = estimated.mean, estimated.median
    beyond = np.minimum(np.abs(mean), np.abs(median)) >= np.log1p(margin)
    changed: NDArray[np.bool_] = (
        (np.abs(mean) > estimated.half(0.99)) & (np.sign(mean) == np.sign(median)) & beyond
    )
    return changed


def is_same(estimated: Estimate, margin: float = MARGIN) -> NDArray[np.bool_]:
    """The 95 % interval lies within the margin, and nothing is changed."""
    within = np.abs(estimated.mean) + estimated.half(0.95) <= np.log1p(margin)
    same: NDArray[np.bool_] = within & ~is_changed(estimated, margin)
    return same


def is_worse_beyond_margin(
    estimated: Estimate, better: str = "lower", margin: float = MARGIN
) -> NDArray[np.bool_]:
    """Changed for the worse, with the 95 % interval wholly beyond the margin: on this a gate fails."""
    worse = -estimated.mean if better == "higher" else estimated.mean
    beyond: NDArray[np.bool_] = worse - estimated.half(0.95) > np.log1p(margin)
    return beyond & is_changed(estimated, margin)


def p_values(estimated: Estimate) -> Floats:
    """Two-sided p of the t test that the mean log-ratio is 0; 0 or 1 where the rounds do not vary."""
    from scipy.special import stdtr

    mean, error = estimated.mean, estimated.error
    t = np.divide(np.abs(mean), error, out=np.full_like(mean, np.inf), where=error > 0)
    t = np.where(mean == 0, 0.0, t)
    p: Floats = 2 * stdtr(estimated.units - 1, -t)
    return p


def rounds_needed(estimated: Estimate, margin: float = MARGIN, rounds_each: float = 1.0) -> int | None:
    """Rounds in all that would settle what is unclear, four times in five if the effect is as estimated.

    `rounds_each`: of a process, where the estimate is of processes; there would be more of these then.
    None where more than MAX_ROUNDS would be needed: the effect is about as large as the margin.
    """
    spread = float(estimated.error) * np.sqrt(estimated.units)
    size, limit = abs(float(estimated.mean)), float(np.log1p(margin))
    counts = np.arange(max(MIN_PROCESSES, estimated.units + 1), MAX_ROUNDS + 1)
    error = spread / np.sqrt(counts)
    chance = t_quantile(POWER, counts - 1) * error
    changed = (t_quantile(0.995, counts - 1) * error + chance <= size) & (size - chance >= limit)
    same = t_quantile(0.975, counts - 1) * error + chance <= limit - size
    settled = np.flatnonzero(changed | same)
    return int(-(-counts[settled[0]] * rounds_each // 5) * 5) if len(settled) else None
