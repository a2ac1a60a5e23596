"""Which general registers an instruction reads and writes; a group of 64 or 128 bits is all its registers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from profiler.build.instruction_text import split_instruction

_RESULT = re.compile(r"(U?)R(\d+|Z)\b")  # what an operand that is written looks like
_REGISTER = re.compile(r"(?<!\w)R(\d+)((?:\.\w+)*)")
_IS_REGISTER = re.compile(r"[-~|!]*R(\d|Z)")
_PREDICATE = re.compile(r"(U?P)(\d|T)\Z")
_OTHER_REGISTER = re.compile(r"(?:\b(g?desc\[)|(?<![\w.]))(UR|UP|P|B)(\d+)(\.64)?\b")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_TILE = re.compile(r"64x(\d+)x\d+")  # of wgmma
_WIDTHS = {"64": 2, "128": 4, "256": 4}  # 256 bits are two groups with a name each: LDG… R8, R16, …
# Tensor memory: `.xN` repetitions of what one thread takes of a shape. Source: PTX ISA, "tcgen05.ld".
_TENSOR_MEMORY = frozenset(("LDTM", "STTM", "LDT", "STT"))
_VECTOR = re.compile(r"B?[FSU](16|32)x(\d)")  # of an atomic: F32x4
_REPETITIONS = re.compile(r"x(\d+)")
_TENSOR_SHAPES = {"16dp128bit": 2, "16dp256bit": 4}  # registers of one repetition; 1 of the others
_TYPES = frozenset(["F16", "BF16", "F32", "F64", "S8", "U8", "S16", "U16", "S32", "U32", "S64", "U64"])
_WIDE_TYPES = frozenset(("F64", "S64", "U64"))
_MATRICES = ("LDSM", "STSM")
_GLOBAL = frozenset(["LD", "LDG", "ST", "STG", "ATOM", "ATOMG", "RED", "REDG"])
_ATOMICS = frozenset(["ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDAS"])
_CONVERSIONS = frozenset(["F2F", "F2I", "I2F", "FRND"])
_CONTROL = frozenset(["BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "CALL", "RET", "EXIT"])
_COMPARED = frozenset(["ISETP", "FSETP", "DSETP", "HSETP2", "FCHK"])
_INDIRECT = frozenset(["BRX", "JMX", "CALL", "RET"])
# Where the first register behind the predicates is read: they set predicates alone, or nothing.
_READ_ONLY = _COMPARED | _INDIRECT | {"BAR", "WARPSYNC", "NANOSLEEP", "SETLMEMBASE", "KILL", "BPT"}
_DOUBLE = frozenset(["DADD", "DMUL", "DFMA", "DMNMX", "DSETP", "DSET", "FFMA2", "FMUL2", "FADD2"])
# What takes one register an operand, unless a modifier says more.
_SINGLE_FLOAT = frozenset(
    ["FFMA", "FADD", "FMUL", "FMNMX", "FSEL", "FSETP", "HFMA2", "HADD2", "HMUL2", "MUFU"]
)
_SINGLE = _SINGLE_FLOAT | {"IADD3", "IMAD", "ISETP", "LEA", "LOP3", "MOV", "PRMT", "SEL", "SHF"}
_PAIRS = _DOUBLE | _INDIRECT | {"LEPC"}


class RegisterUse(NamedTuple):
    """What one instruction does to general registers, each set as the bits of an integer: bit 4 is R4."""

    reads: int
    writes: int
    condition: int  # of its guard: 0 for none, else a number that guard_condition gives
    predicate_writes: int  # bit p of Pp, bit p + 8 of UPp, where it is written


NEVER = -1  # the condition of a guard that is never true


def guard_condition(name: str, inverted: bool) -> int:
    """A number for `@P2` or `@!UP0`: 0 where it is always true, NEVER where it never is."""
    if name.endswith("T"):
        return NEVER if inverted else 0
    predicate = int(name.lstrip("UP")) + (8 if name.startswith("U") else 0)
    return 1 + 2 * predicate + inverted


def opposite(condition: int) -> int:
    """The condition of the lanes that do not have a predicate's value; 0 stays 0."""
    return ((condition - 1) ^ 1) + 1 if condition else 0


def predicate_of(condition: int) -> int:
    """The predicate of a condition, as the bits of RegisterUse.predicate_writes count them."""
    return (condition - 1) // 2


class RegisterOperand(NamedTuple):
    """One operand, and the registers in it."""

    text: str  # as it is printed
    registers: tuple[tuple[str, int, int], ...]  # R, UR, P, UP or B, the number of the first, how many


class Operands(NamedTuple):
    """What an instruction writes and reads, in the order of its text."""

    condition: int  # of its guard, as RegisterUse has it
    results: tuple[RegisterOperand, ...]
    sources: tuple[RegisterOperand, ...]


_NO_OPERANDS = Operands(0, (), ())


@lru_cache(maxsize=1 << 15)
def read_operands(text: str) -> Operands:
    """The operands of an instruction as cuobjdump prints it.

    What it reads is never too little: where a width is not known, the registers that any form reads count.
    Sources: PTX ISA, "Matrix Fragments" of each mma shape, for groups; the CUDA Binary Utilities' instruction
    reference for names; nvdisasm --print-life-ranges, against which the tests hold the counts.
    """
    words = split_instruction(text)
    if words is None:
        return _NO_OPERANDS
    guard, opcode, rest = words
    condition = guard_condition(guard.removeprefix("!"), guard.startswith("!")) if guard else 0
    if condition == NEVER:
        return Operands(NEVER, (), ())
    base, *modifiers = opcode.split(".")
    sources = [part.strip() for part in _split(rest)]
    results = [RegisterOperand("PR", (("P", 0, 7),))] if sources[:1] == ["PR"] else []
    if base not in _CONTROL:
        results += _take_predicates(sources)
    if base not in _READ_ONLY and sources and _RESULT.match(sources[0]):
        width = _result_width(base, modifiers)
        results.append(_result(sources.pop(0), width))
        if base in _GLOBAL and "256" in modifiers and sources and _RESULT.match(sources[0]):
            results.append(_result(sources.pop(0), width))
        # A carry is a second result: IADD3 R0, P0, P1, R2, …
        results += _take_predicates(sources)
    elif base == "BSSY" and sources:
        results.append(RegisterOperand(sources[0], _other_registers(sources[0])))
        del sources[0]
    read = []
    registers = 0  # sources so far that are registers
    for place, source in enumerate(sources):
        outside = _BRACKETS.sub("", source)
        found = [
            ("R", int(one[1]), _address_width(base, modifiers, one[2], source))
            for one in _REGISTER.finditer("".join(_BRACKETS.findall(source)))
        ]
        found += [
            ("R", int(one[1]), _source_width(base, modifiers, registers, place, one[2]))
            for one in _REGISTER.finditer(outside)
        ]
        read.append(RegisterOperand(source, (*found, *_other_registers(source))))
        registers += _IS_REGISTER.match(outside) is not None
    return Operands(condition, tuple(results), tuple(read))


def _result(text: str, width: int) -> RegisterOperand:
    name = _RESULT.match(text)
    if name is None or name[2] == "Z":
        return RegisterOperand(text, ())
    return RegisterOperand(text, ((f"{name[1]}R", int(name[2]), width),))


def _other_registers(text: str) -> tuple[tuple[str, int, int], ...]:
    """Uniform registers, predicates and barriers of a source; a descriptor takes several."""
    return tuple(
        (
            one[2],
            int(one[3]),
            1 if one[2] != "UR" else 4 if one[1] == "gdesc[" else 2 if one[1] or one[4] else 1,
        )
        for one in _OTHER_REGISTER.finditer(text)
    )


@lru_cache(maxsize=1 << 15)
def register_use(text: str) -> RegisterUse:
    """General registers and predicates of an instruction, as read_operands has them."""
    condition, results, sources = read_operands(text)
    written = [register for operand in results for register in operand.registers]
    predicates = 0
    for kind, number, count in written:
        if kind in ("P", "UP"):
            predicates |= ((1 << count) - 1) << (number + (8 if kind == "UP" else 0))
    return RegisterUse(
        _bits(register for operand in sources for register in operand.registers),
        _bits(written),
        condition,
        predicates,
    )


def _bits(registers: Iterable[tuple[str, int, int]]) -> int:
    """The general registers among some."""
    bits = 0
    for kind, number, width in registers:
        if kind == "R":
            bits |= _group(number, width)
    return bits


def _take_predicates(operands: list[str]) -> list[RegisterOperand]:
    """Remove the predicates in front, two at most, to which a result can go."""
    taken = list[RegisterOperand]()
    while len(taken) < 2 and operands and (predicate := _PREDICATE.match(operands[0])):
        number = () if predicate[2] == "T" else ((predicate[1], int(predicate[2]), 1),)
        taken.append(RegisterOperand(operands.pop(0), number))
    return taken


def _split(text: str) -> list[str]:
    """Operands at the commas outside of brackets; older tools leave one out between two addresses."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "," and not depth:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return parts if text.strip() else []


def _group(first: int, width: int) -> int:
    """The bits of registers that follow each other."""
    return (((1 << width) - 1) << first) & ((1 << 255) - 1)


def _width(base: str, modifiers: list[str]) -> int:
    """Registers of what memory gives or takes, or of a 64-bit operation."""
    if base in _MATRICES:
        return 4 if "4" in modifiers else 2 if "2" in modifiers else 1
    if base in _TENSOR_MEMORY:
        repeated = next((int(one[1]) for word in modifiers if (one := _REPETITIONS.fullmatch(word))), 1)
        return repeated * max((_TENSOR_SHAPES.get(word, 1) for word in modifiers), default=1)
    if base in _ATOMICS:
        if vector := next(filter(None, map(_VECTOR.fullmatch, modifiers)), None):
            return max(1, int(vector[1]) * int(vector[2]) // 32)
        return 2 if _WIDE_TYPES.intersection(modifiers) or "64" in modifiers else 1
    return max((_WIDTHS.get(modifier, 1) for modifier in modifiers), default=1)


def most_registers(opcode: str) -> int:
    """At most so many registers has a group that an instruction of an opcode takes or writes."""
    base, *modifiers = opcode.split(".")
    if _is_matrix_product(base):
        return max(_matrix_widths(base, modifiers))
    if base in _SINGLE and not any(word in opcode for word in ("64", "WIDE", "HI", "x2")):
        return 1
    return max(4, _width(base, modifiers))


def _is_matrix_product(base: str) -> bool:
    return base.endswith("MMA") and base != "FFMA"  # not DFMA, HFMA2 either


def _result_width(base: str, modifiers: list[str]) -> int:
    if _is_matrix_product(base):
        return _matrix_widths(base, modifiers)[0]
    if base in _PAIRS or (base == "CS2R" and "32" not in modifiers):
        return 2
    if base == "IMAD":
        return 2 if "WIDE" in modifiers else 1
    if base in _CONVERSIONS:
        return _conversion_widths(base, modifiers)[0]
    return _width(base, modifiers)


def _source_width(base: str, modifiers: list[str], registers: int, place: int, suffix: str) -> int:
    """Registers of a source: the one in this place, behind so many that are registers.

    suffix: what stands behind its number, `.64` and the like.
    """
    if _is_matrix_product(base):
        widths = _matrix_widths(base, modifiers)
        if any(_TILE.fullmatch(modifier) for modifier in modifiers):
            return widths[1] if place == 0 else widths[3]
        return widths[min(registers + 1, 3)]
    if ".64" in suffix or "F32x2" in suffix or base in _PAIRS:
        return 2
    if base == "IMAD" and ("WIDE" in modifiers or "HI" in modifiers):
        return 2 if place == 2 else 1  # the sum, be the factor before it a number or a register
    if base in _CONVERSIONS:
        return _conversion_widths(base, modifiers)[1]
    return _width(base, modifiers)


def _conversion_widths(base: str, modifiers: list[str]) -> tuple[int, int]:
    """Registers of result and source: I2F.F64.S32, F2I.U64.F32; of a type that is left out one."""
    types = [modifier for modifier in modifiers if modifier in _TYPES]
    result = source = ""
    if len(types) > 1:
        result, source = types[0], types[1]
    elif types and base == "FRND":
        result = source = types[0]
    elif types and (types[0].startswith(("F", "BF")) == (base == "I2F")):
        result = types[0]
    elif types:
        result, source = ("", types[0]) if base != "F2I" or types[0] == "F64" else (types[0], "")
    return (2 if result in _WIDE_TYPES else 1), (2 if source in _WIDE_TYPES else 1)


def _address_width(base: str, modifiers: list[str], suffix: str, text: str) -> int:
    """Registers of an address: `[R2.64]` has two; older tools write `[R2]`, with .E at the opcode."""
    if ".64" in suffix:
        return 2
    is_old = base in _GLOBAL and "E" in modifiers and "UR" not in text and not suffix.strip(".reus")
    return 2 if is_old else 1


# Registers of result, A, B and C by shape, of 32 lanes. Source: PTX ISA, "Matrix Fragments".
_SHAPES: dict[tuple[str, str], tuple[int, int, int, int]] = {
    ("HMMA", "16816"): (4, 4, 2, 4),
    ("HMMA", "1688"): (4, 2, 1, 4),
    ("HMMA", "1684"): (4, 2, 1, 4),
    ("HMMA", "16832"): (4, 4, 4, 4),
    ("HMMA", "884"): (8, 2, 2, 8),
    ("IMMA", "16816"): (4, 2, 1, 4),
    ("IMMA", "16832"): (4, 4, 2, 4),
    ("IMMA", "16864"): (4, 4, 4, 4),
    ("IMMA", "8816"): (2, 1, 1, 2),
    ("IMMA", "8832"): (2, 1, 1, 2),
    ("QMMA", "16832"): (4, 4, 2, 4),
    ("QMMA", "16816"): (4, 2, 1, 4),
    ("DMMA", "884"): (4, 2, 2, 4),
    ("BMMA", "168128"): (4, 2, 1, 4),
    ("BMMA", "168256"): (4, 4, 2, 4),
    ("BMMA", "88128"): (2, 1, 1, 2),
}
_WIDEST = (4, 4, 4, 4)


def _matrix_widths(base: str, modifiers: list[str]) -> tuple[int, int, int, int]:
    """Registers of the result, of A, of B and of the sum of a matrix product."""
    shape = next((modifier for modifier in modifiers if modifier[:1].isdigit()), "")
    if tile := _TILE.fullmatch(shape):  # over 128 threads, A from registers or memory
        sums = int(tile[1]) // (4 if modifiers[1:2] == ["F16"] else 2)
        return sums, 4, sums, sums
    result, a, b, c = _SHAPES.get((base, shape), _WIDEST)
    if base == "HMMA" and "TF32" in modifiers:
        a, b = (4, 2) if shape == "1688" else (2, 1)
    if base in ("HMMA", "QMMA") and "F32" not in modifiers and "F16" in modifiers:
        result, c = 2, 2
    return result, a, b, c
