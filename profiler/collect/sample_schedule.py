"""The schedule of latency samples, which needs no GPU: order of rounds, batches, cache modes, throttling."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypedDict

from profiler.collect.gpu.properties import GpuState

ROUNDS, SAMPLES = 25, 4  # 100 samples per version and mode; many short rounds beat few long ones
BATCH_BELOW_US = 100.0  # event timers tick at up to 1 µs: a call this long is measured to 1 %
BATCHES = (1, 2, 5, 10, 20, 50)  # few steps, so that all processes choose the same although calls vary
GRAPH_CALLS = 10  # at least, in a graph of short calls: they share the start of the replay
MOST_SETS = 256
L2_UNKNOWN_BYTES = 128 << 20  # assumed where L2 is unknown: larger than any today

# mode of a request -> timer and cache as every output names them
MODES = {
    "cold": ("events", "cold"),
    "warm": ("events", "warm"),
    "graph": ("graph replay", "warm"),
}


@dataclass(frozen=True)
class Turn:
    """One version's samples of one round in one mode, taken together."""

    round: int
    mode: str
    version: str


class SampleBlock(TypedDict):
    """The samples of one version in one mode from one process: the keyword arguments of run.Samples."""

    mode: str
    ns: list[float]
    rounds: list[int]
    clocks_mhz: list[float]
    throttled: list[int]


def turns(
    versions: Sequence[str], rounds: Sequence[int], modes: Sequence[str], seed: int = 0
) -> Iterator[Turn]:
    """The turns of every version in every round and mode, in an order drawn at random.

    A GPU that warms up or drifts then favours no version, and one that comes and goes every two rounds does
    not either: in a fixed A B B A one version would always meet its slow half. `seed` and the number of the
    round decide, not the place in the list, so that rounds spread over several processes keep their order.
    """
    for number in rounds:
        for mode in modes:
            order = list(versions)
            random.Random(f"{seed} {number} {mode}").shuffle(order)
            for version in order:
                yield Turn(number, mode, version)


def blocks(rounds: int, processes: int) -> list[list[int]]:
    """The round numbers of each process, in order and as even as possible; no process without a round."""
    count = max(1, min(processes, rounds))
    edges = [rounds * index // count for index in range(count + 1)]
    return [list(range(begin, end)) for begin, end in pairwise(edges)]


def batch_size(call_ns: float, below_us: float = BATCH_BELOW_US) -> int:
    """How many calls to time together so that a sample takes at least below_us; 1 for a longer call."""
    for size in BATCHES:
        if size * call_ns >= below_us * 1000:
            return size
    return BATCHES[-1]


def graph_size(call_ns: float, below_us: float = BATCH_BELOW_US) -> int:
    """How many calls to capture in one graph."""
    size = batch_size(call_ns, below_us)
    return size if size == 1 else max(size, GRAPH_CALLS)


def mode_name(mode: str, clock: str) -> str:
    """The name of the mode in every output: `events; cache warm; clock none`.

    Batches are not named: every version is timed by the same rule, and its batch stands beside the samples.
    """
    timer, cache = MODES[mode]
    return f"{timer}; cache {cache}; clock {clock}"


def input_sets(set_bytes: int, l2_bytes: int | None, free_bytes: int) -> int:
    """How many sets of arrays to rotate through so that none is still in L2 when it is used again.

    Together three times L2, the set in use left out; at most a quarter of the free memory.
    """
    l2 = l2_bytes or L2_UNKNOWN_BYTES
    needed = 1 + -(-3 * l2 // max(set_bytes, 1))
    affordable = max(2, free_bytes // 4 // max(set_bytes, 1))
    return max(2, min(needed, affordable, MOST_SETS))


def wait_cycles(host_ns: float, clock_mhz: float) -> int:
    """Cycles to keep the GPU waiting while the host queues a sample: twice as long as queueing takes."""
    return int(min(max(2 * host_ns, 20_000.0), 50_000_000.0) * clock_mhz / 1000)


@dataclass
class SampleSeries:
    """The samples of one version and mode, in time order."""

    mode: str
    ns: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    clocks_mhz: list[float | None] = field(default_factory=list)
    throttled: list[int] = field(default_factory=list)  # positions
    host_bound: list[int] = field(default_factory=list)  # positions: the GPU waited for the host

    def add(
        self,
        number: int,
        samples: Sequence[tuple[float, bool]],
        before: GpuState | None,
        after: GpuState | None,
    ) -> None:
        """One turn's samples: (ns a call, whether the GPU waited for the host).

        All of them are marked where the GPU was throttled just before the turn or at its end.
        """
        throttled = any(state is not None and bool(state.throttled) for state in (before, after))
        for ns, host_bound in samples:
            position = len(self.ns)
            self.ns.append(ns)
            self.rounds.append(number)
            self.clocks_mhz.append(after.sm_mhz if after else None)
            if throttled:
                self.throttled.append(position)
            if host_bound:
                self.host_bound.append(position)

    def as_block(self, clock: str) -> SampleBlock:
        """The block that is kept. It has a clock for every sample, or none at all."""
        clocks_mhz = [clock_mhz for clock_mhz in self.clocks_mhz if clock_mhz is not None]
        return {
            "mode": mode_name(self.mode, clock),
            "ns": self.ns,
            "rounds": self.rounds,
            "clocks_mhz": clocks_mhz if len(clocks_mhz) == len(self.ns) else [],
            "throttled": self.throttled,
        }
