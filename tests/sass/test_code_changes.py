"""What changed between two builds: planted in one source, and in code made by hand."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from profiler.build.code_images import FunctionBytes
from profiler.build.toolchain import require_tool
from profiler.build.toolkits import Toolkit, compile_cubin, find_toolkit
from profiler.errors import BuildFailed, CannotJudge, UnknownName
from profiler.sass.binary_functions import BinaryFunction, pair_functions, read_both, read_functions_of
from profiler.sass.code_changes import (
    ChangeKind,
    FunctionChange,
    FunctionRows,
    compare_binaries,
    quick_change,
    read_change,
)
from profiler.sass.code_words import CodeReader
from profiler.sass.listing import function_rows
from tests.toolchain import needs_nvcc, needs_sass

_SOURCE = Path(__file__).with_name("planted.cu")
_OTHER_PTXAS = os.environ.get("PROFILER_TEST_PTXAS", "")


@pytest.fixture(
    scope="module",
    params=["sm_90a", *(pytest.param(one, marks=pytest.mark.long) for one in ("sm_80", "sm_100a"))],
)
def builds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("planted")
    nvcc = [
        str(require_tool("nvcc").path),
        f"-arch={request.param}",
        "-lineinfo",
        "--extended-lambda",
        "-ptx",
    ]
    started = [
        subprocess.Popen([*nvcc, str(_SOURCE), "-o", name, *flags], cwd=folder)
        for name, flags in (("old.ptx", []), ("new.ptx", ["-DNEW"]))
    ]
    assert [one.wait() for one in started] == [0, 0]
    installed = find_toolkit("installed")
    for side in ("old", "new"):
        compile_cubin(installed, folder / f"{side}.ptx", request.param, (), (), folder / f"{side}.cubin")
    return folder / "old.cubin", folder / "new.cubin"


@needs_sass
def test_what_is_planted_is_named(builds: tuple[Path, Path]) -> None:
    found = {change.pair.either.short_name: change for change in compare_binaries(*builds).changes}
    kinds = {name: change.kind.value for name, change in found.items() if "__" in name}
    assert kinds == {name: name.partition("__")[0].replace("_", " ") for name in kinds}
    is_hopper = found["same__hidden"].pair.either.arch == "sm_90a"
    assert len(kinds) == (70 if is_hopper else 69), "clusters from sm_90 on, padding before sm_100"
    assert {found[name].depth for name in kinds if name.endswith("_0")} == {0}
    in_loops = ("wide", "difference", "minimum", "rounding", "scope", "case", "split", "copies", "moved")
    assert {found[name].depth for name in kinds if name.endswith(in_loops)} == {1}
    assert found[".nv.global.init"].kind is ChangeKind.CONSTANTS
    assert {depth: found[f"spills__depth_{depth}"].depth for depth in range(3)} == {0: 0, 1: 1, 2: 2}
    assert {one.what for one in found["spills__shared"].counts} >= {"STS", "LDS"}
    assert found["opcodes__in_a_loop"].depth == found["barriers_and_waits__less"].depth == 1
    (barriers,) = (one for one in found["barriers_and_waits__less"].counts if one.what == "BAR")
    assert (barriers.a, barriers.b) == (2, 1)
    matrices = {
        (one.what.split(".")[-1], one.a, one.b)
        for one in found["MMA_shape__type"].counts
        if "MMA" in one.what
    }
    assert {name for name, _, _ in matrices} >= {"BF16"}
    resources = found["resources__bounds"].pair
    assert resources.a
    assert resources.b
    assert (resources.a.max_threads, resources.b.max_threads) == (256, 512)


@needs_sass
@pytest.mark.skipif(not _OTHER_PTXAS, reason="PROFILER_TEST_PTXAS names no ptxas of another release")
def test_what_another_release_makes_of_one_source_is_named(builds: tuple[Path, Path], tmp_path: Path) -> None:
    """Held against the numbers of opcodes that nvdisasm's text has, and the bytes."""
    ptx = builds[0].with_suffix(".ptx").read_text()
    (tmp_path / "a.ptx").write_text(re.sub(r"\.version \d+\.\d+", ".version 8.7", ptx))
    (arch,) = {function.arch for function in read_functions_of(builds[0])}
    other = tmp_path / "other.cubin"
    compile_cubin(Toolkit("other", None, Path(_OTHER_PTXAS), ""), tmp_path / "a.ptx", arch, (), (), other)
    found = [one for one in compare_binaries(builds[0], other).changes if one.pair.either.code.code]
    assert {one.kind for one in found}.isdisjoint((ChangeKind.NOT_READ, ChangeKind.NEW, ChangeKind.GONE))
    rows = {}
    for path in (builds[0], other):
        functions = [one for one in read_functions_of(path) if one.code.code]
        for function, lines in zip(functions, CodeReader(arch).rows(functions), strict=True):
            assert lines is not None
            texts = [row.text or "" for row in lines]
            opcodes = Counter(
                text.split()[1 if text[0] == "@" else 0]
                for text in texts
                if not text.startswith(("NOP", "@!PT", "@!UPT"))
            )
            rows[path, function.name] = opcodes, function.code.code
    for change in found:
        (opcodes, code), (other_opcodes, other_code) = (
            rows[path, change.pair.either.name] for path in (builds[0], other)
        )
        assert (code == other_code) <= (change.kind in (ChangeKind.SAME, ChangeKind.RESOURCES))
        if change.kind.rank > ChangeKind.OPCODES.rank:
            assert opcodes == other_opcodes, change


@needs_sass
def test_a_build_is_the_same_as_itself_and_its_changes_turn_round(builds: tuple[Path, Path]) -> None:
    old, new = builds
    assert not compare_binaries(old, old).changed
    there, back = (compare_binaries(*sides).counts for sides in ((old, new), (new, old)))
    assert back == there


@needs_nvcc
def test_functions_are_selected_by_architecture_and_name(builds: tuple[Path, Path]) -> None:
    old, new = builds
    changes = compare_binaries(old, new, is_selected=lambda name: name == "resources__bounds").changes
    assert [change.pair.either.name for change in changes] == ["resources__bounds"]
    with pytest.raises(UnknownName, match="sm_75"):
        compare_binaries(old, new, arch="sm_75")
    with pytest.raises(UnknownName):
        compare_binaries(old, new, is_selected=lambda name: name == "none such")


@needs_nvcc
def test_folders_are_one_binary_and_other_files_are_refused(
    builds: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one.cubin").write_bytes(builds[0].read_bytes())
    functions = read_functions_of(tmp_path)
    assert {function.file for function in functions} == {"deep/one.cubin"}
    assert [function.name for function in functions] == [one.name for one in read_functions_of(builds[0])]
    for name, content, error in (
        ("a.cubin", b"nothing", BuildFailed),
        ("b.whl", b"no zip", BuildFailed),
        ("c.cubin", builds[0].read_bytes()[:4000], BuildFailed),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(error):
            read_functions_of(tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises((BuildFailed, CannotJudge)):
        read_functions_of(tmp_path / "empty")


@needs_sass
def test_images_of_both_sides_are_read_once_and_what_differs_beside_them_is_found(
    builds: tuple[Path, Path], tmp_path: Path
) -> None:
    for side, second in (("old", builds[0]), ("new", builds[1])):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.cubin").write_bytes(builds[0].read_bytes())
        (tmp_path / side / "b.cubin").write_bytes(second.read_bytes())
        with zipfile.ZipFile(tmp_path / f"{side}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            for name in ("a.cubin", "b.cubin"):
                wheel.write(tmp_path / side / name, f"package/{name}")
            wheel.writestr("package/__init__.py", "")
    alone = compare_binaries(*builds)
    same = len(read_functions_of(builds[0]))
    for old, new in (("old", "new"), ("old.whl", "new.whl"), ("old", "new.whl")):
        found = compare_binaries(tmp_path / old, tmp_path / new)
        assert found.counts == {**alone.counts, ChangeKind.SAME: alone.counts[ChangeKind.SAME] + same}
        both = read_both(tmp_path / old, tmp_path / new)
        assert len(both.equal) == (0 if ".whl" in new and ".whl" not in old else same)


@needs_sass
def test_a_variable_that_is_counted_anew_is_the_same_and_another_one_is_named(tmp_path: Path) -> None:
    """In objects to be linked a name has the number of its declaration: what stands above moves it."""
    text = """
static __device__ float table[64] = {1};
__global__ void keep(float *x, int i) { static __shared__ float s[64]; s[i] = *x; x[1] = s[63 - i]; }
__global__ void look(float *x, int i) { x[1] = table[i]; }
"""
    above = "__global__ void more(int *x) { static __shared__ int t[8]; t[*x] = 1; *x = t[x[1]]; }\n"
    sources = {"a": text, "b": above + text.replace("table", "levels")}
    for name, content in sources.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "k.cu").write_text(content)
        command = [str(require_tool("nvcc").path), "-arch=sm_90", "-dc", "-o", "k.o", "k.cu"]
        subprocess.run(command, cwd=tmp_path / name, check=True)
    changes = compare_binaries(tmp_path / "a" / "k.o", tmp_path / "b" / "k.o")
    by_name = {change.pair.either.short_name: change for change in changes.changes}
    assert by_name["keep"].kind is ChangeKind.SAME
    assert by_name["keep"].pair.a
    assert by_name["keep"].pair.b
    assert by_name["keep"].pair.a.code.relocations != by_name["keep"].pair.b.code.relocations
    assert by_name["look"].kind is ChangeKind.CONSTANTS
    assert any("table" in count.what for count in by_name["look"].counts)


def test_a_damaged_or_encrypted_wheel_is_refused(tmp_path: Path) -> None:
    whole = tmp_path / "a.whl"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("a/lib.so", bytes(range(256)) * 40)
    packed = whole.read_bytes()
    begin = packed.index(b"lib.so") + 6
    entry = packed.index(b"PK\1\2")
    for name, at, content in (
        ("damaged.whl", begin, b"\xff" * 8),
        ("encrypted.whl", 6, b"\1"),
        ("unknown.whl", 8, b"\x63"),
        ("short.whl", entry - 4, b""),
    ):
        data = bytearray(packed[:at] if not content else packed)
        data[at : at + len(content)] = content
        if name in ("encrypted.whl", "unknown.whl"):
            data[entry + at + 2 : entry + at + 3] = content
        (tmp_path / name).write_bytes(bytes(data))
        with pytest.raises(BuildFailed, match="cannot be read as a wheel"):
            read_functions_of(tmp_path / name)


def _function(
    name: str, code: bytes = bytes(32), cluster: tuple[int, ...] = (), **facts: int
) -> BinaryFunction:
    spills = FunctionBytes(code, None, facts.pop("shared_spill_bytes", 0), 0, None, cluster=cluster)
    return BinaryFunction("", "sm_90a", name, True, facts.get("registers", 32), 0, 0, None, spills)


def _change(a: list[str], b: list[str], **facts: int) -> FunctionChange:
    sides = []
    for texts, own in ((a, {}), (b, facts)):
        (rows,) = function_rows([[(16 * place, text) for place, text in enumerate(texts)]])
        code = b"".join(sha256(text.encode()).digest()[:16] for text in texts)
        sides.append(FunctionRows(_function("kernel", code, **own), rows))
    (pair,) = pair_functions(*([side.function] for side in sides))
    return read_change(pair, *sides)


_BODY = [
    "LDG.E R0, desc[UR4][R2.64]",
    "FMUL R4, R0, 3",
    "FADD R5, R0, R4",
    "STG.E desc[UR4][R2.64], R5",
    "EXIT",
]


def test_other_numbers_of_registers_are_registers_and_another_flow_is_not() -> None:
    other = [
        "LDG.E R7, desc[UR4][R2.64]",
        "FMUL R8, R7, 3",
        "FADD R7, R7, R8",
        "STG.E desc[UR4][R2.64], R7",
        "EXIT",
    ]
    assert _change(_BODY, other).kinds == (ChangeKind.REGISTERS,)
    assert _change(_BODY, other, registers=24).kinds == (ChangeKind.RESOURCES, ChangeKind.REGISTERS)
    swapped = [*other[:2], "FADD R7, R8, R8", *other[3:]]
    assert _change(_BODY, swapped).kinds == (ChangeKind.OPERANDS,)
    stored = [*_BODY[:3], "STG.E desc[UR4][R2.64], R4", "EXIT"]
    assert _change(_BODY, stored).kinds == (ChangeKind.OPERANDS,)


def test_what_is_far_behind_is_told_apart_and_is_not_another_order() -> None:
    first = ["LDG.E R0, desc[UR4][R2.64]", "LDG.E R1, desc[UR4][R4.64]"]
    steps = [f"FMUL R{number}, R{number}, R8" for _ in range(9) for number in (0, 1)]
    last = ["STG.E desc[UR4][R6.64], R9", "EXIT"]
    a, b = ([*first, *steps, f"FADD R9, {difference}", *last] for difference in ("R0, -R1", "R1, -R0"))
    change = _change(a, b)
    assert (change.kinds, change.depth) == ((ChangeKind.OPERANDS,), 0)


@pytest.mark.parametrize(
    ("other", "kinds"),
    [
        ("FMUL R4, R0, 5", {"constants"}),
        ("FMUL R4, -R0, 3", {"operands"}),
        ("FMUL R4, -R0, 5", {"constants", "operands"}),
        ("FMUL R4, R0, R6", {"constants", "operands"}),
        ("@P0 FMUL R4, R0, 3", {"operands"}),
    ],
)
def test_other_numbers_are_constants_and_what_is_read_otherwise_is_operands(
    other: str, kinds: set[str]
) -> None:
    change = _change(_BODY, [_BODY[0], other, *_BODY[2:]])
    assert set(change.kinds) == kinds
    assert change.depth == 0


def test_a_number_that_an_address_has_on_one_side_alone_is_a_constant() -> None:
    moved = [_BODY[0].replace("R2.64", "R2.64+0x100"), *_BODY[1:]]
    assert _change(_BODY, moved).kinds == (ChangeKind.CONSTANTS,)


def test_other_modifiers_are_opcodes_whatever_else_changed() -> None:
    rounded = [text.replace("FADD", "FADD.RZ") for text in _BODY]
    change = _change(_BODY, rounded, registers=40)
    assert change.kinds == (ChangeKind.OPCODES, ChangeKind.RESOURCES)
    assert {(one.what, one.a, one.b) for one in change.counts} == {("FADD", 1, 0), ("FADD.RZ", 0, 1)}
    assert change.depth == 0


def test_padding_alone_is_the_schedule() -> None:
    loop = ["FADD R1, R1, R4", "@P0 BRA 0x0", "EXIT", "BRA 0x30"]
    padded = ["FADD R1, R1, R4", "NOP", "@P0 BRA 0x0", "EXIT", "BRA 0x40"]
    assert _change(loop, padded).kinds == (ChangeKind.RESCHEDULED,)


def test_an_access_that_crosses_a_barrier_is_no_harmless_order() -> None:
    shared = ["STS [R0], R1", "BAR.SYNC.DEFER_BLOCKING 0x0", "LDS R2, [R3]", "@P0 BRA 0x0", "EXIT"]
    crossed = [shared[0], shared[2], shared[1], *shared[3:]]
    change = _change(shared, crossed)
    assert (change.kinds, change.depth) == ((ChangeKind.BARRIERS,), 1)
    copies = ["LDGSTS.E [R0], [R2.64]", "LDGDEPBAR", "FADD R5, R5, R6", "LDG.E R4, [R2.64]"]
    copies += ["DEPBAR.LE SB0, 0x0", "LDS R7, [R3]", "EXIT"]
    at = {"LDG": [0, 1, 3, 2, 4, 5, 6], "arithmetic": [0, 2, 1, 3, 4, 5, 6], "LDS": [0, 1, 2, 3, 5, 4, 6]}
    kinds = {name: _change(copies, [copies[place] for place in order]).kind for name, order in at.items()}
    assert kinds == {
        "LDG": ChangeKind.REORDERED,
        "arithmetic": ChangeKind.REORDERED,
        "LDS": ChangeKind.BARRIERS,
    }


def test_other_bits_of_one_text_are_no_other_numbers_of_registers() -> None:
    assert _change(_BODY, list(_BODY)).kinds == (ChangeKind.OPERANDS,)


def test_another_order_is_reordered_and_more_work_in_a_loop_is_not() -> None:
    loop = ["MOV R0, RZ", "FADD R1, R1, R4", "FMUL R2, R5, R6", "@P0 BRA 0x10", "EXIT"]
    assert _change(loop, [loop[0], loop[2], loop[1], *loop[3:]]).kinds == (ChangeKind.REORDERED,)
    moved = ["MOV R0, RZ", "FMUL R2, R5, R6", "FADD R1, R1, R4", "@P0 BRA 0x20", "EXIT"]
    assert _change(loop, moved).kind not in (ChangeKind.REORDERED, ChangeKind.REGISTERS, ChangeKind.SAME)
    constant = [text.replace("3", "5") if "FMUL" in text else text for text in _BODY]
    assert _change(_BODY, constant).kinds == (ChangeKind.CONSTANTS,)


def test_local_memory_counts_as_spills_only_where_nothing_is_marked() -> None:
    spilled = [*_BODY[:2], "STL [R1], R4", "LDL R4, [R1]", *_BODY[2:]]
    change = _change(_BODY, spilled)
    assert change.kind is ChangeKind.SPILLS
    assert {(one.what, one.a, one.b) for one in change.counts if one.kind is ChangeKind.SPILLS} == {
        ("STL", 0, 1),
        ("LDL", 0, 1),
    }


def test_bytes_say_what_is_only_scheduled_anew() -> None:
    a = _function("k")
    scheduled = bytearray(32)
    scheduled[13:16] = b"\x02\xf0\x0f"  # bits 105 and up of the first instruction
    other = bytearray(32)
    other[12] = 1
    pairs = {
        "same": _function("k"),
        "rescheduled": _function("k", bytes(scheduled)),
        "resources": _function("k", registers=40),
        "resources of a cluster": _function("k", cluster=(2, 1, 1)),
    }
    for kind, b in pairs.items():
        (pair,) = pair_functions([a], [b])
        change = quick_change(pair)
        assert change is not None
        assert change.kind.value == kind.partition(" ")[0]
    (pair,) = pair_functions([a], [_function("k", bytes(other))])
    assert quick_change(pair) is None, "an instruction differs"


def test_functions_pair_by_name_then_code_and_each_stands_once() -> None:
    one, two, three = (bytes([number]) * 32 for number in (1, 2, 3))
    hashed = "_ZN30_GLOBAL__N__{}_4_a_cu_go1kEv"
    a = [
        _function("kept", one),
        _function("old", two),
        _function(hashed.format("69f9bab9"), three),
        _function("x", one),
    ]
    b = [
        _function("new", two),
        _function(hashed.format("7b4c1557"), one),
        _function("kept", one),
        _function("y", three),
    ]
    named = [(pair.a and pair.a.name, pair.b and pair.b.name) for pair in pair_functions(a, b)]
    assert named == [
        ("old", "new"),
        (hashed.format("69f9bab9"), hashed.format("7b4c1557")),
        ("kept", "kept"),
        (None, "y"),
        ("x", None),
    ]
    twice = [_function("k", two), replace(_function("k", one), file="b")]
    assert [
        (pair.a and pair.a.code.code, pair.b and pair.b.code.code)
        for pair in pair_functions(twice, twice[::-1])
    ] == [
        (one, one),
        (two, two),
    ], "of one name those of equal code"


def test_lambdas_that_changed_places_pair_by_their_code() -> None:
    one, two = (bytes([number]) * 32 for number in (1, 2))
    first, second = "_Z1kIZ2goPfEUlfE_EvS0_iT_", "_Z1kIZ2goPfEUlfE0_EvS0_iT_"
    pairs = pair_functions(
        [_function(first, one), _function(second, two)], [_function(first, two), _function(second, one)]
    )
    assert [(pair.a and pair.a.name, pair.b and pair.b.name) for pair in pairs] == [
        (second, first),
        (first, second),
    ]
    inserted = pair_functions([_function(first, one)], [_function(first, two), _function(second, one)])
    assert [pair.a and pair.a.name for pair in inserted] == [None, first]


def test_a_device_function_of_another_architecture_is_another_one() -> None:
    old = replace(_function("helper"), is_kernel=False, arch="sm_50")
    new = replace(_function("helper"), is_kernel=False, arch="sm_75")
    assert [(pair.a, pair.b) for pair in pair_functions([old], [new])] == [(None, new), (old, None)]
    copied = replace(old, file="elsewhere.so")
    assert [(pair.a, pair.b) for pair in pair_functions([old], [copied])] == [(old, copied)]
