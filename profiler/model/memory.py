"""Global memory as a launch sees it, and what accesses cost: sectors, lines, wavefronts of the banks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SECTOR, LINE = 32, 128
BANKS = 32
START = 0x7F00_0000_0000  # where the first allocation lies
ALIGNMENT = 512  # of an allocation, as cudaMalloc gives it
GAP = 4096  # free bytes between two, so that an access past one's end is seen
_GRANULE = 16
WINDOW_SHIFT = 24


class OutOfBounds(Exception):
    """An access to global memory outside of every array."""


class GlobalMemory:
    """The arrays of a launch, each at an address of its own."""

    def __init__(self, arrays: list[Array], start: int = START, gaps: Sequence[int] = ()) -> None:
        """start: before the first of them. gaps: free bytes before each array. All are multiples of 512."""
        self.start = start
        self.own = slice(0, 0)  # bytes that the code brought along
        # What generic addresses of local and of shared memory have above their lower 24 bits.
        self.local_window = (start >> WINDOW_SHIFT) - 2
        self.shared_window = self.local_window - 1
        self.addresses: list[int] = []
        size = 0
        for number, array in enumerate(arrays):
            size += gaps[number] if gaps else GAP
            self.addresses.append(start + size)
            size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        size += GAP
        self.bytes = np.zeros(size, np.uint8)
        self._is_allocated = np.zeros(size // _GRANULE + 1, bool)
        self._views: dict[int, Array] = {
            1: self.bytes,
            2: self.bytes.view(np.uint16),
            4: self.bytes.view(np.uint32),
        }
        for array, address in zip(arrays, self.addresses, strict=True):
            first = address - start
            self.bytes[first : first + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self._is_allocated[first // _GRANULE : -(-(first + array.nbytes) // _GRANULE)] = True

    def read_array(self, index: int, like: Array) -> Array:
        """What an array holds now, in the type and shape of another one."""
        start = self.addresses[index] - self.start
        return self.bytes[start : start + like.nbytes].view(like.dtype).reshape(like.shape).copy()

    def offsets(self, addresses: Array, width: int) -> NDArray[np.int64]:
        """Addresses as offsets. Raises OutOfBounds for one outside of every array, or one not aligned."""
        offsets = (addresses - np.uint64(self.start)).astype(np.int64)
        if not len(offsets):
            return offsets
        if int(offsets.min()) < 0 or int(offsets.max()) + width > len(self.bytes):
            raise OutOfBounds("an access to global memory outside of every array")
        if not self._is_allocated[offsets // _GRANULE].all():
            raise OutOfBounds("an access to global memory outside of every array")
        if (offsets % width).any():
            raise OutOfBounds(f"an access of {width} bytes to an address that is no multiple of it")
        return offsets

    def load(self, offsets: Array, size: int) -> Array:
        """Values of 1, 2 or 4 bytes."""
        values: Array = self._views[size][offsets // size]
        return values

    def store(self, offsets: Array, size: int, values: Array) -> None:
        """Values of 1, 2 or 4 bytes; of two lanes at one address the later one stays."""
        self._views[size][offsets // size] = values


WARP_SHIFT = 44  # of a key: the number of a warp above that of a sector


def unit_keys(warps: Array, units: Array) -> Array:
    """What the accesses of each warp touch, once each, sorted: numbers of units under the warp's.

    warps: of each lane, shifted by WARP_SHIFT (Lanes.words); units: where in memory the lane's access is.
    """
    keys = warps | units
    if len(keys):
        keys.sort()
        keys = keys[np.diff(keys, prepend=-1) != 0]
    return keys


def wavefronts(warps: Array, lanes: Array, addresses: Array, width: int) -> tuple[Array, Array]:
    """Wavefronts of accesses to shared memory: of each group of lanes that is served, its warp and they.

    Lanes are served 32, 16 or 8 at a time, by the width of their access; of those a bank delivers one 4-byte
    word a wavefront, to every lane that asks for it. That is the CPU check's model (cpucuda/banks.h).
    """
    together = 32 if width <= 4 else 16 if width == 8 else 8
    phases = (warps.astype(np.int64) * (32 // together)) + lanes // together
    words = addresses.astype(np.int64) // 4
    if width > 4:
        count = width // 4
        words = (words[:, None] + np.arange(count)).reshape(-1)
        phases = np.repeat(phases, count)
    keys = (phases << np.int64(24)) | words
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) != 0]
    phases, banks = keys >> np.int64(24), keys & np.int64(BANKS - 1)
    first, last = int(phases[0]), int(phases[-1])
    per_bank = np.bincount((phases - first) * BANKS + banks, minlength=(last - first + 1) * BANKS)
    most = per_bank.reshape(-1, BANKS).max(axis=1)
    served = np.flatnonzero(most)
    return (served + first) // (32 // together), most[served]
