"""Imports go one way: what each module may import, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "profiler"

# From the bottom up. Groups of a layer do not know each other; a module imports those before it in its group.
LAYERS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("errors",),),
    (
        ("values", "metrics", "present"),
        ("ncunames",),
        ("location",),
        ("version", "catalog", "origin"),
        ("toolkit",),
        ("occupancy",),
        ("quantize", "problem"),
        ("baselines",),
        ("statistics",),
        ("opcodemix",),
    ),
    (
        ("nvperf", "chips"),
        ("reader", "isolation", "framing", "ncucsv", "detail", "report", "scrub"),
        ("run", "run_file", "bundle", "bundle_zip", "decisions", "store"),
        ("build",),
        ("static",),
        ("capture",),
        (
            "isolated",
            "nsight",
            "launchprobe",
            "device",
            "rounds",
            "cases",
            "stage",
            "gpucheck",
            "timing",
            "timings",
            "target",
            "torchprobe",
            "floors",
            "machine",
        ),
        ("cpubuild", "outcome", "cpucuda", "emulate", "check"),
    ),
    (("disassembly", "alignment", "hotspots", "machinecode", "keptcode"),),
    (
        (
            "matching",
            "comparability",
            "verdict",
            "calls",
            "compare",
            "split",
            "waterfall",
            "wording",
            "explain",
            "trend",
            "latencies",
            "circumstances",
            "history",
            "noisefloor",
            "wobble",
            "overview",
            "rates",
            "tensorpaths",
            "roofline",
            "roofpath",
            "statement",
            "levers",
            "bottleneck",
            "moved",
            "unmeasured",
            "insights",
        ),
        ("whatif",),
        ("extraction", "sync", "intake", "pipeline"),
        ("sources",),
        ("attained", "lineage"),
        ("sourcediff",),
        ("rulings",),
        ("drill",),
        ("opcodemix",),
        ("sourcediff", "lineage"),
        (
            "anatomy",
            "evidence",
            "dissect",
            "plan",
            "staging",
            "captured",
            "session",
            "work",
            "sampling",
            "sanitizing",
            "counting",
            "pairing",
            "collect",
            "assembly",
            "checkpoint",
        ),
    ),
    (("historywords",), ("decisionwords",), ("speedups",), ("baseline", "acknowledgement")),
    (
        ("holdings", "opponents", "contests", "finding", "findings", "gate"),
        ("regression", "setback", "slowdowns", "lostground", "regressions", "regressioncause"),
    ),
    (("cli",), ("ui",)),
    (("__init__", "__main__", "app"),),
)
# Who alone may import what: a library, and the first names of the modules that may.
ONLY_IN = {
    "ncu_report": ("reader",),
    "sqlalchemy": ("store",),
    "streamlit": ("ui", "app"),
    "plotly": ("ui",),
    "torch": ("baselines", "stage", "torchprobe"),
}


def sources() -> dict[str, Path]:
    """Every module of the package by its dotted name below it, and app.py."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = path
    if (ROOT / "app.py").exists():
        found["app"] = ROOT / "app.py"
    return found


def imports(path: Path) -> Iterator[tuple[str, bool, int]]:
    """Every absolute module a file imports anywhere, whether at module level, and the line.

    What stands under `if TYPE_CHECKING` is never run, but counts all the same: a type is knowledge too.
    """
    tree = ast.parse(path.read_text("utf-8"))
    inside = {id(node) for function in ast.walk(tree) if is_function(function) for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in inside, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: imports are absolute"
            assert node.module
            if node.module in (
                "profiler",
                "profiler.cli",
                "profiler.ui",
                "profiler.store",
                "profiler.statistics",
            ):
                for alias in node.names:
                    yield f"{node.module}.{alias.name}", id(node) not in inside, node.lineno
            else:
                yield node.module, id(node) not in inside, node.lineno


def is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def place(module: str) -> tuple[int, int, int]:
    """Layer, group and place in the group of a module, by its first name."""
    first = module.split(".")[0]
    for layer, groups in enumerate(LAYERS):
        for group, members in enumerate(groups):
            if first in members:
                return layer, group, members.index(first)
    raise AssertionError(
        f"profiler/{module.replace('.', '/')}.py is in no layer: list it in {Path(__file__).name}"
    )


def allowed(importer: str, imported: str) -> bool:
    """Whether one module may import another: of a lower layer, or before it in its own group."""
    if importer.split(".")[0] == imported.split(".")[0]:
        return True  # within one package
    (layer, group, index), (below, other, before) = place(importer), place(imported)
    return below < layer or (below == layer and other == group and before < index)


@pytest.mark.parametrize("module", sources())
def test_a_module_imports_only_what_lies_below_it(module: str) -> None:
    place(module)
    wrong = []
    for name, _, line in imports(sources()[module]):
        target = name.removeprefix("profiler.")
        if not name.startswith("profiler.") or target.startswith("__"):
            continue
        if not allowed(module, target):
            wrong.append(f"line {line}: {module} must not import {target}")
    assert not wrong


@pytest.mark.parametrize("module", sources())
def test_heavy_libraries_stay_where_they_belong(module: str) -> None:
    first = module.split(".")[0]
    wrong = []
    for name, at_module_level, line in imports(sources()[module]):
        library = name.split(".")[0]
        if library in ONLY_IN and first not in ONLY_IN[library]:
            wrong.append(f"line {line}: {module} must not import {library}")
        if library == "pandas" and at_module_level and first not in ("ui", "app"):
            wrong.append(f"line {line}: {module} must not import pandas at module level")
    assert not wrong


def test_every_listed_module_exists() -> None:
    listed = {name for groups in LAYERS for group in groups for name in group}
    there = {module.split(".")[0] for module in sources()}
    assert listed - {"app"} <= there


def test_the_rule_can_fail() -> None:
    assert not allowed("values", "compare")
    assert not allowed("chips", "report"), "siblings"
    assert not allowed("matching", "compare"), "upwards within a group"
    assert allowed("compare", "matching")
    assert allowed("cli.compare", "store")


def test_no_module_is_named_after_nothing() -> None:
    vague = {"utils", "common", "helpers", "manager", "base"}
    assert not {part for module in sources() for part in module.split(".")} & vague
