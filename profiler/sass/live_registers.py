"""How many registers hold a value that is still read, at each instruction and at each source line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from profiler.sass.listing import FileLine, Listing, SassLine
from profiler.sass.loops import make_graph, read_jumps
from profiler.sass.register_operands import NEVER, RegisterUse, opposite, predicate_of, register_use

# What is live, as the bits of registers by the condition under which it is: 0 whatever happens, else the
# number of a guard (register_operands.guard_condition).
_Live = dict[int, int]
_STACK_POINTER = 1 << 1  # R1
_ARGUMENTS = ((1 << 12) - 1) << 4  # R4 to R15: what a function of the ABI may be given


@dataclass(frozen=True)
class LiveRegisters:
    """The live registers of one function: those whose value some later instruction may read."""

    function: str  # mangled, or as a report calls it
    first: int  # the position of its first instruction in the listing
    counts: tuple[int, ...]  # by instruction, with what it reads and writes itself
    sources: tuple[FileLine | None, ...]
    unknown_calls: int = 0  # of functions whose code is not here: the counts around them are too low

    @property
    def highest(self) -> int:
        """The most at any instruction."""
        return max(self.counts, default=0)

    @property
    def highest_position(self) -> int:
        """Which instruction of the function that is, the first of several."""
        return self.counts.index(self.highest)

    @property
    def highest_line(self) -> FileLine | None:
        """The source line of it; None where the code has no line information."""
        return self.sources[self.highest_position] if self.counts else None

    @cached_property
    def by_line(self) -> Mapping[FileLine, int]:
        """The most at any instruction of each source line."""
        most: dict[FileLine, int] = {}
        for count, source in zip(self.counts, self.sources, strict=True):
            if source is not None:
                most[source] = max(count, most.get(source, 0))
        return most

    @property
    def words(self) -> str:
        """`128 live at v2d.cu:142`."""
        source = self.highest_line
        if source is None:
            return f"{self.highest} live at +{16 * self.highest_position:#x}" if self.counts else "no code"
        return f"{self.highest} live at {source[0].rpartition('/')[2]}:{source[1]}"


def count_live_registers(
    listing: Listing, is_selected: Callable[[str], bool] = lambda name: True
) -> tuple[LiveRegisters, ...]:
    """Of each function of a listing, which must have its text, or of those with selected names.

    A register is live before an instruction if a path from there reads it before it is written; a write
    under a predicate ends that only for the lanes that have the predicate. ptxas allocates at least as many
    registers as live at once, and more where groups of registers must be aligned or where calls fix them.
    """
    return tuple(
        _function(listing, index, lines)
        for index, lines in enumerate(listing.ranges)
        if len(lines) and is_selected(listing.functions[index])
    )


def _function(listing: Listing, index: int, lines: range) -> LiveRegisters:
    rows = [listing.lines[position] for position in lines]
    analysis = _Analysis(rows)
    sources = tuple(row.source for row in rows)
    return LiveRegisters(
        listing.functions[index], lines.start, analysis.counts(), sources, analysis.unknown_calls
    )


_EVERYTHING = (1 << 255) - 1


class _Analysis:
    """Backward data flow over the blocks of one function, with calls inside of it."""

    def __init__(self, rows: Sequence[SassLine]) -> None:
        self.uses = [register_use(row.text) if row.text else _NOTHING for row in rows]
        self.jumps = read_jumps(rows)
        self.graph = make_graph(self.jumps, len(rows))
        self.called = dict(self.graph.calls)
        self.unknown_calls = sum(
            jump.base == "CALL" and jump.target is None and jump.condition != NEVER
            for jump in self.jumps.values()
        )
        # By block what called code needs, with nothing and with everything live behind the call.
        self.callees: dict[int, tuple[int, int]] = {}
        # Calls whose code is still to be counted, and all that were found: first block, what is live behind
        # the call. Called code may call itself, or be the loop that the call is in.
        self.entered: list[tuple[int, int]] = []
        self.found: set[tuple[int, int]] = set()
        self.most = [0] * len(rows)
        # The stack pointer stays for the whole kernel, whether any instruction needs it again or not.
        self.stack_pointer = _STACK_POINTER if any(use.writes & _STACK_POINTER for use in self.uses) else 0

    def counts(self) -> tuple[int, ...]:
        """Live registers by instruction; 0 where no path leads."""
        self._summarise_callees()
        self._solve(0, 0, is_counted=True)
        while self.entered:
            self._solve(*self.entered.pop(), is_counted=True)
        return tuple(self.most)

    def _summarise_callees(self) -> None:
        """Solve all code that is called, again where code that it calls turns out to need more.

        Code may call itself, and ptxas makes calls into the loop that they are in.
        """
        self.callees = dict.fromkeys(self.called.values(), (0, 0))
        users: dict[int, list[int]] = {entry: [] for entry in self.callees}
        for entry in self.callees:
            for block in self.graph.reachable(entry):
                if block in self.called:
                    users[self.called[block]].append(entry)
        pending = sorted(self.callees)
        while pending:
            entry = pending.pop()
            # Data flow treats each register by itself: two runs say what it does for any set.
            summary = (
                self._solve(entry, 0, is_counted=False),
                self._solve(entry, _EVERYTHING, is_counted=False),
            )
            if summary != self.callees[entry]:
                self.callees[entry] = summary
                pending += [user for user in users[entry] if user not in pending]

    def _solve(self, entry: int, after_return: int, is_counted: bool) -> int:
        """What is live before a block at which code is entered, whatever the predicates.

        after_return: what is live behind RET, which is where such code goes back to.
        """
        blocks = self.graph.reachable(entry)
        before: dict[int, _Live] = {block: {} for block in blocks}
        users: dict[int, list[int]] = {block: [] for block in blocks}
        for block in blocks:
            for following, _ in self.graph.edges[block]:
                users[following].append(block)
        pending = sorted(blocks)
        while pending:
            block = pending.pop()
            live = self._block(block, before, after_return, None)
            if live != before[block]:
                before[block] = live
                pending += [user for user in users[block] if user not in pending]
        if is_counted:
            for block in blocks:
                self._block(block, before, after_return, self.most)
        return _union(before[entry])

    def _block(
        self, block: int, before: Mapping[int, _Live], after_return: int, most: list[int] | None
    ) -> _Live:
        """What is live before a block, from what is live before those that follow."""
        live: _Live = {}
        for following, condition in self.graph.edges[block]:
            _add(live, _on_edge(before[following], condition))
        start, end = self.graph.ranges[block]
        for position in range(end - 1, start - 1, -1):
            use, jump = self.uses[position], self.jumps.get(position)
            base = jump.base if jump else ""
            if base == "RET" and use.condition != NEVER:
                _add(live, {use.condition: after_return})
            elif base == "EXIT" and use.condition != NEVER:
                _add(live, {use.condition: self.stack_pointer})
            elif base == "CALL" and use.condition != NEVER:
                live = self._call(block, use, live, most is not None)
            _step(live, use)
            if most is not None:
                most[position] = max(most[position], (_union(live) | use.writes).bit_count())
        return live

    def _call(self, block: int, use: RegisterUse, live: _Live, is_counted: bool) -> _Live:
        """What is live before the call at the end of a block, from what is live behind it."""
        entry = self.called.get(block)
        behind = _union(live)
        if entry is None:
            return {0: behind | _ARGUMENTS}
        if is_counted and (entry, behind) not in self.found:
            self.found.add((entry, behind))
            self.entered.append((entry, behind))
        needed, passed = self.callees[entry]
        inside = needed | (passed & behind)
        if use.condition:
            inside |= behind
        return {0: inside}


_NOTHING = RegisterUse(0, 0, 0, 0)


def _union(live: _Live) -> int:
    registers = 0
    for some in live.values():
        registers |= some
    return registers


def _add(live: _Live, other: _Live) -> None:
    """Add what is live under some conditions; under a predicate and its opposite is always."""
    for condition, registers in other.items():
        always = live.get(0, 0)
        if condition == 0:
            for known in live:
                live[known] &= ~registers
            live[0] = always | registers
        elif registers := registers & ~always:
            both = registers & live.get(opposite(condition), 0)
            live[condition] = live.get(condition, 0) | registers
            if both:
                _add(live, {0: both})
    for condition in [condition for condition, registers in live.items() if not registers]:
        del live[condition]


def _on_edge(live: _Live, condition: int) -> _Live:
    """What is live on a branch that is taken under a condition, for all lanes before it."""
    if not condition:
        return live
    under: _Live = {}
    for known, registers in live.items():
        if known == 0:
            _add(under, {condition: registers})
        elif known != opposite(condition):
            _add(under, {known: registers})
    return under


def _step(live: _Live, use: RegisterUse) -> None:
    """From behind an instruction to before it."""
    if use.condition == NEVER:
        return
    if use.predicate_writes:  # what the predicates were before it says nothing of what they are behind it
        for condition in [c for c in live if c and use.predicate_writes >> predicate_of(c) & 1]:
            # What the one before made live whatever happens may have left nothing under this one.
            _add(live, {0: live.pop(condition, 0)})
    if use.writes and not use.condition:
        for condition in live:
            live[condition] &= ~use.writes
    elif use.writes:
        if use.condition in live:
            live[use.condition] &= ~use.writes
        if still := live.get(0, 0) & use.writes:
            live[0] &= ~still
            _add(live, {opposite(use.condition): still})
    _add(live, {use.condition: use.reads})
