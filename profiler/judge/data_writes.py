"""Whether code may write into global memory that its binary brings along: a search for where addresses go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from profiler.model.control_slice import returned_registers
from profiler.model.instructions import Instruction
from profiler.model.interpreter import KernelProgram, control_targets
from profiler.sass.register_operands import register_use

_CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[([^\]]+)\]")
_DESCRIPTOR = re.compile(r"desc\[UR\d+\]")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_REGISTER = re.compile(r"(?<![A-Z])(U?)R(\d+)")
_LOADS = frozenset(["LD", "LDG", "LDS", "LDL", "LDSM", "LDGSTS", "CCTL", "CCTLL"])
# The memory of which loads read and into which stores write; of others it may be either.
_SPACES = {"LDG": "g", "LDS": "s", "LDSM": "s", "LDL": "l", "STG": "g", "STS": "s", "STL": "l", "LDGSTS": "g"}
_BLOCK_STORES = frozenset(["STS", "STL", "STSM", "ATOMS"])  # whose addresses are never of global memory
# Opcodes that write all registers of their group for certain: what these held is gone.
_WIDE_RESULTS = frozenset(["LDG", "LDS", "LDL", "LDC", "LD", "IMAD", "CS2R"])
_NO_RESULT = frozenset(["ISETP", "FSETP", "DSETP", "HSETP2", "UISETP", "PLOP3", "UPLOP3", "FCHK", "R2P"])
# Which read 64-bit constants whole: of an address the lower half alone tells where it is.
_PAIRS_READ = frozenset(["LDC", "ULDC", "LDCU"])
_EVEN = int("01" * 256, 2)
_UNIFORM = 256  # the first bit of uniform registers
_UNIFORM_RESULTS = frozenset(["R2UR", "S2UR", "LDCU"])


@dataclass(frozen=True)
class DataWrites:
    """The instructions that write to global memory of the binary's own or may, as they are printed."""

    sure: tuple[str, ...]  # their address is computed from one of that memory, in registers all the way
    possible: tuple[str, ...]  # or comes out of memory that one was stored into; all that are sure among them


def data_writes(program: KernelProgram, *, holds_addresses: bool) -> DataWrites:
    """Who writes to global memory of the binary's own.

    holds_addresses: that memory has addresses of its own bytes. Forward data flow over registers: whatever is
    computed with the lower half of an address may be one, and where one is stored, any load from that memory
    may give it. What is rebuilt bit by bit from comparisons, branches or carries is not followed.
    """
    sure, possible = (
        _Search(program, holds_addresses, through_memory=through_memory).found()
        for through_memory in (False, True)
    )
    return DataWrites(sure, possible)


class _Search:
    def __init__(self, program: KernelProgram, holds_addresses: bool, *, through_memory: bool) -> None:
        self._program = program
        self._holds_addresses = holds_addresses
        self._through_memory = through_memory
        kernel = program.kernel
        self._slots = {at // 8 for bank, at, _ in kernel.pointers if bank == 4}
        self._banks = {bank for bank, _, _ in kernel.pointers if bank != 4}
        self._stored: set[str] = set()  # memories that an address was stored into
        self._writes: set[int] = set()

    def found(self) -> tuple[str, ...]:
        code = self._program.instructions
        targets = control_targets(self._program)
        results = [_results(instruction) for instruction in code]
        returned = returned_registers(code, results, targets)
        before = [0] * (len(code) + 1)
        changed = True
        while changed:
            changed, stored = False, len(self._stored)
            for position, instruction in enumerate(code):
                after = self._step(position, instruction, results[position], before[position])
                after &= returned.get(position, -1)
                for target in targets.get(position, (position + 1,)):
                    if after & ~before[target]:
                        before[target] |= after
                        changed = True
            changed |= len(self._stored) > stored
        return tuple(code[position].text for position in sorted(self._writes))

    def _step(self, position: int, instruction: Instruction, results: int, before: int) -> int:
        """What may hold an address behind an instruction, as bits, from what may before it."""
        base, operands = instruction.base, _operands(instruction)
        if position in self._program.unread:
            named = _registers(_REGISTER.findall(operands), 2) | results
            if named & before or self._is_source(instruction, operands):
                self._writes.add(position)
            return before
        is_source = self._is_source(instruction, operands)
        is_read = bool(_read(instruction, operands) & before)
        is_address = is_source or is_read
        if _BRACKETS.search(_CONSTANT.sub("", operands)):
            space = set(_SPACES.get(base, "gsl"))
            if base not in _LOADS:
                inside = "".join(_BRACKETS.findall(_DESCRIPTOR.sub("", _CONSTANT.sub("", operands))))
                if base not in _BLOCK_STORES and _registers(_REGISTER.findall(inside), 1) & before:
                    self._writes.add(position)
                if is_address and self._through_memory:
                    self._stored |= space
            is_address = bool(self._stored & space) or (self._holds_addresses and is_address)
            if base == "LDGSTS" and is_address:
                self._stored.add("s")
        if is_source and not is_read and base in _PAIRS_READ:
            return before | results & _EVEN
        if is_address:
            return before | results
        if instruction.guard is not None:
            return before
        general = results & ((1 << _UNIFORM) - 1)
        gone = general if base in _WIDE_RESULTS else general & -general
        return before & ~(gone | results >> _UNIFORM << _UNIFORM)

    def _is_source(self, instruction: Instruction, operands: str) -> bool:
        """Whether an address stands in a constant that is read, or in the instruction."""
        if instruction.offset in self._program.kernel.unlinked:
            return True
        if "cx[" in operands:
            return bool(self._slots or self._banks)
        for bank, at in _CONSTANT.findall(operands):
            if int(bank, 16) in self._banks:
                return True
            if int(bank, 16) == 4 and self._slots:
                first = int(at, 16) // 8 if at.startswith("0x") else 0 if at in ("RZ", "URZ") else -1
                if first < 0 or self._slots & {first, first + 1}:
                    return True
        return False


def _operands(instruction: Instruction) -> str:
    return instruction.text.partition(instruction.opcode)[2]


def _registers(found: Iterable[tuple[str, str]], width: int) -> int:
    """Groups of registers, of which the first ones are named, as bits."""
    bits = 0
    for uniform, number in found:
        bits |= ((1 << width) - 1) << (int(number) + (_UNIFORM if uniform else 0))
    return bits


def _uniform_result(instruction: Instruction, operands: str) -> re.Match[str] | None:
    """The uniform register that an instruction writes first of all."""
    base = instruction.base
    if base in _NO_RESULT or not (base.startswith("U") or base in _UNIFORM_RESULTS):
        return None
    return re.match(r"\s*(?:UP[\dT],\s*)*UR(\d+)", operands)


def _uniform_width(instruction: Instruction) -> int:
    """Uniform registers of a value."""
    return 4 if "128" in instruction.modifiers else 2 if instruction.modifiers & {"64", "WIDE"} else 1


def _results(instruction: Instruction) -> int:
    """The registers that an instruction may write."""
    operands = _operands(instruction)
    bits = register_use(instruction.text).writes
    if result := _uniform_result(instruction, operands):
        bits |= _registers([("U", result[1])], _uniform_width(instruction))
    return bits


def _read(instruction: Instruction, operands: str) -> int:
    """The registers that it may read."""
    behind = operands
    if result := _uniform_result(instruction, operands):
        behind = operands[result.end() :]
    bits = register_use(instruction.text).reads
    for found in _REGISTER.finditer(behind):
        if found[1]:
            is_pair = behind.startswith(".64", found.end())
            bits |= _registers([("U", found[2])], 2 if is_pair else _uniform_width(instruction))
    return bits
