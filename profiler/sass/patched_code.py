"""Two functions that differ in few instructions: what that means, from the text of what it touches alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from profiler.sass.binary_functions import BinaryFunction, FunctionPair
from profiler.sass.code_words import INSTRUCTION_BYTES, PADDING, CodeReader, FunctionCounts
from profiler.sass.listing import CALL_SETUP, is_flow
from profiler.sass.opcode_classes import OPCODE, Words, unscheduled_words
from profiler.sass.register_operands import most_registers
from profiler.sass.value_flow import (
    HASH,
    InstructionFlow,
    Numbers,
    ValueFlow,
    first_colours,
    instruction_flow,
    value_flow,
)

# An instruction as InstructionFlow.form has it, the symbol whose address the linker fills in, its depth.
Form = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], str | None, int]
_MOST_PATCHED = 4  # one instruction in so many
_NARROW = 4  # registers of one group: of wider ones every instruction is read
_UNIFORM = 1 << 8  # registers of a kind that have this bit are uniform
_PREDICATES = 2 << 8  # from here on: they stand in other bits
# Where in the low and the high 64 bits the number of a register stands; of a uniform one in six bits of them.
_LOW_FIELDS, _HIGH_FIELDS = (16, 24, 32), (0,)
# Opcodes that may touch more than their fields say: calls and returns; those with fields elsewhere, by what
# nvdisasm prints of 500,000 different instructions of each architecture from sm_80 to sm_120.
_ALWAYS = ("CALL", "RET", "UT", "UBLK", "UGETNEXTWORKID", "OMMA", "QMMA")


@dataclass(frozen=True)
class Patch:
    """What two functions differ in, that have the same opcodes at the same places."""

    only_a: Counter[Form]  # what one side has more of
    only_b: Counter[Form]
    # Where both have the same forms:
    is_same_text: bool = False
    depth: int | None = None  # of the deepest instruction that computes from others; None where none does


def read_patches(
    reader: CodeReader, sides: Sequence[tuple[FunctionCounts, FunctionCounts]]
) -> list[Patch | None]:
    """The difference of pairs of functions with the same counts of opcodes; None where all has to be read."""
    found: list[Patch | None] = [None] * len(sides)
    aligned = [
        (place, _Aligned(a, b))
        for place, (a, b) in enumerate(sides)
        if len(a.kinds) == len(b.kinds) and a.graph == b.graph
    ]
    aligned = [(place, one) for place, one in aligned if one.is_patched]
    texts = _texts(reader, [words[one.places] for _, one in aligned for words in one.words])
    rest = []
    for (place, one), a, b in zip(aligned, texts[::2], texts[1::2], strict=True):
        if not one.take((a, b)):
            continue
        only_a, only_b = one.forms()
        if only_a or only_b:
            found[place] = Patch(only_a, only_b)
        elif (registers := one.registers()) is not None:
            rest.append((place, one, registers, one.touching(registers)))
    texts = _texts(reader, [one.words[0][positions] for _, one, _, positions in rest])
    for (place, one, registers, positions), some in zip(rest, texts, strict=True):
        found[place] = one.patch(registers, positions, some)
    return found


def patched_words(pairs: Iterable[FunctionPair]) -> Words:
    """The instructions of both sides in which pairs of functions differ whose opcodes are the same.

    Of most of them read_patches asks for the text.
    """
    found = [np.empty((0, 2), dtype=np.uint64)]
    for pair in pairs:
        if pair.a and pair.b and len(pair.a.code.code) == len(pair.b.code.code):
            a, b = _words(pair.a), _words(pair.b)
            places = _differing(a, b)
            a, b = a[places], b[places]
            is_patched = len(places) * _MOST_PATCHED <= pair.a.instructions
            if is_patched and not ((a[:, 0] ^ b[:, 0]) & OPCODE).any():
                found += [a, b]
    return np.concatenate(found)


def _texts(reader: CodeReader, words: Sequence[Words]) -> list[list[str | None]]:
    together = reader.texts(np.concatenate([np.empty((0, 2), dtype=np.uint64), *words]))
    ends = np.cumsum([len(some) for some in words]).tolist()
    return [together[end - len(some) : end] for end, some in zip(ends, words, strict=True)]


class _Aligned:
    """Two functions of as many instructions, which steer alike."""

    def __init__(self, a: FunctionCounts, b: FunctionCounts) -> None:
        self.graph, self.depths = a.graph, a.depths
        self.ends = {a.graph.starts[block] for block in a.graph.ends}
        self.words = _words(a.function), _words(b.function)
        self.symbols = _symbols(a), _symbols(b)
        differing = set(_differing(*self.words).tolist())
        differing |= {place for place, _ in self.symbols[0].items() ^ self.symbols[1].items()}
        self.places = np.array(sorted(differing), dtype=np.intp)
        self.is_patched = self._is_patched(a, b)
        widths = np.array([_most_registers(opcode) for opcode in a.opcodes], dtype=np.intp)
        self.widths = widths[a.kinds]
        self.texts: tuple[list[str], list[str]] = ([], [])  # of what differs
        self.flows: tuple[list[InstructionFlow], list[InstructionFlow]] = ([], [])

    def _is_patched(self, a: FunctionCounts, b: FunctionCounts) -> bool:
        """Whether few instructions differ, none of which has an address of code."""
        if not 0 < len(self.places) * _MOST_PATCHED <= len(self.depths):
            return False
        if any(is_flow(side.opcodes[kind]) for side in (a, b) for kind in side.kinds[self.places].tolist()):
            return False
        calls = [number for number, opcode in enumerate(a.opcodes) if "CALL.REL" in opcode]
        before = np.cumsum(np.isin(a.kinds, calls))
        ends = np.minimum(self.places + CALL_SETUP, len(before) - 1)
        return bool((before[ends] == before[self.places]).all())

    def take(self, texts: Sequence[Sequence[str | None]]) -> bool:
        """The texts of what differs on both sides; False where one is unknown."""
        if any(text is None for some in texts for text in some):
            return False
        a, b = ([text or "" for text in some] for some in texts)
        self.texts = a, b
        self.flows = [instruction_flow(text) for text in a], [instruction_flow(text) for text in b]
        return True

    def forms(self) -> tuple[Counter[Form], Counter[Form]]:
        """Of what differs the forms that each side has more of."""
        a, b = (
            Counter(
                (one.form, symbols.get(place), int(self.depths[place]))
                for place, one in zip(self.places.tolist(), flows, strict=True)
                if self._is_live(place, one)
            )
            for flows, symbols in zip(self.flows, self.symbols, strict=True)
        )
        return a - b, b - a

    def registers(self) -> set[int] | None:
        """Those that one side has where the other has another; None where they are not all that differs."""
        found = set[int]()
        for one, other in zip(*self.flows, strict=True):
            if one.form != other.form or one.forms != other.forms or one.sizes != other.sizes:
                return None
            if len(one.writes) != len(other.writes):
                return None
            for some, others in ((one.reads, other.reads), (one.writes, other.writes)):
                found.update(*({x, y} for x, y in zip(some, others, strict=True) if x != y))
        return found if all(register < _PREDICATES for register in found) else None

    def touching(self, registers: set[int]) -> Numbers:
        """The positions of instructions that may touch some registers, calls and returns."""
        numbers = np.arange(256)
        # Which values of a field mean one of them, of operands of one register and of groups.
        single, group = np.zeros(256, dtype=np.bool_), np.zeros(256, dtype=np.bool_)
        for register in registers:
            for mask in (0xFF, 0x3F) if register >= _UNIFORM else (0xFF,):
                ahead = (register & 0xFF) - (numbers & mask)
                single |= ahead == 0
                group |= (ahead >= 0) & (ahead < _NARROW)
        found = self.widths > _NARROW
        found[self.places] = True
        is_group = self.widths > 1
        for words in self.words:
            for half, shifts in ((0, _LOW_FIELDS), (1, _HIGH_FIELDS)):
                for shift in shifts:
                    field = (words[:, half] >> np.uint64(shift) & np.uint64(0xFF)).astype(np.intp)
                    found |= np.where(is_group, group[field], single[field])
        return np.flatnonzero(found)

    def patch(self, registers: set[int], positions: Numbers, texts: Sequence[str | None]) -> Patch | None:
        """What other registers mean. texts: of A at the positions that may touch them."""
        if any(text is None for text in texts):
            return None
        ours = [instruction_flow(text or "") for text in texts]
        others = list(ours)
        for at, one in zip(np.searchsorted(positions, self.places).tolist(), self.flows[1], strict=True):
            others[at] = one
        a, b = (value_flow(some, self.graph, positions, registers) for some in (ours, others))
        live = [self._is_live(place, one) for place, one in zip(positions.tolist(), ours, strict=True)]
        is_live = np.array(live, dtype=np.bool_)[a.readers]
        itself = np.arange(len(self.depths), dtype=np.uint64)
        moved = is_live & (a.read_hashes(itself) != b.read_hashes(itself))
        if not moved.any():
            is_same = all(
                one == other or not self._is_live(place, flow)
                for place, one, other, flow in zip(
                    self.places.tolist(), *self.texts, self.flows[0], strict=True
                )
            )
            return Patch(Counter(), Counter(), is_same)
        depth = self._depth_of_other_values(a, b, moved)
        return None if depth is None else Patch(Counter(), Counter(), depth=depth)

    def _depth_of_other_values(self, a: ValueFlow, b: ValueFlow, moved: NDArray[np.bool_]) -> int | None:
        """The depth of the deepest instruction that reads from other opcodes; None where that does not tell.

        moved: the registers that are read from elsewhere. Of instructions that are alike but for where values
        come from, the sum over each place tells: the same instructions in another order have the same.
        """
        origins = np.zeros(len(self.depths), dtype=np.uint64)
        sides = []
        for side in (a, b):
            origins[side.positions] = first_colours(side.base, self.depths[side.positions])
            sides.append(side.read_hashes(origins))
        other = np.flatnonzero(moved & (sides[0] != sides[1]))
        if not len(other):
            return None
        readers = a.readers[other]
        depths = self.depths[a.positions[readers]]
        alike = {
            at: hash((a.instructions[at].form, self.symbols[0].get(int(a.positions[at])))) & HASH
            for at in np.unique(readers).tolist()
        }
        keys = np.array([alike[at] for at in readers.tolist()], dtype=np.uint64) + a.slots[other]
        _, which = np.unique(np.stack([keys, depths.astype(np.uint64)]), axis=1, return_inverse=True)
        totals = np.zeros(len(other), dtype=np.uint64)
        np.add.at(totals, which.reshape(-1), sides[0][other] - sides[1][other])
        differing = totals[which.reshape(-1)] != 0
        deepest = int(depths.max())
        return deepest if (depths[differing] == deepest).any() else None

    def _is_live(self, place: int, one: InstructionFlow) -> bool:
        return not (one.is_never or one.opcode in PADDING or place in self.ends)


def _words(function: BinaryFunction) -> Words:
    return unscheduled_words(function.code.code, [offset for offset, _ in function.code.relocations])


def _differing(a: Words, b: Words) -> Numbers:
    """The positions of instructions that differ."""
    differs = a != b
    return np.flatnonzero(differs[:, 0] | differs[:, 1])


def _symbols(side: FunctionCounts) -> dict[int, str]:
    """By position whose address the linker writes into an instruction."""
    return {offset // INSTRUCTION_BYTES: symbol for offset, symbol in side.function.code.symbols}


@lru_cache(1 << 14)
def _most_registers(opcode: str) -> int:
    return 256 if opcode.startswith(_ALWAYS) else most_registers(opcode)
