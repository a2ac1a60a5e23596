"""What each instruction computes from: which instructions wrote the values that it reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from profiler.build.instruction_text import split_instruction
from profiler.sass.listing import SassLine
from profiler.sass.loops import BlockGraph
from profiler.sass.register_operands import NEVER, RegisterOperand, read_operands
from profiler.sass.registers import shapes

# Factors and summands that may change places, by opcode: how many of the first sources.
_COMMUTATIVE: Mapping[str, int] = {
    **dict.fromkeys(("FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA", "IADD", "IMAD", "IMUL"), 2),
    **dict.fromkeys(("HADD2", "HMUL2", "HFMA2", "FMNMX", "IMNMX", "VIADD", "FADD2", "FMUL2", "FFMA2"), 2),
    **dict.fromkeys(("IADD3", "UIADD3"), 3),
}
_ROUNDS = 64  # of colouring: values that differ further back than so many instructions keep one colour
_ARGUMENTS = tuple(("R", number) for number in range(4, 16))  # what called code may be given
_KINDS = ("R", "UR", "P", "UP", "B")
_GUARD = re.compile(r"!?(U?P)(\d)\Z")

Register = tuple[str, int]
# Where a value comes from: the position of an instruction, and which register of its results; or -1, and the
# register that held it when the function began.
Origin = tuple[int, int]
_State = dict[Register, frozenset[Origin]]
_Source = TypeVar("_Source", bound=tuple[str, Any])


class SourceFlow(NamedTuple):
    """One thing that an instruction reads."""

    form: str  # its text without numbers of registers: `-R`, `desc[UR][R.64+0x10]`, `0x3f800000`
    origins: tuple[frozenset[Origin], ...]  # by register of it, where the values may come from


class RowFlow(NamedTuple):
    """One instruction, whatever registers it was given."""

    opcode: str  # with modifiers
    results: tuple[str, ...]  # the forms of what it writes
    sources: tuple[SourceFlow, ...]  # its guard first, where it has one
    target: int | None  # the block that it jumps to


def value_flow(rows: Sequence[SassLine], graph: BlockGraph) -> tuple[RowFlow, ...]:
    """Of each instruction of one function, which must have their text.

    Code of the function that it calls itself is followed, from every call to every return. Of other calls
    any register may come back changed.
    """
    steps = [_Step(row) for row in rows]
    registers = {register for step in steps for register in step.registers}
    entry: _State = {
        register: frozenset({(-1, _KINDS.index(register[0]) << 8 | register[1])}) for register in registers
    }
    followed = {graph.ranges[block][1] - 1 for block, _ in graph.calls}
    for position, step in enumerate(steps):
        step.is_call_of_others = step.read.is_call and position not in followed
    before = _solve(steps, graph, entry)
    at = {row.offset: position for position, row in enumerate(rows)}
    flows = []
    for block, (start, end) in enumerate(graph.ranges):
        state = dict(before[block] or entry)
        for position in range(start, end):
            step, target = steps[position], rows[position].target
            sources = tuple(
                SourceFlow(form, tuple(state[register] for register in reads))
                for form, reads in step.read.sources
            )
            place = at.get(target[1]) if target and target[0] == rows[position].function else None
            flows.append(
                RowFlow(
                    step.read.opcode,
                    step.read.results,
                    sources,
                    None if place is None else graph.block_of[place],
                )
            )
            step.apply(position, state)
    return tuple(flows)


class _Text(NamedTuple):
    """What the text of one instruction says of it."""

    opcode: str
    is_call: bool
    is_conditional: bool
    results: tuple[str, ...]  # their forms
    writes: tuple[Register, ...]
    sources: tuple[tuple[str, tuple[Register, ...]], ...]  # form, and what is read


@lru_cache(maxsize=1 << 16)
def _read(text: str) -> _Text:
    words = split_instruction(text)
    operands = read_operands(text)
    guard = _GUARD.fullmatch(words.guard) if words else None
    never = operands.condition == NEVER
    is_call = bool(words and words.base == "CALL")
    writes = [] if never else [register for one in operands.results for register in _each(one)]
    sources: list[tuple[str, tuple[Register, ...]]] = []
    if words and words.guard:
        sources.append((_form(f"@{words.guard}"), ((guard[1], int(guard[2])),) if guard else ()))
    elif never:
        sources.append((text, ()))
    sources += [(_form(operand.text), tuple(_each(operand))) for operand in operands.sources]
    if is_call:
        sources += [(f"argument {number}", ((kind, number),)) for kind, number in _ARGUMENTS]
    return _Text(
        words.opcode if words else text,
        is_call,
        operands.condition > 0,
        tuple(_form(operand.text) for operand in operands.results),
        tuple(writes),
        tuple(sources),
    )


def instruction_form(row: SassLine) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Opcode, results and sources of an instruction without numbers of registers.

    What computes the same has the same: factors and summands, which may change places, are sorted.
    """
    read = _read(row.masked or row.text or "")
    return read.opcode, read.results, tuple(form for form, *_ in _sorted(read.opcode, list(read.sources)))


class _Step:
    """What one instruction does to the registers."""

    def __init__(self, row: SassLine) -> None:
        self.read = _read(row.masked or row.text or "")
        self.is_call_of_others = False

    @property
    def registers(self) -> Iterator[Register]:
        """Those that it writes or reads."""
        yield from self.read.writes
        for _, reads in self.read.sources:
            yield from reads

    def apply(self, position: int, state: _State) -> None:
        """What is in the registers behind it."""
        if self.is_call_of_others:
            # It may write any register. Each keeps its number: the ABI gives it a meaning.
            for kind, number in state:
                state[kind, number] |= {(-2, _KINDS.index(kind) << 8 | number)}
        for number, register in enumerate(self.read.writes):
            origin = frozenset({(position, number)})
            state[register] = state[register] | origin if self.read.is_conditional else origin


def _each(operand: RegisterOperand) -> list[Register]:
    return [  # of groups that end behind the last register no part
        (kind, number + offset)
        for kind, number, width in operand.registers
        for offset in range(width)
        if number + offset < 255
    ]


def _form(text: str) -> str:
    return shapes([text])[0]


def _solve(steps: Sequence[_Step], graph: BlockGraph, entry: _State) -> list[_State | None]:
    """What is in the registers before each block; None where no path leads."""
    following = [list(successors) for successors in graph.successors]
    returns = [
        block
        for block, (start, end) in enumerate(graph.ranges)
        if start < end and steps[end - 1].read.opcode.startswith("RET")
    ]
    for block, called in graph.calls:
        after = graph.successors[block]
        following[block].append(called)
        for other in returns:
            following[other] += [one for one in after if one not in following[other]]
    before: list[_State | None] = [None] * len(graph.starts)
    if before:
        before[0] = dict(entry)
    pending = [0] if before else []
    while pending:
        block = pending.pop()
        state = dict(before[block] or entry)
        start, end = graph.ranges[block]
        for position in range(start, end):
            steps[position].apply(position, state)
        for successor in following[block]:
            known = before[successor]
            if known is None:
                before[successor] = dict(state)
                pending.append(successor)
                continue
            is_changed = False
            for register, origins in state.items():
                if not origins <= known[register]:
                    known[register] |= origins
                    is_changed = True
            if is_changed and successor not in pending:
                pending.append(successor)
    return before


def colours(flows: Sequence[RowFlow], depths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers for what each instruction computes: equal ones in two functions have come to the same.

    Each list looks one instruction further back than the one before, until that tells no more apart.
    depths: in how many loops each instruction is. Order does not count, of factors and summands neither.
    """
    found = [hash((flow.opcode, flow.results, depth)) for flow, depth in zip(flows, depths, strict=True)]
    for _ in range(_ROUNDS):
        yield found
        before = found
        found = []
        for flow, depth in zip(flows, depths, strict=True):
            sources = [
                (
                    source.form,
                    tuple(
                        tuple(sorted((before[row] if row >= 0 else row, place) for row, place in origins))
                        for origins in source.origins
                    ),
                )
                for source in flow.sources
            ]
            sources = _sorted(flow.opcode, sources)
            found.append(hash((flow.opcode, flow.results, depth, tuple(sources))))
        if len(set(found)) == len(set(before)):
            break
    yield found


def _sorted(opcode: str, sources: list[_Source]) -> list[_Source]:
    """The sources of an instruction, their forms first, with those in order that may change places."""
    first = 1 if sources and sources[0][0].startswith("@") else 0
    last = first + _COMMUTATIVE.get(opcode.partition(".")[0], 0)
    return [*sources[:first], *sorted(sources[first:last]), *sources[last:]]
