"""Values per instance for made launches: the totals of a public launch, spread over our own instructions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tests.reportfiles import machine_code
from tests.reportfiles.counters import CountedLaunch
from tests.reportfiles.machine_code import spread
from tests.reportfiles.ncu_rep import Function, Metric, Scalar

EXECUTED = "inst_executed"
SAMPLES, STALLED, NOT_ISSUED = "smsp__pcsamp_sample_count", "smsp__pcsamp_warps_issue_stalled_", "_not_issued"
BY_ACCESS = ("memory_type", "memory_access_type", "memory_access_size_type")  # values without a total
SHARED_WAVEFRONTS = (
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "derived__memory_l1_wavefronts_shared_excessive",
)
GLOBAL_SECTORS = (
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "derived__memory_l2_theoretical_sectors_global_excessive",
)
CONFLICTS = "derived__memory_l1_conflicts_shared_nway"
TIMELINES = {"pmsampling:sm__cycles_active.avg": "cycle", "pmsampling:sm__ctas_launched.sum": "block"}
# Texts under an index and not under an address: so newer releases store what they know of the machine.
TEXTS_BY_INDEX: dict[str, Metric | Scalar] = {
    "launch__func_cache_config": Metric("CachePreferNone", [(0, "CachePreferNone")]),
    "numa__cpu_affinity": Metric("0-63", [(0, "0-63")]),
    "profiler__pmsampler_pass_groups": Metric(2, [(0, "pmsampling:a,pmsampling:b"), (1, "pmsampling:c")]),
}
LIMITS = ("blocks", "registers", "shared_mem", "warps")
REGISTERS, SHARED_BYTES = 65536, 102400  # of an SM


def per_instruction(
    cubin: str, functions: Sequence[Function], counted: CountedLaunch
) -> dict[str, Metric | Scalar]:
    """Every total that is a sum over instructions, with its values at the instructions of some kernels."""
    places = machine_code.instructions(cubin, functions)
    pcs = [pc for pc, _ in places]
    shared = [pc for pc, opcode in places if opcode in machine_code.SHARED]
    through_l2 = [pc for pc, opcode in places if opcode in machine_code.GLOBAL]
    totals = {name: int(total) for name, total in counted.metrics.items() if _is_count(total)}
    columns = _executed(totals, len(pcs), counted.function) | _samples(totals, len(pcs), counted.function)
    found = {name: _column(totals[name], pcs, values) for name, values in columns.items()}
    found |= _accesses(SHARED_WAVEFRONTS, shared, totals, counted.function)
    found |= _accesses(GLOBAL_SECTORS, through_l2, totals, counted.function)
    if CONFLICTS in totals:
        ways = spread(totals[CONFLICTS], machine_code.loop_weights(len(shared), CONFLICTS))
        found[CONFLICTS] = _column(totals[CONFLICTS], shared, ways)
    if EXECUTED in totals:
        memory = sorted([*shared, *through_l2])
        found |= {name: _column(None, memory, [2] * len(memory)) for name in BY_ACCESS}
        starts = [function.address for function in functions]
        if len(functions) > 1:  # then the subroutine of the first counts as a function too
            starts.insert(1, starts[0] + machine_code.subroutine(cubin, functions[0].name))
        found["launch__function_pcs"] = Metric(float(sum(starts)), list(enumerate(starts)))
    return found


def _is_count(total: Scalar | None) -> bool:
    return isinstance(total, int) or (isinstance(total, float) and math.isfinite(total))


def _column(total: int | None, pcs: Sequence[int], values: Sequence[int]) -> Metric:
    return Metric(total, list(zip(pcs, values, strict=True)))


def _executed(totals: Mapping[str, int], count: int, seed: str) -> dict[str, list[int]]:
    """How often each instruction ran, per warp and per thread."""
    weights = machine_code.loop_weights(count, seed)
    names = (EXECUTED, "thread_inst_executed", "thread_inst_executed_true")
    return {name: spread(totals[name], weights) for name in names if name in totals}


def _samples(totals: Mapping[str, int], count: int, seed: str) -> dict[str, list[int]]:
    """Where the samples of each stall reason fell; all of them together are the sample count."""
    reasons = [name for name in totals if name.startswith(STALLED) and not name.endswith(NOT_ISSUED)]
    columns = {
        name: spread(totals[name], machine_code.sparse_weights(count, name + seed)) for name in reasons
    }
    for name in reasons:
        if name + NOT_ISSUED in totals:
            columns[name + NOT_ISSUED] = spread(totals[name + NOT_ISSUED], columns[name])
    if SAMPLES in totals:
        columns[SAMPLES] = [sum(row) for row in zip(*(columns[name] for name in reasons), strict=True)]
    return columns


def _accesses(
    names: tuple[str, str, str], pcs: Sequence[int], totals: Mapping[str, int], seed: str
) -> dict[str, Metric]:
    """What accesses took, what they would have taken at best, and the difference."""
    if not totals.keys() >= set(names):
        return {}
    _, ideal, excess = names
    best = spread(totals[ideal], machine_code.loop_weights(len(pcs), ideal + seed))
    more = spread(totals[excess], machine_code.sparse_weights(len(pcs), excess + seed))
    took = [a + b for a, b in zip(best, more, strict=True)]
    return {
        name: _column(totals[name], pcs, values)
        for name, values in zip(names, (took, best, more), strict=True)
    }


def timelines(counted: CountedLaunch, ordinal: int) -> dict[str, Metric | Scalar]:
    """Cycles and blocks over the time of a launch: up in the first half, down in the second."""
    took_ns = counted.metrics["gpu__time_duration.sum"]
    assert isinstance(took_ns, float)
    start = 161475947102912 + 10**9 * ordinal
    times = range(start, start + int(took_ns), int(took_ns) // 12)
    values = [float(round(1000 * (1 - abs(2 * index / len(times) - 1)))) for index in range(len(times))]
    curve = list(zip(times, values, strict=True))
    return {name: Metric(sum(values), curve, over_time=True) for name in TIMELINES}


def occupancy_curves(counted: CountedLaunch) -> dict[str, Metric | Scalar]:
    """Warps an SM for other registers, shared memory or block sizes, as ncu computes them.

    At the launch's own values they are what its limits say, as in ncu's curves.
    """
    limits = [counted.metrics.get(f"launch__occupancy_limit_{kind}") for kind in LIMITS]
    threads, registers = (
        counted.metrics.get(f"launch__{name}") for name in ("block_size", "registers_per_thread")
    )
    shared = counted.metrics.get("launch__shared_mem_per_block", 0)
    known = [int(one) for one in (*limits, threads, registers, shared) if _is_count(one)]
    if len(known) < len(limits) + 3:
        return {}
    by_blocks, by_registers, by_shared, by_warps, threads_now, registers_now, shared_now = known
    warps_now = -(-threads_now // 32)
    now = warps_now * min(by_blocks, by_registers, by_shared, by_warps)

    def with_registers(count: int) -> int:
        fit = REGISTERS // (_allocated(count) * warps_now) if count else by_warps
        return now if count == registers_now else warps_now * min(by_blocks, by_shared, by_warps, fit)

    def with_shared(size: int) -> int:
        fit = SHARED_BYTES // (size + 1024)
        return now if size == shared_now else warps_now * min(by_blocks, by_registers, by_warps, fit)

    def with_threads(count: int) -> int:
        warps = -(-count // 32)
        fit = min(by_warps * warps_now // warps, REGISTERS // (_allocated(registers_now) * warps))
        return now if count == threads_now else warps * min(by_blocks, by_shared, fit)

    curves = {
        "register_count": [(n, with_registers(n)) for n in {*range(0, 257, 8), registers_now}],
        "shared_mem_size": [(n, with_shared(n)) for n in {*range(0, SHARED_BYTES, 1024), shared_now}],
        "block_size": [(n, with_threads(n)) for n in {1, *range(32, 1025, 32), threads_now}],
    }
    return {
        f"launch__occupancy_per_{name}": Metric(float(sum(warps for _, warps in curve)), sorted(curve))
        for name, curve in curves.items()
    }


def _allocated(registers: int) -> int:
    """Registers that a warp takes: they come in units of 256."""
    return -(-registers * 32 // 256) * 256
