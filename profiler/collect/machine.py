"""What this machine can measure with: its GPU, ncu, the sanitizer, and how many replay passes ncu needs."""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from profiler.build import toolchain
from profiler.collect import find_tools, subprocesses
from profiler.collect.ncu_command import Ncu
from profiler.evidence import chip_of, nvperf

Json = dict[str, Any]


@dataclass
class Machine:
    """What this machine can do; a tool that is missing leaves out what it is for, and says so."""

    gpu: Json | None
    ncu: Ncu | None
    sanitizer: Path | None = None
    missing: list[str] = field(default_factory=list)  # why something is left out, a sentence each
    passes: dict[str, int | None] = field(default_factory=dict)  # replay passes by tier; None: not known

    @property
    def chip(self) -> str | None:
        """sm_90."""
        capability = (self.gpu or {}).get("compute_capability")
        return chip_of(capability) if capability else None

    def facts(self) -> Json:
        """What a run says of the machine that it was measured on."""
        nvcc = toolchain.find_tool("nvcc")
        return {
            "gpu": self.gpu,
            "ncu_version": self.ncu.version if self.ncu else None,
            "nvcc": nvcc.version if nvcc else None,
            "torch": _torch(),
            "python": platform.python_version(),
            "host": platform.node(),
        }


def look(counters: bool = True) -> Machine:
    """The GPU, asked for in a process of its own so that this one holds nothing of it, and the tools."""
    gpu, ended = _apart(
        "from profiler.collect.gpu import device; gpu = device.describe(); "
        "print(json.dumps(gpu and gpu.as_json()))"
    )
    ncu, sanitizer = find_tools.find("ncu") if counters else None, find_tools.find("compute-sanitizer")
    machine = Machine(gpu, Ncu(ncu.path, ncu.version) if ncu else None, sanitizer.path if sanitizer else None)
    if gpu is None:
        why = "" if ended.ok else f" (the look at it {ended.words}: {ended.last_line})"
        machine.missing.append(f"no GPU here: nothing can be measured; static and modelled facts alone{why}")
    elif counters and ncu is None:
        machine.missing.append("no ncu here: latency is measured, counters are not; install Nsight Compute")
    elif counters and machine.chip:
        count_passes(machine, machine.chip)
    return machine


def count_passes(machine: Machine, chip: str) -> None:
    """Replay passes of both tiers, by NVIDIA's library; where it ends the process that calls it, without."""
    code = (
        "from profiler.evidence import chip_metrics as chips, metric_table as metrics\n"
        "table, passes = metrics.load_metrics(), {}\n"
        "for tier in ('lean', 'full'):\n"
        f"    names = list(chips.names_to_collect(table, {chip!r}, tier))\n"
        f"    passes[tier] = chips.replay_passes(names, {chip!r})\n"
        "print(json.dumps(passes))"
    )
    counted, ended = _apart(code)
    if counted is None:
        nvperf.disable()
        machine.missing.append(
            f"replay passes are not known: {nvperf.LIBRARY} cannot be used here, it {ended.words}"
        )
    machine.passes = counted or {}


def _apart(code: str) -> tuple[Json | None, subprocesses.ProcessResult]:
    """The JSON object that a few lines of Python print, in a process of their own; None: it brought none."""
    with tempfile.TemporaryDirectory(prefix="profiler-") as folder:
        ended = subprocesses.run(
            [sys.executable, "-c", f"import json\n{code}"],
            timeout_s=120,
            log=Path(folder) / "log",
            env=subprocesses.package_environment(),
        )
    return (json.loads(ended.last_line) if ended.ok and ended.last_line.startswith("{") else None), ended


def _torch() -> str | None:
    """The version of torch, without importing it."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None
