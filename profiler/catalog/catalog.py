"""A catalogue: the versions of a family in order, and how its catalog.toml is read."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from profiler.catalog.search_space import SearchSpace, parse_search_space
from profiler.catalog.version import (
    CAUGHT_BY,
    DEFAULT_ARCHES,
    VERSION_STATES,
    Budget,
    Claim,
    Version,
)
from profiler.errors import BadCatalog, UnknownName
from profiler.evidence.gpu_arch import ARCH_PATTERN
from profiler.evidence.plain_file import read_plain, special_kind
from profiler.package import shipped

DEFAULT_FLAGS = ("-std=c++17", "-O3")
# Where modules lie now that catalogues may name by an earlier place: a sealed bundle keeps its catalogue as
# it was, and users have their own. Catalogues name one object of each module, so the module alone decides.
MOVED_MODULES = {
    "profiler.problem": "profiler.catalog.attention",
    "profiler.catalog.problem": "profiler.catalog.attention",
    "profiler.baselines": "profiler.catalog.torch_backends",
}
PROJECT_KERNELS = shipped("kernels")

MAX_BYTES = 16 << 20  # of a catalogue

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


@dataclass(frozen=True)
class Catalog:
    """The versions of one family, in the catalogue's order, parents before children."""

    path: Path
    family: str
    problem: str  # module:object or file.py:object: inputs, reference, tolerance
    compile_flags: tuple[str, ...]
    versions: tuple[Version, ...]
    spaces: tuple[SearchSpace, ...] = ()  # what a search may change of versions

    @property
    def folder(self) -> Path:
        """Where sources and Python files that the catalogue names are looked for."""
        return self.path.parent

    @cached_property
    def by_id(self) -> dict[str, Version]:
        """Version by id."""
        return {version.id: version for version in self.versions}

    def space_of(self, version: str) -> SearchSpace | None:
        """What a search may change of a version; None where the catalogue does not say."""
        return next((space for space in self.spaces if version in space.versions), None)

    def pick(self, names: Sequence[str]) -> tuple[Version, ...]:
        """The named versions in the catalogue's order; all of them where none is named.

        Raises UnknownName for an id that is not there, with the nearest one.
        """
        for name in names:
            if name not in self.by_id:
                if os.path.isfile(name):
                    raise UnknownName(
                        f"{name} is a file, and no version of {self.path}: `profiler init` writes what "
                        f"`judge` and `check` ask for"
                    )
                near = difflib.get_close_matches(name, self.by_id, 1)
                hint = f"; did you mean {near[0]}?" if near else f": it has {', '.join(self.by_id)}"
                raise UnknownName(f"{self.path} has no version {name}{hint}")
        return tuple(version for version in self.versions if not names or version.id in names)

    def why_none_built(self, names: Sequence[str]) -> str:
        """Why none of the named versions, or of all, can be built: `v2h is planned: needs a GPU`."""
        reasons = [
            f"{version.id} is {version.why_not_built}"
            for version in self.pick(names)
            if version.why_not_built
        ]
        return "; ".join(reasons) if names else f"no version of {self.path} has a source"

    def correct_ancestor(self, version: Version) -> Version | None:
        """The nearest ancestor that is good: what a version's speed is compared with."""
        ancestor = version
        while ancestor.parent is not None:
            ancestor = self.by_id[ancestor.parent]
            if ancestor.state == "good":
                return ancestor
        return None


def load_catalog(path: Path | None = None) -> Catalog:
    """Read a catalogue, or the catalog.toml of a folder; without a path the project's own.

    Raises BadCatalog, naming the file and the version, for anything that cannot be used.
    """
    file_path = path or default_catalog()
    if os.path.isdir(file_path):  # False for a path that no file can have, where Path.is_dir raises
        file_path = file_path / "catalog.toml"
    try:
        content = read_plain(file_path, MAX_BYTES)
        if len(content) > MAX_BYTES:
            raise BadCatalog(
                f"{file_path}: over {MAX_BYTES >> 20} MiB, so no catalogue: name one with --catalog",
                option="--catalog",
            )
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        first = "" if path else f"{Path.cwd() / 'kernels' / 'catalog.toml'} or "
        message = f"no catalogue at {first}{file_path}: name one with --catalog PATH"
        raise BadCatalog(message, option="--catalog") from None
    except (ValueError, OSError) as error:  # no UTF-8, or a NUL in the path
        raise BadCatalog(f"{file_path}: {getattr(error, 'strerror', None) or error}") from None
    return parse_catalog(text, file_path.resolve())


def parse_catalog(text: str, path: Path, *, check_files: bool = True) -> Catalog:
    """The catalogue in the text of a file; check_files=False where its sources need not exist."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadCatalog(f"{path}: {error}") from None
    keys = {"family", "problem", "compile_flags", "claim_source", "claim_gpu", "version", "search"}
    _refuse_unknown_keys(document, keys, str(path))
    family = _name(document.get("family"), f"{path}: family")
    claim_defaults = {"source": document.get("claim_source", ""), "gpu": document.get("claim_gpu", "")}
    compile_flags = _flags(document, "compile_flags", DEFAULT_FLAGS, str(path))
    entries = document.get("version", [])
    if not isinstance(entries, list):
        raise BadCatalog(f"{path}: version must be a list of tables: write [[version]]")
    versions: dict[str, Version] = {}
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise BadCatalog(f"{path}: version {number} must be a table: write [[version]]")
        where = f"{path}: version {entry.get('id', number)}"
        version = _version(entry, where, family, path.parent, claim_defaults, compile_flags)
        if version.id in versions:
            raise BadCatalog(f"{path}: version {version.id} is there twice")
        if version.parent is not None and version.parent not in versions:
            raise BadCatalog(
                f"{path}: version {version.id} has parent {version.parent}, which no entry before it is"
            )
        if check_files and version.buildable and version.source and not version.source.is_file():
            kind = special_kind(version.source)
            said = f"{kind}, not a file" if kind else "not there"
            raise BadCatalog(f"{path}: version {version.id}: its file {version.source} is {said}")
        versions[version.id] = version
    if not versions:
        raise BadCatalog(f"{path} has no [[version]]")
    problem = _reference(document.get("problem"), f"{path}: problem")
    entries = document.get("search", [])
    if not isinstance(entries, list):
        raise BadCatalog(f"{path}: search must be a list of tables: write [[search]]")
    sources = {version.id: version.source for version in versions.values()}
    spaces = tuple(parse_search_space(entry, path, sources) for entry in entries)
    return Catalog(path, family, problem, compile_flags, tuple(versions.values()), spaces)


def default_catalog() -> Path:
    """kernels/catalog.toml in the working directory, else the project's own."""
    local = Path("kernels/catalog.toml")
    return local if local.is_file() else PROJECT_KERNELS / "catalog.toml"


# ---- one [[version]]. `where` begins every error: the file and the version, then the key.


def _version(
    entry: dict[str, Any],
    where: str,
    family: str,
    folder: Path,
    claim_defaults: dict[str, str],
    compile_flags: tuple[str, ...],
) -> Version:
    keys = {"file", *(field.name for field in fields(Version))} - {"family", "source", "include"}
    _refuse_unknown_keys(entry, keys, where)
    state = _one_of(entry.get("state", "good"), VERSION_STATES, f"{where}: state")
    if state != "planned" and ("file" in entry) == ("callable" in entry):
        raise BadCatalog(f"{where}: give either file or callable")
    caught_by = _texts(entry, "caught_by", (), where, CAUGHT_BY)
    if (state == "rejected") != bool(caught_by):
        raise BadCatalog(f"{where}: a rejected version, and no other, says what must catch it (caught_by)")
    if state in ("rejected", "planned") and not entry.get("reason"):
        raise BadCatalog(f"{where}: a {state} version needs a reason")
    arches = _texts(entry, "arches", DEFAULT_ARCHES, where)
    for arch in arches:
        check_arch(arch, where)
    head_dims = entry.get("head_dims", [64, 128])
    if not isinstance(head_dims, list) or not head_dims or any(type(size) is not int for size in head_dims):
        raise BadCatalog(f"{where}: head_dims must be a list of whole numbers")
    flags = _flags(entry, "flags", (), where)
    check = entry.get("check", [])
    if not isinstance(check, list) or any(not isinstance(sizes, dict) or not sizes for sizes in check):
        raise BadCatalog(f"{where}: check must be a list of tables of sizes: {{ batch = 4, len_q = 512 }}")
    claims, roles = entry.get("claims", []), entry.get("roles", {})
    if not isinstance(claims, list):
        raise BadCatalog(f"{where}: claims must be a list of tables")
    if not isinstance(roles, dict):
        raise BadCatalog(f"{where}: roles must be a table of kernel function = role")
    include_flags = [flag for flag in (*flags, *compile_flags) if flag.startswith("-I")]
    warpgroup_registers = entry.get("warpgroup_registers", [])
    if not isinstance(warpgroup_registers, list) or any(type(n) is not int for n in warpgroup_registers):
        raise BadCatalog(f"{where}: warpgroup_registers must be a list of whole numbers, one a warpgroup")
    return Version(
        id=_name(entry.get("id"), f"{where}: id"),
        family=family,
        parent=_name(entry["parent"], f"{where}: parent") if "parent" in entry else None,
        technique=_text(entry.get("technique"), f"{where}: technique"),
        state=state,
        source=folder / _text(entry["file"], f"{where}: file") if "file" in entry else None,
        callable=_reference(entry["callable"], f"{where}: callable") if "callable" in entry else None,
        flags=flags,
        include=tuple((folder / flag.removeprefix("-I")).resolve() for flag in include_flags),
        dtypes=_texts(entry, "dtypes", ("fp16",), where),
        head_dims=tuple(head_dims),
        arches=arches,
        reason=_text(entry["reason"], f"{where}: reason") if "reason" in entry else "",
        caught_by=caught_by,
        budget=_budget(entry.get("budget", {}), f"{where}: budget"),
        claims=tuple(_claim(claim, claim_defaults, f"{where}: claims") for claim in claims),
        stages=_texts(entry, "stages", (), where),
        roles={name: _text(role, f"{where}: roles") for name, role in roles.items()},
        warpgroup_registers=tuple(warpgroup_registers),
        check=tuple(check),
    )


def _budget(entry: dict[str, Any], where: str) -> Budget:
    _refuse_unknown_keys(entry, {field.name for field in fields(Budget)}, where)
    registers = entry.get("registers")
    by_head_dim = registers if isinstance(registers, dict) else {}
    if any(not head_dim.isdecimal() for head_dim in by_head_dim):
        raise BadCatalog(f"{where}: registers by head dim are written {{ 64 = 128, 128 = 168 }}")
    limits = [
        *by_head_dim.items(),
        *((name, limit) for name, limit in entry.items() if limit is not by_head_dim),
    ]
    for name, limit in limits:
        if type(limit) is not int or limit < 0:  # a bool is an int to isinstance
            raise BadCatalog(f"{where}: {name} must be a whole number from 0")
    if by_head_dim:
        entry = {**entry, "registers": {int(head_dim): limit for head_dim, limit in by_head_dim.items()}}
    return Budget(**entry)


def _claim(entry: dict[str, Any], claim_defaults: dict[str, str], where: str) -> Claim:
    _refuse_unknown_keys(entry, {field.name for field in fields(Claim)}, where)
    entry = {**claim_defaults, "unit": "", **entry}
    for name in ("value", "high"):
        if name in entry and type(entry[name]) not in (int, float):
            raise BadCatalog(f"{where}: {name} must be a number")
    for name in ("fact", "source", "gpu"):
        _text(entry.get(name), f"{where}: {name}")
    if "value" not in entry:
        raise BadCatalog(f"{where}: a claim needs a value")
    _one_of(entry.get("kind", "measured"), ("measured", "goal"), f"{where}: kind")
    return Claim(**entry)


# ---- one value


def check_arch(arch: str, where: str = "--arch") -> str:
    """The architecture if it is spelled like one (sm_89, sm_90a). Raises BadCatalog."""
    if not ARCH_PATTERN.fullmatch(arch):
        raise BadCatalog(f"{where}: {arch!r} is no architecture: write sm_80, sm_89 or sm_90a")
    return arch


def _refuse_unknown_keys(entry: Mapping[str, Any], keys: set[str], where: str) -> None:
    if not isinstance(entry, dict):
        raise BadCatalog(f"{where} must be a table")
    for key in entry:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            raise BadCatalog(f"{where}: unknown key {key}" + (f"; did you mean {near[0]}?" if near else ""))


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadCatalog(f"{where} must be a text")
    return value


def _reference(value: Any, where: str) -> str:
    """module:name or file.py:name, the module by where it lies now."""
    module, colon, name = _text(value, where).partition(":")
    return f"{MOVED_MODULES.get(module, module)}{colon}{name}"


def _name(value: Any, where: str) -> str:
    """A text that is also fit for a folder's name and for the command line."""
    if not _NAME.fullmatch(_text(value, where)):
        raise BadCatalog(f"{where} {value!r}: write letters, digits and _ . + - only")
    return str(value)


def _texts(
    entry: Mapping[str, Any], key: str, default: tuple[str, ...], where: str, allowed: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """A list of texts; where only some are allowed, of those alone."""
    texts = entry.get(key, list(default))
    if not isinstance(texts, list) or any(not isinstance(text, str) or not text for text in texts):
        raise BadCatalog(f"{where}: {key} must be a list of texts")
    return tuple(_one_of(text, allowed, f"{where}: {key}") if allowed else text for text in texts)


def _flags(entry: Mapping[str, Any], key: str, default: tuple[str, ...], where: str) -> tuple[str, ...]:
    """A compiler's flags; -I, -D and -U must be in one word with their value."""
    flags = _texts(entry, key, default, where)
    for flag in flags:
        if flag in ("-I", "-D", "-U"):
            raise BadCatalog(f"{where}: {key}: write {flag}... as one word, such as -DNAME=1 or -Ifolder")
    return flags


def _one_of(value: Any, allowed: tuple[str, ...], where: str) -> str:
    if value not in allowed:
        raise BadCatalog(f"{where} {value!r} is none of {', '.join(allowed)}")
    return str(value)
