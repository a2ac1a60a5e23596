"""What the compiler tells the scheduler: the control bits of each instruction, from the code's own bytes."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiler.build.elf import read_sections
from profiler.errors import BuildFailed

INSTRUCTION_BYTES = 16
NO_SCOREBOARD = 7
_MAGIC = b"\x7fELF\x02\x01"
_TEXT = ".text."


class ControlWords(NamedTuple):
    """The scheduling fields of instructions, each of shape [instructions].

    Source: the upper 64 bits of an instruction of Volta and later, as arXiv 1804.06826 and 2503.20481 read
    them.
    """

    stall: NDArray[np.int64]  # cycles before the next instruction of the warp may issue
    write_scoreboard: NDArray[np.int64]  # which one clears when the result is there; NO_SCOREBOARD: none
    read_scoreboard: NDArray[np.int64]  # which one clears when the operands were read
    waits: NDArray[np.int64]  # a bit for each scoreboard that must be clear before it issues
    # A bit for each source operand whose register is kept for the next instruction; None: not known. What
    # ncu's reports print of an instruction leaves them out.
    reuse: NDArray[np.int64] | None = None


def decode(words: NDArray[np.uint64]) -> ControlWords:
    """The fields of the upper 64 bits of instructions."""

    def field(shift: int, mask: int) -> NDArray[np.int64]:
        return ((words >> np.uint64(shift)) & np.uint64(mask)).astype(np.int64)

    return ControlWords(field(41, 15), field(46, 7), field(49, 7), field(52, 63), field(58, 15))


def read_code_words(path: Path) -> dict[str, NDArray[np.uint64]]:
    """The upper 64 bits of the instructions of every function in a file's cubins, by mangled name.

    The file is a cubin, or holds some as they are, like a report. Of several functions of one name the
    longest counts. What is no whole cubin is passed over.
    """
    functions: dict[str, NDArray[np.uint64]] = {}
    if not path.stat().st_size:
        return functions
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(_MAGIC)
        while at >= 0:
            for name, start, size in _text_sections(content, at):
                words = np.frombuffer(content[start : start + size], np.uint64)[1::2]
                if name not in functions or len(words) > len(functions[name]):
                    functions[name] = words.copy()
            at = content.find(_MAGIC, at + 4)
    return functions


def _text_sections(content: mmap.mmap, base: int) -> Iterator[tuple[str, int, int]]:
    """Name of the function, and where the code of each text section of an ELF file lies."""
    try:
        sections = read_sections(content, base)
    except BuildFailed:
        return
    for section in sections:
        if section.is_in_file and section.size >= INSTRUCTION_BYTES and section.name.startswith(_TEXT):
            name = section.name.removeprefix(_TEXT)
            yield name, section.offset, section.size // INSTRUCTION_BYTES * INSTRUCTION_BYTES
