"""Versions in their catalogue's order, how they stand, and the sources that runs keep: cached as all data."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from profiler.bundles import location
from profiler.errors import ProfilerError
from profiler.history import lineage as lineages
from profiler.history import speedups
from profiler.history.speedups import SpeedUp
from profiler.store import VersionInfo
from profiler.ui import data, source_view


@st.cache_resource(show_spinner=False, max_entries=2)
def versions(now: data.Stamp) -> list[VersionInfo]:
    """Every version, in order of its first run within its family."""
    return [
        version
        for family in data.store().families()
        for version in _in_order(data.store().versions(family), catalogue_order(now, family))
    ]


def _in_order(found: Sequence[VersionInfo], order: Sequence[str]) -> list[VersionInfo]:
    """The versions in the catalogue's order where there is one; the others after them, as they came."""
    places = {name: place for place, name in enumerate(order)}
    return sorted(found, key=lambda version: places.get(version.version, len(places)))


@st.cache_resource(show_spinner=False, max_entries=data.KEPT)
def attached(now: data.Stamp, family: str) -> lineages.Attached | None:
    """The catalogue that the family's newest run with one keeps."""
    return lineages.newest(location.root(), data.store(), family)


def lineages_by_family(now: data.Stamp) -> dict[str, lineages.Lineage]:
    """The lineage of each family that has a catalogue; one that cannot be read is named."""
    found = {}
    for family in data.store().families():
        with data.errors_shown():
            one = lineage(now, family)
            if one is not None:
                found[family] = one
    return found


@st.cache_resource(show_spinner=False, max_entries=data.KEPT)
def lineage(now: data.Stamp, family: str) -> lineages.Lineage | None:
    """How the versions of a family stand; None where it has no catalogue."""
    found = attached(now, family)
    return None if found is None else lineages.stands(data.store(), found)


def is_wrong(now: data.Stamp, family: str, version: str) -> bool:
    """Whether the lineage says that a version's results are wrong; one that it cannot tell of is not."""
    with suppress(ProfilerError):
        found = lineage(now, family)
        return bool(found and version in found.by_id and found.by_id[version].is_wrong)
    return False


@st.cache_resource(show_spinner=False, max_entries=data.KEPT)
def speed_ups(now: data.Stamp, family: str, workload: str, gpu: str) -> dict[str, SpeedUp]:
    """How much faster each version is than its nearest correct ancestor there."""
    found = lineage(now, family)
    return speedups.speed_ups(data.store(), found, workload, gpu, data.floors(now)) if found and gpu else {}


def catalogue_order(now: data.Stamp, family: str) -> tuple[str, ...]:
    """The versions in their catalogue's order; none where it cannot be told."""
    with suppress(ProfilerError):
        found = attached(now, family)
        return tuple(found.catalog.by_id) if found else ()
    return ()


def apart(now: data.Stamp, family: str) -> str:
    """How the working tree's catalogue and sources differ from those that are shown."""
    found = attached(now, family)
    return lineages.apart(found) if found else ""


@st.cache_resource(show_spinner=False, max_entries=data.KEPT)
def origin(now: data.Stamp, family: str, run_id: str | None) -> lineages.Attached | None:
    """The catalogue and sources that belong to a side: its own run's, else the family's newest."""
    own = lineages.of_run(location.root(), data.kept(now, run_id), family) if run_id else None
    return own or attached(now, family)


@st.cache_resource(show_spinner=False, max_entries=data.KEPT)
def source(now: data.Stamp, family: str, run_id: str | None, version: str) -> source_view.Kept | None:
    """A version's entry, sources and line tables as its run keeps them."""
    held = origin(now, family, run_id)
    if held is None or version not in held.catalog.by_id:
        return None
    entry, root = held.catalog.by_id[version], location.root()
    traffic = lineages.lines(root, held, version)
    named = {row[0] for rows in traffic.values() for row in rows}
    return source_view.Kept(
        entry,
        lineages.source(root, held, entry),
        traffic,
        {name: text for name, text in lineages.texts(root, held).items() if name in named},
    )
