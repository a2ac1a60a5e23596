"""Versions of the lineage run from their machine code, beside the CPU check and sums by hand."""

from __future__ import annotations

import json

import pytest

from profiler.build.library import BuiltLibrary, build
from profiler.catalog.attention import ATTENTION, AttentionWorkload
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.emulator.cpu_check import check
from profiler.model.version_run import LaunchRun, run_version
from tests.toolchain import needs_gxx, needs_sass

pytestmark = [needs_sass, needs_gxx]
# Whole tiles: the machine code and the source then make the same accesses.
SQUARE = AttentionWorkload(1, 2, 128, 128, 64)
TENSOR_FLOPS = 2 * 16 * 8 * 16  # of mma.m16n8k16
# The good versions that run on every architecture; Hopper's asynchronous machine code has no model.
MODELLED = [v.id for v in load_catalog().versions if v.state == "good" and "sm_80" in v.arches]


@pytest.fixture(scope="module")
def lineage() -> Catalog:
    return load_catalog()


def run(lineage: Catalog, name: str, workload: AttentionWorkload, arch: str) -> LaunchRun:
    """The one launch of a version, whose output is right."""
    (version,) = lineage.pick([name])
    (built,) = build(lineage, [version], [arch])
    assert isinstance(built, BuiltLibrary)
    result = run_version(version, ATTENTION, workload, built, arch)
    assert result.output_check is not None
    assert result.output_check.wrong == 0
    (launch,) = result.launches
    return launch


def sample(lineage: Catalog, name: str, workload: AttentionWorkload, arch: str) -> LaunchRun:
    """The one launch of a version, of which some blocks are run."""
    (version,) = lineage.pick([name])
    (built,) = build(lineage, [version], [arch])
    assert isinstance(built, BuiltLibrary)
    result = run_version(version, ATTENTION, workload, built, arch, check_output=False)
    assert result.output_check is None
    (launch,) = result.launches
    return launch


def compare_with_all_blocks(lineage: Catalog, name: str, workload: AttentionWorkload, arch: str) -> bool:
    """Assert that a sample says what all blocks execute, as near as it claims; whether that is exactly.

    Where it assumes which way a branch on floating-point numbers goes, the body of that branch is what it
    can be wrong by: at most 5.1 % of the lineage's warp instructions (flashcore_wmma on sm_80).
    """
    some, whole = sample(lineage, name, workload, arch), run(lineage, name, workload, arch)
    assert some.blocks_run < some.blocks == whole.blocks == whole.blocks_run
    assert whole.is_exact
    near = some.sample.spread + (0.06 if some.assumed else 0)
    assert some.execution.warps.sum() == pytest.approx(whole.execution.warps.sum(), rel=near, abs=0)
    assert some.block_instructions.sum() == pytest.approx(some.execution.warps.sum(), rel=1e-6)
    assert some.is_exact == (not some.assumed and some.sample.spread == 0)
    if some.is_exact:
        assert some.execution.warps.tolist() == whole.execution.warps.tolist()
        assert some.execution.active.tolist() == whole.execution.active.tolist()
        assert some.execution.accesses == whole.execution.accesses
    return some.is_exact


def test_a_few_blocks_say_what_a_causal_launch_executes_and_asks_of_memory(lineage: Catalog) -> None:
    workload = AttentionWorkload(2, 2, 576, 576, 64, causal=True)
    assert compare_with_all_blocks(lineage, "v2d_c", workload, "sm_90a")
    large = sample(lineage, "v2d_c", AttentionWorkload(2, 8, 2048, 2048, 64, causal=True), "sm_90a")
    assert large.is_exact
    assert large.blocks_run < 20 < large.blocks == 32 * 16
    row, heads = 64 * 2, 16
    tensor = heads * 2048 * row
    # 32 blocks a head read 64 rows of Q, and 64, 128, … 2048 rows of K and of V, none through L1.
    keys = sum(64 * (block + 1) for block in range(32))
    traffic = large.traffic(gpu_sms=132, resident_blocks=3, l1_bytes=256 << 10, l2_bytes=50 << 20)
    assert traffic.l1_hit_rate is None
    assert traffic.l2_load_bytes == tensor + 2 * heads * keys * row
    assert traffic.l2_store_bytes == traffic.unique_store_bytes == tensor
    assert traffic.unique_load_bytes == traffic.dram_read_bytes == 3 * tensor
    assert traffic.dram_write_bytes == 0  # all of it fits L2
    # With 1 MB of L2 a wave's own keys have no room.
    small = large.traffic(gpu_sms=132, resident_blocks=3, l1_bytes=256 << 10, l2_bytes=1 << 20)
    assert 3 * tensor < small.dram_read_bytes <= small.l2_load_bytes
    assert small.dram_write_bytes > 0


def test_a_branch_on_a_sum_out_of_memory_is_named_and_not_looked_at(lineage: Catalog) -> None:
    assert not compare_with_all_blocks(
        lineage, "flashcore_vec", AttentionWorkload(1, 1, 64, 64, 64), "sm_90a"
    )
    launch = sample(lineage, "flashcore_vec", AttentionWorkload(1, 1, 64, 64, 64), "sm_90a")
    assert all("BRA" in text for text in launch.assumed)
    assert launch.assumed


@pytest.mark.long
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("version", MODELLED)
def test_a_few_blocks_say_what_every_version_executes(
    lineage: Catalog, version: str, causal: bool, arch: str
) -> None:
    (entry,) = lineage.pick([version])
    workload = AttentionWorkload(2, 2, 320, 320, entry.head_dims[0], causal, entry.dtypes[0])
    compare_with_all_blocks(lineage, version, workload, arch)


def cpu_wavefronts(lineage: Catalog, name: str, workload: AttentionWorkload) -> tuple[int, int]:
    (version,) = lineage.pick([name])
    (checked,) = check(version, ATTENTION, [workload], [0])
    return checked.shared_wavefronts, checked.bank_conflicts


def test_a_swizzled_version_does_what_its_source_says(lineage: Catalog) -> None:
    launch = run(lineage, "v2d_c", SQUARE, "sm_90a")
    flops = ATTENTION.flops(SQUARE)
    assert launch.tensor_instructions == flops // TENSOR_FLOPS == 2048
    # Each block reads its rows of Q, all of K and V, and writes its rows of O.
    blocks, row = 4, 64 * 2
    assert launch.total("global_bytes") == blocks * (64 + 128 + 128 + 64) * row
    assert launch.total("sectors") == launch.total("global_bytes") // 32
    assert (launch.shared_wavefronts, launch.bank_conflicts) == cpu_wavefronts(lineage, "v2d_c", SQUARE)
    assert launch.class_counts["tensor core"] == 2048
    assert launch.active_lanes == pytest.approx(31.3, abs=0.5)
    document = json.loads(json.dumps(launch.as_json()))
    assert document["by_opcode"]["HMMA"] == document["by_class"]["tensor core"] == 2048
    assert sum(access["sectors"] for access in document["accesses"]) == document["sectors"]
    assert {access["kind"] for access in document["accesses"]} == {"load", "store", "copy"}
    assert all(access["line"] for access in document["accesses"])


def test_the_scalar_baseline_does_what_its_source_says(lineage: Catalog) -> None:
    workload = AttentionWorkload(1, 1, 64, 64, 64)
    launch = run(lineage, "v1", workload, "sm_90a")
    # A block a row: it reads the row of Q, all of K twice and V once, 2 bytes at a time, and writes a row.
    assert launch.total("global_bytes") == 64 * (1 + 2 * 64 + 64 + 1) * 64 * 2
    assert launch.tensor_instructions == 0
    assert (launch.shared_wavefronts, launch.bank_conflicts) == cpu_wavefronts(lineage, "v1", workload)


# Where the wavefronts of the machine code are not those of the CPU check, which runs the source, and why. The
# second word says on which workloads: all of them, or all but whole tiles without a mask.
DIFFERENT = {
    "flashcore_vec": ("all", "nvcc stores Q 16 bytes at a time, the source 4, and reads P and Q so too"),
    "v1": ("masked", "nvcc reads Q and P 16 bytes at a time: fewer lanes take fewer wavefronts"),
    "v2c_v3": ("masked", "a score that the mask hides: g++ leaves out its load, or has two copies of it"),
    "v2c_v4": ("masked", "as v2c_v3"),
    "v2c_v5": ("masked", "as v2c_v3"),
}
BLOCK_ROWS = {("v2b", 128): 48, ("v2c_v3", 128): 48, ("v2c_v4", 128): 48, ("v2c_v5", 128): 48}
SCALAR, ONE_PRODUCT = {"v1", "v2b", "v2c_v3", "flashcore_vec"}, {"v2c_v4"}


def bytes_by_hand(name: str, head_dim: int) -> int:
    """Global traffic on SQUARE with a head dim: each block reads Q's rows, K and V, and writes O's rows.

    Rows past the end are read again, and not written. Of fp8 a code is a byte, and 128 threads of a block
    read three scales each.
    """
    length, heads, row = 128, 2, 2 * head_dim
    if name in ("v1", "flashcore_vec"):  # a block a row, which reads K twice
        return heads * length * (1 + 2 * length + length + 1) * row
    rows = 32 if name in ("flashcore_wmma", "fp8_stage_c") else BLOCK_ROWS.get((name, head_dim), 64)
    blocks = -(-length // rows)
    read, written = blocks * (rows + 2 * length) * row, length * row
    if name == "fp8_stage_c":
        read = read // 2 + blocks * 128 * 3 * 4
    return heads * (read + written)


def tensor_instructions_by_hand(name: str, workload: AttentionWorkload) -> int:
    """Of the products that a version makes by tensor cores, on whole tiles without a mask."""
    products = 0 if name in SCALAR else 1 if name in ONE_PRODUCT else 2
    rows = 144 if BLOCK_ROWS.get((name, workload.head_dim)) else 128  # tiles of 48 rows cover 144
    return products * ATTENTION.flops(workload) // 2 * rows // 128 // TENSOR_FLOPS


@pytest.mark.long
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a"])
@pytest.mark.parametrize("version", MODELLED)
def test_the_lineage_agrees_with_the_cpu_check_and_with_sums_by_hand(
    lineage: Catalog, version: str, arch: str
) -> None:
    (entry,) = lineage.pick([version])
    for head_dim in entry.head_dims:
        for lengths in ((128, 128), (97, 65)):
            for causal in (False, True):
                workload = AttentionWorkload(1, 2, *lengths, head_dim, causal, entry.dtypes[0])
                launch = run(lineage, version, workload, arch)
                wavefronts = launch.shared_wavefronts, launch.bank_conflicts
                is_plain = lengths == (128, 128) and not causal
                where, why = DIFFERENT.get(version, ("", ""))
                if where == "all" or (where == "masked" and not is_plain):
                    expected = cpu_wavefronts(lineage, version, workload)[0]
                    assert wavefronts[0] == pytest.approx(expected, rel=0.3), why
                else:
                    assert wavefronts == cpu_wavefronts(lineage, version, workload), workload.label
                if is_plain:
                    assert launch.tensor_instructions == tensor_instructions_by_hand(version, workload)
                    assert launch.total("global_bytes") == bytes_by_hand(version, head_dim)
