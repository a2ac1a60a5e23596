"""Cubins run with launches that are given by hand, beside sums by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import profiler
from profiler.build.toolchain import find_tool
from profiler.cli import main
from profiler.documents.prediction import GivenLaunch, PredictionDocument, predict_names
from profiler.errors import CannotJudge, UnknownName
from profiler.model.cubin_run import parse_argument
from profiler.model.dimensions import parse_dimensions
from tests.toolchain import needs_sass

SOURCE = """
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void __launch_bounds__(256) rows(float* a, float s) {
  __shared__ float t[256 * 33];
  const int at = blockIdx.x * 256 + threadIdx.x;
  float x = a[at];
  for (int i = 0; i < 32; ++i) t[threadIdx.x * STRIDE + i] = x * i;
  __syncthreads();
  for (int i = 0; i < 32; ++i) x += t[(threadIdx.x ^ 1) * STRIDE + i] * s;
  a[at] = x;
}
extern "C" __global__ void triton(const float* a, float* c, int n, void* scratch, void* profile) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && !scratch) c[i] = a[i];
}
extern "C" __global__ void huge(float* a) {
  extern __shared__ float t[];
  t[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = t[threadIdx.x ^ 1];
}
"""
BLOCKS, THREADS = 4096, 256
N = BLOCKS * THREADS
ADD = GivenLaunch(str(BLOCKS), str(THREADS), (f"f32[{N}]",) * 3 + (f"i32={N}",), kernel="add")
ROWS = GivenLaunch("512", None, ("f32[131072]", "f32=0.5"), kernel="rows")


@pytest.fixture(scope="module")
def cubins(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same kernels, with rows of 32 words, which lie in one bank, and of 33."""
    folder = tmp_path_factory.mktemp("cubins")
    (folder / "k.cu").write_text(SOURCE)
    nvcc = find_tool("nvcc")
    assert nvcc is not None
    made = []
    for stride in (32, 33):
        path = folder / f"rows{stride}.cubin"
        command = [str(nvcc.path), "-cubin", "-gencode", "arch=compute_80,code=sm_80", f"-DSTRIDE={stride}"]
        subprocess.run([*command, "-o", str(path), str(folder / "k.cu")], check=True)
        made.append(path)
    return made[0], made[1]


def predict(path: Path, launch: GivenLaunch, **words: object) -> PredictionDocument:
    return predict_names([str(path)], launch=launch, **words)  # type: ignore[arg-type]


@needs_sass
def test_a_launch_by_hand_has_the_counts_that_a_hand_sums(cubins: tuple[Path, Path]) -> None:
    (call,) = predict(cubins[0], ADD).calls
    assert call.longest is not None
    inputs, traffic = call.longest.inputs, call.longest.traffic
    assert traffic is not None
    assert (inputs.blocks, inputs.threads, call.gpu.name if call.gpu else "") == (
        BLOCKS,
        THREADS,
        "A100-40GB",
    )
    assert traffic.unique_load_bytes == 2 * 4 * N
    assert traffic.unique_store_bytes == 4 * N
    assert call.longest.limiter == "DRAM"
    # Two arrays come from DRAM at the data sheet's rate at best; the third one fits L2.
    assert 2 * 4 * N / 1555e9 * 1e9 < call.low_ns < call.likely_ns < call.high_ns
    assert {path.name for path in cubins[0].parent.iterdir()} == {"k.cu", "rows32.cubin", "rows33.cubin"}
    # With half the length, half the blocks skip the body: their warps execute less.
    half = (*ADD.arguments[:3], f"i32={N // 2}")
    (shorter,) = predict(cubins[0], GivenLaunch(str(BLOCKS), str(THREADS), half, kernel="add")).calls
    assert shorter.likely_ns < 0.8 * call.likely_ns


@needs_sass
def test_rows_in_one_bank_are_slower_and_the_causes_say_so(cubins: tuple[Path, Path]) -> None:
    document = predict(cubins[0], ROWS, against=str(cubins[1]))
    (call,) = document.calls
    assert call.ratio is not None
    assert call.ratio.ratio > 3
    assert call.ratio.against == "rows33.cubin: rows"
    assert call.longest is not None
    assert call.longest.limiter == "L1 data"
    executed = np.nan_to_num(call.longest.inputs.wavefronts).max()
    assert executed == 32
    no_conflicts = next(change for change in call.what_ifs if change.change == "no bank conflicts")
    # Rows of 33 words need another instruction for their addresses, which the what-if has not.
    assert no_conflicts.time_ratio == pytest.approx(1 / call.ratio.ratio, rel=0.2)
    content = json.loads(json.dumps(document.to_dict()))
    assert content["calls"][0]["evidence"] == "modelled"
    assert "rows32.cubin: rows on A100-40GB" in document.sentences[0]


@needs_sass
def test_code_for_a_gpu_without_a_model_could_not_be_judged(tmp_path: Path) -> None:
    nvcc = find_tool("nvcc")
    assert nvcc is not None
    (tmp_path / "k.cu").write_text("__global__ void k(float* x) { x[threadIdx.x] = 1; }")
    command = [str(nvcc.path), "-cubin", "-arch=sm_100a", "-o", str(tmp_path / "k.cubin")]
    subprocess.run([*command, str(tmp_path / "k.cu")], check=True)
    with pytest.raises(CannotJudge, match="sm_100a"):
        predict(tmp_path / "k.cubin", GivenLaunch("64", "128", ("f32[128]",)))


@needs_sass
def test_the_pointers_that_triton_adds_are_null(cubins: tuple[Path, Path], tmp_path: Path) -> None:
    """Triton keeps a kernel in a folder whose name is a hash, and calls it with two pointers of its own."""
    folder = tmp_path / "XMFKDXLVS5SVMD6ESG4C"
    folder.mkdir()
    cubin = folder / "triton.cubin"
    cubin.write_bytes(cubins[0].read_bytes())
    own = GivenLaunch("64", "128", ("f32[8192]", "f32[8192]", "i32=8192"), kernel="triton")
    assert "5 parameters" in predict(folder, own).calls[0].no_model
    cubin.with_suffix(".json").write_text('{"num_warps": 4, "shared": 0}')
    (call,) = predict(folder, own).calls
    assert call.no_model == ""
    assert call.longest.traffic.unique_store_bytes == 4 * 8192
    short = GivenLaunch("64", "128", own.arguments[:2], kernel="triton")
    assert "5 parameters" in predict(folder, short).calls[0].no_model


@needs_sass
@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (GivenLaunch("16", "256", ADD.arguments[:2], kernel="add"), "4 parameters"),
        (GivenLaunch("16", "256", ("f32[4]",) * 4, kernel="add"), "parameter 4 of add has 4 bytes"),
        (GivenLaunch("16", "256", ("f32[4]",) * 3 + ("i32=9000",), kernel="add"), "outside of every array"),
        (GivenLaunch("16", "256", ("f32[256]",), 1 << 20, "huge"), "fits no SM"),
    ],
)
def test_a_launch_that_is_none_has_no_model(
    cubins: tuple[Path, Path], launch: GivenLaunch, words: str
) -> None:
    (call,) = predict(cubins[0], launch).calls
    assert words in call.no_model
    assert call.likely_ns is None


@needs_sass
def test_what_a_file_lacks_is_named(cubins: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    file = str(cubins[0])
    for arguments, words in [
        ([file], "says nothing of its launch"),
        ([file, "--grid", "4"], "several kernels"),
        ([file, "--grid", "4", "--kernel", "nix"], "it has add, huge, rows"),
        ([file, "--grid", "4", "--kernel", "add"], "give --block"),
        ([file, "--grid", "0", "--block", "4", "--kernel", "add"], "no grid or block"),
        ([file, "--grid", "1,70000", "--block", "4", "--kernel", "add"], "65535 along y"),
        ([file, "--grid", "4", "--block", "2048", "--kernel", "add"], "1024 at most"),
        ([file, "--grid", "4", "--workload", "1x8x512x64"], "separately"),
        ([file + "x.cubin", "--grid", "4"], "there is no file"),
        (["v2d_c", "--grid", "4"], "there is no file v2d_c"),
        (["v2d_c", "--block", "4"], "needs --grid"),
    ]:
        assert main(["predict", *arguments]) == 2
        assert words in capsys.readouterr().err
    other = profiler.predict(file, launch=ADD, gpus=("L4", "H100-SXM"))
    assert [bool(call.launches) for call in other.calls] == [True, False]  # 8.9 runs code for 8.0
    assert "for sm_80, not for H100-SXM" in other.calls[1].no_model


def test_arguments_are_read_as_they_are_written() -> None:
    assert parse_argument("i32=-5").values.tobytes() == (-5).to_bytes(4, "little", signed=True)
    assert parse_argument("u64=0xff").values.tobytes() == (255).to_bytes(8, "little")
    assert parse_argument("bf16[2]=1,2").values.tolist() == [0x3F80, 0x4000]
    assert parse_argument("f16[3]=0.5").values.tolist() == [0.5] * 3
    assert not parse_argument("i32[7]").values.any()
    normal = parse_argument("f32[4096]").values
    assert abs(normal.mean()) < 0.1 < 0.9 < normal.std() < 1.1
    assert parse_dimensions("4,5") == (4, 5, 1)
    for text in (
        "",
        "f32",
        "f31[4]",
        "i8=300",
        "u32=-1",
        "i32[3]=1,2",
        "f16=1e9",
        "i32=1.5",
        "f32[4",
        "i32=a",
    ):
        with pytest.raises(UnknownName, match=r"argument|value"):
            parse_argument(text)
