"""Traffic of programs of a few instructions, against sums by hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from profiler.model.block_sample import BlockSample, sample_blocks
from profiler.model.cubin import KernelImage, Parameter
from profiler.model.interpreter import count_blocks, load_program
from profiler.model.memory import GlobalMemory
from profiler.model.traffic import Traffic, count_hits, estimate_traffic

IMAGE = KernelImage("k", (Parameter(0, 0, 8),), 0x210, {}, 0)
HEAD = (
    "S2R R0, SR_TID.X",
    "S2R R7, SR_CTAID.X",
    "LDC.64 R2, c[0x0][0x210]",
    "IMAD R0, R7, 0x20, R0",
    "IMAD.WIDE R2, R0, 0x4, R2",
)


def sampled(lines: Sequence[str], blocks: int) -> BlockSample:
    """A kernel of one warp a block, whose R2 is the address of the thread's own word."""
    memory = GlobalMemory([np.zeros(32 * blocks + 64, np.uint32)])
    program = load_program(IMAGE, [(16 * position, line) for position, line in enumerate(lines)])
    grid = (blocks, 1, 1)
    parameters = [struct.pack("<Q", memory.addresses[0])]
    count = partial(
        count_blocks, program, grid, (32, 1, 1), 0, parameters, memory, with_values=False, with_trace=True
    )
    return sample_blocks(grid, count)


def traffic(lines: Sequence[str], blocks: int = 100, l2_bytes: int = 1 << 20) -> Traffic:
    return estimate_traffic(sampled(lines, blocks), 0, 4, 2, 32 << 10, l2_bytes)


def test_what_each_thread_reads_twice_hits_l1_once() -> None:
    found = traffic((*HEAD, "LDG.E R5, [R2.64]", "LDG.E R6, [R2.64]", "EXIT"))
    assert found.l1_hit_rate == 0.5
    assert found.l2_load_bytes == found.unique_load_bytes == found.dram_read_bytes == 100 * 128
    assert found.l2_load_range == (100 * 128, 2 * 100 * 128)
    assert found.l2_store_bytes == 0


def test_a_strong_load_passes_l1() -> None:
    found = traffic((*HEAD, "LDG.E.STRONG.GPU R5, [R2.64]", "LDG.E.STRONG.GPU R6, [R2.64]", "EXIT"))
    assert found.l1_hit_rate is None
    assert found.l2_load_bytes == 2 * 100 * 128
    assert found.dram_read_bytes == 100 * 128


def test_what_the_next_block_reads_again_is_in_l2_where_there_is_room() -> None:
    """Each block reads its own 128 bytes and those of the next one."""
    lines = (*HEAD, "LDG.E R5, [R2.64]", "LDG.E R6, [R2.64+0x80]", "EXIT")
    found = traffic(lines)
    assert found.unique_load_bytes == 101 * 128
    assert found.dram_read_range == (101 * 128, (100 + 13) * 128)  # 13 waves of 8 blocks, the last of 4
    assert found.dram_read_bytes == 101 * 128


@pytest.mark.slow
def test_what_is_written_leaves_l2_where_there_is_no_room() -> None:
    lines = (*HEAD, "STG.E [R2.64], R0", "EXIT")
    small, large = traffic(lines, 8192, l2_bytes=64 << 10), traffic(lines, 8192)
    assert small.l2_store_bytes == small.unique_store_bytes == large.unique_store_bytes == 1 << 20
    assert large.dram_write_bytes == 0
    assert (1 << 20) - (128 << 10) <= small.dram_write_bytes <= 1 << 20
    assert small.dram_write_range[0] <= small.dram_write_bytes <= small.dram_write_range[1] == 1 << 20


def test_the_last_block_may_do_less() -> None:
    """Only the blocks below 99 of 100 store."""
    lines = (*HEAD, "ISETP.GE.AND P0, PT, R7, 0x63, PT", "@P0 EXIT", "STG.E [R2.64], R0", "EXIT")
    sample = sampled(lines, 100)
    assert sample.is_exact
    assert sample.execution.warps[-2:].tolist() == [99, 99]
    assert sample.execution.warps[0] == sample.execution.blocks == 100
    assert sample.block_instructions.tolist() == [9] * 99 + [7]
    assert traffic(lines).l2_store_bytes == 99 * 128


@pytest.mark.parametrize("period", [8, 3])
def test_blocks_on_no_line_are_an_estimate_with_a_spread(period: int) -> None:
    """Blocks with some bits of their number set execute more."""
    mask = f"{period:#x}"
    lines = (*HEAD, f"LOP3.LUT P0, RZ, R7, {mask}, RZ, 0xc0, !PT", "@P0 EXIT", *["NOP"] * 20, "EXIT")
    sample = sampled(lines, 100)
    assert not sample.is_exact
    assert sample.spread > 0
    assert len(sample.counts.blocks) < 100


def test_least_recently_used_lines_leave_the_cache_first() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        way = rng.integers(0, int(rng.integers(4, 300)), int(rng.integers(0, 150)))
        room = int(rng.integers(1, 40))
        cache: dict[int, set[int]] = {}  # the line used last is the last
        hits = 0
        for line, sector in zip((way >> 2).tolist(), (way & 3).tolist(), strict=True):
            sectors = cache.pop(line, set())
            hits += sector in sectors
            cache[line] = sectors | {sector}
            if len(cache) > room:
                del cache[next(iter(cache))]
        lines, numbers = np.unique(way >> 2, return_inverse=True)
        assert count_hits(numbers.astype(np.int64), way & 3, len(lines), room) == hits
