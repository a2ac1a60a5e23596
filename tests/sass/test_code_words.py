"""Code that is read by its bits: what it is called, what a changed bit is, and where jumps lead."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.build.instruction_text import split_instruction
from profiler.build.toolchain import require_tool
from profiler.sass.binary_functions import BinaryFunction, FunctionPair, read_functions_of
from profiler.sass.code_changes import ChangeKind, FunctionRows, quick_change, read_changes
from profiler.sass.code_words import CodeReader
from profiler.sass.disassembly import NEUTRAL_SCHEDULE, disassemble_words
from profiler.sass.opcode_classes import Words, class_keys, load_masks, unscheduled_words
from tests.toolchain import needs_sass

_SOURCE = Path(__file__).with_name("planted.cu")
_NEVER_ONLY_SCHEDULED = {ChangeKind.SAME, ChangeKind.RESCHEDULED, ChangeKind.RENAMED, ChangeKind.RESOURCES}


@pytest.fixture(scope="module", params=["sm_90a", "sm_120a"])
def functions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[BinaryFunction]:
    path = tmp_path_factory.mktemp("words") / "planted.cubin"
    nvcc = str(require_tool("nvcc").path)
    subprocess.run([nvcc, f"-arch={request.param}", "-cubin", "-o", str(path), str(_SOURCE)], check=True)
    return [function for function in read_functions_of(path) if function.code.code]


@needs_sass
def test_bits_say_the_same_of_opcodes_and_loops_as_the_text(functions: list[BinaryFunction]) -> None:
    reader = CodeReader(functions[0].arch)
    counted, rows = reader.count(functions), reader.rows(functions)
    for function, by_bits, text in zip(functions, counted, rows, strict=True):
        assert by_bits is not None
        assert text is not None
        by_text = FunctionRows(function, text)
        assert by_bits.counts == by_text.counted.counts
        assert by_bits.graph == by_text.graph
        assert by_bits.spills == by_text.counted.spills
    assert sum(len(one.graph.loops) for one in counted if one) > 20


@needs_sass
def test_the_table_of_masks_calls_no_instruction_by_the_name_of_another(
    functions: list[BinaryFunction],
) -> None:
    words = np.unique(np.concatenate([unscheduled_words(one.code.code) for one in functions]), axis=0)
    names = _names(functions[0].arch, words)
    assert [some for some in names.values() if len(some) > 1 or None in some] == []
    assert len(names) < len(words) / 3


@needs_sass
def test_multiplies_are_called_alike_whatever_their_registers_and_numbers_are(
    functions: list[BinaryFunction],
) -> None:
    draw = random.Random(3)
    words = np.unique(np.concatenate([unscheduled_words(one.code.code) for one in functions]), axis=0)
    seen = [(low, high) for low, high in words.tolist() if low & 0xFFF in (0x224, 0x424, 0x824)]
    changed = []
    for low, high in draw.choices(seen, k=4000):
        first, second, third = (draw.choice((255, 63, draw.randrange(255))) for _ in range(3))
        power = 1 << draw.randrange(32)
        number = draw.choice((0, 1, power, power - 1, (1 << 32) - power, draw.getrandbits(32)))
        if low & 0xFFF == 0x224:
            number = third
        changed.append((low & 0xFFFF | first << 16 | second << 24 | number << 32, high & ~0xFF | third))
    names = _names(functions[0].arch, np.array(changed, dtype=np.uint64))
    assert [some for some in names.values() if len(some) > 1 or None in some] == []
    assert len({name for some in names.values() for name in some}) > 5


def _names(arch: str, words: Words) -> dict[int, set[str | None]]:
    """By key of instructions what nvdisasm calls them."""
    texts = disassemble_words(arch, (words | np.array([0, NEUTRAL_SCHEDULE], np.uint64)).tobytes())
    names: dict[int, set[str | None]] = {}
    for key, text in zip(class_keys(words, load_masks()).tolist(), texts, strict=True):
        found = split_instruction(text) if text else None
        names.setdefault(key, set()).add(found.opcode if found else None)
    return names


def _with_bit(function: BinaryFunction, instruction: int, bit: int) -> BinaryFunction:
    code = bytearray(function.code.code)
    code[16 * instruction + bit // 8] ^= 1 << bit % 8
    return replace(function, code=replace(function.code, code=bytes(code)))


def _mutants(
    functions: Sequence[BinaryFunction], bits: range, count: int, draw: random.Random
) -> list[FunctionPair]:
    pairs = list[FunctionPair]()
    while len(pairs) < count:
        function = draw.choice(functions)
        other = _with_bit(function, draw.randrange(function.instructions), draw.choice(bits))
        pairs.append(FunctionPair(function, other))
    return pairs


@needs_sass
def test_a_bit_that_means_something_is_never_only_the_schedule(functions: list[BinaryFunction]) -> None:
    pairs = _mutants(functions, range(105), 60, random.Random(1))
    assert [quick_change(pair) for pair in pairs] == [None] * len(pairs)
    kinds = Counter(change.kind for change in read_changes(functions[0].arch, pairs))
    assert not kinds.keys() & _NEVER_ONLY_SCHEDULED, kinds
    assert len(kinds) > 3


@needs_sass
def test_a_bit_of_the_schedule_is_only_the_schedule(functions: list[BinaryFunction]) -> None:
    for pair in _mutants(functions, range(105, 128), 60, random.Random(2)):
        change = quick_change(pair)
        assert change is not None
        assert change.kinds == (ChangeKind.RESCHEDULED,)


@needs_sass
def test_what_the_linker_fills_in_is_whose_address_it_is(functions: list[BinaryFunction]) -> None:
    function = next(one for one in functions if one.short_name == "constants__factor")
    (rows,) = CodeReader(function.arch).rows([function])
    assert rows
    offset = next(row.offset for row in rows if row.opcode == "FMUL")
    one, other, moved = (
        replace(function, code=replace(function.code, relocations=((at, symbol),)))
        for at, symbol in ((offset, "counter"), (offset, "table"), (offset + 16, "counter"))
    )
    filled = bytearray(function.code.code)
    filled[offset + 4 : offset + 8] = b"\x01\x02\x03\x04"
    linked = replace(one, code=replace(one.code, code=bytes(filled)))
    same = quick_change(FunctionPair(one, linked))
    assert same is not None
    assert same.kinds == (ChangeKind.RESCHEDULED,)
    for changed in (other, moved):
        pair = FunctionPair(one, changed)
        assert quick_change(pair) is None
        (change,) = read_changes(function.arch, [pair])
        assert change.kinds == (ChangeKind.CONSTANTS,)
