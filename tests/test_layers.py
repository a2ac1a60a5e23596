"""Imports go one way: which room may import which, read from the sources."""

from __future__ import annotations

import ast
import functools
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "profiler"

# A room imports only rooms of the rows above its own; rooms of one row do not know each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("package",),
    ("errors", "statistics"),
    ("evidence",),
    ("bundles", "reports", "timings"),
    ("catalog",),
    ("build",),
    ("emulator", "store"),
    ("sass",),
    ("model",),
    ("collect", "compare"),
    ("history",),
    ("explain",),
    ("advice", "gate"),
    ("regressions",),
    ("judge",),
    ("search",),
    ("documents",),
    ("agents",),
    ("cli", "ui"),
    ("__init__", "__main__", "app"),
)
# What stands on a bare GPU machine: beyond the rows, it never learns of these.
NEVER = {"collect": ("compare", "store", "history")}
# What could be a distribution of its own: where it begins, and the rooms and libraries that it needs.
READS_CODE = {"package", "errors", "evidence", "bundles", "catalog", "build"}
UNPACKS = {"numpy", "lz4", "backports", "compression"}
STANDALONE: dict[str, tuple[tuple[str, ...], set[str], set[str]]] = {
    "the CPU check": (("emulator",), READS_CODE | {"emulator"}, UNPACKS),
    "the machine-code model": (
        ("model.cubin_run", "model.version_prediction", "sass.code_changes"),
        READS_CODE | {"emulator", "reports", "sass", "model", "statistics"},
        UNPACKS | {"ncu_report", "numba"},
    ),
    "the judge": (
        ("judge",),
        READS_CODE
        | {"emulator", "reports", "sass", "model", "statistics", "judge", "collect"}
        | {"store", "timings", "compare", "history", "explain", "advice"},
        UNPACKS | {"ncu_report", "numba", "scipy", "re2", "fsspec", "sqlalchemy", "psycopg"},
    ),
}
# Who alone may import what: a library, and the places that may.
ONLY_IN = {
    "ncu_report": ("reports.reader_process",),
    "sqlalchemy": ("store",),
    "streamlit": ("ui", "app"),
    "plotly": ("ui",),
    "mcp": ("agents.server",),
    "mcp_types": ("agents.server",),
    "torch": ("catalog.torch_backends", "collect.gpu"),
}


def sources() -> dict[str, Path]:
    """Every module of the package by its dotted name below it, and app.py."""
    modules = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        modules[name] = path
    modules["app"] = ROOT / "app.py"
    return modules


SOURCES = sources()


@functools.cache
def import_statements(path: Path) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import statement of a file, and whether it is run when the module is imported.

    Only statements are looked through: an expression holds no import, and is most of a file.
    """
    statements = []

    def look_through(body: list[ast.stmt], at_module_level: bool) -> None:
        for node in body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                statements.append((node, at_module_level))
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
            blocks += [part.body for name in ("handlers", "cases") for part in getattr(node, name, [])]
            for block in blocks:
                look_through(block, at_module_level and not is_function)

    look_through(ast.parse(path.read_text("utf-8")).body, True)
    return statements


@functools.cache
def imports(path: Path) -> list[tuple[str, bool, int]]:
    """Every absolute module a file imports anywhere, whether at module level, and the line.

    What stands under `if TYPE_CHECKING` is never run, but counts all the same: a type is knowledge too.
    """
    imported = []
    for node, at_module_level in import_statements(path):
        if isinstance(node, ast.Import):
            imported += [(alias.name, at_module_level, node.lineno) for alias in node.names]
            continue
        assert not node.level, f"{path}:{node.lineno}: imports are absolute"
        assert node.module
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            known = full.removeprefix("profiler.") in SOURCES
            imported.append((full if known else node.module, at_module_level, node.lineno))
    return imported


def room_of(module: str) -> str:
    """The room, or the file of the top level, that a module belongs to."""
    return module.split(".")[0]


def row_of(room: str) -> int:
    for row, rooms in enumerate(LAYERS):
        if room in rooms:
            return row
    raise AssertionError(f"profiler/{room} is no room: list it in {Path(__file__).name}")


def allowed(importer: str, imported: str) -> bool:
    """Whether a module may import another: of its own room, or of a lower row."""
    a, b = room_of(importer), room_of(imported)
    return a == b or (row_of(b) < row_of(a) and b not in NEVER.get(a, ()))


def within(module: str, places: tuple[str, ...]) -> bool:
    return any(module == place or module.startswith(place + ".") for place in places)


def test_a_room_imports_only_what_lies_below_it() -> None:
    wrong = []
    for module, path in SOURCES.items():
        row_of(room_of(module))
        for name, _, line in imports(path):
            target = name.removeprefix("profiler.")
            if not name.startswith("profiler.") or target.startswith("__"):
                continue
            if not allowed(module, target):
                wrong.append(f"line {line}: {module} must not import {target}")
    assert not wrong


@functools.cache
def for_types_only(path: Path) -> set[int]:
    """The lines under `if TYPE_CHECKING`, which are never run."""
    text = path.read_text("utf-8")
    if "TYPE_CHECKING" not in text:
        return set()
    blocks = [node for node in ast.parse(text).body if isinstance(node, ast.If)]
    return {
        node.lineno for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING" for node in block.body
    }


def test_heavy_libraries_stay_where_they_belong() -> None:
    wrong = []
    for module, path in SOURCES.items():
        never_run = for_types_only(path)
        for name, at_module_level, line in imports(path):
            library = name.split(".")[0]
            if library in ONLY_IN and not within(module, ONLY_IN[library]):
                wrong.append(f"line {line}: {module} must not import {library}")
            is_loaded = at_module_level and line not in never_run
            if library == "pandas" and is_loaded and room_of(module) not in ("ui", "app"):
                wrong.append(f"line {line}: {module} must not import pandas at module level")
    assert not wrong


def test_no_module_imports_itself_in_a_circle() -> None:
    """Nor in a function or for types alone: of two modules that need each other one is too much."""
    graph: dict[str, set[str]] = {}
    for module, path in SOURCES.items():
        names = {name.removeprefix("profiler.") for name, _, _ in imports(path)}
        graph[module] = {name for name in names if name in SOURCES and name != module}
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, f"a circle: {' → '.join((*way[way.index(module) :], module))}"
        if module not in done:
            for other in sorted(graph[module]):
                visit(other, (*way, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("what", STANDALONE)
def test_what_could_be_installed_alone_needs_no_more_than_is_listed(what: str) -> None:
    """Neither at the start nor later: every import that a module of it has anywhere counts."""
    begins, rooms, libraries = STANDALONE[what]
    pending = [module for module in SOURCES for begin in begins if within(module, (begin,))]
    entered, needed = set(pending), set[str]()
    while pending:
        for name, _, _ in imports(SOURCES[pending.pop()]):
            library, _, module = name.partition(".")
            if library != "profiler":
                needed |= {library} - sys.stdlib_module_names
            elif (module or "__init__") not in entered:
                entered.add(module or "__init__")
                pending.append(module or "__init__")
    assert {room_of(module) for module in entered} == rooms
    assert needed == libraries


@functools.cache
def classes_of(path: Path) -> list[ast.ClassDef]:
    """Every class of a file."""
    text = path.read_text("utf-8")
    nodes = ast.walk(ast.parse(text)) if "class " in text else ()
    return [node for node in nodes if isinstance(node, ast.ClassDef)]


def test_a_class_name_stands_once() -> None:
    """A reader who meets a name, in a traceback or an editor's list, knows which class it is."""
    modules: dict[str, list[str]] = {}
    for module, path in SOURCES.items():
        for node in classes_of(path):
            modules.setdefault(node.name, []).append(module)
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def fields_of(node: ast.ClassDef) -> set[str]:
    return {
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    }


def test_where_a_result_stands_is_a_cell() -> None:
    """Classes that say a place and nothing else came to eight, and did not agree on what a gap is."""
    place = {"family", "version", "workload", "gpu", "evidence"}
    classes = [
        f"{module}.{node.name}"
        for module, path in SOURCES.items()
        for node in classes_of(path)
        if {"workload", "gpu"} <= fields_of(node) <= place
    ]
    assert classes == ["evidence.cell.Cell", "evidence.cell.CellFilter"]


def test_two_sides_are_compared_by_a_judge() -> None:
    """So that every answer knows the same of noise, pairs and what may differ."""
    wrong = []
    for module, path in SOURCES.items():
        for node, _ in import_statements(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "") == "profiler.compare.comparison":
                wrong += [module for alias in node.names if alias.name.startswith(("compare", "judge"))]
    assert {room_of(module) for module in wrong} == {"compare"}


def test_the_words_of_an_instruction_are_told_apart_in_one_place() -> None:
    guard = re.compile(r"@\(?!\?|@\\S\+")  # how a pattern of a whole instruction begins
    found = [module for module, path in SOURCES.items() if guard.search(path.read_text("utf-8"))]
    assert found == ["build.instruction_text"]


def test_every_listed_room_exists() -> None:
    listed = {room for rooms in LAYERS for room in rooms}
    assert listed == {room_of(module) for module in SOURCES}


def test_the_package_is_rooms_and_at_most_four_files() -> None:
    files = [path.name for path in PACKAGE.glob("*.py")]
    rooms = [path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert len(files) <= 4
    assert len(rooms) <= 24


def test_the_rule_can_fail() -> None:
    assert not allowed("evidence.values", "compare.comparison"), "upwards"
    assert not allowed("bundles.run", "reports.read"), "of one row"
    assert not allowed("collect.jobs", "store"), "a bare machine has no index"
    assert allowed("compare.comparison", "compare.match_launches")
    assert allowed("cli.compare", "store")


def test_no_module_is_named_after_nothing() -> None:
    vague = {"utils", "common", "helpers", "manager", "base"}
    assert not {part for module in SOURCES for part in module.split(".")} & vague
