"""A large report as several small ones: some launches each, with the names and the session that all need.

The library takes 11 to 16 times a report's size and frees nothing, so that launches are read some at a time.
Machine code is left out where only metrics are read: nothing of the first depth comes from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profiler.reports.file_format import BlockSpan, Framing

PART_BYTES = 24 << 20  # of launches in a part, unless one alone has more
MAX_SHARED_BYTES = 4 << 20  # of headers that every part repeats

Piece = str | tuple[int, int]  # bytes in hexadecimal, or offset and length in the report


@dataclass(frozen=True)
class Part:
    """Some launches of a report, as the pieces that make a report of their own."""

    first: int  # ordinal of its first launch
    launches: int
    size_bytes: int
    pieces: tuple[Piece, ...]


def parts_of(framing: Framing, *, with_code: bool = False) -> list[Part]:
    """The parts of a large report in order; none where it is small, or of a layout that is not known."""
    blocks = framing.blocks
    shared = sum(block.header_bytes for block in blocks if block.is_shared)
    if not blocks or shared > MAX_SHARED_BYTES or not framing.launches:
        return []
    parts: list[Part] = []
    first = 0
    for kept in _groups(blocks):
        pieces = list(_merged(_pieces(blocks, kept, with_code)))
        count = sum(end - start for start, end in kept.values())
        size = sum(len(piece) // 2 if isinstance(piece, str) else piece[1] for piece in pieces)
        parts.append(Part(first, count, size, tuple(pieces)))
        first += count
    return parts


def _groups(blocks: Sequence[BlockSpan]) -> Iterator[dict[int, tuple[int, int]]]:
    """Which launches of which blocks make a part: from and to, by the block's index."""
    kept: dict[int, tuple[int, int]] = {}
    size = 0
    for index, block in enumerate(blocks):
        start = block.results_at
        for place, end in enumerate(block.result_ends):
            if kept and size + end - start > PART_BYTES:
                yield kept
                kept, size = {}, 0
            kept[index] = (kept[index][0] if index in kept else place, place + 1)
            size += end - start
            start = end
    if kept:
        yield kept


def _pieces(
    blocks: Sequence[BlockSpan], kept: dict[int, tuple[int, int]], with_code: bool
) -> Iterator[Piece]:
    yield 0, blocks[0].at
    for index, block in enumerate(blocks):
        first, last = kept.get(index, (0, 0))
        has_code = block.results_at > block.payload_at
        if last - first == len(block.result_ends) and (with_code or not has_code):
            if last or block.is_shared or has_code:
                yield block.at, block.end - block.at
            continue
        if not (last or block.is_shared or (with_code and has_code)):
            continue
        start = block.result_ends[first - 1] if first else block.results_at
        end = block.result_ends[last - 1] if last else start
        code = (block.payload_at, block.results_at - block.payload_at) if with_code else (0, 0)
        # Of a field that stands twice in a message of protobuf, the later one counts.
        counts = _field(2, last - first) + _field(5, code[1] + end - start)
        counts += b"" if with_code else _field(1, 0)
        yield (block.header_bytes + len(counts)).to_bytes(4, "little").hex()
        yield block.at + 4, block.header_bytes
        yield counts.hex()
        yield from (piece for piece in (code, (start, end - start)) if piece[1])


def _merged(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The same pieces, those that follow each other in the file as one."""
    last: tuple[int, int] | None = None
    for piece in pieces:
        if last and not isinstance(piece, str) and piece[0] == sum(last):
            last = last[0], last[1] + piece[1]
            continue
        if last:
            yield last
        last = None if isinstance(piece, str) else piece
        if isinstance(piece, str):
            yield piece
    if last:
        yield last


def _field(number: int, value: int) -> bytes:
    encoded = bytearray([number << 3])
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
