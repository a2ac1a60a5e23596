"""What a search may change of versions: the macros of their source with values, and how they are launched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profiler.errors import BadCatalog

_KEYS = {"versions", "macros", "kernel", "grid", "block", "shared_bytes", "arguments"}
_MACRO_KEYS = {"values", "techniques"}
_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_DEFAULT = r"^\s*#\s*ifndef\s+{name}\s*\n\s*#\s*define\s+{name}\s+(\w+)"


@dataclass(frozen=True)
class Macro:
    """A macro of a source, the values that a search may give it, and what techniques it is."""

    name: str
    values: tuple[int, ...]
    techniques: tuple[str, ...] = ()  # of profiler.advice.techniques


@dataclass(frozen=True)
class SearchSpace:
    """A [[search]] entry: versions of one source, their macros, and the launch as expressions of both.

    Expressions have macros by name beside what a candidate's manifest allows (docs/judge.md).
    """

    versions: tuple[str, ...]
    macros: Mapping[str, Macro]
    kernel: str
    grid: tuple[str | int, ...]
    block: str | int
    shared_bytes: str | int
    arguments: tuple[str, ...]
    defaults: Mapping[str, str] = field(default_factory=dict)  # of the macros, as the source has them

    def values_of(self, flags: tuple[str, ...]) -> dict[str, str]:
        """The macros' values under these compiler flags."""
        given = dict(flag[2:].split("=", 1) for flag in flags if flag.startswith("-D") and "=" in flag)
        return {name: given.get(name, self.defaults.get(name, "")) for name in self.macros}


def parse_search_space(entry: Any, path: Path, sources: Mapping[str, Path | None]) -> SearchSpace:
    """A [[search]] table. sources: of all versions, by id. Raises BadCatalog."""
    if not isinstance(entry, dict):
        raise BadCatalog(f"{path}: write [[search]]")
    versions = entry.get("versions")
    if not isinstance(versions, list) or not versions or not all(isinstance(v, str) for v in versions):
        raise BadCatalog(f"{path}: [[search]] needs versions, a list of ids")
    where = f"{path}: [[search]] of {', '.join(versions)}"
    if unknown := sorted(entry.keys() - _KEYS):
        raise BadCatalog(f"{where}: unknown key {unknown[0]}; there are {', '.join(sorted(_KEYS))}")
    for version in versions:
        if sources.get(version) is None:
            raise BadCatalog(f"{where}: {version} is no version with a source")
    if len({sources[version] for version in versions}) != 1:
        raise BadCatalog(f"{where}: the versions of an entry share one source")
    for key in ("kernel", "grid", "block", "arguments"):
        if key not in entry:
            raise BadCatalog(f"{where}: {key} is missing")
    grid = entry["grid"] if isinstance(entry["grid"], list) else [entry["grid"]]
    numbers = [*grid, entry["block"], entry.get("shared_bytes", 0)]
    if not all(isinstance(value, (int, str)) for value in numbers) or not 1 <= len(grid) <= 3:
        raise BadCatalog(f"{where}: grid, block and shared_bytes are whole numbers, or expressions as texts")
    arguments = entry["arguments"]
    if not isinstance(arguments, list) or not all(isinstance(value, str) for value in arguments):
        raise BadCatalog(f"{where}: arguments must be a list of texts")
    macros = _macros(entry.get("macros", {}), where)
    source = sources[versions[0]]
    assert source is not None
    text = source.read_text("utf-8", errors="replace") if source.is_file() else ""
    defaults = {}
    for name in macros:
        match = re.search(_DEFAULT.format(name=name), text, re.M)
        if text and match is None:
            raise BadCatalog(f"{where}: {source.name} does not say `#ifndef {name}` and `#define {name} N`")
        defaults[name] = match[1] if match else ""
    return SearchSpace(
        tuple(versions),
        macros,
        str(entry["kernel"]),
        tuple(grid),
        entry["block"],
        entry.get("shared_bytes", 0),
        tuple(arguments),
        defaults,
    )


def _macros(table: Any, where: str) -> dict[str, Macro]:
    if not isinstance(table, dict):
        raise BadCatalog(f"{where}: macros is a table: {{ STAGES = {{ values = [2, 3] }} }}")
    macros = {}
    for name, row in table.items():
        values = row.get("values") if isinstance(row, dict) else None
        if not _NAME.fullmatch(name) or not isinstance(values, list) or row.keys() - _MACRO_KEYS:
            raise BadCatalog(f"{where}: {name} = {{ values = [2, 3], techniques = […] }}, a name of capitals")
        if len(set(values)) < 2 or not all(type(value) is int for value in values):
            raise BadCatalog(f"{where}: {name} needs at least two whole numbers")
        macros[name] = Macro(name, tuple(values), tuple(map(str, row.get("techniques", ()))))
    return macros
