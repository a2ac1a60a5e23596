"""In which order families are offered: those with a lineage first, examples last, never by file time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from profiler.bundles.run import EXAMPLE
from profiler.catalog import catalog as catalog_file
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.store.rows import RunInfo

_NEVER = datetime.min.replace(tzinfo=UTC)
_FILE_TIME = "file time"  # provenance["created_from"] of a report that does not say when it was made


def order_families(runs: Iterable[RunInfo], catalogued: Collection[str], own: str = "") -> list[str]:
    """Every family of these runs, the one that a page opens with first.

    First `own`, the family of the working tree's catalogue, then those in `catalogued`, then those whose
    reports say when they were made, the newest first, then the others by name; families of example runs alone
    come last. The time of a file is when somebody copied it: it ranks nothing.
    """
    newest: dict[str, datetime] = {}
    of_user: set[str] = set()
    for run in runs:
        is_dated = run.provenance.get("created_from") != _FILE_TIME
        for family in run.families or filter(None, (run.family,)):
            newest[family] = max(newest.get(family, _NEVER), run.created if is_dated else _NEVER)
            if EXAMPLE not in run.provenance:
                of_user.add(family)
    by_time = sorted(sorted(newest), key=lambda family: newest[family], reverse=True)
    return sorted(
        by_time, key=lambda family: (family not in of_user, family not in catalogued, family != own)
    )


def example_families(runs: Iterable[RunInfo]) -> frozenset[str]:
    """The families of which there are example runs alone."""
    families: dict[str, bool] = {}
    for run in runs:
        for family in run.families or filter(None, (run.family,)):
            families[family] = families.get(family, True) and EXAMPLE in run.provenance
    return frozenset(family for family, is_example in families.items() if is_example)


def own_family() -> str:
    """The family of the working tree's catalogue; "" where there is none that can be read."""
    path = catalog_file.default_catalog()
    if path.is_file():
        with suppress(ProfilerError):
            return catalog_file.load_catalog(path).family
    return ""
