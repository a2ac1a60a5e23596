"""GPUs as they are sold, for a prediction without one: how many SMs, their clock, memory and caches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from profiler.errors import UnknownName
from profiler.evidence.gpu_arch import Architecture, architecture_of, find_architecture

_MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class GpuPart:
    """One GPU: what its architecture leaves open."""

    name: str  # H100-SXM
    arch: str  # sm_90
    sms: int
    clock_hz: float  # of the SMs under load: what the data sheet calls boost
    dram_bytes_per_s: float  # at the highest memory clock
    l2_bytes: int | None  # None: not known
    # Matrix products that accumulate in fp32 run at half the rate. Source: NVIDIA's whitepapers of GeForce.
    halves_fp32_accumulation: bool = False

    @cached_property
    def architecture(self) -> Architecture:
        """The row of its architecture."""
        architecture = find_architecture(self.arch)
        assert architecture is not None
        return architecture

    def as_json(self) -> dict[str, Any]:
        """Everything by name, rates in hertz and bytes a second."""
        return {
            "name": self.name,
            "arch": self.arch,
            "sms": self.sms,
            "clock_hz": self.clock_hz,
            "dram_bytes_per_s": self.dram_bytes_per_s,
            "l2_bytes": self.l2_bytes,
        }


# Source: NVIDIA's data sheets and whitepapers of each; sm_90's clock as boost of the SXM5 board under load.
GPU_PARTS: Mapping[str, GpuPart] = {
    part.name: part
    for part in (
        GpuPart(
            name="V100-SXM2", arch="sm_70", sms=80, clock_hz=1.53e9, dram_bytes_per_s=900e9, l2_bytes=6 * _MIB
        ),
        GpuPart(name="T4", arch="sm_75", sms=40, clock_hz=1.59e9, dram_bytes_per_s=320e9, l2_bytes=4 * _MIB),
        GpuPart(
            name="A100-40GB",
            arch="sm_80",
            sms=108,
            clock_hz=1.41e9,
            dram_bytes_per_s=1555e9,
            l2_bytes=40 * _MIB,
        ),
        GpuPart(
            name="A100-80GB",
            arch="sm_80",
            sms=108,
            clock_hz=1.41e9,
            dram_bytes_per_s=2039e9,
            l2_bytes=40 * _MIB,
        ),
        GpuPart(
            name="A10", arch="sm_86", sms=72, clock_hz=1.695e9, dram_bytes_per_s=600e9, l2_bytes=6 * _MIB
        ),
        GpuPart(
            name="RTX-3090",
            arch="sm_86",
            sms=82,
            clock_hz=1.695e9,
            dram_bytes_per_s=936e9,
            l2_bytes=6 * _MIB,
            halves_fp32_accumulation=True,
        ),
        GpuPart(name="L4", arch="sm_89", sms=58, clock_hz=2.04e9, dram_bytes_per_s=300e9, l2_bytes=48 * _MIB),
        GpuPart(
            name="L40S", arch="sm_89", sms=142, clock_hz=2.52e9, dram_bytes_per_s=864e9, l2_bytes=96 * _MIB
        ),
        GpuPart(
            name="RTX-4090",
            arch="sm_89",
            sms=128,
            clock_hz=2.52e9,
            dram_bytes_per_s=1008e9,
            l2_bytes=72 * _MIB,
            halves_fp32_accumulation=True,
        ),
        GpuPart(
            name="H100-PCIe",
            arch="sm_90",
            sms=114,
            clock_hz=1.755e9,
            dram_bytes_per_s=2039e9,
            l2_bytes=50 * _MIB,
        ),
        GpuPart(
            name="H100-SXM",
            arch="sm_90",
            sms=132,
            clock_hz=1.755e9,
            dram_bytes_per_s=3352e9,
            l2_bytes=50 * _MIB,
        ),
        GpuPart(
            name="H200-SXM",
            arch="sm_90",
            sms=132,
            clock_hz=1.755e9,
            dram_bytes_per_s=4800e9,
            l2_bytes=50 * _MIB,
        ),
    )
}
DEFAULT_PART = "H100-SXM"

# What the driver calls them (cudaDeviceProp.name), in capitals: the first pattern that is found counts.
_DEVICE_NAMES = (
    (r"H100.*PCIE", "H100-PCIe"),
    (r"H100 (80GB HBM3|SXM)", "H100-SXM"),
    (r"H200(?! NVL)", "H200-SXM"),
    (r"A100.*80GB", "A100-80GB"),
    (r"A100.*40GB", "A100-40GB"),
    (r"V100-SXM2", "V100-SXM2"),
    (r"\bT4\b", "T4"),
    (r"\bA10\b", "A10"),
    (r"RTX 3090(?! TI)", "RTX-3090"),
    (r"RTX 4090(?! (D\b|LAPTOP))", "RTX-4090"),
    (r"\bL40S\b", "L40S"),
    (r"\bL4\b", "L4"),
)


def find_part(name: str) -> GpuPart:
    """The GPU of a name, whatever its case and separators; a name's beginning where only one begins so.

    Raises UnknownName with the names that are known.
    """
    wanted = _plain(name)
    plain = {_plain(known): part for known, part in GPU_PARTS.items()}
    starts = [part for known, part in plain.items() if known.startswith(wanted)]
    if wanted in plain:
        return plain[wanted]
    if wanted and len(starts) == 1:
        return starts[0]
    choice = ", ".join(part.name for part in starts) if wanted and starts else ", ".join(GPU_PARTS)
    raise UnknownName(f"no GPU {name!r} is known here: choose one of {choice}")


def part_of_device(device: str) -> GpuPart | None:
    """The GPU that the driver calls by this name; None for a part of one (MIG) and for unknown ones."""
    name = device.upper()
    if re.search(r"\bMIG\b", name):
        return None
    return next((GPU_PARTS[part] for pattern, part in _DEVICE_NAMES if re.search(pattern, name)), None)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).upper()


def part_of_launch(attributes: Mapping[str, float | str | None], clock_hz: float | None) -> GpuPart | None:
    """The GPU of a report, by ncu's `device__attribute_*` names without the prefix; None where one lacks.

    clock_hz: of the SMs in that launch.
    """

    def number(name: str) -> float | None:
        value = attributes.get(name)
        return value if isinstance(value, (int, float)) and value == value else None

    major, minor = number("compute_capability_major"), number("compute_capability_minor")
    sms, bus_bits = number("multiprocessor_count"), number("global_memory_bus_width")
    memory_khz = number("max_mem_frequency_khz")
    if major is None or minor is None or not sms or not clock_hz or not bus_bits or not memory_khz:
        return None
    architecture = architecture_of(f"{major:.0f}.{minor:.0f}")
    if architecture is None:
        return None
    name = str(attributes.get("display_name") or "GPU")
    l2_bytes = number("l2_cache_size")
    return GpuPart(
        name=name,
        arch=architecture.name,
        sms=int(sms),
        clock_hz=clock_hz,
        dram_bytes_per_s=2 * memory_khz * 1e3 * bus_bits / 8,  # two transfers a clock
        l2_bytes=int(l2_bytes) if l2_bytes else None,
        halves_fp32_accumulation="GeForce" in name,
    )
