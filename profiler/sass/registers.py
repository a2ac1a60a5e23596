"""Instructions without the numbers of their registers, and which registers of two sides correspond."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from profiler.build.instruction_text import split_instruction

# The number of a register that a compiler numbers: R4, UR6, P0, UP1, the convergence barrier B0, the
# scoreboards SB0 and gsb0. RZ, PT and SR_TID.X have none: they stand for something. `R4.B1` selects a byte of
# a register, and `R4.reuse` tells the operand cache that it is read again, which depends on the numbers
# around it. The digit stands first, as a search for one is several times as fast.
NUMBER = re.compile(r"\d(?:(?<=[RPB]\d)|(?<=gsb\d))(?<!\.B\d)\d*(?:\.reuse)?\b")
# Likewise each kind begins with a letter of its own: half the time of `U?[RP]`.
_NAME = re.compile(r"R\d+\b|UR\d+\b|P\d+\b|UP\d+\b|B(?<!\.B)\d+\b|SB\d+\b|gsb\d+\b")
# An instruction's result, where its first operand is one: a register that no bracket and no other register
# stands before, but predicates, which it may set too.
_BEFORE_RESULT = re.compile(r"(?:!?U?P[T\d]\w*, *)*(?=U?R\d)")
_COMPARISON = "SETP"  # ISETP, FSETP …: they set predicates, and all registers are read


def shapes(texts: Sequence[str]) -> list[str]:
    """Instructions with their registers by kind alone: `FFMA R, R, R, RZ`."""
    return NUMBER.sub("", "\n".join(texts)).split("\n") if texts else []


@lru_cache(maxsize=1 << 15)
def names(text: str) -> tuple[str, ...]:
    """The registers of an instruction, in the order of its text: R4, UR6, P0, B1, SB0."""
    return tuple(_NAME.findall(text))


def differ_in_numbers_only(a: str, b: str) -> bool:
    """Whether two instructions of one shape read one register twice only where the other does too.

    `FADD R1, R2, R2` and `FADD R1, R2, R3` compute different things under any renaming. The result is not
    held against what is read: a register whose value is no longer needed may be written again, or not.
    """
    names_a, names_b = names(a), names(b)
    pairs = set(zip(names_a, names_b, strict=True))
    if len(pairs) == len(set(names_a)) == len(set(names_b)):
        return True
    result = _result_index(a, len(names_a))
    read_a, read_b = ((*names[:result], *names[result + 1 :]) for names in (names_a, names_b))
    return len(set(zip(read_a, read_b, strict=True))) == len(set(read_a)) == len(set(read_b))


def _result_index(text: str, count: int) -> int:
    """Which of an instruction's registers its result is; `count`, one behind the last, where it has none."""
    words = split_instruction(text)
    before = _BEFORE_RESULT.match(words.operands) if words else None
    if words is None or before is None or _COMPARISON in words.opcode:
        return count
    return len(names(f"{words.guard} {words.opcode} {before[0]}"))


@dataclass(frozen=True)
class Renaming:
    """Which register of B stands for a register of A in a function: the one that most rows agree on.

    It is one to one. A compiler gives a register to several values one after the other, so that the rows of
    two builds that mean the same need not follow one such renaming.
    """

    registers: Mapping[str, str] = field(default_factory=dict)  # also those that keep their number

    @property
    def changed(self) -> dict[str, str]:
        """The registers that have another number in B."""
        return {a: b for a, b in self.registers.items() if a != b}

    def covers(self, names_a: Sequence[str], names_b: Sequence[str]) -> bool:
        """Whether all registers of two instructions correspond by it."""
        return tuple(map(self.registers.get, names_a)) == tuple(names_b)


def common_renaming(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Renaming:
    """The one-to-one renaming that pairs of instructions agree on most, given by their registers."""
    counts: Counter[tuple[str, str]] = Counter()
    for names_a, names_b in pairs:
        counts.update(zip(names_a, names_b, strict=True))
    registers: dict[str, str] = {}
    taken: set[str] = set()
    for (a, b), _ in counts.most_common():
        if a not in registers and b not in taken:
            registers[a] = b
            taken.add(b)
    return Renaming(registers)
