"""Which versions and families a page offers, and the pairs that the Diff page may open with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from profiler.evidence.values import Evidence
from profiler.history.lineage import Lineage
from profiler.store.rows import VersionInfo
from profiler.ui.addresses import version_name
from profiler.ui.data.cells import NamedCell, WorkloadOnGpu, shared_workloads_on_gpus

_LOOK_BACK = 8  # versions of a family among which a pair is looked for
NamedPair = tuple[str, str]  # two names, family/version


def families_of(versions: Sequence[VersionInfo]) -> list[str]:
    """Every family, in the order in which the versions stand."""
    return list(dict.fromkeys(version.family for version in versions))


def versions_to_offer(versions: Sequence[VersionInfo], in_address: str | None) -> list[str]:
    """The names of every version, and whatever else the address names."""
    names = [version_name(version) for version in versions]
    # What the address names may be hidden or misspelt: offered all the same, the page can say so.
    return names if in_address is None or in_address in names else [in_address, *names]


def lineage_pairs(versions: Sequence[VersionInfo], lineage: Lineage) -> list[NamedPair]:
    """Each correct version after its nearest correct ancestor, the deepest first.

    Both of one dtype and with results.
    """
    with_results = {version_name(version) for version in versions}
    pairs = []
    for status in lineage.correct_deepest_first:
        ancestor = status.correct_ancestor
        if ancestor is not None and ancestor.dtype == status.version.dtype:
            pair = f"{lineage.family}/{ancestor.id}", f"{lineage.family}/{status.version.id}"
            if with_results.issuperset(pair):
                pairs.append(pair)
    return pairs


def measured_pairs(
    versions: Sequence[VersionInfo], family: str, cells: Sequence[NamedCell]
) -> list[tuple[NamedPair, WorkloadOnGpu]]:
    """The last pairs of a family that share measured results, the last first, and where they share them."""
    names = [version_name(version) for version in versions if version.family == family][-_LOOK_BACK:]
    cells = [cell for cell in cells if cell.name in names]
    # The nearer to the end B and then A stand, the earlier the pair.
    pairs = [(a, b) for b, a in combinations(reversed(names), 2)]
    shared = ((pair, shared_workloads_on_gpus(cells, pair, Evidence.MEASURED)) for pair in pairs)
    return [(pair, places[0]) for pair, places in shared if places]


def last_pair(versions: Sequence[VersionInfo]) -> NamedPair:
    """The last two versions of the first family that has two; else the only version twice."""
    for family in families_of(versions):
        names = [version_name(version) for version in versions if version.family == family]
        if len(names) > 1:
            return names[-2], names[-1]
    return version_name(versions[0]), version_name(versions[0])
