"""How many blocks of a kernel fit on one SM, by the limits of each architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from profiler.errors import CannotJudge
from profiler.evidence import ARCHITECTURES, find_architecture


class Occupancy(NamedTuple):
    """How many blocks of a kernel fit on one SM, and what limits them."""

    blocks: int
    pct: float  # warps resident, per cent of the most that the SM can hold
    limiters: tuple[str, ...]  # every resource that allows no more than `blocks`
    fits: Mapping[str, int]  # how many blocks each resource allows


def occupancy(arch: str, registers: int, threads: int, shared_bytes: int) -> Occupancy:
    """Theoretical occupancy: registers of a thread, threads and static and dynamic shared memory of a block.

    Raises CannotJudge for an architecture whose limits are not known here.
    """
    limits = find_architecture(arch)
    if limits is None:
        raise CannotJudge(f"the limits of {arch} are not known here: it knows {', '.join(ARCHITECTURES)}")
    warps = -(-threads // 32)
    registers_of_warp = _round_up(max(registers, 1) * 32, limits.register_unit)
    warps_of_partition = limits.registers // limits.partitions // registers_of_warp
    shared_of_block = _round_up(shared_bytes + limits.reserved_shared_bytes, limits.shared_unit)
    fits = {
        "warps": limits.max_warps // warps,
        "blocks": limits.max_blocks,
        "registers": warps_of_partition * limits.partitions // warps,
        "shared memory": limits.shared_bytes // shared_of_block if shared_of_block else limits.max_blocks,
    }
    blocks = min(fits.values())
    limiters = tuple(name for name, count in fits.items() if count == blocks)
    return Occupancy(blocks, 100.0 * blocks * warps / limits.max_warps, limiters, fits)


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
