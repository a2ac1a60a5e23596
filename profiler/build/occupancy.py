"""How many blocks of a kernel fit on one SM, by the limits of each architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from profiler.errors import CannotJudge


class Limits(NamedTuple):
    """One SM's limits.

    Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
    """

    warps: int
    blocks: int
    shared_bytes: int
    reserved_bytes: int  # shared memory that the system takes from each block
    shared_unit: int = 128
    registers: int = 65536
    register_unit: int = 256  # registers are given to a warp in such steps
    warp_unit: int = 4  # warps are spread over four sub-partitions


LIMITS = {
    "sm_70": Limits(64, 32, 96 << 10, 0, 256),
    "sm_75": Limits(32, 16, 64 << 10, 0, 256),
    "sm_80": Limits(64, 32, 164 << 10, 1024),
    "sm_86": Limits(48, 16, 100 << 10, 1024),
    "sm_89": Limits(48, 24, 100 << 10, 1024),
    "sm_90": Limits(64, 32, 228 << 10, 1024),
    "sm_100": Limits(64, 32, 228 << 10, 1024),
    "sm_120": Limits(48, 24, 100 << 10, 1024),
}


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
    limits = LIMITS.get(arch.rstrip("af"))
    if limits is None:
        raise CannotJudge(f"the limits of {arch} are not known here: it knows {', '.join(LIMITS)}")
    warps = -(-threads // 32)
    per_warp = -(-max(registers, 1) * 32 // limits.register_unit) * limits.register_unit
    per_partition = limits.registers // limits.warp_unit // per_warp
    block_shared = -(-(shared_bytes + limits.reserved_bytes) // limits.shared_unit) * limits.shared_unit
    fits = {
        "warps": limits.warps // warps,
        "blocks": limits.blocks,
        "registers": per_partition * limits.warp_unit // warps,
        "shared memory": limits.shared_bytes // block_shared if block_shared else limits.blocks,
    }
    blocks = min(fits.values())
    limiters = tuple(name for name, count in fits.items() if count == blocks)
    return Occupancy(blocks, 100.0 * blocks * warps / limits.warps, limiters, fits)
