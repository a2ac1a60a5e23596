"""The addresses of a launch's accesses to shared memory, and the XOR swizzle with fewest conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profiler.model.accesses import AccessCounts
from profiler.model.machine import WARP, Array
from profiler.model.memory import BANKS, wavefronts

_ABSENT = -1  # the address of a lane that does not take part
_MOST_PAD = 32  # bytes: more than the widest access
_BANK_BITS = 7  # 32 banks of 4 bytes: which bits of an address choose among them, from bit 2 on
_WINDOW_BITS = 18  # shared memory of every architecture is smaller than 256 KB


@dataclass(frozen=True, order=True)
class Swizzle:
    """CUTLASS' Swizzle<bits, base, shift> of byte addresses: bits from `base` on are XORed with those above.

    Source: CUTLASS, include/cute/swizzle.hpp.
    """

    bits: int
    base: int
    shift: int

    def apply(self, addresses: Array) -> Array:
        """Where the bytes of these addresses lie; those below 0 stay."""
        mask = ((1 << self.bits) - 1) << self.base
        return np.where(addresses < 0, addresses, addresses ^ (addresses >> self.shift & mask))

    def of_elements(self, size: int) -> str:
        """As CUTLASS writes it for elements of so many bytes, a power of two."""
        return f"Swizzle<{self.bits}, {self.base - (size.bit_length() - 1)}, {self.shift}>"

    @property
    def words(self) -> str:
        """What it does, for somebody who writes it by hand."""
        chunk, row = 1 << self.base, 1 << (self.base + self.shift)
        mask = (1 << self.bits) - 1
        return f"chunk of {chunk} bytes ^= (address / {row}) & {mask}"


@dataclass(frozen=True)
class Pad:
    """Rows of shared memory made longer: what is in a row stays together."""

    row_bytes: int  # as they are
    bytes: int  # that each row has more

    def apply(self, addresses: Array) -> Array:
        """Where the bytes of these addresses lie."""
        moved: Array = addresses + addresses // self.row_bytes * self.bytes
        return moved

    @property
    def words(self) -> str:
        """What it does, for somebody who writes it by hand."""
        return f"rows of {self.row_bytes} bytes made {self.row_bytes + self.bytes}"


@dataclass(frozen=True)
class AccessPattern:
    """The different requests that one instruction made of shared memory."""

    position: int  # of the instruction in its function
    kind: str  # load, store, copy
    width: int  # bytes a lane
    addresses: NDArray[np.int64]  # [requests, 32], -1 for a lane that did not take part
    repeats: NDArray[np.int64]  # how often each was made

    def wavefronts(self, layout: Swizzle | Pad | None = None) -> tuple[int, int]:
        """Those of all requests, and how many there would be without any conflict."""
        total = ideal = 0
        for count in np.unique(self.repeats):
            rows = self.addresses[self.repeats == count]
            warps, lanes = np.nonzero(rows >= 0)
            addresses = rows[warps, lanes]
            if layout is not None:
                addresses = layout.apply(addresses)
            _, served = wavefronts(warps, lanes, addresses, self.width)
            total, ideal = total + int(count) * int(served.sum()), ideal + int(count) * len(served)
        return total, ideal


@dataclass
class SharedTrace:
    """Takes the addresses of accesses to shared memory while a launch is run."""

    requests: dict[int, list[NDArray[np.int64]]] = field(default_factory=dict)  # by position in the code
    accesses: dict[int, AccessCounts] = field(default_factory=dict)  # likewise: kind and width, no counts

    def __call__(
        self, position: int, access: AccessCounts, warps: Array, lanes: Array, addresses: Array
    ) -> None:
        """One access; warps, lanes, addresses: of each lane that takes part, warps ascending."""
        is_first = np.diff(warps, prepend=-1) != 0
        rows = np.full((np.count_nonzero(is_first), WARP), _ABSENT, np.int64)
        rows[np.cumsum(is_first) - 1, lanes] = addresses
        self.accesses[position] = access
        self.requests.setdefault(position, []).append(rows)

    def patterns(self) -> tuple[AccessPattern, ...]:
        """What each instruction asked for, in the order of the code."""
        patterns = []
        for position, access in sorted(self.accesses.items()):
            requests = np.concatenate(self.requests[position])
            rows, repeats = np.unique(requests, axis=0, return_counts=True)
            patterns.append(AccessPattern(position, access.kind, access.width, rows, repeats))
        return tuple(patterns)


@dataclass(frozen=True)
class SwizzleSearch:
    """The swizzle under which the accesses of a launch have fewest conflicts; None where none saves any."""

    patterns: tuple[AccessPattern, ...]
    before: int  # wavefronts of all accesses as they are
    ideal: int
    swizzle: Swizzle | None
    after: int
    tried: int

    def left(self) -> list[tuple[AccessPattern, int]]:
        """The accesses that still have conflicts, and how many wavefronts too many."""
        counted = [(pattern, pattern.wavefronts(self.swizzle)) for pattern in self.patterns]
        return [(pattern, total - ideal) for pattern, (total, ideal) in counted if total > ideal]


def find_swizzle(patterns: Sequence[AccessPattern], shared_bytes: int) -> SwizzleSearch:
    """Try every XOR of address bits, fewest bits first, on the accesses that a run made.

    The same function is applied to every access of the block, so that what is stored is what is loaded. The
    bits below `base` stay, or an access of several words would be torn apart; bits that choose a bank are
    changed by bits above them. Of those that leave no conflict it is the one with fewest bits, then with the
    smallest shift; where all leave some, the one with fewest wavefronts.

    shared_bytes: of the block, with what the system takes in front of it.
    """
    before, ideal = _total(patterns, None)
    best, after, tried = None, before, 0
    if before > ideal:
        for swizzle in _candidates(patterns, shared_bytes):
            tried += 1
            total, _ = _total(patterns, swizzle, after)
            if total < after:
                best, after = swizzle, total
            if after == ideal:
                break
    return SwizzleSearch(tuple(patterns), before, ideal, best, after, tried)


@dataclass(frozen=True)
class PadSearch:
    """The pad under which accesses have fewest conflicts, and what it costs."""

    pad: Pad
    after: int  # wavefronts of all accesses with it
    extra_bytes: int  # of a block's shared memory


def find_pad(patterns: Sequence[AccessPattern]) -> PadSearch | None:
    """Try rows of every power of two, made longer by up to 32 bytes; None where that saves nothing.

    The same pad is applied to all of the block's shared memory. Of those that leave fewest wavefronts it is
    the one that takes least memory.
    """
    before, ideal = _total(patterns, None)
    if before == ideal:
        return None
    widest = max(4, *(pattern.width for pattern in patterns))
    last = max(int(pattern.addresses.max()) + pattern.width for pattern in patterns)
    first = min(int(pattern.addresses[pattern.addresses >= 0].min()) for pattern in patterns)
    found = []
    for row_bytes in (1 << power for power in range(5, _WINDOW_BITS) if widest < 1 << power < last):
        for more in range(widest, _MOST_PAD + 1, widest):
            after, _ = _total(patterns, Pad(row_bytes, more))
            found.append((after, -(-(last - first) // row_bytes) * more, row_bytes, more))
    if not found or min(found)[0] >= before:
        return None
    after, extra, row_bytes, more = min(found)
    return PadSearch(Pad(row_bytes, more), after, extra)


def _candidates(patterns: Sequence[AccessPattern], shared_bytes: int) -> Iterator[Swizzle]:
    lowest = max(max(pattern.width for pattern in patterns).bit_length() - 1, 2)
    last = max(int(pattern.addresses.max()) + pattern.width for pattern in patterns)
    for bits in range(1, _BANK_BITS - lowest + 1):
        for base in range(lowest, _BANK_BITS - bits + 1):
            if -(-last >> (base + bits)) << (base + bits) > shared_bytes:
                continue  # it would move something behind the block's memory
            for shift in range(max(bits, 1), _WINDOW_BITS - base):
                if 1 << (base + shift) < last:
                    yield Swizzle(bits, base, shift)


def _total(
    patterns: Sequence[AccessPattern], layout: Swizzle | Pad | None, most: int | None = None
) -> tuple[int, int]:
    """Wavefronts of all accesses, and ideal ones; the sum so far as soon as it is over `most`."""
    total = ideal = 0
    for pattern in patterns:
        found, best = pattern.wavefronts(layout)
        total, ideal = total + found, ideal + best
        if most is not None and total >= most:
            break
    return total, ideal


assert 4 * BANKS == 1 << _BANK_BITS
