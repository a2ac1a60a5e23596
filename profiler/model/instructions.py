"""The text of a machine instruction taken apart: guard, opcode, operands."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cached_property

from profiler.build.instruction_text import split_instruction
from profiler.errors import CannotJudge


class NoModel(CannotJudge):
    """Machine code that cannot be run on the CPU: an opcode or operand is not known. It is named."""


@dataclass(frozen=True)
class Operand:
    """One operand. `kind` says which of the other fields count."""

    kind: (
        str  # register, uniform, predicate, uniform predicate, predicates (all of them), constant, number,
        # memory, special, convergence, scoreboard
    )
    number: int = 0  # of the register, predicate or barrier; the value of an integer; the offset of memory
    bank: int = 0  # of a constant
    value: float | None = None  # of a number that is written as a floating-point one
    negative: bool = False
    absolute: bool = False
    inverted: bool = False  # ~ of a register, ! of a predicate
    half: str = ""  # H0_H0 or H1_H1 of a packed register, or B0 to B3; "" for all of it
    name: str = ""  # of a special register
    base: int | None = None  # of memory: the register with the address, None for none; of a constant: with
    # a distance that is added to its number
    base_is_wide: bool = False  # two registers hold it
    base_scale: int = 1
    uniform_base: int | None = None  # of memory or a constant: a uniform register that is added
    uniform_is_wide: bool = False

    @property
    def float_bits(self) -> int:
        """A number as the bits of an fp32."""
        if self.value is None:
            return self.number & 0xFFFFFFFF
        return int.from_bytes(struct.pack("<f", self.value), "little")


@dataclass(frozen=True)
class Instruction:
    """One instruction of a function."""

    offset: int  # bytes from where the function starts
    text: str
    opcode: str  # with modifiers
    operands: tuple[Operand, ...]
    guard: Operand | None  # the predicate that lanes must have to take part

    @cached_property
    def base(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @cached_property
    def modifiers(self) -> frozenset[str]:
        """The words behind the opcode."""
        return frozenset(self.opcode.split(".")[1:])

    @cached_property
    def is_uniform(self) -> bool:
        """Whether it runs once for a warp, on uniform registers."""
        return self.base.startswith("U") and self.base not in ("UTMALDG", "UTMASTG", "UBLKCP")

    def no_model(self, why: str) -> NoModel:
        """The error that names this instruction."""
        return NoModel(f"no model of `{self.text}` at {self.offset:#06x}: {why}")


# The registers that read as 0, and the predicate that reads as true. URZ is 63 in the code of GPUs before
# Blackwell, which have no UR63; Blackwell has UR63 to UR254 as well.
RZ, URZ, PT = 255, 255, 7

_PREDICATE = re.compile(r"(!?)(U?)P([0-7T])")
_REGISTER = re.compile(r"([-~]?)(\|?)(U?)R(\d+|Z)\|?((?:\.\w+)*)")
_CONSTANT = re.compile(
    r"([-~]?)(\|?)c\[(0x[0-9a-f]+)\]\[(?:(U?)R(\d+|Z)(?:\+(?=0x)|(?=\])))?(0x[0-9a-f]+)?\]\|?((?:\.\w+)*)"
)
_MEMORY = re.compile(r"(?:desc\[UR\d+\])?\[([^\]]*)\]((?:\.\w+)*)")
_FLOAT = re.compile(r"[-+]?(?:INF|QNAN|\d+(?:\.\d*)?(?:e[-+]?\d+)?)", re.I)
_INTEGER = re.compile(r"([-~]?)0x([0-9a-f]+)")


def parse_instruction(offset: int, text: str) -> Instruction:
    """Take apart what cuobjdump or nvdisasm prints. Raises NoModel for an operand of another form."""
    words = split_instruction(text.strip())
    if words is None:
        raise NoModel(f"no model of `{text}` at {offset:#06x}: it is no instruction")
    guard_text, opcode, rest = words
    parts = [part.strip() for part in rest.split(",")] if rest else []
    parts = [word for part in parts for word in _split_part(opcode, part)]
    operands = []
    for part in parts:
        operand = _parse_operand(part)
        if operand is None:
            raise NoModel(f"no model of `{text}` at {offset:#06x}: operand {part} is not known")
        operands.append(operand)
    guard = _parse_operand(guard_text) if guard_text else None
    return Instruction(offset, " ".join(text.split()), opcode, tuple(operands), guard)


def _split_part(opcode: str, part: str) -> list[str]:
    """The operands that older tools print without a comma between them."""
    if opcode.startswith(("RET", "CALL", "BRX")):  # its register and its base: `RET.REL.NODEC R10 0x0`
        return part.split()
    if opcode.startswith("LDGSTS") and part.startswith("[") and "][" in part:
        return part.replace("][", "] [").split(" ")
    return [part]


def _parse_operand(text: str) -> Operand | None:
    text = text.strip()
    if match := _PREDICATE.fullmatch(text):
        number = PT if match[3] == "T" else int(match[3])
        return Operand("uniform predicate" if match[2] else "predicate", number, inverted=match[1] == "!")
    if match := _REGISTER.fullmatch(text):
        return _register(match)
    if match := _CONSTANT.fullmatch(text):
        return _constant(match)
    if match := _MEMORY.fullmatch(text):
        return _memory(match[1]) if not match[2] else None
    if match := _INTEGER.fullmatch(text):
        number = int(match[2], 16)
        return Operand("number", -number if match[1] == "-" else ~number if match[1] == "~" else number)
    if match := re.fullmatch(r"B(\d+)", text):
        return Operand("convergence", int(match[1]))
    if match := re.fullmatch(r"SB(\d+)", text):
        return Operand("scoreboard", int(match[1]))
    if text == "PR":
        return Operand("predicates")
    if re.fullmatch(r"SR_\w+(\.\w)?|SRZ", text):
        return Operand("special", name=text)
    if _FLOAT.fullmatch(text):
        return Operand("number", int(text) if re.fullmatch(r"[-+]?\d+", text) else 0, value=_float(text))
    return None


def _float(text: str) -> float:
    word = text.upper().replace("QNAN", "NAN")
    return float(word)


_PARTS = frozenset(("H0_H0", "H1_H1", "B0", "B1", "B2", "B3"))


def _half(modifiers: str) -> str | None:
    """Which half or byte of a register is meant; None for a modifier that is not known."""
    words = [word for word in modifiers.split(".") if word and word != "reuse"]
    if not words:
        return ""
    return words[0] if len(words) == 1 and words[0] in _PARTS else None


def _constant(match: re.Match[str]) -> Operand | None:
    half = _half(match[7])
    if half is None:
        return None
    number = int(match[5]) if (match[5] or "Z") != "Z" else None
    return Operand(
        "constant",
        int(match[6] or "0", 16),
        bank=int(match[3], 16),
        negative=match[1] == "-",
        inverted=match[1] == "~",
        absolute=bool(match[2]),
        half=half,
        base=None if match[4] else number,
        uniform_base=number if match[4] else None,
    )


def _register(match: re.Match[str]) -> Operand | None:
    half = _half(match[5])
    if half is None:
        return None
    is_uniform = bool(match[3])
    number = (URZ if is_uniform else RZ) if match[4] == "Z" else int(match[4])
    return Operand(
        "uniform" if is_uniform else "register",
        number,
        negative=match[1] == "-",
        inverted=match[1] == "~",
        absolute=bool(match[2]),
        half=half,
    )


def _memory(text: str) -> Operand | None:
    base: int | None = None
    uniform: int | None = None
    is_wide = uniform_is_wide = False
    scale, offset = 1, 0
    for part in text.replace("+-", "+ -").split("+"):
        word = part.replace(" ", "")
        if register := re.fullmatch(r"(U?)R(\d+|Z)((?:\.\w+)*)", word):
            wide = scaled = False
            for modifier in filter(None, register[3].split(".")):
                if modifier in ("64", "U32"):
                    wide = modifier == "64"
                elif modifier in ("X4", "X8", "X16") and not register[1]:
                    scale, scaled = int(modifier[1:]), True
                elif modifier != "reuse":
                    return None
            if register[1]:
                uniform = URZ if register[2] == "Z" else int(register[2])
                uniform_is_wide = wide
            else:
                base, is_wide = (RZ if register[2] == "Z" else int(register[2])), wide and not scaled
        elif number := _INTEGER.fullmatch(word):
            offset += -int(number[2], 16) if number[1] == "-" else int(number[2], 16)
        else:
            return None
    return Operand(
        "memory",
        offset,
        base=base,
        base_is_wide=is_wide,
        base_scale=scale,
        uniform_base=uniform,
        uniform_is_wide=uniform_is_wide,
    )
