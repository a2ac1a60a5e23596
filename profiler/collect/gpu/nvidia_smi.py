"""The GPU and its state as nvidia-smi reports them, where NVML is not available."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence

from profiler.collect.gpu.properties import Gpu, GpuState, first_visible, reason_names

_TIMEOUT_S = 30
# Our names and the fields of nvidia-smi, whose names have changed: each is a list, the newest first.
GPU_FIELDS: dict[str, tuple[str, ...]] = {
    "name": ("name",),
    "uuid": ("uuid",),
    "compute_capability": ("compute_cap",),
    "driver": ("driver_version",),
    "memory_bytes": ("memory.total",),
    "max_sm_mhz": ("clocks.max.sm",),
    "max_memory_mhz": ("clocks.max.memory",),
    "power_limit_w": ("power.limit",),
}
STATE_FIELDS: dict[str, tuple[str, ...]] = {
    "sm_mhz": ("clocks.sm",),
    "memory_mhz": ("clocks.mem",),
    "power_w": ("power.draw",),
    "temperature_c": ("temperature.gpu",),
    "reasons": ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
}


def read_gpu() -> Gpu | None:
    """The GPU's facts; None where nvidia-smi does not answer."""
    row = _query(GPU_FIELDS)
    return gpu_of(row) if row else None


def read_state() -> GpuState | None:
    """The state now, in tens of milliseconds; None where nvidia-smi does not answer."""
    row = _query(STATE_FIELDS)
    return state_of(row) if row else None


def gpu_of(row: Mapping[str, str]) -> Gpu | None:
    """nvidia-smi's answers as facts; what it calls N/A or not supported is None."""
    memory = _number(row.get("memory_bytes"))
    gpu = Gpu(
        name=_text(row.get("name")),
        uuid=_text(row.get("uuid")),
        compute_capability=_text(row.get("compute_capability")),
        driver=_text(row.get("driver")),
        memory_bytes=None if memory is None else int(memory) << 20,  # it counts in MiB
        max_sm_mhz=_number(row.get("max_sm_mhz")),
        max_memory_mhz=_number(row.get("max_memory_mhz")),
        power_limit_w=_number(row.get("power_limit_w")),
    )
    return gpu if gpu != Gpu() else None


def state_of(row: Mapping[str, str]) -> GpuState | None:
    """nvidia-smi's answers as a state."""
    text = row.get("reasons", "")
    bits = int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", text) else None
    state = GpuState(
        sm_mhz=_number(row.get("sm_mhz")),
        memory_mhz=_number(row.get("memory_mhz")),
        power_w=_number(row.get("power_w")),
        temperature_c=_number(row.get("temperature_c")),
        reasons=None if bits is None else reason_names(bits),
    )
    return state if state != GpuState() else None


def _number(text: str | None) -> float | None:
    """A number that nvidia-smi printed, or None for its many ways to say that there is none."""
    try:
        return float(text or "")
    except ValueError:
        return None


def _text(text: str | None) -> str | None:
    """A text that nvidia-smi printed, or None for [N/A], [Not Supported], [Unknown Error] and nothing."""
    return text if text and not text.startswith("[") and text != "N/A" else None


def _query(names: Mapping[str, Sequence[str]]) -> dict[str, str] | None:
    program, which = shutil.which("nvidia-smi"), first_visible(os.environ)
    if program is None or which is None:
        return None
    hung = False

    def ask(fields: Sequence[str]) -> str | None:
        nonlocal hung
        if hung:  # it would hang at every field
            return None
        options = [f"--id={which}", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        try:
            done = subprocess.run([program, *options], capture_output=True, text=True, timeout=_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            hung = True
            return None
        return done.stdout if done.returncode == 0 else None

    return query_fields(names, ask)


def query_fields(
    names: Mapping[str, Sequence[str]], ask: Callable[[Sequence[str]], str | None]
) -> dict[str, str] | None:
    """Query all fields at once; where nvidia-smi refuses because it lacks one, query them one by one."""
    newest = [alternatives[0] for alternatives in names.values()]
    answer = ask(newest)
    if answer is not None and answer.strip():
        cells = [cell.strip() for cell in answer.strip().splitlines()[0].split(", ")]
        if len(cells) == len(newest):
            return dict(zip(names, cells, strict=True))
    row = {}
    for name, alternatives in names.items():
        for field in alternatives:
            answer = ask([field])
            if answer is not None and answer.strip():
                row[name] = answer.strip().splitlines()[0]
                break
    return row or None
