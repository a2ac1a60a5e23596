"""What instructions on memory do, and what each access costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from profiler.model.instructions import RZ, URZ, Instruction, Operand
from profiler.model.machine import (
    CLUSTER_SHIFT,
    STACK_BYTES,
    Action,
    Array,
    BlockState,
    Lanes,
    Read,
    Write,
    predicate_reader,
    reader,
    wide_reader,
    writer,
)
from profiler.model.memory import (
    LINE,
    SECTOR,
    WARP_SHIFT,
    WINDOW_SHIFT,
    OutOfBounds,
    unit_keys,
    wavefronts,
)

_U32, _U64, _I64 = np.uint32, np.uint64, np.int64
_WINDOW = _U64((1 << WINDOW_SHIFT) - 1)  # of a generic address: where in the thread's or block's own memory


@dataclass
class AccessCounts:
    """What one instruction on memory asked for, added over all warps."""

    space: str  # global, shared, local
    kind: str  # load, store, copy: of a copy from global to shared memory both halves count
    width: int  # bytes a lane
    requests: int = 0  # warps that executed it with a lane that took part
    global_bytes: int = 0  # over the lanes
    sectors: int = 0  # of 32 bytes, distinct within a request
    lines: int = 0  # of 128 bytes, distinct within a request
    wavefronts: int = 0  # of shared memory
    ideal_wavefronts: int = 0  # without any conflict
    passes_l1: bool = False  # a load or copy of global memory that L1 keeps nothing of

    @property
    def conflicts(self) -> int:
        """Wavefronts that another layout would save."""
        return self.wavefronts - self.ideal_wavefronts


COUNTED = ("requests", "global_bytes", "sectors", "lines", "wavefronts", "ideal_wavefronts")
_REQUESTS, _BYTES, _SECTORS, _LINES, _WAVEFRONTS, _IDEAL = range(len(COUNTED))


class AccessTally:
    """Counts what one instruction on memory asks for, by block of the machine that executes it.

    Most accesses of a loop are those of the round before, moved: what they cost is then known already.
    """

    def __init__(self, instruction: Instruction, space: str, kind: str, width: int) -> None:
        passes = kind == "copy" and "BYPASS" in instruction.modifiers
        passes |= kind == "load" and bool(instruction.modifiers & {"STRONG", "CV", "NA"})
        self.empty = AccessCounts(space, kind, width, passes_l1=passes and space == "global")
        self.position = -1  # of the instruction in its code
        self.counts = np.zeros((len(COUNTED), 0), np.int64)  # by COUNTED and block
        self._lanes: Lanes | None = None  # of the last access whose cost was computed
        self._addresses = self._keys = np.zeros(0, np.int64)
        self._sectors = np.zeros(0, np.int64)
        self._cost = self.counts
        self._shared_lanes: Lanes | None = None
        self._shared_addresses = self._keys
        self._shared_cost = self.counts

    def start(self, blocks: int) -> None:
        """Forget everything; what is counted next is for so many blocks."""
        self.counts = np.zeros((len(COUNTED), blocks), np.int64)
        self._lanes = self._shared_lanes = None

    def add_requests(self, m: BlockState, s: Lanes) -> None:
        """Count the warps."""
        self.counts[_REQUESTS] += s.per_block(m)[0]

    def add_global(self, m: BlockState, s: Lanes, offsets: Array, width: int) -> None:
        """Count an access of global memory: offsets of the lanes."""
        if m.memory_observer is not None:
            m.memory_observer.memory(self.empty.kind, s, offsets, width, self.position)
        sectors = offsets >> 5
        moved = 0
        is_known = False
        if s is self._lanes:
            distance = sectors - self._sectors
            moved = int(distance[0])
            is_known = moved % (LINE // SECTOR) == 0 and bool((distance == moved).all())
        if not is_known:
            moved = 0
            keys = unit_keys(s.words, sectors)
            lines = keys >> 2
            lines = lines[np.diff(lines, prepend=-1) != 0]
            per_block = m.block_threads // 32
            self._cost = np.stack(
                [
                    s.per_block(m)[1] * width,
                    np.bincount((keys >> WARP_SHIFT) // per_block, minlength=m.blocks),
                    np.bincount((lines >> (WARP_SHIFT - 2)) // per_block, minlength=m.blocks),
                ]
            )
            self._lanes, self._sectors, self._keys = s, sectors, keys
        self.counts[_BYTES : _LINES + 1] += self._cost
        if m.trace is not None:
            m.trace.append((self.position, self._keys, moved))

    def add_shared(self, m: BlockState, s: Lanes, addresses: Array, width: int) -> None:
        """Count an access of shared memory: addresses in the blocks' own."""
        if m.observer is not None:
            m.observer(self.position, self.empty, s.lane_warps, s.ids & 31, addresses)
        if m.memory_observer is not None:
            m.memory_observer.shared(self.empty.kind, s, addresses, width, self.position)
        if s is self._shared_lanes:
            distance = addresses - self._shared_addresses
            if not int(distance[0]) & 3 and (distance == distance[0]).all():
                self.counts[_WAVEFRONTS:] += self._shared_cost
                return
        warps, most = wavefronts(s.lane_warps, s.ids & 31, addresses, width)
        blocks = warps // (m.block_threads // 32)
        self._shared_cost = np.stack(
            [
                np.bincount(blocks, weights=most, minlength=m.blocks).astype(np.int64),
                np.bincount(blocks, minlength=m.blocks),
            ]
        )
        self._shared_lanes, self._shared_addresses = s, addresses
        self.counts[_WAVEFRONTS:] += self._shared_cost


# An access, with or without the values that it moves: its action, and what counts it.
Compile = Callable[[Instruction, bool], tuple[Action, AccessTally]]
# Modifiers of caching, scope and order: they change neither what a lane reads nor what is counted here.
_IGNORED = frozenset(
    ("E", "EF", "EL", "LU", "STRONG", "GPU", "SYS", "CTA", "CONSTANT", "BYPASS", "ACCESS", "LTC128B", "NA")
)


def access_width(instruction: Instruction) -> int:
    """Bytes that a lane reads or writes. Raises NoModel for a modifier that is not known."""
    width = 4
    for modifier in instruction.modifiers - _IGNORED:
        if modifier in ("U8", "S8"):
            width = 1
        elif modifier in ("U16", "S16"):
            width = 2
        elif modifier in ("32", "64", "128"):
            width = int(modifier) // 8
        else:
            raise instruction.no_model(f"modifier {modifier} is not known")
    return width


def address_reader(instruction: Instruction, operand: Operand) -> Read:
    """Reads an address as an unsigned 64-bit integer for each lane."""
    if operand.kind != "memory":
        raise instruction.no_model("its address is no address")
    parts: list[Read] = []
    if operand.base is not None and operand.base != RZ:
        register = Operand("register", operand.base)
        if operand.base_is_wide:
            parts.append(wide_reader(instruction, register))
        else:
            read, scale = reader(instruction, register), _U32(operand.base_scale)
            parts.append(lambda m, s: _U64(read(m, s) * scale))
    if operand.uniform_base is not None and operand.uniform_base != URZ:
        uniform = Operand("uniform", operand.uniform_base)
        if operand.uniform_is_wide:
            parts.append(wide_reader(instruction, uniform))
        else:
            read_uniform = reader(instruction, uniform)
            parts.append(lambda m, s: _U64(read_uniform(m, s)))
    offset = _U64(operand.number & 0xFFFFFFFFFFFFFFFF)

    def address(m: BlockState, s: Lanes) -> Array:
        total: Any = offset
        for part in parts:
            total = total + part(m, s)
        values: Array = total if np.ndim(total) else np.full(s.size, total, _U64)
        return values

    return address


def _shared_addresses(
    instruction: Instruction, m: BlockState, s: Lanes, addresses: Array, width: int
) -> Array:
    """Where in the shared memory of their block the accesses lie. Raises NoModel outside of it."""
    inside = addresses.astype(_U32).astype(_I64)
    if m.cluster_ranks is not None:  # the upper byte says whose of the cluster it is
        if ((inside >> CLUSTER_SHIFT) != m.cluster_ranks[s.index]).any():
            raise instruction.no_model("shared memory of another block of its cluster")
        inside &= (1 << CLUSTER_SHIFT) - 1
    if int(inside.max()) + width > m.shared_limit or int(inside.min()) < 0:
        raise instruction.no_model("it leaves the shared memory of its block")
    if (inside & (width - 1)).any():
        raise instruction.no_model(f"an access of {width} bytes to an address that is no multiple of it")
    return inside


def _global_offsets(instruction: Instruction, m: BlockState, addresses: Array, width: int) -> Array:
    try:
        return m.memory.offsets(addresses, width)
    except OutOfBounds as error:
        raise instruction.no_model(str(error)) from None


def _extend(values: Array, instruction: Instruction) -> Array:
    """Narrow values as 32 bits."""
    signed = bool(instruction.modifiers & {"S8", "S16"})
    if values.dtype == np.uint8:
        return values.view(np.int8).astype(np.int32).view(_U32) if signed else values.astype(_U32)
    if values.dtype == np.uint16:
        return values.view(np.int16).astype(np.int32).view(_U32) if signed else values.astype(_U32)
    return values


def _ldg(instruction: Instruction, moves: bool) -> tuple[Action, AccessTally]:
    destination, source = instruction.operands
    width = access_width(instruction)
    address = address_reader(instruction, source)
    tally = AccessTally(instruction, "global", "load", width)
    writes = [writer(instruction, destination, extra) for extra in range(max(1, width // 4))]

    def load(m: BlockState, s: Lanes) -> None:
        offsets = _global_offsets(instruction, m, address(m, s), width)
        tally.add_requests(m, s)
        tally.add_global(m, s, offsets, width)
        if moves:
            for position, write in enumerate(writes):
                values = m.memory.load(offsets + 4 * position, min(width, 4))
                write(m, s, _extend(values, instruction))

    return load, tally


def _stg(instruction: Instruction, moves: bool) -> tuple[Action, AccessTally]:
    target, source = instruction.operands
    width = access_width(instruction)
    address = address_reader(instruction, target)
    tally = AccessTally(instruction, "global", "store", width)
    words = range(max(1, width // 4)) if moves else ()
    reads = [reader(instruction, source, extra) for extra in words]

    def store(m: BlockState, s: Lanes) -> None:
        offsets = _global_offsets(instruction, m, address(m, s), width)
        tally.add_requests(m, s)
        tally.add_global(m, s, offsets, width)
        for position, read in enumerate(reads):
            m.memory.store(offsets + 4 * position, min(width, 4), read(m, s))

    return store, tally


def _shared_view(m: BlockState, size: int) -> Array:
    return m.shared if size == 1 else m.shared.view(np.uint16 if size == 2 else _U32)


def _lds(instruction: Instruction, moves: bool) -> tuple[Action, AccessTally]:
    destination, source = instruction.operands
    width = access_width(instruction)
    address = address_reader(instruction, source)
    tally = AccessTally(instruction, "shared", "load", width)
    writes = [writer(instruction, destination, extra) for extra in range(max(1, width // 4))]
    size = min(width, 4)

    def load(m: BlockState, s: Lanes) -> None:
        inside = _shared_addresses(instruction, m, s, address(m, s), width)
        tally.add_requests(m, s)
        tally.add_shared(m, s, inside, width)
        if moves:
            places = (inside + m.block_of[s.index] * m.shared_stride) // size
            view = _shared_view(m, size)
            for position, write in enumerate(writes):
                write(m, s, _extend(view[places + position], instruction))

    return load, tally


def _sts(instruction: Instruction, moves: bool) -> tuple[Action, AccessTally]:
    target, source = instruction.operands
    width = access_width(instruction)
    address = address_reader(instruction, target)
    tally = AccessTally(instruction, "shared", "store", width)
    words = range(max(1, width // 4)) if moves else ()
    reads = [reader(instruction, source, extra) for extra in words]
    size = min(width, 4)

    def store(m: BlockState, s: Lanes) -> None:
        inside = _shared_addresses(instruction, m, s, address(m, s), width)
        tally.add_requests(m, s)
        tally.add_shared(m, s, inside, width)
        if moves:
            places = (inside + m.block_of[s.index] * m.shared_stride) // size
            view = _shared_view(m, size)
            for position, read in enumerate(reads):
                view[places + position] = read(m, s)

    return store, tally


def _ldgsts(instruction: Instruction, moves: bool) -> tuple[Action, AccessTally]:
    """cp.async: from global to shared memory at once; where its predicate is false it writes zeros."""
    target, source, *rest = instruction.operands
    width = access_width(instruction)
    to, origin = address_reader(instruction, target), address_reader(instruction, source)
    tally = AccessTally(instruction, "global", "copy", width)
    if len(rest) > 1:
        raise instruction.no_model("a copy of another form")
    is_read = predicate_reader(instruction, rest[0]) if rest else None

    def copy(m: BlockState, s: Lanes) -> None:
        tally.add_requests(m, s)
        inside = _shared_addresses(instruction, m, s, to(m, s), width)
        tally.add_shared(m, s, inside, width)
        words = width // 4
        places = view = inside
        if moves:
            offsets = inside + m.block_of[s.index] * m.shared_stride
            places = offsets[:, None] // 4 + np.arange(words)
            view = m.shared.view(_U32)
            view[places] = 0
        sources = origin(m, s)
        readers = s
        if is_read is not None:
            mask = is_read(m, s)
            if not mask.any():
                return
            if not mask.all():
                readers, sources, places = s.where(mask), sources[mask], places[mask]
        from_offsets = _global_offsets(instruction, m, sources, width)
        tally.add_global(m, readers, from_offsets, width)
        if moves:
            for position in range(words):
                view[places[:, position]] = m.memory.load(from_offsets + 4 * position, 4)

    return copy, tally


def _ldsm(instruction: Instruction, moves: bool) -> tuple[Action, AccessTally]:
    """ldmatrix: 8 x 8 halves each, whose rows eight lanes point to; .MT gives them transposed."""
    unknown = instruction.modifiers - {"16", "M88", "MT88", "2", "4"}
    if unknown:
        raise instruction.no_model(f"modifier {', '.join(sorted(unknown))} is not known")
    matrices = 4 if "4" in instruction.modifiers else 2 if "2" in instruction.modifiers else 1
    transposed = "MT88" in instruction.modifiers
    destination, source = instruction.operands
    address = address_reader(instruction, source)
    tally = AccessTally(instruction, "shared", "load", 16)
    writes = [writer(instruction, destination, extra) for extra in range(matrices)]
    does_point = np.arange(32) < 8 * matrices

    def load(m: BlockState, s: Lanes) -> None:
        if not s.are_whole_warps:
            raise instruction.no_model("a part of a warp executes it")
        tally.add_requests(m, s)
        addresses, pointing = address(m, s), s
        if matrices < 4:
            mask = np.tile(does_point, s.warp_count)
            addresses, pointing = addresses[mask], s.where(mask)
        inside = _shared_addresses(instruction, m, pointing, addresses, 16)
        tally.add_shared(m, pointing, inside, 16)
        if not moves:
            return
        offsets = inside + m.block_of[pointing.index] * m.shared_stride
        rows = m.shared.view(_U32)[offsets[:, None] // 4 + np.arange(4)]  # [warps * matrices * 8, 4]
        rows = rows.reshape(-1, matrices, 8, 4)
        if transposed:
            halves = np.ascontiguousarray(rows).view(np.uint16).reshape(-1, matrices, 8, 8)
            columns = np.ascontiguousarray(halves.transpose(0, 1, 3, 2))
            rows = columns.reshape(-1, matrices, 64).view(_U32).reshape(-1, matrices, 8, 4)
        for matrix, write in enumerate(writes):
            write(m, s, np.ascontiguousarray(rows[:, matrix]).reshape(-1))

    return load, tally


def _local(instruction: Instruction, moves: bool) -> tuple[Action, AccessTally]:
    loads = instruction.base == "LDL"
    memory, register = instruction.operands[::-1] if loads else instruction.operands
    width = access_width(instruction)
    address = address_reader(instruction, memory)
    tally = AccessTally(instruction, "local", "load" if loads else "store", width)
    words = range(max(1, width // 4))
    reads = [reader(instruction, register, extra) for extra in words] if moves and not loads else []
    writes = [writer(instruction, register, extra) for extra in words] if loads else []

    def access(m: BlockState, s: Lanes) -> None:
        tally.add_requests(m, s)
        offsets = _local_offsets(instruction, address(m, s).astype(_I64), width)
        if moves:
            _move_local(instruction, m, s, offsets, width, reads, writes)

    return access, tally


def _local_offsets(instruction: Instruction, offsets: Array, width: int) -> Array:
    """Offsets in the local memory of a thread. Raises NoModel outside of it."""
    if int(offsets.max()) + width > STACK_BYTES or int(offsets.min()) < 0:
        raise instruction.no_model("it leaves the local memory of its thread")
    return offsets


def _move_local(
    instruction: Instruction,
    m: BlockState,
    s: Lanes,
    offsets: Array,
    width: int,
    reads: Sequence[Read],
    writes: Sequence[Write],
) -> None:
    size = min(width, 4)
    view = m.local.view(f"u{size}")
    for position, write in enumerate(writes):
        write(m, s, _extend(view[s.ids, offsets // size + position], instruction))
    for position, read in enumerate(reads):
        view[s.ids, offsets // size + position] = read(m, s)


def _generic(instruction: Instruction, moves: bool) -> tuple[Action, AccessTally]:
    """LD and ST: of each lane local, shared or global memory, as its address says.

    Of local and of shared memory the requests alone are counted.
    """
    loads = instruction.base == "LD"
    memory, register = instruction.operands[::-1] if loads else instruction.operands
    width = access_width(instruction)
    size = min(width, 4)
    address = address_reader(instruction, memory)
    tally = AccessTally(instruction, "global", "load" if loads else "store", width)
    words = range(max(1, width // 4))
    reads = [reader(instruction, register, extra) for extra in words] if moves and not loads else []
    writes = [writer(instruction, register, extra) for extra in words] if loads else []

    def access_global(m: BlockState, s: Lanes, addresses: Array) -> None:
        offsets = _global_offsets(instruction, m, addresses, width)
        tally.add_global(m, s, offsets, width)
        for position, write in enumerate(writes if moves else ()):
            write(m, s, _extend(m.memory.load(offsets + 4 * position, size), instruction))
        for position, read in enumerate(reads):
            m.memory.store(offsets + 4 * position, size, read(m, s))

    def access_local(m: BlockState, s: Lanes, addresses: Array) -> None:
        offsets = _local_offsets(instruction, (addresses & _WINDOW).astype(_I64), width)
        if moves:
            _move_local(instruction, m, s, offsets, width, reads, writes)

    def access_shared(m: BlockState, s: Lanes, addresses: Array) -> None:
        inside = _shared_addresses(instruction, m, s, addresses & _WINDOW, width)
        if m.memory_observer is not None:
            m.memory_observer.shared(tally.empty.kind, s, inside, width, tally.position)
        places = (inside + m.block_of[s.index] * m.shared_stride) // size
        view = _shared_view(m, size)
        for position, write in enumerate(writes if moves else ()):
            write(m, s, _extend(view[places + position], instruction))
        for position, read in enumerate(reads):
            view[places + position] = read(m, s)

    def access(m: BlockState, s: Lanes) -> None:
        tally.add_requests(m, s)
        addresses = address(m, s)
        windows = addresses >> _U64(WINDOW_SHIFT)
        is_local = windows == _U64(m.memory.local_window)
        is_shared = windows == _U64(m.memory.shared_window)
        spaces = (
            (~is_local & ~is_shared, access_global),
            (is_local, access_local),
            (is_shared, access_shared),
        )
        for mask, run in spaces:
            if mask.any():
                run(m, s.where(mask), addresses[mask])

    return access, tally


ACCESSES: dict[str, Compile] = {
    "LDG": _ldg,
    "STG": _stg,
    "LDS": _lds,
    "STS": _sts,
    "LDGSTS": _ldgsts,
    "LDSM": _ldsm,
    "LDL": _local,
    "STL": _local,
    "LD": _generic,
    "ST": _generic,
}
_ANY = frozenset(("global", "shared", "local"))
_G, _S, _L = frozenset(("global",)), frozenset(("shared",)), frozenset(("local",))
# Of which memories each reads values, and into which it writes values.
READS_FROM = {"LDG": _G, "LDGSTS": _G, "LDS": _S, "LDSM": _S, "LDL": _L, "LD": _ANY}
WRITES_TO = {"STG": _G, "LDGSTS": _S, "STS": _S, "STL": _L, "ST": _ANY}
