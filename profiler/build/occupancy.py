"""How many blocks of a kernel fit on one SM, by the limits of each architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from profiler.errors import CannotJudge, UnknownName
from profiler.evidence.gpu_arch import ARCHITECTURES, Architecture, arch_number, find_architecture

_MOST_REGISTERS = 255  # that a thread may have
_FEWEST_REGISTERS = 16  # that ptxas limits a thread to
# From which architecture on a kernel's section of shared memory begins with what the system takes.
_RESERVED_SINCE = 90


class Occupancy(NamedTuple):
    """How many blocks of a kernel fit on one SM, and what limits them."""

    blocks: int
    pct: float  # warps resident, per cent of the most that the SM can hold
    limiters: tuple[str, ...]  # every resource that allows no more than `blocks`
    fits: Mapping[str, int]  # how many blocks each resource allows


def occupancy(
    arch: str,
    registers: int,
    threads: int,
    shared_bytes: int,
    tensor_columns: int = 0,
    carveout: int | None = None,
) -> Occupancy:
    """Theoretical occupancy: registers of a thread, threads and static and dynamic shared memory of a block.

    tensor_columns: of tensor memory, that a block allocates. carveout: bytes that the SM's shared memory is
    set to; None for all that it has. Raises CannotJudge for an architecture whose limits are not known here.
    """
    limits = _limits(arch, carveout)
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
    if tensor_columns:
        fits["tensor memory"] = limits.tensor_columns // tensor_columns
    blocks = min(fits.values())
    limiters = tuple(name for name, count in fits.items() if count == blocks)
    return Occupancy(blocks, 100.0 * blocks * warps / limits.max_warps, limiters, fits)


def own_shared_bytes(arch: str, section_bytes: int) -> int:
    """Static shared memory of a block by the size of its section, which may begin with what the system takes.

    Of an architecture whose limits are not known it is that size.
    """
    limits = find_architecture(arch)
    if limits is None or arch_number(limits.name) < _RESERVED_SINCE:
        return section_bytes
    return max(0, section_bytes - limits.reserved_shared_bytes)


def carveout_of(arch: str, asked_kb: int, shared_bytes: int) -> int:
    """Bytes that an SM's shared memory is set to where cudaFuncAttributePreferredSharedMemoryCarveout asks.

    It is a hint: where a block takes more, the driver sets the smallest size that it fits. Raises UnknownName
    for a size that the architecture does not have, CannotJudge as occupancy does.
    """
    limits = _limits(arch)
    if asked_kb not in limits.carveouts_kb:
        sizes = ", ".join(map(str, limits.carveouts_kb))
        words = f"{arch} has no shared memory of {asked_kb} KB: it can be set to {sizes}"
        raise UnknownName(words, option="--carveout")
    needed = _round_up(shared_bytes + limits.reserved_shared_bytes, limits.shared_unit) if shared_bytes else 0
    enough = [size << 10 for size in limits.carveouts_kb if size >= asked_kb and size << 10 >= needed]
    return min(enough, default=limits.shared_bytes)


def no_block_words(
    arch: str,
    registers: int,
    threads: int,
    shared_bytes: int,
    tensor_columns: int = 0,
    carveout: int | None = None,
) -> str:
    """Why no block fits on an SM: `576.0 KiB of shared memory per block, of 227.0 KiB`; "" where one does.

    Raises CannotJudge as occupancy does.
    """
    found = occupancy(arch, registers, threads, shared_bytes, tensor_columns, carveout)
    limits = _limits(arch)
    most_registers = f"{limits.registers // 1024} K registers of an SM"
    words = {
        "warps": f"{threads} threads per block, of {32 * limits.max_warps}",
        "registers": f"{threads} threads with {registers} registers each, of {most_registers}",
        "shared memory": f"{shared_bytes / 1024:.1f} KiB of shared memory per block, of "
        f"{limits.block_shared_bytes / 1024:.1f} KiB",
        "tensor memory": f"{tensor_columns} columns of tensor memory per block, of {limits.tensor_columns}",
    }
    return "; ".join(words[name] for name, blocks in found.fits.items() if not blocks)


@cache
def _limits(arch: str, carveout: int | None = None) -> Architecture:
    limits = find_architecture(arch)
    if limits is None:
        raise CannotJudge(f"the limits of {arch} are not known here: it knows {', '.join(ARCHITECTURES)}")
    return limits if carveout is None else replace(limits, shared_bytes=carveout)


class NextBlock(NamedTuple):
    """What one more block on an SM asks for: registers and shared memory no larger than these."""

    blocks: int  # with the block that is added
    registers_now: int
    registers: int  # at most, of a thread; registers_now where they are few enough
    shared_bytes_now: int
    shared_bytes: int  # at most, of a block, static and dynamic; shared_bytes_now where it is little enough

    @property
    def needs(self) -> str:
        """What must be kept: `at most 128 registers per thread instead of 165`."""
        parts = []
        if self.registers < self.registers_now:
            parts.append(f"at most {self.registers} registers per thread instead of {self.registers_now}")
        if self.shared_bytes < self.shared_bytes_now:
            room, now = self.shared_bytes / 1024, self.shared_bytes_now / 1024
            parts.append(f"at most {room:.1f} KiB of shared memory per block instead of {now:.1f}")
        return " and ".join(parts)

    @property
    def words(self) -> str:
        """What must be saved: `37 fewer registers per thread give 4 blocks on an SM instead of 3`."""
        parts = []
        is_one = self.registers_now - self.registers <= 1
        if fewer := self.registers_now - self.registers:
            parts.append(f"{fewer} fewer register{'s' if fewer > 1 else ''} per thread")
        if less := self.shared_bytes_now - self.shared_bytes:
            amount = f"{less / 1024:.1f} KiB" if less >= 103 else f"{less} bytes"
            parts.append(f"{amount} less shared memory per block")
        give = "gives" if len(parts) == 1 and is_one else "give"
        blocks = f"{self.blocks} block{'s' if self.blocks > 1 else ''}"
        return f"{' and '.join(parts)} {give} {blocks} on an SM instead of {self.blocks - 1}"

    @property
    def is_near(self) -> bool:
        """Whether a quarter less of each is enough: what a change of the code can hope to save."""
        return 4 * self.registers >= 3 * self.registers_now and 4 * self.shared_bytes >= (
            3 * self.shared_bytes_now
        )


def next_block(
    arch: str,
    registers: int,
    threads: int,
    shared_bytes: int,
    tensor_columns: int = 0,
    carveout: int | None = None,
) -> NextBlock | None:
    """What one more block on an SM than now asks for; None where fewer registers and less memory give none.

    Raises CannotJudge as occupancy does.
    """
    now = occupancy(arch, registers, threads, shared_bytes, tensor_columns, carveout)
    more = now.blocks + 1
    if any(now.fits.get(name, more) < more for name in ("warps", "blocks", "tensor memory")):
        return None
    enough = (
        count
        for count in range(registers, _FEWEST_REGISTERS - 1, -1)
        if occupancy(arch, count, threads, 0).fits["registers"] >= more
    )
    most_registers = registers if now.fits["registers"] >= more else next(enough, 0)
    most_shared = shared_bytes
    if now.fits["shared memory"] < more:
        limits = _limits(arch, carveout)
        room = limits.shared_bytes // more // limits.shared_unit * limits.shared_unit
        most_shared = room - limits.reserved_shared_bytes
    if not most_registers or most_shared < 0:
        return None
    return NextBlock(more, registers, most_registers, shared_bytes, most_shared)


class Headroom(NamedTuple):
    """What may be added with as many blocks on an SM as now."""

    registers: int  # of a thread
    shared_bytes: int  # of a block


def headroom(
    arch: str,
    registers: int,
    threads: int,
    shared_bytes: int,
    tensor_columns: int = 0,
    carveout: int | None = None,
) -> Headroom | None:
    """How much a kernel may grow before a block fewer fits on an SM; None where none fits.

    Each of the two with the other as it is. Raises CannotJudge as occupancy does.
    """
    limits = _limits(arch, carveout)
    blocks = occupancy(arch, registers, threads, shared_bytes, tensor_columns, carveout).blocks
    if not blocks:
        return None
    most = registers
    while most < _MOST_REGISTERS and occupancy(arch, most + 1, threads, 0).fits["registers"] >= blocks:
        most += 1
    room = limits.shared_bytes // blocks // limits.shared_unit * limits.shared_unit
    most_shared = min(room - limits.reserved_shared_bytes, limits.block_shared_bytes)
    return Headroom(most - registers, max(0, most_shared - shared_bytes))


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
