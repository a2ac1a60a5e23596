"""Functions with some registers changed: what the few instructions say is what all the text says."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.build.toolchain import require_tool
from profiler.sass.binary_functions import BinaryFunction, FunctionPair, read_functions_of
from profiler.sass.code_changes import ChangeKind, FunctionRows, read_change, read_changes
from profiler.sass.code_words import CodeReader, FunctionCounts
from profiler.sass.patched_code import read_patches
from tests.toolchain import needs_sass

_SOURCE = Path(__file__).with_name("planted.cu")
_REGISTER_BYTES = (2, 3, 4, 8)  # of an instruction
_MOVED = (4, 8, 12)  # by so many registers, so that groups of four stay in place


@pytest.fixture(
    scope="module",
    params=["sm_90a", *(pytest.param(one, marks=pytest.mark.long) for one in ("sm_80", "sm_100a"))],
)
def functions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[BinaryFunction]:
    cubin = tmp_path_factory.mktemp("patched") / "planted.cubin"
    flags = [f"-arch={request.param}", "--extended-lambda", "-cubin", "-DNEW", "-o", str(cubin)]
    subprocess.run([str(require_tool("nvcc").path), *flags, str(_SOURCE)], check=True)
    return [one for one in read_functions_of(cubin) if one.instructions > 40]


def _patched(function: BinaryFunction, source: random.Random) -> BinaryFunction:
    code = bytearray(function.code.code)
    for _ in range(source.randrange(1, 4)):
        place = 16 * source.randrange(function.instructions)
        number = place + source.choice(_REGISTER_BYTES)
        if code[number] < 200:
            code[number] ^= source.choice(_MOVED)
    return replace(function, code=replace(function.code, code=bytes(code)))


@needs_sass
def test_few_instructions_say_of_a_patch_what_all_the_text_says(functions: list[BinaryFunction]) -> None:
    source = random.Random(11)
    pairs = [FunctionPair(one, _patched(one, source)) for one in functions for _ in range(4)]
    reader = CodeReader(functions[0].arch)
    sides = [one for pair in pairs for one in (pair.a, pair.b) if one]
    counted, rows = reader.count(sides), reader.rows(sides)
    whole, told = [], []
    asked = list[tuple[FunctionCounts, FunctionCounts]]()
    for place, pair in enumerate(pairs):
        assert pair.a
        assert pair.b
        (count_a, count_b), (rows_a, rows_b) = (some[2 * place : 2 * place + 2] for some in (counted, rows))
        if count_a is None or count_b is None or rows_a is None or rows_b is None:
            continue  # no instruction any more
        whole.append(read_change(pair, FunctionRows(pair.a, rows_a), FunctionRows(pair.b, rows_b)))
        told.append(pair)
        if count_a.counts == count_b.counts:
            asked.append((count_a, count_b))
    found = read_changes(functions[0].arch, told)
    assert [(one.kinds, one.uncounted) for one in found] == [(one.kinds, one.uncounted) for one in whole]
    assert sum(ChangeKind.OPERANDS in one.kinds for one in whole) > 20
    patches = [one for one in read_patches(reader, asked) if one]
    assert len(patches) > len(asked) / 2
    assert sum(one.depth is not None for one in patches) > 10
