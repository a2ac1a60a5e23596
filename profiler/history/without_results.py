"""Versions that a catalogue names but no run has results of: found by name, with an explanation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.bundles.location import Root
from profiler.compare.resolve_names import is_file_name
from profiler.errors import CannotJudge, UnknownName

if TYPE_CHECKING:
    from profiler.catalog.version import Version
    from profiler.compare.resolve_names import StoreOpener
    from profiler.store.index import Store


def find_version_without_results(root: Root, store: Store, name: str) -> tuple[str, Version] | None:
    """The family and catalogue entry of a version that no run has results of.

    `name` is `family/version`, or `version`; None where no catalogue has it, or several have.
    """
    from profiler.history.catalog_snapshot import load_newest_snapshot

    with_results = {(info.family, info.version) for info in store.versions()}
    matches = []
    for family in store.families():
        snapshot = load_newest_snapshot(root, store, family)
        versions = snapshot.catalog.versions if snapshot else ()
        matches += [
            (family, version)
            for version in versions
            if name in (version.id, f"{family}/{version.id}") and (family, version.id) not in with_results
        ]
    return matches[0] if len(matches) == 1 else None


def no_results_reason(family: str, version: Version) -> str:
    """`attention/v2h is planned, so nothing is known of it: needs a GPU`."""
    from profiler.history.lineage import PLANNED

    name = f"{family}/{version.id}"
    if version.state == PLANNED:
        return f"{name} is planned ({version.technique}), so nothing is known of it: {version.reason}"
    return (
        f"{name} is in the catalogue, but no run has anything of it: `profiler collect {version.id}` on a GPU"
    )


@contextmanager
def versions_without_results_explained(
    names: Iterable[str], store_opener: StoreOpener, data: str | None = None
) -> Iterator[None]:
    """Turn the UnknownName of such a version into CannotJudge: a planned version is no typing error.

    `data` is the folder or URL of the index's bundles, PROFILER_DATA's where None.
    """
    try:
        yield
    except UnknownName:
        for name in names:
            if name and not is_file_name(name):
                entry = find_version_without_results(location.open_root(data), store_opener(), name)
                if entry is not None:
                    raise CannotJudge(no_results_reason(*entry)) from None
        raise
