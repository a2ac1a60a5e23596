"""What a machine can measure, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from profiler.collect.doctor import DoctorReport
from profiler.collect.gpu.properties import GpuState
from profiler.documents.blocks import Block, Line, Table
from profiler.documents.document import Document
from profiler.errors import Exit


@dataclass(frozen=True, repr=False)
class DoctorDocument(Document):
    """What is here, and what works with it."""

    report: DoctorReport

    title = "This machine"
    columns = ("ability", "works", "why")

    @property
    def sentences(self) -> Sequence[str]:
        """The GPU, and whether anything can be measured."""
        gpu = self.report.gpu.name if self.report.gpu else None
        measures = "can" if self.report.can_measure else "cannot"
        return (f"{gpu or 'no GPU'}: latency {measures} be measured here",)

    @property
    def exit_code(self) -> Exit:
        """3 where nothing can be measured."""
        return Exit.PASS if self.report.can_measure else Exit.UNJUDGED

    def rows(self) -> list[tuple[object, ...]]:
        """A row an ability; why it works or does not."""
        return [(name, works, why or None) for name, (works, why) in self.report.can.items()]

    def _content(self) -> dict[str, object]:
        """Everything; null is unknown."""
        report = self.report
        return {
            "system": report.system,
            "python": report.python,
            "gpu": report.gpu.as_json() if report.gpu else None,
            "state": report.state.as_json() if report.state else None,
            "shared": report.shared,
            "tools": {name: asdict(tool) for name, tool in report.tools.items()},
            "counters": report.counters,
            "counters_reason": report.counters_reason,
            "torch": dict(report.torch),
            "can": {name: {"works": works, "why": why} for name, (works, why) in report.can.items()},
            "can_measure": report.can_measure,
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """What is here; below, what works with it."""
        yield Table(("", ""), _machine_rows(self.report))
        abilities = [(name, "yes" if works else "no", why) for name, (works, why) in self.report.can.items()]
        yield Table(("works here", "", ""), abilities)
        if not self.report.can_measure:
            yield Line(
                "Nothing can be measured on this machine. Reports and bundles from elsewhere can be imported."
            )


def _machine_rows(report: DoctorReport) -> list[tuple[str, str]]:
    """What is here, a line each; what is not known is `unknown`."""
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
            ("clocks", _clocks(report.state, gpu.max_sm_mhz)),
            ("power, heat", _power_and_heat(report.state, gpu.power_limit_w)),
            ("shared", report.shared),
        ]
    for name, tool in report.tools.items():
        place = f"{tool.version or ''} {tool.path}".strip()
        lines.append((name, place if tool.path else f"missing: {tool.missing}"))
    lines.append(("counters", report.counters_reason))
    return [*lines, *_torch_rows(report)]


def _clocks(state: GpuState | None, max_mhz: float | None) -> str:
    """The SM clock now, of its highest, and what holds it."""
    if state is None or state.sm_mhz is None:
        return "unknown"
    reasons = "unknown" if state.reasons is None else ", ".join(state.reasons) or "nothing"
    of = "" if max_mhz is None else f" of {max_mhz:.0f}"
    return f"SM {state.sm_mhz:.0f}{of} MHz; held by: {reasons}"


def _power_and_heat(state: GpuState | None, limit_w: float | None) -> str:
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
