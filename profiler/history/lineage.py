"""The lineage of a family: the versions of its catalogue joined with the newest results in the index."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from profiler.bundles.location import Root
from profiler.catalog.catalog import Catalog
from profiler.catalog.version import Version
from profiler.evidence.launch import Launch
from profiler.evidence.naming import natural_key
from profiler.evidence.values import Evidence
from profiler.history.catalog_snapshot import CatalogSnapshot, load_newest_snapshot
from profiler.history.version_latency import VersionLatency, newest_latencies

if TYPE_CHECKING:
    from profiler.store.index import Store
    from profiler.store.rows import ResultInfo

MAIN = "main"  # the role of a version's kernel function where it has several
GOOD, WRONG, REJECTED, PLANNED, BASELINE = "good", "wrong", "rejected", "planned", "baseline"
REFUSALS = ("over-budget", "launch-refused")  # reasons to reject a version that gave no result at all
_DONE = "done"


@dataclass(frozen=True)
class VersionStatus:
    """One version: what its catalogue says, its newest results, and its nearest correct ancestor."""

    version: Version
    state: str  # good, wrong, rejected, planned or baseline
    reason: str  # why it is not good, or what a planned version waits for
    note: str  # what is missing although it is good or rejected: not checked, not caught, over its budget
    correct_ancestor: Version | None  # the nearest one
    static: Mapping[tuple[str, str], Launch]  # facts of the main function by architecture and workload
    modelled: Mapping[str, Launch]  # facts of the run on the CPU by workload, which has no dtype
    latencies: Mapping[tuple[str, str], VersionLatency]  # the newest ones by workload and GPU
    evidence: frozenset[Evidence]
    first_created: datetime | None = None  # of the first run with results of it; None: there is none

    @property
    def latency_ns(self) -> dict[tuple[str, str], float]:
        """The median latencies by workload and GPU, in ns."""
        return {cell: latency.ns for cell, latency in self.latencies.items()}

    @property
    def is_wrong(self) -> bool:
        """Whether its results are wrong or it was rejected, so that it has no speed."""
        return self.state in (WRONG, REJECTED)


@dataclass(frozen=True)
class Lineage:
    """Every version of a catalogue, in its order, with the newest results."""

    snapshot: CatalogSnapshot
    statuses: tuple[VersionStatus, ...]
    uncatalogued: tuple[str, ...] = ()  # versions of the family that the catalogue lacks
    gpus: tuple[str, ...] = ()  # those that latencies were measured on, of most versions first

    @property
    def family(self) -> str:
        """The family of all its versions."""
        return self.snapshot.catalog.family

    @cached_property
    def by_id(self) -> Mapping[str, VersionStatus]:
        """The status of each version, by its id."""
        return {status.version.id: status for status in self.statuses}

    @property
    def order(self) -> tuple[str, ...]:
        """The version ids in the catalogue's order, then those that the catalogue lacks."""
        return (*(status.version.id for status in self.statuses), *self.uncatalogued)

    @property
    def wrong(self) -> dict[str, str]:
        """The versions that have no speed, each with its state: wrong or rejected."""
        return {status.version.id: status.state for status in self.statuses if status.is_wrong}

    @property
    def architectures(self) -> list[str]:
        """The architectures that static facts were compiled for, in natural order."""
        return sorted({arch for status in self.statuses for arch, _ in status.static}, key=natural_key)

    @property
    def static_workloads(self) -> list[str]:
        """The workloads that static facts are given for, those of most versions first."""
        return _most_frequent_first(
            workload for status in self.statuses for workload in {workload for _, workload in status.static}
        )

    @property
    def run_workloads(self) -> list[str]:
        """The workloads that versions were run on, those timed on a GPU first, of most versions first."""
        return list(dict.fromkeys((*self.timed_workloads, *self.modelled_workloads)))

    @property
    def modelled_workloads(self) -> list[str]:
        """The workloads that versions were run on by the CPU, those of most versions first."""
        return _most_frequent_first(workload for status in self.statuses for workload in status.modelled)

    @property
    def timed_workloads(self) -> list[str]:
        """The workloads that were timed on any GPU, those of most versions first."""
        return _most_frequent_first(
            workload
            for status in self.statuses
            for workload in {workload for workload, _ in status.latencies}
        )

    def best(self, workload: str = "", gpu: str = "") -> VersionStatus | None:
        """The fastest correct version there; where nothing was timed, the one with most ancestors."""
        correct = self.correct_deepest_first
        timed = [status for status in correct if (workload, gpu) in status.latencies]
        if timed:
            return min(timed, key=lambda status: status.latencies[workload, gpu].ns)
        return correct[0] if correct else None

    @property
    def correct_deepest_first(self) -> list[VersionStatus]:
        """The correct versions, those with most ancestors first; of equals, the catalogue's later one."""
        correct = [status for status in self.statuses if status.state == GOOD]
        correct.reverse()
        return sorted(correct, key=lambda status: -len(self.ancestry(status)))

    @property
    def newest_correct_first(self) -> list[VersionStatus]:
        """The correct versions, those of which the first results came last first; of equals, the deepest."""
        by_depth = self.correct_deepest_first
        never = datetime.min.replace(tzinfo=UTC)
        return sorted(by_depth, key=lambda status: status.first_created or never, reverse=True)

    @property
    def timed_cells(self) -> list[tuple[str, str]]:
        """The (GPU, workload) pairs on which correct versions were timed, the GPUs in their order here."""
        cells = {cell for status in self.statuses if not status.is_wrong for cell in status.latencies}
        pairs = ((gpu, workload) for workload, gpu in cells)
        return sorted(pairs, key=lambda pair: (self.gpus.index(pair[0]), natural_key(pair[1])))

    @property
    def first_timed_cell(self) -> tuple[str, str] | None:
        """The (GPU, workload) pair on which most correct versions were timed; None where none was."""
        counts = Counter(cell for status in self.statuses if not status.is_wrong for cell in status.latencies)
        return max(self.timed_cells, key=lambda pair: counts[pair[1], pair[0]], default=None)

    def best_baseline(self, workload: str, gpu: str) -> VersionStatus | None:
        """The fastest kernel of others there; None where none was timed."""
        timed = [
            status
            for status in self.statuses
            if status.state == BASELINE and (workload, gpu) in status.latencies
        ]
        return min(timed, key=lambda status: status.latencies[workload, gpu].ns, default=None)

    def ancestry(self, status: VersionStatus | None) -> frozenset[str]:
        """The ids of a version and of all its ancestors."""
        ids = set()
        while status is not None:
            ids.add(status.version.id)
            parent = status.version.parent
            status = self.by_id[parent] if parent is not None else None
        return frozenset(ids)


def build_lineage(store: Store, snapshot: CatalogSnapshot) -> Lineage:
    """The status of each version of the catalogue, by the newest results in the index."""
    catalog = snapshot.catalog
    rows = store.results(family=catalog.family)
    fact_ids = [row.result_id for row in rows if row.kind == "facts"]
    facts = dict(zip(fact_ids, store.load(fact_ids), strict=True))
    rows_by_version: dict[str, list[ResultInfo]] = defaultdict(list)
    for row in rows:
        rows_by_version[row.version].append(row)
    latencies: dict[str, dict[tuple[str, str], VersionLatency]] = defaultdict(dict)
    provenance = store.provenances({row.run_id for row in rows if row.kind == "latency"})
    for (name, workload, gpu), latency in newest_latencies(rows, provenance).items():
        if name in catalog.by_id:
            latencies[name][workload_without_dtype(workload, catalog.by_id[name]), gpu] = latency
    first_created = {info.version: info.first_created for info in store.versions(catalog.family)}
    statuses: dict[str, VersionStatus] = {}
    for version in catalog.versions:  # parents come first, so a version's ancestors are there already
        own_rows = rows_by_version.get(version.id, [])
        ancestor = _correct_ancestor(version, catalog, statuses)
        status = _status(version, own_rows, facts, latencies[version.id], ancestor)
        statuses[version.id] = replace(status, first_created=first_created.get(version.id))
    uncatalogued = [version for version in first_created if version not in statuses]
    gpus = _most_frequent_first(
        gpu for status in statuses.values() for gpu in {gpu for _, gpu in status.latencies}
    )
    return Lineage(snapshot, tuple(statuses.values()), tuple(uncatalogued), tuple(gpus))


def load_lineage(root: Root, store: Store, family: str) -> Lineage | None:
    """The lineage of one family; None where no run has a catalogue of it."""
    snapshot = load_newest_snapshot(root, store, family)
    return None if snapshot is None else build_lineage(store, snapshot)


def load_lineages(root: Root, store: Store, family: str | None = None) -> dict[str, Lineage]:
    """The lineage of each family that has a catalogue, or of one family alone."""
    families = store.families() if family is None else [family]
    lineages = {name: load_lineage(root, store, name) for name in families}
    return {name: lineage for name, lineage in lineages.items() if lineage is not None}


def workload_without_dtype(workload: str, version: Version) -> str:
    """A workload's label without the dtype, so that versions of several dtypes share a row."""
    return " ".join(word for word in workload.split(" ") if word != version.dtype)


def _status(
    version: Version,
    rows: Sequence[ResultInfo],
    facts: Mapping[int, Launch],
    latencies: Mapping[tuple[str, str], VersionLatency],
    correct_ancestor: Version | None,
) -> VersionStatus:
    static: dict[tuple[str, str], Launch] = {}
    modelled: dict[str, Launch] = {}
    for row in rows:
        cell = (row.gpu or "", row.workload or "")
        if row.kind == "facts" and row.evidence is Evidence.STATIC:
            if row.part == MAIN or cell not in static:
                static[cell] = facts[row.result_id]
        elif row.kind == "facts" and row.evidence is Evidence.MODELLED:
            modelled[workload_without_dtype(row.workload or "", version)] = facts[row.result_id]
    state, reason, note = _state(version, rows)
    evidence = frozenset(row.evidence for row in rows if row.kind != "cell")
    return VersionStatus(
        version, state, reason, note, correct_ancestor, static, modelled, latencies, evidence
    )


def _state(version: Version, rows: Sequence[ResultInfo]) -> tuple[str, str, str]:
    """The state of a version, the reason for it, and a note on what is still missing."""
    checked = [row for row in rows if row.evidence is Evidence.MODELLED]
    failing = [row for row in rows if row.status == "wrong"]
    failing += [row for row in checked if row.status not in (_DONE, "wrong")]
    # A failure without a workload is a compile error. One on a GPU has no number, so it says nothing about
    # whether the version is right.
    failing += [row for row in rows if row.status == "failed" and row.workload is None]
    failed_on_gpu = [row for row in rows if row.status == "failed" and row not in failing]
    if version.state == REJECTED:
        word = REJECTED if set(version.caught_by) <= set(REFUSALS) else WRONG
        note = "" if failing else "not caught by the check" if checked else "not checked"
        return word, version.reason.removeprefix("wrong: "), note
    if version.state != GOOD:
        return version.state, version.reason, ""
    if failing:
        row = min(failing, key=lambda row: row.status != "wrong")
        return WRONG, row.reason or row.status, "the catalogue says good"
    timed = any(row.kind == "latency" for row in rows)  # only what a check on the GPU has passed is timed
    notes = [] if checked or timed else ["not checked"]
    notes += [f"failed on {row.gpu or 'a GPU'}, {row.workload}: {row.reason}" for row in failed_on_gpu[:1]]
    return GOOD, "", "; ".join(notes)


def _correct_ancestor(
    version: Version, catalog: Catalog, statuses: Mapping[str, VersionStatus]
) -> Version | None:
    """The nearest ancestor whose results are right, by the index as well as by the catalogue."""
    parent = version.parent
    while parent is not None:
        if statuses[parent].state == GOOD:
            return catalog.by_id[parent]
        parent = catalog.by_id[parent].parent
    return None


def _most_frequent_first(labels: Iterable[str]) -> list[str]:
    counts = Counter(labels)
    return sorted(counts, key=lambda label: (-counts[label], natural_key(label)))
