"""What the instructions of a function are, counted by how many loops they are in; and which of them spill."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from profiler.sass.binary_functions import BinaryFunction
from profiler.sass.code_changes import counted_as
from profiler.sass.code_words import CodeReader, FunctionCounts
from profiler.sass.loops import BlockGraph

_MOST_AT_ONCE = 16_000_000  # bytes of code


@dataclass(frozen=True)
class LoopFacts:
    """The instructions of one function, by how many loops they are in: [0] in none, [1] in one, …"""

    opcodes: tuple[Mapping[str, int], ...]  # places in the code by what `counted_as` calls them
    spills: tuple[int, ...]  # spill instructions; () for none
    inner_spills: int = 0  # those of `spills` that are in a loop without a loop inside
    # Whether ptxas marked the spills; else they are all accesses of local memory, of arrays too.
    is_marked: bool = True

    @property
    def spill_count(self) -> int:
        """At every depth together."""
        return sum(self.spills)


def loop_facts(functions: Sequence[BinaryFunction]) -> list[LoopFacts | None]:
    """The facts of each function; None where its instructions cannot be read.

    Equal code is read once. Raises CannotJudge where nvdisasm is missing.
    """
    places: dict[object, list[int]] = defaultdict(list)
    for place, function in enumerate(functions):
        places[function.arch, function.code.code, function.code.spills, function.code.indirect].append(place)
    found: list[LoopFacts | None] = [None] * len(functions)
    by_arch: dict[str, list[list[int]]] = defaultdict(list)
    for same in places.values():
        by_arch[functions[same[0]].arch].append(same)
    for arch, groups in by_arch.items():
        reader = CodeReader(arch)
        for some in _batches(groups, functions):
            counted = reader.count([functions[same[0]] for same in some])
            for same, counts in zip(some, counted, strict=True):
                facts = None if counts is None else facts_of(counts)
                for place in same:
                    found[place] = facts
    return found


def _batches(groups: Sequence[list[int]], functions: Sequence[BinaryFunction]) -> Iterator[list[list[int]]]:
    """Groups of equal functions, with about so much code together as is read at once."""
    batch, total = list[list[int]](), 0
    for same in groups:
        size = len(functions[same[0]].code.code)
        if batch and total + size > _MOST_AT_ONCE:
            yield batch
            batch, total = [], 0
        batch.append(same)
        total += size
    if batch:
        yield batch


def facts_of(counts: FunctionCounts) -> LoopFacts:
    """The facts of one function's instructions.

    Padding and what stands behind a guard that never holds are left out.
    """
    graph = counts.graph
    inner = _innermost(graph)
    opcodes: list[Counter[str]] = [Counter() for _ in range(max(graph.depth, default=0) + 1)]
    for (opcode, depth), count in counts.counts.items():
        opcodes[depth][counted_as(opcode)] += count
    spills = [0] * len(opcodes)
    inner_spills = 0
    for place in counts.spill_places:
        block = graph.block_of[place]
        spills[graph.depth[block]] += 1
        inner_spills += block in inner
    while spills and not spills[-1]:
        spills.pop()
    by_depth = tuple({name: found[name] for name in sorted(found)} for found in opcodes)
    return LoopFacts(by_depth, tuple(spills), inner_spills, counts.has_marked_spills or not spills)


def _innermost(graph: BlockGraph) -> frozenset[int]:
    """The blocks of loops without a loop inside, and of what is called from loops."""
    loops = graph.loops
    inner = [loop for loop in loops if not any(other < loop for other in loops)]
    in_loops = frozenset[int]().union(*loops)
    called = (block for block, depth in enumerate(graph.depth) if depth and block not in in_loops)
    return frozenset[int]().union(*inner, called)
