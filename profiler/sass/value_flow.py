"""What each instruction computes from: which instructions wrote the values that it reads."""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.build.instruction_text import split_instruction
from profiler.sass.loops import BlockGraph
from profiler.sass.register_operands import NEVER, RegisterOperand, read_operands
from profiler.sass.registers import NUMBER, shapes

# Factors and summands that may change places, by opcode: how many of the first sources.
_COMMUTATIVE: Mapping[str, int] = {
    **dict.fromkeys(("FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA", "IADD", "IMAD", "IMUL"), 2),
    **dict.fromkeys(("HADD2", "HMUL2", "HFMA2", "FMNMX", "IMNMX", "VIADD", "FADD2", "FMUL2", "FFMA2"), 2),
    **dict.fromkeys(("IADD3", "UIADD3"), 3),
}
_ROUNDS = 64  # of colouring: values that differ further back than so many instructions keep one colour
_KINDS = ("R", "UR", "P", "UP", "B")
_ARGUMENTS = range(4, 16)  # general registers: what called code may be given
_GUARD = re.compile(r"!?(U?P)(\d)\Z")
_ENTRY, _CALLED = -1, -2  # in the place of an instruction: held when the function began; of code it calls
_MOST_PROBES = 10  # numbers of registers in one text: each is a digit of its own
HASH = (1 << 64) - 1
_FACTORS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_DEPTH_FACTOR = np.uint64(0x165667B19E3779F9)

Numbers = NDArray[np.intp]
Hashes = NDArray[np.uint64]  # equal ones for what is equal
_Group = tuple[int, int, int]  # which number of a text is its first register, the kind << 8, how many


class InstructionFlow(NamedTuple):
    """What the text of one instruction says of it; a register is its kind << 8 | its number."""

    opcode: str  # with modifiers
    results: tuple[str, ...]  # the forms of what it writes
    forms: tuple[str, ...]  # of what it reads, without numbers of registers: `-R`, `desc[UR][R.64+0x10]`
    writes: tuple[int, ...]
    reads: tuple[int, ...]  # of all sources, one behind the other
    sizes: tuple[int, ...]  # how many registers each source has
    is_never: bool  # its guard never holds
    is_call: bool
    is_conditional: bool
    # Hashes of opcode and results, and of each source's form: of those that may change places equal ones.
    base: int
    sources: tuple[int, ...]
    placed: tuple[int, ...]  # of each source's form and place

    @property
    def form(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Opcode, results and sources without numbers of registers.

        What computes the same has the same: factors and summands, which may change places, are sorted.
        """
        first, last = _exchangeable(self.opcode, self.forms)
        sources = (*self.forms[:first], *sorted(self.forms[first:last]), *self.forms[last:])
        return self.opcode, self.results, sources


@lru_cache(maxsize=1 << 16)
def instruction_flow(text: str) -> InstructionFlow:
    """What an instruction's text says of it."""
    words = split_instruction(text)
    if words is None:
        return _read(text)[0]
    guard, opcode, operands = words
    numbers = NUMBER.findall(guard) + NUMBER.findall(operands)
    # What a call is given and all predicates together are registers without a number in the text.
    if len(numbers) <= _MOST_PROBES and words.base != "CALL" and not operands.startswith("PR"):
        shape = f"{opcode} {NUMBER.sub('#', operands)}"
        read, writes, reads = _template(f"@{NUMBER.sub('#', guard)} {shape}" if guard else shape)
        found = [int(number.partition(".")[0]) for number in numbers]
        if all(found[at] + width <= 255 for at, _, width in (*writes, *reads)):
            opcode, results, forms, _, _, *rest = read
            own = _registers(writes, found), _registers(reads, found)
            return InstructionFlow._make((opcode, results, forms, *own, *rest))
    return _read(text)[0]


@lru_cache(maxsize=1 << 14)
def _template(shape: str) -> tuple[InstructionFlow, list[_Group], list[_Group]]:
    """Of all texts with one shape, in which a number of a register is #."""
    digits = iter("0123456789")
    read, writes, reads = _read(re.sub("#", lambda _: next(digits), shape))
    return read, writes, reads


def _registers(groups: Sequence[_Group], numbers: Sequence[int]) -> tuple[int, ...]:
    return tuple(
        register
        for at, kind, width in groups
        for register in range(kind + numbers[at], kind + numbers[at] + width)
    )


def _read(text: str) -> tuple[InstructionFlow, list[_Group], list[_Group]]:
    """And the groups of registers that it writes and reads, with the numbers that they have."""
    words = split_instruction(text)
    operands = read_operands(text)
    guard = _GUARD.fullmatch(words.guard) if words else None
    is_never = operands.condition == NEVER
    is_call = bool(words and words.base == "CALL")
    sources: list[tuple[str, list[_Group]]] = []
    if words and words.guard:
        group = [(int(guard[2]), _KINDS.index(guard[1]) << 8, 1)] if guard else []
        sources.append((shapes([f"@{words.guard}"])[0], group))
    elif is_never:
        sources.append((text, []))
    sources += [(shapes([one.text])[0], _groups(one)) for one in operands.sources]
    if is_call:
        sources += [(f"argument {number}", [(number, 0, 1)]) for number in _ARGUMENTS]
    writes = [] if is_never else [group for one in operands.results for group in _groups(one)]
    reads = [group for _, some in sources for group in some]
    opcode = words.opcode if words else text
    results = tuple(shapes([one.text])[0] for one in operands.results)
    forms = tuple(form for form, _ in sources)
    first, last = _exchangeable(opcode, forms)
    numbers = range(256)
    flow = InstructionFlow(
        opcode,
        results,
        forms,
        _registers(writes, numbers),
        _registers(reads, numbers),
        tuple(sum(width for *_, width in groups) for _, groups in sources),
        is_never,
        is_call,
        operands.condition > 0,
        hash((opcode, results)) & HASH,
        tuple(hash((form, first if first <= at < last else at)) & HASH for at, form in enumerate(forms)),
        tuple(hash((form, at)) & HASH for at, form in enumerate(forms)),
    )
    return flow, writes, reads


def _groups(operand: RegisterOperand) -> list[_Group]:
    return [  # of groups that end behind the last register no part
        (number, _KINDS.index(kind) << 8, min(width, 255 - number))
        for kind, number, width in operand.registers
        if number < 255
    ]


def _exchangeable(opcode: str, forms: Sequence[str]) -> tuple[int, int]:
    """Which sources of an instruction may change places: from the first to the one before the last."""
    first = 1 if forms and forms[0].startswith("@") else 0
    return first, first + _COMMUTATIVE.get(opcode.partition(".")[0], 0)


@dataclass(frozen=True)
class ValueFlow:
    """Of some instructions of one function what they compute from.

    Where a value comes from: the position of an instruction, and which register of its results; or -1, and
    the register that held it when the function began, or -2, and the one that a call may have changed.
    """

    instructions: Sequence[InstructionFlow]
    positions: Numbers  # of each
    cells: Numbers  # the registers that they read, by their place among all that they do, ascending
    readers: Numbers  # of each of those the instruction, by its index here
    firsts: Numbers  # of each register that is read the first of its origins
    rows: Numbers  # of each origin the position, -1 or -2
    results: Numbers  # of each origin which register

    def origins(self, index: int, source: int) -> list[frozenset[tuple[int, int]]]:
        """By register of one source of one instruction, where its values may come from."""
        sizes = self.instructions[index].sizes
        first = int(np.searchsorted(self.readers, index)) + sum(sizes[:source])
        ends = [*self.firsts.tolist(), len(self.rows)]
        pairs = list(zip(self.rows.tolist(), self.results.tolist(), strict=True))
        return [frozenset(pairs[ends[at] : ends[at + 1]]) for at in range(first, first + sizes[source])]

    def read_hashes(self, origins: Hashes) -> Hashes:
        """Of each register that is read a hash of where it comes from. origins: of each position one."""
        if not len(self.readers):
            return np.empty(0, dtype=np.uint64)
        of_rows = self.rows.astype(np.uint64)
        inside = self.rows >= 0
        of_rows[inside] = origins[self.rows[inside]]
        found: Hashes = np.add.reduceat(_mixed(of_rows + self._result_hashes), self.firsts)
        return found

    def hashes(self, origins: Hashes, base: Hashes, *, is_in_order: bool = False) -> Hashes:
        """Of each instruction a hash of what it is and of where what it reads comes from.

        origins: of each position one. base: of each instruction one of what it is, without what it reads.
        is_in_order: factors and summands may not change places.
        """
        forms, plain = self._forms[is_in_order]
        total = base + plain
        if len(self.readers):
            cells = _mixed(self.read_hashes(origins) + self._places)
            sources = _mixed(np.add.reduceat(cells, self._source_starts) + forms)
            total[self._owners] += np.add.reduceat(sources, self._owner_starts)
        return _mixed(total)

    def colours(self, first: Hashes, base: Hashes) -> Iterator[Hashes]:
        """Numbers for what each instruction computes: equal ones in two functions have come to the same.

        Each array looks one instruction further back than the one before, until that tells no more apart.
        base: as hashes has it. Order does not count, of factors and summands neither. All instructions of the
        function must be here, with all registers.
        """
        found = first
        count = len(np.unique(found))
        for _ in range(_ROUNDS):
            yield found
            found = self.hashes(found, base)
            before, count = count, len(np.unique(found))
            if count == before:
                break
        yield found

    @cached_property
    def base(self) -> Hashes:
        """Of each instruction a hash of its opcode and the forms of its results."""
        return np.array([one.base for one in self.instructions], dtype=np.uint64)

    @cached_property
    def slots(self) -> Hashes:
        """Of each register that is read a hash of which source it is, and where in it."""
        sizes = self._sizes[self._sizes > 0]
        found: Hashes = (np.repeat(self._forms[0][0], sizes) + self._places)[self.cells]
        return found

    @cached_property
    def _result_hashes(self) -> Hashes:
        return _mixed(self.results.astype(np.uint64))

    @cached_property
    def _sizes(self) -> Numbers:
        """Of each source the registers."""
        return np.array([size for one in self.instructions for size in one.sizes], dtype=np.intp)

    @cached_property
    def _source_starts(self) -> Numbers:
        """Of each source that reads registers the first of them."""
        ends = np.cumsum(self._sizes)
        return (ends - self._sizes)[self._sizes > 0]

    @cached_property
    def _places(self) -> Hashes:
        """Of each register that is read a hash of its place in its source."""
        starts = np.repeat(self._source_starts, self._sizes[self._sizes > 0])
        return _mixed((np.arange(len(starts)) - starts).astype(np.uint64))

    @cached_property
    def _of_sources(self) -> Numbers:
        """Of each source its instruction."""
        counts = [len(one.sizes) for one in self.instructions]
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def _owner_starts(self) -> Numbers:
        """Of each instruction that reads registers the first of its sources that do."""
        owners = self._of_sources[self._sizes > 0]
        return np.flatnonzero(np.diff(owners, prepend=-1))

    @cached_property
    def _owners(self) -> Numbers:
        return self._of_sources[self._sizes > 0][self._owner_starts]

    @cached_property
    def _forms(self) -> tuple[tuple[Hashes, Hashes], tuple[Hashes, Hashes]]:
        """Hashes of the sources that read registers, and of each instruction those of its others in sum.

        First without the places of those that may change them, then with them.
        """
        found = []
        for some in ((one.sources for one in self.instructions), (one.placed for one in self.instructions)):
            forms = np.array(list(chain.from_iterable(some)), dtype=np.uint64)
            bare = self._sizes == 0
            plain = np.zeros(len(self.instructions), dtype=np.uint64)
            np.add.at(plain, self._of_sources[bare], _mixed(forms[bare]))
            found.append((forms[~bare], plain))
        return found[0], found[1]


def first_colours(base: Hashes, depths: Numbers) -> Hashes:
    """Hashes of what instructions are and of how many loops they are in. base: as ValueFlow has it."""
    return _mixed(base + depths.astype(np.uint64) * _DEPTH_FACTOR)


def _mixed(numbers: Hashes) -> Hashes:
    found: Hashes = (numbers ^ numbers >> np.uint64(32)) * _FACTORS[0]
    found ^= found >> np.uint64(29)
    found *= _FACTORS[1]
    found ^= found >> np.uint64(32)
    return found


def value_flow(
    instructions: Sequence[InstructionFlow],
    graph: BlockGraph,
    positions: Numbers | None = None,
    registers: Collection[int] | None = None,
) -> ValueFlow:
    """What the instructions of one function compute from.

    positions: of the instructions, where they are not all, ascending. registers: what is written and read of
    these alone, where they are not all: every instruction that touches one must be there, and each call and
    return. Code of the function that it calls itself is followed, from every call to every return. Of other
    calls any register may come back changed.
    """
    if positions is None:
        positions = np.arange(len(instructions))
    events = _events(instructions, graph, positions, registers)
    sizes = [end - start for start, end in graph.ranges]
    block_of = np.repeat(np.arange(len(sizes)), np.array(sizes, dtype=np.intp))
    return _Flow(instructions, graph, positions, events, block_of[positions]).solved()


_READ, _MAY_WRITE, _WRITE = range(3)


class _Events(NamedTuple):
    """What instructions do to registers, by register and then in the order of the code."""

    registers: Numbers
    owners: Numbers  # the index of the instruction
    kinds: Numbers  # _READ, _MAY_WRITE, _WRITE
    numbers: Numbers  # of a read its place among them; of a write which result; of a call _CALLED
    cells: Numbers  # of each read its place among all that the instructions read


def _events(
    instructions: Sequence[InstructionFlow],
    graph: BlockGraph,
    positions: Numbers,
    only: Collection[int] | None,
) -> _Events:
    read = np.array(list(chain.from_iterable(one.reads for one in instructions)), dtype=np.intp)
    readers = np.repeat(np.arange(len(instructions)), [len(one.reads) for one in instructions])
    written = np.array(list(chain.from_iterable(one.writes for one in instructions)), dtype=np.intp)
    counts = np.array([len(one.writes) for one in instructions], dtype=np.intp)
    writers = np.repeat(np.arange(len(instructions)), counts)
    places = np.array(
        list(chain.from_iterable(range(len(one.writes)) for one in instructions)), dtype=np.intp
    )
    conditional = np.array([one.is_conditional for one in instructions], dtype=np.bool_)
    cells = np.arange(len(read))
    if only is not None:
        some = np.array(sorted(only), dtype=np.intp)
        is_read, is_written = np.isin(read, some), np.isin(written, some)
        read, readers, cells = read[is_read], readers[is_read], cells[is_read]
        written, writers, places = written[is_written], writers[is_written], places[is_written]
    followed = {graph.ranges[block][1] - 1 for block, _ in graph.calls}
    calls = [
        index
        for index, one in enumerate(instructions)
        if one.is_call and int(positions[index]) not in followed
    ]
    # Other code may write any register. Each keeps its number: the ABI gives it a meaning.
    every = np.unique(np.concatenate([read, written])) if calls else np.empty(0, dtype=np.intp)
    registers = np.concatenate([read, np.tile(every, len(calls)), written])
    owners = np.concatenate([readers, np.repeat(np.array(calls, dtype=np.intp), len(every)), writers])
    kinds = np.full(len(registers), _MAY_WRITE)
    kinds[: len(read)] = _READ
    if len(written):
        kinds[-len(written) :] = np.where(conditional[writers], _MAY_WRITE, _WRITE)
    called = np.full(len(calls) * len(every), _CALLED)
    numbers = np.concatenate([np.arange(len(read)), called, places])
    # What an instruction reads comes before what it calls, and that before what it writes: as they stand.
    order = np.lexsort((owners, registers))
    return _Events(registers[order], owners[order], kinds[order], numbers[order], cells)


class _Flow:
    """Reaching definitions: of each register those of it are numbered one behind the other."""

    def __init__(
        self,
        instructions: Sequence[InstructionFlow],
        graph: BlockGraph,
        positions: Numbers,
        events: _Events,
        blocks: Numbers,
    ) -> None:
        self.instructions, self.graph, self.positions, self.events = instructions, graph, positions, events
        self.blocks = blocks[events.owners] if len(events.owners) else np.empty(0, dtype=np.intp)
        registers, _, kinds, numbers, _ = events
        place = np.arange(len(registers))
        self.is_first = _differs(registers)
        self.of_register = np.cumsum(self.is_first) - 1
        # Each register has one definition at the entry, then one of calls, then those of its writes.
        is_write = (kinds != _READ) & (numbers != _CALLED)
        before = np.cumsum(is_write) - is_write
        names = registers[self.is_first]
        self.bases = before[self.is_first] + 2 * np.arange(len(names))
        self.count = int(is_write.sum()) + 2 * len(names)
        self.sizes = np.diff(self.bases, append=self.count)
        self.definitions = np.where(is_write, before + 2 * (self.of_register + 1), -1)
        is_called = numbers == _CALLED
        self.definitions[is_called] = self.bases[self.of_register[is_called]] + 1
        self.rows = np.full(self.count, _ENTRY)
        self.results = np.empty(self.count, dtype=np.intp)
        self.results[self.bases], self.results[self.bases + 1] = names, names
        self.rows[self.bases + 1] = _CALLED
        self.rows[self.definitions[is_write]] = positions[events.owners[is_write]]
        self.results[self.definitions[is_write]] = numbers[is_write]
        # A run is what happens to one register in one block.
        starts = self.is_first | _differs(self.blocks)
        self.run_of = np.cumsum(starts) - 1
        self.starts = np.flatnonzero(starts)
        begin = self.starts[self.run_of]
        # Of each event the last write up to it in its run that always happens, else where the run begins; and
        # those that may happen between.
        self.last = np.maximum.accumulate(np.where(kinds == _WRITE, place, -1)) if len(place) else place
        self.is_written = self.last >= begin
        self.may = np.flatnonzero(kinds == _MAY_WRITE)
        self.may_before = np.cumsum(kinds == _MAY_WRITE)
        since = np.where(self.is_written, self.last, begin)
        self.may_first = self.may_before[since] - (kinds[since] == _MAY_WRITE) if len(place) else since

    def solved(self) -> ValueFlow:
        kinds, numbers = self.events.kinds, self.events.numbers
        reads = np.flatnonzero(kinds == _READ)
        written = reads[self.is_written[reads]]
        parts = [(numbers[written], self.definitions[self.last[written]])]
        counts = self.may_before[reads] - self.may_first[reads]
        places = _ranges(self.may_first[reads], counts)
        parts.append((np.repeat(numbers[reads], counts), self.definitions[self.may[places]]))
        exposed = reads[~self.is_written[reads]]
        runs, which = np.unique(self.run_of[exposed], return_inverse=True)
        firsts, sizes, definitions = self._at_block_entry(runs)
        counts = sizes[which]
        places = _ranges(firsts[which], counts)
        parts.append((np.repeat(numbers[exposed], counts), definitions[places]))
        cells = np.concatenate([cell for cell, _ in parts])
        found = np.concatenate([definition for _, definition in parts])
        # The same from two calls is one origin.
        pairs = np.unique(cells * self.count + found) if self.count else np.empty(0, dtype=np.intp)
        cells, found = pairs // max(self.count, 1), pairs % max(self.count, 1)
        is_first = _differs(cells)
        owners = np.empty(len(reads), dtype=np.intp)
        owners[numbers[reads]] = self.events.owners[reads]
        return ValueFlow(
            self.instructions,
            self.positions,
            self.events.cells,
            owners,
            np.flatnonzero(is_first),
            self.rows[found],
            self.results[found],
        )

    def _at_block_entry(self, runs: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Of some runs the definitions that reach their block: the first of each, how many, all in turn."""
        registers = self.of_register[self.starts[runs]]
        blocks = self.blocks[self.starts[runs]]
        is_read = np.zeros(len(self.bases), dtype=np.bool_)
        is_read[registers] = True
        # Registers that no block reads from before it are left out: the others' definitions are bits.
        sizes = np.where(is_read, self.sizes, 0)
        bits = np.cumsum(sizes) - sizes
        count = int(sizes.sum())
        before = self._solve(is_read, bits, count)
        length = (count + 7) // 8
        packed = np.frombuffer(b"".join(one.to_bytes(length, "little") for one in before), np.uint8)
        counts = sizes[registers]
        places = _ranges(bits[registers], counts)
        at = np.repeat(blocks, counts) * length + places // 8
        reaches = (packed[at] >> (places % 8).astype(np.uint8) & 1).astype(np.bool_)
        run = np.repeat(np.arange(len(runs)), counts)[reaches]
        shift = np.repeat(self.bases[registers] - bits[registers], counts)
        found = np.bincount(run, minlength=len(runs))
        return np.cumsum(found) - found, found, (places + shift)[reaches]

    def _solve(self, is_read: NDArray[np.bool_], bits: Numbers, count: int) -> list[int]:
        """By block the definitions that reach it, as bits of a number."""
        entry = np.zeros(count, dtype=np.bool_)
        entry[bits[is_read]] = True
        at_start = _number(entry)
        transfers = self._transfers(is_read, bits, count)
        following = self._following()
        before: list[int | None] = [None] * len(following)
        pending = list[int]()
        if before:
            before[0] = at_start
            pending.append(0)
        is_pending = set(pending)
        while pending:
            block = heapq.heappop(pending)
            is_pending.remove(block)
            state = before[block] or 0
            if block in transfers:
                kept, made = transfers[block]
                state = state & kept | made
            for successor in following[block]:
                old = before[successor]
                if old is None or state & ~old:
                    before[successor] = state | (old or 0)
                    if successor not in is_pending:
                        heapq.heappush(pending, successor)
                        is_pending.add(successor)
        return [at_start if one is None else one for one in before]  # None: no path leads there

    def _following(self) -> list[list[int]]:
        """By block those that run behind it, into code that is called and back from it."""
        graph = self.graph
        following = [list(successors) for successors in graph.successors]
        if graph.calls:
            ends = {end - 1: block for block, (_, end) in enumerate(graph.ranges)}
            returns = [
                ends[position]
                for one, position in zip(self.instructions, self.positions.tolist(), strict=True)
                if position in ends and one.opcode.startswith("RET")
            ]
            for block, called in graph.calls:
                following[block].append(called)
                for other in returns:
                    after = graph.successors[block]
                    following[other] += [one for one in after if one not in following[other]]
        return following

    def _transfers(self, is_read: NDArray[np.bool_], bits: Numbers, count: int) -> dict[int, tuple[int, int]]:
        """By block which definitions pass through it and which it makes; nothing where all pass."""
        lasts = np.append(self.starts[1:], len(self.blocks)) - 1
        lasts = lasts[is_read[self.of_register[lasts]]] if len(self.starts) else lasts[:0]
        killed = lasts[self.is_written[lasts]]
        counts = self.may_before[lasts] - self.may_first[lasts]
        may = self.may[_ranges(self.may_first[lasts], counts)]
        made = np.concatenate([self.last[killed], may])
        of_made = self.of_register[made]
        made_bits = self.definitions[made] - self.bases[of_made] + bits[of_made]
        of_killed = self.of_register[killed]
        by_block: dict[int, tuple[list[int], list[int]]] = {}
        for block, register in zip(self.blocks[killed].tolist(), of_killed.tolist(), strict=True):
            by_block.setdefault(block, ([], []))[0].append(register)
        for block, bit in zip(self.blocks[made].tolist(), made_bits.tolist(), strict=True):
            by_block.setdefault(block, ([], []))[1].append(bit)
        found = {}
        for block, (registers, own) in by_block.items():
            kept = np.ones(count, dtype=np.bool_)
            for register in registers:
                kept[bits[register] : bits[register] + self.sizes[register]] = False
            new = np.zeros(count, dtype=np.bool_)
            new[own] = True
            found[block] = _number(kept), _number(new)
        return found


def _differs(numbers: Numbers) -> NDArray[np.bool_]:
    """Where another number stands than before."""
    found = np.ones(len(numbers), dtype=np.bool_)
    found[1:] = numbers[1:] != numbers[:-1]
    return found


def _ranges(firsts: Numbers, counts: Numbers) -> Numbers:
    """So many numbers from each first on, all in turn."""
    before = np.cumsum(counts) - counts
    found: Numbers = np.arange(int(counts.sum())) + np.repeat(firsts - before, counts)
    return found


def _number(bits: NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")
