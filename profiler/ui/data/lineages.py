"""Versions in their catalogue's order, how they stand, and the sources that runs keep."""

from __future__ import annotations

from contextlib import suppress

from profiler.bundles.location import open_root
from profiler.errors import ProfilerError
from profiler.history.best_versions import BestVersion, load_best_versions
from profiler.history.catalog_snapshot import CatalogSnapshot, load_newest_snapshot, load_snapshot
from profiler.history.catalog_snapshot import working_tree_difference as find_working_tree_difference
from profiler.history.family_order import order_families, own_family
from profiler.history.lineage import Lineage, build_lineage
from profiler.history.speedups import Speedup, load_speedups
from profiler.store.rows import VersionInfo
from profiler.ui.addresses import parse_version
from profiler.ui.data import predictions, results
from profiler.ui.data.cache import cached
from profiler.ui.data.index import DataVersion, noise, store
from profiler.ui.data.version_source import VersionSource, load_version_source
from profiler.ui.errors import errors_shown


@cached(2)
def families(data_version: DataVersion) -> list[str]:
    """Every family, the one that a page opens with first: see `order_families`."""
    catalogued = []
    for family in store().families():
        with suppress(ProfilerError):
            if newest_snapshot(data_version, family) is not None:
                catalogued.append(family)
    return order_families(results.runs(data_version), catalogued, own_family())


@cached(2)
def versions(data_version: DataVersion) -> list[VersionInfo]:
    """Every version, the families in their order and each in its catalogue's.

    Those that no catalogue has stand by their first run.
    """
    ordered = []
    for family in families(data_version):
        positions = {name: index for index, name in enumerate(_catalogue_order(data_version, family))}
        ordered += sorted(
            store().versions(family),
            key=lambda version: positions.get(version.version, len(positions)),
        )
    return ordered


def _catalogue_order(data_version: DataVersion, family: str) -> tuple[str, ...]:
    """The versions of the family's catalogue; none where there is no catalogue that can be read."""
    with suppress(ProfilerError):
        snapshot = newest_snapshot(data_version, family)
        return tuple(snapshot.catalog.by_id) if snapshot else ()
    return ()


@cached()
def newest_snapshot(data_version: DataVersion, family: str) -> CatalogSnapshot | None:
    """The catalogue that the family's newest run with one keeps."""
    return load_newest_snapshot(open_root(), store(), family)


@cached()
def lineage(data_version: DataVersion, family: str) -> Lineage | None:
    """How the versions of a family stand; None where it has no catalogue."""
    snapshot = newest_snapshot(data_version, family)
    return None if snapshot is None else build_lineage(store(), snapshot)


def lineages_by_family(data_version: DataVersion) -> dict[str, Lineage]:
    """The lineage of each family that has a catalogue; one that cannot be read is named on the page."""
    by_family = {}
    for family in families(data_version):
        with errors_shown():
            family_lineage = lineage(data_version, family)
            if family_lineage is not None:
                by_family[family] = family_lineage
    return by_family


def is_wrong(data_version: DataVersion, family: str, version: str) -> bool:
    """Whether the lineage says that a version's results are wrong; one that it does not know is not."""
    with suppress(ProfilerError):
        family_lineage = lineage(data_version, family)
        return bool(
            family_lineage and version in family_lineage.by_id and family_lineage.by_id[version].is_wrong
        )
    return False


def modelled_workload(data_version: DataVersion, name: str) -> str:
    """The workload that most versions of a version's family ran on the CPU, as on Lineage; "" without."""
    with suppress(ProfilerError):
        family_lineage = lineage(data_version, parse_version(name).family)
        if family_lineage is not None:
            return next(iter(family_lineage.modelled_workloads), "")
    return ""


def best_version(data_version: DataVersion, family: str) -> str:
    """The best correct version: the fastest where most were timed, else by the model, else the deepest."""
    with suppress(ProfilerError):
        family_lineage = lineage(data_version, family)
        if family_lineage is not None:
            gpu, workload = family_lineage.first_timed_cell or ("", "")
            predicted = None if gpu else predictions.predictions(data_version, family)
            correct = [status.version.id for status in family_lineage.correct_deepest_first]
            if predicted is not None and (fastest := predicted.fastest(correct)):
                return fastest[0].version
            best = family_lineage.best(workload, gpu)
            return best.version.id if best else ""
    return ""


@cached()
def speedups(data_version: DataVersion, family: str, workload: str, gpu: str) -> dict[str, Speedup]:
    """How much faster each version is there than its nearest correct ancestor."""
    family_lineage = lineage(data_version, family)
    if family_lineage is None or not gpu:
        return {}
    return load_speedups(store(), family_lineage, workload, gpu, noise(data_version))


@cached()
def best_versions(data_version: DataVersion, family: str) -> tuple[BestVersion, ...]:
    """The best correct version of each GPU and workload; none where nothing was timed."""
    family_lineage = lineage(data_version, family)
    if family_lineage is None:
        return ()
    return load_best_versions(store(), family_lineage, noise(data_version))


def working_tree_difference(data_version: DataVersion, family: str) -> str:
    """How the working tree's catalogue and sources differ from those that are shown; "" where they do not."""
    snapshot = newest_snapshot(data_version, family)
    return find_working_tree_difference(snapshot) if snapshot else ""


@cached()
def version_source(
    data_version: DataVersion, family: str, run_id: str | None, version: str
) -> VersionSource | None:
    """A version's entry, sources and line tables as its run keeps them, else the family's newest run."""
    snapshot = None
    if run_id:
        snapshot = load_snapshot(open_root(), results.bundled_run(data_version, run_id), family)
    snapshot = snapshot or newest_snapshot(data_version, family)
    return load_version_source(open_root(), snapshot, version) if snapshot else None
