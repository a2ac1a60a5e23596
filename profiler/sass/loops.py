"""Basic blocks of a function's machine code, and how many loops each instruction is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from profiler.build.instruction_text import split_instruction
from profiler.sass.listing import SassLine
from profiler.sass.register_operands import NEVER, register_use

_JUMPS = frozenset(("BRA", "JMP"))
_INDIRECT = frozenset(("BRX", "BRXU", "JMX", "JMXU"))
_LEAVES = frozenset(("EXIT", "RET", "KILL"))


@dataclass(frozen=True)
class BlockGraph:
    """The basic blocks of one function, in the order of its code."""

    starts: tuple[int, ...]  # the position of the first instruction of each
    successors: tuple[tuple[int, ...], ...]  # by block, the blocks that may follow it
    calls: tuple[tuple[int, int], ...]  # a block, and the block that its last instruction calls
    size: int  # instructions

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
            immediate = self._dominators(entry)
            for block in immediate:
                for head in self.successors[block]:
                    if head in immediate and _dominates(immediate, head, block, entry):
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
        own = [sum(block in loop for loop in self.loops) for block in range(len(self.starts))]
        deepest = list(own)
        for _ in range(len(self._entries)):  # each round passes on one call more
            before = list(deepest)
            for entry in self._entries[1:]:
                at_calls = max((deepest[block] for block, called in self.calls if called == entry), default=0)
                for block in self._reachable(entry):
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

    def _reachable(self, entry: int) -> set[int]:
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


def block_graph(rows: Sequence[SassLine]) -> BlockGraph:
    """The blocks of one function's instructions, which must have their text.

    Where an indirect jump leads is not in its text: to any block that a jump or a call begins.
    """
    at = {row.offset: position for position, row in enumerate(rows)}
    words = [split_instruction(row.text or "") for row in rows]
    bases = [one.base if one else "" for one in words]
    conditions = [register_use(row.text).condition if row.text else 0 for row in rows]
    targets = [
        at.get(row.target[1]) if row.target and row.target[0] == row.function else None for row in rows
    ]
    begins = {0} if rows else set[int]()
    for position, base in enumerate(bases):
        if base in _JUMPS or base in _INDIRECT or base in _LEAVES or base == "CALL":
            begins.add(position + 1)
            target = targets[position]
            if target is not None and base not in _LEAVES:
                begins.add(target)
    starts = sorted(begin for begin in begins if begin < len(rows))
    number = {start: block for block, start in enumerate(starts)}
    successors, calls = [], []
    for start, end in pairwise([*starts, len(rows)]):
        last = end - 1
        base, target, condition = bases[last], targets[last], conditions[last]
        after = [number[end]] if end in number else []
        following = after
        if condition != NEVER:
            if base in _JUMPS:
                jumped = [number[target]] if target is not None else []
                is_conditional = bool(condition) or "," in (rows[last].text or "")
                following = jumped + (after if is_conditional else [])
                if jumped == [number[start]] and last == start and not is_conditional:
                    following = []  # the jump to itself behind the code
            elif base in _INDIRECT:
                following = list(range(len(starts)))
            elif base in _LEAVES:
                following = after if condition else []
            elif base == "CALL" and target is not None:
                calls.append((number[start], number[target]))
        successors.append(tuple(dict.fromkeys(following)))
    return BlockGraph(tuple(starts), tuple(successors), tuple(calls), len(rows))
