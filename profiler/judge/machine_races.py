"""Races in machine code: accesses of two threads to the same bytes that no barrier orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.judge.poison import filled
from profiler.model.machine import BlockState, Lanes

Array = NDArray[Any]
GRANULE = 2  # bytes that are told apart: two halves of a word may be two threads'
_MOST_FINDINGS = 8
_NOBODY = -1
Describe = Callable[[int], str]  # a position in the code to words: file and line, or the instruction


@dataclass
class _Shadow:
    """Who last wrote and read each granule of a memory, and in which interval between barriers."""

    writer: Array  # warp, over all blocks of the launch; _NOBODY
    write_epoch: Array
    write_place: Array  # position in the code
    reader: Array
    read_epoch: Array
    read_many: Array  # several warps read it in that interval
    pending: Array  # the group of an asynchronous copy that is on its way; 0: none

    @classmethod
    def of(cls, size: int) -> _Shadow:
        count = -(-size // GRANULE) + 1
        return cls(
            np.full(count, _NOBODY, np.int32),
            np.zeros(count, np.int32),
            np.zeros(count, np.int32),
            np.full(count, _NOBODY, np.int32),
            np.zeros(count, np.int32),
            np.zeros(count, bool),
            np.zeros(count, np.int32),
        )


class LaunchRaces:
    """Looks for races in one launch; `prepare` is for run_blocks.

    Between threads of a warp the order of the code is taken as theirs: machine code has no word for where
    lanes meet while they run together. Threads of two warps of a block are ordered by a barrier of the block,
    those of two blocks by nothing. Global memory is looked at where a launch may write it. An asynchronous
    copy is a write when its group has been waited for.
    """

    def __init__(
        self, ranges: list[tuple[int, int]], memory_bytes: int, describe: Describe, leftover: int
    ) -> None:
        """ranges: first and last offset of what may be written, in bytes of the memory.

        leftover: the poison (poison.filled) of what blocks find and nobody wrote.
        """
        self.findings: dict[str, None] = {}
        self._describe = describe
        self.is_watched = np.zeros(-(-memory_bytes // GRANULE) + 1, bool)
        for first, last in ranges:
            self.is_watched[first // GRANULE : -(-last // GRANULE)] = True
        self.memory = _Shadow.of(memory_bytes)
        self._blocks_before = 0
        self._leftover = leftover

    def prepare(self, machine: BlockState) -> None:
        """Watch the blocks of a machine. What they have not written holds anything."""
        registers = machine.R[:-1]  # the last one is zero
        for array in (machine.shared, machine.local, registers):
            array[...] = filled(array.nbytes, self._leftover).view(array.dtype).reshape(array.shape)
        machine.memory_observer = _BlockRaces(self, machine, self._blocks_before)
        self._blocks_before += machine.blocks

    def report(self, kind: str, space: str, here: int, there: int) -> None:
        """Keep what was found at two places, each pair once."""
        if len(self.findings) < _MOST_FINDINGS:
            first, second = self._describe(there), self._describe(here)
            where = f"{first} and {second}" if first != second else first
            self.findings.setdefault(f"{kind} in {space} memory: {where}")


class _BlockRaces:
    """The blocks of one machine."""

    def __init__(self, launch: LaunchRaces, machine: BlockState, blocks_before: int) -> None:
        self._launch, self._machine = launch, machine
        self._warps = machine.block_threads // 32
        self._first_warp = blocks_before * self._warps
        self._shared = _Shadow.of(machine.blocks * machine.shared_stride)
        self._epoch = np.ones(machine.blocks, np.int32)
        self._groups = np.ones(machine.warps, np.int32)  # the group that each warp's copies are in
        self._landed = np.zeros(machine.warps, np.int32)
        self._copies: list[tuple[Array, Array, Array]] = []  # warps, groups, granules

    def barrier(self, blocks: Array) -> None:
        """See MemoryObserver."""
        self._epoch[blocks] += 1

    def commit_copies(self, s: Lanes) -> None:
        """See MemoryObserver."""
        self._groups[s.warp_ids] += 1

    def wait_copies(self, s: Lanes, keep: int) -> None:
        """See MemoryObserver."""
        warps = s.warp_ids
        self._landed[warps] = np.maximum(self._landed[warps], self._groups[warps] - 1 - keep)
        still = []
        for copied, groups, granules in self._copies:
            has_landed = groups <= self._landed[copied]
            done = granules[has_landed]
            shadow = self._shared
            mine = shadow.pending[done] == groups[has_landed]
            done, owners = done[mine], copied[has_landed][mine]
            shadow.pending[done] = 0
            # To others it is there after the next barrier.
            shadow.write_epoch[done] = self._epoch[owners // self._warps]
            if not has_landed.all():
                left = ~has_landed
                still.append((copied[left], groups[left], granules[left]))
        self._copies = still

    def shared(self, kind: str, s: Lanes, addresses: Array, width: int, position: int) -> None:
        """See MemoryObserver."""
        machine = self._machine
        offsets = addresses + machine.block_of[s.index] * machine.shared_stride
        warps, granules = self._spread(s, offsets, width)
        epochs = self._epoch[warps // self._warps]
        shadow = self._shared
        on_its_way = shadow.pending[granules] > 0
        if on_its_way.any():
            place = int(shadow.write_place[granules[on_its_way][0]])
            self._launch.report("a copy that was not waited for", "shared", position, place)
        self._check(shadow, "shared", kind != "load", warps, epochs, granules, position, one_block=True)
        if kind == "copy":
            groups = self._groups[warps]
            shadow.pending[granules] = groups
            self._copies.append((warps, groups, granules))

    def memory(self, kind: str, s: Lanes, offsets: Array, width: int, position: int) -> None:
        """See MemoryObserver."""
        warps, granules = self._spread(s, offsets, width)
        watched = self._launch.is_watched[granules]
        if not watched.any():
            return
        warps, granules = warps[watched], granules[watched]
        epochs = self._epoch[warps // self._warps]
        shadow = self._launch.memory
        writes = kind == "store"
        self._check(shadow, "global", writes, warps, epochs, granules, position, one_block=False)

    def _spread(self, s: Lanes, offsets: Array, width: int) -> tuple[Array, Array]:
        """The warp and the granule of each part of the accesses."""
        count = max(1, width // GRANULE)
        granules = offsets // GRANULE
        if count == 1:
            return s.lane_warps, granules
        spread: Array = (granules[:, None] + np.arange(count)).reshape(-1)
        return np.repeat(s.lane_warps, count), spread

    def _check(
        self,
        shadow: _Shadow,
        space: str,
        writes: bool,
        warps: Array,
        epochs: Array,
        granules: Array,
        position: int,
        *,
        one_block: bool,
    ) -> None:
        """Compare with what was there before, then note this access."""
        own = warps + self._first_warp
        writer = shadow.writer[granules]
        other = (writer != _NOBODY) & (writer != own)
        unordered = shadow.write_epoch[granules] == epochs
        if not one_block:
            unordered |= writer // self._warps != own // self._warps
        if (clash := other & unordered).any():
            kind = "a race of two writes" if writes else "a race of a write and a read"
            self._launch.report(kind, space, position, int(shadow.write_place[granules[clash][0]]))
        if writes:
            reader = shadow.reader[granules]
            same = shadow.read_epoch[granules] == epochs
            if not one_block:
                same |= (reader != _NOBODY) & (reader // self._warps != own // self._warps)
            clash = (reader != _NOBODY) & same & ((reader != own) | shadow.read_many[granules])
            if clash.any():
                self._launch.report("a race of a read and a write", space, position, position)
            shadow.writer[granules] = own
            if (shadow.writer[granules] != own).any():  # several warps write it in one step
                self._launch.report("a race of two writes", space, position, position)
            shadow.write_epoch[granules] = epochs
            shadow.write_place[granules] = position
        else:
            many = (shadow.reader[granules] != own) & (shadow.read_epoch[granules] == epochs)
            many &= shadow.reader[granules] != _NOBODY
            many |= shadow.read_many[granules] & (shadow.read_epoch[granules] == epochs)
            shadow.read_many[granules] = many
            shadow.reader[granules] = own
            shadow.read_many[granules] |= shadow.reader[granules] != own
            shadow.read_epoch[granules] = epochs
