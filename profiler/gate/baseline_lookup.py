"""What every cell of a subject is held against: what was named, pinned or implied, or the run before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from profiler.bundles import IMPORT, Labels, bundle, decisions
from profiler.compare import VersionRef, is_file_name, resolve_all
from profiler.compare.resolve_names import RESULT_KINDS, find_run, resolve_family_version
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence import Evidence, Side
from profiler.gate.inventory import Cell, VersionResults, cell_of, results_by_version
from profiler.history import Baseline, Baselines, lineage
from profiler.history.baselines import BEST, IMPLICIT, PINNED, TORCH, run_before
from profiler.store import Rows

if TYPE_CHECKING:
    from profiler.bundles import Root
    from profiler.compare import StoreOpener
    from profiler.store import ResultInfo, RunInfo, Store


_STAMP = "%Y%m%dT%H%M%S"  # how a run id begins
_AHEAD = timedelta(hours=1)  # as far as clocks of two machines may differ


class CellBaselines(NamedTuple):
    """What one subject is held against, cell by cell."""

    held: Mapping[Cell, tuple[str, VersionResults]]  # the baseline's name and its results
    why: Mapping[Cell, str]  # of a cell without one: why that is
    refused: Collection[Cell] = ()  # cells whose baseline is gone or not known: nothing stands in for it
    anywhere: bool = True  # whether a GPU or architecture that the subject has nothing of is a gap


@dataclass(frozen=True)
class BaselineLookup:
    """Where runs, versions and their baselines are looked up for one gate."""

    store: Store
    root: Root
    name: str | None  # of the baseline
    opener: StoreOpener
    families: dict[str, Baselines] = field(default_factory=dict)  # as asked for, as are
    runs: dict[str, list[VersionResults]] = field(default_factory=dict)

    def run(self, name: str) -> bool:
        """Whether a name is a run's, or a version's as a run has it (`version~run`).

        Raises UnknownName for a run that was forgotten or cannot be read.
        """
        found = find_run(self.store, name)
        run = self.store.run(found.run_id or name) if found else None
        if run is not None and run.hidden:
            raise UnknownName(
                f"run {run.run_id} was forgotten: `profiler forget --undo {run.run_id}` brings it back"
            )
        if run is None and (reason := dict(self.store.refused()).get(name)):
            raise UnknownName(f"run {name} cannot be read: {reason}")
        return run is not None

    def of_run(self, name: str) -> list[VersionResults]:
        """Every version that a run holds, or the one meant by `version~run`."""
        found = find_run(self.store, name)
        if isinstance(found, VersionRef) and found.run_id:
            return [one for one in self.of_run(found.run_id) if one.name == f"{found.family}/{found.version}"]
        if name not in self.runs:
            rows = self.store.results(run_id=name, latest=False)
            if rows.truncated:  # what is cut off would never be judged
                raise CannotJudge(f"run {name} has more than {len(rows)} results: name its versions")
            self.runs[name] = [replace(one, run_id=name) for one in results_by_version(rows)]
        return self.runs[name]

    def of_version(self, family: str, version: str) -> VersionResults:
        """The newest results of a version in each cell. Raises where nobody knows which are the newest."""
        held = results_by_version(self.store.results(family=family, version=version))
        if not held:
            return VersionResults(family, version)
        if held[0].made:
            cell, made = max(held[0].made.items(), key=lambda one: one[1])
            every = partial(self.store.results, family=family, version=version, latest=False)
            self.check_newest(held[0].cells[cell], made, every, held[0].name)
        return held[0]

    def check_newest(
        self,
        run_id: str,
        made: datetime,
        every: Callable[[], Sequence[RunInfo] | Sequence[ResultInfo]],
        name: str = "all",
    ) -> None:
        """Raise where a run of the future hides one of `every`, or one that cannot be read may be newer."""
        until = datetime.now(UTC) + _AHEAD
        if made > until and any(one.created <= until for one in every()):
            raise CannotJudge(
                f"run {run_id} says that it was made in the future ({made:%Y-%m-%d %H:%M} UTC), and hides "
                f"what is made until then: name the run meant, or leave it out: profiler forget {run_id}"
            )
        self._check_unread(f"{made:{_STAMP}}", None, name)

    def _check_unread(self, since: str, until: str | None, name: str) -> None:
        for run_id, reason in self.unread:
            if run_id[: len(since)] >= since and (until is None or run_id[: len(since)] <= until):
                raise UnknownName(
                    f"run {run_id}, which may be the newest of {name}, cannot be read: {reason}; mend its "
                    f"bundle, or leave it out: profiler forget {run_id}"
                )

    @cached_property
    def unread(self) -> list[tuple[str, str]]:
        """Runs that cannot be read and why; none that somebody forgot."""
        refused = self.store.refused()
        decided = decisions.current_labels(decisions.load_decisions(self.root)) if refused else {}
        return [(run, why) for run, why in refused if not decided.get(run, Labels()).hidden]

    def against(self, subject: VersionResults, run_id: str | None, alone: bool) -> Side | CellBaselines:
        """The baseline of each cell by its name, or the one side that is the baseline of all."""
        name = self.name
        if name is not None and is_file_name(name):
            return resolve_all([name], self.opener)[0]
        if name is not None and self.run(name):
            there = self.of_run(name)
            same = [one for one in there if one.name == subject.name]
            chosen = same or (there if len(there) == 1 and alone else [])
            return CellBaselines({cell: (name, one) for one in chosen for cell in one.cells}, {})
        if name is None:
            earlier, tied = self._earlier(subject, run_id)
            found = {
                cell: (run, next(one for one in self.of_run(run) if one.name == subject.name))
                for cell, run in earlier.items()
            }
            pinned = self._chosen(subject, self.baselines(subject.family).for_gate, PINNED)
            kept = {cell: one for cell, one in found.items() if cell not in pinned.refused}
            gone = {cell: pinned.why[cell] for cell in pinned.refused}
            gone |= {cell: why for cell, why in tied.items() if cell not in pinned.held}
            return CellBaselines({**kept, **pinned.held}, gone, {*gone}, anywhere=False)
        if name in (PINNED, *IMPLICIT) or name.startswith(TORCH):
            return self._chosen(subject, partial(self._by_name, subject, name), name)
        held = self.of_version(*resolve_family_version(self.store, name))
        return CellBaselines(dict.fromkeys(held.cells, (held.name, held)), {})

    def _by_name(
        self, subject: VersionResults, name: str, workload: str | None, gpu: str | None
    ) -> Baseline | None:
        return self.baselines(subject.family).named(name, subject.version, workload, gpu)

    def _chosen(
        self,
        subject: VersionResults,
        choose: Callable[[str | None, str | None], Baseline | None],
        name: str,
    ) -> CellBaselines:
        """What is pinned or implied in each of the subject's cells, and in those that only that one has."""
        there = self.baselines(subject.family)
        found: dict[Cell, tuple[str, VersionResults]] = {}
        why: dict[Cell, str] = {}
        refused = set()
        waiting = list(subject.cells)
        for cell in waiting:
            workload, gpu = cell.workload or None, cell.gpu or None
            try:
                chosen = choose(workload, gpu)
            except CannotJudge as error:
                why[cell] = str(error)
                if name == PINNED and there.pin_for(workload, gpu):
                    refused.add(cell)
                continue
            if chosen is None:
                continue
            if chosen.run_id is None:
                held = [self.of_version(subject.family, chosen.version or "")]
            else:
                run_results = self.of_run(chosen.run_id)
                held = [one for one in run_results if one.name == subject.name] or run_results[
                    : len(run_results) == 1
                ]
            for one in held:
                if name == PINNED and _are_the_same(one, subject, cell):
                    why[cell] = "these results are what is pinned"
                    continue
                if cell in one.cells:
                    found[cell] = (chosen.name, one)
                if name != BEST:  # the best of one cell is not asked for what another lacks
                    waiting += [other for other in one.cells if other not in waiting]
        return CellBaselines(found, why, refused)

    def of_older_builds(self, subject: VersionResults) -> dict[Cell, str]:
        """Cells of what needs no GPU that a later run of another build of the version lacks, and that run."""
        cpu = {cell: run for cell, run in subject.cells.items() if cell.evidence is not Evidence.MEASURED}
        if len({*cpu.values()}) < 2:
            return {}
        newest = cpu[max(cpu, key=lambda cell: (subject.made[cell], cpu[cell]))]
        now = self._builds(newest, subject)
        return {
            cell: newest
            for cell, run in cpu.items()
            if run != newest and now and not now & self._builds(run, subject)
        }

    def _builds(self, run_id: str, subject: VersionResults) -> set[tuple[str | None, tuple[str, ...]]]:
        """What a version was built from in a run: source and flags."""
        return {
            (one.source_sha256, one.flags)
            for one in bundle.load_run(self.root, run_id).results
            if (one.family, one.version) == (subject.family, subject.version) and one.source_sha256
        }

    def is_rejected(self, subject: VersionResults) -> bool:
        """Whether its catalogue says that it is wrong."""
        standing = self.standing(subject)
        return standing is not None and standing.version.state == lineage.REJECTED

    def is_imported(self, subject: VersionResults, cell: Cell) -> bool:
        """Whether its results there came as a report, which no command here can collect again."""
        runs = {subject.cells[one] for one in subject.cells if one == cell} or set(subject.cells.values())
        found = [self.store.run(run_id) for run_id in runs]
        return any(found) and all(run is None or run.kind == IMPORT for run in found)

    def standing(self, subject: VersionResults) -> lineage.VersionStatus | None:
        """What its catalogue says; None where none names it."""
        found = self.baselines(subject.family).lineage
        return found.by_id.get(subject.version) if found else None

    def baselines(self, family: str) -> Baselines:
        """All that a family can be held against."""
        if family not in self.families:
            self.families[family] = Baselines.load(self.root, self.store, family)
        return self.families[family]

    def _earlier(
        self, subject: VersionResults, run_id: str | None
    ) -> tuple[dict[Cell, str], dict[Cell, str]]:
        """The last run before the subject's own that has each of its cells; why nobody knows which one is."""
        ask = partial(self.store.results, family=subject.family, version=subject.version, latest=False)
        rows = ask()
        if rows.truncated:  # the newest may be cut off
            rows = Rows(row for cell in subject.cells for row in ask(**cell._asdict()))
        created = {row.run_id: row.created for row in rows}
        by_cell: dict[Cell, dict[str, datetime]] = {}
        for row in sorted(rows, key=lambda row: (row.created, row.run_id)):
            if row.kind in RESULT_KINDS:
                by_cell.setdefault(cell_of(row), {})[row.run_id] = row.created
        found: dict[Cell, str] = {}
        tied: dict[Cell, str] = {}
        for cell, runs in by_cell.items():
            own = run_id or subject.cells.get(cell)
            if own not in created:
                continue
            before = run_before(own, {**runs, own: created[own]})
            if before.tied:
                tied[cell] = (
                    f"{before.tied} and {own} say the same time, so nobody knows which is the newer: "
                    "name the one by --baseline"
                )
            if before.run_id:
                self._check_unread(
                    f"{created[before.run_id]:{_STAMP}}",
                    f"{created[own]:{_STAMP}}",
                    f"{subject.name} before {own}",
                )
                found[cell] = before.run_id
        return {cell: run for cell, run in found.items() if cell not in tied}, tied


def _are_the_same(one: VersionResults, other: VersionResults, cell: Cell) -> bool:
    """Whether both are the very results of one run, which are no worse than themselves."""
    return one.name == other.name and cell in other.cells and one.cells.get(cell) == other.cells[cell]
