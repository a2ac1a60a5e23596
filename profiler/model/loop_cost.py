"""What a pass of a kernel's hot loop costs at least, from its machine code alone: no launch is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.evidence.gpu_parts import GPU_PARTS, GpuPart
from profiler.evidence.opcodes import base_opcode, is_matrix_multiply
from profiler.model.control_words import decode
from profiler.model.pipes import NO_MODEL, Pipe, opcode_of, pipe_use
from profiler.sass.code_changes import FunctionRows

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

    @property
    def overhead(self) -> float | None:
        """Cycles for each cycle of arithmetic; None where either is not known or nothing is computed."""
        if self.cycles is None or not self.arithmetic_cycles:
            return None
        return self.cycles / self.arithmetic_cycles


def hot_loop(function: FunctionRows) -> LoopCost | None:
    """The loop with most arithmetic, what is in a loop inside it left out; None where there is no loop.

    How often a loop runs is not in the code: one inside another counts as if it ran eight times as often.
    """
    loops = function.graph.loops
    own = [loop - frozenset[int]().union(*(other for other in loops if other < loop)) for loop in loops]
    costs = [_cost(function, sorted(blocks)) for blocks in own if blocks]
    has_matrix = any(cost.matrix_instructions for cost in costs)

    def weight(cost: LoopCost) -> tuple[int, int]:
        arithmetic = cost.matrix_instructions if has_matrix else cost.arithmetic_instructions
        return arithmetic * _PASSES**cost.depth, cost.instructions

    return max(costs, key=weight, default=None)


def _part(arch: str) -> GpuPart | None:
    plain = arch.rstrip("af")
    return next((part for part in GPU_PARTS.values() if part.arch == plain), None)


def _cost(function: FunctionRows, blocks: Sequence[int]) -> LoopCost:
    ranges = [function.graph.ranges[block] for block in blocks]
    positions = [at for start, end in ranges for at in range(start, end)]
    texts = [function.rows[at].text or "" for at in positions]
    opcodes = [opcode_of(text) for text in texts]
    words = np.frombuffer(function.function.code.code, np.uint64)[1::2][positions]
    marked = function.function.code.spills
    offsets = {function.rows[at].offset for at in positions}
    spills = (
        sum(offset in offsets for offset in marked)
        if marked is not None
        else sum(base_opcode(opcode) in ("LDL", "STL") for opcode in opcodes)
    )
    part = _part(function.function.arch)
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
        max(function.graph.depth[block] for block in blocks),
        len(texts),
        spills,
        busy[unit] if is_known else None,
        unit if is_known else "",
        max(arithmetic.values(), default=0.0),
        sum(base_opcode(opcode) in _ARITHMETIC or is_matrix_multiply(opcode) for opcode in opcodes),
        sum(map(is_matrix_multiply, opcodes)),
        int(decode(words).stall.sum()),
        tuple(unknown),
    )
