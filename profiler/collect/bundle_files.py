"""The files that a run keeps beside its reports: sources, machine code, shared-memory traffic by line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

from profiler.build import BuiltLibrary
from profiler.bundles import Attachment
from profiler.catalog import Catalog, Version, source_files
from profiler.emulator import VersionCheck
from profiler.errors import ProfilerError
from profiler.sass import bundle_file

SOURCES = "kernels"  # folder of the bundle: the catalogue and all sources, a lineage of their own
LINES = "lines"  # folder of the bundle: shared-memory traffic by source line, a file a version


def sources(catalog: Catalog, versions: Sequence[Version]) -> dict[str, bytes]:
    """The catalogue and every file that a version is made from, by its place in the bundle."""
    found = {f"{SOURCES}/{catalog.path.name}": catalog.path.read_bytes()}
    for version in versions:
        for path in source_files(version):
            inside = path.is_relative_to(catalog.folder)
            name = path.relative_to(catalog.folder).as_posix() if inside else path.name
            found[f"{SOURCES}/{name}"] = path.read_bytes()
    return found


def line_tables(checked: Iterable[VersionCheck]) -> dict[str, bytes]:
    """Shared-memory traffic by source line of each version, of the first schedule of each workload."""
    found = {}
    for one in checked:
        tables: dict[str, list[list[Any]]] = {}
        for cell in one.runs:
            tables.setdefault(
                cell.workload.label,
                [
                    [row.source.file, row.source.line, row.kind, row.requests, row.wavefronts, row.ideal]
                    for row in cell.traffic
                ],
            )
        columns = ["file", "line", "kind", "requests", "wavefronts", "ideal"]
        document = {"version": one.version, "evidence": "modelled", "columns": columns, "workloads": tables}
        if tables:
            found[f"{LINES}/{one.version}.json"] = json.dumps(document, separators=(",", ":")).encode()
    return found


def machine_code(
    built: Iterable[BuiltLibrary], folder: Path, jobs: int | None = None
) -> tuple[dict[str, bytes], list[str]]:
    """The disassembly of built versions, by its place in the bundle, and why some of it is not kept."""
    kept: dict[str, bytes] = {}
    lost: dict[str, None] = {}

    def one(made: BuiltLibrary) -> bytes | ProfilerError:
        try:
            return bundle_file.pack_build(made, folder)
        except ProfilerError as error:
            return error

    several = list(built)
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for made, content in zip(several, pool.map(one, several), strict=True):
            if isinstance(content, bytes):
                kept[bundle_file.code_path(made.version)] = content
            else:
                lost[f"machine code is not kept: {str(content).splitlines()[0]}"] = None
    return kept, list(lost)


def attachment(path: str, content: bytes) -> Attachment:
    """A file of the bundle by its folder there."""
    kind = {SOURCES: "source", LINES: "lines", bundle_file.SASS: bundle_file.SASS}[path.split("/")[0]]
    name = path.split("/", 1)[1]
    kind = "catalog" if name.endswith(".toml") else kind
    return Attachment(kind, name, sha256(content).hexdigest(), len(content), path)
