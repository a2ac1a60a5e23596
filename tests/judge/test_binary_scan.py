"""Global memory that a binary holds: state where code can come by its address, nothing where it cannot."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from profiler.build import toolchain
from profiler.build.elf import read_relocations
from profiler.build.library import ResourceUsage
from profiler.errors import BuildFailed
from profiler.judge.binary_scan import binary_doubts, scan_binary
from profiler.judge.compilation import CandidateCode, Kernel
from profiler.judge.machine_worker import _pointer_slots, inspect
from tests.toolchain import needs_sass

HEAD = ".version 8.0\n.target {arch}\n.address_size 64\n"
# As Triton leaves it behind where libdevice's exp2, log2 or sqrt were inlined: a name that was asked for.
LEFT_BEHIND = ".global .align 1 .b8 _$_str[11] = {95, 95, 67, 85, 68, 65, 95, 70, 84, 90, 0};\n"
# As cuTile does: what its launcher writes into.
LAUNCH_DATA = ".visible .global .align 8 .b8 ___NV_TILE_LAUNCH_META_DATA___[64];\n"
KERNEL = """
.visible .entry k(.param .u64 out) {{
  .reg .u64 %p<6>; .reg .u32 %v<4>;
  ld.param.u64 %p1, [out];
  mov.u32 %v1, %tid.x;
  {body}
  st.global.u32 [%p1], %v1;
  ret;
}}
"""
COUNTS = "atom.global.add.u32 %v1, [{}], 1;"
# Of each way of reaching memory one: constant banks as operands, and loads of them through uniform registers.
ARCHES = ["sm_80", "sm_100", *(pytest.param(arch, marks=pytest.mark.long) for arch in ("sm_90", "sm_121"))]


def scan(tmp_path: Path, arch: str, text: str, *, doubts: bool = False) -> list[str]:
    """The findings on a module of PTX, or what cannot be told of it."""
    source, cubin = tmp_path / "k.ptx", tmp_path / "k.cubin"
    source.write_text(HEAD.format(arch=arch) + text)
    ptxas = toolchain.require_tool("ptxas")
    if arch not in ("sm_80", "sm_90"):
        source.write_text(source.read_text().replace("8.0", "9.0"))
    done = subprocess.run(
        [ptxas.path, f"-arch={arch}", source, "-o", cubin], capture_output=True, text=True, check=False
    )
    if done.returncode:
        assert "is not defined for option" in done.stderr, done.stderr  # anything else is the test's mistake
        pytest.skip(f"ptxas {ptxas.version} does not compile for {arch}: {done.stderr}")
    answer = inspect({"cubin": str(cubin), "arch": arch})
    code = CandidateCode(
        tmp_path,
        arch,
        {},
        tuple(map(tuple, answer["sections"])),
        tuple(map(tuple, answer["symbols"])),
        "",
        "",
        tuple(map(tuple, answer["relocations"])),
        frozenset(slot for row in answer["functions"].values() for slot in row["pointers"]),
        *(
            tuple(text for row in answer["data_writes"].values() for text in row[kind])
            for kind in ("sure", "possible")
        ),
    )
    if doubts:
        return list(binary_doubts(code))
    return list(scan_binary(code))


@needs_sass
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("data", [LEFT_BEHIND, LAUNCH_DATA, LEFT_BEHIND + LAUNCH_DATA])
def test_data_that_no_instruction_can_reach_is_nothing(tmp_path: Path, arch: str, data: str) -> None:
    assert scan(tmp_path, arch, data + KERNEL.format(body="")) == []


@needs_sass
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("data", "body"),
    [
        (".global .u32 calls;\n", "mov.u64 %p2, calls; " + COUNTS.format("%p2")),
        (LEFT_BEHIND, "st.global.u8 [_$_str+3], %v1;"),
        # beside data that nothing reaches
        (LEFT_BEHIND + ".global .u32 calls;\n", "mov.u64 %p2, calls; " + COUNTS.format("%p2")),
        (LAUNCH_DATA, "mov.u64 %p2, ___NV_TILE_LAUNCH_META_DATA___; " + COUNTS.format("%p2")),
        # through an address in a constant, and in another variable
        (
            ".global .u32 calls;\n.const .u64 at = calls;\n",
            "ld.const.u64 %p2, [at]; " + COUNTS.format("%p2"),
        ),
        (
            ".global .u32 calls;\n.global .u64 at = calls;\n",
            "ld.global.u64 %p2, [at]; " + COUNTS.format("%p2"),
        ),
    ],
)
def test_data_that_an_instruction_can_reach_is_state(tmp_path: Path, arch: str, data: str, body: str) -> None:
    findings = scan(tmp_path, arch, data + KERNEL.format(body=body))
    assert any("global memory of its own" in one for one in findings)


@pytest.mark.parametrize(
    ("opcodes", "findings"),
    [
        ({"NANOSLEEP.SYNCS": 2, "SYNCS.PHASECHK.TRANS64.TRYWAIT": 2}, 0),  # of any cuTile kernel with TMA
        ({"NANOSLEEP": 1, "BPT.TRAP": 1, "UTCATOMSWS.FIND_AND_SET.ALIGN": 1}, 0),  # of tcgen05.alloc
        ({"NANOSLEEP": 1, "SYNCS.PHASECHK.TRANS64.TRYWAIT": 2}, 1),
        ({"BPT.TRAP": 1}, 1),
        ({"BPT.INT": 1, "UTCATOMSWS.FIND_AND_SET.ALIGN": 1}, 1),
    ],
)
def test_what_compilers_make_of_waits_and_allocations_is_no_sleep(
    tmp_path: Path, opcodes: dict[str, int], findings: int
) -> None:
    usage = ResourceUsage("k", "sm_100a", 32, 0, 0, 0, 0, 0, "")
    kernel = Kernel("k", (), 128, usage, opcodes, ())
    code = CandidateCode(tmp_path, "sm_100a", {"k": kernel}, (), (), "")
    assert len(list(scan_binary(code))) == findings


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("LDC.64 R2, c[0x4][RZ]", [0]),
        ("IMAD.MOV.U32 R2, RZ, RZ, c[0x4][0x14]", [2]),
        ("LDCU.128 UR4, c[0x4][0x10]", [2, 3]),
        ("LDC.64 R2, c[0x4][R6]", [-1]),
        ("LDCU.64 UR4, c[0x4][UR6+0x8]", [-1]),
        ("LDC.64 R2, cx[UR4][R6+0x8]", [-1]),
        ("LDC R2, c[0x0][0x28]", []),
    ],
)
def test_the_slots_of_addresses_that_an_instruction_reads(text: str, slots: list[int]) -> None:
    assert _pointer_slots(text) == slots


def test_relocations_of_half_a_file_are_a_bad_build() -> None:
    header = bytearray(b"\x7fELF\x02" + bytes(59))
    struct.pack_into("<Q", header, 0x28, 64)
    struct.pack_into("<HHH", header, 0x3A, 64, 1, 0)
    relocations = struct.pack("<IIQQQQIIQQ", 0, 4, 0, 0, 0, 24, 0, 0, 0, 24)
    with pytest.raises(BuildFailed):
        read_relocations(bytes(header) + relocations)


TABLE = ".global .align 4 .u32 order[4] = {3, 1, 2, 0};\n"
IN_LOCAL = """
  .local .align 8 .b8 kept[16];
  .reg .u64 %q<3>;
  mov.u64 %q1, order; mov.u64 %q2, kept;
  and.b32 %v2, %v1, 8; cvt.u64.u32 %p2, %v2; add.u64 %p3, %q2, %p2;
  st.local.u64 [kept], %q1; st.local.u64 [%p3], %q2; ld.local.u64 %p4, [kept];
"""


@needs_sass
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("body", "findings"),
    [
        ("ld.global.u32 %v1, [order+4];", 0),
        ("mul.wide.u32 %p2, %v1, 4; mov.u64 %p3, order; add.u64 %p2, %p2, %p3; ld.global.u32 %v1, [%p2];", 0),
        # what was read there is no address of it
        (
            "ld.global.u32 %v2, [order]; cvt.u64.u32 %p2, %v2; add.u64 %p2, %p1, %p2; st.global.u8 [%p2], 1;",
            0,
        ),
        ("st.global.u32 [order+4], %v1;", 1),
        (
            "mul.wide.u32 %p2, %v1, 4; mov.u64 %p3, order; add.u64 %p2, %p2, %p3; "
            "red.global.add.u32 [%p2], 1;",
            1,
        ),
        ("mov.u64 %p2, order; cvta.global.u64 %p2, %p2; st.u32 [%p2], %v1;", 1),
        (
            "setp.gt.u32 %t, %v1, 5; mov.u64 %p2, order; selp.u64 %p2, %p2, %p1, %t; st.global.u32 [%p2], 1;",
            1,
        ),
    ],
)
def test_a_table_that_nothing_writes_is_a_constant(
    tmp_path: Path, arch: str, body: str, findings: int
) -> None:
    assert len(set(scan(tmp_path, arch, TABLE + KERNEL.format(body=".reg .pred %t; " + body)))) == findings


@needs_sass
def test_a_store_to_an_address_out_of_memory_that_holds_that_of_a_table_is_unknown(tmp_path: Path) -> None:
    for name, access, doubts in (("read", "ld.u32 %v1, [%p4];", 0), ("written", "st.u32 [%p4], 1;", 1)):
        folder = tmp_path / name  # a listing is kept beside its cubin
        folder.mkdir()
        module = TABLE + KERNEL.format(body=IN_LOCAL + access)
        assert scan(folder, "sm_90", module) == []
        assert len(scan(folder, "sm_90", module, doubts=True)) == doubts


@needs_sass
def test_large_tables_are_refused_wherever_they_lie(tmp_path: Path) -> None:
    module = ".global .align 4 .u32 order[1025] = {3};\n" + KERNEL.format(
        body="ld.global.u32 %v1, [order+4];"
    )
    (finding,) = scan(tmp_path, "sm_90", module)
    assert finding.startswith("4100 bytes of constant tables, of which 4096")
