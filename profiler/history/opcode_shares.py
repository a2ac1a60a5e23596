"""Which classes of instructions one kernel executed, run after run, as shares of all that were counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from profiler.evidence.opcodes import class_shares
from profiler.history.stall_shares import MixPoint

if TYPE_CHECKING:
    from profiler.history.trend import TrendPoint

_NOT_COLLECTED = "not collected"


def opcode_mix(
    points: Sequence[TrendPoint], opcodes: Mapping[int, Mapping[str, float]], version: str | None = None
) -> list[MixPoint]:
    """The mix at each point, of one version or of all; `opcodes` has the counts by opcode of each result.

    A run without counts is a gap, and so is one with wrong results.
    """
    mixes = []
    for point in points:
        if version not in (None, point.version):
            continue
        counts = {} if point.result_id is None else opcodes.get(point.result_id, {})
        shares = {} if point.wrong else class_shares(counts)
        mixes.append(MixPoint(point, shares, "" if shares else point.gap or _NOT_COLLECTED))
    return mixes
