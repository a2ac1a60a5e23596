"""Launches of the very same code: more of it is other data, and a time that moved alone is noise."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiler.compare.launch_facts import build_facts
from profiler.compare.match_launches import PairedBy
from profiler.compare.pair_comparison import PairComparison
from profiler.compare.same_code import SAME, CodeChange
from profiler.compare.workload_change import (
    WorkloadChange,
    WorkRatio,
    build_change,
    instructions_ratio,
    mix_distance,
    traffic_ratio,
)
from profiler.errors import UnreadableReport
from profiler.evidence.launch import Launch
from profiler.evidence.side import Side
from profiler.reports.read import launch_detail
from profiler.statistics.verdict import Verdict

_DYNAMIC = "launch__shared_mem_per_block_dynamic"
_REGISTERS = "launch__registers_per_thread"
_EQUAL_WORK = 1.01
# How far a time alone may move: single launches of one program were seen 28 % apart. Equal code allows more.
_FAR, _FAR_BY_COUNTS = 1.5, 1.3
# Counts that equal code repeats on equal data, and how far they were seen to wobble.
_COUNTED = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "sass__inst_executed_global_loads",
    "sass__inst_executed_global_stores",
    "smsp__inst_executed_op_branch.sum",
)
_WOBBLE, _SAME_COUNT, _SAME_MIX = 1.01, 1.001, 0.002
_MOVED = 1.25  # times the instructions; data alone shift them a little
_MOST_READ = 4  # pairs of a comparison whose code is read, the longest first: each takes a process a side
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def doubt_equal_code(pairs: Sequence[PairComparison], a: Side, b: Side) -> list[PairComparison]:
    """The pairs, those unclear that executed a quarter more or fewer instructions of equal machine code.

    Or as many, in one launch per side: a time that moved then is not the code's, and single launches of one
    program were seen 27 % apart where clocks are free. Of report files, which hold the code, and of pairs
    that all else leaves better or worse, or unclear for a time too short to tell. Where no code is held, what
    was counted has to show a change of it.
    """
    left = _MOST_READ
    judged = []
    for pair in pairs:
        if not _is_asked(pair):
            judged.append(pair)
            continue
        code_a: tuple[str, ...] = ()
        code_b: tuple[str, ...] = ()
        if left and a.report_path is not None and b.report_path is not None:
            left -= 1
            code_a, code_b = (machine_code(side, launch) for side, launch in ((a, pair.a), (b, pair.b)))
        if code_a and code_a == code_b:
            pair = _doubted(pair, len(code_a))
        elif not (code_a and code_b) and _is_near(pair, _FAR_BY_COUNTS) and _shows_no_change(pair.a, pair.b):
            words = "registers, instructions and accesses are those of A"
            pair = pair.undecided(f"{words}: one launch per side does not decide")
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


def _is_asked(pair: PairComparison) -> bool:
    if pair.is_sampled or pair.workload_change or pair.paired_by is PairedBy.DECLARED:
        return False
    moved = pair.verdict.traits.moved
    # A launch too short for its time to tell is unclear, and its counts are judged all the same.
    if not moved and pair.verdict is not Verdict.UNCLEAR:
        return False
    if (pair.a.grid, pair.a.block) != (pair.b.grid, pair.b.block):  # another block is tuning
        return False
    work = instructions_ratio(pair.a, pair.b)
    is_other_work = bool(work and work.moved(_MOVED))
    return (is_other_work or (moved and _is_time_alone(pair, work))) and build_change(pair.a, pair.b) is None


def _is_near(pair: PairComparison, limit: float = _FAR) -> bool:
    """Whether the duration of one launch per side moved by less than the limit, and no noise is known."""
    change = pair.headline
    if change is None or not change.unreplicated or not change.a.number or not change.b.number:
        return False
    return not WorkRatio("time", change.b.number / change.a.number).moved(limit)


def _shows_no_change(a: Launch, b: Launch) -> bool:
    """Whether registers, shared memory, instructions, their mix and accesses are equal as far as counted.

    Instructions and traffic must have been counted. A count that one side lacks is no sign.
    """
    work, traffic = instructions_ratio(a, b), traffic_ratio(a, b)
    if work is None or work.is_by_rate or not work.stayed(_SAME_COUNT):
        return False
    if traffic is None or not traffic.stayed() or not _is_one_build(a, b):
        return False
    both = [(a.values.number(name), b.values.number(name)) for name in _COUNTED]
    known = [(x, y) for x, y in both if x is not None and y is not None]
    is_equal = all(WorkRatio("", y / x).stayed(_WOBBLE) if x and y else x == y for x, y in known)
    return is_equal and (mix_distance(a, b) or 0.0) <= _SAME_MIX


def _is_one_build(a: Launch, b: Launch) -> bool:
    registers = [launch.values.number(_REGISTERS) for launch in (a, b)]
    return None not in registers and build_facts(a) == build_facts(b)


def _is_time_alone(pair: PairComparison, work: WorkRatio | None) -> bool:
    """Whether the duration of one launch a side moved, less than by half, and nothing counted of its work."""
    traffic = traffic_ratio(pair.a, pair.b)
    if not _is_near(pair) or (work and not work.stayed(_EQUAL_WORK)):
        return False
    shared = [launch.values.number(_DYNAMIC) for launch in (pair.a, pair.b)]
    return shared[0] == shared[1] and (traffic is None or traffic.stayed())


def _doubted(pair: PairComparison, instructions: int) -> PairComparison:
    work = instructions_ratio(pair.a, pair.b)
    if _is_time_alone(pair, work):
        did = "did the same work" if work else "ran"
        words = f"the same {instructions} instructions of machine code {did}"
        return pair.undecided(f"{words}: one launch per side does not decide")
    reason = f"{work.words if work else ''} by the same machine code: perhaps other arguments or data"
    code = CodeChange(SAME, f"{instructions} instructions are equal")
    return pair.doubted(WorkloadChange(Verdict.UNCLEAR, reason, "", code, whatever_the_code=True))
