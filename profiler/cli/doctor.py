"""`profiler doctor`: what this machine can measure, on one screen."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, print_document, print_table, say

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.collect import DoctorReport, GpuState
    from profiler.documents import DoctorDocument

_DESCRIPTION = """\
Say what this machine can do: GPU and its clocks, driver, CUDA, nvcc, ncu and whether it may read counters,
compute-sanitizer, torch and its attention backends; and, where something is missing, what works without it.
Nothing is changed: clocks and settings are read only."""

_EPILOG = "exit codes: 0 something can be measured · 3 nothing can be measured here"


def add(commands: Commands) -> None:
    """Add `doctor`."""
    command = commands.add_parser(
        "doctor",
        help="what this machine can measure, and what is missing",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Examine, print."""
    from profiler.collect import doctor
    from profiler.documents import DoctorDocument

    return print_document(DoctorDocument(doctor.examine_machine()), arguments, print_text)


def print_text(document: DoctorDocument, _arguments: argparse.Namespace) -> None:
    """What is here; below, what works with it."""
    report = document.report
    print_table(("", ""), rows(report))
    say()
    abilities = [(name, "yes" if works else "no", why) for name, (works, why) in report.can.items()]
    print_table(("works here", "", ""), abilities)
    if not report.can_measure:
        say("\nNothing can be measured on this machine. Reports and bundles from others can be imported.")


def rows(report: DoctorReport) -> list[tuple[str, str]]:
    """What is here, a line each; what nobody says is `unknown`."""
    gpu = report.gpu
    lines = [("system", report.system), ("Python", report.python)]
    if gpu is None:
        lines += [("GPU", "none: no driver, or none visible (CUDA_VISIBLE_DEVICES)")]
    else:
        memory = None if gpu.memory_bytes is None else f"{gpu.memory_bytes / 2**30:.0f} GiB"
        sms = None if gpu.sms is None else f"{gpu.sms} SMs"
        capability = (
            None if gpu.compute_capability is None else f"compute capability {gpu.compute_capability}"
        )
        known = [words for words in (gpu.name, capability, sms, memory) if words]
        lines += [
            ("GPU", ", ".join(known) or "unknown"),
            ("driver", gpu.driver or "unknown"),
            ("CUDA", f"{gpu.cuda} at most" if gpu.cuda else "unknown"),
            ("clocks", clocks(report.state, gpu.max_sm_mhz)),
            ("power, heat", power_and_heat(report.state, gpu.power_limit_w)),
            ("shared", report.shared),
        ]
    for name, tool in report.tools.items():
        place = f"{tool.version or ''} {tool.path}".strip()
        lines.append((name, place if tool.path else f"missing: {tool.missing}"))
    lines.append(("counters", report.counters_reason))
    return [*lines, *_torch_rows(report)]


def clocks(state: GpuState | None, max_mhz: float | None) -> str:
    """The SM clock now, of its highest, and what holds it."""
    if state is None or state.sm_mhz is None:
        return "unknown"
    reasons = "unknown" if state.reasons is None else ", ".join(state.reasons) or "nothing"
    of = "" if max_mhz is None else f" of {max_mhz:.0f}"
    return f"SM {state.sm_mhz:.0f}{of} MHz; held by: {reasons}"


def power_and_heat(state: GpuState | None, limit_w: float | None) -> str:
    """Power and temperature now."""
    power = "power unknown" if state is None or state.power_w is None else f"{state.power_w:.0f} W"
    limit = "" if limit_w is None else f" of {limit_w:.0f}"
    celsius = state.temperature_c if state else None
    return f"{power}{limit}, " + ("temperature unknown" if celsius is None else f"{celsius:.0f} °C")


def _torch_rows(report: DoctorReport) -> list[tuple[str, str]]:
    if report.torch["status"] != "done":
        return [("torch", str(report.torch["reason"] or "unknown"))]
    lines = [("torch", f"{report.torch['torch']}, CUDA {report.torch['cuda']}")]
    for name, why in report.torch.get("backends", {}).items():
        lines.append((f"  {name}", "works" if why is None else f"no: {why}"))
    return lines
