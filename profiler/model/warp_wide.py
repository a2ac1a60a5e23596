"""Instructions in which the lanes of a warp work together: shuffles, votes, matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from profiler.model.instructions import RZ, Instruction
from profiler.model.machine import (
    Action,
    Array,
    BlockState,
    Lanes,
    note_read,
    note_write,
    predicate_writer,
    reader,
    writer,
)

Compile = Callable[[Instruction], Action]


def _shfl(instruction: Instruction) -> Action:
    """Source of how lanes and segments are found: PTX ISA, shfl.sync."""
    modes = instruction.modifiers & {"BFLY", "IDX", "UP", "DOWN"}
    if len(modes) != 1 or len(instruction.operands) != 5:
        raise instruction.no_model("a shuffle of another form")
    mode = next(iter(modes))
    valid, destination, source, lane, clamp = instruction.operands
    if source.kind != "register":
        raise instruction.no_model("a shuffle of another form")
    read_lane, read_clamp = reader(instruction, lane), reader(instruction, clamp)
    note_read("R", source.number)
    write, write_valid = writer(instruction, destination), predicate_writer(instruction, valid)

    def shuffle(m: BlockState, s: Lanes) -> None:
        own = (s.ids & 31).astype(np.int64)
        b = np.asarray(read_lane(m, s)).astype(np.int64) & 31
        c = np.asarray(read_clamp(m, s)).astype(np.int64)
        limit, segment = c & 31, c >> 8 & 31
        most = (own & segment) | (limit & ~segment)
        if mode == "BFLY":
            chosen = own ^ b
        elif mode == "IDX":
            chosen = (own & segment) | (b & ~segment)
        else:
            chosen = own - b if mode == "UP" else own + b
        inside = chosen >= most if mode == "UP" else chosen <= most
        chosen = np.where(inside, chosen, own)
        if source.number != RZ:
            values = m.R[source.number, (s.ids & ~31) + chosen]
            write(m, s, values)
        else:
            write(m, s, np.uint32(0))
        write_valid(m, s, inside)

    return shuffle


def _vote(instruction: Instruction) -> Action:
    """VOTE and VOTEU: which lanes have a predicate, and whether all or any do."""
    modes = instruction.modifiers - {"U"}
    if len(modes) != 1 or not modes <= {"ALL", "ANY", "EQ"}:
        raise instruction.no_model("a vote of another form")
    operands = list(instruction.operands)
    ballot = next((o for o in operands[:2] if o.kind in ("register", "uniform")), None)
    written = next((o for o in operands[:-1] if "predicate" in o.kind), None)
    source = operands[-1]
    number, inverted = source.number, source.inverted
    if source.kind != "predicate":
        raise instruction.no_model("a vote of another form")
    note_read("P", number)
    write = writer(instruction, ballot) if ballot else None
    write_predicate = predicate_writer(instruction, written) if written else None
    mode = next(iter(modes))

    def vote(m: BlockState, s: Lanes) -> None:
        mine = m.P[number, s.index] ^ inverted
        bits = np.zeros((m.warps, 32), bool)
        bits[s.lane_warps, s.ids & 31] = mine
        active = np.zeros((m.warps, 32), bool)
        active[s.lane_warps, s.ids & 31] = True
        masks = np.packbits(bits[s.warp_ids], axis=1, bitorder="little").view(np.uint32).reshape(-1)
        full = np.packbits(active[s.warp_ids], axis=1, bitorder="little").view(np.uint32).reshape(-1)
        if mode == "ALL":
            result = masks == full
        elif mode == "ANY":
            result = masks != 0
        else:
            result = (masks == full) | (masks == 0)
        per_warp = instruction.is_uniform or instruction.base == "VOTEU"
        spread = np.searchsorted(s.warp_ids, s.lane_warps)
        if write:
            write(m, s, masks if per_warp else masks[spread])
        if write_predicate:
            write_predicate(m, s, result if per_warp else result[spread])

    return vote


def _half_matrix(m: BlockState, register: int, s: Lanes) -> Array:
    """A register as 8 x 8 halves a warp: a row is four lanes, of which each holds two. fp32."""
    if register >= RZ:
        return np.zeros((s.warp_count, 8, 8), np.float32)
    bits = np.ascontiguousarray(m.R[register, s.index])
    return bits.view(np.float16).reshape(-1, 8, 8).astype(np.float32)


def _hmma(instruction: Instruction) -> Action:
    """mma.sync on halves with sums in fp32. Layout: PTX ISA, "Matrix Fragments for mma.m16n8k16"."""
    shapes = instruction.modifiers & {"16816", "1688"}
    if len(shapes) != 1 or instruction.modifiers - shapes != {"F32"}:
        raise instruction.no_model("a matrix product of another form")
    if any(o.kind != "register" or o.negative for o in instruction.operands):
        raise instruction.no_model("a matrix product of another form")
    d, a, b, c = (operand.number for operand in instruction.operands)
    deep = "16816" in shapes
    for first, count in ((a, 4 if deep else 2), (b, 2 if deep else 1), (c, 4)):
        for number in range(first, first + count):
            if first != RZ:
                note_read("R", number)
    for number in range(d, d + 4):
        if d != RZ:
            note_write("R", number)

    def part(register: int, position: int) -> int:
        return RZ if register == RZ else register + position

    def multiply(m: BlockState, s: Lanes) -> None:
        if not s.are_whole_warps:
            raise instruction.no_model("a part of a warp executes it")
        steps = 2 if deep else 1
        top = [_half_matrix(m, part(a, 2 * step), s) for step in range(steps)]
        bottom = [_half_matrix(m, part(a, 2 * step + 1), s) for step in range(steps)]
        columns = [_half_matrix(m, part(b, step), s) for step in range(steps)]
        left = np.concatenate(
            [np.concatenate(top, axis=2), np.concatenate(bottom, axis=2)], axis=1
        )  # [warps, 16 rows, k]
        right = np.concatenate(columns, axis=2).transpose(0, 2, 1)  # [warps, k, 8 columns]
        product = np.matmul(left, right)
        for row in range(2):
            # A lane's two sums of a row stand beside each other: [warps, 8 rows, 4 lanes, 2].
            pairs = product[:, 8 * row : 8 * row + 8].reshape(-1, 2)
            for column in range(2):
                number = 2 * row + column
                added: Any = m.F[c + number, s.index] if c != RZ else np.float32(0)
                if d != RZ:
                    m.F[d + number, s.index] = pairs[:, column] + added

    return multiply


WARP_WIDE: dict[str, Compile] = {
    "SHFL": _shfl,
    **dict.fromkeys(("VOTE", "VOTEU"), _vote),
    "HMMA": _hmma,
}
