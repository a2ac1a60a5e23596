"""Stored baselines: two runs of different days, judged by how far equal builds lie apart on that GPU.

Source: docs/verdicts.md, measured by bench/verdicts.py. Samples within a run say nothing of the
spread between runs, so a p-value from them means nothing; pairs of runs of one build (A/A) show that spread.
The largest pair of the floor is a bound too: with 3.5 MAD-sd alone, a GPU that throttles now and then, whose
A/A ratios have heavy tails, calls 2.5 % of equal pairs different instead of 1 %; elsewhere it costs nothing.

Assumed: the floor's pairs were collected as the two runs were, each in a run of its own, on that GPU, clock
mode and workload class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.statistics.decision import (
    Decision,
    Interval,
    change_text,
    share_text,
    verdict_of_change,
)
from profiler.statistics.ratios import MARGIN, SHORT_NS
from profiler.statistics.verdict import Verdict

STORED_BASELINE = "stored baseline"
MIN_FLOOR_PAIRS = 20  # fewer A/A pairs judge nothing
FLOOR_SDS = 3.5  # standard deviations of the A/A log-ratios beyond which something changed
MAD_TO_SD = 1.4826  # the sd of a normal distribution, in median absolute deviations
POWER_SD = 0.8416  # sd beyond the limit at which four changes in five are found


@dataclass(frozen=True)
class NoiseFloor:
    """How far runs of equal builds lie apart, as log-ratios."""

    pairs: int
    sd: float  # from the median absolute deviation about 0, where A/A ratios have their centre
    largest: float  # of all pairs

    @property
    def limit(self) -> float:
        """The log-ratio beyond which something changed, whatever the margin."""
        return max(FLOOR_SDS * self.sd, self.largest)

    def detectable(self, margin: float = MARGIN) -> float:
        """The smallest change, as a share, that would be found four times in five."""
        return float(np.expm1(max(self.limit, np.log1p(margin)) + POWER_SD * self.sd))


def floor_of_ratios(ratios: NDArray[np.float64]) -> NoiseFloor:
    """The floor of A/A log-ratios [pairs]. By one of fewer than MIN_FLOOR_PAIRS nothing is judged."""
    sizes = np.abs(np.asarray(ratios, np.float64))
    if sizes.ndim != 1 or not np.isfinite(sizes).all():
        raise ValueError("A/A log-ratios are a row of finite numbers")
    if not len(sizes):
        return NoiseFloor(0, 0.0, 0.0)
    return NoiseFloor(len(sizes), MAD_TO_SD * float(np.median(sizes)), float(sizes.max()))


def floor_of_sessions(pairs: Iterable[tuple[Any, Any]]) -> NoiseFloor:
    """The floor of A/A pairs, each the samples in ns of two sessions of one build.

    The sessions must be as far apart as the runs that the floor will judge: processes of their own, best with
    hours between them. Two that alternate in one process are several times closer together and make no floor:
    by one of those, half of all equal pairs would be called different on a server GPU (bench/verdicts.py,
    "alternating").
    """
    return floor_of_ratios(np.array([float(np.log(typical_ns(b) / typical_ns(a))) for a, b in pairs]))


def typical_ns(ns: Any) -> NDArray[np.float64]:
    """The latency of runs [..., samples] in ns: the median, or the mean of calls under SHORT_NS."""
    samples = np.asarray(ns, np.float64)
    if samples.shape[-1] == 0 or not (np.isfinite(samples) & (samples > 0)).all():
        raise ValueError("a run's latencies are positive, finite numbers of ns, at least one")
    median = np.median(samples, axis=-1)
    typical: NDArray[np.float64] = np.where(median < SHORT_NS, samples.mean(axis=-1), median)
    return typical


def judge_stored_baseline(
    a_ns: Any, b_ns: Any, floor: NoiseFloor | None, *, better: str = "lower", margin: float = MARGIN
) -> Decision:
    """Judge run B against run A by the floor of such runs; unclear without one.

    Raises ValueError for samples that are no positive, finite numbers of ns.
    """
    ratio = float(np.log(typical_ns(b_ns) / typical_ns(a_ns)))
    effect = float(np.expm1(ratio))
    if floor is None or floor.pairs < MIN_FLOOR_PAIRS:
        lack = f"a floor of {floor.pairs} A/A pairs is none: {MIN_FLOOR_PAIRS} are needed" if floor else ""
        reason = (
            f"{change_text(effect)} between two runs, and {lack or 'no noise floor'}: "
            "nobody knows how far equal builds lie apart here"
        )
        pairs = floor.pairs if floor else 0
        return Decision(Verdict.UNCLEAR, reason, STORED_BASELINE, effect=effect, rounds=pairs)
    limit = max(floor.limit, float(np.log1p(margin)))
    beyond = abs(ratio) > limit
    verdict = verdict_of_change(ratio, better) if beyond else Verdict.SAME
    floor_text = f"the noise floor of ±{share_text(float(np.expm1(limit)))} ({floor.pairs} A/A pairs)"
    return Decision(
        verdict,
        f"{change_text(effect)}, {'beyond' if beyond else 'within'} {floor_text}",
        STORED_BASELINE,
        effect=effect,
        interval=Interval(float(np.expm1(ratio - limit)), float(np.expm1(ratio + limit))),
        detectable=floor.detectable(margin),
        rounds=floor.pairs,
        fails_gate=verdict.traits.fails,
    )
