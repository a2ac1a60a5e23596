"""What this machine can measure, and what is missing for the rest."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from profiler.build.toolchain import INSTALL_HINT, find_tool
from profiler.bundles.scratch import scratch_folder
from profiler.collect import find_tools, gpu_process, subprocesses
from profiler.collect.gpu import device, launch_probe
from profiler.collect.gpu.messages import TORCH_PROBE, ProbeRequest, TorchProbeResult
from profiler.collect.gpu.properties import Gpu, GpuState

PROBE_METRIC = "smsp__inst_executed.sum"
# Source: developer.nvidia.com/ERR_NVGPUCTRPERM.
PERMISSION = (
    "ncu may not read GPU counters (ERR_NVGPUCTRPERM): run as root, or give the container CAP_SYS_ADMIN, or "
    "let the administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0 "
    "(/etc/modprobe.d, then reboot); until then latency and static facts are collected"
)


@dataclass(frozen=True)
class ToolStatus:
    """A program, or what to do where it is not there."""

    path: str | None
    version: str | None
    missing: str | None = None


@dataclass(frozen=True)
class DoctorReport:
    """Everything that `profiler doctor` shows."""

    system: str
    python: str
    gpu: Gpu | None
    state: GpuState | None
    tools: Mapping[str, ToolStatus]  # nvcc, cuobjdump, ncu, compute-sanitizer, g++
    counters: bool | None  # whether ncu may read them; None: not tried, or unclear
    counters_reason: str
    torch: TorchProbeResult

    @property
    def can(self) -> dict[str, tuple[bool, str]]:
        """What works here, and why not or by what, in the order in which it is needed."""
        on_gpu = self.gpu is not None and self.torch["status"] == "done"
        here = {name for name, tool in self.tools.items() if tool.path}
        why = "" if on_gpu else self._why_no_gpu
        build = "" if "nvcc" in here else "no nvcc: only Python versions (baselines)"
        return {
            "import, compare, dashboard": (True, "needs no GPU and no CUDA"),
            "check on the CPU": ("g++" in here, "" if "g++" in here else "no g++"),
            "build, static": ("nvcc" in here, "" if "nvcc" in here else "no nvcc"),
            "check on the GPU": (on_gpu, why or build),
            "latency": (on_gpu, why or build),
            "counters": (on_gpu and self.counters is True, why or self.counters_reason),
            "races on the GPU": (
                on_gpu and "compute-sanitizer" in here,
                why or ("" if "compute-sanitizer" in here else "no compute-sanitizer"),
            ),
        }

    @property
    def can_measure(self) -> bool:
        """Whether anything can be measured on a GPU."""
        return self.can["latency"][0]

    @property
    def shared(self) -> str:
        """Whether others may change the clocks or use the GPU, and what follows for `--clock-control`."""
        gpu = self.gpu
        if gpu is None:
            return "unknown: no GPU"
        others = gpu.other_processes
        signs = [f"{others} other processes on the GPU"] if others else []
        signs += ["MIG is on"] if gpu.mig else []
        signs += [f"virtual machine ({gpu.virtual})"] if gpu.virtual not in (None, "none") else []
        if signs:
            return f"shared: {', '.join(signs)}; leave the clocks alone (--clock-control none)"
        if others is None:
            return "unknown: the driver does not say who uses the GPU; --clock-control none is safe"
        return (
            "no other process is on the GPU; --clock-control base steadies the counters, none is the default"
        )

    @property
    def _why_no_gpu(self) -> str:
        if self.gpu is None:
            return "no GPU"
        return str(self.torch["reason"] or "torch does not run")


def examine_machine() -> DoctorReport:
    """Examine this machine; what might crash or hang is tried in a process of its own. Takes up to 30 s."""
    gpu = device.describe()
    ncu = find_tools.find("ncu")
    with (
        scratch_folder() as folder,
        subprocesses.kill_on_exit(folder),  # an ncu that hangs must not outlive `timeout`
    ):
        torch = gpu_process.run_program(TORCH_PROBE, ProbeRequest(), folder, timeout_s=180)
        if ncu is None:
            counters, reason = None, "no ncu"
        elif gpu is None:
            counters, reason = None, "no GPU"
        else:
            counters, reason = may_read_counters(ncu.path, folder)
    return DoctorReport(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_version()} ({sys.executable})",
        gpu=gpu,
        state=device.state() if gpu else None,
        tools=tool_statuses(),
        counters=counters,
        counters_reason=reason,
        torch=torch,
    )


def tool_statuses() -> dict[str, ToolStatus]:
    """The programs, or how to get them."""
    hints = {
        "ncu": "install Nsight Compute, or put it on the PATH",
        "compute-sanitizer": "it comes with the CUDA toolkit",
    }
    tools = {name: (find_tool(name), INSTALL_HINT) for name in ("nvcc", "cuobjdump")}
    tools |= {name: (find_tools.find(name), hint) for name, hint in hints.items()}
    statuses = {
        name: ToolStatus(str(tool.path), tool.version) if tool else ToolStatus(None, None, hint)
        for name, (tool, hint) in tools.items()
    }
    compiler = shutil.which("g++")
    hint = None if compiler else "install g++ 12 or newer"
    return {**statuses, "g++": ToolStatus(compiler, None, hint)}


def counter_argv(ncu: Path) -> list[str]:
    """The smallest ncu call that reads a counter; the clocks are left alone."""
    options = ["--metrics", PROBE_METRIC, "--clock-control", "none", "--csv", "--print-units", "base"]
    return [str(ncu), *options, sys.executable, "-I", "-S", str(launch_probe.__file__)]


def may_read_counters(ncu: Path, folder: Path) -> tuple[bool | None, str]:
    """Whether ncu may read counters here, tried on the smallest kernel, and why; None where it is unclear."""
    log = folder / "counters.log"
    ended = subprocesses.run(counter_argv(ncu), timeout_s=120, log=log, env={"TMPDIR": str(folder)})
    return judge_probe(log.read_text(encoding="utf-8", errors="replace"), ended)


def judge_probe(output: str, ended: subprocesses.ProcessResult) -> tuple[bool | None, str]:
    """The permission and its reason, from ncu's output."""
    if "ERR_NVGPUCTRPERM" in output:
        return False, PERMISSION
    values = re.findall(rf'"{re.escape(PROBE_METRIC)}","[^"]*","([\d.,]+)"', output)
    if any(float(value.replace(",", "")) > 0 for value in values):
        return True, "ncu reads counters"
    errors = [line.strip() for line in output.splitlines() if line.startswith("==ERROR==")]
    words = errors[0].removeprefix("==ERROR==").strip() if errors else ended.last_line
    return None, f"ncu read no counter: it {ended.description}" + (f": {words}" if words else "")
