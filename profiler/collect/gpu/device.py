"""The GPU and its state, from whichever of the CUDA driver, NVML and nvidia-smi reports them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from profiler.collect.gpu import cuda_driver, nvidia_smi, nvml
from profiler.collect.gpu.properties import Gpu, GpuState


def describe() -> Gpu | None:
    """The GPU that CUDA calls device 0 here; None where there is none.

    nvidia-smi, which may take a second to start, is asked only where NVML does not answer.
    """
    from_nvml = nvml.read_gpu()
    return merge(cuda_driver.read_gpu(), from_nvml, nvidia_smi.read_gpu() if from_nvml is None else None)


def state() -> GpuState | None:
    """The GPU's state now; None where it cannot be read."""
    return StateMonitor().read()


class StateMonitor:
    """Reads the state of the first GPU again and again."""

    def __init__(self) -> None:
        self._handle = nvml.device_handle()

    @property
    def fast(self) -> bool:
        """Whether it reads through NVML; nvidia-smi takes too long to be asked between samples."""
        return self._handle is not None

    def read(self) -> GpuState | None:
        """The state now; None where it cannot be read."""
        return nvidia_smi.read_state() if self._handle is None else nvml.read_state(self._handle)


def merge(*sources: Gpu | None) -> Gpu | None:
    """The facts of one GPU from several sources; each fact from the first that has it."""
    facts: dict[str, Any] = {}
    for gpu in sources:
        for field in fields(Gpu):
            value = getattr(gpu, field.name, None)
            if value is not None:
                facts.setdefault(field.name, value)
    return Gpu(**facts) if facts else None
