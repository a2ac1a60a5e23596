"""Candidates made from versions: a source with other values of its macros, and its manifest."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from profiler.catalog.catalog import Catalog
from profiler.catalog.search_space import SearchSpace
from profiler.catalog.version import Version
from profiler.errors import UnknownName
from profiler.judge.manifest import FILE

_WORD = re.compile(r"[A-Za-z_]\w*")


def space_of(catalog: Catalog, version: str) -> SearchSpace:
    """What may be changed of a version. Raises UnknownName where the catalogue has no [[search]] of it."""
    space = catalog.space_of(version)
    if space is None:
        known = [name for space in catalog.spaces for name in space.versions]
        has = f"it has one of {', '.join(known)}" if known else "it has none"
        raise UnknownName(f"{catalog.path} has no [[search]] of {version}: {has}")
    return space


def write_version(catalog: Catalog, version: Version, space: SearchSpace, folder: Path) -> dict[str, str]:
    """A version as a candidate in a folder; its macros' values."""
    assert version.source is not None
    macros = space.values_of(version.flags)
    (folder / version.source.name).write_bytes(version.source.read_bytes())
    write_manifest(folder, catalog.family, version, space, macros)
    return macros


def write_manifest(
    folder: Path,
    family: str,
    version: Version,
    space: SearchSpace,
    macros: Mapping[str, str],
    levers: Sequence[str] = (),
) -> None:
    """The manifest of a version's source with these values of its macros."""
    assert version.source is not None
    apart = [flag for flag in version.flags if flag.startswith("-D") and _name(flag) not in macros]
    # In the order of the catalogue: equal values give an equal manifest, and so an equal candidate.
    flags = [*apart, *(f"-D{name}={macros[name]}" for name in space.macros)]

    def expression(text: str | int) -> str | int:
        return (
            _WORD.sub(lambda match: macros.get(match[0], match[0]), text) if isinstance(text, str) else text
        )

    budget = {"spill_bytes": version.budget.spill_bytes, "shared_bytes": version.budget.shared_bytes}
    limits = ", ".join(f"{name} = {limit}" for name, limit in budget.items() if limit is not None)
    lines = [
        f"family = {_toml(family)}",
        f"sources = {_toml([version.source.name])}",
        f"flags = {_toml(flags)}",
        f"takes = {{ head_dim = {_toml(list(version.head_dims))} }}",
        f"dtype = {_toml(version.dtype)}",
        f"budget = {{ {limits} }}",
        f"levers = {_toml(list(levers))}",
        "",
        "[[launch]]",
        f"kernel = {_toml(space.kernel)}",
        f"grid = {_toml([expression(size) for size in space.grid])}",
        f"block = {_toml(expression(space.block))}",
        f"shared_bytes = {_toml(expression(space.shared_bytes))}",
        f"arguments = {_toml(list(space.arguments))}",
    ]
    (folder / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def macro_words(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """What changed between two sets of values: `SWIZZLE 0 → 1`."""
    return tuple(f"{n} {before.get(n, '?')} → {v}" for n, v in after.items() if before.get(n) != v)


def _name(flag: str) -> str:
    return flag[2:].partition("=")[0]


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)  # texts, numbers and lists are written alike
