"""Which blocks of a launch write given bytes: looked for with few runs, where a launch has many blocks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MOST_GRID = 1 << 21  # blocks of a launch that are looked through
_MOST_RUN = 1 << 13  # blocks that are run in a search
_MOST_TARGETS = 1 << 12  # in a round
_WHOLE_AXIS, _POINTS = 40, 16  # an axis is tried whole up to so many blocks, else at so many points
_AT_RANDOM = 12
_ROUNDS = 10
_NEAR, _FAR = 2, 12  # blocks before a target that are tried; where that brought nothing
_UNKNOWN = -1  # of a block that was not run


@dataclass(frozen=True)
class Written:
    """What some blocks write."""

    firsts: Array  # [blocks, ranges], the first granule of each range; the number of granules: none
    owner: Array  # [granules], the position among the blocks of who wrote it last; -1: nobody


class WriterSearch:
    """The blocks of one launch that write given granules of some ranges.

    Where a block begins to write is taken for a sum over the axes of the grid, learned along each of them and
    put right by every block that is run. What a search finds was run; what it does not find stays unknown.
    """

    def __init__(
        self,
        grid: tuple[int, int, int],
        ranges: Sequence[slice],
        probe: Callable[[Array], Written],
        rng: np.random.Generator,
        seconds: float,
    ) -> None:
        """ranges: granules. probe: runs blocks, [n, 3]. seconds: of processor time to search in."""
        self._shape = grid
        self._ranges, self._probe, self._rng = ranges, probe, rng
        self._until = time.process_time() + seconds
        self._starts = np.full((math.prod(grid), len(ranges)), _UNKNOWN, np.int64)
        self._owner: Array | None = None  # [granules], the block by its number in the grid
        self._runs = 0

    def find(self, needed: Array) -> Array:
        """The numbers in the grid, x first, of blocks that write granules out of `needed` (bool), sorted."""
        if self._owner is None:
            self._look_around(needed)
        assert self._owner is not None
        depth = _NEAR
        for _ in range(_ROUNDS):
            missing = needed & (self._owner < 0)
            left = int(missing.sum())
            if not left or self._runs >= _MOST_RUN or time.process_time() > self._until:
                break
            proposed = np.unique(np.concatenate([*self._proposals(missing, depth), np.zeros(0, np.int64)]))
            proposed = proposed[self._starts[proposed, 0] == _UNKNOWN][: _MOST_RUN - self._runs]
            if len(proposed):
                self._run(proposed)
            if int((needed & (self._owner < 0)).sum()) == left:
                if depth == _FAR:
                    break
                depth = _FAR
            else:
                depth = _NEAR
        owners: Array = np.unique(self._owner[needed & (self._owner >= 0)])
        return owners

    def _look_around(self, needed: Array) -> None:
        """Run a few blocks anywhere, then along each axis through one that writes what is needed."""
        count = len(self._starts)
        numbers = [0, count - 1, *self._rng.integers(count, size=min(_AT_RANDOM, count))]
        self._run(np.unique(np.array(numbers, np.int64)))
        wanted = [number for number, part in enumerate(self._ranges) if needed[part].any()]
        writes = (self._starts[:, wanted] >= 0) & (self._starts[:, wanted] < len(needed))
        self._base = int(np.argmax(writes.any(axis=1)))
        line = np.concatenate([self._line(axis) for axis in range(3)])
        line = np.unique(line)
        self._run(line[self._starts[line, 0] == _UNKNOWN])

    def _line(self, axis: int) -> Array:
        """Blocks along an axis through the base."""
        extent = self._shape[axis]
        place = self._places(np.array([self._base]))[0]
        if extent <= _WHOLE_AXIS:
            chosen = np.arange(extent)
        else:
            near = place[axis] + np.array([-2, -1, 1, 2])
            chosen = np.concatenate([np.linspace(0, extent - 1, _POINTS).astype(int), near])
            chosen = np.unique(chosen[(chosen >= 0) & (chosen < extent)])
        places = np.tile(place, (len(chosen), 1))
        places[:, axis] = chosen
        return self._numbers(places)

    def _proposals(self, missing: Array, depth: int) -> Iterator[Array]:
        """Blocks that may write what is missing, by range."""
        assert self._owner is not None
        for number, part in enumerate(self._ranges):
            at = np.flatnonzero(missing[part]) + part.start
            starts = self._starts[:, number]
            known = np.flatnonzero((starts >= 0) & (starts < len(missing)))
            if not len(at) or not len(known):
                continue
            extent = max(1, int((self._owner[part] >= 0).sum()) // len(known))
            targets = at[np.diff(at // extent, prepend=-1) != 0][:_MOST_TARGETS]
            begins = self._predicted(number, len(missing))
            order = np.argsort(begins, kind="stable")
            last = np.searchsorted(begins[order], targets, side="right") - 1
            for back in range(depth):
                yield order[np.clip(last - back, 0, len(order) - 1)]
            # Next to one that is known, in either direction: neighbours often write one after the other.
            by_start = known[np.argsort(starts[known], kind="stable")]
            before = np.searchsorted(starts[by_start], targets, side="right") - 1
            for beside in (0, 1):
                near = by_start[np.clip(before + beside, 0, len(by_start) - 1)]
                steps = (targets - starts[near]) // extent
                for block in (near + steps, near - steps):
                    yield block[(block >= 0) & (block < len(starts))]

    def _predicted(self, number: int, nothing: int) -> Array:
        """The first granule of a range that each block writes, as it follows from those that were run."""
        starts = self._starts[:, number]
        base = int(starts[self._base])
        if not 0 <= base < nothing:
            base = 0
        total: Array = np.full(self._shape[::-1], base, np.int64)
        for axis in range(3):
            line = self._line(axis)
            values = starts[line]
            known = (values >= 0) & (values < nothing)
            if known.any():
                along = np.arange(self._shape[axis])
                steps = np.interp(along, self._places(line[known])[:, axis], values[known] - base)
                own = [1, 1, 1]
                own[2 - axis] = -1
                total += steps.astype(np.int64).reshape(own)
        flat: Array = total.reshape(-1)
        is_run = starts != _UNKNOWN
        flat[is_run] = starts[is_run]
        return flat

    def _run(self, numbers: Array) -> None:
        written = self._probe(self._places(numbers))
        self._starts[numbers] = written.firsts
        if self._owner is None:
            self._owner = np.full(len(written.owner), -1, np.int64)
        is_written = written.owner >= 0
        self._owner[is_written] = numbers[written.owner[is_written]]
        self._runs += len(numbers)

    def _places(self, numbers: Array) -> Array:
        x, y, _ = self._shape
        return np.stack([numbers % x, numbers // x % y, numbers // (x * y)], axis=1)

    def _numbers(self, places: Array) -> Array:
        x, y, _ = self._shape
        numbers: Array = places[:, 0] + x * (places[:, 1] + y * places[:, 2])
        return numbers
