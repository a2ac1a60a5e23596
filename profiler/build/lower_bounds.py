"""What no kernel can be faster than: floors from a problem's sizes and the GPU's own attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from profiler.catalog import Problem, Workload
from profiler.evidence import State, Value, architecture_of

TILE_ROWS = 64  # query rows of a block, for the wave-quantised floor


@dataclass(frozen=True)
class PeakRates:
    """What a GPU can do a second; None is unknown."""

    flops_per_s: float | None = None
    exponentials_per_s: float | None = None
    bytes_per_s: float | None = None
    sms: int | None = None
    assumed: Mapping[str, Any] = field(default_factory=dict)  # what the rates were computed from


@dataclass(frozen=True)
class LowerBounds:
    """Nanoseconds that a workload takes at least; None is unknown, never zero."""

    launch_ns: float | None
    arithmetic_ns: float | None
    exponential_ns: float | None
    memory_ns: float | None
    wave_ns: float | None  # arithmetic, when blocks of TILE_ROWS rows fill the SMs wave by wave
    assumed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _by_name(self) -> dict[str, float | None]:
        return {
            "launch": self.launch_ns,
            "arithmetic": self.arithmetic_ns,
            "exponential": self.exponential_ns,
            "memory": self.memory_ns,
            "wave": self.wave_ns,
        }

    @property
    def largest_ns(self) -> float | None:
        """The largest that is known; None where none is."""
        return max((one for one in self._by_name.values() if one is not None), default=None)

    @property
    def binding(self) -> str | None:
        """The name of the largest."""
        known = {name: ns for name, ns in self._by_name.items() if ns is not None}
        return max(known, key=lambda name: known[name]) if known else None

    @property
    def unknown(self) -> tuple[str, ...]:
        """The floors that nobody could compute: the largest of the others is still a floor."""
        return tuple(name for name, ns in self._by_name.items() if ns is None)

    def values(self) -> dict[str, Value]:
        """Every floor as a stored value, `floor` their largest; what is unknown is not collected."""
        unknown = Value(None, "ns", state=State.NOT_COLLECTED)
        named = {**self._by_name, "": self.largest_ns}
        return {
            f"floor_{name}" if name else "floor": unknown if ns is None else Value(ns, "ns")
            for name, ns in named.items()
        }

    def as_json(self) -> dict[str, Any]:
        """Everything by name; null is unknown."""
        named = {f"{name}_ns": ns for name, ns in self._by_name.items()}
        return {
            **named,
            "floor_ns": self.largest_ns,
            "binding": self.binding,
            "unknown": list(self.unknown),
            "assumed": dict(self.assumed),
        }


def peak_rates(gpu: Mapping[str, Any] | None, dtype: str = "fp16") -> PeakRates:
    """What the GPU can do, from its own attributes (device.Gpu.as_json) at its highest clocks."""
    facts = gpu or {}
    capability, sms, clock_mhz = (facts.get(key) for key in ("compute_capability", "sms", "max_sm_mhz"))
    architecture = architecture_of(str(capability))
    tensor = architecture.tensor_flops if architecture else None
    exponentials = architecture.exponentials if architecture else None
    if tensor and architecture and dtype == "fp8" and architecture.fp8_tensors:
        tensor *= 2
    memory_mhz, bus_bits = facts.get("max_memory_mhz"), facts.get("memory_bus_bits")
    cycles_per_s = sms * clock_mhz * 1e6 if sms and clock_mhz else None
    return PeakRates(
        flops_per_s=tensor * cycles_per_s if tensor and cycles_per_s else None,
        exponentials_per_s=exponentials * cycles_per_s if exponentials and cycles_per_s else None,
        bytes_per_s=2 * memory_mhz * 1e6 * bus_bits / 8
        if memory_mhz and bus_bits
        else None,  # double data rate
        sms=sms,
        assumed={
            "compute_capability": capability,
            "sms": sms,
            "sm_mhz": clock_mhz,
            "tensor_flops_per_clock_sm": tensor,
            "exponentials_per_clock_sm": exponentials,
            "memory_mhz": memory_mhz,
            "memory_bus_bits": bus_bits,
            "tile_rows": TILE_ROWS,
        },
    )


def workload_bounds(
    problem: Problem, workload: Workload, gpu: Mapping[str, Any] | None, launch_ns: float | None = None
) -> LowerBounds:
    """The floors of a workload on a GPU. launch_ns is measured (the timing stage's), or unknown."""
    return bounds_at_rates(
        problem, workload, peak_rates(gpu, str(workload.sizes().get("dtype", "fp16"))), launch_ns
    )


def bounds_by_timer(
    problem: Problem, workload: Workload, gpu: Mapping[str, Any] | None, launch_ns: Mapping[str, float]
) -> dict[str, Any]:
    """The floors as a run keeps them; `by_timer` has the floor and its name for each of the timing's clocks.

    launch_ns: what an empty launch took: `single`, `events` (in a row) and `graph`. Calls timed by events may
    be batched, so that the shorter of the first two bounds them.
    """
    events = min((launch_ns[one] for one in ("single", "events") if launch_ns.get(one)), default=None)
    launches = {"events": events, "graph replay": launch_ns.get("graph")}
    every = {timer: workload_bounds(problem, workload, gpu, one) for timer, one in launches.items()}
    return {
        **every["events"].as_json(),
        "by_timer": {
            timer: {"floor_ns": one.largest_ns, "binding": one.binding} for timer, one in every.items()
        },
    }


def bounds_at_rates(
    problem: Problem,
    workload: Workload,
    able: PeakRates,
    launch_ns: float | None = None,
    rows: int = TILE_ROWS,
) -> LowerBounds:
    """The floors at given rates: arithmetic, exponentials and bytes over what the GPU can do of each."""
    arithmetic = _over(problem.flops(workload), able.flops_per_s)
    blocks = query_tiles(workload, rows)
    wave = None
    if arithmetic is not None and blocks and able.sms:
        wave = arithmetic / wave_efficiency(blocks, able.sms)
    return LowerBounds(
        launch_ns=launch_ns,
        arithmetic_ns=arithmetic,
        exponential_ns=_over(exponential_count(workload), able.exponentials_per_s),
        memory_ns=_over(problem.minimal_bytes(workload), able.bytes_per_s),
        wave_ns=wave,
        assumed=able.assumed,
    )


def exponential_count(workload: Any) -> int | None:
    """One a visible (query, key) pair; None for a problem that has no such pairs."""
    pairs = getattr(workload, "visible_pairs", None)
    return None if pairs is None else int(workload.batch * workload.heads * pairs)


def query_tiles(workload: Any, rows: int = TILE_ROWS) -> int | None:
    """Blocks, when each takes so many query rows of a head; None for a problem without query rows."""
    if not hasattr(workload, "len_q"):
        return None
    return int(workload.batch * workload.heads * math.ceil(workload.len_q / rows))


def wave_efficiency(blocks: int, sms: int) -> float:
    """The share of the SMs' time that is used when a wave is one block an SM."""
    return blocks / (math.ceil(blocks / sms) * sms)


def _over(amount: int | None, per_s: float | None) -> float | None:
    return None if amount is None or not per_s else amount / per_s * 1e9
