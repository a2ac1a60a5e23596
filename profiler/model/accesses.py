"""What instructions on memory do, and what each access costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from profiler.model.instructions import RZ, URZ, Instruction, Operand
from profiler.model.machine import (
    STACK_BYTES,
    Action,
    Array,
    Lanes,
    Machine,
    Read,
    predicate_reader,
    reader,
    wide_reader,
    writer,
)
from profiler.model.memory import LINE, SECTOR, OutOfBounds, distinct_units, wavefronts

_U32, _U64, _I64 = np.uint32, np.uint64, np.int64


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

    @property
    def conflicts(self) -> int:
        """Wavefronts that another layout would save."""
        return self.wavefronts - self.ideal_wavefronts


Compile = Callable[[Instruction], tuple[Action, AccessCounts]]
# Modifiers of caching, scope and order: they change neither what a lane reads nor what is counted here.
_IGNORED = frozenset(
    ("E", "EF", "EL", "LU", "STRONG", "GPU", "SYS", "CTA", "CONSTANT", "BYPASS", "ACCESS", "LTC128B", "NA")
)


def _width(instruction: Instruction) -> int:
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


def _address(instruction: Instruction, operand: Operand) -> Read:
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

    def address(m: Machine, s: Lanes) -> Array:
        total: Any = offset
        for part in parts:
            total = total + part(m, s)
        return np.broadcast_to(np.asarray(total, _U64), (s.size,))

    return address


def _shared_offsets(instruction: Instruction, m: Machine, s: Lanes, addresses: Array, width: int) -> Array:
    """Where in the machine's shared memory the accesses lie. Raises NoModel outside of the block's."""
    inside = addresses.astype(_U32).astype(_I64)
    if int(inside.max()) + width > m.shared_limit or int(inside.min()) < 0:
        raise instruction.no_model("it leaves the shared memory of its block")
    if (inside % width).any():
        raise instruction.no_model(f"an access of {width} bytes to an address that is no multiple of it")
    return inside + m.block_of[s.index] * m.shared_stride


def _count_shared(counts: AccessCounts, s: Lanes, addresses: Array, width: int) -> None:
    total, ideal = wavefronts(s.lane_warps, s.ids & 31, addresses, width)
    counts.wavefronts += total
    counts.ideal_wavefronts += ideal


def _global_offsets(instruction: Instruction, m: Machine, addresses: Array, width: int) -> Array:
    try:
        return m.memory.offsets(addresses, width)
    except OutOfBounds as error:
        raise instruction.no_model(str(error)) from None


def _count_global(counts: AccessCounts, s: Lanes, offsets: Array, width: int) -> None:
    counts.global_bytes += s.size * width
    counts.sectors += distinct_units(s.lane_warps, offsets, SECTOR)
    counts.lines += distinct_units(s.lane_warps, offsets, LINE)


def _extend(values: Array, instruction: Instruction) -> Array:
    """Narrow values as 32 bits."""
    signed = bool(instruction.modifiers & {"S8", "S16"})
    if values.dtype == np.uint8:
        return values.view(np.int8).astype(np.int32).view(_U32) if signed else values.astype(_U32)
    if values.dtype == np.uint16:
        return values.view(np.int16).astype(np.int32).view(_U32) if signed else values.astype(_U32)
    return values


def _ldg(instruction: Instruction) -> tuple[Action, AccessCounts]:
    destination, source = instruction.operands
    width = _width(instruction)
    address = _address(instruction, source)
    counts = AccessCounts("global", "load", width)
    writes = [writer(instruction, destination, extra) for extra in range(max(1, width // 4))]

    def load(m: Machine, s: Lanes) -> None:
        offsets = _global_offsets(instruction, m, address(m, s), width)
        counts.requests += s.warp_count
        _count_global(counts, s, offsets, width)
        for position, write in enumerate(writes):
            values = m.memory.load(offsets + 4 * position, min(width, 4))
            write(m, s, _extend(values, instruction))

    return load, counts


def _stg(instruction: Instruction) -> tuple[Action, AccessCounts]:
    target, source = instruction.operands
    width = _width(instruction)
    address = _address(instruction, target)
    counts = AccessCounts("global", "store", width)
    reads = [reader(instruction, source, extra) for extra in range(max(1, width // 4))]

    def store(m: Machine, s: Lanes) -> None:
        offsets = _global_offsets(instruction, m, address(m, s), width)
        counts.requests += s.warp_count
        _count_global(counts, s, offsets, width)
        for position, read in enumerate(reads):
            m.memory.store(offsets + 4 * position, min(width, 4), read(m, s))

    return store, counts


def _shared_view(m: Machine, size: int) -> Array:
    return m.shared if size == 1 else m.shared.view(np.uint16 if size == 2 else _U32)


def _lds(instruction: Instruction) -> tuple[Action, AccessCounts]:
    destination, source = instruction.operands
    width = _width(instruction)
    address = _address(instruction, source)
    counts = AccessCounts("shared", "load", width)
    writes = [writer(instruction, destination, extra) for extra in range(max(1, width // 4))]
    size = min(width, 4)

    def load(m: Machine, s: Lanes) -> None:
        addresses = address(m, s)
        offsets = _shared_offsets(instruction, m, s, addresses, width)
        counts.requests += s.warp_count
        _count_shared(counts, s, addresses, width)
        view = _shared_view(m, size)
        for position, write in enumerate(writes):
            write(m, s, _extend(view[offsets // size + position], instruction))

    return load, counts


def _sts(instruction: Instruction) -> tuple[Action, AccessCounts]:
    target, source = instruction.operands
    width = _width(instruction)
    address = _address(instruction, target)
    counts = AccessCounts("shared", "store", width)
    reads = [reader(instruction, source, extra) for extra in range(max(1, width // 4))]
    size = min(width, 4)

    def store(m: Machine, s: Lanes) -> None:
        addresses = address(m, s)
        offsets = _shared_offsets(instruction, m, s, addresses, width)
        counts.requests += s.warp_count
        _count_shared(counts, s, addresses, width)
        view = _shared_view(m, size)
        for position, read in enumerate(reads):
            view[offsets // size + position] = read(m, s)

    return store, counts


def _ldgsts(instruction: Instruction) -> tuple[Action, AccessCounts]:
    """cp.async: from global to shared memory at once; where its predicate is false it writes zeros."""
    target, source, *rest = instruction.operands
    width = _width(instruction)
    to, origin = _address(instruction, target), _address(instruction, source)
    counts = AccessCounts("global", "copy", width)
    if len(rest) > 1:
        raise instruction.no_model("a copy of another form")
    is_read = predicate_reader(instruction, rest[0]) if rest else None

    def copy(m: Machine, s: Lanes) -> None:
        counts.requests += s.warp_count
        addresses = to(m, s)
        offsets = _shared_offsets(instruction, m, s, addresses, width)
        _count_shared(counts, s, addresses, width)
        words = width // 4
        places = offsets[:, None] // 4 + np.arange(words)
        view = m.shared.view(_U32)
        view[places] = 0
        sources = origin(m, s)
        readers = s
        if is_read is not None:
            mask = is_read(m, s)
            if not mask.any():
                return
            readers, sources, places = s.where(mask), sources[mask], places[mask]
        from_offsets = _global_offsets(instruction, m, sources, width)
        _count_global(counts, readers, from_offsets, width)
        for position in range(words):
            view[places[:, position]] = m.memory.load(from_offsets + 4 * position, 4)

    return copy, counts


def _ldsm(instruction: Instruction) -> tuple[Action, AccessCounts]:
    """ldmatrix: 8 x 8 halves each, whose rows eight lanes point to; .MT gives them transposed."""
    unknown = instruction.modifiers - {"16", "M88", "MT88", "2", "4"}
    if unknown:
        raise instruction.no_model(f"modifier {', '.join(sorted(unknown))} is not known")
    matrices = 4 if "4" in instruction.modifiers else 2 if "2" in instruction.modifiers else 1
    transposed = "MT88" in instruction.modifiers
    destination, source = instruction.operands
    address = _address(instruction, source)
    counts = AccessCounts("shared", "load", 16)
    writes = [writer(instruction, destination, extra) for extra in range(matrices)]

    def load(m: Machine, s: Lanes) -> None:
        if not s.are_whole_warps:
            raise instruction.no_model("a part of a warp executes it")
        counts.requests += s.warp_count
        addresses = address(m, s).reshape(-1, 32)[:, : 8 * matrices]
        pointing = Lanes(s.ids.reshape(-1, 32)[:, : 8 * matrices].reshape(-1)) if matrices < 4 else s
        flat = np.ascontiguousarray(addresses).reshape(-1)
        offsets = _shared_offsets(instruction, m, pointing, flat, 16)
        _count_shared(counts, pointing, flat, 16)
        rows = m.shared.view(_U32)[offsets[:, None] // 4 + np.arange(4)]  # [warps * matrices * 8, 4]
        rows = rows.reshape(-1, matrices, 8, 4)
        if transposed:
            halves = np.ascontiguousarray(rows).view(np.uint16).reshape(-1, matrices, 8, 8)
            columns = np.ascontiguousarray(halves.transpose(0, 1, 3, 2))
            rows = columns.reshape(-1, matrices, 64).view(_U32).reshape(-1, matrices, 8, 4)
        for matrix, write in enumerate(writes):
            write(m, s, np.ascontiguousarray(rows[:, matrix]).reshape(-1))

    return load, counts


def _local(instruction: Instruction) -> tuple[Action, AccessCounts]:
    loads = instruction.base == "LDL"
    memory, register = instruction.operands[::-1] if loads else instruction.operands
    width = _width(instruction)
    if width < 4:
        raise instruction.no_model("a part of a word of local memory")
    address = _address(instruction, memory)
    counts = AccessCounts("local", "load" if loads else "store", width)

    words = range(width // 4)
    reads = [] if loads else [reader(instruction, register, extra) for extra in words]
    writes = [writer(instruction, register, extra) for extra in words] if loads else []

    def access(m: Machine, s: Lanes) -> None:
        counts.requests += s.warp_count
        offsets = address(m, s).astype(_I64)
        if int(offsets.max()) + width > STACK_BYTES or int(offsets.min()) < 0:
            raise instruction.no_model("it leaves the local memory of its thread")
        view = m.local.view(_U32)
        for position, write in enumerate(writes):
            write(m, s, view[s.ids, offsets // 4 + position])
        for position, read in enumerate(reads):
            view[s.ids, offsets // 4 + position] = read(m, s)

    return access, counts


ACCESSES: dict[str, Compile] = {
    "LDG": _ldg,
    "STG": _stg,
    "LDS": _lds,
    "STS": _sts,
    "LDGSTS": _ldgsts,
    "LDSM": _ldsm,
    "LDL": _local,
    "STL": _local,
}
