"""What every cell of a subject is held against: what was named, pinned or implied, or the run before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from profiler import baseline, lineage
from profiler.baseline import Baselines
from profiler.errors import CannotJudge, UnknownName
from profiler.holdings import RESULTS, Cell, Holding, cell_of, holdings
from profiler.run import IMPORT
from profiler.sources import is_file, resolve_all, version_of
from profiler.store.rows import Rows
from profiler.values import Side

if TYPE_CHECKING:
    from profiler.location import Root
    from profiler.sources import StoreOpener
    from profiler.store import Store


class Opponents(NamedTuple):
    """What one subject is held against, cell by cell."""

    held: Mapping[Cell, tuple[str, Holding]]  # the baseline's name and its results
    why: Mapping[Cell, str]  # of a cell without one: why that is
    refused: Collection[Cell] = ()  # cells whose pinned baseline is gone: nothing stands in for it
    anywhere: bool = True  # whether a GPU or architecture that the subject has nothing of is a gap


@dataclass(frozen=True)
class Lookup:
    """Where runs, versions and their baselines are looked up for one gate."""

    store: Store
    root: Root
    name: str | None  # of the baseline
    opener: StoreOpener
    families: dict[str, Baselines] = field(default_factory=dict)  # as asked for, as are
    runs: dict[str, list[Holding]] = field(default_factory=dict)

    def run(self, name: str) -> bool:
        """Whether a name is a run's. Raises UnknownName for one that was forgotten or cannot be read."""
        run = self.store.run(name)
        if run is not None and run.hidden:
            raise UnknownName(f"run {name} was forgotten: `profiler forget --undo {name}` brings it back")
        if run is None and (reason := dict(self.store.refused()).get(name)):
            raise UnknownName(f"run {name} cannot be read: {reason}")
        return run is not None

    def of_run(self, run_id: str) -> list[Holding]:
        """Every version that a run holds."""
        if run_id not in self.runs:
            rows = self.store.launches(run_id=run_id, latest=False)
            if rows.truncated:  # what is cut off would never be judged
                raise CannotJudge(f"run {run_id} has more than {len(rows)} results: name its versions")
            self.runs[run_id] = [replace(one, run_id=run_id) for one in holdings(rows)]
        return self.runs[run_id]

    def of_version(self, family: str, version: str) -> Holding:
        """The newest results of a version in each cell."""
        held = holdings(self.store.launches(family=family, version=version))
        return held[0] if held else Holding(family, version)

    def against(self, subject: Holding, run_id: str | None, alone: bool) -> Side | Opponents:
        """The baseline of each cell by its name, or the one side that is the baseline of all."""
        name = self.name
        if name is not None and is_file(name):
            return resolve_all([name], self.opener)[0]
        if name is not None and self.run(name):
            there = self.of_run(name)
            same = [one for one in there if one.name == subject.name]
            chosen = same or (there if len(there) == 1 and alone else [])
            return Opponents({cell: (name, one) for one in chosen for cell in one.cells}, {})
        if name is None:
            found = {
                cell: (run, next(one for one in self.of_run(run) if one.name == subject.name))
                for cell, run in self._earlier(subject, run_id).items()
            }
            pinned = self._chosen(subject, baseline.PINNED)
            kept = {cell: one for cell, one in found.items() if cell not in pinned.refused}
            gone = {cell: pinned.why[cell] for cell in pinned.refused}
            return Opponents({**kept, **pinned.held}, gone, pinned.refused, anywhere=False)
        if name in (baseline.PINNED, *baseline.IMPLICIT) or name.startswith(baseline.TORCH):
            return self._chosen(subject, name)
        held = self.of_version(*version_of(self.store, name))
        return Opponents(dict.fromkeys(held.cells, (held.name, held)), {})

    def _chosen(self, subject: Holding, name: str) -> Opponents:
        """What is pinned or implied in each of the subject's cells, and in those that only that one has."""
        there = self.baselines(subject.family)
        found: dict[Cell, tuple[str, Holding]] = {}
        why: dict[Cell, str] = {}
        refused = set()
        waiting = list(subject.cells)
        for cell in waiting:
            workload, gpu = cell.workload or None, cell.gpu or None
            try:
                chosen = there.resolve(name, subject.version, workload, gpu)
            except CannotJudge as error:
                why[cell] = str(error)
                if name == baseline.PINNED and baseline.in_force(there.pins, subject.family, workload, gpu):
                    refused.add(cell)
                continue
            if chosen.run_id is None:
                held = [self.of_version(subject.family, chosen.version or "")]
            else:
                of_run = self.of_run(chosen.run_id)
                held = [one for one in of_run if one.name == subject.name] or of_run[: len(of_run) == 1]
            for one in held:
                if name == baseline.PINNED and _are_the_same(one, subject, cell):
                    why[cell] = "these results are what is pinned"
                    continue
                if cell in one.cells:
                    found[cell] = (chosen.name, one)
                if name != baseline.BEST:  # the best of one cell is not asked for what another lacks
                    waiting += [other for other in one.cells if other not in waiting]
        return Opponents(found, why, refused)

    def is_rejected(self, subject: Holding) -> bool:
        """Whether its catalogue says that it is wrong."""
        standing = self.standing(subject)
        return standing is not None and standing.version.state == lineage.REJECTED

    def is_imported(self, subject: Holding, cell: Cell) -> bool:
        """Whether its results there came as a report, which no command here can collect again."""
        runs = {subject.cells[one] for one in subject.cells if one == cell} or set(subject.cells.values())
        found = [self.store.run(run_id) for run_id in runs]
        return any(found) and all(run is None or run.kind == IMPORT for run in found)

    def standing(self, subject: Holding) -> lineage.Standing | None:
        """What its catalogue says; None where none names it."""
        found = self.baselines(subject.family).lineage
        return found.by_id.get(subject.version) if found else None

    def baselines(self, family: str) -> Baselines:
        """All that a family can be held against."""
        if family not in self.families:
            self.families[family] = Baselines.of(self.root, self.store, family)
        return self.families[family]

    def _earlier(self, subject: Holding, run_id: str | None) -> dict[Cell, str]:
        """The last run before the subject's own that has each of its cells."""
        ask = partial(self.store.launches, family=subject.family, version=subject.version, latest=False)
        rows = ask()
        if rows.truncated:  # the newest may be cut off
            rows = Rows(row for cell in subject.cells for row in ask(**cell._asdict()))
        made = {row.run_id: (row.created, row.run_id) for row in rows}
        found: dict[Cell, str] = {}
        for row in sorted(rows, key=lambda row: made[row.run_id]):
            cell = cell_of(row)
            own = run_id or subject.cells.get(cell)
            if row.kind in RESULTS and own in made and made[row.run_id] < made[own]:
                found[cell] = row.run_id
        return found


def _are_the_same(one: Holding, other: Holding, cell: Cell) -> bool:
    """Whether both are the very results of one run, which are no worse than themselves."""
    return one.name == other.name and cell in other.cells and one.cells.get(cell) == other.cells[cell]
