"""ELF files as this package reads them: what is damaged is a bad build, and there is one reader."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path

import pytest

from profiler.build.code_images import read_functions
from profiler.build.elf import read_contents, read_relocations, read_sections, read_symbols
from profiler.errors import BuildFailed
from tests.build.test_code_images import _nvcc
from tests.toolchain import needs_nvcc

PACKAGE = Path(__file__).resolve().parent.parent.parent / "profiler"
_SOURCE = "__device__ int counter; __global__ void count(int *x) { x[0] = atomicAdd(&counter, 1); }\n"


def test_one_module_reads_the_headers_of_elf_files() -> None:
    readers = [path for path in PACKAGE.rglob("*.py") if re.search(r", (base \+ )?0x3A\)", path.read_text())]
    assert [path.name for path in readers] == ["elf.py"]


@needs_nvcc
@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
def test_sections_symbols_and_relocations_of_a_cubin(tmp_path: Path, target: str) -> None:
    data = _nvcc(tmp_path, "one.cubin", f"-arch={target}", "-cubin", one=_SOURCE).read_bytes()
    sections = read_sections(data)
    code = next(section for section in sections if section.name.startswith(".text."))
    symbols = {symbol.name: symbol for symbol in read_symbols(data, sections, ".symtab")}
    assert sections[symbols["_Z5countPi"].place] == code
    assert symbols["counter"].size == 4
    assert {"counter"} <= {relocation.symbol for relocation in read_relocations(data)}
    shifted = read_sections(bytes(64) + data, 64)
    assert [one._replace(offset=one.offset - 64) for one in shifted] == sections


@needs_nvcc
@pytest.mark.parametrize("kind", [8, 0x70000007, 0x7000000A])
def test_memory_without_content_may_be_larger_than_the_file(tmp_path: Path, kind: int) -> None:
    """As nvcc 11.8 writes `.nv_debug.shared`: 1.7 MB behind the end of an image of 1.8 MB."""
    source = (
        "__global__ void copy(int *x) { __shared__ int s[8]; s[threadIdx.x] = x[0]; x[1] = s[7 - x[2]]; }\n"
    )
    data = bytearray(_nvcc(tmp_path, "one.cubin", "-arch=sm_90", "-cubin", one=source).read_bytes())
    table = struct.unpack_from("<Q", data, 0x28)[0]
    place = next(
        place for place, one in enumerate(read_sections(bytes(data))) if one.name == ".nv.shared._Z4copyPi"
    )
    struct.pack_into("<I", data, table + 64 * place + 4, kind)
    struct.pack_into("<Q", data, table + 64 * place + 0x20, 10 * len(data))
    section, content = read_contents(bytes(data))[place]
    assert (section.size, content) == (10 * len(data), b"")
    assert [function.name for function in read_functions(bytes(data))] == ["_Z4copyPi"]
    struct.pack_into("<I", data, table + 64 * place + 4, 1)
    with pytest.raises(BuildFailed, match="behind the file"):
        read_sections(bytes(data))


@needs_nvcc
def test_damaged_files_are_bad_builds(tmp_path: Path) -> None:
    whole = _nvcc(tmp_path, "one.cubin", "-arch=sm_90", "-cubin", one=_SOURCE).read_bytes()
    table = struct.unpack_from("<Q", whole, 0x28)[0]
    draw, refused = random.Random(3), 0
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 6)):
            data[draw.choice((0x28, table)) + draw.randrange(1024) % (len(data) - table)] = draw.randrange(
                256
            )
        try:
            read_symbols(bytes(data), read_sections(bytes(data)))
            read_relocations(bytes(data))
        except BuildFailed:
            refused += 1
    assert 0 < refused < 500


@needs_nvcc
def test_blackwells_line_information_shares_its_text(tmp_path: Path) -> None:
    data = _nvcc(tmp_path, "one.cubin", "-arch=sm_100a", "-cubin", "-lineinfo", one=_SOURCE).read_bytes()
    contents = {section.name: (section, content) for section, content in read_contents(data)}
    (one, text), (other, again) = contents[".debug_str"], contents[".nv.merc.debug_str"]
    assert one.span == other.span
    assert text == again
    assert b"\0" in text
    assert [function.name for function in read_functions(data)] == ["_Z5countPi"]


@needs_nvcc
def test_sections_that_overlap_are_refused(tmp_path: Path) -> None:
    data = bytearray(_nvcc(tmp_path, "one.cubin", "-arch=sm_90", "-cubin", one=_SOURCE).read_bytes())
    table = struct.unpack_from("<Q", data, 0x28)[0]
    for index in (1, 2):
        struct.pack_into("<QQ", data, table + 64 * index + 0x18, 0, len(data))
    for read in (read_contents, read_relocations):
        with pytest.raises(BuildFailed):
            read(bytes(data))


@needs_nvcc
def test_relocations_that_name_another_table_are_of_the_only_one(tmp_path: Path) -> None:
    """As nvcc 12.0 writes them for sm_50."""
    data = bytearray(_nvcc(tmp_path, "one.cubin", "-arch=sm_90", "-cubin", one=_SOURCE).read_bytes())
    whole, table = read_relocations(bytes(data)), struct.unpack_from("<Q", data, 0x28)[0]
    sections = read_sections(bytes(data))
    strings = next(place for place, one in enumerate(sections) if one.name == ".strtab")
    for place, section in enumerate(sections):
        if section.kind in (4, 9):
            struct.pack_into("<I", data, table + 64 * place + 0x28, strings)
    assert whole
    assert read_relocations(bytes(data)) == whole


@needs_nvcc
def test_two_sections_may_be_the_same_bytes(tmp_path: Path) -> None:
    """As .nv.constant4 and .nv.merc.nv.constant.pic of Blackwell's cubins; many may not, nor parts of one."""
    data = bytearray(_nvcc(tmp_path, "one.cubin", "-arch=sm_90", "-cubin", one=_SOURCE).read_bytes())
    table = struct.unpack_from("<Q", data, 0x28)[0]
    struct.pack_into("<QQ", data, table + 64 * 3 + 0x18, 0, len(data) * 9 // 10)
    for place in (4, 5, 6, 7):
        struct.pack_into("<QQ", data, table + 64 * place + 0x18, 0, len(data) * 9 // 10)
    with pytest.raises(BuildFailed, match="overlap"):
        read_contents(bytes(data))
    data = bytearray((tmp_path / "one.cubin").read_bytes())
    sections = read_sections(bytes(data))
    code = next(place for place, one in enumerate(sections) if one.name.startswith(".text."))
    struct.pack_into("<QQ", data, table + 64 * 4 + 0x18, sections[code].offset, sections[code].size)
    contents = read_contents(bytes(data))
    assert contents[4][1] == contents[code][1]
