"""What the instructions of a function are, counted by how many loops they are in; and which of them spill."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from profiler.build.instruction_text import split_instruction
from profiler.sass.binary_functions import BinaryFunction
from profiler.sass.code_changes import counted_as
from profiler.sass.disassembly import disassemble_codes
from profiler.sass.listing import SassLine
from profiler.sass.loops import BlockGraph, block_graph
from profiler.sass.register_operands import NEVER, register_use

_MOST_AT_ONCE = 2_000_000  # bytes of code, of which nvdisasm takes seconds
_LOCAL = ("LDL", "STL")


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
        places[function.arch, function.code.code, function.code.spills].append(place)
    found: list[LoopFacts | None] = [None] * len(functions)
    by_arch: dict[str, list[list[int]]] = defaultdict(list)
    for same in places.values():
        by_arch[functions[same[0]].arch].append(same)
    for arch, groups in by_arch.items():
        for some in _batches(groups, functions):
            codes = [functions[same[0]].code.code for same in some]
            for same, rows in zip(some, disassemble_codes(arch, codes), strict=True):
                facts = None if rows is None else facts_of_rows(rows, functions[same[0]].code.spills)
                for place in same:
                    found[place] = facts
    return found


def _batches(groups: Sequence[list[int]], functions: Sequence[BinaryFunction]) -> Iterator[list[list[int]]]:
    """Groups of equal functions, with about as much code together as one call of nvdisasm reads."""
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


def facts_of_rows(rows: Sequence[SassLine], marked: Sequence[int] | None) -> LoopFacts:
    """The facts of one function's instructions. marked: offsets of what ptxas marks as spills, if anything.

    Padding and what stands behind a guard that never holds are left out.
    """
    graph = block_graph(rows)
    depths, inner = graph.depths, _innermost(graph)
    opcodes: list[Counter[str]] = [Counter() for _ in range(max(depths, default=0) + 1)]
    spills = [0] * len(opcodes)
    inner_spills = 0
    offsets = None if marked is None else frozenset(marked)
    for position, row in enumerate(rows):
        instruction = split_instruction(row.text or "")
        if instruction is None or not _can_run(row, position, graph):
            continue
        depth = depths[position]
        opcodes[depth][counted_as(instruction.opcode)] += 1
        if instruction.base in _LOCAL if offsets is None else row.offset in offsets:
            spills[depth] += 1
            inner_spills += graph.block_of[position] in inner
    while spills and not spills[-1]:
        spills.pop()
    counts = tuple({name: found[name] for name in sorted(found)} for found in opcodes)
    return LoopFacts(counts, tuple(spills), inner_spills, offsets is not None or not spills)


def _can_run(row: SassLine, position: int, graph: BlockGraph) -> bool:
    if row.opcode.partition(".")[0] == "NOP" or register_use(row.text or "").condition == NEVER:
        return False
    is_jump_to_itself = row.target == (row.function, row.offset)
    return not (is_jump_to_itself and not graph.successors[graph.block_of[position]])


def _innermost(graph: BlockGraph) -> frozenset[int]:
    """The blocks of loops without a loop inside, and of what is called from loops."""
    loops = graph.loops
    inner = [loop for loop in loops if not any(other < loop for other in loops)]
    in_loops = frozenset[int]().union(*loops)
    called = (block for block, depth in enumerate(graph.depth) if depth and block not in in_loops)
    return frozenset[int]().union(*inner, called)
