"""Many functions' instructions by opcode and loop depth, from their bits: nvdisasm is asked once a kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from profiler.build.instruction_text import split_instruction
from profiler.evidence.opcodes import base_opcode
from profiler.sass.binary_functions import BinaryFunction
from profiler.sass.disassembly import NEUTRAL_SCHEDULE, disassemble_words
from profiler.sass.listing import SassLine, code_address, function_rows
from profiler.sass.loops import BlockGraph, Jump, is_steering, make_graph, read_jump
from profiler.sass.opcode_classes import Words, class_keys, load_masks, mixed, unscheduled_words

INSTRUCTION_BYTES = 16
PADDING = frozenset(("NOP",))
_LOCAL = frozenset(("LDL", "STL"))
_NEVER = np.uint64(0xF000)  # the guard @!PT
_NEUTRAL = np.array([0, NEUTRAL_SCHEDULE], dtype=np.uint64)
# Where nvdisasm is told that the code lies: no jump back leads below 0, which it prints as 2**64 less.
_FIRST_ADDRESS = 1 << 28
_ADDRESS = re.compile(r"(0x[0-9a-f]+)\s*\Z")
_MOST_TEXTS = 400_000  # kept: about 200 MB
_UNREAD, _PADDED = -1, 0  # numbers of opcodes: of what is unknown, of padding
Keys = NDArray[np.uint64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class FunctionCounts:
    """One function's instructions by opcode and by how many loops they are in."""

    function: BinaryFunction
    graph: BlockGraph
    opcodes: tuple[str, ...] = field(repr=False)  # what the numbers of `kinds` are
    kinds: Places = field(repr=False)  # by position; padding where a guard never holds

    @cached_property
    def counts(self) -> Counter[tuple[str, int]]:
        """Instructions by opcode and depth, without padding."""
        return self._count(self.kinds, self.depths)

    @cached_property
    def spills(self) -> Counter[tuple[str, int]]:
        """Spills by opcode and depth."""
        return Counter(
            (base_opcode(self.opcodes[self.kinds[place]]), int(self.depths[place]))
            for place in self.spill_places
        )

    @cached_property
    def spill_places(self) -> tuple[int, ...]:
        """The positions of the spills that ptxas marks, else of all accesses of local memory."""
        marked = self.function.code.spills
        names = _base_names(self.opcodes)
        if marked is None:
            local = [number for number, name in enumerate(names) if name in _LOCAL]
            found: list[int] = np.flatnonzero(np.isin(self.kinds, local)).tolist()
            return tuple(found)
        places = [offset // INSTRUCTION_BYTES for offset in marked]
        return tuple(
            place for place in places if place < len(self.kinds) and names[self.kinds[place]] not in PADDING
        )

    @property
    def has_marked_spills(self) -> bool:
        """Whether ptxas says which instructions are spills."""
        return self.function.code.spills is not None

    @cached_property
    def depths(self) -> Places:
        """In how many loops each instruction is."""
        sizes = [end - start for start, end in self.graph.ranges]
        return np.repeat(np.array(self.graph.depth, dtype=np.intp), np.array(sizes, dtype=np.intp))

    def _count(self, kinds: Places, depths: Places) -> Counter[tuple[str, int]]:
        deepest = int(depths.max(initial=0)) + 1
        values, counts = np.unique(kinds * deepest + depths, return_counts=True)
        found = Counter[tuple[str, int]]()
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            opcode = self.opcodes[value // deepest]
            if base_opcode(opcode) not in PADDING:
                found[opcode, value % deepest] = count
        for block in self.graph.ends:  # the jump to itself behind the code
            found[self.opcodes[kinds[self.graph.starts[block]]], self.graph.depth[block]] -= 1
        return +found


@dataclass(frozen=True)
class _Kind:
    """What instructions with one key are."""

    opcode: int  # its number; _UNREAD where nvdisasm does not know it
    jump: Jump | None = None
    distance: int | None = None  # of its target, in instructions


@lru_cache(8)
def _base_names(opcodes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(base_opcode, opcodes))


class CodeReader:
    """Reads code for one architecture; what nvdisasm said once it is not asked again."""

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self._opcodes: dict[str, int] = {"NOP": _PADDED}
        self._keys: Keys = np.empty(0, dtype=np.uint64)  # ascending
        self._kinds: list[_Kind] = []  # by key
        # Of whole instructions by their key: the text, and the distance of the code that it names.
        self._texts: dict[int, tuple[str | None, int | None]] = {}

    def count(self, functions: Sequence[BinaryFunction]) -> list[FunctionCounts | None]:
        """Of each function its instructions by opcode; None where one is unknown.

        Raises CannotJudge where nvdisasm is missing.
        """
        words = _together(functions)
        keys = class_keys(words, load_masks())
        self._learn(keys, words)
        places = np.searchsorted(self._keys, keys)
        opcodes = np.array([kind.opcode for kind in self._kinds], dtype=np.intp)[places]
        opcodes[(opcodes != _UNREAD) & (words[:, 0] & _NEVER == _NEVER)] = _PADDED
        steers = np.array([kind.jump is not None for kind in self._kinds], dtype=np.bool_)[places]
        names = tuple(self._opcodes)
        found: list[FunctionCounts | None] = []
        end = 0
        before: tuple[dict[int, Jump], BlockGraph] | None = None
        for function in functions:
            start, end = end, end + function.instructions
            own = opcodes[start:end].copy()  # a few are kept, without those around them
            if (own == _UNREAD).any():
                found.append(None)
                continue
            jumps, indirect = {}, function.indirect
            for position in np.flatnonzero(steers[start:end]).tolist():
                kind = self._kinds[places[start + position]]
                assert kind.jump is not None
                target = None if kind.distance is None else position + kind.distance
                is_inside = target is not None and 0 <= target < end - start
                base, condition, has_condition, *_ = kind.jump
                leads = indirect.get(position, ())
                jumps[position] = Jump(base, condition, has_condition, target if is_inside else None, leads)
            # The two sides of a pair often steer alike.
            if before is None or before[0] != jumps or before[1].size != end - start:
                before = jumps, make_graph(jumps, end - start)
            found.append(FunctionCounts(function, before[1], names, own))
        return found

    def learn(self, chunks: Iterable[Sequence[BinaryFunction]], read: Words) -> None:
        """Know the instructions of many functions: to ask nvdisasm for each chunk costs half a second.

        read: whole instructions whose text is asked next.
        """
        found = [(self._keys[:0], _together([]))]
        for functions in chunks:
            words = _together(functions)
            keys, first = np.unique(class_keys(words, load_masks()), return_index=True)
            found.append((keys, words[first]))
        keys, words = (np.concatenate(some) for some in zip(*found, strict=True))
        self._learn(keys, words, read)

    def _learn(self, keys: Keys, words: Words, read: Words | None = None) -> None:
        if len(self._keys):
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            unknown = np.flatnonzero(self._keys[places] != keys)
            keys, words = keys[unknown], words[unknown]
        if not len(keys):
            return
        keys, first = np.unique(keys, return_index=True)
        whole = words[:0] if read is None else read
        texts = self._disassembled(np.concatenate([words[first], whole]))
        kinds = self._kinds + [self._kind(text, place) for place, text in enumerate(texts[: len(keys)])]
        for place, number in enumerate(mixed(whole[:, 0], whole[:, 1]).tolist(), len(keys)):
            self._texts[number] = texts[place], _distance(texts[place], place)
        together = np.concatenate([self._keys, keys])
        order = np.argsort(together)
        self._keys = together[order]
        self._kinds = [kinds[place] for place in order.tolist()]

    def _disassembled(self, words: Words) -> list[str | None]:
        return disassemble_words(self.arch, (words | _NEUTRAL).tobytes(), _FIRST_ADDRESS)

    def _kind(self, text: str | None, place: int) -> _Kind:
        words = split_instruction(text) if text else None
        if text is None or words is None:
            return _Kind(_UNREAD)
        opcode = self._opcodes.setdefault(words.opcode, len(self._opcodes))
        if not is_steering(words.base):
            return _Kind(opcode)
        return _Kind(opcode, read_jump(text, None), _distance(text, place))

    def texts(self, words: Words) -> list[str | None]:
        """The text of instructions, none of which names code by its distance; None where it is unknown."""
        return [text for text, _ in self._read(words)]

    def _read(self, words: Words) -> list[tuple[str | None, int | None]]:
        """Of each instruction its text and the distance of the code that it names."""
        keys = mixed(words[:, 0], words[:, 1])
        unique, first, places = np.unique(keys, return_index=True, return_inverse=True)
        numbers = unique.tolist()
        if len(self._texts) > _MOST_TEXTS:
            self._texts.clear()
        new = [place for place, number in enumerate(numbers) if number not in self._texts]
        texts = self._disassembled(words[first[new]]) if new else []
        for place, (at, text) in enumerate(zip(new, texts, strict=True)):
            self._texts[numbers[at]] = text, _distance(text, place)
        by_place = [self._texts[number] for number in numbers]
        return [by_place[place] for place in places.tolist()]

    def rows(self, functions: Sequence[BinaryFunction]) -> list[tuple[SassLine, ...] | None]:
        """The instructions of each function with their text, without source lines; None as count has it."""
        read = self._read(_together(functions))
        found: list[tuple[SassLine, ...] | None] = []
        end = 0
        for function in functions:
            start, end = end, end + function.instructions
            code = []
            for at, (text, distance) in enumerate(read[start:end]):
                if text is not None and distance is not None:
                    text = _ADDRESS.sub(f"{INSTRUCTION_BYTES * (at + distance):#x}", text)
                if text is not None:
                    code.append((INSTRUCTION_BYTES * at, text))
            found.append(function_rows([code])[0] if len(code) == end - start else None)
        return found


def _together(functions: Sequence[BinaryFunction]) -> Words:
    words = [
        unscheduled_words(function.code.code, [offset for offset, _ in function.code.relocations])
        for function in functions
    ]
    return np.concatenate([np.empty((0, 2), dtype=np.uint64), *words])


def _distance(text: str | None, place: int) -> int | None:
    """How many instructions from itself the one leads to that was disassembled in this place."""
    address = code_address(text) if text else None
    return None if address is None else (address - _FIRST_ADDRESS) // INSTRUCTION_BYTES - place
