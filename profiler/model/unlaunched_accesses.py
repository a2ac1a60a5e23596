"""What accesses to memory cost in a kernel whose arguments nobody knows: its addresses on sampled paths."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.build.instruction_text import split_instruction
from profiler.model.accesses import access_width, address_reader
from profiler.model.arithmetic import ARITHMETIC
from profiler.model.control_slice import returning_calls
from profiler.model.cubin import KernelImage
from profiler.model.dimensions import Grid
from profiler.model.instructions import Instruction, NoModel, Operand, parse_instruction
from profiler.model.machine import (
    PREDICATES,
    REGISTERS,
    UNIFORM_REGISTERS,
    Action,
    Array,
    BlockState,
    Lanes,
    Read,
    noted_registers,
    predicate_reader,
)
from profiler.model.memory import SECTOR, START, WINDOW_SHIFT, GlobalMemory, unit_keys, wavefronts
from profiler.model.shared_layout import AccessPattern
from profiler.model.warp_wide import WARP_WIDE
from profiler.sass.loops import BlockGraph
from profiler.sass.register_operands import read_operands

SAMPLES = 4  # sets of arguments, each with a path of its own
_ROUNDS = 3  # of a loop whose end depends on arguments, or that nobody knows
_MOST_ROUNDS = 64  # of one whose end each thread has for any arguments
_STEPS_PER_INSTRUCTION, _FREE_STEPS = 1, 3000  # then loops go round twice
_MOST_THREADS = 1024
_SEED = 0
# The level of a value: one that each thread has for any arguments, one that depends on the arguments or on
# the block's place in the grid, and from 2 on one that nobody knows, by the number of the reason.
_FIXED, _OF_ARGUMENTS, _UNKNOWN = 0, 1, 2
_REASONS = (
    "they depend on values out of memory",
    "they depend on a branch on values out of memory",
    "they depend on what a called function returns",
    "they are in shared memory for some threads and outside of it for others",
    "they are no multiples of the width for any of the arguments tried",
    "no thread comes there on the paths tried",
)
_FROM_MEMORY, _FROM_BRANCH, _FROM_CALL, _MIXED, _MISALIGNED, _NOT_REACHED = range(
    _UNKNOWN, _UNKNOWN + len(_REASONS)
)
_FIRST = {"R": 0, "U": REGISTERS}  # places of registers and predicates in a list of all
_FIRST["P"] = _FIRST["U"] + UNIFORM_REGISTERS
_FIRST["UP"] = _FIRST["P"] + PREDICATES
_PLACES = _FIRST["UP"] + PREDICATES
_NAMES = {"R": "R", "UR": "U", "P": "P", "UP": "UP"}  # as read_operands calls them
# Of accesses: the space and kind, and which of the operands is the address; a copy is one of each space.
_ACCESSES: dict[str, tuple[tuple[str, str, int], ...]] = {
    "LDG": (("global", "load", 1),),
    "STG": (("global", "store", 0),),
    "LDS": (("shared", "load", 1),),
    "STS": (("shared", "store", 0),),
    "LDSM": (("shared", "load", 1),),
    "STSM": (("shared", "store", 0),),
    "LDGSTS": (("shared", "copy", 0), ("global", "copy", 1)),
    "LD": (("generic", "load", 1),),
    "ST": (("generic", "store", 0),),
}
_FROM_LOADS = frozenset(("LDG", "LDS", "LD", "LDL", "LDSM", "ATOM", "ATOMG", "ATOMS"))
_FLOAT = frozenset(("FADD", "FMUL", "FFMA", "FMNMX", "FSETP", "FSEL", "F2FP", "HMMA", "HADD2", "HMUL2"))
_FLOAT |= {"HFMA2", "DADD", "DMUL", "DFMA", "F2F", "FCHK", "MUFU"}
# What addresses do not go through: their results are not known. HFMA2 also moves numbers into registers.
_NEVER_RUN = _FLOAT - {"HFMA2", "MUFU"}
_INDIRECT = frozenset(("BRX", "BRXU", "JMX", "JMXU"))
_CONTROL = frozenset(("BRA", "EXIT", "CALL", "RET", "BSSY", "BSYNC", "BAR", "WARPSYNC", "NOP"))
_OF_GRID = re.compile(r"SR_(N?CTAID|CgaCtaId|CLUSTER)")
_WIDE_CONSTANT = re.compile(r"\.(?:64|WIDE)\b.*c\[0x0\]\[(0x[0-9a-f]+)\]$")
# Where in constant bank 0 the size of the block stands: up to Hopper; later, where parameters begin there.
_BLOCK_SIZE, _NEW_BLOCK_SIZE, _NEW_PARAMETERS = 0x0, 0x360, 0x380
_GRID_DISTANCE, _NEW_GRID_DISTANCE = 0xC, 0x10  # from the size of the block to that of the grid
_ALIGNED = 256  # bytes: what an array begins at a multiple of
_MULTIPLES = (64, 16, 256, 1)  # of whole numbers among the arguments, by sample
_WINDOW = (1 << WINDOW_SHIFT) - 1
_MOST_SHARED = 1 << 18  # addresses of shared memory are below
_SHARED_MASK, _GLOBAL_MASK = (1 << 26) - 1, (1 << 43) - 1  # what a key of so many words or units holds


@dataclass(frozen=True)
class UnlaunchedAccess:
    """What a warp's request of one instruction costs, on average over the warps of a block.

    Numbers are sectors of 32 bytes of global memory, or wavefronts of shared memory. They are the same for
    any arguments where least and most agree.
    """

    position: int  # of the instruction in its function
    space: str  # shared, global, or generic
    kind: str  # load, store, copy: a copy is an access of each space
    width: int  # bytes a lane
    least: float | None  # over the samples; None where the addresses are not known
    most: float | None
    excess: float | None  # at least so many more than the bytes that its lanes name fill
    why: str = ""  # nobody knows them

    @property
    def is_known(self) -> bool:
        """Whether its addresses are known for some arguments."""
        return self.least is not None


@dataclass(frozen=True)
class UnlaunchedRun:
    """The accesses of one kernel, and the addresses of those to shared memory."""

    block: Grid
    accesses: tuple[UnlaunchedAccess, ...]  # in the order of the code
    patterns: tuple[AccessPattern, ...]  # of accesses to shared memory: those whose addresses are known


def unlaunched_accesses(
    kernel: KernelImage,
    code: Sequence[tuple[int, str]],
    graph: BlockGraph,
    block: Grid,
    *,
    with_patterns: bool = False,
) -> UnlaunchedRun:
    """Follow the addresses of a block's threads through the code, for a few sets of arguments.

    code: offset and text of each instruction; graph: of its blocks. Arrays begin at multiples of 256 bytes;
    whole numbers among the arguments are large, so that threads are inside of bounds, and multiples of
    different powers of two. What comes out of memory is not known, unless all lanes of a warp read one place:
    then it is a number as the arguments are. A branch goes where its predicate says; both ways where nobody
    knows, and where it depends on arguments and all threads go the same. Loops whose end depends on either go
    three rounds, others 64 at most. So each
    number is that of a path through the code, and not of every one: the least of them is what an access costs
    on all that were tried. with_patterns: the addresses in shared memory are kept.

    Raises NoModel for a block of more than 1024 threads.
    """
    if math.prod(block) > _MOST_THREADS:
        raise NoModel(f"a block of {math.prod(block)} threads is not possible: {_MOST_THREADS} at most")
    with np.errstate(all="ignore"):
        return _Walk(kernel, code, graph, block, with_patterns=with_patterns).run()


@dataclass(frozen=True)
class _Access:
    """An access as it is evaluated."""

    space: str
    kind: str
    width: int
    address: Read
    reads: tuple[int, ...]
    lanes: int  # how many of a warp's point to something


@dataclass
class _PathStep:
    """One instruction: what it reads and writes, as places in a list of all registers and predicates."""

    position: int
    instruction: Instruction
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    level: int = _FIXED  # of what it reads beside registers
    action: Action | None = None  # None: nobody knows what it writes
    accesses: tuple[_Access, ...] = ()
    guard: Read | None = None
    guard_place: int = -1  # -1 also for a predicate that is always true
    conditions: tuple[Read, ...] = ()  # of a branch, beside its guard
    loaded: tuple[int, ...] = ()  # the registers that a load writes


@dataclass(frozen=True)
class _PathState:
    """The needed registers at the end of a block, for the threads of all samples."""

    R: Array
    U: Array
    P: Array
    UP: Array
    levels: list[int]  # of all registers and predicates
    parted: int  # how many branches that nobody knows led here, and have not been joined


@dataclass(frozen=True)
class _Arrival:
    """Threads that come to a block."""

    state: _PathState
    mask: Array  # [threads]


class _View(NamedTuple):
    """Lanes and their samples."""

    lanes: Lanes  # kept, for an object of the same address would be taken for them
    samples: Array  # of each
    firsts: Array  # the first lane of each sample
    numbers: Array  # into `firsts`, of each lane


_Key = tuple[int, bytes, int, str]  # what requests that cost the same have in common


@dataclass
class _Found:
    """What was seen of one access."""

    costs: list[tuple[float, float]] = field(
        default_factory=list
    )  # of a request, in a sample: and the excess
    keys: set[_Key] = field(default_factory=set)  # those in `costs`
    rows: list[Array] = field(default_factory=list)  # addresses of requests, [n, 32]
    reason: int = 0
    space: str = ""  # of a generic access, once it is known
    is_seen: bool = False


class _SampledState(BlockState):
    """The machine with a sample in place of each block: its arguments are its own."""

    lanes: Lanes  # those that the next action is for

    def set_arguments(self, words: Mapping[int, Array]) -> None:
        """words: the value in each sample by its offset in constant bank 0."""
        self._by_thread = {at: np.repeat(values, self.block_threads) for at, values in words.items()}
        self._by_warp = {at: np.repeat(values, self.block_threads // 32) for at, values in words.items()}

    def constant(self, instruction: Instruction, bank: int, offset: int) -> Any:
        """As in the base; of bank 0 one for each thread or, for a uniform instruction, each warp."""
        if bank:
            return super().constant(instruction, bank, offset)
        if offset not in self._by_thread:
            raise instruction.no_model(f"what c[0x0][{offset:#x}] holds is not known")
        if instruction.is_uniform:
            return self._by_warp[offset][self.lanes.warps]
        return self._by_thread[offset][self.lanes.index]

    def constants_at(self, instruction: Instruction, bank: int, offsets: Array, width: int = 4) -> Array:
        """As in the base, of other banks than 0 alone."""
        if not bank:
            raise instruction.no_model("an argument at a place that is computed")
        return super().constants_at(instruction, bank, offsets, width)


class _Walk:
    """Goes over the blocks of one kernel some times."""

    def __init__(
        self,
        kernel: KernelImage,
        code: Sequence[tuple[int, str]],
        graph: BlockGraph,
        block: Grid,
        *,
        with_patterns: bool,
    ) -> None:
        self.graph, self.block, self.with_patterns = graph, block, with_patterns
        self.same_costs: dict[_Key, list[tuple[float, float]]] = {}
        self.views: dict[int, _View] = {}
        self.random = np.random.default_rng(_SEED)
        self.reasons = list(_REASONS)
        self.m = self._machine(kernel, code)
        self.levels = [_FIXED] * _PLACES
        self.steps = [self._step(*one, number) for number, one in enumerate(code)]
        needed, self.by_block = self._needed()
        self.rows = [
            np.array([place - _FIRST[name] for place in sorted(needed) if _file(place) == name], np.intp)
            for name in ("R", "U")
        ]
        self.found = {
            (step.position, access.space): _Found()
            for some in self.by_block
            for step in some
            for access in step.accesses
        }
        returning = returning_calls([step.instruction for step in self.steps])
        called = dict(graph.calls)
        self.calls = {block: to for block, to in called.items() if graph.ranges[block][1] - 1 in returning}
        self.jumps = {block: to for block, to in called.items() if block not in self.calls}
        self.order = self._order()
        self.place = {block: number for number, block in enumerate(self.order)}
        self.loops = {
            min(
                (block for block in loop if block in self.place), key=self.place.__getitem__, default=-1
            ): loop
            for loop in graph.loops
        }
        self.rounds = dict.fromkeys(self.loops, 0)  # by the head of the loop
        self.is_open: set[int] = set()  # heads of loops whose end is not one for any arguments
        self.is_forced: set[int] = set()  # heads of loops that are left now though their condition holds
        self.steps_left = _STEPS_PER_INSTRUCTION * len(code) + _FREE_STEPS
        self.arrivals: dict[int, list[_Arrival]] = {}
        self.same_lanes: dict[bytes, Lanes] = {}

    # ---- the machine and its arguments

    def _machine(self, kernel: KernelImage, code: Sequence[tuple[int, str]]) -> _SampledState:
        blocks = self.random.integers(1, 8, (SAMPLES, 3))  # in grids of 8 to 15
        machine = _SampledState(
            blocks, (1000, 1000, 1000), self.block, 0, kernel.constants, set(), GlobalMemory([]), False
        )
        base = kernel.parameter_base
        end = max((one.offset + one.size for one in kernel.parameters), default=0) + base
        words = {offset: self._whole_numbers() for offset in range(0, end, 4)}
        wide = {int(match[1], 16) for _, text in code if (match := _WIDE_CONSTANT.search(text))}
        addresses = {base + one.offset for one in kernel.parameters if one.size == 8}
        addresses |= {offset for offset in wide if base <= offset < end}
        for offset in addresses:
            address = START + _ALIGNED * self._odd(1 << 24)
            words[offset] = (address & 0xFFFFFFFF).astype(np.uint32)
            words[offset + 4] = (address >> 32).astype(np.uint32)
        first = _NEW_BLOCK_SIZE if base >= _NEW_PARAMETERS else _BLOCK_SIZE
        self.block_words = range(first, first + 12)
        for offset, size in zip(self.block_words[::4], self.block, strict=True):
            words[offset] = np.full(SAMPLES, size, np.uint32)
        grid = first + (_NEW_GRID_DISTANCE if first else _GRID_DISTANCE)
        for offset in (grid, grid + 4, grid + 8):
            words[offset] = self.random.integers(8, 16, SAMPLES).astype(np.uint32)
        machine.set_arguments(words)
        return machine

    def _odd(self, most: int) -> NDArray[np.int64]:
        return self.random.integers(most // 4, most // 2, SAMPLES) * 2 + 1

    def _whole_numbers(self) -> NDArray[np.uint32]:
        numbers: NDArray[np.uint32] = (self._odd(1 << 12) * np.array(_MULTIPLES)).astype(np.uint32)
        return numbers

    # ---- instructions

    def _step(self, offset: int, text: str, position: int) -> _PathStep:
        words = split_instruction(text)
        if words is not None and words.base in _NEVER_RUN:
            step = _PathStep(position, Instruction(offset, text, words.opcode, (), None))
            return self._unknown_result(step, text)
        try:
            # LDCU is ULDC by another name.
            instruction = parse_instruction(offset, text.replace("LDCU", "ULDC", 1))
        except NoModel:
            instruction = Instruction(offset, text, text.partition(" ")[0] or "?", (), None)
        step = _PathStep(position, instruction)
        if instruction.guard is not None:
            with noted_registers() as use:
                step.guard = predicate_reader(instruction, instruction.guard)
            step.guard_place = next(iter(_places(use.reads)), -1)
        try:
            if self._read_operands(step):
                return step
        except (NoModel, ValueError, IndexError):
            step.accesses = ()
        return self._unknown_result(step, text)

    def _unknown_result(self, step: _PathStep, text: str) -> _PathStep:
        """The step with what it writes as its text says, which nobody knows the values of."""
        instruction = step.instruction
        results = [one for result in read_operands(text).results for one in result.registers]
        step.writes = tuple(
            _FIRST[_NAMES[name]] + first + extra
            for name, first, count in results
            if name in _NAMES
            for extra in range(count)
        )
        if instruction.base in _FROM_LOADS:
            step.level = _FROM_MEMORY
            step.loaded = tuple(
                first + i for name, first, count in results if name == "R" for i in range(count)
            )
        elif step.writes:
            step.level = self._reason(f"they depend on the result of {instruction.base}")
        return step

    def _read_operands(self, step: _PathStep) -> bool:
        """Make what the step does; whether all that it writes is known then."""
        instruction = step.instruction
        base = instruction.base
        if base in _ACCESSES:
            step.accesses = tuple(self._access(instruction, *one) for one in _ACCESSES[base])
            return not base.startswith("LD") or base == "LDGSTS"
        if base in _CONTROL:
            with noted_registers() as use:
                conditions = [one for one in instruction.operands if "predicate" in one.kind]
                step.conditions = tuple(predicate_reader(instruction, one) for one in conditions)
            step.reads = _places(use.reads)
            return base != "CALL"
        table = WARP_WIDE if base in WARP_WIDE else ARITHMETIC
        if base in table and base not in _FROM_LOADS:
            with noted_registers() as use:
                action = table[base](instruction)
            if base not in _FLOAT or not use.reads or base == "MUFU":
                step.action = action
                step.reads, step.writes = _places(use.reads), _places(use.writes)
                step.level = max(map(self._operand_level, instruction.operands), default=_FIXED)
                return True
        return False

    def _access(self, instruction: Instruction, space: str, kind: str, operand: int) -> _Access:
        is_matrix = instruction.base in ("LDSM", "STSM")
        last = instruction.opcode.rpartition(".")[2]
        lanes = (8 * int(last) if last in ("2", "4") else 8) if is_matrix else 32
        width = 16 if is_matrix else access_width(instruction)
        with noted_registers() as use:
            address = address_reader(instruction, instruction.operands[operand])
        return _Access(space, kind, width, address, _places(use.reads), lanes)

    def _operand_level(self, operand: Operand) -> int:
        if operand.kind == "special":
            return _OF_ARGUMENTS if _OF_GRID.match(operand.name) else _FIXED
        is_own = operand.kind == "constant" and operand.bank == 0 and operand.number not in self.block_words
        return _OF_ARGUMENTS if is_own else _FIXED

    def _reason(self, words: str) -> int:
        if words not in self.reasons:
            self.reasons.append(words)
        return _UNKNOWN + self.reasons.index(words)

    def _needed(self) -> tuple[set[int], list[list[_PathStep]]]:
        """The registers that addresses, guards and branches depend on, and by block what writes them."""
        needed: set[int] = set()
        pending = []
        for step in self.steps:
            if step.accesses or step.instruction.base in _CONTROL:
                needed.update(step.reads, *(access.reads for access in step.accesses))
                if step.guard_place >= 0:
                    needed.add(step.guard_place)
            elif step.writes:
                pending.append(step)
        is_changed = True
        while is_changed:
            left = []
            for step in pending:
                if needed.isdisjoint(step.writes):
                    left.append(step)
                    continue
                needed.update(step.reads)
                if step.guard_place >= 0:
                    needed.add(step.guard_place)
            is_changed, pending = len(left) < len(pending), left
        unneeded = {step.position for step in pending}
        unneeded |= {step.position for step in self.steps if _never_runs(step.instruction)}
        by_block = [
            [
                step
                for step in self.steps[start:end]
                if (step.accesses or step.writes) and step.position not in unneeded
            ]
            for start, end in self.graph.ranges
        ]
        return needed, by_block

    # ---- the walk

    def run(self) -> UnlaunchedRun:
        """The accesses in the order of the code."""
        if self.order:
            self.arrivals[0] = [_Arrival(self._state(0), self.m.exists)]
        while self.arrivals:  # a loop goes all its rounds before what stands behind it
            block = min(self.arrivals, key=self.place.__getitem__)
            self._run_block(block, self.arrivals.pop(block))
        return UnlaunchedRun(self.block, tuple(self._results()), tuple(self._patterns()))

    def _order(self) -> list[int]:
        """The blocks that are reached, each behind those that lead to it but for jumps back."""
        order: list[int] = []
        seen: set[int] = set()
        for entry in dict.fromkeys((0, *self.calls.values())):
            if entry in seen:
                continue
            part: list[int] = []
            seen.add(entry)
            pending = [(entry, iter(self._following(entry)))]
            while pending:
                block, following = pending[-1]
                successor = next((one for one in following if one not in seen), None)
                if successor is None:
                    part.append(block)
                    pending.pop()
                else:
                    seen.add(successor)
                    pending.append((successor, iter(self._following(successor))))
            order += reversed(part)
        return order

    def _following(self, block: int) -> tuple[int, ...]:
        last = self._last(block).instruction
        if last.base in _INDIRECT:
            return ()
        if block in self.jumps:  # a call that nothing returns from
            return (*(self.graph.successors[block] if last.guard else ()), self.jumps[block])
        return self.graph.successors[block]

    def _last(self, block: int) -> _PathStep:
        return self.steps[self.graph.ranges[block][1] - 1]

    def _run_block(self, block: int, arrivals: list[_Arrival]) -> None:
        state, mask = self._joined(arrivals)
        lanes = self._lanes(mask)
        if lanes is None:
            return
        self._load(state)
        for step in self.by_block[block]:
            self._do(step, lanes)
        self.steps_left -= len(self.by_block[block])
        if block in self.calls:
            self._call(self.calls[block], mask)
        ways, level = self._ways(block, lanes, mask)
        is_unknown = level >= _UNKNOWN
        left = [head for head, loop in self.loops.items() if self._leaves(block, loop, ways)]
        if level:
            self.is_open.update(left)
        at_end = self._state(state.parted + (is_unknown and not left))
        for following, going in ways:
            if following not in self.place or not going.any():
                continue
            if self.place[following] <= self.place[block]:
                if not self._goes_round(following):
                    continue
            elif following in self.rounds:
                self.rounds[following] = 0
                self.is_forced.discard(following)
            after = at_end
            if is_unknown and (
                left_by := [self.loops[one] for one in left if following not in self.loops[one]]
            ):
                after = replace(at_end, levels=self._after_loops(left_by))
            self.arrivals.setdefault(following, []).append(_Arrival(after, going))

    @staticmethod
    def _leaves(block: int, loop: frozenset[int], ways: Sequence[tuple[int, Array]]) -> bool:
        return block in loop and any(following not in loop for following, _ in ways)

    def _goes_round(self, head: int) -> bool:
        """Whether a loop goes another round."""
        if head not in self.rounds or head in self.is_forced:
            return False
        most = _ROUNDS if head in self.is_open else _MOST_ROUNDS
        self.rounds[head] += 1
        if self.rounds[head] >= most - 1 or self.steps_left <= 0:  # the last one
            self.is_forced.add(head)
        return True

    def _after_loops(self, loops: Sequence[frozenset[int]]) -> list[int]:
        """The levels behind loops of which nobody knows how often each thread goes round."""
        levels = self.levels.copy()
        for inside in frozenset[int]().union(*loops):
            for step in self.by_block[inside]:
                for one in step.writes:
                    levels[one] = max(levels[one], _FROM_BRANCH)
        return levels

    def _call(self, called: int, mask: Array) -> None:
        """What is called runs with the registers as they are; nobody knows what it leaves in its own."""
        self.arrivals.setdefault(called, []).append(_Arrival(self._state(0), mask))
        for inside in self.graph.reachable(called):
            for step in self.by_block[inside]:
                for one in step.writes:
                    self.levels[one] = _FROM_CALL

    def _ways(self, block: int, lanes: Lanes, mask: Array) -> tuple[list[tuple[int, Array]], int]:
        """Which threads go on at which blocks, and the level of what decides it."""
        step, following = self._last(block), self._following(block)
        base = step.instruction.base
        if base == "EXIT" and following:
            stays, level = self._taken(step, lanes)
            left = mask if stays is None else self._going(~stays, level, lanes)
            return [(one, left) for one in following], _FIXED
        if (base != "BRA" and block not in self.jumps) or len(following) < 2:
            return [(one, mask) for one in following], _FIXED
        behind = next((one for one in following if self.graph.starts[one] == step.position + 1), following[0])
        target = next(one for one in following if one != behind)
        if step.instruction.modifiers & {"DIV", "CONV"}:  # where lanes of a warp have parted
            return [(behind, mask)], _FIXED
        taken, level = self._taken(step, lanes)
        if taken is None:
            return [(behind, mask), (target, mask)], level
        going, staying = self._going(taken, level, lanes), self._going(~taken, level, lanes)
        loops = [loop for head, loop in self.loops.items() if head in self.is_forced and block in loop]
        if any((behind in loop) != (target in loop) for loop in loops):
            going, staying = (one if one.any() else mask for one in (going, staying))
        return [(behind, staying), (target, going)], level

    def _going(self, goes: Array, level: int, lanes: Lanes) -> Array:
        """Of all threads those that go a way: goes says it of these lanes.

        Where it depends on arguments and all threads of a sample do the same, they go either way.
        """
        mask = np.zeros(self.m.threads, bool)
        mask[lanes.ids] = goes | self._are_one(goes, lanes) if level else goes
        return mask

    def _are_one(self, holds: Array, lanes: Lanes) -> Array:
        """For each lane whether something holds for all or for none of the lanes of its sample."""
        samples = self.m.block_of[lanes.index]
        count, size = np.bincount(samples[holds], minlength=SAMPLES), np.bincount(samples, minlength=SAMPLES)
        are_one: Array = ((count == 0) | (count == size))[samples]
        return are_one

    def _taken(self, step: _PathStep, lanes: Lanes) -> tuple[Array | None, int]:
        """For each lane whether guard and conditions hold, None where nobody knows; and their level."""
        places = (*step.reads, *([step.guard_place] if step.guard_place >= 0 else []))
        level = max([_FIXED, *(self.levels[one] for one in places)])
        if level >= _UNKNOWN:
            return None, level
        self.m.lanes = lanes
        taken: Array = np.ones(lanes.size, bool)
        for read in (*([step.guard] if step.guard else []), *step.conditions):
            taken = taken & read(self.m, lanes)
        return taken, level

    def _do(self, step: _PathStep, lanes: Lanes) -> None:
        levels = self.levels
        guard_level = levels[step.guard_place] if step.guard_place >= 0 else _FIXED
        chosen: Lanes | None = lanes
        taking: Lanes | None = lanes
        self.m.lanes = lanes
        if step.guard is not None and guard_level < _UNKNOWN:
            mask = step.guard(self.m, lanes)
            if step.instruction.is_uniform:
                chosen = lanes.where_warps(mask) if mask.any() else None
            else:
                chosen = lanes.where(mask) if mask.any() else None
                if guard_level and step.accesses:
                    mask = mask | self._are_one(mask, lanes)
                    taking = lanes.where(mask) if mask.any() else None
                else:
                    taking = chosen
        if chosen is None and not guard_level:
            return
        self.m.lanes = taking or lanes
        for access in step.accesses if taking else ():
            self._see(step, access, taking or lanes)
        level = max([step.level, *[levels[one] for one in step.reads]])
        if step.loaded:
            level = self._load_values(step, chosen) if chosen else _FIXED
        if guard_level >= _UNKNOWN:
            level = max(level, _FROM_BRANCH)
        elif level < _UNKNOWN and step.action is not None and chosen is not None:
            self.m.lanes = chosen
            try:
                step.action(self.m, chosen)
            except NoModel:
                level = step.level = self._reason(f"they depend on the result of {step.instruction.base}")
        for one in step.writes:
            kept = max(levels[one], guard_level) if chosen is not lanes else _FIXED
            levels[one] = max(level, kept)

    def _load_values(self, step: _PathStep, lanes: Lanes) -> int:
        """What all lanes of a warp read at one place is a number as the arguments are: the level of it."""
        if step.instruction.base not in ("LDG", "LDS") or not step.accesses:
            return _FROM_MEMORY
        (access,) = step.accesses
        if any(self.levels[one] >= _UNKNOWN for one in access.reads):
            return _FROM_MEMORY
        addresses = access.address(self.m, lanes)
        starts = np.flatnonzero(np.diff(lanes.lane_warps, prepend=-1))
        sizes = np.diff(starts, append=lanes.size)
        if (addresses != np.repeat(addresses[starts], sizes)).any():
            return _FROM_MEMORY
        samples = self.m.block_of[lanes.first_of_warp]
        if len(step.loaded) == 2:
            address = START + _ALIGNED * self._odd(1 << 24)
            values = [(address & 0xFFFFFFFF).astype(np.uint32), (address >> 32).astype(np.uint32)]
        else:
            values = [self._whole_numbers() for _ in step.loaded]
        for register, value in zip(step.loaded, values, strict=True):
            self.m.R[register, lanes.index] = np.repeat(value[samples], sizes)
        return _OF_ARGUMENTS

    # ---- what is seen

    def _see(self, step: _PathStep, access: _Access, lanes: Lanes) -> None:
        found = self.found[step.position, access.space]
        level = max([_FIXED, *[self.levels[one] for one in access.reads]])
        if level >= _UNKNOWN:
            found.reason = found.reason or level
        if found.reason:
            return
        found.is_seen = True
        addresses = access.address(self.m, lanes).astype(np.int64)
        if access.lanes < 32:
            pointing = (lanes.ids & 31) < access.lanes
            addresses, lanes = addresses[pointing], lanes.where(pointing)
        space = access.space
        if space == "generic":
            are_shared = addresses >> WINDOW_SHIFT == self.m.memory.shared_window
            space = "shared" if are_shared.all() else "global"
            if are_shared.any() != are_shared.all() or found.space not in ("", space):
                found.reason = _MIXED
                return
            found.space = space
            addresses = addresses & _WINDOW if space == "shared" else addresses
        view = self._view(lanes)
        # What a request costs stays where all its addresses move by words of banks, or by whole sectors.
        unit = 4 if space == "shared" else SECTOR
        bases = addresses[view.firsts] & -unit
        moved = addresses - bases[view.numbers]
        key = (id(view), moved.tobytes(), access.width, space)
        if key not in self.same_costs:
            self.same_costs[key] = self._costs(lanes, addresses, view.samples, access.width, space)
        if key not in found.keys:
            found.keys.add(key)
            found.costs.extend(self.same_costs[key])
        if self.with_patterns and space == "shared":
            self._keep(found, lanes, addresses & 0xFFFFFFFF, view.samples)

    def _view(self, lanes: Lanes) -> _View:
        view = self.views.get(id(lanes))
        if view is None:
            samples = self.m.block_of[lanes.index]
            _, firsts, numbers = np.unique(samples, return_index=True, return_inverse=True)
            view = self.views[id(lanes)] = _View(lanes, samples, firsts, numbers)
        return view

    def _costs(
        self, lanes: Lanes, addresses: Array, samples: Array, width: int, space: str
    ) -> list[tuple[float, float]]:
        """Of each sample in which the addresses are multiples of the width: cost and excess of a request."""
        wrong = np.bincount(samples[addresses % width != 0], minlength=SAMPLES) > 0
        requests = np.bincount(self.m.block_of[lanes.first_of_warp], minlength=SAMPLES)
        if space == "shared":
            costs, ideal = self._wavefronts(lanes, addresses & _SHARED_MASK, width)
        else:
            costs, ideal = self._sectors(lanes, addresses & _GLOBAL_MASK, width)
        return [
            (float(costs[one] / requests[one]), float((costs[one] - ideal[one]) / requests[one]))
            for one in np.flatnonzero((requests > 0) & ~wrong)
        ]

    def _wavefronts(self, lanes: Lanes, addresses: Array, width: int) -> tuple[Array, Array]:
        warps, most = wavefronts(lanes.lane_warps, lanes.ids & 31, addresses, width)
        samples = warps // (self.m.block_threads // 32)
        return (
            np.bincount(samples, weights=most, minlength=SAMPLES),
            np.bincount(samples, minlength=SAMPLES).astype(float),
        )

    def _sectors(self, lanes: Lanes, addresses: Array, width: int) -> tuple[Array, Array]:
        """Sectors, and those that the different bytes of each warp's lanes fill."""
        sectors = unit_keys(lanes.words, addresses // SECTOR) >> 44
        units = np.bincount(unit_keys(lanes.words, addresses // width) >> 44, minlength=self.m.warps)
        per_block = self.m.block_threads // 32
        ideal = -(-units * width // SECTOR).reshape(SAMPLES, per_block).sum(axis=1)
        costs = np.bincount(sectors // per_block, minlength=SAMPLES)
        return costs.astype(float), ideal.astype(float)

    def _keep(self, found: _Found, lanes: Lanes, addresses: Array, samples: Array) -> None:
        """The addresses of requests in the samples in which they are inside of shared memory."""
        outside = np.bincount(samples[addresses >= _MOST_SHARED], minlength=SAMPLES) > 0
        rows = np.full((self.m.warps, 32), -1, np.int64)
        rows[lanes.lane_warps, lanes.ids & 31] = addresses
        of_warps = rows.reshape(SAMPLES, -1, 32)[~outside].reshape(-1, 32)
        found.rows.append(of_warps[(of_warps >= 0).any(axis=1)])

    def _results(self) -> Iterator[UnlaunchedAccess]:
        for (position, space), found in self.found.items():
            access = next(one for one in self.steps[position].accesses if one.space == space)
            what = position, found.space or space, access.kind, access.width
            reason = found.reason
            if not reason and not found.costs:
                reason = _MISALIGNED if found.is_seen else _NOT_REACHED
            if reason:
                yield UnlaunchedAccess(*what, None, None, None, self.reasons[reason - _UNKNOWN])
                continue
            costs = [cost for cost, _ in found.costs]
            yield UnlaunchedAccess(*what, min(costs), max(costs), min(excess for _, excess in found.costs))

    def _patterns(self) -> Iterator[AccessPattern]:
        for (position, space), found in self.found.items():
            if found.reason or not found.rows:
                continue
            access = next(one for one in self.steps[position].accesses if one.space == space)
            rows, repeats = np.unique(np.concatenate(found.rows), axis=0, return_counts=True)
            if len(rows):
                yield AccessPattern(position, access.kind, access.width, rows, repeats)

    # ---- states

    def _state(self, parted: int) -> _PathState:
        m, (general, uniform) = self.m, self.rows
        return _PathState(m.R[general], m.U[uniform], m.P.copy(), m.UP.copy(), self.levels.copy(), parted)

    def _load(self, state: _PathState) -> None:
        m, (general, uniform) = self.m, self.rows
        m.R[general], m.U[uniform], m.P[:], m.UP[:] = state.R, state.U, state.P, state.UP
        self.levels[:] = state.levels

    def _joined(self, arrivals: list[_Arrival]) -> tuple[_PathState, Array]:
        """One state for all that come: where a thread comes by two ways, one is drawn for its sample."""
        first, *others = arrivals
        state, mask = first.state, first.mask
        for other in others:
            drawn = self.random.integers(0, 2, SAMPLES).astype(bool)
            takes = other.mask & (~mask | np.repeat(drawn, self.m.block_threads))
            state = self._mixed(state, other.state, takes, mask & other.mask)
            mask = mask | other.mask
        return state, mask

    def _mixed(self, a: _PathState, b: _PathState, takes: Array, both: Array) -> _PathState:
        if a is b:
            return a
        warps = takes.reshape(-1, 32).any(axis=1)
        levels = [*map(max, a.levels, b.levels)]
        parted = max(a.parted, b.parted)
        if parted:
            both_warps = both.reshape(-1, 32).any(axis=1)
            files = (("R", a.R, b.R, both), ("U", a.U, b.U, both_warps))
            for (name, x, y, where), rows in zip(files, self.rows, strict=True):
                places = rows[(x[:, where] != y[:, where]).any(axis=1)] + _FIRST[name]
                for one in places.tolist():
                    levels[one] = max(levels[one], _FROM_BRANCH)
            for name, x, y, where in (("P", a.P, b.P, both), ("UP", a.UP, b.UP, both_warps)):
                places = np.flatnonzero((x[:, where] != y[:, where]).any(axis=1)) + _FIRST[name]
                for one in places.tolist():
                    levels[one] = max(levels[one], _FROM_BRANCH)
            parted -= 1
        return _PathState(
            np.where(takes, b.R, a.R),
            np.where(warps, b.U, a.U),
            np.where(takes, b.P, a.P),
            np.where(warps, b.UP, a.UP),
            levels,
            parted,
        )

    def _lanes(self, mask: Array) -> Lanes | None:
        key = mask.tobytes()
        if key not in self.same_lanes:
            self.same_lanes[key] = Lanes(np.flatnonzero(mask))
        lanes = self.same_lanes[key]
        return lanes if lanes.size else None


def _file(place: int) -> str:
    return next(name for name in ("UP", "P", "U", "R") if place >= _FIRST[name])


def _places(registers: set[tuple[str, int]]) -> tuple[int, ...]:
    return tuple(_FIRST[file] + number for file, number in sorted(registers))


def _never_runs(instruction: Instruction) -> bool:
    """Whether it stands behind a guard that is never true, as padding does."""
    guard = instruction.guard
    return guard is not None and guard.number == PREDICATES - 1 and guard.inverted
