"""A grid or a block of threads as it is written on a command line."""

from __future__ import annotations

import re

from profiler.errors import UnknownName

Grid = tuple[int, int, int]  # along x, y and z


def parse_dimensions(text: str) -> Grid:
    """`64`, `64,8` or `64,8,2` as a grid or a block. Raises UnknownName."""
    words = text.split(",")
    if len(words) > 3 or not all(re.fullmatch(r"[1-9]\d{0,9}", word) for word in words):
        raise UnknownName(f"{text!r} is no grid or block: write 64, 64,8 or 64,8,2")
    sizes = [int(word) for word in words] + [1, 1]
    return sizes[0], sizes[1], sizes[2]
