"""Every image and function of files that hold machine code, read without a tool."""

from __future__ import annotations

import os
import random
import re
import struct
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from profiler.build.code_images import architectures, choose_images, read_images
from profiler.build.code_images import code_files as files_of_code
from profiler.build.elf import FUNCTION, KERNEL, SECTION, read_sections, read_symbols
from profiler.build.library import parse_ptxas
from profiler.build.toolchain import require_tool
from profiler.documents import code_files
from profiler.documents.code_files import examine_files
from profiler.errors import BuildFailed, CannotJudge, ProfilerError, UnknownName
from profiler.model.cubin import read_kernels
from profiler.model.cubin_run import choose_kernel
from profiler.sass import disassembly
from profiler.sass.disassembly import disassemble
from tests.toolchain import needs_nvcc, needs_sass

_FIRST = """
struct Params { float *x; int n; };
__global__ void attend(Params p) { p.x[threadIdx.x] = p.n; }
"""
_SECOND = """
__device__ int counter;
__global__ void without_parameters() { counter = 1; }
template <int N> __global__ void v2d(float *x) { for (int i = 0; i < N; i++) x[i] *= N; }
template __global__ void v2d<64>(float *);
template __global__ void v2d<128>(float *);
"""
_USAGE = re.compile(r"Function (\S+?):\s+REG:(\d+) STACK:(\d+)")


def _nvcc(folder: Path, output: str, *arguments: str, **sources: str) -> Path:
    for name, text in sources.items():
        (folder / f"{name}.cu").write_text(text)
    names = [f"{name}.cu" for name in sources]
    command = [str(require_tool("nvcc").path), *arguments, "-o", output, *names]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / output


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources for two architectures each, and what nvcc links in."""
    folder = tmp_path_factory.mktemp("library")
    targets = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in ("80", "90a")]
    return _nvcc(folder, "two.so", *targets, "-shared", "-Xcompiler=-fPIC", first=_FIRST, second=_SECOND)


def _listed(path: Path) -> Counter[tuple[str, int, int]]:
    tool = str(require_tool("cuobjdump").path)
    text = subprocess.run([tool, "--dump-resource-usage", str(path)], capture_output=True, text=True).stdout
    return Counter((name, int(registers), int(stack)) for name, registers, stack in _USAGE.findall(text))


@needs_sass
def test_every_function_of_every_image_is_listed_as_cuobjdump_does(library: Path) -> None:
    ours = Counter(
        (function.name, function.registers, function.stack_bytes)
        for image in read_images(library)
        for function in image.functions
    )
    assert ours == _listed(library)
    assert sum(ours.values()) == 8
    document = examine_files([library])
    rows = Counter((row.function, row.registers, row.stack_bytes) for row in document.functions)
    assert rows == ours
    assert Counter(row.arch for row in document.functions) == {"sm_80": 4, "sm_90a": 4}
    names = {row.name for row in document.functions}
    assert names == {"attend", "without_parameters", "v2d<64>", "v2d<128>"}
    names = disassemble(library, "sm_90a").functions
    assert len(names) == 4


@needs_sass
def test_of_a_large_file_the_code_is_disassembled_where_it_is_asked_for(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_files, "_MOST_CODE_BYTES", 100)
    headers = examine_files([library], ["sm_90a"])
    assert {(row.live_registers, row.local_accesses) for row in headers.functions} == {(None, None)}
    assert any("--lines" in sentence for sentence in headers.sentences)
    whole = examine_files([library], ["sm_90a"], with_lines=True)
    assert all(0 < row.live_registers <= row.registers for row in whole.functions)
    assert not any("--lines" in sentence for sentence in whole.sentences)


@needs_sass
def test_images_without_a_kernel_that_is_asked_for_are_not_disassembled(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    original = disassembly.cubin_functions
    monkeypatch.setattr(disassembly, "cubin_functions", lambda path: read.append(path) or original(path))
    names = disassemble(library, "sm_90a", lambda name: "v2d" in name).functions
    assert len(read) == 1
    assert "_Z6attend6Params" not in names
    with pytest.raises(UnknownName, match="no such function"):
        disassemble(library, "sm_90a", lambda name: "no_such_kernel" in name)


@needs_nvcc
def test_an_image_without_functions_is_no_choice(tmp_path: Path) -> None:
    plain = _nvcc(tmp_path, "plain.o", "-arch=sm_90", "-c", plain=_FIRST)
    other = _nvcc(tmp_path, "mixed.so", "-shared", "-Xcompiler=-fPIC", str(plain))
    assert {image.arch for image in read_images(other)} == {"sm_75", "sm_90"}
    assert architectures(other) == ("sm_90",)
    assert [kernel.name for image in choose_images(other, None) for kernel in image.kernels] == [
        "_Z6attend6Params"
    ]


@needs_nvcc
@pytest.mark.parametrize(
    ("target", "arch"),
    [("sm_90", "sm_90"), ("sm_90a", "sm_90a"), ("sm_100f", "sm_100f"), ("sm_120f", "sm_120f")],
)
def test_an_architecture_keeps_its_letter_and_a_family_is_found(
    tmp_path: Path, target: str, arch: str
) -> None:
    path = _nvcc(tmp_path, "one.fatbin", f"-arch={target}", "-fatbin", first=_FIRST)
    assert architectures(path) == (arch,)
    assert len(list(choose_images(path, target))) == 1
    with pytest.raises(BuildFailed):
        list(choose_images(path, "sm_75"))


@needs_nvcc
def test_a_file_with_ptx_alone_could_not_be_judged_and_the_ptx_itself_is_assembled(tmp_path: Path) -> None:
    code = "-gencode=arch=compute_90,code=compute_90"
    with pytest.raises(CannotJudge, match="compute_90"):
        architectures(_nvcc(tmp_path, "alone.fatbin", code, "-fatbin", first=_FIRST))
    ptx = _nvcc(tmp_path, "second.ptx", "-arch=compute_90", "-ptx", second=_SECOND)
    assert len(examine_files([ptx]).functions) == 3
    newer = tmp_path / "newer.ptx"
    newer.write_text(re.sub(r"\.version \S+", ".version 99.0", ptx.read_text()))
    with pytest.raises(CannotJudge):
        examine_files([newer])


@needs_nvcc
def test_a_stub_holds_no_kernel_whether_ptx_comes_along_or_not(tmp_path: Path) -> None:
    for kind in ("-fatbin", "-cubin"):
        stub = _nvcc(tmp_path, f"stub{kind}", "-arch=sm_90", kind, stub="int main() { return 0; }\n")
        with pytest.raises(BuildFailed, match="no kernel"):
            architectures(stub)


@needs_nvcc
def test_parameters_over_4_kb_and_kernels_without_any(tmp_path: Path) -> None:
    source = "struct Big { int a[2000]; float *x; };\n" + (
        "__global__ void bigger(const __grid_constant__ Big p, int k, double d) { p.x[k] = p.a[k] * d; }\n"
        "__device__ int counter; __global__ void nothing() { counter = 1; }\n"
    )
    for target in ("sm_90", "sm_100a"):
        kernels = read_kernels(_nvcc(tmp_path, f"{target}.cubin", f"-arch={target}", "-cubin", big=source))
        big, nothing = kernels["_Z6bigger3Bigid"], kernels["_Z7nothingv"]
        assert [(p.offset, p.size) for p in big.parameters] == [(0, 8008), (8008, 4), (8016, 8)]
        assert nothing.parameters == ()
        assert nothing.parameter_base == big.parameter_base


_HEAVY = """
#define BODY float r[200], s = 0; \\
  _Pragma("unroll") for (int i = 0; i < 200; i++) r[i] = x[i * n]; \\
  _Pragma("unroll") for (int i = 0; i < 200; i++) s += r[i] * r[199 - i] * x[i + n]; \\
  _Pragma("unroll") for (int i = 0; i < 200; i++) s *= r[i];
__device__ __noinline__ float heavy(const float *x, int n) { BODY return s; }
__global__ void __launch_bounds__(1024) caller(float *x, int n) { x[threadIdx.x] = heavy(x, n); }
__global__ void __launch_bounds__(1024) shared_spills(float *x, int n) {
  asm volatile(".pragma \\"enable_smem_spilling\\";");
  BODY x[threadIdx.x] = s;
}
__global__ void small(float *x) { x[0] = 1; }
"""


@needs_sass
def test_spills_into_shared_memory_and_those_of_a_called_function(tmp_path: Path) -> None:
    (tmp_path / "heavy.cu").write_text(_HEAVY)
    nvcc = str(require_tool("nvcc").path)
    command = [nvcc, "-arch=sm_90", "-cubin", "-Xptxas=-v", "heavy.cu", "-o", "heavy.cubin"]
    log = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    usages = {usage.function: usage for usage in parse_ptxas(log)}
    numbers = [
        int(n) for n in re.findall(r"(\d+) bytes spill (?:stores|loads)", log.partition("heavyPKfi")[2])
    ]
    assert numbers[0] > 0
    assert usages["_Z6callerPfi"].spill_bytes == sum(numbers[:2])
    assert usages["_Z5smallPf"].spill_bytes == 0
    rows = {row.name: row for row in examine_files([tmp_path / "heavy.cubin"]).functions}
    assert rows["shared_spills"].shared_spill_bytes == rows["shared_spills"].static_shared_bytes > 0
    assert rows["caller"].spill_instructions == rows["caller"].local_accesses > 0
    assert rows["small"].shared_spill_bytes == 0
    assert not rows["small"].spill_instructions


def test_what_is_no_machine_code_is_one_line(tmp_path: Path) -> None:
    for content in (
        b"",
        b"\x7fELF",
        b"text",
        b"\x7fELF\x02" + bytes(14) + b"\0" * 60,
        b"P\xedU\xba" + b"\xff" * 60,
    ):
        path = tmp_path / "wrong.so"
        path.write_bytes(content)
        with pytest.raises(BuildFailed) as raised:
            architectures(path)
        assert "\n" not in str(raised.value)


@needs_nvcc
@pytest.mark.parametrize("output", ["-cubin", "-fatbin"])
def test_damaged_files_end_in_one_line_or_are_read(tmp_path: Path, output: str) -> None:
    whole = bytearray(_nvcc(tmp_path, "whole.bin", "-arch=sm_90", output, second=_SECOND).read_bytes())
    draw = random.Random(1)
    path, refused = tmp_path / "damaged.cubin", 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 8)):
            begin = draw.choice((0, draw.randrange(len(data))))
            data[min(len(data) - 1, begin + draw.randrange(80))] = draw.randrange(256)
        if draw.random() < 0.3:
            del data[draw.randrange(len(data)) :]
        path.write_bytes(data)
        try:
            for image in read_images(path):
                assert image.functions is not None
            read_kernels(path)
        except ProfilerError as error:
            lines = str(error).splitlines()
            refused += len(lines)
    assert 0 < refused <= 400


def _field(data: bytes, section: str, at: int) -> int:
    """Where a field of a section's header is."""
    place = next(index for index, one in enumerate(read_sections(data)) if one.name == section)
    table: int = struct.unpack_from("<Q", data, 0x28)[0]
    return table + 64 * place + at


def _symbol(data: bytes, kind: int, name: str) -> int:
    """Where the entry of a symbol begins."""
    sections = read_sections(data)
    table = next(one for one in sections if one.name == ".symtab")
    return table.offset + 24 * next(
        one.number for one in read_symbols(data, sections) if (one.kind, one.name) == (kind, name)
    )


_KERNEL = "_Z18without_parametersv"
_DAMAGE: dict[str, tuple[Callable[[bytes], int], int | None]] = {
    "begins within another": (lambda data: _field(data, f".nv.info.{_KERNEL}", 0), 5),
    "have the same name": (lambda data: _field(data, f".nv.info.{_KERNEL}", 0), None),
    "belong to none of them": (lambda data: _field(data, f".nv.info.{_KERNEL}", 0x20), -16),
    "not marked as a kernel": (lambda data: _symbol(data, FUNCTION, _KERNEL) + 5, -KERNEL),
    "another size": (lambda data: _symbol(data, FUNCTION, _KERNEL) + 16, -16),
    "calls it": (lambda data: _symbol(data, SECTION, f".text.{_KERNEL}"), 1),
}


@needs_nvcc
@pytest.mark.parametrize("words", _DAMAGE)
def test_a_part_that_would_be_lost_is_named(tmp_path: Path, words: str) -> None:
    path = _nvcc(tmp_path, "one.cubin", "-arch=sm_90", "-cubin", one=_SECOND)
    data = bytearray(path.read_bytes())
    place, change = _DAMAGE[words][0](bytes(data)), _DAMAGE[words][1]
    if change is None:  # the name of another section
        data[place : place + 4] = data[(other := _field(bytes(data), ".nv.info", 0)) : other + 4]
    else:
        data[place] = (data[place] + change) % 256
    path.write_bytes(data)
    with pytest.raises(BuildFailed, match=words):
        list(read_images(path))


@needs_nvcc
def test_the_symbol_of_a_section_of_constants_may_call_it_otherwise(tmp_path: Path) -> None:
    """As ptxas 13.5 does for the table of a switch: .nv.constant.optimizer.k for .nv.constant2.k."""
    path = _nvcc(tmp_path, "one.cubin", "-arch=sm_90", "-cubin", one=_SECOND)
    data = bytearray(path.read_bytes())
    data[_symbol(bytes(data), SECTION, f".nv.constant0.{_KERNEL}")] += 1
    path.write_bytes(data)
    assert [len(image.functions) for image in read_images(path)] == [3]


@needs_nvcc
@pytest.mark.parametrize("change", ["kind", "version", "fat binary"])
def test_an_image_of_a_library_is_not_lost(library: Path, tmp_path: Path, change: str) -> None:
    data = bytearray(library.read_bytes())
    container = data.index(struct.pack("<IH", 0xBA55ED50, 1))
    if change == "fat binary":
        found = next(one for one in read_sections(bytes(data)) if one.name == ".nv_fatbin")
        size = struct.unpack_from("<Q", data, container + 8)[0] + 16
        at = struct.unpack_from("<Q", data, 0x28)[0] + 64 * read_sections(bytes(data)).index(found)
        struct.pack_into("<QQ", data, at + 0x18, found.offset + size, found.size - size)
    else:
        struct.pack_into("<H", data, container + 16 + (0 if change == "kind" else 2), 1)
    path = tmp_path / "lost.so"
    path.write_bytes(data)
    with pytest.raises(BuildFailed, match="damaged"):
        list(read_images(path))


@needs_nvcc
def test_sections_of_an_object_for_sm_110_may_overlap(tmp_path: Path) -> None:
    path = _nvcc(tmp_path, "one.o", "-arch=sm_110", "-dc", one=_SECOND)
    assert [len(image.functions) for image in read_images(path)] == [3]


@needs_sass
def test_source_lines_on_disk_are_shown_and_changed_ones_are_not(tmp_path: Path) -> None:
    cubin = _nvcc(tmp_path, "lines.cubin", "-arch=sm_90", "-lineinfo", "-cubin", lines=_FIRST)
    shown = disassemble(cubin).texts
    assert _FIRST in shown.values()
    source, made = tmp_path / "lines.cu", cubin.stat().st_mtime
    os.utime(source, (made + 10, made + 10))
    assert _FIRST not in disassemble(cubin).texts.values()


@needs_nvcc
def test_a_folder_of_tritons_cache_is_listed_once(tmp_path: Path) -> None:
    cubin = _nvcc(tmp_path, "k.cubin", "-arch=sm_90", "-cubin", k=_FIRST)
    _nvcc(tmp_path, "k.ptx", "-arch=sm_90", "-ptx", k=_FIRST)
    assert files_of_code(tmp_path) == [cubin]


def test_a_kernel_is_chosen_by_any_part_of_its_name_that_it_alone_has() -> None:
    names = ["_Z3v2dILi64EEvPf", "_Z3v2dILi128EEvPf", "_Z6attend6Params"]
    for name, chosen in (
        ("v2dILi64", 0),
        ("v2d<128>", 1),
        ("attend", 2),
        ("Params", 2),
        ("ns::v2d< 64 >", 0),
        ("<128>", 1),
    ):
        assert choose_kernel(names, name, "file") == names[chosen]
    for wrong, said in (
        ("v2d", "several kernels: choose with --kernel: v2d<128>, v2d<64>"),
        (None, "several kernels: choose with --kernel: attend, v2d<128>, v2d<64>"),
        ("v2e", "no kernel 'v2e': it has attend, v2d<128>, v2d<64>"),
        ("v2d<32>", "no kernel 'v2d<32>': it has attend, v2d<128>, v2d<64>"),
    ):
        with pytest.raises(UnknownName, match=re.escape(said)):
            choose_kernel(names, wrong, "file")
    types = ["_Z1kIfEvPT_", "_Z1kIdEvPT_"]
    with pytest.raises(UnknownName, match="several kernels: choose with --kernel: _Z1kIdEvPT_, _Z1kIfEvPT_"):
        choose_kernel(types, "k", "file")
