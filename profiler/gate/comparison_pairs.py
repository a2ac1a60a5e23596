"""Which sides a gate holds against which: every cell of a subject beside the same cell of its baseline."""

from __future__ import annotations

import filecmp
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import bundle
from profiler.compare import is_file_name, resolve_all
from profiler.compare.resolve_names import resolve_family_version
from profiler.errors import UnknownName
from profiler.evidence import Evidence, Side, brief_list, natural_key
from profiler.gate.baseline_lookup import BaselineLookup, CellBaselines
from profiler.gate.inventory import Cell, CellFilter, VersionResults
from profiler.history.baselines import BEST

if TYPE_CHECKING:
    from profiler.bundles import Root
    from profiler.compare import StoreOpener


@dataclass(frozen=True)
class ComparisonPair:
    """One side to judge and what to judge it against, or why one of them is not there.

    Without `a` there is no baseline: whether `b` is right and within its budget can be said all the same.
    """

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
    on_purpose: bool = False  # the catalogue rejects it, so it has to be wrong
    noted: bool = False  # the gap has no weight: nothing can have got worse there
    next_command: str = ""  # what fills the gap
    made: datetime | None = None  # when the subject's results were
    again: str = ""  # what settles a verdict that is unclear or missing
    itself: bool = False  # both sides are the very same results, which cannot be worse than themselves
    shown: tuple[str, str] | None = None  # the names by which a dashboard shows the two side by side


def find_pairs(
    names: Sequence[str], against: str | None, opener: StoreOpener, root: Root, wanted: CellFilter
) -> list[ComparisonPair]:
    """Every cell of the named reports, runs and versions beside its baseline, in the order of the names.

    Without names: the newest run. `against` is a report, a run, a version, `pinned`, `parent`, `best` or
    `torch:ID`; None: the pinned one, else the last run of the same version before. Raises UnknownName.
    """
    if not all(name.strip() for name in (*names, *(() if against is None else (against,)))):
        raise UnknownName("an empty name: name a report file, a run id, family/version, or a version")
    files = [name for name in names if is_file_name(name)]
    found: dict[str, list[ComparisonPair]] = {}
    if files:
        if against is None:
            raise UnknownName(
                f"{files[0]} is a file, which has no baseline of its own: name one by --baseline"
            )
        a, *sides = resolve_all([against, *files], opener, wanted.workload, wanted.gpu)
        for name, b in zip(files, sides, strict=True):
            itself = _is_report_of(a, against, name, opener)
            one = _of_file(a, b, name, wanted)
            found[name] = [replace(_itself(one), noted=False) if itself and one.b else one]
    others = [name for name in names if name not in found]
    if others or not names:
        desk = PairFinder(BaselineLookup(opener(), root, against, opener), wanted)
        found |= {name: desk.find_pairs(name) for name in others or [desk.newest()]}
    return [one for several in found.values() for one in several]


def pair_of_sides(a: Side, b: Side, opener: StoreOpener, root: Root) -> ComparisonPair:
    """Two sides that are there already; of a version with what its catalogue and its run say of it."""
    told = ComparisonPair(b.label, a.label, a, b, b.workload or "", b.gpu or "", b.evidence)
    if b.family is None or b.version is None or b.run_id is None:
        itself = is_file_name(b.label) and _is_report_of(a, a.label, b.label, opener)
        return replace(_itself(told), noted=False) if itself else told
    if (a.run_id, a.family, a.version) == (b.run_id, b.family, b.version) or (
        a.run_id is None and is_file_name(a.label) and _is_report_of(b, b.label, a.label, opener)
    ):
        told = replace(_itself(told), noted=False)
    cell = Cell(told.workload, told.gpu, b.evidence)
    desk = PairFinder(BaselineLookup(opener(), root, None, opener), CellFilter())
    subject, run = VersionResults(b.family, b.version, {cell: b.run_id}), desk.lookup.store.run(b.run_id)
    return replace(
        told,
        on_purpose=desk.lookup.is_rejected(subject),
        again=desk.again(subject, cell, a),
        made=run.created if run else None,
    )


def _is_report_of(side: Side, name: str, file: str, opener: StoreOpener) -> bool:
    """Whether a side, which goes by the name, is read from a file of the same content."""
    if is_file_name(name):
        return filecmp.cmp(name, file, shallow=False)
    digest = bundle.hash_file(Path(file))[0]
    return side.run_id is not None and opener().runs_with_reports([digest]).get(digest) == side.run_id


def _itself(contest: ComparisonPair) -> ComparisonPair:
    """Held against itself: as much as not compared, and without weight beside what is."""
    why = f"held against itself: {contest.baseline} has these very results"
    return replace(contest, why=why, itself=True, noted=True)


def _of_file(a: Side, b: Side, name: str, wanted: CellFilter) -> ComparisonPair:
    if not wanted._replace(workload=None).takes(Cell("", b.gpu or "", b.evidence)):
        why = (
            f"{name} is {b.evidence} on {b.gpu or 'a GPU that it does not name'}, and that was not asked for"
        )
        return ComparisonPair(name, a.label, None, None, why=why)
    return ComparisonPair(name, a.label, a, b, b.workload or "", b.gpu or "", b.evidence)


@dataclass(frozen=True)
class PairFinder:
    """Where every name of one gate becomes contests."""

    lookup: BaselineLookup
    wanted: CellFilter

    def newest(self) -> str:
        """The newest run of all."""
        runs = self.lookup.store.runs(limit=1)
        if not runs:
            raise UnknownName("the index is empty: `profiler import PATH`, or `profiler dissect`")
        self.lookup.check_newest(runs[0].run_id, runs[0].created, self.lookup.store.runs)
        return runs[0].run_id

    def find_pairs(self, name: str) -> list[ComparisonPair]:
        """Every version and cell that a name stands for; a name of which nothing is held says so."""
        found = list(self._every(name))
        held = {one.evidence for one in found if one.a and one.b and not one.itself}
        if not held:
            found = [replace(one, noted=False) for one in found]
        told = held | {one.evidence for one in found if not one.noted}
        asked = f" that is {self.wanted.words}" if self.wanted.words else ""
        if not found:
            found.append(ComparisonPair(name, "", None, None, why=f"nothing{asked} of {name} was compared"))
        elif held:
            for kind in self.wanted.evidence:
                if kind not in told:
                    why = f"nothing {kind} of {name} was compared, and that was asked for"
                    found.append(ComparisonPair(name, "", None, None, evidence=kind, why=why))
        return found

    def _every(self, name: str) -> Iterator[ComparisonPair]:
        run = self.lookup.run(name)
        held = (
            self.lookup.of_run(name)
            if run
            else [self.lookup.of_version(*resolve_family_version(self.lookup.store, name))]
        )
        alone = len(held) == 1
        for subject in held:
            against = self.lookup.against(subject, subject.run_id, alone)
            on_purpose = self.lookup.is_rejected(subject)
            rejected = run and not alone and on_purpose
            every = (
                self._against_file(subject, against, self.lookup.name or "")
                if isinstance(against, Side)
                else self._cells(subject, against)
            )
            if not run:
                yield from self._stale(subject)
            for one in every:
                if one.b or one.broken or not rejected:  # nobody misses a cell of what is wrong
                    yield replace(one, rejected=rejected, on_purpose=on_purpose)
        other = self.lookup.name
        if run and other and not alone and not is_file_name(other) and self.lookup.run(other):
            there = {one.name for one in held}
            for lost in self.lookup.of_run(other):
                if lost.name not in there and any(map(self.wanted.takes, lost.cells)):
                    why = f"{lost.name} is in {other}, not in {name}"
                    yield ComparisonPair(lost.name, lost.name, None, None, why=why)

    def _against_file(self, subject: VersionResults, a: Side, file: str) -> Iterator[ComparisonPair]:
        for cell in self._sorted(subject.cells):
            if cell.evidence is Evidence.MEASURED:
                held = self._contest(subject, cell, a.label, a)
                itself = held.b and _is_report_of(held.b, held.subject, file, self.lookup.opener)
                yield _itself(held) if itself else held

    def _cells(self, subject: VersionResults, bases: CellBaselines) -> Iterator[ComparisonPair]:
        kinds = {cell.evidence for cell in subject.cells}
        places = {(cell.evidence, cell.gpu) for cell in subject.cells}
        met = {cell.evidence for cell in bases.held if cell in subject.cells}
        for cell in self._sorted({**subject.cells, **bases.held}):
            before = bases.held.get(cell)
            if before is None:
                yield self._unheld(subject, cell, bases)
            elif cell in subject.cells:
                held = self._contest(
                    subject, cell, before[0], self._side(before[1], cell, subject), before[1]
                )
                same = before[1].name == subject.name and before[1].cells[cell] == subject.cells[cell]
                yield _itself(held) if same and self.lookup.name != BEST else held
            elif cell.workload in subject.broken:
                continue
            elif cell.evidence not in kinds:
                yield self._gap(subject, cell, before[0], self._no_weight(subject, cell, kinds))
            elif cell.evidence in met and (bases.anywhere or (cell.evidence, cell.gpu) in places):
                yield self._gap(subject, cell, before[0], False)
        for workload, reason in subject.broken.items():
            if self.wanted.workload in (None, workload):
                why = f"{subject.name} gave no result: {reason}"
                yield ComparisonPair(subject.name, "", None, None, workload, why=why, broken=True)

    def _stale(self, subject: VersionResults) -> Iterator[ComparisonPair]:
        """What was checked or compiled of an older build, and not of the newest one."""
        older = self.lookup.of_older_builds(subject)
        for cell in self._sorted(older):
            why = (
                f"its {cell.evidence} results there are of an older build ({subject.cells[cell]}): "
                f"{older[cell]} built it anew and lacks them"
            )
            command = self.again(subject, cell)
            yield ComparisonPair(subject.name, "", None, None, *cell, why=why, next_command=command)

    def _no_weight(self, subject: VersionResults, lost: Cell, kinds: Collection[Evidence]) -> bool:
        """Whether a kind that the subject has nothing of may be lacking: a GPU's on a machine without one.

        And the others of what was only measured; but who built and disassembled it could have checked it too.
        What a run left out altogether may lack what the run has of no version.
        """
        if lost.evidence in self.wanted.evidence:
            return False
        if not kinds and subject.run_id is not None:
            there = (one for held in self.lookup.of_run(subject.run_id) for one in held.cells)
            return all((one.evidence, one.gpu) != (lost.evidence, lost.gpu) for one in there)
        return lost.evidence is Evidence.MEASURED or not {Evidence.STATIC, Evidence.MODELLED} & set(kinds)

    def _unheld(self, subject: VersionResults, cell: Cell, bases: CellBaselines) -> ComparisonPair:
        """A cell without a baseline: new, unless all that the baseline has of its kind lies elsewhere."""
        of_kind = [one for one in bases.held if one.evidence is cell.evidence]
        met = any(one in subject.cells for one in of_kind)
        why, command = f"{subject.name}: no baseline has {cell.evidence} results there", ""
        if of_kind and not met:
            places = (" ".join(filter(None, one[:2])) or "of no GPU that anybody named" for one in of_kind)
            there = brief_list(list(dict.fromkeys(places)))
            why = f"{why}; what there is to hold it against is {there}"
        elif not bases.held:
            why = f"{subject.name} has no baseline: nothing to compare with"
            command = f"profiler baseline set {shlex.quote(subject.family)} RUN_OR_VERSION"
        if cell in bases.why:
            why = f"{subject.name} has no baseline there: {bases.why[cell]}"
        return ComparisonPair(
            subject.name,
            "",
            None,
            self._side(subject, cell),
            *cell,
            why=why,
            noted=cell not in bases.refused and (met or not of_kind),
            next_command=command,
            made=subject.made.get(cell),
        )

    def _gap(self, subject: VersionResults, cell: Cell, baseline: str, noted: bool) -> ComparisonPair:
        why = f"nothing {cell.evidence} of {subject.name}, where {baseline} has it"
        command = self.again(subject, cell)
        return ComparisonPair(
            subject.name, baseline, None, None, *cell, why=why, noted=noted, next_command=command
        )

    def _contest(
        self, subject: VersionResults, cell: Cell, baseline: str, a: Side, held: VersionResults | None = None
    ) -> ComparisonPair:
        again = self.again(subject, cell, a)
        b, made = self._side(subject, cell, held), subject.made.get(cell)
        shown: tuple[str, str] | None = (baseline, subject.name)
        if baseline == a.run_id:  # of several versions, a dashboard does not know which
            shown = (baseline, subject.cells[cell]) if len(self.lookup.of_run(baseline)) == 1 else None
        return ComparisonPair(subject.name, baseline, a, b, *cell, again=again, made=made, shown=shown)

    def again(self, subject: VersionResults, cell: Cell, a: Side | None = None) -> str:
        """The command that collects what is missing or settles what is unclear."""
        if self.lookup.is_imported(subject, cell):
            return ""  # of a report: nothing here can make it again
        if cell.evidence is not Evidence.MEASURED:
            return f"profiler dissect {shlex.quote(subject.version)}"
        against = (
            f" --against {shlex.quote(a.version)}" if a and a.version not in (None, subject.version) else ""
        )
        return f"profiler collect {shlex.quote(subject.version)}{against} --rounds 25"

    def _side(self, held: VersionResults, cell: Cell, other: VersionResults | None = None) -> Side:
        """The cell's results; a build of long ago is as right as it was then, whatever was found since.

        A version, whatever its run, brings the calls of its older runs too: another one may have been timed
        beside it there. Beside a run of its own they would be held against themselves.
        """
        ask = partial(
            self.lookup.store.side,
            family=held.family,
            version=held.version,
            workload=cell.workload,
            gpu=cell.gpu,
            evidence=cell.evidence,
            label=held.name,
        )
        found = ask(run_id=held.cells[cell])
        if held.run_id is None and other and other.name != held.name and cell.evidence is Evidence.MEASURED:
            found = replace(found, latencies=ask().latencies)
        return replace(found, wrong=held.wrong)

    def _sorted(self, cells: Iterable[Cell]) -> list[Cell]:
        order = list(Evidence)
        found = filter(self.wanted.takes, cells)
        return sorted(
            found, key=lambda c: (-order.index(c.evidence), natural_key(c.workload), natural_key(c.gpu))
        )
