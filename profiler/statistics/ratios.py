"""The rules of a live pair on arrays of log-ratios: for one pair, or for thousands at once.

Source: docs/calibration.md, measured by bench/verdicts.py.

Assumed: processes are independent. Rounds whose process is unknown need not be: their interval is as wide as
the largest lag 1 that they may have makes it, and above MAX_AUTOCORRELATION they decide nothing. What the
timer cannot tell is added to the interval.
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
MANY_ROUNDS = 20
NARROWER_OF_FEW = 0.45  # of fewer than MANY_ROUNDS, whose error is vaguer
TRIMMED_ROUNDS = 8  # of fewer the error of a trimmed mean is too often too small
MAX_AUTOCORRELATION = 0.3  # at lag 1: rounds of unknown processes beyond it decide nothing
# Of 25 fresh processes: beyond it their interval is that of a lag 1 of MAX_LAG, and no gate fails by them. In
# an order drawn at random they have no cause to follow one another, so more of it has to be seen.
MAX_OF_PROCESSES = 0.4
# Processes that follow one another show a smaller lag 1 too: beyond MAX_AUTOCORRELATION a gate fails by the
# interval of a lag 1 of GATE_LAG only.
GATE_LAG = 0.6
NO_VARIANCE = 1e-20  # of log-ratios: less is how floating-point numbers are rounded
CORRELATION_ROUNDS = 10  # with fewer, lag 1 is not looked at: it would be chance
# Of n rounds lag 1 may be this / n more than estimated: 1.4 standard errors of 25, and more where fewer make
# the estimate vaguer still. What shows no more than MAX_AUTOCORRELATION is hardly more than MAX_UNSEEN.
UNSEEN_LAG, MAX_UNSEEN, MAX_LAG = 7.0, 0.5, 0.9
TICK_NS = 1024.0  # of event timers, where the samples do not show a finer one
COARSE_TICK = 0.03  # of the latency: readings on two ticks of such a timer are not averaged
OUTLIER = 1.5  # times the side's median: a sample of a short call that far off is left out
MAX_FAR = 0.05  # of a side's samples: more that far off are no outliers, but how the calls are
FAR_OUT = 5.0  # robust sd from the median: processes beyond it lie far out
AGREES = 0.5  # of the trimmed mean: a mean that is less contradicts it
ONE_SIDED = 3.0  # more than this many times as many far out on one side as on the other are no tail to trim
# Where log-ratios of processes vary by more than NOISY, the margin takes no false change away, and what the
# interval neglects shows (a trimmed mean that chance alone chose): there it is this much wider.
NOISY, NOISY_WIDENING = 0.05, 1.06
MAD_TO_SD = 1.4826  # the sd of a normal distribution, in median absolute deviations
UNKNOWN_OFFSET = 0.03  # what unknown processes may have of their own: a gate fails by their rounds beyond it

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
    inflation: Any = 1.0  # of the error, by lag 1 as estimated
    widening: Any = 1.0  # of the error in an interval, by the lag 1 that has to be reckoned with
    gate_widening: Any = 1.0  # the same for the interval by which a gate fails, where that is more
    degrees: Any = None  # of freedom of the error; None: one less than units
    undecided: Any = False  # correlated, and of unknown processes: no verdict follows
    tick: Any = 0.0  # by how much the timer may have moved the mean
    trimmed: Any = False  # whether mean and error are those of the trimmed mean

    @property
    def freedom(self) -> Any:
        """Degrees of freedom of Student's t."""
        return self.units - 1 if self.degrees is None else self.degrees

    def half(self, confidence: float) -> Floats:
        """Half the width of the t interval of the mean."""
        return self._half(confidence, self.widening)

    @property
    def gate_half(self) -> Floats:
        """Half the width of the 95 % interval that lies beyond the margin where a gate fails."""
        return self._half(0.95, np.maximum(self.widening, self.gate_widening))

    def _half(self, confidence: float, widening: Any) -> Floats:
        times = t_quantile(0.5 + confidence / 2, self.freedom) * widening
        half: Floats = times * self.error + self.tick
        return half

    @property
    def times_as_wide(self) -> Any:
        """The width of the 99 % interval, in that of as many independent rounds; without the tick."""
        return self.widening * t_quantile(0.995, self.freedom) / t_quantile(0.995, self.units - 1)

    @property
    def as_independent(self) -> Estimate:
        """The estimate if nothing were known or feared of rounds that follow one another."""
        return self._replace(inflation=1.0, widening=1.0, degrees=None, undecided=False)


def t_quantile(probability: float, degrees: Any) -> Any:
    """Student's t quantile."""
    from scipy.special import stdtrit

    return stdtrit(degrees, probability)


# ---------------------------------------------------------------- from samples to rounds


def log_ratios(a_ns: Floats, b_ns: Floats) -> Floats:
    """log(B / A) of each round, from [..., rounds, samples]."""
    flat_a, flat_b = (ns.reshape(*ns.shape[:-2], -1) for ns in (a_ns, b_ns))
    short = is_short(flat_a, flat_b)[..., None]
    far_a, far_b = left_out(flat_a, flat_b)
    of_a = level_ns(a_ns, far_a.reshape(a_ns.shape), short)
    of_b = level_ns(b_ns, far_b.reshape(b_ns.shape), short)
    difference: Floats = np.log(of_b) - np.log(of_a)
    return difference


def pair_ns(a_ns: Floats, b_ns: Floats) -> tuple[Floats, Floats]:
    """The latencies of two sides [...] in ns, from their samples [..., samples]: medians, or means if short.

    One statistic for both, so that sides about SHORT_NS, or about MAX_FAR, are not told apart by it.
    """
    short = is_short(a_ns, b_ns)
    far_a, far_b = left_out(a_ns, b_ns)
    return level_ns(a_ns, far_a, short), level_ns(b_ns, far_b, short)


def is_short(a_ns: Floats, b_ns: Floats) -> NDArray[np.bool_]:
    """Whether the shorter of two sides [..., samples] is under SHORT_NS."""
    short: NDArray[np.bool_] = np.minimum(np.median(a_ns, axis=-1), np.median(b_ns, axis=-1)) < SHORT_NS
    return short


def left_out(a_ns: Floats, b_ns: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The samples [..., samples] of each side that a mean leaves out: a factor of OUTLIER from its median.

    Of 100 samples one that took ten times as long would hide a change of 5 %. Where a side has more than
    MAX_FAR of them none is left out on either: calls of two lengths would each lose another one.
    """
    far = [_is_far(ns) for ns in (a_ns, b_ns)]
    few = np.maximum(far[0].mean(axis=-1), far[1].mean(axis=-1)) <= MAX_FAR
    return far[0] & few[..., None], far[1] & few[..., None]


def _is_far(ns: Floats) -> NDArray[np.bool_]:
    median = np.median(ns, axis=-1, keepdims=True)
    off = np.maximum(ns, median) > OUTLIER * np.minimum(ns, median)
    is_far: NDArray[np.bool_] = off & (np.abs(ns - median) > 2 * TICK_NS)
    return is_far


def level_ns(ns: Floats, far: NDArray[np.bool_], short: Any) -> Floats:
    """The median of samples [..., samples], or the mean of those that are not `far` where calls are `short`.

    Samples that are all far are kept.
    """
    kept = ~far | far.all(axis=-1, keepdims=True)
    mean = np.where(kept, ns, 0.0).sum(axis=-1) / kept.sum(axis=-1)
    level: Floats = np.where(short, mean, np.median(ns, axis=-1))
    return level


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
    # What lies far out on one side only may be B's own: left out only where mean and rest are one change.
    in_direction, size = mean * np.sign(robust), np.abs(robust)
    agree = (np.minimum(in_direction, size) >= np.log1p(MARGIN)) & (in_direction >= AGREES * size)
    narrower = robust_error < (CLEARLY_NARROWER if units >= MANY_ROUNDS else NARROWER_OF_FEW) * error
    narrower &= ~is_one_sided(*far_out(ratios)) | agree
    correlation = autocorrelation(ratios)
    estimated = Estimate(
        np.where(narrower, robust, mean),
        np.median(ratios, axis=-1),
        np.where(narrower, robust_error, error),
        units,
        correlation,
        tick=tick,
        trimmed=narrower,
    )
    lag_1 = _unbiased(correlation, units)
    if fresh:
        correlated = are_correlated_processes(correlation, units)
        noisy = np.where(_is_noisy(estimated), NOISY_WIDENING, 1.0)
        may_follow = are_correlated_processes(correlation, units, MAX_AUTOCORRELATION)
        return estimated._replace(
            correlated=correlated,
            inflation=np.where(correlated, _inflation(lag_1), 1.0),
            widening=np.where(correlated, _inflation(MAX_LAG), noisy),
            gate_widening=np.where(may_follow, _inflation(GATE_LAG), 1.0),
        )
    correlated = (correlation > MAX_AUTOCORRELATION) & (units >= CORRELATION_ROUNDS)
    widening, degrees = _unseen(lag_1, correlated, units)
    return estimated._replace(
        correlated=correlated,
        undecided=correlated,
        inflation=_inflation(lag_1),
        widening=widening,
        degrees=degrees,
    )


def far_out(ratios: Floats) -> tuple[Any, Any]:
    """How many log-ratios [..., rounds or processes] lie far below their median, and how many far above."""
    deviations = ratios - np.median(ratios, axis=-1, keepdims=True)
    scale = MAD_TO_SD * np.median(np.abs(deviations), axis=-1, keepdims=True)
    far = np.maximum(FAR_OUT * scale, np.log1p(MARGIN))
    return (deviations < -far).sum(axis=-1), (deviations > far).sum(axis=-1)


def is_one_sided(below: Any, above: Any) -> Any:
    """Whether of those far out too many lie on one side for a tail that both sides have."""
    most, fewest = np.maximum(below, above), np.minimum(below, above)
    return (most >= 2) & (most > ONE_SIDED * fewest)


def autocorrelation(ratios: Floats) -> Floats:
    """Lag-1 autocorrelation of log-ratios [..., rounds]; 0 where they do not vary."""
    deviations = ratios - ratios.mean(axis=-1, keepdims=True)
    total = (deviations * deviations).sum(axis=-1)
    products = (deviations[..., 1:] * deviations[..., :-1]).sum(axis=-1)
    varies = total > NO_VARIANCE * ratios.shape[-1]
    lag_1: Floats = np.divide(products, total, out=np.zeros_like(total), where=varies)
    return lag_1


def _is_noisy(estimated: Estimate) -> Any:
    return estimated.error * np.sqrt(estimated.units) > NOISY


def are_correlated_processes(correlation: Any, units: int, most: float = MAX_OF_PROCESSES) -> Any:
    """Whether processes follow one another: lag 1 is over `most`, or less where they are many.

    Of 25 independent values 4 % are over 0.3 and 1 % over 0.4; lag 1 of n errs by about 1 / sqrt(n).
    """
    limit = most * min(1.0, 5.0 / np.sqrt(units))
    return (correlation > limit) & (units >= CORRELATION_ROUNDS)


def largest_lag(estimated: Estimate) -> Any:
    """The largest lag 1 that rounds of unknown processes have to be reckoned with."""
    return _largest_lag(
        _unbiased(estimated.correlation, estimated.units), estimated.correlated, estimated.units
    )


def _unbiased(correlation: Floats, units: int) -> Floats:
    """Lag 1 corrected for the bias of its estimate. Source: Kendall 1954."""
    unbiased: Floats = correlation + (1 + 3 * correlation) / units
    return unbiased


def _largest_lag(lag_1: Any, correlated: Any, units: Any) -> Any:
    return np.clip(lag_1 + UNSEEN_LAG / units, 0.0, np.where(correlated, MAX_LAG, MAX_UNSEEN))


def _inflation(lag_1: Any) -> Any:
    """By what the error of the mean of an AR(1) series is larger than of independent rounds.

    A negative lag 1 makes it no smaller. Source: Bartlett 1946.
    """
    believed = np.clip(lag_1, 0.0, MAX_LAG)
    return np.sqrt((1 + believed) / (1 - believed))


def _unseen(lag_1: Any, correlated: Any, units: Any) -> tuple[Any, Any]:
    """What rounds whose lag 1 was estimated and may be more make of an interval: its widening, and degrees.

    Their scatter is too small too, as a series that follows itself keeps close to its own mean; and it tells
    less of itself, as of fewer rounds.
    """
    largest = _largest_lag(lag_1, correlated, units)
    variance = np.minimum((1 + largest) / (1 - largest), units / 2)  # of the mean, by that of a round / units
    widening = np.sqrt(variance * (units - 1) / (units - variance))
    degrees = np.maximum(units * (1 - largest**2) / (1 + largest**2) - 1, 2.0)
    return widening, degrees


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
    decided: NDArray[np.bool_] = ~asks_for_units(estimated) & ~np.asarray(estimated.undecided)
    return changed & decided


def is_same(estimated: Estimate, margin: float = MARGIN) -> NDArray[np.bool_]:
    """The 95 % interval lies within the margin, and nothing is changed."""
    within = np.abs(estimated.mean) + estimated.half(0.95) <= np.log1p(margin)
    same: NDArray[np.bool_] = within & ~is_changed(estimated, margin) & ~np.asarray(estimated.undecided)
    return same


def asks_for_units(estimated: Estimate) -> NDArray[np.bool_]:
    """A change beyond UNITS_FACTOR: whether both are in one unit comes before any verdict."""
    asks: NDArray[np.bool_] = np.abs(estimated.mean) > np.log(UNITS_FACTOR)
    return asks


def is_worse_beyond_margin(
    estimated: Estimate, better: str = "lower", margin: float = MARGIN, offset: float = 0.0
) -> NDArray[np.bool_]:
    """Changed for the worse, with the 95 % interval wholly beyond the margin: on this a gate fails.

    None fails on what follows itself, and the interval is wider where processes may. `offset`: the share up
    to which the rounds' own processes may have made the change, 0 where they are known.
    """
    worse = -estimated.mean if better == "higher" else estimated.mean
    beyond: NDArray[np.bool_] = worse - estimated.gate_half > np.log1p(margin)
    beyond &= (worse > np.log1p(offset)) & ~np.asarray(estimated.correlated)
    return beyond & is_changed(estimated, margin)


def p_values(estimated: Estimate) -> Floats:
    """Two-sided p of the t test that the mean log-ratio is 0; 0 or 1 where the rounds do not vary."""
    from scipy.special import stdtr

    # What the timer alone may have done is no evidence.
    size = np.maximum(np.abs(estimated.mean) - estimated.tick, 0.0)
    error = estimated.error * estimated.widening
    t = np.divide(size, error, out=np.full_like(size, np.inf), where=error > 0)
    t = np.where(size == 0, 0.0, t)
    p: Floats = 2 * stdtr(estimated.freedom, -t)
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
    spread = float(estimated.error * estimated.inflation) * np.sqrt(estimated.units)
    spreads = (spread * np.sqrt(degrees / chdtri(degrees, chances)))[:, None, None]
    most = max(int(MAX_ROUNDS / rounds_each), estimated.units + 1)
    fewest = max(MIN_PROCESSES, estimated.units + 1)
    counts = np.unique(np.geomspace(fewest, most, _COUNTS).astype(np.int64))
    errors = spreads / np.sqrt(counts)  # [spreads, 1, counts]
    limit, tick = float(np.log1p(margin)), float(estimated.tick)
    widening, freedom = _of_more_rounds(estimated, counts)
    wide, narrow = (t_quantile(level, freedom) * widening * errors + tick for level in (0.995, 0.975))

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


def _of_more_rounds(estimated: Estimate, counts: NDArray[np.int64]) -> tuple[Any, Any]:
    """What widens the interval of `counts` rounds beyond their likely error, and its degrees of freedom.

    The more rounds, the closer the largest lag 1 lies to the estimated one.
    """
    if estimated.degrees is None:
        return NOISY_WIDENING if bool(_is_noisy(estimated)) else 1.0, counts - 1
    lag_1 = np.maximum(_unbiased(estimated.correlation, estimated.units), 0.0)
    widening, degrees = _unseen(lag_1, estimated.correlated, counts)
    return widening / float(estimated.inflation), degrees
