"""Levers that several rules share or that depend on the chip and the launch."""

from __future__ import annotations

from collections.abc import Mapping

from profiler.advice.statement import (
    LaunchMetrics,
    MetricInput,
    SpecificLever,
    all_valid,
    doubted,
    format_share,
)
from profiler.build.occupancy import occupancy
from profiler.evidence.gpu_arch import ARCHITECTURES, find_architecture
from profiler.evidence.opcodes import ADU_OPCODES, XU_OPCODES

SWIZZLE = "swizzle or pad the shared-memory tile"
LESS_DRAM = (
    "move fewer bytes through DRAM: fuse passes, narrower types, reuse tiles; prefetching will not help"
)
MORE_BYTES_IN_FLIGHT = "more bytes in flight: 16 bytes per lane (float4), independent elements per thread"
LESS_L2 = "ask L2 for less: larger tiles, more reuse in shared memory; prefetching will not help"
SHARED_TILE = "tile in shared memory: load each value once per block, reuse it from there"
SHARED_EXCHANGE = "exchange values through shared memory (or __shfl_sync within a warp), not through global"
THREAD_TILE = "tile in registers: several results per thread, so that all of them use each loaded value"
WIDER_ACCESSES = "wider accesses: 16 bytes per lane (float4, ldmatrix)"
MORE_BLOCKS = "more blocks: smaller tiles, or the inner dimension split over several blocks (split-K)"
FUSE_LAUNCHES = "do it in the launch before or after, or launch a CUDA graph: this one is mostly overhead"
INDEPENDENT_WORK = (
    "give each warp more independent work: several results per thread, unroll, interleave two tiles"
)
EVEN_BLOCKS = "even out the blocks: a persistent grid, smaller blocks, or the longest first"
FEWER_REGISTERS = "fewer live registers: a smaller tile per warp, or another __launch_bounds__"
LESS_SHARED = "smaller tiles or fewer stages in shared memory"
LARGER_BLOCKS = "larger blocks: more threads in each, since no more blocks fit"
SMALLER_BLOCKS = "smaller blocks: fewer warps in each, so that another one fits"
FEWER_BARRIERS = "fewer named barriers per block"
LOCAL_ARRAYS = "keep arrays in registers: index them with constants only (unroll), fewer live registers"
FEWER_INSTRUCTIONS_LEVER = (
    "fewer instructions: skip work that is not needed, unroll, address arithmetic out of the loop"
)
REDUCE_FIRST = "fewer atomics: reduce in the warp and the block first, then one atomic per block"
SECOND_PRODUCT = "the products that are still scalar on the tensor cores too"
WGMMA = "wgmma on tiles that TMA loads, in place of mma.sync"
IN_REGISTERS = "keep intermediate results in registers: mma.sync and ldmatrix, whose layout is documented"
ONE_MORE_STAGE = "one more stage of asynchronous copies, where shared memory has room for it"
FEWER_FUNCTIONS = (
    "fewer special functions: exp2 on scaled values, one division for many, rsqrt in place of 1/sqrt"
)
FEWER_CONVERSIONS = "fewer conversions: each value in one type throughout, converted once outside the loop"
FEWER_BIT_COUNTS = (
    "fewer bit counts and searches (__popc, __ffs, __clz, __brev): several bits a step, or a table"
)
_OF_XU = dict(zip(XU_OPCODES, (FEWER_FUNCTIONS, FEWER_CONVERSIONS, FEWER_BIT_COUNTS), strict=True))
CONSTANTS_BY_THREAD = "constants that threads index apart in shared memory or registers, not in __constant__"
FEWER_INDIRECT_BRANCHES = (
    "fewer indirect branches: a switch as predicates or selects, no calls through pointers"
)
FEWER_BLOCK_BARRIERS = "fewer barriers: several elements per thread before each __syncthreads"
_OF_ADU = dict(
    zip(ADU_OPCODES, (CONSTANTS_BY_THREAD, FEWER_BLOCK_BARRIERS, FEWER_INDIRECT_BRANCHES), strict=True)
)
OPTIMISED_BUILD = "build without -G (and with -O3): this looks like a debug build"
_TENSOR_CORES = "matrix products on the tensor cores"


def tensor_cores_lever(chip: str | None) -> str:
    """A lever against matrix products elsewhere: by the instruction that the chip has, where it is known."""
    architecture = find_architecture(chip)
    how = f": {architecture.matrix_instruction}" if architecture else ""
    return f"{_TENSOR_CORES}{how} (the precision changes: fp16, bf16 or tf32 operands)"


def xu_lever(metrics: LaunchMetrics) -> SpecificLever:
    """The lever against a busy XU pipe: by which of its instructions ran most; none where no mix says."""
    return _of_what_ran(metrics, XU_OPCODES, _OF_XU)


def adu_lever(metrics: LaunchMetrics) -> SpecificLever:
    """The lever against a busy ADU pipe: by which of its instructions ran most; none where no mix says."""
    return _of_what_ran(metrics, ADU_OPCODES, _OF_ADU)


def _of_what_ran(
    metrics: LaunchMetrics, opcodes: Mapping[str, tuple[str, ...]], levers: Mapping[str, str]
) -> SpecificLever:
    counts = {kind: metrics.opcodes(*names) for kind, names in opcodes.items()}
    inputs = tuple(counts.values())
    if not all_valid(inputs):
        return SpecificLever("", inputs)
    total = sum(count.number for count in inputs)
    if not total:  # of a pipe that was busy
        return SpecificLever("", doubted(*inputs))
    most = max(counts, key=lambda kind: counts[kind].number)
    words = f"{most} are {format_share(counts[most].number / total)} of what the pipe executes"
    return SpecificLever(f"{levers[most]} ({words})", inputs)


def blocks_lever(waves: float) -> str:
    """A lever against idle SMs: more blocks where there is less than one wave, else full waves."""
    return MORE_BLOCKS if waves < 1 else EVEN_BLOCKS


def room_lever(metrics: LaunchMetrics) -> SpecificLever:
    """The lever that makes room for a block more on an SM: by what limits the number of its blocks."""
    limits = block_limits(metrics)
    inputs = tuple(limits.values())
    if not all_valid(inputs):
        return SpecificLever("", inputs)
    # A limit of 0 blocks says that nothing fits, but the launch ran.
    if impossible := doubted(*(limit for limit in inputs if not limit.number)):
        return SpecificLever("", impossible)
    blocks = min(limit.number for limit in inputs)
    binding = [name for name, limit in limits.items() if limit.number == blocks]
    levers = {
        "registers": FEWER_REGISTERS,
        "shared memory": LESS_SHARED,
        "warps": SMALLER_BLOCKS,
        "the number of blocks": LARGER_BLOCKS,
        "barriers": FEWER_BARRIERS,
    }
    lever = "; ".join(levers[name] for name in binding)
    plural = "s" if blocks != 1 else ""
    limit = "limits" if binding in (["the number of blocks"], ["shared memory"]) else "limit"
    words = f"{' and '.join(binding)} {limit} an SM to {blocks:.0f} block{plural}"
    return SpecificLever(f"{lever} ({words})", inputs)


def block_limits(metrics: LaunchMetrics) -> dict[str, MetricInput]:
    """How many blocks fit on an SM, by what limits them."""
    limits = {
        "registers": metrics["limit_registers"],
        "shared memory": metrics["limit_shared"],
        "warps": metrics["limit_warps"],
        "the number of blocks": metrics["limit_blocks"],
    }
    architecture = find_architecture(metrics.chip)
    if architecture is not None and architecture.limits_barriers:
        limits["barriers"] = metrics["limit_barriers"]
    return limits


def next_register_step(metrics: LaunchMetrics) -> tuple[str, tuple[MetricInput, ...]]:
    """The registers per thread with which one more block fits, in words, and what they are computed from.

    "" where registers are not what limits, or the model disagrees with ncu.
    """
    registers, threads, limit = inputs = metrics.of("registers", "block_size", "limit_registers")
    chip = metrics.chip
    if chip not in ARCHITECTURES or not all_valid(inputs):
        return "", ()
    own, block_size = int(registers.number), int(threads.number)
    if occupancy(chip, own, block_size, 0).blocks != limit.number:
        return "", ()
    for fewer in range(own - 1, 0, -1):
        if occupancy(chip, fewer, block_size, 0).blocks > limit.number:
            return f"With {fewer} registers in place of {own} one block more fits.", inputs
    return "", ()
