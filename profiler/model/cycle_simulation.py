"""One SM, cycle by cycle: schedulers, pipes, scoreboards and memory queues, with warps that run one trace."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.model.pipes import Pipe
from profiler.model.warp_trace import WarpTrace
from profiler.statistics.segments import compiled

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
_Flags = NDArray[np.bool_]


class Finish(IntEnum):
    """When an instruction is done, and what waits for it."""

    FIXED = 0  # after the cycles that its control word counts
    SHORT = 1  # its result comes after a while that the scoreboard tells
    LOAD = 2
    BARRIER = 3
    EXIT = 4
    COPY = 5  # cp.async: a load that no register waits for
    COPY_COMMIT = 6
    COPY_WAIT = 7
    STORE = 8


class Stall(IntEnum):
    """What a warp waits for, by ncu's names of the same states."""

    SELECTED = 0
    WAIT = 1
    LONG_SCOREBOARD = 2
    SHORT_SCOREBOARD = 3
    BARRIER = 4
    MATH_PIPE_THROTTLE = 5
    MIO_THROTTLE = 6
    NOT_SELECTED = 7
    LG_THROTTLE = 8
    IMC_MISS = 9


class Unit(IntEnum):
    """What of an SM can be busy beside its pipes: indices behind those of Pipe in `busy`."""

    L1_DATA = len(Pipe)
    L2 = len(Pipe) + 1
    DRAM = len(Pipe) + 2
    L1_FILL = len(Pipe) + 3
    REQUESTS = len(Pipe) + 4


class SimulatedCode(NamedTuple):
    """What the simulation reads of each instruction, arrays of shape [instructions]."""

    pipe: _Integers
    cycles: _Floats  # that it keeps its pipe
    finish: _Integers
    latency: _Floats  # cycles from the end of its use of the pipe to its result
    wavefronts: _Floats  # passes of the L1 data stage a request
    sectors: _Floats  # of 32 bytes a request, of global and local memory
    packets: _Floats  # that a request sends to L2 where it does not hit L1
    is_global: _Flags
    is_strong: _Flags  # loads that never hit L1
    constant_line: _Integers  # of the constant bank that it reads; -1: none
    copy_groups: _Integers  # that a COPY_WAIT leaves in flight
    even_reads: _Floats  # registers that it reads from the even bank, and from the odd one
    odd_reads: _Floats
    stall: _Integers
    write_scoreboard: _Integers
    read_scoreboard: _Integers
    waits: _Integers


class SmShare(NamedTuple):
    """The SM's share of the chip, in cycles and bytes a cycle, and how often its caches hit."""

    l1_hits: float  # of the sectors that loads ask for, from 0 to 1
    l2_hits: float  # of the loads that miss L1
    l2_store_hits: float  # of the stored sectors, those that do not go on to DRAM
    merged_stores: float  # of the stored sectors, those that join another one on the way to L2
    l2_rate: float
    dram_rate: float
    fill_rate: float  # from L2 into L1
    packet_rate: float  # packets a cycle that go from the SM to L2
    wavefront_cycles: float  # of the L1 data stage, for one pass
    l1_latency: float
    l2_latency: float
    dram_latency: float
    barrier_latency: float
    constant_miss: float  # cycles of the first touch of a line of the constant bank
    queue: int  # load/store instructions of a partition that may wait for their unit
    warp_start: float  # cycles between the starts of two warps on an SM
    first_misses: float  # bytes that a block misses before it hits; negative: hits are spread evenly


class Simulated(NamedTuple):
    """What came out: cycles, warp-cycles by Stall and by instruction, cycles busy by Pipe and Unit."""

    cycles: float
    stalls: _Floats
    busy: _Floats
    issued: int
    by_instruction: _Floats  # warp-cycles from the instruction before to its own issue


_SCOREBOARDS = 6
_GROUPS = 16
_PARTITIONS = 4
_READ_LATENCY = 12.0  # cycles until a memory instruction has read its registers
_BLOCK_START = 60.0  # cycles from the end of a block to the first instruction of the next in its place
_BANK_SLACK = 2.0  # cycles of register reads that may queue before issue waits
_NEVER = 1e18
MOST_CYCLES = 3e7

_LSU, _NONE, _HEAVY, _FMA = int(Pipe.LSU), int(Pipe.NONE), int(Pipe.FMA_HEAVY), int(Pipe.FMA)
_PIPES = len(Pipe)
_L1, _L2, _DRAM, _FILL = int(Unit.L1_DATA), int(Unit.L2), int(Unit.DRAM), int(Unit.L1_FILL)
_REQUESTS = int(Unit.REQUESTS)
_SHORT, _LOAD, _BARRIER, _EXIT = int(Finish.SHORT), int(Finish.LOAD), int(Finish.BARRIER), int(Finish.EXIT)
_COPY, _COMMIT, _WAIT, _STORE = (
    int(Finish.COPY),
    int(Finish.COPY_COMMIT),
    int(Finish.COPY_WAIT),
    int(Finish.STORE),
)
_STALLS = len(Stall)
_LONG_STALL, _SHORT_STALL = int(Stall.LONG_SCOREBOARD), int(Stall.SHORT_SCOREBOARD)


def simulate(
    trace: WarpTrace, code: SimulatedCode, machine: SmShare, warps: int, resident: int, blocks: int
) -> Simulated:
    """Run `blocks` blocks of `warps` warps on one SM, at most `resident` at a time.

    trace: the indices into `code` of the instructions that warps execute. The order of warps is greedy, then
    youngest. Source of the structure: arXiv 2503.20481 and 1804.06826.
    """
    lines = int(code.constant_line.max(initial=-1)) + 1
    return Simulated(*_run(trace.positions, trace.lengths, *code, *machine, warps, resident, blocks, lines))


@compiled
def _ready(
    w: int,
    i: int,
    waits: Any,
    scoreboards: Any,
    scoreboard_stall: Any,
    finish: Any,
    copy_groups: Any,
    groups: Any,
    group_count: Any,
    early: Any,
    reason: Any,
) -> None:
    """Put off a warp's next instruction until its scoreboards and copies are clear, and note for what."""
    for number in range(_SCOREBOARDS):
        if waits[i] >> number & 1 and scoreboards[w, number] > early[w]:
            early[w] = scoreboards[w, number]
            reason[w] = scoreboard_stall[w, number]
    if finish[i] == _WAIT and group_count[w] > copy_groups[i]:
        done = groups[w, (group_count[w] - 1 - copy_groups[i]) % _GROUPS]
        if done > early[w]:
            early[w] = done
            reason[w] = _LONG_STALL


@compiled
def _run(
    traces: Any,
    lengths: Any,
    pipe: Any,
    cycles: Any,
    finish: Any,
    latency: Any,
    wavefronts: Any,
    sectors: Any,
    packets: Any,
    is_global: Any,
    is_strong: Any,
    constant_line: Any,
    copy_groups: Any,
    even_reads: Any,
    odd_reads: Any,
    stall: Any,
    write_scoreboard: Any,
    read_scoreboard: Any,
    waits: Any,
    l1_hits: float,
    l2_hits: float,
    l2_store_hits: float,
    merged_stores: float,
    l2_rate: float,
    dram_rate: float,
    fill_rate: float,
    packet_rate: float,
    wavefront_cycles: float,
    l1_latency: float,
    l2_latency: float,
    dram_latency: float,
    barrier_latency: float,
    constant_miss: float,
    queue: int,
    warp_start: float,
    first_misses: float,
    block_warps: int,
    resident: int,
    blocks: int,
    lines: int,
) -> Any:
    warps = block_warps * resident
    variants = traces.shape[0]
    variant = np.zeros(warps, np.int64)
    for w in range(warps):
        variant[w] = w % block_warps % variants
    position = np.zeros(warps, np.int64)
    # When a warp's next instruction may issue by its control words, and by all that it waits for.
    counted = np.zeros(warps, np.float64)
    early = np.zeros(warps, np.float64)
    last_issue = np.zeros(warps, np.float64)
    reason = np.zeros(warps, np.int64)
    scoreboards = np.zeros((warps, _SCOREBOARDS), np.float64)
    scoreboard_stall = np.zeros((warps, _SCOREBOARDS), np.int64)
    active = np.zeros(warps, np.bool_)
    at_barrier = np.zeros(warps, np.bool_)
    throttled = np.zeros(warps, np.int64)
    throttle_stall = np.zeros(warps, np.int64)
    last_copy = np.zeros(warps, np.float64)
    groups = np.zeros((warps, _GROUPS), np.float64)
    group_count = np.zeros(warps, np.int64)
    arrived = np.zeros(resident, np.int64)
    left = np.zeros(resident, np.int64)
    bank_free = np.zeros((_PARTITIONS, 2), np.float64)
    pipe_free = np.zeros((_PARTITIONS, _PIPES), np.float64)
    last_warp = -np.ones(_PARTITIONS, np.int64)
    queued = np.zeros((_PARTITIONS, queue), np.float64)
    queue_at = np.zeros(_PARTITIONS, np.int64)
    partition_memory_free = np.zeros(_PARTITIONS, np.float64)
    lsu_free = 0.0
    data_free = 0.0
    fill_free = 0.0
    l2_free = 0.0
    packets_free = 0.0
    dram_free = 0.0
    stalls = np.zeros(_STALLS, np.float64)
    busy = np.zeros(_PIPES + 5, np.float64)
    by_instruction = np.zeros(pipe.shape[0], np.float64)
    # When what an instruction of a block missed last is in L1.
    arrives = np.zeros((resident, pipe.shape[0]), np.float64)
    missed = np.zeros(resident, np.float64)  # bytes that a block did not find in L1
    l1_credit = 0.0
    l2_credit = 0.0
    store_credit = 0.0
    issued = 0
    constant_ready = np.zeros(lines + 1, np.float64)
    started = 0
    done = 0
    next_start = 0.0
    for block in range(min(resident, blocks)):
        for k in range(block_warps):
            w = block * block_warps + k
            active[w] = True
            counted[w] = next_start
            early[w] = next_start
            last_issue[w] = next_start
            next_start += warp_start
        left[block] = block_warps
        started += 1
    now = 0.0
    while done < blocks and now < MOST_CYCLES:
        any_issue = False
        soonest = _NEVER
        for s in range(_PARTITIONS):
            chosen = -1
            count = (warps + _PARTITIONS - 1 - s) // _PARTITIONS
            for step in range(-1, count):  # the warp of the last issue first, then the youngest
                if step == -1:
                    w = last_warp[s]
                    if w < 0:
                        continue
                else:
                    w = s + _PARTITIONS * (count - 1 - step)
                    if w == last_warp[s]:
                        continue
                if not active[w] or at_barrier[w]:
                    continue
                if early[w] > now:
                    soonest = min(soonest, early[w])
                    continue
                i = traces[variant[w], position[w]]
                line = constant_line[i]
                if line >= 0:
                    if constant_ready[line] == 0.0:
                        constant_ready[line] = now + constant_miss
                    if constant_ready[line] > now:
                        throttled[w] += 1
                        throttle_stall[w] = Stall.IMC_MISS
                        soonest = min(soonest, constant_ready[line])
                        continue
                p = pipe[i]
                free = 0.0
                if p == _LSU:
                    free = queued[s, queue_at[s] % queue]
                elif p != _NONE:
                    free = pipe_free[s, p]
                    if even_reads[i] > 0:
                        free = max(free, bank_free[s, 0] - _BANK_SLACK)
                    if odd_reads[i] > 0:
                        free = max(free, bank_free[s, 1] - _BANK_SLACK)
                if free > now:
                    throttled[w] += 1
                    if p != _LSU:
                        throttle_stall[w] = Stall.MATH_PIPE_THROTTLE
                    elif is_global[i]:
                        throttle_stall[w] = Stall.LG_THROTTLE
                    else:
                        throttle_stall[w] = Stall.MIO_THROTTLE
                    soonest = min(soonest, free)
                    continue
                chosen = w
                break
            if chosen < 0:
                continue
            w = chosen
            i = traces[variant[w], position[w]]
            p = pipe[i]
            any_issue = True
            issued += 1
            last_warp[s] = w

            # What the warp did since its last issue.
            waited = now - last_issue[w]
            by_instruction[i] += max(waited, 1.0)
            by_count = min(max(counted[w] - last_issue[w], 0.0), waited)
            stalls[Stall.SELECTED] += 1.0
            stalls[Stall.WAIT] += max(by_count - 1.0, 0.0)
            if early[w] > counted[w]:
                stalls[reason[w]] += early[w] - counted[w]
            rest = now - max(early[w], counted[w])
            if rest > 0:
                stalls[throttle_stall[w] if throttled[w] > 0 else Stall.NOT_SELECTED] += rest
            throttled[w] = 0

            # What the instruction takes.
            if even_reads[i] > 0:
                bank_free[s, 0] = max(bank_free[s, 0], now) + even_reads[i]
            if odd_reads[i] > 0:
                bank_free[s, 1] = max(bank_free[s, 1], now) + odd_reads[i]
            kind = finish[i]
            if p == _LSU:
                start = max(now + 4.0, partition_memory_free[s], lsu_free)
                partition_memory_free[s] = start + 4.0
                lsu_free = start + cycles[i]
                data_start = max(start, data_free)
                passes = wavefronts[i] * wavefront_cycles
                data_free = data_start + passes
                busy[_LSU] += cycles[i]
                busy[_L1] += passes
                queued[s, queue_at[s] % queue] = start
                queue_at[s] += 1
                end = data_start + passes + latency[i]
                if is_global[i] and sectors[i] > 0 and kind in (_LOAD, _COPY, _STORE):
                    size = sectors[i] * 32.0
                    is_store = kind == _STORE
                    hits_l1 = False
                    if is_store or is_strong[i]:
                        pass
                    elif first_misses >= 0.0:
                        hits_l1 = missed[w // block_warps] + 0.5 * size > first_misses
                        if not hits_l1:
                            missed[w // block_warps] += size
                    else:
                        l1_credit += l1_hits
                        if l1_credit >= 1.0:
                            l1_credit -= 1.0
                            hits_l1 = True
                    if hits_l1:
                        # What hits may be on its way still: the warps of a block ask for the same lines.
                        end = max(data_start + passes + l1_latency, arrives[w // block_warps, i])
                    else:
                        sent = packets[i] / packet_rate
                        if is_store:
                            size *= 1.0 - merged_stores
                            sent *= 1.0 - merged_stores
                        packets_free = max(data_start, packets_free) + sent
                        busy[_REQUESTS] += sent
                        l2_free = max(packets_free, l2_free) + size / l2_rate
                        busy[_L2] += size / l2_rate
                        if is_store:
                            store_credit += l2_store_hits
                            hits_l2 = store_credit >= 1.0
                            if hits_l2:
                                store_credit -= 1.0
                            end = l2_free + l2_latency
                        else:
                            fill_free = max(l2_free - size / l2_rate, fill_free) + size / fill_rate
                            busy[_FILL] += size / fill_rate
                            l2_credit += l2_hits
                            hits_l2 = l2_credit >= 1.0
                            if hits_l2:
                                l2_credit -= 1.0
                            end = max(l2_free, fill_free) + l2_latency
                        if not hits_l2:
                            begin = l2_free - size / l2_rate
                            if not is_store:
                                begin = max(begin, fill_free - size / fill_rate)
                            dram_free = max(begin, dram_free) + size / dram_rate
                            busy[_DRAM] += size / dram_rate
                            end = dram_free + dram_latency
                        if not is_store:
                            arrives[w // block_warps, i] = max(arrives[w // block_warps, i], end)
            elif p != _NONE:
                pipe_free[s, p] = max(pipe_free[s, p], now) + cycles[i]
                busy[p] += cycles[i]
                if p == _HEAVY:
                    pipe_free[s, _FMA] = max(pipe_free[s, _FMA], now) + 1.0
                    busy[_FMA] += 1.0
                end = pipe_free[s, p] + latency[i]
            else:
                end = now + latency[i]

            # Who may wait for it.
            number = write_scoreboard[i]
            if number < _SCOREBOARDS:
                scoreboards[w, number] = max(scoreboards[w, number], end)
                scoreboard_stall[w, number] = _LONG_STALL if is_global[i] or kind == _LOAD else _SHORT_STALL
            number = read_scoreboard[i]
            if number < _SCOREBOARDS:
                read = now + _READ_LATENCY
                if p == _LSU:
                    read = max(read, queued[s, (queue_at[s] - 1) % queue] + passes + 4.0)
                scoreboards[w, number] = max(scoreboards[w, number], read)
                scoreboard_stall[w, number] = _SHORT_STALL
            if kind == _COPY:
                last_copy[w] = max(last_copy[w], end)
            elif kind == _COMMIT:
                groups[w, group_count[w] % _GROUPS] = last_copy[w]
                group_count[w] += 1

            last_issue[w] = now
            position[w] += 1
            counted[w] = now + max(stall[i], 1)
            early[w] = counted[w]
            block = w // block_warps
            first = block * block_warps
            if kind == _BARRIER:
                arrived[block] += 1
                at_barrier[w] = True
            if position[w] >= lengths[variant[w]] or kind == _EXIT:
                active[w] = False
                if at_barrier[w]:
                    arrived[block] -= 1
                    at_barrier[w] = False
                left[block] -= 1
                if left[block] == 0:
                    done += 1
                    if started < blocks:
                        started += 1
                        left[block] = block_warps
                        arrived[block] = 0
                        missed[block] = 0.0
                        next_start = max(next_start, now + _BLOCK_START)
                        for other in range(first, first + block_warps):
                            active[other] = True
                            position[other] = 0
                            group_count[other] = 0
                            last_copy[other] = 0.0
                            counted[other] = next_start
                            next_start += warp_start
                            early[other] = counted[other]
                            last_issue[other] = counted[other]
                            scoreboards[other] = 0.0
            elif not at_barrier[w]:
                _ready(
                    w,
                    traces[variant[w], position[w]],
                    waits,
                    scoreboards,
                    scoreboard_stall,
                    finish,
                    copy_groups,
                    groups,
                    group_count,
                    early,
                    reason,
                )
            if left[block] > 0 and arrived[block] >= left[block]:
                arrived[block] = 0
                for other in range(first, first + block_warps):
                    if active[other] and at_barrier[other]:
                        at_barrier[other] = False
                        resumes = max(counted[other], now + barrier_latency)
                        waited = max(resumes - counted[other], 0.0)
                        stalls[Stall.BARRIER] += waited
                        by_instruction[traces[variant[other], position[other]]] += waited
                        last_issue[other] = resumes - 1.0
                        counted[other] = resumes
                        early[other] = resumes
                        reason[other] = _SHORT_STALL
                        _ready(
                            other,
                            traces[variant[other], position[other]],
                            waits,
                            scoreboards,
                            scoreboard_stall,
                            finish,
                            copy_groups,
                            groups,
                            group_count,
                            early,
                            reason,
                        )
        if any_issue:
            now += 1.0
        else:
            now = max(np.ceil(soonest) if soonest < _NEVER else now + 1.0, now + 1.0)
    return max(now, data_free, l2_free, dram_free), stalls, busy, issued, by_instruction
