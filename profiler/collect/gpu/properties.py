"""A GPU's facts and state as values; what is unknown is None, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# Bits of NVML's clock event reasons (older name: throttle reasons).
# Source: nvml.h, nvmlClocksEventReason* and nvmlClocksThrottleReason*.
REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}
# The others are settings, or an idle GPU: they do not take speed away from a running kernel.
SLOWING = frozenset(REASONS[bit] for bit in (0x4, 0x8, 0x20, 0x40, 0x80))


@dataclass(frozen=True)
class Gpu:
    """One GPU's unchanging facts; None is unknown, never zero."""

    name: str | None = None
    uuid: str | None = None
    compute_capability: str | None = None  # 9.0
    driver: str | None = None
    cuda: str | None = None  # the newest CUDA that the driver knows
    memory_bytes: int | None = None
    sms: int | None = None
    l2_bytes: int | None = None
    shared_bytes_per_block: int | None = None  # most that a kernel may opt in to
    max_sm_mhz: float | None = None
    max_memory_mhz: float | None = None
    memory_bus_bits: int | None = None
    power_limit_w: float | None = None
    other_processes: int | None = None  # on the GPU beside this one, as far as NVML sees them
    mig: bool | None = None
    virtual: str | None = None  # none, passthrough, vgpu

    def as_json(self) -> dict[str, Any]:
        """Every fact by name; null is unknown."""
        return asdict(self)


@dataclass(frozen=True)
class GpuState:
    """What the GPU is doing at one moment; None is unknown, never zero."""

    sm_mhz: float | None = None
    memory_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    reasons: tuple[str, ...] | None = None  # why the clock is not higher; (): nothing limits it

    @property
    def throttled(self) -> bool | None:
        """Whether the GPU is slowed down; None where that is unknown."""
        return None if self.reasons is None else not SLOWING.isdisjoint(self.reasons)

    def as_json(self) -> dict[str, Any]:
        """Every fact by name, `throttled` too; null is unknown."""
        reasons = None if self.reasons is None else list(self.reasons)
        return {**asdict(self), "reasons": reasons, "throttled": self.throttled}


def reason_names(bits: int) -> tuple[str, ...]:
    """The words of NVML's bits; an unknown bit is kept as its number."""
    names = [name for bit, name in REASONS.items() if bits & bit]
    rest = bits & ~sum(REASONS)
    return tuple(names + ([f"{rest:#x}"] if rest else []))


def cuda_version(number: int) -> str:
    """A CUDA version as the driver counts it: 13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"


def first_visible(environment: Mapping[str, str]) -> str | None:
    """What CUDA_VISIBLE_DEVICES makes device 0: an index or a UUID; None where it hides every GPU."""
    text = environment.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return "0"
    first = text.split(",")[0].strip()
    return first if first and first not in ("-1", "NoDevFiles") else None
