"""What Triton's cache says of a kernel beside its cubin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

_MOST = 1 << 24  # of any of its numbers: more is no GPU's


class TritonFacts(NamedTuple):
    """What the JSON file that Triton writes beside a cubin says of a block; None where there is none."""

    shared_bytes: int | None
    threads: int | None
    tensor_columns: int | None


def triton_facts(path: Path) -> TritonFacts:
    """Of the JSON file with the name of a cubin; everything None where there is none, or none of Triton's."""
    try:
        facts = json.loads(path.with_suffix(".json").read_text("utf-8"))
        shared, warps, columns = (
            _whole(facts.get(name), least)
            for name, least in (("shared", 0), ("num_warps", 1), ("tmem_size", 0))
        )
    except (OSError, ValueError, AttributeError, RecursionError):
        return TritonFacts(None, None, None)
    return TritonFacts(shared, None if warps is None else 32 * warps, columns)


def _whole(value: object, least: int) -> int | None:
    return value if type(value) is int and least <= value < _MOST else None
