"""What the warps of a block execute, in order: loops unrolled by how often each instruction was executed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from profiler.evidence.opcodes import base_opcode
from profiler.model.pipes import opcode_of

LEAST_TRIPS = 4.0  # of a loop that is cut
_EVEN = 0.01  # of an execution: what is less uneven counts as even
_KEPT = 16  # traces, of 1.5 MB at most
_ENTERED_ONCE = 1.2  # trips below which a loop is taken for code in a row


@dataclass(frozen=True)
class WarpTrace:
    """The instructions of warps of a block, loops cut where the whole would be too long."""

    # Indices of instructions in the order of execution, of shape [warps, longest]; what a warp executes ends
    # at its length. Warps beyond the last begin again with the first.
    positions: NDArray[np.int64]
    lengths: NDArray[np.int64]
    shortened: float  # instructions of the whole over those of the trace, on average


@dataclass(frozen=True)
class ExecutedCode:
    """Instructions of the functions of a launch, and how often a warp executes each."""

    texts: Sequence[str]
    targets: Sequence[int]  # index of the instruction that a branch goes to; -1: none, or not known
    counts: NDArray[np.float64]  # executions a warp, on average over the launch
    starts: Sequence[int]  # where each function begins, ascending
    kernel: int = 0  # which of the functions the launch starts

    def trace(self, limit: int, warps: int = 1) -> WarpTrace:
        """As `make_trace`, made once for launches, probes and what-ifs that execute the same."""
        counts = tuple(self.counts.tolist())
        return _kept_trace(
            tuple(self.texts), tuple(self.targets), counts, tuple(self.starts), self.kernel, limit, warps
        )


@lru_cache(_KEPT)
def _kept_trace(
    texts: tuple[str, ...],
    targets: tuple[int, ...],
    counts: tuple[float, ...],
    starts: tuple[int, ...],
    kernel: int,
    limit: int,
    warps: int,
) -> WarpTrace:
    return make_trace(ExecutedCode(texts, targets, np.array(counts), starts, kernel), limit, warps)


def make_trace(code: ExecutedCode, limit: int, warps: int = 1) -> WarpTrace:
    """Traces of about `limit` instructions at most, whose mix is that of the whole.

    Only outermost and very long loops are cut: inner ones keep their trips. What a part of the warps executes
    is executed by some of the `warps` and not by others, by turns: whoever meets at a barrier waits for them.
    """
    opcodes = [base_opcode(opcode_of(text)) for text in code.texts]
    ends = np.array([opcode == "EXIT" for opcode in opcodes], bool)
    total = float(code.counts[~ends].sum())  # a trace ends without its EXIT
    spread = 1 if _is_even(code.counts) else warps
    traces = [_walk_code(code, opcodes, limit, total, (warp + 0.5) / spread) for warp in range(spread)]
    lengths = np.array([len(trace) for trace in traces], np.int64)
    positions = np.zeros((spread, max(1, int(lengths.max()))), np.int64)
    for row, trace in zip(positions, traces, strict=True):
        row[: len(trace)] = trace
    return WarpTrace(positions, lengths, total / max(1.0, float(lengths.mean())))


def _is_even(counts: NDArray[np.float64]) -> bool:
    """Whether every warp executes everything equally often."""
    return bool(np.all(np.abs(counts - np.round(counts)) < _EVEN))


def _walk_code(
    code: ExecutedCode, opcodes: Sequence[str], limit: int, total: float, phase: float
) -> list[int]:
    """What one warp executes; phase: from 0 to 1, which of the warps it is."""
    walker = _Walker(code, opcodes, limit, min(1.0, limit / max(total, 1.0)), phase)
    ranges = list(zip(code.starts, [*code.starts[1:], len(code.texts)], strict=True))
    start, end = ranges.pop(code.kernel)
    walker.walk_function(start, end)
    exits = {i for i, opcode in enumerate(opcodes) if opcode == "EXIT" and code.counts[i] > 0}
    positions = [position for position in walker.positions if position not in exits]
    kernel_total = float(code.counts[start:end].sum())
    kept = len(positions)
    for start, end in ranges:
        # A called function's instructions follow in the right number; where in time they stand is lost.
        body = [position for position in range(start, end) if code.counts[position] > 0]
        executed = float(code.counts[start:end].sum())
        if body:
            times = round(executed / len(body) * kept / max(kernel_total, 1e-9))
            positions += body * times
    return positions


class _Walker:
    """Goes through a function, and round its loops as often as the counts say.

    Fractions of an execution add up: what half of the warps execute is taken every second time, from the
    first or the second time on by the warp's phase.
    """

    def __init__(
        self, code: ExecutedCode, opcodes: Sequence[str], limit: int, shrink: float, phase: float
    ) -> None:
        self.counts: list[float] = code.counts.tolist()
        self.opcodes = opcodes
        self.texts = code.texts
        self.targets = code.targets
        self.limit = limit
        self.shrink = shrink
        self.phase = phase
        self.row_ends: list[int] = []  # by index, what is behind the row of equal counts that it stands in
        self.positions: list[int] = []
        self.credits: dict[tuple[str, int], float] = {}

    def walk_function(self, start: int, end: int) -> None:
        loops: dict[int, int] = {}
        for position in range(start, end):
            target = self.targets[position]
            if (
                self.opcodes[position] == "BRA"
                and start <= target < position
                and self.counts[position] > 0
                and self.counts[target] > 0
            ):
                loops[target] = max(loops.get(target, 0), position)
        scale = max(1e-9, min(1.0, self.counts[start]) or 1.0)
        self.row_ends = list(range(1, len(self.counts) + 1))
        for position in range(end - 2, start - 1, -1):
            if position + 1 not in loops and self.counts[position] == self.counts[position + 1]:
                self.row_ends[position] = self.row_ends[position + 1]
        self._walk(start, end - 1, loops, scale, None, 0)

    @property
    def _is_full(self) -> bool:
        return len(self.positions) >= 4 * self.limit

    def _walk(
        self, first: int, last: int, loops: dict[int, int], scale: float, head: int | None, depth: int
    ) -> None:
        """Take the instructions from first to last once; scale: how often the whole is executed."""
        position = first
        while position <= last and not self._is_full:
            end = loops.get(position)
            if end is not None and end <= last and position != head:
                trips = self._trips(position, end)
                if trips > _ENTERED_ONCE:
                    is_cut = depth == 0 or trips * (end + 1 - position) > self.limit / 4
                    share = self.shrink if is_cut else 1.0
                    if trips * share <= LEAST_TRIPS:
                        share = max(share, min(1.0, LEAST_TRIPS / trips))
                    # Where a loop is cut the rest of a division must not set warps apart.
                    amount = trips if share == 1.0 else round(trips * share)
                    for _ in range(self._whole(("loop", position), amount)):
                        self._walk(position, end, loops, self.counts[position], position, depth + 1)
                        if self._is_full:
                            return
                    position = end + 1
                    continue
            row_end = min(self.row_ends[position], last + 1)
            share = min(self.counts[position] / scale, 1.0 if head is not None else 4.0)
            if _is_whole(share) and round(share) == 1:
                row_end = min(row_end, position + 4 * self.limit - len(self.positions))
                self.positions += range(position, row_end)
            elif share > 0:
                row_end = position + 1
                self.positions += [position] * self._whole(("instruction", position), share)
            position = row_end

    def _trips(self, head: int, end: int) -> float:
        """How often a loop goes round each time that it is entered."""
        counts = self.counts
        behind = counts[end + 1] if end + 1 < len(counts) else 0.0
        went_back = max(0.0, counts[end] - behind)
        entered = counts[head] - went_back
        if head > 0 and counts[head - 1] > 0 and self.opcodes[head - 1] != "EXIT":
            if entered <= 0:
                entered = counts[head - 1]
            if not re.match(r"BRA\b", self.texts[head - 1]):
                entered = min(entered, counts[head - 1])
        return counts[head] / max(entered, 1e-6)

    def _whole(self, key: tuple[str, int], amount: float) -> int:
        """The whole part of what has added up under a key; the rest stays."""
        if _is_whole(amount):
            return round(amount)
        credit = self.credits.get(key, self.phase) + amount + 1e-9
        whole = int(credit)
        self.credits[key] = credit - whole
        return whole


def _is_whole(amount: float) -> bool:
    """Whether an amount is next to a whole number."""
    return abs(amount - round(amount)) < _EVEN * max(1.0, amount)
