"""Some blocks of a call, and those of earlier launches whose results they read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.judge.block_search import MOST_GRID, WriterSearch, Written
from profiler.judge.footprint import NOBODY, Footprint

Array = NDArray[Any]
Run = Callable[[int, Array], Footprint]  # number of the launch, blocks [n, 3]


@dataclass(frozen=True)
class ChosenBlocks:
    """The blocks to run of each launch."""

    blocks: tuple[Array, ...]  # [n, 3] of each launch
    wrote: Mapping[int, int]  # granules of the output that the drawn blocks of a launch write


def choose_blocks(
    probe: Run,
    grids: Sequence[tuple[int, int, int]],
    ranges: Sequence[slice],
    output: int,
    drawn: Mapping[int, Array],
    rng: np.random.Generator,
    seconds: float,
) -> ChosenBlocks:
    """Find what has to be run for drawn blocks to have what a whole call gives them.

    probe: runs blocks of a launch on memory that nobody will look at. ranges: granules of the output and of
    the scratch buffers; output: which is the output. drawn: blocks by launch, [n, 3], of launches that may
    write the output. seconds: of processor time to search in. Raises NoModel as a run does.
    """
    searches: dict[int, WriterSearch] = {}
    until = time.process_time() + seconds

    def find(number: int, needed: Array) -> Array:
        """Blocks of a launch that write some of what is needed, by their number in the grid."""
        x, y, z = grids[number]
        if not needed.any() or x * y * z > MOST_GRID:
            return np.zeros(0, np.int64)
        if number not in searches:

            def written(blocks: Array) -> Written:
                footprint = probe(number, blocks)
                return Written(footprint.firsts, footprint.owner)

            left = max(0.0, until - time.process_time()) / 2
            searches[number] = WriterSearch(grids[number], ranges, written, rng, left)
        return searches[number].find(needed)

    chosen = [np.zeros(0, np.int64) for _ in grids]
    wrote: dict[int, int] = {}
    needed: Array | None = None
    for number in sorted(drawn):
        chosen[number] = np.union1d(chosen[number], _numbers(drawn[number], grids[number]))
        footprint = probe(number, drawn[number])
        written = footprint.is_written & (footprint.range_of == output)
        wrote[number] = int(written.sum())
        for later in sorted(drawn):  # what it writes there may not be the end of it
            if later > number:
                chosen[later] = np.union1d(chosen[later], find(later, written))
        needed = np.zeros(len(footprint.owner), bool)
    assert needed is not None
    for number in reversed(range(len(grids))):
        chosen[number] = np.union1d(chosen[number], find(number, needed))
        if len(chosen[number]):
            footprint = probe(number, _places(chosen[number], grids[number]))
            needed &= ~footprint.is_written
            needed |= footprint.is_read
    blocks = tuple(_places(own, grid) for own, grid in zip(chosen, grids, strict=True))
    return ChosenBlocks(blocks, wrote)


@dataclass(frozen=True)
class SampledRun:
    """What a run of chosen blocks showed; the arrays are in its memory."""

    missing: Array  # granules that were read before anything of this call wrote them
    writer: Array  # [granules], the launch that wrote each last; NOBODY


def run_chosen(run: Run, chosen: ChosenBlocks) -> SampledRun:
    """Run chosen blocks, launch after launch."""
    missing: Array | None = None
    writer = np.zeros(0, np.int8)
    for number, blocks in enumerate(chosen.blocks):
        if not len(blocks):
            continue
        footprint = run(number, blocks)
        if missing is None:
            missing = np.zeros(len(footprint.owner), bool)
            writer = np.full(len(footprint.owner), NOBODY, np.int8)
        missing |= footprint.is_read & (writer == NOBODY)
        writer[footprint.is_written] = number
    assert missing is not None
    return SampledRun(missing, writer)


def _numbers(blocks: Array, grid: tuple[int, int, int]) -> Array:
    x, y, _ = grid
    numbers: Array = blocks[:, 0] + x * (blocks[:, 1] + y * blocks[:, 2])
    return numbers


def _places(numbers: Array, grid: tuple[int, int, int]) -> Array:
    x, y, _ = grid
    return np.stack([numbers % x, numbers // x % y, numbers // (x * y)], axis=1)
