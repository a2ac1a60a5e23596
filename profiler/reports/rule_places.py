"""Which place in the code a rule result is about, where the report says so."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence

from profiler.evidence.launch import RuleResult

_SOURCE = re.compile(r"@source:([0-9a-fA-F]{1,16}):")  # ncu's reference to an instruction, by its address


def address_of(rule: RuleResult) -> int | None:
    """The address of the instruction that a rule's message refers to; None where it refers to none."""
    reference = _SOURCE.search(rule.message)
    return int(reference[1], 16) if reference else None


def place_of(address: int, functions: Sequence[int]) -> tuple[int, int] | None:
    """Function index and byte offset of an address; None before every function.

    `functions` has where each function of the launch starts, ascending.
    """
    index = bisect_right(functions, address) - 1
    return (index, address - functions[index]) if index >= 0 else None


def stall_of(rule: RuleResult, reasons: Collection[str]) -> str:
    """The stall reason that a rule result is titled with, of those; "" for another rule.

    Titles are `long_scoreboard` before ncu 2023, `Long Scoreboard Stalls` since.
    """
    name = rule.title.lower().removesuffix(" stalls").replace(" ", "_")
    return name if name in reasons else ""
