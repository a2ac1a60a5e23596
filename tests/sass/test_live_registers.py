"""Live registers: what instructions read and write, data flow by hand, and beside nvdisasm's own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from profiler.build import toolchain
from profiler.build.library import BuiltLibrary, build
from profiler.catalog.catalog import load_catalog
from profiler.evidence.gpu_arch import find_architecture
from profiler.sass.disassembly import disassemble, extract_cubin
from profiler.sass.listing import FunctionCode, make_listing
from profiler.sass.live_registers import LiveRegisters, count_live_registers
from profiler.sass.register_operands import NEVER, guard_condition, opposite, register_use
from tests.toolchain import needs_sass


def numbers(bits: int) -> list[int]:
    return [number for number in range(255) if bits >> number & 1]


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("FFMA R4, R2, -R3.reuse, |R9|", [2, 3, 9], [4]),
        ("STG.E.128 desc[UR4][R2.64+0x10], R8", [2, 3, 8, 9, 10, 11], []),
        ("LDG.E.64.CONSTANT R6, [R2.64]", [2, 3], [6, 7]),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R9+0x800], desc[UR18][R2.64], !P2", [2, 3, 9], []),
        ("LDS.U.128 R12, [R1.X16+UR4]", [1], [12, 13, 14, 15]),
        ("LDSM.16.MT88.4 R16, [R7+UR5]", [7], [16, 17, 18, 19]),
        ("HMMA.16816.F32 R24, R4, R16, R24", [*range(4, 8), 16, 17, *range(24, 28)], [24, 25, 26, 27]),
        ("HMMA.1688.F32 R24, R4, R16, RZ", [4, 5, 16], [24, 25, 26, 27]),
        ("HMMA.16816.F16 R24, R4, R16, RZ", [*range(4, 8), 16, 17], [24, 25]),
        ("HGMMA.64x64x16.F32 R24, gdesc[UR4], R24, gsb0", [*range(24, 56)], [*range(24, 56)]),
        ("HGMMA.64x32x16.F32 R24, R4, gdesc[UR4], RZ, !UPT", [4, 5, 6, 7], [*range(24, 40)]),
        ("IMAD.WIDE.U32 R2, R4, R5, R6", [4, 5, 6, 7], [2, 3]),
        ("IADD3 R0, P0, P1, R1, R2, RZ", [1, 2], [0]),
        ("ISETP.GE.AND P0, PT, R3, R4, PT", [3, 4], []),
        ("SHFL.BFLY PT, R2, R3, 0x1, 0x1f", [3], [2]),
        ("DFMA R2, R4, R6, R8", [4, 5, 6, 7, 8, 9], [2, 3]),
        ("F2F.F64.F32 R2, R4", [4], [2, 3]),
        ("I2F.U64.RP R4, R2", [2, 3], [4]),
        ("F2I.U64.TRUNC R4, R2", [2], [4, 5]),
        ("CS2R R86, SRZ", [], [86, 87]),
        ("R2UR UR4, R5", [5], []),
        ("RET.REL.NODEC R10 0x0", [10, 11], []),
        ("ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU PT, R3, desc[UR4][R6.64], R9", [6, 7, 9], [3]),
        ("@!PT LDS RZ, [R4]", [], []),
        # The sum of a 64-bit product is a pair, be the factor before it a number, uniform or a register.
        ("IMAD.WIDE R4, R13, 0x8, R4", [4, 5, 13], [4, 5]),
        ("IMAD.WIDE.U32 R2, P0, R15, UR4, R6", [6, 7, 15], [2, 3]),
        # 256 bits are two groups of four registers, each with a name.
        ("LDG.E.ENL2.256 R12, R4, desc[UR4][R2.64]", [2, 3], [*range(4, 8), *range(12, 16)]),
        ("LDG.E.ENL2.256.CONSTANT RZ, R8, desc[UR4][R2.64]", [2, 3], [*range(8, 12)]),
        ("STG.E.ENL2.256 desc[UR4][R2.64], R16, R20", [2, 3, *range(16, 24)], []),
        # Tensor memory: repetitions of a shape.
        ("LDTM.x32 R4, tmem[UR4]", [], [*range(4, 36)]),
        ("LDTM R0, tmem[UR4]", [], [0]),
        ("LDTM.16dp256bit R4, tmem[UR4]", [], [4, 5, 6, 7]),
        ("LDTM.16dp64bit.x2 R8, tmem[UR4]", [], [8, 9]),
        ("LDTM.x2.PACK16BIT R10, tmem[UR4]", [], [10, 11]),
        ("LDTM.16dp32bit_t0_t15.x2 R12, tmem[UR4]", [], [12, 13]),
        ("STTM.x16 tmem[UR4], R4", [*range(4, 20)], []),
        ("STTM.16dp128bit.x2 tmem[UR4+0x8], R8", [8, 9, 10, 11], []),
        ("IADD.64 R6, R8, 0x10", [8, 9], [6, 7]),
        ("FFMA2 R8, R2.F32x2.HI_LO, R6.F32x2.HI_LO, UR6.F32x2.HI_LO", [2, 3, 6, 7], [8, 9]),
        # What an atomic takes follows from its type.
        ("REDG.E.ADD.F64.RN.STRONG.GPU desc[UR6][R6.64], R12", [6, 7, 12, 13], []),
        ("REDG.E.ADD.F32x4.RN.STRONG.GPU desc[UR6][R6.64], R12", [6, 7, *range(12, 16)], []),
        ("ATOM.E.ADD.F16x2.RN.STRONG.GPU P0, R4, desc[UR6][R8.64], R3", [3, 8, 9], [4]),
        ("ATOMG.E.CAS.64.STRONG.GPU PT, R4, [R8], R10, R12", [8, 9, 10, 11, 12, 13], [4, 5]),
        ("ATOMS.CAST.SPIN P0, [R2], R4, R5", [2, 4, 5], []),
    ],
)
def test_an_instruction_reads_and_writes_these(text: str, reads: list[int], writes: list[int]) -> None:
    use = register_use(text)
    assert (numbers(use.reads), numbers(use.writes)) == (reads, writes)


def test_a_guard_and_the_predicates_that_are_written() -> None:
    guarded = register_use("@!P2 IADD3 R0, P0, R1, R2, RZ")
    assert (guarded.condition, guarded.predicate_writes) == (guard_condition("P2", True), 1)
    assert opposite(guarded.condition) == guard_condition("P2", False)
    assert register_use("@!UPT UMOV UR4, UR5").condition == NEVER
    assert register_use("R2P PR, R0, 0x7f").predicate_writes == 0x7F
    assert register_use("UISETP.NE.AND UP1, UPT, UR4, URZ, UPT").predicate_writes == 1 << 9


def live(*texts: str) -> LiveRegisters:
    code = tuple((16 * position, text) for position, text in enumerate(texts))
    (result,) = count_live_registers(make_listing([FunctionCode("k", code, (None,) * len(code))], "k"))
    return result


def test_what_is_read_later_is_live_up_to_there() -> None:
    counts = live("MOV R2, 0x1", "MOV R3, 0x2", "IADD3 R4, R2, R3, RZ", "STS [R4], R4", "EXIT").counts
    assert counts == (1, 2, 3, 1, 0), "the result is there beside what it is made of"


def test_one_register_under_two_predicates_that_are_written_together() -> None:
    result = live(
        "MOV R4, 0x1",
        "MOV R5, 0x2",
        "ISETP.GE.AND P0, P1, R5, 0x4, PT",
        "@P0 STS [R5], R4",
        "@P1 STS [R5+0x4], R4",
        "EXIT",
    )
    assert result.counts == (1, 2, 2, 2, 2, 0)


def test_a_loop_carries_its_values_around() -> None:
    result = live(
        "MOV R2, 0x1",  # 0x00
        "MOV R5, 0x9",
        "IADD3 R3, R2, 0x1, RZ",  # 0x20: R5 is read in the next turn
        "STS [R3], R5",
        "ISETP.NE.AND P0, PT, R3, RZ, PT",
        "@P0 BRA 0x20",
        "EXIT",
    )
    assert result.counts == (1, 2, 3, 3, 3, 2, 0)
    assert (result.highest, result.words) == (3, "3 live at +0x20")


def test_two_writes_under_a_predicate_and_its_opposite_are_a_whole_one() -> None:
    both = live("@P0 MOV R2, 0x1", "@!P0 MOV R2, 0x2", "STS [RZ], R2", "EXIT").counts
    assert both == (1, 1, 1, 0)
    only = live("MOV R3, 0x1", "@P0 MOV R2, 0x1", "STS [R3], R2", "EXIT").counts
    assert only[0] == 2, "lanes without the predicate keep what was in R2"
    same = live("MOV R3, 0x1", "@P0 MOV R2, 0x1", "@P0 STS [R3], R2", "EXIT").counts
    assert same == (1, 2, 2, 0), "nobody reads it without the predicate"
    changed = live(
        "MOV R3, 0x1", "@P0 MOV R2, 0x1", "ISETP.NE.AND P0, PT, R3, RZ, PT", "@P0 STS [R3], R2", "EXIT"
    )
    assert changed.counts[0] == 2, "the predicate is another one by then"


def test_a_call_keeps_what_the_caller_needs_and_a_foreign_one_is_counted() -> None:
    result = live(
        "MOV R2, 0x1",  # 0x00
        "MOV R8, 0x7",
        "MOV R20, 0x50",
        "MOV R21, 0x0",
        "CALL.REL.NOINC 0x70",  # 0x40
        "STS [R8], R2",
        "EXIT",
        "IADD3 R2, R2, 0x1, RZ",  # 0x70
        "RET.REL.NODEC R20 0x0",
    )
    assert result.counts == (1, 2, 3, 4, 4, 2, 0, 4, 4), "R8 stays through the function that is called"
    assert result.unknown_calls == 0
    assert live("CALL.ABS.NOINC R2", "EXIT").unknown_calls == 1


def test_a_call_into_the_loop_that_it_is_in_ends() -> None:
    """ptxas makes such code: the slow path of a loop is entered by a call under a predicate, and left so."""
    result = live(
        "MOV R2, 0x1",  # 0x00
        "MOV R3, 0x2",
        "IADD3 R2, R2, R3, RZ",  # 0x20
        "ISETP.NE.AND P0, PT, R2, RZ, PT",
        "MOV R20, 0x70",
        "MOV R21, 0x0",
        "@P0 CALL.REL.NOINC 0x20",  # 0x60
        "STS [R3], R2",
        "EXIT",
    )
    assert result.counts == (1, 2, 2, 2, 3, 3, 2, 2, 0), "nothing reads R20 and R21"
    assert result.unknown_calls == 0


def test_functions_that_call_each_other_keep_what_the_other_needs() -> None:
    result = live(
        "MOV R9, 0x1",  # 0x00: which only the second function reads
        "CALL.REL.NOINC 0x30",
        "EXIT",
        "@P0 CALL.REL.NOINC 0x50",  # 0x30
        "RET.REL.NODEC R20 0x0",
        "STS [R9], R9",  # 0x50
        "@P1 CALL.REL.NOINC 0x30",
        "RET.REL.NODEC R20 0x0",
    )
    assert result.counts == (3, 3, 0, 3, 2, 3, 3, 2), "R9, and R20 with R21 to return"


def test_the_most_of_each_source_line() -> None:
    code = ((0, "MOV R2, 0x1"), (16, "IADD3 R3, R2, 0x1, RZ"), (32, "STS [R3], R2"), (48, "EXIT"))
    sources = (("a.cu", 4), ("a.cu", 5), ("a.cu", 4), None)
    (result,) = count_live_registers(make_listing([FunctionCode("k", code, sources)], "k"))
    assert dict(result.by_line) == {("a.cu", 4): 2, ("a.cu", 5): 2}
    assert (result.highest_line, result.words) == (("a.cu", 5), "2 live at a.cu:5")


def nvdisasm_counts(cubin: Path) -> dict[str, dict[int, int]]:
    """Live general registers by function and offset, as nvdisasm prints them."""
    tool = toolchain.require_tool("nvdisasm").path
    command = [str(tool), "--print-code", "--print-life-ranges", "--life-range-mode", "count", str(cubin)]
    counts: dict[str, dict[int, int]] = {}
    function: dict[int, int] = {}
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Invalid register count" in done.stderr:
        pytest.skip(f"nvdisasm takes no kernel with all registers: {done.stderr.strip()}")
    done.check_returncode()
    for line in done.stdout.splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line):
            function = counts.setdefault(section[1], {})
        elif row := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s.*//\s*\|\s*(\d*)", line):
            function[int(row[1], 16)] = int(row[2] or 0)
    return counts


def compare_with_tools(version: str, arch: str, tmp_path: Path) -> None:
    """nvdisasm counts a guarded write as none, and forgets across a call what is needed behind it.

    On sm_80 and sm_89 loops are left by `@P0 CALL.REL.NOINC`: it forgets the rounds that follow.

    ptxas' number of registers is the highest that is named, and on sm_90 two more: the rest of the difference
    are holes that groups of two and four registers leave, and registers that the budget has to spare. Where
    warpgroups share registers by setmaxnreg it is what the launch gives each, and code names as many as its
    warpgroup then holds.
    """
    catalog = load_catalog()
    (entry,) = catalog.pick([version])
    (built,) = build(catalog, [entry], [arch])
    assert isinstance(built, BuiltLibrary)
    cubin = extract_cubin(built.library, arch, tmp_path)
    listing = disassemble(cubin)
    allocated = {usage.function: usage.registers for usage in built.resources if usage.arch == arch}
    counts = nvdisasm_counts(cubin)
    for function in count_live_registers(listing):
        theirs = counts[function.function]
        rows = listing.lines[function.first : function.first + len(function.counts)]
        difference = function.highest - max(theirs.values())
        assert difference >= -1, function.words
        if not any(row.opcode.startswith("CALL") for row in rows):
            assert difference <= 1, function.words
        assert function.unknown_calls == 0
        named = max(
            (
                register_use(listing.lines[function.first + position].text or "").reads
                | register_use(listing.lines[function.first + position].text or "").writes
            ).bit_length()
            for position in range(len(function.counts))
        )
        assert function.highest <= named
        if entry.warpgroup_registers:
            assert named <= max(entry.warpgroup_registers)
        else:
            assert named <= allocated[function.function] <= named + 2
            assert allocated[function.function] - function.highest <= 24


@needs_sass
def test_a_version_agrees_with_nvdisasm_and_with_ptxas(tmp_path: Path) -> None:
    compare_with_tools("v2d_a", "sm_90a", tmp_path)


EDGES = """\
struct alignas(32) Eight { float x[8]; };
__global__ void wide(const Eight* a, const Eight* b, const Eight* c, Eight* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Eight x = a[i], y = b[i], z = c[i];
  for (int k = 0; k < 8; ++k) x.x[k] = x.x[k] * y.x[k] + z.x[k];
  out[i] = x;
}
__global__ void atomics(float* p, double* d, int* q, unsigned long long* u, float v) {
  int i = threadIdx.x;
  atomicAdd(p + i, v);
  atomicAdd(d + i, double(v) * 3);
  q[i + 1] = atomicAdd(q + i, 1);
  u[i + 1] = atomicCAS(u + i, u[i + 2], u[i + 3]);
}
__global__ void longs(unsigned long long* a, const unsigned long long* b, unsigned long long c) {
  int i = threadIdx.x;
  unsigned long long x = b[i], y = b[i + 32];
#pragma unroll 1
  for (unsigned long long k = x; k < c; k += y) a[k] = x += y * k;
  a[i] = x + y;
}
"""
TENSOR_MEMORY = """
__global__ void loads(unsigned at, unsigned* out, const unsigned* in) {
  unsigned a, b, c, d, e, f, g, h;
  asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at));
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(e), "=r"(f), "=r"(g), "=r"(h) : "r"(at));
  asm volatile("tcgen05.wait::ld.sync.aligned;");
  for (int i = 0; i < 8; ++i) out[i * 32 + threadIdx.x] = in[i] * (a ^ b ^ c ^ d) + (e ^ f ^ g ^ h);
}
__global__ void stores(unsigned at, const float* in) {
  float r[8];
  for (int i = 0; i < 8; ++i) r[i] = in[threadIdx.x + 33 * i] * 2;
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8};" ::"r"(at),
               "f"(r[0]), "f"(r[1]), "f"(r[2]), "f"(r[3]), "f"(r[4]), "f"(r[5]), "f"(r[6]), "f"(r[7]));
  asm volatile("tcgen05.st.sync.aligned.16x128b.x2.b32 [%0], {%1,%2,%3,%4};" ::"r"(at),
               "f"(r[0]), "f"(r[1]), "f"(r[2]), "f"(r[3]));
}
"""


# Of those before tensor memory, with it, and after it without one each.
NEWER = ["sm_90a", "sm_100a", "sm_120a"]
ALIKE = [pytest.param(arch, marks=pytest.mark.long) for arch in ("sm_103a", "sm_110a", "sm_121a")]


@needs_sass
@pytest.mark.parametrize("arch", [*NEWER, *ALIKE])
def test_operands_of_newer_gpus_are_counted_as_nvdisasm_counts_them(arch: str, tmp_path: Path) -> None:
    architecture = find_architecture(arch)
    assert architecture is not None
    source, cubin = tmp_path / "k.cu", tmp_path / "k.cubin"
    source.write_text(EDGES + (TENSOR_MEMORY if architecture.tensor_columns else ""))
    nvcc = toolchain.require_tool("nvcc")
    done = subprocess.run([nvcc.path, "-cubin", f"-arch={arch}", "-o", cubin, source], capture_output=True)
    if done.returncode:
        pytest.skip(f"nvcc {nvcc.version} does not compile for {arch}")
    theirs = nvdisasm_counts(cubin)
    found = {function.function: function.highest for function in count_live_registers(disassemble(cubin))}
    assert found == {name: max(theirs[name].values()) for name in found}
    assert len(found) == (5 if architecture.tensor_columns else 3)


@needs_sass
@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "arch"),
    [
        (version.id, arch)
        for version in load_catalog().versions
        if version.state == "good"
        for arch in ("sm_80", "sm_89", "sm_90a")
        if arch in version.arches
    ],
)
def test_the_lineage_agrees_with_nvdisasm_and_with_ptxas(version: str, arch: str, tmp_path: Path) -> None:
    compare_with_tools(version, arch, tmp_path)
