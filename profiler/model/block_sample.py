"""Which blocks of a launch are run so that the counts of all of them follow, and how far they do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from profiler.model.interpreter import BlockCounts, Execution, Grid, all_blocks
from profiler.model.machine import Array

_LONG = 16  # blocks along a dimension of which more than the ends are run
_GOLDEN = 0.618  # of the way: no round share, which a pattern of blocks might have too
_ALL = 12  # blocks of a grid that is run whole
_REFINED = 16  # knots along a dimension where counts are on no line
_SYSTEMATIC = 32  # blocks, evenly over the launch, where they follow no dimension alone
CountBlocks = Callable[[Array], BlockCounts]  # [n, 3] indices of blocks to what they executed


@dataclass(frozen=True)
class BlockSample:
    """Blocks of a launch that were run, and what they say of the others.

    Counts along one dimension of the grid lie on straight lines between the blocks that were run (`knots`);
    along the others they are equal.
    """

    counts: BlockCounts
    grid: Grid
    weights: Array  # how many blocks of the launch each block that was run stands for
    is_exact: (
        bool  # every block that was run beside those that say the line lies on it, and no branch is assumed
    )
    spread: float  # of a block's instructions: how far from the line the farthest of those is, relative
    dimension: int  # of the grid along which counts differ: 0 for x
    knots: tuple[tuple[int, int], ...]  # index along the dimension and number in `counts`, ascending

    @property
    def execution(self) -> Execution:
        """What the whole launch executed."""
        return self.counts.total(self.weights)

    @property
    def block_instructions(self) -> Array:
        """Warp instructions of every block of the launch, x fastest."""
        totals = self.counts.warps.sum(axis=1)
        where, number = (np.array(column) for column in zip(*self.knots, strict=True))
        indices = all_blocks(self.grid)[:, self.dimension]
        result: Array = np.interp(indices, where, totals[number])
        return result


def sample_blocks(grid: Grid, count: CountBlocks) -> BlockSample:
    """Run blocks at the ends and in the middle of each dimension, and more where they are on no line."""
    total = math.prod(grid)
    if total <= _ALL:
        return _run_whole(grid, count)
    axes = []
    for size in grid:
        wanted = {0, 1, size - 1}
        if size >= _LONG or size == max(grid):
            # Four neighbours: of what differs from block to block, or for every second or fourth, some do.
            wanted |= {*range(size // 2, size // 2 + 4), int(size * _GOLDEN), size - 2}
        axes.append(sorted(wanted & set(range(size))))
    chosen: dict[tuple[int, int, int], int] = {}
    for dimension, points in enumerate(axes):
        for point in points:
            index = [0, 0, 0]
            index[dimension] = point
            chosen.setdefault((index[0], index[1], index[2]), len(chosen))
    for block in _far_corner(grid):
        chosen.setdefault(block, len(chosen))
    counts = count(np.array(list(chosen)))
    vectors = _vectors(counts)
    varying = []
    for dimension, points in enumerate(axes):
        numbers = [chosen[_along(dimension, point)] for point in points]
        if (vectors[numbers] != vectors[numbers[0]]).any():
            varying.append(dimension)
    dimension = varying[0] if varying else int(np.argmax(grid))
    points = axes[dimension]
    knots = [(point, chosen[_along(dimension, point)]) for point in points]
    corner = [chosen[block] for block in _far_corner(grid)]
    at_end = [number for number in corner if counts.blocks[number][dimension] == grid[dimension] - 1]
    if len(varying) > 1 or (vectors[at_end] != vectors[knots[-1][1]]).any():
        return _run_systematically(grid, count)
    inner = knots[1:-1] if len(knots) > 4 else knots
    (first_at, first), (last_at, last_number) = inner[0], inner[-1]
    worst, are_alike = 0.0, True
    is_line = len(knots) > 4 or not varying
    costs = _costs(counts)
    for at, number in inner[1:-1]:
        share = (at - first_at) / (last_at - first_at)
        line = vectors[first] * (1 - share) + vectors[last_number] * share
        is_line &= bool(np.allclose(vectors[number], line, rtol=0, atol=1e-6))
        costs_line = costs[first] * (1 - share) + costs[last_number] * share
        are_alike &= bool(np.allclose(costs[number], costs_line, rtol=0, atol=1e-6))
        worst = max(worst, _relative(vectors[number], line, counts))
    if is_line:
        own = [knots[0], *inner, knots[-1]] if inner is not knots else knots
        weights = _weights(grid, dimension, dict.fromkeys(own), len(counts.blocks))
        others = [n for n, block in enumerate(counts.blocks) if block[dimension] in (0, points[-1])]
        ends = [knots[0][1] if counts.blocks[n][dimension] == 0 else knots[-1][1] for n in others]
        exact = not counts.assumed and are_alike and bool((costs[others] == costs[ends]).all())
        return BlockSample(counts, grid, weights, exact, worst, dimension, tuple(dict.fromkeys(own)))
    return _refine(grid, count, dimension)


def _along(dimension: int, point: int) -> tuple[int, int, int]:
    return (point if dimension == 0 else 0, point if dimension == 1 else 0, point if dimension == 2 else 0)


def _far_corner(grid: Grid) -> list[tuple[int, int, int]]:
    """The last block and its neighbours: what only long blocks do is seen to move along each dimension."""
    x, y, z = (size - 1 for size in grid)
    near = [(x - 1, y, z), (x, y - 1, z), (x, y, z - 1)]
    return [(x, y, z), *(block for block in near if min(block) >= 0)]


def _vectors(counts: BlockCounts) -> Array:
    """What each block executed, [n, counts]."""
    return np.concatenate([counts.warps, counts.active], axis=1).astype(np.float64)


def _costs(counts: BlockCounts) -> Array:
    """What the accesses of each block cost, which its addresses may change, [n, counts]."""
    costs: Array = counts.access_counts.reshape(-1, len(counts.blocks)).T.astype(np.float64)
    return costs


def _relative(vector: Array, line: Array, counts: BlockCounts) -> float:
    """How far the warp instructions of a block are from those of a line."""
    size = counts.warps.shape[1]
    return abs(float(vector[:size].sum() - line[:size].sum())) / max(1.0, float(vector[:size].sum()))


def _weights(grid: Grid, dimension: int, knots: Any, blocks: int) -> Array:
    """How many blocks each knot stands for, by straight lines between neighbours."""
    alike = math.prod(grid) // grid[dimension]
    where = np.array([at for at, _ in knots])
    weights = np.zeros(blocks)
    points = np.arange(grid[dimension])
    for position, (_, number) in enumerate(knots):
        hat = np.zeros(len(where))
        hat[position] = 1
        weights[number] += alike * float(np.interp(points, where, hat).sum())
    return weights


def _run_whole(grid: Grid, count: CountBlocks) -> BlockSample:
    counts = count(all_blocks(grid))
    number = len(counts.blocks)
    dimension = int(np.argmax(grid))
    knots = tuple((int(i), n) for n, i in enumerate(counts.blocks[:, dimension]))
    first = dict(reversed(knots))
    return BlockSample(
        counts, grid, np.ones(number), not counts.assumed, 0.0, dimension, tuple(sorted(first.items()))
    )


def _refine(grid: Grid, count: CountBlocks, dimension: int) -> BlockSample:
    """More knots along the dimension; how far each is from the line of its neighbours is the spread."""
    size = grid[dimension]
    points = sorted({0, size - 1, *(round(i * (size - 1) / (_REFINED - 1)) for i in range(_REFINED))})
    # What the traffic needs to see how addresses move along the other dimensions.
    others = [_along(other, 1) for other in range(3) if other != dimension and grid[other] > 1]
    others += [block for block in _far_corner(grid) if block != _along(dimension, size - 1)]
    counts = count(np.array([*(_along(dimension, point) for point in points), *others]))
    vectors = _vectors(counts)
    worst = 0.0
    for i in range(1, len(points) - 1):
        share = (points[i] - points[i - 1]) / (points[i + 1] - points[i - 1])
        line = vectors[i - 1] * (1 - share) + vectors[i + 1] * share
        worst = max(worst, _relative(vectors[i], line, counts))
    knots = tuple((point, number) for number, point in enumerate(points))
    is_exact = len(points) == size and not counts.assumed
    weights = _weights(grid, dimension, knots, len(counts.blocks))
    return BlockSample(counts, grid, weights, is_exact, worst, dimension, knots)


def _run_systematically(grid: Grid, count: CountBlocks) -> BlockSample:
    """Blocks evenly over the launch, each for as many; the spread is that of their instructions."""
    blocks = all_blocks(grid)
    numbers = np.unique(np.linspace(0, len(blocks) - 1, min(_SYSTEMATIC, len(blocks))).round().astype(int))
    counts = count(blocks[numbers])
    totals = counts.warps.sum(axis=1)
    spread = float(totals.std() / max(1.0, totals.mean()))
    weights = np.full(len(numbers), len(blocks) / len(numbers))
    dimension = int(np.argmax(grid))
    first: dict[int, int] = {}
    for number, at in enumerate(counts.blocks[:, dimension]):
        first.setdefault(int(at), number)
    return BlockSample(counts, grid, weights, False, spread, dimension, tuple(sorted(first.items())))
