"""What the warps wait for at each stall reason, and what can be done about it: one entry a reason.

To add a lever for a stall reason, edit its entry in STALL_REASONS. Where the lever depends on other counters,
the entry names a function that reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from profiler.advice.levers import LESS_DRAM, LESS_L2, PEAK_PCT, SWIZZLE
from profiler.advice.statement import MAX_PART, LaunchMetrics, MetricInput, all_valid, doubted
from profiler.evidence import find_architecture


class Advice(NamedTuple):
    """What to do about one cause. There is no lever where an input is invalid."""

    lever: str = ""  # "" where nothing is to be done, or nobody knows what
    words: str = ""  # what the inputs add to the statement
    inputs: tuple[MetricInput, ...] = ()  # the counters that tell the causes of this stall apart


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
    """A lever only while no unit is at its peak: latency can be hidden, a full unit gives no more."""
    dram, l2 = inputs = metrics.of("sol_dram", "sol_l2")
    if not all_valid(inputs):
        return Advice("", "whether latency or bandwidth is to blame is unknown", inputs)
    busy = f"DRAM at {dram.text}, L2 at {l2.text} of their peaks"
    if dram.number >= PEAK_PCT:
        return Advice(LESS_DRAM, busy, inputs)
    if l2.number >= PEAK_PCT:
        return Advice(LESS_L2, busy, inputs)
    architecture = find_architecture(metrics.chip)
    if architecture is not None and not architecture.async_copy:
        lever = "ask for data earlier: load the next tile into registers before computing on this one"
    else:
        lever = "ask for data earlier: prefetch the next tile, one more cp.async or TMA stage"
    return Advice(lever, f"{busy}: latency, not bandwidth", inputs)


def _wait_for_shared_memory(metrics: LaunchMetrics) -> Advice:
    """The access pattern is to blame only where its excess wavefronts say so."""
    excess, wavefronts = inputs = metrics.of("shared_excess", "shared_wavefronts_source")
    if not all_valid(inputs):
        return Advice("", "whether the access pattern is to blame is unknown", inputs)
    if excess.number > MAX_PART * wavefronts.number:
        return Advice("", "whether the access pattern is to blame is unknown", doubted(*inputs))
    if excess.number > 0:
        share = f" of {wavefronts.count}" if wavefronts.number else ""
        words = f"{excess.count}{share} wavefronts are excess: bank conflicts by access pattern"
        return Advice(SWIZZLE, words, inputs)
    lever = "fewer and wider shared-memory accesses (ldmatrix, 128 bits), or fewer special functions"
    return Advice(lever, "no wavefront is excess: the access pattern is right", inputs)


def _drain_stores(metrics: LaunchMetrics) -> Advice:
    """Atomics drain like stores, and are not made faster by a wider access."""
    atomics, stores = metrics.opcodes("RED", "ATOM", "ATOMG"), metrics.opcodes("STG", "ST")
    inputs = (atomics, stores)
    if not all_valid(inputs):
        return Advice("", "whether stores or atomics drain is unknown", inputs)
    if atomics.number <= stores.number:
        return Advice("store the result wide and coalesced", "", inputs)
    words = f"{atomics.count} atomic instructions beside {stores.count} stores"
    return Advice(
        "fewer atomics: add up in the warp and the block first, then one atomic a block", words, inputs
    )


STALL_REASONS = {
    "long_scoreboard": StallReason("data from L1, L2 or DRAM", _wait_for_data),
    "short_scoreboard": StallReason("shared memory or special functions (exp, rcp)", _wait_for_shared_memory),
    "mio_throttle": StallReason(
        "a full queue to shared memory and special functions", _wait_for_shared_memory
    ),
    "wait": StallReason(
        "the fixed latency of the instruction before",
        "give each warp more independent work: unroll, interleave two tiles, or spend fewer instructions",
    ),
    "barrier": StallReason(
        "the other warps of the block at a barrier",
        "fewer __syncthreads: named barriers, mbarriers or warp specialisation; even out the warps' work",
    ),
    "math_pipe_throttle": StallReason(
        "a busy arithmetic pipe",
        "less work for the busiest pipe: fold constants, drop conversions, move work to another pipe",
    ),
    "gmma": StallReason(
        "wgmma in flight",
        "overlap wgmma with the softmax: two tiles in turn (ping-pong), wait for the older group only",
    ),
    "lg_throttle": StallReason(
        "a full queue to local and global memory", "fewer and wider loads and stores: 128 bits a thread"
    ),
    "tex_throttle": StallReason("a full queue to the texture unit", "fewer texture or surface accesses"),
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
