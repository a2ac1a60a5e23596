"""This machine's means of measuring: its GPU, ncu, the sanitizer, and how many replay passes ncu needs."""

from __future__ import annotations

import functools
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from profiler.build.toolchain import find_tool
from profiler.bundles.scratch import scratch_folder
from profiler.collect import find_tools, subprocesses
from profiler.collect.gpu import device
from profiler.collect.gpu.properties import Gpu
from profiler.collect.gpu.typed_json import parse
from profiler.collect.ncu_command import TIERS, Ncu
from profiler.evidence import nvperf
from profiler.evidence.gpu_arch import chip_of

Json = dict[str, Any]


class MachineFacts(TypedDict):
    """What a run keeps about the machine that it was measured on."""

    gpu: NotRequired[Json | None]  # as Gpu.as_json gives it
    ncu_version: NotRequired[str | None]
    nvcc: NotRequired[str | None]
    torch: NotRequired[str | None]
    python: NotRequired[str | None]
    host: NotRequired[str | None]


@dataclass
class Machine:
    """What this machine can measure with; `missing` says what is left out and why."""

    gpu: Gpu | None
    ncu: Ncu | None
    sanitizer: Path | None = None
    missing: list[str] = field(default_factory=list)  # sentences
    passes: dict[str, int | None] = field(default_factory=dict)  # replay passes by tier; None: not known

    @property
    def chip(self) -> str | None:
        """The architecture of the GPU, such as sm_90."""
        capability = self.gpu.compute_capability if self.gpu else None
        return chip_of(capability) if capability else None

    def facts(self) -> MachineFacts:
        """The facts that a run keeps."""
        nvcc = find_tool("nvcc")
        return {
            "gpu": self.gpu.as_json() if self.gpu else None,
            "ncu_version": self.ncu.version if self.ncu else None,
            "nvcc": nvcc.version if nvcc else None,
            "torch": _torch_version(),
            "python": platform.python_version(),
            "host": platform.node(),
        }


def detect_machine(counters: bool = True) -> Machine:
    """The GPU and the tools of this machine. counters: whether ncu is going to be used.

    The GPU is asked for in a process of its own, so that this one holds nothing of it.
    """
    facts, ended = _ask_apart("gpu")
    gpu = parse(Gpu, facts) if facts else None
    ncu, sanitizer = find_tools.find("ncu") if counters else None, find_tools.find("compute-sanitizer")
    machine = Machine(gpu, Ncu(ncu.path, ncu.version) if ncu else None, sanitizer.path if sanitizer else None)
    if gpu is None:
        why = "" if ended.ok else f" (the look at it {ended.description}: {ended.last_line})"
        machine.missing.append(f"no GPU here: nothing can be measured; static and modelled facts only{why}")
    elif counters and ncu is None:
        machine.missing.append("no ncu here: latency is measured, counters are not; install Nsight Compute")
    elif counters and machine.chip:
        count_passes(machine, machine.chip)
    return machine


def count_passes(machine: Machine, chip: str) -> None:
    """Note the replay passes of both tiers.

    NVIDIA's library counts them, in a process of its own: where it ends the process that calls it, the passes
    are not known, and the library is not used here either.
    """
    passes, ended = _ask_apart("passes", chip)
    if passes is None:
        nvperf.disable()
        machine.missing.append(
            f"replay passes are not known: {nvperf.LIBRARY} cannot be used here, it {ended.description}"
        )
    machine.passes = passes or {}


@functools.cache
def _torch_version() -> str | None:
    """The version of torch, without importing it."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


# ---------------------------------------------------------------- in a process of its own


def _ask_apart(*question: str) -> tuple[Json | None, subprocesses.ProcessResult]:
    """Run main() in a process of its own: what it prints, None where it fails, and how the process ended."""
    with scratch_folder() as folder:
        ended = subprocesses.run(
            [sys.executable, "-m", "profiler.collect.machine", *question],
            timeout_s=120,
            log=folder / "log",
            env=subprocesses.package_environment(),
        )
    return (json.loads(ended.last_line) if ended.ok and ended.last_line.startswith("{") else None), ended


def main(argv: Sequence[str]) -> int:
    """Print as JSON what the GPU is (`gpu`), or the replay passes of each tier (`passes sm_90`)."""
    if argv[0] == "gpu":
        gpu = device.describe()
        print(json.dumps(gpu.as_json() if gpu else None))
    else:
        from profiler.evidence import chip_metrics
        from profiler.evidence.metric_table import load_metrics

        table, chip = load_metrics(), argv[1]
        names = {tier: list(chip_metrics.names_to_collect(table, chip, tier)) for tier in TIERS}
        print(json.dumps({tier: chip_metrics.replay_passes(names[tier], chip) for tier in TIERS}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
