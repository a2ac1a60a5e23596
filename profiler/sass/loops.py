"""Basic blocks of a function's machine code: which may follow which, and how many loops each is in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from profiler.build.instruction_text import split_instruction
from profiler.sass.listing import SassLine
from profiler.sass.register_operands import NEVER, guard_condition, opposite

_JUMPS = frozenset(("BRA", "JMP"))
_INDIRECT = frozenset(("BRX", "BRXU", "JMX", "JMXU"))
_LEAVES = frozenset(("EXIT", "RET", "KILL"))
_STEERS = _JUMPS | _INDIRECT | _LEAVES | {"CALL"}


class Jump(NamedTuple):
    """An instruction that steers."""

    base: str  # its opcode without modifiers
    condition: int  # of its guard, as RegisterUse has it
    has_condition: bool  # beside its guard
    target: int | None  # the position of the instruction that it names; None where it is not in the function
    leads: tuple[int, ...] = ()  # of an indirect jump, the positions that it may lead to; () where unknown


def is_steering(base: str) -> bool:
    """Whether an opcode without modifiers is one of which read_jump knows more."""
    return base in _STEERS


def read_jump(text: str, target: int | None) -> Jump | None:
    """What an instruction's text says of where it steers; None for one that does not."""
    words = split_instruction(text)
    if words is None or words.base not in _STEERS:
        return None
    guard = words.guard
    condition = guard_condition(guard.removeprefix("!"), guard.startswith("!")) if guard else 0
    return Jump(words.base, condition, words.base in _JUMPS and "," in text, target)


@dataclass(frozen=True)
class BlockGraph:
    """The basic blocks of one function, in the order of its code."""

    starts: tuple[int, ...]  # the position of the first instruction of each
    # By block, the blocks that may follow it, with the guard under which they do, 0 for none; one block may
    # follow under several.
    edges: tuple[tuple[tuple[int, int], ...], ...]
    calls: tuple[tuple[int, int], ...]  # a block, and the block that its last instruction calls
    size: int  # instructions
    ends: tuple[int, ...] = ()  # blocks that are a jump to itself, which stands behind the code

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """By block, the blocks that may follow it."""
        return tuple(tuple(dict.fromkeys(block for block, _ in some)) for some in self.edges)

    @cached_property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Of each block the position of its first instruction, and of the one behind its last."""
        return tuple(pairwise((*self.starts, self.size)))

    @cached_property
    def block_of(self) -> tuple[int, ...]:
        """The block of each instruction."""
        return tuple(block for block, (start, end) in enumerate(self.ranges) for _ in range(start, end))

    @cached_property
    def loops(self) -> tuple[frozenset[int], ...]:
        """The blocks of each loop, those of one head together: a jump back to what dominates it makes one."""
        by_head: dict[int, set[int]] = {}
        predecessors: list[list[int]] = [[] for _ in self.starts]
        for block, following in enumerate(self.successors):
            for successor in following:
                predecessors[successor].append(block)
        for entry in self._entries:
            immediate = self._dominators(entry)  # in reverse postorder: what dominates stands before
            number = {block: place for place, block in enumerate(immediate)}
            for block in immediate:
                for head in self.successors[block]:
                    is_before = number.get(head, len(number)) <= number[block]
                    if is_before and _dominates(immediate, head, block, entry):
                        members = by_head.setdefault(head, {head})
                        pending = [block]
                        while pending:
                            member = pending.pop()
                            if member not in members:
                                members.add(member)
                                pending += (before for before in predecessors[member] if before in immediate)
        return tuple(frozenset(members) for _, members in sorted(by_head.items()))

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """In how many loops each block is; code that is called counts those of its deepest call too."""
        around = Counter(block for loop in self.loops for block in loop)
        own = [around[block] for block in range(len(self.starts))]
        deepest = list(own)
        for _ in range(len(self._entries)):  # each round passes on one call more
            before = list(deepest)
            for entry in self._entries[1:]:
                at_calls = max((deepest[block] for block, called in self.calls if called == entry), default=0)
                for block in self.reachable(entry):
                    deepest[block] = max(deepest[block], own[block] + at_calls)
            if deepest == before:
                break
        return tuple(deepest)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """In how many loops each instruction is."""
        return tuple(self.depth[block] for block in self.block_of)

    @cached_property
    def _entries(self) -> tuple[int, ...]:
        """Where code is entered: the function's first block, and those that it calls."""
        return tuple(dict.fromkeys((0, *(called for _, called in self.calls)))) if self.starts else ()

    def reachable(self, entry: int) -> set[int]:
        """The blocks that may run once a block does, without those that are called."""
        found, pending = {entry}, [entry]
        while pending:
            for following in self.successors[pending.pop()]:
                if following not in found:
                    found.add(following)
                    pending.append(following)
        return found

    def _dominators(self, entry: int) -> dict[int, int]:
        """The immediate dominator of each block that is reached from an entry, which is its own.

        Source: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
        """
        order = self._postorder(entry)
        number = {block: place for place, block in enumerate(order)}
        predecessors: dict[int, list[int]] = {block: [] for block in order}
        for block in order:
            for following in self.successors[block]:
                predecessors[following].append(block)
        immediate = {entry: entry}
        is_changed = True
        while is_changed:
            is_changed = False
            for block in reversed(order):
                if block == entry:
                    continue
                known = [before for before in predecessors[block] if before in immediate]
                best = known[0]
                for other in known[1:]:
                    a, b = best, other
                    while a != b:
                        while number[a] < number[b]:
                            a = immediate[a]
                        while number[b] < number[a]:
                            b = immediate[b]
                    best = a
                if immediate.get(block) != best:
                    immediate[block] = best
                    is_changed = True
        return immediate

    def _postorder(self, entry: int) -> list[int]:
        order, seen = list[int](), {entry}
        pending = [(entry, iter(self.successors[entry]))]
        while pending:
            block, following = pending[-1]
            for successor in following:
                if successor not in seen:
                    seen.add(successor)
                    pending.append((successor, iter(self.successors[successor])))
                    break
            else:
                order.append(block)
                pending.pop()
        return order


def _dominates(immediate: dict[int, int], head: int, block: int, entry: int) -> bool:
    while block != head and block != entry:
        block = immediate[block]
    return block == head


def block_graph(
    rows: Sequence[SassLine], indirect: Mapping[int, tuple[int, ...]] | None = None
) -> BlockGraph:
    """The blocks of one function's instructions, which must have their text.

    indirect: as read_jumps has it.
    """
    return make_graph(read_jumps(rows, indirect), len(rows))


def read_jumps(
    rows: Sequence[SassLine], indirect: Mapping[int, tuple[int, ...]] | None = None
) -> dict[int, Jump]:
    """By position the instructions of one function that steer.

    indirect: by the position of an indirect jump, the positions that it may lead to, where they are known.
    """
    at = {row.offset: position for position, row in enumerate(rows)}
    jumps = {}
    for position, row in enumerate(rows):
        target = at.get(row.target[1]) if row.target and row.target[0] == row.function else None
        if row.text and (jump := read_jump(row.text, target)):
            jumps[position] = jump._replace(leads=(indirect or {}).get(position, ()))
    return jumps


def make_graph(jumps: Mapping[int, Jump], size: int) -> BlockGraph:
    """The blocks of a function of so many instructions, by position those that steer.

    Where an indirect jump leads is not in its text: where it is unknown, to any block that a jump or a call
    begins.
    """
    begins = {0}
    for position, jump in jumps.items():
        begins.add(position + 1)
        if jump.target is not None and jump.base not in _LEAVES:
            begins.add(jump.target)
        begins.update(jump.leads)
    starts = sorted(begin for begin in begins if begin < size)
    number = {start: block for block, start in enumerate(starts)}
    edges, calls, ends = list[tuple[tuple[int, int], ...]](), list[tuple[int, int]](), list[int]()
    for start, end in pairwise([*starts, size]):
        last = jumps.get(end - 1)
        after = [(number[end], 0)] if end in number else []
        following = after
        if last and last.condition != NEVER:
            target = None if last.target is None else number.get(last.target)
            otherwise = [(block, opposite(last.condition)) for block, _ in after if last.condition]
            if last.base in _JUMPS:
                jumped = [] if target is None else [(target, last.condition)]
                following = jumped + (after if last.has_condition else otherwise)
                if last.target == start == end - 1 and not last.condition and not last.has_condition:
                    following = []
                    ends.append(number[start])
            elif last.base in _INDIRECT:
                following = [(block, 0) for block in range(len(starts))]
                if leads := [number[lead] for lead in dict.fromkeys(last.leads) if lead in number]:
                    following = [(block, last.condition) for block in leads] + otherwise
            elif last.base in _LEAVES:
                following = otherwise
            elif target is not None:
                calls.append((number[start], target))
        edges.append(tuple(following))
    return BlockGraph(tuple(starts), tuple(edges), tuple(calls), size, tuple(ends))
