"""What the numbers of a candidate say to whoever changes it: at most six statements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from profiler.advice.techniques import (
    BANK_CONFLICTS,
    GRID_SIZE,
    LOCAL_MEMORY,
    OCCUPANCY,
    PREFETCH,
    REGISTER_TILING,
    SHARED_TILING,
    SYNCHRONISATION,
)
from profiler.build.occupancy import occupancy
from profiler.errors import CannotJudge
from profiler.search.record import SearchRecord

MOST = 6
_PULL = 8.0  # of an insight that concerns all of the time
_CONFLICTS = 0.05  # of the wavefronts of shared memory
_STALL = 0.2  # of a warp's time
_TENSOR = 0.5  # of the tensor cores' time: the owner's target
_LOW_OCCUPANCY_PCT = 25.0
# What is waited for, by ncu's name of the stall, and the techniques that shorten it.
_STALLS = {
    "short_scoreboard": ("results of shared memory", (BANK_CONFLICTS, REGISTER_TILING)),
    "mio_throttle": ("the queue of shared memory and special functions", (BANK_CONFLICTS, REGISTER_TILING)),
    "long_scoreboard": ("results of global memory", (PREFETCH,)),
    "lg_throttle": ("the queue of global memory", (PREFETCH,)),
    "barrier": ("the other warps of the block", (SYNCHRONISATION, OCCUPANCY)),
    "wait": ("fixed latencies of its own instructions", (REGISTER_TILING, OCCUPANCY)),
    "math_pipe_throttle": ("a busy pipe", (REGISTER_TILING, SHARED_TILING)),
}


@dataclass(frozen=True)
class Insight:
    """One statement about a candidate, for the next one."""

    kind: str  # by which what it brought is counted
    text: str
    techniques: tuple[str, ...]
    numbers: Mapping[str, float]  # by where they stand in the record: c12/facts/bank_conflicts
    weight: float  # the larger, the sooner it is shown

    def to_dict(self) -> dict[str, Any]:
        """The insight by name."""
        return {
            "kind": self.kind,
            "text": self.text,
            "techniques": list(self.techniques),
            "numbers": dict(self.numbers),
        }


def insights_of(record: SearchRecord) -> tuple[Insight, ...]:
    """At most six insights, the weightiest first; a rule whose numbers are missing is silent."""
    found = [insight for rule in _RULES for insight in rule(record)]
    found += _of_the_judge(record)
    kinds: dict[str, Insight] = {}
    for insight in sorted(found, key=lambda insight: -insight.weight):
        kinds.setdefault(insight.kind, insight)
    return tuple(kinds.values())[:MOST]


def pull(insights: Iterable[Insight], techniques: Collection[str]) -> float:
    """How much likelier a change of these techniques is, by the weightiest insight that asks for one."""
    weights = [insight.weight for insight in insights if set(insight.techniques) & set(techniques)]
    return 1.0 + _PULL * max(weights, default=0.0)


def _number(record: SearchRecord, name: str) -> float | None:
    value = record.facts.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _linked(record: SearchRecord, *names: str) -> dict[str, float]:
    return {f"{record.name}/facts/{name}": _number(record, name) or 0.0 for name in names}


def _conflicts(record: SearchRecord) -> Iterator[Insight]:
    conflicts, wavefronts = _number(record, "bank_conflicts"), _number(record, "shared_wavefronts")
    if conflicts is None or not wavefronts or conflicts / wavefronts < _CONFLICTS:
        return
    share = conflicts / wavefronts
    yield Insight(
        "shared conflicts",
        f"{share:.0%} of the wavefronts of shared memory are bank conflicts ({conflicts:,.0f} of "
        f"{wavefronts:,.0f}): rows that are read together lie in the same banks",
        (BANK_CONFLICTS,),
        _linked(record, "bank_conflicts", "shared_wavefronts"),
        share,
    )


def _spills(record: SearchRecord) -> Iterator[Insight]:
    spilled = _number(record, "spill_bytes")
    if spilled:
        text = f"{spilled:.0f} bytes of registers are spilled to local memory"
        numbers = _linked(record, "spill_bytes", "registers")
        yield Insight("spills", text, (LOCAL_MEMORY, OCCUPANCY), numbers, 0.9)


def _occupancy(record: SearchRecord) -> Iterator[Insight]:
    values = [_number(record, name) for name in ("registers", "threads", "shared_bytes")]
    registers, threads, shared = values
    if registers is None or threads is None or shared is None:
        return
    try:
        found = occupancy(str(record.facts.get("arch", "")), int(registers), int(threads), int(shared))
    except CannotJudge:
        return
    if found.pct > _LOW_OCCUPANCY_PCT:
        return
    for limiter, kind, techniques in (
        ("registers", "occupancy by registers", (OCCUPANCY, REGISTER_TILING)),
        ("shared memory", "occupancy by shared memory", (SHARED_TILING, PREFETCH, OCCUPANCY)),
    ):
        if limiter in found.limiters:
            yield Insight(
                kind,
                f"{limiter} let an SM hold {found.blocks} block{'s' * (found.blocks != 1)} of {threads:.0f} "
                f"threads, {found.pct:.0f} % of its warps ({registers:.0f} registers per thread, "
                f"{shared / 1024:.0f} KiB per block)",
                techniques,
                _linked(record, "registers", "threads", "shared_bytes"),
                0.3 * (1 - found.pct / 100),
            )


def _few_blocks(record: SearchRecord) -> Iterator[Insight]:
    blocks, sms = _number(record, "blocks"), _number(record, "sms")
    if blocks and sms and blocks < sms:
        counted = f"{blocks:.0f} block{'s' * (blocks != 1)}"
        yield Insight(
            "few blocks",
            f"{counted} for {sms:.0f} SMs: {1 - blocks / sms:.0%} of the SMs have nothing to do",
            (GRID_SIZE,),
            _linked(record, "blocks", "sms"),
            0.4 * (1 - blocks / sms),
        )


def _stalls(record: SearchRecord) -> Iterator[Insight]:
    stalls = record.facts.get("stalls")
    if not isinstance(stalls, Mapping):
        return
    for name, share in stalls.items():
        if name in _STALLS and float(share) >= _STALL:
            what, techniques = _STALLS[name]
            numbers = {f"{record.name}/facts/stalls/{name}": float(share)}
            yield Insight(
                name,
                f"a warp waits {float(share):.0%} of its time for {what} ({name})",
                techniques,
                numbers,
                float(share),
            )


def _tensor_cores(record: SearchRecord) -> Iterator[Insight]:
    pipes = record.facts.get("utilisation")
    if isinstance(pipes, Mapping) and float(pipes.get("tensor cores", 1.0)) < _TENSOR:
        share = float(pipes["tensor cores"])
        numbers = {f"{record.name}/facts/utilisation/tensor cores": share}
        text = f"the tensor cores are busy {share:.0%} of the time; the target is over {_TENSOR:.0%}"
        yield Insight("tensor pipe idle", text, (REGISTER_TILING, PREFETCH), numbers, 0.3 * (_TENSOR - share))


def _of_the_judge(record: SearchRecord) -> list[Insight]:
    """What the judge itself said, with an id, a text and numbers."""
    found = []
    for row in record.insights:
        kind, text = str(row.get("id") or row.get("kind") or ""), str(row.get("text") or "")
        if kind and text:
            techniques = tuple(map(str, row.get("techniques") or ()))
            share = row.get("share_of_time")
            weight = float(share) if isinstance(share, (int, float)) else 0.2
            numbers = {
                f"{record.name}/insights/{kind}/{item['name']}": float(item["value"])
                for item in row.get("metrics") or ()
                if isinstance(item, Mapping) and isinstance(item.get("value"), (int, float))
            }
            found.append(Insight(kind, text, techniques, numbers, weight))
    return found


_RULES: tuple[Callable[[SearchRecord], Iterator[Insight]], ...] = (
    _conflicts,
    _spills,
    _occupancy,
    _few_blocks,
    _stalls,
    _tensor_cores,
)
