"""Launches of the very same machine code: more of it is other data, and a time that moved alone is noise."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiler.compare.match_launches import PairedBy
from profiler.compare.pair_comparison import PairComparison
from profiler.compare.same_code import SAME, CodeChange
from profiler.compare.workload_change import (
    WorkloadChange,
    WorkRatio,
    build_change,
    instructions_ratio,
    traffic_ratio,
)
from profiler.errors import UnreadableReport
from profiler.evidence.launch import Launch
from profiler.evidence.side import Side
from profiler.reports.read import launch_detail
from profiler.statistics.verdict import Verdict

_DYNAMIC = "launch__shared_mem_per_block_dynamic"
_EQUAL_WORK, _FAR = 1.01, 1.5
_MOVED = 1.25  # times the instructions; data alone shift them a little
_MOST_READ = 4  # pairs of a comparison whose code is read, the longest first: each takes a process a side
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def doubt_equal_code(pairs: Sequence[PairComparison], a: Side, b: Side) -> list[PairComparison]:
    """The pairs, those unclear that executed a quarter more or fewer instructions of equal machine code.

    Or as many, in one launch a side: a time that moved then is not the code's, and single launches of one
    program were seen 27 % apart where clocks are free. Only of report files, which hold the code, and of
    pairs that all else leaves better or worse.
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
    is_other_work = bool(work and work.moved(_MOVED))
    return (is_other_work or _is_time_alone(pair, work)) and build_change(pair.a, pair.b) is None


def _is_time_alone(pair: PairComparison, work: WorkRatio | None) -> bool:
    """Whether the duration of one launch a side moved, less than by half, and nothing of its work did."""
    change, traffic = pair.headline, traffic_ratio(pair.a, pair.b)
    if change is None or not change.unreplicated or work is None or not work.stayed(_EQUAL_WORK):
        return False
    if not change.a.number or not change.b.number:
        return False
    if WorkRatio("time", change.b.number / change.a.number).moved(_FAR):
        return False
    shared = [launch.values.number(_DYNAMIC) for launch in (pair.a, pair.b)]
    return shared[0] == shared[1] and (traffic is None or traffic.stayed())


def _doubted(pair: PairComparison, instructions: int) -> PairComparison:
    work = instructions_ratio(pair.a, pair.b)
    if _is_time_alone(pair, work):
        words = f"the same {instructions} instructions of machine code did the same work"
        return pair.undecided(f"{words}: one launch a side does not decide")
    reason = f"{work.words if work else ''} by the same machine code: perhaps other arguments or data"
    code = CodeChange(SAME, f"{instructions} instructions are equal")
    return pair.doubted(WorkloadChange(Verdict.UNCLEAR, reason, "", code, whatever_the_code=True))
