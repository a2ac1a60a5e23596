"""What the blocks of a launch read and write of the arrays that launches of a call share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.judge.machine_races import GRANULE
from profiler.model.machine import BlockState, Lanes, MemoryObserver

Array = NDArray[Any]
NOBODY = -1


def granules_of(first: int, size: int) -> slice:
    """The granules of so many bytes of the memory."""
    return slice(first // GRANULE, -(-(first + size) // GRANULE))


class Footprint:
    """Reads and writes of one launch in some ranges of its memory; `watch` is for each machine of it."""

    def __init__(self, ranges: Sequence[tuple[int, int]], memory_bytes: int, blocks: int) -> None:
        """ranges: first byte and size of the arrays. blocks: how many will be run."""
        count = -(-memory_bytes // GRANULE) + 1
        self.ranges = [granules_of(first, size) for first, size in ranges]
        self.range_of = np.full(count, NOBODY, np.int8)
        for number, part in enumerate(self.ranges):
            self.range_of[part] = number
        self.owner = np.full(count, NOBODY, np.int32)  # the block that wrote it last, in the order of the run
        self.is_read = np.zeros(count, bool)  # by a block that had not written it before
        self.firsts = np.full(
            (blocks, len(ranges)), count, np.int64
        )  # of what each block writes; count: none
        self._blocks_before = 0

    @property
    def is_written(self) -> Array:
        """Whether any block wrote it."""
        written: Array = self.owner != NOBODY
        return written

    def watch(self, machine: BlockState) -> None:
        """See the accesses of a machine's blocks, after whoever sees them already."""
        own = _BlockFootprint(self, machine, self._blocks_before)
        before = machine.memory_observer
        machine.memory_observer = own if before is None else _Several((before, own))
        self._blocks_before += machine.blocks


class _BlockFootprint:
    """The blocks of one machine."""

    def __init__(self, launch: Footprint, machine: BlockState, blocks_before: int) -> None:
        self._launch = launch
        self._warps = machine.block_threads // 32
        self._before = blocks_before

    def memory(self, kind: str, s: Lanes, offsets: Array, width: int, position: int) -> None:
        """See MemoryObserver."""
        launch = self._launch
        granules = offsets // GRANULE
        watched = launch.range_of[granules] != NOBODY
        if not watched.any():
            return
        granules = granules[watched]
        blocks = s.lane_warps[watched] // self._warps + self._before
        if kind == "store":
            np.minimum.at(launch.firsts, (blocks, launch.range_of[granules]), granules)
        if (count := max(1, width // GRANULE)) > 1:
            granules = (granules[:, None] + np.arange(count)).reshape(-1)
            blocks = np.repeat(blocks, count)
        if kind == "store":
            launch.owner[granules] = blocks
        else:
            launch.is_read[granules[launch.owner[granules] != blocks]] = True

    def shared(self, kind: str, s: Lanes, addresses: Array, width: int, position: int) -> None:
        """See MemoryObserver."""

    def barrier(self, blocks: Array) -> None:
        """See MemoryObserver."""

    def commit_copies(self, s: Lanes) -> None:
        """See MemoryObserver."""

    def wait_copies(self, s: Lanes, keep: int) -> None:
        """See MemoryObserver."""


class _Several:
    """Tells several observers, in their order."""

    def __init__(self, observers: Sequence[MemoryObserver]) -> None:
        self._observers = observers

    def shared(self, kind: str, s: Lanes, addresses: Array, width: int, position: int) -> None:
        """See MemoryObserver."""
        for observer in self._observers:
            observer.shared(kind, s, addresses, width, position)

    def memory(self, kind: str, s: Lanes, offsets: Array, width: int, position: int) -> None:
        """See MemoryObserver."""
        for observer in self._observers:
            observer.memory(kind, s, offsets, width, position)

    def barrier(self, blocks: Array) -> None:
        """See MemoryObserver."""
        for observer in self._observers:
            observer.barrier(blocks)

    def commit_copies(self, s: Lanes) -> None:
        """See MemoryObserver."""
        for observer in self._observers:
            observer.commit_copies(s)

    def wait_copies(self, s: Lanes, keep: int) -> None:
        """See MemoryObserver."""
        for observer in self._observers:
            observer.wait_copies(s, keep)
