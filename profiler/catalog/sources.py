"""What a version is made from: files, their hash, a Python object; and whether they fit the catalogue."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from profiler.catalog.cases import check_workloads
from profiler.catalog.catalog import MAX_BYTES, PROJECT_KERNELS, Catalog, parse_catalog
from profiler.catalog.version import Version
from profiler.errors import BadCatalog, ProfilerError
from profiler.evidence.plain_file import read_plain, special_kind

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)
_DEFINE_BUG = re.compile(r"^\s*#\s*define\s+(BUG_\w+)\s+(\d+)", re.MULTILINE)
_MACRO = re.compile(r"-D(\w+)(?:=(\w+))?")
NO_BUG = "BUG_NONE"  # what sources compare BUG with in a build without a planted bug
# What load_problem asks for at once. The rest of Problem is asked for where it is used.
_PROBLEM_ATTRIBUTES = ("name", "symbol", "stages", "workload", "check_workloads", "case")


def include_folders(version: Version) -> tuple[Path, ...]:
    """Where headers are looked for: the version's -I folders, its source's folder, the project's kernels/."""
    source_folder = version.source.parent.resolve() if version.source else PROJECT_KERNELS
    return tuple(dict.fromkeys((*version.include, source_folder, PROJECT_KERNELS)))


def without_include_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """The flags without -I: include_folders has their folders, resolved."""
    return tuple(flag for flag in flags if not flag.startswith("-I"))


def source_files(version: Version) -> tuple[Path, ...]:
    """The source and every header it includes, source first; none for a callable."""
    return included_files(version.source, include_folders(version)) if version.source else ()


def included_files(source: Path, folders: Sequence[Path]) -> tuple[Path, ...]:
    """A source and every header it includes, at any depth.

    A header that none of the folders has is the system's and left out.
    """
    included: dict[Path, None] = {}
    pending = [source.resolve()]
    while pending:
        path = pending.pop()
        if path in included:
            continue
        included[path] = None
        for mark, name in _INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
            own_folder = (path.parent,) if mark == '"' else ()
            candidates = (folder / name for folder in (*own_folder, *folders))
            pending += [header.resolve() for header in candidates if header.is_file()][:1]
    return tuple(included)


def source_sha256(catalog: Catalog, version: Version, extra_flags: Sequence[str] = ()) -> str:
    """The hash of what a version is made from: its source, the headers it includes, and its flags.

    Of a callable: the file that holds it, where that is found without importing it, and its name.
    """
    digest = hashlib.sha256()
    for path in sorted(source_files(version) or _python_files(catalog, version)):
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    flags = (*catalog.compile_flags, *version.flags, *extra_flags) if version.source else (version.callable,)
    digest.update("\0".join(map(str, flags)).encode())
    return digest.hexdigest()


def load_object(catalog: Catalog, reference: str) -> Any:
    """The object that module:name or file.py:name (beside the catalogue) refers to. Raises BadCatalog."""
    place, _, name = reference.partition(":")
    try:
        if place.endswith(".py"):
            return getattr(_load_file(catalog.folder / place), name)
        return getattr(importlib.import_module(place), name)
    except ProfilerError:
        raise
    # The file is somebody's and may do anything; its exit code would pass for a verdict.
    except (Exception, SystemExit) as error:
        raise BadCatalog(
            f"{catalog.path}: {reference} cannot be loaded ({type(error).__name__}: {error}): "
            "write module:name, or file.py:name for a file next to the catalogue"
        ) from error


def load_problem(catalog: Catalog) -> Any:
    """The Problem that the catalogue names. Raises BadCatalog where it is none or does not fit a version."""
    problem = load_object(catalog, catalog.problem)
    if lacking := [name for name in _PROBLEM_ATTRIBUTES if not hasattr(problem, name)]:
        raise BadCatalog(
            f"{catalog.path}: {catalog.problem} is no problem: it has no {' or '.join(lacking)}; see class "
            "Problem in profiler/catalog/problem.py"
        )
    for version in catalog.versions:
        for stage in version.stages:
            if stage not in problem.stages:
                stages = ", ".join(problem.stages) or "none"
                raise BadCatalog(
                    f"{catalog.path}: version {version.id}: {catalog.problem} has no stage {stage}: "
                    f"it has {stages}"
                )
        for dtype in version.dtypes:
            try:
                check_workloads(problem, dtype, version.head_dims)
            except BadCatalog as failed:
                if not isinstance(failed.__cause__, ValueError):
                    raise BadCatalog(f"{catalog.path}: version {version.id}: {failed}") from failed
                raise BadCatalog(
                    f"{catalog.path}: version {version.id}: {catalog.problem} refuses {dtype} with head_dims "
                    f"{list(version.head_dims)}: {failed.__cause__}"
                ) from failed
    return problem


def inconsistencies(catalog: Catalog) -> list[str]:
    """Where the catalogue and the sources beside it do not fit together, in words; empty where they do.

    A file or a bug may be another catalogue's that lies beside it.
    """
    found = (path for pattern in ("*.cu", "*.cuh", "*.h") for path in catalog.folder.glob(pattern))
    paths = sorted(path for path in found if path.is_file())
    texts = {path.resolve(): path.read_text(encoding="utf-8") for path in paths}
    versions = [*catalog.versions, *_versions_beside(catalog)]
    return [
        *_unused_files(catalog, versions, texts),
        *_bugs_without_entry(versions, texts),
        *_bad_flags(catalog),
    ]


def _versions_beside(catalog: Catalog) -> Iterator[Version]:
    """The versions of the other catalogues in the folder; one that cannot be read has none."""
    for path in sorted(catalog.folder.glob("*.toml")):
        if path.resolve() != catalog.path.resolve():
            with contextlib.suppress(BadCatalog, OSError, ValueError):
                text = read_plain(path, MAX_BYTES)[:MAX_BYTES].decode()
                yield from parse_catalog(text, path, check_files=False).versions


def _unused_files(catalog: Catalog, versions: Sequence[Version], texts: dict[Path, str]) -> Iterator[str]:
    used = {version.source.resolve() for version in versions if version.source}
    for path in texts:
        if path.suffix == ".cu" and path not in used:
            yield f"{path.name} is no version's file: add an entry to {catalog.path.name}, or remove it"


def _bugs_without_entry(versions: Sequence[Version], texts: dict[Path, str]) -> Iterator[str]:
    planted = {bug for version in versions if (bug := planted_bug(version))}
    for path, text in texts.items():
        for name, _ in _DEFINE_BUG.findall(text):
            if name not in planted and name != NO_BUG:
                yield (f"{path.name} defines {name}, and no version has the flag -DBUG={name}: add its entry")


def _bad_flags(catalog: Catalog) -> Iterator[str]:
    """Macros that no source asks for: misspelt, they build the version without its idea, or its bug."""
    for version in catalog.versions:
        if not version.buildable or version.source is None:
            continue
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in source_files(version)]
        words = set(re.findall(r"\w+", "\n".join(texts)))
        for name in [match[1] for flag in version.flags if (match := _MACRO.match(flag))]:
            if name not in words:
                yield f"{version.id}: its flag -D{name} is a macro that {version.source.name} never asks for"
        bug = planted_bug(version)
        if (version.state == "rejected") != (bug is not None):
            yield f"{version.id} is {version.state}: a rejected version, and no other, is a -DBUG build"
        bug_numbers = [pair for text in texts for pair in _DEFINE_BUG.findall(text)]
        if bug and (bug not in dict(bug_numbers) or not re.search(rf"\b{bug}\b", _code(texts[0]))):
            yield f"{version.id}: its bug {bug} is not in {version.source.name}"
        numbers = [number for _, number in bug_numbers]
        for name, number in bug_numbers:
            if numbers.count(number) > 1 and name == bug:
                yield f"{version.id}: {name} has the number {number} of another bug"


def planted_bug(version: Version) -> str | None:
    """The bug that the version is built with, the name after -DBUG=; None where there is none."""
    matches = (_MACRO.fullmatch(flag) for flag in version.flags)
    return next((match[2] for match in matches if match and match[1] == "BUG"), None)


def _code(text: str) -> str:
    """A source without its comments and without the lines that define the bugs."""
    return _DEFINE_BUG.sub("", re.sub(r"//.*", "", text))


def _python_files(catalog: Catalog, version: Version) -> list[Path]:
    """The file that holds a version's callable; none where no file is found."""
    place = (version.callable or "").partition(":")[0]
    if place.endswith(".py"):
        path = catalog.folder / place
        if (kind := special_kind(path)) is not None:
            raise BadCatalog(f"{catalog.path}: version {version.id}: {path} is {kind}, not a file")
        return [path]
    spec, folders = None, None
    # Name by name: find_spec of a module in a package imports the package, which may be anybody's.
    for name in place.split(".") if place else ():
        try:
            spec = importlib.machinery.PathFinder.find_spec(name, folders)
        except (ImportError, ValueError):
            return []
        if spec is None:
            return []
        folders = list(spec.submodule_search_locations or ())
    return [Path(spec.origin)] if spec and spec.origin and Path(spec.origin).is_file() else []


def _load_file(path: Path) -> Any:
    """A Python file as a module, loaded once, under a name that no other file's module has."""
    name = f"profiler_catalog_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        if (kind := special_kind(path)) is not None:
            raise ImportError(f"{path} is {kind}, not a file")
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # before it runs: a dataclass looks its own module up there
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
