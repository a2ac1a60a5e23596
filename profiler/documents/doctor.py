"""What a machine can measure, as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from profiler.collect import DoctorReport
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
