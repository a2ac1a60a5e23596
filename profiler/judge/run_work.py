"""Whether the blocks from which a launch's time follows do as much as others, which were run with values.

The model counts a few blocks of a launch. Code that does less in these alone would have a time that is not
the launch's: the blocks that were drawn at random and compared with the reference say how much others do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.model.accesses import COUNTED
from profiler.model.block_sample import BlockSample
from profiler.model.interpreter import Execution

Array = NDArray[Any]
WORK = ("instructions", "sectors", "wavefronts")
# Without values a few instructions more or less are counted: slow paths of divisions, branches on numbers.
_TOLERATED = 1.25
_MOST_BLOCKS = 2  # that are named where they do too little


def work_of(execution: Execution) -> list[int]:
    """What blocks executed together, in the order of WORK."""
    accesses = execution.accesses.values()
    sums = [sum(getattr(counts, name) for counts in accesses) for name in WORK[1:]]
    return [int(execution.warps.sum()), *map(int, sums)]


def find_doubt(executed: Mapping[str, Any], sample: BlockSample) -> dict[str, Any] | None:
    """What is doubtful about a sample, and the counted blocks that do least; None where nothing is.

    executed: `blocks`, [n, 3], that were run with values, and their `work` together, in the order of WORK.
    """
    blocks, work = np.array(executed["blocks"], np.int64).reshape(-1, 3), executed["work"]
    if not len(blocks) or len(sample.counts.blocks) == math.prod(sample.grid):
        return None
    counted = _work_by_block(sample)
    expected = _expected(sample, counted, blocks)
    for name, done, most in zip(WORK, work, expected, strict=True):
        if done > most * _TOLERATED + len(blocks):
            least = np.argsort(counted[:, 0], kind="stable")[:_MOST_BLOCKS]
            return {
                "words": f"{len(blocks)} blocks execute {done:,} {name}, and by those from which the time "
                f"follows they would {most:,.0f}",
                "blocks": sample.counts.blocks[least].tolist(),
            }
    return None


def _work_by_block(sample: BlockSample) -> Array:
    """[counted blocks, WORK]"""
    by_name = sample.counts.access_counts.sum(axis=0)  # [COUNTED, blocks]
    columns = [by_name[COUNTED.index(name)] for name in WORK[1:]]
    return np.stack([sample.counts.warps.sum(axis=1), *columns], axis=1)


def _expected(sample: BlockSample, counted: Array, blocks: Array) -> Sequence[float]:
    """The work of blocks together as the sample has it, in the order of WORK."""
    if np.ptp(sample.weights) == 0:  # evenly over the launch: they lie on no line
        most: Array = counted.max(axis=0) * len(blocks)
        return [float(value) for value in most]
    where, numbers = (np.array(column) for column in zip(*sample.knots, strict=True))
    at = blocks[:, sample.dimension]
    return [float(np.interp(at, where, counted[numbers, i]).sum()) for i in range(len(WORK))]
