"""The results that an index has of each version, by cell: those of one run, or the newest of each cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING

from profiler.bundles import bundle, decisions
from profiler.bundles.run import IMPORT, Labels
from profiler.compare.resolve_names import RESULT_KINDS, VersionRef, find_run, resolve_family_version
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence.cell import Cell
from profiler.evidence.values import Evidence

if TYPE_CHECKING:
    from profiler.bundles.location import Root
    from profiler.store.index import Store
    from profiler.store.rows import ResultInfo, RunInfo

FAILED = "failed"  # the status of what was run and gave no result
_RUN_ID_TIME = "%Y%m%dT%H%M%S"  # the start of a run id
_CLOCK_SKEW = timedelta(hours=1)  # how far the clocks of two machines may differ


_Build = tuple[str | None, tuple[str, ...]]  # hash of the source, and flags


@dataclass(frozen=True)
class VersionResults:
    """Where the results of one version are: in one run, or for each cell in the newest run that has it."""

    family: str
    version: str
    run_ids: Mapping[Cell, str] = field(default_factory=dict)  # the run of each cell with results
    created: Mapping[Cell, datetime] = field(default_factory=dict)  # when that run was made
    failures: Mapping[str, str] = field(default_factory=dict)  # by workload: why it gave no result
    wrong: str | None = None  # why the results are wrong, by checks in these runs alone
    run_id: str | None = None  # the one run that they are from; None: the newest run of each cell

    @property
    def name(self) -> str:
        """The name that the command line accepts."""
        return f"{self.family}/{self.version}"


def results_by_version(rows: Sequence[ResultInfo]) -> list[VersionResults]:
    """The results of each version, with each cell's newest run."""
    rows_by_version: dict[tuple[str, str], list[ResultInfo]] = {}
    for row in rows:
        rows_by_version.setdefault((row.family, row.version), []).append(row)
    versions = []
    for (family, version), own_rows in rows_by_version.items():
        newest: dict[Cell, ResultInfo] = {}
        for row in own_rows:
            newest_so_far = newest.get(cell_of(row))
            if row.kind in RESULT_KINDS and (newest_so_far is None or _age(row) > _age(newest_so_far)):
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
    """Whether a check found it wrong. A failure on the CPU counts, since that can run every version."""
    return row.status == "wrong" or (row.status == FAILED and row.evidence is Evidence.MODELLED)


def cell_of(row: ResultInfo) -> Cell:
    """The cell of a result row."""
    return Cell(workload=row.workload or "", gpu=row.gpu or "", evidence=row.evidence)


@dataclass(frozen=True)
class Inventory:
    """The runs and versions of an index, looked up for one gate.

    It refuses results that may not be the newest: a gate must not pass by results that are out of date.
    """

    store: Store
    root: Root
    _runs: dict[str, list[VersionResults]] = field(default_factory=dict)

    def is_run(self, name: str) -> bool:
        """Whether a name is a run's id, or a version of a run (`version~run`).

        Raises UnknownName for a run that was forgotten or cannot be read.
        """
        match = find_run(self.store, name)
        run = self.store.run(match.run_id or name) if match else None
        if run is not None and run.hidden:
            raise UnknownName(
                f"run {run.run_id} was forgotten: `profiler data forget --undo {run.run_id}` brings it back"
            )
        if run is None and (reason := dict(self.store.refused()).get(name)):
            raise UnknownName(f"run {name} cannot be read: {reason}")
        return run is not None

    def of_run(self, name: str) -> list[VersionResults]:
        """The results of every version in a run, or of the one version that `version~run` means."""
        if name in self._runs:
            return self._runs[name]
        match = find_run(self.store, name)
        if isinstance(match, VersionRef) and match.run_id:
            version = f"{match.family}/{match.version}"
            return [results for results in self.of_run(match.run_id) if results.name == version]
        rows = self.store.results(run_id=name, latest=False)
        if rows.truncated:  # results that are cut off would never be judged
            raise CannotJudge(f"run {name} has more than {len(rows)} results: name its versions")
        self._runs[name] = [replace(results, run_id=name) for results in results_by_version(rows)]
        return self._runs[name]

    def of_version(self, family: str, version: str) -> VersionResults:
        """The newest results of a version in each cell. Raises where it is unknown which are the newest."""
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
        """The results of every version of a run or a family, or of the one version that a name means.

        A version goes before a family of its name. The versions of a family come as they first appeared.
        """
        if self.is_run(name):
            return self.of_run(name)
        try:
            return [self.of_version(*resolve_family_version(self.store, name))]
        except UnknownName:
            versions = self.store.versions(name)
            if not versions or any(info.version == name for info in self.store.versions()):
                raise  # no family, or versions of several families are called that
            return [self.of_version(info.family, info.version) for info in versions]

    def check_name(self, name: str) -> None:
        """Raise for a name that is no run or version, or whose newest results are unknown."""
        if not self.is_run(name):
            self.of_version(*resolve_family_version(self.store, name))

    def newest_run(self) -> str:
        """The id of the newest run in the index."""
        runs = self.store.runs(limit=1)
        if not runs:
            raise UnknownName("the index is empty: `profiler import PATH`, or `profiler static --check`")
        self.check_newest(runs[0].run_id, runs[0].created, self.store.runs)
        return runs[0].run_id

    def beside_newest_import(self) -> tuple[str, int] | None:
        """Family and number of the other versions of the newest run; None where a collection made it.

        Each imported report is a run of its own, so that the newest run is one of perhaps many of a folder.
        """
        run = next(iter(self.store.runs(limit=1)), None)
        if run is None or run.kind != IMPORT or run.family is None:
            return None
        others = sum(info.version != run.version for info in self.store.versions(run.family))
        return (run.family, others) if others else None

    def check_newest(
        self,
        run_id: str,
        created: datetime,
        load_all: Callable[[], Sequence[RunInfo] | Sequence[ResultInfo]],
        name: str = "all",
    ) -> None:
        """Raise where the newest run is dated in the future, or an unreadable run may be newer."""
        until = datetime.now(UTC) + _CLOCK_SKEW
        if created > until and any(row.created <= until for row in load_all()):
            raise CannotJudge(
                f"run {run_id} says that it was made in the future ({created:%Y-%m-%d %H:%M} UTC), and hides "
                f"what is made until then: name the run meant, or leave it out: profiler data forget {run_id}"
            )
        self.check_unread(name, created)

    def check_unread(self, name: str, since: datetime, until: datetime | None = None) -> None:
        """Raise where an unreadable run was made in this time, which its id begins with."""
        first = f"{since:{_RUN_ID_TIME}}"
        last = None if until is None else f"{until:{_RUN_ID_TIME}}"
        for run_id, reason in self._unread:
            when = run_id[: len(first)]
            if when >= first and (last is None or when <= last):
                raise UnknownName(
                    f"run {run_id}, which may be the newest of {name}, cannot be read: {reason}; repair its "
                    f"bundle, or leave it out: profiler data forget {run_id}"
                )

    @cached_property
    def _unread(self) -> list[tuple[str, str]]:
        """The runs that cannot be read, without forgotten ones, each with the reason."""
        refused = self.store.refused()
        labels = decisions.current_labels(decisions.load_decisions(self.root)) if refused else {}
        return [(run_id, why) for run_id, why in refused if not labels.get(run_id, Labels()).hidden]

    def outdated_cells(self, results: VersionResults) -> dict[Cell, str]:
        """Cells without a GPU with results of an older build, each with the run of the newer build.

        A run that dissects a version checks all of it, so what the newer build lacks was left out on purpose.
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

    def is_dropped(self, results: VersionResults, cell: Cell) -> bool:
        """Whether the problem of a version no longer has a workload: nothing is checked on it any more.

        Its newest run on the CPU, which always checks all workloads, has others, and no version of the family
        has this one since then. Measured workloads are chosen run by run: they are never dropped.
        """
        newest = max(
            (own for own in results.run_ids if own.evidence is cell.evidence and own != cell),
            key=lambda own: results.created[own],
            default=None,
        )
        if newest is None or cell.evidence is not Evidence.MODELLED:
            return False
        rows = self.store.results(family=results.family, evidence=cell.evidence)
        since = results.created[newest]
        return not rows.truncated and all(
            row.workload != cell.workload or row.created < since for row in rows
        )

    def _builds(self, run_id: str, results: VersionResults) -> set[_Build]:
        """What a version was built from in a run: source hash and flags."""
        if run_id not in self._builds_by_run:
            # A run has many versions, and each of them asks: reading its file takes half a second.
            of_run: dict[tuple[str, str], set[_Build]] = {}
            for result in bundle.load_run(self.root, run_id).results:
                if result.source_sha256:
                    own = of_run.setdefault((result.family, result.version), set())
                    own.add((result.source_sha256, result.flags))
            self._builds_by_run[run_id] = of_run
        return self._builds_by_run[run_id].get((results.family, results.version), set())

    @cached_property
    def _builds_by_run(self) -> dict[str, dict[tuple[str, str], set[_Build]]]:
        """What was read so far: by run, then by family and version."""
        return {}

    def is_imported(self, results: VersionResults, cell: Cell) -> bool:
        """Whether the results were imported as a report, which no command here can collect again."""
        run_ids = {results.run_ids[cell]} if cell in results.run_ids else set(results.run_ids.values())
        kinds = [self._kind_of(run_id) for run_id in run_ids]
        return any(kinds) and all(kind in ("", IMPORT) for kind in kinds)

    def _kind_of(self, run_id: str) -> str:
        """The kind of a run; "" where there is no such run."""
        if run_id not in self._kinds:
            run = self.store.run(run_id)
            self._kinds[run_id] = run.kind if run else ""
        return self._kinds[run_id]

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """What was asked so far, by run."""
        return {}
