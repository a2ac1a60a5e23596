"""What a candidate says of itself in candidate.toml: launches, their arguments, scratch buffers."""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profiler.errors import BadCatalog
from profiler.judge.expressions import evaluate

FILE = "candidate.toml"
_MOST_BYTES = 64 << 10
_MOST_LAUNCHES, _MOST_SCRATCH, _MOST_ARGUMENTS = 8, 8, 64
_KEYS = {"family", "kernel", "arguments", "grid", "block", "shared_bytes", "cluster", "launch", "scratch"}
_KEYS |= {"flags", "takes", "dtype", "budget", "sources", "levers"}
_LAUNCH_KEYS = {"kernel", "grid", "block", "shared_bytes", "cluster", "arguments", "when"}
# A name, with namespaces and template arguments; in braces an expression: attend<{head_dim}, 2>.
_KERNEL = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*(<[\w\s,:{}()+*/%-]*>)?")
_BRACES = re.compile(r"\{([^{}]*)\}")
_FLAG = re.compile(r"-D[A-Za-z_]\w*(=\w+)?")
# Macros that the compilers or the check define: with them a source could be another one for each compiler.
_RESERVED_FLAG = re.compile(r"-D(_|CPUCUDA|NDEBUG|CUDA)")
_NAME = re.compile(r"[a-z_]\w*")
_BUDGET = ("registers", "shared_bytes", "spill_bytes", "stack_bytes")
Triple = tuple[int, int, int]


@dataclass(frozen=True)
class DeclaredLaunch:
    """One launch of a candidate. Texts are expressions of the problem's sizes."""

    kernel: str
    grid: tuple[str | int, ...]
    block: tuple[str | int, ...]
    arguments: tuple[str | int, ...]
    shared_bytes: str | int = 0  # dynamic, a block
    cluster: tuple[int, ...] = (1, 1, 1)
    when: Mapping[str, Any] = field(default_factory=dict)  # sizes for which it is made


@dataclass(frozen=True)
class PlannedLaunch:
    """A launch with its sizes worked out for one workload."""

    kernel: str  # with its template arguments
    grid: Triple
    block: Triple
    shared_bytes: int
    cluster: Triple
    arguments: tuple[str | int | float, ...]  # the name of a buffer, or a number


@dataclass(frozen=True)
class Manifest:
    """A candidate.toml that was read."""

    family: str
    launches: tuple[DeclaredLaunch, ...]
    scratch: Mapping[str, str | int] = field(default_factory=dict)  # bytes, by name
    flags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # files that are compiled; none: the only one there is
    takes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # values of a size; others are refused
    dtype: str = "fp16"
    budget: Mapping[str, int] = field(default_factory=dict)
    levers: tuple[str, ...] = ()  # what its author changed, in words; not judged

    def accepts(self, sizes: Mapping[str, Any]) -> bool:
        """Whether it takes a workload of these sizes."""
        return all(sizes.get(name) in values for name, values in self.takes.items())

    def plan(self, sizes: Mapping[str, Any], numbers: Mapping[str, Any]) -> list[PlannedLaunch]:
        """The launches of a call. numbers: what else is passed by name. Raises UnknownName."""
        whole = {name: int(value) for name, value in sizes.items() if isinstance(value, (int, bool))}
        return [
            _planned(launch, whole, numbers, self.scratch)
            for launch in self.launches
            if all(whole.get(name) == value for name, value in launch.when.items())
        ]

    def scratch_bytes(self, sizes: Mapping[str, Any]) -> dict[str, int]:
        """How large each scratch buffer is. Raises UnknownName."""
        whole = {name: int(value) for name, value in sizes.items() if isinstance(value, (int, bool))}
        return {name: evaluate(text, whole) for name, text in self.scratch.items()}


def read_manifest(path: Path) -> Manifest:
    """Read a candidate.toml. Raises BadCatalog, which names the file and what to write instead."""
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_BYTES:
            raise BadCatalog(f"{path}: a manifest is a plain file of at most {_MOST_BYTES} bytes")
        data = path.read_bytes()
        return parse_manifest(tomllib.loads(data.decode()), path)
    except FileNotFoundError:
        raise BadCatalog(
            f"{path}: there is no manifest: `profiler init` writes one, `profiler judge --help` shows one"
        ) from None
    except (
        ValueError,
        OSError,
        RecursionError,
    ) as error:  # a number of too many digits is no TOMLDecodeError
        raise BadCatalog(f"{path}: {error}") from None


def parse_manifest(data: Mapping[str, Any], path: Path) -> Manifest:
    """A manifest from its table. Raises BadCatalog."""
    _refuse_unknown(data, _KEYS, path)
    rows = data.get("launch")
    if rows is None:
        rows = [{key: data[key] for key in _LAUNCH_KEYS & data.keys()}]
    elif stray := sorted(_LAUNCH_KEYS & data.keys()):
        raise BadCatalog(f"{path}: {stray[0]} stands beside [[launch]]: write it in each of these")
    if not isinstance(rows, list) or not 0 < len(rows) <= _MOST_LAUNCHES:
        raise BadCatalog(f"{path}: from 1 to {_MOST_LAUNCHES} [[launch]]")
    scratch = {}
    for row in _tables(data, "scratch", path):
        _refuse_unknown(row, {"name", "bytes"}, path)
        name = row.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadCatalog(f"{path}: [[scratch]] needs a name of small letters")
        scratch[name] = _expression(row.get("bytes"), path, f"bytes of {name}")
    if len(scratch) > _MOST_SCRATCH:
        raise BadCatalog(f"{path}: at most {_MOST_SCRATCH} [[scratch]]")
    return Manifest(
        family=_text(data.get("family"), path, "family"),
        launches=tuple(_launch(row, path) for row in rows),
        scratch=scratch,
        flags=_flags(data, path),
        sources=_texts(data, "sources", path),
        takes=_takes(data, path),
        dtype=_text(data.get("dtype", "fp16"), path, "dtype"),
        budget=_budget(data, path),
        levers=_texts(data, "levers", path),
    )


def _launch(row: Any, path: Path) -> DeclaredLaunch:
    if not isinstance(row, dict):
        raise BadCatalog(f"{path}: [[launch]] must be a table")
    _refuse_unknown(row, _LAUNCH_KEYS, path)
    kernel = _text(row.get("kernel"), path, "kernel")
    if not _KERNEL.fullmatch(kernel) or len(kernel) > 200:
        raise BadCatalog(f"{path}: kernel {kernel[:60]!r} is no name of a kernel, as attend<{{head_dim}}>")
    cluster = _dimensions(row.get("cluster", 1), path, "cluster")
    if not all(isinstance(size, int) and 1 <= size <= 16 for size in cluster):
        raise BadCatalog(f"{path}: cluster sizes are whole numbers from 1 to 16")
    arguments = row.get("arguments")
    if not isinstance(arguments, list) or len(arguments) > _MOST_ARGUMENTS:
        raise BadCatalog(f"{path}: arguments must be a list of at most {_MOST_ARGUMENTS}")
    when = row.get("when", {})
    if not isinstance(when, dict):
        raise BadCatalog(f"{path}: when is a table of sizes: {{ head_dim = 64 }}")
    return DeclaredLaunch(
        kernel=kernel,
        grid=_dimensions(row.get("grid"), path, "grid"),
        block=_dimensions(row.get("block"), path, "block"),
        arguments=tuple(_expression(argument, path, "an argument") for argument in arguments),
        shared_bytes=_expression(row.get("shared_bytes", 0), path, "shared_bytes"),
        cluster=tuple(int(size) for size in cluster),
        when=when,
    )


def _planned(
    launch: DeclaredLaunch, sizes: Mapping[str, int], numbers: Mapping[str, Any], scratch: Mapping[str, Any]
) -> PlannedLaunch:
    def triple(values: tuple[str | int, ...]) -> Triple:
        numbers = [evaluate(value, sizes) for value in values] + [1, 1]
        return numbers[0], numbers[1], numbers[2]

    def argument(text: str | int) -> str | int | float:
        if isinstance(text, str):
            name = text.strip()
            if name in scratch:
                return name
            if name in numbers:  # a buffer of the problem, or a number that is none of the sizes
                value = numbers[name]
                return float(value) if isinstance(value, float) else name
        return evaluate(text, sizes)

    kernel = _BRACES.sub(lambda match: str(evaluate(match[1], sizes)), launch.kernel)
    return PlannedLaunch(
        kernel,
        triple(launch.grid),
        triple(launch.block),
        evaluate(launch.shared_bytes, sizes),
        triple(launch.cluster),
        tuple(argument(text) for text in launch.arguments),
    )


def _refuse_unknown(table: Mapping[str, Any], known: set[str], path: Path) -> None:
    if not isinstance(table, dict):
        raise BadCatalog(f"{path}: a table is expected")
    if unknown := sorted(table.keys() - known):
        raise BadCatalog(f"{path}: unknown key {unknown[0]!r}; there are {', '.join(sorted(known))}")


def _tables(data: Mapping[str, Any], name: str, path: Path) -> list[dict[str, Any]]:
    rows = data.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadCatalog(f"{path}: write [[{name}]]")
    return rows


def _text(value: Any, path: Path, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise BadCatalog(f"{path}: {what} is missing, or no text")
    return value


def _texts(data: Mapping[str, Any], name: str, path: Path) -> tuple[str, ...]:
    values = data.get(name, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadCatalog(f"{path}: {name} must be a list of texts")
    return tuple(values)


def _expression(value: Any, path: Path, what: str) -> str | int:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise BadCatalog(f"{path}: {what} must be a whole number, or an expression as a text")
    return value


def _dimensions(value: Any, path: Path, what: str) -> tuple[str | int, ...]:
    values = value if isinstance(value, list) else [value]
    if not 1 <= len(values) <= 3:
        raise BadCatalog(f"{path}: {what} has one to three sizes")
    return tuple(_expression(item, path, what) for item in values)


def _flags(data: Mapping[str, Any], path: Path) -> tuple[str, ...]:
    flags = _texts(data, "flags", path)
    for flag in flags:
        if not _FLAG.fullmatch(flag) or _RESERVED_FLAG.match(flag):
            raise BadCatalog(f"{path}: flag {flag[:60]!r}: only -DNAME and -DNAME=WORD of your own")
    return flags


def _takes(data: Mapping[str, Any], path: Path) -> dict[str, tuple[Any, ...]]:
    takes = data.get("takes", {})
    if not isinstance(takes, dict) or not all(
        isinstance(values, list) and values for values in takes.values()
    ):
        raise BadCatalog(f"{path}: takes is a table of lists: {{ head_dim = [128] }}")
    return {name: tuple(values) for name, values in takes.items()}


def _budget(data: Mapping[str, Any], path: Path) -> dict[str, int]:
    budget = data.get("budget", {})
    if not isinstance(budget, dict):
        raise BadCatalog(f"{path}: budget must be a table")
    _refuse_unknown(budget, set(_BUDGET), path)
    if not all(type(value) is int for value in budget.values()):
        raise BadCatalog(f"{path}: a budget is a whole number")
    return dict(budget)
