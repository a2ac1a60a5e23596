"""What the warps wait for at each stall reason, and what can be done about it: one entry a reason.

To add a lever for a stall reason, edit its entry in STALL_REASONS. Where the lever depends on other counters,
the entry names a function that reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

from profiler.advice.levers import (
    INDEPENDENT_WORK,
    LESS_DRAM,
    LESS_L2,
    MORE_BYTES_IN_FLIGHT,
    REDUCE_FIRST,
    SWIZZLE,
    xu_lever,
)
from profiler.advice.quantities import read_quantity
from profiler.advice.rules import BUSY_PCT, LIMIT_PCT
from profiler.advice.statement import MAX_PART, LaunchMetrics, MetricInput, all_valid, doubted, format_share
from profiler.evidence.gpu_arch import find_architecture
from profiler.evidence.opcodes import XU_OPCODES


class Advice(NamedTuple):
    """What to do about one cause. There is no lever where an input is invalid."""

    lever: str = ""  # "" where nothing is to be done, or nobody knows what
    words: str = ""  # what the inputs add to the statement
    inputs: tuple[MetricInput, ...] = ()  # the counters that tell the causes of this stall apart
    at_most: float = 1.0  # the share of the launch's time that the lever could save, however long warps wait


class StallReason(NamedTuple):
    """One reason for which warps wait.

    Source: Nsight Compute Profiling Guide, "Warp Stall Reasons".
    """

    meaning: str  # what the warps wait for
    lever: str | Callable[[LaunchMetrics], Advice] = ""  # what shortens it; "" where nothing is to be done


def advice_for_stall(reason: str, metrics: LaunchMetrics) -> Advice:
    """The lever against a stall reason, chosen by the counters that tell its causes apart."""
    lever = STALL_REASONS[reason].lever if reason in STALL_REASONS else ""
    return Advice(lever) if isinstance(lever, str) else lever(metrics)


def _wait_for_data(metrics: LaunchMetrics) -> Advice:
    """By how busy DRAM and L2 are: latency can be hidden, a full unit gives no more."""
    dram, l2, memory = inputs = metrics.of("sol_dram", "sol_l2", "sol_memory")
    if not all_valid(inputs):
        return Advice("", "whether latency or bandwidth is to blame is unknown", inputs)
    busy = f"DRAM at {dram.text}, L2 at {l2.text} of their peaks"
    if dram.number >= _DRAM_ROOF_PCT:
        return Advice(LESS_DRAM, busy, inputs)
    if memory.number >= LIMIT_PCT and max(dram.number, l2.number) < memory.number - _NEAR_PP:
        words = f"{busy}, memory at {memory.text}: L1's bandwidth, which earlier loads do not widen"
        return Advice("", words, inputs)
    if dram.number >= BUSY_PCT and dram.number >= l2.number - _NEAR_PP:
        headroom = read_quantity("dram_headroom", metrics).number
        at_most = 1.0 if headroom is None else headroom
        return Advice(MORE_BYTES_IN_FLIGHT, f"{busy}: too few bytes in flight", inputs, at_most)
    if l2.number >= LIMIT_PCT:
        return Advice(LESS_L2, busy, inputs)
    architecture = find_architecture(metrics.chip)
    if metrics.chip is None:
        how = "the next tile while this one is computed, by cp.async where the GPU has it (sm_80 and newer)"
    elif architecture is None or architecture.async_copy:
        how = "the next tile (cp.async) while this one is computed"
    else:
        how = "the next tile into registers before computing on this one"
    lever = f"prefetch: load {how}; several independent loads per thread"
    return Advice(lever, f"{busy}: latency, not bandwidth", inputs)


def _wait_for_shared_memory(metrics: LaunchMetrics) -> Advice:
    """The access pattern is to blame only where its excess wavefronts say so."""
    excess, wavefronts = inputs = metrics.of("shared_excess", "shared_wavefronts_source")
    if not all_valid(inputs):
        return Advice("", "whether the access pattern is to blame is unknown", inputs)
    if excess.number > MAX_PART * wavefronts.number:
        return Advice("", "whether the access pattern is to blame is unknown", doubted(*inputs))
    if wavefronts.number and excess.number >= _EXCESS_SHARE * wavefronts.number:
        words = (
            f"{excess.count} of {wavefronts.count} wavefronts are excess: bank conflicts by access pattern"
        )
        return Advice(SWIZZLE, words, inputs)
    if not wavefronts.number:
        return _wait_for_functions(metrics, inputs)
    lever = "wider shared-memory accesses (ldmatrix, 16 bytes per lane), more results per thread from each"
    return Advice(lever, "the access pattern is right", inputs)


def _wait_for_functions(metrics: LaunchMetrics, shared: tuple[MetricInput, ...]) -> Advice:
    """Where no shared memory is accessed: by what ran on the XU pipe, whose results are waited for alike."""
    every = metrics.opcodes(*chain.from_iterable(XU_OPCODES.values()))
    inputs = (*shared, every)
    if not every.valid:
        return Advice("", "no shared memory is accessed; whether the XU pipe was used is unknown", inputs)
    if not every.number:
        return Advice("", "no shared memory is accessed, and nothing ran on the XU pipe", inputs)
    lever = xu_lever(metrics)
    words = f"{every.count} instructions ran on the XU pipe, and no shared memory is accessed"
    return Advice(lever.lever, words, (*inputs, *lever.inputs))


def _drain_stores(metrics: LaunchMetrics) -> Advice:
    """Atomics drain like stores, and are not made faster by a wider access."""
    atomics, stores = metrics.opcodes("RED", "ATOM", "ATOMG"), metrics.opcodes("STG", "ST")
    inputs = (atomics, stores)
    if not all_valid(inputs):
        return Advice("", "whether stores or atomics drain is unknown", inputs)
    if atomics.number <= stores.number:
        return Advice("store the result wide and coalesced", "", inputs)
    return Advice(REDUCE_FIRST, f"{atomics.count} atomic instructions beside {stores.count} stores", inputs)


def _full_queue_to_memory(metrics: LaunchMetrics) -> Advice:
    """Wider accesses only where the narrow ones are coalesced and no atomics fill the queue."""
    atomics = read_quantity("atomic_accesses", metrics)
    if atomics.number is None:
        return Advice("", "whether atomics fill the queue is unknown", atomics.inputs)
    if atomics.number >= _ATOMIC_SHARE:
        words = f"{format_share(atomics.number)} of the accesses to global memory are atomics"
        return Advice(REDUCE_FIRST, words, atomics.inputs)
    excess = read_quantity("excess_sectors", metrics)
    inputs = (*excess.inputs, *atomics.inputs)
    if excess.number is None:
        return Advice("", "whether the accesses are coalesced is unknown", inputs)
    if excess.number >= _MOSTLY_EXCESS:
        return Advice("", "the accesses are not coalesced", inputs)
    return Advice("wider loads and stores: 16 bytes per lane, fewer of them", "", inputs)


def _full_queue_to_textures(metrics: LaunchMetrics) -> Advice:
    """The queue also takes what is no texture access, FP64 on some chips: advice only where there is one."""
    textures = metrics.opcodes("TEX", "TLD", "TLD4", "TMML", "TXD", "SULD", "SUST", "SURED")
    if not textures.valid:
        return Advice("", "whether textures are accessed is unknown", (textures,))
    lever = "fewer texture or surface accesses" if textures.number else ""
    return Advice(lever, "" if lever else "no texture instruction ran", (textures,))


_DRAM_ROOF_PCT, _NEAR_PP = 85.0, 5.0
_EXCESS_SHARE = 0.1  # of wavefronts: a smaller excess is not what warps wait for
_MOSTLY_EXCESS = 0.5  # of sectors
_ATOMIC_SHARE = 0.1  # of the accesses to global memory: an atomic of a warp to few addresses takes many turns
STALL_REASONS = {
    "long_scoreboard": StallReason("data from L1, L2 or DRAM", _wait_for_data),
    "short_scoreboard": StallReason(
        "shared memory or the XU pipe (special functions, conversions, bit counts)", _wait_for_shared_memory
    ),
    "mio_throttle": StallReason(
        "a full queue to shared memory and special functions", _wait_for_shared_memory
    ),
    "wait": StallReason(
        "the fixed latency of the instruction before",
        INDEPENDENT_WORK,
    ),
    "barrier": StallReason(
        "the other warps of the block at a barrier",
        "fewer barriers: several elements per thread before each __syncthreads, __shfl_sync within a warp",
    ),
    "math_pipe_throttle": StallReason(
        "a busy arithmetic pipe",
        "less work for the busiest pipe: fold constants, drop conversions, move work to another pipe",
    ),
    "gmma": StallReason(
        "wgmma in flight",
        "overlap wgmma with the softmax: two tiles in turn (ping-pong), wait for the older group only",
    ),
    "lg_throttle": StallReason("a full queue to local and global memory", _full_queue_to_memory),
    "tex_throttle": StallReason("a full queue to the texture unit", _full_queue_to_textures),
    "no_instruction": StallReason(
        "the next instruction: a cache miss or a jump",
        "a smaller loop body: less unrolling, fewer branches",
    ),
    "imc_miss": StallReason(
        "constants and kernel parameters", "read constants and parameters once, before the loop"
    ),
    "branch_resolving": StallReason(
        "the target of a branch", "fewer branches in the loop: predicates, loop bounds known"
    ),
    "dispatch_stall": StallReason("the dispatcher"),
    "drain": StallReason("stores and atomics that drain at the warp's end", _drain_stores),
    "membar": StallReason("a memory fence", "fewer or narrower fences: block scope where that is enough"),
    "sleeping": StallReason("its own sleep", "sleep less: wait on an mbarrier in place of polling"),
    "misc": StallReason("something that ncu does not name"),
}
NOT_STALLED = ("selected", "not_selected")  # a warp that issues, and one that was ready and passed over
