"""The line or instruction that a lever is about, from what a report counts for each instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.advice.insights import Insights
from profiler.advice.statement import Statement, format_share
from profiler.errors import ProfilerError
from profiler.evidence import formatting
from profiler.evidence.opcodes import operation
from profiler.evidence.values import Value
from profiler.reports.instances import LaunchDetail


class AccessNames(NamedTuple):
    """ncu's names of what it counts for each access, and what an access is in words."""

    taken: str
    ideal: str
    unit: str


GLOBAL = AccessNames(
    "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal", "sectors"
)
SHARED = AccessNames("memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal", "wavefronts")
# By the id of a statement: what its worst place is found by.
COUNTS_OF = {
    "sectors": GLOBAL,
    "sectors:limit": GLOBAL,
    "l1:scattered": GLOBAL,
    "shared:excess": SHARED,
    "shared:limit": SHARED,
    "l1:scattered_shared": SHARED,
    "waiting:short_scoreboard": SHARED,
    "waiting:mio_throttle": SHARED,
}
_EXECUTED = "inst_executed"
_KINDS = {
    "LDG": "load",
    "LD": "load",
    "STG": "store",
    "ST": "store",
    "LDS": "shared load",
    "LDSM": "ldmatrix",
    "STS": "shared store",
    "RED": "atomic",
    "ATOM": "atomic",
    "ATOMG": "atomic",
    "LDGSTS": "cp.async",
}


def with_places(insights: Insights, open_detail: Callable[[], LaunchDetail | None]) -> Insights:
    """The insights with the worst line or instruction in the levers that are about accesses.

    `open_detail` gives what the report holds of each instruction of the launch; it is called only where a
    lever can be told with its place. Where it gives None, or raises a ProfilerError since the report was
    dropped or is not here, the levers stand without.
    """
    if not any(statement.lever and statement.id in COUNTS_OF for statement in insights.statements):
        return insights
    try:
        detail = open_detail()
    except ProfilerError:
        return insights
    if detail is None:
        return insights
    placed = tuple(_placed(statement, detail) for statement in insights.statements)
    return replace(insights, statements=placed)


def _placed(statement: Statement, detail: LaunchDetail) -> Statement:
    counts = COUNTS_OF.get(statement.id)
    words = worst_access(detail, counts) if counts and statement.lever else ""
    return replace(statement, lever=f"{statement.lever}; worst: {words}") if words else statement


def worst_access(detail: LaunchDetail, counts: AccessNames) -> str:
    """The place with the most sectors or wavefronts beyond the ideal, in words; "" where none is known.

    `the store of kernel.cu:18 (32 sectors a request, 4 would do; 94 % of the excess)`. An instruction stands
    for a line where the report has no line info, by its offset in the function.
    """
    if not {counts.taken, counts.ideal, _EXECUTED} <= set(detail.per_pc):
        return ""
    taken, ideal, executed = (
        np.nan_to_num(detail.per_pc[name].values) for name in (counts.taken, counts.ideal, _EXECUTED)
    )
    excess = np.maximum(taken - ideal, 0.0)
    if not excess.sum():
        return ""
    groups = _by_place(detail)
    worst = max(groups, key=lambda place: float(excess[groups[place]].sum()))
    positions = groups[worst]
    heaviest = positions[int(excess[positions].argmax())]
    # Of one line the instructions that go too far alone: others on it may be right.
    bad = positions[excess[positions] > 0]
    requests = float(executed[bad].sum())
    if not requests:
        return ""
    each, enough = (_count(float(column[bad].sum()) / requests) for column in (taken, ideal))
    share = format_share(float(excess[positions].sum() / excess.sum()))
    kind = _kind(detail.sass[heaviest])
    return f"{kind} {worst} ({each} {counts.unit} per request, {enough} would do; {share} of the excess)"


def _by_place(detail: LaunchDetail) -> dict[str, NDArray[np.int64]]:
    """The instructions of each place, as positions, in the order of the code."""
    groups: dict[str, list[int]] = {}
    for position, (function, offset) in enumerate(detail.places()):
        index, line = int(detail.file_index[position]), int(detail.line[position])
        if index >= 0 and line > 0:
            place = f"of {PurePath(detail.files[index].name).name}:{line}"
        else:
            place = f"at {f'[{function + 1}]' if function > 0 else ''}+{offset:#06x}"
        groups.setdefault(place, []).append(position)
    return {place: np.array(positions, dtype=np.int64) for place, positions in groups.items()}


def _kind(sass: str | None) -> str:
    words = (sass or "").split()
    opcode = next((word for word in words if not word.startswith("@")), "")
    return f"the {_KINDS.get(operation(opcode), 'access')}"


def _count(number: float) -> str:
    return str(formatting.quantity(Value(round(number, 1))))
