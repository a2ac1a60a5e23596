"""Which instructions steer a kernel: what branches, guards and addresses depend on, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profiler.model.instructions import Instruction
from profiler.model.machine import PREDICATES, REGISTERS, UNIFORM_REGISTERS, NotedRegisters

# Sets of registers are integers of which each register has a bit. A live register may be so only where a
# predicate is true, or false: there a write under the same guard ends its life, as `@P0 IMAD R6, …` does that
# stands before `@P0 LDG R6, [R6]`. Those are in sections of their own, above that of what is always live.
_FIRST_BIT = {
    "R": 0,
    "U": REGISTERS,
    "P": REGISTERS + UNIFORM_REGISTERS,
    "UP": REGISTERS + UNIFORM_REGISTERS + PREDICATES,
}


_WIDTH = REGISTERS + UNIFORM_REGISTERS + 2 * PREDICATES
_SECTION = (1 << _WIDTH) - 1
_SECTIONS = 2 + 4 * PREDICATES  # 0; from 2 on those of each predicate and its inverse, uniform ones behind
_EVERYWHERE = sum(1 << (_WIDTH * section) for section in range(_SECTIONS))


@dataclass(frozen=True)
class InstructionUse:
    """What an instruction depends on and changes, as the search for the steering ones needs it."""

    use: NotedRegisters  # of its values
    addresses: NotedRegisters | None = None  # of what an access needs to be counted; None: it is no access
    reads_from: frozenset[str] = frozenset()  # the memories whose values it reads
    writes_to: frozenset[str] = frozenset()
    is_root: bool = False  # it is executed whatever depends on it
    is_float: bool = False  # it computes with floating-point numbers


def steering_positions(
    code: Sequence[Instruction],
    uses: Sequence[InstructionUse],
    targets: Mapping[int, Sequence[int]],
    assumed: set[int],
) -> tuple[set[int], set[int]]:
    """The positions of what must be executed, and of the accesses among it that must move their values.

    targets: the positions at which a control instruction may go on, where it is not the next one alone.
    assumed: positions whose guards and conditions are not looked at. A
    backward search over live registers: an instruction is needed where something that is needed reads what it
    writes; accesses and control are always needed, the values of an access only where they are read.
    """
    reads = [_bits(use.use.reads) for use in uses]
    writes = [_bits(use.use.writes) for use in uses]
    addresses = [_bits(use.addresses.reads) if use.addresses else 0 for use in uses]
    guards = [
        0 if position in assumed else _guard_bits(instruction) for position, instruction in enumerate(code)
    ]
    sections = [
        0 if position in assumed else _guard_section(instruction) for position, instruction in enumerate(code)
    ]
    returned = returned_registers(code, writes, targets)
    moved: set[int] = set()
    memories: set[str] = set()
    live_in = [0] * (len(code) + 1)
    needed: set[int] = set()
    changed = True
    while changed:
        changed = False
        for position in range(len(code) - 1, -1, -1):
            live = 0
            for target in targets.get(position, (position + 1,)):
                live |= live_in[target]
            if position in returned:
                live &= returned[position] * _EVERYWHERE
            use, section = uses[position], sections[position]
            live = _without_conditions(live, writes[position])
            # What is live only where the own guard is false is not read.
            opposite = _SECTION << (_WIDTH * (section ^ 1)) if section else 0
            is_read = bool(writes[position] * _EVERYWHERE & live & ~opposite)
            if use.addresses is not None and position not in moved and (is_read or use.writes_to & memories):
                moved.add(position)
                changed = True
                memories |= use.reads_from
            if use.is_root or is_read or use.addresses is not None:
                needed.add(position)
                if code[position].guard is None:
                    live &= ~(writes[position] * _EVERYWHERE)
                elif section:
                    live &= ~(writes[position] << (_WIDTH * section))
                live |= guards[position] | addresses[position] << (_WIDTH * section)
                if (use.addresses is None and not (use.is_root and position in assumed)) or position in moved:
                    live |= reads[position] << (_WIDTH * section)
            if live != live_in[position]:
                live_in[position] |= live
                changed = True
    return needed, moved


def value_dependent(
    code: Sequence[Instruction], uses: Sequence[InstructionUse], targets: Mapping[int, Sequence[int]]
) -> set[int]:
    """The positions whose guard or operands come from arithmetic on floating-point numbers out of memory.

    A forward search for what such numbers reach, through the memories that they are stored in too. Whole
    numbers out of memory, lengths or tables of pages, do not count, nor do numbers from parameters, such as
    the reciprocals that divide whole numbers.
    """
    reads = [_bits(use.use.reads) for use in uses]
    writes = [_bits(use.use.writes) for use in uses]
    guards = [_guard_bits(instruction) for instruction in code]
    returned = returned_registers(code, writes, targets)
    with_numbers: set[str] = set()  # memories into which computed numbers are stored
    loaded, computed = [0] * (len(code) + 1), [0] * (len(code) + 1)
    found: set[int] = set()
    changed = True
    while changed:
        changed = False
        for position, use in enumerate(uses):
            from_memory, from_numbers = loaded[position], computed[position]
            inputs = reads[position] | guards[position]
            is_computed = bool(inputs & from_numbers) or (use.is_float and bool(inputs & from_memory))
            if is_computed and use.addresses is None:
                found.add(position)
            if code[position].guard is None:
                from_memory &= ~writes[position]
                from_numbers &= ~writes[position]
            elif guards[position] & computed[position]:
                found.add(position)
            if is_computed and not use.writes_to <= with_numbers:
                with_numbers |= use.writes_to
                changed = True
            if use.reads_from:
                from_memory |= writes[position]
                if use.reads_from & with_numbers:
                    from_numbers |= writes[position]
            elif is_computed:
                from_numbers |= writes[position]
            elif inputs & loaded[position]:
                from_memory |= writes[position]
            if position in returned:
                from_memory, from_numbers = (
                    from_memory & returned[position],
                    from_numbers & returned[position],
                )
            for target in targets.get(position, (position + 1,)):
                if from_memory & ~loaded[target] or from_numbers & ~computed[target]:
                    loaded[target] |= from_memory
                    computed[target] |= from_numbers
                    changed = True
    return found


def returning_calls(code: Sequence[Instruction]) -> frozenset[int]:
    """The positions of calls that a return may lead behind.

    Such a call's way back is a number that the code moves into a register before it. ptxas leaves loops by
    `@!P0 CALL.REL.NOINC` too, and moves none there: that is a jump.
    """
    moved = {
        instruction.operands[-1].number
        for instruction in code
        if instruction.base in ("MOV", "UMOV") or "MOV" in instruction.modifiers
        if instruction.operands and instruction.operands[-1].kind == "number"
    }
    behind = enumerate(code[1:])
    return frozenset(i for i, following in behind if code[i].base == "CALL" and following.offset in moved)


def returned_registers(
    code: Sequence[Instruction], writes: Sequence[int], targets: Mapping[int, Sequence[int]]
) -> dict[int, int]:
    """What the code between calls and returns writes, by the position of each return.

    A return leads behind every call that is none of a jump; the other registers do not pass through it but
    from before the call.
    """
    reached: set[int] = set()
    ahead = [target for position in returning_calls(code) for target in targets[position][1:]]
    while ahead:
        position = ahead.pop()
        if position in reached or position >= len(code):
            continue
        reached.add(position)
        if code[position].base != "RET":
            ahead += targets.get(position, (position + 1,))
    written = 0
    for position in reached:
        written |= writes[position]
    return {position: written for position, instruction in enumerate(code) if instruction.base == "RET"}


def _bits(registers: set[tuple[str, int]]) -> int:
    result = 0
    for file, number in registers:
        result |= 1 << (_FIRST_BIT[file] + number)
    return result


def _guard_section(instruction: Instruction) -> int:
    """Which section has what is live under the guard; of a predicate and its inverse two neighbours."""
    guard = instruction.guard
    if guard is None:
        return 0
    first = 2 * PREDICATES if guard.kind == "uniform predicate" else 0
    return 2 + first + 2 * guard.number + int(guard.inverted)


def _without_conditions(live: int, writes: int) -> int:
    """What is live where a predicate has a value is live anyhow before the predicate is written."""
    predicates = writes >> _FIRST_BIT["P"]
    number = 0
    while predicates:
        if predicates & 1:
            for section in (2 + 2 * number, 3 + 2 * number):
                conditional = live >> (_WIDTH * section) & _SECTION
                if conditional:
                    live = live & ~(_SECTION << (_WIDTH * section)) | conditional
        predicates >>= 1
        number += 1
    return live


def _guard_bits(instruction: Instruction) -> int:
    guard = instruction.guard
    if guard is None:
        return 0
    file = "UP" if guard.kind == "uniform predicate" else "P"
    return 1 << (_FIRST_BIT[file] + guard.number)
