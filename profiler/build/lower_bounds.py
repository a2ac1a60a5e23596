"""What no kernel can be faster than: lower bounds from a problem's sizes and the GPU's own attributes.

Documents and stored values call a lower bound a floor: `floor_ns`, `floor_memory`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from profiler.catalog.problem import Problem, Workload
from profiler.evidence.gpu_arch import architecture_of
from profiler.evidence.values import State, Value

TILE_ROWS = 64  # query rows of a block, for the bound of whole waves


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
        """The largest that is known: the lower bound of all; None where none is known."""
        return max((ns for ns in self._by_name.values() if ns is not None), default=None)

    @property
    def binding(self) -> str | None:
        """The name of the largest; None where none is known."""
        computed = {name: ns for name, ns in self._by_name.items() if ns is not None}
        return max(computed, key=lambda name: computed[name]) if computed else None

    @property
    def unknown(self) -> tuple[str, ...]:
        """Those that could not be computed: the largest of the others still is a lower bound."""
        return tuple(name for name, ns in self._by_name.items() if ns is None)

    def values(self) -> dict[str, Value]:
        """Each as a stored value, `floor` the largest of them; what is unknown is not collected."""
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
    """What the GPU can do at its highest clocks, from the attributes that it gave (device.Gpu.as_json)."""
    attributes = gpu or {}
    capability, sms, clock_mhz = (attributes.get(key) for key in ("compute_capability", "sms", "max_sm_mhz"))
    architecture = architecture_of(str(capability))
    tensor = architecture.tensor_flops if architecture else None
    exponentials = architecture.exponentials if architecture else None
    if tensor and architecture and dtype == "fp8" and architecture.fp8_tensors:
        tensor *= 2
    memory_mhz, bus_bits = attributes.get("max_memory_mhz"), attributes.get("memory_bus_bits")
    cycles_per_s = sms * clock_mhz * 1e6 if sms and clock_mhz else None
    # Double data rate: two transfers a clock.
    bytes_per_s = 2 * memory_mhz * 1e6 * bus_bits / 8 if memory_mhz and bus_bits else None
    return PeakRates(
        flops_per_s=tensor * cycles_per_s if tensor and cycles_per_s else None,
        exponentials_per_s=exponentials * cycles_per_s if exponentials and cycles_per_s else None,
        bytes_per_s=bytes_per_s,
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
    """The lower bounds of a workload on a GPU. launch_ns: what an empty launch was measured to take."""
    dtype = str(workload.sizes().get("dtype", "fp16"))
    return bounds_at_rates(problem, workload, peak_rates(gpu, dtype), launch_ns)


def bounds_by_timer(
    problem: Problem, workload: Workload, gpu: Mapping[str, Any] | None, launch_ns: Mapping[str, float]
) -> dict[str, Any]:
    """The lower bounds as a run keeps them: `by_timer` has the largest for each timer of the latency samples.

    launch_ns: what an empty launch took: `single`, `events` (in a row) and `graph`. Calls timed by events may
    be batched, so that the shorter of the first two bounds them.
    """
    events_ns = min((launch_ns[name] for name in ("single", "events") if launch_ns.get(name)), default=None)
    launch_by_timer = {"events": events_ns, "graph replay": launch_ns.get("graph")}
    by_timer = {timer: workload_bounds(problem, workload, gpu, ns) for timer, ns in launch_by_timer.items()}
    return {
        **by_timer["events"].as_json(),
        "by_timer": {
            timer: {"floor_ns": bounds.largest_ns, "binding": bounds.binding}
            for timer, bounds in by_timer.items()
        },
    }


def bounds_at_rates(
    problem: Problem,
    workload: Workload,
    rates: PeakRates,
    launch_ns: float | None = None,
    rows: int = TILE_ROWS,
) -> LowerBounds:
    """The lower bounds at given rates: the arithmetic, exponentials and bytes over the rate of each."""
    arithmetic_ns = _time_ns(problem.flops(workload), rates.flops_per_s)
    blocks = query_tiles(workload, rows)
    wave_ns = None
    if arithmetic_ns is not None and blocks and rates.sms:
        wave_ns = arithmetic_ns / wave_efficiency(blocks, rates.sms)
    return LowerBounds(
        launch_ns=launch_ns,
        arithmetic_ns=arithmetic_ns,
        exponential_ns=_time_ns(exponential_count(workload), rates.exponentials_per_s),
        memory_ns=_time_ns(problem.minimal_bytes(workload), rates.bytes_per_s),
        wave_ns=wave_ns,
        assumed=rates.assumed,
    )


def exponential_count(workload: Any) -> int | None:
    """One for each visible (query, key) pair; None for a problem that has no such pairs."""
    pairs = getattr(workload, "visible_pairs", None)
    return None if pairs is None else int(workload.batch * workload.heads * pairs)


def query_tiles(workload: Any, rows: int = TILE_ROWS) -> int | None:
    """How many blocks there are when each takes `rows` query rows of a head; None without query rows."""
    if not hasattr(workload, "len_q"):
        return None
    return int(workload.batch * workload.heads * math.ceil(workload.len_q / rows))


def wave_efficiency(blocks: int, sms: int) -> float:
    """The share of the SMs' time that blocks of equal length use, one an SM at a time."""
    return blocks / (math.ceil(blocks / sms) * sms)


def _time_ns(amount: int | None, per_s: float | None) -> float | None:
    return None if amount is None or not per_s else amount / per_s * 1e9
