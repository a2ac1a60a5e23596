"""What can be done about each reason that warps wait for, and which counters must speak for it."""

from __future__ import annotations

from typing import NamedTuple

from profiler.advice.statement import MOST_PART, LaunchInputs, MetricInput, doubted, valid
from profiler.evidence import find_architecture

SWIZZLE = "swizzle or pad the shared-memory tile"
LESS_DRAM = (
    "move fewer bytes through DRAM: reuse tiles, fuse passes, narrower types; prefetching will not help"
)
LESS_L2 = "ask L2 for less: larger tiles, more reuse in shared memory; prefetching will not help"
MORE_BLOCKS = "more blocks: smaller tiles, or the keys split over several blocks"
EVEN_BLOCKS = "even out the blocks: a persistent grid, smaller blocks, or the longest first"
FEWER_REGISTERS = "fewer live registers: a smaller tile a warp, or another __launch_bounds__"
LESS_SHARED = "smaller tiles or fewer stages in shared memory"
MATRIX = "matrix products on the tensor cores: mma.sync or wgmma"
PEAK_PCT = (
    60.0  # of its peak: from here on a unit limits, below it latency does (NVIDIA's own rules say so too)
)


class StallReason(NamedTuple):
    """One stall reason: what the warps wait for, and what shortens it; "" where nothing is to be done.

    Source: Nsight Compute Profiling Guide, "Warp Stall Reasons".
    """

    means: str
    lever: str


STALL_REASONS = {
    "long_scoreboard": StallReason("data from L1, L2 or DRAM", ""),
    "short_scoreboard": StallReason("shared memory or special functions (exp, rcp)", ""),
    "mio_throttle": StallReason("a full queue to shared memory and special functions", ""),
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
        "the next instruction: a cache miss or a jump", "a smaller loop body: less unrolling, fewer branches"
    ),
    "imc_miss": StallReason(
        "constants and kernel parameters",
        "read constants and parameters once, before the loop",
    ),
    "branch_resolving": StallReason(
        "the target of a branch", "fewer branches in the loop: predicates, loop bounds known"
    ),
    "dispatch_stall": StallReason("the dispatcher", ""),
    "drain": StallReason("stores that drain at the warp's end", "store the result wide and coalesced"),
    "membar": StallReason("a memory fence", "fewer or narrower fences: block scope where that is enough"),
    "sleeping": StallReason("its own sleep", "sleep less: wait on an mbarrier in place of polling"),
    "misc": StallReason("something that ncu does not name", ""),
}
ISSUING_REASONS = ("selected", "not_selected")  # a warp that issues, and one that was ready and passed over


class Advice(NamedTuple):
    """What to do about one cause: the lever or "", what the counters add in words, and which they are.

    Where one of `inputs` is not valid, there is no lever.
    """

    lever: str
    words: str
    inputs: tuple[MetricInput, ...]


def advice_for_stall(reason: str, reading: LaunchInputs) -> Advice:
    """The lever against a stall reason, from the counters that tell its causes apart."""
    if reason == "long_scoreboard":
        return _data(reading)
    if reason in ("short_scoreboard", "mio_throttle"):
        return _shared(reading)
    return Advice(STALL_REASONS[reason].lever if reason in STALL_REASONS else "", "", ())


def _data(reading: LaunchInputs) -> Advice:
    """Waiting for data: latency can be hidden, a unit at its peak cannot."""
    dram, l2 = inputs = reading.of("sol_dram", "sol_l2")
    if not valid(inputs):
        return Advice("", "whether latency or bandwidth is to blame is unknown", inputs)
    busy = f"DRAM at {dram.shown}, L2 at {l2.shown} of their peaks"
    if dram.number >= PEAK_PCT:
        return Advice(LESS_DRAM, busy, inputs)
    if l2.number >= PEAK_PCT:
        return Advice(LESS_L2, busy, inputs)
    architecture = find_architecture(reading.chip)
    if architecture is not None and not architecture.async_copy:
        lever = "ask for data earlier: load the next tile into registers before computing on this one"
    else:
        lever = "ask for data earlier: prefetch the next tile, one more cp.async or TMA stage"
    return Advice(lever, f"{busy}: latency, not bandwidth", inputs)


def _shared(reading: LaunchInputs) -> Advice:
    """Waiting for shared memory: the access pattern is to blame only where its excess says so."""
    excess, every = inputs = reading.of("shared_excess", "shared_wavefronts_source")
    if not valid(inputs):
        return Advice("", "whether the access pattern is to blame is unknown", inputs)
    if excess.number > MOST_PART * every.number:
        return Advice("", "whether the access pattern is to blame is unknown", doubted(*inputs))
    if excess.number > 0:
        share = f" of {every.shown}" if every.number else ""
        words = f"{excess.shown}{share} wavefronts are excess: bank conflicts by access pattern"
        return Advice(SWIZZLE, words, inputs)
    lever = "fewer and wider shared-memory accesses (ldmatrix, 128 bits), or fewer special functions"
    return Advice(lever, "no wavefront is excess: the access pattern is right", inputs)
