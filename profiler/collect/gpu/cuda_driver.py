"""What the CUDA driver says of device 0, which is torch's, whatever the order of the others."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from profiler.collect.gpu.properties import Gpu, cuda_version

# Source: cuda.h, CUdevice_attribute.
_ATTRIBUTES = {
    "max_sm_mhz": 13,  # in kHz
    "sms": 16,
    "max_memory_mhz": 36,  # in kHz
    "memory_bus_bits": 37,
    "l2_bytes": 38,
    "shared_bytes_per_block": 97,
}
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76


def read_gpu() -> Gpu | None:
    """The GPU through libcuda; None where there is no driver or no device. Makes no context."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, number = ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return None

    def attribute(which: int) -> int | None:
        error = cuda.cuDeviceGetAttribute(ctypes.byref(number), which, device)
        return number.value if not error and number.value > 0 else None

    facts: dict[str, Any] = {name: attribute(which) for name, which in _ATTRIBUTES.items()}
    for name in ("max_sm_mhz", "max_memory_mhz"):
        facts[name] = facts[name] / 1000 if facts[name] else None
    major = attribute(_CAPABILITY_MAJOR)
    if major and not cuda.cuDeviceGetAttribute(ctypes.byref(number), _CAPABILITY_MINOR, device):
        facts["compute_capability"] = f"{major}.{number.value}"  # a minor of 0 is a number
    text = ctypes.create_string_buffer(256)
    if not cuda.cuDeviceGetName(text, 256, device):
        facts["name"] = text.value.decode(errors="replace") or None
    raw = ctypes.create_string_buffer(16)
    if hasattr(cuda, "cuDeviceGetUuid_v2") and not cuda.cuDeviceGetUuid_v2(raw, device):
        facts["uuid"] = uuid_text(raw.raw)
    size = ctypes.c_size_t()
    if not cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device):
        facts["memory_bytes"] = size.value
    if not cuda.cuDriverGetVersion(ctypes.byref(number)):
        facts["cuda"] = cuda_version(number.value)
    return Gpu(**facts)


def uuid_text(raw: bytes) -> str:
    """A UUID as NVML and nvidia-smi write it."""
    return "GPU-" + re.sub(r"(.{8})(.{4})(.{4})(.{4})(.{12})", r"\1-\2-\3-\4-\5", raw.hex())
