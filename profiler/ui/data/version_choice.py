"""Which versions a page offers, and the pair that the Diff page opens with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from profiler.history import Lineage
from profiler.store import VersionInfo
from profiler.ui.addresses import version_name


def families_newest_first(versions: Sequence[VersionInfo]) -> list[str]:
    """Every family, the one measured last first."""
    newest: dict[str, datetime] = {}
    for version in versions:
        newest[version.family] = max(newest.get(version.family, version.last_created), version.last_created)
    return sorted(newest, key=lambda family: newest[family], reverse=True)


def versions_to_offer(versions: Sequence[VersionInfo], in_address: str | None) -> list[str]:
    """The names of every version, newest family first, and whatever else the address names."""
    order = families_newest_first(versions)
    by_family = sorted(versions, key=lambda version: order.index(version.family))
    names = [version_name(version) for version in by_family]
    # What the address names may be hidden or misspelt: offered all the same, the page can say so.
    return names if in_address is None or in_address in names else [in_address, *names]


def newest_pair(versions: Sequence[VersionInfo]) -> tuple[str, str]:
    """The last two versions of the family that was measured last and has two; else the same one twice."""
    families: dict[str, list[VersionInfo]] = {}
    for version in versions:
        families.setdefault(version.family, []).append(version)
    with_pairs = [group for group in families.values() if len(group) > 1] or list(families.values())
    group = max(with_pairs, key=lambda group: max(version.last_created for version in group))
    return version_name(group[-2] if len(group) > 1 else group[-1]), version_name(group[-1])


def best_pair(versions: Sequence[VersionInfo], lineage: Lineage) -> tuple[str, str] | None:
    """The deepest correct version and its nearest correct ancestor, of one dtype and both with results."""
    family = lineage.snapshot.catalog.family
    with_results = {version_name(version) for version in versions}
    for status in lineage.correct_deepest_first:
        ancestor = status.correct_ancestor
        if ancestor is not None and ancestor.dtype == status.version.dtype:
            pair = f"{family}/{ancestor.id}", f"{family}/{status.version.id}"
            if with_results.issuperset(pair):
                return pair
    return None
