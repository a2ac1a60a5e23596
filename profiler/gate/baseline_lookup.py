"""Finds the baseline of every cell of a version: named, pinned or implied, or the run before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from profiler.compare.resolve_names import RESULT_KINDS, is_file_name, resolve_all, resolve_family_version
from profiler.errors import CannotJudge
from profiler.evidence.cell import Cell
from profiler.evidence.side import Side
from profiler.gate.inventory import Inventory, VersionResults, cell_of
from profiler.history import lineage
from profiler.history.baselines import BEST, IMPLICIT, PINNED, TORCH, Baseline, Baselines, run_before
from profiler.store.rows import Rows

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener


class CellBaseline(NamedTuple):
    """The baseline of one cell."""

    name: str
    results: VersionResults


class CellBaselines(NamedTuple):
    """The baselines of the cells of one version."""

    by_cell: Mapping[Cell, CellBaseline]  # with cells that only the baseline has
    why_none: Mapping[Cell, str]  # why a cell has no baseline
    refused: Collection[Cell] = ()  # cells whose baseline is gone or unknown, and must not be replaced
    before: Collection[Cell] = ()  # cells whose baseline is the run before, which no person chose
    is_pin: Collection[Cell] = ()  # of these, cells whose own results are what is pinned
    on_any_gpu: bool = True  # False: results on GPUs that the version was never run on are not missed


_PLACE = ("workload", "gpu", "evidence")
_IS_PIN = "these results are what is pinned"


@dataclass(frozen=True)
class BaselineLookup:
    """Finds the baselines of all versions that one gate judges, always by the same name."""

    inventory: Inventory
    name: str | None  # a report, run, version, pinned, parent, best, torch:ID; None: pinned, else run before
    opener: StoreOpener
    _families: dict[str, Baselines] = field(default_factory=dict)

    def baselines_of(self, subject: VersionResults, is_alone: bool) -> Side | CellBaselines:
        """The baseline of each cell of a version, or the one side that is the baseline of all of them.

        `is_alone`: no other version is judged, so that a run of one other version can be the baseline.
        """
        name = self.name
        if name is None:
            return self._find_pinned_or_before(subject)
        if is_file_name(name):
            return resolve_all([name], self.opener)[0]
        if self.inventory.is_run(name):
            versions = self.inventory.of_run(name)
            same = [results for results in versions if results.name == subject.name]
            chosen = same or (versions if len(versions) == 1 and is_alone else [])
            by_cell = {cell: CellBaseline(name, results) for results in chosen for cell in results.run_ids}
            return CellBaselines(by_cell, {})
        if name in (PINNED, *IMPLICIT) or name.startswith(TORCH):
            named = partial(self.baselines(subject.family).named, name, subject.version)
            return self._choose_by_cell(subject, name, named)
        results = self.inventory.of_version(*resolve_family_version(self.inventory.store, name))
        return CellBaselines(dict.fromkeys(results.run_ids, CellBaseline(results.name, results)), {})

    def _find_pinned_or_before(self, subject: VersionResults) -> CellBaselines:
        """The pinned baseline; where nothing is pinned, the last earlier run of the same version."""
        before, why_tied = self._find_runs_before(subject)
        pinned = self._choose_by_cell(subject, PINNED, self.baselines(subject.family).for_gate)
        by_cell = {cell: baseline for cell, baseline in before.items() if cell not in pinned.refused}
        why_none = {cell: pinned.why_none[cell] for cell in pinned.refused}
        why_none |= {cell: why for cell, why in why_tied.items() if cell not in pinned.by_cell}
        implied = by_cell.keys() - pinned.by_cell.keys()
        is_pin = {cell for cell, why in pinned.why_none.items() if why == _IS_PIN}
        return CellBaselines(
            {**by_cell, **pinned.by_cell}, why_none, {*why_none}, implied, is_pin, on_any_gpu=False
        )

    def _choose_by_cell(
        self,
        subject: VersionResults,
        name: str,
        choose: Callable[[str | None, str | None], Baseline | None],
    ) -> CellBaselines:
        """The baselines that `choose` finds by workload and GPU, for cells of version and baseline."""
        baselines = self.baselines(subject.family)
        by_cell: dict[Cell, CellBaseline] = {}
        why_none: dict[Cell, str] = {}
        refused = set()
        cells = list(subject.run_ids)
        for cell in cells:  # the list grows meanwhile: cells that only the baseline has are appended
            workload, gpu = cell.workload or None, cell.gpu or None
            try:
                baseline = choose(workload, gpu)
            except CannotJudge as error:
                why_none[cell] = str(error)
                if name == PINNED and baselines.pin_for(workload, gpu):
                    refused.add(cell)
                continue
            if baseline is None:
                continue
            for results in self._results_of(baseline, subject):
                if name == PINNED and _are_same_results(results, subject, cell):
                    why_none[cell] = _IS_PIN
                    continue
                if cell in results.run_ids:
                    by_cell[cell] = CellBaseline(baseline.name, results)
                if name != BEST:  # another version may be best in another cell
                    cells += [other for other in results.run_ids if other not in cells]
        return CellBaselines(by_cell, why_none, refused)

    def _results_of(self, baseline: Baseline, subject: VersionResults) -> list[VersionResults]:
        """The results of a baseline; of a pinned run, those of the same version, or of its only one."""
        if baseline.run_id is None:
            return [self.inventory.of_version(subject.family, baseline.version or "")]
        versions = self.inventory.of_run(baseline.run_id)
        return [results for results in versions if results.name == subject.name] or (
            versions if len(versions) == 1 else []
        )

    def _find_runs_before(self, subject: VersionResults) -> tuple[dict[Cell, CellBaseline], dict[Cell, str]]:
        """For each cell the last run before the version's own; or why it is unknown which run that is."""
        load = partial(
            self.inventory.store.results, family=subject.family, version=subject.version, latest=False
        )
        rows = load()
        if rows.truncated:  # the newest rows may be cut off
            rows = Rows(
                row
                for cell in subject.run_ids
                for row in load(workload=cell.workload, gpu=cell.gpu, evidence=cell.evidence)
            )
        created = {row.run_id: row.created for row in rows}
        runs_by_cell: dict[Cell, dict[str, datetime]] = {}
        for row in sorted(rows, key=lambda row: (row.created, row.run_id)):
            if row.kind in RESULT_KINDS:
                runs_by_cell.setdefault(cell_of(row), {})[row.run_id] = row.created
        before: dict[Cell, CellBaseline] = {}
        why_tied: dict[Cell, str] = {}
        for cell, runs in runs_by_cell.items():
            own = subject.run_id or subject.run_ids.get(cell)
            if own not in created:
                continue
            earlier = run_before(own, {**runs, own: created[own]})
            if earlier.run_id:
                self.inventory.check_unread(
                    f"{subject.name} before {own}", created[earlier.run_id], created[own]
                )
            if earlier.tied:
                why_tied[cell] = (
                    f"{earlier.tied} and {own} have the same time, so the newer one is unknown: "
                    "choose one with --baseline"
                )
            elif earlier.run_id:
                versions = self.inventory.of_run(earlier.run_id)
                results = next(results for results in versions if results.name == subject.name)
                before[cell] = CellBaseline(earlier.run_id, results)
        return before, why_tied

    def is_rejected(self, subject: VersionResults) -> bool:
        """Whether the version's catalogue rejects it."""
        catalogued = self.baselines(subject.family).lineage
        status = catalogued.by_id.get(subject.version) if catalogued else None
        return status is not None and status.version.state == lineage.REJECTED

    def baselines(self, family: str) -> Baselines:
        """Everything that the versions of a family can be compared with, loaded once for each family."""
        if family not in self._families:
            self._families[family] = Baselines.load(self.inventory.root, self.inventory.store, family)
        return self._families[family]


def _are_same_results(results: VersionResults, subject: VersionResults, cell: Cell) -> bool:
    """Whether both are the same results of one run, which cannot be worse than themselves."""
    is_same_version = results.name == subject.name and cell in subject.run_ids
    return is_same_version and results.run_ids.get(cell) == subject.run_ids[cell]
