"""What one instruction of a warp computes and moves, by its text alone, as if all lanes ran it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from profiler.evidence.opcodes import base_opcode, is_matrix_multiply
from profiler.model.pipes import MULTIPLY_ADDS, opcode_of

_LANES = 32
_WARPS_OF_GROUP = 4  # that share the product of a warpgroup
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}  # bytes, by modifier
# Of a lane, as ncu counts them: a multiply-add is two.
_OPERATIONS = {
    **dict.fromkeys(("FADD", "FMUL", "DADD", "DMUL"), 1),
    **dict.fromkeys(("FFMA", "DFMA", "FADD2", "FMUL2", "HADD2", "HMUL2"), 2),
    **dict.fromkeys(("FFMA2", "HFMA2"), 4),
}
_MOVE = re.compile(r"HFMA2\S* U?R\d+, -RZ, RZ, ")  # as ptxas writes a number into a register
_SHAPE = re.compile(r"\.(\d+)x(\d+)x(\d+)")
_SHORT_SHAPE = re.compile(r"\.(\d{3,})")
_MATRICES = re.compile(r"\.M(?:T)?88(?:\.([24]))?$")  # of 8 rows of 16 bytes
_GLOBAL = frozenset(("LDG", "STG", "LDGSTS", "ATOMG", "RED", "REDG"))
_SHARED = frozenset(("LDS", "STS", "LDGSTS", "ATOMS"))
_ANY_SPACE = frozenset(("LD", "ST", "ATOM"))  # where they lead is not in the code
_INTEGER_MATRIX = frozenset(("IMMA", "BMMA", "IGMMA", "BGMMA"))


class Work(NamedTuple):
    """Of a warp; None is what the text does not say."""

    operations: int | None  # of floating point; a multiply-add is two
    global_bytes: int | None  # that its lanes ask for
    shared_bytes: int | None


NO_WORK = Work(None, None, None)  # nothing is known of it


def instruction_work(text: str) -> Work:
    """What an instruction computes and moves: that of `FFMA R1, R2, R3, R4` is 64 operations."""
    opcode = opcode_of(text)
    base = base_opcode(opcode)
    if is_matrix_multiply(opcode):
        # Those of a warpgroup, and of a block's tensor memory, read shared memory by descriptors.
        return Work(_matrix_operations(base, opcode), 0, None if "GMMA" in base or base[0] == "U" else 0)
    if base in _ANY_SPACE or base.startswith(("UTMA", "UBLK")):
        return Work(0, None, None)
    if base in ("LDSM", "STSM"):
        found = _MATRICES.search(opcode)
        return Work(0, 0, 128 * int(found[1] or 1) if found else None)
    if base in _OPERATIONS:
        return Work(0 if _MOVE.search(text) else _LANES * _OPERATIONS[base], 0, 0)
    width = _LANES * access_bytes(opcode)
    return Work(0, width if base in _GLOBAL else 0, width if base in _SHARED else 0)


def access_bytes(opcode: str) -> int:
    """Bytes that an instruction on memory moves for a lane, by its opcode: LDG.E.64 moves 8."""
    return next((_WIDTHS[word] for word in opcode.split(".") if word in _WIDTHS), 4)


def sum_of(works: Mapping[Work, int]) -> Work:
    """Of instructions of these kinds, so many of each; None where that of some is not known."""
    sums: list[int | None] = []
    for field in range(len(Work._fields)):
        parts = [(work[field], count) for work, count in works.items()]
        known = [number * count for number, count in parts if number is not None]
        sums.append(sum(known) if len(known) == len(parts) else None)
    return Work(*sums)


def _matrix_operations(base: str, opcode: str) -> int | None:
    if base in _INTEGER_MATRIX:
        return 0
    if base[0] == "U" or ".SP" in opcode:  # the shape is in a descriptor; half of the products are left out
        return None
    if shape := _SHAPE.search(opcode):
        m, n, k = map(int, shape.groups())
        return 2 * m * n * k // (_WARPS_OF_GROUP if "GMMA" in base else 1)
    short = _SHORT_SHAPE.search(opcode)
    products = MULTIPLY_ADDS.get(short[1]) if short else None
    return None if products is None else 2 * products
