"""Where a result stands: family, version, workload, GPU and evidence; and which of these are asked for."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from profiler.evidence.values import Evidence


class Cell(NamedTuple):
    """A coordinate of results; "" for what nobody named, or what does not matter there."""

    family: str = ""
    version: str = ""
    workload: str = ""
    gpu: str = ""  # of static facts the architecture
    evidence: Evidence = Evidence.MEASURED

    @property
    def place(self) -> tuple[str, str, Evidence]:
        """Workload, GPU and evidence, whatever the version."""
        return self.workload, self.gpu, self.evidence

    @property
    def is_modelled_time(self) -> bool:
        """Whether modelled times stand there: what the CPU check models is of no GPU."""
        return self.evidence is Evidence.MODELLED and bool(self.gpu)


class CellFilter(NamedTuple):
    """Which cells to compare; None or empty for all."""

    workload: str | None = None
    gpu: str | None = None
    evidence: Collection[Evidence] = ()

    def matches(self, cell: Cell) -> bool:
        """Whether a cell was asked for."""
        return (
            self.workload in (None, cell.workload)
            and self.gpu in (None, cell.gpu)
            and (not self.evidence or cell.evidence in self.evidence)
        )

    @property
    def words(self) -> str:
        """The filter in words; "" for all cells."""
        return ", ".join(filter(None, (" or ".join(self.evidence), self.workload, self.gpu)))


EVERY_CELL = CellFilter()
