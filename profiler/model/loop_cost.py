"""What a pass of a kernel's loops costs at least, from its machine code alone: no launch is needed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.evidence.gpu_parts import GPU_PARTS, GpuPart
from profiler.evidence.opcodes import base_opcode, is_matrix_multiply
from profiler.model.control_words import INSTRUCTION_BYTES, decode
from profiler.model.instruction_work import NO_WORK, Work, instruction_work, sum_of
from profiler.model.pipes import NO_MODEL, Pipe, opcode_of, pipe_use
from profiler.sass.code_changes import FunctionRows
from profiler.sass.listing import FileLine, SassLine
from profiler.sass.loops import BlockGraph

_ISSUE = "issue slots"
_PASSES = 8  # of a loop, for each pass of the loop that it is in: a guess
_ARITHMETIC = frozenset(("FFMA", "FMUL", "FADD", "HFMA2", "HMUL2", "HADD2", "DFMA", "DMUL", "DADD", "MUFU"))


@dataclass(frozen=True)
class LoopCost:
    """A loop of a function. Cycles are modelled, of one pass of one warp.

    `cycles` is what the busiest unit of a full SM needs. Waiting is not in it: a pass takes at least that.
    `overhead` is `cycles` over those that the unit of its arithmetic needs; 1.0 where no other unit needs
    more. It can be compared between builds of one kernel, however far each is unrolled.
    """

    depth: int
    instructions: int
    spills: int  # instructions of it that spill registers
    cycles: float | None  # None: no model of some instruction, or of the architecture
    unit: str  # what sets `cycles`; "" where they are not known
    arithmetic_cycles: float
    arithmetic_instructions: int
    matrix_instructions: int
    stall_cycles: int  # that the schedule makes a warp wait which runs alone, without memory
    without_model: tuple[str, ...]  # opcodes
    work: Work = NO_WORK  # of a warp, as if all of its lanes ran every instruction
    offset: int = 0  # bytes from where its function starts, of its first instruction
    source: FileLine | None = None  # of that instruction

    @property
    def overhead(self) -> float | None:
        """Cycles for each cycle of arithmetic; None where either is not known or nothing is computed."""
        if self.cycles is None or not self.arithmetic_cycles:
            return None
        return self.cycles / self.arithmetic_cycles

    def as_json(self) -> dict[str, object]:
        """Everything, null for what is not known."""
        file, line = self.source or (None, None)
        return {
            "evidence": "modelled",
            "file": file,
            "line": line,
            "offset": self.offset,
            "depth": self.depth,
            "instructions": self.instructions,
            "spill_instructions": self.spills,
            "cycles": self.cycles,
            "unit": self.unit or None,
            "overhead": self.overhead,
            "stall_cycles": self.stall_cycles,
            "arithmetic_instructions": self.arithmetic_instructions,
            "matrix_instructions": self.matrix_instructions,
            "floating_point_operations": self.work.operations,
            "global_bytes": self.work.global_bytes,
            "shared_bytes": self.work.shared_bytes,
            "without_model": list(self.without_model),
        }


def hot_loop(function: FunctionRows) -> LoopCost | None:
    """The hottest loop of a function; None where there is no loop."""
    code = function.function.code
    return hottest(loop_costs(function.rows, function.graph, code.code, code.spills, function.function.arch))


def hottest(costs: Sequence[LoopCost]) -> LoopCost | None:
    """The loop with most arithmetic; None of none.

    How often a loop runs is not in the code: one inside another counts as if it ran eight times as often.
    """
    has_matrix = any(cost.matrix_instructions for cost in costs)

    def weight(cost: LoopCost) -> tuple[int, int]:
        arithmetic = cost.matrix_instructions if has_matrix else cost.arithmetic_instructions
        return arithmetic * _PASSES**cost.depth, cost.instructions

    return max(costs, key=weight, default=None)


def loop_costs(
    rows: Sequence[SassLine], graph: BlockGraph, code: bytes, spills: Sequence[int] | None, arch: str
) -> tuple[LoopCost, ...]:
    """The loops of a function, of each what is in a loop inside it left out.

    rows: its instructions, whose blocks the graph has. code: its bytes. spills: offsets of what ptxas marks
    as such; None where it marks nothing: loads and stores of local memory are counted.
    """
    loops = graph.loops
    own = [loop - frozenset[int]().union(*(other for other in loops if other < loop)) for loop in loops]
    return tuple(_cost(rows, graph, code, spills, arch, sorted(blocks)) for blocks in own if blocks)


def _part(arch: str) -> GpuPart | None:
    plain = arch.rstrip("af")
    return next((part for part in GPU_PARTS.values() if part.arch == plain), None)


def _cost(
    rows: Sequence[SassLine],
    graph: BlockGraph,
    code: bytes,
    marked: Sequence[int] | None,
    arch: str,
    blocks: Sequence[int],
) -> LoopCost:
    inside = [rows[at] for block in blocks for at in range(*graph.ranges[block])]
    texts = [row.text or "" for row in inside]
    opcodes = [opcode_of(text) for text in texts]
    words = np.frombuffer(code, np.uint64)[1::2][[row.offset // INSTRUCTION_BYTES for row in inside]]
    offsets = {row.offset for row in inside}
    spills = (
        sum(offset in offsets for offset in marked)
        if marked is not None
        else sum(base_opcode(opcode) in ("LDL", "STL") for opcode in opcodes)
    )
    part = _part(arch)
    unknown = sorted({base_opcode(opcode) for opcode in opcodes} & NO_MODEL)
    busy, arithmetic = defaultdict[str, float](float, {_ISSUE: len(texts)}), defaultdict[str, float](float)
    for text, opcode in zip(texts, opcodes, strict=True):
        if part is None:
            break
        use = pipe_use(text, part)
        if use.pipe is Pipe.NONE:
            continue
        # The partitions share the load/store unit.
        cycles = use.cycles * (part.architecture.partitions if use.pipe is Pipe.LSU else 1)
        busy[use.pipe.label] += cycles
        if base_opcode(opcode) in _ARITHMETIC or is_matrix_multiply(opcode):
            arithmetic[use.pipe.label] += cycles
    is_known = part is not None and not unknown
    unit = max(busy, key=lambda name: busy[name])
    return LoopCost(
        max(graph.depth[block] for block in blocks),
        len(texts),
        spills,
        busy[unit] if is_known else None,
        unit if is_known else "",
        max(arithmetic.values(), default=0.0),
        sum(base_opcode(opcode) in _ARITHMETIC or is_matrix_multiply(opcode) for opcode in opcodes),
        sum(map(is_matrix_multiply, opcodes)),
        int(decode(words).stall.sum()),
        tuple(unknown),
        sum_of(Counter(map(instruction_work, texts))),
        inside[0].offset,
        inside[0].source,
    )
