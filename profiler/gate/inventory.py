"""What there is of each version, by cell: the results of one run, or the newest of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from profiler.compare.resolve_names import RESULT_KINDS
from profiler.evidence import Evidence

if TYPE_CHECKING:
    from profiler.store import ResultInfo

BROKEN = "failed"  # the status of what was tried and gave no result


class Cell(NamedTuple):
    """Where results lie; "" for what nobody named."""

    workload: str
    gpu: str  # of static facts the architecture
    evidence: Evidence


class CellFilter(NamedTuple):
    """What of the sides is compared; empty for everything."""

    workload: str | None = None
    gpu: str | None = None
    evidence: Collection[Evidence] = ()

    def takes(self, cell: Cell) -> bool:
        """Whether a cell is one of those asked for."""
        return (
            self.workload in (None, cell.workload)
            and self.gpu in (None, cell.gpu)
            and (not self.evidence or cell.evidence in self.evidence)
        )

    @property
    def words(self) -> str:
        """What was asked for."""
        return ", ".join(filter(None, (" or ".join(self.evidence), self.workload, self.gpu)))


@dataclass(frozen=True)
class VersionResults:
    """The results of one version, out of one run or the newest of each cell."""

    family: str
    version: str
    cells: Mapping[Cell, str] = field(default_factory=dict)  # run id
    broken: Mapping[str, str] = field(default_factory=dict)  # the reason by workload
    made: Mapping[Cell, datetime] = field(default_factory=dict)
    wrong: str | None = None  # why its results are wrong, by these runs alone
    run_id: str | None = None  # the one run that they are out of; None: the newest of each cell

    @property
    def name(self) -> str:
        """What the command line takes for it."""
        return f"{self.family}/{self.version}"


def results_by_version(rows: Sequence[ResultInfo]) -> list[VersionResults]:
    """Rows by version, each cell from its newest run."""
    by_version: dict[tuple[str, str], list[ResultInfo]] = {}
    for row in rows:
        by_version.setdefault((row.family, row.version), []).append(row)
    found = []
    for (family, version), own in by_version.items():
        cells: dict[Cell, ResultInfo] = {}
        for row in own:
            kept = cells.get(cell_of(row))
            if row.kind in RESULT_KINDS and (kept is None or _age(row) > _age(kept)):
                cells[cell_of(row)] = row
        broken = {
            row.workload or "": row.reason or row.status
            for row in own
            if row.kind == "cell" and row.status == BROKEN
        }
        wrong = next((row.reason or row.status for row in own if is_wrong(row)), None)
        runs = {cell: row.run_id for cell, row in cells.items()}
        made = {cell: row.created for cell, row in cells.items()}
        found.append(VersionResults(family, version, runs, broken, made, wrong))
    return found


def _age(row: ResultInfo) -> tuple[datetime, str]:
    return row.created, row.run_id


def is_wrong(row: ResultInfo) -> bool:
    """Whether a check found it so; the CPU can run every version, so what failed there is wrong."""
    return row.status == "wrong" or (row.status == BROKEN and row.evidence is Evidence.MODELLED)


def cell_of(row: ResultInfo) -> Cell:
    """Where a row lies."""
    return Cell(row.workload or "", row.gpu or "", row.evidence)
