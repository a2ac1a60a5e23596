"""What a launcher passes to its kernels reaches their machine code: structures, moved pointers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from profiler.build.library import BuiltLibrary, build
from profiler.catalog import sources
from profiler.catalog.catalog import load_catalog
from profiler.emulator.run_result import AddressRange, KernelArgument, parse_launches
from profiler.model.instructions import NoModel
from profiler.model.version_run import VersionExecution, run_version
from tests.conftest import ROOT
from tests.toolchain import needs_gxx, needs_sass

ARCH = "sm_90a"
# C = A B in launches of two instances of a kernel: -A B, then the sign is turned. Sizes and pointers travel
# in a structure, and the second launch takes a pointer to C's second element.
TWO_LAUNCHES = """#include "common.cuh"
struct Shape {
  int m, n, k;
  const float* A;
  float* C;
};
template <int WHAT>
__global__ void step(Shape shape, const float* B, float* C, char pad) {
  const int i = blockIdx.x * 64 + threadIdx.x - pad;
  if (WHAT == 1 && i < shape.m * shape.n) {
    float sum = 0;
    const int row = i / shape.n, col = i % shape.n;
    for (int j = 0; j < shape.k; ++j) sum += shape.A[row * shape.k + j] * B[j * shape.n + col];
    shape.C[i] = -sum;
  }
  if (WHAT == 2 && i < shape.m * shape.n - 1) C[i] = -C[i];
  if (WHAT == 2 && i == 0) C[-1] = -C[-1];
}
extern "C" int gemm(const void* a, const void* b, void* c, int m, int n, int k, void* stream) {
  const Shape shape{m, n, k, (const float*)a, (float*)c};
  const dim3 grid((m * n + 63) / 64);
  const char pad = 0;
  const int rc = LAUNCH(step<1>, grid, dim3(64), 0, stream, shape, (const float*)b, (float*)nullptr, pad);
  return rc ? rc : LAUNCH(step<2>, grid, dim3(64), 0, stream, shape, FOREIGN, (float*)c + 1, pad);
}
"""


def run(tmp_path: Path, foreign: str) -> VersionExecution:
    gemm = load_catalog(ROOT / "tests" / "gemm")
    problem = sources.load_object(gemm, gemm.problem)
    source = tmp_path / "two.cu"
    source.write_text(TWO_LAUNCHES.replace("FOREIGN", foreign))
    version = dataclasses.replace(gemm.by_id["tiled"], id="two", source=source, include=(), flags=())
    (built,) = build(gemm, [version], [ARCH])
    assert isinstance(built, BuiltLibrary), built
    return run_version(version, problem, problem.workload(m=5, n=17, k=3), built, ARCH)


@needs_sass
@needs_gxx
def test_launches_run_in_turn_with_what_their_launcher_passed(tmp_path: Path) -> None:
    result = run(tmp_path, "(const float*)b")
    assert result.output_check.wrong == 0
    first, second = result.launches
    assert "step" in first.function.name
    assert first.function.name != second.function.name
    # A thread of 85 reads k = 3 elements of A and of B and writes its own; then each is read and written.
    assert first.total("global_bytes", kinds=["load"]) == 85 * 3 * 2 * 4
    assert (
        second.total("global_bytes", kinds=["load"])
        == second.total("global_bytes", kinds=["store"])
        == 85 * 4
    )


@needs_sass
@needs_gxx
def test_a_pointer_to_what_is_none_of_the_arrays_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(NoModel, match="argument 2 points to none of the problem's arrays"):
        run(tmp_path, "(const float*)&shape")


def test_pointers_are_found_in_arguments_and_in_structures() -> None:
    arrays = [AddressRange(0, 0x1000, 256), AddressRange(3, 0x3000, 16)]
    structure = (7).to_bytes(8, "little") + (0x1010).to_bytes(8, "little")
    fields = [
        "p" + (0x3010).to_bytes(8, "little").hex(),
        "v" + structure.hex(),
        "u00",
        "p" + (9).to_bytes(8, "little").hex(),
    ]
    (shape,) = parse_launches([["ns::k<2>", "0", *"121134", "96", "_Z1k", *fields]], arrays)
    assert (shape.grid, shape.block, shape.shared_bytes, shape.symbol) == ((1, 2, 1), (1, 3, 4), 96, "_Z1k")
    assert shape.arguments == (
        KernelArgument((0x3010).to_bytes(8, "little"), ((0, 3, 16),)),
        KernelArgument(structure, ((8, 0, 16),)),
        KernelArgument(None, ()),
        KernelArgument((9).to_bytes(8, "little"), (), is_foreign=True),
    )
