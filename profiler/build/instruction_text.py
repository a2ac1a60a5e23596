"""The text of a machine instruction as cuobjdump and nvdisasm print it: the one place that takes it apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.+?)\s*;")
_LINES = re.compile(_LINE.pattern, re.MULTILINE)
_TEXT = re.compile(r"(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*)", re.S)


class InstructionText(NamedTuple):
    """An instruction in three parts."""

    guard: str  # the predicate by which it runs: `P0`, `!UP1`; "" where it always does
    opcode: str  # with its modifiers: `HGMMA.64x128x16.F32.BF16`
    operands: str  # as they are printed

    @property
    def base(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]


@lru_cache(1 << 16)  # texts repeat, and are asked about again for each trace and what-if
def split_instruction(text: str) -> InstructionText | None:
    """The parts of an instruction's text; None for what is none."""
    match = _TEXT.match(text)
    return InstructionText(match[1] or "", match[2], match[3].strip()) if match else None


def read_line(line: str) -> tuple[int, str] | None:
    """Offset and text of the instruction in a line of a listing; None where it has none."""
    match = _LINE.match(line)
    return (int(match[1], 16), " ".join(match[2].split())) if match else None


def read_lines(listing: str) -> Iterator[tuple[int, str]]:
    """Offset and text of each instruction in a listing, as read_line has them."""
    for offset, text in _LINES.findall(listing):
        yield int(offset, 16), " ".join(text.split())
