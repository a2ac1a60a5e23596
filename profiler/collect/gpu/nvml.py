"""The GPU and its state as NVML reports them, through pynvml; what it does not report is None."""

from __future__ import annotations

import contextlib
import importlib
import os
from functools import cache
from typing import Any

from profiler.collect.gpu import cuda_driver
from profiler.collect.gpu.properties import Gpu, GpuState, cuda_version, first_visible, reason_names

# Source: nvml.h, nvmlClockType_t, nvmlTemperatureSensors_t and nvmlGpuVirtualizationMode_t.
_SM_CLOCK, _MEMORY_CLOCK = 1, 2
_TEMPERATURE_OF_GPU = 0
_VIRTUALIZATION = {0: "none", 1: "passthrough", 2: "vgpu"}


@cache
def _library() -> Any:
    """pynvml, ready; None without it or without a driver."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # its own errors differ between versions; without it nvidia-smi is asked
        return None
    return nvml


def device_handle() -> Any:
    """NVML's handle of CUDA's device 0; None where it cannot be had.

    NVML counts the GPUs in another order than CUDA: the UUID says which one is meant.
    """
    if _library() is None:
        return None
    cuda = cuda_driver.read_gpu()
    which = (cuda.uuid if cuda and cuda.uuid else None) or first_visible(os.environ)
    if which is None:
        return None
    by_index = _query("nvmlDeviceGetHandleByIndex", int(which)) if which.isdecimal() else None
    return by_index or _query("nvmlDeviceGetHandleByUUID", which)


def read_gpu() -> Gpu | None:
    """The GPU's facts; None where NVML does not answer."""
    handle = device_handle()
    if handle is None:
        return None
    memory = _query("nvmlDeviceGetMemoryInfo", handle)
    capability = _query("nvmlDeviceGetCudaComputeCapability", handle)
    limit = _query("nvmlDeviceGetEnforcedPowerLimit", handle)
    processes = _query("nvmlDeviceGetComputeRunningProcesses", handle)
    mig = _query("nvmlDeviceGetMigMode", handle)
    virtual = _query("nvmlDeviceGetVirtualizationMode", handle)
    cuda = _query("nvmlSystemGetCudaDriverVersion_v2")
    return Gpu(
        name=_text(_query("nvmlDeviceGetName", handle)),
        uuid=_text(_query("nvmlDeviceGetUUID", handle)),
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        driver=_text(_query("nvmlSystemGetDriverVersion")),
        cuda=cuda_version(cuda) if cuda else None,
        memory_bytes=getattr(memory, "total", None),
        max_sm_mhz=_query("nvmlDeviceGetMaxClockInfo", handle, _SM_CLOCK),
        max_memory_mhz=_query("nvmlDeviceGetMaxClockInfo", handle, _MEMORY_CLOCK),
        memory_bus_bits=_query("nvmlDeviceGetMemoryBusWidth", handle),
        power_limit_w=None if limit is None else limit / 1000,
        other_processes=None
        if processes is None
        else sum(process.pid != os.getpid() for process in processes),
        mig=None if mig is None else bool(mig[0]),
        virtual=None if virtual is None else _VIRTUALIZATION.get(virtual),
    )


def read_state(handle: Any) -> GpuState | None:
    """The state of device_handle() now, in well under a millisecond; None where NVML says nothing."""
    reasons = _query("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:  # an older NVML has it under its older name
        reasons = _query("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    power = _query("nvmlDeviceGetPowerUsage", handle)
    state = GpuState(
        sm_mhz=_query("nvmlDeviceGetClockInfo", handle, _SM_CLOCK),
        memory_mhz=_query("nvmlDeviceGetClockInfo", handle, _MEMORY_CLOCK),
        power_w=None if power is None else power / 1000,
        temperature_c=_query("nvmlDeviceGetTemperature", handle, _TEMPERATURE_OF_GPU),
        reasons=None if reasons is None else reason_names(reasons),
    )
    return state if state != GpuState() else None


def _query(function: str, *arguments: Any) -> Any:
    """What NVML answers; None where it does not know or has no such function."""
    with contextlib.suppress(Exception):  # NVMLError, or a function that this version lacks
        return getattr(_library(), function)(*arguments)
    return None


def _text(value: Any) -> str | None:
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    return text or None
