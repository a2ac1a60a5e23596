"""The subject of advice: one version's measured launches and facts, each beside the baseline's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.catalog.version import Version
from profiler.compare.comparison import Comparison
from profiler.compare.judged import Judge
from profiler.compare.resolve_names import check_name, find_facts, find_measured
from profiler.errors import UnknownName
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.history.baselines import NoBaseline, for_advice
from profiler.history.lineage import VersionStatus, load_lineage
from profiler.history.without_results import (
    find_version_without_results,
    no_results_reason,
    versions_without_results_explained,
)
from profiler.sass.source_diff import TrafficRow

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener

TrafficByWorkload = Mapping[str, Sequence[TrafficRow]]  # of CatalogSnapshot.shared_traffic


@dataclass(frozen=True)
class ComparedSide:
    """A version on one workload and GPU or architecture, with its comparison to the baseline there."""

    side: Side
    comparison: Comparison | None = None  # its B is this side; None: there is no baseline here

    @property
    def place(self) -> str:
        """The workload and the GPU or architecture, in words."""
        return " ".join(filter(None, (self.side.workload, ", ".join(self.side.gpus))))


@dataclass(frozen=True)
class Subject:
    """All that is known of one version, for advice."""

    label: str
    measured: ComparedSide | None = None
    facts: tuple[ComparedSide, ...] = ()  # static and modelled
    wrong: str | None = None  # why its results are wrong, or why it was rejected
    baseline: str | None = None  # its name
    baseline_why: str = ""  # why that one, or why there is none
    traffic: TrafficByWorkload = field(default_factory=dict)  # of shared memory, a row per source line
    checked_elsewhere: bool = False  # whether it was checked on other workloads than those of `facts`
    waits_for: str = ""  # of a version of which there is nothing yet: what its catalogue says
    in_no_catalog: bool = False  # then `profiler collect` cannot build it, as an imported library

    @property
    def checked(self) -> bool:
        """Whether a run on the CPU compared its results with the reference."""
        return self.checked_elsewhere or any(fact.side.evidence is Evidence.MODELLED for fact in self.facts)


def load_subject(
    name: str,
    store_opener: StoreOpener,
    table: MetricTable,
    *,
    against: str | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    data: str | None = None,
) -> Subject:
    """A version, run or report file beside its baseline: `against`, else its parent.

    The parent is the nearest correct ancestor in the family's catalogue. A version in a catalogue without any
    results is a subject too, which says so. The index is opened once, and only where it is needed; `data` is
    the folder or URL of its bundles, PROFILER_DATA's where None. Raises UnknownName for a name that stands
    for nothing, CannotJudge for a baseline without results.
    """
    open_once = lru_cache(maxsize=1)(store_opener)
    try:
        measured = find_measured(name, open_once, workload, gpu)
    except UnknownName:
        if entry := find_version_without_results(location.open_root(data), open_once(), name):
            return _without_results(*entry)
        raise
    facts = find_facts(name, open_once, workload, gpu)
    if measured and measured.evidence is not Evidence.MEASURED:  # a run that holds facts alone
        facts, measured = [measured], None
    sides = [*([measured] if measured else []), *facts]
    if not sides:
        place = " and ".join(filter(None, (workload, gpu)))
        raise UnknownName(f"{name} has nothing on {place}: `profiler show {name}` lists what it has")
    family, version = sides[0].family, sides[0].version
    status: VersionStatus | None = None
    traffic: TrafficByWorkload = {}
    if family and version:
        root = location.open_root(data)
        lineage = load_lineage(root, open_once(), family)
        if lineage and version in lineage.by_id:
            status = lineage.by_id[version]
            traffic = lineage.snapshot.shared_traffic(root, version)
    baseline, why = _choose_baseline(against, family, status)
    comparer = _Comparer(baseline, open_once, Judge.of_data(table, open_once, data))
    with versions_without_results_explained((baseline or "",), open_once, data):
        compared_facts = tuple(map(comparer.compared, facts))
        compared_launches = comparer.compared(measured) if measured else None
        if against is not None:
            check_name(against, open_once)
    compared = (*compared_facts, *([compared_launches] if compared_launches else []))
    if baseline and not any(side.comparison for side in compared):
        baseline, why = None, f"{baseline} shares no workload and GPU with it"
    return Subject(
        sides[0].label,
        compared_launches,
        compared_facts,
        _why_wrong(sides, status),
        baseline,
        why,
        traffic,
        checked_elsewhere=status is not None and Evidence.MODELLED in status.evidence,
        in_no_catalog=status is None,
    )


def _without_results(family: str, version: Version) -> Subject:
    parent = f" Its parent: `profiler insights {version.parent}`." if version.parent else ""
    return Subject(
        f"{family}/{version.id}",
        baseline_why="nothing to compare with a baseline",
        waits_for=f"{no_results_reason(family, version)}.{parent}",
    )


def _choose_baseline(
    against: str | None, family: str | None, status: VersionStatus | None
) -> tuple[str | None, str]:
    """The name of the baseline and why it is that one, or None and why there is none."""
    if against is not None:
        return against, "asked for"
    baseline = for_advice(family, status)
    return (None, baseline.why) if isinstance(baseline, NoBaseline) else (baseline.name, baseline.words)


@dataclass(frozen=True)
class _Comparer:
    """Compares a version's sides with those of its baseline."""

    baseline: str | None
    store_opener: StoreOpener
    judge: Judge

    def compared(self, side: Side) -> ComparedSide:
        """A side beside the baseline's side of the same evidence, workload and GPU, if it has one."""
        other = self._baseline_side(side)
        if other is None:
            return ComparedSide(side)
        if other.wrong:  # its numbers stand beside, but a wrong version is no baseline
            other = replace(other, label=f"{other.label} (wrong)")
        return ComparedSide(side, self.judge.sides(other, side))

    def _baseline_side(self, side: Side) -> Side | None:
        if self.baseline is None:
            return None
        if side.evidence is Evidence.MEASURED:
            return find_measured(self.baseline, self.store_opener, side.workload, side.gpu)
        facts = find_facts(self.baseline, self.store_opener, side.workload, side.gpu)
        return next((fact for fact in facts if fact.evidence is side.evidence), None)


def _why_wrong(sides: Sequence[Side], status: VersionStatus | None) -> str | None:
    """Why the version has no speed: what its check found, else the catalogue's reason."""
    found_wrong = next((side.wrong for side in sides if side.wrong), None)
    if found_wrong is None and status and status.is_wrong:
        return status.reason or status.state
    if found_wrong and status and status.reason:
        return f"{found_wrong} ({status.reason})"
    return found_wrong
