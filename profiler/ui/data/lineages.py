"""Versions in their catalogue's order, how they stand, and the sources that runs keep: cached as all data."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from profiler.bundles import location
from profiler.errors import ProfilerError
from profiler.history import CatalogSnapshot, Speedup, catalog_snapshot, speedups
from profiler.history import lineage as lineages
from profiler.store import VersionInfo
from profiler.ui.data import index
from profiler.ui.views import version_sources


@st.cache_resource(show_spinner=False, max_entries=2)
def versions(now: index.Stamp) -> list[VersionInfo]:
    """Every version, in order of its first run within its family."""
    return [
        version
        for family in index.store().families()
        for version in _in_order(index.store().versions(family), catalogue_order(now, family))
    ]


def _in_order(found: Sequence[VersionInfo], order: Sequence[str]) -> list[VersionInfo]:
    """The versions in the catalogue's order where there is one; the others after them, as they came."""
    places = {name: place for place, name in enumerate(order)}
    return sorted(found, key=lambda version: places.get(version.version, len(places)))


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def attached(now: index.Stamp, family: str) -> CatalogSnapshot | None:
    """The catalogue that the family's newest run with one keeps."""
    return catalog_snapshot.load_newest_snapshot(location.open_root(), index.store(), family)


def lineages_by_family(now: index.Stamp) -> dict[str, lineages.Lineage]:
    """The lineage of each family that has a catalogue; one that cannot be read is named."""
    found = {}
    for family in index.store().families():
        with index.errors_shown():
            one = lineage(now, family)
            if one is not None:
                found[family] = one
    return found


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def lineage(now: index.Stamp, family: str) -> lineages.Lineage | None:
    """How the versions of a family stand; None where it has no catalogue."""
    found = attached(now, family)
    return None if found is None else lineages.build_lineage(index.store(), found)


def is_wrong(now: index.Stamp, family: str, version: str) -> bool:
    """Whether the lineage says that a version's results are wrong; one that it cannot tell of is not."""
    with suppress(ProfilerError):
        found = lineage(now, family)
        return bool(found and version in found.by_id and found.by_id[version].is_wrong)
    return False


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def speed_ups(now: index.Stamp, family: str, workload: str, gpu: str) -> dict[str, Speedup]:
    """How much faster each version is than its nearest correct ancestor there."""
    found = lineage(now, family)
    return (
        speedups.load_speedups(index.store(), found, workload, gpu, index.noise(now)) if found and gpu else {}
    )


def catalogue_order(now: index.Stamp, family: str) -> tuple[str, ...]:
    """The versions in their catalogue's order; none where it cannot be told."""
    with suppress(ProfilerError):
        found = attached(now, family)
        return tuple(found.catalog.by_id) if found else ()
    return ()


def apart(now: index.Stamp, family: str) -> str:
    """How the working tree's catalogue and sources differ from those that are shown."""
    found = attached(now, family)
    return catalog_snapshot.working_tree_difference(found) if found else ""


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def origin(now: index.Stamp, family: str, run_id: str | None) -> CatalogSnapshot | None:
    """The catalogue and sources that belong to a side: its own run's, else the family's newest."""
    own = (
        catalog_snapshot.load_snapshot(location.open_root(), index.kept(now, run_id), family)
        if run_id
        else None
    )
    return own or attached(now, family)


@st.cache_resource(show_spinner=False, max_entries=index.KEPT)
def source(now: index.Stamp, family: str, run_id: str | None, version: str) -> version_sources.Kept | None:
    """A version's entry, sources and line tables as its run keeps them."""
    held = origin(now, family, run_id)
    if held is None or version not in held.catalog.by_id:
        return None
    entry, root = held.catalog.by_id[version], location.open_root()
    traffic = held.shared_traffic(root, version)
    named = {row[0] for rows in traffic.values() for row in rows}
    return version_sources.Kept(
        entry,
        held.source_text(root, entry),
        traffic,
        {name: text for name, text in held.source_texts(root).items() if name in named},
    )
