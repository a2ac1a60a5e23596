"""Machine code of this project's own kernels for made reports, and counts for each of its instructions.

`code.zip` holds cubins that nvcc 13.0 made of kernels/v1.cu for sm_80 (`-std=c++17 -O3`), each with two
kernels, `v1<128>` and `v1<64>`, and a subroutine in either: `v1` and `edited`, whose `v1<64>` unrolls its
dot product by 4 in place of 8; both without and with `-lineinfo`. The sources are beside them.
"""

from __future__ import annotations

import functools
import itertools
import random
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.reportfiles.ncu_rep import INSTRUCTION_BYTES, Code, Function, symbols

ARCHIVE = Path(__file__).parent / "code.zip"
FOLDER = "/home/tester/attention/kernels"  # where the line information says that the sources lie
BY_HEAD_DIM = {128: "_Z2v1ILi128EEvPK6__halfS2_S2_PS0_iifi", 64: "_Z2v1ILi64EEvPK6__halfS2_S2_PS0_iifi"}

# The lowest twelve bits of an instruction are its opcode, in some forms with where its operands come from.
SHARED = (0x388, 0x984)  # STS, LDS
GLOBAL = (0x981, 0x986)  # LDG, STG
BRANCH, NOP = 0x947, 0x918


@functools.cache
def cubin(name: str) -> bytes:
    """One of the cubins: v1 or edited, or one of them followed by _lineinfo."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        return archive.read(f"{name}.cubin")


@functools.cache
def sources(name: str) -> Mapping[str, str]:
    """The texts that the line information of a cubin refers to, by path."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        texts = {"v1.cu": f"{name.partition('_')[0]}.cu", "common.cuh": "common.cuh"}
        return {f"{FOLDER}/{file}": archive.read(entry).decode() for file, entry in texts.items()}


def load(
    name: str,
    address: int,
    compute_capability: tuple[int, int] = (8, 0),
    *,
    identifier: int = 1,
    import_source: bool = False,
) -> Code:
    """A cubin as loaded at an address; on a GPU before sm_75 `ncu_report` has no text for it."""
    texts = sources(name) if import_source else {}
    return Code(cubin(name), address, compute_capability, identifier, texts)


@functools.cache
def opcodes(name: str, function: str) -> tuple[int, ...]:
    """The opcode of each instruction of a kernel."""
    content = cubin(name)
    (size,) = (symbol.size for symbol in symbols(content) if symbol.name == function)
    start = _start_of(content, f".text.{function}".encode())
    words = (content[at : at + 2] for at in range(start, start + size, INSTRUCTION_BYTES))
    return tuple(int.from_bytes(word, "little") & 0xFFF for word in words)


def _start_of(content: bytes, section: bytes) -> int:
    """Where a section of an ELF file begins."""
    at = int.from_bytes(content[0x28:0x30], "little")
    count, names_index = (int.from_bytes(content[i : i + 2], "little") for i in (0x3C, 0x3E))
    headers = [content[at + 64 * i : at + 64 * (i + 1)] for i in range(count)]
    offsets = [int.from_bytes(header[0x18:0x20], "little") for header in headers]
    for header, offset in zip(headers, offsets, strict=True):
        name_at = offsets[names_index] + int.from_bytes(header[:4], "little")
        if content[name_at : content.index(0, name_at)] == section:
            return offset
    raise KeyError(section)


def never_executed(codes: Sequence[int]) -> set[int]:
    """Indices of a branch that no number took, of the branch to itself at the end, and of the padding."""
    branches = [index for index, code in enumerate(codes) if code == BRANCH]
    return {branches[-1], branches[-2], *(index for index, code in enumerate(codes) if code == NOP)}


@functools.cache
def subroutine(name: str, function: str) -> int:
    """Where the subroutine of a kernel begins, in bytes from the start of the kernel."""
    content = cubin(name)
    kernels = {symbol.name: symbol for symbol in symbols(content)}
    (found,) = (
        symbol
        for symbol in kernels.values()
        if symbol.name.startswith("$__internal") and symbol.section == kernels[function].section
    )
    return found.value


def spread(total: int, weights: Iterable[float]) -> list[int]:
    """Whole numbers in proportion to the weights that add up to the total."""
    sums = list(itertools.accumulate(weights))
    if not sums or not sums[-1]:
        return [0] * len(sums)
    upto = [round(total * one / sums[-1]) if one < sums[-1] else total for one in sums]
    return [b - a for a, b in itertools.pairwise([0, *upto])]


def loop_weights(count: int, seed: str) -> list[float]:
    """How often instructions ran, relative to each other: stretches of equal counts, as loops make them."""
    draw = random.Random(seed)
    weights: list[float] = []
    while len(weights) < count:
        weights += [draw.choice((1, 1, 4, 16, 64, 128))] * draw.randrange(4, 24)
    return weights[:count]


def sparse_weights(count: int, seed: str) -> list[float]:
    """Where samples of one stall reason fell: at few instructions many, at most none."""
    draw = random.Random(seed)
    return [draw.choice((0, 0, 0, 0, 1, 1, 2, 30)) * draw.random() for _ in range(count)]


def instructions(name: str, functions: Sequence[Function]) -> list[tuple[int, int]]:
    """Address and opcode of the instructions of some kernels that ever run."""
    found = []
    for function in functions:
        codes = opcodes(name, function.name)
        dead = never_executed(codes)
        found += [
            (pc, code)
            for index, (pc, code) in enumerate(zip(function.pcs, codes, strict=True))
            if index not in dead
        ]
    return found
