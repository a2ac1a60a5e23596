"""Instructions as bits: which of them say what an opcode is called, and which only how it is scheduled."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]  # an instruction a row, its low and its high 64 bits

TABLE_FILE = Path(__file__).with_name("opcode_masks.json")
_WHOLE = (1 << 105) - 1  # without the schedule
_LOW = (1 << 64) - 1
OPCODE = np.uint64(0xFFF)
# Odd numbers with bits all over: what a product with them moves up says where two keys differ.
_FACTORS = tuple(np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))


@dataclass(frozen=True)
class OpcodeMasks:
    """Of each opcode of 12 bits which of its 128 bits count, and whether the values of operands do too."""

    by_opcode: Mapping[int, tuple[int, bool]]

    @cached_property
    def low(self) -> NDArray[np.uint64]:
        """The masks of the low 64 bits by opcode; all bits of an opcode that is not in the table."""
        return self._half(0)

    @cached_property
    def high(self) -> NDArray[np.uint64]:
        """Those of the high 64 bits."""
        return self._half(64)

    @cached_property
    def special(self) -> NDArray[np.bool_]:
        """Whether values of operands count, by opcode."""
        return np.array([self.by_opcode.get(code, (0, False))[1] for code in range(4096)], dtype=np.bool_)

    def _half(self, shift: int) -> NDArray[np.uint64]:
        masks = [self.by_opcode.get(code, (_WHOLE, False))[0] for code in range(4096)]
        return np.array([mask >> shift & _LOW for mask in masks], dtype=np.uint64)


_INSTRUCTION_BYTES = 16
_SCHEDULE = np.array([0xFFFFFFFFFFFFFFFF, _WHOLE >> 64], dtype=np.uint64)
# What the linker fills in: an address in 32 bits, of a jump or call the distance behind it too.
_ADDRESS_BITS = np.array([0x00000000FFFFFFFF, 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)
_DISTANCE_BITS = np.array([0x00000000FFFFFFFF, 0xFFFFFFFFFFFC0000], dtype=np.uint64)
_STEERING = 0x940  # of the opcodes of calls and jumps, without their last digit


def unscheduled_words(code: bytes, relocated: Iterable[int] = ()) -> Words:
    """Instructions without their schedule and without what the linker fills in.

    relocated: the offsets in bytes where it does.
    """
    words = np.frombuffer(code, np.uint64).reshape(-1, 2) & _SCHEDULE
    for offset in relocated:
        word = words[offset // _INSTRUCTION_BYTES]
        word &= _DISTANCE_BITS if int(word[0]) & 0xFF0 == _STEERING else _ADDRESS_BITS
    return words


@cache
def load_masks() -> OpcodeMasks:
    """The table that bench/opcode_masks.py wrote."""
    opcodes = json.loads(TABLE_FILE.read_text())["opcodes"]
    return OpcodeMasks(
        {int(code, 16): (int(mask, 16), bool(special)) for code, (mask, special) in opcodes.items()}
    )


def class_keys(words: Words, masks: OpcodeMasks) -> NDArray[np.uint64]:
    """A number for each instruction, equal where opcode and modifiers are."""
    low, high = words[:, 0], words[:, 1]
    codes = (low & OPCODE).astype(np.intp)
    keys = mixed(low & masks.low[codes], high & masks.high[codes])
    some = np.flatnonzero(masks.special[codes])
    keys[some] ^= _values(low[some], high[some]) * _FACTORS[2]
    return keys


def mixed(low: NDArray[np.uint64], high: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Two numbers of 64 bits as one, equal ones for equal pairs."""
    low = low * _FACTORS[0]
    low ^= low >> np.uint64(32)
    high = (high + _FACTORS[1]) * _FACTORS[1]
    high ^= high >> np.uint64(29)
    found: NDArray[np.uint64] = (low ^ high) * _FACTORS[0]
    found ^= found >> np.uint64(31)
    return found


def _values(low: NDArray[np.uint64], high: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """What an opcode may be called after: operands that are the zero register, or 0, 1 or a power of two."""
    found = np.zeros(len(low), dtype=np.uint64)
    place = 0
    for half, at in ((low, 16), (low, 24), (low, 32), (high, 0)):
        for last in (0xFF, 0x3F):
            mask = np.uint64(last)
            found |= ((half >> np.uint64(at) & mask) == mask).astype(np.uint64) << np.uint64(place)
            place += 1
    number = low >> np.uint64(32)
    one = np.uint64(1)
    is_power = (number & (number - one)) == 0
    for is_so in (number == 0, number == one, is_power):
        found |= is_so.astype(np.uint64) << np.uint64(place)
        place += 1
    # Which power it is: nvdisasm calls some of them a shift.
    found |= np.where(is_power, number, np.uint64(0)) << np.uint64(place)
    return found
