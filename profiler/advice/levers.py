"""Levers that several rules share, and the share of its peak from which on a unit limits a kernel."""

from __future__ import annotations

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
_TENSOR_CORES = "matrix products on the tensor cores"

# Of its peak, in per cent: from here on a unit limits, below it latency does. NVIDIA's own rules say so too.
PEAK_PCT = 60.0


def tensor_cores_lever(chip: str | None) -> str:
    """A lever against matrix products elsewhere: by the instruction that the chip has, where it is known."""
    architecture = find_architecture(chip)
    return f"{_TENSOR_CORES}: {architecture.matrix_instruction}" if architecture else _TENSOR_CORES


def blocks_lever(waves: float) -> str:
    """A lever against idle SMs: more blocks where there is less than one wave, else full waves."""
    return MORE_BLOCKS if waves < 1 else EVEN_BLOCKS
