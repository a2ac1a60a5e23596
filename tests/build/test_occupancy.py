"""Theoretical occupancy: against what Nsight Compute computed in real reports, and figures done by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.build.occupancy import carveout_of, headroom, next_block, occupancy
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence.gpu_arch import ARCHITECTURES, chip_of
from profiler.reports import read as reports_read

_NEEDED = (
    "device__attribute_compute_capability_major",
    "device__attribute_compute_capability_minor",
    "launch__registers_per_thread",
    "launch__block_size",
    "launch__shared_mem_per_block_static",
    "launch__shared_mem_per_block_dynamic",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_warps",
    "launch__occupancy_limit_blocks",
    "sm__maximum_warps_per_active_cycle_pct",
)


def test_it_agrees_with_every_real_report(good_reports: list[Path]) -> None:
    """Blocks an SM and occupancy of every launch of the public reports that carries both."""
    judged, chips = 0, set()
    for read in reports_read.read_reports(good_reports):
        assert not isinstance(read, Exception)
        for launch in read.launches:
            numbers = [launch.values.number(name) for name in _NEEDED]
            known = [number for number in numbers if number is not None]
            if len(known) < len(_NEEDED):
                continue
            major, minor, registers, threads, static, dynamic = (int(number) for number in known[:6])
            chip = chip_of(f"{major}.{minor}")
            found = occupancy(chip, registers, threads, static + dynamic)
            where = f"{read.name} {launch.base_name} on {chip}"
            assert found.blocks == min(known[6:10]), where
            assert found.pct == pytest.approx(known[10], abs=0.01), where
            judged += 1
            chips.add(chip)
    assert judged > 90
    assert chips >= {"sm_70", "sm_75", "sm_80", "sm_86"}


@pytest.mark.parametrize(
    ("arch", "registers", "threads", "shared_kb", "blocks", "pct", "limiters"),
    [
        # kernels.md: 2, 3, 4 stages of an mma kernel with 99 registers and 128 threads
        ("sm_90a", 99, 128, 40, 4, 25, ("registers",)),
        ("sm_90a", 99, 128, 56, 4, 25, ("registers", "shared memory")[:2]),
        ("sm_90a", 99, 128, 72, 3, 18.75, ("shared memory",)),
        ("sm_89", 99, 128, 40, 2, 16.67, ("shared memory",)),
        ("sm_89", 99, 128, 56, 1, 8.33, ("shared memory",)),
        # the owner's v2b: 79 KB and 60 registers, 256 threads
        ("sm_90", 60, 256, 79, 2, 25, ("shared memory",)),
        ("sm_89", 60, 256, 79, 1, 16.67, ("shared memory",)),
        ("sm_80", 32, 1024, 0, 2, 100, ("warps", "registers")),
        ("sm_86", 16, 32, 0, 16, 33.33, ("blocks",)),
        ("sm_89", 40, 256, 170, 0, 0, ("shared memory",)),
        # B300, Thor, DGX Spark, Orin
        ("sm_103a", 64, 256, 100, 2, 25, ("shared memory",)),
        ("sm_110a", 32, 32, 1, 24, 50, ("blocks",)),
        ("sm_121", 40, 256, 20, 4, 66.67, ("shared memory",)),
        ("sm_87", 32, 512, 80, 2, 66.67, ("shared memory",)),
        ("sm_88", 32, 512, 80, 1, 33.33, ("shared memory",)),
    ],
)
def test_figures_worked_out_by_hand(
    arch: str,
    registers: int,
    threads: int,
    shared_kb: int,
    blocks: int,
    pct: float,
    limiters: tuple[str, ...],
) -> None:
    found = occupancy(arch, registers, threads, shared_kb << 10)
    assert (found.blocks, found.limiters) == (blocks, limiters)
    assert found.pct == pytest.approx(pct, abs=0.01)


def test_a_block_of_odd_size_takes_whole_warps() -> None:
    assert occupancy("sm_90", 32, 33, 0) == occupancy("sm_90", 32, 64, 0)


def test_an_unknown_architecture_cannot_be_judged() -> None:
    with pytest.raises(CannotJudge, match="the limits of sm_37 are not known here: it knows sm_70"):
        occupancy("sm_37", 32, 32, 0)


@pytest.mark.parametrize(
    ("arch", "registers", "threads", "shared_kb", "needs", "words"),
    [
        # 65536 registers over 4 blocks of 4 warps are 4096 per warp: 128 per thread
        (
            "sm_90a",
            165,
            128,
            48,
            (4, 128, 48),
            "37 fewer registers per thread give 4 blocks on an SM instead of 3",
        ),
        (
            "sm_90a",
            129,
            128,
            48,
            (4, 128, 48),
            "1 fewer register per thread gives 4 blocks on an SM instead of 3",
        ),
        # 100 KB over 2 blocks, less the 1 KB that the system takes of each
        (
            "sm_89",
            99,
            128,
            56,
            (2, 99, 49),
            "7.0 KiB less shared memory per block gives 2 blocks on an SM instead",
        ),
        (
            "sm_89",
            200,
            256,
            56,
            (2, 128, 49),
            "72 fewer registers per thread and 7.0 KiB less shared memory per block",
        ),
        # more than a block may have: the first block is what is missing
        (
            "sm_90a",
            40,
            256,
            302,
            (1, 40, 227),
            "75.0 KiB less shared memory per block gives 1 block on an SM",
        ),
    ],
)
def test_the_next_block_asks_for_so_much(
    arch: str, registers: int, threads: int, shared_kb: int, needs: tuple[int, int, int], words: str
) -> None:
    following = next_block(arch, registers, threads, shared_kb << 10)
    assert following is not None
    assert (following.blocks, following.registers, following.shared_bytes >> 10) == needs
    assert following.words.startswith(words)
    # With what it asks for the block fits; with one register or one step of memory more it does not.
    assert occupancy(arch, following.registers, threads, following.shared_bytes).blocks == following.blocks
    more_registers = following.registers + (following.registers < registers)
    more_bytes = following.shared_bytes + (following.shared_bytes < shared_kb << 10)
    assert occupancy(arch, more_registers, threads, more_bytes).blocks < following.blocks


def test_no_next_block_where_registers_and_memory_are_not_the_limit() -> None:
    assert next_block("sm_90a", 32, 1024, 0) is None, "all 64 warps are there"
    assert next_block("sm_90a", 16, 32, 0) is None, "32 blocks are the most"


def test_a_block_is_near_where_a_quarter_less_is_enough() -> None:
    near, far = next_block("sm_90a", 165, 128, 0), next_block("sm_90a", 255, 256, 0)
    assert near
    assert far
    assert (near.registers, near.is_near, far.registers, far.is_near) == (128, True, 128, False)
    assert near.needs == "at most 128 registers per thread instead of 165"


def test_what_may_be_added_is_all_that_keeps_the_blocks() -> None:
    for registers, threads, shared in ((40, 256, 4096), (165, 128, 48 << 10), (32, 1024, 0)):
        spare = headroom("sm_90a", registers, threads, shared)
        assert spare is not None
        blocks = occupancy("sm_90a", registers, threads, shared).blocks
        assert occupancy("sm_90a", registers + spare.registers, threads, shared).blocks == blocks
        assert occupancy("sm_90a", registers, threads, shared + spare.shared_bytes).blocks == blocks
        assert occupancy("sm_90a", registers + spare.registers + 1, threads, shared).blocks < blocks
        assert occupancy("sm_90a", registers, threads, shared + spare.shared_bytes + 1).blocks < blocks
    assert headroom("sm_90a", 255, 1024, 0) is None, "no block fits"


@pytest.mark.parametrize(
    ("arch", "asked_kb", "shared_kb", "carveout_kb"),
    [
        ("sm_90a", 100, 40, 100),
        ("sm_90a", 32, 40, 64),  # a hint: a block must fit
        ("sm_90a", 32, 32, 64),  # with the KB that the system takes
        ("sm_90a", 0, 0, 0),
        ("sm_90a", 8, 400, 228),
        ("sm_75", 32, 32, 32),
        ("sm_70", 96, 8, 96),
    ],
)
def test_shared_memory_is_set_to_what_is_asked_for_or_a_block_takes(
    arch: str, asked_kb: int, shared_kb: int, carveout_kb: int
) -> None:
    assert carveout_of(arch, asked_kb, shared_kb << 10) == carveout_kb << 10


def test_a_size_that_an_sm_cannot_be_set_to_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"sm_89 has no shared memory of 132 KB: .* 0, 8, 16, 32, 64, 100$"):
        carveout_of("sm_89", 132, 0)
    with pytest.raises(UnknownName, match=r"it can be set to 32, 64$"):
        carveout_of("sm_75", 0, 0)
    assert all(one.shared_bytes >> 10 == one.carveouts_kb[-1] for one in ARCHITECTURES.values())


def test_fewer_blocks_fit_where_less_shared_memory_is_set() -> None:
    whole = occupancy("sm_90a", 32, 128, 40 << 10)
    less = occupancy("sm_90a", 32, 128, 40 << 10, 0, 100 << 10)
    assert (whole.blocks, less.blocks, less.limiters) == (5, 2, ("shared memory",))
    # 100 KB over 3 blocks are 33.25 KB in steps of 128 bytes, less the KB that the system takes of each
    following = next_block("sm_90a", 32, 128, 40 << 10, 0, 100 << 10)
    assert following is not None
    assert (following.blocks, following.shared_bytes) == (3, (33 << 10) + 256 - 1024)
    spare = headroom("sm_90a", 32, 128, 40 << 10, 0, 100 << 10)
    assert spare is not None
    assert spare.shared_bytes == 9 << 10, "100 KB over 2 blocks, less 1 KB each and 40"
