"""Runs a kernel's machine code for many blocks at once: which warps execute what, in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from profiler.model.accesses import ACCESSES, AccessCounts
from profiler.model.arithmetic import ARITHMETIC
from profiler.model.cubin import KernelImage
from profiler.model.instructions import Instruction, NoModel, Operand, parse_instruction
from profiler.model.machine import STACK_BYTES, Action, Array, Lanes, Machine, predicate_reader, reader
from profiler.model.memory import GlobalMemory
from profiler.model.warp_wide import WARP_WIDE

STEPS = 10_000_000  # branches of a group of threads: some minutes
THREADS_AT_ONCE = 1 << 14  # as many blocks run together as have so many threads: their registers fit a cache
_CONTROL = frozenset(["BRA", "EXIT", "BSSY", "BSYNC", "BREAK", "BAR", "CALL", "RET", "WARPSYNC", "YIELD"])
_BLOCK_SIZE, _GRID_SIZE, _STACK = 0x0, 0xC, 0x28  # in constant bank 0, below the parameters
_DESCRIPTORS = (0x118, 0x208)  # of global memory, two words: what they say is not needed to run a load
_BARRIERS = 16
Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Program:
    """A kernel's instructions, taken apart."""

    kernel: KernelImage
    instructions: tuple[Instruction, ...]
    unread: Mapping[int, NoModel] = field(
        default_factory=dict
    )  # by position: text that cannot be taken apart

    @property
    def uses_local(self) -> bool:
        """Whether a thread has memory of its own."""
        return any(instruction.base in ("LDL", "STL") for instruction in self.instructions)


@dataclass(frozen=True)
class Execution:
    """What a launch's blocks executed, by instruction in the order of the code."""

    instructions: tuple[Instruction, ...]
    warps: Array  # how many warps executed each, whether any lane's guard was true or not
    threads: Array  # how many lanes took part
    active: Array  # how many lanes were there, whatever their guard
    accesses: dict[int, AccessCounts]  # by position, of those that access memory
    blocks: int


def load_program(kernel: KernelImage, code: Sequence[tuple[int, str]]) -> Program:
    """The program of a kernel from its offsets and texts.

    An instruction that cannot be taken apart ends a run only where it is reached.
    """
    instructions, unread = [], {}
    for position, (offset, text) in enumerate(code):
        try:
            instructions.append(parse_instruction(offset, text))
        except NoModel as error:
            unread[position] = error
            instructions.append(Instruction(offset, text, "?", (), None))
    return Program(kernel, tuple(instructions), unread)


def parameter_bytes(kernel: KernelImage, values: Sequence[bytes]) -> dict[int, bytes]:
    """The constant banks of a launch with these parameters."""
    bank = bytearray(kernel.constants.get(0, b""))
    end = max((p.offset + p.size for p in kernel.parameters), default=0) + kernel.parameter_base
    bank.extend(bytes(max(0, -(-end // 4) * 4 - len(bank))))  # read as words, whatever its last parameter is
    for parameter, value in zip(kernel.parameters, values, strict=True):
        start = kernel.parameter_base + parameter.offset
        bank[start : start + parameter.size] = value
    return {**kernel.constants, 0: bytes(bank)}


def run_blocks(
    program: Program,
    grid: Grid,
    block: Grid,
    dynamic_shared_bytes: int,
    parameters: Sequence[bytes],
    memory: GlobalMemory,
    blocks: Array | None = None,
) -> Execution:
    """Run blocks of a launch, all unless given as [n, 3] indices; `memory` is read and written.

    Raises NoModel, which names the instruction, where one cannot be run.
    """
    constants = parameter_bytes(program.kernel, parameters)
    known = _set_launch_constants(program.kernel, constants, grid, block)
    if blocks is None:
        z, y, x = np.indices(grid[::-1]).reshape(3, -1)
        blocks = np.stack([x, y, z], axis=1)
    shared_bytes = program.kernel.static_shared_bytes + dynamic_shared_bytes
    per_block = -(-block[0] * block[1] * block[2] // 32) * 32
    at_once = max(1, THREADS_AT_ONCE // per_block)
    count = len(program.instructions)
    warps, threads, active = (np.zeros(count, np.int64) for _ in range(3))
    actions, accesses = _compile(program)
    with np.errstate(all="ignore"):
        for first in range(0, len(blocks), at_once):
            machine = Machine(
                blocks[first : first + at_once],
                grid,
                block,
                shared_bytes,
                constants,
                known,
                memory,
                program.uses_local,
            )
            _Scheduler(program, actions, machine, warps, threads, active).run()
    return Execution(program.instructions, warps, threads, active, accesses, len(blocks))


def _set_launch_constants(
    kernel: KernelImage, constants: dict[int, bytes], grid: Grid, block: Grid
) -> set[tuple[int, int]]:
    """Fill in what the driver puts below the parameters; the words of bank 0 that are known then."""
    bank = bytearray(constants[0])
    known = set()
    for start, sizes in ((_BLOCK_SIZE, block), (_GRID_SIZE, grid), (_STACK, (STACK_BYTES,))):
        for position, size in enumerate(sizes):
            bank[start + 4 * position : start + 4 * position + 4] = size.to_bytes(4, "little")
            known.add((0, start + 4 * position))
    for start in _DESCRIPTORS:
        if start < kernel.parameter_base:
            known |= {(0, start), (0, start + 4)}
    known |= {(0, offset) for offset in range(kernel.parameter_base & ~3, len(bank), 4)}
    constants[0] = bytes(bank)
    return known


def _compile(program: Program) -> tuple[list[Action], dict[int, AccessCounts]]:
    """An action for each instruction. One without a model raises when it is executed, not before."""
    actions: list[Action] = []
    accesses: dict[int, AccessCounts] = {}
    for position, instruction in enumerate(program.instructions):
        try:
            if position in program.unread:
                raise program.unread[position]
            if instruction.base in ACCESSES:
                action, accesses[position] = ACCESSES[instruction.base](instruction)
            elif instruction.base in WARP_WIDE:
                action = WARP_WIDE[instruction.base](instruction)
            elif instruction.base in ARITHMETIC:
                action = ARITHMETIC[instruction.base](instruction)
            elif instruction.base in _CONTROL:
                action = _nothing
            else:
                raise instruction.no_model(f"opcode {instruction.base} is not known")
        except NoModel as error:
            action = _raises(error)
        except ValueError:  # more or fewer operands than it has elsewhere
            action = _raises(instruction.no_model("its operands are of another form"))
        actions.append(action)
    return actions, accesses


def _nothing(m: Machine, s: Lanes) -> None:
    """What a control instruction does to registers."""


def _raises(error: NoModel) -> Action:
    def fail(m: Machine, s: Lanes) -> None:
        raise error

    return fail


class _Scheduler:
    """Runs the threads of a machine: those that are furthest behind go first, together.

    Threads of all warps at one instruction execute it in one step. Lanes of a warp that parted meet again
    where the code lets them wait for each other (BSSY and BSYNC), and wherever they come to the same
    instruction, which a GPU need not make of: there its counts may be higher.
    """

    def __init__(
        self,
        program: Program,
        actions: Sequence[Action],
        machine: Machine,
        warps: Array,
        threads: Array,
        active: Array,
    ) -> None:
        self.code = program.instructions
        self.actions = actions
        self.m = machine
        self.warps, self.thread_counts, self.active = warps, threads, active
        self.position_of = {instruction.offset: i for i, instruction in enumerate(self.code)}
        self.guards = [
            predicate_reader(instruction, instruction.guard) if instruction.guard else None
            for instruction in self.code
        ]
        self.pending: dict[int, list[Lanes]] = {}
        self.live = machine.exists.copy()
        self.members = np.zeros((_BARRIERS, machine.threads), bool)  # who meets at a convergence barrier
        self.waits_at = np.full(machine.threads, -1)  # the position of the BSYNC, BAR or WARPSYNC; -1: runs
        self.waits_for = np.full(machine.threads, -1)  # a convergence barrier, or one of the two below

    BLOCK, WHOLE_WARP = 100, 101  # what threads may wait for beside convergence barriers

    def run(self) -> None:
        """Until all threads have ended."""
        self._push(0, Lanes(np.flatnonzero(self.live)))
        steps = 0
        while self.pending:
            steps += 1
            if steps > STEPS:
                raise NoModel("no model: the kernel does not end, or takes more branches than can be run")
            position = min(self.pending)
            groups = self.pending.pop(position)
            lanes = groups[0] if len(groups) == 1 else Lanes(np.sort(np.concatenate([g.ids for g in groups])))
            self._run_from(position, lanes)
        if self.live.any():
            at = sorted({self.code[int(p)].text for p in self.waits_at[self.live]})
            raise NoModel(f"no model: threads wait for others that never come, at {', '.join(at)}")

    def _push(self, position: int, lanes: Lanes) -> None:
        if lanes.size:
            self.pending.setdefault(position, []).append(lanes)

    def _run_from(self, position: int, lanes: Lanes) -> None:
        """Run lanes to their next branch, or to where others wait to go on."""
        m = self.m
        others = min(self.pending, default=len(self.code))
        while True:
            if position >= len(self.code):
                raise NoModel("no model: the code is left behind its last instruction")
            instruction = self.code[position]
            self.warps[position] += lanes.warp_count
            self.active[position] += lanes.size
            guard = self.guards[position]
            selected: Lanes | None = lanes
            if guard is not None:
                mask = guard(m, lanes)
                if not mask.any():
                    selected = None
                elif not mask.all():
                    by_warp = instruction.is_uniform
                    selected = lanes.where_warps(mask) if by_warp else lanes.where(mask)
            if selected is not None:
                self.thread_counts[position] += selected.size
            if instruction.base in _CONTROL:
                self._control(position, instruction, lanes, selected)
                return
            if selected is not None:
                self.actions[position](m, selected)
            position += 1
            if position >= others:
                self._push(position, lanes)
                return

    def _control(self, position: int, instruction: Instruction, lanes: Lanes, selected: Lanes | None) -> None:
        base = instruction.base
        if base in ("BRA", "CALL"):
            taken, rest = self._branch(instruction, lanes, selected)
            if taken is not None:
                self._push(self._target(instruction, instruction.operands[-1]), taken)
            self._push_rest(position, rest)
            return
        if selected is None:
            self._push(position + 1, lanes)
            return
        rest = _without(lanes, selected)
        if base == "EXIT":
            self.live[selected.ids] = False
            self._push_rest(position, rest)
            self._release()
        elif base == "RET":
            self._return(instruction, selected)
            self._push_rest(position, rest)
        elif base == "BSSY":
            number = instruction.operands[0].number
            row = self.members[number].reshape(-1, 32)
            row[lanes.warps] = False
            self.members[number][lanes.ids] = True
            self._push(position + 1, lanes)
        elif base == "BREAK":
            self.members[instruction.operands[-1].number][selected.ids] = False
            self._push(position + 1, lanes)
            self._release()
        elif base == "YIELD":
            self._push(position + 1, lanes)
        else:
            self._wait(position, instruction, selected)
            self._push_rest(position, rest)
            self._release()

    def _push_rest(self, position: int, rest: Lanes | None) -> None:
        if rest is not None:
            self._push(position + 1, rest)

    def _target(self, instruction: Instruction, operand: Operand) -> int:
        if operand.kind != "number" or operand.number not in self.position_of:
            raise instruction.no_model("where it goes is not known")
        return self.position_of[operand.number]

    def _branch(
        self, instruction: Instruction, lanes: Lanes, selected: Lanes | None
    ) -> tuple[Lanes | None, Lanes | None]:
        """Who goes to the target, and who goes on."""
        if selected is None:
            return None, lanes
        modifiers = instruction.modifiers - {"U", "REL", "NOINC", "ANY"}
        conditions = instruction.operands[:-1]
        if modifiers in ({"DIV"}, {"CONV"}):
            whole = self._is_whole(instruction, lanes, conditions)
            leaves = whole if modifiers == {"CONV"} else ~whole
            if len(conditions) != 1 or selected is not lanes:
                raise instruction.no_model("a branch of another form")
            mask = leaves[np.searchsorted(lanes.warp_ids, lanes.lane_warps)]
        elif modifiers:
            raise instruction.no_model("a branch of another form")
        else:
            if not conditions:
                return selected, _without(lanes, selected)
            mask = np.ones(selected.size, bool)
            for condition in conditions:
                mask &= predicate_reader(instruction, condition)(self.m, selected)
        if not mask.any():
            return None, lanes
        taken = selected.where(mask)
        return taken, _without(lanes, taken)

    def _is_whole(self, instruction: Instruction, lanes: Lanes, conditions: Sequence[Operand]) -> Any:
        """For each warp whether exactly the lanes of a mask are here together; `~URZ` is all of them."""
        here = np.zeros((self.m.warps, 32), bool)
        here[lanes.lane_warps, lanes.ids & 31] = True
        masks = np.packbits(here[lanes.warp_ids], axis=1, bitorder="little").view(np.uint32).reshape(-1)
        wanted = reader(instruction, conditions[0])(self.m, lanes)
        if np.ndim(wanted):
            wanted = wanted[np.searchsorted(lanes.lane_warps, lanes.warp_ids)]
        return masks == wanted

    def _return(self, instruction: Instruction, lanes: Lanes) -> None:
        operand = instruction.operands[0]
        targets = np.broadcast_to(reader(instruction, operand)(self.m, lanes), (lanes.size,))
        for target in np.unique(targets):
            place = self.position_of.get(int(target))
            if place is None:
                raise instruction.no_model("where it goes is not known")
            self._push(place, lanes.where(targets == target))

    def _wait(self, position: int, instruction: Instruction, lanes: Lanes) -> None:
        base, operands = instruction.base, instruction.operands
        if base == "BSYNC":
            what = operands[-1].number
        elif base == "BAR":
            plain = len(operands) == 1 and operands[0].kind == "number" and operands[0].number == 0
            if not plain or "SYNC" not in instruction.modifiers:
                raise instruction.no_model("a barrier of another form")
            what = self.BLOCK
        else:
            everybody = "ALL" in instruction.modifiers or (
                len(operands) == 1 and operands[0].kind == "number" and operands[0].number == 0xFFFFFFFF
            )
            if not everybody:
                raise instruction.no_model("a part of a warp waits")
            what = self.WHOLE_WARP
        self.waits_at[lanes.ids] = position
        self.waits_for[lanes.ids] = what

    def _release(self) -> None:
        """Let those go on for whom all others have come."""
        m = self.m
        for what in np.unique(self.waits_for):
            if what < 0:
                continue
            waiting = self.waits_for == what
            size = m.block_threads if what == self.BLOCK else 32
            needed = self.live & self.members[what] if what < _BARRIERS else self.live
            complete = ~(needed & ~waiting).reshape(-1, size).any(axis=1)
            freed = np.flatnonzero(waiting & np.repeat(complete, size))
            if not len(freed):
                continue
            places = self.waits_at[freed]
            self.waits_at[freed] = self.waits_for[freed] = -1
            for place in np.unique(places):
                self._push(int(place) + 1, Lanes(freed[places == place]))


def _without(lanes: Lanes, removed: Lanes) -> Lanes | None:
    """The lanes that are not among the removed ones; None where none is left."""
    if removed is lanes or removed.size == lanes.size:
        return None
    return Lanes(np.setdiff1d(lanes.ids, removed.ids, assume_unique=True))
