"""What accesses cost in kernels that nobody launched, against what their lines say and against runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from profiler.build.library import BuiltLibrary, build
from profiler.build.toolchain import require_tool
from profiler.catalog.catalog import load_catalog
from profiler.catalog.sources import load_problem
from profiler.model.cubin import read_kernels
from profiler.model.dimensions import Grid
from profiler.model.instructions import NoModel
from profiler.model.unlaunched_accesses import UnlaunchedAccess, UnlaunchedRun, unlaunched_accesses
from profiler.model.version_run import run_version
from profiler.sass.disassembly import cubin_functions, extract_cubin
from profiler.sass.listing import make_listing
from profiler.sass.loops import block_graph
from tests.toolchain import needs_gxx, needs_sass

_SOURCE = r"""
extern __shared__ float dynamic[];
#define KERNEL extern "C" __global__ void
KERNEL columns(float *out, const float *in, int n) {
  __shared__ float tile[32][32];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (int b = 0; b < n; b += 32) {
    for (int j = 0; j < 32; j += 8) tile[y + j][x] = in[(b + y + j) * n + blockIdx.x * 32 + x];
    __syncthreads();
    for (int j = 0; j < 32; j += 8) out[(blockIdx.x * 32 + y + j) * n + b + x] = tile[x][y + j];
    __syncthreads();
  }
}
KERNEL rows(float4 *out, const float4 *in) { out[threadIdx.x * 4] = in[threadIdx.x]; }
KERNEL gather(float *out, const int *at, const float *in) { out[threadIdx.x] = in[at[threadIdx.x]]; }
KERNEL paged(float *out, const int *pages, const float *in) {
  out[threadIdx.x] = in[pages[blockIdx.x] * 32 + threadIdx.x]; }
KERNEL pitched(float *out, int pitch) {
  dynamic[threadIdx.x * pitch] = threadIdx.x; __syncthreads(); out[threadIdx.x] = dynamic[threadIdx.x]; }
KERNEL chosen(float *out, const float *in) {
  int at = threadIdx.x;
  if (in[threadIdx.x] > 0) { at = threadIdx.x * 32; out[threadIdx.x + 4096] = 1; }
  out[at] = 2;
}
KERNEL some(float *out) {
  __shared__ float tile[1024];
  tile[threadIdx.x] = threadIdx.x; __syncthreads();
  if (threadIdx.x < 16) out[threadIdx.x] = tile[threadIdx.x * 64]; }
KERNEL again(float *out, const int *lengths) {
  int at = threadIdx.x;
  for (int i = 0; i < lengths[threadIdx.x]; ++i) at += 3;
  out[at] = 1; }
KERNEL counted(float *out) {
  __shared__ float tile[4096];
  #pragma unroll 1
  for (int i = threadIdx.x; i < 4096; i += 256) tile[i ^ (i >> 5 & 31)] = i;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x * 32 % 4096 ^ (threadIdx.x & 31)]; }
KERNEL generic(float *out, float *in, int n) {
  __shared__ float tile[64];
  float *p = n ? tile : in;
  p[threadIdx.x % 64] = n; __syncthreads(); out[threadIdx.x] = tile[threadIdx.x % 64]; }
"""
_ARCHES = ("sm_80", "sm_90a", "sm_120")


@pytest.fixture(scope="module", params=_ARCHES)
def cubin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unlaunched")
    (folder / "k.cu").write_text(_SOURCE)
    nvcc = require_tool("nvcc")
    command = [nvcc.path, "-cubin", f"-arch={request.param}", "-o", folder / "k.cubin", folder / "k.cu"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "k.cubin"


def run(cubin: Path, name: str, block: Grid = (256, 1, 1), *, with_patterns: bool = False) -> UnlaunchedRun:
    kernel = read_kernels(cubin)[name]
    listing = make_listing([one for one in cubin_functions(cubin) if one.name == name], name)
    code = [(row.offset, row.text or "") for row in listing.lines]
    graph = block_graph(listing.lines)
    return unlaunched_accesses(kernel, code, graph, block, with_patterns=with_patterns)


def costs(accesses: tuple[UnlaunchedAccess, ...], space: str, kind: str) -> set[tuple[float | None, ...]]:
    return {(one.least, one.most, one.excess) for one in accesses if (one.space, one.kind) == (space, kind)}


@needs_sass
def test_a_column_of_a_tile_has_conflicts_and_its_rows_have_none(cubin: Path) -> None:
    found = run(cubin, "columns").accesses
    assert costs(found, "shared", "load") == {(32, 32, 31)}
    assert costs(found, "shared", "store") == {(1, 1, 0)}
    # For an odd number of columns a row begins within a sector, but for one row in eight.
    assert costs(found, "global", "load") == {(4, 4.875, 0)} == costs(found, "global", "store")


@needs_sass
def test_of_an_access_with_gaps_every_sector_beyond_its_bytes_is_excess(cubin: Path) -> None:
    found = run(cubin, "rows").accesses
    assert costs(found, "global", "load") == {(16, 16, 0)}
    assert costs(found, "global", "store") == {(32, 32, 16)}


@needs_sass
def test_addresses_out_of_memory_are_known_only_where_a_warp_has_one_of_them(cubin: Path) -> None:
    (unknown,) = (one for one in run(cubin, "gather").accesses if not one.is_known)
    assert (unknown.kind, unknown.why) == ("load", "they depend on values out of memory")
    assert all(one.is_known and not one.excess for one in run(cubin, "paged").accesses)


@needs_sass
def test_what_another_argument_clears_is_no_excess(cubin: Path) -> None:
    ((least, most, excess),) = costs(run(cubin, "pitched").accesses, "shared", "store")
    assert (least, most, excess) == (1, 32, 0), "a pitch of 33 has none, one of 32 all"


@needs_sass
@pytest.mark.parametrize("name", ["chosen", "again"])
def test_threads_that_part_by_values_out_of_memory_have_addresses_that_nobody_knows(
    cubin: Path, name: str
) -> None:
    stores = [one for one in run(cubin, name).accesses if one.kind == "store"]
    assert any("values out of memory" in one.why for one in stores)


@needs_sass
def test_only_lanes_that_take_part_are_counted(cubin: Path) -> None:
    found = run(cubin, "some").accesses
    assert costs(found, "shared", "load") == {(16, 16, 15)}
    assert costs(found, "global", "store") == {(2, 2, 0)}


@needs_sass
def test_a_loop_that_threads_leave_for_any_arguments_is_followed_to_its_end(cubin: Path) -> None:
    found = run(cubin, "counted", with_patterns=True)
    assert costs(found.accesses, "shared", "store") == {(1, 1, 0)}
    assert costs(found.accesses, "shared", "load") == {(1, 1, 0)}
    stores = next(pattern for pattern in found.patterns if pattern.kind == "store")
    assert len({int(one) for one in stores.addresses.reshape(-1)}) == 4096, "each element once"


@needs_sass
def test_a_generic_pointer_is_one_of_the_memory_that_it_points_to(cubin: Path) -> None:
    (store, *_) = (one for one in run(cubin, "generic").accesses if one.kind == "store")
    assert store.space in ("shared", "global", "generic")
    assert (
        store.is_known
        or store.why == "they are in shared memory for some threads and outside of it for others"
    )


@needs_sass
def test_a_block_that_no_gpu_launches_is_refused(cubin: Path) -> None:
    with pytest.raises(NoModel, match="2048 threads"):
        run(cubin, "rows", (2048, 1, 1))


@needs_sass
@needs_gxx
def test_every_access_of_a_version_costs_what_it_costs_when_it_is_run(tmp_path: Path) -> None:
    catalog = load_catalog()
    problem = load_problem(catalog)
    (version,) = catalog.pick(["v2d_a"])
    (built,) = build(catalog, [version], ["sm_90a"])
    assert isinstance(built, BuiltLibrary)
    workload = problem.check_workloads(version.dtypes[0], (64,))[0]
    (launch,) = run_version(version, problem, workload, built, "sm_90a").launches
    cubin = extract_cubin(built.library, "sm_90a", tmp_path)
    found = {
        (one.position, one.space): one
        for one in run(cubin, launch.function.name, launch.launch.block).accesses
    }
    compared = 0
    for position, access in launch.execution.accesses.items():
        for space, cost in (("shared", access.wavefronts), ("global", access.sectors)):
            if access.requests and cost:
                one = found[position, space]
                assert one.least is not None, one.why
                assert one.most is not None
                assert one.least <= cost / access.requests <= one.most
                compared += 1
    assert compared > 80
