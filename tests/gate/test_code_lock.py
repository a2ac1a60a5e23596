"""The lock of a library: what it says, that it says it again, and whose record a function is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.build.code_images import FunctionBytes
from profiler.errors import ProfilerError
from profiler.gate.code_lock import (
    AcceptedChange,
    AccessCost,
    AccessFacts,
    PinnedFunction,
    ReadFunction,
    lock_text,
    pair_pinned,
    pinned_of,
    read_lock,
)
from profiler.sass.binary_functions import BinaryFunction
from profiler.sass.loop_facts import LoopFacts

_LOOPS = LoopFacts(({"LDG.128": 2}, {"HMMA.16816.F32": 8}), (3, 1), 1)


def pinned(name: str = "attend", **values: object) -> PinnedFunction:
    """A function as a lock holds it, with some values of its own."""
    known = PinnedFunction(
        arch="sm_90a",
        name=name,
        is_kernel=True,
        registers=64,
        stack_bytes=16,
        shared_bytes=1024,
        shared_spill_bytes=0,
        max_threads=256,
        instructions=100,
        code="c0",
        unscheduled="u0",
        loops=_LOOPS,
    )
    return replace(known, **values)  # type: ignore[arg-type]


def accesses(
    shared: Sequence[tuple[int, float, float]] = (),
    sectors: Sequence[tuple[int, float, float]] = (),
    unknown: Sequence[int] = (),
    block: tuple[int, int, int] = (256, 1, 1),
) -> AccessFacts:
    """What accesses cost, by loop depth: places in the code, cost, excess."""
    costs = (tuple(AccessCost(*one) for one in side) for side in (shared, sectors))
    return AccessFacts(block, *costs, tuple(unknown))


def _binary(name: str, code: bytes, **values: object) -> BinaryFunction:
    of_file = FunctionBytes(code, None, 0, 0, 128, relocations=((0, f"{name}_table"),))
    function = BinaryFunction("a/b.so", "sm_90a", name, True, 40, 0, 0, 128, of_file)
    return replace(function, **values)  # type: ignore[arg-type]


def test_a_lock_says_again_what_was_written(tmp_path: Path) -> None:
    functions = [
        pinned(),
        pinned("clustered", cluster=(4, 1, 1)),
        pinned("device", is_kernel=False, registers=None, stack_bytes=None, max_threads=None),
        pinned("followed", accesses=accesses(shared=[(4, 8, 0), (2, 66.5, 62.25)], unknown=[0, 1])),
        pinned("local", loops=LoopFacts(({"LDL.32": 4},), (4,), 0, is_marked=False)),
        pinned("nothing_to_follow", accesses=AccessFacts((32, 4, 1), (), (), ())),
        pinned("triton", dynamic_shared_bytes=49152),
        pinned("triton_without_any", dynamic_shared_bytes=0),
        pinned("unread", loops=None, shared_spill_bytes=8192),
        pinned("worse", accepted=(AcceptedChange("spills: none → 4", "the compiler 13.5", "spills"),)),
    ]
    file = tmp_path / "kernels.lock"
    file.write_text(lock_text(reversed(functions)))
    assert read_lock(file) == functions
    assert lock_text(read_lock(file)) == file.read_text()
    assert len(file.read_text().splitlines()) == len(functions) + 2


def test_neither_folders_nor_the_order_of_files_nor_hashes_of_paths_are_in_a_lock() -> None:
    one, other = (
        [_binary(f"_ZN30_GLOBAL__N__{path}_4_a_cu_go1kEv", bytes(32)), _binary("b", bytes(range(32)))]
        for path in ("69f9bab9", "01234567")
    )
    other = [replace(function, file=f"elsewhere/{function.file}") for function in reversed(other)]
    texts = [lock_text(read.pinned for read in pinned_of(side)) for side in (one, other)]
    assert texts[0] == texts[1]
    assert "a_cu_go" in texts[0]
    assert "b.so" not in texts[0]


def test_another_schedule_is_another_code_and_the_same_instructions() -> None:
    words = bytearray(32)
    words[14] = 0x80  # bit 119, of the schedule
    was, now, more = (
        pinned_of([_binary("k", bytes(code))])[0].pinned for code in (bytes(32), words, b"\x01" * 32)
    )
    assert (was.unscheduled, was.code) != (now.unscheduled, now.code)
    assert was.unscheduled == now.unscheduled != more.unscheduled
    assert not was.is_same(now)


def test_what_triton_says_beside_a_cubin_is_pinned(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.json").write_text('{"shared": 49152, "num_warps": 8}')
    one = _binary("k", bytes(32), file="a/b.cubin")
    others = [replace(one, file="c.cubin"), replace(one, is_kernel=False), replace(one, max_threads=None)]
    found = [pinned_of([function], path=tmp_path)[0].pinned for function in (one, *others)]
    assert [of.dynamic_shared_bytes for of in found] == [49152, None, None, 49152]
    assert [of.max_threads for of in found] == [128, 128, 128, 256]
    # An older lock does not say it, which is no change.
    assert found[1].is_same(found[0])
    assert not found[0].is_same(found[1])
    assert not found[0].is_same(replace(found[0], dynamic_shared_bytes=98304))


def test_a_function_is_paired_by_name_then_by_code_then_without_the_numbers_of_lambdas() -> None:
    old = [
        pinned("same"),
        pinned("twice", code="c1"),
        pinned("twice", code="c2", instructions=200),
        pinned("before", code="c3"),
        pinned("_ZZ1fvENKUlvE0_clEv", code="c4"),
        pinned("gone", code="c5"),
    ]
    new = [
        pinned("same", code="c9", unscheduled="u9"),
        pinned("twice", code="c2", instructions=200),
        pinned("twice", code="c6"),
        pinned("after", code="c3"),
        pinned("_ZZ1fvENKUlvE1_clEv", code="c7"),
        pinned("new", code="c8"),
        pinned("same", arch="sm_80"),
    ]
    pairs = pair_pinned(*([ReadFunction(one) for one in side] for side in (old, new)))
    names = {
        (
            pair.a and (pair.a.pinned.name, pair.a.pinned.code),
            pair.b and (pair.b.pinned.name, pair.b.pinned.code),
        )
        for pair in pairs
    }
    assert names == {
        (("same", "c0"), ("same", "c9")),
        (("twice", "c1"), ("twice", "c6")),
        (("twice", "c2"), ("twice", "c2")),
        (("before", "c3"), ("after", "c3")),
        (("_ZZ1fvENKUlvE0_clEv", "c4"), ("_ZZ1fvENKUlvE1_clEv", "c7")),
        (("gone", "c5"), None),
        (None, ("new", "c8")),
        (None, ("same", "c0")),
    }


_FOLLOWED = lock_text([pinned(accesses=accesses(shared=[(2, 8, 4.5)]))])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no lock"),
        ("[]", "is no lock"),
        ("{}", "no 'format'"),
        ('{"format": "kernel lock 9", "functions": []}', "has the format 'kernel lock 9'"),
        ('{"format": "kernel lock 1", "functions": [{"name": "a"}]}', "no 'arch'"),
        ('{"format": "kernel lock 1", "functions": [7]}', "is no lock"),
        (lock_text([pinned()]).replace("256", "0"), "0 is no whole number from 1"),
        (lock_text([pinned()]).replace('"LDG.128":2', '"LDG.128":0'), "0 is no whole number from 1"),
        (lock_text([pinned()]).replace('"stack":16', '"stack":-1'), "-1 is no whole number from 0"),
        (lock_text([pinned()]).replace('"stack":16', '"stack":true'), "True is no whole number from 0"),
        (_FOLLOWED.replace("[256,1,1]", "[256,1]"), "is no lock"),
        (_FOLLOWED.replace("[256,1,1]", "[256,1,0]"), "0 is no whole number from 1"),
        (_FOLLOWED.replace("[2,8,4.5]", "[2,8]"), "is no lock"),
        (_FOLLOWED.replace("[2,8,4.5]", "[2,8,-1]"), "-1 is no number from 0"),
        (_FOLLOWED.replace("[2,8,4.5]", "[2,8,NaN]"), "nan is no number from 0"),
        ("[" * 100_000, "is no lock"),
        ("\udcff", "it is no text"),
    ],
)
def test_what_is_no_lock_is_refused_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "kernels.lock"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ProfilerError, match=words) as error:
        read_lock(file)
    assert "\n" not in str(error.value)
    with pytest.raises(ProfilerError, match="No such file"):
        read_lock(tmp_path / "none.lock")
