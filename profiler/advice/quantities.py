"""Quantities that rules decide by, each computed from metrics of one launch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from profiler.advice.statement import MAX_PART, LaunchMetrics, MetricInput, all_valid, doubted, format_share
from profiler.evidence import formatting
from profiler.evidence.values import Value

DRAM_ROOF_PCT = 90.0  # of DRAM's peak: what good streaming kernels reach is 88 to 92 %
LANES = 32.0  # of a warp
EMPTY_LAUNCH_NS = 2000.0  # what ncu measures of a launch that does next to nothing: 1.5 to 2 µs
_OPCODES = "opcodes:"  # before the opcodes whose instructions an input counts, joined by +


@dataclass(frozen=True)
class RuleQuantity:
    """A number that a rule compares with a threshold."""

    words: str
    inputs: tuple[str, ...]  # concepts of metrics.txt, or `opcodes:FFMA+HFMA2`, `opcodes:*`, `opcodes:*MMA`
    formula: Callable[..., float | None] = lambda number: float(number)  # None: the inputs contradict
    unit: str = ""  # "%" of a peak, "share" from 0 to 1, else a number
    most: float = math.inf  # above it the inputs contradict each other
    counted: tuple[str, str] = ("", "")  # what a count is of, one and several: ("block", "blocks")


class Reading(NamedTuple):
    """A quantity of one launch."""

    number: float | None  # None where an input is invalid
    inputs: tuple[MetricInput, ...]


def read_quantity(name: str, metrics: LaunchMetrics) -> Reading:
    """A quantity by its name, with the metrics that it rests on; contradicting ones are marked so."""
    quantity = QUANTITIES[name]
    inputs = tuple(_read_input(source, metrics) for source in quantity.inputs)
    if not all_valid(inputs):
        return Reading(None, inputs)
    number = quantity.formula(*(metric.number for metric in inputs))
    if number is None or not number <= quantity.most:  # also what is no number at all
        return Reading(None, doubted(*inputs))
    return Reading(number, inputs)


def quantity_text(name: str, number: float) -> str:
    """A quantity with its unit, as a sentence says it."""
    quantity = QUANTITIES[name]
    if quantity.unit == "share":
        return format_share(number)
    text = str(formatting.quantity(Value(number, quantity.unit)))
    one, several = quantity.counted
    return f"{text} {one if text == '1' else several}".strip()


def _read_input(source: str, metrics: LaunchMetrics) -> MetricInput:
    if not source.startswith(_OPCODES):
        return metrics[source]
    names = source.removeprefix(_OPCODES)
    if names == "*":
        return metrics.every_opcode
    return metrics.matrix_opcodes if names == "*MMA" else metrics.opcodes(*names.split("+"))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _excess_part(excess: float, *moved: float) -> float:
    """What is excess of all that was moved; 0 where nothing was, infinite where excess contradicts that."""
    total = sum(moved)
    return excess / total if total else math.inf if excess else 0.0


def _local_part(*sectors: float) -> float:
    """Sectors of local loads and stores, of these and those of global loads and stores."""
    local, total = sum(sectors[:2]), sum(sectors)
    return local / total if total else 0.0


def _share_of_latency(latency: float, *stalls: float) -> float | None:
    return sum(stalls) / latency if latency else None


def _idle(active: float, elapsed: float, waves: float) -> float | None:
    """The share of time in which an SM has no work; what ran has neither 0 cycles nor 0 waves."""
    if not (active and elapsed and waves) or active > MAX_PART * elapsed:
        return None
    return max(1 - active / elapsed, 0.0)


def _where_sms_work(busy: float, active: float, elapsed: float) -> float | None:
    """Of a unit of each SM, the share of its peak over the cycles in which SMs have work, in per cent.

    100 at most: the cycles of a short launch are counted in other passes, up to a tenth apart.
    """
    if not (active and elapsed) or active > MAX_PART * elapsed:
        return None
    return min(busy * elapsed / active, 100.0)


def _partial_warp(block: float) -> float | None:
    return 1 - block / (LANES * math.ceil(block / LANES)) if block else None


_WAIT_FOR_MEMORY = ("warp_latency", "stall_long_scoreboard", "stall_lg_throttle", "stall_drain")


def _idle_lanes(threads: float, block: float) -> float | None:
    """Of the lanes that have a thread, since the others of a partial warp are no divergence."""
    partial = _partial_warp(block)
    if partial is None or not 0 < threads <= LANES * MAX_PART:
        return None
    return max(1 - threads / (LANES * (1 - partial)), 0.0)


_LOCAL_AND_GLOBAL = (
    "local_load_sectors",
    "local_store_sectors",
    "global_load_sectors",
    "global_store_sectors",
)
_WAIT_FOR_SHARED = ("warp_latency", "stall_short_scoreboard", "stall_mio_throttle")

# Of a unit that every SM has: ncu's share is the average over all SMs and the whole time, idle ones too.
_UNITS_OF_AN_SM = {
    "compute": ("compute throughput", "sol_compute"),
    "fp64": ("FP64 pipe", "pipe_fp64"),
    "fma": ("FMA pipe", "pipe_fma"),
    "alu": ("ALU pipe", "pipe_alu"),
    "xu": ("XU pipe", "pipe_xu"),
    "adu": ("ADU pipe", "pipe_adu"),
    "tensor": ("tensor pipe", "tensor_busy"),
}
QUANTITIES = {
    **{name: RuleQuantity(words, (concept,), unit="%") for name, (words, concept) in _UNITS_OF_AN_SM.items()},
    **{
        f"{name}_of_active": RuleQuantity(
            f"{words} where SMs have work", (concept, "sm_cycles_active", "cycles"), _where_sms_work, "%"
        )
        for name, (words, concept) in _UNITS_OF_AN_SM.items()
    },
    "memory": RuleQuantity("memory throughput", ("sol_memory",), unit="%"),
    "dram": RuleQuantity("DRAM throughput", ("sol_dram",), unit="%"),
    "l2": RuleQuantity("L2 throughput", ("sol_l2",), unit="%"),
    "memory_over_compute": RuleQuantity(
        "memory above compute throughput", ("sol_memory", "sol_compute"), lambda a, b: a - b
    ),
    "dram_below_memory": RuleQuantity(
        "DRAM below memory throughput", ("sol_memory", "sol_dram"), lambda a, b: a - b
    ),
    "l2_below_memory": RuleQuantity(
        "L2 below memory throughput", ("sol_memory", "sol_l2"), lambda a, b: a - b
    ),
    "free_units": RuleQuantity(
        "the time in which no unit is busy",
        ("sol_compute", "sol_memory"),
        lambda a, b: max(1 - max(a, b) / 100, 0.0),
        "share",
    ),
    "dram_headroom": RuleQuantity(
        "the time that DRAM at its practical peak would save",
        ("sol_dram",),
        lambda a: max(1 - a / DRAM_ROOF_PCT, 0.0),
        "share",
    ),
    # L1's data stage
    "l1_limit": RuleQuantity("L1's busiest stage", ("l1_requests", "l1_wavefronts"), max, "%"),
    "l1_below_memory": RuleQuantity(
        "L1's busiest stage below memory throughput",
        ("sol_memory", "l1_requests", "l1_wavefronts"),
        lambda a, b, c: a - max(b, c),
    ),
    # As many per cent of wavefronts as of requests are two wavefronts per request.
    "wavefronts_per_request": RuleQuantity(
        "wavefronts per request",
        ("l1_wavefronts", "l1_requests"),
        lambda a, b: 2 * a / b if b else None,
        counted=("wavefront", "wavefronts"),
    ),
    "scattered_part": RuleQuantity(
        "wavefronts beyond four per request",
        ("l1_wavefronts", "l1_requests"),
        lambda a, b: max(1 - 2 * b / a, 0.0) if a else None,
        "share",
    ),
    "scattered_wavefronts": RuleQuantity(
        "the time saved at four wavefronts per request",
        ("l1_wavefronts", "l1_requests"),
        lambda a, b: a / 100 * max(1 - 2 * b / a, 0.0) if a else None,
        "share",
    ),
    "shared_bytes": RuleQuantity(
        "shared memory per block", ("shared_static", "shared_dynamic"), lambda a, b: a + b
    ),
    # instructions
    "issue_slots": RuleQuantity("issue slots", ("issue_slots",), unit="%"),
    "issue_below_compute": RuleQuantity(
        "issue slots below compute throughput", ("sol_compute", "issue_slots"), lambda a, b: a - b
    ),
    "issue_active": RuleQuantity("cycles in which schedulers issue", ("issue_active",), unit="%"),
    "matrix_instructions": RuleQuantity("tensor-core instructions", ("opcodes:*MMA",)),
    "multiply_adds": RuleQuantity(
        "FFMA and HFMA2, of all instructions",
        ("opcodes:FFMA+HFMA2", "opcodes:*"),
        _ratio,
        "share",
        MAX_PART,
    ),
    "moves": RuleQuantity(
        "MOV, of all instructions", ("opcodes:MOV", "opcodes:*"), _ratio, "share", MAX_PART
    ),
    "atomics": RuleQuantity(
        "RED and ATOM, of all instructions",
        ("opcodes:RED+ATOM+ATOMG+ATOMS", "opcodes:*"),
        _ratio,
        "share",
        MAX_PART,
    ),
    "atomic_accesses": RuleQuantity(
        "RED and ATOM, of the accesses to global memory",
        ("opcodes:RED+ATOM+ATOMG", "opcodes:LDG+LD+STG+ST+RED+ATOM+ATOMG+LDGSTS"),
        lambda atomics, accesses: atomics / accesses if accesses else 0.0,
        "share",
        MAX_PART,
    ),
    "l2_atomics": RuleQuantity("atomics in L2", ("l2_atomics",), unit="%"),
    "idle_lanes": RuleQuantity(
        "lanes with a thread for which an instruction is not executed",
        ("threads_per_inst_on", "block_size"),
        _idle_lanes,
        "share",
    ),
    # waiting
    "fixed_latency": RuleQuantity(
        "cycles of fixed latency an instruction", ("stall_wait",), counted=("cycle", "cycles")
    ),
    "wait_for_fixed_latency": RuleQuantity(
        "waiting for the fixed latency of instructions",
        ("warp_latency", "stall_wait"),
        _share_of_latency,
        "share",
        1.2,
    ),
    "wait_for_memory": RuleQuantity(
        "waiting for global memory", _WAIT_FOR_MEMORY, _share_of_latency, "share", 1.2
    ),
    "wait_for_loads": RuleQuantity(
        "waiting for loads", ("warp_latency", "stall_long_scoreboard"), _share_of_latency, "share", 1.2
    ),
    "wait_at_barriers": RuleQuantity(
        "waiting at barriers", ("warp_latency", "stall_barrier"), _share_of_latency, "share", 1.2
    ),
    "wait_for_atomics": RuleQuantity(
        "waiting for stores and loads",
        ("warp_latency", "stall_drain", "stall_long_scoreboard"),
        _share_of_latency,
        "share",
        1.2,
    ),
    # access patterns
    "excess_sectors": RuleQuantity(
        "excess sectors, of those moved",
        ("global_excess", "global_load_sectors", "global_store_sectors"),
        _excess_part,
        "share",
        MAX_PART,
    ),
    "excess_sectors_waited_for": RuleQuantity(
        "waiting for excess sectors",
        ("global_excess", "global_load_sectors", "global_store_sectors", *_WAIT_FOR_MEMORY),
        lambda excess, loads, stores, latency, *stalls: (
            _excess_part(excess, loads, stores) * sum(stalls) / latency if latency else None
        ),
        "share",
        1.2,
    ),
    "excess_sectors_at_the_limit": RuleQuantity(
        "memory throughput that excess sectors take",
        ("global_excess", "global_load_sectors", "global_store_sectors", "sol_memory"),
        lambda excess, loads, stores, memory: _excess_part(excess, loads, stores) * memory / 100,
        "share",
    ),
    "excess_wavefronts": RuleQuantity(
        "excess wavefronts in shared memory",
        ("shared_excess", "shared_wavefronts_source"),
        _excess_part,
        "share",
        MAX_PART,
    ),
    "excess_wavefronts_waited_for": RuleQuantity(
        "waiting for excess wavefronts",
        ("shared_excess", "shared_wavefronts_source", *_WAIT_FOR_SHARED),
        lambda excess, wavefronts, latency, *stalls: (
            excess / wavefronts * sum(stalls) / latency if latency and wavefronts else 0.0
        ),
        "share",
        1.2,
    ),
    "excess_wavefronts_at_the_limit": RuleQuantity(
        "L1 wavefronts that are excess",
        ("shared_excess", "shared_wavefronts_source", "l1_wavefronts"),
        lambda excess, wavefronts, busy: excess / wavefronts * busy / 100 if wavefronts else 0.0,
        "share",
    ),
    "local_sectors": RuleQuantity(
        "local sectors, of local and global", _LOCAL_AND_GLOBAL, _local_part, "share"
    ),
    "local_sectors_waited_for": RuleQuantity(
        "waiting for local sectors",
        (*_LOCAL_AND_GLOBAL, *_WAIT_FOR_MEMORY),
        lambda a, b, c, d, latency, *stalls: (
            _local_part(a, b, c, d) * sum(stalls) / latency if latency else None
        ),
        "share",
        1.2,
    ),
    "local_sectors_at_the_limit": RuleQuantity(
        "memory throughput that local sectors take",
        (*_LOCAL_AND_GLOBAL, "sol_memory"),
        lambda a, b, c, d, memory: _local_part(a, b, c, d) * memory / 100,
        "share",
    ),
    # the launch
    "occupancy_theoretical": RuleQuantity("theoretical occupancy", ("occupancy_theoretical",), unit="%"),
    "occupancy": RuleQuantity("achieved occupancy", ("occupancy",), unit="%"),
    "room_for_warps": RuleQuantity(
        "the time that more warps could fill",
        ("occupancy_theoretical", "sol_compute", "sol_memory"),
        lambda occupancy, a, b: max(min(1 - occupancy / 100, 1 - max(a, b) / 100), 0.0),
        "share",
    ),
    "missing_warps": RuleQuantity(
        "the time that more warps could fill",
        ("occupancy", "sol_compute", "sol_memory"),
        lambda occupancy, a, b: max(min(1 - occupancy / 100, 1 - max(a, b) / 100), 0.0),
        "share",
    ),
    "waves": RuleQuantity("waves", ("waves",), lambda waves: waves or None, counted=("wave", "waves")),
    "blocks": RuleQuantity(
        "blocks", ("grid_size",), lambda blocks: blocks or None, counted=("block", "blocks")
    ),
    "sms": RuleQuantity("SMs", ("sm_count",), lambda count: count or None, counted=("SM", "SMs")),
    "sms_without_a_block": RuleQuantity(
        "SMs without a block",
        ("grid_size", "sm_count"),
        lambda grid, sms: max(1 - grid / sms, 0.0) if grid and sms else None,
        "share",
    ),
    "idle_sms": RuleQuantity(
        "SMs without work, of the time", ("sm_cycles_active", "cycles", "waves"), _idle, "share"
    ),
    "imbalance": RuleQuantity(
        "the busiest SM's work over the mean",
        ("sm_cycles_active_max", "sm_cycles_active"),
        lambda most, mean: most / mean if mean and most * MAX_PART >= mean else None,
    ),
    "uneven_sms": RuleQuantity(
        "SMs that wait for the busiest one, of the time",
        ("sm_cycles_active_max", "sm_cycles_active"),
        lambda most, mean: max(1 - mean / most, 0.0) if most else None,
        "share",
    ),
    "duration": RuleQuantity("time of the launch", ("duration",), lambda ns: ns or None, unit="ns"),
    "launch_overhead": RuleQuantity(
        "the time to start and end a launch",
        ("duration",),
        lambda ns: min(EMPTY_LAUNCH_NS / ns, 1.0) if ns else None,
        "share",
    ),
    "block": RuleQuantity(
        "threads per block", ("block_size",), lambda threads: threads or None, counted=("thread", "threads")
    ),
    "partial_warp": RuleQuantity("lanes without a thread", ("block_size",), _partial_warp, "share"),
}
