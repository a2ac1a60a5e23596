"""What is judged: a folder with device code and a manifest, or a version of the catalogue."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from profiler.catalog.catalog import Catalog
from profiler.catalog.problem import Workload
from profiler.catalog.sources import source_sha256
from profiler.catalog.version import Version
from profiler.errors import BadCatalog, UnknownName
from profiler.judge.manifest import FILE, Manifest, read_manifest

SUFFIXES = (".cu", ".cuh", ".h", ".ptx", ".cubin")
COMPILED = (".cu", ".ptx", ".cubin")  # what may be a source of its own
_MOST_FILES, _MOST_BYTES = 64, 4 << 20


@dataclass(frozen=True)
class Candidate:
    """Device code and how it is launched; of a version the catalogue says it."""

    name: str
    id: str  # sha256 over the canonical manifest and the files
    family: str
    manifest: Manifest | None = None  # None: a version
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # by path in the folder
    version: Version | None = None

    @property
    def compile_sizes(self) -> tuple[str, tuple[int, ...]]:
        """The dtype, and the values of the compile-time size that it takes."""
        if self.version is not None:
            return self.version.dtype, self.version.head_dims
        assert self.manifest is not None
        return self.manifest.dtype, tuple(self.manifest.takes.get("head_dim", (64, 128)))

    def accepts(self, workload: Workload) -> bool:
        """Whether it takes a workload."""
        if self.manifest is not None:
            return self.manifest.accepts(workload.sizes())
        assert self.version is not None
        return workload.sizes().get("head_dim", 0) in (0, *self.version.head_dims)

    @property
    def source(self) -> str:
        """The file that is compiled. Raises BadCatalog where several could be."""
        assert self.manifest is not None
        sources = self.manifest.sources or tuple(sorted(n for n in self.files if n.endswith(COMPILED)))
        if len(sources) != 1:
            raise BadCatalog(
                f"{self.name}: name the one file to compile in `sources`: there are "
                f"{', '.join(sources) or 'none'}"
            )
        if sources[0] not in self.files or not sources[0].endswith(COMPILED):
            raise BadCatalog(f"{self.name}: no file {sources[0]!r} to compile")
        return sources[0]


def load_candidate(name: str | Path, catalog: Catalog) -> Candidate:
    """A candidate by the path of its folder or manifest, or the name of a version.

    Raises UnknownName where there is neither, BadCatalog for what cannot be used.
    """
    path = Path(name)
    if path.name == FILE and path.is_file():
        path = path.parent
    if path.is_dir():
        return _load_folder(path)
    version = catalog.by_id.get(str(name).removeprefix(f"{catalog.family}/"))
    if version is None:
        raise UnknownName(
            f"{name} is neither a folder with a {FILE}, which `profiler init` writes, nor a version: "
            f"`profiler list versions` lists these"
        )
    if not version.buildable:
        raise UnknownName(f"{version.id} has no device code: it is {version.why_not_built}")
    return Candidate(version.id, source_sha256(catalog, version), version.family, version=version)


def content_id(manifest: Manifest, files: Mapping[str, bytes]) -> str:
    """The sha256 of a manifest in canonical form and of files; the order and comments of either do not count.

    What the author says of the levers is left out: the same code is the same candidate.
    """
    table = {key: value for key, value in asdict(manifest).items() if key != "levers"}
    digest = hashlib.sha256(json.dumps(table, sort_keys=True, default=str).encode())
    for name in sorted(files):
        digest.update(f"\0{name}\0{len(files[name])}\0".encode() + files[name])
    return digest.hexdigest()


def _load_folder(folder: Path) -> Candidate:
    manifest = read_manifest(folder / FILE)
    files: dict[str, bytes] = {}
    total = 0
    for directory, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(directory) / name
            if path.suffix not in SUFFIXES:
                continue
            relative = path.relative_to(folder).as_posix()
            if not stat.S_ISREG(path.lstat().st_mode):
                raise BadCatalog(f"{path} is no plain file: a candidate has no links")
            if not relative.isascii() or any(character in relative for character in "\"\\\n*?'`$;&|<> "):
                raise BadCatalog(f"{relative!r}: a file's name is letters, digits, '_', '-' and '.'")
            total += path.lstat().st_size
            if total > _MOST_BYTES or len(files) >= _MOST_FILES:
                raise BadCatalog(f"{folder}: at most {_MOST_FILES} files of {_MOST_BYTES >> 20} MiB together")
            files[relative] = path.read_bytes()
    candidate = Candidate(
        folder.resolve().name, content_id(manifest, files), manifest.family, manifest, files
    )
    _ = candidate.source
    return candidate
