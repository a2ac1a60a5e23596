"""What is known of a version named on the command line, and which baseline it is held against."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from profiler.advice import ComparedSide, Subject
from profiler.bundles import location
from profiler.catalog import Version
from profiler.cli import output
from profiler.compare import NoiseModel, comparison, resolve_names
from profiler.errors import UnknownName
from profiler.evidence import Evidence, MetricTable, Side
from profiler.history import VersionStatus, lineage
from profiler.history.baselines import NoBaseline, for_advice
from profiler.history.without_results import (
    find_version_without_results,
    no_results_reason,
    versions_without_results_explained,
)

if TYPE_CHECKING:
    from profiler.compare import StoreOpener


def load_subject(
    name: str, against: str | None, workload: str | None, gpu: str | None, table: MetricTable
) -> Subject:
    """The version's sides, each beside the baseline's: the one named, else the nearest correct ancestor."""
    opener = lru_cache(maxsize=1)(output.open_store)
    try:
        side = resolve_names.find_measured(name, opener, workload, gpu)
    except UnknownName:
        if entry := find_version_without_results(location.open_root(), opener(), name):
            return _unmade(*entry)
        raise
    sides = resolve_names.find_facts(name, opener, workload, gpu)
    if side and side.evidence is not Evidence.MEASURED:  # a run that holds facts alone
        sides = [side]
        side = None
    held = [*([side] if side else []), *sides]
    if not held:
        raise UnknownName(_nowhere(name, workload, gpu))
    label = held[0].label
    family, version = held[0].family, held[0].version
    stands, traffic = None, {}
    if family and version:
        root = location.open_root()
        found = lineage.load_lineages(root, opener(), family).get(family)
        if found and version in found.by_id:
            stands = found.by_id[version]
            traffic = found.snapshot.shared_traffic(root, version)
    base, why = against, "asked for"
    if against is None:
        baseline = for_advice(family, stands)
        base, why = (
            (None, baseline.why) if isinstance(baseline, NoBaseline) else (baseline.name, baseline.words)
        )
    with versions_without_results_explained((base or "",), opener):
        cells = tuple(ComparedSide(one, _against(base, one, opener, table)) for one in sides)
        measured = ComparedSide(side, _against(base, side, opener, table)) if side else None
        if against is not None:
            resolve_names.check_name(against, opener)
    if base and not any(one.comparison for one in (*cells, *([measured] if measured else []))):
        why = f"{base} shares no workload and GPU with it"
        base = None
    elsewhere = stands is not None and Evidence.MODELLED in stands.evidence
    return Subject(label, measured, cells, _wrong(held, stands), base, why, traffic, elsewhere)


def _unmade(family: str, version: Version) -> Subject:
    parent = f" Its parent: `profiler insights {version.parent}`." if version.parent else ""
    words = f"{no_results_reason(family, version)}.{parent}"
    return Subject(
        f"{family}/{version.id}", waits_for=words, baseline_why="nothing to hold against a baseline"
    )


def _against(
    base: str | None, side: Side, opener: StoreOpener, table: MetricTable
) -> comparison.Comparison | None:
    """The baseline against a side of the same evidence, workload and GPU; None where it has none there."""
    if base is None:
        return None
    if side.evidence is Evidence.MEASURED:
        other = resolve_names.find_measured(base, opener, side.workload, side.gpu)
    else:
        every = resolve_names.find_facts(base, opener, side.workload, side.gpu)
        other = next((one for one in every if one.evidence is side.evidence), None)
    if other is None:
        return None
    if other.wrong:  # its numbers stand beside, but a wrong version is no baseline
        other = replace(other, label=f"{other.label} (wrong)")
    return comparison.compare(other, side, table, noise=NoiseModel.of_store(opener))


def _wrong(held: list[Side], stands: VersionStatus | None) -> str | None:
    """Why the version has no speed: what its check found, else the catalogue's reason."""
    found = next((one.wrong for one in held if one.wrong), None)
    if found is None and stands and stands.is_wrong:
        return stands.reason or stands.state
    if found and stands and stands.reason:
        return f"{found} ({stands.reason})"
    return found


def _nowhere(name: str, workload: str | None, gpu: str | None) -> str:
    asked = " and ".join(filter(None, (workload, gpu)))
    return f"{name} has nothing on {asked}: `profiler show {name}` says what there is"
