"""The state of the threads of some blocks: registers, predicates, memory, and which lanes take part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from profiler.model.instructions import PT, RZ, URZ, Instruction, Operand
from profiler.model.memory import WINDOW_SHIFT, GlobalMemory

WARP = 32
Array = NDArray[Any]
Index = slice | NDArray[np.intp]
REGISTERS, UNIFORM_REGISTERS, PREDICATES = 256, 256, 8

CLUSTER_SHIFT = 24  # of a shared address: the block's place in its cluster above it
STACK_BYTES = 0x1000  # of local memory a thread, for as many as its code uses


class Lanes:
    """The threads that an instruction is executed for, and their warps; threads count over all blocks."""

    def __init__(self, ids: NDArray[np.intp]) -> None:
        self.ids = ids
        self.index = _as_slice(ids)
        lane_warps = ids >> 5
        starts = np.flatnonzero(np.diff(lane_warps, prepend=-1))
        self.warp_ids = lane_warps[starts]
        self.warps = _as_slice(self.warp_ids)
        self.lane_warps = lane_warps
        self.first_of_warp = ids[starts]
        self.size = len(ids)
        self.warp_count = len(self.warp_ids)
        self.are_whole_warps = self.size == WARP * self.warp_count
        self._last_mask: Array | None = None
        self._last_selected: Lanes | None = None
        self._per_block: NDArray[np.int64] | None = None

    def where(self, mask: Array) -> Lanes:
        """Those that a mask over these lanes selects; for the mask of the last call the same object."""
        if mask.all():
            return self
        if self._last_mask is None or not np.array_equal(mask, self._last_mask):
            self._last_mask, self._last_selected = mask.copy(), Lanes(self.ids[mask])
        assert self._last_selected is not None
        return self._last_selected

    def per_block(self, machine: BlockState) -> NDArray[np.int64]:
        """How many warps and how many threads they are of each block, [2, blocks]."""
        if self._per_block is None:
            per_block, blocks = machine.block_threads, machine.blocks
            self._per_block = np.stack(
                [
                    np.bincount(self.warp_ids // (per_block // WARP), minlength=blocks),
                    np.bincount(self.ids // per_block, minlength=blocks),
                ]
            )
        return self._per_block

    @cached_property
    def words(self) -> Array:
        """The number of each lane's warp, in the upper bits of a key: see memory.unit_keys."""
        shifted: Array = self.lane_warps.astype(np.int64) << np.int64(44)
        return shifted

    def where_warps(self, mask: Array) -> Lanes:
        """The lanes of the warps that a mask over these warps selects."""
        if mask.all():
            return self
        selected = np.zeros(int(self.warp_ids[-1]) + 1, bool)
        selected[self.warp_ids] = mask
        return Lanes(self.ids[selected[self.lane_warps]])


def _as_slice(ids: NDArray[np.intp]) -> Index:
    """The ids as a slice where they follow each other: reading a slice copies nothing."""
    if len(ids) and ids[-1] - ids[0] + 1 == len(ids):
        return slice(int(ids[0]), int(ids[-1]) + 1)
    return ids


class MemoryObserver(Protocol):
    """Sees the accesses of some blocks in the order in which they are made. Threads count over all blocks."""

    def shared(self, kind: str, s: Lanes, addresses: Array, width: int, position: int) -> None:
        """Lanes access the shared memory of their blocks: addresses in it, bytes a lane."""

    def memory(self, kind: str, s: Lanes, offsets: Array, width: int, position: int) -> None:
        """Lanes access global memory: offsets in GlobalMemory.bytes."""

    def barrier(self, blocks: Array) -> None:
        """The threads of these blocks, [blocks] as bool, have met and go on."""

    def commit_copies(self, s: Lanes) -> None:
        """What was copied so far without a group is one."""

    def wait_copies(self, s: Lanes, keep: int) -> None:
        """The warps go on once all but the last `keep` groups of their copies have landed."""


class BlockState:
    """What the threads of some blocks of a launch have and see."""

    def __init__(
        self,
        blocks: Array,  # [n, 3], the indices x, y, z of each
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        constants: dict[int, bytes],
        known_constants: set[tuple[int, int]],
        memory: GlobalMemory,
        uses_local: bool,
    ) -> None:
        per_block = block[0] * block[1] * block[2]
        padded = -(-per_block // WARP) * WARP  # a block's last warp may not be full
        self.blocks = len(blocks)
        self.block_threads = padded
        threads = self.blocks * padded
        self.threads, self.warps = threads, threads // WARP
        self.R = np.zeros((REGISTERS, threads), np.uint32)
        self.F = self.R.view(np.float32)
        self.P = np.zeros((PREDICATES, threads), bool)
        self.U = np.zeros((UNIFORM_REGISTERS, self.warps), np.uint32)
        self.UP = np.zeros((PREDICATES, self.warps), bool)
        self.P[PT] = self.UP[PT] = True
        self.constants = constants
        self.known_constants = known_constants
        self.memory = memory
        # Sectors of global memory in the order in which they were asked for: the position of the instruction,
        # keys (memory.unit_keys), and what is to be added to them. None: they are not kept.
        self.trace: list[tuple[int, Array, int]] | None = None
        self.observer: Callable[..., None] | None = None  # of accesses to shared memory: see SharedTrace
        # Who is told of every access, of barriers and of copies that are waited for.
        self.memory_observer: MemoryObserver | None = None
        self.cluster_ranks: NDArray[np.int64] | None = None  # of each thread, where there are
        self.shared_stride = -(-shared_bytes // 1024) * 1024
        self.shared_limit = shared_bytes
        self.shared = np.zeros(self.blocks * self.shared_stride, np.uint8)
        self.local = np.zeros((threads, STACK_BYTES if uses_local else 0), np.uint8)
        thread = np.tile(np.arange(padded), self.blocks)
        self.block_of = np.repeat(np.arange(self.blocks), padded)
        self.exists = thread < per_block
        zeros = np.zeros(threads, np.uint32)
        self.special: dict[str, Array] = {
            "SR_TID.X": (thread % block[0]).astype(np.uint32),
            "SR_TID.Y": (thread // block[0] % block[1]).astype(np.uint32),
            "SR_TID.Z": (thread // (block[0] * block[1])).astype(np.uint32),
            "SR_LANEID": (thread % WARP).astype(np.uint32),
            "SR_CTAID.X": np.repeat(blocks[:, 0].astype(np.uint32), padded),
            "SR_CTAID.Y": np.repeat(blocks[:, 1].astype(np.uint32), padded),
            "SR_CTAID.Z": np.repeat(blocks[:, 2].astype(np.uint32), padded),
            "SR_CgaCtaId": zeros,  # a launch without clusters: each block is one of its own
            "SR_SWINHI": np.full(threads, memory.shared_window << WINDOW_SHIFT >> 32, np.uint32),
            "SR_SWINLO": np.full(threads, memory.shared_window << WINDOW_SHIFT & 0xFFFFFFFF, np.uint32),
            "SRZ": zeros,
        }

    def set_cluster(self, sizes: tuple[int, int, int]) -> None:
        """Make the launch one with clusters of so many blocks: each block then knows its place in its own."""
        x, y, z = (self.special[f"SR_CTAID.{axis}"] % size for axis, size in zip("XYZ", sizes, strict=True))
        ranks = x + sizes[0] * (y + sizes[1] * z)
        self.special["SR_CgaCtaId"] = ranks.astype(np.uint32)
        self.cluster_ranks = ranks.astype(np.int64) if max(sizes) > 1 else None

    def constant(self, instruction: Instruction, bank: int, offset: int) -> np.uint32:
        """Four bytes of a constant bank. Raises NoModel for those that nobody knows."""
        content = self.constants.get(bank, b"")
        if offset + 4 > len(content) or (bank == 0 and (bank, offset) not in self.known_constants):
            raise instruction.no_model(f"what c[{bank:#x}][{offset:#x}] holds is not known")
        return np.uint32(int.from_bytes(content[offset : offset + 4], "little"))

    def constants_at(self, instruction: Instruction, bank: int, offsets: Array, width: int = 4) -> Array:
        """Values of 1, 2 or 4 bytes of a constant bank at these offsets. Raises as `constant` does."""
        places, inverse = np.unique(offsets, return_inverse=True)
        if (places % width).any():
            raise instruction.no_model("a constant that is not aligned")
        mask = (1 << 8 * width) - 1
        values = [
            int(self.constant(instruction, bank, int(at) & ~3)) >> 8 * (int(at) % 4) & mask for at in places
        ]
        found: Array = np.array(values, np.uint32)[inverse].reshape(np.shape(offsets))
        return found


@dataclass(frozen=True)
class NotedRegisters:
    """Which registers an instruction reads and writes: the letter of BlockState's array, and the number."""

    reads: set[tuple[str, int]] = field(default_factory=set)
    writes: set[tuple[str, int]] = field(default_factory=set)


# Where the registers are noted for which readers and writers are made; each thread has its own.
_noted: ContextVar[NotedRegisters | None] = ContextVar("noted registers", default=None)


@contextmanager
def noted_registers() -> Iterator[NotedRegisters]:
    """Notes the registers for which readers and writers are made within it."""
    use = NotedRegisters()
    token = _noted.set(use)
    try:
        yield use
    finally:
        _noted.reset(token)


def note_read(file: str, number: int) -> None:
    """For an action that reads a register itself. The registers that are constant do not count."""
    use = _noted.get()
    if use is not None and number < (URZ if file == "U" else PT if file in ("P", "UP") else RZ):
        use.reads.add((file, number))


def note_write(file: str, number: int) -> None:
    """For an action that writes a register itself."""
    use = _noted.get()
    if use is not None:
        use.writes.add((file, number))


Read = Callable[[BlockState, Lanes], Any]
Write = Callable[[BlockState, Lanes, Any], None]
Action = Callable[[BlockState, Lanes], None]

_ZERO = np.uint32(0)


def reader(instruction: Instruction, operand: Operand, extra: int = 0) -> Read:
    """Reads an operand as 32 bits without a type: an array over the lanes, or one value for all of them.

    extra: how many registers behind the one that is named, for the upper parts of wide values.
    """
    if operand.half:
        raise instruction.no_model("a part of a register")
    read = _raw_reader(instruction, operand, extra)
    if operand.negative and operand.kind in ("register", "uniform", "constant"):
        return lambda m, s: _ZERO - read(m, s)
    if operand.inverted and operand.kind in ("register", "uniform", "constant"):
        return lambda m, s: ~read(m, s)
    if operand.absolute:
        return lambda m, s: np.abs(read(m, s).view(np.int32)).view(np.uint32)
    return read


def _raw_reader(instruction: Instruction, operand: Operand, extra: int) -> Read:
    number = operand.number + extra
    if operand.kind == "register":
        if operand.number == RZ:
            return lambda m, s: _ZERO
        note_read("R", number)
        return lambda m, s: m.R[number, s.index]
    if operand.kind == "uniform":
        if operand.number == URZ:
            return lambda m, s: _ZERO
        note_read("U", number)
        if instruction.is_uniform:
            return lambda m, s: m.U[number, s.warps]
        return lambda m, s: m.U[number, s.lane_warps]
    if operand.kind == "constant":
        bank, offset = operand.bank, operand.number + 4 * extra
        if operand.base is not None or operand.uniform_base is not None:
            return indexed_constant_reader(instruction, operand, offset)
        return lambda m, s: m.constant(instruction, bank, offset)
    if operand.kind == "number" and operand.value is None:
        bits = np.uint32((operand.number >> (32 * extra)) & 0xFFFFFFFF)
        return lambda m, s: bits
    if operand.kind == "number":
        float_bits = np.uint32(operand.float_bits)
        return lambda m, s: float_bits
    raise instruction.no_model("an operand cannot be read")


def indexed_constant_reader(instruction: Instruction, operand: Operand, offset: int, width: int = 4) -> Read:
    """Reads 1, 2 or 4 bytes of a constant bank at a distance that a register has."""
    if operand.base is not None:
        distance = reader(instruction, Operand("register", operand.base))
    else:
        distance = reader(instruction, Operand("uniform", operand.uniform_base or 0))

    def read(m: BlockState, s: Lanes) -> Any:
        places = (distance(m, s) + np.uint32(offset & 0xFFFFFFFF)).astype(np.int64)
        return m.constants_at(instruction, operand.bank, places, width)

    return read


def float_reader(instruction: Instruction, operand: Operand) -> Read:
    """Reads an operand as fp32, with its sign and absolute value."""
    if operand.kind == "number":
        # A whole number in an instruction on fp32 is written without a point: -126.
        value = np.float32(
            operand.value
            if operand.value is not None
            else np.uint32(operand.number & 0xFFFFFFFF).view(np.float32)
        )
        return lambda m, s: value
    if operand.half:
        raise instruction.no_model("a part of a register")
    raw = _raw_reader(instruction, operand, 0)
    negative, absolute = operand.negative, operand.absolute

    def read(m: BlockState, s: Lanes) -> Any:
        value = raw(m, s).view(np.float32)
        if absolute:
            value = np.abs(value)
        return -value if negative else value

    return read


def wide_reader(instruction: Instruction, operand: Operand) -> Read:
    """Reads an operand of two registers as an unsigned 64-bit integer."""
    if operand.kind == "number":
        number = np.uint64(operand.number & 0xFFFFFFFFFFFFFFFF)
        return lambda m, s: number
    low, high = _raw_reader(instruction, operand, 0), _raw_reader(instruction, operand, 1)
    negative = operand.negative

    def read(m: BlockState, s: Lanes) -> Any:
        value = np.uint64(low(m, s)) | np.uint64(high(m, s)) << np.uint64(32)
        return np.uint64(0) - value if negative else value

    return read


def predicate_reader(instruction: Instruction, operand: Operand) -> Read:
    """Reads a predicate as an array over the lanes, or over the warps for a uniform instruction."""
    number, inverted = operand.number, operand.inverted
    if operand.kind == "predicate":
        if instruction.is_uniform:
            raise instruction.no_model("a uniform instruction reads a predicate of lanes")
        note_read("P", number)
        return lambda m, s: m.P[number, s.index] ^ inverted
    if operand.kind != "uniform predicate":
        raise instruction.no_model("a predicate is expected")
    note_read("UP", number)
    if instruction.is_uniform:
        return lambda m, s: m.UP[number, s.warps] ^ inverted
    return lambda m, s: m.UP[number, s.lane_warps] ^ inverted


def writer(instruction: Instruction, operand: Operand, extra: int = 0) -> Write:
    """Writes 32 bits into a register; what is written into the zero register is gone."""
    number = operand.number + extra
    if operand.kind == "register":
        if operand.number == RZ:
            return lambda m, s, value: None
        note_write("R", number)

        def write(m: BlockState, s: Lanes, value: Any) -> None:
            m.R[number, s.index] = value

        return write
    if operand.kind == "uniform":
        if operand.number == URZ:
            return lambda m, s, value: None
        note_write("U", number)

        def write_uniform(m: BlockState, s: Lanes, value: Any) -> None:
            m.U[number, s.warps] = value

        return write_uniform
    raise instruction.no_model("the result goes to an operand that cannot be written")


def float_writer(instruction: Instruction, operand: Operand) -> Write:
    """Writes fp32 values into a register."""
    if operand.kind != "register":
        raise instruction.no_model("the result goes to an operand that cannot be written")
    number = operand.number
    if number == RZ:
        return lambda m, s, value: None
    note_write("R", number)

    def write(m: BlockState, s: Lanes, value: Any) -> None:
        m.F[number, s.index] = value

    return write


def wide_writer(instruction: Instruction, operand: Operand) -> Write:
    """Writes a 64-bit integer into two registers."""
    low, high = writer(instruction, operand), writer(instruction, operand, 1)

    def write(m: BlockState, s: Lanes, value: Any) -> None:
        low(m, s, (value & np.uint64(0xFFFFFFFF)).astype(np.uint32))
        high(m, s, (value >> np.uint64(32)).astype(np.uint32))

    return write


def predicate_writer(instruction: Instruction, operand: Operand) -> Write:
    """Writes a predicate; what is written into the one that is always true is gone."""
    number = operand.number
    if number == PT:
        return lambda m, s, value: None
    if operand.kind == "predicate":
        note_write("P", number)

        def write(m: BlockState, s: Lanes, value: Any) -> None:
            m.P[number, s.index] = value

        return write
    if operand.kind == "uniform predicate" and instruction.is_uniform:
        note_write("UP", number)

        def write_uniform(m: BlockState, s: Lanes, value: Any) -> None:
            m.UP[number, s.warps] = value

        return write_uniform
    raise instruction.no_model("a predicate is written that cannot be")
