"""The catalogue stored in a run, with its sources and line tables: read from bundles, not from a checkout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.bundles import bundle
from profiler.bundles.location import Root
from profiler.bundles.run import COLLECT, Run
from profiler.catalog import catalog as catalog_catalog
from profiler.catalog.catalog import Catalog
from profiler.catalog.version import Version
from profiler.errors import BadBundle, BadCatalog
from profiler.sass.source_diff import TrafficRow

if TYPE_CHECKING:
    from profiler.store.index import Store

LOOK_BACK = 50  # newest runs of a family that are searched for a catalogue
_CATALOG_SUFFIX = ".toml"
_HEADER_SUFFIXES = (".h", ".cuh")


@dataclass(frozen=True)
class CatalogSnapshot:
    """A catalogue with its sources and line tables as a run stored them, completed from older runs."""

    run_id: str
    created: datetime
    catalog: Catalog
    sha256: str  # of the catalogue's text
    files: Mapping[str, str]  # sha256 by path inside the bundle
    kept_by: Mapping[str, str] = field(default_factory=dict)  # the older run that has a file, by path

    def read(self, root: Root, path: str) -> bytes:
        """The content of a file, from the run that has it."""
        return root.read(f"{bundle.RUNS_FOLDER}/{self.kept_by.get(path, self.run_id)}/{path}")

    def source_path(self, version: Version) -> str | None:
        """The path of the version's source in the bundle; None where there is none, as for Python."""
        path = _source_path(self.catalog, version)
        return path if path in self.files else None

    def source_text(self, root: Root, version: Version) -> str | None:
        """The version's source; None where no run has it."""
        path = self.source_path(version)
        return None if path is None else self.read(root, path).decode(errors="replace")

    def source_texts(self, root: Root) -> dict[str, str]:
        """Every source and header, by file name."""
        return {
            path.rpartition("/")[2]: self.read(root, path).decode(errors="replace")
            for path in self.files
            if self.is_source(path)
        }

    def is_source(self, path: str) -> bool:
        """Whether a path in the bundle is a source or header from beside the catalogue."""
        return path.startswith(f"{self.catalog.folder.name}/") and not path.endswith(_CATALOG_SUFFIX)

    def shared_traffic(self, root: Root, version: str) -> dict[str, list[TrafficRow]]:
        """The version's shared-memory traffic by workload, one row an access; empty if not stored."""
        path = _line_table_path(version)
        if path not in self.files:
            return {}
        document = json.loads(self.read(root, path))
        return {
            workload: [TrafficRow(*row) for row in rows] for workload, rows in document["workloads"].items()
        }


def load_snapshot(root: Root, run: Run, family: str | None = None) -> CatalogSnapshot | None:
    """The catalogue in a run, of that family or of any; None where the run has none.

    Raises BadBundle for a catalogue that cannot be read.
    """
    for file in run.files:
        if file.kind == "catalog":
            content = root.read(f"{bundle.RUNS_FOLDER}/{run.run_id}/{file.path}")
            # The sources need not lie on this machine, so the path only names where the text came from.
            path = Path(f"/{run.run_id}") / file.path
            try:
                catalog = catalog_catalog.parse_catalog(content.decode(), path, check_files=False)
            except (BadCatalog, UnicodeDecodeError) as error:
                raise BadBundle(f"run {run.run_id} keeps a catalogue that cannot be read: {error}") from None
            if family in (None, catalog.family):
                files = {other.path: other.sha256 for other in run.files}
                return CatalogSnapshot(run.run_id, run.created, catalog, file.sha256, files)
    return None


def load_newest_snapshot(root: Root, store: Store, family: str) -> CatalogSnapshot | None:
    """The catalogue in the family's newest run that has one; None where no run has.

    A run may cover some versions only, and a run on a GPU may lack the CPU model. Sources that it lacks are
    taken from older runs, and so are line tables of versions whose sources have not changed since.
    """
    snapshot: CatalogSnapshot | None = None
    for run in store.runs(family, limit=LOOK_BACK):
        if run.kind != COLLECT:
            continue
        try:
            older = load_snapshot(root, bundle.load_outline(root, run.run_id), family)
        except BadBundle:
            if snapshot is None:
                raise
            continue  # only what this run would have added is lost: the catalogue itself is already read
        if snapshot is None:
            snapshot = older
        elif older is not None:
            snapshot = _complete_from(snapshot, older)
        if snapshot is not None and not _lacking_paths(snapshot):
            break
    return snapshot


def working_tree_difference(snapshot: CatalogSnapshot, path: Path | None = None) -> str:
    """How the catalogue in the working tree differs from the snapshot, in words.

    "" where it is equal, belongs to another family, or does not exist.
    """
    path = path or catalog_catalog.default_catalog()
    if not path.is_file():
        return ""
    try:
        current = catalog_catalog.load_catalog(path)
    except BadCatalog as error:
        return f"the catalogue in the working tree cannot be read: {error}"
    if current.family != snapshot.catalog.family:
        return ""
    then, now = snapshot.catalog.by_id, current.by_id
    words = [
        f"{label} {', '.join(names)}"
        for label, names in (
            ("it adds", [name for name in now if name not in then]),
            ("it lacks", [name for name in then if name not in now]),
        )
        if names
    ]
    if not words and sha256(path.read_bytes()).hexdigest() != snapshot.sha256:
        words = ["entries differ"]
    changed = _changed_sources(snapshot, current)
    if changed:
        words.append(f"sources differ: {', '.join(changed)}")
    return f"{path} is not what was dissected: {'; '.join(words)}" if words else ""


def _changed_sources(snapshot: CatalogSnapshot, current: Catalog) -> list[str]:
    """The names of source files whose content differs in the working tree."""
    names = []
    for path, digest in snapshot.files.items():
        if not snapshot.is_source(path):
            continue
        local = current.folder / path.removeprefix(f"{snapshot.catalog.folder.name}/")
        if local.is_file() and sha256(local.read_bytes()).hexdigest() != digest:
            names.append(local.name)
    return names


def _lacking_paths(snapshot: CatalogSnapshot) -> set[str]:
    """The sources and line tables that a run of the whole catalogue would have and this one lacks."""
    versions = [version for version in snapshot.catalog.versions if version.buildable]
    expected = {_source_path(snapshot.catalog, version) for version in versions}
    expected |= {_line_table_path(version.id) for version in versions}
    return expected - set(snapshot.files) - {""}


def _complete_from(snapshot: CatalogSnapshot, older: CatalogSnapshot) -> CatalogSnapshot:
    """The snapshot with the files that it lacks and an older run has, if they are of the same sources."""
    missing = _lacking_paths(snapshot) & set(older.files)
    added = {path for path in missing if snapshot.is_source(path)}
    if added:  # a source is of no use without its headers, so they come with the first one
        added |= {path for path in older.files if snapshot.is_source(path)}
    files = {path: older.files[path] for path in added if path not in snapshot.files} | dict(snapshot.files)
    for version in snapshot.catalog.versions:
        table = _line_table_path(version.id)
        if table in older.files and table not in files and _same_code(version, files, snapshot, older):
            files[table] = older.files[table]
    runs = {path: older.kept_by.get(path, older.run_id) for path in files if path not in snapshot.files}
    return replace(snapshot, files=files, kept_by={**snapshot.kept_by, **runs})


def _same_code(
    version: Version, files: Mapping[str, str], snapshot: CatalogSnapshot, older: CatalogSnapshot
) -> bool:
    """Whether the older run has the version's source, every header and the flags as they are now."""
    before = older.catalog.by_id.get(version.id)
    path = _source_path(snapshot.catalog, version)
    if before is None or before.flags != version.flags or files.get(path) != older.files.get(path):
        return False
    headers = [path for path in {*files, *older.files} if path.endswith(_HEADER_SUFFIXES)]
    return all(files.get(header) == older.files.get(header) for header in headers)


def _source_path(catalog: Catalog, version: Version) -> str:
    """The path of a version's source in the bundle, if it has it; "" for a Python callable."""
    if version.source is None:
        return ""
    inside = version.source.is_relative_to(catalog.folder)
    name = version.source.relative_to(catalog.folder).as_posix() if inside else version.source.name
    return f"{catalog.folder.name}/{name}"


def _line_table_path(version: str) -> str:
    return f"lines/{version}.json"
