"""How many blocks of a kernel fit on one SM, by the limits of each architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from profiler.errors import CannotJudge
from profiler.evidence import ARCHITECTURES, find_architecture


class Occupancy(NamedTuple):
    """What fits on one SM. limiters: every resource that allows no more than `blocks`."""

    blocks: int
    pct: float  # warps resident, per cent of the most the SM can hold
    limiters: tuple[str, ...]
    fits: Mapping[str, int]  # how many blocks each resource allows


def occupancy(arch: str, registers: int, threads: int, shared_bytes: int) -> Occupancy:
    """Theoretical occupancy of blocks of so many threads and bytes of static and dynamic shared memory.

    Raises CannotJudge for an architecture whose limits are not known here.
    """
    limits = find_architecture(arch)
    if limits is None:
        raise CannotJudge(f"the limits of {arch} are not known here: it knows {', '.join(ARCHITECTURES)}")
    warps = -(-threads // 32)
    per_warp = -(-max(registers, 1) * 32 // limits.register_unit) * limits.register_unit
    per_partition = limits.registers // limits.partitions // per_warp
    block_shared = (
        -(-(shared_bytes + limits.reserved_shared_bytes) // limits.shared_unit) * limits.shared_unit
    )
    fits = {
        "warps": limits.max_warps // warps,
        "blocks": limits.max_blocks,
        "registers": per_partition * limits.partitions // warps,
        "shared memory": limits.shared_bytes // block_shared if block_shared else limits.max_blocks,
    }
    blocks = min(fits.values())
    limiters = tuple(name for name, count in fits.items() if count == blocks)
    return Occupancy(blocks, 100.0 * blocks * warps / limits.max_warps, limiters, fits)
