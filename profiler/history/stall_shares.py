"""What warps of one kernel waited for, run after run, as shares of all stall reasons that were collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profiler.history.trend import Trend, TrendPoint

STALLS = "stall_"  # how the concepts of stall reasons begin
OTHER = "other"
NAMED = 5  # reasons with a name; the smaller ones are one


@dataclass(frozen=True)
class MixPoint:
    """One run: the share of each reason in per cent, which add up to 100, or why there are none."""

    point: TrendPoint
    shares: Mapping[str, float]
    gap: str = ""


def stall_mix(
    by_reason: Mapping[str, Sequence[Trend]], part: str, version: str | None = None
) -> list[MixPoint]:
    """The mix of one kernel part, of one version or of all, in the order of the points.

    `by_reason` has the series of each stall reason. The largest reasons of all points keep their names. A run
    in which a reason is missing that others have is a gap: its shares would be of less than they say.
    """
    own = {
        reason: {(point.run_id, point.version): point for point in trend.points}
        for reason, trends in by_reason.items()
        for trend in trends
        if trend.part == part
    }
    moments: dict[tuple[str, str], TrendPoint] = {}
    for points in own.values():
        for key, point in points.items():
            if version in (None, point.version):
                moments.setdefault(key, point)
    present = {
        reason
        for reason, points in own.items()
        if any(points[key].on_line for key in moments if key in points)
    }
    totals = dict.fromkeys(present, 0.0)
    shares_by_moment: dict[tuple[str, str], dict[str, float] | str] = {}
    for key, first in moments.items():
        shares_by_moment[key] = shares = _shares(key, first, own, present)
        for reason, share in shares.items() if isinstance(shares, dict) else ():
            totals[reason] += share
    named = sorted(totals, key=lambda reason: -totals[reason])[:NAMED]
    return [
        MixPoint(moments[key], {}, shares)
        if isinstance(shares, str)
        else MixPoint(moments[key], _grouped(shares, named))
        for key, shares in shares_by_moment.items()
    ]


def _shares(
    key: tuple[str, str],
    first: TrendPoint,
    own: Mapping[str, Mapping[tuple[str, str], TrendPoint]],
    present: set[str],
) -> dict[str, float] | str:
    """The share of each reason at one moment, or why there is none."""
    if first.wrong:
        return first.gap
    numbers = {}
    for reason in present:
        point = own[reason].get(key)
        if point is None or point.value.number is None:
            return (point.gap if point else "") or first.gap or "not collected"
        numbers[reason] = float(point.value.number)
    total = sum(numbers.values())
    return {reason: 100 * number / total for reason, number in numbers.items()} if total else "no warp waited"


def _grouped(shares: Mapping[str, float], named: Sequence[str]) -> dict[str, float]:
    """The named reasons in their order, and the sum of all others."""
    grouped = {reason: shares[reason] for reason in named}
    if len(shares) > len(named):
        grouped[OTHER] = max(0.0, 100 - sum(grouped.values()))
    return grouped
