"""Blocks that write given bytes are found with few runs, in the grids and layouts that kernels have."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from profiler.judge.block_search import WriterSearch, Written
from profiler.judge.footprint import Footprint
from profiler.judge.sampled_call import choose_blocks

Layout = Callable[[int, int, int], list[int]]  # a block's indices to the granules that it writes


class Launch:
    """A launch whose blocks write what a function says; counts what is run."""

    def __init__(self, grid: tuple[int, int, int], layout: Layout) -> None:
        self.grid, self.layout, self.runs = grid, layout, 0
        x, y, _ = grid
        self.blocks = [(i % x, i // x % y, i // (x * y)) for i in range(math.prod(grid))]
        self.size = max(max(layout(*block), default=0) for block in self.blocks) + 1

    def probe(self, blocks: np.ndarray) -> Written:
        self.runs += len(blocks)
        owner = np.full(self.size, -1, np.int32)
        firsts = np.full((len(blocks), 1), self.size, np.int64)
        for number, block in enumerate(blocks.tolist()):
            granules = self.layout(*block)
            owner[granules] = number
            firsts[number, 0] = min(granules, default=self.size)
        return Written(firsts, owner)

    def find(self, needed: list[int]) -> set[int]:
        search = WriterSearch(
            self.grid, [slice(0, self.size)], self.probe, np.random.default_rng(5), seconds=20
        )
        mask = np.zeros(self.size, bool)
        mask[needed] = True
        return set(search.find(mask).tolist())

    def writers(self, needed: list[int]) -> set[int]:
        wanted = set(needed)
        return {i for i, block in enumerate(self.blocks) if wanted & set(self.layout(*block))}


def rows(first: int, count: int = 8) -> list[int]:
    return list(range(first, first + count))


@pytest.mark.parametrize(
    ("grid", "layout"),
    [
        pytest.param((64, 8, 2), lambda x, y, z: rows(((z * 8 + y) * 64 + x) * 8), id="a tile per block"),
        pytest.param(
            (32, 4, 6),
            lambda x, y, z: rows(((z % 3 * 2 + z // 3) * 128 + y * 32 + x) * 8),
            id="z is two things",
        ),
        pytest.param((4096, 1, 1), lambda x, y, z: rows(x * 8), id="one axis"),
        pytest.param(
            (2048, 1, 1),
            lambda x, y, z: rows((x // 64 * 64 + 63 - x % 64) * 8),
            id="last rows of a head first",
        ),
        pytest.param(
            (64, 16, 1),
            lambda x, y, z: [r * 128 + y * 8 + i for r in range(4 * x, 4 * x + 4) for i in range(8)],
            id="stripes",
        ),
        pytest.param(
            (300, 2, 1), lambda x, y, z: rows((y * 300 + x) * 8) if x % 2 else [], id="half are idle"
        ),
    ],
)
def test_the_blocks_that_write_what_is_needed_are_found_with_few_runs(
    grid: tuple[int, int, int], layout: Layout
) -> None:
    launch = Launch(grid, layout)
    size = launch.size
    needed = [size // 3, size // 3 + 1, size // 2 + 5, size - 3]
    assert launch.writers(needed)
    assert launch.find(needed) == launch.writers(needed)
    assert launch.runs < max(160, len(launch.blocks) // 4)


def test_all_blocks_of_a_launch_are_found_where_all_are_needed() -> None:
    launch = Launch((1000, 1, 1), lambda x, y, z: rows(x * 4, 4))
    assert launch.find(list(range(launch.size))) == set(range(1000))


def test_what_nobody_writes_is_given_up() -> None:
    launch = Launch((500, 2, 1), lambda x, y, z: rows((y * 500 + x) * 16, 8))
    assert launch.find([8 + 16 * 77]) == set()
    assert launch.runs < 400


def test_what_a_later_launch_reads_is_run_of_the_earlier_ones() -> None:
    """Three launches: the second reads a tile of the first, the third a tile of the second."""
    grids = [(16, 1, 1), (16, 1, 1), (16, 1, 1)]
    ranges = [(0, 128), (128, 128), (256, 128)]  # bytes: the output, two buffers

    def probe(number: int, blocks: np.ndarray) -> Footprint:
        footprint = Footprint(ranges, 384, len(blocks))
        for position, (x, _, _) in enumerate(blocks.tolist()):
            target = footprint.ranges[2 - number].start + 4 * x
            footprint.owner[target : target + 4] = position
            footprint.firsts[position, 2 - number] = target
            if number:
                source = footprint.ranges[3 - number].start + 4 * x
                footprint.is_read[source : source + 4] = True
        return footprint

    slices = Footprint(ranges, 384, 0).ranges
    drawn = {2: np.array([[5, 0, 0], [11, 0, 0]])}
    chosen = choose_blocks(probe, grids, slices, 0, drawn, np.random.default_rng(1), seconds=20)
    assert [[x for x, _, _ in blocks.tolist()] for blocks in chosen.blocks] == [[5, 11]] * 3
    assert chosen.wrote == {2: 8}
