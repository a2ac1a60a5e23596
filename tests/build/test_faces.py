"""Further forms of code that was once listed, named or counted wrongly: archives, programs, other kernels."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from profiler.build import opcode_counts
from profiler.build.code_images import architectures, code_file, read_images
from profiler.build.kernel_names import function_name
from profiler.build.library import parse_ptxas
from profiler.build.signatures import signatures
from profiler.build.toolchain import require_tool
from profiler.cli import main
from profiler.documents.code_files import AskedLaunch, examine_files
from profiler.errors import BuildFailed, Exit
from profiler.model.cubin import read_kernels
from profiler.model.cubin_run import choose_kernel
from profiler.sass.disassembly import disassemble
from profiler.store.find_files import find_files
from tests.build.test_code_images import _listed, _nvcc
from tests.toolchain import needs_nvcc, needs_sass

ROWS = """
extern __device__ float helper(float);
__device__ int counter;
__global__ void rows(float *x) { x[threadIdx.x] = helper(x[threadIdx.x]); }
__global__ void nothing() { counter = 1; }
"""
COLUMNS = """
__device__ __noinline__ float helper(float v) { return v * 3; }
template <int N> __global__ void columns(float *x) { x[threadIdx.x] *= N; }
template __global__ void columns<2>(float *);
template __global__ void columns<3>(float *);
int main() { return 0; }
"""
KERNELS = {"rows", "nothing", "columns<2>", "columns<3>"}


def objects(folder: Path, *options: str) -> list[str]:
    """Two objects; without separate compilation each has all that it calls."""
    rows = ROWS if options else ROWS.replace("extern __device__ float helper(float);", "#define helper fabsf")
    for name, text in (("rows", rows), ("columns", COLUMNS)):
        _nvcc(folder, f"{name}.o", "-arch=sm_90", *options, "-c", **{name: text})
    return ["rows.o", "columns.o"]


def kernels_of(path: Path) -> list[str]:
    return sorted(row.name for row in examine_files([path]).functions if row.is_kernel)


@needs_sass
def test_a_program_of_separate_compilation_has_each_function_once(tmp_path: Path) -> None:
    """nvlink's image stands beside the relocatable ones that it was made of, which no launch finds."""
    program = _nvcc(tmp_path, "program", "-arch=sm_90", "-rdc=true", *objects(tmp_path, "-rdc=true"))
    found = Counter(
        (kernel.name, kernel.registers, kernel.stack_bytes)
        for image in read_images(program)
        for kernel in image.kernels
    )
    assert found == {row: count for row, count in _listed(program).items() if "helper" not in row[0]}
    assert kernels_of(program) == sorted(KERNELS)


@needs_sass
@pytest.mark.parametrize("options", [(), ("-rdc=true",)])
def test_an_archive_has_the_kernels_of_its_objects(tmp_path: Path, options: tuple[str, ...]) -> None:
    archive = _nvcc(tmp_path, "kernels.a", "-lib", *objects(tmp_path, *options))
    assert architectures(archive) == ("sm_90",)
    assert kernels_of(archive) == sorted(KERNELS)
    assert find_files([archive]).code == [archive]
    content = archive.read_bytes()
    for damaged in (content[:-200], content.replace(b"`\n", b"x\n").replace(content[56:66], b"         x")):
        cut = tmp_path / "cut.a"
        cut.write_bytes(damaged)
        with pytest.raises(BuildFailed, match="a member of the archive"):
            list(read_images(cut))


@needs_nvcc
def test_a_program_that_was_linked_without_an_architecture_is_named_without_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """nvcc's stub is for another GPU; the name of the file has no suffix that says what it is."""
    _nvcc(tmp_path, "app", *objects(tmp_path))
    assert {image.arch for image in read_images(tmp_path / "app")} > {"sm_90"}
    monkeypatch.chdir(tmp_path)
    assert main(["static", "app", "--arch", "sm_90", "--json"]) == Exit.PASS
    names = {row["name"] for row in json.loads(capsys.readouterr().out)["functions"] if row["is_kernel"]}
    assert names == KERNELS


NAMES = """
#include <cuda_fp16.h>
template <class T> struct Pair { T a, b; };
enum class Kind : int { A, B };
struct Outer { struct Inner { int v; }; };
namespace { struct Local { int v[3]; }; }
namespace n { template <class T, Kind K> __global__ void mix(Pair<T> p, T *out) { out[0] = p.a + p.b; }
template __global__ void mix<float, Kind::B>(Pair<float>, float *); }
__global__ void nested(Outer::Inner i, int *o) { o[0] = i.v; }
__global__ void hidden(Local l, int *o) { o[0] = l.v[1]; }
extern "C" __global__ void plain(Pair<int2> p, int *o) { o[0] = p.a.x; }
template <class... T> __global__ void pack(int *o, T... values) { o[0] = sizeof...(values); }
template __global__ void pack<Pair<int>, __half>(int *, Pair<int>, __half);
"""


@needs_nvcc
def test_a_kernel_keeps_its_name_whatever_types_it_takes(tmp_path: Path) -> None:
    cubin = _nvcc(tmp_path, "names.cubin", "-arch=sm_90", "-cubin", names=NAMES)
    (image,) = read_images(cubin)
    assert sorted(function_name(one.name) for one in image.kernels) == sorted(
        ["mix", "nested", "hidden", "plain", "pack"]
    )


@needs_sass
def test_kernels_without_parameters_alone_for_two_architectures(tmp_path: Path) -> None:
    source = "__device__ int x; __global__ void set() { x = 1; } __global__ void add() { x += 2; }\n"
    targets = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in (80, 100)]
    path = _nvcc(tmp_path, "none.fatbin", *targets, "-fatbin", none=source)
    document = examine_files([path])
    assert Counter((row.name, row.arch) for row in document.functions) == {
        (name, arch): 1 for name in ("set", "add") for arch in ("sm_80", "sm_100")
    }
    assert document.exit_code is Exit.PASS


@needs_nvcc
def test_many_small_parameters_are_as_many_as_one_large_one(tmp_path: Path) -> None:
    """600 pointers are 4,800 bytes, and a structure may have 32,764."""
    many = ", ".join(f"float *p{number}" for number in range(600))
    source = f"__global__ void many({many}) {{ p0[0] = *p599; }}\n" + (
        "struct Most { int a[8191]; };\n"
        '__global__ void most(const __grid_constant__ Most m) { if (m.a[8190]) asm volatile("trap;"); }\n'
    )
    kernels = read_kernels(_nvcc(tmp_path, "many.cubin", "-arch=sm_120", "-cubin", many=source))
    found = {function_name(name): kernel.parameters for name, kernel in kernels.items()}
    assert [(one.offset, one.size) for one in found["many"]] == [(8 * n, 8) for n in range(600)]
    assert [(one.offset, one.size) for one in found["most"]] == [(0, 32_764)]


ATOMICS = """
#include <cuda_fp16.h>
extern "C" __global__ void bits(unsigned *x, unsigned v) { atomicMax(x + 1, v); atomicOr(x + 2, v); }
extern "C" __global__ void halves(__half2 *x, __half2 v) { atomicAdd(x + threadIdx.x, v); }
extern "C" __global__ void wanted(int *x, int *y) { y[threadIdx.x] = atomicExch(x + threadIdx.x, 7); }
extern "C" __global__ void doubles(double *x, double v) { atomicAdd(x + threadIdx.x, v); }
extern "C" __global__ void none(int *x) { __shared__ int s[32]; atomicAdd(s + threadIdx.x, 1);
  __syncthreads(); x[threadIdx.x] = s[31 - threadIdx.x]; }
"""


@needs_sass
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_every_atomic_on_global_memory_is_counted_as_one(tmp_path: Path, arch: str) -> None:
    cubin = _nvcc(tmp_path, "atomics.cubin", f"-arch={arch}", "-cubin", atomics=ATOMICS)
    code = opcode_counts.summarize_code(opcode_counts.dump_sass(cubin, arch), arch)
    found = {one.function: one.classes["RED"] for one in code}
    assert found == {"bits": 2, "halves": 1, "wanted": 1, "doubles": 1, "none": 0}


def heavy(name: str, inside: str = "") -> str:
    return f"""
__device__ __noinline__ float {name}(const float *x, int n) {{
  float r[200], s = 0;
  _Pragma("unroll") for (int i = 0; i < 200; i++) r[i] = x[i * n];
  _Pragma("unroll") for (int i = 0; i < 200; i++) s += r[i] * r[199 - i] * x[i + n];
  _Pragma("unroll") for (int i = 0; i < 200; i++) s *= r[i];
  return s {inside};
}}
"""


CALLERS = (
    heavy("inner")
    + heavy("outer", "+ inner(x + 1, n)")
    + """
__global__ void __launch_bounds__(1024) once(float *x, int n) { x[threadIdx.x] = inner(x, n); }
__global__ void __launch_bounds__(1024) again(float *x, int n) { x[threadIdx.x] = inner(x + 5, n) + 1; }
__global__ void __launch_bounds__(1024) both(float *x, int n) { x[threadIdx.x] = outer(x, n); }
__global__ void __launch_bounds__(1024) light(float *x) { x[0] = 1; }
"""
)


@needs_nvcc
def test_spills_of_called_functions_count_for_each_kernel_that_calls_them(tmp_path: Path) -> None:
    """One callee of two kernels, and one that is called by another: each spills by itself."""
    (tmp_path / "callers.cu").write_text(CALLERS)
    command = [str(require_tool("nvcc").path), "-arch=sm_90", "-cubin", "-Xptxas=-v", "callers.cu"]
    log = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    spills = {}
    for block in log.split("Compiling entry function")[1:]:  # ptxas compiles what is called anew for each
        numbers = re.findall(r"(\d+) bytes spill (?:stores|loads)", block)
        spills[block.split("'")[1]] = len(numbers) // 2, sum(map(int, numbers))
    assert {function_name(name): count for name, (count, _) in spills.items()} == {
        "light": 1,
        "once": 2,
        "again": 2,
        "both": 3,
    }
    found = {usage.function: usage.spill_bytes for usage in parse_ptxas(log)}
    assert found == {name: total for name, (_, total) in spills.items()}
    assert sorted(total > 6000 for total in found.values()) == [False, True, True, True]


@needs_sass
@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_spills_into_shared_memory_beside_an_array_of_the_kernels_own(tmp_path: Path, arch: str) -> None:
    body = heavy("unused").partition("{")[2].rpartition("return")[0]
    source = f"""
__global__ void __launch_bounds__(1024) spills(float *x, int n) {{
  asm volatile(".pragma \\"enable_smem_spilling\\";");
  __shared__ float own[256];
  own[threadIdx.x % 256] = n;
  __syncthreads();
  {body}
  x[threadIdx.x] = s + own[255 - threadIdx.x % 256];
}}
"""
    (row,) = examine_files([_nvcc(tmp_path, "s.cubin", f"-arch={arch}", "-cubin", s=source)]).functions
    assert row.shared_spill_bytes > 0
    assert row.static_shared_bytes == row.shared_spill_bytes + 1024


WIDE = """
struct alignas(32) Four { double x[4]; };
extern "C" __global__ void stores(Four *out, double v) { out[threadIdx.x] = Four{{v, v, v, v}}; }
extern "C" __global__ void copies(const Four *__restrict__ in, Four *out) {
  out[threadIdx.x] = in[threadIdx.x + 1];
}
"""


@needs_sass
@pytest.mark.parametrize("arch", ["sm_100", "sm_120"])
def test_accesses_of_four_doubles_are_the_widest(tmp_path: Path, arch: str) -> None:
    cubin = _nvcc(tmp_path, "wide.cubin", f"-arch={arch}", "-cubin", wide=WIDE)
    code = opcode_counts.summarize_code(opcode_counts.dump_sass(cubin, arch), arch)
    widths = ("LDG.256", "STG.256", "LDG.128", "STG.128")
    found = {one.function: [one.classes.get(name, 0) for name in widths] for one in code}
    assert found == {"stores": [0, 1, 0, 0], "copies": [1, 1, 0, 0]}


@needs_sass
def test_a_cache_that_keeps_ptx_alone_is_listed_and_disassembled(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "HASH"
    folder.mkdir(parents=True)
    source = "__global__ void rows(float *x) { x[threadIdx.x] *= 2; }\n"
    ptx = _nvcc(folder, "rows.ptx", "-arch=compute_90", "-ptx", rows=source)
    (folder / "rows.json").write_text(json.dumps({"shared": 2048, "num_warps": 4}))
    (row,) = examine_files([tmp_path / "cache"]).functions
    assert (row.name, row.shared_bytes, row.threads) == ("rows", 2048, 128)
    assert code_file(folder) == ptx
    assert [*disassemble(ptx).functions] == ["_Z4rowsPf"]


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ("attend", "attend"),
        ("attend_causal", "attend_causal"),
        ("causal", "attend_causal"),
        ("copy<float>", "_ZN1a4copyIfEEvPT_"),
        ("a::copy< double >", "_ZN1a4copyIdEEvPT_"),
        ("b::rows", "_ZN1b4rowsEPf"),
    ],
)
def test_a_kernel_whose_name_begins_anothers_is_chosen_by_it(asked: str, chosen: str) -> None:
    if (":" in asked or "<" in asked) and not signatures(["_ZN1b4rowsEPf"]):
        pytest.skip("no demangler that works here")
    names = ["attend", "attend_causal", *(f"_ZN1a4copyI{of}EEvPT_" for of in "fd")]
    names += [f"_ZN1{space}4rowsEPf" for space in "ab"]
    assert choose_kernel(names, asked, "file") == chosen


@needs_sass
@pytest.mark.parametrize(("arch", "kilobytes"), [("sm_87", 163), ("sm_88", 99), ("sm_120", 99)])
def test_a_block_of_an_embedded_or_small_gpu_has_what_an_sm_of_it_has(
    tmp_path: Path, arch: str, kilobytes: int
) -> None:
    """A kernel with 4 KB of its own: all that is left fits, a byte more fits no SM."""
    source = """
__global__ void __launch_bounds__(128) rows(float *x) {
  __shared__ float own[1024];
  own[threadIdx.x * 8] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = own[1016 - threadIdx.x * 8];
}
"""
    cubin = _nvcc(tmp_path, "rows.cubin", f"-arch={arch}", "-cubin", rows=source)
    left = (kilobytes - 4) << 10
    for shared, blocks, code in ((left, 1, Exit.PASS), (left + 1, 0, Exit.REGRESSION)):
        document = examine_files([cubin], asked=AskedLaunch(None, shared, None))
        (row,) = document.functions
        assert row.static_shared_bytes == 4096
        assert row.occupancy is not None
        assert (row.occupancy.blocks, document.exit_code) == (blocks, code)
