"""What the GPU is and what state it is in, from NVML, the CUDA driver or nvidia-smi; the unsaid is None."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
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

# Source: cuda.h, CUdevice_attribute.
_ATTRIBUTES = {
    "max_sm_mhz": 13,  # in kHz
    "sms": 16,
    "max_memory_mhz": 36,  # in kHz
    "memory_bus_bits": 37,
    "l2_bytes": 38,
    "shared_bytes_per_block": 97,
}


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
    reasons: tuple[str, ...] | None = None  # why the clock is not higher; () is "nothing holds it"

    @property
    def throttled(self) -> bool | None:
        """Whether something takes speed away; None where nobody says."""
        return None if self.reasons is None else not SLOWING.isdisjoint(self.reasons)

    def as_json(self) -> dict[str, Any]:
        """Every fact by name, `throttled` too; null is unknown."""
        reasons = None if self.reasons is None else list(self.reasons)
        return {**asdict(self), "reasons": reasons, "throttled": self.throttled}


def describe() -> Gpu | None:
    """The GPU that CUDA calls device 0 here; None where there is none.

    nvidia-smi, which may take a second to start, is asked only where NVML does not answer.
    """
    nvml = _from_nvml()
    return merge(_from_cuda(), nvml, _from_smi() if nvml is None else None)


def state() -> GpuState | None:
    """Its state now; None where nobody can say."""
    return StateMonitor().read()


class StateMonitor:
    """Reads the state of the first GPU again and again: well under a millisecond through NVML."""

    def __init__(self) -> None:
        self._nvml = _nvml()
        self._handle = _handle(self._nvml) if self._nvml else None

    @property
    def fast(self) -> bool:
        """Whether it reads through NVML; nvidia-smi takes tens of milliseconds."""
        return self._handle is not None

    def read(self) -> GpuState | None:
        """The state now; None where nobody can say."""
        if self._handle is None:
            row = _smi_row(_SMI_STATE)
            return state_of(row) if row else None
        nvml, handle = self._nvml, self._handle
        reasons = _asked(nvml, "nvmlDeviceGetCurrentClocksEventReasons", handle)
        if reasons is None:
            reasons = _asked(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        power = _asked(nvml, "nvmlDeviceGetPowerUsage", handle)
        found = GpuState(
            sm_mhz=_asked(nvml, "nvmlDeviceGetClockInfo", handle, 1),
            memory_mhz=_asked(nvml, "nvmlDeviceGetClockInfo", handle, 2),
            power_w=None if power is None else power / 1000,
            temperature_c=_asked(nvml, "nvmlDeviceGetTemperature", handle, 0),
            reasons=None if reasons is None else names_of(reasons),
        )
        return found if found != GpuState() else None


def merge(*found: Gpu | None) -> Gpu | None:
    """What several sources know of one GPU; the first that knows a fact is believed."""
    known: dict[str, Any] = {}
    for gpu in found:
        for one in fields(Gpu):
            value = getattr(gpu, one.name, None)
            if value is not None:
                known.setdefault(one.name, value)
    return Gpu(**known) if known else None


def names_of(bits: int) -> tuple[str, ...]:
    """The words of NVML's bits; an unknown bit is kept as its number."""
    known = [name for bit, name in REASONS.items() if bits & bit]
    rest = bits & ~sum(REASONS)
    return tuple(known + ([f"{rest:#x}"] if rest else []))


def visible(environment: Mapping[str, str]) -> str | None:
    """What CUDA_VISIBLE_DEVICES makes device 0: an index or a UUID; None where it hides every GPU."""
    text = environment.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return "0"
    first = text.split(",")[0].strip()
    return first if first and first not in ("-1", "NoDevFiles") else None


# ---------------------------------------------------------------- the CUDA driver


def _from_cuda() -> Gpu | None:
    """From libcuda: the same device 0 as torch's, whatever the order of the others."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, number = ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return None

    def attribute(which: int) -> int | None:
        refused = cuda.cuDeviceGetAttribute(ctypes.byref(number), which, device)
        return number.value if not refused and number.value > 0 else None

    facts: dict[str, Any] = {name: attribute(which) for name, which in _ATTRIBUTES.items()}
    for name in ("max_sm_mhz", "max_memory_mhz"):
        facts[name] = facts[name] / 1000 if facts[name] else None
    major = attribute(75)
    if major and not cuda.cuDeviceGetAttribute(ctypes.byref(number), 76, device):
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
        facts["cuda"] = cuda_text(number.value)
    return Gpu(**facts)


def uuid_text(raw: bytes) -> str:
    """A UUID as NVML and nvidia-smi write it."""
    return "GPU-" + re.sub(r"(.{8})(.{4})(.{4})(.{4})(.{12})", r"\1-\2-\3-\4-\5", raw.hex())


def cuda_text(number: int) -> str:
    """13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"


# ---------------------------------------------------------------- NVML


@cache
def _nvml() -> Any:
    """pynvml, ready; None without it or without a driver."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # its own errors differ between versions; without it nvidia-smi is asked
        return None
    return nvml


def _handle(nvml: Any) -> Any:
    """NVML counts the GPUs in another order than CUDA: the UUID says which one is meant."""
    cuda = _from_cuda()
    which = (cuda.uuid if cuda and cuda.uuid else None) or visible(os.environ)
    if which is None:
        return None
    by_index = _asked(nvml, "nvmlDeviceGetHandleByIndex", int(which)) if which.isdecimal() else None
    return by_index or _asked(nvml, "nvmlDeviceGetHandleByUUID", which)


def _asked(nvml: Any, function: str, *arguments: Any) -> Any:
    """What NVML answers; None where it does not know or has no such question."""
    with contextlib.suppress(Exception):  # NVMLError, or a function that this version lacks
        return getattr(nvml, function)(*arguments)
    return None


def _from_nvml() -> Gpu | None:
    nvml = _nvml()
    handle = _handle(nvml) if nvml else None
    if handle is None:
        return None
    memory = _asked(nvml, "nvmlDeviceGetMemoryInfo", handle)
    capability = _asked(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    limit = _asked(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)
    processes = _asked(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
    mig = _asked(nvml, "nvmlDeviceGetMigMode", handle)
    virtual = _asked(nvml, "nvmlDeviceGetVirtualizationMode", handle)
    cuda = _asked(nvml, "nvmlSystemGetCudaDriverVersion_v2")
    return Gpu(
        name=_text(_asked(nvml, "nvmlDeviceGetName", handle)),
        uuid=_text(_asked(nvml, "nvmlDeviceGetUUID", handle)),
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        driver=_text(_asked(nvml, "nvmlSystemGetDriverVersion")),
        cuda=cuda_text(cuda) if cuda else None,
        memory_bytes=getattr(memory, "total", None),
        max_sm_mhz=_asked(nvml, "nvmlDeviceGetMaxClockInfo", handle, 1),
        max_memory_mhz=_asked(nvml, "nvmlDeviceGetMaxClockInfo", handle, 2),
        memory_bus_bits=_asked(nvml, "nvmlDeviceGetMemoryBusWidth", handle),
        power_limit_w=None if limit is None else limit / 1000,
        other_processes=None if processes is None else sum(one.pid != os.getpid() for one in processes),
        mig=None if mig is None else bool(mig[0]),
        virtual={0: "none", 1: "passthrough", 2: "vgpu"}.get(virtual) if virtual is not None else None,
    )


def _text(value: Any) -> str | None:
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    return text or None


# ---------------------------------------------------------------- nvidia-smi

_SMI_S = 30
# Field names have changed: each is a list, the newest first.
_SMI_GPU: dict[str, tuple[str, ...]] = {
    "name": ("name",),
    "uuid": ("uuid",),
    "compute_capability": ("compute_cap",),
    "driver": ("driver_version",),
    "memory_bytes": ("memory.total",),
    "max_sm_mhz": ("clocks.max.sm",),
    "max_memory_mhz": ("clocks.max.memory",),
    "power_limit_w": ("power.limit",),
}
_SMI_STATE: dict[str, tuple[str, ...]] = {
    "sm_mhz": ("clocks.sm",),
    "memory_mhz": ("clocks.mem",),
    "power_w": ("power.draw",),
    "temperature_c": ("temperature.gpu",),
    "reasons": ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
}


def _from_smi() -> Gpu | None:
    row = _smi_row(_SMI_GPU)
    return gpu_of(row) if row else None


def gpu_of(row: Mapping[str, str]) -> Gpu | None:
    """nvidia-smi's answers as facts; what it calls N/A or not supported is None."""
    memory = number(row.get("memory_bytes"))
    gpu = Gpu(
        name=text_of(row.get("name")),
        uuid=text_of(row.get("uuid")),
        compute_capability=text_of(row.get("compute_capability")),
        driver=text_of(row.get("driver")),
        memory_bytes=None if memory is None else int(memory) << 20,  # it counts in MiB
        max_sm_mhz=number(row.get("max_sm_mhz")),
        max_memory_mhz=number(row.get("max_memory_mhz")),
        power_limit_w=number(row.get("power_limit_w")),
    )
    return gpu if gpu != Gpu() else None


def state_of(row: Mapping[str, str]) -> GpuState | None:
    """nvidia-smi's answers as a state."""
    text = row.get("reasons", "")
    bits = int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", text) else None
    found = GpuState(
        sm_mhz=number(row.get("sm_mhz")),
        memory_mhz=number(row.get("memory_mhz")),
        power_w=number(row.get("power_w")),
        temperature_c=number(row.get("temperature_c")),
        reasons=None if bits is None else names_of(bits),
    )
    return found if found != GpuState() else None


def number(text: str | None) -> float | None:
    """A number that nvidia-smi printed, or None for its many ways to say that there is none."""
    try:
        return float(text or "")
    except ValueError:
        return None


def text_of(text: str | None) -> str | None:
    """A text that nvidia-smi printed, or None for [N/A], [Not Supported], [Unknown Error] and nothing."""
    return text if text and not text.startswith("[") and text != "N/A" else None


def _smi_row(wanted: Mapping[str, Sequence[str]]) -> dict[str, str] | None:
    program, which = shutil.which("nvidia-smi"), visible(os.environ)
    if program is None or which is None:
        return None

    hung = False

    def ask(names: Sequence[str]) -> str | None:
        nonlocal hung
        if hung:  # it would hang at every field
            return None
        command = [
            program,
            f"--id={which}",
            f"--query-gpu={','.join(names)}",
            "--format=csv,noheader,nounits",
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_S)
        except (OSError, subprocess.TimeoutExpired):
            hung = True
            return None
        return done.stdout if done.returncode == 0 else None

    return smi_row(wanted, ask)


def smi_row(
    wanted: Mapping[str, Sequence[str]], ask: Callable[[Sequence[str]], str | None]
) -> dict[str, str] | None:
    """Ask for all at once; where this nvidia-smi does not know a field it refuses all: then one by one."""
    newest = [names[0] for names in wanted.values()]
    answer = ask(newest)
    if answer is not None and answer.strip():
        cells = [cell.strip() for cell in answer.strip().splitlines()[0].split(", ")]
        if len(cells) == len(newest):
            return dict(zip(wanted, cells, strict=True))
    row = {}
    for key, names in wanted.items():
        for name in names:
            answer = ask([name])
            if answer is not None and answer.strip():
                row[key] = answer.strip().splitlines()[0]
                break
    return row or None
