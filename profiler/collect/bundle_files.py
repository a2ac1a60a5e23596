"""The files that a run keeps beside its reports: sources, machine code, shared-memory traffic by line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

from profiler.build.library import BuiltLibrary
from profiler.bundles.run import Attachment
from profiler.catalog.catalog import Catalog
from profiler.catalog.sources import source_files
from profiler.catalog.version import Version
from profiler.emulator.cpu_check import VersionCheck
from profiler.errors import ProfilerError
from profiler.sass import bundle_file

SOURCES = "kernels"  # folder of the bundle: the catalogue and all sources, a lineage of their own
LINES = "lines"  # folder of the bundle: shared-memory traffic by source line, a file a version
PREDICTIONS = "predictions"  # folder of the bundle: modelled times
_KINDS = {
    SOURCES: "source",
    LINES: "lines",
    PREDICTIONS: PREDICTIONS,
    bundle_file.SASS: bundle_file.SASS,
}  # of attachments, by folder


def sources(catalog: Catalog, versions: Sequence[Version]) -> dict[str, bytes]:
    """The catalogue and every file that a version is made from, by its path in the bundle."""
    contents = {f"{SOURCES}/{catalog.path.name}": catalog.path.read_bytes()}
    for version in versions:
        for path in source_files(version):
            inside = path.is_relative_to(catalog.folder)
            name = path.relative_to(catalog.folder).as_posix() if inside else path.name
            contents[f"{SOURCES}/{name}"] = path.read_bytes()
    return contents


def line_tables(checks: Iterable[VersionCheck]) -> dict[str, bytes]:
    """Shared-memory traffic by source line of each version, of the first schedule of each workload."""
    contents = {}
    for check in checks:
        tables: dict[str, list[list[Any]]] = {}
        for run in check.runs:
            rows = [
                [row.source.file, row.source.line, row.kind, row.requests, row.wavefronts, row.ideal]
                for row in run.traffic
            ]
            tables.setdefault(run.workload.label, rows)
        columns = ["file", "line", "kind", "requests", "wavefronts", "ideal"]
        document = {
            "version": check.version,
            "evidence": "modelled",
            "columns": columns,
            "workloads": tables,
        }
        if tables:
            text = json.dumps(document, separators=(",", ":"))
            contents[f"{LINES}/{check.version}.json"] = text.encode()
    return contents


def machine_code(
    libraries: Iterable[BuiltLibrary], folder: Path, jobs: int | None = None
) -> tuple[dict[str, bytes], list[str]]:
    """The disassembly of built versions, by its path in the bundle, and why some of it is not kept."""
    contents: dict[str, bytes] = {}
    problems: dict[str, None] = {}  # as a set in order: each is reported once, not once a version

    def pack(library: BuiltLibrary) -> bytes | ProfilerError:
        try:
            return bundle_file.pack_build(library, folder)
        except ProfilerError as error:
            return error

    several = list(libraries)
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for library, content in zip(several, pool.map(pack, several), strict=True):
            if isinstance(content, bytes):
                contents[bundle_file.code_path(library.version)] = content
            else:
                problems[f"machine code is not kept: {str(content).splitlines()[0]}"] = None
    return contents, list(problems)


def attachment(path: str, content: bytes) -> Attachment:
    """A file of the bundle, its kind by its folder there."""
    folder, name = path.split("/", 1)
    kind = "catalog" if name.endswith(".toml") else _KINDS[folder]
    return Attachment(kind, name, sha256(content).hexdigest(), len(content), path)
