"""The rules of a live pair on arrays of log-ratios: for one pair, or for thousands at once.

Source: docs/verdicts.md, measured by bench/verdicts.py.

Assumed: what is judged, rounds or processes, is independent. Whether rounds follow one another is looked at,
and widens the interval; what the timer cannot tell is added to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.statistics.decision import UNITS_FACTOR

MARGIN = 0.005  # a smaller change counts as none
# Below it a tick of the timer (about 1 µs) is over 1 %: medians stick to ticks, means do not.
SHORT_NS = 100_000.0
MIN_ROUNDS = 5  # fewer are not judged
MIN_PROCESSES = 3  # nor are fewer of these: two say next to nothing of how far processes differ
MAX_ROUNDS = 1000  # nobody would collect more
POWER = 0.8  # the chance with which a detectable change is found
SETTLED = 0.85  # the chance that the rounds asked for settle it: near the margin it holds less often
TRIMMED = 0.2  # share of the rounds left out at each end by the trimmed mean
# The trimmed mean is taken where its error is this much smaller: only heavy tails make it so.
CLEARLY_NARROWER = 0.6
TRIMMED_ROUNDS = 8  # of fewer the error of a trimmed mean is too often too small
# Lag-1 autocorrelation of 25 rounds beyond which they follow one another and their interval is widened. Fresh
# processes in an order drawn at random have no cause to: for them more of it has to be seen.
MAX_AUTOCORRELATION, MAX_OF_PROCESSES = 0.3, 0.4
CORRELATION_ROUNDS = 10  # with fewer, lag 1 is not looked at: it would be chance
TICK_NS = 1024.0  # of event timers, where the samples do not show a finer one
COARSE_TICK = 0.03  # of the latency: readings on two ticks of such a timer are not averaged
OUTLIER = 1.5  # times the side's median: a sample of a short call that far off is left out

MEDIAN_ERROR = 1.2533  # standard error of a normal median, in those of the mean
_NODES = 15  # effects, and spreads, that stand for all possible ones
_COUNTS = 60  # numbers of rounds that are tried

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """Statistics over the last axis of log-ratios [..., rounds or processes]."""

    mean: Floats  # trimmed where the rounds have heavy tails
    median: Floats
    error: Floats  # standard error of the mean
    units: int  # rounds or processes: what is independent of each other
    correlation: Any = 0.0  # lag-1 autocorrelation
    correlated: Any = False  # whether that is too much for chance
    widening: Any = 1.0  # of the error, by the correlation
    tick: Any = 0.0  # by how much the timer may have moved the mean

    def half(self, confidence: float) -> Floats:
        """Half the width of the t interval of the mean."""
        times = t_quantile(0.5 + confidence / 2, self.units - 1) * self.widening
        half: Floats = times * self.error + self.tick
        return half


def t_quantile(probability: float, degrees: Any) -> Any:
    """Student's t quantile."""
    from scipy.special import stdtrit

    return stdtrit(degrees, probability)


# ---------------------------------------------------------------- from samples to rounds


def log_ratios(a_ns: Floats, b_ns: Floats) -> Floats:
    """log(B / A) of each round, from [..., rounds, samples]."""
    short = np.median(a_ns, axis=(-2, -1)) < SHORT_NS
    log_a, log_b = (
        np.log(round_ns(ns, np.median(ns, axis=(-2, -1), keepdims=True), short[..., None]))
        for ns in (a_ns, b_ns)
    )
    difference: Floats = log_b - log_a
    return difference


def round_ns(ns: Floats, side_ns: Any, short: Any) -> Floats:
    """The latency of rounds [...] from [..., samples]: medians, or means of `short` calls.

    A mean leaves out samples that lie a factor of OUTLIER from `side_ns`, the median of the side: of 100
    samples one that took ten times as long would hide a change of 5 %. A round of nothing else keeps them.
    """
    off = np.maximum(ns, side_ns) > OUTLIER * np.minimum(ns, side_ns)
    far = off & (np.abs(ns - side_ns) > 2 * TICK_NS)
    kept = ~far | far.all(axis=-1, keepdims=True)
    trimmed = np.where(kept, ns, 0.0).sum(axis=-1) / kept.sum(axis=-1)
    latency: Floats = np.where(short, trimmed, np.median(ns, axis=-1))
    return latency


def tick_of(ns: Floats) -> Floats:
    """The timer's tick in ns [...] by the smallest step between samples [..., samples], at most TICK_NS."""
    steps = np.diff(np.sort(ns, axis=-1), axis=-1)
    # Equal readings that were divided by a batch differ by the last bit.
    steps = np.where(steps > 1e-6 * ns.max(axis=-1, keepdims=True), steps, np.inf)
    tick: Floats = np.minimum(steps.min(axis=-1, initial=np.inf), TICK_NS)
    return tick


def tick_error(a_ns: Floats, b_ns: Floats) -> Floats:
    """By how much the timer may have moved a log-ratio, from the samples of a side [..., samples].

    Readings that lie on many ticks, or meet a fine tick at random, are right on average. Where both sides
    read the same again and again, or a side has only two neighbouring readings of a coarse tick, more of them
    tell nothing new: each side may be half a tick off, so two differ by up to one.
    """
    level = np.median(a_ns, axis=-1)
    tick = np.maximum(tick_of(a_ns), tick_of(b_ns))
    stuck, coarse = np.ones(level.shape, np.bool_), np.zeros(level.shape, np.bool_)
    for ns in (a_ns, b_ns):
        low, high = np.quantile(ns, (0.05, 0.95), axis=-1)
        stuck &= high - low < 0.5 * tick
        coarse |= high - low < 1.5 * tick
    error: Floats = np.where(stuck | (coarse & (tick > COARSE_TICK * level)), np.log1p(tick / level), 0.0)
    return error


# ---------------------------------------------------------------- from rounds to processes


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


# ---------------------------------------------------------------- the estimate


def estimate(ratios: Floats, tick: Any = 0.0, *, fresh: bool = False) -> Estimate:
    """Mean, median and standard error of log-ratios [..., rounds or processes].

    `tick` is tick_error's. `fresh`: each log-ratio is known to be from a process of its own.
    """
    units = ratios.shape[-1]
    mean, error = ratios.mean(axis=-1), ratios.std(axis=-1, ddof=1) / np.sqrt(units)
    robust, robust_error = _trimmed(ratios)
    narrower = robust_error < CLEARLY_NARROWER * error
    correlation = autocorrelation(ratios)
    correlated = is_correlated(correlation, units, MAX_OF_PROCESSES if fresh else MAX_AUTOCORRELATION)
    return Estimate(
        np.where(narrower, robust, mean),
        np.median(ratios, axis=-1),
        np.where(narrower, robust_error, error),
        units,
        correlation,
        correlated,
        np.where(correlated, _widening(correlation, units), 1.0),
        tick,
    )


def autocorrelation(ratios: Floats) -> Floats:
    """Lag-1 autocorrelation of log-ratios [..., rounds]; 0 where they do not vary."""
    deviations = ratios - ratios.mean(axis=-1, keepdims=True)
    total = (deviations * deviations).sum(axis=-1)
    products = (deviations[..., 1:] * deviations[..., :-1]).sum(axis=-1)
    lag_1: Floats = np.divide(products, total, out=np.zeros_like(total), where=total > 0)
    return lag_1


def is_correlated(correlation: Any, units: int, limit: float = MAX_AUTOCORRELATION) -> Any:
    """Whether rounds follow one another: lag 1 is over `limit`, or over less of it where rounds are many.

    Of 25 independent rounds 4 % are over 0.3 and 1 % over 0.4; lag 1 of n rounds errs by about 1 / sqrt(n).
    """
    return (correlation > limit * min(1.0, 5.0 / np.sqrt(units))) & (units >= CORRELATION_ROUNDS)


def _widening(correlation: Floats, units: int) -> Floats:
    """By what the error of a mean of rounds that follow one another is larger than of independent ones.

    That of an AR(1) series; the estimate of lag 1 is corrected for its bias. Sources: Bartlett 1946; Kendall
    1954.
    """
    unbiased = np.clip(correlation + (1 + 3 * correlation) / units, 0.0, 0.9)
    widening: Floats = np.sqrt((1 + unbiased) / (1 - unbiased))
    return widening


def _trimmed(ratios: Floats) -> tuple[Floats, Floats]:
    """The trimmed mean, and an error that gives its 99 % interval with the t quantile of all rounds.

    Source: Yuen 1974, the winsorised variance with as many degrees of freedom as rounds are left.
    """
    units = ratios.shape[-1]
    cut = int(TRIMMED * units)
    kept = units - 2 * cut
    if units < TRIMMED_ROUNDS:
        return ratios.mean(axis=-1), np.full(ratios.shape[:-1], np.inf)
    ordered = np.sort(ratios, axis=-1)
    inner = ordered[..., cut : units - cut]
    sums = inner.sum(axis=-1) + cut * (inner[..., 0] + inner[..., -1])
    squares = (inner**2).sum(axis=-1) + cut * (inner[..., 0] ** 2 + inner[..., -1] ** 2)
    variance = np.maximum(squares - sums**2 / units, 0.0) / (units - 1)  # of the winsorised rounds
    error = np.sqrt(variance * (units - 1) / (kept * (kept - 1)))
    return inner.mean(axis=-1), error * (t_quantile(0.995, kept - 1) / t_quantile(0.995, units - 1))


# ---------------------------------------------------------------- the rules


def is_changed(estimated: Estimate, margin: float = MARGIN) -> NDArray[np.bool_]:
    """The 99 % interval excludes 0, and mean and median are beyond the margin.

    The median is asked too, so that no few rounds make a change alone.
    """
    mean, median = estimated.mean, estimated.median
    beyond = np.minimum(np.abs(mean), np.abs(median)) >= np.log1p(margin)
    changed: NDArray[np.bool_] = (
        (np.abs(mean) > estimated.half(0.99)) & (np.sign(mean) == np.sign(median)) & beyond
    )
    return changed & ~asks_for_units(estimated)


def is_same(estimated: Estimate, margin: float = MARGIN) -> NDArray[np.bool_]:
    """The 95 % interval lies within the margin, and nothing is changed."""
    within = np.abs(estimated.mean) + estimated.half(0.95) <= np.log1p(margin)
    same: NDArray[np.bool_] = within & ~is_changed(estimated, margin)
    return same


def asks_for_units(estimated: Estimate) -> NDArray[np.bool_]:
    """A change beyond UNITS_FACTOR: whether both are in one unit comes before any verdict."""
    asks: NDArray[np.bool_] = np.abs(estimated.mean) > np.log(UNITS_FACTOR)
    return asks


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

    # What the timer alone may have done is no evidence.
    size = np.maximum(np.abs(estimated.mean) - estimated.tick, 0.0)
    error = estimated.error * estimated.widening
    t = np.divide(size, error, out=np.full_like(size, np.inf), where=error > 0)
    t = np.where(size == 0, 0.0, t)
    p: Floats = 2 * stdtr(estimated.units - 1, -t)
    return p


def rounds_needed(estimated: Estimate, margin: float = MARGIN, rounds_each: float = 1.0) -> int | None:
    """Rounds in all that, collected again, would settle what is unclear: four times in five or more.

    The chance is SETTLED if the effect is as estimated, if there is none, and on average over all effects
    that the rounds so far leave possible, each as likely as they make it; so too the spread. An effect at the
    margin is settled by no number. `rounds_each`: of a process, where the estimate is of processes. None
    where more than MAX_ROUNDS would be needed.
    """
    from scipy.special import chdtri, ndtr, ndtri

    degrees = estimated.units - 1
    chances = (np.arange(_NODES) + 0.5) / _NODES
    spread = float(estimated.error * estimated.widening) * np.sqrt(estimated.units)
    spreads = (spread * np.sqrt(degrees / chdtri(degrees, chances)))[:, None, None]
    most = max(int(MAX_ROUNDS / rounds_each), estimated.units + 1)
    fewest = max(MIN_PROCESSES, estimated.units + 1)
    counts = np.unique(np.geomspace(fewest, most, _COUNTS).astype(np.int64))
    errors = spreads / np.sqrt(counts)  # [spreads, 1, counts]
    limit, tick = float(np.log1p(margin)), float(estimated.tick)
    wide, narrow = (t_quantile(level, counts - 1) * errors + tick for level in (0.995, 0.975))

    def settled(effects: Floats) -> Floats:
        """The chance of a verdict at each number of rounds, for effects [spreads or 1, effects, 1]."""
        inside = limit - narrow
        same = np.where(inside > 0, ndtr((inside - effects) / errors) - ndtr((-inside - effects) / errors), 0)
        # The median has to be beyond the margin too, and varies more than the mean.
        up, down = (
            np.minimum(ndtr((effect - wide) / errors), ndtr((effect - limit) / (MEDIAN_ERROR * errors)))
            for effect in (effects, -effects)
        )
        average: Floats = (same + up + down).mean(axis=(0, 1))
        return average

    as_estimated = np.full((1, 1, 1), abs(float(estimated.mean)))
    possible = as_estimated + spreads / np.sqrt(estimated.units) * ndtri(chances)[None, :, None]
    chance = np.min([settled(effects) for effects in (as_estimated, 0 * as_estimated, possible)], axis=0)
    enough = np.flatnonzero(chance >= SETTLED)
    return int(-(-counts[enough[0]] * rounds_each // 5) * 5) if len(enough) else None
