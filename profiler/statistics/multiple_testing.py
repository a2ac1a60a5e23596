"""Many verdicts at once: how many false ones a long table may hold, and which of its rows stand.

Source: docs/calibration.md; Benjamini and Hochberg 1995. Of the rows that are called changed, at most a
share q is false on average. The headline is a family of its own: it is a question asked for itself, and the
rows beside it must not cost it power.

Assumed: rows that are independent, or move together rather than against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from profiler.statistics.decision import Decision, share_text
from profiler.statistics.verdict import Verdict

FALSE_DISCOVERY_RATE = 0.05
MIN_ROW_CHANGE = 0.01  # a smaller change in a long table counts as none


def discoveries(p: NDArray[np.float64], q: float = FALSE_DISCOVERY_RATE) -> NDArray[np.bool_]:
    """Which of the tests [..., rows] stand, by the step-up procedure. NaN is no test and never stands."""
    p = np.asarray(p, np.float64)
    tests = np.isfinite(p).sum(axis=-1, keepdims=True)
    order = np.sort(np.where(np.isfinite(p), p, np.inf), axis=-1)
    ranks = np.arange(1, p.shape[-1] + 1)
    passed = order <= q * ranks / np.maximum(tests, 1)
    limit = np.where(passed, order, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    stands: NDArray[np.bool_] = p <= limit
    return stands


def which_stand(
    effects: NDArray[np.float64],
    p: NDArray[np.float64],
    *,
    q: float = FALSE_DISCOVERY_RATE,
    least: float = MIN_ROW_CHANGE,
) -> NDArray[np.bool_]:
    """Which rows [..., rows] changed: beyond chance over the whole table, and by at least `least`."""
    return discoveries(p, q) & (np.abs(np.asarray(effects)) >= least)


def judge_together(decisions: Sequence[Decision], headline: Sequence[bool] = ()) -> tuple[Decision, ...]:
    """The decisions of one comparison, judged together; those of the `headline` as if they stood alone.

    Rows without a p-value are exact or have a floor of their own, and stay as they are.
    """
    is_headline = [*headline, *(False for _ in decisions[len(headline) :])]
    rows = [
        index
        for index, decision in enumerate(decisions)
        if not is_headline[index] and decision.p is not None and decision.effect is not None
    ]
    if len(rows) < 2:
        return tuple(decisions)
    judged = list(decisions)
    standing = discoveries(np.array([decisions[index].p for index in rows], np.float64))
    for index, stands in zip(rows, standing, strict=True):
        judged[index] = _judge_row(decisions[index], len(rows), bool(stands))
    return tuple(judged)


def _judge_row(row: Decision, count: int, stands: bool) -> Decision:
    """A decision that is one of `count` rows; `stands` where chance does not explain it."""
    if not row.verdict.traits.moved and row.verdict is not Verdict.CHANGED:
        return row
    if abs(row.effect or 0.0) < MIN_ROW_CHANGE:
        reason = f"{row.reason}; under {share_text(MIN_ROW_CHANGE)}, too small to count among {count} rows"
        return replace(row, verdict=Verdict.SAME, reason=reason, remark=None, fails_gate=False)
    if not stands:
        reason = f"{row.reason}; not significant after correcting for {count} comparisons"
        return replace(row, verdict=Verdict.UNCLEAR, reason=reason, remark=None, fails_gate=False)
    return row
