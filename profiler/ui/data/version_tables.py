"""What the Compare page shows: which versions, where they have results, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from profiler.compare.resolve_names import is_file_name
from profiler.documents.version_report import report_of_table
from profiler.documents.version_table import VersionTableDocument
from profiler.documents.version_table_cells import compare_many, table_names, table_places
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence.cell import Cell
from profiler.evidence.values import Evidence
from profiler.history.lineage import BASELINE, Lineage
from profiler.store.rows import VersionInfo
from profiler.ui.addresses import parse_version, version_name
from profiler.ui.data import lineages
from profiler.ui.data.cache import MAX_ENTRIES, cached
from profiler.ui.data.index import DataVersion, metric_table, store

_MOST_CHOSEN = 10  # versions that the page opens with


def default_versions(
    data_version: DataVersion, versions: Sequence[VersionInfo], chosen: str = ""
) -> list[str]:
    """The last correct versions of a family, with the kernels of others that were timed beside them.

    The family `chosen`, or the first where it has not two versions. Without a catalogue the last versions.
    """
    if not versions:
        return []
    of_chosen = [version for version in versions if version.family == chosen]
    family = chosen if len(of_chosen) > 1 else versions[0].family
    names = [version_name(version) for version in versions if version.family == family]
    lineage = _lineage(data_version, family)
    if lineage is None:
        return names[-_MOST_CHOSEN:]
    correct = [
        name
        for name in names
        if (status := lineage.by_id.get(name.rpartition("/")[2])) is not None
        and not status.is_wrong
        and status.state != BASELINE
    ]
    others = [
        f"{family}/{status.version.id}"
        for status in lineage.statuses
        if status.state == BASELINE and status.latencies
    ]
    return [*(correct or names)[-_MOST_CHOSEN:], *others]


def default_baseline(data_version: DataVersion, names: Sequence[str]) -> str:
    """What the chosen are held against: the nearest correct ancestor of the best version, where it is chosen.

    Else the first.
    """
    lineage = _lineage(data_version, parse_version(names[0]).family)
    if lineage is not None:
        best = lineage.by_id.get(lineages.best_version(data_version, lineage.family))
        ancestor = best.correct_ancestor if best else None
        if ancestor is not None and f"{lineage.family}/{ancestor.id}" in names:
            return f"{lineage.family}/{ancestor.id}"
    return names[0]


def short_label(name: str) -> str:
    """A version without its family; of a run its day and time stand beside it."""
    parsed = parse_version(name)
    return " · ".join(filter(None, (parsed.version, parsed.run_date)))


def known_names(data_version: DataVersion, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The rows that the names stand for, of a run one a version, and a line for each name of nothing."""
    rows: dict[str, None] = {}
    refusals = []
    for name in names:
        try:
            rows |= dict.fromkeys(_row_names(data_version, name))
        except ProfilerError as error:
            refusals.append(str(error))
    return list(rows), refusals


@cached(8 * MAX_ENTRIES)
def _row_names(data_version: DataVersion, name: str) -> list[str]:
    if is_file_name(name):  # an address comes from outside: it opens no file
        raise UnknownName(f"{name}: no version or run in the index is called that")
    return table_names((name,), store, lineages=_lineages(data_version))


@cached()
def places(data_version: DataVersion, names: tuple[str, ...]) -> dict[Cell, int]:
    """Where any of the names has results, and how many of them have."""
    return table_places(names, store, lineages=_lineages(data_version))


@cached(saying="comparing …")
def table(
    data_version: DataVersion,
    names: tuple[str, ...],
    against: str,
    metrics: tuple[str, ...],
    chosen: tuple[Cell, ...],
    kernels: str,
) -> VersionTableDocument:
    """The table of these versions in the places that were chosen."""
    return compare_many(
        names,
        metric_table(data_version),
        store,
        against=against,
        metrics=metrics,
        kernel=kernels or None,
        places=chosen,
        lineages=_lineages(data_version),
    )


def report(data_version: DataVersion, document: VersionTableDocument) -> str:
    """The table as one HTML file, with histories and the diffs of those that moved most."""
    return report_of_table(document, metric_table(data_version), store).to_html()


def by_evidence(found: dict[Cell, int], evidence: Evidence) -> list[Cell]:
    """The places of one kind of evidence, those that most of the versions have first."""
    return sorted((place for place in found if place.evidence is evidence), key=lambda place: -found[place])


def _lineages(data_version: DataVersion) -> dict[str, Lineage | None]:
    return {family: _lineage(data_version, family) for family in store().families()}


def _lineage(data_version: DataVersion, family: str) -> Lineage | None:
    with suppress(ProfilerError):  # a catalogue that cannot be read: its versions stand without states
        return lineages.lineage(data_version, family)
    return None
