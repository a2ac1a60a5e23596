"""Launches that executed more of the very same machine code: other arguments or data, and no edit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiler.compare.match_launches import PairedBy
from profiler.compare.pair_comparison import PairComparison
from profiler.compare.same_code import SAME, CodeChange
from profiler.compare.workload_change import (
    WorkloadChange,
    build_change,
    instructions_ratio,
)
from profiler.errors import UnreadableReport
from profiler.evidence.launch import Launch
from profiler.evidence.side import Side
from profiler.reports.read import launch_detail
from profiler.statistics.verdict import Verdict

_MOVED = 1.25  # times the instructions; data alone shift them a little
_MOST_READ = 4  # pairs of a comparison whose code is read, the longest first: each takes a process a side
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def doubt_equal_code(pairs: Sequence[PairComparison], a: Side, b: Side) -> list[PairComparison]:
    """The pairs, those unclear that executed a quarter more or fewer instructions of equal machine code.

    Only of report files, which hold the code, and of pairs that all else leaves better or worse.
    """
    left = _MOST_READ
    judged = []
    for pair in pairs:
        if left and _is_asked(pair, a, b):
            left -= 1
            code_a, code_b = (machine_code(side, launch) for side, launch in ((a, pair.a), (b, pair.b)))
            if code_a and code_a == code_b:
                pair = _doubted(pair, len(code_a))
        judged.append(pair)
    return judged


def machine_code(side: Side, launch: Launch) -> tuple[str, ...]:
    """The instructions of a launch of a report file, jumps relative to its start; empty where not held."""
    if side.report_path is None:
        return ()
    try:
        detail = launch_detail(side.report_path, launch.ordinal)
    except UnreadableReport:
        return ()
    if not detail.sass or None in detail.sass:
        return ()
    first, last = int(detail.pcs[0]), int(detail.pcs[-1])

    def relative(found: re.Match[str]) -> str:
        address = int(found[0], 16)
        return f"+{address - first:x}" if first <= address <= last else found[0]

    return tuple(_ADDRESS.sub(relative, text or "") for text in detail.sass)


def _is_asked(pair: PairComparison, a: Side, b: Side) -> bool:
    if a.report_path is None or b.report_path is None or pair.samples or pair.workload_change:
        return False
    if pair.paired_by is PairedBy.DECLARED or not pair.verdict.traits.moved:
        return False
    if (pair.a.grid, pair.a.block) != (pair.b.grid, pair.b.block):  # another block is tuning
        return False
    work = instructions_ratio(pair.a, pair.b)
    return bool(work and work.moved(_MOVED)) and build_change(pair.a, pair.b) is None


def _doubted(pair: PairComparison, instructions: int) -> PairComparison:
    work = instructions_ratio(pair.a, pair.b)
    reason = f"{work.words if work else ''} by the same machine code: perhaps other arguments or data"
    code = CodeChange(SAME, f"{instructions} instructions are equal")
    return pair.doubted(WorkloadChange(Verdict.UNCLEAR, reason, "", code, whatever_the_code=True))
