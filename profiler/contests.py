"""Which sides a gate holds against which: every cell of a subject beside the same cell of its baseline."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from profiler import baseline, lineage
from profiler.baseline import Baselines
from profiler.errors import CannotJudge, UnknownName
from profiler.holdings import RESULTS, Cell, Holding, cell_of, holdings
from profiler.sources import is_file, resolve_all, version_of
from profiler.values import Evidence, Side, natural

if TYPE_CHECKING:
    from profiler.location import Root
    from profiler.sources import StoreOpener
    from profiler.store import Store


@dataclass(frozen=True)
class Contest:
    """One side to judge and what to judge it against, or why one of them is not there."""

    subject: str  # family/version, or a report's path
    baseline: str  # "" where there is none
    a: Side | None  # the baseline
    b: Side | None  # the subject
    workload: str = ""
    gpu: str = ""
    evidence: str = ""
    why: str = ""  # why a side is missing
    broken: bool = False  # the subject was tried and gave no result
    rejected: bool = False  # part of a run, and wrong on purpose: the catalogue says so
    new: bool = False  # the baseline has nothing there, so nothing can have got worse
    next_command: str = ""  # what fills the gap
    made: datetime | None = None  # when the subject's results were
    again: str = ""  # what settles a verdict that is unclear or missing


class Wanted(NamedTuple):
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


def contests(
    names: Sequence[str], against: str | None, opener: StoreOpener, root: Root, wanted: Wanted
) -> list[Contest]:
    """Every cell of the named reports, runs and versions beside its baseline, in the order of the names.

    Without names: the newest run. `against` is a report, a run, a version, `pinned`, `parent`, `best` or
    `torch:ID`; None: the pinned one, else the last run of the same version before. Raises UnknownName.
    """
    files = [name for name in names if is_file(name)]
    found: dict[str, list[Contest]] = {}
    if files:
        if against is None:
            raise UnknownName(
                f"{files[0]} is a file, which has no baseline of its own: name one by --baseline"
            )
        a, *sides = resolve_all([against, *files], opener, wanted.workload, wanted.gpu)
        found |= {name: [_of_file(a, b, name)] for name, b in zip(files, sides, strict=True)}
    others = [name for name in names if name not in found]
    if others or not names:
        desk = _Desk(opener(), root, against, opener, wanted)
        found |= {name: list(desk.contests(name)) for name in others or [desk.newest()]}
    return [one for several in found.values() for one in several]


def _of_file(a: Side, b: Side, name: str) -> Contest:
    return Contest(name, a.label, a, b, b.workload or "", b.gpu or "", b.evidence)


@dataclass(frozen=True)
class _Desk:
    """What every name of one gate is looked up by."""

    store: Store
    root: Root
    name: str | None  # of the baseline
    opener: StoreOpener
    wanted: Wanted
    families: dict[str, Baselines] = field(default_factory=dict)  # as asked for

    def newest(self) -> str:
        """The newest run of all."""
        runs = self.store.runs(limit=1)
        if not runs:
            raise UnknownName("the index is empty: `profiler import PATH`, or `profiler dissect`")
        return runs[0].run_id

    def contests(self, name: str) -> Iterator[Contest]:
        """Every version and cell that a name stands for."""
        run = self.store.run(name)
        held = self._of_run(name) if run else [self._of_version(*version_of(self.store, name))]
        alone = len(held) == 1
        for subject in held:
            against = self._against(subject, name if run else None, alone)
            rejected = bool(run) and not alone and self._is_rejected(subject)
            if isinstance(against, Side):
                yield from self._against_file(subject, against)
            else:
                yield from (replace(one, rejected=rejected) for one in self._cells(subject, against))
        if run and self.name and self.store.run(self.name):
            there = {one.name for one in held}
            for lost in self._of_run(self.name):
                if not alone and lost.name not in there and any(map(self.wanted.takes, lost.cells)):
                    yield Contest(
                        lost.name,
                        lost.name,
                        None,
                        None,
                        why=f"{lost.name} is in {self.name}, not in {name}",
                    )

    def _against_file(self, subject: Holding, a: Side) -> Iterator[Contest]:
        for cell in self._sorted(subject.cells):
            if cell.evidence is Evidence.MEASURED:
                yield self._contest(subject, cell, a.label, a)

    def _cells(self, subject: Holding, against: Mapping[Cell, tuple[str, Holding]]) -> Iterator[Contest]:
        kinds = {cell.evidence for cell in subject.cells}
        for cell in self._sorted({**subject.cells, **against}):
            before = against.get(cell)
            if before is None:
                yield self._unheld(subject, cell, bool(against))
            elif cell in subject.cells:
                yield self._contest(subject, cell, before[0], self._side(before[1], cell))
            elif cell.evidence in kinds and cell.workload not in subject.broken:
                why = f"nothing {cell.evidence} of {subject.name}, where {before[0]} has it"
                yield self._gap(subject, cell, before[0], why)

        for workload, reason in subject.broken.items():
            if self.wanted.workload in (None, workload):
                why = f"{subject.name} gave no result: {reason}"
                yield Contest(subject.name, "", None, None, workload, why=why, broken=True)

    def _unheld(self, subject: Holding, cell: Cell, elsewhere: bool) -> Contest:
        """A cell without a baseline: new beside others that have one, else nothing to compare with."""
        why = f"{subject.name}: no baseline has {cell.evidence} results there"
        if not elsewhere:
            why = f"{subject.name} has no baseline: nothing to compare with"
        command = f"profiler baseline set {shlex.quote(subject.family)} RUN_OR_VERSION"
        return Contest(
            subject.name, "", None, None, *cell, why=why, new=True, next_command="" if elsewhere else command
        )

    def _gap(self, subject: Holding, cell: Cell, baseline: str, why: str) -> Contest:
        command = self._again(subject, cell)
        return Contest(subject.name, baseline, None, None, *cell, why=why, next_command=command)

    def _contest(self, subject: Holding, cell: Cell, baseline: str, a: Side) -> Contest:
        again = self._again(subject, cell, a)
        b, made = self._side(subject, cell), subject.made.get(cell)
        return Contest(subject.name, baseline, a, b, *cell, again=again, made=made)

    def _again(self, subject: Holding, cell: Cell, a: Side | None = None) -> str:
        """The command that collects what is missing or settles what is unclear."""
        if cell.evidence is not Evidence.MEASURED:
            return f"profiler dissect {shlex.quote(subject.version)}"
        against = (
            f" --against {shlex.quote(a.version)}" if a and a.version not in (None, subject.version) else ""
        )
        return f"profiler collect {shlex.quote(subject.version)}{against} --rounds 25"

    def _side(self, held: Holding, cell: Cell) -> Side:
        """The cell's results; a build of long ago is as right as it was then, whatever was found since."""
        found = self.store.side(
            run_id=held.cells[cell],
            family=held.family,
            version=held.version,
            workload=cell.workload,
            gpu=cell.gpu,
            evidence=cell.evidence,
            label=held.name,
        )
        return replace(found, wrong=held.wrong)

    def _sorted(self, cells: Iterable[Cell]) -> list[Cell]:
        order = list(Evidence)
        found = filter(self.wanted.takes, cells)
        return sorted(found, key=lambda c: (-order.index(c.evidence), natural(c.workload), natural(c.gpu)))

    def _of_run(self, run_id: str) -> list[Holding]:
        return holdings(self.store.launches(run_id=run_id, latest=False))

    def _of_version(self, family: str, version: str) -> Holding:
        held = holdings(self.store.launches(family=family, version=version))
        return held[0] if held else Holding(family, version)

    def _against(
        self, subject: Holding, run_id: str | None, alone: bool
    ) -> Side | Mapping[Cell, tuple[str, Holding]]:
        """The baseline of each cell by its name, or the one side that is the baseline of all."""
        name = self.name
        if name is not None and is_file(name):
            return resolve_all([name], self.opener)[0]
        if name is not None and self.store.run(name):
            there = self._of_run(name)
            same = [one for one in there if one.name == subject.name]
            chosen = same or (there if len(there) == 1 and alone else [])
            return {cell: (name, one) for one in chosen for cell in one.cells}
        if name is None:
            found = {
                cell: (run, next(one for one in self._of_run(run) if one.name == subject.name))
                for cell, run in self._earlier(subject, run_id).items()
            }
            pinned = self._chosen(subject, baseline.PINNED)
            return {**found, **pinned}
        if name in (baseline.PINNED, *baseline.IMPLICIT) or name.startswith(baseline.TORCH):
            return self._chosen(subject, name)
        held = self._of_version(*version_of(self.store, name))
        return dict.fromkeys(held.cells, (held.name, held))

    def _chosen(self, subject: Holding, name: str) -> dict[Cell, tuple[str, Holding]]:
        """What is pinned or implied in each of the subject's cells, as far as it has the same cell."""
        there = self._baselines(subject.family)
        found: dict[Cell, tuple[str, Holding]] = {}
        for cell in subject.cells:
            with contextlib.suppress(CannotJudge):
                chosen = there.resolve(name, subject.version, cell.workload or None, cell.gpu or None)
                if chosen.run_id is None:
                    held = [self._of_version(subject.family, chosen.version or "")]
                else:
                    of_run = self._of_run(chosen.run_id)
                    held = [one for one in of_run if one.name == subject.name] or of_run[: len(of_run) == 1]
                if held and cell in held[0].cells:
                    found[cell] = (chosen.name, held[0])
        return found

    def _is_rejected(self, subject: Holding) -> bool:
        standing = self._standing(subject)
        return standing is not None and standing.version.state == lineage.REJECTED

    def _standing(self, subject: Holding) -> lineage.Standing | None:
        found = self._baselines(subject.family).lineage
        return found.by_id.get(subject.version) if found else None

    def _baselines(self, family: str) -> Baselines:
        if family not in self.families:
            self.families[family] = Baselines.of(self.root, self.store, family)
        return self.families[family]

    def _earlier(self, subject: Holding, run_id: str | None) -> dict[Cell, str]:
        """The last run before the subject's own that has each of its cells."""
        rows = self.store.launches(family=subject.family, version=subject.version, latest=False)
        made = {row.run_id: (row.created, row.run_id) for row in rows}
        found: dict[Cell, str] = {}
        for row in sorted(rows, key=lambda row: made[row.run_id]):
            cell = cell_of(row)
            own = run_id or subject.cells.get(cell)
            if row.kind in RESULTS and own in made and made[row.run_id] < made[own]:
                found[cell] = row.run_id
        return found
