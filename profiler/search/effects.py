"""What insights brought: how many children are better than their parent, with one shown and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from profiler.search.archive import Archive
from profiler.search.record import SearchRecord
from profiler.statistics.shares import ShareDifference, newcombe_difference
from profiler.statistics.verdict import Verdict

ENOUGH = 10  # of each arm: with fewer nothing is said
_LEVEL = 0.95
ALL_INSIGHTS = "any insight"


@dataclass(frozen=True)
class InsightEffect:
    """What one kind of insight brought, where there was one of it to show."""

    kind: str
    better_with: int
    shown: int
    better_without: int
    withheld: int

    @property
    def difference(self) -> ShareDifference | None:
        """With it less without, as shares; None while too few know."""
        if min(self.shown, self.withheld) < ENOUGH:
            return None
        return newcombe_difference(self.better_with, self.shown, self.better_without, self.withheld, _LEVEL)

    @property
    def verdict(self) -> Verdict | None:
        """Better or worse where the interval leaves zero, else unclear; None with too few."""
        difference = self.difference
        if difference is None:
            return None
        if difference.low > 0:
            return Verdict.BETTER
        return Verdict.WORSE if difference.high < 0 else Verdict.UNCLEAR

    @property
    def word(self) -> str:
        """The verdict, or `unknown` with too few."""
        return str(self.verdict or "unknown")

    def to_dict(self) -> dict[str, Any]:
        """The effect by name; shares in points of 1."""
        difference = self.difference
        return {
            "kind": self.kind,
            "better_with": self.better_with,
            "shown": self.shown,
            "better_without": self.better_without,
            "withheld": self.withheld,
            "difference": None if difference is None else difference.difference,
            "low": None if difference is None else difference.low,
            "high": None if difference is None else difference.high,
            "word": self.word,
            "needs": max(0, ENOUGH - min(self.shown, self.withheld)),
        }


def is_better_than_parent(archive: Archive, record: SearchRecord) -> bool:
    """Whether a child is right, and better than its parent beyond what is not known."""
    parent = archive.by_number.get(record.parent) if record.parent is not None else None
    if parent is None or not record.is_valid:
        return False
    verdict = record.verdicts.get(parent.content_id)
    return verdict is not None and verdict.verdict is Verdict.BETTER


def insight_effects(archive: Archive) -> tuple[InsightEffect, ...]:
    """The effect of every kind that was there to be shown, and of any at all; most counted first.

    Every child of either arm counts, also one that came to nothing: a share of those that worked would favour
    an arm that fails more often.
    """
    counts: dict[str, list[int]] = {}
    for record in archive.records:
        if record.parent is None or not record.arm:
            continue
        better = int(is_better_than_parent(archive, record))
        rows = [(kind, kind in record.shown) for kind in record.offered]
        if record.offered:
            rows.append((ALL_INSIGHTS, bool(record.shown)))
        for kind, shown in rows:
            row = counts.setdefault(kind, [0, 0, 0, 0])
            row[0 if shown else 2] += better
            row[1 if shown else 3] += 1
    effects = [InsightEffect(kind, *row) for kind, row in counts.items()]
    return tuple(sorted(effects, key=lambda effect: (-(effect.shown + effect.withheld), effect.kind)))
