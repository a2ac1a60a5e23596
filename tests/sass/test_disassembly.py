"""Machine code of binaries: two builds of one source, source lines, architectures, what is no binary."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from profiler.build import library, toolchain
from profiler.catalog import catalog
from profiler.cli import main
from profiler.errors import BuildFailed, Exit
from profiler.sass import alignment
from profiler.sass.disassembly import cubin_functions, disassemble, parse_line_info, parse_sass
from tests.toolchain import needs_sass

# A call of a subroutine, which is told where to return to, and a namespace whose name the path goes into.
KERNELS = """\
namespace {
__device__ __noinline__ float far(float x, int n) { for (int i = 0; i < n; ++i) x = x / (x + i); return x; }
__global__ void hidden(float* x, int n) { x[threadIdx.x] = far(x[threadIdx.x], n); }
}
extern "C" __global__ void plain(float* x, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int i = 0; i < n; ++i) x[i] += s[i % 64] / x[i + 1];
}
void go(float* x) { hidden<<<1, 32>>>(x, 3); plain<<<1, 32>>>(x, 3); }
"""


_RELOCATED = """
extern __device__ int other(int);
__device__ int counter;
__global__ void count(int *x) { x[0] = other(atomicAdd(&counter, x[1])); }
"""


@pytest.fixture(scope="module")
def two_builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same source compiled in two folders, for two architectures each."""
    builds = []
    for name in ("one", "another_folder"):
        folder = tmp_path_factory.mktemp(name)
        (folder / "k.cu").write_text(KERNELS)
        codes = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in ("80", "90a")]
        command = [toolchain.require_tool("nvcc").path, "-fatbin", "-lineinfo", *codes]
        subprocess.run([*command, "-o", folder / "k.fatbin", folder / "k.cu"], check=True)
        builds.append(folder / "k.fatbin")
    return builds[0], builds[1]


@needs_sass
@pytest.mark.parametrize("arch", ["sm_90a", pytest.param("sm_80", marks=pytest.mark.long)])
def test_two_builds_of_one_source_differ_in_nothing(two_builds: tuple[Path, Path], arch: str) -> None:
    a, b = (disassemble(path, arch) for path in two_builds)
    assert a.functions != b.functions, "the anonymous namespace carries the folder"
    aligned = alignment.align(a, b)
    assert not aligned.different
    assert aligned.counts[alignment.EQUAL] == len(a.lines) == len(b.lines) > 400


@pytest.mark.long
@needs_sass
def test_two_builds_of_a_version_by_this_package_differ_in_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings = []
    for name in ("here", "somewhere_else_with_a_longer_name"):
        kernels = tmp_path / name / "kernels"
        shutil.copytree(catalog.load_catalog().folder, kernels)
        monkeypatch.setenv("PROFILER_BUILD", str(tmp_path / name / "build"))
        lineage = catalog.load_catalog(kernels)
        (built,) = library.build(lineage, lineage.pick(["v1"]), ["sm_90a"])
        assert isinstance(built, library.BuiltLibrary)
        assert not built.cached
        listings.append(disassemble(built.library, "sm_90a"))
    aligned = alignment.align(*listings)
    assert not aligned.different
    assert aligned.counts[alignment.EQUAL] > 500


@needs_sass
def test_another_source_does_differ(two_builds: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(KERNELS.replace("s[i % 64] /", "s[i % 32] *"))
    command = [
        toolchain.require_tool("nvcc").path,
        "-cubin",
        "-arch=sm_80",
        "-lineinfo",
        "-o",
        tmp_path / "k.cubin",
    ]
    subprocess.run([*command, tmp_path / "k.cu"], check=True)
    a, b = disassemble(two_builds[0], "sm_80"), disassemble(tmp_path / "k.cubin")
    functions = {
        a.functions[function.a].partition("hidden")[1]: function
        for function in alignment.align(a, b).functions
        if function.a is not None
    }
    assert {row.kind for row in functions["hidden"].rows} == {alignment.EQUAL}
    assert len({row.kind for row in functions[""].rows}) > 1


LINES = """\
	.section	.text.softmax,"ax",@progbits
	//## File "/w/aot.py", line 8
        /*0000*/                   S2R R0, SR_TID.X ;
	//## File "/e/triton/language/standard.py", line 196 inlined at "/e/triton/language/standard.py", line 216
	//## File "/e/triton/language/standard.py", line 216 inlined at "/w/aot.py", line 14
	//## File "/w/aot.py", line 14
        /*0010*/                   FMNMX R1, R0, R2, !PT ;
        /*0020*/                   FMNMX R1, R1, R3, !PT ;
	//## File "/opt/cuda/include/cuda_fp16.hpp", line 900 inlined at "/w/tile.cuh", line 7
	//## File "/w/tile.cuh", line 7 inlined at "/w/attend.cu", line 50
	//## File "/w/attend.cu", line 50
        /*0030*/                   HADD2 R1, R0, R2 ;
	//## File "/e/triton/language/standard.py", line 40
        /*0040*/                   EXIT ;
"""


def test_code_inlined_from_a_library_is_of_the_line_that_called_it() -> None:
    found = {offset: place for (_, offset), place in parse_line_info(LINES).items()}
    assert found == {
        0x00: ("/w/aot.py", 8),
        0x10: ("/w/aot.py", 14),
        0x20: ("/w/aot.py", 14),
        0x30: ("/w/tile.cuh", 7),  # the innermost line of one's own
        0x40: ("/e/triton/language/standard.py", 40),  # there is no other
    }


@needs_sass
def test_an_intrinsic_is_of_the_line_that_uses_it(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(
        "#include <cuda_fp16.h>\n"
        "__global__ void k(__half2* x) {\n"
        "  x[threadIdx.x] = __hfma2(x[threadIdx.x],\n"
        "                           x[1], x[2]);\n"
        "}\n"
    )
    nvcc = toolchain.require_tool("nvcc")
    command = [nvcc.path, "-cubin", "-arch=sm_90", "-lineinfo", "-o", tmp_path / "k.cubin", tmp_path / "k.cu"]
    subprocess.run(command, check=True)
    files = {line.source[0] for line in disassemble(tmp_path / "k.cubin").lines if line.source}
    assert files == {str(tmp_path / "k.cu")}


@needs_sass
def test_every_instruction_of_a_build_with_line_info_knows_its_line(two_builds: tuple[Path, Path]) -> None:
    listing = disassemble(two_builds[0], "sm_90a")
    assert all(line.source for line in listing.lines)
    stores = [line.source for line in listing.lines if line.opcode.startswith("STS")]
    assert {source and source[1] for source in stores} == {7}


@needs_sass
def test_a_binary_for_several_architectures_asks_which(two_builds: tuple[Path, Path]) -> None:
    with pytest.raises(BuildFailed, match=r"several architectures.*sm_80, sm_90a.*--arch"):
        disassemble(two_builds[0])
    with pytest.raises(BuildFailed, match="no sm_70 machine code"):
        disassemble(two_builds[0], "sm_70")


@needs_sass
@pytest.mark.parametrize("arch", ["sm_80", "sm_120a"])
def test_one_listing_has_the_text_of_cuobjdump(
    two_builds: tuple[Path, Path], tmp_path: Path, arch: str
) -> None:
    """nvdisasm prints labels for offsets; what the linker fills in is cuobjdump's own, as in an object."""
    (tmp_path / "relocated.cu").write_text(_RELOCATED)
    for source, options in (
        (two_builds[0].with_name("k.cu"), ["-lineinfo"]),
        (tmp_path / "relocated.cu", ["-rdc=true"]),
    ):
        cubin = tmp_path / f"{source.stem}.cubin"
        nvcc = str(toolchain.require_tool("nvcc").path)
        subprocess.run([nvcc, f"-arch={arch}", "-cubin", *options, "-o", cubin, source], check=True)
        dumped = subprocess.run(
            [str(toolchain.require_tool("cuobjdump").path), "--dump-sass", str(cubin)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        ours = [(one.name, list(one.instructions)) for one in cubin_functions(cubin)]
        assert ours == list(parse_sass(dumped))
        assert sum(len(code) for _, code in ours) > 20


@needs_sass
def test_what_is_no_binary_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "k.cubin").write_bytes(b"not one")
    with pytest.raises(BuildFailed, match="nvdisasm cannot read"):
        disassemble(tmp_path / "k.cubin")


@needs_sass
def test_a_binary_without_a_function_is_unusable_and_says_so_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.cu").write_text("int host_only(int x) { return x; }\n")
    nvcc = toolchain.require_tool("nvcc")
    subprocess.run(
        [nvcc.path, "-cubin", "-arch=sm_80", "-o", tmp_path / "k.cubin", tmp_path / "k.cu"], check=True
    )
    assert main(["sass", str(tmp_path / "k.cubin")]) == Exit.UNUSABLE_INPUT
    text = capsys.readouterr().err.strip()
    assert "None" not in text
    assert len(text.splitlines()) == 1
