"""Which results there are of each version, by cell: those of one run, or the newest of each cell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from profiler.bundles import IMPORT, Labels, bundle, decisions
from profiler.compare import VersionRef
from profiler.compare.resolve_names import RESULT_KINDS, find_run, resolve_family_version
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence import Evidence

if TYPE_CHECKING:
    from profiler.bundles import Root
    from profiler.store import ResultInfo, RunInfo, Store

FAILED = "failed"  # the status of what was tried and gave no result
_RUN_ID_TIME = "%Y%m%dT%H%M%S"  # how a run id begins
_CLOCK_SKEW = timedelta(hours=1)  # as far as clocks of two machines may differ


class Cell(NamedTuple):
    """Where results lie; "" for what nobody named."""

    workload: str
    gpu: str  # of static facts the architecture
    evidence: Evidence


class CellFilter(NamedTuple):
    """Which cells are compared; empty for every one."""

    workload: str | None = None
    gpu: str | None = None
    evidence: Collection[Evidence] = ()

    def matches(self, cell: Cell) -> bool:
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


EVERY_CELL = CellFilter()


@dataclass(frozen=True)
class VersionResults:
    """Where the results of one version lie: in one run, or in the newest run of each cell."""

    family: str
    version: str
    run_ids: Mapping[Cell, str] = field(default_factory=dict)  # every cell with results, and their run
    created: Mapping[Cell, datetime] = field(default_factory=dict)  # when that run was made
    failures: Mapping[str, str] = field(default_factory=dict)  # by workload: why nothing came of it
    wrong: str | None = None  # why its results are wrong, by these runs alone
    run_id: str | None = None  # the one run that they are out of; None: the newest of each cell

    @property
    def name(self) -> str:
        """What the command line takes for it."""
        return f"{self.family}/{self.version}"


def results_by_version(rows: Sequence[ResultInfo]) -> list[VersionResults]:
    """The results of each version, each cell from its newest run."""
    rows_by_version: dict[tuple[str, str], list[ResultInfo]] = {}
    for row in rows:
        rows_by_version.setdefault((row.family, row.version), []).append(row)
    versions = []
    for (family, version), own_rows in rows_by_version.items():
        newest: dict[Cell, ResultInfo] = {}
        for row in own_rows:
            known = newest.get(cell_of(row))
            if row.kind in RESULT_KINDS and (known is None or _age(row) > _age(known)):
                newest[cell_of(row)] = row
        failures = {
            row.workload or "": row.reason or row.status
            for row in own_rows
            if row.kind == "cell" and row.status == FAILED
        }
        wrong = next((row.reason or row.status for row in own_rows if is_wrong(row)), None)
        run_ids = {cell: row.run_id for cell, row in newest.items()}
        created = {cell: row.created for cell, row in newest.items()}
        versions.append(VersionResults(family, version, run_ids, created, failures, wrong))
    return versions


def _age(row: ResultInfo) -> tuple[datetime, str]:
    return row.created, row.run_id


def is_wrong(row: ResultInfo) -> bool:
    """Whether a check found it so; the CPU can run every version, so what failed there is wrong."""
    return row.status == "wrong" or (row.status == FAILED and row.evidence is Evidence.MODELLED)


def cell_of(row: ResultInfo) -> Cell:
    """Where a row lies."""
    return Cell(row.workload or "", row.gpu or "", row.evidence)


@dataclass(frozen=True)
class Inventory:
    """The runs and versions of an index, looked up for one gate.

    What nobody can trust to be the newest is refused: a gate must not pass by results that are out of date.
    """

    store: Store
    root: Root
    _runs: dict[str, list[VersionResults]] = field(default_factory=dict)

    def is_run(self, name: str) -> bool:
        """Whether a name is a run's, or a version's as a run has it (`version~run`).

        Raises UnknownName for a run that was forgotten or cannot be read.
        """
        match = find_run(self.store, name)
        run = self.store.run(match.run_id or name) if match else None
        if run is not None and run.hidden:
            raise UnknownName(
                f"run {run.run_id} was forgotten: `profiler forget --undo {run.run_id}` brings it back"
            )
        if run is None and (reason := dict(self.store.refused()).get(name)):
            raise UnknownName(f"run {name} cannot be read: {reason}")
        return run is not None

    def of_run(self, name: str) -> list[VersionResults]:
        """Every version that a run holds, or the one meant by `version~run`."""
        match = find_run(self.store, name)
        if isinstance(match, VersionRef) and match.run_id:
            version = f"{match.family}/{match.version}"
            return [results for results in self.of_run(match.run_id) if results.name == version]
        if name not in self._runs:
            rows = self.store.results(run_id=name, latest=False)
            if rows.truncated:  # what is cut off would never be judged
                raise CannotJudge(f"run {name} has more than {len(rows)} results: name its versions")
            self._runs[name] = [replace(results, run_id=name) for results in results_by_version(rows)]
        return self._runs[name]

    def of_version(self, family: str, version: str) -> VersionResults:
        """The newest results of a version in each cell. Raises where nobody knows which are the newest."""
        versions = results_by_version(self.store.results(family=family, version=version))
        if not versions:
            return VersionResults(family, version)
        results = versions[0]
        if results.created:
            cell, created = max(results.created.items(), key=lambda item: item[1])
            load_all = partial(self.store.results, family=family, version=version, latest=False)
            self.check_newest(results.run_ids[cell], created, load_all, results.name)
        return results

    def of_name(self, name: str) -> list[VersionResults]:
        """Every version of a run, or the one version that a name means."""
        if self.is_run(name):
            return self.of_run(name)
        return [self.of_version(*resolve_family_version(self.store, name))]

    def check_name(self, name: str) -> None:
        """Raise for a name that is no run or version, or of which nobody knows the newest results."""
        if not self.is_run(name):
            self.of_version(*resolve_family_version(self.store, name))

    def newest_run(self) -> str:
        """The id of the newest run of all."""
        runs = self.store.runs(limit=1)
        if not runs:
            raise UnknownName("the index is empty: `profiler import PATH`, or `profiler dissect`")
        self.check_newest(runs[0].run_id, runs[0].created, self.store.runs)
        return runs[0].run_id

    def check_newest(
        self,
        run_id: str,
        created: datetime,
        load_all: Callable[[], Sequence[RunInfo] | Sequence[ResultInfo]],
        name: str = "all",
    ) -> None:
        """Raise where a run of the future hides the others, or one that cannot be read may be newer."""
        until = datetime.now(UTC) + _CLOCK_SKEW
        if created > until and any(row.created <= until for row in load_all()):
            raise CannotJudge(
                f"run {run_id} says that it was made in the future ({created:%Y-%m-%d %H:%M} UTC), and hides "
                f"what is made until then: name the run meant, or leave it out: profiler forget {run_id}"
            )
        self.check_unread(name, created)

    def check_unread(self, name: str, since: datetime, until: datetime | None = None) -> None:
        """Raise where a run of that time cannot be read, by the time that its id begins with."""
        first = f"{since:{_RUN_ID_TIME}}"
        last = None if until is None else f"{until:{_RUN_ID_TIME}}"
        for run_id, reason in self._unread:
            when = run_id[: len(first)]
            if when >= first and (last is None or when <= last):
                raise UnknownName(
                    f"run {run_id}, which may be the newest of {name}, cannot be read: {reason}; mend its "
                    f"bundle, or leave it out: profiler forget {run_id}"
                )

    @cached_property
    def _unread(self) -> list[tuple[str, str]]:
        """Runs that cannot be read and why; none that somebody forgot."""
        refused = self.store.refused()
        labels = decisions.current_labels(decisions.load_decisions(self.root)) if refused else {}
        return [(run_id, why) for run_id, why in refused if not labels.get(run_id, Labels()).hidden]

    def outdated_cells(self, results: VersionResults) -> dict[Cell, str]:
        """Cells without a GPU whose results are of an older build, each with the run that built it anew.

        A run that dissects a version checks all of it; what a later build lacks was left out there.
        """
        on_cpu = {
            cell: run for cell, run in results.run_ids.items() if cell.evidence is not Evidence.MEASURED
        }
        if len({*on_cpu.values()}) < 2:
            return {}
        newest = on_cpu[max(on_cpu, key=lambda cell: (results.created[cell], on_cpu[cell]))]
        builds = self._builds(newest, results)
        return {
            cell: newest
            for cell, run_id in on_cpu.items()
            if run_id != newest and builds and not builds & self._builds(run_id, results)
        }

    def _builds(self, run_id: str, results: VersionResults) -> set[tuple[str | None, tuple[str, ...]]]:
        """What a version was built from in a run: source and flags."""
        return {
            (result.source_sha256, result.flags)
            for result in bundle.load_run(self.root, run_id).results
            if (result.family, result.version) == (results.family, results.version) and result.source_sha256
        }

    def is_imported(self, results: VersionResults, cell: Cell) -> bool:
        """Whether results came as a report, which no command here can collect again."""
        run_ids = {results.run_ids[cell]} if cell in results.run_ids else set(results.run_ids.values())
        runs = [self.store.run(run_id) for run_id in run_ids]
        return any(runs) and all(run is None or run.kind == IMPORT for run in runs)
