"""Further kernels whose registers were once counted wrongly, or not at all: recursion, wide and 64-bit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from profiler.build import toolchain
from profiler.build.code_images import read_images
from profiler.sass.disassembly import disassemble
from profiler.sass.live_registers import count_live_registers
from tests.sass.test_live_registers import nvdisasm_counts
from tests.toolchain import needs_sass

CALLS = """
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void recurse(int *x) { x[threadIdx.x] = fib(x[threadIdx.x]); }
__device__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1) + n; }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1) * 3; }
extern "C" __global__ void mutual(int *x) { x[threadIdx.x] = even(x[threadIdx.x]); }
extern "C" __global__ void divide(double *x, int n) {
  double s = x[0];
  for (int i = 0; i < n; i++)
    if (x[i] > 0) s = s / x[i] + 1;
  x[0] = s;
}
extern "C" __global__ void modulo(long long *x, int n) {
  long long s = x[0];
  for (int i = 0; i < n; i++)
    if (x[i] > 1) s = s % x[i] + 1;
  x[0] = s;
}
"""
WIDE = """
struct alignas(32) Four { double x[4]; };
extern "C" __global__ void doubles(const Four *a, Four *out) {
  Four x = a[threadIdx.x], y = a[threadIdx.x + 32];
  for (int k = 0; k < 4; ++k) x.x[k] = x.x[k] * y.x[k] + 1;
  out[threadIdx.x] = x;
}
extern "C" __global__ void sums(const unsigned long long *a, unsigned long long *out, int n) {
  unsigned long long s = 0, t = 1;
  for (int k = 0; k < n; ++k) { s += a[k]; t += s; }
  out[threadIdx.x] = s + t;
}
extern "C" __global__ void packed(const float2 *a, float2 *out) {
  float2 x = a[threadIdx.x], y = a[threadIdx.x + 32];
  for (int k = 0; k < 8; ++k) x = __ffma2_rn(x, y, x);
  out[threadIdx.x] = x;
}
"""


def cubin(folder: Path, arch: str, source: str) -> Path:
    (folder / "k.cu").write_text(source)
    nvcc = toolchain.require_tool("nvcc")
    command = [nvcc.path, "-cubin", f"-arch={arch}", "-o", "k.cubin", "k.cu"]
    if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
        pytest.skip(f"nvcc {nvcc.version} does not compile this for {arch}")
    return folder / "k.cubin"


@needs_sass
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_functions_that_call_themselves_or_each_other_from_loops_end(arch: str, tmp_path: Path) -> None:
    """Recursion, two functions in turn, and the slow path of a division in a loop, which ptxas calls."""
    path = cubin(tmp_path, arch, CALLS)
    (image,) = read_images(path)
    registers = {kernel.name: kernel.registers for kernel in image.kernels}
    assert set(registers) == {"recurse", "mutual", "divide", "modulo"}
    for function in count_live_registers(disassemble(path)):
        if function.function in registers:
            assert 0 < function.highest <= (registers[function.function] or 0)


@needs_sass
@pytest.mark.parametrize("arch", ["sm_100", "sm_120"])
def test_wide_accesses_and_sums_of_64_bits_hold_as_many_registers_as_nvdisasm_says(
    arch: str, tmp_path: Path
) -> None:
    path = cubin(tmp_path, arch, WIDE)
    theirs = {name: max(counts.values()) for name, counts in nvdisasm_counts(path).items()}
    ours = {function.function: function.highest for function in count_live_registers(disassemble(path))}
    assert set(ours) == {"doubles", "sums", "packed"}
    assert ours == {name: theirs[name] for name in ours}
