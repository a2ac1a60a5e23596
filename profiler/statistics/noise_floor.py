"""Stored baselines: two runs of different days, judged by how far equal builds lie apart on that GPU.

Source: docs/calibration.md, measured by bench/verdicts.py. Samples within a run say nothing of the
spread between runs, so a p-value from them means nothing; pairs of runs of one build (A/A) show that spread.
How rare a change is among them is counted, and beyond the largest pair estimated (see exceedance): a floor
of few pairs has a wider limit, and every change has a p-value, so that many are judged together.

Assumed: the floor's pairs were collected as the two runs were, each in a run of its own, on that GPU, clock
mode and workload class, by that driver and of kernels of that family.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.statistics.decision import (
    MIN_SAMPLES,
    Decision,
    Interval,
    change_text,
    share_text,
    units_question,
    verdict_of_change,
)
from profiler.statistics.exceedance import (
    COUNTED_PAIRS,
    GROWTH_WINDOWS,
    HEAVY_TAIL,
    SHAPE_PAIRS,
    known_tail,
    likely_tail,
    limits,
    newest_alike,
    noise_growth,
    p_values,
)
from profiler.statistics.ratios import MAD_TO_SD, MARGIN, pair_ns, tick_error
from profiler.statistics.verdict import Verdict

STORED_BASELINE = "stored baseline"
MIN_FLOOR_PAIRS = 20  # fewer A/A pairs judge nothing
ADVISED_FLOOR_PAIRS = SHAPE_PAIRS  # fewer leave some changes unclear
CHANGED_P = 0.01  # the chance below which a change between two runs is no noise
POWER_SD = 0.8416  # sd beyond the limit at which four changes in five are found


@dataclass(frozen=True)
class NoiseFloor:
    """How far runs of equal builds lie apart, as log-ratios."""

    pairs: int  # that are independent of each other
    sd: float  # from the median absolute deviation about 0, where A/A ratios have their centre
    sizes: tuple[float, ...]  # absolute log-ratios of all pairs, ascending
    differs_in: str = ""  # whose it is, where those asked for have none: "family softmax"
    growth: float = 1.0  # by what factor the newest pairs may vary more than those before; 1.0: they do not
    tick: float = 0.0  # the log-ratio that the timer did not resolve in any of the pairs

    @property
    def judges(self) -> bool:
        """Whether two runs can be judged by it."""
        return self.pairs >= MIN_FLOOR_PAIRS and not self.differs_in

    @property
    def largest(self) -> float:
        """The largest of all pairs; 0 without one."""
        return self.sizes[-1] if self.sizes else 0.0

    @property
    def limit(self) -> float:
        """The log-ratio beyond which two runs are no longer taken to be equal, whatever the margin.

        One pair far out shows that the tail is heavy, but not how far it goes: the limit is that of a tail of
        HEAVY_TAIL at most. A change beyond it is called one from `changed_limit` on, and is unclear before.
        """
        tail = np.maximum(known_tail(self._seen, self.pairs), HEAVY_TAIL)
        return max(self.growth * float(limits(self._seen, CHANGED_P, self.pairs, tail)), self.tick)

    @property
    def changed_limit(self) -> float:
        """The log-ratio beyond which something changed: above `limit` where few pairs have a heavy tail."""
        return max(self.growth * self.changed_limit_without_growth, self.tick)

    @property
    def changed_limit_without_growth(self) -> float:
        """As `changed_limit`, if the newest pairs varied no more than those before them."""
        return float(limits(self._seen, CHANGED_P, self.pairs))

    @property
    def same_limit(self) -> float:
        """The log-ratio up to which nothing changed: below `limit` where pairs are few, or vary more now."""
        return float(limits(self._seen, CHANGED_P, self.pairs, likely_tail(self._seen)))

    @property
    def _seen(self) -> NDArray[np.float64]:
        return np.array(self.sizes or (0.0,))

    @property
    def process_sd(self) -> float:
        """The standard deviation of one session's own offset: two of them are in the ratio of a pair."""
        return self.sd / float(np.sqrt(2))

    def p(self, ratio: float) -> float:
        """The chance that two runs of one build lie as far apart as this log-ratio."""
        return float(p_values(np.array([ratio]) / self.growth, self._seen, self.pairs)[0])

    def detectable(self, margin: float = MARGIN) -> float:
        """The smallest change, as a share, that would be found four times in five."""
        return float(np.expm1(max(self.changed_limit, np.log1p(margin)) + POWER_SD * self.sd))


def floor_of_ratios(ratios: NDArray[np.float64], copies: float = 1.0) -> NoiseFloor:
    """The floor of A/A log-ratios [pairs], oldest first. Fewer than MIN_FLOOR_PAIRS judge nothing.

    `copies` is how many of them each independent pair of sessions gave: one a version and workload. Pairs
    from before the noise changed are left out, and those beyond the newest thousand.
    """
    sizes = np.abs(np.asarray(ratios, np.float64))
    if sizes.ndim != 1 or not np.isfinite(sizes).all():
        raise ValueError("A/A log-ratios are a row of finite numbers")
    if not len(sizes):
        return NoiseFloor(0, 0.0, ())
    sizes = sizes[-newest_alike(sizes, copies) :]
    return NoiseFloor(
        round(len(sizes) / copies),
        MAD_TO_SD * float(np.median(sizes)),
        tuple(np.sort(sizes).tolist()),
        growth=noise_growth(sizes, copies),
    )


def floor_of_sessions(pairs: Iterable[tuple[Any, Any]], copies: float = 1.0) -> NoiseFloor:
    """The floor of A/A pairs, oldest first, each the samples in ns of two sessions of one build.

    The sessions must be as far apart as the runs that the floor will judge: processes of their own, best with
    hours between them. Two that alternate in one process are several times closer together and make no floor:
    by one of those, half of all equal pairs would be called different on a server GPU (bench/verdicts.py,
    "alternating").
    """
    pairs = list(pairs)
    floor = floor_of_ratios(np.array([_log_ratio(a, b) for a, b in pairs]), copies)
    return replace(floor, tick=min((_tick(a, b) for a, b in pairs), default=0.0))


def typical_ns(ns: Any) -> NDArray[np.float64]:
    """The latency of runs [..., samples] in ns by themselves: see typical_pair_ns, which compares two."""
    return typical_pair_ns(ns, ns)[0]


def typical_pair_ns(a_ns: Any, b_ns: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The latencies of the runs A and B, of [..., samples] each, in ns, by one statistic.

    It is the median, or where the shorter one is under SHORT_NS the mean without single outliers.
    """
    sides = [np.asarray(ns, np.float64) for ns in (a_ns, b_ns)]
    for samples in sides:
        if samples.shape[-1] == 0 or not (np.isfinite(samples) & (samples > 0)).all():
            raise ValueError("a run's latencies are positive, finite numbers of ns, at least one")
    return pair_ns(*sides)


def shorter_ns(a_ns: Any, b_ns: Any) -> float:
    """The smaller of the two runs' medians, by which the statistic and the floor of a pair are chosen."""
    return float(min(np.median(a_ns), np.median(b_ns)))


def _log_ratio(a_ns: Any, b_ns: Any) -> float:
    of_a, of_b = typical_pair_ns(a_ns, b_ns)
    return float(np.log(of_b / of_a))


def _tick(a_ns: Any, b_ns: Any) -> float:
    """The log-ratio that the timer may have made between two runs that stick to its ticks, else 0.

    Too few samples show no tick.
    """
    a, b = (np.asarray(ns, np.float64) for ns in (a_ns, b_ns))
    if min(len(a), len(b)) < MIN_SAMPLES:
        return 0.0
    return float(max(tick_error(a, b), tick_error(b, a)))


def judge_stored_baseline(
    a_ns: Any,
    b_ns: Any,
    floor: NoiseFloor | None,
    *,
    better: str = "lower",
    margin: float = MARGIN,
    sides: str = "two runs",
) -> Decision:
    """Judge run B against run A by the floor of such runs; unclear without one.

    `sides` names what they are: "two versions that share no rounds" where both are of one run.
    Raises ValueError for samples that are no positive, finite numbers of ns.
    """
    ratio = _log_ratio(a_ns, b_ns)
    effect = float(np.expm1(ratio))
    if question := units_question(ratio):
        return Decision(Verdict.UNCLEAR, question, STORED_BASELINE, effect=effect, rerun_tells=False)
    if floor is not None and floor.differs_in:
        reason = (
            f"{change_text(effect)} between {sides}, and the only noise floor here is "
            f"of {floor.differs_in}: it says too little about others"
        )
        return Decision(Verdict.UNCLEAR, reason, STORED_BASELINE, effect=effect, rounds=floor.pairs)
    if floor is None or not floor.judges:
        lack = (
            f"a floor of {floor.pairs} A/A pairs is not enough: {MIN_FLOOR_PAIRS} are needed" if floor else ""
        )
        reason = (
            f"{change_text(effect)} between {sides}, and {lack or 'no noise floor'}: "
            "the noise here is unknown"
        )
        pairs = floor.pairs if floor else 0
        return Decision(Verdict.UNCLEAR, reason, STORED_BASELINE, effect=effect, rounds=pairs)
    least = float(np.log1p(margin))
    limit, changed_limit = max(floor.limit, least), max(floor.changed_limit, least)
    size, p = abs(ratio), floor.p(ratio)
    reason = f"{change_text(effect)}, {'beyond' if size > limit else 'within'} {_words(floor, limit)}"
    tick = _tick(a_ns, b_ns) * (1 + 1e-9)
    verdict = Verdict.SAME
    if size > max(changed_limit, tick):
        verdict = verdict_of_change(ratio, better)
    elif size > changed_limit:
        verdict = Verdict.UNCLEAR
        reason += f", but no more than a tick of the timer, {share_text(float(np.expm1(tick)))}"
    elif size > max(floor.same_limit, least):
        verdict = Verdict.UNCLEAR
        reason += f", {_what_would_tell(floor, ratio)}"
    return Decision(
        verdict,
        reason,
        STORED_BASELINE,
        effect=effect,
        interval=Interval(float(np.expm1(ratio - changed_limit)), float(np.expm1(ratio + changed_limit))),
        detectable=floor.detectable(margin),
        rounds=floor.pairs,
        p=p,
        fails_gate=verdict.traits.fails,
    )


def _what_would_tell(floor: NoiseFloor, ratio: float) -> str:
    """Why a change between the limits of a floor is neither noise nor a change; how many pairs tell."""
    if abs(ratio) > floor.changed_limit_without_growth:
        return (
            f"but beyond that of all pairs alike: the newest vary more, and {GROWTH_WINDOWS[0]} to "
            f"{GROWTH_WINDOWS[-1]} new pairs would tell whether they do"
        )
    is_few = floor.pairs < ADVISED_FLOOR_PAIRS
    needed = ADVISED_FLOOR_PAIRS if is_few else COUNTED_PAIRS + 1
    return f"and beyond all of its pairs: {needed} would tell noise from a change"


def _words(floor: NoiseFloor, limit: float) -> str:
    return f"the noise floor of ±{share_text(float(np.expm1(limit)))} ({floor.pairs} A/A pairs)"
