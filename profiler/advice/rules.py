"""The rules of advice on a measured launch, each declared once: when it holds, the lever, the stakes.

To add one: an entry in `RULES`, and in `quantities` what no rule has computed yet. A bound is one of the
hardware, never of one repository's kernels.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from profiler.advice.levers import (
    EVEN_BLOCKS,
    FEWER_INSTRUCTIONS_LEVER,
    FUSE_LAUNCHES,
    INDEPENDENT_WORK,
    LESS_DRAM,
    LESS_L2,
    LOCAL_ARRAYS,
    MORE_BLOCKS,
    MORE_BYTES_IN_FLIGHT,
    OPTIMISED_BUILD,
    REDUCE_FIRST,
    SHARED_EXCHANGE,
    SHARED_TILE,
    SWIZZLE,
    THREAD_TILE,
    WIDER_ACCESSES,
    adu_lever,
    room_lever,
    tensor_cores_lever,
    xu_lever,
)
from profiler.advice.quantities import QUANTITIES, quantity_text, read_quantity
from profiler.advice.statement import (
    LaunchMetrics,
    MetricInput,
    OpenQuestion,
    SpecificLever,
    all_valid,
)
from profiler.advice.techniques import (
    ATOMICS,
    BANK_CONFLICTS,
    CACHE_HINTS,
    COALESCING,
    DIVERGENCE,
    FEWER_INSTRUCTIONS,
    FUSION,
    GRID_SIZE,
    LOCAL_MEMORY,
    OCCUPANCY,
    OTHER,
    PRECISION,
    REGISTER_TILING,
    SHARED_TILING,
    SYNCHRONISATION,
    TENSOR_CORES,
    VECTORISED,
)
from profiler.advice.track_record import HELPED
from profiler.evidence.gpu_arch import ARCHITECTURES

LEFT_IDLE = "the time (when the busiest unit is idle)"  # what a share is of, in words that follow "of"
BUSY_PCT = 30.0  # of its peak: a unit below it is not what a kernel's time goes into
LIMIT_PCT = 60.0  # of its peak: from here on a unit limits; NVIDIA's own rules say so too
# Throughputs of elapsed time: what a launch with the same work takes at least.
_UNITS = (
    *("sol_compute", "sol_memory", "sol_dram", "sol_l2", "l1_requests", "l1_wavefronts", "issue_slots"),
    *("pipe_fp64", "pipe_fma", "pipe_alu", "pipe_xu", "pipe_lsu", "pipe_adu", "tensor_busy", "l2_atomics"),
)
NEAR_PP = 5.0  # a part this near to the throughput is what makes it: they come from different passes


class Condition(NamedTuple):
    """A bound of a quantity."""

    quantity: str
    at_least: float | None = None
    below: float | None = None

    def holds(self, number: float) -> bool:
        """Whether the number is within the bound."""
        return not (
            (self.at_least is not None and number < self.at_least)
            or (self.below is not None and number >= self.below)
        )


@dataclass(frozen=True)
class Rule:
    """One rule: where all its conditions hold, its lever is advised.

    Every condition's quantity has to be known: without one of its counters a rule asks a question instead.
    """

    id: str
    topic: str  # rules of one topic share a question where counters are missing
    techniques: tuple[str, ...]  # of the vocabulary: what the lever asks for
    when: tuple[Condition, ...]
    finding: str  # `{quantity}` stands for its number with its unit
    lever: str | Callable[[LaunchMetrics], SpecificLever]
    at_stake: str  # the quantity that is the share of time, or a per cent of it
    refuted_by: str
    saves: float = 1.0  # the part of what is at stake that the lever is taken to save, for its rank
    chips: frozenset[str] = frozenset()  # empty: every chip
    asks: bool = True  # whether missing counters leave a question open: not where another rule asks it
    of_time: bool = True  # whether what is at stake is a share of time, not of lanes
    idle: bool = False  # what is at stake is time in which no unit is busy
    leaves_work: bool = False  # the lever leaves the work of every unit: it saves what the busiest one leaves
    of_the_build: bool = False  # in code without optimisation the build makes what it finds, not the source


def at_least(quantity: str, bound: float) -> Condition:
    """The quantity is the bound or more."""
    return Condition(quantity, at_least=bound)


def below(quantity: str, bound: float) -> Condition:
    """The quantity is less than the bound."""
    return Condition(quantity, below=bound)


# L1 is as busy as any unit, or nearly: no other level explains the memory throughput alone.
_L1_BUSIEST = (
    at_least("l1_limit", BUSY_PCT),
    below("l1_below_memory", NEAR_PP),
    at_least("memory_over_compute", -1.0),
)
# Wavefronts a request: accesses of 16 bytes per lane take 4; within a sixteenth of that none is to widen.
_WIDE = 3.75
_NO_SHARED_MEMORY = below("shared_bytes", 1.0)
_SHARED_MEMORY = at_least("shared_bytes", 1.0)
# Nor does one on the SMs that have work: an average over idle SMs hides a unit that is busy on the others.
_NO_UNIT_LIMITS = (
    below("compute", LIMIT_PCT),
    below("memory", LIMIT_PCT),
    below("compute_of_active", LIMIT_PCT),
)
_DRAM_BUSIEST = (at_least("memory_over_compute", 0.0), below("dram_below_memory", NEAR_PP))
# Code of nvcc -G: values are moved before each use, and no instruction is scheduled into another's latency.
DEBUG_BUILD = (at_least("fixed_latency", 8.0), at_least("moves", 0.3))
# Chips of data centres have FP64 at half the rate of FP32, others at a 32nd or a 64th.
_FULL_FP64 = frozenset(name for name, chip in ARCHITECTURES.items() if chip.fp64_operations >= 32)
_SLOW_FP64 = frozenset(ARCHITECTURES) - _FULL_FP64

_DECLARED = (
    # --- the launch: block and grid
    Rule(
        "block:partial",
        "block",
        (OCCUPANCY,),
        (at_least("partial_warp", 0.1),),
        "A block of {block} leaves {partial_warp} of its warps' lanes without a thread.",
        "blocks of a multiple of 32 threads, 128 to 256 to begin with",
        "partial_warp",
        "the time with blocks of 128 threads is the same",
        of_time=False,
    ),
    Rule(
        "grid:small",
        "idle",
        (GRID_SIZE,),
        (at_least("sms_without_a_block", 0.1),),
        "{blocks} for {sms}: {sms_without_a_block} of the SMs have none.",
        MORE_BLOCKS,
        "sms_without_a_block",
        "twice the blocks of half the work take as long",
        idle=True,
        leaves_work=True,
    ),
    Rule(
        "idle:grid",
        "idle",
        (GRID_SIZE,),
        (at_least("idle_sms", 0.1), below("waves", 1.0)),
        "SMs idle {idle_sms} of the time; grid is {waves}.",
        MORE_BLOCKS,
        "idle_sms",
        "twice the blocks of half the work take as long",
        idle=True,
        leaves_work=True,
    ),
    Rule(
        "idle:uneven",
        "idle",
        (GRID_SIZE,),
        (at_least("imbalance", 1.1), at_least("waves", 1.0)),
        "SMs idle {uneven_sms} of the time, waiting for the busiest SM; grid is {waves}.",
        EVEN_BLOCKS,
        "uneven_sms",
        "the time does not move with the order or the size of the blocks",
        asks=False,
        idle=True,
        leaves_work=True,
    ),
    Rule(
        "occupancy:block",
        "occupancy",
        (OCCUPANCY,),
        (*_NO_UNIT_LIMITS, below("occupancy", 50.0), below("waves", 1.0)),
        "Achieved occupancy {occupancy}, {waves}, with compute at {compute} and memory at {memory} of their "
        "peaks.",
        "more warps for the same tile: more threads per block, less work for each",
        "missing_warps",
        "the same tile by twice the threads takes as long",
        idle=True,
        leaves_work=True,
    ),
    Rule(
        "occupancy:room",
        "occupancy",
        (OCCUPANCY,),
        (*_NO_UNIT_LIMITS, below("occupancy_theoretical", 50.1), at_least("waves", 1.0)),
        "Occupancy is {occupancy_theoretical} at most, with compute at {compute} and memory at {memory} of "
        "their peaks.",
        room_lever,
        "room_for_warps",
        "a build with more warps per SM takes as long",
        idle=True,
        leaves_work=True,
    ),
    Rule(
        "launch:short",
        "idle",
        (FUSION,),
        (below("duration", 5000.0), below("waves", 1.0)),
        "The launch takes {duration} with {waves}: to start and end one takes about 2 µs.",
        FUSE_LAUNCHES,
        "launch_overhead",
        "the sequence takes as long without this launch",
        asks=False,
    ),
    Rule(
        "latency:independent",
        "occupancy",
        (REGISTER_TILING,),
        (
            *_NO_UNIT_LIMITS,
            at_least("occupancy", 60.0),
            at_least("waves", 1.0),
            below("l2_atomics", 2.0),
        ),
        "Achieved occupancy {occupancy}, with compute at {compute} and memory at {memory} of their peaks: "
        "more warps would not hide what they wait for.",
        INDEPENDENT_WORK,
        "free_units",
        "two results per thread take twice as long as one",
        0.5,  # two results at a time
        asks=False,
        idle=True,
    ),
    # --- L1's data stage
    Rule(
        "l1:scattered",
        "l1",
        (COALESCING,),
        (*_L1_BUSIEST, at_least("wavefronts_per_request", 8.0), _NO_SHARED_MEMORY),
        "A request to L1 takes {wavefronts_per_request}, where 1 to 4 are normal.",
        "coalesce global accesses: neighbouring lanes at neighbouring addresses",
        "scattered_wavefronts",
        "wavefronts per request fall to 4 and the time stays",
    ),
    Rule(
        "memory:scattered",
        "l1",
        (COALESCING,),
        (
            at_least("memory_over_compute", 0.0),
            at_least("memory", BUSY_PCT),
            at_least("l1_below_memory", NEAR_PP),
            at_least("wavefronts_per_request", 8.0),
            _NO_SHARED_MEMORY,
        ),
        "A request to L1 takes {wavefronts_per_request}, where 1 to 4 are normal, and memory is "
        "busier than compute ({memory} of its peak).",
        "coalesce global accesses: neighbouring lanes at neighbouring addresses",
        "scattered_part",
        "wavefronts per request fall to 4 and the time stays",
    ),
    Rule(
        "l1:scattered_shared",
        "l1",
        (BANK_CONFLICTS, COALESCING),
        (*_L1_BUSIEST, at_least("wavefronts_per_request", 8.0), _SHARED_MEMORY),
        "A request to L1 or shared memory takes {wavefronts_per_request}; 1 to 4 are normal.",
        "mend the scattered access: swizzle or pad the shared-memory tile, coalesce global accesses",
        "scattered_wavefronts",
        "wavefronts per request fall to 4 and the time stays",
        asks=False,
    ),
    Rule(
        "l1:tile",
        "l1",
        (SHARED_TILING,),
        (*_L1_BUSIEST, below("wavefronts_per_request", 8.0), _NO_SHARED_MEMORY),
        "L1 is at {l1_limit} of its peak, no unit is much busier, and no block uses shared memory.",
        SHARED_TILE,
        "l1_limit",
        "each value is used once, so that a tile saves no load",
        31 / 32,  # a tile of 32 values a side
    ),
    Rule(
        "l1:registers",
        "l1",
        (REGISTER_TILING,),
        (*_L1_BUSIEST, below("wavefronts_per_request", 8.0)),
        "L1 is at {l1_limit} of its peak, no unit is much busier: too few operations for each access.",
        THREAD_TILE,
        "l1_limit",
        "the accesses for each result fall and the time does not",
        7 / 8,  # eight results per thread
    ),
    Rule(
        "l1:narrow_shared",
        "l1",
        (VECTORISED,),
        (*_L1_BUSIEST, below("wavefronts_per_request", _WIDE), _SHARED_MEMORY),
        "L1 is at {l1_limit} of its peak, no unit is much busier, with {wavefronts_per_request} a "
        "request: one of 16 bytes per lane takes 4.",
        WIDER_ACCESSES,
        "l1_limit",
        "accesses of 16 bytes per lane take as long",
        3 / 4,  # 16 bytes in place of 4
    ),
    Rule(
        "l1:narrow_global",
        "l1",
        (VECTORISED,),
        (*_L1_BUSIEST, below("wavefronts_per_request", 2.0), _NO_SHARED_MEMORY),
        "L1 is at {l1_limit} of its peak, no unit is much busier, with {wavefronts_per_request} a "
        "request: one of 16 bytes per lane takes 4.",
        WIDER_ACCESSES,
        "l1_limit",
        "accesses of 16 bytes per lane take as long",
        3 / 4,
    ),
    # --- L2 and DRAM
    Rule(
        "dram:in_flight",
        "dram",
        (VECTORISED, REGISTER_TILING),
        (*_DRAM_BUSIEST, at_least("dram", BUSY_PCT), below("dram", 85.0)),
        "DRAM is at {dram} of its peak, no unit is much busier, and good kernels reach 88 to 92 %.",
        MORE_BYTES_IN_FLIGHT,
        "dram_headroom",
        "twice the bytes in flight leave DRAM's throughput where it is",
        idle=True,
        leaves_work=True,
    ),
    Rule(
        "dram:roof",
        "dram",
        (FUSION, PRECISION),
        (*_DRAM_BUSIEST, at_least("dram", 85.0)),
        "DRAM is at {dram} of its peak.",
        LESS_DRAM,
        "dram",
        "the bytes fall and the time does not",
        0.5,  # half the bytes: two passes fused, or two bytes in place of four
    ),
    Rule(
        "l2:limit",
        "l2",
        (SHARED_TILING,),
        (at_least("memory_over_compute", 0.0), at_least("l2", LIMIT_PCT), below("l2_below_memory", 1.0)),
        "L2 is at {l2} of its peak, no unit is much busier.",
        LESS_L2,
        "l2",
        "fewer sectors from L2 take as long",
        0.5,  # a tile of twice the size
    ),
    # --- access patterns
    Rule(
        "sectors",
        "sectors",
        (COALESCING,),
        (at_least("excess_sectors", 0.1), at_least("wait_for_memory", 0.1)),
        "{excess_sectors} of the global sectors are excess, and warps wait for global memory "
        "{wait_for_memory} of their time.",
        "coalesce global accesses: neighbouring lanes at neighbouring addresses",
        "excess_sectors_waited_for",
        "the sectors fall and the time does not",
    ),
    Rule(
        "sectors:limit",
        "sectors",
        (COALESCING,),
        (at_least("excess_sectors", 0.5), at_least("memory", LIMIT_PCT)),
        "{excess_sectors} of the global sectors are excess, with memory at {memory} of its peak.",
        "coalesce global accesses: neighbouring lanes at neighbouring addresses",
        "excess_sectors_at_the_limit",
        "the sectors fall and the time does not",
        asks=False,
    ),
    Rule(
        "shared:excess",
        "shared",
        (BANK_CONFLICTS,),
        (at_least("excess_wavefronts", 0.1), at_least("excess_wavefronts_waited_for", 0.01)),
        "{excess_wavefronts} of the shared-memory wavefronts are excess, by access pattern.",
        SWIZZLE,
        "excess_wavefronts_waited_for",
        "the excess falls and the time does not",
    ),
    Rule(
        "shared:limit",
        "shared",
        (BANK_CONFLICTS,),
        (at_least("excess_wavefronts", 0.1), *_L1_BUSIEST),
        "{excess_wavefronts} of the shared-memory wavefronts are excess, with L1 at {l1_limit} of its peak "
        "and no unit much busier.",
        SWIZZLE,
        "excess_wavefronts_at_the_limit",
        "the excess falls and the time does not",
        asks=False,
    ),
    Rule(
        "shared:exchange",
        "exchange",
        (SHARED_TILING,),
        (at_least("wait_at_barriers", 0.1), at_least("wait_for_loads", 0.3), _NO_SHARED_MEMORY),
        "Warps wait at barriers ({wait_at_barriers}) and for loads ({wait_for_loads}), and no block uses "
        "shared memory: threads exchange values through global memory.",
        SHARED_EXCHANGE,
        "wait_for_loads",
        "no value that another thread stored is loaded again",
        asks=False,
    ),
    Rule(
        "local",
        "local",
        (LOCAL_MEMORY,),
        (at_least("local_sectors", 0.1), at_least("wait_for_memory", 0.1)),
        "{local_sectors} of the local and global sectors are local (spills or local arrays), and warps wait "
        "for memory {wait_for_memory} of their time.",
        LOCAL_ARRAYS,
        "local_sectors_waited_for",
        "the local sectors fall and the time does not",
        of_the_build=True,
    ),
    Rule(
        "local:limit",
        "local",
        (LOCAL_MEMORY,),
        (at_least("local_sectors", 0.1), at_least("memory", LIMIT_PCT)),
        "{local_sectors} of the local and global sectors are local (spills or local arrays), with memory at "
        "{memory} of its peak.",
        LOCAL_ARRAYS,
        "local_sectors_at_the_limit",
        "the local sectors fall and the time does not",
        asks=False,
        of_the_build=True,
    ),
    # --- instructions
    Rule(
        "fp64:slow",
        "pipes",
        (PRECISION,),
        (at_least("compute", 50.0), at_least("fp64", 50.0)),
        "The FP64 pipe is busy for {fp64} of the time; this chip has it at a 32nd of FP32's rate or less.",
        "fp32 where the precision allows it: look for constants and functions that are double by accident",
        "fp64",
        "no double is in the source",
        chips=_SLOW_FP64,
    ),
    Rule(
        "fp64:fewer",
        "pipes",
        (FEWER_INSTRUCTIONS,),
        (at_least("compute", 50.0), at_least("fp64", 50.0)),
        "The FP64 pipe is busy for {fp64} of the time.",
        "fewer FP64 operations: multiply by the reciprocal in place of dividing, hoist what does not change",
        "fp64",
        "fewer FP64 instructions take as long",
        0.9,
    ),
    Rule(
        "fp64:precision",
        "pipes",
        (PRECISION,),
        (at_least("compute", 50.0), at_least("fp64", 50.0)),
        "The FP64 pipe is busy for {fp64} of the time.",
        "fp32 where the precision allows it",
        "fp64",
        "the results are not accurate enough",
        0.5,  # twice the rate
        chips=_FULL_FP64,
    ),
    Rule(
        "issue:slots",
        "issue",
        (FEWER_INSTRUCTIONS,),
        (
            at_least("issue_slots", BUSY_PCT),
            below("issue_below_compute", NEAR_PP),
            below("memory_over_compute", 0.0),
        ),
        "Issue slots are at {issue_slots} of their peak, no unit is much busier.",
        FEWER_INSTRUCTIONS_LEVER,
        "issue_slots",
        "the instructions fall and the time does not",
        of_the_build=True,
    ),
    Rule(
        "tensor:unused",
        "tensor",
        (TENSOR_CORES,),
        (
            below("matrix_instructions", 1.0),
            at_least("multiply_adds", 0.2),
            at_least("fma", 40.0),
            below("dram", LIMIT_PCT),
        ),
        "No tensor-core instruction ran; FFMA and HFMA2 are {multiply_adds} of all, the FMA pipe is busy for "
        "{fma} of the time.",
        lambda metrics: SpecificLever(tensor_cores_lever(metrics.chip)),
        "fma",
        "the multiply-adds are no matrix product",
        0.75,
    ),
    Rule(
        "pipe:alu",
        "pipes",
        (FEWER_INSTRUCTIONS,),
        (at_least("compute", LIMIT_PCT), at_least("alu", LIMIT_PCT)),
        "The ALU pipe is busy for {alu} of the time.",
        "fewer integer, compare and conversion instructions: hoist address arithmetic",
        "alu",
        "fewer integer instructions take as long",
        0.5,
        of_the_build=True,
    ),
    Rule(
        "pipe:xu",
        "xu",
        (FEWER_INSTRUCTIONS,),
        (at_least("compute", LIMIT_PCT), at_least("xu", LIMIT_PCT)),
        "The XU pipe is busy for {xu} of the time.",
        xu_lever,
        "xu",
        "fewer of these instructions take as long",
        0.5,
    ),
    Rule(
        "pipe:fma",
        "pipes",
        (FEWER_INSTRUCTIONS,),
        (at_least("compute", LIMIT_PCT), at_least("fma", LIMIT_PCT)),
        "The FMA pipe is busy for {fma} of the time.",
        "fewer multiply-adds: IMAD of addresses out of the loop, products that are not needed left out",
        "fma",
        "fewer multiply-adds take as long",
        0.5,
        of_the_build=True,
    ),
    Rule(
        "pipe:tensor",
        "pipes",
        (FEWER_INSTRUCTIONS,),
        (at_least("compute", LIMIT_PCT), at_least("tensor", LIMIT_PCT)),
        "The tensor pipe is busy for {tensor} of the time.",
        "skip products that are masked away; fewer tensor instructions are left to save",
        "tensor",
        "no product is masked",
        0.5,
    ),
    Rule(
        "pipe:adu",
        "adu",
        (CACHE_HINTS, SYNCHRONISATION),
        (at_least("compute", LIMIT_PCT), at_least("adu", LIMIT_PCT)),
        "The ADU pipe is busy for {adu} of the time.",
        adu_lever,
        "adu",
        "fewer of these instructions take as long",
    ),
    Rule(
        "atomics",
        "atomics",
        (ATOMICS,),
        (at_least("atomics", 0.01), at_least("wait_for_atomics", 0.3)),
        "{atomics} of the instructions are atomics, and warps wait for stores and loads "
        "{wait_for_atomics} of their time.",
        REDUCE_FIRST,
        "wait_for_atomics",
        "a tenth of the atomics takes as long",
    ),
    Rule(
        "atomics:l2",
        "atomics",
        (ATOMICS,),
        (at_least("l2_atomics", 2.0), *_NO_UNIT_LIMITS),
        "L2 works on atomics for {l2_atomics} of its peak, with compute at {compute} and memory at {memory} "
        "of their peaks.",
        REDUCE_FIRST,
        "free_units",
        "a tenth of the atomics takes as long",
        asks=False,
        idle=True,
    ),
    Rule(
        "divergence",
        "divergence",
        (DIVERGENCE,),
        (at_least("idle_lanes", 0.25),),
        "On average {idle_lanes} of lanes are inactive or predicated off.",
        "keep the lanes of a warp together: bounds outside the loop, rows of one length in a warp",
        "idle_lanes",
        "as many lanes are idle where the branches are gone",
        of_time=False,
    ),
    Rule(
        "debug:local",
        "debug",
        (OTHER,),
        (*DEBUG_BUILD, at_least("local_sectors", 0.5)),
        "{moves} of the instructions are MOV, with {fixed_latency} of fixed latency, and "
        "{local_sectors} of the local and global sectors are local: code without optimisation, whose arrays "
        "stay in local memory.",
        OPTIMISED_BUILD,
        "wait_for_fixed_latency",
        "the kernel was built without -G",
        asks=False,
    ),
)
# Rules on a pipe of an SM, by the pipe.
_OF_PIPES = {
    "fp64:slow": "fp64",
    "fp64:fewer": "fp64",
    "fp64:precision": "fp64",
    "pipe:alu": "alu",
    "pipe:xu": "xu",
    "pipe:fma": "fma",
    "pipe:tensor": "tensor",
    "pipe:adu": "adu",
}


def _where_sms_work(rule: Rule, pipe: str) -> Rule:
    """The rule for a pipe that is busy on the SMs that have work, but not on the average over all of them."""
    (bound,) = (condition.at_least for condition in rule.when if condition.quantity == pipe)
    assert bound is not None
    return replace(
        rule,
        id=f"{rule.id}:active",
        when=(below(pipe, bound), at_least(f"{pipe}_of_active", LIMIT_PCT)),
        finding=f"The {QUANTITIES[pipe].words} is busy for {{{pipe}_of_active}} of the time in which SMs "
        f"have work ({{{pipe}}} over all SMs and the whole time).",
        at_stake=f"{pipe}_of_active",
        asks=False,
    )


RULES = (
    *_DECLARED,
    *(_where_sms_work(rule, _OF_PIPES[rule.id]) for rule in _DECLARED if rule.id in _OF_PIPES),
)
# By the id of the statement: what an optimised build takes away by itself.
OF_THE_BUILD = frozenset({"issue", "waiting:wait", *(rule.id for rule in RULES if rule.of_the_build)})
# What rules that share a topic leave open where counters are missing.
QUESTIONS = {
    "block": "whether warps have a thread in every lane",
    "idle": "whether SMs are idle",
    "occupancy": "whether more warps would hide latency, and what limits them",
    "l1": "how L1 and shared memory are accessed",
    "dram": "how near DRAM is to its peak",
    "l2": "how near L2 is to its peak",
    "sectors": "whether global accesses are coalesced",
    "shared": "whether shared memory is accessed without conflicts",
    "exchange": "whether threads exchange values through global memory",
    "local": "whether local memory is used",
    "pipes": "which arithmetic pipe is busy",
    "xu": "what the XU pipe executes: special functions (exp, rcp), conversions or bit counts",
    "adu": "what the ADU pipe executes: indexed constants, barriers or indirect branches",
    "issue": "whether instructions are the limit",
    "tensor": "whether the tensor cores are used",
    "atomics": "whether atomics are waited for",
    "divergence": "whether warps diverge",
    "debug": "whether the code was optimised",
}


class UnitLoad(NamedTuple):
    """How busy a unit is by a counter of its own."""

    share: float  # of its peak, over the launch's time, 0 to 1
    inputs: tuple[MetricInput, ...]  # its throughput first
    # Whether a launch with the same work takes this share of the time at least. L1's throughput of active
    # time was seen at twice what its parts reach: its peak may be another one.
    is_bound: bool

    @property
    def leaves(self) -> float:
        """The share of time that it leaves: more is not saved while its work stays."""
        return max(1 - self.share, 0.0)


class Advised(NamedTuple):
    """A rule that holds for a launch."""

    rule: Rule
    finding: str
    lever: str
    share: float | None  # of the time, 0 to 1: what it concerns; None where it is no time
    taken: float  # what the lever is taken to save, 0 to 1: its rank
    inputs: tuple[MetricInput, ...]
    at_most: UnitLoad | None = None  # the unit whose work bounds what the lever can save
    share_of: str = ""  # what the share is of, in words that follow "of"


def unit_loads(metrics: LaunchMetrics) -> tuple[UnitLoad, ...]:
    """Every unit's throughput that was counted, over the launch's time; none where no counter says."""
    loads = [
        UnitLoad(min(metric.number / 100, 1.0), (metric,), True)
        for metric in metrics.of(*_UNITS)
        if metric.valid
    ]
    of_active, active, elapsed = inputs = metrics.of("sol_l1", "sm_cycles_active", "cycles")
    if all_valid(inputs) and elapsed.number:
        share = of_active.number / 100 * min(active.number / elapsed.number, 1.0)
        loads.append(UnitLoad(min(share, 1.0), inputs, False))
    return tuple(loads)


def busiest_unit(
    metrics: LaunchMetrics, units: Collection[str] = (), *, for_bound: bool = True
) -> UnitLoad | None:
    """The busiest unit of those that were counted; `for_bound`: whose work bounds the time.

    `units` are the concepts of the throughputs to look at; empty: all.
    """
    loads = [
        load
        for load in unit_loads(metrics)
        if (load.is_bound or not for_bound) and (not units or load.inputs[0].concept in units)
    ]
    return max(loads, default=None, key=lambda load: load.share)


def apply_rule(rule: Rule, metrics: LaunchMetrics) -> Advised | OpenQuestion | None:
    """The advice of a rule, the question that missing counters leave open, or None where it does not hold.

    Where one condition is known not to hold, the missing counters of the others change nothing.
    """
    if rule.chips and metrics.chip not in rule.chips:
        return None
    numbers: dict[str, float] = {}
    inputs: dict[str, MetricInput] = {}
    missing: dict[str, MetricInput] = {}
    named = [condition.quantity for condition in rule.when]
    named += [name for name in QUANTITIES if f"{{{name}}}" in rule.finding]
    for name in dict.fromkeys((*named, rule.at_stake)):
        reading = read_quantity(name, metrics)
        inputs.update((metric.name, metric) for metric in reading.inputs)
        if reading.number is None:
            missing.update((metric.name, metric) for metric in reading.inputs if not metric.valid)
            continue
        numbers[name] = reading.number
    if not all(
        condition.holds(numbers[condition.quantity])
        for condition in rule.when
        if condition.quantity in numbers
    ):
        return None
    if missing:
        return OpenQuestion(rule.topic, QUESTIONS[rule.topic], tuple(missing.values()))
    specific = SpecificLever(rule.lever) if isinstance(rule.lever, str) else rule.lever(metrics)
    if not all_valid(specific.inputs):
        return OpenQuestion(rule.topic, QUESTIONS[rule.topic], specific.inputs)
    inputs.update((metric.name, metric) for metric in specific.inputs)
    stake = min(numbers[rule.at_stake] / (100 if QUANTITIES[rule.at_stake].unit == "%" else 1), 1.0)
    busiest = busiest_unit(metrics, for_bound=False)
    share_of = f"the time ({QUANTITIES[rule.at_stake].words.removeprefix('the time ')})"
    if busiest and rule.idle and busiest.leaves < stake:
        stake, share_of = busiest.leaves, LEFT_IDLE
        inputs.update((metric.name, metric) for metric in busiest.inputs)
    bounding = busiest_unit(metrics) if rule.leaves_work else None
    if bounding:
        inputs.update((metric.name, metric) for metric in bounding.inputs)
    texts = {name: quantity_text(name, number) for name, number in numbers.items()}
    return Advised(
        rule,
        rule.finding.format(**texts),
        specific.lever,
        max(stake, 0.0) if rule.of_time else None,
        max(stake * rule.saves, 0.0),
        tuple(inputs.values()),
        bounding,
        share_of,
    )


def apply_rules(metrics: LaunchMetrics) -> Iterator[Advised | OpenQuestion]:
    """All that the rules say of a launch, and one question a topic for what counters are missing."""
    questions: dict[str, dict[str, MetricInput]] = {}
    for rule in RULES:
        answer = apply_rule(rule, metrics)
        if isinstance(answer, OpenQuestion):
            if not rule.asks:
                continue
            inputs = questions.setdefault(answer.id, {})
            inputs.update((metric.name, metric) for metric in answer.inputs)
        elif answer is not None:
            yield answer
    for topic, missing in questions.items():
        yield OpenQuestion(topic, QUESTIONS[topic], tuple(missing.values()))


def rules_digest(chips: Collection[str]) -> str:
    """A digest of what the rules declare on these chips: it changes with every bound, lever and share."""
    declared = [
        [
            rule.id,
            rule.techniques,
            [tuple(condition) for condition in rule.when],
            rule.lever if isinstance(rule.lever, str) else "made for the launch",
            rule.at_stake,
            rule.saves,
            sorted(rule.chips & set(chips)),
        ]
        for rule in RULES
    ]
    declared.append([(name, quantity.inputs, quantity.unit) for name, quantity in QUANTITIES.items()])
    return _digest(declared)


def record_digest(steps: int, repositories: int, helped: Mapping[str, tuple[int, int]]) -> str:
    """A digest of a track record's numbers, which are counted and never edited."""
    return _digest([steps, repositories, sorted(helped.items())])


def _digest(declared: object) -> str:
    return hashlib.sha256(json.dumps(declared).encode()).hexdigest()[:16]


def known_steps_words(name: str) -> str:
    """`helped in 7 of 9 recorded optimisation steps`, by the id of a statement; or that none tried it."""
    helped, given = HELPED.get(name, (0, 0))
    if not given:
        return "not tried in any recorded optimisation step"
    return f"helped in {helped} of {given} recorded optimisation step{'s' if given != 1 else ''}"
