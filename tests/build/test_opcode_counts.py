"""Counting machine code: what the real disassembler prints, and what never executes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from profiler.build import opcode_counts, toolchain
from profiler.build.kernel_names import function_name, template_integer
from profiler.errors import BuildFailed, CannotJudge
from tests.toolchain import needs_sass

# Lines as cuobjdump 13.2 prints them for sm_90a.
LISTING = """\
		Function : _Z3v2dILi64EEvPK6__half
	.headerflags	@"EF_CUDA_ACCELERATORS EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                        /* 0x00000a00ff017b82 */
                                                                                 /* 0x000fe20000000800 */
        /*0010*/                   LDGSTS.E.BYPASS.128 [R11], desc[UR10][R4.64] ;  /* 0x0000000004087fae */
        /*0020*/              @!PT LDS RZ, [RZ] ;                                /* 0x00000000fffff984 */
        /*0030*/             @!UPT LDS RZ, [RZ] ;                                /* 0x00000000fffff984 */
        /*0040*/                   LDGDEPBAR ;                                   /* 0x00000000000079af */
        /*0050*/                   LDSM.16.MT88.4 R4, [R4] ;                     /* 0x000000000404783b */
        /*0060*/                   LDSM.16.M88.4 R8, [R5] ;                      /* 0x000000000508783b */
        /*0070*/               @P3 LDS.128 R8, [R5] ;                            /* 0x000000000508783b */
        /*0080*/              @!P0 LDG.E.128 R8, desc[UR4][R2.64] ;              /* 0x000000000508783b */
        /*0090*/                   LDG.E.U16 R8, desc[UR4][R2.64] ;              /* 0x000000000508783b */
        /*00a0*/                   HMMA.16816.F32 R12, R4, R8, R12 ;             /* 0x00000008040c723c */
        /*00b0*/                   HFMA2.MMA R7, -RZ, RZ, 0, 0 ;                 /* 0x00000000ff077435 */
        /*00c0*/                   MUFU.EX2 R3, R3 ;                             /* 0x0000000300037308 */
        /*00d0*/                   MUFU.RCP R3, R3 ;                             /* 0x0000000300037308 */
        /*00e0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;                 /* 0x0000000000007b1d */
        /*00f0*/                   WARPSYNC.ALL ;                                /* 0x0000000000007948 */
        /*0100*/              @!P1 BRA 0x10 ;                                    /* 0xfffffffc00fc7947 */
        /*0110*/                   EXIT ;                                        /* 0x000000000000794d */
        /*0120*/                   BRA 0x120;                                    /* 0xfffffffc00fc7947 */
        /*0130*/                   NOP;                                          /* 0x0000000000007918 */
		..........

		Function : plain
        /*0000*/                   EXIT ;                                        /* 0x000000000000794d */
"""

KERNELS = """\
#include <mma.h>
using namespace nvcuda;
namespace mine {
template <class T, int D> __global__ void reduce(T* x) {
  T v = x[threadIdx.x];
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  __shared__ T s[D];
  s[threadIdx.x] = v;
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x ^ 33];
}
template __global__ void reduce<float, 128>(float*);
}
extern "C" __global__ void product(const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> A;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> B;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> C;
  wmma::fill_fragment(C, 0.f);
  wmma::load_matrix_sync(A, a, 16);
  wmma::load_matrix_sync(B, b, 16);
  wmma::mma_sync(C, A, B, C);
  wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major);
}
__global__ void indexed(const int* at, float* x) {
  float kept[64];
#pragma unroll 1
  for (int i = 0; i < 64; ++i) kept[at[i]] = x[i];
  x[threadIdx.x] = kept[at[threadIdx.x]];
}
"""

NEWER = """\
struct alignas(32) Eight { float x[8]; };
extern "C" __global__ void sum(float* x, float v) { atomicAdd(x + threadIdx.x, v); }
extern "C" __global__ void wide(const Eight* a, const Eight* b, const Eight* c, Eight* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Eight x = a[i], y = b[i], z = c[i];
  for (int k = 0; k < 8; ++k) x.x[k] = x.x[k] * y.x[k] + z.x[k];
  out[i] = x;
}
"""


def test_opcodes_are_counted_by_class() -> None:
    code, plain = opcode_counts.summarize_code(LISTING, "sm_90a")
    found = {name: count for name, count in code.classes.items() if count}
    assert found == {
        "HMMA": 1,
        "HFMA2": 1,
        "MUFU": 2,
        "MUFU.EX2": 1,
        "LDSM": 2,
        "LDSM.T": 1,
        "LDS": 1,
        "LDG": 2,
        "LDG.128": 1,
        "LDGSTS": 1,
        "BAR": 1,
        "WARPSYNC": 1,
        "DEPBAR": 1,
    }
    assert (plain.function, plain.instructions, plain.code_bytes, plain.opcodes) == (
        "plain",
        1,
        16,
        {"EXIT": 1},
    )


def sites(*opcodes: str) -> dict[str, int]:
    """The classes with their counts of a listing of such instructions."""
    lines = [
        f"        /*{16 * place:04x}*/                   {one} R0, R2 ;" for place, one in enumerate(opcodes)
    ]
    [code] = opcode_counts.summarize_code("\n".join(["\t\tFunction : k", *lines]), "sm_100a")
    return {name: count for name, count in code.classes.items() if count}


def test_atomics_on_global_memory_are_one_class_on_all_architectures() -> None:
    assert sites("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", "ATOMG.E.ADD.STRONG.GPU") == {"RED": 2}
    assert sites("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", "ATOM.E.ADD.BF16x2.RN.STRONG.GPU") == {"RED": 2}
    assert sites("REDUX.SUM.S32", "CREDUX.MAX.S32", "ATOMS.CAST.SPIN") == {
        "REDUX": 1,
        "CREDUX": 1,
        "ATOMS": 1,
    }


def test_the_width_of_an_access_is_that_of_a_lane_and_no_hint_for_the_cache() -> None:
    assert sites("LDG.E.ENL2.256", "LDG.E.ENL2.256.CONSTANT", "LDG.E.128.CONSTANT", "LDG.E.64") == {
        "LDG": 4,
        "LDG.128": 1,
        "LDG.256": 2,
    }
    assert sites("STG.E.ENL2.256", "STG.E.EF.128") == {"STG": 2, "STG.128": 1, "STG.256": 1}
    assert sites("LDG.E.LTC128B", "LDG.E.LTC256B.64", "LDG.E.LTC128B.128") == {"LDG": 3, "LDG.128": 1}
    assert sites("LDGSTS.E.BYPASS.LTC128B.128") == {"LDGSTS": 1}


BLACKWELL = "FFMA2 FADD2 FMUL2 FMNMX3 LDCU CREDUX UTMASTG UBLKCP LDTM STTM UTCBAR UTCHMMA UTCQMMA QMMA OMMA"


@pytest.mark.parametrize("opcode", BLACKWELL.split())
def test_blackwells_opcodes_are_counted_under_their_names(opcode: str) -> None:
    assert sites(opcode) == sites(f"{opcode}.A.B") == {opcode: 1}


def test_equal_machine_code_has_one_hash_and_other_code_another() -> None:
    first, plain = (code.sha256 for code in opcode_counts.summarize_code(LISTING, "sm_90a"))
    assert first != plain
    for old, new in (("_Z3v2d", "_Z4v2dd"), ("EF_CUDA_SM90", "EF_CUDA_SM91"), (" ;   ", " ;      ")):
        same = opcode_counts.summarize_code(LISTING.replace(old, new), "sm_90a")[0]
        assert same.sha256 == first, "names, headers and columns are no machine code"
    for old, new in (("0x000fe20000000800", "0x000fe20000000900"), ("LDSM.16.M88.4 R8", "LDSM.16.M88.4 R9")):
        other = opcode_counts.summarize_code(LISTING.replace(old, new), "sm_90a")[0]
        assert other.sha256 != first


def test_what_never_executes_is_left_out_but_takes_its_bytes() -> None:
    code = opcode_counts.summarize_code(LISTING, "sm_90a")[0]
    assert code.code_bytes == 20 * 16
    assert code.instructions == 16, "two predicated off, the jump to itself and the NOP do not count"
    assert code.opcodes["BRA"] == 1
    assert "NOP" not in code.opcodes
    assert code.opcodes["MUFU"] == 2, "without modifiers"


def test_equal_machine_code_has_an_equal_hash_whatever_it_is_called() -> None:
    code, plain = opcode_counts.summarize_code(LISTING, "sm_90a")
    again = opcode_counts.summarize_code(LISTING.replace("plain", "renamed").replace("\t", "  "), "sm_90a")
    assert [one.sha256 for one in again] == [code.sha256, plain.sha256]
    changed = opcode_counts.summarize_code(LISTING.replace("EXIT", "RET", 1), "sm_90a")[0]
    assert changed.sha256 != code.sha256 != plain.sha256


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("static")
    (folder / "k.cu").write_text(KERNELS)
    nvcc = toolchain.require_tool("nvcc")
    command = [nvcc.path, "-cubin", "-arch=sm_80", "-O3", "-o", folder / "k.cubin", folder / "k.cu"]
    subprocess.run(command, check=True)
    return folder / "k.cubin"


@needs_sass
def test_real_code_has_what_its_source_has(library: Path) -> None:
    found = {
        function_name(one.function): one
        for one in opcode_counts.summarize_code(opcode_counts.dump_sass(library, "sm_80"), "sm_80")
    }
    reduce, product, indexed = found["reduce"].classes, found["product"].classes, found["indexed"].classes
    assert template_integer(found["reduce"].function) == 128
    assert (reduce["SHFL"], reduce["BAR"], reduce["STS"], reduce["LDS"]) == (5, 1, 1, 1)
    assert (reduce["HMMA"], reduce["LDL"], reduce["STL"]) == (0, 0, 0)
    assert product["HMMA"] == 2, "a 16x16x16 product is two m16n8k16"
    assert indexed["STL"] > 0 < indexed["LDL"], "an array indexed at run time lives in local memory"


@needs_sass
def test_a_listing_is_made_once(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opcode_counts.dump_sass(library, "sm_80")
    monkeypatch.setattr(opcode_counts, "require_tool", lambda name: pytest.fail(f"{name} was run again"))
    assert opcode_counts.dump_sass(library, "sm_80") == first


@needs_sass
def test_a_damaged_listing_is_made_again(library: Path) -> None:
    first = opcode_counts.dump_sass(library, "sm_80")
    kept = library.with_name("sm_80.sass.gz")
    kept.write_bytes(kept.read_bytes()[:100])
    assert opcode_counts.dump_sass(library, "sm_80") == first


@needs_sass
def test_code_for_another_architecture_is_not_there(library: Path) -> None:
    with pytest.raises(BuildFailed, match="no sm_90a machine code in"):
        opcode_counts.dump_sass(library, "sm_90a")


def test_no_disassembler_cannot_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_tool", lambda _name: None)
    with pytest.raises(CannotJudge, match="cuobjdump is neither in"):
        opcode_counts.dump_sass(tmp_path / "kernel.so", "sm_80")


@needs_sass
@pytest.mark.parametrize("arch", ["sm_90", "sm_100", "sm_121"])
def test_real_code_of_newer_gpus_has_what_its_source_has(tmp_path: Path, arch: str) -> None:
    (tmp_path / "k.cu").write_text(NEWER)
    nvcc = toolchain.require_tool("nvcc")
    library = tmp_path / "k.cubin"
    done = subprocess.run([nvcc.path, "-cubin", f"-arch={arch}", "-o", library, tmp_path / "k.cu"])
    if done.returncode:
        pytest.skip(f"nvcc {nvcc.version} does not compile for {arch}")
    found = {
        one.function: one.classes
        for one in opcode_counts.summarize_code(opcode_counts.dump_sass(library, arch), arch)
    }
    assert found["sum"]["RED"] == 1
    wide, narrow = ("LDG.128", "LDG.256") if arch == "sm_90" else ("LDG.256", "LDG.128")
    lanes = 6 if arch == "sm_90" else 3
    assert (found["wide"][wide], found["wide"][narrow], found["wide"]["LDG"]) == (lanes, 0, lanes)
