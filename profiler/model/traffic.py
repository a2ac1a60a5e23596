"""What the global accesses of a launch ask of L1, L2 and DRAM, from the accesses of some of its blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from profiler.model.block_sample import BlockSample
from profiler.model.interpreter import all_blocks
from profiler.model.machine import Array
from profiler.model.memory import LINE, SECTOR
from profiler.statistics.segments import compiled

_LEAST_L1 = 16 << 10  # bytes that stay L1 however much of the memory is shared memory
_RESERVED = 1 << 10  # bytes of shared memory that the system takes of each block
_SIMULATED = 200_000  # sectors whose way through L1 is simulated
_CHUNK = 4096  # bytes, at least, in which L2 is looked at
_MOST_CHUNKS = 1 << 15


@dataclass(frozen=True)
class Traffic:
    """Bytes that a whole launch moves; a range says what the model cannot know.

    Assumed: caches are empty when the launch starts; blocks start in the order of the grid, run in waves of
    all that fit on the GPU, and those of a wave keep step. L1: least recently used lines of 128 bytes that
    are filled by sectors of 32, shared by the blocks that are resident on one SM; stores, LDGSTS.BYPASS and
    LDG.STRONG pass it. L2: least recently used, over whole waves. DRAM: what no level has is read; what is
    written goes there once L2 has no room for it, so that a small output stays in L2 beyond the launch.
    """

    l1_hit_rate: float | None  # 0 to 1, of the sectors of loads that go through L1; None where none does
    l2_load_bytes: float  # from L2 to the SMs
    l2_store_bytes: float  # from the SMs to L2
    dram_read_bytes: float
    dram_write_bytes: float
    l2_load_range: tuple[float, float]  # every line once a wave's SM .. nothing hits in L1
    dram_read_range: tuple[
        float, float
    ]  # all that could be reused is .. nothing is from one wave to the next
    dram_write_range: tuple[
        float, float
    ]  # what is written stays in L2 as far as it has room .. all is written back
    unique_load_bytes: float  # distinct sectors that are loaded: the least that a cold L2 reads from DRAM
    unique_store_bytes: float
    is_affine: (
        bool  # whether the addresses of the blocks that were run follow from each other; else estimated
    )


@dataclass(frozen=True)
class _Footprint:
    """Intervals of memory, [blocks of the launch, intervals, 2]: first byte and end, equal if empty."""

    intervals: Array

    def union(self, blocks: slice) -> Array:
        """The merged intervals of some blocks, [n, 2]."""
        return _merge(self.intervals[blocks].reshape(-1, 2))


def estimate_traffic(
    sample: BlockSample, shared_bytes: int, gpu_sms: int, resident_blocks: int, l1_bytes: int, l2_bytes: int
) -> Traffic:
    """The traffic of a launch on a GPU.

    shared_bytes: of a block, static and dynamic; resident_blocks: on an SM; l1_bytes: of L1 and shared memory
    of one SM together; l2_bytes: of the whole L2.
    """
    counts = sample.counts
    kinds = {position: access for position, access in counts.accesses.items() if access.space == "global"}
    is_store = np.zeros(len(counts.instructions), bool)
    passes = np.zeros(len(counts.instructions), bool)
    for position, access in kinds.items():
        is_store[position] = access.kind == "store"
        passes[position] = access.passes_l1
    moves, is_affine = _moves(sample, list(kinds))
    loads = _footprint(sample, moves, ~is_store)
    stores = _footprint(sample, moves, is_store)
    per_block = np.bincount(counts.trace_blocks, minlength=len(counts.blocks))  # all sectors of a block
    stored = np.bincount(counts.trace_blocks, is_store[counts.trace_positions], len(counts.blocks))
    direct = np.bincount(counts.trace_blocks, passes[counts.trace_positions], len(counts.blocks))
    weights = sample.weights
    store_bytes = float(weights @ stored) * SECTOR
    direct_bytes = float(weights @ direct) * SECTOR
    cached_bytes = float(weights @ (per_block - stored - direct)) * SECTOR
    hit_rate = None
    if cached_bytes:
        available = max(_LEAST_L1, l1_bytes - resident_blocks * (shared_bytes + _RESERVED))
        cached = ~is_store & ~passes
        hit_rate, least_missed = _l1(sample, moves, cached, gpu_sms, resident_blocks, available)
        likely = direct_bytes + cached_bytes * (1 - hit_rate)
        l2_range = (direct_bytes + cached_bytes * least_missed, direct_bytes + cached_bytes)
    else:
        likely, l2_range = direct_bytes, (direct_bytes, direct_bytes)
    unique_loads, unique_stores = _size(loads.union(slice(None))), _size(stores.union(slice(None)))
    at_once = max(1, gpu_sms * resident_blocks)
    read, most, written = _l2(loads, stores, math.prod(sample.grid), at_once, l2_bytes, likely)
    return Traffic(
        l1_hit_rate=hit_rate,
        l2_load_bytes=likely,
        l2_store_bytes=store_bytes,
        dram_read_bytes=min(max(read, unique_loads), max(likely, unique_loads)),
        dram_write_bytes=written,
        l2_load_range=l2_range,
        dram_read_range=(unique_loads, max(most, unique_loads)),
        dram_write_range=(min(written, unique_stores), max(written, unique_stores, store_bytes)),
        unique_load_bytes=unique_loads,
        unique_store_bytes=unique_stores,
        is_affine=is_affine,
    )


def _sectors(sample: BlockSample, number: int, position: int) -> Array:
    """The sectors that an instruction of a block asked for, in order."""
    counts = sample.counts
    chosen = (counts.trace_blocks == number) & (counts.trace_positions == position)
    result: Array = counts.trace_sectors[chosen]
    return result


def _moves(sample: BlockSample, positions: list[int]) -> tuple[Array, bool]:
    """How many sectors the accesses of an instruction move from a block to the next, [instructions, 3].

    False where the blocks that were run do not say so, or contradict each other.
    """
    counts = sample.counts
    moves = np.zeros((len(counts.instructions), 3))
    is_affine = True
    order = np.lexsort((np.arange(len(counts.trace_sectors)), counts.trace_positions, counts.trace_blocks))
    keys = (
        counts.trace_blocks[order].astype(np.int64) * len(counts.instructions) + counts.trace_positions[order]
    )
    sectors = counts.trace_sectors[order]

    def of(number: int, position: int) -> Array:
        key = number * len(counts.instructions) + position
        return sectors[np.searchsorted(keys, key) : np.searchsorted(keys, key, "right")]

    for position in positions:
        base_number = next((n for n in range(len(counts.blocks)) if len(of(n, position))), None)
        if base_number is None:
            continue
        base, base_block = of(base_number, position), counts.blocks[base_number]
        rows, distances = [], []
        for number, block in enumerate(counts.blocks):
            own = of(number, position)
            both = min(len(own), len(base))
            if number == base_number or not both:
                continue
            distance = own[:both] - base[:both]
            is_affine &= bool((distance == distance[0]).all())
            rows.append(block - base_block)
            distances.append(distance[0])
        if rows:
            matrix, target = np.array(rows, np.float64), np.array(distances, np.float64)
            solution = np.linalg.lstsq(matrix, target, rcond=None)[0]
            is_affine &= bool(np.allclose(matrix @ solution, target, atol=0.5))
            is_affine &= int(np.linalg.matrix_rank(matrix)) == sum(size > 1 for size in sample.grid)
            moves[position] = solution
    return moves, is_affine


def _footprint(sample: BlockSample, moves: Array, included: Array) -> _Footprint:
    """What every block of the launch touches by the included instructions.

    Instructions that move alike from block to block are one group: what a block touches by them are few
    intervals, whose ends lie on straight lines between the blocks that were run.
    """
    counts = sample.counts
    blocks = all_blocks(sample.grid)
    along = blocks[:, sample.dimension]
    groups: dict[tuple[float, ...], list[int]] = {}
    for position in counts.accesses:
        if included[position] and counts.accesses[position].space == "global":
            groups.setdefault(tuple(np.round(moves[position], 3)), []).append(position)
    parts = []
    for move, positions in groups.items():
        chosen = np.isin(counts.trace_positions, positions)
        numbers, sectors = counts.trace_blocks[chosen], counts.trace_sectors[chosen]
        at_knots = []
        for _, number in sample.knots:
            touched = np.unique(sectors[numbers == number])
            shift = float(counts.blocks[number] @ np.array(move))
            at_knots.append(_merge(np.stack([touched, touched + 1], axis=1)) - shift)
        where = np.array([at for at, _ in sample.knots])
        right = np.clip(np.searchsorted(where, along), 0, len(where) - 1)
        left = np.where(where[right] == along, right, np.maximum(right - 1, 0))
        size = max((len(intervals) for intervals in at_knots), default=0)
        padded = np.zeros((len(where), size, 2))
        for row, intervals in zip(padded, at_knots, strict=True):
            row[: len(intervals)] = intervals
        lengths = np.array([len(intervals) for intervals in at_knots])
        share = np.where(
            left == right, 0.0, (along - where[left]) / np.maximum(1, where[right] - where[left])
        )
        share = np.where(
            lengths[left] == lengths[right], share, 1.0
        )  # as the next block that was run has them
        share = share[:, None, None]
        intervals = padded[left] * (1 - share) + padded[right] * share
        is_empty = intervals[:, :, 0] == intervals[:, :, 1]
        moved = intervals + (blocks @ np.array(move))[:, None, None]
        moved[is_empty] = 0
        parts.append(np.rint(moved) * SECTOR)
    if not parts:
        return _Footprint(np.zeros((len(blocks), 0, 2)))
    return _Footprint(np.concatenate(parts, axis=1))


def _merge(intervals: Array) -> Array:
    """The union of intervals, [n, 2], in order and apart."""
    intervals = intervals[intervals[:, 1] > intervals[:, 0]]
    if not len(intervals):
        return intervals
    intervals = intervals[np.argsort(intervals[:, 0], kind="stable")]
    ends = np.maximum.accumulate(intervals[:, 1])
    starts = np.flatnonzero(np.concatenate([[True], intervals[1:, 0] > ends[:-1]]))
    return np.stack([intervals[starts, 0], ends[np.append(starts[1:] - 1, len(ends) - 1)]], axis=1)


def _size(intervals: Array) -> float:
    return float((intervals[:, 1] - intervals[:, 0]).sum())


def _l1(
    sample: BlockSample, moves: Array, cached: Array, sms: int, resident: int, available: int
) -> tuple[float, float]:
    """The hit rate of the blocks that are on an SM at first, and the share that at least misses.

    They keep step: as much of each has been done at any time. A long way is cut off behind its beginning.
    """
    counts, total = sample.counts, math.prod(sample.grid)
    started = [index for index in range(0, sms * resident, sms) if index < total]
    blocks = all_blocks(sample.grid)
    where = np.array([at for at, _ in sample.knots])
    ways, progress = [], []
    for index in started:
        block = blocks[index]
        number = sample.knots[int(np.argmin(np.abs(where - block[sample.dimension])))][1]
        chosen = (counts.trace_blocks == number) & cached[counts.trace_positions]
        positions, sectors = counts.trace_positions[chosen], counts.trace_sectors[chosen]
        limit = max(1000, _SIMULATED // len(started))
        done = np.arange(len(sectors))[:limit] / max(1, len(sectors))
        shift = np.rint(moves[positions[:limit]] @ (block - counts.blocks[number])).astype(np.int64)
        ways.append(sectors[:limit] + shift)
        progress.append(done)
    way = np.concatenate(ways)[np.argsort(np.concatenate(progress), kind="stable")]
    lines, numbers = np.unique(way >> 2, return_inverse=True)
    hits = count_hits(numbers.astype(np.int64), way & 3, len(lines), max(1, available // LINE))
    return hits / max(1, len(way)), len(np.unique(way)) / max(1, len(way))


@compiled
def count_hits(lines: Any, sectors: Any, count: int, room: int) -> int:
    """How many accesses find their sector in a cache of `room` lines, least recently used, filled by sectors.

    lines: by access, numbered from 0 to count; sectors: of the line, 0 to 3. Both of shape [accesses], int64.
    """
    there = np.zeros(count, np.int64)  # a bit a sector; 0: the line is not in the cache
    older = np.full(count, -1)  # the lines in the cache are a list, from `oldest` to `newest`
    newer = np.full(count, -1)
    oldest = newest = -1
    size = hits = 0
    for access in range(len(lines)):
        line, bit = lines[access], 1 << sectors[access]
        if there[line] & bit:
            hits += 1
        if line != newest:
            if there[line]:
                before, after = older[line], newer[line]
                if before >= 0:
                    newer[before] = after
                else:
                    oldest = after
                older[after] = before  # there is one: it is not the newest
            else:
                size += 1
            older[line], newer[line] = newest, -1
            if newest >= 0:
                newer[newest] = line
            else:
                oldest = line
            newest = line
        there[line] |= bit
        if size > room:
            there[oldest] = 0
            oldest = newer[oldest]
            older[oldest] = -1
            size -= 1
    return hits


def _l2(
    loads: _Footprint, stores: _Footprint, blocks: int, at_once: int, room: int, load_bytes: float
) -> tuple[float, float, float]:
    """Bytes read from DRAM, likely and where no wave finds what another one read, and bytes written back."""
    everything = _merge(np.concatenate([loads.union(slice(None)), stores.union(slice(None))]))
    if not len(everything):
        return 0.0, 0.0, 0.0
    # Chunks lie in memory that is touched: gaps between arrays take none.
    chunk = max(_CHUNK, math.ceil(_size(everything) / _MOST_CHUNKS / SECTOR) * SECTOR)
    before = np.concatenate([[0.0], np.cumsum(everything[:, 1] - everything[:, 0])])
    count = math.ceil(before[-1] / chunk)
    used = np.full(count, -1)  # the last wave that touched a chunk
    is_dirty = np.zeros(count, bool)
    read = most = written = 0.0

    def touched(footprint: _Footprint, first: int) -> tuple[Array, float]:
        """How many bytes of each chunk the blocks of a wave touch, and of all."""
        union = footprint.union(slice(first, first + at_once))
        place = np.searchsorted(everything[:, 0], union[:, 0], "right") - 1
        starts = before[place] + union[:, 0] - everything[place, 0]
        edges = np.concatenate([starts, starts + union[:, 1] - union[:, 0]])
        signs = np.repeat([1.0, -1.0], len(starts))
        # The integral of how much is covered up to each border between chunks.
        order = np.argsort(edges, kind="stable")
        edges, covered = edges[order], np.cumsum(signs[order])
        widths = np.diff(edges, append=edges[-1] if len(edges) else 0.0)
        upto = np.concatenate([[0.0], np.cumsum(covered * widths)])
        borders = np.arange(count + 1) * float(chunk)
        if not len(edges):
            return np.zeros(count), 0.0
        return np.diff(np.interp(borders, np.append(edges, edges[-1] + 1), upto)), _size(union)

    waves = range(0, blocks, at_once)
    for wave, first in enumerate(waves):
        bytes_loaded, size = touched(loads, first)
        bytes_stored, stored = touched(stores, first)
        # What was touched since the last time it was, in chunks: is there room for all of it?
        since = np.bincount(used + 1, minlength=wave + 2)[::-1].cumsum()[::-1] * float(chunk)
        distance = np.append(since, 0.0)[used + 2]
        is_there = (used >= 0) & (distance + size + stored <= room)
        read += float(bytes_loaded[~is_there].sum())
        most += size
        excess = size + stored - room
        if excess > 0:  # a wave that L2 does not hold reads again what it has let go
            again = load_bytes / len(waves) * excess / (size + stored)
            read, most = read + max(0.0, again - size), most + max(0.0, load_bytes / len(waves) - size)
        is_touched = (bytes_loaded > 0) | (bytes_stored > 0)
        used[is_touched] = wave
        is_dirty |= bytes_stored > 0
        evicted = is_dirty & (used < wave) & (distance + size + stored > room)
        written += float(evicted.sum()) * chunk
        is_dirty &= ~evicted
    return read, most, written
