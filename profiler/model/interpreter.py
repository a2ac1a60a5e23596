"""Runs a kernel's machine code for many blocks at once: which warps execute what, in which order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from profiler.build.opcode_counts import INSTRUCTION_BYTES
from profiler.model.accesses import ACCESSES, COUNTED, READS_FROM, WRITES_TO, AccessCounts, AccessTally
from profiler.model.arithmetic import ARITHMETIC
from profiler.model.control_slice import (
    InstructionUse,
    returning_calls,
    steering_positions,
    value_dependent,
)
from profiler.model.cubin import KernelImage
from profiler.model.instructions import Instruction, NoModel, Operand, parse_instruction
from profiler.model.machine import (
    STACK_BYTES,
    Action,
    Array,
    BlockState,
    Lanes,
    NotedRegisters,
    noted_registers,
    predicate_reader,
    predicate_writer,
    reader,
    writer,
)
from profiler.model.memory import WARP_SHIFT, WINDOW_SHIFT, GlobalMemory
from profiler.model.warp_wide import WARP_WIDE

STEPS = 10_000_000  # branches of a group of threads: some minutes
BLOCKS_AT_ONCE_THREADS = 1 << 18  # counts of so many threads' blocks are added up before others are run
THREADS_AT_ONCE = 1 << 14  # as many blocks run together as have so many threads: their registers fit a cache
_CONTROL = frozenset(["BRA", "EXIT", "BSSY", "BSYNC", "BREAK", "BAR", "CALL", "RET", "WARPSYNC", "YIELD"])
_LEAVES = frozenset(["RET", "BRA", "EXIT", "BRX", "NOP"])
_CONTROL |= {"BRX", "BRXU", "BMOV"}
# In constant bank 0, below the parameters.
_BLOCK_SIZE, _GRID_SIZE, _LOCAL_WINDOW, _STACK = 0x0, 0xC, 0x20, 0x28
_DESCRIPTORS = (0x118, 0x208)  # of global memory, two words: what they say is not needed to run a load
_BARRIERS = 16
_NO_MEMORY: frozenset[str] = frozenset()
_FLOAT = frozenset(["FADD", "FMUL", "FFMA", "FMNMX", "FSETP", "FSEL", "FCHK", "MUFU", "F2FP", "F2I", "HMMA"])
_FLOAT |= {"HADD2", "HMUL2", "HFMA2", "DADD", "DMUL", "DFMA", "F2F"}
_MOST_LANES = 1 << 12  # that are kept because they may come again
_SECTOR_MASK = (1 << WARP_SHIFT) - 1
Grid = tuple[int, int, int]


@dataclass(frozen=True)
class KernelProgram:
    """A kernel's instructions, taken apart."""

    kernel: KernelImage
    instructions: tuple[Instruction, ...]
    unread: Mapping[int, NoModel] = field(
        default_factory=dict
    )  # by position: text that cannot be taken apart

    @property
    def uses_local(self) -> bool:
        """Whether a thread has memory of its own."""
        return any(instruction.base in ("LDL", "STL", "LD", "ST") for instruction in self.instructions)


@dataclass(frozen=True)
class Execution:
    """What a launch's blocks executed, by instruction in the order of the code."""

    instructions: tuple[Instruction, ...]
    warps: Array  # how many warps executed each, whether any lane's guard was true or not
    threads: Array  # how many lanes took part
    active: Array  # how many lanes were there, whatever their guard
    accesses: dict[int, AccessCounts]  # by position, of those that access memory
    blocks: int


@dataclass(frozen=True)
class BlockCounts:
    """What some blocks of a launch executed, each for itself."""

    instructions: tuple[Instruction, ...]
    blocks: Array  # [n, 3], the indices x, y, z of each
    warps: Array  # [n, instructions], as Execution has it
    threads: Array
    active: Array
    accesses: dict[int, AccessCounts]  # by position: space, kind and width, and no counts
    access_counts: Array  # [accesses, COUNTED, n], in the order of `accesses`
    # Positions of branches that depend on floating-point numbers out of memory, at which nobody looked: they
    # were not taken. And of accesses with guards that do: these were true.
    assumed: tuple[int, ...]
    # In the order in which the sectors of global memory were asked for:
    trace_positions: Array  # of the instruction
    trace_blocks: Array  # number in `blocks`
    trace_sectors: Array  # number of the sector in memory

    def total(self, weights: Array | None = None) -> Execution:
        """The sum over the blocks; weights: how many blocks of the launch each stands for, 1 unless given."""
        if weights is None:
            weights = np.ones(len(self.blocks), np.int64)

        def add(counts: Array) -> Array:
            total: Array = np.rint(counts.T @ weights).astype(np.int64)
            return total

        accesses = {}
        for (position, empty), counts in zip(self.accesses.items(), self.access_counts, strict=True):
            numbers = np.rint(counts @ weights).astype(np.int64)
            accesses[position] = _with_counts(empty, numbers)
        blocks = round(float(weights.sum()))
        return Execution(
            self.instructions, add(self.warps), add(self.threads), add(self.active), accesses, blocks
        )


def load_program(kernel: KernelImage, code: Sequence[tuple[int, str]]) -> KernelProgram:
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
        if offset in kernel.unlinked:
            why = f"the address of {kernel.unlinked[offset] or 'a section'} is filled in by the loader"
            unread[position] = instructions[-1].no_model(why)
    return KernelProgram(kernel, tuple(instructions), unread)


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
    program: KernelProgram,
    grid: Grid,
    block: Grid,
    dynamic_shared_bytes: int,
    parameters: Sequence[bytes],
    memory: GlobalMemory,
    blocks: Array | None = None,
    observer: Callable[..., None] | None = None,
    prepare: Callable[[BlockState], None] | None = None,
) -> Execution:
    """Run blocks of a launch, all unless given as [n, 3] indices; `memory` is read and written.

    observer: called with every access of shared memory (SharedTrace). prepare: called with each machine
    before its blocks are run, as many at a time as fit.

    Raises NoModel, which names the instruction, where one cannot be run.
    """
    if blocks is None:
        blocks = all_blocks(grid)
    at_once = max(1, BLOCKS_AT_ONCE_THREADS // (32 * _warps(block)))
    total: Execution | None = None
    for first in range(0, len(blocks), at_once):
        part = count_blocks(
            program,
            grid,
            block,
            dynamic_shared_bytes,
            parameters,
            memory,
            blocks[first : first + at_once],
            with_values=True,
            with_trace=False,
            observer=observer,
            prepare=prepare,
        ).total()
        total = part if total is None else _sum(total, part)
    assert total is not None
    return total


def all_blocks(grid: Grid) -> Array:
    """The indices x, y, z of all blocks, [n, 3], in the order in which a GPU starts them."""
    z, y, x = np.indices(grid[::-1]).reshape(3, -1)
    return np.stack([x, y, z], axis=1)


def count_blocks(
    program: KernelProgram,
    grid: Grid,
    block: Grid,
    dynamic_shared_bytes: int,
    parameters: Sequence[bytes],
    memory: GlobalMemory,
    blocks: Array,
    *,
    with_values: bool,
    with_trace: bool,
    observer: Callable[..., None] | None = None,
    prepare: Callable[[BlockState], None] | None = None,
) -> BlockCounts:
    """Run blocks and count each for itself; `blocks`: [n, 3].

    with_values: all is computed and written to `memory`. Else only what branches, guards of accesses and
    addresses depend on, floating-point numbers out of memory excepted: memory is then as good as untouched.
    Divisions take their fast path. A forward branch that depends on such numbers is not taken, so that what
    it would skip counts, unless that is a call (BlockCounts.assumed). Of an instruction whose guard steers
    arithmetic alone all lanes that are there count as taking part.
    with_trace: sectors are kept in order.
    Raises NoModel as run_blocks does.
    """
    constants = parameter_bytes(program.kernel, parameters)
    known = _set_launch_constants(program.kernel, constants, grid, block, memory)
    shared_bytes = program.kernel.static_shared_bytes + dynamic_shared_bytes
    warps = _warps(block)
    at_once = max(1, THREADS_AT_ONCE // (32 * warps))
    code = _compile(program, with_values)
    parts, traces = [], []
    with np.errstate(all="ignore"):
        for first in range(0, len(blocks), at_once):
            chosen = blocks[first : first + at_once]
            machine = BlockState(
                chosen, grid, block, shared_bytes, constants, known, memory, program.uses_local
            )
            machine.observer = observer
            if prepare is not None:
                prepare(machine)
            if with_trace:
                machine.trace = []
            for tally in code.tallies.values():
                tally.start(len(chosen))
            scheduler = _Scheduler(program, code, machine)
            try:
                scheduler.run()
            except NoModel as error:
                if not code.assumed:
                    raise
                raise NoModel(f"{error}{_assumption_words(program, code.assumed)}") from None
            accesses = [tally.counts for tally in code.tallies.values()]
            parts.append(
                (*scheduler.counts(), np.reshape(accesses, (len(accesses), len(COUNTED), len(chosen))))
            )
            traces += [
                (position, first + (keys >> WARP_SHIFT) // warps, (keys & _SECTOR_MASK) + moved)
                for position, keys, moved in machine.trace or ()
            ]
    warp_counts, thread_counts, active_counts = (
        np.concatenate([part[i] for part in parts]) for i in range(3)
    )
    none = np.zeros(0, np.int64)
    return BlockCounts(
        instructions=program.instructions,
        blocks=blocks,
        warps=warp_counts,
        threads=thread_counts,
        active=active_counts,
        accesses={position: tally.empty for position, tally in code.tallies.items()},
        access_counts=np.concatenate([part[3] for part in parts], axis=2),
        assumed=tuple(sorted(code.assumed)),
        trace_positions=np.repeat(
            np.array([trace[0] for trace in traces], np.int32), [len(trace[1]) for trace in traces]
        ),
        trace_blocks=np.concatenate([none, *(trace[1] for trace in traces)]),
        trace_sectors=np.concatenate([none, *(trace[2] for trace in traces)]),
    )


def _assumption_words(program: KernelProgram, assumed: Collection[int]) -> str:
    """What a run without values took for granted: where that is wrong, so may be what the error says."""
    offsets = [f"{program.instructions[position].offset:#06x}" for position in sorted(assumed)]
    some = ", ".join(offsets[:3]) + (", …" if len(offsets) > 3 else "")
    return f"; how branches on floating-point numbers go is assumed, at {some}"


def _with_counts(access: AccessCounts, numbers: Array) -> AccessCounts:
    """An access with its counts, in the order of COUNTED."""
    requests, global_bytes, sectors, lines, wavefronts, ideal = map(int, numbers)
    return replace(
        access,
        requests=requests,
        global_bytes=global_bytes,
        sectors=sectors,
        lines=lines,
        wavefronts=wavefronts,
        ideal_wavefronts=ideal,
    )


def _warps(block: Grid) -> int:
    return -(-block[0] * block[1] * block[2] // 32)


def _numbers(access: AccessCounts) -> Array:
    return np.array([getattr(access, name) for name in COUNTED], np.int64)


def _sum(a: Execution, b: Execution) -> Execution:
    accesses = {
        position: _with_counts(counts, _numbers(counts) + _numbers(b.accesses[position]))
        for position, counts in a.accesses.items()
    }
    return Execution(
        a.instructions,
        a.warps + b.warps,
        a.threads + b.threads,
        a.active + b.active,
        accesses,
        a.blocks + b.blocks,
    )


def _set_launch_constants(
    kernel: KernelImage, constants: dict[int, bytes], grid: Grid, block: Grid, memory: GlobalMemory
) -> set[tuple[int, int]]:
    """Fill in what the driver puts below the parameters; the words of bank 0 that are known then."""
    bank = bytearray(constants[0])
    known = set()
    window = memory.local_window << WINDOW_SHIFT
    words = (
        (_BLOCK_SIZE, block),
        (_GRID_SIZE, grid),
        (_LOCAL_WINDOW, (window & 0xFFFFFFFF, window >> 32)),
        (_STACK, (STACK_BYTES,)),
    )
    for start, values in words:
        for position, value in enumerate(values):
            bank[start + 4 * position : start + 4 * position + 4] = value.to_bytes(4, "little")
            known.add((0, start + 4 * position))
    for start in _DESCRIPTORS:
        if start < kernel.parameter_base:
            known |= {(0, start), (0, start + 4)}
    known |= {(0, offset) for offset in range(kernel.parameter_base & ~3, len(bank), 4)}
    constants[0] = bytes(bank)
    return known


@dataclass(frozen=True)
class _Code:
    """A program as it is executed."""

    actions: list[Action]
    needed: list[int]  # positions of the actions that are executed, in order
    assumed: set[int]  # positions of branches that are not taken and of guards that are true, unseen
    controls: list[int]  # positions of control instructions, in order
    tallies: dict[int, AccessTally]


def _compile(program: KernelProgram, with_values: bool) -> _Code:
    """An action for each instruction. One without a model raises when it is executed, not before."""
    actions: list[Action] = []
    tallies: dict[int, AccessTally] = {}
    uses = []
    for position in range(len(program.instructions)):
        action, tally, use = _compile_instruction(program, position, moves=True)
        if not with_values and program.instructions[position].base == "FCHK":
            action, use = _fast_division(program.instructions[position])
        actions.append(action)
        uses.append(use)
        if tally is not None:
            tallies[position] = tally
    controls = [i for i, instruction in enumerate(program.instructions) if instruction.base in _CONTROL]
    needed = set(range(len(actions)))
    assumed: set[int] = set()
    if not with_values:
        targets = control_targets(program)
        for position in value_dependent(program.instructions, uses, targets):
            instruction = program.instructions[position]
            is_forward = instruction.base == "BRA" and max(targets[position]) > position + 1
            if position in tallies or (
                is_forward and instruction.guard and min(targets[position]) > position
            ):
                assumed.add(position)
        needed, moved = steering_positions(program.instructions, uses, targets, assumed)
        for position in tallies.keys() - moved:
            action, tally, _ = _compile_instruction(program, position, moves=False)
            assert tally is not None
            actions[position], tallies[position] = action, tally
    for position, tally in tallies.items():
        tally.position = position
    return _Code(actions, sorted(needed - set(controls)), assumed, controls, tallies)


def _compile_instruction(
    program: KernelProgram, position: int, moves: bool
) -> tuple[Action, AccessTally | None, InstructionUse]:
    instruction = program.instructions[position]
    base = instruction.base
    try:
        if position in program.unread:
            raise program.unread[position]
        with noted_registers() as use:
            if base in ACCESSES:
                action, tally = ACCESSES[base](instruction, moves)
                with noted_registers() as addresses:
                    ACCESSES[base](instruction, False)
                memories = READS_FROM.get(base, _NO_MEMORY), WRITES_TO.get(base, _NO_MEMORY)
                return action, tally, InstructionUse(use, addresses, *memories)
            if base in _CONTROL:
                operands = instruction.operands
                if base == "BMOV" and operands[0].kind == "register":
                    writer(instruction, operands[0])
                    operands = ()
                for operand in operands:
                    if operand.kind in ("register", "uniform"):
                        reader(instruction, operand)
                    elif "predicate" in operand.kind:
                        predicate_reader(instruction, operand)
                return _nothing, None, InstructionUse(use, is_root=True)
            table = WARP_WIDE if base in WARP_WIDE else ARITHMETIC
            if base not in table:
                raise instruction.no_model(f"opcode {base} is not known")
            is_float = base in _FLOAT
            return table[base](instruction), None, InstructionUse(use, is_float=is_float)
    except NoModel as error:
        action = _raises(error)
    except ValueError:  # more or fewer operands than it has elsewhere
        action = _raises(instruction.no_model("its operands are of another form"))
    return action, None, InstructionUse(NotedRegisters(), is_root=True)


def _fast_division(instruction: Instruction) -> tuple[Action, InstructionUse]:
    """FCHK without its operands: the division takes its fast path, as all but extreme ones do."""
    with noted_registers() as use:
        write = predicate_writer(instruction, instruction.operands[0])
    return lambda m, s: write(m, s, False), InstructionUse(use)


def control_targets(program: KernelProgram) -> dict[int, list[int]]:
    """Where control instructions may go on; a return goes on behind a call."""
    returning = returning_calls(program.instructions)
    behind_calls = [position + 1 for position in sorted(returning)]
    position_of = {instruction.offset: i for i, instruction in enumerate(program.instructions)}
    targets = {}
    tabled = {position_of[word] for word in program.kernel.code_entries if word in position_of}
    moved = {
        position_of[operand.number]
        for instruction in program.instructions
        if instruction.base in ("MOV", "UMOV") or "MOV" in instruction.modifiers
        for operand in instruction.operands[-1:]
        if operand.kind == "number" and operand.number in position_of
    }
    code = program.instructions
    begins = {  # functions: whatever stands before them does not go on into them
        position
        for position in (tabled | moved).difference(behind_calls)
        if position and code[position - 1].guard is None and code[position - 1].base in _LEAVES
    }
    entries = {"CALL": sorted(begins)}
    for position, instruction in enumerate(program.instructions):
        if _is_indirect(instruction):
            goes_on = [position + 1] if instruction.guard or position in returning else []
            targets[position] = [*goes_on, *entries.get(instruction.base, sorted(tabled))]
        elif instruction.base in ("BRA", "CALL"):
            last = instruction.operands[-1].number if instruction.operands else -1
            # What a call does not write is the same behind it, which it goes on at through a return.
            is_taken = (
                instruction.guard is None and len(instruction.operands) == 1 and position not in returning
            )
            goes_on = [] if is_taken and last in position_of else [position + 1]
            targets[position] = [*goes_on, *([position_of[last]] if last in position_of else ())]
        elif instruction.base == "RET":
            targets[position] = behind_calls
        elif instruction.base == "EXIT" and instruction.guard is None and not instruction.operands:
            targets[position] = []
    return targets


def _is_indirect(instruction: Instruction) -> bool:
    """Whether it goes where a register says: through a table of functions, or of the cases of a switch."""
    if instruction.base == "CALL":
        return any(operand.kind in ("register", "uniform") for operand in instruction.operands)
    return instruction.base in ("BRX", "BRXU")


def _nothing(m: BlockState, s: Lanes) -> None:
    """What a control instruction does to registers."""


def _raises(error: NoModel) -> Action:
    def fail(m: BlockState, s: Lanes) -> None:
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
        program: KernelProgram,
        code: _Code,
        machine: BlockState,
    ) -> None:
        self.code = program.instructions
        self.actions, self.needed, self.controls = code.actions, code.needed, code.controls
        self.assumed = code.assumed
        self.m = machine
        # Warps and threads of each block, [2, blocks], that executed the code between two positions.
        self.executed: dict[tuple[int, int], Array] = {}
        self.guarded_off: dict[int, Array] = {}  # threads of each block whose guard was false, by position
        self.straight: dict[tuple[int, int], list[int]] = {}  # which positions between two are needed
        self.same_lanes: dict[bytes, Lanes] = {}  # by their ids: of equal lanes one object serves
        self.position_of = {instruction.offset: i for i, instruction in enumerate(self.code)}
        self.returning = returning_calls(self.code)
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
            self._run_from(position, groups[0] if len(groups) == 1 else self._merge(groups))
        if self.live.any():
            at = sorted({self.code[int(p)].text for p in self.waits_at[self.live]})
            raise NoModel(f"no model: threads wait for others that never come, at {', '.join(at)}")

    def _push(self, position: int, lanes: Lanes) -> None:
        if lanes.size:
            self.pending.setdefault(position, []).append(lanes)

    def _merge(self, groups: Sequence[Lanes]) -> Lanes:
        ids = np.sort(np.concatenate([group.ids for group in groups]))
        key = ids.tobytes()
        if key not in self.same_lanes:
            if len(self.same_lanes) > _MOST_LANES:
                self.same_lanes.clear()
            self.same_lanes[key] = Lanes(ids)
        return self.same_lanes[key]

    def counts(self) -> tuple[Array, Array, Array]:
        """Warps, threads that took part, and threads that were there: each [blocks, instructions]."""
        steps = np.zeros((2, self.m.blocks, len(self.code) + 1), np.int64)
        for (first, last), counts in self.executed.items():
            steps[:, :, first] += counts
            steps[:, :, last] -= counts
        warps, active = steps.cumsum(axis=2)[:, :, :-1]
        threads = active.copy()
        for position, off in self.guarded_off.items():
            threads[:, position] -= off
        return warps, threads, active

    def _count(self, first: int, last: int, lanes: Lanes) -> None:
        """Lanes executed the code from one position up to another."""
        counts = lanes.per_block(self.m)
        known = self.executed.get((first, last))
        if known is None:
            self.executed[first, last] = counts.copy()
        else:
            known += counts

    def _selected(self, position: int, lanes: Lanes) -> Lanes | None:
        """Those whose guard is true."""
        guard = self.guards[position]
        if guard is None:
            return lanes
        if position in self.assumed:
            return None if self.code[position].base == "BRA" and not self._skips_call(position) else lanes
        mask = guard(self.m, lanes)
        selected: Lanes | None = None
        if mask.any():
            selected = lanes.where_warps(mask) if self.code[position].is_uniform else lanes.where(mask)
        if selected is not lanes:
            off = lanes.per_block(self.m)[1]
            if selected is not None:
                off = off - selected.per_block(self.m)[1]
            self.guarded_off[position] = self.guarded_off.get(position, 0) + off
        return selected

    def _skips_call(self, position: int) -> bool:
        """Whether a branch goes around a call: of the slow path of a division, which is out of the line."""
        after = bisect_left(self.controls, position + 1)
        return after < len(self.controls) and self.controls[after] in self.returning

    def _run_from(self, position: int, lanes: Lanes) -> None:
        """Run lanes to their next branch, or to where others wait to go on."""
        others = min(self.pending, default=len(self.code))
        index = bisect_left(self.controls, position)
        control = self.controls[index] if index < len(self.controls) else len(self.code)
        stop = min(control, others)
        if stop > position:
            needed = self.straight.get((position, stop))
            if needed is None:
                needed = self.needed[bisect_left(self.needed, position) : bisect_left(self.needed, stop)]
                self.straight[position, stop] = needed
            self._count(position, stop, lanes)
            for place in needed:
                selected = self._selected(place, lanes)
                if selected is not None:
                    self.actions[place](self.m, selected)
        if stop >= len(self.code):
            raise NoModel("no model: the code is left behind its last instruction")
        if stop == others:
            self._push(stop, lanes)
            return
        self._count(stop, stop + 1, lanes)
        self._control(stop, self.code[stop], lanes, self._selected(stop, lanes))

    def _control(self, position: int, instruction: Instruction, lanes: Lanes, selected: Lanes | None) -> None:
        base = instruction.base
        if base in ("BRA", "CALL") and not _is_indirect(instruction):
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
        elif base == "RET" or _is_indirect(instruction):
            self._follow(instruction, selected)
            self._push_rest(position, rest)
        elif base == "BMOV":
            self._move_barrier(instruction, selected)
            self._push(position + 1, lanes)
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
            if base == "BSYNC":  # who does not take part goes on
                members = self.members[instruction.operands[-1].number][selected.ids]
                if not members.all():
                    self._push(position + 1, Lanes(selected.ids[~members]))
                    selected = Lanes(selected.ids[members])
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

    def _follow(self, instruction: Instruction, lanes: Lanes) -> None:
        """Go where a register says. The number behind it counts from the next instruction in BRX alone."""
        operand, *behind = instruction.operands
        distance = behind[0].number if behind else 0
        if instruction.base not in ("CALL", "RET"):
            distance += instruction.offset + INSTRUCTION_BYTES
        where = reader(instruction, operand)(self.m, lanes) + np.uint32(distance & 0xFFFFFFFF)
        targets = np.broadcast_to(where, (lanes.size,))
        for target in np.unique(targets):
            place = self.position_of.get(int(target))
            if place is None:
                raise instruction.no_model("where it goes is not known")
            self._push(place, lanes.where(targets == target))

    def _move_barrier(self, instruction: Instruction, lanes: Lanes) -> None:
        """BMOV: who meets at a convergence barrier goes into a register, or is taken from there."""
        destination, source = instruction.operands
        if instruction.modifiers - {"32", "CLEAR"} or {destination.kind, source.kind} != {
            "register",
            "convergence",
        }:
            raise instruction.no_model("a move of another form")
        rows = self.members[(source if source.kind == "convergence" else destination).number].reshape(-1, 32)
        if source.kind == "convergence":
            masks = np.packbits(rows[lanes.warp_ids], axis=1, bitorder="little").view(np.uint32).reshape(-1)
            values = masks[np.searchsorted(lanes.warp_ids, lanes.lane_warps)]
            writer(instruction, destination)(self.m, lanes, values)
            if "CLEAR" in instruction.modifiers:
                rows[lanes.warp_ids] = False
            return
        values = np.broadcast_to(reader(instruction, source)(self.m, lanes), (lanes.size,))
        masks = np.ascontiguousarray(values[np.searchsorted(lanes.lane_warps, lanes.warp_ids)])
        if (masks[np.searchsorted(lanes.warp_ids, lanes.lane_warps)] != values).any():
            raise instruction.no_model("lanes of a warp that came by different calls")
        bits = np.unpackbits(masks.view(np.uint8), bitorder="little").reshape(-1, 32)
        rows[lanes.warp_ids] = bits.astype(bool)

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
            freed = np.flatnonzero(waiting & needed & np.repeat(complete, size))
            if not len(freed):
                continue
            if what == self.BLOCK and m.memory_observer is not None:
                m.memory_observer.barrier(complete)
            places = self.waits_at[freed]
            self.waits_at[freed] = self.waits_for[freed] = -1
            for place in np.unique(places):
                self._push(int(place) + 1, Lanes(freed[places == place]))


def _without(lanes: Lanes, removed: Lanes) -> Lanes | None:
    """The lanes that are not among the removed ones; None where none is left."""
    if removed is lanes or removed.size == lanes.size:
        return None
    return Lanes(np.setdiff1d(lanes.ids, removed.ids, assume_unique=True))
