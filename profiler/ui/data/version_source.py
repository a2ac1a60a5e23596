"""What a run keeps of one version: its catalogue entry, its source, its shared-memory traffic by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profiler.bundles.location import Root
from profiler.catalog.version import Version
from profiler.history.catalog_snapshot import CatalogSnapshot
from profiler.sass.source_diff import TrafficRow


@dataclass(frozen=True)
class VersionSource:
    """A version as a run's catalogue and sources have it."""

    version: Version
    text: str | None  # of its source
    traffic: Mapping[str, Sequence[TrafficRow]]  # shared-memory traffic by workload
    files: Mapping[str, str]  # the text of each file that the traffic names

    @property
    def name(self) -> str:
        """The source's file name, or the callable of a version that has none."""
        return self.version.source.name if self.version.source else self.version.callable or ""


def load_version_source(root: Root, snapshot: CatalogSnapshot, version: str) -> VersionSource | None:
    """What the snapshot's run keeps of the version; None where its catalogue has no such version."""
    if version not in snapshot.catalog.by_id:
        return None
    entry = snapshot.catalog.by_id[version]
    traffic = snapshot.shared_traffic(root, version)
    files_named = {row.file for rows in traffic.values() for row in rows}
    texts = snapshot.source_texts(root)
    return VersionSource(
        entry,
        snapshot.source_text(root, entry),
        traffic,
        {name: text for name, text in texts.items() if name in files_named},
    )
